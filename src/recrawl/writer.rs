//! The tables of a comparison on their way to be a result.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::leftovers::Temporary;
use crate::results::views::views;
use crate::storage::location::Location;
use crate::storage::manifest::{FileEntry, Manifest};
use crate::storage::output::{Attempt, random_id};
use crate::storage::table::{Encoder, Table};

/// Rows that are encoded together.
const GROUP_ROWS: usize = 1 << 17;

/// Bytes of a file of a table on disk, about, before the next rows get another.
const FILE_BYTES: usize = 64_000_000;

/// Tables that grow at their end, and other files. What is written is no result before [`Writer::commit`], and goes with the
/// writer if that never comes.
///
/// # Memory
/// For each table 131,072 rows, and a file of it as it is encoded: 64 MB.
pub struct Writer {
    attempt: Attempt,
    tables: BTreeMap<String, Growing>,
    files: Vec<FileEntry>,
    /// What is staged on a local disk, to be removed when the process is ended.
    temporary: Option<Temporary>,
    committed: bool,
}

/// A table: rows that are not encoded yet, and the file that is.
#[derive(Default)]
struct Growing {
    open: Table,
    encoder: Option<Encoder>,
    rows_in_file: u64,
    rows: u64,
    parts: usize,
}

impl Writer {
    /// Begins the files of a result in `folder`.
    ///
    /// # Errors
    /// Those of [`Attempt::new`] and [`random_id`].
    pub fn new(folder: &Location) -> Result<Writer> {
        let attempt = Attempt::new(folder, &random_id()?)?;
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
    /// [`crate::error::Error::Input`] if the columns are others than before; those of the store.
    pub fn add(&mut self, table: &str, rows: Table) -> Result<()> {
        if !self.tables.contains_key(table) {
            self.tables.insert(table.to_string(), Growing::default());
        }
        let growing = self.tables.get_mut(table).expect("it has just been inserted");
        growing.rows += rows.rows() as u64;
        growing.open.append(rows)?;
        if growing.open.rows() >= GROUP_ROWS {
            growing.encode(&self.attempt, table, &mut self.files)?;
        }
        Ok(())
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
        for (name, table) in std::mem::take(&mut self.tables) {
            table.end(&self.attempt, &name, &mut self.files)?;
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
    fn encode(&mut self, attempt: &Attempt, name: &str, files: &mut Vec<FileEntry>) -> Result<()> {
        let mut encoder = match self.encoder.take() {
            Some(encoder) => encoder,
            None => Encoder::new(&self.open)?,
        };
        encoder.write(&self.open)?;
        self.rows_in_file += self.open.rows() as u64;
        self.open = self.open.pick(&[]);
        if encoder.len() < FILE_BYTES {
            self.encoder = Some(encoder);
            return Ok(());
        }
        self.put(encoder, attempt, name, files)
    }

    fn put(&mut self, encoder: Encoder, attempt: &Attempt, name: &str, files: &mut Vec<FileEntry>) -> Result<()> {
        let path = format!("{name}/part-{:05}.parquet", self.parts);
        let bytes = encoder.finish()?;
        attempt.put(&path, &bytes)?;
        files.push(FileEntry::of(&path, Some(self.rows_in_file), &bytes));
        (self.parts, self.rows_in_file) = (self.parts + 1, 0);
        Ok(())
    }

    /// Writes what is left; a table without rows has a file without rows.
    fn end(mut self, attempt: &Attempt, name: &str, files: &mut Vec<FileEntry>) -> Result<()> {
        if self.open.rows() > 0 || self.rows == 0 {
            self.encode(attempt, name, files)?;
        }
        match self.encoder.take() {
            Some(encoder) => self.put(encoder, attempt, name, files),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Run;

    use crate::storage::table::Column;

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
    fn nothing_is_left_of_a_writer_that_does_not_commit() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Location::parse(dir.path().to_str().unwrap()).unwrap();
        let mut writer = Writer::new(&folder).unwrap();
        writer.file("exports/x.txt", "x").unwrap();
        drop(writer);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
