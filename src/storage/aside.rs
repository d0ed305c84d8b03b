//! Lists that no step needs for a while: on the local disk where memory has a bound.

use std::borrow::Cow;
use std::ops::Range;

use bytemuck::Pod;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use xxhash_rust::xxh3::xxh3_64;

use super::spill::BLOCK_BYTES;
use super::spill_file::{Disk, SpillFile};
use webtwin_base::error::Result;

/// A list that was put aside, to be read in stretches or taken up again as a whole.
///
/// # Memory
/// That of the list where there is no disk, or it is short; else 8 bytes for each 64 KiB.
#[derive(Debug)]
pub struct Aside<T> {
    len: usize,
    held: Vec<T>,
    /// Where it is written, and a checksum of each block.
    file: Option<SpillFile>,
    checks: Vec<u64>,
}

impl<T> Default for Aside<T> {
    fn default() -> Aside<T> {
        Aside { len: 0, held: Vec::new(), file: None, checks: Vec::new() }
    }
}

impl<T: Pod> Aside<T> {
    /// Rows of a block.
    const ROWS: usize = BLOCK_BYTES / size_of::<T>();

    /// Puts a list aside: on `disk`, if there is one, unless the list is shorter than a block.
    ///
    /// # Errors
    /// [`webtwin_base::error::Error::Storage`] and its like when the disk does not take it.
    pub fn put(list: Vec<T>, disk: Option<&Disk>) -> Result<Aside<T>> {
        let len = list.len();
        let Some(disk) = disk.filter(|_| len > Self::ROWS) else {
            return Ok(Aside { len, held: list, ..Aside::default() });
        };
        let mut file = SpillFile::new(disk);
        file.write(bytemuck::cast_slice(&list))?;
        let checks = list.chunks(Self::ROWS).map(|rows| xxh3_64(bytemuck::cast_slice(rows))).collect();
        Ok(Aside { len, held: Vec::new(), file: Some(file), checks })
    }

    /// An empty list.
    pub const fn none() -> Aside<T> {
        Aside { len: 0, held: Vec::new(), file: None, checks: Vec::new() }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All of it.
    ///
    /// # Errors
    /// As [`Aside::read`].
    pub fn all(&self) -> Result<Cow<'_, [T]>> {
        self.read(0..self.len)
    }

    /// All of it, some rows at a time.
    pub fn blocks(&self) -> impl Iterator<Item = Result<Cow<'_, [T]>>> + '_ {
        (0..self.len).step_by(Self::ROWS).map(|start| self.read(start..self.len.min(start + Self::ROWS)))
    }

    /// All of it, row by row.
    pub fn rows(&self) -> impl Iterator<Item = Result<T>> + '_ {
        self.blocks().flat_map(|block| {
            let (rows, failed) = match block {
                Ok(rows) => (rows.into_owned(), None),
                Err(error) => (Vec::new(), Some(Err(error))),
            };
            rows.into_iter().map(Ok).chain(failed)
        })
    }

    /// Some rows.
    ///
    /// # Errors
    /// [`webtwin_base::error::Error::Storage`] if the disk fails, or has other bytes than were written.
    ///
    /// # Panics
    /// When there are no such rows.
    pub fn read(&self, rows: Range<usize>) -> Result<Cow<'_, [T]>> {
        let Some(file) = &self.file else { return Ok(Cow::Borrowed(&self.held[rows])) };
        let blocks = rows.start / Self::ROWS..rows.end.div_ceil(Self::ROWS);
        let begin = blocks.start * Self::ROWS;
        let end = (blocks.end * Self::ROWS).min(self.len);
        let mut read = Vec::with_capacity(end.saturating_sub(begin));
        file.read_unchecked((begin * size_of::<T>()) as u64, end.saturating_sub(begin), &mut read)?;
        let mut checked = read.chunks(Self::ROWS).zip(&self.checks[blocks]);
        if checked.any(|(block, check)| xxh3_64(bytemuck::cast_slice(block)) != *check) {
            return Err(file.damaged());
        }
        read.truncate(rows.end - begin);
        read.drain(..rows.start - begin);
        Ok(Cow::Owned(read))
    }

    /// Puts it aside on `disk`, if there is one, where it is not yet.
    ///
    /// # Errors
    /// As [`Aside::put`].
    pub fn onto(self, disk: Option<&Disk>) -> Result<Aside<T>> {
        if self.file.is_some() { Ok(self) } else { Aside::put(self.held, disk) }
    }

    /// Calls `each` with the rows of each group of neighbours that are of the `same`, in order.
    ///
    /// # Errors
    /// As [`Aside::read`].
    ///
    /// # Memory
    /// A block, and the largest group.
    pub fn each_group(&self, same: impl Fn(&T, &T) -> bool, mut each: impl FnMut(&[T])) -> Result<()> {
        let mut left: Vec<T> = Vec::new();
        for block in self.blocks() {
            let block = block?;
            for rows in block.chunk_by(&same) {
                if left.last().is_some_and(|last| !same(last, &rows[0])) {
                    each(&left);
                    left.clear();
                }
                left.extend_from_slice(rows);
            }
        }
        if !left.is_empty() {
            each(&left);
        }
        Ok(())
    }

    /// Changes the rows one after the other, and drops those for which `each` is false.
    ///
    /// # Errors
    /// As [`Aside::put`] and [`Aside::read`].
    pub fn retain_mut(&mut self, mut each: impl FnMut(&mut T) -> bool) -> Result<()> {
        let Some(file) = &self.file else {
            self.held.retain_mut(each);
            self.len = self.held.len();
            return Ok(());
        };
        let mut changed = AsideWriter::beside(Some(file.disk()));
        for block in self.blocks() {
            for mut row in block?.into_owned() {
                if each(&mut row) {
                    changed.push(row)?;
                }
            }
        }
        *self = changed.finish()?;
        Ok(())
    }

    /// Takes the list up again.
    ///
    /// # Errors
    /// As [`Aside::read`].
    pub fn take(self) -> Result<Vec<T>> {
        if self.file.is_none() { Ok(self.held) } else { Ok(self.all()?.into_owned()) }
    }
}

/// A list that is put aside as it comes.
#[derive(Debug)]
pub struct AsideWriter<T> {
    disk: Option<Disk>,
    list: Aside<T>,
}

impl<T: Pod> AsideWriter<T> {
    /// An empty list, whose blocks go to `disk`, if there is one, when they are full.
    pub fn beside(disk: Option<&Disk>) -> AsideWriter<T> {
        AsideWriter { disk: disk.cloned(), list: Aside::default() }
    }

    /// Appends a row.
    ///
    /// # Errors
    /// As [`Aside::put`].
    pub fn push(&mut self, row: T) -> Result<()> {
        self.list.held.push(row);
        self.list.len += 1;
        if self.disk.is_some() && self.list.held.len() == Aside::<T>::ROWS { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        let Some(disk) = &self.disk else { return Ok(()) };
        let Aside { held, file, checks, .. } = &mut self.list;
        let bytes = bytemuck::cast_slice(held);
        file.get_or_insert_with(|| SpillFile::new(disk)).write(bytes)?;
        checks.push(xxh3_64(bytes));
        held.clear();
        Ok(())
    }

    /// The list.
    ///
    /// # Errors
    /// As [`Aside::put`].
    pub fn finish(mut self) -> Result<Aside<T>> {
        if self.list.file.is_some() {
            self.write()?;
            self.list.held = Vec::new();
        }
        Ok(self.list)
    }
}

/// As a list.
impl<T: Pod + Serialize> Serialize for Aside<T> {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        self.all().map_err(S::Error::custom)?.serialize(to)
    }
}

/// In memory.
impl<'de, T: Pod + Deserialize<'de>> Deserialize<'de> for Aside<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Aside<T>, D::Error> {
        let held = Vec::deserialize(from)?;
        Ok(Aside { len: held.len(), held, ..Aside::default() })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn disk() -> Disk {
        Disk::new(&std::env::temp_dir(), 0)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]

        #[test]
        fn a_list_is_what_it_was_wherever_it_waits(
            len in 0usize..60_000, on_disk: bool, places in prop::collection::vec((0f64..1.0, 0f64..1.0), 0..20)
        ) {
            let list: Vec<[u32; 3]> = (0..len as u32).map(|at| [at, at.wrapping_mul(7), 3]).collect();
            let disk = disk();
            let aside = Aside::put(list.clone(), on_disk.then_some(&disk)).unwrap();
            prop_assert_eq!((aside.len(), aside.is_empty()), (len, len == 0));
            for (x, y) in places {
                let (x, y) = ((x * len as f64) as usize, (y * len as f64) as usize);
                let rows = x.min(y)..x.max(y);
                prop_assert_eq!(&*aside.read(rows.clone()).unwrap(), &list[rows]);
            }
            prop_assert_eq!(&*aside.all().unwrap(), &list[..]);
            let mut writer = AsideWriter::beside(on_disk.then_some(&disk));
            list.iter().for_each(|&row| writer.push(row).unwrap());
            let written = writer.finish().unwrap();
            prop_assert_eq!(written.all().unwrap(), aside.all().unwrap());
            prop_assert_eq!(aside.blocks().map(|block| block.unwrap().into_owned()).collect::<Vec<_>>().concat(), &list[..]);
            prop_assert_eq!(aside.rows().collect::<Result<Vec<_>>>().unwrap(), &list[..]);
            let alike = |x: &[u32; 3], y: &[u32; 3]| x[1] / 50_000 == y[1] / 50_000;
            let mut groups = Vec::new();
            aside.each_group(alike, |rows| groups.push(rows.to_vec())).unwrap();
            prop_assert_eq!(groups, list.chunk_by(alike).map(<[_]>::to_vec).collect::<Vec<_>>());
            let change = |row: &mut [u32; 3]| {
                row[2] += row[0];
                !row[0].is_multiple_of(3)
            };
            let (mut changed, mut list_changed) = (written, list.clone());
            changed.retain_mut(change).unwrap();
            list_changed.retain_mut(change);
            prop_assert_eq!(changed.len(), list_changed.len());
            prop_assert_eq!(&*changed.all().unwrap(), &list_changed[..]);
            prop_assert_eq!(aside.take().unwrap(), list);
        }
    }

    #[test]
    fn a_damaged_block_is_an_error_and_the_others_are_read() {
        let list: Vec<u64> = (0..100_000).collect();
        let aside = Aside::put(list.clone(), Some(&disk())).unwrap();
        aside.file.as_ref().unwrap().damage(3 * BLOCK_BYTES as u64 + 9);
        let rows = Aside::<u64>::ROWS;
        assert!(aside.read(3 * rows..3 * rows + 1).unwrap_err().to_string().contains("other bytes than were written"));
        assert_eq!(&*aside.read(4 * rows..5 * rows).unwrap(), &list[4 * rows..5 * rows]);
    }
}
