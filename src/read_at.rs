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
