//! Rows in insertion order that upcoming steps do not read. They are on the local disk if memory is
//! bounded.

use std::borrow::Cow;
use std::ops::Range;

use bytemuck::Pod;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use xxhash_rust::xxh3::xxh3_64;

use super::disk::{Disk, SpillFile};
use super::partitions::BLOCK_BYTES;
use super::pool::MemoryPool;
use webtwin_base::error::Result;

/// Rows in insertion order.
///
/// # Memory
/// All rows if memory is unbounded. Otherwise a block of 64 KiB, and 8 bytes for each block on
/// disk.
#[derive(Debug)]
pub struct SpillColumn<T> {
    /// Destination of full blocks; `None` if memory is unbounded.
    disk: Option<Disk>,
    /// Blocks on disk, and a checksum of each.
    file: Option<SpillFile>,
    checks: Vec<u64>,
    /// Rows after those on disk.
    rows_in_memory: Vec<T>,
}

/// Creates an empty column that stays in memory.
impl<T> Default for SpillColumn<T> {
    fn default() -> SpillColumn<T> {
        SpillColumn { disk: None, file: None, checks: Vec::new(), rows_in_memory: Vec::new() }
    }
}

/// Creates a column in memory.
impl<T: Pod> From<Vec<T>> for SpillColumn<T> {
    fn from(rows: Vec<T>) -> SpillColumn<T> {
        SpillColumn { rows_in_memory: rows, ..SpillColumn::default() }
    }
}

impl<T: Pod> SpillColumn<T> {
    /// Number of rows of a block.
    const ROWS: usize = BLOCK_BYTES / size_of::<T>();

    /// Creates an empty column.
    pub fn new(pool: &MemoryPool) -> SpillColumn<T> {
        SpillColumn { disk: pool.is_bounded().then(|| pool.disk()), ..SpillColumn::default() }
    }

    /// Creates a column from a list of rows.
    ///
    /// # Errors
    /// Returns the errors of [`SpillColumn::push`].
    pub fn from_rows(list: Vec<T>, pool: &MemoryPool) -> Result<SpillColumn<T>> {
        let mut column = SpillColumn { rows_in_memory: list, ..SpillColumn::new(pool) };
        column.write_full_blocks()?;
        Ok(column)
    }

    /// Moves the rows to disk if memory is bounded.
    ///
    /// # Errors
    /// Returns the errors of [`SpillColumn::push`].
    pub fn onto(self, pool: &MemoryPool) -> Result<SpillColumn<T>> {
        if self.file.is_some() { Ok(self) } else { SpillColumn::from_rows(self.rows_in_memory, pool) }
    }

    /// Appends a row.
    ///
    /// # Errors
    /// Returns [`webtwin_base::error::Error::Storage`] or another error of a full disk if the row
    /// cannot be written to disk.
    pub fn push(&mut self, row: T) -> Result<()> {
        self.rows_in_memory.push(row);
        if self.disk.is_some() && self.rows_in_memory.len() == Self::ROWS { self.write_full_blocks() } else { Ok(()) }
    }

    fn write_full_blocks(&mut self) -> Result<()> {
        let full = self.rows_in_memory.len() - self.rows_in_memory.len() % Self::ROWS;
        let Some(disk) = self.disk.as_ref().filter(|_| full > 0) else { return Ok(()) };
        let rows = &self.rows_in_memory[..full];
        self.file.get_or_insert_with(|| SpillFile::new(disk)).write(bytemuck::cast_slice(rows))?;
        self.checks.extend(rows.chunks(Self::ROWS).map(|rows| xxh3_64(bytemuck::cast_slice(rows))));
        match self.rows_in_memory.len() {
            // The allocation is kept for the next block.
            len if len == Self::ROWS => self.rows_in_memory.clear(),
            _ => self.rows_in_memory = self.rows_in_memory[full..].to_vec(),
        }
        Ok(())
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.checks.len() * Self::ROWS + self.rows_in_memory.len()
    }

    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns all rows, in blocks.
    pub fn blocks(&self) -> impl Iterator<Item = Result<Cow<'_, [T]>>> + '_ {
        let len = self.len();
        (0..len).step_by(Self::ROWS).map(move |start| self.read(start..len.min(start + Self::ROWS)))
    }

    /// Returns all rows, one by one.
    pub fn rows(&self) -> impl Iterator<Item = Result<T>> + '_ {
        self.blocks().flat_map(|block| {
            let (rows, read_failure) = match block {
                Ok(rows) => (rows.into_owned(), None),
                Err(error) => (Vec::new(), Some(Err(error))),
            };
            rows.into_iter().map(Ok).chain(read_failure)
        })
    }

    /// Returns all rows as one slice, which is read into memory if necessary.
    ///
    /// # Errors
    /// Returns the errors of [`SpillColumn::read`].
    pub fn all_rows(&self) -> Result<Cow<'_, [T]>> {
        self.read(0..self.len())
    }

    /// Moves all rows into a list in memory.
    ///
    /// # Errors
    /// Returns the errors of [`SpillColumn::read`].
    pub fn take(self) -> Result<Vec<T>> {
        if self.file.is_none() { Ok(self.rows_in_memory) } else { Ok(self.all_rows()?.into_owned()) }
    }

    /// Returns a range of rows.
    ///
    /// # Errors
    /// Returns [`webtwin_base::error::Error::Storage`] if the disk fails or returns other bytes
    /// than were written.
    ///
    /// # Panics
    /// Panics if the range is out of bounds.
    pub fn read(&self, rows: Range<usize>) -> Result<Cow<'_, [T]>> {
        let on_disk = self.checks.len() * Self::ROWS;
        let Some(file) = self.file.as_ref().filter(|_| rows.start < on_disk) else {
            return Ok(Cow::Borrowed(&self.rows_in_memory[rows.start - on_disk..rows.end - on_disk]));
        };
        let end = rows.end.min(on_disk);
        let blocks = rows.start / Self::ROWS..end.div_ceil(Self::ROWS);
        let begin = blocks.start * Self::ROWS;
        let count = blocks.len() * Self::ROWS;
        let mut block_rows = Vec::with_capacity(count);
        file.read_unchecked((begin * size_of::<T>()) as u64, count, &mut block_rows)?;
        let mut checked = block_rows.chunks(Self::ROWS).zip(&self.checks[blocks]);
        if checked.any(|(block, check)| xxh3_64(bytemuck::cast_slice(block)) != *check) {
            return Err(file.damaged());
        }
        block_rows.truncate(end - begin);
        block_rows.drain(..rows.start - begin);
        block_rows.extend_from_slice(&self.rows_in_memory[..rows.end - end]);
        Ok(Cow::Owned(block_rows))
    }

    /// Calls `visit` with each maximal group of consecutive rows, in order. `is_same_group` is true
    /// for each row of a group and the next one.
    ///
    /// # Errors
    /// Returns the errors of [`SpillColumn::read`].
    ///
    /// # Memory
    /// One block, and the largest group.
    pub fn each_group(&self, is_same_group: impl Fn(&T, &T) -> bool, mut visit: impl FnMut(&[T])) -> Result<()> {
        let mut left: Vec<T> = Vec::new();
        for block in self.blocks() {
            let block = block?;
            for rows in block.chunk_by(&is_same_group) {
                if left.last().is_some_and(|last| !is_same_group(last, &rows[0])) {
                    visit(&left);
                    left.clear();
                }
                left.extend_from_slice(rows);
            }
        }
        if !left.is_empty() {
            visit(&left);
        }
        Ok(())
    }

    /// Applies `keep` to all rows in order, which may change them, and drops those for which it
    /// returns false.
    ///
    /// # Errors
    /// Returns the errors of [`SpillColumn::push`] and [`SpillColumn::read`].
    pub fn retain_mut(&mut self, mut keep: impl FnMut(&mut T) -> bool) -> Result<()> {
        if self.file.is_none() {
            self.rows_in_memory.retain_mut(keep);
            return Ok(());
        }
        let mut retained = SpillColumn { disk: self.disk.clone(), ..SpillColumn::default() };
        for block in self.blocks() {
            for mut row in block?.into_owned() {
                if keep(&mut row) {
                    retained.push(row)?;
                }
            }
        }
        *self = retained;
        Ok(())
    }
}

/// Serialises the rows as a list.
impl<T: Pod + Serialize> Serialize for SpillColumn<T> {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        self.all_rows().map_err(S::Error::custom)?.serialize(to)
    }
}

/// Deserialises a list of rows into memory.
impl<'de, T: Pod + Deserialize<'de>> Deserialize<'de> for SpillColumn<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<SpillColumn<T>, D::Error> {
        Ok(SpillColumn::from(Vec::deserialize(from)?))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pool(is_bounded: bool) -> MemoryPool {
        if is_bounded { MemoryPool::default().limited(0) } else { MemoryPool::default() }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]

        #[test]
        fn spilled_list_is_restored_unchanged(
            len in 0usize..60_000, on_disk: bool, places in prop::collection::vec((0f64..1.0, 0f64..1.0), 0..20)
        ) {
            let list: Vec<[u32; 3]> = (0..len as u32).map(|at| [at, at.wrapping_mul(7), 3]).collect();
            let column = SpillColumn::from_rows(list.clone(), &pool(on_disk)).unwrap();
            prop_assert_eq!((column.len(), column.is_empty()), (len, len == 0));
            for (x, y) in places {
                let (x, y) = ((x * len as f64) as usize, (y * len as f64) as usize);
                let rows = x.min(y)..x.max(y);
                prop_assert_eq!(&*column.read(rows.clone()).unwrap(), &list[rows]);
            }
            prop_assert_eq!(&*column.all_rows().unwrap(), &list[..]);
            let mut written = SpillColumn::new(&pool(on_disk));
            list.iter().for_each(|&row| written.push(row).unwrap());
            prop_assert_eq!(written.all_rows().unwrap(), column.all_rows().unwrap());
            prop_assert_eq!(column.blocks().map(|block| block.unwrap().into_owned()).collect::<Vec<_>>().concat(), &list[..]);
            prop_assert_eq!(column.rows().collect::<Result<Vec<_>>>().unwrap(), &list[..]);
            let is_same_group = |x: &[u32; 3], y: &[u32; 3]| x[1] / 50_000 == y[1] / 50_000;
            let mut groups = Vec::new();
            column.each_group(is_same_group, |rows| groups.push(rows.to_vec())).unwrap();
            prop_assert_eq!(groups, list.chunk_by(is_same_group).map(<[_]>::to_vec).collect::<Vec<_>>());
            let change = |row: &mut [u32; 3]| {
                row[2] += row[0];
                !row[0].is_multiple_of(3)
            };
            let (mut retained, mut list_changed) = (written, list.clone());
            retained.retain_mut(change).unwrap();
            list_changed.retain_mut(change);
            prop_assert_eq!(retained.len(), list_changed.len());
            prop_assert_eq!(&*retained.all_rows().unwrap(), &list_changed[..]);
            prop_assert_eq!(column.take().unwrap(), list);
        }
    }

    #[test]
    fn a_damaged_block_is_an_error_and_the_others_are_read() {
        let list: Vec<u64> = (0..100_000).collect();
        let column = SpillColumn::from_rows(list.clone(), &pool(true)).unwrap();
        column.file.as_ref().unwrap().damage(3 * BLOCK_BYTES as u64 + 9);
        let rows = SpillColumn::<u64>::ROWS;
        assert!(column.read(3 * rows..3 * rows + 1).unwrap_err().to_string().contains("other bytes than were written"));
        assert_eq!(&*column.read(4 * rows..5 * rows).unwrap(), &list[4 * rows..5 * rows]);
    }
}
