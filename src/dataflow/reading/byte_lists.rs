//! Bytes of any length by number, as [`Lists`] of words: in memory or on the local disk.

use bincode::Options;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::item_record::codec;
use super::lists::{ListReader, Lists};
use webtwin_base::error::Result;
use webtwin_storage::spill_file::Disk;

/// Bytes by number, in the order they came. By default they stay in memory.
///
/// # Memory
/// As [`Lists`], of their bytes and up to 15 more each.
#[derive(Debug, Default)]
pub struct ByteLists {
    lists: Lists,
    room: Vec<u64>,
}

impl ByteLists {
    /// None yet; `disk` takes all but the last of them.
    ///
    /// # Errors
    /// None where nothing is written.
    pub fn on(disk: &Disk) -> Result<ByteLists> {
        let mut lists = Lists::beside(disk);
        lists.hold_at_most(0)?;
        Ok(ByteLists { lists, room: Vec::new() })
    }

    /// None, held as these are.
    pub fn like(&self) -> ByteLists {
        ByteLists { lists: self.lists.like(), room: Vec::new() }
    }

    /// Number of them.
    pub fn len(&self) -> usize {
        self.lists.slots()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends some.
    ///
    /// # Errors
    /// As [`Lists::push`].
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.room.clear();
        self.room.resize(1 + bytes.len().div_ceil(8), 0);
        self.room[0] = bytes.len() as u64;
        bytemuck::cast_slice_mut(&mut self.room[1..])[..bytes.len()].copy_from_slice(bytes);
        self.lists.push(&self.room)
    }

    /// Appends a row, as the bytes that it has on its way.
    ///
    /// # Errors
    /// As [`Lists::push`].
    pub fn push_row(&mut self, row: &impl Serialize) -> Result<()> {
        self.push(&codec().serialize(row).expect("plain values go into memory"))
    }

    /// Reads them.
    pub fn reader(&self) -> ByteReader<'_> {
        ByteReader(self.lists.reader())
    }
}

/// Reads bytes by number.
#[derive(Debug)]
pub struct ByteReader<'a>(ListReader<'a>);

impl ByteReader<'_> {
    /// The bytes with a number.
    ///
    /// # Errors
    /// As [`ListReader::get`].
    pub fn get(&mut self, number: usize) -> Result<&[u8]> {
        let words = self.0.get(number)?;
        Ok(&bytemuck::cast_slice(&words[1..])[..words[0] as usize])
    }

    /// The row with a number.
    ///
    /// # Errors
    /// As [`ListReader::get`].
    pub fn row<T: DeserializeOwned>(&mut self, number: usize) -> Result<T> {
        Ok(codec().deserialize(self.get(number)?).expect("it is as it was written"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_pushed_is_read_in_memory_and_on_disk(
            all in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..40), times in 1usize..2000
        ) {
            let disk = Disk::new(&std::env::temp_dir(), 0);
            for mut lists in [ByteLists::default(), ByteLists::on(&disk).unwrap()] {
                all.iter().for_each(|bytes| lists.push(&bytes.repeat(times)).unwrap());
                let mut reader = lists.reader();
                prop_assert_eq!(lists.len(), all.len());
                for (number, bytes) in all.iter().enumerate().rev() {
                    prop_assert!(reader.get(number).unwrap() == bytes.repeat(times));
                }
            }
        }
    }
}
