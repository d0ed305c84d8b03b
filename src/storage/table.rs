//! Output tables: Parquet, with one folder per table and files `part-NNNNN.parquet`.
//!
//! The bytes of a file are a pure function of its rows: they contain no date, build or host.
//!
//! No value is ever null. pandas converts unsigned columns with nulls to floats, which cannot
//! represent 64-bit ids. If a value may be absent, a boolean column marks its presence. Ids are
//! unsigned, and counts are signed: Spark has no unsigned 64-bit type and converts such columns to
//! decimals, which is acceptable for names but not for sums.

use std::cmp::Ordering;
use std::ops::Range;

use chrono::DateTime;
use parquet::basic::LogicalType;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArrayType, DataType};
use parquet::file::reader::{FileReader, SerializedFileReader};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

pub use super::table_encoder::{encode, encode_into};
use super::texts::StringTable;
use webtwin_base::error::{Error, Result};

/// Number of texts that are taken from the decoder at a time, so that its output stays in the cache
/// of a core.
const TEXTS_PER_BATCH: usize = 1 << 10;

/// Maximum memory in bytes that is reserved by an estimate.
const MAX_GUESSED_BYTES: usize = 16 << 20;

/// Column of a table, with its values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum TableColumn {
    /// Ids and other hashes: unsigned 64-bit numbers that are compared and never added.
    Id(Vec<u64>),
    /// Counts, offsets and lengths in bytes, below 2^63.
    Count(Vec<u64>),
    /// Unsigned 32-bit numbers, such as counts.
    U32(Vec<u32>),
    /// 64-bit floating-point numbers.
    F64(Vec<f64>),
    /// Times in UTC, seconds since 1970. (Written without a time zone, because some readers need a
    /// zone table for one.)
    Time(Vec<i64>),
    /// UTF-8 strings.
    Text(StringTable),
    /// Booleans.
    Bool(Vec<bool>),
}

impl TableColumn {
    /// True if a dictionary is estimated to make a file with these values smaller, judged by the
    /// first `row_count` values.
    pub(super) fn repeats_itself(&self, row_count: usize) -> bool {
        let mut values: Vec<u64> = match self {
            TableColumn::Id(values) | TableColumn::Count(values) => values[..row_count].to_vec(),
            TableColumn::Text(values) => values.iter().take(row_count).map(|value| xxh3_64(value.as_bytes())).collect(),
            TableColumn::U32(_) | TableColumn::F64(_) | TableColumn::Time(_) | TableColumn::Bool(_) => return true,
        };
        values.sort_unstable();
        values.dedup();
        // A dictionary of up to 2^16 entries takes 8 bytes for each entry, and 2 bytes for each
        // row.
        values.len() * 4 <= row_count * 3
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        match self {
            TableColumn::Id(values) => values.len(),
            TableColumn::Count(values) => values.len(),
            TableColumn::U32(values) => values.len(),
            TableColumn::F64(values) => values.len(),
            TableColumn::Time(values) => values.len(),
            TableColumn::Text(values) => values.len(),
            TableColumn::Bool(values) => values.len(),
        }
    }

    /// True if the column has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a value as JSON. Ids are strings, because JavaScript and jq round numbers above
    /// 2^53. Times are ISO 8601 in UTC.
    pub fn json(&self, row: usize) -> serde_json::Value {
        match self {
            TableColumn::Id(values) => values[row].to_string().into(),
            TableColumn::Count(values) => values[row].into(),
            TableColumn::U32(values) => values[row].into(),
            TableColumn::F64(values) => values[row].into(),
            TableColumn::Time(values) => iso_8601(values[row]).into(),
            TableColumn::Text(values) => values[row].into(),
            TableColumn::Bool(values) => values[row].into(),
        }
    }

    pub(super) fn schema(&self, name: &str) -> String {
        match self {
            TableColumn::Id(_) => format!("required int64 {name} (INTEGER(64,false));"),
            TableColumn::Count(_) => format!("required int64 {name} (INTEGER(64,true));"),
            TableColumn::U32(_) => format!("required int32 {name} (INTEGER(32,false));"),
            TableColumn::F64(_) => format!("required double {name};"),
            TableColumn::Time(_) => format!("required int64 {name} (TIMESTAMP(MILLIS,false));"),
            TableColumn::Text(_) => format!("required binary {name} (STRING);"),
            TableColumn::Bool(_) => format!("required boolean {name};"),
        }
    }

    /// Returns the approximate size of the rows on disk in bytes. Hashes do not compress; text is
    /// compressed to a quarter.
    fn weight(&self) -> u64 {
        let rows = self.len() as u64;
        match self {
            TableColumn::Id(_) | TableColumn::Count(_) | TableColumn::F64(_) | TableColumn::Time(_) => 8 * rows,
            TableColumn::U32(_) => 4 * rows,
            TableColumn::Text(values) => values.bytes() as u64 / 4,
            TableColumn::Bool(_) => rows / 8,
        }
    }

    /// Returns the size of a range of values in memory, in bytes.
    fn bytes(&self, rows: Range<usize>) -> usize {
        match self {
            TableColumn::Id(_) | TableColumn::Count(_) | TableColumn::F64(_) | TableColumn::Time(_) => 8 * rows.len(),
            TableColumn::U32(_) => 4 * rows.len(),
            TableColumn::Text(values) => values.joined_bytes(rows.clone()).len() + 8 * rows.len(),
            TableColumn::Bool(_) => rows.len(),
        }
    }

    /// Returns the values at `rows`, in that order.
    fn pick(&self, rows: &[usize]) -> TableColumn {
        fn at<T: Clone>(values: &[T], rows: &[usize]) -> Vec<T> {
            rows.iter().map(|&row| values[row].clone()).collect()
        }
        match self {
            TableColumn::Id(values) => TableColumn::Id(at(values, rows)),
            TableColumn::Count(values) => TableColumn::Count(at(values, rows)),
            TableColumn::U32(values) => TableColumn::U32(at(values, rows)),
            TableColumn::F64(values) => TableColumn::F64(at(values, rows)),
            TableColumn::Time(values) => TableColumn::Time(at(values, rows)),
            TableColumn::Text(values) => TableColumn::Text(rows.iter().map(|&row| &values[row]).collect()),
            TableColumn::Bool(values) => TableColumn::Bool(at(values, rows)),
        }
    }

    /// Compares the values of the rows `x` and `y`.
    pub fn order(&self, x: usize, y: usize) -> Ordering {
        match self {
            TableColumn::Id(values) | TableColumn::Count(values) => values[x].cmp(&values[y]),
            TableColumn::U32(values) => values[x].cmp(&values[y]),
            TableColumn::F64(values) => values[x].total_cmp(&values[y]),
            TableColumn::Time(values) => values[x].cmp(&values[y]),
            TableColumn::Text(values) => values[x].cmp(&values[y]),
            TableColumn::Bool(values) => values[x].cmp(&values[y]),
        }
    }

    /// Removes and returns the values from `at` on.
    fn split_off(&mut self, at: usize) -> TableColumn {
        match self {
            TableColumn::Id(values) => TableColumn::Id(values.split_off(at)),
            TableColumn::Count(values) => TableColumn::Count(values.split_off(at)),
            TableColumn::U32(values) => TableColumn::U32(values.split_off(at)),
            TableColumn::F64(values) => TableColumn::F64(values.split_off(at)),
            TableColumn::Time(values) => TableColumn::Time(values.split_off(at)),
            TableColumn::Text(values) => TableColumn::Text(values.split_off(at)),
            TableColumn::Bool(values) => TableColumn::Bool(values.split_off(at)),
        }
    }

    fn append(&mut self, other: TableColumn) {
        match (self, other) {
            (TableColumn::Id(values), TableColumn::Id(appended))
            | (TableColumn::Count(values), TableColumn::Count(appended)) => values.extend(appended),
            (TableColumn::U32(all), TableColumn::U32(more)) => all.extend(more),
            (TableColumn::F64(all), TableColumn::F64(more)) => all.extend(more),
            (TableColumn::Time(all), TableColumn::Time(more)) => all.extend(more),
            (TableColumn::Text(all), TableColumn::Text(more)) => all.append(&more),
            (TableColumn::Bool(all), TableColumn::Bool(more)) => all.extend(more),
            _ => unreachable!("the files of a table have one schema, which the reader has checked"),
        }
    }
}

/// Formats a time in seconds since 1970 as ISO 8601, in UTC.
fn iso_8601(seconds: i64) -> String {
    DateTime::from_timestamp(seconds, 0).map_or(seconds.to_string(), |at| at.format("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// Named columns of equal length: a table or a part of one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Table {
    /// Columns in the order of the schema.
    pub columns: Vec<(String, TableColumn)>,
}

impl Table {
    /// Creates a table from its columns.
    pub fn new<const N: usize>(columns: [(&str, TableColumn); N]) -> Table {
        Table { columns: columns.map(|(name, column)| (name.to_string(), column)).into() }
    }

    /// Returns the number of rows, which is the same in every column.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, column)| column.len())
    }

    /// Returns a column of unsigned 64-bit numbers.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the table has no such column.
    pub fn u64(&self, name: &str) -> Result<&[u64]> {
        match self.columns.iter().find(|column| column.0 == name) {
            Some((_, TableColumn::Id(values) | TableColumn::Count(values))) => Ok(values),
            _ => Err(Error::input(
                name,
                "the table has no such column of unsigned numbers; run the job again with this build",
            )),
        }
    }

    /// Returns a column of unsigned 32-bit numbers.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the table has no such column.
    pub fn u32(&self, name: &str) -> Result<&[u32]> {
        match self.columns.iter().find(|column| column.0 == name) {
            Some((_, TableColumn::U32(values))) => Ok(values),
            _ => Err(Error::input(
                name,
                "the table has no such column of 32-bit numbers; run the job again with this build",
            )),
        }
    }

    /// Returns a column of optional unsigned 64-bit numbers. The boolean column `is_there` marks
    /// the values that are present.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the table lacks one of the columns.
    pub fn u64_where(&self, name: &str, is_there: &str) -> Result<Vec<Option<u64>>> {
        let values = self.u64(name)?.iter().zip(self.bool(is_there)?);
        Ok(values.map(|(&value, &is_there)| is_there.then_some(value)).collect())
    }

    /// Returns a column of booleans.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the table has no such column.
    pub fn bool(&self, name: &str) -> Result<&[bool]> {
        match self.columns.iter().find(|column| column.0 == name) {
            Some((_, TableColumn::Bool(values))) => Ok(values),
            _ => Err(Error::input(name, "the table has no such column of booleans; run the job again with this build")),
        }
    }

    /// Returns a column of floating-point numbers.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the table has no such column.
    pub fn f64(&self, name: &str) -> Result<&[f64]> {
        match self.columns.iter().find(|column| column.0 == name) {
            Some((_, TableColumn::F64(values))) => Ok(values),
            _ => {
                Err(Error::input(name, "the table has no such column of fractions; run the job again with this build"))
            }
        }
    }

    /// Returns a column of times, in seconds since 1970.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the table has no such column.
    pub fn time(&self, name: &str) -> Result<&[i64]> {
        match self.columns.iter().find(|column| column.0 == name) {
            Some((_, TableColumn::Time(values))) => Ok(values),
            _ => Err(Error::input(name, "the table has no such column of times; run the job again with this build")),
        }
    }

    /// Returns a column of text.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the table has no such column.
    pub fn text(&self, name: &str) -> Result<&StringTable> {
        match self.columns.iter().find(|column| column.0 == name) {
            Some((_, TableColumn::Text(values))) => Ok(values),
            _ => Err(Error::input(name, "the table has no such column of text; run the job again with this build")),
        }
    }

    /// Returns the approximate size of the rows on disk in bytes. It is a pure function of the
    /// rows.
    pub fn weight(&self) -> u64 {
        self.columns.iter().map(|(_, column)| column.weight()).sum()
    }

    /// Returns the size of a range of rows in memory, in bytes.
    pub fn bytes(&self, rows: Range<usize>) -> usize {
        self.columns.iter().map(|(_, column)| column.bytes(rows.clone())).sum()
    }

    /// Returns the rows at `rows`, in that order.
    pub fn pick(&self, rows: &[usize]) -> Table {
        let pick = |(name, column): &(String, TableColumn)| (name.clone(), column.pick(rows));
        Table { columns: self.columns.iter().map(pick).collect() }
    }

    /// Removes and returns the rows from `at` on.
    pub fn split_off(&mut self, at: usize) -> Table {
        let columns = self.columns.iter_mut().map(|(name, column)| (name.clone(), column.split_off(at)));
        Table { columns: columns.collect() }
    }

    /// Appends the rows of another part of the same table.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if its columns differ.
    pub fn append(&mut self, other: Table) -> Result<()> {
        if self.columns.is_empty() {
            *self = other;
            return Ok(());
        }
        let shape = |table: &Table| -> Vec<String> { table.columns.iter().map(|(name, c)| c.schema(name)).collect() };
        if shape(self) != shape(&other) {
            return Err(Error::input(
                "a part of a table",
                "its columns differ from those of the parts before it; run the job again",
            ));
        }
        for ((_, values), (_, appended)) in self.columns.iter_mut().zip(other.columns) {
            values.append(appended);
        }
        Ok(())
    }
}

/// Decodes a Parquet file that [`encode`] wrote.
///
/// # Errors
/// Returns [`Error::Input`] with the name `file` if the bytes are damaged or not Parquet, or have
/// columns of a type that no output table has.
pub fn decode(file: &str, bytes: Vec<u8>) -> Result<Table> {
    decode_columns(file, bytes, |_| true)
}

/// Returns the names of the columns of a Parquet file, in their order.
///
/// # Errors
/// Returns [`Error::Input`] with the name `file` if the bytes are not Parquet.
pub fn column_names(file: &str, bytes: Vec<u8>) -> Result<Vec<String>> {
    let reader = SerializedFileReader::new(bytes::Bytes::from(bytes));
    let reader = reader.map_err(|cause| Error::input(file, format!("damaged Parquet: {cause}")))?;
    let columns = reader.metadata().file_metadata().schema_descr().columns().iter();
    Ok(columns.map(|column| column.name().to_string()).collect())
}

/// Decodes the columns of a Parquet file for whose names `is_wanted` is true, like [`decode`].
///
/// # Errors
/// Returns the errors of [`decode`].
pub fn decode_columns(file: &str, bytes: Vec<u8>, is_wanted: impl Fn(&str) -> bool) -> Result<Table> {
    let bad = |cause: parquet::errors::ParquetError| Error::input(file, format!("damaged Parquet: {cause}"));
    let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).map_err(bad)?;
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let mut table = Table::default();
    for number in 0..reader.num_row_groups() {
        let group = reader.get_row_group(number).map_err(bad)?;
        let rows = group.metadata().num_rows() as usize;
        let mut part = Table::default();
        for (at, described) in schema.columns().iter().enumerate().filter(|(_, described)| is_wanted(described.name()))
        {
            // Output tables have no nulls, so this build writes no nullable columns.
            let column = match described.max_def_level() {
                0 => read_values(group.get_column_reader(at).map_err(bad)?, 0, rows, described.logical_type_ref()),
                _ => Ok(None),
            };
            let column = column.map_err(bad)?.ok_or_else(|| {
                let reason =
                    "is of a type that this build does not write, so another build may have written it; run again";
                Error::input(file, format!("column {} {reason}", described.name()))
            })?;
            if column.len() != rows {
                return Err(Error::input(
                    file,
                    format!("column {} has {} of {rows} rows", described.name(), column.len()),
                ));
            }
            part.columns.push((described.name().to_string(), column));
        }
        table.append(part)?;
    }
    Ok(table)
}

/// Reads `rows` values of a column without nulls, after `skipped` values. Returns `None` for a type
/// that no output table has.
pub(super) fn read_values(
    reader: ColumnReader,
    skipped: usize,
    rows: usize,
    logical: Option<&LogicalType>,
) -> parquet::errors::Result<Option<TableColumn>> {
    Ok(Some(match reader {
        ColumnReader::Int64ColumnReader(reader) => {
            let values = values_of(reader, skipped, rows)?;
            match logical {
                Some(LogicalType::Timestamp(_)) => TableColumn::Time(values.iter().map(|ms| ms / 1000).collect()),
                Some(LogicalType::Integer(integer)) if integer.is_signed => {
                    TableColumn::Count(bytemuck::cast_vec(values))
                }
                _ => TableColumn::Id(bytemuck::cast_vec(values)),
            }
        }
        ColumnReader::Int32ColumnReader(reader) => {
            TableColumn::U32(bytemuck::cast_vec(values_of(reader, skipped, rows)?))
        }
        ColumnReader::DoubleColumnReader(reader) => TableColumn::F64(values_of(reader, skipped, rows)?),
        ColumnReader::BoolColumnReader(reader) => TableColumn::Bool(values_of(reader, skipped, rows)?),
        ColumnReader::ByteArrayColumnReader(reader) => TableColumn::Text(texts_of(reader, skipped, rows)?),
        _ => return Ok(None),
    }))
}

fn values_of<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    skipped: usize,
    rows: usize,
) -> parquet::errors::Result<Vec<T::T>> {
    reader.skip_records(skipped)?;
    let mut values = Vec::with_capacity(rows);
    while values.len() < rows && reader.read_records(rows - values.len(), None, None, &mut values)?.0 > 0 {}
    Ok(values)
}

/// Reads the texts of a column. Invalid UTF-8 in a damaged file is replaced.
fn texts_of(
    mut reader: ColumnReaderImpl<ByteArrayType>,
    skipped: usize,
    rows: usize,
) -> parquet::errors::Result<StringTable> {
    reader.skip_records(skipped)?;
    let (mut texts, mut batch) = (StringTable::new(), Vec::with_capacity(rows.min(TEXTS_PER_BATCH)));
    while texts.len() < rows {
        let batch_rows = reader.read_records((rows - texts.len()).min(TEXTS_PER_BATCH), None, None, &mut batch)?.0;
        if batch_rows == 0 {
            break;
        }
        if texts.is_empty() {
            // An estimate, which assumes that the remaining texts are as long as these. It is
            // limited, because a wrong estimate wastes memory.
            let bytes: usize = batch.iter().map(|value| value.len()).sum();
            texts.reserve(rows, (rows.div_ceil(batch_rows) * bytes).min(MAX_GUESSED_BYTES));
        }
        for value in batch.drain(..) {
            match std::str::from_utf8(value.data()) {
                Ok(text) => texts.push(text),
                Err(_) => texts.push(&String::from_utf8_lossy(value.data())),
            }
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(30))]
        #[test]
        fn rows_and_bytes_round_trip(
            rows in prop::collection::vec((any::<u64>(), 0u64..1 << 63, any::<u32>(), 0i64..1 << 40, ".{0,8}", any::<bool>(), 0.0..1.0), 0..50)
        ) {
            let table = Table::new([
                ("id", TableColumn::Id(rows.iter().map(|r| r.0).collect())),
                ("bytes", TableColumn::Count(rows.iter().map(|r| r.1).collect())),
                ("count", TableColumn::U32(rows.iter().map(|r| r.2).collect())),
                ("time", TableColumn::Time(rows.iter().map(|r| r.3).collect())),
                ("url", TableColumn::Text(rows.iter().map(|r| r.4.clone()).collect())),
                ("exact", TableColumn::Bool(rows.iter().map(|r| r.5).collect())),
                ("part", TableColumn::F64(rows.iter().map(|r| r.6).collect())),
            ]);
            let bytes = encode(&table).unwrap();
            prop_assert_eq!(&bytes, &encode(&table).unwrap());
            prop_assert_eq!(decode("t", bytes).unwrap(), table);
        }
    }

    #[test]
    fn column_has_a_dictionary_if_a_quarter_of_its_values_repeat() {
        let hash = |value: u64| xxh3_64(&value.to_le_bytes());
        let ids = |distinct: u64| TableColumn::Id((0..20_000).map(|row| hash(row % distinct)).collect());
        let texts =
            |distinct: u64| TableColumn::Text((0..20_000).map(|row| hash(row % distinct).to_string()).collect());
        let columns = [ids(15_000), ids(15_001), texts(15_000), texts(15_001)];
        assert_eq!(columns.map(|column| column.repeats_itself(20_000)), [true, false, true, false]);
        // 8 bytes for each row, without the 2 more of a dictionary index.
        let bytes = encode(&Table::new([("id", ids(20_000))])).unwrap().len();
        assert!(bytes < 20_000 * 9, "{bytes}");
    }

    #[test]
    fn ids_are_strings_in_json_and_times_are_dates() {
        let json = |column: TableColumn| column.json(0).to_string();
        assert_eq!(json(TableColumn::Id(vec![u64::MAX])), "\"18446744073709551615\"");
        assert_eq!(json(TableColumn::Count(vec![1 << 40])), "1099511627776");
        assert_eq!(json(TableColumn::Time(vec![1_795_299_786])), "\"2026-11-21T22:23:06Z\"");
    }

    #[test]
    fn damage_is_an_error_that_names_the_file() {
        let bytes = encode(&Table::new([("id", TableColumn::Id((0..1000).collect()))])).unwrap();
        for cut in [0, 3, bytes.len() / 2, bytes.len() - 1] {
            assert!(
                decode("pages/part-00000.parquet", bytes[..cut].to_vec())
                    .unwrap_err()
                    .to_string()
                    .contains("part-00000")
            );
        }
    }
}
