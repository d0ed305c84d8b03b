//! Addresses that hosts answer from. They are noted while the input is read, once for each host and
//! address of a work item.
//!
//! An address is a property of a host and seldom of a page, so captures do not store it. Addresses
//! are handled like redirects: they are in the checkpoint of their work item, and with the data
//! that has been read.
//!
//! # Memory
//! Takes 32 bytes for each host and address of a work item.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

/// Host, and an address that it answered from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostAddress {
    /// Hash of the name of the host.
    pub host: u64,
    /// Hash of the address.
    pub address: u64,
    /// Offset of the last record with this host and address. If any of these records is valid, the
    /// last one is.
    pub offset: u64,
    /// Number of the work item.
    pub item: u32,
}

/// Positions in the list of the hosts and addresses of the work item that is being read.
#[derive(Debug, Default)]
pub struct ItemAddresses {
    item: u32,
    places: HashMap<(u64, u64), usize>,
}

impl ItemAddresses {
    /// Adds the host and address of a record to the list. Records of a work item must be added one
    /// after another, in ascending order of offsets.
    pub fn note(&mut self, list: &mut Vec<HostAddress>, row: HostAddress) {
        if std::mem::replace(&mut self.item, row.item) != row.item {
            self.places.clear();
        }
        match self.places.get(&(row.host, row.address)) {
            Some(&place) => list[place].offset = row.offset,
            None => {
                self.places.insert((row.host, row.address), list.len());
                list.push(row);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_host_and_address_of_an_item_occurs_once_with_its_last_record(
            message in prop::collection::vec((0u64..4, 0u64..3, 0u32..3), 0..40)
        ) {
            let mut message = message;
            message.sort_by_key(|row| row.2);
            let (mut noted, mut list, mut last) = (ItemAddresses::default(), Vec::new(), BTreeMap::new());
            for ((host, address, item), offset) in message.into_iter().zip(0u64..) {
                noted.note(&mut list, HostAddress { host, address, offset, item });
                last.insert((item, host, address), offset);
            }
            let mut address_rows: Vec<_> = list.iter().map(|row| ((row.item, row.host, row.address), row.offset)).collect();
            prop_assert!(address_rows.is_sorted_by_key(|row| row.0.0));
            address_rows.sort_unstable();
            prop_assert_eq!(address_rows, last.into_iter().collect::<Vec<_>>());
        }
    }
}
