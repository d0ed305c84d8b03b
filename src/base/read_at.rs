//! Random access to the bytes of a file, independent of its storage.

use crate::error::Result;

/// Random access to the bytes of one input file.
///
/// It is the only interface between the readers of formats and the storage.
pub trait RandomAccess: Send + Sync {
    /// Returns the length of the file in bytes.
    fn len(&self) -> u64;

    /// Returns `length` bytes from `offset`, or fewer at the end of the file.
    ///
    /// # Errors
    /// Returns [`crate::error::Error::Storage`] if the store fails, never because of the content.
    fn read_at(&self, offset: u64, length: usize) -> Result<Vec<u8>>;

    /// True if the file has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Bytes in memory (or mapped into it) as a file.
#[derive(Debug, Clone)]
pub struct Bytes<T>(pub T);

impl<T: AsRef<[u8]> + Send + Sync> RandomAccess for Bytes<T> {
    fn len(&self) -> u64 {
        self.0.as_ref().len() as u64
    }

    fn read_at(&self, offset: u64, length: usize) -> Result<Vec<u8>> {
        let bytes = self.0.as_ref();
        let start = usize::try_from(offset).map_or(bytes.len(), |offset| offset.min(bytes.len()));
        Ok(bytes[start..start.saturating_add(length).min(bytes.len())].to_vec())
    }
}
