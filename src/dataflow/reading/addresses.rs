//! Addresses that hosts answer from: noted while the input is read, once for each host and address of a work item.
//!
//! An address is a property of a host and seldom of a page, so it takes no room in captures. It travels as redirects do: in the
//! record of its item, and with what has been read.
//!
//! # Memory
//! 32 bytes for each host and address of an item.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

/// A host, and an address that it answered from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostAddress {
    /// Hash of the name of the host.
    pub host: u64,
    /// Hash of the address.
    pub address: u64,
    /// Where the last of the records that say so starts: if it is true, so is one of them.
    pub offset: u64,
    /// Number of the work item.
    pub item: u32,
}

/// Where the hosts and addresses of the item that is being read are in the list.
#[derive(Debug, Default)]
pub struct Noted {
    item: u32,
    places: HashMap<(u64, u64), usize>,
}

impl Noted {
    /// Adds what a record says to the list. Records of an item come one after another, by ascending offsets.
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
        fn each_host_and_address_of_an_item_is_there_once_with_its_last_record(
            said in prop::collection::vec((0u64..4, 0u64..3, 0u32..3), 0..40)
        ) {
            let mut said = said;
            said.sort_by_key(|row| row.2);
            let (mut noted, mut list, mut last) = (Noted::default(), Vec::new(), BTreeMap::new());
            for ((host, address, item), offset) in said.into_iter().zip(0u64..) {
                noted.note(&mut list, HostAddress { host, address, offset, item });
                last.insert((item, host, address), offset);
            }
            let mut found: Vec<_> = list.iter().map(|row| ((row.item, row.host, row.address), row.offset)).collect();
            prop_assert!(found.is_sorted_by_key(|row| row.0.0));
            found.sort_unstable();
            prop_assert_eq!(found, last.into_iter().collect::<Vec<_>>());
        }
    }
}
