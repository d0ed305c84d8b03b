//! The rows of a Parquet file, as far as they matter: text, id, and what the rule for keeping looks at.

use parquet::basic::{LogicalType, Type as Physical};
use parquet::column::reader::ColumnReader;
use parquet::data_type::ByteArray;
use parquet::file::reader::FileReader;
use parquet::schema::types::ColumnDescPtr;

use super::batches::{BATCH_BYTES, Row};
use super::inputs::InputFile;
use super::order::Key;
use super::settings::{Keep, Settings};
use webtwin_base::error::{Error, Result};
use webtwin_pages::fetch_time;
use webtwin_storage::open::open_pinned;
use webtwin_storage::parquet_file::{Fault, ParquetFile, find_column, next_values, rows_of, ticks};

/// Rows decoded at once.
const ROWS: usize = 256;

/// A file that is being read.
pub(crate) struct ParquetTexts {
    file: ParquetFile,
    name: String,
    /// Leaf columns of text, id and key, and of the fields that are counted by.
    leaves: Vec<Option<usize>>,
    is_time: bool,
    group: usize,
    columns: Vec<Option<Column>>,
    /// Rows of the group that are still to be read.
    left: usize,
    /// Bytes of the groups that were begun since somebody asked.
    taken: u64,
}

struct Column {
    reader: ColumnReader,
    descriptor: ColumnDescPtr,
}

impl ParquetTexts {
    /// Opens a file and finds its columns.
    ///
    /// # Errors
    /// [`Error::Input`] when it is damaged, or has no column of strings for the text.
    pub(crate) fn open(file: &InputFile, settings: &Settings) -> Result<ParquetTexts> {
        let name = file.name().to_string();
        let opened = open_pinned(&file.location, &file.stamp)?;
        let file = ParquetFile::open(opened).map_err(|fault| fault.of_input(&name))?;
        let find = |names: &[String], must_be: &str, fits: fn(Physical) -> bool| {
            find_column(&file, names, must_be, fits).map_err(|reason| Error::input(&name, reason))
        };
        let is_string: fn(Physical) -> bool = |physical| physical == Physical::BYTE_ARRAY;
        let text = find(&settings.text_fields, "a string", is_string)?;
        let id_field: Vec<String> = settings.id_field.iter().cloned().collect();
        let id = find(&id_field, "a string or a whole number", |physical| {
            matches!(physical, Physical::BYTE_ARRAY | Physical::INT32 | Physical::INT64)
        })?;
        let is_time = matches!(settings.keep, Keep::Newest(_));
        let key = match is_time {
            true => find(settings.keep.fields(), "a time, a date, a whole number or a string", |physical| {
                matches!(physical, Physical::BYTE_ARRAY | Physical::INT32 | Physical::INT64 | Physical::INT96)
            })?,
            false => find(settings.keep.fields(), "a number", |physical| {
                matches!(physical, Physical::INT32 | Physical::INT64 | Physical::FLOAT | Physical::DOUBLE)
            })?,
        };
        if text.is_none() {
            let columns = file.reader.metadata().file_metadata().schema_descr().columns();
            let has: Vec<String> = columns.iter().map(|column| column.path().string()).collect();
            let wanted = settings.text_fields.join(" or ");
            return Err(Error::input(
                &name,
                format!("has no column {wanted}, a string; it has {}; see --text-field", has.join(", ")),
            ));
        }
        let mut leaves = vec![text, id, key];
        for field in &settings.count_by {
            leaves.push(find(std::slice::from_ref(field), "a string, a number or true or false", |physical| {
                !matches!(physical, Physical::INT96 | Physical::FIXED_LEN_BYTE_ARRAY)
            })?);
        }
        Ok(ParquetTexts { file, name, leaves, is_time, group: 0, columns: Vec::new(), left: 0, taken: 0 })
    }

    /// Bytes of the file, groups as a whole, that have been read since this was asked last.
    pub(crate) fn taken(&mut self) -> u64 {
        std::mem::take(&mut self.taken)
    }

    /// The next rows; `None` at the end.
    ///
    /// # Errors
    /// [`Error::Input`] where the file is damaged: its rows could not be copied.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<Row>>> {
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
        self.taken += self.file.reader.metadata().row_group(self.group).compressed_size().unsigned_abs();
        let open = |leaf: usize| -> std::result::Result<Column, Fault> {
            let descriptor = self.file.reader.metadata().file_metadata().schema_descr().column(leaf);
            Ok(Column { reader: self.file.column(self.group, leaf)?, descriptor })
        };
        self.columns =
            self.leaves.iter().map(|leaf| leaf.map(open).transpose()).collect::<std::result::Result<_, Fault>>()?;
        Ok(())
    }

    fn some_rows(&mut self) -> std::result::Result<Vec<Row>, Fault> {
        let count = self.left.min(ROWS);
        let ParquetTexts { file, columns, is_time, .. } = self;
        let [text, id, key, counted @ ..] = &mut columns[..] else { return Ok(Vec::new()) };
        let rows = file.guard(|| {
            let texts = strings(text, count)?;
            let ids = names(id, count)?;
            let keys = if *is_time { times(key, count)? } else { numbers(key, count)? };
            let rows = texts.into_iter().zip(ids).zip(keys);
            let mut rows: Vec<Row> = rows.map(|((text, id), key)| Row { text, id, key, values: Vec::new() }).collect();
            for column in counted {
                rows.iter_mut().zip(names(column, count)?).for_each(|(row, value)| row.values.push(value));
            }
            Ok(rows)
        })?;
        self.left -= rows.len();
        Ok(rows)
    }
}

/// The error for a row group that cannot be read.
pub(crate) fn damaged(name: &str, group: usize, fault: Fault) -> Error {
    match fault {
        Fault::Run(error) => error,
        Fault::Content(reason) => {
            Error::input(name, format!("bad_parquet: row group {group} cannot be read: {reason}; write the file anew"))
        }
    }
}

fn strings(column: &mut Option<Column>, rows: usize) -> parquet::errors::Result<Vec<Option<ByteArray>>> {
    match column {
        Some(Column { reader: ColumnReader::ByteArrayColumnReader(reader), descriptor }) => {
            next_values(reader, descriptor.max_def_level(), rows)
        }
        _ => Ok(vec![None; rows]),
    }
}

/// The next values of a column as text: strings, whole numbers, and what else records are counted by.
fn names(column: &mut Option<Column>, rows: usize) -> parquet::errors::Result<Vec<Option<String>>> {
    let Some(Column { reader, descriptor }) = column else { return Ok(vec![None; rows]) };
    let present = descriptor.max_def_level();
    let unsigned = matches!(descriptor.logical_type_ref(), Some(LogicalType::Integer(kind)) if !kind.is_signed);
    Ok(match reader {
        ColumnReader::ByteArrayColumnReader(reader) => {
            let text = |bytes: ByteArray| String::from_utf8(bytes.data().to_vec()).ok();
            next_values(reader, present, rows)?.into_iter().map(|id| id.and_then(text)).collect()
        }
        ColumnReader::Int64ColumnReader(reader) => {
            let text = |id: i64| if unsigned { (id as u64).to_string() } else { id.to_string() };
            next_values(reader, present, rows)?.into_iter().map(|id| id.map(text)).collect()
        }
        ColumnReader::Int32ColumnReader(reader) => {
            let text = |id: i32| if unsigned { (id as u32).to_string() } else { id.to_string() };
            next_values(reader, present, rows)?.into_iter().map(|id| id.map(text)).collect()
        }
        ColumnReader::DoubleColumnReader(reader) => {
            next_values(reader, present, rows)?.into_iter().map(|value| value.map(|value| value.to_string())).collect()
        }
        ColumnReader::FloatColumnReader(reader) => {
            next_values(reader, present, rows)?.into_iter().map(|value| value.map(|value| value.to_string())).collect()
        }
        ColumnReader::BoolColumnReader(reader) => {
            next_values(reader, present, rows)?.into_iter().map(|value| value.map(|value| value.to_string())).collect()
        }
        _ => vec![None; rows],
    })
}

fn numbers(column: &mut Option<Column>, rows: usize) -> parquet::errors::Result<Vec<Key>> {
    let Some(Column { reader, descriptor }) = column else { return Ok(vec![Key::None; rows]) };
    let present = descriptor.max_def_level();
    let key = |number: Option<f64>| number.filter(|number| !number.is_nan()).map_or(Key::None, Key::Number);
    Ok(match reader {
        ColumnReader::DoubleColumnReader(reader) => next_values(reader, present, rows)?.into_iter().map(key).collect(),
        ColumnReader::FloatColumnReader(reader) => {
            next_values(reader, present, rows)?.into_iter().map(|number| key(number.map(f64::from))).collect()
        }
        ColumnReader::Int64ColumnReader(reader) => next_values(reader, present, rows)?
            .into_iter()
            .map(|number| key(number.map(|number| number as f64)))
            .collect(),
        ColumnReader::Int32ColumnReader(reader) => {
            next_values(reader, present, rows)?.into_iter().map(|number| key(number.map(f64::from))).collect()
        }
        _ => vec![Key::None; rows],
    })
}

fn times(column: &mut Option<Column>, rows: usize) -> parquet::errors::Result<Vec<Key>> {
    let Some(Column { reader, descriptor }) = column else { return Ok(vec![Key::None; rows]) };
    let present = descriptor.max_def_level();
    let logical = descriptor.logical_type_ref();
    let key = |seconds: Option<i64>| seconds.map_or(Key::None, Key::Time);
    Ok(match reader {
        ColumnReader::ByteArrayColumnReader(reader) => {
            let read = |text: ByteArray| std::str::from_utf8(text.data()).ok().and_then(fetch_time::parse);
            next_values(reader, present, rows)?.into_iter().map(|text| key(text.and_then(read))).collect()
        }
        ColumnReader::Int64ColumnReader(reader) => {
            let (ticks, is_time) = (ticks(logical), matches!(logical, Some(LogicalType::Timestamp(_))));
            let read = |number: i64| if is_time { number.div_euclid(ticks) } else { fetch_time::of_number(number) };
            next_values(reader, present, rows)?.into_iter().map(|number| key(number.map(read))).collect()
        }
        ColumnReader::Int32ColumnReader(reader) => {
            let unit = if matches!(logical, Some(LogicalType::Date)) { 86_400 } else { 1 };
            let read = |number: i32| i64::from(number) * unit;
            next_values(reader, present, rows)?.into_iter().map(|number| key(number.map(read))).collect()
        }
        ColumnReader::Int96ColumnReader(reader) => next_values(reader, present, rows)?
            .into_iter()
            .map(|value| key(value.map(|value| value.to_seconds())))
            .collect(),
        _ => vec![Key::None; rows],
    })
}
