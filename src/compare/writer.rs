//! The tables of a comparison on their way to be a result.
//!
//! To encode rows and to write files takes longer than to hand them over, so it is [`Work`], which several threads do at a time: each
//! gets some from [`Writer::begin`], does it without the writer and brings it to [`Writer::end`]. The bytes are those of one thread.

use std::collections::BTreeMap;
use std::sync::Arc;

use webtwin_base::error::{Error, Result};
use webtwin_base::leftovers::Temporary;
use webtwin_results::views::views;
use webtwin_storage::location::Location;
use webtwin_storage::manifest::{FileEntry, Manifest};
use webtwin_storage::output::{Attempt, random_id};
use webtwin_storage::table::Table;
use webtwin_storage::table_encoder::{Encoder, Encoding, Group};

/// Rows that are encoded together, as a row group.
const GROUP_ROWS: usize = 1 << 17;

/// Bytes of a file of a table on disk, about, before the next rows get another.
const FILE_BYTES: usize = 64_000_000;

/// Tables that grow at their end, and other files. What is written is no result before [`Writer::commit`], and goes with the
/// writer if that never comes.
///
/// # Memory
/// For each table 131,072 rows, and a file of it as it is encoded: 64 MB. For each thread a group of rows, or a file, at work.
pub struct Writer {
    attempt: Arc<Attempt>,
    tables: BTreeMap<String, Growing>,
    files: Vec<FileEntry>,
    /// What is staged on a local disk, to be removed when the process is ended.
    temporary: Option<Temporary>,
    committed: bool,
}

/// A table: rows that are not encoded yet, row groups that wait for those before them, and the file that they go to.
#[derive(Default)]
struct Growing {
    open: Table,
    rows: u64,
    /// By the first rows of the table.
    encoding: Option<Arc<Encoding>>,
    /// Pieces of rows handed out to be encoded, and those that are in a file.
    begun: usize,
    ended: usize,
    waiting: BTreeMap<usize, Vec<Group>>,
    encoder: Option<Encoder>,
    rows_in_file: u64,
    parts: usize,
}

/// What takes time, to be done without the writer.
pub enum Work {
    /// Rows to be encoded.
    Rows {
        /// Their table.
        table: String,
        /// Which of the pieces of the table they are.
        number: usize,
        /// How they are encoded.
        encoding: Arc<Encoding>,
        /// The rows.
        rows: Table,
    },
    /// A file of a table, to be written.
    File {
        /// Where it is going to be.
        attempt: Arc<Attempt>,
        /// Its path.
        path: String,
        /// What is in it.
        encoder: Encoder,
        /// Its rows.
        rows: u64,
    },
}

/// Work that has been done.
pub enum Done {
    /// Rows of a table, with the number of their piece.
    Rows(String, usize, Vec<Group>),
    /// A file.
    File(FileEntry),
}

impl Work {
    /// Does it.
    ///
    /// # Errors
    /// Those of the store.
    pub fn work(self) -> Result<Done> {
        match self {
            Work::Rows { table, number, encoding, rows } => Ok(Done::Rows(table, number, encoding.groups(&rows)?)),
            Work::File { attempt, path, encoder, rows } => {
                let bytes = encoder.finish()?;
                attempt.put(&path, &bytes)?;
                Ok(Done::File(FileEntry::of(&path, Some(rows), &bytes)))
            }
        }
    }
}

impl Writer {
    /// Begins the files of a result in `folder`.
    ///
    /// # Errors
    /// Those of [`Attempt::new`] and [`random_id`].
    pub fn new(folder: &Location) -> Result<Writer> {
        let attempt = Arc::new(Attempt::new(folder, &random_id()?)?);
        let temporary = attempt.temporary();
        Ok(Writer { attempt, tables: BTreeMap::new(), files: Vec::new(), temporary, committed: false })
    }

    /// Identifier of the attempt, for the manifest.
    pub fn attempt(&self) -> &str {
        self.attempt.id()
    }

    /// Adds rows at the end of a table; they follow those added before in the order of its key. A table that is to exist
    /// without rows is given some columns without rows once.
    ///
    /// # Errors
    /// [`Error::Input`] if the columns are others than before; those of the store.
    pub fn add(&mut self, table: &str, rows: Table) -> Result<()> {
        let mut work = self.begin(table, rows)?;
        while let Some(some) = work.pop() {
            work.extend(self.end(some.work()?)?);
        }
        Ok(())
    }

    /// As [`Writer::add`], but for what takes time, which is returned.
    ///
    /// # Errors
    /// [`Error::Input`] if the columns are others than before.
    pub fn begin(&mut self, table: &str, rows: Table) -> Result<Vec<Work>> {
        if !self.tables.contains_key(table) {
            self.tables.insert(table.to_string(), Growing::default());
        }
        let growing = self.tables.get_mut(table).expect("it has just been inserted");
        growing.rows += rows.rows() as u64;
        growing.open.append(rows)?;
        // Where rows are cut does not depend on how they come.
        let mut work = Vec::new();
        while growing.open.rows() >= GROUP_ROWS {
            let rest = growing.open.split_off(GROUP_ROWS);
            work.push(growing.begin(table)?);
            growing.open = rest;
        }
        Ok(work)
    }

    /// Takes up work that [`Writer::begin`] or this has returned, in any order; returns what there is to do next.
    ///
    /// # Errors
    /// [`Error::Invariant`] if the encoder fails.
    pub fn end(&mut self, done: Done) -> Result<Vec<Work>> {
        match done {
            Done::File(file) => {
                self.files.push(file);
                Ok(Vec::new())
            }
            Done::Rows(table, number, groups) => {
                let growing = self.tables.get_mut(&table).expect("it gave out these rows");
                growing.end(number, groups, &table, &self.attempt)
            }
        }
    }

    /// Rows of a table so far.
    pub fn rows(&self, table: &str) -> u64 {
        self.tables.get(table).map_or(0, |table| table.rows)
    }

    /// Adds a file that is no table.
    ///
    /// # Errors
    /// Those of the store.
    pub fn file(&mut self, path: &str, content: impl AsRef<[u8]>) -> Result<()> {
        self.attempt.put(path, content.as_ref())?;
        self.files.push(FileEntry::of(path, None, content.as_ref()));
        Ok(())
    }

    /// Makes all of it a result, with `summary.json`, `views.sql` and a manifest, whose files are those written.
    ///
    /// # Errors
    /// Those of the store and of [`Manifest::commit`].
    pub fn commit(mut self, summary: &impl serde::Serialize, manifest: Manifest) -> Result<()> {
        for (name, mut table) in std::mem::take(&mut self.tables) {
            for work in table.close(&name, &self.attempt)? {
                match work.work()? {
                    Done::File(file) => self.files.push(file),
                    Done::Rows(..) => unreachable!("a table that is closed has no rows left"),
                }
            }
        }
        self.files.sort_unstable();
        let text = serde_json::to_string_pretty(summary).expect("a summary is plain values") + "\n";
        self.file("summary.json", &text)?;
        self.file("views.sql", views(&self.files, None))?;
        self.files.sort_unstable();
        // From here on the attempt may be decided on, and then its files must stay.
        self.committed = true;
        if let Some(temporary) = self.temporary.take() {
            temporary.release();
        }
        Manifest { files: std::mem::take(&mut self.files), ..manifest }.commit(&self.attempt)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.committed {
            self.attempt.discard();
        }
    }
}

impl Growing {
    /// Hands out the rows that are not encoded yet.
    fn begin(&mut self, name: &str) -> Result<Work> {
        let encoding = match &self.encoding {
            Some(encoding) => Arc::clone(encoding),
            None => Arc::clone(self.encoding.insert(Arc::new(Encoding::of(&self.open)?))),
        };
        let none = self.open.pick(&[]);
        let rows = std::mem::replace(&mut self.open, none);
        self.begun += 1;
        Ok(Work::Rows { table: name.into(), number: self.begun - 1, encoding, rows })
    }

    /// Takes rows back, puts all that are next into the file, and returns files that are full.
    fn end(&mut self, number: usize, groups: Vec<Group>, name: &str, attempt: &Arc<Attempt>) -> Result<Vec<Work>> {
        self.waiting.insert(number, groups);
        let mut full = Vec::new();
        while let Some(groups) = self.waiting.remove(&self.ended) {
            self.ended += 1;
            let encoder = self.encoder()?;
            let mut rows = 0;
            for group in groups {
                rows += group.rows();
                encoder.append(group)?;
            }
            let is_full = encoder.len() >= FILE_BYTES;
            self.rows_in_file += rows;
            if is_full {
                full.extend(self.file(name, attempt));
            }
        }
        Ok(full)
    }

    /// The file at hand; a new one if there is none.
    fn encoder(&mut self) -> Result<&mut Encoder> {
        if self.encoder.is_none() {
            let encoding = self.encoding.as_ref().expect("rows have been handed out, or it is closed");
            self.encoder = Some(Encoder::new(encoding)?);
        }
        Ok(self.encoder.as_mut().expect("there is one now"))
    }

    /// The file at hand, to be written.
    fn file(&mut self, name: &str, attempt: &Arc<Attempt>) -> Option<Work> {
        let encoder = self.encoder.take()?;
        let path = format!("{name}/part-{:05}.parquet", self.parts);
        let rows = std::mem::take(&mut self.rows_in_file);
        self.parts += 1;
        Some(Work::File { attempt: Arc::clone(attempt), path, encoder, rows })
    }

    /// Encodes what is left, and returns the files to be written; a table without rows has a file without rows.
    fn close(&mut self, name: &str, attempt: &Arc<Attempt>) -> Result<Vec<Work>> {
        if self.ended < self.begun {
            return Err(Error::Invariant(format!("rows of {name} were handed out and never came back")));
        }
        let mut files = Vec::new();
        if self.open.rows() > 0
            && let Done::Rows(_, number, groups) = self.begin(name)?.work()?
        {
            files = self.end(number, groups, name, attempt)?;
        } else if self.rows == 0 {
            self.encoding = Some(Arc::new(Encoding::of(&self.open)?));
            let none = std::mem::take(&mut self.open);
            self.encoder()?.write(&none)?;
        }
        files.extend(self.file(name, attempt));
        Ok(files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use webtwin_results::Run;

    use webtwin_storage::table::Column;

    fn ids(from: u64, to: u64) -> Table {
        Table::new([("id", Column::Id((from..to).map(|id| id.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect()))])
    }

    #[test]
    fn rows_come_back_in_order_and_tables_without_rows_are_there() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Location::parse(dir.path().join("out").to_str().unwrap()).unwrap();
        let mut writer = Writer::new(&folder).unwrap();
        let rows = 3 * GROUP_ROWS as u64 + 5;
        for from in (0..rows).step_by(50_000) {
            writer.add("many", ids(from, rows.min(from + 50_000))).unwrap();
        }
        writer.add("none", ids(0, 0)).unwrap();
        assert_eq!(writer.rows("many"), rows);
        let manifest = Manifest::new(writer.attempt(), serde_json::Value::Null);
        writer.commit(&"all", manifest).unwrap();
        let run = Run::open(folder.name()).unwrap();
        assert_eq!(run.table("many").unwrap(), ids(0, rows));
        assert_eq!((run.table("none").unwrap().rows(), run.table("none").unwrap().columns.len()), (0, 1));
    }

    #[test]
    fn rows_that_are_encoded_in_any_order_are_the_same_files() {
        let dir = tempfile::tempdir().unwrap();
        let pieces = || (0..5).map(|at| ids(at * 140_000, (at + 1) * 140_000));
        let files = |name: &str, fill: &dyn Fn(&mut Writer)| {
            let folder = Location::parse(dir.path().join(name).to_str().unwrap()).unwrap();
            let mut writer = Writer::new(&folder).unwrap();
            fill(&mut writer);
            let manifest = Manifest::new(writer.attempt(), serde_json::Value::Null);
            writer.commit(&"all", manifest).unwrap();
            Run::open(folder.name()).unwrap().manifest.files
        };
        let one_by_one = files("a", &|writer| pieces().for_each(|rows| writer.add("many", rows).unwrap()));
        let last_first = files("b", &|writer| {
            let mut work: Vec<Work> = pieces().flat_map(|rows| writer.begin("many", rows).unwrap()).collect();
            assert_eq!(work.len(), 5);
            while let Some(some) = work.pop() {
                work.extend(writer.end(some.work().unwrap()).unwrap());
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
    fn rows_that_never_come_back_are_no_result() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Location::parse(dir.path().join("out").to_str().unwrap()).unwrap();
        let mut writer = Writer::new(&folder).unwrap();
        assert_eq!(writer.begin("many", ids(0, GROUP_ROWS as u64)).unwrap().len(), 1);
        let manifest = Manifest::new(writer.attempt(), serde_json::Value::Null);
        assert!(matches!(writer.commit(&"all", manifest), Err(Error::Invariant(_))));
        assert!(Run::open(folder.name()).is_err());
    }

    #[test]
    fn nothing_is_left_of_a_writer_that_does_not_commit() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Location::parse(dir.path().to_str().unwrap()).unwrap();
        let mut writer = Writer::new(&folder).unwrap();
        writer.file("exports/x.txt", "x").unwrap();
        drop(writer);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
