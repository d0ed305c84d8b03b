//! Encoding of output tables as Parquet: row group by row group, on several threads if there are
//! several.
//!
//! Encoding columns takes most of the time. So a row group can be encoded separately from its file
//! and added to it later. The bytes of a file depend on the order of its row groups, and not on the
//! thread that encoded them.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, ZstdLevel};
use parquet::column::writer::{ColumnCloseResult, ColumnWriter, get_column_writer};
use parquet::data_type::ByteArray;
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnPath, SchemaDescPtr, SchemaDescriptor};

use super::table::{Table, TableColumn};
use super::texts::StringTable;
use webtwin_base::error::{Error, Result};
use webtwin_base::heap;

/// Number of rows of a row group: the number that a writer holds, and that a reader of a column
/// holds. DuckDB writes about as many.
const ROWS_A_GROUP: usize = 1 << 17;

/// Size of the end of a file in bytes, which is almost never exceeded.
const END_BYTES: usize = 1 << 16;

/// Number of rows that the encoder adds to a column in one call.
const ROWS_PER_SLICE: usize = 1 << 10;

/// Maximum rows and bytes at the beginning of a file that determine which columns have
/// dictionaries.
const INSPECTION_LIMIT: SizeLimit = SizeLimit { rows: 1 << 16, bytes: 8 << 20 };

/// Maximum rows and bytes that are produced and added to their columns at a time.
const SLICE: SizeLimit = SizeLimit { rows: 1 << 14, bytes: 8 << 20 };

/// Limit in rows and in bytes. The smaller one applies.
#[derive(Clone, Copy)]
struct SizeLimit {
    rows: usize,
    bytes: usize,
}

impl SizeLimit {
    /// Returns the number of rows at the beginning of a table that are within the limit: all, or a
    /// multiple of [`ROWS_PER_SLICE`], which is also the minimum.
    fn rows_within(self, table: &Table) -> usize {
        let row_count = table.rows();
        if row_count <= self.rows && table.bytes(0..row_count) <= self.bytes {
            return row_count;
        }
        let ends = (ROWS_PER_SLICE..=self.rows.min(row_count)).step_by(ROWS_PER_SLICE);
        ends.take_while(|&end| end == ROWS_PER_SLICE || table.bytes(0..end) <= self.bytes).last().unwrap_or(row_count)
    }
}

/// Encodes rows as a Parquet file.
///
/// # Errors
/// Returns [`Error::Invariant`] if the encoder fails, which is never expected.
pub fn encode(table: &Table) -> Result<Vec<u8>> {
    let mut encoder = TableEncoder::new(&Encoding::from_table(table)?)?;
    encoder.write(table)?;
    encoder.finish()
}

/// Encodes rows that arrive in pieces as a Parquet file, and passes the bytes to `write` in several
/// calls. The bytes equal those of [`encode`], however the rows are divided into pieces.
///
/// # Errors
/// Returns the errors of [`encode`]; [`Error::Input`] if pieces have different columns; and any
/// error of the pieces or of `write`.
///
/// # Memory
/// An encoded row group of 2^17 rows; 2^16 rows, or 8 MiB of them; and one piece.
pub fn encode_into(
    pieces: impl Iterator<Item = Result<Table>>,
    mut write: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut slices = Slices { pieces, buffered: Table::default() };
    let Some(first) = slices.next(INSPECTION_LIMIT)? else {
        return write(&encode(&slices.buffered)?);
    };
    let encoding = Encoding::from_table(&first)?;
    let mut encoder = TableEncoder::new(&encoding)?;
    let mut next = Some(first);
    while let Some(first) = next {
        encoder.append(encoding.group_of(first, &mut slices)?)?;
        write(&std::mem::take(encoder.0.inner_mut()))?;
        next = slices.next(SLICE)?;
    }
    write(&encoder.finish()?)
}

/// Iterator that divides the rows into slices of another size.
struct Slices<P> {
    pieces: P,
    buffered: Table,
}

impl<P: Iterator<Item = Result<Table>>> Slices<P> {
    /// Returns the next rows within the limit, or `None` at the end.
    fn next(&mut self, limit: SizeLimit) -> Result<Option<Table>> {
        let mut bytes = self.buffered.bytes(0..self.buffered.rows());
        while (self.buffered.rows() < limit.rows && bytes <= limit.bytes || self.buffered.rows() < ROWS_PER_SLICE)
            && let Some(piece) = self.pieces.next()
        {
            let piece = piece?;
            bytes += piece.bytes(0..piece.rows());
            self.buffered.append(piece)?;
        }
        if self.buffered.rows() == 0 {
            return Ok(None);
        }
        let remaining = self.buffered.split_off(limit.rows_within(&self.buffered));
        Ok(Some(std::mem::replace(&mut self.buffered, remaining)))
    }
}

/// Schema and encoding of a table's rows.
pub struct Encoding {
    columns: SchemaDescPtr,
    properties: WriterPropertiesPtr,
}

impl Encoding {
    /// Returns the encoding of a table that begins with the given rows, which determine the columns
    /// with dictionaries.
    ///
    /// # Errors
    /// Returns the errors of [`encode`].
    pub fn from_table(first: &Table) -> Result<Encoding> {
        let schema: String = first.columns.iter().map(|(name, column)| column.schema(name)).collect();
        let schema = Arc::new(parse_message_type(&format!("message rows {{ {schema} }}")).map_err(broken)?);
        let inspected_rows = INSPECTION_LIMIT.rows_within(first);
        let mut properties = WriterProperties::builder()
            .set_created_by("webtwin".into())
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(3).map_err(broken)?));
        for (name, column) in &first.columns {
            if !column.repeats_itself(inspected_rows) {
                properties = properties.set_column_dictionary_enabled(ColumnPath::from(name.as_str()), false);
            }
        }
        Ok(Encoding { columns: Arc::new(SchemaDescriptor::new(schema)), properties: Arc::new(properties.build()) })
    }

    /// Encodes rows, whose columns must be those of this encoding, as one or more row groups.
    ///
    /// # Errors
    /// Returns the errors of [`encode`].
    pub fn groups(&self, rows: &Table) -> Result<Vec<EncodedRowGroup>> {
        let starts = (0..rows.rows()).step_by(ROWS_A_GROUP);
        starts.map(|start| self.group(rows, start..rows.rows().min(start + ROWS_A_GROUP)).map_err(broken)).collect()
    }

    /// Encodes a slice and the following slices, up to the size of a row group.
    fn group_of<P: Iterator<Item = Result<Table>>>(
        &self,
        first: Table,
        slices: &mut Slices<P>,
    ) -> Result<EncodedRowGroup> {
        let mut encoded: Vec<TrackedWrite<Vec<u8>>> =
            first.columns.iter().map(|_| TrackedWrite::new(Vec::new())).collect();
        let mut writers: Vec<ColumnWriter<'_>> = encoded
            .iter_mut()
            .zip(self.columns.columns())
            .map(|(encoded, described)| {
                let pages = Box::new(SerializedPageWriter::new(encoded));
                get_column_writer(Arc::clone(described), Arc::clone(&self.properties), pages)
            })
            .collect();
        let (mut rows, mut next) = (0, Some(first));
        while let Some(slice) = next {
            for ((_, column), out) in slice.columns.iter().zip(&mut writers) {
                write_values(column, 0..slice.rows(), out).map_err(broken)?;
            }
            rows += slice.rows();
            drop(slice);
            let rows = SLICE.rows.min(ROWS_A_GROUP - rows);
            next = if rows > 0 { slices.next(SizeLimit { rows, ..SLICE })? } else { None };
        }
        let closed_columns: Vec<ColumnCloseResult> =
            writers.into_iter().map(|out| out.close().map_err(broken)).collect::<Result<_>>()?;
        let bytes = encoded.into_iter().map(|encoded| Ok(Bytes::from(encoded.into_inner().map_err(broken)?)));
        let bytes: Vec<Bytes> = bytes.collect::<Result<_>>()?;
        Ok(EncodedRowGroup { rows: rows as u64, columns: bytes.into_iter().zip(closed_columns).collect() })
    }

    fn group(&self, table: &Table, rows: Range<usize>) -> parquet::errors::Result<EncodedRowGroup> {
        let mut columns = Vec::with_capacity(table.columns.len());
        for ((_, column), described) in table.columns.iter().zip(self.columns.columns()) {
            let mut encoded = TrackedWrite::new(Vec::new());
            let pages = Box::new(SerializedPageWriter::new(&mut encoded));
            let mut out = get_column_writer(Arc::clone(described), Arc::clone(&self.properties), pages);
            write_values(column, rows.clone(), &mut out)?;
            let column_close = out.close()?;
            columns.push((Bytes::from(encoded.into_inner()?), column_close));
        }
        Ok(EncodedRowGroup { rows: rows.len() as u64, columns })
    }
}

/// Rows of a table, encoded as a row group.
pub struct EncodedRowGroup {
    rows: u64,
    columns: Vec<(Bytes, ColumnCloseResult)>,
}

impl EncodedRowGroup {
    /// Returns the number of rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }
}

/// Parquet file that is encoded in pieces.
pub struct TableEncoder(SerializedFileWriter<Vec<u8>>);

impl TableEncoder {
    /// Begins a file.
    ///
    /// # Errors
    /// Returns the errors of [`encode`].
    pub fn new(encoding: &Encoding) -> Result<TableEncoder> {
        let (schema, properties) = (encoding.columns.root_schema_ptr(), Arc::clone(&encoding.properties));
        SerializedFileWriter::new(Vec::new(), schema, properties).map(TableEncoder).map_err(broken)
    }

    /// Adds rows, whose columns must be those of the file's encoding. Zero rows are also written as
    /// a row group, so that the file has the columns.
    ///
    /// # Errors
    /// Returns the errors of [`encode`].
    pub fn write(&mut self, table: &Table) -> Result<()> {
        let rows = table.rows();
        for start in (0..rows.max(1)).step_by(ROWS_A_GROUP) {
            let end = rows.min(start + ROWS_A_GROUP);
            let mut group = self.0.next_row_group().map_err(broken)?;
            for (_, column) in &table.columns {
                let mut out = group.next_column().map_err(broken)?.expect("the schema has this column");
                write_values(column, start..end, out.untyped()).map_err(broken)?;
                out.close().map_err(broken)?;
            }
            group.close().map_err(broken)?;
        }
        Ok(())
    }

    /// Adds a row group that was encoded separately in the same [`Encoding`].
    ///
    /// # Errors
    /// Returns the errors of [`encode`].
    pub fn append(&mut self, group: EncodedRowGroup) -> Result<()> {
        // Includes the end of the file, for which the allocation would otherwise be doubled.
        let bytes: usize = group.columns.iter().map(|(encoded, _)| encoded.len()).sum();
        self.0.inner_mut().reserve_exact(bytes + END_BYTES);
        let mut into = self.0.next_row_group().map_err(broken)?;
        for (encoded, column_close) in group.columns {
            into.append_column(&encoded, column_close).map_err(broken)?;
        }
        into.close().map(drop).map_err(broken)
    }

    /// Returns the number of bytes encoded so far.
    pub fn len(&self) -> usize {
        self.0.bytes_written()
    }

    /// True if nothing has been encoded.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ends the file and returns its remaining bytes.
    ///
    /// # Errors
    /// Returns the errors of [`encode`].
    pub fn finish(self) -> Result<Vec<u8>> {
        self.0.into_inner().map_err(broken)
    }
}

fn broken(cause: parquet::errors::ParquetError) -> Error {
    let message = format!("encoding a table: {cause}");
    heap::end_if_for_want_of_memory(&message);
    Error::Invariant(message)
}

fn write_values(
    column: &TableColumn,
    rows: Range<usize>,
    out: &mut ColumnWriter<'_>,
) -> std::result::Result<usize, parquet::errors::ParquetError> {
    match (column, out) {
        (TableColumn::Id(values) | TableColumn::Count(values), ColumnWriter::Int64ColumnWriter(out)) => {
            out.write_batch(bytemuck::cast_slice(&values[rows]), None, None)
        }
        (TableColumn::U32(values), ColumnWriter::Int32ColumnWriter(out)) => {
            out.write_batch(bytemuck::cast_slice(&values[rows]), None, None)
        }
        (TableColumn::F64(values), ColumnWriter::DoubleColumnWriter(out)) => out.write_batch(&values[rows], None, None),
        (TableColumn::Time(values), ColumnWriter::Int64ColumnWriter(out)) => {
            let millis: Vec<i64> = values[rows].iter().map(|seconds| seconds.saturating_mul(1000)).collect();
            out.write_batch(&millis, None, None)
        }
        (TableColumn::Text(values), ColumnWriter::ByteArrayColumnWriter(out)) => {
            let starts = rows.clone().step_by(ROWS_PER_SLICE);
            let mut pieces = starts.map(|start| start..rows.end.min(start + ROWS_PER_SLICE));
            pieces.try_fold(0, |written, piece| Ok(written + out.write_batch(&byte_arrays(values, piece), None, None)?))
        }
        (TableColumn::Bool(values), ColumnWriter::BoolColumnWriter(out)) => out.write_batch(&values[rows], None, None),
        _ => unreachable!("the schema was made from the column"),
    }
}

/// Returns texts in the form of the `parquet` crate. All share one buffer, because a buffer for
/// each text would cost as much as encoding it.
fn byte_arrays(texts: &StringTable, rows: Range<usize>) -> Vec<ByteArray> {
    let shared_bytes = bytes::Bytes::copy_from_slice(texts.joined_bytes(rows.clone()));
    let mut at = 0;
    let part = |row: usize| {
        let start = at;
        at += texts[row].len();
        ByteArray::from(shared_bytes.slice(start..at))
    };
    rows.map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(range: Range<u64>) -> Table {
        Table::new([
            ("id", TableColumn::Id(range.clone().map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect())),
            ("time", TableColumn::Time(range.clone().map(|n| 3 * n as i64).collect())),
            ("url", TableColumn::Text(range.clone().map(|n| format!("http://a/{n}")).collect())),
            ("what", TableColumn::Text(range.clone().map(|n| ["", "same"][(n % 2) as usize]).collect())),
            (
                "long",
                TableColumn::Text(range.clone().map(|n| "x".repeat(if n % 97 == 0 { 2000 } else { 0 })).collect()),
            ),
            ("n", TableColumn::U32(range.clone().map(|n| n as u32 / 5).collect())),
            ("is", TableColumn::Bool(range.map(|n| n % 3 == 0).collect())),
        ])
    }

    fn written(pieces: impl Iterator<Item = Table>) -> Vec<u8> {
        let mut written = Vec::new();
        let write = |bytes: &[u8]| {
            written.extend_from_slice(bytes);
            Ok(())
        };
        encode_into(pieces.map(Ok), write).unwrap();
        written
    }

    #[test]
    fn file_has_the_same_bytes_for_any_division_into_pieces() {
        let slice = INSPECTION_LIMIT.rows as u64;
        let group = ROWS_A_GROUP as u64;
        for ends in [&[0][..], &[1], &[slice], &[5, 6, slice + 1], &[slice - 1, 3 * slice], &[7, group - 3, group + 9]]
        {
            let starts = std::iter::once(0).chain(ends.iter().copied());
            let pieces = starts.zip(ends).map(|(start, &end)| rows(start..end));
            let whole = encode(&rows(0..ends[ends.len() - 1])).unwrap();
            assert!(written(pieces) == whole, "{ends:?}");
        }
    }

    #[test]
    fn file_of_long_rows_has_the_same_bytes_for_any_division_and_buffers_few_rows() {
        let rows = |range: Range<usize>| {
            let text = |n: usize| format!("{}{}", "x".repeat(9000), n % 3000);
            Table::new([
                ("long", TableColumn::Text(range.clone().map(text).collect())),
                ("n", TableColumn::U32(range.map(|n| n as u32).collect())),
            ])
        };
        let table = rows(0..6000);
        let inspected_rows = INSPECTION_LIMIT.rows_within(&table);
        assert!(
            inspected_rows.is_multiple_of(ROWS_PER_SLICE)
                && (1..6000).contains(&inspected_rows)
                && SLICE.rows_within(&table) == ROWS_PER_SLICE
        );
        let whole = encode(&table).unwrap();
        for ends in [
            &[6000][..],
            &[1, 1024, 1030, 6000],
            &[inspected_rows, inspected_rows + 1, 6000],
            &[2000, 3500, 5990, 6000],
        ] {
            let starts = std::iter::once(0).chain(ends.iter().copied());
            let pieces = starts.zip(ends).map(|(start, &end)| rows(start..end));
            assert!(written(pieces) == whole, "{ends:?}");
        }
    }

    #[test]
    fn file_has_the_same_bytes_if_its_groups_are_encoded_separately() {
        let parts = [rows(0..70_000), rows(70_000..70_001), rows(70_001..130_000)];
        let encoding = Encoding::from_table(&parts[0]).unwrap();
        let (mut whole, mut grouped) = (TableEncoder::new(&encoding).unwrap(), TableEncoder::new(&encoding).unwrap());
        let mut groups: Vec<EncodedRowGroup> =
            parts.iter().rev().flat_map(|part| encoding.groups(part).unwrap()).collect();
        parts.iter().for_each(|part| whole.write(part).unwrap());
        while let Some(group) = groups.pop() {
            grouped.append(group).unwrap();
        }
        assert!(whole.finish().unwrap() == grouped.finish().unwrap());
    }
}
