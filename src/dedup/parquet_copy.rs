//! Copy of the kept rows of a Parquet file, with all columns.
//!
//! Values are moved from column to column at the level of the format, for all types and any depth
//! of nesting. Nothing is converted, so schema, metadata and values are preserved. Row groups are
//! preserved, except those that lose all rows. Columns keep their compression and their encodings
//! ([`super::parquet_encodings`]).

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::column::writer::{ColumnWriter, ColumnWriterImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::{ParquetError, Result as Copied};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::FileReader;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnDescPtr, Type};

use super::annotate::{RecordNote, existing_field_error};
use super::inputs::CorpusFile;
use super::parquet_encodings;
use super::parquet_texts::damaged;
use webtwin_base::error::{Error, Result};
use webtwin_storage::open::open_pinned;
use webtwin_storage::parquet_file::{Fault, ParquetFile, rows_of};

/// Number of rows of a column that are held at a time.
const ROWS: usize = 512;

/// Key of Arrow's own schema in the metadata. Readers compare it with the schema of the file.
const ARROW_SCHEMA: &str = "ARROW:schema";

/// Selection and annotation of the rows of a file.
pub(crate) struct RowActions<'r> {
    /// Predicate that is true for the rows of the file that are kept.
    pub is_kept: &'r dyn Fn(u64) -> bool,
    /// Names of the added columns, and a function that returns their values for a kept row.
    #[allow(clippy::type_complexity)]
    pub notes: Option<(&'r [String; 3], &'r dyn Fn(u64) -> Result<RecordNote>)>,
}

/// Writes the kept rows of a file to `sink`. Returns `sink` and the number of rows.
///
/// # Errors
/// Returns [`Error::Input`] if the file is damaged or already has one of the added columns, and any
/// error of `sink`.
///
/// # Cost
/// One pass over the file. Memory for a few pages and 512 rows of one column.
pub(crate) fn copy<W: Write + Send>(file: &CorpusFile, rows: &RowActions<'_>, sink: W) -> Result<(W, u64)> {
    let name = file.name();
    let open_file = open_pinned(&file.location, &file.stamp)?;
    let input = ParquetFile::open(open_file).map_err(|fault| fault.of_input(name))?;
    let metadata = input.reader.metadata();
    let schema = schema(metadata, rows).map_err(|_| existing_field_error(name, None))?;
    let failed = |cause: ParquetError| write_failed(name, cause);
    let mut writer = SerializedFileWriter::new(sink, schema, Arc::new(properties(&input, rows))).map_err(failed)?;
    let (mut first, mut n_kept) = (0, 0);
    for group in 0..metadata.num_row_groups() {
        let is_kept: Vec<bool> = (0..rows_of(&input, group) as u64).map(|row| (rows.is_kept)(first + row)).collect();
        if is_kept.contains(&true) {
            n_kept += is_kept.iter().filter(|is_kept| **is_kept).count() as u64;
            let mut group_writer = writer.next_row_group().map_err(failed)?;
            copy_group(&input, name, group, &is_kept, &mut group_writer)?;
            if let Some((_, note)) = rows.notes {
                let places = (first..).zip(&is_kept).filter(|(_, is_kept)| **is_kept);
                let notes = places.map(|(row, _)| note(row)).collect::<Result<Vec<RecordNote>>>()?;
                add_notes(&notes, &mut group_writer).map_err(failed)?;
            }
            group_writer.close().map_err(failed)?;
        }
        first += is_kept.len() as u64;
    }
    let inner = writer.into_inner().map_err(failed)?;
    Ok((inner, n_kept))
}

fn write_failed(name: &str, cause: ParquetError) -> Error {
    if let ParquetError::External(inner) = cause {
        // An error of this program's own sink is wrapped by the `parquet` crate and the standard
        // library.
        let inner = match inner.downcast::<std::io::Error>() {
            Ok(io) => match io.into_inner().map(|inner| inner.downcast::<Error>()) {
                Some(Ok(error)) => return *error,
                _ => return Error::storage(name, "writing its kept rows failed"),
            },
            Err(result) => result,
        };
        return Error::storage(name, inner);
    }
    Error::input(name, format!("bad_parquet: its rows cannot be copied: {cause}"))
}

/// Returns the schema of the file, followed by the added columns.
fn schema(metadata: &ParquetMetaData, rows: &RowActions<'_>) -> Copied<Arc<Type>> {
    let root = metadata.file_metadata().schema_descr().root_schema_ptr();
    let Some((names, _)) = rows.notes else { return Ok(root) };
    let mut fields = root.get_fields().to_vec();
    let kinds = [
        (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        (Physical::DOUBLE, None),
        (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    ];
    for (name, (physical, logical)) in names.iter().zip(kinds) {
        if fields.iter().any(|field| field.name() == name) {
            return Err(ParquetError::General(format!("column {name} exists already")));
        }
        let column = Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL);
        fields.push(Arc::new(column.with_logical_type(logical).build()?));
    }
    Type::group_type_builder(root.name()).with_fields(fields).build().map(Arc::new)
}

fn properties(input: &ParquetFile, rows: &RowActions<'_>) -> WriterProperties {
    let metadata = input.reader.metadata();
    let mut pairs = metadata.file_metadata().key_value_metadata().cloned();
    if rows.notes.is_some()
        && let Some(pairs) = &mut pairs
    {
        // Arrow's schema would lack the added columns, which some readers treat as damage.
        pairs.retain(|pair| pair.key != ARROW_SCHEMA);
    }
    let mut properties = WriterProperties::builder().set_key_value_metadata(pairs).set_max_row_group_row_count(None);
    if let Some(group) = metadata.row_groups().first() {
        properties = properties.set_sorting_columns(group.sorting_columns().cloned());
        for column in group.columns() {
            properties = properties.set_column_compression(column.column_path().clone(), column.compression());
        }
    }
    parquet_encodings::keep(input, properties).build()
}

fn copy_group<W: Write + Send>(
    input: &ParquetFile,
    name: &str,
    group: usize,
    is_kept: &[bool],
    group_writer: &mut SerializedRowGroupWriter<'_, W>,
) -> Result<()> {
    let columns = input.reader.metadata().file_metadata().schema_descr().columns();
    for (leaf, column) in columns.iter().enumerate() {
        let reader = input.column(group, leaf).map_err(|fault| damaged(name, group, fault))?;
        let failed = |cause: ParquetError| write_failed(name, cause);
        let mut writer = group_writer
            .next_column()
            .map_err(failed)?
            .ok_or_else(|| Error::Invariant(format!("{name} has more columns than the schema of its copy")))?;
        let result = input.guard(|| copy_column(reader, column, is_kept, writer.untyped()));
        result.map_err(|fault| match fault {
            Fault::Content(_) => damaged(name, group, fault),
            Fault::Run(error) => error,
        })?;
        writer.close().map_err(failed)?;
    }
    Ok(())
}

fn copy_column(
    reader: ColumnReader,
    column: &ColumnDescPtr,
    is_kept: &[bool],
    writer: &mut ColumnWriter<'_>,
) -> Copied<()> {
    // The reader and the writer of a type have separate variants, so each arm names both.
    macro_rules! arms {
        ($($reader:ident $writer:ident),*) => {
            match (reader, writer) {
                $((ColumnReader::$reader(reader), ColumnWriter::$writer(writer)) => {
                    copy_values(reader, column, is_kept, writer)
                })*
                _ => Err(ParquetError::General("a column changes its type".into())),
            }
        };
    }
    arms!(
        BoolColumnReader BoolColumnWriter,
        Int32ColumnReader Int32ColumnWriter,
        Int64ColumnReader Int64ColumnWriter,
        Int96ColumnReader Int96ColumnWriter,
        FloatColumnReader FloatColumnWriter,
        DoubleColumnReader DoubleColumnWriter,
        ByteArrayColumnReader ByteArrayColumnWriter,
        FixedLenByteArrayColumnReader FixedLenByteArrayColumnWriter
    )
}

/// Copies the values of the kept rows. A row begins where the repetition level is 0. A value is
/// present where the definition level is the maximum.
fn copy_values<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    column: &ColumnDescPtr,
    is_kept: &[bool],
    writer: &mut ColumnWriterImpl<'_, T>,
) -> Copied<()> {
    let (max_level, repeats) = (column.max_def_level(), column.max_rep_level() > 0);
    let (mut levels, mut repetitions, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let mut row = 0;
    while row < is_kept.len() {
        levels.clear();
        repetitions.clear();
        values.clear();
        let n_wanted = ROWS.min(is_kept.len() - row);
        let (records, n_values, n_levels) = reader.read_records(
            n_wanted,
            (max_level > 0).then_some(&mut levels),
            repeats.then_some(&mut repetitions),
            &mut values,
        )?;
        if records == 0 {
            return Err(ParquetError::EOF(format!("a column ends {} rows early", is_kept.len() - row)));
        }
        let slots = if max_level > 0 { n_levels } else { n_values };
        let (mut number, mut value, mut end) = (row, 0, 0);
        let (mut kept_slots, mut kept_values) = (0, 0);
        while end < slots {
            // Extends the row to all of its slots.
            let start = end;
            end += 1;
            while repeats && end < slots && repetitions[end] > 0 {
                end += 1;
            }
            let is_kept_row = is_kept[number];
            // Kept slots and values are moved to the front of their buffers, which avoids a copy of
            // the dropped ones.
            for slot in start..end {
                let is_present = max_level == 0 || levels[slot] == max_level;
                if is_kept_row {
                    if max_level > 0 {
                        levels[kept_slots] = levels[slot];
                    }
                    if repeats {
                        repetitions[kept_slots] = repetitions[slot];
                    }
                    kept_slots += 1;
                    if is_present {
                        values.swap(kept_values, value);
                        kept_values += 1;
                    }
                }
                value += usize::from(is_present);
            }
            number += 1;
        }
        let levels = (max_level > 0).then(|| &levels[..kept_slots]);
        let repetitions = repeats.then(|| &repetitions[..kept_slots]);
        if kept_slots > 0 {
            writer.write_batch(&values[..kept_values], levels, repetitions)?;
        }
        row += records;
    }
    Ok(())
}

fn add_notes<W: Write + Send>(notes: &[RecordNote], group_writer: &mut SerializedRowGroupWriter<'_, W>) -> Copied<()> {
    for column in 0..3 {
        let Some(mut writer) = group_writer.next_column()? else {
            return Err(ParquetError::General("the added columns are not in the schema".into()));
        };
        match writer.untyped() {
            ColumnWriter::DoubleColumnWriter(writer) => {
                let levels: Vec<i16> = notes.iter().map(|note| i16::from(note.similarity.is_some())).collect();
                let values: Vec<f64> = notes.iter().filter_map(|note| note.similarity).collect();
                writer.write_batch(&values, Some(&levels), None)?;
            }
            ColumnWriter::ByteArrayColumnWriter(writer) => {
                let text =
                    |note: &'_ RecordNote| if column == 0 { note.duplicate_of.clone() } else { note.cluster.clone() };
                let levels: Vec<i16> = notes.iter().map(|note| i16::from(text(note).is_some())).collect();
                let values: Vec<ByteArray> =
                    notes.iter().filter_map(text).map(|text| ByteArray::from(text.into_bytes())).collect();
                writer.write_batch(&values, Some(&levels), None)?;
            }
            _ => return Err(ParquetError::General("the added columns have other types".into())),
        }
        writer.close()?;
    }
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use parquet::basic::{Compression, ZstdLevel};
    use parquet::data_type::{ByteArrayType, Int32Type, Int64Type};
    use parquet::file::metadata::KeyValue;
    use parquet::file::reader::SerializedFileReader;
    use parquet::schema::parser::parse_message_type;
    use proptest::prelude::*;

    use super::super::inputs::CorpusFormat;
    use super::*;
    use webtwin_storage::location::Location;

    /// Generated row: id, text and tags.
    pub(crate) type TestRow = (i64, Option<String>, Option<Vec<Option<i32>>>);

    const SCHEMA: &str = "message m { required int64 id; optional binary text (STRING);
        optional group tags (LIST) { repeated group list { optional int32 element; } } }";

    fn encode_rows(groups: &[Vec<TestRow>]) -> Vec<u8> {
        let pair = |key: &str| KeyValue::new(key.to_string(), Some("value".to_string()));
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_key_value_metadata(Some(vec![pair("pandas"), pair(ARROW_SCHEMA)]))
            .build();
        encoded_with(groups, properties)
    }

    /// Returns a file with one row group for each entry of `groups`.
    pub(crate) fn encoded_with(groups: &[Vec<TestRow>], properties: WriterProperties) -> Vec<u8> {
        let schema = Arc::new(parse_message_type(SCHEMA).unwrap());
        let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
        for rows in groups {
            let mut group = file.next_row_group().unwrap();
            let mut column = group.next_column().unwrap().unwrap();
            let ids: Vec<i64> = rows.iter().map(|row| row.0).collect();
            column.typed::<Int64Type>().write_batch(&ids, None, None).unwrap();
            column.close().unwrap();
            let mut column = group.next_column().unwrap().unwrap();
            let texts: Vec<ByteArray> = rows.iter().filter_map(|row| row.1.as_deref()).map(ByteArray::from).collect();
            let levels: Vec<i16> = rows.iter().map(|row| i16::from(row.1.is_some())).collect();
            column.typed::<ByteArrayType>().write_batch(&texts, Some(&levels), None).unwrap();
            column.close().unwrap();
            let mut column = group.next_column().unwrap().unwrap();
            let (mut values, mut levels, mut repetitions) = (Vec::new(), Vec::new(), Vec::new());
            for (_, _, tags) in rows {
                match tags {
                    Some(tags) if !tags.is_empty() => {
                        for (number, tag) in tags.iter().enumerate() {
                            levels.push(if tag.is_some() { 3 } else { 2 });
                            repetitions.push(i16::from(number > 0));
                            values.extend(tag);
                        }
                    }
                    tags => {
                        levels.push(i16::from(tags.is_some()));
                        repetitions.push(0);
                    }
                }
            }
            column.typed::<Int32Type>().write_batch(&values, Some(&levels), Some(&repetitions)).unwrap();
            column.close().unwrap();
            group.close().unwrap();
        }
        file.into_inner().unwrap()
    }

    fn message(bytes: Vec<u8>) -> Vec<String> {
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        reader.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect()
    }

    /// Returns a copy of a file, and its number of rows.
    pub(crate) fn copied(bytes: &[u8], rows: &RowActions<'_>) -> (Vec<u8>, u64) {
        let folder = tempfile::tempdir().unwrap();
        let location = Location::parse(folder.path().join("x.parquet").to_str().unwrap()).unwrap();
        location.put(bytes).unwrap();
        let stamp = location.stamp().unwrap().unwrap();
        copy(&CorpusFile { location, stamp, format: CorpusFormat::Parquet, path: None }, rows, Vec::new()).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn kept_rows_are_unchanged(
            rows in prop::collection::vec(
                (
                    any::<i64>(),
                    prop::option::of("[a-z ]{0,9}"),
                    prop::option::of(prop::collection::vec(prop::option::of(0i32..9), 0..4)),
                ),
                0..40,
            ),
            more in 0usize..1500, group in 1usize..700, seed: u64,
        ) {
            let rows: Vec<TestRow> = rows.iter().cycle().take(if rows.is_empty() { 0 } else { more }).cloned().collect();
            let bytes = encode_rows(&rows.chunks(group).map(<[TestRow]>::to_vec).collect::<Vec<_>>());
            let is_kept = |row: u64| !(seed ^ row.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7).is_multiple_of(3);
            let all = message(bytes.clone());
            let want: Vec<&String> = (0..).zip(&all).filter(|(row, _)| is_kept(*row)).map(|(_, row)| row).collect();
            let (copy, kept) = copied(&bytes, &RowActions { is_kept: &is_kept, notes: None });
            prop_assert_eq!(kept as usize, want.len());
            let got = message(copy.clone());
            prop_assert_eq!(got.iter().collect::<Vec<_>>(), want);
            let old = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
            let new = SerializedFileReader::new(bytes::Bytes::from(copy)).unwrap();
            let (old, new) = (old.metadata(), new.metadata());
            prop_assert_eq!(old.file_metadata().schema(), new.file_metadata().schema());
            prop_assert_eq!(old.file_metadata().key_value_metadata(), new.file_metadata().key_value_metadata());
            for group in new.row_groups() {
                prop_assert!(group.columns().iter().all(|column| matches!(column.compression(), Compression::ZSTD(_))));
            }
        }
    }

    #[test]
    fn annotations_become_columns_and_the_arrow_schema_is_dropped() {
        let rows: Vec<TestRow> = (0..3).map(|id| (id, Some("x".into()), None)).collect();
        let bytes = encode_rows(&[rows]);
        let names = ["duplicate_of", "similarity", "cluster"].map(String::from);
        let note = |row: u64| {
            let id = |is: bool| is.then(|| "k".to_string());
            Ok(RecordNote { duplicate_of: id(row == 1), similarity: (row == 1).then_some(0.5), cluster: id(row < 2) })
        };
        let (copy, _) = copied(&bytes, &RowActions { is_kept: &|_| true, notes: Some((&names, &note)) });
        let schema_text = message(copy.clone());
        assert!(schema_text[1].contains("duplicate_of: \"k\", similarity: 0.5, cluster: \"k\""), "{}", schema_text[1]);
        assert!(schema_text[2].contains("duplicate_of: null, similarity: null, cluster: null"), "{}", schema_text[2]);
        let reader = SerializedFileReader::new(bytes::Bytes::from(copy)).unwrap();
        let pairs = reader.metadata().file_metadata().key_value_metadata().unwrap();
        assert_eq!(pairs.iter().map(|pair| pair.key.as_str()).collect::<Vec<_>>(), ["pandas"]);
    }
}
