//! Parquet crawls: one row per page, with columns for the URL and for HTML or text, which may be in
//! groups of columns. One worker reads one row group at a time.

use std::ops::Range;
use std::sync::Arc;

use parquet::basic::Type as Physical;
use parquet::data_type::ByteArray;
use parquet::file::reader::FileReader;

use super::parquet_columns::{self, GroupColumn, is_string, is_time};
use super::record::{PageForm, RawPage, ReadResult, Reason, RecordSink, RefusedRecord};
use webtwin_base::error::{Error, Result};
use webtwin_base::read_at::RandomAccess;
use webtwin_job::FieldNames;
use webtwin_job::RecordLimits;
use webtwin_storage::parquet_file::{Fault, ParquetFile, has_rows_below_zero, rows_of};

/// Number of rows decoded together: enough to amortise the calls, too few for large pages to
/// accumulate.
const BATCH: usize = 64;

/// A Parquet crawl whose columns have been found and validated.
pub struct ParquetRows {
    file: ParquetFile,
    /// Leaf columns of URL, HTML, text and time.
    leaves: [Option<usize>; 4],
}

impl ParquetRows {
    /// Opens a file and finds its columns. If a setting has several names, the first that exists is
    /// used.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the footer is damaged (`bad_parquet`), if there is no column for
    /// the URL or none for HTML and text, or if a column has an unusable type; the message then
    /// names both types. Returns [`Error::Storage`] if the store fails.
    pub fn open(file: Arc<dyn RandomAccess>, name: &str, fields: &FieldNames) -> Result<ParquetRows> {
        let file = ParquetFile::open(file).map_err(|fault| fault.of_input(name))?;
        let find = |names: &[String], expected_type: &str, is_expected: fn(Physical) -> bool| {
            parquet_columns::find(&file, names, expected_type, is_expected)
                .map_err(|reason| Error::input(name, format!("{reason}; name another column in input.fields")))
        };
        let url = find(&fields.url, "a string", is_string)?;
        let html = find(&fields.html, "a string or binary", is_string)?;
        let text = find(&fields.text, "a string", is_string)?;
        let time = find(&fields.time, "a timestamp, a date, a whole number or a string", is_time)?;
        let missing = |names: &[String]| Err(parquet_columns::missing(&file, name, names, "input.fields"));
        if url.is_none() {
            return missing(&fields.url);
        }
        if html.is_none() && text.is_none() {
            return missing(&[&fields.html[..], &fields.text].concat());
        }
        Ok(ParquetRows { file, leaves: [url, html, text, time] })
    }

    /// Returns the number of row groups in the file.
    pub fn groups(&self) -> usize {
        self.file.reader.metadata().num_row_groups()
    }

    /// Returns the number of rows in a row group.
    pub fn rows(&self, group: u64) -> u64 {
        rows_of(&self.file, group as usize) as u64
    }

    /// Reads the rows of some row groups, in order. The offset of a record is its row number in the
    /// file, counted from 0.
    ///
    /// # Errors
    /// Returns any error of the file and of the sink. A row group that cannot be decoded is refused
    /// from the row at which the damage is found.
    ///
    /// # Cost
    /// Memory for one data page of each column and 64 rows.
    pub fn read_groups(&self, groups: Range<u64>, limits: &RecordLimits, sink: &mut RecordSink<'_>) -> Result<()> {
        let groups = groups.start as usize..self.groups().min(groups.end as usize);
        let mut row: u64 = (0..groups.start).map(|group| rows_of(&self.file, group) as u64).sum();
        for group in groups {
            let end = row + rows_of(&self.file, group) as u64;
            if has_rows_below_zero(&self.file, group) {
                let detail = format!("row group {group} has a negative number of rows in the footer");
                sink(ReadResult::Refused(RefusedRecord::new(row, Reason::BadParquet, detail)))?;
                continue;
            }
            match self.read_group(group, &mut row, end, limits, sink) {
                Ok(()) => {}
                Err(Fault::Run(error)) => return Err(error),
                Err(Fault::Content(reason)) => {
                    let detail = format!("{} rows of row group {group} cannot be read: {reason}", end - row);
                    sink(ReadResult::Refused(RefusedRecord::new(row, Reason::BadParquet, detail)))?;
                }
            }
            row = end;
        }
        Ok(())
    }

    fn read_group(
        &self,
        group: usize,
        row: &mut u64,
        end: u64,
        limits: &RecordLimits,
        sink: &mut RecordSink<'_>,
    ) -> std::result::Result<(), Fault> {
        let mut columns = GroupColumn::open(&self.file, group, &self.leaves)?;
        let [url, html, text, time] = &mut columns[..] else { unreachable!("there are four leaves") };
        while *row < end {
            let rows = BATCH.min((end - *row) as usize);
            let batch = self.file.guard(|| {
                let pages = url.strings(rows)?.into_iter().zip(html.strings(rows)?);
                Ok(pages.zip(text.strings(rows)?.into_iter().zip(time.times(rows)?)))
            })?;
            for ((url, html), (text, time)) in batch {
                sink(values_found(*row, url, html, text, time, limits)).map_err(Fault::Run)?;
                *row += 1;
            }
        }
        Ok(())
    }
}

fn values_found(
    row: u64,
    url: Option<ByteArray>,
    html: Option<ByteArray>,
    text: Option<ByteArray>,
    time: Option<Option<i64>>,
    limits: &RecordLimits,
) -> ReadResult {
    let refuse = |reason, detail: &str| ReadResult::Refused(RefusedRecord::new(row, reason, detail));
    let Some(url) = url else { return refuse(Reason::BadField, "the URL is null") };
    let Ok(url) = std::str::from_utf8(url.data()) else { return refuse(Reason::NotUtf8, "the URL is not UTF-8") };
    let (body, form) = match (html, text) {
        (Some(html), _) => (html, PageForm::Html),
        (None, Some(text)) => (text, PageForm::Text),
        (None, None) => return refuse(Reason::BadField, "both HTML and text are null or missing"),
    };
    if body.len() as u64 > limits.record_bytes {
        let detail = format!("{} bytes; input.limits.record_bytes is {}", body.len(), limits.record_bytes);
        return refuse(Reason::RecordTooLarge, &detail);
    }
    let body = body.data().to_vec();
    ReadResult::Page(RawPage {
        fetch_time: time.flatten().unwrap_or(0),
        // A binary column may hold a page as fetched, in any charset. A body that is valid UTF-8
        // throughout is decoded as UTF-8.
        charset: std::str::from_utf8(&body).is_ok().then(|| "utf-8".into()),
        length: body.len() as u64,
        offset: row,
        repaired: matches!(time, Some(None)).then_some(Reason::BadDate),
        ..RawPage::new(url, body, form)
    })
}

#[cfg(test)]
mod tests {
    use parquet::data_type::{ByteArrayType, DoubleType, Int32Type, Int64Type};
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    use super::*;
    use webtwin_base::read_at::Bytes;

    enum Data {
        Texts(Vec<Option<String>>),
        Longs(Vec<Option<i64>>),
        Ints(Vec<Option<i32>>),
        Doubles(Vec<Option<f64>>),
    }

    /// Makes a file with a row group for every entry of `groups`.
    fn parquet(schema: &str, groups: &[Vec<Data>]) -> Vec<u8> {
        let schema = Arc::new(parse_message_type(&format!("message m {{ {schema} }}")).unwrap());
        let properties = Arc::new(WriterProperties::builder().build());
        let mut file = SerializedFileWriter::new(Vec::new(), Arc::clone(&schema), properties).unwrap();
        for group in groups {
            let mut group_writer = file.next_row_group().unwrap();
            for (column, field) in group.iter().zip(schema.get_fields()) {
                let mut writer = group_writer.next_column().unwrap().unwrap();
                macro_rules! write {
                    ($kind:ty, $values:expr) => {{
                        let levels: Vec<i16> = $values.iter().map(|value| i16::from(value.is_some())).collect();
                        let levels = field.is_optional().then_some(&levels[..]);
                        let values: Vec<_> = $values.iter().flatten().cloned().map(Into::into).collect();
                        writer.typed::<$kind>().write_batch(&values, levels, None).unwrap();
                    }};
                }
                match column {
                    Data::Texts(values) => {
                        write!(ByteArrayType, values.iter().map(|v| v.as_deref()).collect::<Vec<_>>())
                    }
                    Data::Longs(values) => write!(Int64Type, values),
                    Data::Ints(values) => write!(Int32Type, values),
                    Data::Doubles(values) => write!(DoubleType, values),
                }
                writer.close().unwrap();
            }
            group_writer.close().unwrap();
        }
        file.into_inner().unwrap()
    }

    fn texts(prefix: &str, rows: Range<usize>) -> Data {
        Data::Texts(rows.map(|row| Some(format!("{prefix}{row}"))).collect())
    }

    fn three_groups() -> Vec<u8> {
        let group =
            |rows: Range<usize>| vec![texts("http://h.example/", rows.clone()), texts("some words of page ", rows)];
        parquet(
            "required binary url (UTF8); required binary text (UTF8);",
            &[group(0..100), group(100..300), group(300..301)],
        )
    }

    fn open(bytes: Vec<u8>) -> Result<ParquetRows> {
        ParquetRows::open(Arc::new(Bytes(bytes)), "x.parquet", &FieldNames::default())
    }

    fn read(rows: &ParquetRows, groups: Range<u64>) -> Vec<ReadResult> {
        let mut results = Vec::new();
        rows.read_groups(groups, &RecordLimits { record_bytes: 1000, ..RecordLimits::default() }, &mut |result| {
            results.push(result);
            Ok(())
        })
        .unwrap();
        results
    }

    fn refused(result: &ReadResult) -> Option<(u64, Reason)> {
        match result {
            ReadResult::Refused(refused) => Some((refused.offset, refused.reason)),
            ReadResult::Page(_) => None,
        }
    }

    #[test]
    fn row_groups_read_separately_equal_the_file() {
        let rows = open(three_groups()).unwrap();
        assert_eq!(rows.groups(), 3);
        let results: Vec<ReadResult> = (0..3).flat_map(|group| read(&rows, group..group + 1)).collect();
        assert_eq!(results.len(), 301);
        assert_eq!(read(&rows, 0..3), results);
        let ReadResult::Page(page) = &results[150] else { panic!() };
        assert_eq!((page.url.as_str(), page.offset, page.form), ("http://h.example/150", 150, PageForm::Text));
        assert_eq!(page.body, b"some words of page 150");
    }

    /// Bad-input ids 140-144.
    #[test]
    fn files_that_only_begin_like_parquet_are_rejected() {
        let mut huge =
            [b"PAR1".to_vec(), vec![0; 100], 0xffff_fff0u32.to_le_bytes().to_vec(), b"PAR1".to_vec()].concat();
        for (case, bytes) in [
            ("140 no footer", [b"PAR1".to_vec(), vec![0; 500]].concat()),
            ("141 huge footer length", huge.clone()),
            ("142 empty", Vec::new()),
            ("143 magic only", b"PAR1".to_vec()),
            ("143 magic twice", b"PAR1PAR1".to_vec()),
            (
                "144 garbage footer",
                [b"PAR1".to_vec(), vec![0x7f; 300], 200u32.to_le_bytes().to_vec(), b"PAR1".to_vec()].concat(),
            ),
        ] {
            let error = open(bytes).err().unwrap();
            assert_eq!(error.exit_code(), 3, "{case}");
            assert!(error.to_string().contains("bad_parquet"), "{case}: {error}");
        }
        // A footer length that fits into the file, but exceeds the limit of the reader.
        huge.splice(4..4, std::iter::repeat_n(0, 70 << 20));
        let footer_start = huge.len() - 8;
        huge[footer_start..footer_start + 4].copy_from_slice(&(69u32 << 20).to_le_bytes());
        assert!(open(huge).err().unwrap().to_string().contains("more than"));
    }

    #[test]
    fn group_with_negative_row_count_is_rejected_and_not_skipped() {
        let schema = "required binary url (UTF8); required binary text (UTF8);";
        let mut bytes = parquet(schema, &[vec![texts("http://a/", 0..70), texts("words ", 0..70)]]);
        assert_eq!(read(&open(bytes.clone()).unwrap(), 0..1).len(), 70);
        // The last field of type i64 in the footer: the type, then 70 and -70 as zigzag numbers of
        // variable length.
        let rows = bytes.windows(3).rposition(|field| field == [0x16, 0x8c, 0x01]).unwrap();
        bytes[rows + 1] = 0x8b;
        let results = read(&open(bytes).unwrap(), 0..1);
        let [ReadResult::Refused(refused)] = &results[..] else { panic!("{results:?}") };
        assert_eq!((refused.offset, refused.reason), (0, Reason::BadParquet));
    }

    /// Bad-input ids 145, 146, 152: each file is judged by its own columns, and the message names
    /// them.
    #[test]
    fn a_missing_column_or_another_type_is_named_at_open() {
        let url = || texts("http://a/", 0..1);
        for (case, schema, columns, words) in [
            ("145 no url", "required binary text (UTF8);", vec![url()], &["no column url or uri", "it has text"][..]),
            ("145 no body", "required binary url (UTF8);", vec![url()], &["no column html or text or content"]),
            (
                "146 text is a number",
                "required binary url (UTF8); required int64 text;",
                vec![url(), Data::Longs(vec![Some(1)])],
                &["column text is INT64", "must be a string"],
            ),
            (
                "146 time is a fraction",
                "required binary url (UTF8); required binary text (UTF8); required double date;",
                vec![url(), url(), Data::Doubles(vec![Some(1.0)])],
                &["column date is DOUBLE", "must be a timestamp"],
            ),
        ] {
            let error = open(parquet(schema, &[columns])).err().unwrap();
            assert_eq!(error.exit_code(), 3, "{case}");
            for word in words {
                assert!(error.to_string().contains(word), "{case}: {error}");
            }
        }
        let nested_schema = "required binary url (UTF8); required group text { required binary x (UTF8); }";
        assert!(open(parquet(nested_schema, &[])).err().unwrap().to_string().contains("column text is a group"));
        let list = "required binary url (UTF8); repeated binary text (UTF8);";
        assert!(open(parquet(list, &[])).err().unwrap().to_string().contains("column text is a list"));
    }

    #[test]
    fn a_name_with_a_dot_leads_into_a_group() {
        let schema =
            "optional group page { optional binary url (UTF8); optional group body { optional binary text (UTF8); } }";
        let parsed = Arc::new(parse_message_type(&format!("message m {{ {schema} }}")).unwrap());
        let mut file = SerializedFileWriter::new(Vec::new(), parsed, Arc::default()).unwrap();
        let mut group = file.next_row_group().unwrap();
        for (values, levels) in [(["http://a/", "http://b/"], [2, 2, 0]), (["text of a", ""], [3, 1, 0])] {
            let mut writer = group.next_column().unwrap().unwrap();
            let values: Vec<ByteArray> =
                values.iter().filter(|value| !value.is_empty()).map(|&value| value.into()).collect();
            writer.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None).unwrap();
            writer.close().unwrap();
        }
        group.close().unwrap();
        let names = |name: &str| vec!["no.such".to_string(), name.to_string()];
        let fields = FieldNames { url: names("page.url"), text: names("page.body.text"), ..FieldNames::default() };
        let bytes = Arc::new(Bytes(file.into_inner().unwrap()));
        let results = read(&ParquetRows::open(bytes, "x.parquet", &fields).unwrap(), 0..1);
        let ReadResult::Page(page) = &results[0] else { panic!("{results:?}") };
        assert_eq!((page.url.as_str(), &page.body[..]), ("http://a/", &b"text of a"[..]));
        assert_eq!(
            results.iter().filter_map(refused).collect::<Vec<_>>(),
            [(1, Reason::BadField), (2, Reason::BadField)]
        );
    }

    /// Bad-input ids 147, 148.
    #[test]
    fn nulls_reject_their_row_and_empty_files_are_valid() {
        let schema = "optional binary url (UTF8); optional binary html; optional binary text (UTF8); \
                      optional int64 date (TIMESTAMP(MICROS,true));";
        let text_value = |text: &str| Some(text.to_string());
        let long = "x".repeat(1001);
        let rows = open(parquet(
            schema,
            &[vec![
                Data::Texts(vec![text_value("a"), None, text_value("c"), text_value("d"), text_value("e")]),
                Data::Texts(vec![text_value("<p>"), text_value("<p>"), None, None, Some(long)]),
                Data::Texts(vec![text_value("t"), text_value("t"), text_value("t"), None, None]),
                Data::Longs(vec![Some(1_555_754_400_000_000), None, None, Some(1), None]),
            ]],
        ))
        .unwrap();
        let results = read(&rows, 0..1);
        let bad: Vec<_> = results.iter().filter_map(refused).collect();
        assert_eq!(bad, [(1, Reason::BadField), (3, Reason::BadField), (4, Reason::RecordTooLarge)]);
        let ReadResult::Page(page) = &results[0] else { panic!() };
        assert_eq!((page.form, page.fetch_time), (PageForm::Html, 1_555_754_400));
        let ReadResult::Page(page) = &results[2] else { panic!() };
        assert_eq!((page.form, page.fetch_time, page.repaired), (PageForm::Text, 0, None));
        assert_eq!(read(&open(parquet(schema, &[])).unwrap(), 0..0), []);
    }

    #[test]
    fn every_kind_of_fetch_time_is_read() {
        let text = |date: &str| Data::Texts(vec![Some(date.to_string())]);
        for (kind, data, time, reason) in [
            ("int64 date (TIMESTAMP(MILLIS,true))", Data::Longs(vec![Some(1_555_754_400_999)]), 1_555_754_400, None),
            ("int64 date (TIMESTAMP(NANOS,false))", Data::Longs(vec![Some(-1)]), -1, None),
            ("int64 date", Data::Longs(vec![Some(1_555_754_400)]), 1_555_754_400, None),
            ("int32 date (DATE)", Data::Ints(vec![Some(18_006)]), 1_555_718_400, None),
            ("binary date (UTF8)", text("20190420100000"), 1_555_754_400, None),
            ("binary date (UTF8)", text("soon"), 0, Some(Reason::BadDate)),
        ] {
            let schema = format!("required binary url (UTF8); required binary text (UTF8); required {kind};");
            let rows = open(parquet(&schema, &[vec![texts("http://a/", 0..1), texts("t", 0..1), data]])).unwrap();
            let ReadResult::Page(page) = &read(&rows, 0..1)[0] else { panic!("{kind}") };
            assert_eq!((page.fetch_time, page.repaired), (time, reason), "{kind}");
        }
    }

    /// Bad-input ids 149-151: a row group that cannot be decoded is refused, and the others are
    /// read.
    #[test]
    fn corrupt_row_group_loses_only_itself() {
        let bytes = three_groups();
        let metadata = open(bytes.clone()).unwrap();
        let group = metadata.file.reader.metadata().row_group(1).column(1).byte_range();
        for (case, spoil) in [("zeros", 0u8), ("ones", 0xff), ("page header", 0x15)] {
            let mut bytes = bytes.clone();
            bytes[group.0 as usize..(group.0 + group.1) as usize].fill(spoil);
            let results = read(&open(bytes).unwrap(), 0..3);
            let bad: Vec<_> = results.iter().filter_map(refused).collect();
            assert_eq!(bad, [(100, Reason::BadParquet)], "{case}");
            assert_eq!(results.len(), 102, "{case}");
        }
    }

    #[test]
    fn any_changed_byte_is_rejected_or_an_error_and_never_a_panic() {
        let bytes = three_groups();
        for position in (0..bytes.len()).step_by(3) {
            let mut bytes = bytes.clone();
            bytes[position] ^= 1 << (position % 8);
            if let Ok(rows) = open(bytes) {
                let results = read(&rows, 0..3);
                assert!(results.len() <= 301 + 3, "byte {position}: {}", results.len());
            }
        }
    }

    #[test]
    fn storage_error_ends_the_run_and_is_not_a_bad_group() {
        struct Failing(Bytes<Vec<u8>>);
        impl RandomAccess for Failing {
            fn len(&self) -> u64 {
                self.0.len()
            }
            fn read_at(&self, offset: u64, length: usize) -> Result<Vec<u8>> {
                match offset < 1000 {
                    true => Err(Error::storage("s3://b/x", "503")),
                    false => self.0.read_at(offset, length),
                }
            }
        }
        let file = Arc::new(Failing(Bytes(three_groups())));
        let rows = ParquetRows::open(file, "x", &FieldNames::default()).unwrap();
        let end = rows.read_groups(0..3, &RecordLimits::default(), &mut |_| Ok(()));
        assert_eq!(end.unwrap_err().exit_code(), 8);
    }
}
