//! Bytes at any place of a file, wherever it lies.

use crate::error::Result;

/// Random access to the bytes of one input file.
///
/// The only thing that readers of a format know of storage, and that storage knows of them.
pub trait ReadAt: Send + Sync {
    /// Length of the file in bytes.
    fn len(&self) -> u64;

    /// Returns `length` bytes from `offset`, fewer only at the end of the file.
    ///
    /// # Errors
    /// [`crate::error::Error::Storage`] when the store fails, never for content.
    fn read_at(&self, offset: u64, length: usize) -> Result<Vec<u8>>;

    /// Whether the file has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Bytes in memory (or mapped there) as a file.
#[derive(Debug, Clone)]
pub struct Bytes<T>(pub T);

impl<T: AsRef<[u8]> + Send + Sync> ReadAt for Bytes<T> {
    fn len(&self) -> u64 {
        self.0.as_ref().len() as u64
    }

    fn read_at(&self, offset: u64, length: usize) -> Result<Vec<u8>> {
        let bytes = self.0.as_ref();
        let from = usize::try_from(offset).map_or(bytes.len(), |offset| offset.min(bytes.len()));
        Ok(bytes[from..from.saturating_add(length).min(bytes.len())].to_vec())
    }
}
