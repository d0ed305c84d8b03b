//! Serialised rows, numbered, in memory or on the local disk.

use std::marker::PhantomData;
use std::ops::Range;

use bincode::Options;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::lists::{ListReader, SpillLists};
use super::pool::MemoryPool;
use webtwin_base::error::{Error, Result};

/// Returns the encoding of spilled rows.
pub fn codec() -> impl Options {
    bincode::DefaultOptions::new().with_fixint_encoding()
}

/// Rows of any serialisable type in insertion order. By default they stay in memory.
///
/// # Memory
/// All rows in serialised form. If memory is bounded: a block of 1 MiB, and 4 bytes for each row,
/// as in [`SpillLists`].
#[derive(Debug)]
pub struct SpillRows<T> {
    bytes: SpillLists<u8>,
    scratch: Vec<u8>,
    row_type: PhantomData<fn() -> T>,
}

impl<T> Default for SpillRows<T> {
    fn default() -> SpillRows<T> {
        SpillRows { bytes: SpillLists::default(), scratch: Vec::new(), row_type: PhantomData }
    }
}

impl<T: Serialize + DeserializeOwned> SpillRows<T> {
    /// Creates an empty container. If memory is bounded, all but the last block is written to disk.
    pub fn new(pool: &MemoryPool) -> SpillRows<T> {
        SpillRows { bytes: SpillLists::new(&pool.on_disk()), ..SpillRows::default() }
    }

    /// Creates an empty container for rows of another type, with the same memory budget and the
    /// same disk.
    pub fn like<U>(&self) -> SpillRows<U> {
        SpillRows { bytes: self.bytes.like(), ..SpillRows::default() }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.bytes.slots()
    }

    /// Returns the total size of all rows in serialised form, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes.items()
    }

    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends a row.
    ///
    /// # Errors
    /// Returns any error of the disk.
    pub fn push(&mut self, row: &T) -> Result<()> {
        self.scratch.clear();
        codec().serialize_into(&mut self.scratch, row).expect("plain values go into memory");
        self.bytes.push(&self.scratch)
    }

    /// Appends rows.
    ///
    /// # Errors
    /// Returns any error of the disk.
    pub fn extend(&mut self, rows: impl IntoIterator<Item = T>) -> Result<()> {
        rows.into_iter().try_for_each(|row| self.push(&row))
    }

    /// Returns a reader of rows by number.
    pub fn reader(&self) -> RowReader<'_, T> {
        RowReader { bytes: self.bytes.reader(), row_type: PhantomData }
    }

    /// Returns all rows in order.
    pub fn rows(&self) -> impl Iterator<Item = Result<T>> + '_ {
        self.read(0..self.len())
    }

    /// Returns the rows with the given numbers.
    pub fn read(&self, numbers: Range<usize>) -> impl Iterator<Item = Result<T>> + '_ {
        let mut reader = self.reader();
        numbers.map(move |number| reader.get(number))
    }

    /// Drops the rows for which `stays` is false.
    ///
    /// # Errors
    /// Returns any error of the disk.
    pub fn retain(&mut self, stays: impl Fn(&T) -> bool) -> Result<()> {
        let mut retained = self.like();
        for row in self.rows() {
            let row = row?;
            if stays(&row) {
                retained.push(&row)?;
            }
        }
        *self = retained;
        Ok(())
    }
}

/// Reader of rows by number. Ascending order is the most efficient.
#[derive(Debug)]
pub struct RowReader<'a, T> {
    bytes: ListReader<'a, u8>,
    row_type: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> RowReader<'_, T> {
    /// Returns the row with the given number.
    ///
    /// # Errors
    /// Returns any error of the disk, and [`Error::Invariant`] if the bytes cannot be deserialised.
    pub fn get(&mut self, number: usize) -> Result<T> {
        let row = codec().deserialize(self.bytes.get(number)?);
        row.map_err(|cause| Error::Invariant(format!("a stored row cannot be deserialised: {cause}")))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rows_are_read_and_retained_in_order_in_memory_and_on_disk(
            rows in prop::collection::vec((0u32..9, "[a-z]{0,30}"), 0..40), times in 1usize..2000, from in 0u32..9
        ) {
            let rows: Vec<(u32, String)> = rows.into_iter().map(|(key, text)| (key, text.repeat(times))).collect();
            for mut spill_rows in [SpillRows::default(), SpillRows::new(&MemoryPool::default().limited(0))] {
                spill_rows.extend(rows.iter().cloned()).unwrap();
                prop_assert_eq!((spill_rows.len(), spill_rows.is_empty()), (rows.len(), rows.is_empty()));
                let mut reader = spill_rows.reader();
                for (number, row) in rows.iter().enumerate().rev() {
                    prop_assert_eq!(&reader.get(number).unwrap(), row);
                }
                spill_rows.retain(|row| row.0 >= from).unwrap();
                let left: Vec<_> = rows.iter().filter(|row| row.0 >= from).cloned().collect();
                prop_assert!(spill_rows.rows().map(Result::unwrap).eq(left.iter().cloned()));
                let half = left.len() / 2;
                prop_assert!(spill_rows.read(half..left.len()).map(Result::unwrap).eq(left[half..].iter().cloned()));
            }
        }
    }
}
