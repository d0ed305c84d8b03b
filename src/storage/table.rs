//! Output tables: Parquet, one folder per table, `part-NNNNN.parquet`.
//!
//! The bytes of a file are a pure function of its rows: it contains no date, build or host.

use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::column::reader::ColumnReader;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::error::{Error, Result};

/// Rows per row group, which readers must hold at once of a column.
const ROWS_A_GROUP: usize = 1 << 20;

/// A column of a table, with its values.
#[derive(Debug, Clone, PartialEq)]
pub enum Column {
    /// Unsigned 64-bit numbers, such as ids.
    U64(Vec<u64>),
    /// Unsigned 64-bit numbers, some of which may be empty.
    OptionalU64(Vec<Option<u64>>),
    /// Unsigned 32-bit numbers, such as counts.
    U32(Vec<u32>),
    /// 64-bit floating-point numbers.
    F64(Vec<f64>),
    /// Times in UTC, seconds since 1970. (Written without a time zone, because some readers need a zone table for one.)
    Time(Vec<i64>),
    /// UTF-8 strings.
    Text(Vec<String>),
    /// Booleans.
    Bool(Vec<bool>),
}

impl Column {
    /// Number of values, empty ones included.
    pub fn len(&self) -> usize {
        match self {
            Column::U64(values) => values.len(),
            Column::OptionalU64(values) => values.len(),
            Column::U32(values) => values.len(),
            Column::F64(values) => values.len(),
            Column::Time(values) => values.len(),
            Column::Text(values) => values.len(),
            Column::Bool(values) => values.len(),
        }
    }

    /// Whether the column has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A value as JSON; times as seconds.
    pub fn json(&self, row: usize) -> serde_json::Value {
        match self {
            Column::U64(values) => values[row].into(),
            Column::OptionalU64(values) => values[row].into(),
            Column::U32(values) => values[row].into(),
            Column::F64(values) => values[row].into(),
            Column::Time(values) => values[row].into(),
            Column::Text(values) => values[row].as_str().into(),
            Column::Bool(values) => values[row].into(),
        }
    }

    fn schema(&self, name: &str) -> String {
        match self {
            Column::U64(_) => format!("required int64 {name} (INTEGER(64,false));"),
            Column::OptionalU64(_) => format!("optional int64 {name} (INTEGER(64,false));"),
            Column::U32(_) => format!("required int32 {name} (INTEGER(32,false));"),
            Column::F64(_) => format!("required double {name};"),
            Column::Time(_) => format!("required int64 {name} (TIMESTAMP(MILLIS,false));"),
            Column::Text(_) => format!("required binary {name} (STRING);"),
            Column::Bool(_) => format!("required boolean {name};"),
        }
    }

    fn append(&mut self, other: Column) {
        match (self, other) {
            (Column::U64(all), Column::U64(more)) => all.extend(more),
            (Column::OptionalU64(all), Column::OptionalU64(more)) => all.extend(more),
            (Column::U32(all), Column::U32(more)) => all.extend(more),
            (Column::F64(all), Column::F64(more)) => all.extend(more),
            (Column::Time(all), Column::Time(more)) => all.extend(more),
            (Column::Text(all), Column::Text(more)) => all.extend(more),
            (Column::Bool(all), Column::Bool(more)) => all.extend(more),
            _ => unreachable!("the files of a table have one schema, which the reader has checked"),
        }
    }
}

/// Named columns of equal length: a table or a part of one.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// Columns in the order of the schema.
    pub columns: Vec<(String, Column)>,
}

impl Table {
    /// Makes a table of columns.
    pub fn new<const N: usize>(columns: [(&str, Column); N]) -> Table {
        Table { columns: columns.map(|(name, column)| (name.to_string(), column)).into() }
    }

    /// Number of rows, which is that of every column.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, column)| column.len())
    }

    /// A column of unsigned 64-bit numbers.
    ///
    /// # Errors
    /// [`Error::Input`] when the table has no such column.
    pub fn u64(&self, name: &str) -> Result<&[u64]> {
        match self.columns.iter().find(|column| column.0 == name) {
            Some((_, Column::U64(values))) => Ok(values),
            _ => {
                Err(Error::input(name, "the table has no such column of unsigned numbers; was it written by webtwin?"))
            }
        }
    }

    /// A column of unsigned 32-bit numbers.
    ///
    /// # Errors
    /// [`Error::Input`] when the table has no such column.
    pub fn u32(&self, name: &str) -> Result<&[u32]> {
        match self.columns.iter().find(|column| column.0 == name) {
            Some((_, Column::U32(values))) => Ok(values),
            _ => Err(Error::input(name, "the table has no such column of 32-bit numbers; was it written by webtwin?")),
        }
    }

    /// A column of unsigned 64-bit numbers that may be empty.
    ///
    /// # Errors
    /// [`Error::Input`] when the table has no such column.
    pub fn optional_u64(&self, name: &str) -> Result<&[Option<u64>]> {
        match self.columns.iter().find(|column| column.0 == name) {
            Some((_, Column::OptionalU64(values))) => Ok(values),
            _ => Err(Error::input(
                name,
                "the table has no such column of numbers or nothing; was it written by webtwin?",
            )),
        }
    }

    /// A column of floating-point numbers.
    ///
    /// # Errors
    /// [`Error::Input`] when the table has no such column.
    pub fn f64(&self, name: &str) -> Result<&[f64]> {
        match self.columns.iter().find(|column| column.0 == name) {
            Some((_, Column::F64(values))) => Ok(values),
            _ => Err(Error::input(name, "the table has no such column of fractions; was it written by webtwin?")),
        }
    }

    /// A column of text.
    ///
    /// # Errors
    /// [`Error::Input`] when the table has no such column.
    pub fn text(&self, name: &str) -> Result<&[String]> {
        match self.columns.iter().find(|column| column.0 == name) {
            Some((_, Column::Text(values))) => Ok(values),
            _ => Err(Error::input(name, "the table has no such column of text; was it written by webtwin?")),
        }
    }

    /// Appends the rows of another part of the same table.
    ///
    /// # Errors
    /// [`Error::Input`] if its columns differ.
    pub fn append(&mut self, other: Table) -> Result<()> {
        if self.columns.is_empty() {
            *self = other;
            return Ok(());
        }
        let shape = |table: &Table| -> Vec<String> { table.columns.iter().map(|(name, c)| c.schema(name)).collect() };
        if shape(self) != shape(&other) {
            return Err(Error::input("a part of a table", "has other columns than the parts before it"));
        }
        for ((_, all), (_, more)) in self.columns.iter_mut().zip(other.columns) {
            all.append(more);
        }
        Ok(())
    }
}

/// Encodes rows as a Parquet file.
///
/// # Errors
/// [`Error::Invariant`] if the encoder fails, which it has no reason to.
pub fn encode(table: &Table) -> Result<Vec<u8>> {
    let schema: String = table.columns.iter().map(|(name, column)| column.schema(name)).collect();
    let broken = |cause: parquet::errors::ParquetError| Error::Invariant(format!("encoding a table: {cause}"));
    let schema = Arc::new(parse_message_type(&format!("message rows {{ {schema} }}")).map_err(broken)?);
    let properties = WriterProperties::builder()
        .set_created_by("webtwin".into())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3).map_err(broken)?))
        .build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).map_err(broken)?;
    let rows = table.rows();
    for start in (0..rows.max(1)).step_by(ROWS_A_GROUP) {
        let end = rows.min(start + ROWS_A_GROUP);
        let mut group = writer.next_row_group().map_err(broken)?;
        for (_, column) in &table.columns {
            let mut out = group.next_column().map_err(broken)?.expect("the schema has this column");
            write_values(column, start..end, out.untyped()).map_err(broken)?;
            out.close().map_err(broken)?;
        }
        group.close().map_err(broken)?;
    }
    writer.into_inner().map_err(broken)
}

fn write_values(
    column: &Column,
    rows: std::ops::Range<usize>,
    out: &mut ColumnWriter<'_>,
) -> std::result::Result<usize, parquet::errors::ParquetError> {
    match (column, out) {
        (Column::U64(values), ColumnWriter::Int64ColumnWriter(out)) => {
            out.write_batch(bytemuck::cast_slice(&values[rows]), None, None)
        }
        (Column::OptionalU64(values), ColumnWriter::Int64ColumnWriter(out)) => {
            let levels: Vec<i16> = values[rows.clone()].iter().map(|value| i16::from(value.is_some())).collect();
            let present: Vec<i64> = values[rows].iter().flatten().map(|&value| value as i64).collect();
            out.write_batch(&present, Some(&levels), None)
        }
        (Column::U32(values), ColumnWriter::Int32ColumnWriter(out)) => {
            out.write_batch(bytemuck::cast_slice(&values[rows]), None, None)
        }
        (Column::F64(values), ColumnWriter::DoubleColumnWriter(out)) => out.write_batch(&values[rows], None, None),
        (Column::Time(values), ColumnWriter::Int64ColumnWriter(out)) => {
            let millis: Vec<i64> = values[rows].iter().map(|seconds| seconds.saturating_mul(1000)).collect();
            out.write_batch(&millis, None, None)
        }
        (Column::Text(values), ColumnWriter::ByteArrayColumnWriter(out)) => {
            let bytes: Vec<ByteArray> = values[rows].iter().map(|text| ByteArray::from(text.as_str())).collect();
            out.write_batch(&bytes, None, None)
        }
        (Column::Bool(values), ColumnWriter::BoolColumnWriter(out)) => out.write_batch(&values[rows], None, None),
        _ => unreachable!("the schema was made from the column"),
    }
}

/// Decodes a Parquet file that [`encode`] wrote.
///
/// # Errors
/// [`Error::Input`] naming `file` if it is not Parquet, damaged, or has columns that our tables never have.
pub fn decode(file: &str, bytes: Vec<u8>) -> Result<Table> {
    let bad = |cause: parquet::errors::ParquetError| Error::input(file, format!("damaged Parquet: {cause}"));
    let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).map_err(bad)?;
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let mut table = Table::default();
    for number in 0..reader.num_row_groups() {
        let group = reader.get_row_group(number).map_err(bad)?;
        let rows = group.metadata().num_rows() as usize;
        let mut part = Table::default();
        for (at, described) in schema.columns().iter().enumerate() {
            let column = read_values(group.get_column_reader(at).map_err(bad)?, rows, described.max_def_level() > 0);
            let column = column.map_err(bad)?.ok_or_else(|| {
                Error::input(file, format!("column {} is of a type that webtwin does not write", described.name()))
            })?;
            let is_time = matches!(described.logical_type_ref(), Some(parquet::basic::LogicalType::Timestamp(_)));
            let column = match column {
                Column::U64(millis) if is_time => Column::Time(millis.iter().map(|&ms| ms as i64 / 1000).collect()),
                column => column,
            };
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

fn read_values(
    reader: ColumnReader,
    rows: usize,
    optional: bool,
) -> std::result::Result<Option<Column>, parquet::errors::ParquetError> {
    Ok(Some(match reader {
        ColumnReader::Int64ColumnReader(mut reader) => {
            let (mut values, mut levels): (Vec<i64>, Vec<i16>) = Default::default();
            reader.read_records(rows, optional.then_some(&mut levels), None, &mut values)?;
            if optional {
                let mut present = values.into_iter();
                let value = |level: i16| if level > 0 { present.next().map(|value| value as u64) } else { None };
                Column::OptionalU64(levels.into_iter().map(value).collect())
            } else {
                Column::U64(bytemuck::cast_vec(values))
            }
        }
        ColumnReader::Int32ColumnReader(mut reader) if !optional => {
            let mut values: Vec<i32> = Vec::new();
            reader.read_records(rows, None, None, &mut values)?;
            Column::U32(bytemuck::cast_vec(values))
        }
        ColumnReader::DoubleColumnReader(mut reader) if !optional => {
            let mut values = Vec::new();
            reader.read_records(rows, None, None, &mut values)?;
            Column::F64(values)
        }
        ColumnReader::BoolColumnReader(mut reader) if !optional => {
            let mut values = Vec::new();
            reader.read_records(rows, None, None, &mut values)?;
            Column::Bool(values)
        }
        ColumnReader::ByteArrayColumnReader(mut reader) if !optional => {
            let mut values: Vec<ByteArray> = Vec::new();
            reader.read_records(rows, None, None, &mut values)?;
            Column::Text(values.iter().map(|value| String::from_utf8_lossy(value.data()).into_owned()).collect())
        }
        _ => return Ok(None),
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(30))]
        #[test]
        fn what_is_encoded_decodes_to_the_same_rows_and_to_the_same_bytes_again(
            rows in prop::collection::vec((any::<u64>(), any::<Option<u64>>(), any::<u32>(), 0i64..1 << 40, ".{0,8}", any::<bool>(), 0.0..1.0), 0..50)
        ) {
            let table = Table::new([
                ("id", Column::U64(rows.iter().map(|r| r.0).collect())),
                ("maybe", Column::OptionalU64(rows.iter().map(|r| r.1).collect())),
                ("count", Column::U32(rows.iter().map(|r| r.2).collect())),
                ("time", Column::Time(rows.iter().map(|r| r.3).collect())),
                ("url", Column::Text(rows.iter().map(|r| r.4.clone()).collect())),
                ("exact", Column::Bool(rows.iter().map(|r| r.5).collect())),
                ("part", Column::F64(rows.iter().map(|r| r.6).collect())),
            ]);
            let bytes = encode(&table).unwrap();
            prop_assert_eq!(&bytes, &encode(&table).unwrap());
            prop_assert_eq!(decode("t", bytes).unwrap(), table);
        }
    }

    #[test]
    fn damage_is_an_error_that_names_the_file() {
        let bytes = encode(&Table::new([("id", Column::U64((0..1000).collect()))])).unwrap();
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
