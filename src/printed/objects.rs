//! Search for the objects of a PDF in its bytes, for files whose cross-reference table does not
//! lead to them.
//!
//! Every object begins with `N G obj`, independent of the tables of the file. A stream ends at the
//! offset that its `/Length` gives if `endstream` is there, and otherwise at the next `endstream`.
//! Bytes that look like an object inside a stream are therefore not one. A wrong length that
//! happens to lead to the end of another stream cannot be distinguished from a correct one.
//!
//! # Cost
//! One pass over the bytes, for any content: each search begins where the previous one has ended,
//! or repeats its result.

use std::collections::HashMap;
use std::ops::Range;

use memchr::memmem;

/// Largest number of an object (PDF 1.7, annex C).
const LARGEST_NUMBER: u32 = 8_388_607;

/// Maximum length in bytes of a number that is an object, with the white space before it.
const NUMBER_BYTES: usize = 64;

/// An object in the bytes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PdfObject {
    /// Number of the object.
    pub number: u32,
    /// Generation of the object.
    pub generation: u16,
    /// Offset of the object in the file.
    pub offset: usize,
    /// Range of bytes that begins with the object, or with the dictionary of its stream.
    pub body: Range<usize>,
    /// Range of the bytes of its stream.
    pub data: Option<Range<usize>>,
}

/// Position at which an object begins.
struct Start {
    number: u32,
    generation: u16,
    offset: usize,
    /// Offset of the first byte after `obj`.
    body: usize,
}

/// Returns the objects in their order in the file. Several may have the same number.
pub(crate) fn find(bytes: &[u8]) -> Vec<PdfObject> {
    let starts: Vec<Start> = memmem::find_iter(bytes, b"obj").filter_map(|at| start(bytes, at)).collect();
    let bodies: HashMap<u32, usize> = starts.iter().map(|start| (start.number, start.body)).collect();
    let mut ends = StreamEnds { bytes, next: None };
    let mut objects = Vec::new();
    let mut position = 0;
    while let Some(&Start { number, generation, offset, body }) = starts.get(position) {
        position += 1;
        let end = starts.get(position).map_or(bytes.len(), |next| next.offset);
        let mut object = PdfObject { number, generation, offset, body: body..end, data: None };
        if let Some((head, data)) = stream_start(&bytes[..end], body) {
            let end = match length(&bytes[body..head], bytes, &bodies).and_then(|length| data.checked_add(length)) {
                Some(end) if is_stream_end(bytes, end) => end,
                _ => ends.end_of_data(data, &starts[position..]),
            };
            (object.body.end, object.data) = (head, Some(data..end));
            position += starts[position..].partition_point(|start| start.offset < end);
        }
        objects.push(object);
    }
    objects
}

/// Parses `N G obj`, with `obj` at `position`.
fn start(bytes: &[u8], position: usize) -> Option<Start> {
    let body = position + b"obj".len();
    if bytes.get(body).is_some_and(u8::is_ascii_alphanumeric) {
        return None;
    }
    let (generation, rest) = last_number(&bytes[..position])?;
    let (number, rest) = last_number(rest)?;
    let number = u32::try_from(number).ok().filter(|number| (1..=LARGEST_NUMBER).contains(number))?;
    Some(Start { number, generation: generation.try_into().ok()?, offset: rest.len(), body })
}

/// Splits off the number that is followed by white space at the end of the bytes.
fn last_number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let text = bytes.trim_ascii_end();
    let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (rest, digits) = text.split_at(text.len() - digits);
    let number = std::str::from_utf8(digits).ok()?.parse().ok()?;
    (text.len() < bytes.len()).then_some((number, rest))
}

/// Returns the end of the dictionary of a stream and the start of its data, for an object whose
/// body begins at `body`.
fn stream_start(bytes: &[u8], body: usize) -> Option<(usize, usize)> {
    memmem::find_iter(&bytes[body..], b"stream").find_map(|offset| {
        let (head, body_start) = (body + offset, body + offset + b"stream".len());
        if !bytes[body..head].trim_ascii_end().ends_with(b">>") {
            return None;
        }
        let blanks = bytes[body_start..].iter().take_while(|&&byte| byte == b' ').count();
        let line_end = match &bytes[body_start + blanks..] {
            [b'\r', b'\n', ..] => 2,
            [b'\r' | b'\n', ..] => 1,
            _ => return None,
        };
        Some((head, body_start + blanks + line_end))
    })
}

/// Reads the `/Length` in the dictionary of a stream. The value may be a reference to another
/// object.
fn length(head: &[u8], bytes: &[u8], bodies: &HashMap<u32, usize>) -> Option<usize> {
    const KEY: &[u8] = b"/Length";
    let keys = memmem::find_iter(head, KEY).map(|at| &head[at + KEY.len()..]);
    let value = keys.into_iter().find(|value| value.first().is_some_and(|&byte| !byte.is_ascii_alphanumeric()))?;
    let (first, rest) = first_number(value)?;
    match first_number(rest) {
        Some((_, rest)) if rest.trim_ascii_start().starts_with(b"R") => {
            let body = *bodies.get(&u32::try_from(first).ok()?)?;
            let value = &bytes[body..bytes.len().min(body + NUMBER_BYTES)];
            first_number(value).and_then(|(length, _)| length.try_into().ok())
        }
        _ => first.try_into().ok(),
    }
}

/// Splits off the number at the beginning of the bytes, after white space.
fn first_number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let text = bytes.trim_ascii_start();
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at(digits);
    Some((std::str::from_utf8(digits).ok()?.parse().ok()?, rest))
}

/// True if `endstream` is at `position`, possibly after a line end.
fn is_stream_end(bytes: &[u8], position: usize) -> bool {
    let Some(rest) = bytes.get(position..) else { return false };
    [&b""[..], b"\n", b"\r\n", b"\r"]
        .iter()
        .any(|end| rest.strip_prefix(*end).is_some_and(|rest| rest.starts_with(b"endstream")))
}

/// Finder of the ends of streams whose lengths are wrong.
struct StreamEnds<'b> {
    bytes: &'b [u8],
    /// Position of the last `endstream` that was found, or the end of the file.
    next: Option<usize>,
}

impl StreamEnds<'_> {
    /// Returns the end of the data that begins at `data`. `starts` are the objects that may follow
    /// it.
    fn end_of_data(&mut self, data: usize, starts: &[Start]) -> usize {
        let end = match self.next.filter(|&next| next >= data) {
            Some(next) => next,
            None => memmem::find(&self.bytes[data..], b"endstream").map_or(self.bytes.len(), |at| data + at),
        };
        self.next = Some(end);
        // A stream without its `endstream` ends at the `endobj` of its object.
        let object_end = starts.iter().take_while(|start| start.offset < end).find_map(|start| {
            let text_before = self.bytes[data..start.offset].trim_ascii_end().strip_suffix(b"endobj")?;
            Some(data + text_before.len())
        });
        let bytes = &self.bytes[data..object_end.unwrap_or(end)];
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        data + bytes.strip_suffix(b"\r").unwrap_or(bytes).len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the numbers of the objects, with their streams.
    fn objects_found(bytes: &[u8]) -> Vec<(u32, Option<&[u8]>)> {
        find(bytes).into_iter().map(|found| (found.number, found.data.map(|data| &bytes[data]))).collect()
    }

    #[test]
    fn objects_begin_with_two_numbers_and_obj() {
        let bytes = b"%PDF-1.4\n1 0 obj<</A 1>>endobj 12  3\nobj\r\n[1 2 R]\nendobj\n3 0 object 4 obj 0 0 obj 99999999 0 obj x70 0 obj";
        let heads: Vec<_> = find(bytes).into_iter().map(|one| (one.number, one.generation, one.offset)).collect();
        assert_eq!(heads, [(1, 0, 9), (12, 3, 31), (70, 0, bytes.len() - 8)]);
        assert_eq!(find(b"obj"), []);
        assert_eq!(find(b""), []);
    }

    #[test]
    fn stream_ends_by_its_length_or_at_the_next_endstream() {
        let inner = b"5 0 obj <<>> endobj endstream";
        let stream = |head: &str, data: &[u8], end: &str| {
            [b"1 0 obj\n<<", head.as_bytes(), b">>\nstream\n", data, end.as_bytes()].concat()
        };
        let right = format!("/Length1 7/Length {}", inner.len());
        assert_eq!(objects_found(&stream(&right, inner, "\nendstream endobj")), [(1, Some(&inner[..]))]);
        let length_in_object =
            [&stream("/Length 2 0 R", inner, "\r\nendstream endobj\n2 0 obj ")[..], b"29 endobj"].concat();
        assert_eq!(objects_found(&length_in_object), [(1, Some(&inner[..])), (2, None)]);
        for invalid in ["/Length 3", "/Length 999999", "/Length 7 0 R", "/Length", "", "/Length 18446744073709551615"] {
            let bytes = stream(invalid, b"data", "\r\nendstream\nendobj\n2 0 obj null endobj");
            assert_eq!(objects_found(&bytes), [(1, Some(&b"data"[..])), (2, None)], "{invalid}");
        }
    }

    #[test]
    fn stream_without_an_end_does_not_swallow_other_objects() {
        let unterminated =
            b"1 0 obj <</Length 9>> stream\ndata\nendobj\n2 0 obj <</Length 4>> stream\r\nmore\nendstream endobj";
        assert_eq!(objects_found(unterminated), [(1, Some(&b"data"[..])), (2, Some(&b"more"[..]))]);
        assert_eq!(
            objects_found(b"3 0 obj <<>> stream\nto the end of the fi"),
            [(3, Some(&b"to the end of the fi"[..]))]
        );
        // The keyword occurs in a string.
        assert_eq!(objects_found(b"4 0 obj <</Title (a>> stream of)>> endobj"), [(4, None)]);
    }
}
