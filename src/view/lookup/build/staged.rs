//! Staged files of an index that is being built.

use std::collections::BTreeMap;

use bytemuck::Pod;

use crate::lookup::column::{ColumnWriter, Seal};
use crate::lookup::strings::{FILES, StringsWriter};
use webtwin_base::error::Result;
use webtwin_base::leftovers::Temporary;
use webtwin_storage::location::Location;
use webtwin_storage::manifest::{FileEntry, Manifest};
use webtwin_storage::output::{Attempt, random_id};

/// Files that are not an index before [`StagedIndex::commit`], and are removed if this is dropped
/// without a commit.
pub(super) struct StagedIndex {
    pub attempt: Attempt,
    pub files: Vec<FileEntry>,
    pub columns: BTreeMap<String, Seal>,
    pub strings: BTreeMap<String, u64>,
    temporary: Option<Temporary>,
    committed: bool,
}

impl StagedIndex {
    pub(super) fn new(folder: &Location) -> Result<StagedIndex> {
        let attempt = Attempt::new(folder, &random_id()?)?;
        let temporary = attempt.temporary();
        let (files, columns, strings) = Default::default();
        Ok(StagedIndex { attempt, files, columns, strings, temporary, committed: false })
    }

    /// Starts a column.
    pub(super) fn column<R: Pod>(&self, name: &str) -> Result<ColumnWriter<R>> {
        Ok(ColumnWriter::new(self.attempt.create(name)?))
    }

    /// Starts a list of strings.
    pub(super) fn strings(&self, name: &str) -> Result<StringsWriter> {
        StringsWriter::new(&self.attempt, name)
    }

    /// Finishes a column and adds its file.
    pub(super) fn add<R: Pod>(&mut self, name: &str, column: ColumnWriter<R>) -> Result<()> {
        let (entry, seal) = column.finish()?;
        self.files.push(entry);
        self.columns.insert(name.into(), seal);
        Ok(())
    }

    /// Finishes a list of strings and adds its files.
    pub(super) fn add_strings(&mut self, name: &str, strings: StringsWriter) -> Result<()> {
        let (files, count) = strings.finish()?;
        for ((entry, seal), ending) in files.into_iter().zip(FILES) {
            self.files.push(entry);
            self.columns.insert(format!("{name}{ending}"), seal);
        }
        self.strings.insert(name.into(), count);
        Ok(())
    }

    /// Writes another file.
    pub(super) fn put(&mut self, path: &str, parts: &[&[u8]]) -> Result<()> {
        self.attempt.put_parts(path, parts)?;
        self.files.push(FileEntry::of_parts(path, None, parts));
        Ok(())
    }

    /// Publishes the files as an index.
    pub(super) fn commit(mut self, manifest: Manifest) -> Result<Manifest> {
        self.files.sort_unstable();
        // From here on other processes may select this attempt, and then its files must stay.
        self.committed = true;
        if let Some(temporary) = self.temporary.take() {
            temporary.release();
        }
        let manifest = Manifest { files: std::mem::take(&mut self.files), ..manifest };
        manifest.commit(&self.attempt).map(|()| manifest)
    }
}

impl Drop for StagedIndex {
    fn drop(&mut self) {
        if !self.committed {
            self.attempt.discard();
        }
    }
}
