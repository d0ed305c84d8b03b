//! Media types as servers write them: repeated, joined, quoted, or missing.
//!
//! # Source
//! WHATWG Fetch, "extract a MIME type": of several types the last one counts, `*/*` never does, and
//! a charset stays valid while the type remains the same.
//!
//! # Deviations
//! - A value that only begins with a media type (`text/html:charset=utf-8`) is that type. The
//!   standard discards it.

/// Parses the values of `Content-Type`, joined by commas. Returns the media type in lower case, and
/// the charset.
///
/// If no value is a media type, the first part of the last value is returned (`html`, `*/*`).
pub(super) fn media_type(values: &str) -> (String, Option<String>) {
    let (mut media, mut charset) = (String::new(), None);
    for value in parts(values).filter(|value| !value.is_empty()) {
        let essence = essence(value);
        let named_charset = charset_of(value);
        if essence == media {
            charset = named_charset.or(charset);
        } else if is_media_type(&essence) || !is_media_type(&media) {
            (media, charset) = (essence, named_charset);
        }
    }
    (media, charset)
}

/// True if this is a type and a subtype other than `*/*`.
pub(super) fn is_media_type(essence: &str) -> bool {
    essence != "*/*"
        && essence
            .split_once('/')
            .is_some_and(|(kind, subtype)| !kind.is_empty() && !subtype.is_empty() && !subtype.contains('/'))
}

/// Splits at commas outside of quotes.
fn parts(values: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    let at_comma = move |character: char| {
        quoted ^= character == '"';
        character == ',' && !quoted
    };
    values.split(at_comma).map(str::trim)
}

fn essence(value: &str) -> String {
    let value = value.trim_start_matches(['"', '\'', ' ', '\t']);
    let is_of_type = |byte: u8| byte.is_ascii_alphanumeric() || b"/!#$%&*+-.^_`|~".contains(&byte);
    let end = value.bytes().position(|byte| !is_of_type(byte)).unwrap_or(value.len());
    value[..end].to_ascii_lowercase()
}

/// Returns the value of a parameter `charset`, after any separator.
fn charset_of(value: &str) -> Option<String> {
    const NAME: &str = "charset";
    let lower = value.to_ascii_lowercase();
    lower.match_indices(NAME).find_map(|(position, _)| {
        let is_name =
            !lower[..position].ends_with(|before: char| before.is_ascii_alphanumeric() || matches!(before, '-' | '_'));
        let value_start =
            value[position + NAME.len()..].trim_start().strip_prefix('=').filter(|_| is_name)?.trim_start();
        let end = value_start.find([';', ' ', '\t']).unwrap_or(value_start.len());
        let label = value_start[..end].trim_matches(['"', '\'']).trim();
        (!label.is_empty()).then(|| label.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_type_yields_media_type_and_charset() {
        for (header, media, charset) in [
            ("Text/HTML; Charset=\"UTF-8\"", "text/html", Some("UTF-8")),
            ("text/html;foo;charset = latin1 ; x=y", "text/html", Some("latin1")),
            ("text/plain; charset=", "text/plain", None),
            ("text/html;;charset=utf-8", "text/html", Some("utf-8")),
            ("text/html ;charset=utf-8;", "text/html", Some("utf-8")),
            ("text/html; x-charset=a; charset='b'", "text/html", Some("b")),
            ("text/html; profile=\"a;b, c/d\"; charset=utf-8", "text/html", Some("utf-8")),
            ("", "", None),
        ] {
            assert_eq!(media_type(header), (media.to_owned(), charset.map(str::to_owned)), "{header}");
        }
    }

    #[test]
    fn last_of_several_types_applies_with_the_charset_of_its_media_type() {
        for (header, media, charset) in [
            ("text/html, text/html", "text/html", None),
            ("text/html; charset=utf-8, text/html", "text/html", Some("utf-8")),
            ("text/html; charset=a, text/html; charset=b", "text/html", Some("b")),
            ("text/plain; charset=a, text/html", "text/html", None),
            ("*/*, text/html", "text/html", None),
            ("text/html, */*", "text/html", None),
            ("text/html, html", "text/html", None),
            ("html, text/html", "text/html", None),
            ("text/html,", "text/html", None),
        ] {
            assert_eq!(media_type(header), (media.to_owned(), charset.map(str::to_owned)), "{header}");
        }
    }

    #[test]
    fn value_beginning_with_a_type_is_that_type_and_others_are_returned_as_written() {
        for (header, media, charset) in [
            ("\"text/html\"", "text/html", None),
            ("'text/html; charset=utf-8'", "text/html", Some("utf-8")),
            ("text/html charset=utf-8", "text/html", Some("utf-8")),
            ("text/html:charset=utf-8", "text/html", Some("utf-8")),
            ("text/html\\n", "text/html", None),
            ("charset=utf-8", "charset", Some("utf-8")),
            ("*/*", "*/*", None),
            ("HTML", "html", None),
            ("a/b/c", "a/b/c", None),
            ("été", "", None),
        ] {
            assert_eq!(media_type(header), (media.to_owned(), charset.map(str::to_owned)), "{header}");
        }
        assert!(is_media_type("text/html"));
        assert!(["*/*", "html", "text/", "/html", "a/b/c", ""].iter().all(|none| !is_media_type(none)));
    }
}
