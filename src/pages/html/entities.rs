//! Character references: `&eacute;`, `&#233;`, `&#xE9;`, and the legacy names that may be written
//! without `;`.
//!
//! # Source
//! WHATWG HTML section 13.2.5.72 to 13.2.5.80. `entities.txt` is its table of names, sorted by
//! bytes: name, `*` if the `;` is optional, and the code points.

use std::sync::LazyLock;

use xxhash_rust::xxh3::xxh3_64;

use webtwin_base::by_hash::HashKeyMap;

/// Length of the longest name in the table, and of the longest name whose `;` is optional.
const MAX_NAME_BYTES: usize = 31;
const MAX_LEGACY_NAME_BYTES: usize = 6;

struct Entity {
    name: &'static str,
    legacy: bool,
    characters: String,
}

static NAMED_ENTITIES: LazyLock<HashKeyMap<Entity>> = LazyLock::new(|| {
    let entity = |line: &'static str| {
        let (name, points) = line.split_once(' ')?;
        let characters = points.split(' ').map(|point| char::from_u32(u32::from_str_radix(point, 16).ok()?));
        let characters = characters.collect::<Option<String>>()?;
        Some(Entity { name: name.trim_end_matches('*'), legacy: name.ends_with('*'), characters })
    };
    let entities =
        include_str!("entities.txt").lines().map(|line| entity(line).expect("a line is a name and code points"));
    entities.map(|entity| (xxh3_64(entity.name.as_bytes()), entity)).collect()
});

/// Characters for the code points 0x80 to 0x9F in a numeric reference, which are those of
/// windows-1252.
const WINDOWS_1252: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}', '‘', '’',
    '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// Context of a reference. In an attribute, `&copy=1` and `&copyright` are not references.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntityContext {
    /// Text, or the content of a title or textarea.
    Text,
    /// The value of an attribute.
    Attribute,
}

/// Decodes the reference at the beginning of `text`, whose first byte is `&`, and appends its
/// characters to `output`.
///
/// Returns the number of bytes read. An `&` that begins no reference is appended unchanged.
pub(super) fn decode(text: &str, place: EntityContext, output: &mut String) -> usize {
    let rest = &text.as_bytes()[1..];
    let read = match rest.first() {
        Some(b'#') => numeric(&rest[1..]).map(|(length, character)| {
            output.push(character);
            1 + length
        }),
        Some(letter) if letter.is_ascii_alphabetic() => parse_named(&text[1..], place).map(|(length, characters)| {
            output.push_str(characters);
            length
        }),
        _ => None,
    };
    1 + read.unwrap_or_else(|| {
        output.push('&');
        0
    })
}

/// Appends the attribute value `value` to `output`, with its references decoded.
pub(super) fn decode_attribute(value: &str, output: &mut String) {
    let mut rest = value;
    while let Some(position) = memchr::memchr(b'&', rest.as_bytes()) {
        output.push_str(&rest[..position]);
        rest = &rest[position..];
        rest = &rest[decode(rest, EntityContext::Attribute, output)..];
    }
    output.push_str(rest);
}

/// Parses a numeric reference after `&#`.
fn numeric(rest: &[u8]) -> Option<(usize, char)> {
    let (radix, prefix) = if let Some(b'x' | b'X') = rest.first() { (16, 1) } else { (10, 0) };
    let mut length = prefix;
    let mut point = 0u32;
    while let Some(digit) = rest.get(length).and_then(|&byte| char::from(byte).to_digit(radix)) {
        // Saturating arithmetic, so that a code point out of range cannot wrap around into the
        // range.
        point = point.saturating_mul(radix).saturating_add(digit);
        length += 1;
    }
    if length == prefix {
        return None;
    }
    let character = match point {
        0 => '\u{fffd}',
        0x80..=0x9f => WINDOWS_1252[point as usize - 0x80],
        _ => char::from_u32(point).unwrap_or('\u{fffd}'),
    };
    Some((length + usize::from(rest.get(length) == Some(&b';')), character))
}

/// Parses the longest name after `&`.
fn parse_named(rest: &str, place: EntityContext) -> Option<(usize, &'static str)> {
    let bytes = rest.as_bytes();
    let name = bytes.iter().take(MAX_NAME_BYTES + 1).take_while(|byte| byte.is_ascii_alphanumeric()).count();
    if bytes.get(name) == Some(&b';')
        && let Some(entity) = find(&rest[..name])
    {
        return Some((name + 1, &entity.characters));
    }
    let legacy = |length: usize| find(&rest[..length]).filter(|entity| entity.legacy);
    let entity = (2..=name.min(MAX_LEGACY_NAME_BYTES)).rev().find_map(legacy)?;
    let length = entity.name.len();
    let continues = bytes.get(length).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'=');
    (place == EntityContext::Text || !continues).then_some((length, entity.characters.as_str()))
}

fn find(name: &str) -> Option<&'static Entity> {
    NAMED_ENTITIES.get(&xxh3_64(name.as_bytes())).filter(|entity| entity.name == name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode_text(text: &str, place: EntityContext) -> String {
        let (mut output, mut position) = (String::new(), 0);
        while position < text.len() {
            if text[position..].starts_with('&') {
                position += decode(&text[position..], place, &mut output);
            } else {
                let character = text[position..].chars().next().unwrap();
                output.push(character);
                position += character.len_utf8();
            }
        }
        output
    }

    #[test]
    fn names_are_within_their_bounds() {
        let legacy = || NAMED_ENTITIES.values().filter(|entity| entity.legacy);
        assert_eq!((NAMED_ENTITIES.len(), legacy().count()), (2125, 106));
        assert!(
            NAMED_ENTITIES.values().all(|entity| entity.name.len() <= MAX_NAME_BYTES && !entity.characters.is_empty())
        );
        assert!(legacy().all(|entity| (2..=MAX_LEGACY_NAME_BYTES).contains(&entity.name.len())));
        for entity in NAMED_ENTITIES.values() {
            assert_eq!(decode_text(&format!("&{};", entity.name), EntityContext::Attribute), entity.characters);
        }
    }

    #[test]
    fn references_in_text() {
        for (text, expected) in [
            ("&lt;p&gt; &amp;amp; &quot;&apos;", "<p> &amp; \"'"),
            ("&eacute;&Eacute;&Alpha;&rarr;&euro;&hellip;&NotEqualTilde;", "éÉΑ→€…≂̸"),
            ("&CounterClockwiseContourIntegral;", "∳"),
            ("&notit; &notin; &not; &noti", "¬it; ∉ ¬ ¬i"),
            ("AT&T &copy2 &eacutee &frac12x &Ntilde&amp", "AT&T ©2 ée ½x Ñ&"),
            ("&alpha &EACUTE; &nosuch; & &; &&lt;&", "&alpha &EACUTE; &nosuch; & &; &<&"),
            ("&#65;&#x42;&#X43&#068.", "ABCD."),
            ("&#128;&#x99;&#150;&#x81;", "€™–\u{81}"),
            ("&#0;&#xD800;&#x110000;&#99999999999999999999;", "\u{fffd}\u{fffd}\u{fffd}\u{fffd}"),
            ("&#; &#x; &#xg; &#a", "&#; &#x; &#xg; &#a"),
            ("&ampé &é", "&é &é"),
        ] {
            assert_eq!(decode_text(text, EntityContext::Text), expected, "{text}");
        }
    }

    #[test]
    fn queries_in_attributes_are_references_only_with_a_semicolon() {
        let value = "/a?b=1&copy=2&amp;c=3&lt4&sect&para;&notin&times";
        let mut output = String::new();
        decode_attribute(value, &mut output);
        assert_eq!(output, "/a?b=1&copy=2&c=3&lt4§¶&notin×");
        assert_eq!(decode_text(value, EntityContext::Attribute), output);
    }

    proptest! {
        #[test]
        fn consumes_at_least_the_ampersand_and_at_most_the_text(text in "&[#xXa-zA-Z0-9;=é]{0,40}") {
            let mut out = String::new();
            let read = decode(&text, EntityContext::Text, &mut out);
            prop_assert!(read >= 1 && text.is_char_boundary(read) && !out.is_empty());
        }
    }
}
