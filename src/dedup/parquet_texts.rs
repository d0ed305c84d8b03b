//! Reader of the required columns of a Parquet file: text, id, and the value that the keep rule
//! compares.

use parquet::basic::Type as Physical;
use parquet::data_type::ByteArray;
use parquet::file::reader::FileReader;

use super::batches::{BATCH_BYTES, CorpusRow};
use super::inputs::CorpusFile;
use super::order::OrderKey;
use super::settings::{DedupSettings, KeepRule};
use webtwin_base::error::{Error, Result};
use webtwin_pages::parquet_columns::{self, GroupColumn, is_string, is_time};
use webtwin_storage::open::open_pinned;
use webtwin_storage::parquet_file::{Fault, ParquetFile, rows_of};

/// Number of rows that are decoded together.
const ROWS: usize = 256;

/// Parquet file that is being read.
pub(crate) struct ParquetTexts {
    file: ParquetFile,
    name: String,
    /// Leaf columns of text, id and key, followed by those of the fields that records are counted
    /// by.
    leaves: Vec<Option<usize>>,
    has_times: bool,
    group: usize,
    columns: Vec<GroupColumn>,
    /// Number of rows of the group that are still to be read.
    left: usize,
    /// Size of the row groups that were begun since the last call of
    /// [`ParquetTexts::take_bytes_read`], in bytes.
    bytes_begun: u64,
}

impl ParquetTexts {
    /// Opens a file and finds its columns.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the file is damaged, or has no column of strings for the text.
    pub(crate) fn open(file: &CorpusFile, settings: &DedupSettings) -> Result<ParquetTexts> {
        let name = file.name().to_string();
        let open_file = open_pinned(&file.location, &file.stamp)?;
        let file = ParquetFile::open(open_file).map_err(|fault| fault.of_input(&name))?;
        let find = |names: &[String], expected_type: &str, is_expected: fn(Physical) -> bool| {
            parquet_columns::find(&file, names, expected_type, is_expected)
                .map_err(|reason| Error::input(&name, reason))
        };
        let text = find(&settings.text_fields, "a string", is_string)?;
        let id_field: Vec<String> = settings.id_field.iter().cloned().collect();
        let id = find(&id_field, "a string or a whole number", |physical| {
            matches!(physical, Physical::BYTE_ARRAY | Physical::INT32 | Physical::INT64)
        })?;
        let has_times = matches!(settings.keep, KeepRule::Newest(_));
        let key = match has_times {
            true => find(settings.keep.fields(), "a time, a date, a whole number or a string", is_time)?,
            false => find(settings.keep.fields(), "a number", |physical| {
                matches!(physical, Physical::INT32 | Physical::INT64 | Physical::FLOAT | Physical::DOUBLE)
            })?,
        };
        if text.is_none() {
            return Err(parquet_columns::missing(&file, &name, &settings.text_fields, "--text-field"));
        }
        let mut leaves = vec![text, id, key];
        for field in &settings.count_by {
            leaves.push(find(std::slice::from_ref(field), "a string, a number or true or false", |physical| {
                !matches!(physical, Physical::INT96 | Physical::FIXED_LEN_BYTE_ARRAY)
            })?);
        }
        Ok(ParquetTexts { file, name, leaves, has_times, group: 0, columns: Vec::new(), left: 0, bytes_begun: 0 })
    }

    /// Returns the number of bytes of the file read since the last call, in whole row groups.
    pub(crate) fn take_bytes_read(&mut self) -> u64 {
        std::mem::take(&mut self.bytes_begun)
    }

    /// Returns the next rows, or `None` at the end.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the file is damaged. It is not skipped, because its rows could
    /// not be copied.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<CorpusRow>>> {
        let mut rows = Vec::new();
        let mut bytes = 0;
        while bytes < BATCH_BYTES {
            while self.left == 0 {
                if self.group == self.file.reader.metadata().num_row_groups() {
                    return Ok((!rows.is_empty()).then_some(rows));
                }
                self.begin_group().map_err(|fault| damaged(&self.name, self.group, fault))?;
                self.group += 1;
            }
            let read = self.some_rows().map_err(|fault| damaged(&self.name, self.group - 1, fault))?;
            bytes += read.iter().map(|row| row.text.as_ref().map_or(0, ByteArray::len)).sum::<usize>() + ROWS;
            rows.extend(read);
        }
        Ok(Some(rows))
    }

    fn begin_group(&mut self) -> std::result::Result<(), Fault> {
        self.left = rows_of(&self.file, self.group);
        self.bytes_begun += self.file.reader.metadata().row_group(self.group).compressed_size().unsigned_abs();
        self.columns = GroupColumn::open(&self.file, self.group, &self.leaves)?;
        Ok(())
    }

    fn some_rows(&mut self) -> std::result::Result<Vec<CorpusRow>, Fault> {
        let count = self.left.min(ROWS);
        let ParquetTexts { file, columns, has_times, .. } = self;
        let [text, id, key, counted_columns @ ..] = &mut columns[..] else { return Ok(Vec::new()) };
        let rows = file.guard(|| {
            let (texts, ids) = (text.strings(count)?, id.names(count)?);
            let keys: Vec<OrderKey> = match *has_times {
                true => key
                    .times(count)?
                    .into_iter()
                    .map(|time| time.flatten().map_or(OrderKey::None, OrderKey::Time))
                    .collect(),
                false => key.numbers(count)?.into_iter().map(number).collect(),
            };
            let rows = texts.into_iter().zip(ids).zip(keys);
            let mut rows: Vec<CorpusRow> =
                rows.map(|((text, id), key)| CorpusRow { text, id, key, values: Vec::new() }).collect();
            for column in counted_columns {
                rows.iter_mut().zip(column.names(count)?).for_each(|(row, value)| row.values.push(value));
            }
            Ok(rows)
        })?;
        self.left -= rows.len();
        Ok(rows)
    }
}

/// Returns the value of a number that the keep rule compares.
fn number(number: Option<f64>) -> OrderKey {
    number.filter(|number| !number.is_nan()).map_or(OrderKey::None, OrderKey::Number)
}

/// Returns the error for a row group that cannot be read.
pub(crate) fn damaged(name: &str, group: usize, fault: Fault) -> Error {
    match fault {
        Fault::Run(error) => error,
        Fault::Content(reason) => {
            Error::input(name, format!("bad_parquet: row group {group} cannot be read: {reason}; write the file again"))
        }
    }
}
