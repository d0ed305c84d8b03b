//! Writer for the tables of a comparison, which become a result when it commits.
//!
//! Encoding rows and writing files takes longer than passing rows on, so both are [`DeferredWork`]
//! for several threads. A thread obtains work from [`ResultWriter::begin`], performs it without
//! holding the writer, and returns it to [`ResultWriter::end`]. The bytes are the same as those of
//! a single thread.

use std::collections::BTreeMap;
use std::sync::Arc;

use webtwin_base::error::{Error, Result};
use webtwin_base::leftovers::Temporary;
use webtwin_results::views::views;
use webtwin_storage::location::Location;
use webtwin_storage::manifest::{FileEntry, Manifest};
use webtwin_storage::output::{Attempt, random_id};
use webtwin_storage::table::Table;
use webtwin_storage::table_encoder::{EncodedRowGroup, Encoding, TableEncoder};

/// Number of rows in a row group.
const GROUP_ROWS: usize = 1 << 17;

/// Approximate size of a file of a table, in bytes, after which the next rows start another file.
const FILE_BYTES: usize = 64_000_000;

/// Tables that grow by appended rows, and other files. Written data is not a result before
/// [`ResultWriter::commit`], and is removed if the writer is dropped without a commit.
///
/// # Memory
/// For each table 131,072 rows and one encoded file of 64 MB. For each thread one row group or one
/// file that it works on.
pub struct ResultWriter {
    attempt: Arc<Attempt>,
    tables: BTreeMap<String, Growing>,
    files: Vec<FileEntry>,
    /// Files staged on a local disk, which are removed if the process is terminated.
    temporary: Option<Temporary>,
    committed: bool,
}

/// Growing table: rows that are not encoded yet, row groups that wait for earlier ones, and the
/// current file.
#[derive(Default)]
struct Growing {
    open: Table,
    rows: u64,
    /// Encoding, derived from the first rows of the table.
    encoding: Option<Arc<Encoding>>,
    /// Number of pieces passed out for encoding, and of those that are in a file.
    n_begun: usize,
    n_ended: usize,
    waiting_groups: BTreeMap<usize, Vec<EncodedRowGroup>>,
    encoder: Option<TableEncoder>,
    rows_in_file: u64,
    parts: usize,
}

/// Slow work that does not need the writer.
pub enum DeferredWork {
    /// Encoding of rows.
    Rows {
        /// Table of the rows.
        table: String,
        /// Index of this piece in the table.
        number: usize,
        /// Encoding of the table.
        encoding: Arc<Encoding>,
        /// Rows to encode.
        rows: Table,
    },
    /// Writing of a file of a table.
    File {
        /// Attempt that the file belongs to.
        attempt: Arc<Attempt>,
        /// Path of the file.
        path: String,
        /// Content of the file.
        encoder: TableEncoder,
        /// Number of rows in the file.
        rows: u64,
    },
}

/// Result of a [`DeferredWork`].
pub enum FinishedWork {
    /// Encoded rows of a table, with the index of their piece.
    Rows(String, usize, Vec<EncodedRowGroup>),
    /// Written file.
    File(FileEntry),
}

impl DeferredWork {
    /// Performs the work.
    ///
    /// # Errors
    /// Returns any error of the store and of the encoder.
    pub fn work(self) -> Result<FinishedWork> {
        match self {
            DeferredWork::Rows { table, number, encoding, rows } => {
                Ok(FinishedWork::Rows(table, number, encoding.groups(&rows)?))
            }
            DeferredWork::File { attempt, path, encoder, rows } => {
                let bytes = encoder.finish()?;
                attempt.put(&path, &bytes)?;
                Ok(FinishedWork::File(FileEntry::new(&path, Some(rows), &bytes)))
            }
        }
    }
}

impl ResultWriter {
    /// Starts a result in `folder`.
    ///
    /// # Errors
    /// Returns any error of [`Attempt::new`] and [`random_id`].
    pub fn new(folder: &Location) -> Result<ResultWriter> {
        let attempt = Arc::new(Attempt::new(folder, &random_id()?)?);
        let temporary = attempt.temporary();
        Ok(ResultWriter { attempt, tables: BTreeMap::new(), files: Vec::new(), temporary, committed: false })
    }

    /// Returns the identifier of the attempt, for the manifest.
    pub fn attempt(&self) -> &str {
        self.attempt.id()
    }

    /// Appends rows to a table. They must follow the previous rows in the order of the table's key.
    /// A table that must exist without rows is added once with columns but no rows.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the columns differ from those before, and any error of the
    /// store.
    pub fn add(&mut self, table: &str, rows: Table) -> Result<()> {
        let mut work = self.begin(table, rows)?;
        while let Some(item) = work.pop() {
            work.extend(self.end(item.work()?)?);
        }
        Ok(())
    }

    /// Appends rows like [`ResultWriter::add`], but returns the slow work instead of performing it.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the columns differ from those before.
    pub fn begin(&mut self, table: &str, rows: Table) -> Result<Vec<DeferredWork>> {
        if !self.tables.contains_key(table) {
            self.tables.insert(table.to_string(), Growing::default());
        }
        let growing_table = self.tables.get_mut(table).expect("it has just been inserted");
        growing_table.rows += rows.rows() as u64;
        growing_table.open.append(rows)?;
        // Cuts rows at multiples of the group size, so that the bytes do not depend on how callers
        // batch rows.
        let mut work = Vec::new();
        while growing_table.open.rows() >= GROUP_ROWS {
            let rest = growing_table.open.split_off(GROUP_ROWS);
            work.push(growing_table.begin(table)?);
            growing_table.open = rest;
        }
        Ok(work)
    }

    /// Accepts work from [`ResultWriter::begin`] or from this function, in any order. Returns the
    /// work to do next.
    ///
    /// # Errors
    /// Returns [`Error::Invariant`] if the encoder fails.
    pub fn end(&mut self, result: FinishedWork) -> Result<Vec<DeferredWork>> {
        match result {
            FinishedWork::File(file) => {
                self.files.push(file);
                Ok(Vec::new())
            }
            FinishedWork::Rows(table, number, groups) => {
                let growing_table = self.tables.get_mut(&table).expect("it gave out these rows");
                growing_table.end(number, groups, &table, &self.attempt)
            }
        }
    }

    /// Returns the number of rows that a table has so far.
    pub fn rows(&self, table: &str) -> u64 {
        self.tables.get(table).map_or(0, |table| table.rows)
    }

    /// Adds a file that is not a table.
    ///
    /// # Errors
    /// Returns any error of the store.
    pub fn file(&mut self, path: &str, content: impl AsRef<[u8]>) -> Result<()> {
        self.attempt.put(path, content.as_ref())?;
        self.files.push(FileEntry::new(path, None, content.as_ref()));
        Ok(())
    }

    /// Publishes everything written as a result, with `summary.json`, `views.sql` and the manifest.
    ///
    /// # Errors
    /// Returns [`Error::Invariant`] if rows passed out for encoding were never returned, and any
    /// error of the store and of [`Manifest::commit`].
    pub fn commit(mut self, summary: &impl serde::Serialize, manifest: Manifest) -> Result<()> {
        for (name, mut table) in std::mem::take(&mut self.tables) {
            for work in table.close(&name, &self.attempt)? {
                match work.work()? {
                    FinishedWork::File(file) => self.files.push(file),
                    FinishedWork::Rows(..) => unreachable!("a table that is closed has no rows left"),
                }
            }
        }
        self.files.sort_unstable();
        let text = serde_json::to_string_pretty(summary).expect("a summary is plain values") + "\n";
        self.file("summary.json", &text)?;
        self.file("views.sql", views(&self.files, None))?;
        self.files.sort_unstable();
        // From here on other processes may select this attempt, and then its files must stay.
        self.committed = true;
        if let Some(temporary) = self.temporary.take() {
            temporary.release();
        }
        Manifest { files: std::mem::take(&mut self.files), ..manifest }.commit(&self.attempt)
    }
}

impl Drop for ResultWriter {
    fn drop(&mut self) {
        if !self.committed {
            self.attempt.discard();
        }
    }
}

impl Growing {
    /// Passes out the rows that are not encoded yet.
    fn begin(&mut self, name: &str) -> Result<DeferredWork> {
        let encoding = match &self.encoding {
            Some(encoding) => Arc::clone(encoding),
            None => Arc::clone(self.encoding.insert(Arc::new(Encoding::from_table(&self.open)?))),
        };
        let empty_group = self.open.pick(&[]);
        let rows = std::mem::replace(&mut self.open, empty_group);
        self.n_begun += 1;
        Ok(DeferredWork::Rows { table: name.into(), number: self.n_begun - 1, encoding, rows })
    }

    /// Accepts encoded rows, appends all that are next in order to the file, and returns full
    /// files.
    fn end(
        &mut self,
        number: usize,
        groups: Vec<EncodedRowGroup>,
        name: &str,
        attempt: &Arc<Attempt>,
    ) -> Result<Vec<DeferredWork>> {
        self.waiting_groups.insert(number, groups);
        let mut full_groups = Vec::new();
        while let Some(groups) = self.waiting_groups.remove(&self.n_ended) {
            self.n_ended += 1;
            let encoder = self.encoder()?;
            let mut rows = 0;
            for group in groups {
                rows += group.rows();
                encoder.append(group)?;
            }
            let is_full = encoder.len() >= FILE_BYTES;
            self.rows_in_file += rows;
            if is_full {
                full_groups.extend(self.file(name, attempt));
            }
        }
        Ok(full_groups)
    }

    /// Returns the current file, or starts one.
    fn encoder(&mut self) -> Result<&mut TableEncoder> {
        if self.encoder.is_none() {
            let encoding = self.encoding.as_ref().expect("rows have been handed out, or it is closed");
            self.encoder = Some(TableEncoder::new(encoding)?);
        }
        Ok(self.encoder.as_mut().expect("there is one now"))
    }

    /// Closes the current file and returns it as work.
    fn file(&mut self, name: &str, attempt: &Arc<Attempt>) -> Option<DeferredWork> {
        let encoder = self.encoder.take()?;
        let path = format!("{name}/part-{:05}.parquet", self.parts);
        let rows = std::mem::take(&mut self.rows_in_file);
        self.parts += 1;
        Some(DeferredWork::File { attempt: Arc::clone(attempt), path, encoder, rows })
    }

    /// Encodes the remaining rows and returns the files to be written. A table without rows has one
    /// file without rows.
    fn close(&mut self, name: &str, attempt: &Arc<Attempt>) -> Result<Vec<DeferredWork>> {
        if self.n_ended < self.n_begun {
            return Err(Error::Invariant(format!("rows of {name} were passed out for encoding and not returned")));
        }
        let mut files = Vec::new();
        if self.open.rows() > 0
            && let FinishedWork::Rows(_, number, groups) = self.begin(name)?.work()?
        {
            files = self.end(number, groups, name, attempt)?;
        } else if self.rows == 0 {
            self.encoding = Some(Arc::new(Encoding::from_table(&self.open)?));
            let empty_group = std::mem::take(&mut self.open);
            self.encoder()?.write(&empty_group)?;
        }
        files.extend(self.file(name, attempt));
        Ok(files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use webtwin_results::FinishedRun;

    use webtwin_storage::table::TableColumn;

    fn ids(first: u64, end: u64) -> Table {
        Table::new([("id", TableColumn::Id((first..end).map(|id| id.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect()))])
    }

    #[test]
    fn rows_are_read_in_order_and_empty_tables_exist() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Location::parse(dir.path().join("out").to_str().unwrap()).unwrap();
        let mut writer = ResultWriter::new(&folder).unwrap();
        let rows = 3 * GROUP_ROWS as u64 + 5;
        for start in (0..rows).step_by(50_000) {
            writer.add("many", ids(start, rows.min(start + 50_000))).unwrap();
        }
        writer.add("none", ids(0, 0)).unwrap();
        assert_eq!(writer.rows("many"), rows);
        let manifest = Manifest::new(writer.attempt(), serde_json::Value::Null);
        writer.commit(&"all", manifest).unwrap();
        let run = FinishedRun::open(folder.name()).unwrap();
        assert_eq!(run.table("many").unwrap(), ids(0, rows));
        assert_eq!((run.table("none").unwrap().rows(), run.table("none").unwrap().columns.len()), (0, 1));
    }

    #[test]
    fn rows_encoded_in_any_order_yield_the_same_files() {
        let dir = tempfile::tempdir().unwrap();
        let pieces = || (0..5).map(|at| ids(at * 140_000, (at + 1) * 140_000));
        let files = |name: &str, fill: &dyn Fn(&mut ResultWriter)| {
            let folder = Location::parse(dir.path().join(name).to_str().unwrap()).unwrap();
            let mut writer = ResultWriter::new(&folder).unwrap();
            fill(&mut writer);
            let manifest = Manifest::new(writer.attempt(), serde_json::Value::Null);
            writer.commit(&"all", manifest).unwrap();
            FinishedRun::open(folder.name()).unwrap().manifest.files
        };
        let one_by_one = files("a", &|writer| pieces().for_each(|rows| writer.add("many", rows).unwrap()));
        let last_first = files("b", &|writer| {
            let mut work: Vec<DeferredWork> = pieces().flat_map(|rows| writer.begin("many", rows).unwrap()).collect();
            assert_eq!(work.len(), 5);
            while let Some(item) = work.pop() {
                work.extend(writer.end(item.work().unwrap()).unwrap());
            }
        });
        assert_eq!(one_by_one, last_first);
        let cut_otherwise = files("c", &|writer| {
            (0..700_000).step_by(30_001).for_each(|at| writer.add("many", ids(at, 700_000.min(at + 30_001))).unwrap());
        });
        assert_eq!(one_by_one, cut_otherwise);
        assert!(one_by_one.iter().any(|file| file.rows == Some(700_000)));
    }

    #[test]
    fn missing_rows_fail_the_commit() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Location::parse(dir.path().join("out").to_str().unwrap()).unwrap();
        let mut writer = ResultWriter::new(&folder).unwrap();
        assert_eq!(writer.begin("many", ids(0, GROUP_ROWS as u64)).unwrap().len(), 1);
        let manifest = Manifest::new(writer.attempt(), serde_json::Value::Null);
        assert!(matches!(writer.commit(&"all", manifest), Err(Error::Invariant(_))));
        assert!(FinishedRun::open(folder.name()).is_err());
    }

    #[test]
    fn writer_without_commit_leaves_no_files() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Location::parse(dir.path().to_str().unwrap()).unwrap();
        let mut writer = ResultWriter::new(&folder).unwrap();
        writer.file("exports/x.txt", "x").unwrap();
        drop(writer);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
