//! Folding of plain characters, one by one and independent of their neighbours. Almost all
//! characters of most texts are plain.
//!
//! A character is plain if each step of folding turns it into one character, and neither of these
//! combines with a character before it. So letters, digits, punctuation and symbols are plain,
//! except for letters that combine (those of Hangul).

use std::sync::LazyLock;

use icu_properties::CodePointMapData;
use icu_properties::props::{GeneralCategory, GeneralCategoryGroup};

use super::fold::of_character;

/// End of the range of characters that are in the table.
const TABLE_END: u32 = 0x3100;

/// Marks a character that is not plain in the table.
const NONE: char = '\0';

/// Composed and folded form of each character of the table.
static TABLE: LazyLock<Vec<[char; 2]>> = LazyLock::new(|| {
    let forms_of_point = |point| char::from_u32(point).and_then(by_definition).unwrap_or([NONE; 2]);
    (0..TABLE_END).map(forms_of_point).collect()
});

/// Returns the two forms of a character if it is plain.
fn by_definition(character: char) -> Option<[char; 2]> {
    let single = |form: &String| {
        let mut characters = form.chars();
        characters.next().filter(|&first| characters.next().is_none() && combines_with_none_before(first))
    };
    let [composed, folded_form] = of_character(character);
    let forms = [single(&composed)?, single(&folded_form)?];
    (character.is_ascii() || combines_with_none_before(character)).then_some(forms)
}

fn combines_with_none_before(character: char) -> bool {
    let groups = GeneralCategoryGroup::Letter
        .union(GeneralCategoryGroup::Number)
        .union(GeneralCategoryGroup::Punctuation)
        .union(GeneralCategoryGroup::Symbol);
    let category = CodePointMapData::<GeneralCategory>::new().get(character);
    let is_jamo = matches!(character, '\u{1100}'..='\u{11ff}');
    character == ' ' || groups.contains(category) && !is_jamo
}

/// Returns a form of a plain character: 0 for the composed, 1 for the folded form.
fn plain(character: char, form: usize, table: &[[char; 2]]) -> Option<char> {
    match character {
        ..'\u{3100}' => Some(table[character as usize][form]).filter(|&plain| plain != NONE),
        // Each character of Han and Hangul is its own form.
        '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' => Some(character),
        // Full-width forms of ASCII.
        '\u{ff01}'..='\u{ff5e}' => Some(table[character as usize - 0xfee0][form]),
        _ => None,
    }
}

/// Writes the text after step 3. Returns false if a character is not plain; the text is then
/// incomplete.
pub(super) fn composed(text: &str, into: &mut String) -> bool {
    all(text, 0, into)
}

/// Writes the folded text. Returns false if a character is not plain; the text is then incomplete.
pub(super) fn folded(text: &str, into: &mut String) -> bool {
    all(text, 1, into)
}

fn all(text: &str, form: usize, into: &mut String) -> bool {
    into.clear();
    let table = TABLE.as_slice();
    for character in text.chars() {
        let Some(plain) = plain(character, form, table) else { return false };
        into.push(plain);
    }
    true
}

#[cfg(test)]
mod tests {
    use icu_normalizer::DecomposingNormalizer;

    use super::*;

    fn characters() -> impl Iterator<Item = char> {
        (0..=0x10_ffffu32).filter_map(char::from_u32)
    }

    #[test]
    fn a_plain_character_has_the_forms_of_the_definition() {
        for character in characters() {
            for form in 0..2 {
                if let Some(plain) = plain(character, form, &TABLE) {
                    assert_eq!(plain.to_string(), of_character(character)[form], "{character:?}");
                }
            }
        }
        for character in "aZéßÜяΩש한漢あ，！„ก".chars().filter(|&character| character != 'ß') {
            assert!(plain(character, 1, &TABLE).is_some(), "{character}");
        }
    }

    #[test]
    fn no_plain_character_combines_with_one_before_it() {
        let nfd = DecomposingNormalizer::new_nfd();
        for composite in characters() {
            for part in nfd.normalize(&composite.to_string()).chars().skip(1) {
                assert_eq!(plain(part, 0, &TABLE), None, "{part:?} of {composite:?}");
            }
        }
    }
}
