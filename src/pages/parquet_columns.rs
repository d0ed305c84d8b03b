//! Columns of Parquet files of any origin. They are found by name and read some rows at a time, as
//! text, numbers or times.

use parquet::basic::{LogicalType, TimeUnit, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::{ParquetError, Result as Decoded};
use parquet::file::reader::FileReader;
use parquet::schema::types::ColumnDescPtr;

use super::fetch_time;
use webtwin_base::error::Error;
use webtwin_storage::parquet_file::{Fault, ParquetFile};

/// A column of a row group that is being read. A column that the file does not have yields no
/// values.
pub struct GroupColumn(Option<(ColumnReader, ColumnDescPtr)>);

/// True if values of a type can be strings.
pub fn is_string(physical: Physical) -> bool {
    physical == Physical::BYTE_ARRAY
}

/// True if values of a type can be times.
pub fn is_time(physical: Physical) -> bool {
    matches!(physical, Physical::BYTE_ARRAY | Physical::INT32 | Physical::INT64 | Physical::INT96)
}

/// Finds the first of `names` among the columns of a file. A dot in a name leads into a group.
/// Returns the index of the leaf column, or `None` if the file has none of the names.
///
/// # Errors
/// Returns the reason if the column cannot be used: it is a group, a list, or of a type for which
/// `is_expected` is false.
pub fn find(
    file: &ParquetFile,
    names: &[String],
    expected_type: &str,
    is_expected: fn(Physical) -> bool,
) -> Result<Option<usize>, String> {
    let columns = file.reader.metadata().file_metadata().schema_descr().columns();
    for name in names {
        let type_error = |is: String| Err(format!("column {name} is {is}, but must be {expected_type}"));
        let Some(leaf) = columns.iter().position(|column| column.path().string() == *name) else {
            let child_prefix = format!("{name}.");
            match columns.iter().find(|column| column.path().string().starts_with(&child_prefix)) {
                Some(column) => {
                    return type_error(if column.max_rep_level() > 0 { "a list" } else { "a group" }.into());
                }
                None => continue,
            }
        };
        let column = &columns[leaf];
        return match (column.max_rep_level(), column.physical_type()) {
            (0, physical) if is_expected(physical) => Ok(Some(leaf)),
            (0, physical) => type_error(physical.to_string()),
            _ => type_error("a list".into()),
        };
    }
    Ok(None)
}

/// Makes the error for a file that has no string column with one of the names `wanted`. `setting`
/// is the setting that can name another column.
pub fn missing(file: &ParquetFile, name: &str, names_wanted: &[String], setting: &str) -> Error {
    let columns = file.reader.metadata().file_metadata().schema_descr().columns();
    let existing_names: Vec<String> = columns.iter().map(|column| column.path().string()).collect();
    let alternatives = names_wanted.join(" or ");
    Error::input(
        name,
        format!(
            "has no column {alternatives} of strings; it has {}; name the column with {setting}",
            existing_names.join(", ")
        ),
    )
}

impl GroupColumn {
    /// Opens columns of a row group, given as indexes of leaf columns.
    ///
    /// # Errors
    /// Returns any error of [`ParquetFile::column`].
    pub fn open(file: &ParquetFile, group: usize, leaves: &[Option<usize>]) -> Result<Vec<GroupColumn>, Fault> {
        let column = |leaf: usize| file.reader.metadata().file_metadata().schema_descr().column(leaf);
        let open = |leaf: usize| Ok((file.column(group, leaf)?, column(leaf)));
        leaves.iter().map(|leaf| leaf.map(open).transpose().map(GroupColumn)).collect()
    }

    /// Reads the next values as strings, which may be invalid UTF-8.
    ///
    /// # Errors
    /// Returns an error if the column ends early or cannot be decoded. The other readers of this
    /// type do so, too.
    pub fn strings(&mut self, rows: usize) -> Decoded<Vec<Option<ByteArray>>> {
        match &mut self.0 {
            Some((ColumnReader::ByteArrayColumnReader(reader), descriptor)) => next(reader, descriptor, rows, Some),
            _ => Ok(vec![None; rows]),
        }
    }

    /// Reads the next values as text. Numbers and Booleans are formatted.
    pub fn names(&mut self, rows: usize) -> Decoded<Vec<Option<String>>> {
        let Some((reader, descriptor)) = &mut self.0 else { return Ok(vec![None; rows]) };
        let is_unsigned = matches!(descriptor.logical_type_ref(), Some(LogicalType::Integer(kind)) if !kind.is_signed);
        match reader {
            ColumnReader::ByteArrayColumnReader(reader) => {
                next(reader, descriptor, rows, |bytes| String::from_utf8(bytes.data().to_vec()).ok())
            }
            ColumnReader::Int64ColumnReader(reader) => next(reader, descriptor, rows, |n| {
                Some(if is_unsigned { (n as u64).to_string() } else { n.to_string() })
            }),
            ColumnReader::Int32ColumnReader(reader) => next(reader, descriptor, rows, |n| {
                Some(if is_unsigned { (n as u32).to_string() } else { n.to_string() })
            }),
            ColumnReader::DoubleColumnReader(reader) => {
                next(reader, descriptor, rows, |number| Some(number.to_string()))
            }
            ColumnReader::FloatColumnReader(reader) => {
                next(reader, descriptor, rows, |number| Some(number.to_string()))
            }
            ColumnReader::BoolColumnReader(reader) => next(reader, descriptor, rows, |value| Some(value.to_string())),
            _ => Ok(vec![None; rows]),
        }
    }

    /// Reads the next values as numbers.
    pub fn numbers(&mut self, rows: usize) -> Decoded<Vec<Option<f64>>> {
        let Some((reader, descriptor)) = &mut self.0 else { return Ok(vec![None; rows]) };
        match reader {
            ColumnReader::DoubleColumnReader(reader) => next(reader, descriptor, rows, Some),
            ColumnReader::FloatColumnReader(reader) => next(reader, descriptor, rows, |number| Some(number.into())),
            ColumnReader::Int64ColumnReader(reader) => next(reader, descriptor, rows, |number| Some(number as f64)),
            ColumnReader::Int32ColumnReader(reader) => next(reader, descriptor, rows, |number| Some(number.into())),
            _ => Ok(vec![None; rows]),
        }
    }

    /// Reads the next values as times, in seconds since 1970. An absent value is `None`; a value
    /// that cannot be parsed is `Some(None)`.
    pub fn times(&mut self, rows: usize) -> Decoded<Vec<Option<Option<i64>>>> {
        let Some((reader, descriptor)) = &mut self.0 else { return Ok(vec![None; rows]) };
        let logical = descriptor.logical_type_ref();
        match reader {
            ColumnReader::ByteArrayColumnReader(reader) => next(reader, descriptor, rows, |text| {
                Some(std::str::from_utf8(text.data()).ok().and_then(fetch_time::parse))
            }),
            ColumnReader::Int64ColumnReader(reader) => {
                let ticks = match logical {
                    Some(LogicalType::Timestamp(timestamp)) => Some(match timestamp.unit {
                        TimeUnit::MILLIS => 1_000,
                        TimeUnit::MICROS => 1_000_000,
                        TimeUnit::NANOS => 1_000_000_000,
                    }),
                    _ => None,
                };
                next(reader, descriptor, rows, |number| {
                    Some(Some(ticks.map_or_else(|| fetch_time::of_number(number), |ticks| number.div_euclid(ticks))))
                })
            }
            ColumnReader::Int32ColumnReader(reader) => {
                let unit = if matches!(logical, Some(LogicalType::Date)) { 86_400 } else { 1 };
                next(reader, descriptor, rows, |number| Some(Some(i64::from(number) * unit)))
            }
            ColumnReader::Int96ColumnReader(reader) => {
                next(reader, descriptor, rows, |value| Some(Some(value.to_seconds())))
            }
            _ => Ok(vec![None; rows]),
        }
    }
}

/// Reads the next `rows` values of a column outside of lists and converts them with `read`. An
/// absent value is `None`.
fn next<T: DataType, V>(
    reader: &mut ColumnReaderImpl<T>,
    column: &ColumnDescPtr,
    rows: usize,
    read: impl Fn(T::T) -> Option<V>,
) -> Decoded<Vec<Option<V>>> {
    // Definition level at which a value is present.
    let present_level = column.max_def_level();
    let (mut levels, mut values) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
    let mut n_read = 0;
    while n_read < rows {
        let (records, ..) =
            reader.read_records(rows - n_read, (present_level > 0).then_some(&mut levels), None, &mut values)?;
        if records == 0 {
            return Err(ParquetError::EOF(format!("a column ends {} rows early", rows - n_read)));
        }
        n_read += records;
    }
    let mut values = values.into_iter();
    if present_level == 0 {
        return Ok(values.map(read).collect());
    }
    Ok(levels
        .into_iter()
        .map(|level| if level == present_level { values.next().and_then(&read) } else { None })
        .collect())
}
