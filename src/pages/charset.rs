//! Decoding of page bodies into characters, by the rules of the web.
//!
//! Input: a body, and the charset that its transport declares. Output: the text, and the number of
//! malformed sequences that were replaced by U+FFFD. The encoding is the first that exists of: the
//! byte order mark; the charset of the transport; the charset of `<meta>` or of the XML declaration
//! within the first 1024 bytes; UTF-8 if the body is valid UTF-8; a guess from byte frequencies.
//!
//! # Source
//! WHATWG HTML section 13.2.3.2 ("determining the character encoding") and the Encoding standard,
//! whose labels and decoders are implemented by `encoding_rs`. By these standards, UTF-16 in a
//! `<meta>` means UTF-8, `iso-8859-1` means windows-1252, UTF-7 is unknown, and charsets that hide
//! markup (`hz-gb-2312`) decode to one U+FFFD.
//!
//! # Deviations
//! - The guess ignores the top-level domain of the page: copies of a page must decode to the same
//!   text on every host.
//! - The guess reads 64 KiB from the first byte beyond ASCII, so that its cost does not grow with
//!   the page.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{DecoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

use super::html::tokenizer::attributes;

/// Number of bytes of a body that are searched for a `<meta>`.
const PRESCAN_BYTES: usize = 1024;

/// Number of bytes from which an undeclared encoding is guessed.
const GUESS_BYTES: usize = 64 << 10;

/// Decoder of bodies that reuses one buffer. Valid UTF-8 is not copied.
#[derive(Debug, Default)]
pub struct CharsetDecoder {
    buffer: String,
}

/// Text of a body, borrowed from the decoder or from the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodedText<'a> {
    /// Characters of the text, without a byte order mark.
    pub text: &'a str,
    /// Number of malformed sequences that were replaced by U+FFFD. A U+FFFD that is in the body
    /// itself does not count.
    pub replaced: u64,
}

impl CharsetDecoder {
    /// Decodes a body. If `markup` is false, the body is plain text, and a `<meta>` in it is not
    /// read.
    pub fn decode<'a>(&'a mut self, body: &'a [u8], transport: Option<&str>, markup: bool) -> DecodedText<'a> {
        let (encoding, body) = encoding_of(body, transport, markup);
        if encoding == UTF_8
            && let Ok(text) = std::str::from_utf8(body)
        {
            return DecodedText { text, replaced: 0 };
        }
        let mut decoder = encoding.new_decoder_without_bom_handling();
        self.buffer.clear();
        let (mut n_replaced, mut rest) = (0, body);
        loop {
            self.buffer.reserve(rest.len().clamp(64, 64 << 10));
            let (result, read) = decoder.decode_to_string_without_replacement(rest, &mut self.buffer, true);
            rest = &rest[read..];
            match result {
                DecoderResult::InputEmpty => break,
                DecoderResult::OutputFull => {}
                DecoderResult::Malformed(..) => {
                    self.buffer.push('\u{fffd}');
                    n_replaced += 1;
                }
            }
        }
        DecodedText { text: &self.buffer, replaced: n_replaced }
    }
}

/// Returns the encoding of a body, and the body without its byte order mark.
fn encoding_of<'a>(body: &'a [u8], transport: Option<&str>, markup: bool) -> (&'static Encoding, &'a [u8]) {
    if let Some((encoding, mark)) = Encoding::for_bom(body) {
        return (encoding, &body[mark..]);
    }
    let label_encoding = transport.and_then(|label| Encoding::for_label(label.as_bytes()));
    let head = &body[..body.len().min(PRESCAN_BYTES)];
    let label_encoding =
        label_encoding.or_else(|| if markup { meta(head).or_else(|| xml_declaration(head)) } else { None });
    (label_encoding.unwrap_or_else(|| guess(body)), body)
}

fn guess(body: &[u8]) -> &'static Encoding {
    let Err(error) = std::str::from_utf8(body) else { return UTF_8 };
    // The bytes before the first error are ASCII or valid UTF-8. The guess needs those that are not
    // ASCII.
    let beyond_ascii = body[..error.valid_up_to()].iter().position(|byte| !byte.is_ascii());
    let start = beyond_ascii.unwrap_or(error.valid_up_to()).saturating_sub(1);
    let sample = &body[start..body.len().min(start + GUESS_BYTES)];
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(sample, start + sample.len() == body.len());
    detector.guess(None, Utf8Detection::Allow)
}

/// Returns the encoding that a `<meta>` in `head` declares ("prescan a byte stream" in the
/// standard).
fn meta(head: &[u8]) -> Option<&'static Encoding> {
    let mut position = 0;
    loop {
        position += memchr::memchr(b'<', &head[position..])? + 1;
        let rest = &head[position..];
        if rest.starts_with(b"!--") {
            position += 1 + memchr::memmem::find(&rest[1..], b"-->")? + 3;
        } else if rest.len() > 4
            && rest[..4].eq_ignore_ascii_case(b"meta")
            && (rest[4] == b'/' || rest[4].is_ascii_whitespace())
        {
            position += 4;
            if let Some(encoding) = declaration(head, &mut position)? {
                return Some(encoding);
            }
        } else {
            let name = usize::from(rest.first() == Some(&b'/'));
            match rest.get(name)? {
                letter if letter.is_ascii_alphabetic() => {
                    position += rest.iter().position(|byte| *byte == b'>' || byte.is_ascii_whitespace())?;
                    attributes(head, &mut position, |_, _| ())?;
                }
                _ if name == 1 || matches!(rest[0], b'!' | b'?') => position += memchr::memchr(b'>', rest)?,
                _ => {}
            }
        }
    }
}

/// Parses one `<meta>` from the end of its name and returns the encoding that it declares. Returns
/// `None` if the head ends within the element.
fn declaration(head: &[u8], position: &mut usize) -> Option<Option<&'static Encoding>> {
    let (mut pragma, mut content, mut charset) = (false, None, None);
    attributes(head, position, |name, value| {
        let value = &head[value];
        if name.eq_ignore_ascii_case(b"http-equiv") {
            pragma |= value.eq_ignore_ascii_case(b"content-type");
        } else if name.eq_ignore_ascii_case(b"content") {
            content = content.or_else(|| charset_parameter(value));
        } else if name.eq_ignore_ascii_case(b"charset") {
            charset = charset.or(Some(value));
        }
    })?;
    let label = charset.or(if pragma { content } else { None });
    Some(label.and_then(Encoding::for_label).map(|encoding| match encoding {
        // A `<meta>` that is readable byte by byte cannot be in UTF-16, regardless of its label.
        utf16 if utf16 == UTF_16LE || utf16 == UTF_16BE => UTF_8,
        user if user == X_USER_DEFINED => WINDOWS_1252,
        encoding => encoding,
    }))
}

/// Returns the label after `charset=` in a `content` attribute.
fn charset_parameter(content: &[u8]) -> Option<&[u8]> {
    let mut rest = content;
    loop {
        let start = rest.windows(7).position(|window| window.eq_ignore_ascii_case(b"charset"))?;
        rest = rest[start + 7..].trim_ascii_start();
        if let Some(value) = rest.strip_prefix(b"=") {
            return quoted(value.trim_ascii_start(), |byte| byte == b';' || byte.is_ascii_whitespace());
        }
    }
}

/// Returns the encoding that `<?xml … encoding="…"?>` at the start of the body declares.
fn xml_declaration(head: &[u8]) -> Option<&'static Encoding> {
    let declaration = &head[..memchr::memchr(b'>', head)?];
    let rest = declaration.strip_prefix(b"<?xml")?;
    let rest = rest[memchr::memmem::find(rest, b"encoding")? + 8..].trim_ascii_start();
    let value = rest.strip_prefix(b"=")?.trim_ascii_start();
    let label = quoted(value, |_| true)?;
    Encoding::for_label(label)
        .map(|encoding| if encoding == UTF_16LE || encoding == UTF_16BE { UTF_8 } else { encoding })
}

/// Returns a value in quotes, or an unquoted value up to the first byte for which `ends` is true.
/// Returns `None` if a quote is not closed.
fn quoted(value: &[u8], ends: impl Fn(u8) -> bool) -> Option<&[u8]> {
    match value.first()? {
        quote @ (b'"' | b'\'') => Some(&value[1..][..memchr::memchr(*quote, &value[1..])?]),
        _ => Some(&value[..value.iter().position(|&byte| ends(byte)).unwrap_or(value.len())]),
    }
}

#[cfg(test)]
mod tests {
    use encoding_rs::{EUC_JP, GB18030, SHIFT_JIS, WINDOWS_1251};
    use proptest::prelude::*;

    use super::*;

    fn html(body: &[u8], transport: Option<&str>) -> (String, u64) {
        let mut decoder = CharsetDecoder::default();
        let text = decoder.decode(body, transport, true);
        (text.text.to_owned(), text.replaced)
    }

    #[test]
    fn byte_order_mark_overrides_transport_and_transport_overrides_meta() {
        assert_eq!(html(b"\xef\xbb\xbf\xc3\xa9", Some("windows-1252")), ("é".into(), 0));
        assert_eq!(html(b"\xff\xfeh\0i\0", Some("utf-8")), ("hi".into(), 0));
        assert_eq!(html(b"\xfe\xff\0h\0i", None), ("hi".into(), 0));
        assert_eq!(html(b"<meta charset=utf-8>\xe9", Some("ISO-8859-1")).0, "<meta charset=utf-8>é");
        assert_eq!(html(b"h\0i\0", Some("utf-16")), ("hi".into(), 0));
    }

    #[test]
    fn wrong_charset_is_used_and_the_damage_counted() {
        assert_eq!(html("é".as_bytes(), Some("iso-8859-1")), ("Ã©".into(), 0));
        assert_eq!(
            html(b"caf\xe9 \xef\xbf\xbd \xff\xff", Some("utf-8")),
            ("caf\u{fffd} \u{fffd} \u{fffd}\u{fffd}".into(), 3)
        );
        assert_eq!(html(b"anything", Some("hz-gb-2312")), ("\u{fffd}".into(), 1));
    }

    #[test]
    fn unknown_charset_labels_are_ignored() {
        assert_eq!(html("é".as_bytes(), Some("utf-7")), ("é".into(), 0));
        assert_eq!(
            html(b"<meta charset=none><meta charset=koi8-r>\xc1", Some("binary")).0,
            "<meta charset=none><meta charset=koi8-r>а"
        );
    }

    #[test]
    fn meta_equals_the_prescan_of_the_standard() {
        let charset_of = |head: &str| meta(head.as_bytes()).map(Encoding::name);
        for (head, expected) in [
            ("<meta charset=shift_jis>", Some("Shift_JIS")),
            ("<META/CHARSET = 'euc-jp' >", Some("EUC-JP")),
            ("<meta http-equiv=Content-Type content='text/html; charset=gb2312'>", Some("GBK")),
            ("<meta content='text/html; charset=\"gb18030\"' http-equiv=content-type>", Some("gb18030")),
            ("<meta http-equiv=content-type content='charset charset = koi8-r; x'>", Some("KOI8-R")),
            ("<meta content='text/html; charset=gb2312'>", None),
            ("<meta http-equiv=refresh content='text/html; charset=gb2312'>", None),
            ("<meta charset=utf-16le>", Some("UTF-8")),
            ("<meta charset=x-user-defined>", Some("windows-1252")),
            ("<meta charset=utf-7>", None),
            ("<!-- <meta charset=big5> --><meta charset=euc-kr>", Some("EUC-KR")),
            ("<!--><meta charset=big5>", Some("Big5")),
            ("<p title='<meta charset=big5>'>", None),
            ("</p title='<meta charset=big5>'><meta charset=euc-kr>", Some("EUC-KR")),
            ("<!doctype html><?php ?><1 <meta charset=big5>", Some("Big5")),
            ("<meta charset=big5", None),
            ("<metacharset=big5>", None),
            ("<", None),
            ("</", None),
            ("<meta", None),
        ] {
            assert_eq!(charset_of(head), expected, "{head}");
        }
        let late_charset = format!("{}<meta charset=big5>", " ".repeat(1024));
        assert_eq!(encoding_of(late_charset.as_bytes(), None, true).0, UTF_8);
        assert_eq!(encoding_of(b"<meta charset=big5>", None, false).0, UTF_8);
        assert_eq!(xml_declaration(b"<?xml version='1.0' encoding=\"EUC-JP\"?>"), Some(EUC_JP));
        assert_eq!(xml_declaration(b"<?xml version='1.0'?> encoding='EUC-JP'>"), None);
    }

    #[test]
    fn an_undeclared_encoding_is_guessed() {
        for (encoding, text) in [
            (
                WINDOWS_1252,
                "Übergrößenträger müssen über Äcker gehen, außer früh; c’est déjà l’été, où l’on fête Noël.",
            ),
            (WINDOWS_1251, "Съешь же ещё этих мягких французских булок, да выпей чаю."),
            (SHIFT_JIS, "日本語の文字コードには、いくつかの種類があります。これはテストです。"),
            (GB18030, "他们的语言是中文，这个页面没有声明编码，所以只好猜测。"),
        ] {
            let (body, _, lossy) = encoding.encode(text);
            assert!(!lossy);
            assert_eq!(html(&body, None), (text.to_owned(), 0), "{}", encoding.name());
        }
    }

    #[test]
    fn a_guess_on_a_long_page_cuts_no_character_in_two() {
        for shift in 0..4 {
            let text =
                format!("{}{}", "x".repeat(shift), "日本語の文字コードには、いくつかの種類があります。".repeat(4000));
            let (body, _, _) = SHIFT_JIS.encode(&text);
            assert_eq!(html(&body, None), (text, 0));
        }
    }

    proptest! {
        #[test]
        fn decoding_equals_that_of_encoding_rs(
            body in proptest::collection::vec(any::<u8>(), 0..200),
            label in prop_oneof!["utf-8", "shift_jis", "gb18030", "utf-16le", "windows-1252", "iso-2022-jp", "big5", "euc-kr"],
        ) {
            let (text, _, bad) = Encoding::for_label(label.as_bytes()).unwrap().decode(&body);
            let (ours, replaced) = html(&body, Some(&label));
            prop_assert_eq!(&ours, &text);
            prop_assert_eq!(replaced > 0, bad);
        }
    }
}
