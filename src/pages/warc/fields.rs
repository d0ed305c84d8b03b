//! Header lines of WARC and HTTP: `name: value`, continued by lines that start with a space or tab.

use std::borrow::Cow;

/// A line of a head, after unfolding.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'h> {
    /// A name and its value, both trimmed.
    Field(&'h [u8], Cow<'h, [u8]>),
    /// A line without a colon, or with an invalid name.
    Malformed,
}

/// Returns the lines of a head after its first line.
pub(super) fn lines(head: &[u8]) -> impl Iterator<Item = Line<'_>> {
    let mut rest = next_line(head).1;
    std::iter::from_fn(move || {
        let (line, mut rest_after) = next_line(rest);
        if line.is_empty() {
            return None;
        }
        let mut joined = Cow::Borrowed(line);
        while matches!(rest_after.first(), Some(b' ' | b'\t')) {
            let (continuation, rest_after_continuation) = next_line(rest_after);
            joined.to_mut().push(b' ');
            joined.to_mut().extend_from_slice(continuation.trim_ascii());
            rest_after = rest_after_continuation;
        }
        rest = rest_after;
        let Some(colon) = memchr::memchr(b':', line) else { return Some(Line::Malformed) };
        let name = line[..colon].trim_ascii();
        if name.is_empty() || name.iter().any(|&byte| byte <= b' ' || byte == 0x7f) {
            return Some(Line::Malformed);
        }
        let value = match joined {
            Cow::Borrowed(line) => Cow::Borrowed(line[colon + 1..].trim_ascii()),
            Cow::Owned(line) => Cow::Owned(line[colon + 1..].trim_ascii().to_vec()),
        };
        Some(Line::Field(name, value))
    })
}

/// Splits off the first line, without its line end. A line end is LF after any number of CRs,
/// because files that were once converted as text have `\r\r\n`.
pub(super) fn next_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    let (line, rest) = match memchr::memchr(b'\n', bytes) {
        Some(end) => (&bytes[..end], &bytes[end + 1..]),
        None => (bytes, &[][..]),
    };
    (&line[..line.len() - line.iter().rev().take_while(|&&byte| byte == b'\r').count()], rest)
}

/// True if a line, given without its LF, ends a head.
pub(super) fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|&byte| byte == b'\r')
}

/// Returns header bytes as text: UTF-8 if valid, otherwise Latin-1.
pub(super) fn text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().map(|&byte| char::from(byte)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(head: &[u8]) -> Vec<(String, String)> {
        lines(head)
            .map(|line| match line {
                Line::Field(name, value) => (text(name), text(&value)),
                Line::Malformed => ("odd".to_owned(), String::new()),
            })
            .collect()
    }

    #[test]
    fn fields_end_at_the_blank_line_with_either_line_end() {
        let expected = [("A".to_owned(), "1".to_owned()), ("b-c".to_owned(), "x: y".to_owned())];
        assert_eq!(fields(b"first: line\r\nA: 1\r\nb-c :x: y \r\n\r\nD: 4\r\n"), expected);
        assert_eq!(fields(b"first: line\nA: 1\nb-c :x: y \n\nD: 4\n"), expected);
    }

    #[test]
    fn folded_lines_continue_the_value() {
        assert_eq!(fields(b"v\r\nA: 1\r\n  2\r\n\t3\r\nB: 4\r\n\r\n")[0].1, "1 2 3");
    }

    #[test]
    fn header_line_without_colon_or_with_nul_in_its_name_is_invalid() {
        assert_eq!(fields(b"v\nno colon\nX-\0: \0\n: empty\nA: b\n\n").iter().filter(|f| f.0 == "odd").count(), 3);
    }

    #[test]
    fn header_bytes_that_are_not_utf8_are_latin1() {
        assert_eq!(text(b"caf\xe9"), "café");
        assert_eq!(text("café".as_bytes()), "café");
    }
}
