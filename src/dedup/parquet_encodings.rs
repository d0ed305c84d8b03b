//! Settings of a Parquet writer that preserve the encodings of the original file.
//!
//! The library's defaults depend only on the format version. Those of version 2 encode strings as
//! `DELTA_BYTE_ARRAY`, which PyArrow cannot read into a column of dictionary type, and limit a
//! dictionary to 1 MiB, after which polars cannot read a column of categories. A reader that can
//! open the original should be able to open the copy.

use parquet::basic::{Encoding, PageType};
use parquet::column::page::Page;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::properties::{DEFAULT_DICTIONARY_PAGE_SIZE_LIMIT, WriterPropertiesBuilder, WriterVersion};
use parquet::file::reader::FileReader;

use webtwin_storage::parquet_file::ParquetFile;

/// Sets version, encodings and dictionaries to those of a file.
///
/// A column has one encoding in addition to its dictionary: the first one that occurs in the row
/// groups.
///
/// # Cost
/// If the footer has no page statistics, the dictionaries of columns of more than 1 MiB are read.
pub(crate) fn keep(input: &ParquetFile, mut properties: WriterPropertiesBuilder) -> WriterPropertiesBuilder {
    let metadata = input.reader.metadata();
    let groups = metadata.row_groups();
    let has_new_pages = groups.iter().flat_map(|group| group.columns()).any(|column| {
        let pages = column.page_encoding_stats().map_or(&[][..], Vec::as_slice);
        pages.iter().any(|pages| pages.page_type == PageType::DATA_PAGE_V2)
    });
    // The version in the footer does not determine the version of the pages: PyArrow and others
    // write version 2 there, with pages of version 1.
    properties = properties.set_writer_version(match has_new_pages {
        true => WriterVersion::PARQUET_2_0,
        false => WriterVersion::PARQUET_1_0,
    });
    for leaf in 0..metadata.file_metadata().schema_descr().num_columns() {
        let encodings: Vec<Encoding> =
            groups.iter().filter_map(|group| group.columns().get(leaf)).flat_map(value_encodings).collect();
        let Some(path) = groups.first().map(|group| group.column(leaf).column_path().clone()) else { continue };
        let has_dictionary = encodings.iter().any(is_dictionary);
        // No current library writes BIT_PACKED.
        #[allow(deprecated)]
        let is_other = |encoding: &&Encoding| !is_dictionary(encoding) && **encoding != Encoding::BIT_PACKED;
        let other_encoding = encodings.iter().find(is_other).copied();
        properties = properties
            .set_column_dictionary_enabled(path.clone(), has_dictionary)
            .set_column_encoding(path.clone(), other_encoding.unwrap_or(Encoding::PLAIN));
        if has_dictionary {
            // The kept values fit into a dictionary of the size of the original one.
            let max_bytes = match other_encoding {
                None => usize::MAX,
                Some(_) => (0..groups.len()).map(|group| dictionary_bytes(input, group, leaf)).max().unwrap_or(0),
            };
            let limit = max_bytes.saturating_add(1).max(DEFAULT_DICTIONARY_PAGE_SIZE_LIMIT);
            properties = properties.set_column_dictionary_page_size_limit(path, limit);
        }
    }
    properties
}

fn is_dictionary(encoding: &Encoding) -> bool {
    matches!(encoding, Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY)
}

/// Returns the size of a column's dictionary in a row group in bytes, if it is needed to find out
/// if all values are in it; 0 otherwise.
fn dictionary_bytes(input: &ParquetFile, group: usize, leaf: usize) -> usize {
    let column = input.reader.metadata().row_group(group).column(leaf);
    let is_small = column.uncompressed_size().unsigned_abs() < DEFAULT_DICTIONARY_PAGE_SIZE_LIMIT as u64;
    if is_small || column.page_encoding_stats().is_some() {
        return 0;
    }
    let first = input.guard(|| input.reader.get_row_group(group)?.get_column_page_reader(leaf)?.get_next_page());
    match first {
        Ok(Some(Page::DictionaryPage { buf, .. })) => buf.len(),
        // Damage is reported when the values are copied.
        _ => 0,
    }
}

/// Returns the encodings of a column's values in its data pages.
fn value_encodings(column: &ColumnChunkMetaData) -> Vec<Encoding> {
    let is_data = |page: PageType| matches!(page, PageType::DATA_PAGE | PageType::DATA_PAGE_V2);
    match column.page_encoding_stats() {
        Some(pages) => pages.iter().filter(|pages| is_data(pages.page_type)).map(|pages| pages.encoding).collect(),
        // The list also contains the encoding of levels, and PLAIN for the dictionary. So it does
        // not show if the writer abandoned the dictionary.
        None => column.encodings().filter(|encoding| *encoding != Encoding::RLE).collect(),
    }
}

#[cfg(test)]
mod tests {
    use parquet::file::properties::WriterProperties;
    use parquet::file::reader::SerializedFileReader;
    use parquet::file::serialized_reader::ReadOptionsBuilder;

    use super::super::parquet_copy::RowActions;
    use super::super::parquet_copy::tests::{TestRow, copied, encoded_with};
    use super::*;

    /// Returns the types and encodings of the pages of each column of each row group.
    fn pages(file: &[u8]) -> Vec<Vec<(PageType, Encoding)>> {
        let options = ReadOptionsBuilder::new().with_encoding_stats_as_mask(false).build();
        let reader = SerializedFileReader::new_with_options(bytes::Bytes::from(file.to_vec()), options).unwrap();
        let kinds = |column: &ColumnChunkMetaData| {
            let pages = column.page_encoding_stats().unwrap();
            pages.iter().map(|pages| (pages.page_type, pages.encoding)).collect()
        };
        reader.metadata().row_groups().iter().flat_map(|group| group.columns()).map(kinds).collect()
    }

    #[test]
    fn a_copy_has_the_pages_and_encodings_of_its_original() {
        // Half of the texts, all of which differ, exceed the default limit of a dictionary.
        let text = |row: i64| Some(format!("{row} {}", "x".repeat(1000)));
        let rows: Vec<TestRow> =
            (0..3000).map(|row| (row, text(row), Some(vec![None, Some(row as i32 % 7)]))).collect();
        let groups: Vec<Vec<TestRow>> = rows.chunks(2500).map(<[TestRow]>::to_vec).collect();
        let new = || WriterProperties::builder().set_writer_version(WriterVersion::PARQUET_2_0);
        let old = WriterProperties::builder;
        let (text, id) = (|| "text".into(), || "id".into());
        for (case, properties) in [
            ("defaults", old()),
            ("defaults of version 2", new()),
            ("no dictionary", old().set_dictionary_enabled(false)),
            ("no dictionary in version 2", new().set_dictionary_enabled(false)),
            ("a large dictionary", old().set_dictionary_page_size_limit(usize::MAX)),
            ("a large dictionary in version 2", new().set_dictionary_page_size_limit(usize::MAX)),
            ("plain strings in version 2", new().set_column_encoding(text(), Encoding::PLAIN)),
            (
                "each of its own",
                old()
                    .set_dictionary_enabled(false)
                    .set_column_encoding(text(), Encoding::DELTA_LENGTH_BYTE_ARRAY)
                    .set_column_encoding(id(), Encoding::BYTE_STREAM_SPLIT),
            ),
        ] {
            let original = encoded_with(&groups, properties.build());
            let (copy, _) = copied(&original, &RowActions { is_kept: &|row| row % 4 != 3, notes: None });
            assert_eq!(pages(&copy), pages(&original), "{case}");
        }
    }
}
