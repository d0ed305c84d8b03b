//! Records in insertion order: in memory blocks and, beyond a budget, on the local disk.

use bytemuck::Pod;

use super::disk::{Extent, SpillFile};
use super::pool::MemoryPool;
use webtwin_base::error::Result;

/// Size of a block in bytes. A block with a longer record is larger.
pub const RUN_LOG_BLOCK_BYTES: usize = 1 << 20;

/// Records in insertion order, in memory and on disk.
#[derive(Debug)]
pub struct RunLog<T> {
    pieces: Vec<Piece<T>>,
    open: Vec<T>,
    held_bytes: u64,
    allowed_bytes: u64,
    file: SpillFile,
}

#[derive(Debug)]
enum Piece<T> {
    InMemory(Vec<T>),
    Spilled(Extent),
}

impl<T: Pod> RunLog<T> {
    const ROWS: usize = RUN_LOG_BLOCK_BYTES / size_of::<T>();

    /// Creates an empty log that holds in memory what the pool allows a worker.
    pub fn new(pool: &MemoryPool) -> RunLog<T> {
        let (allowed_bytes, file) = (pool.of_worker(), SpillFile::new(&pool.disk()));
        RunLog { pieces: Vec::new(), open: Vec::new(), held_bytes: 0, allowed_bytes, file }
    }

    /// Appends a record. Its rows stay within one block.
    ///
    /// # Errors
    /// Returns [`Error::Storage`](webtwin_base::error::Error::Storage) if the disk is full or
    /// fails.
    pub fn push(&mut self, record: impl ExactSizeIterator<Item = T>) -> Result<()> {
        if self.open.len() + record.len() > self.open.capacity() {
            let size = Self::ROWS.max(record.len());
            let full = std::mem::take(&mut self.open);
            self.open = self.put_away(full)?.filter(|block| block.capacity() == size).unwrap_or_default();
            self.open.reserve_exact(size);
        }
        self.open.extend(record);
        Ok(())
    }

    /// Keeps a block in memory, or writes it to disk. In the latter case returns the emptied block.
    fn put_away(&mut self, mut full: Vec<T>) -> Result<Option<Vec<T>>> {
        if full.is_empty() {
            return Ok(None);
        }
        let bytes = (full.capacity() * size_of::<T>()) as u64;
        if self.held_bytes + bytes <= self.allowed_bytes {
            self.held_bytes += bytes;
            self.pieces.push(Piece::InMemory(full));
            return Ok(None);
        }
        let extent = self.file.append(bytemuck::cast_slice(&full))?;
        self.pieces.push(Piece::Spilled(extent));
        full.clear();
        Ok(Some(full))
    }

    /// Ends writing. Must be called before reading.
    ///
    /// # Errors
    /// Returns [`Error::Storage`](webtwin_base::error::Error::Storage) if the disk is full or
    /// fails.
    pub fn finish(&mut self) -> Result<()> {
        let open = std::mem::take(&mut self.open);
        self.put_away(open).map(drop)
    }

    /// Returns the size of the blocks in memory, in bytes.
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// Returns the number of blocks of a finished log.
    pub fn blocks(&self) -> usize {
        self.pieces.len()
    }

    /// Returns the number of bytes written to disk so far.
    pub fn spilled_bytes(&self) -> u64 {
        self.file.written_bytes()
    }

    /// Replaces the content of `into` with the records of a block.
    ///
    /// # Errors
    /// Returns [`Error::Storage`](webtwin_base::error::Error::Storage) if the disk fails.
    pub fn read(&self, number: usize, into: &mut Vec<T>) -> Result<()> {
        into.clear();
        match &self.pieces[number] {
            Piece::InMemory(rows) => into.extend_from_slice(rows),
            Piece::Spilled(extent) => self.file.read(*extent, into)?,
        }
        Ok(())
    }

    /// Frees the memory or the disk space of a block that is not read again.
    pub fn forget(&mut self, number: usize) {
        match std::mem::replace(&mut self.pieces[number], Piece::InMemory(Vec::new())) {
            Piece::InMemory(rows) => self.held_bytes -= (rows.capacity() * size_of::<T>()) as u64,
            Piece::Spilled(extent) => self.file.release(extent.offset, extent.bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]

        #[test]
        fn log_returns_its_records_in_order(
            lengths in prop::collection::vec(0usize..200_000, 0..30), allowed in 0u64..8_000_000
        ) {
            let mut log = RunLog::<u32>::new(&MemoryPool::default().limited(allowed));
            for (number, &length) in lengths.iter().enumerate() {
                log.push((0..length + 1).map(|at| if at == 0 { length as u32 } else { number as u32 })).unwrap();
            }
            log.finish().unwrap();
            let (mut read_lengths, mut scratch) = (Vec::new(), Vec::new());
            for block in 0..log.blocks() {
                log.read(block, &mut scratch).unwrap();
                let mut rest = &scratch[..];
                while let Some((&length, after)) = rest.split_first() {
                    prop_assert!(after[..length as usize].iter().all(|&number| number == read_lengths.len() as u32));
                    read_lengths.push(length as usize);
                    rest = &after[length as usize..];
                }
                log.forget(block);
            }
            prop_assert_eq!(read_lengths, lengths);
        }
    }

    #[test]
    fn missing_folder_is_named() {
        let mut log = RunLog::<u32>::new(&MemoryPool::new(0, Path::new("/nowhere/at/all"), super::super::SPILL));
        log.push([1, 2].into_iter()).unwrap();
        assert!(log.finish().unwrap_err().to_string().contains("/nowhere/at/all (effort.spill)"));
    }

    #[test]
    fn changed_bytes_on_disk_are_an_error() {
        let mut log = RunLog::<u32>::new(&MemoryPool::default().limited(0));
        log.push((0..1000).map(|_| 7)).unwrap();
        log.finish().unwrap();
        log.file.damage(3999);
        let error = log.read(0, &mut Vec::new()).unwrap_err();
        assert_eq!(error.exit_code(), 8);
        assert!(error.to_string().contains("returned other bytes than were written"), "{error}");
    }
}
