//! Records that are not kept, on their way to the `rejected` table: a real crawl has several for each page.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::byte_lists::ByteLists;
use webtwin_base::error::Result;
use webtwin_pages::record::Reason;
use webtwin_storage::spill_file::Disk;

/// A record that is not kept. Orders by source, offset, reason.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Rejection {
    /// Number of the input.
    pub source: u32,
    /// Where the record starts.
    pub offset: u64,
    /// Why it is not kept.
    pub reason: Reason,
    /// Particulars.
    pub detail: String,
    /// Number of the work item.
    pub item: u32,
    /// Bytes of the input that the record takes, estimated within a compressed member; 0 if unknown.
    pub bytes: u64,
}

/// Records that are not kept, in the order they came. By default they stay in memory.
///
/// # Memory
/// As [`ByteLists`], of some 16 bytes and the particulars each.
#[derive(Debug, Default)]
pub struct Rejections(ByteLists);

impl Rejections {
    /// None yet; `disk` takes all but the last of them.
    ///
    /// # Errors
    /// As [`ByteLists::on`].
    pub fn on(disk: &Disk) -> Result<Rejections> {
        Ok(Rejections(ByteLists::on(disk)?))
    }

    /// None, held as these are.
    pub fn like(&self) -> Rejections {
        Rejections(self.0.like())
    }

    /// Number of them.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Appends one.
    ///
    /// # Errors
    /// As [`ByteLists::push`].
    pub fn push(&mut self, row: &Rejection) -> Result<()> {
        self.0.push_row(row)
    }

    /// Appends some.
    ///
    /// # Errors
    /// As [`ByteLists::push`].
    pub fn extend(&mut self, rows: impl IntoIterator<Item = Rejection>) -> Result<()> {
        rows.into_iter().try_for_each(|row| self.push(&row))
    }

    /// All of them.
    pub fn rows(&self) -> impl Iterator<Item = Result<Rejection>> + '_ {
        self.read(0..self.len())
    }

    /// Those with these numbers.
    pub fn read(&self, numbers: Range<usize>) -> impl Iterator<Item = Result<Rejection>> + '_ {
        let mut reader = self.0.reader();
        numbers.map(move |number| reader.row(number))
    }

    /// Drops those for which `stays` is false.
    ///
    /// # Errors
    /// As [`ByteLists::push`], and those of reading.
    pub fn retain(&mut self, stays: impl Fn(&Rejection) -> bool) -> Result<()> {
        let mut kept = self.like();
        for row in self.rows() {
            let row = row?;
            if stays(&row) {
                kept.push(&row)?;
            }
        }
        *self = kept;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn those_that_stay_are_read_in_their_order_in_memory_and_on_disk(
            rows in prop::collection::vec((0u32..3, any::<u64>(), "[a-z]{0,30}", 0u32..9), 0..40), from in 0u32..4
        ) {
            let reason = Reason::ALL[0];
            let row = |(source, offset, detail, item): (u32, u64, String, u32)| Rejection { source, offset, reason, detail, item, bytes: offset >> 9 };
            let rows: Vec<Rejection> = rows.into_iter().map(row).collect();
            for mut found in [Rejections::default(), Rejections::on(&Disk::new(&std::env::temp_dir(), 0)).unwrap()] {
                found.extend(rows.iter().cloned()).unwrap();
                prop_assert!(found.rows().map(Result::unwrap).eq(rows.iter().cloned()));
                found.retain(|row| row.source >= from).unwrap();
                let left: Vec<Rejection> = rows.iter().filter(|row| row.source >= from).cloned().collect();
                prop_assert_eq!(found.len(), left.len());
                prop_assert!(found.read(left.len() / 2..left.len()).map(Result::unwrap).eq(left[left.len() / 2..].iter().cloned()));
            }
        }
    }
}
