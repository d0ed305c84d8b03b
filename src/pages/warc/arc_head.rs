//! Head of an ARC record: one line of five fields (version 1) or ten (version 2), separated by
//! spaces.
//!
//! ```text
//! URL IP-address Archive-date Content-type Archive-length
//! URL IP-address Archive-date Content-type Result-code Checksum Location Offset Filename Archive-length
//! ```
//!
//! URLs and content types may contain spaces in spite of the standard, so the URL ends before the
//! last address that a date follows. The version is detected for each line, not taken from the
//! first record of the file, which a reader of a range has not read.
//!
//! # Source
//! Burner, Kahle: *ARC File Format*, Internet Archive, 1996.

use memchr::memchr_iter;

use super::address;
use super::fields::{next_line, text};
use super::media_type::media_type;
use super::record_head::RecordHead;

/// Number of bytes at a place from which [`starts`] decides: more than any URL that servers accept.
pub(super) const SNIFF_BYTES: usize = 8 << 10;

/// Schemes of the URLs in ARC files, by which a record is distinguished from other content.
const SCHEMES: [&[u8]; 7] = [b"filedesc:", b"http:", b"https:", b"dns:", b"ftp:", b"whois:", b"gopher:"];

/// Length of the longest scheme, with its colon.
pub(super) const SCHEME_BYTES: usize = 9;

/// True if an ARC record starts here, with a line that ends within [`SNIFF_BYTES`].
pub(super) fn starts(bytes: &[u8]) -> bool {
    // The first bytes reject most lines of a page, so they are checked before the fields.
    let head = &bytes[..bytes.len().min(SNIFF_BYTES)];
    begins(head) && head.contains(&b'\n') && fields(next_line(head).0).is_some()
}

/// True if the bytes begin with the scheme of a URL in an ARC head.
pub(super) fn begins(bytes: &[u8]) -> bool {
    SCHEMES.iter().any(|scheme| bytes.get(..scheme.len()).is_some_and(|first| first.eq_ignore_ascii_case(scheme)))
}

/// Returns the first position in `bytes` at which [`begins`] is true.
pub(super) fn next_candidate(bytes: &[u8]) -> Option<usize> {
    memchr_iter(b':', bytes).find_map(|colon| {
        let line_start = &bytes[..=colon];
        let ends = |scheme: &&[u8]| {
            line_start.len().checked_sub(scheme.len()).filter(|&start| line_start[start..].eq_ignore_ascii_case(scheme))
        };
        SCHEMES.iter().filter_map(ends).min()
    })
}

/// Parses a head, given as its line.
pub(super) fn parse(line: &[u8]) -> Option<RecordHead> {
    let Fields { uri, address, date, media, length } = fields(next_line(line).0)?;
    let (media, charset) = media_type(&text(media));
    Some(RecordHead {
        kind: "response".to_owned(),
        uri: text(uri),
        date: text(date),
        media: if media == "no-type" { String::new() } else { media },
        charset,
        address: address::name(address),
        length: text(length).parse().map_err(|_| format!("length {:?} is not a number", text(length))),
        ..RecordHead::empty()
    })
}

struct Fields<'l> {
    uri: &'l [u8],
    address: &'l [u8],
    date: &'l [u8],
    media: &'l [u8],
    length: &'l [u8],
}

fn fields(line: &[u8]) -> Option<Fields<'_>> {
    let words: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
    let length = *words.last()?;
    let is_number = |word: &[u8]| !word.is_empty() && word.iter().all(u8::is_ascii_digit);
    if !is_number(length.strip_prefix(b"-").unwrap_or(length)) {
        return None;
    }
    let is_date = |word: &[u8]| (8..=18).contains(&word.len()) && is_number(word);
    let date_position = (2..words.len() - 1).rev().find(|&at| is_date(words[at]) && is_address(words[at - 1]))?;
    let words_after = &words[date_position + 1..];
    let is_second = words_after.len() >= 7
        && is_number(words_after[words_after.len() - 6])
        && is_number(words_after[words_after.len() - 3]);
    let joined_length = |words: &[&[u8]]| words.iter().map(|word| word.len() + 1).sum::<usize>().saturating_sub(1);
    let uri = &line[..joined_length(&words[..date_position - 1])];
    let media_at = joined_length(&words[..=date_position]) + 1;
    let media_words = &words_after[..words_after.len() - if is_second { 6 } else { 1 }];
    let media = &line[media_at..media_at + joined_length(media_words)];
    Some(Fields { uri, address: words[date_position - 1], date: words[date_position], media, length })
}

/// True if a word looks like an IPv4 or IPv6 address, or denotes an unknown one: `-`, or `0` in the
/// description of the format.
fn is_address(word: &[u8]) -> bool {
    let are_digits = |byte: &u8| byte.is_ascii_hexdigit() || matches!(byte, b'.' | b':');
    matches!(word, b"-" | b"0") || (word.iter().all(are_digits) && word.iter().any(|byte| matches!(byte, b'.' | b':')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<(String, String, String, Result<u64, ()>)> {
        let head = parse(line.as_bytes())?;
        Some((head.uri, head.date, head.media, head.length.map_err(drop)))
    }

    fn of(uri: &str, date: &str, media: &str, length: u64) -> Option<(String, String, String, Result<u64, ()>)> {
        Some((uri.into(), date.into(), media.into(), Ok(length)))
    }

    #[test]
    fn both_arc_versions_are_read_with_misplaced_spaces() {
        for (line, head) in [
            (
                "filedesc://IA-001102.arc 0 19960923142103 text/plain 76\n",
                of("filedesc://IA-001102.arc", "19960923142103", "text/plain", 76),
            ),
            (
                "http://www.dryswamp.edu:80/index.html 127.10.100.2 19961104142103 text/html 202\n",
                of("http://www.dryswamp.edu:80/index.html", "19961104142103", "text/html", 202),
            ),
            (
                "http://www.dryswamp.edu:80/index.html 127.10.100.2 19961104142103 text/html 200 \
                 fac069150613fe55599cc7fa88aa089d - 209 IA-001102.arc 202\n",
                of("http://www.dryswamp.edu:80/index.html", "19961104142103", "text/html", 202),
            ),
            (
                "http://a/x y z 1.2.3.4 20140216050221 text/html 7",
                of("http://a/x y z", "20140216050221", "text/html", 7),
            ),
            (
                "http://a/ 2001:db8::1 20140216050221 text/html; charset=utf-8 7\r\n",
                of("http://a/", "20140216050221", "text/html", 7),
            ),
            ("dns:a - 20140216050221 text/dns 7", of("dns:a", "20140216050221", "text/dns", 7)),
            ("http://a/ 1.2.3.4 20140216050221 no-type 0", of("http://a/", "20140216050221", "", 0)),
            ("http://a/ 1.2.3.4 20140216050221  0", of("http://a/", "20140216050221", "", 0)),
            (
                "http://a/ 1.2.3.4 20140216050221 text/html -1",
                Some(("http://a/".into(), "20140216050221".into(), "text/html".into(), Err(()))),
            ),
            ("http://a/ 1.2.3.4 20140216050221 text/html abc", None),
            ("http://a/ 20140216050221 text/html 7", None),
            ("http://a/ 1.2.3.4 text/html 7", None),
            ("http://a/", None),
            ("", None),
        ] {
            assert_eq!(read(line), head, "{line}");
        }
    }

    proptest::proptest! {
        #[test]
        fn the_next_candidate_is_the_first_place_that_begins_like_a_record(text in "(http|HTTPS|dns|ftp|x|:|/| |\\n){0,12}") {
            let bytes = text.as_bytes();
            let expected = (0..bytes.len()).find(|&at| begins(&bytes[at..]));
            proptest::prop_assert_eq!(next_candidate(bytes), expected);
        }
    }

    #[test]
    fn a_record_starts_with_a_url_of_a_crawl_and_its_line_ends_soon() {
        assert!(starts(b"http://a/ 1.2.3.4 20140216050221 text/html 7\nHTTP/1.0 200"));
        assert!(!starts(b"ttp://a/ 1.2.3.4 20140216050221 text/html 7\n"));
        assert!(!starts(b"<a href=x>http://a/ 1.2.3.4 20140216050221 text/html 7\n"));
        let long = |bytes: usize| format!("http://a/{} 1.2.3.4 20140216050221 text/html 7\n", "x".repeat(bytes));
        assert!(starts(long(4000).as_bytes()) && !starts(long(SNIFF_BYTES).as_bytes()));
    }
}
