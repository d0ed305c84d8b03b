//! Serialised rows by number, in memory or on the local disk.

use std::marker::PhantomData;
use std::ops::Range;

use bincode::Options;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::lists::{ListReader, Lists};
use super::pool::MemoryPool;
use webtwin_base::error::{Error, Result};

/// How rows are serialised where they wait.
pub fn codec() -> impl Options {
    bincode::DefaultOptions::new().with_fixint_encoding()
}

/// Rows of any kind in the order they came. By default they stay in memory.
///
/// # Memory
/// As [`Lists`] of their bytes: all of them, or within a bound a block of 1 MiB and 4 bytes a row.
#[derive(Debug)]
pub struct Rows<T> {
    bytes: Lists<u8>,
    room: Vec<u8>,
    of: PhantomData<fn() -> T>,
}

impl<T> Default for Rows<T> {
    fn default() -> Rows<T> {
        Rows { bytes: Lists::default(), room: Vec::new(), of: PhantomData }
    }
}

impl<T: Serialize + DeserializeOwned> Rows<T> {
    /// No rows yet. Within a bound the disk takes all but the last block of them.
    pub fn new(pool: &MemoryPool) -> Rows<T> {
        Rows { bytes: Lists::new(&pool.on_disk()), ..Rows::default() }
    }

    /// No rows of another kind, held as these are.
    pub fn alike<U>(&self) -> Rows<U> {
        Rows { bytes: self.bytes.like(), ..Rows::default() }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.bytes.slots()
    }

    /// Bytes of all of them.
    pub fn bytes(&self) -> u64 {
        self.bytes.items()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends a row.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn push(&mut self, row: &T) -> Result<()> {
        self.room.clear();
        codec().serialize_into(&mut self.room, row).expect("plain values go into memory");
        self.bytes.push(&self.room)
    }

    /// Appends rows.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn extend(&mut self, rows: impl IntoIterator<Item = T>) -> Result<()> {
        rows.into_iter().try_for_each(|row| self.push(&row))
    }

    /// Reads rows by number.
    pub fn reader(&self) -> RowReader<'_, T> {
        RowReader { bytes: self.bytes.reader(), of: PhantomData }
    }

    /// All rows.
    pub fn rows(&self) -> impl Iterator<Item = Result<T>> + '_ {
        self.read(0..self.len())
    }

    /// The rows with these numbers.
    pub fn read(&self, numbers: Range<usize>) -> impl Iterator<Item = Result<T>> + '_ {
        let mut reader = self.reader();
        numbers.map(move |number| reader.get(number))
    }

    /// Drops the rows for which `stays` is false.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn retain(&mut self, stays: impl Fn(&T) -> bool) -> Result<()> {
        let mut kept = self.alike();
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

/// Reads rows by number, best ascending.
#[derive(Debug)]
pub struct RowReader<'a, T> {
    bytes: ListReader<'a, u8>,
    of: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> RowReader<'_, T> {
    /// The row with a number.
    ///
    /// # Errors
    /// Those of the disk; [`Error::Invariant`] if the bytes are no such row.
    pub fn get(&mut self, number: usize) -> Result<T> {
        let row = codec().deserialize(self.bytes.get(number)?);
        row.map_err(|cause| Error::Invariant(format!("a row that waited cannot be read: {cause}")))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rows_are_read_and_retained_in_their_order_in_memory_and_on_disk(
            rows in prop::collection::vec((0u32..9, "[a-z]{0,30}"), 0..40), times in 1usize..2000, from in 0u32..9
        ) {
            let rows: Vec<(u32, String)> = rows.into_iter().map(|(key, text)| (key, text.repeat(times))).collect();
            for mut found in [Rows::default(), Rows::new(&MemoryPool::default().limited(0))] {
                found.extend(rows.iter().cloned()).unwrap();
                prop_assert_eq!((found.len(), found.is_empty()), (rows.len(), rows.is_empty()));
                let mut reader = found.reader();
                for (number, row) in rows.iter().enumerate().rev() {
                    prop_assert_eq!(&reader.get(number).unwrap(), row);
                }
                found.retain(|row| row.0 >= from).unwrap();
                let left: Vec<_> = rows.iter().filter(|row| row.0 >= from).cloned().collect();
                prop_assert!(found.rows().map(Result::unwrap).eq(left.iter().cloned()));
                let half = left.len() / 2;
                prop_assert!(found.read(half..left.len()).map(Result::unwrap).eq(left[half..].iter().cloned()));
            }
        }
    }
}
