//! Tables of other programs, of which some columns are read as text.
//!
//! The formats are Parquet, lines with fields separated by commas or tabs under a line of column
//! names, and JSON lines. The format is detected by content. Lines may be compressed.
//!
//! Fields may be quoted as in RFC 4180, but must not contain line breaks. Empty lines are ignored.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;

use parquet::basic::Type as Physical;
use parquet::file::reader::FileReader;

use super::decoded::{Compression, DecodedFile, sort_out};
use super::json_fields::{FieldQuery, Scalar};
use super::parquet_columns::{GroupColumn, find};
use webtwin_base::error::{Error, Result};
use webtwin_base::read_at::RandomAccess;
use webtwin_job::RecordLimits;
use webtwin_storage::location::Location;
use webtwin_storage::open::open;
use webtwin_storage::parquet_file::{Fault, ParquetFile, has_rows_below_zero, rows_of};

/// Number of Parquet rows that are read together.
const BATCH: usize = 1024;

/// Approximate number of bytes of a row of text.
const ROW_BYTES: u64 = 64;

/// A table, and the names of its columns.
#[derive(Debug, Clone)]
pub struct ForeignTable {
    /// The file.
    pub location: Location,
    /// Names of the columns. For JSON lines these are the fields of the first line.
    pub columns: Vec<String>,
    format: Format,
    /// Approximate number of rows of each part that can be read independently.
    parts: Vec<u64>,
}

#[derive(Debug, Clone, Copy)]
enum Format {
    Parquet,
    /// Separated fields, under a line of column names.
    Fields(Compression, u8),
    Json(Compression),
}

/// A row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignTableRow<const N: usize> {
    /// Fields of the wanted columns; a field that is absent or empty is `None`. The whole is `None`
    /// if the row cannot be parsed.
    pub fields: Option<[Option<String>; N]>,
    /// Number of the line in the file, or of the row in the parts of Parquet that are read; from 1.
    pub number: u64,
    /// Length of the line of the row in bytes; 0 for Parquet.
    pub bytes: u64,
}

type Rows<const N: usize> = Box<dyn Iterator<Item = Result<ForeignTableRow<N>>>>;

impl ForeignTable {
    /// Opens a table and reads the names of its columns.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the file does not exist, is damaged, or does not begin with a
    /// line that names its columns.
    pub fn open(location: &Location, limits: &RecordLimits) -> Result<ForeignTable> {
        let file = open(location)?;
        let table = |format, columns, parts| ForeignTable { location: location.clone(), columns, format, parts };
        let head = file.read_at(0, 16)?;
        if head.starts_with(b"PAR1") {
            let parquet = ParquetFile::open(file).map_err(|fault| fault.of_input(location.name()))?;
            let metadata = parquet.reader.metadata();
            if (0..metadata.num_row_groups()).any(|group| has_rows_below_zero(&parquet, group)) {
                let reason = "its footer has a row group with a negative number of rows; write the file again".into();
                return Err(Fault::Content(reason).of_input(location.name()));
            }
            let columns = metadata.file_metadata().schema_descr().columns().iter();
            let columns = columns.map(|column| column.path().string()).collect();
            let parts = (0..metadata.num_row_groups()).map(|group| rows_of(&parquet, group) as u64).collect();
            return Ok(table(Format::Parquet, columns, parts));
        }
        let (compression, parts) = (Compression::detect(&head), vec![file.len() / ROW_BYTES]);
        let mut lines = Lines::of(file, compression, location, limits)?;
        let refuse = |reason: &str| Error::input(location.name(), reason);
        let first =
            lines.next().transpose()?.ok_or_else(|| refuse("is empty; its first line must name its columns"))?;
        let first = first
            .text()
            .ok_or_else(|| refuse("its first line, which must name the columns, is too long or not UTF-8"))?;
        if first.trim_start().starts_with('{') {
            let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(first)
                .map_err(|_| refuse("its first line is not a JSON object; write one object per line"))?;
            return Ok(table(Format::Json(compression), object.into_iter().map(|(name, _)| name).collect(), parts));
        }
        let separator = if first.contains('\t') { b'\t' } else { b',' };
        let columns =
            fields(first, separator).ok_or_else(|| refuse("a quote in its first line is not closed; close it"))?;
        Ok(table(Format::Fields(compression, separator), columns, parts))
    }

    /// True if the table has a column with one of these names.
    pub fn has(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.columns.iter().any(|column| column == name))
    }

    /// Returns the approximate number of rows of each part that can be read independently.
    pub fn parts(&self) -> &[u64] {
        &self.parts
    }

    /// Returns the rows of the parts for which `is_own` is true. Each wanted column is given as
    /// alternative names, of which the first that the table has is read.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the file is damaged or a wanted column has values that are not
    /// text. The iterator returns the same errors.
    pub fn rows<const N: usize>(
        &self,
        field_names: [&'static [&'static str]; N],
        limits: &RecordLimits,
        is_own: impl Fn(usize) -> bool,
    ) -> Result<Rows<N>> {
        let own_parts: Vec<usize> = (0..self.parts.len()).filter(|&part| is_own(part)).collect();
        if own_parts.is_empty() {
            return Ok(Box::new(std::iter::empty()));
        }
        let file = open(&self.location)?;
        let name = self.location.name().to_string();
        match self.format {
            Format::Parquet => {
                let file = ParquetFile::open(file).map_err(|fault| fault.of_input(&name))?;
                Ok(Box::new(ParquetParts::of(file, name, field_names, own_parts)?))
            }
            Format::Fields(compression, separator) => {
                let place = |name: &&str| self.columns.iter().position(|column| column == name);
                let places = field_names.map(|names| names.iter().find_map(place));
                let fields = move |line: &str| {
                    let mut fields = fields(line, separator)?;
                    let mut take = |at: usize| fields.get_mut(at).map(std::mem::take);
                    Some(places.map(|at| at.and_then(&mut take).filter(|field| !field.is_empty())))
                };
                let lines = Lines::of(file, compression, &self.location, limits)?.skip(1);
                Ok(Box::new(lines.map(move |line| line.map(|line| line.row(&fields)))))
            }
            Format::Json(compression) => {
                let names = field_names.into_iter().enumerate();
                let query = FieldQuery::new(names.flat_map(|(at, names)| names.iter().map(move |name| (at, *name))));
                let fields = move |line: &str| {
                    let mut values = query.find(line.trim()).ok()?;
                    let text = |text_of| match values.take(text_of) {
                        Some(Scalar::Real(number)) => Some(format!("{number:?}")),
                        scalar => scalar.and_then(Scalar::into_text).filter(|text| !text.is_empty()),
                    };
                    Some(std::array::from_fn(text))
                };
                let lines = Lines::of(file, compression, &self.location, limits)?;
                Ok(Box::new(lines.map(move |line| line.map(|line| line.row(&fields)))))
            }
        }
    }
}

/// Splits a line into fields; returns `None` if a quote is not closed.
fn fields(line: &str, separator: u8) -> Option<Vec<String>> {
    let (mut fields, mut rest) = (Vec::new(), line);
    loop {
        let mut field = String::new();
        if let Some(mut quoted) = rest.strip_prefix('"') {
            loop {
                let (text, after_quote) = quoted.split_once('"')?;
                field.push_str(text);
                let Some(after_second_quote) = after_quote.strip_prefix('"') else {
                    rest = after_quote;
                    break;
                };
                field.push('"');
                quoted = after_second_quote;
            }
        }
        let end = memchr::memchr(separator, rest.as_bytes());
        field.push_str(&rest[..end.unwrap_or(rest.len())]);
        fields.push(field);
        match end {
            Some(end) => rest = &rest[end + 1..],
            None => return Some(fields),
        }
    }
}

/// A line that is not empty.
struct Line {
    /// Number of the line, from 1.
    number: u64,
    /// Bytes of the line, up to the limit.
    bytes: Vec<u8>,
    length: u64,
}

impl Line {
    fn text(&self) -> Option<&str> {
        if self.length > self.bytes.len() as u64 {
            return None;
        }
        let text = std::str::from_utf8(&self.bytes).ok()?;
        Some(text.strip_prefix('\u{feff}').unwrap_or(text).trim_end_matches(['\r', '\n']))
    }

    fn row<const N: usize>(&self, fields: &impl Fn(&str) -> Option<[Option<String>; N]>) -> ForeignTableRow<N> {
        ForeignTableRow { fields: self.text().and_then(fields), number: self.number, bytes: self.length }
    }
}

/// Iterator over the lines of a file that are not empty.
struct Lines {
    input: BufReader<DecodedFile<'static>>,
    name: String,
    limit: u64,
    /// Number of lines that have been read.
    lines_read: u64,
}

impl Lines {
    fn of(
        file: Arc<dyn RandomAccess>,
        compression: Compression,
        location: &Location,
        limits: &RecordLimits,
    ) -> Result<Lines> {
        let decoded_file =
            DecodedFile::shared(file, compression, limits).map_err(|error| damage_error(location.name(), error))?;
        let (input, name) = (BufReader::new(decoded_file), location.name().into());
        Ok(Lines { input, name, limit: limits.record_bytes, lines_read: 0 })
    }

    fn line(&mut self) -> io::Result<Line> {
        let mut bytes = Vec::new();
        let mut length = (&mut self.input).take(self.limit).read_until(b'\n', &mut bytes)? as u64;
        if length == self.limit && bytes.last() != Some(&b'\n') {
            length += self.input.skip_until(b'\n')? as u64;
        }
        self.lines_read += 1;
        Ok(Line { number: self.lines_read, bytes, length })
    }
}

impl Iterator for Lines {
    type Item = Result<Line>;

    fn next(&mut self) -> Option<Result<Line>> {
        loop {
            match self.line() {
                Ok(line) if line.length == 0 => return None,
                Ok(line) if line.bytes.trim_ascii().is_empty() => {}
                line => return Some(line.map_err(|error| damage_error(&self.name, error))),
            }
        }
    }
}

fn damage_error(name: &str, error: io::Error) -> Error {
    sort_out(error)
        .map_or_else(|failure| failure, |(reason, what)| Error::input(name, format!("{}: {what}", reason.as_str())))
}

/// Iterator over rows of row groups of a Parquet file.
struct ParquetParts<const N: usize> {
    file: ParquetFile,
    name: String,
    leaves: [Option<usize>; N],
    /// Row groups that have not been read.
    groups: std::vec::IntoIter<usize>,
    columns: Vec<GroupColumn>,
    /// Number of unread rows of the current row group.
    left: usize,
    /// Number of rows that have been returned.
    returned: u64,
    batch: std::vec::IntoIter<[Option<String>; N]>,
}

impl<const N: usize> ParquetParts<N> {
    fn of(file: ParquetFile, name: String, field_names: [&[&str]; N], groups: Vec<usize>) -> Result<ParquetParts<N>> {
        let is_supported = |physical| !matches!(physical, Physical::FIXED_LEN_BYTE_ARRAY | Physical::INT96);
        let mut leaves = [None; N];
        for (leaf, names) in leaves.iter_mut().zip(field_names) {
            let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
            *leaf = find(&file, &names, "strings or numbers", is_supported)
                .map_err(|reason| Error::input(&name, reason))?;
        }
        let groups = groups.into_iter();
        let (columns, batch) = (Vec::new(), Vec::new().into_iter());
        Ok(ParquetParts { file, name, leaves, groups, columns, left: 0, returned: 0, batch })
    }

    /// Reads the next batch of rows; returns false if there are none.
    fn read(&mut self) -> Result<bool> {
        while self.left == 0 {
            let Some(group) = self.groups.next() else { return Ok(false) };
            self.left = rows_of(&self.file, group);
            self.columns =
                GroupColumn::open(&self.file, group, &self.leaves).map_err(|fault| fault.of_input(&self.name))?;
        }
        let rows = self.left.min(BATCH);
        self.left -= rows;
        let mut batch = vec![[const { None }; N]; rows];
        let (columns, leaves) = (&mut self.columns, &self.leaves);
        let schema = self.file.reader.metadata().file_metadata().schema_descr();
        let fractions = |leaf: &Option<usize>| {
            leaf.is_some_and(|leaf| matches!(schema.column(leaf).physical_type(), Physical::FLOAT | Physical::DOUBLE))
        };
        let read = self.file.guard(|| {
            for (column_number, (column, leaf)) in columns.iter_mut().zip(leaves).enumerate() {
                let values: Vec<Option<String>> = match fractions(leaf) {
                    // A fractional type keeps its decimal point, even for whole values, so that the
                    // text does not depend on the value.
                    true => column.numbers(rows)?.into_iter().map(|number| Some(format!("{:?}", number?))).collect(),
                    false => column.names(rows)?,
                };
                batch
                    .iter_mut()
                    .zip(values)
                    .for_each(|(row, value)| row[column_number] = value.filter(|text| !text.is_empty()));
            }
            Ok(())
        });
        read.map_err(|fault| fault.of_input(&self.name))?;
        self.batch = batch.into_iter();
        Ok(true)
    }
}

impl<const N: usize> Iterator for ParquetParts<N> {
    type Item = Result<ForeignTableRow<N>>;

    fn next(&mut self) -> Option<Result<ForeignTableRow<N>>> {
        loop {
            if let Some(fields) = self.batch.next() {
                self.returned += 1;
                return Some(Ok(ForeignTableRow { fields: Some(fields), number: self.returned, bytes: 0 }));
            }
            match self.read() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use flate2::write::GzEncoder;
    use std::io::Write;

    use super::*;
    use webtwin_storage::table::{Table, TableColumn as Values, encode};

    fn read(bytes: &[u8]) -> Result<Vec<ForeignTableRow<3>>> {
        let folder = tempfile::tempdir().unwrap();
        let location = Location::parse(folder.path().join("table").to_str().unwrap()).unwrap();
        location.put(bytes).unwrap();
        let limits = RecordLimits { record_bytes: 49, ..RecordLimits::default() };
        let table = ForeignTable::open(&location, &limits)?;
        table.rows([&["a", "x"], &["b"], &["value"]], &limits, |_| true)?.collect()
    }

    fn row(fields: [&str; 3]) -> Option<[Option<String>; 3]> {
        Some(fields.map(|field| Some(field.to_string()).filter(|field| !field.is_empty())))
    }

    fn fields(bytes: &[u8]) -> Vec<Option<[Option<String>; 3]>> {
        read(bytes).unwrap().into_iter().map(|row| row.fields).collect()
    }

    #[test]
    fn table_is_the_same_in_every_format() {
        let want = vec![row(["1", "http://b/,", "0.5"]), row(["p \"q\"", "", "1.0"])];
        let csv = "\u{feff}b,a,more,value\r\n\"http://b/,\",1,x,0.5\r\n\r\n,\"p \"\"q\"\"\",y,1.0\n";
        let tsv = "b\ta\tmore\tvalue\nhttp://b/,\t1\tx\t0.5\n\tp \"q\"\ty\t1.0";
        let json = "{\"a\": 1, \"b\": \"http://b/,\", \"value\": 0.5}\n{\"x\": \"p \\\"q\\\"\", \"b\": null, \"value\": 1.0}\n";
        for text in [csv, tsv, json] {
            assert_eq!(fields(text.as_bytes()), want, "{text}");
            let mut compressed = GzEncoder::new(Vec::new(), Default::default());
            compressed.write_all(text.as_bytes()).unwrap();
            assert_eq!(fields(&compressed.finish().unwrap()), want, "{text}");
            assert_eq!(fields(&zstd::encode_all(text.as_bytes(), 1).unwrap()), want, "{text}");
        }
        let table = Table::new([
            ("b", Values::Text(["http://b/,".to_string(), String::new()].into_iter().collect())),
            ("a", Values::Text(["1".to_string(), "p \"q\"".into()].into_iter().collect())),
            ("value", Values::F64(vec![0.5, 1.0])),
        ]);
        assert_eq!(fields(&encode(&table).unwrap()), want);
        let ids = Table::new([("a", Values::Id(vec![u64::MAX])), ("value", Values::U32(vec![u32::MAX]))]);
        assert_eq!(fields(&encode(&ids).unwrap()), [row(["18446744073709551615", "", "4294967295"])]);
    }

    #[test]
    fn a_line_that_cannot_be_understood_is_counted_with_its_bytes() {
        let long = "x".repeat(50);
        let rows = read(format!("a,b\n1,2\n\"1,2\n{long}\n\n3\n").as_bytes()).unwrap();
        let want = [(row(["1", "2", ""]), 2, 4), (None, 3, 5), (None, 4, 51), (row(["3", "", ""]), 6, 2)];
        assert_eq!(rows, want.map(|(fields, number, bytes)| ForeignTableRow { fields, number, bytes }));
        assert_eq!(fields(b"a\n\xff\n"), [None]);
        assert_eq!(fields(b"{\"a\": 1}\n[1]\n{\"a\n"), [row(["1", "", ""]), None, None]);
    }

    #[test]
    fn file_that_is_not_a_table_is_an_error_with_its_name() {
        let mut truncated = GzEncoder::new(Vec::new(), Default::default());
        truncated.write_all(&b"a,b\n1,2\n".repeat(1000)).unwrap();
        let truncated = truncated.finish().unwrap();
        for (bytes, words) in [
            (&b""[..], "is empty"),
            (b"\"a,b\n", "not closed"),
            (b"{\"a\"\n", "not a JSON object"),
            (&truncated[..truncated.len() - 9], "before its end"),
            (b"PAR1 and nothing else", "bad_parquet"),
        ] {
            let error = read(bytes).unwrap_err().to_string();
            assert!(error.contains("table") && error.contains(words), "{words}: {error}");
        }
    }
}
