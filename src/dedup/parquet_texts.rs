//! The rows of a Parquet file, as far as they matter: text, id, and what the rule for keeping looks at.

use parquet::basic::{LogicalType, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::FileReader;
use parquet::schema::types::ColumnDescPtr;

use super::batches::{BATCH_BYTES, Row};
use super::inputs::InputFile;
use super::order::Key;
use super::settings::{Keep, Settings};
use crate::error::{Error, Result};
use crate::pages::fetch_time;
use crate::storage::open::open_pinned;
use crate::storage::parquet_file::{Fault, ParquetFile, rows_of, ticks};

/// Rows decoded at once.
const ROWS: usize = 256;

/// A file that is being read.
pub struct ParquetTexts {
    file: ParquetFile,
    name: String,
    /// Leaf columns of text, id and key.
    leaves: [Option<usize>; 3],
    is_time: bool,
    group: usize,
    columns: [Option<Column>; 3],
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
    pub fn open(file: &InputFile, settings: &Settings) -> Result<ParquetTexts> {
        let name = file.name().to_string();
        let opened = open_pinned(&file.location, &file.stamp)?;
        let file = ParquetFile::open(opened).map_err(|fault| fault.of_input(&name))?;
        let find = |names: &[String], must_be: &str, fits: fn(Physical) -> bool| {
            find(&file, names, must_be, fits).map_err(|reason| Error::input(&name, reason))
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
        let columns = [None, None, None];
        Ok(ParquetTexts { file, name, leaves: [text, id, key], is_time, group: 0, columns, left: 0, taken: 0 })
    }

    /// Bytes of the file, groups as a whole, that have been read since this was asked last.
    pub fn taken(&mut self) -> u64 {
        std::mem::take(&mut self.taken)
    }

    /// The next rows; `None` at the end.
    ///
    /// # Errors
    /// [`Error::Input`] where the file is damaged: its rows could not be copied.
    pub fn next(&mut self) -> Result<Option<Vec<Row>>> {
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
        for (column, leaf) in self.columns.iter_mut().zip(self.leaves) {
            let open = |leaf: usize| {
                let descriptor = self.file.reader.metadata().file_metadata().schema_descr().column(leaf);
                Ok(Column { reader: self.file.column(self.group, leaf)?, descriptor })
            };
            *column = leaf.map(open).transpose()?;
        }
        Ok(())
    }

    fn some_rows(&mut self) -> std::result::Result<Vec<Row>, Fault> {
        let count = self.left.min(ROWS);
        let ParquetTexts { file, columns: [text, id, key], is_time, .. } = self;
        let rows = file.guard(|| {
            let texts = strings(text, count)?;
            let ids = ids(id, count)?;
            let keys = if *is_time { times(key, count)? } else { numbers(key, count)? };
            let rows = texts.into_iter().zip(ids).zip(keys);
            Ok(rows.map(|((text, id), key)| Row { text, id, key }).collect::<Vec<Row>>())
        })?;
        self.left -= rows.len();
        Ok(rows)
    }
}

/// The error for a row group that cannot be read.
pub fn damaged(name: &str, group: usize, fault: Fault) -> Error {
    match fault {
        Fault::Run(error) => error,
        Fault::Content(reason) => {
            Error::input(name, format!("bad_parquet: row group {group} cannot be read: {reason}; write the file anew"))
        }
    }
}

/// Finds the first of `names` among the columns; a dot leads into a group.
fn find(
    file: &ParquetFile,
    names: &[String],
    must_be: &str,
    fits: fn(Physical) -> bool,
) -> std::result::Result<Option<usize>, String> {
    let columns = file.reader.metadata().file_metadata().schema_descr().columns();
    for name in names {
        let Some(leaf) = columns.iter().position(|column| column.path().string() == *name) else {
            let below = format!("{name}.");
            match columns.iter().find(|column| column.path().string().starts_with(&below)) {
                Some(_) => return Err(format!("column {name} is a group or a list, but must be {must_be}")),
                None => continue,
            }
        };
        let column = &columns[leaf];
        if column.max_rep_level() > 0 || !fits(column.physical_type()) {
            let is = if column.max_rep_level() > 0 { "a list".into() } else { column.physical_type().to_string() };
            return Err(format!("column {name} is {is}, but must be {must_be}"));
        }
        return Ok(Some(leaf));
    }
    Ok(None)
}

/// The next values of a column that is in no list; `None` where one is absent, at any depth.
fn values<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    present: i16,
    rows: usize,
) -> parquet::errors::Result<Vec<Option<T::T>>> {
    let (mut levels, mut values) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
    let mut read = 0;
    while read < rows {
        let (records, ..) =
            reader.read_records(rows - read, (present > 0).then_some(&mut levels), None, &mut values)?;
        if records == 0 {
            return Err(ParquetError::EOF(format!("a column ends {} rows early", rows - read)));
        }
        read += records;
    }
    if present == 0 {
        return Ok(values.into_iter().map(Some).collect());
    }
    let mut values = values.into_iter();
    Ok(levels.into_iter().map(|level| if level == present { values.next() } else { None }).collect())
}

fn strings(column: &mut Option<Column>, rows: usize) -> parquet::errors::Result<Vec<Option<ByteArray>>> {
    match column {
        Some(Column { reader: ColumnReader::ByteArrayColumnReader(reader), descriptor }) => {
            values(reader, descriptor.max_def_level(), rows)
        }
        _ => Ok(vec![None; rows]),
    }
}

fn ids(column: &mut Option<Column>, rows: usize) -> parquet::errors::Result<Vec<Option<String>>> {
    let Some(Column { reader, descriptor }) = column else { return Ok(vec![None; rows]) };
    let present = descriptor.max_def_level();
    let unsigned = matches!(descriptor.logical_type_ref(), Some(LogicalType::Integer(kind)) if !kind.is_signed);
    Ok(match reader {
        ColumnReader::ByteArrayColumnReader(reader) => {
            let text = |bytes: ByteArray| String::from_utf8(bytes.data().to_vec()).ok();
            values(reader, present, rows)?.into_iter().map(|id| id.and_then(text)).collect()
        }
        ColumnReader::Int64ColumnReader(reader) => {
            let text = |id: i64| if unsigned { (id as u64).to_string() } else { id.to_string() };
            values(reader, present, rows)?.into_iter().map(|id| id.map(text)).collect()
        }
        ColumnReader::Int32ColumnReader(reader) => {
            let text = |id: i32| if unsigned { (id as u32).to_string() } else { id.to_string() };
            values(reader, present, rows)?.into_iter().map(|id| id.map(text)).collect()
        }
        _ => vec![None; rows],
    })
}

fn numbers(column: &mut Option<Column>, rows: usize) -> parquet::errors::Result<Vec<Key>> {
    let Some(Column { reader, descriptor }) = column else { return Ok(vec![Key::None; rows]) };
    let present = descriptor.max_def_level();
    let key = |number: Option<f64>| number.filter(|number| !number.is_nan()).map_or(Key::None, Key::Number);
    Ok(match reader {
        ColumnReader::DoubleColumnReader(reader) => values(reader, present, rows)?.into_iter().map(key).collect(),
        ColumnReader::FloatColumnReader(reader) => {
            values(reader, present, rows)?.into_iter().map(|number| key(number.map(f64::from))).collect()
        }
        ColumnReader::Int64ColumnReader(reader) => {
            values(reader, present, rows)?.into_iter().map(|number| key(number.map(|number| number as f64))).collect()
        }
        ColumnReader::Int32ColumnReader(reader) => {
            values(reader, present, rows)?.into_iter().map(|number| key(number.map(f64::from))).collect()
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
            values(reader, present, rows)?.into_iter().map(|text| key(text.and_then(read))).collect()
        }
        ColumnReader::Int64ColumnReader(reader) => {
            let (ticks, is_time) = (ticks(logical), matches!(logical, Some(LogicalType::Timestamp(_))));
            let read = |number: i64| if is_time { number.div_euclid(ticks) } else { fetch_time::of_number(number) };
            values(reader, present, rows)?.into_iter().map(|number| key(number.map(read))).collect()
        }
        ColumnReader::Int32ColumnReader(reader) => {
            let unit = if matches!(logical, Some(LogicalType::Date)) { 86_400 } else { 1 };
            let read = |number: i32| i64::from(number) * unit;
            values(reader, present, rows)?.into_iter().map(|number| key(number.map(read))).collect()
        }
        ColumnReader::Int96ColumnReader(reader) => {
            values(reader, present, rows)?.into_iter().map(|value| key(value.map(|value| value.to_seconds()))).collect()
        }
        _ => vec![Key::None; rows],
    })
}
