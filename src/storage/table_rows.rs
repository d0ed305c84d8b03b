//! Access to a range of rows of a table's file, if the whole file is too large for memory.

use std::ops::Range;
use std::sync::Arc;

use parquet::file::reader::FileReader;
use xxhash_rust::xxh3::Xxh3Default;

use super::files::MAX_READS;
use super::location::Location;
use super::manifest::FileEntry;
use super::open::{FileStamp, OpenFile, open, open_pinned};
use super::parquet_file::{ParquetFile, rows_of};
use super::table::{Table, TableColumn, read_values};
use webtwin_base::error::{Error, Result};
use webtwin_base::read_at::RandomAccess;

/// Number of bytes read at a time to check a file.
const PIECE_BYTES: usize = 4 << 20;

/// File of a table that was intact when it was first seen, pinned to that version.
#[derive(Debug, Clone)]
pub struct TableFile {
    location: Location,
    stamp: FileStamp,
    /// Number of rows according to the manifest.
    pub rows: usize,
}

impl TableFile {
    /// Opens a file of a result and compares it with its entry.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the file is missing, or has another length or checksum.
    ///
    /// # Cost
    /// The file is read once, 4 MiB at a time.
    pub fn find(folder: &Location, entry: &FileEntry) -> Result<TableFile> {
        let location = folder.join(&entry.path)?;
        let rows = entry.rows.unwrap_or(0) as usize;
        // Bytes from a store may have been damaged in transit.
        let reads = if location.path().is_some() { 1 } else { MAX_READS };
        for _ in 0..reads {
            let file = open(&location)?;
            if is_the_file(&file, entry)? {
                return Ok(TableFile { stamp: file.stamp().clone(), location, rows });
            }
        }
        Err(Error::input(location.name(), "length or checksum differ from the manifest; run the job again"))
    }

    /// Opens the file for reading rows.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the file is not Parquet, or has changed since it was found.
    pub fn open(&self) -> Result<OpenTable> {
        let file: Arc<OpenFile> = open_pinned(&self.location, &self.stamp)?;
        let parquet = ParquetFile::open(file).map_err(|fault| fault.of_input(self.location.name()))?;
        Ok(OpenTable { name: self.location.name().into(), parquet })
    }
}

/// True if a file has the length and the checksum of its entry.
fn is_the_file(file: &OpenFile, entry: &FileEntry) -> Result<bool> {
    let mut digest = Xxh3Default::new();
    let mut at = 0;
    while at < file.len() && file.len() == entry.bytes {
        let piece = file.read_at(at, PIECE_BYTES.min((file.len() - at) as usize))?;
        digest.update(&piece);
        at += piece.len() as u64;
    }
    Ok(at == entry.bytes && format!("{:032x}", digest.digest128()) == entry.xxh3)
}

/// Open file of a table.
pub struct OpenTable {
    name: String,
    parquet: ParquetFile,
}

impl OpenTable {
    /// Reads the columns `names`, in the order of the file, of a range of rows.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the file is damaged, ends early, or has columns of a type that
    /// no output table has.
    ///
    /// # Cost
    /// Pages of columns (20,000 rows) before the first row are skipped without being read.
    pub fn read(&self, rows: Range<usize>, names: &[&str]) -> Result<Table> {
        let metadata = self.parquet.reader.metadata();
        let schema = metadata.file_metadata().schema_descr_ptr();
        let mut table = Table::default();
        let mut group_start = 0;
        for group in 0..metadata.num_row_groups() {
            let group_rows = group_start..group_start + rows_of(&self.parquet, group);
            group_start = group_rows.end;
            let overlap = rows.start.max(group_rows.start)..rows.end.min(group_rows.end);
            // A table without rows has one row group without rows, which defines its columns.
            if overlap.start >= overlap.end && !(rows.is_empty() && table.columns.is_empty()) {
                continue;
            }
            let (skipped, count) = (overlap.start.saturating_sub(group_rows.start), overlap.len());
            let mut part = Table::default();
            for (at, described) in schema.columns().iter().enumerate().filter(|one| names.contains(&one.1.name())) {
                if described.max_def_level() > 0 {
                    return Err(self.strange(described.name()));
                }
                let reader = self.parquet.column(group, at).map_err(|fault| fault.of_input(&self.name))?;
                let read_column = || read_values(reader, skipped, count, described.logical_type_ref());
                let column = self.parquet.guard(read_column).map_err(|fault| fault.of_input(&self.name))?;
                let column: TableColumn = column.ok_or_else(|| self.strange(described.name()))?;
                if column.len() != count {
                    let fault = format!("column {} has {} of {count} rows", described.name(), column.len());
                    return Err(Error::input(&self.name, fault));
                }
                part.columns.push((described.name().to_string(), column));
            }
            table.append(part)?;
        }
        Ok(table)
    }

    fn strange(&self, column: &str) -> Error {
        let reason = "is of a type that this build does not write, so another build may have written it; run again";
        Error::input(&self.name, format!("column {column} {reason}"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::table_encoder::{Encoding, TableEncoder};

    fn file(groups: &[Table]) -> (tempfile::TempDir, Location, FileEntry) {
        let mut encoder = TableEncoder::new(&Encoding::from_table(&groups[0]).unwrap()).unwrap();
        groups.iter().for_each(|group| encoder.write(group).unwrap());
        let bytes = encoder.finish().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let folder = Location::parse(dir.path().to_str().unwrap()).unwrap();
        folder.join("t/part-00000.parquet").unwrap().put(&bytes).unwrap();
        let rows = groups.iter().map(|group| group.rows() as u64).sum();
        (dir, folder, FileEntry::new("t/part-00000.parquet", Some(rows), &bytes))
    }

    fn rows(range: Range<usize>) -> Table {
        Table::new([
            ("id", TableColumn::Id(range.clone().map(|n| n as u64).collect())),
            ("time", TableColumn::Time(range.clone().map(|n| 3 * n as i64).collect())),
            ("url", TableColumn::Text(range.clone().map(|n| format!("http://a/{n}")).collect())),
            ("is", TableColumn::Bool(range.map(|n| n % 3 == 0).collect())),
        ])
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        #[test]
        fn any_range_of_rows_equals_the_slice_of_the_whole(
            groups in prop::collection::vec(0usize..50_000, 1..4), at in 0.0..1.0, to in 0.0..1.0
        ) {
            let mut start = 0;
            let mut tables = Vec::new();
            for count in groups {
                tables.push(rows(start..start + count));
                start += count;
            }
            let (_dir, folder, entry) = file(&tables);
            let file = TableFile::find(&folder, &entry).unwrap();
            let (at, to) = ((at * start as f64) as usize, (to * start as f64) as usize);
            let range = at.min(to)..at.max(to);
            let names = ["id", "time", "url", "is"];
            prop_assert_eq!(file.open().unwrap().read(range.clone(), &names).unwrap(), rows(range));
        }
    }

    #[test]
    fn file_that_differs_from_the_manifest_is_rejected() {
        let (_dir, folder, entry) = file(&[rows(0..9)]);
        let file = TableFile::find(&folder, &entry).unwrap();
        let location = folder.join(&entry.path).unwrap();
        let mut bytes = location.get().unwrap().unwrap();
        let last = bytes.len() - 20;
        bytes[last] ^= 1;
        location.put(&bytes).unwrap();
        assert!(TableFile::find(&folder, &entry).unwrap_err().to_string().contains("checksum"));
        assert!(file.open().is_err());
        location.put(&bytes[1..]).unwrap();
        assert!(TableFile::find(&folder, &entry).unwrap_err().to_string().contains("length"));
    }

    #[test]
    fn empty_table_has_columns() {
        let (_dir, folder, entry) = file(&[rows(0..0)]);
        assert_eq!(
            TableFile::find(&folder, &entry).unwrap().open().unwrap().read(0..0, &["id"]).unwrap().columns.len(),
            1
        );
    }
}
