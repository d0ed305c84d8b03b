//! JSONL crawls: one JSON object per line, with a URL and HTML or text in fields of the object or
//! of nested objects.
//!
//! A plain file can be read in ranges. A range owns the lines that start in it. A compressed file
//! is a single range, and its offsets count decoded bytes. Pages and refusals carry the byte offset
//! at which their line starts.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read};
use std::ops::Range;

use serde::de::IgnoredAny;

use super::decoded::{Compression, DecodedFile, FileReader, FileStream, sort_out};
use super::fetch_time;
use super::json_fields::{FieldQuery, Scalar, text_of_line, without_nan};
use super::record::{PageForm, RawPage, ReadResult, Reason, RecordSink, Refusal, RefusedRecord};
use webtwin_base::error::Result;
use webtwin_base::read_at::RandomAccess;
use webtwin_job::FieldNames;
use webtwin_job::RecordLimits;

/// Number of existing fields that the message about a missing field lists.
const MAX_LISTED_FIELDS: usize = 12;

/// Size of the read buffer in bytes.
const BUFFER: usize = 1 << 20;

/// Reads the lines of a plain file that start in a range, in order.
///
/// # Errors
/// Returns any error of the file and of the sink.
///
/// # Cost
/// One pass over the range and the rest of its last line. Holds one line of at most
/// `limits.record_bytes` in memory.
pub fn read_range(
    file: &dyn RandomAccess,
    range: Range<u64>,
    limits: &RecordLimits,
    fields: &FieldNames,
    sink: &mut RecordSink<'_>,
) -> Result<()> {
    // The byte before the range decides whether a line starts at its first byte.
    let previous_byte = range.start.saturating_sub(1);
    let input = BufReader::with_capacity(BUFFER, FileReader::from(file, previous_byte));
    read_lines(input, previous_byte, range, limits, fields, sink)
}

/// Reads all lines of a file, compressed or not.
///
/// # Errors
/// Returns any error of the file and of the sink. If the compressed data is damaged, the rest of
/// the file becomes one refusal, and the lines before it are kept.
pub fn read_whole(
    file: &dyn RandomAccess,
    compression: Compression,
    limits: &RecordLimits,
    fields: &FieldNames,
    sink: &mut RecordSink<'_>,
) -> Result<()> {
    match DecodedFile::new(file, compression, limits) {
        Ok(reader) => read_lines(BufReader::with_capacity(BUFFER, reader), 0, 0..u64::MAX, limits, fields, sink),
        Err(error) => refuse_rest(error, 0, file.len(), sink),
    }
}

/// Counts of the complete lines at the beginning of a file: pages, JSON objects that are not pages,
/// and other lines.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Census {
    pub pages: usize,
    pub other_objects: usize,
    pub other_lines: usize,
}

/// Counts the lines of `head`. A last line without a newline counts only if `head` is the whole
/// file.
pub(super) fn census(head: &[u8], is_whole_file: bool, fields: &FieldNames) -> Result<Census> {
    let end = if is_whole_file { head.len() } else { memchr::memrchr(b'\n', head).unwrap_or(0) };
    let (mut census, query) = (Census::default(), page_query(fields));
    for bytes in head[..end].split(|&byte| byte == b'\n') {
        line(bytes, 0, fields, &query, &mut |result| {
            match result {
                ReadResult::Page(_) => census.pages += 1,
                ReadResult::Refused(RefusedRecord { reason: Reason::BadField, .. }) => census.other_objects += 1,
                ReadResult::Refused(_) => census.other_lines += 1,
            }
            Ok(())
        })?;
    }
    Ok(census)
}

/// Yields the lines of `input` that start in `range`. `begin` is the offset at which `input`
/// begins.
fn read_lines(
    mut input: BufReader<impl Read + FileStream>,
    begin: u64,
    range: Range<u64>,
    limits: &RecordLimits,
    fields: &FieldNames,
    sink: &mut RecordSink<'_>,
) -> Result<()> {
    let limit = usize::try_from(limits.record_bytes).unwrap_or(usize::MAX);
    let query = page_query(fields);
    let mut skipping = range.start > 0; // up to the first line that starts in the range
    let mut start = begin; // of the line at hand
    let mut partial_line: Vec<u8> = Vec::new(); // its bytes from earlier buffers
    let mut length = 0u64; // of the line so far, held or not
    while start < range.end {
        if let Err(error) = input.fill_buf() {
            if error.kind() == io::ErrorKind::Interrupted {
                continue;
            }
            let lost_bytes = input.get_ref().file_bytes(length) + input.get_ref().rest();
            return refuse_rest(error, start, lost_bytes, sink);
        }
        let (buffer, bytes_of_file) = (input.buffer(), |length| input.get_ref().file_bytes(length));
        let newline = memchr::memchr(b'\n', buffer);
        let piece = &buffer[..newline.unwrap_or(buffer.len())];
        let at_end = buffer.is_empty();
        length += piece.len() as u64;
        if newline.is_some() || at_end {
            if !skipping && (length > 0 || !at_end) {
                let mut sized = |found| sink(with_bytes(found, bytes_of_file(length)));
                if length > limit as u64 {
                    let detail = format!("a line of {length} bytes; input.limits.record_bytes is {limit}");
                    let bytes = bytes_of_file(length);
                    let refused = RefusedRecord { bytes, ..RefusedRecord::new(start, Reason::RecordTooLarge, detail) };
                    sink(ReadResult::Refused(refused))?;
                } else if partial_line.is_empty() {
                    line(piece, start, fields, &query, &mut sized)?;
                } else {
                    partial_line.extend_from_slice(piece);
                    line(&partial_line, start, fields, &query, &mut sized)?;
                }
            }
            if at_end {
                return Ok(());
            }
            start += length + 1;
            (skipping, length) = (false, 0);
            partial_line.clear();
        } else if skipping {
            // The next line starts at or after the end of the range, so it belongs to another
            // worker.
            if start + length >= range.end {
                return Ok(());
            }
        } else if length <= limit as u64 {
            partial_line.extend_from_slice(piece);
        } else {
            // Beyond the limit only the length is counted, so that memory stays bounded by the
            // limit.
            partial_line = Vec::new();
        }
        let consumed = piece.len() + usize::from(newline.is_some());
        input.consume(consumed);
    }
    Ok(())
}

/// Refuses the rest of a file from `offset` on, `bytes` long. Returns an error if the store has
/// failed.
fn refuse_rest(error: io::Error, offset: u64, bytes: u64, sink: &mut RecordSink<'_>) -> Result<()> {
    let (reason, detail) = sort_out(error)?;
    sink(ReadResult::Refused(RefusedRecord { bytes, ..RefusedRecord::new(offset, reason, detail) }))
}

/// Sets the number of bytes of the file that a refusal covers.
fn with_bytes(result: ReadResult, bytes: u64) -> ReadResult {
    match result {
        ReadResult::Refused(refused) => ReadResult::Refused(RefusedRecord { bytes, ..refused }),
        page => page,
    }
}

fn line(bytes: &[u8], offset: u64, fields: &FieldNames, query: &FieldQuery, sink: &mut RecordSink<'_>) -> Result<()> {
    let Some(text) = text_of_line(bytes) else { return Ok(()) };
    let page = |text| {
        page(text, fields, query).or_else(|refusal| match without_nan(text) {
            Some(text) => page(&text, fields, query).map(|page| RawPage { repaired: Some(Reason::BadJson), ..page }),
            None => Err(refusal),
        })
    };
    sink(match text.and_then(page) {
        Ok(page) => ReadResult::Page(RawPage { offset, length: bytes.len() as u64, ..page }),
        Err((reason, detail)) => ReadResult::Refused(RefusedRecord::new(offset, reason, detail)),
    })
}

fn page(text: &str, fields: &FieldNames, query: &FieldQuery) -> std::result::Result<RawPage, Refusal> {
    // Messages of the parser do not quote content, so they can be shown.
    let mut row = query.find(text).map_err(|reason| (Reason::BadJson, reason))?;
    let Some(url) = row.take(URL) else {
        return Err((Reason::BadField, missing("url", &fields.url, text)));
    };
    let url = url.string(&fields.url)?;
    let (body, form) = match (row.take(HTML), row.take(TEXT)) {
        (Some(html), _) => (html.string(&fields.html)?, PageForm::Html),
        (None, Some(text)) => (text.string(&fields.text)?, PageForm::Text),
        (None, None) => {
            let names = [&fields.html[..], &fields.text].concat();
            return Err((Reason::BadField, missing("html or text", &names, text)));
        }
    };
    let fetch_time = match row.take(TIME) {
        None => Some(0),
        Some(Scalar::Whole(number)) => i64::try_from(number).ok().map(fetch_time::of_number),
        // Seconds with a fraction. A number beyond 64 bits is not a time.
        Some(Scalar::Real(number)) => (number.abs() < 9e18).then(|| fetch_time::of_number(number as i64)),
        Some(Scalar::Text(text)) => fetch_time::parse(&text),
        Some(_) => None,
    };
    Ok(RawPage {
        fetch_time: fetch_time.unwrap_or(0),
        charset: Some("utf-8".into()),
        repaired: fetch_time.is_none().then_some(Reason::BadDate),
        ..RawPage::new(url, body.into_owned().into_bytes(), form)
    })
}

/// Describes a missing field and the fields that the object has.
fn missing(setting: &str, names: &[String], object: &str) -> String {
    let members = serde_json::from_str::<BTreeMap<String, IgnoredAny>>(object).unwrap_or_default();
    let mut names_present: Vec<String> =
        members.into_keys().take(MAX_LISTED_FIELDS).map(|name| name.chars().take(40).collect()).collect();
    if names_present.len() == MAX_LISTED_FIELDS {
        names_present.push("more".into());
    }
    format!(
        "no field {}; the record has {}; set input.fields.{setting} to the name of the field",
        names.join(" or "),
        names_present.join(", ")
    )
}

/// Purposes of fields.
const URL: usize = 0;
const HTML: usize = 1;
const TEXT: usize = 2;
const TIME: usize = 3;

/// Returns an extractor of the fields of a page. A dot in a name leads into a nested object.
fn page_query(fields: &FieldNames) -> FieldQuery {
    let FieldNames { url, html, text, time } = fields;
    let query_fields = [(URL, url), (HTML, html), (TEXT, text), (TIME, time)];
    FieldQuery::new(
        query_fields.into_iter().flat_map(|(purpose, names)| names.iter().map(move |name| (purpose, name.as_str()))),
    )
    .strict()
}

#[cfg(test)]
mod tests;
