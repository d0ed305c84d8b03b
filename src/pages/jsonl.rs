//! JSONL: one JSON object per line, with a URL and HTML or text.
//!
//! A plain file can be read in ranges: a range owns the lines that start in it. A compressed file is one range, and its
//! offsets are those of decoded bytes. Records and refusals carry the byte offset at which their line starts.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufRead, BufReader};
use std::ops::Range;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::decoded::{Compression, Decoded, FileReader, sort_out};
use super::fetch_time;
use super::record::{Form, Found, Names, RawPage, Reason, Refused, Sink};
use crate::error::Result;
use crate::job::Fields;
use crate::job::Limits;
use crate::read_at::ReadAt;

/// Fields named of an object that lacks one.
const NAMED: usize = 12;

/// Bytes read at once.
const BUFFER: usize = 1 << 20;

/// Reads the lines of a plain file that start in a range, in order.
///
/// # Errors
/// Those of the file and of the sink.
///
/// # Cost
/// One pass over the range and the rest of its last line; memory is one line of at most `limits.record_bytes`.
pub fn read_range(
    file: &dyn ReadAt,
    range: Range<u64>,
    limits: &Limits,
    fields: &Fields,
    sink: &mut Sink<'_>,
) -> Result<()> {
    // The byte before the range decides whether a line starts at its first byte.
    let from = range.start.saturating_sub(1);
    let input = BufReader::with_capacity(BUFFER, FileReader::from(file, from));
    read_lines(input, from, range, limits, fields, sink)
}

/// Reads all lines of a file, compressed or not.
///
/// # Errors
/// Those of the file and of the sink. Damaged compression ends the file with a refusal; lines before it are kept.
pub fn read_whole(
    file: &dyn ReadAt,
    compression: Compression,
    limits: &Limits,
    fields: &Fields,
    sink: &mut Sink<'_>,
) -> Result<()> {
    match Decoded::new(file, compression, limits) {
        Ok(decoded) => read_lines(BufReader::with_capacity(BUFFER, decoded), 0, 0..u64::MAX, limits, fields, sink),
        Err(error) => refuse_rest(error, 0, sink),
    }
}

/// The whole lines of a file's first bytes: how many are pages, objects that are none, and something else.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Census {
    pub pages: usize,
    pub other_objects: usize,
    pub other_lines: usize,
}

/// Counts the lines of `head`; the last one counts if it ends there.
pub(super) fn census(head: &[u8], is_whole_file: bool, fields: &Fields) -> Result<Census> {
    let end = if is_whole_file { head.len() } else { memchr::memrchr(b'\n', head).unwrap_or(0) };
    let mut census = Census::default();
    for bytes in head[..end].split(|&byte| byte == b'\n') {
        line(bytes, 0, fields, &mut |found| {
            match found {
                Found::Page(_) => census.pages += 1,
                Found::Refused(Refused { reason: Reason::BadField, .. }) => census.other_objects += 1,
                Found::Refused(_) => census.other_lines += 1,
            }
            Ok(())
        })?;
    }
    Ok(census)
}

/// Yields the lines of `input`, which begins at `from`, that start in `range`.
fn read_lines(
    mut input: impl BufRead,
    from: u64,
    range: Range<u64>,
    limits: &Limits,
    fields: &Fields,
    sink: &mut Sink<'_>,
) -> Result<()> {
    let limit = usize::try_from(limits.record_bytes).unwrap_or(usize::MAX);
    let mut skipping = range.start > 0; // up to the first line that starts in the range
    let mut start = from; // of the line at hand
    let mut held: Vec<u8> = Vec::new(); // its bytes from earlier buffers
    let mut length = 0u64; // of the line so far, held or not
    while start < range.end {
        let buffer = match input.fill_buf() {
            Ok(buffer) => buffer,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return refuse_rest(error, start, sink),
        };
        let newline = memchr::memchr(b'\n', buffer);
        let piece = &buffer[..newline.unwrap_or(buffer.len())];
        let at_end = buffer.is_empty();
        length += piece.len() as u64;
        if newline.is_some() || at_end {
            if !skipping && (length > 0 || !at_end) {
                if length > limit as u64 {
                    let detail = format!("a line of {length} bytes; limits.record_bytes is {limit}");
                    sink(Found::Refused(Refused::new(start, Reason::RecordTooLarge, detail)))?;
                } else if held.is_empty() {
                    line(piece, start, fields, sink)?;
                } else {
                    held.extend_from_slice(piece);
                    line(&held, start, fields, sink)?;
                }
            }
            if at_end {
                return Ok(());
            }
            start += length + 1;
            (skipping, length) = (false, 0);
            held.clear();
        } else if skipping {
            // The next line starts at or after the end of the range, so nothing here is ours.
            if start + length >= range.end {
                return Ok(());
            }
        } else if length <= limit as u64 {
            held.extend_from_slice(piece);
        } else {
            // Beyond the limit only the length is still counted, so memory stays bounded by the limit.
            held = Vec::new();
        }
        let consumed = piece.len() + usize::from(newline.is_some());
        input.consume(consumed);
    }
    Ok(())
}

/// Refuses the rest of a file from `offset` on, or ends the run if its store failed.
fn refuse_rest(error: io::Error, offset: u64, sink: &mut Sink<'_>) -> Result<()> {
    let (reason, detail) = sort_out(error)?;
    sink(Found::Refused(Refused::new(offset, reason, detail)))
}

fn line(bytes: &[u8], offset: u64, fields: &Fields, sink: &mut Sink<'_>) -> Result<()> {
    let bare = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii();
    if bare.is_empty() {
        return Ok(());
    }
    let page = match std::str::from_utf8(bare) {
        Ok(text) => page(text, fields),
        Err(error) => Err((Reason::NotUtf8, format!("byte {} of the line is no UTF-8", error.valid_up_to()))),
    };
    sink(match page {
        Ok(page) => Found::Page(RawPage { offset, length: bytes.len() as u64, ..page }),
        Err((reason, detail)) => Found::Refused(Refused::new(offset, reason, detail)),
    })
}

fn page(text: &str, fields: &Fields) -> std::result::Result<RawPage, (Reason, String)> {
    let row = parse(text, fields)?;
    let string = |scalar: Scalar<'_>, names: &[String]| match scalar {
        Scalar::Text(text) => Ok(text.into_owned()),
        other => Err((Reason::BadField, format!("{} is {}, but must be a string", names.join("|"), other.what()))),
    };
    let Some(url) = row.url.value else {
        return Err((Reason::BadField, missing("url", &fields.url, text)));
    };
    let url = string(url, &fields.url)?;
    let (body, form) = match (row.html.value, row.text.value) {
        (Some(html), _) => (string(html, &fields.html)?, Form::Html),
        (None, Some(text)) => (string(text, &fields.text)?, Form::Text),
        (None, None) => {
            let names = [&fields.html[..], &fields.text].concat();
            return Err((Reason::BadField, missing("html or text", &names, text)));
        }
    };
    let fetched = match row.time.value {
        None => Some(0),
        Some(Scalar::Number(Some(number))) => Some(fetch_time::of_number(number)),
        Some(Scalar::Text(text)) => fetch_time::parse(&text),
        Some(_) => None,
    };
    Ok(RawPage {
        url,
        fetch_time: fetched.unwrap_or(0),
        status: 200,
        mime: String::new(),
        charset: Some("utf-8".into()),
        body: body.into_bytes(),
        form,
        offset: 0,
        length: 0,
        mended: fetched.is_none().then_some(Reason::BadDate),
        names: Names::default(),
        payloads: Vec::new(),
    })
}

/// Says which field an object lacks, and which it has.
fn missing(setting: &str, names: &[String], object: &str) -> String {
    let there = serde_json::from_str::<BTreeMap<String, IgnoredAny>>(object).unwrap_or_default();
    let mut has: Vec<String> = there.into_keys().take(NAMED).map(|name| name.chars().take(40).collect()).collect();
    if has.len() == NAMED {
        has.push("more".into());
    }
    format!("no field {}; it has {}; input.fields.{setting} names another", names.join(" or "), has.join(", "))
}

fn parse<'t>(text: &'t str, fields: &Fields) -> std::result::Result<Row<'t>, (Reason, String)> {
    if !text.starts_with('{') {
        return Err((Reason::BadJson, "the line is no JSON object".into()));
    }
    let mut parser = serde_json::Deserializer::from_str(text);
    let row = RowSeed(fields).deserialize(&mut parser).and_then(|row| parser.end().map(|()| row));
    // The parser's messages quote no content; there is no type to mismatch, because any value is accepted.
    row.map_err(|error| (Reason::BadJson, error.to_string()))
}

/// The wanted values of an object. If several names of the settings occur, the first counts; if one name occurs twice,
/// its last value.
#[derive(Default)]
struct Row<'t> {
    url: Choice<'t>,
    html: Choice<'t>,
    text: Choice<'t>,
    time: Choice<'t>,
}

#[derive(Default)]
struct Choice<'t> {
    rank: usize,
    value: Option<Scalar<'t>>,
}

impl<'t> Choice<'t> {
    fn offer(&mut self, rank: usize, value: Scalar<'t>) {
        if self.value.is_none() || rank <= self.rank {
            match value {
                Scalar::Null if self.value.is_some() && rank < self.rank => {}
                Scalar::Null => self.value = None,
                value => (self.rank, self.value) = (rank, Some(value)),
            }
        }
    }
}

/// The properties of a JSON value that matter here.
enum Scalar<'t> {
    Null,
    Text(Cow<'t, str>),
    /// A number, with its value if it is a whole number of 64 bits.
    Number(Option<i64>),
    Bool,
    List,
    Object,
}

impl Scalar<'_> {
    fn what(&self) -> &'static str {
        match self {
            Scalar::Null => "null",
            Scalar::Text(_) => "a string",
            Scalar::Number(_) => "a number",
            Scalar::Bool => "true or false",
            Scalar::List => "a list",
            Scalar::Object => "an object",
        }
    }
}

struct RowSeed<'f>(&'f Fields);

impl<'de> DeserializeSeed<'de> for RowSeed<'_> {
    type Value = Row<'de>;

    fn deserialize<D: Deserializer<'de>>(self, parser: D) -> std::result::Result<Row<'de>, D::Error> {
        parser.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RowSeed<'_> {
    type Value = Row<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Row<'de>, A::Error> {
        let mut row = Row::default();
        while let Some(key) = map.next_key_seed(Any)? {
            let Scalar::Text(key) = key else { continue };
            let rank = |names: &[String]| names.iter().position(|name| *name == key);
            let Fields { url, html, text, time } = self.0;
            let slots = [(url, &mut row.url), (html, &mut row.html), (text, &mut row.text), (time, &mut row.time)];
            let mut value = Some(map.next_value_seed(Any)?);
            for (names, slot) in slots {
                if let Some(rank) = rank(names)
                    && let Some(value) = value.take()
                {
                    slot.offer(rank, value);
                }
            }
        }
        Ok(row)
    }
}

/// Parses any value. Lists and objects are parsed and dropped; `serde_json` bounds their depth, which its own way of
/// ignoring values does not.
struct Any;

impl<'de> DeserializeSeed<'de> for Any {
    type Value = Scalar<'de>;

    fn deserialize<D: Deserializer<'de>>(self, parser: D) -> std::result::Result<Scalar<'de>, D::Error> {
        parser.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Any {
    type Value = Scalar<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> std::result::Result<Scalar<'de>, E> {
        Ok(Scalar::Null)
    }

    fn visit_bool<E>(self, _: bool) -> std::result::Result<Scalar<'de>, E> {
        Ok(Scalar::Bool)
    }

    fn visit_i64<E>(self, number: i64) -> std::result::Result<Scalar<'de>, E> {
        Ok(Scalar::Number(Some(number)))
    }

    fn visit_u64<E>(self, number: u64) -> std::result::Result<Scalar<'de>, E> {
        Ok(Scalar::Number(i64::try_from(number).ok()))
    }

    fn visit_f64<E>(self, number: f64) -> std::result::Result<Scalar<'de>, E> {
        // Seconds with a fraction. A cast from float saturates, and a number beyond 64 bits is no time.
        Ok(Scalar::Number((number.abs() < 9e18).then_some(number as i64)))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> std::result::Result<Scalar<'de>, E> {
        Ok(Scalar::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> std::result::Result<Scalar<'de>, E> {
        Ok(Scalar::Text(Cow::Owned(text.to_string())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> std::result::Result<Scalar<'de>, A::Error> {
        while list.next_element_seed(Any)?.is_some() {}
        Ok(Scalar::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Scalar<'de>, A::Error> {
        while map.next_key::<IgnoredAny>()?.is_some() {
            map.next_value_seed(Any)?;
        }
        Ok(Scalar::Object)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;
    use crate::error::Error;
    use crate::read_at::Bytes;

    fn ranges(bytes: &[u8], cuts: &[u64], limits: &Limits) -> Vec<Found> {
        let file = Bytes(bytes.to_vec());
        let mut found = Vec::new();
        for cut in cuts.windows(2) {
            read_range(&file, cut[0]..cut[1], limits, &Fields::default(), &mut |one| {
                found.push(one);
                Ok(())
            })
            .unwrap();
        }
        found
    }

    fn all(bytes: &[u8]) -> Vec<Found> {
        ranges(bytes, &[0, bytes.len() as u64], &Limits::default())
    }

    fn whole(bytes: &[u8], compression: Compression) -> Vec<Found> {
        let mut found = Vec::new();
        read_whole(&Bytes(bytes.to_vec()), compression, &Limits::default(), &Fields::default(), &mut |one| {
            found.push(one);
            Ok(())
        })
        .unwrap();
        found
    }

    fn one(line: &str) -> Found {
        let mut found = all(line.as_bytes());
        assert_eq!(found.len(), 1, "{line}");
        found.pop().unwrap()
    }

    fn pages(found: &[Found]) -> usize {
        found.iter().filter(|one| matches!(one, Found::Page(_))).count()
    }

    fn reasons(found: &[Found]) -> Vec<(u64, Reason)> {
        found
            .iter()
            .filter_map(|one| match one {
                Found::Refused(refused) => Some((refused.offset, refused.reason)),
                Found::Page(_) => None,
            })
            .collect()
    }

    fn good(number: usize) -> String {
        format!("{{\"url\":\"http://h.example/{number}\",\"text\":\"page {number}\"}}")
    }

    /// Bad-input ids 120-129: one odd line between good ones costs at most itself.
    #[test]
    fn an_odd_line_costs_at_most_itself() {
        let deep =
            format!("{{\"url\":\"http://x/\",\"text\":\"t\",\"z\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        let cases: [(&str, &[u8], Option<Reason>); 19] = [
            ("120 bad UTF-8", b"{\"url\":\"http://x/\",\"text\":\"\xff\xfe\"}", Some(Reason::NotUtf8)),
            ("121 half a line", b"{\"url\":\"http://h.example/5\",\"text", Some(Reason::BadJson)),
            ("122 blank", b"", None),
            ("122 blanks", b" \t\r", None),
            ("123 array", b"[1,2]", Some(Reason::BadJson)),
            ("123 string", b"\"secret\"", Some(Reason::BadJson)),
            ("124 no text", b"{\"url\":\"http://x/\"}", Some(Reason::BadField)),
            ("124 null text", b"{\"url\":\"http://x/\",\"text\":null}", Some(Reason::BadField)),
            ("124 no url", b"{\"text\":\"t\"}", Some(Reason::BadField)),
            ("125 text is a number", b"{\"url\":\"http://x/\",\"text\":7}", Some(Reason::BadField)),
            ("125 url is a list", b"{\"url\":[\"http://x/\"],\"text\":\"t\"}", Some(Reason::BadField)),
            ("127 a hundred thousand deep", deep.as_bytes(), Some(Reason::BadJson)),
            ("128 lone surrogate", b"{\"url\":\"http://x/\",\"text\":\"\\ud800\"}", Some(Reason::BadJson)),
            ("two objects", b"{\"url\":\"http://x/\",\"text\":\"t\"}{}", Some(Reason::BadJson)),
            ("a bare word", b"NaN", Some(Reason::BadJson)),
            ("a raw control character", b"{\"url\":\"http://x/\",\"text\":\"\x01\"}", Some(Reason::BadJson)),
            ("a NUL", b"\0", Some(Reason::BadJson)),
            ("a number out of range", b"{\"url\":\"http://x/\",\"text\":\"t\",\"n\":1e999}", Some(Reason::BadJson)),
            ("a bare mark", b"\xef\xbb\xbf", None),
        ];
        for (what, odd, reason) in cases {
            let before = format!("{}\n{}\n", good(0), good(1));
            let file = [before.as_bytes(), odd, b"\n", good(2).as_bytes(), b"\n", good(3).as_bytes(), b"\n"].concat();
            let found = all(&file);
            assert_eq!(pages(&found), 4, "{what}");
            let expected: Vec<_> = reason.map(|reason| (before.len() as u64, reason)).into_iter().collect();
            assert_eq!(reasons(&found), expected, "{what}");
            for one in &found {
                if let Found::Refused(refused) = one {
                    assert!(!refused.detail.contains("secret"), "{what}: {}", refused.detail);
                }
            }
        }
    }

    /// Bad-input ids 126, 129-131: legal, if odd.
    #[test]
    fn odd_but_legal_files_give_all_their_pages() {
        let Found::Page(page) = one("{\"url\":\"a\",\"url\":\"http://h.example/x\",\"text\":\"t\"}") else { panic!() };
        assert_eq!(page.url, "http://h.example/x");
        let three: Vec<String> = (0..3).map(good).collect();
        assert_eq!(pages(&all(format!("\u{feff}{}", three.join("\n")).as_bytes())), 3, "129, 131");
        assert_eq!(pages(&all(format!("{}\r\n", three.join("\r\n")).as_bytes())), 3, "130");
        assert_eq!(pages(&all(three.join("\n\n\n").as_bytes())), 3);
        assert_eq!(all(b""), []);
    }

    /// Bad-input id 132; that all are bad is for the caller to judge.
    #[test]
    fn every_bad_line_is_counted() {
        assert_eq!(reasons(&all(&b"no json here\n".repeat(50))).len(), 50);
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Default::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// Bad-input id 134.
    #[test]
    fn a_truncated_file_gives_the_lines_before_the_cut() {
        let text: String = (0..2000).map(|i| good(i) + "\n").collect();
        for (packed, compression) in [
            (gzip(text.as_bytes()), Compression::Gzip),
            (zstd::encode_all(text.as_bytes(), 3).unwrap(), Compression::Zstd),
        ] {
            assert_eq!(whole(&packed, compression), all(text.as_bytes()));
            let found = whole(&packed[..packed.len() - 20], compression);
            assert_eq!(reasons(&found).iter().map(|one| one.1).collect::<Vec<_>>(), [Reason::Truncated]);
            assert!(compression == Compression::Zstd || pages(&found) > 1900, "{}", pages(&found));
            assert!(all(text.as_bytes()).starts_with(&found[..found.len() - 1]));
        }
        let members = [gzip(text.as_bytes()), gzip(text.as_bytes())].concat();
        assert_eq!(pages(&whole(&members, Compression::Gzip)), 4000);
        let mut flipped = gzip(text.as_bytes());
        let middle = flipped.len() / 2;
        flipped[middle] ^= 0x10;
        let found = whole(&flipped, Compression::Gzip);
        assert!(matches!(reasons(&found).last(), Some((_, Reason::BadCompression | Reason::BadJson))));
    }

    #[test]
    fn a_bomb_is_refused_in_bounded_memory() {
        let zeros = vec![b' '; 64 << 20];
        let bomb = zstd::encode_all(&zeros[..], 19).unwrap();
        assert_eq!(reasons(&whole(&bomb, Compression::Zstd)), [(0, Reason::DecodedTooLarge)]);
    }

    #[test]
    fn a_line_over_the_limit_is_refused_and_the_next_one_read() {
        let limits = Limits { record_bytes: 100, ..Limits::default() };
        let long = format!("{{\"url\":\"http://x/\",\"text\":\"{}\"}}", "x".repeat(3 << 20));
        let file = format!("{}\n{long}\n{}", good(0), good(1));
        let expected = [(good(0).len() as u64 + 1, Reason::RecordTooLarge)];
        for cuts in
            [vec![0, file.len() as u64], (0..=file.len() as u64).step_by(1 << 19).chain([file.len() as u64]).collect()]
        {
            let found = ranges(file.as_bytes(), &cuts, &limits);
            assert_eq!((pages(&found), reasons(&found)), (2, expected.to_vec()));
        }
    }

    #[test]
    fn fields_are_taken_in_the_order_of_their_names() {
        for (line, url, form, body, time, mended) in [
            (r#"{"uri":"b","url":"a","text":"t","html":"<p>"}"#, "a", Form::Html, "<p>", 0, None),
            (r#"{"url":"a","uri":"b","html":null,"content":"c"}"#, "a", Form::Text, "c", 0, None),
            (r#"{"url":null,"uri":"b","text":"t\n\"ü\""}"#, "b", Form::Text, "t\n\"ü\"", 0, None),
            (r#"{"url":"a","text":"","timestamp":"2019-04-20T10:00:00Z"}"#, "a", Form::Text, "", 1_555_754_400, None),
            (r#"{"url":"a","text":"t","date":1555754400000}"#, "a", Form::Text, "t", 1_555_754_400, None),
            (r#"{"url":"a","text":"t","date":1555754400.5}"#, "a", Form::Text, "t", 1_555_754_400, None),
            (r#"{"url":"a","text":"t","date":"soon"}"#, "a", Form::Text, "t", 0, Some(Reason::BadDate)),
            (r#"{"url":"a","text":"t","date":[]}"#, "a", Form::Text, "t", 0, Some(Reason::BadDate)),
        ] {
            let Found::Page(page) = one(line) else { panic!("{line}") };
            let got =
                (page.url.as_str(), page.form, std::str::from_utf8(&page.body).unwrap(), page.fetch_time, page.mended);
            assert_eq!(got, (url, form, body, time, mended), "{line}");
        }
    }

    #[test]
    fn a_failing_store_ends_the_run_and_is_no_bad_line() {
        struct Broken;
        impl ReadAt for Broken {
            fn len(&self) -> u64 {
                100
            }
            fn read_at(&self, _: u64, _: usize) -> Result<Vec<u8>> {
                Err(Error::storage("s3://b/x", "503"))
            }
        }
        let mut none = |one| panic!("{one:?}");
        let (limits, fields) = (Limits::default(), Fields::default());
        assert_eq!(read_range(&Broken, 0..100, &limits, &fields, &mut none).unwrap_err().exit_code(), 8);
        for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
            assert_eq!(read_whole(&Broken, compression, &limits, &fields, &mut none).unwrap_err().exit_code(), 8);
        }
    }

    proptest! {
        #[test]
        fn ranges_give_what_the_whole_gives_wherever_they_are_cut(
            lines in proptest::collection::vec((0usize..200, 0u8..6), 0..30),
            cuts in proptest::collection::vec(0u64..6000, 0..8),
            last_newline: bool,
        ) {
            let lines: Vec<String> = lines
                .into_iter()
                .map(|(length, odd)| match odd {
                    0 => String::new(),
                    1 => "x".repeat(length),
                    2 => good(length) + "\r",
                    _ => format!("{{\"url\":\"http://h/{length}\",\"text\":\"{}\"}}", "w ".repeat(length)),
                })
                .collect();
            let mut file = lines.join("\n");
            if last_newline {
                file.push('\n');
            }
            let length = file.len() as u64;
            let mut cuts: Vec<u64> = cuts.into_iter().map(|cut| cut.min(length)).chain([0, length]).collect();
            cuts.sort_unstable();
            let expected = lines.iter().filter(|line| !line.trim().is_empty()).count();
            let found = all(file.as_bytes());
            prop_assert_eq!(found.len(), expected);
            prop_assert_eq!(ranges(file.as_bytes(), &cuts, &Limits::default()), found);
        }
    }
}
