//! Conversion of the items that a program sends into rows.

use bytemuck::Pod;
use webtwin_base::error::Result;

/// A row to be sent, or the error that occurred in its place. Calls that send rows accept either.
///
/// ```
/// # use webtwin_engine::TryIntoRow;
/// assert_eq!(7_u32.into_row().unwrap(), 7);
/// assert_eq!(TryIntoRow::<u32>::into_row(Ok(7)).unwrap(), 7);
/// ```
pub trait TryIntoRow<T> {
    /// Returns the row.
    ///
    /// # Errors
    /// Returns the error that occurred in place of the row.
    fn into_row(self) -> Result<T>;
}

impl<T: Pod> TryIntoRow<T> for T {
    #[inline]
    fn into_row(self) -> Result<T> {
        Ok(self)
    }
}

impl<T: Pod> TryIntoRow<T> for Result<T> {
    #[inline]
    fn into_row(self) -> Result<T> {
        self
    }
}
