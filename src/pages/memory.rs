//! A file in memory, for tests of readers.

use crate::error::Result;
use crate::read_at::ReadAt;

pub(crate) struct Memory(pub Vec<u8>);

impl ReadAt for Memory {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, length: usize) -> Result<Vec<u8>> {
        let from = (offset as usize).min(self.0.len());
        Ok(self.0[from..from.saturating_add(length).min(self.0.len())].to_vec())
    }
}
