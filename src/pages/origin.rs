//! Where the bytes of an input are: in a file, or in an entry of a zip archive.

use std::sync::Arc;

use super::zip_entries::{Entry, Slice};
use webtwin_base::error::Result;
use webtwin_base::read_at::ReadAt;
use webtwin_storage::location::Location;
use webtwin_storage::open::{Stamp, open_pinned};

/// Between the name of a zip archive and that of its entry.
pub(super) const INSIDE: &str = "!/";

/// A file, or an entry of a zip archive.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    pub location: Location,
    pub stamp: Stamp,
    pub entry: Option<Entry>,
}

impl Origin {
    /// Its name in the column `pages.source`: that of the file, for an entry followed by `!/` and the entry's.
    pub(crate) fn name(&self) -> String {
        match &self.entry {
            None => self.location.name().to_string(),
            Some(entry) => format!("{}{INSIDE}{}", self.location, entry.name),
        }
    }

    /// # Errors
    /// As [`open_pinned`].
    pub(crate) fn open(&self) -> Result<Arc<dyn ReadAt>> {
        let file = open_pinned(&self.location, &self.stamp)?;
        Ok(match &self.entry {
            None => file,
            Some(entry) => Arc::new(Slice { file, range: entry.range.clone() }),
        })
    }
}

/// The file that a name in the column `pages.source` stands for, or is an entry of.
///
/// # Errors
/// As [`Location::parse`] and [`Location::exists`].
pub(super) fn file_of(name: &str) -> Result<Location> {
    let whole = Location::parse(name)?;
    if whole.is_folder() || !name.contains(INSIDE) || whole.exists()? {
        return Ok(whole);
    }
    for (end, _) in name.match_indices(INSIDE) {
        let outer = Location::parse(&name[..end])?;
        if outer.exists()? {
            return Ok(outer);
        }
    }
    Ok(whole)
}
