//! Origin of the bytes of an input: a file, or an entry of a zip archive.

use std::sync::Arc;

use super::zip_entries::{Slice, WebArchiveEntry};
use webtwin_base::error::Result;
use webtwin_base::read_at::RandomAccess;
use webtwin_storage::location::Location;
use webtwin_storage::open::{FileStamp, open_pinned};

/// Separator between the name of a zip archive and the name of its entry.
pub(super) const ENTRY_SEPARATOR: &str = "!/";

/// A file, or an entry of a zip archive.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    pub location: Location,
    pub stamp: FileStamp,
    pub entry: Option<WebArchiveEntry>,
}

impl Origin {
    /// Returns the name in the column `pages.source`: the name of the file, followed for an entry
    /// by `!/` and the name of the entry.
    pub(crate) fn name(&self) -> String {
        match &self.entry {
            None => self.location.name().to_string(),
            Some(entry) => format!("{}{ENTRY_SEPARATOR}{}", self.location, entry.name),
        }
    }

    /// Opens the file or entry for reading.
    ///
    /// # Errors
    /// Returns any error of [`open_pinned`].
    pub(crate) fn open(&self) -> Result<Arc<dyn RandomAccess>> {
        let file = open_pinned(&self.location, &self.stamp)?;
        Ok(match &self.entry {
            None => file,
            Some(entry) => Arc::new(Slice { file, range: entry.range.clone() }),
        })
    }
}

/// Returns the file that a name in the column `pages.source` denotes, or the zip archive that
/// contains the entry of that name.
///
/// # Errors
/// Returns any error of [`Location::parse`] and [`Location::exists`].
pub(super) fn file_of(name: &str) -> Result<Location> {
    let location = Location::parse(name)?;
    if location.is_folder() || !name.contains(ENTRY_SEPARATOR) || location.exists()? {
        return Ok(location);
    }
    for (end, _) in name.match_indices(ENTRY_SEPARATOR) {
        let archive = Location::parse(&name[..end])?;
        if archive.exists()? {
            return Ok(archive);
        }
    }
    Ok(location)
}
