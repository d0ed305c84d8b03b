//! Columns of characters, and line breaks of text in scripts without spaces.
//!
//! If lines of Chinese were filled completely, all lines up to the end of the paragraph would
//! differ after one character was inserted, because each line would end one character later.
//! English text does not have this problem: a line ends with a word, and two fillings of a text
//! agree again as soon as they end a line with the same word. Therefore text without spaces is
//! divided into pieces in place of words. A piece ends after a character whose code point hashes to
//! an end, after punctuation, and where the script changes. This depends only on the characters on
//! both sides, so a difference between two texts moves no break elsewhere.
//!
//! # Deviations
//! - A piece is not a word of the language. Words would need dictionaries, and each edition of a
//!   dictionary would be another recipe.

use std::ops::Range;

use unicode_width::UnicodeWidthChar;

use webtwin_base::ids::splitmix64;

/// Inverse fraction of characters, one column wide, that end a piece. Of wider characters,
/// proportionally more end a piece. English words, including the following space, are about as wide
/// as the pieces.
const COLUMNS_PER_PIECE: u64 = 6;

/// Blocks of scripts that are written without spaces, and of their punctuation: Thai, Lao, Tibetan,
/// Burmese, Khmer, Tai scripts, Balinese, Javanese, Chinese, Japanese, Yi, Tangut, Nushu. Korean is
/// written with spaces.
const WITHOUT_SPACES: [(u32, u32); 17] = [
    (0x0e00, 0x0fff),
    (0x1000, 0x109f),
    (0x1780, 0x17ff),
    (0x1950, 0x19ff),
    (0x1a20, 0x1aaf),
    (0x1b00, 0x1b7f),
    (0x2e80, 0x312f),
    (0x3190, 0xa4cf),
    (0xa980, 0xa9ff),
    (0xaa60, 0xaadf),
    (0xf900, 0xfaff),
    (0xfe30, 0xfe4f),
    (0xff01, 0xff9f),
    (0x16fe0, 0x18dff),
    (0x1aff0, 0x1b2ff),
    (0x20000, 0x2fffd),
    (0x30000, 0x3fffd),
];

const OPENING: &str = "([{‘“«‹〈《「『【〔〖〘〚〝（［｛｟｢";
const CLOSING: &str = "!),.:;?]}%’”»›…、。〉》」』】〕〗〙〛〞〟！），．：；？］｝｠｡､｣";

/// Properties of a character that determine whether a line may be broken before or after it.
#[derive(Debug, Clone, Copy)]
struct Class {
    without_spaces: bool,
    opens: bool,
    closes: bool,
    /// True if the next piece may begin after the character.
    ends: bool,
}

impl Class {
    fn from_character(character: char, width: usize) -> Class {
        let code = u32::from(character);
        let without_spaces = WITHOUT_SPACES.iter().any(|&(first, last)| (first..=last).contains(&code));
        let ends = without_spaces && splitmix64(code.into()).is_multiple_of(COLUMNS_PER_PIECE / width as u64);
        Class { without_spaces, opens: OPENING.contains(character), closes: CLOSING.contains(character), ends }
    }

    /// True if a line may be broken between two characters.
    fn breaks_before(self, next: Class) -> bool {
        let is_same_script = self.without_spaces && next.without_spaces;
        (self.without_spaces || next.without_spaces)
            && !self.opens
            && !next.closes
            && (!is_same_script || self.ends || self.closes || next.opens)
    }
}

/// Yields the pieces of a word, between which a line may be broken, each with its columns. A word
/// of a script with spaces is one piece; a piece of another script is never wider than `wrap`.
pub(super) fn pieces(word: &str, wrap: usize, mut piece: impl FnMut(Range<usize>, usize)) {
    // Up to U+02FF every character has one column, and no word is broken.
    if word.bytes().all(|byte| byte < 0xcc) {
        return piece(0..word.len(), word.chars().count());
    }
    let (mut start, mut columns) = (0, 0);
    let mut previous_class: Option<Class> = None;
    for (at, character) in word.char_indices() {
        let width = columns_of(character);
        // A combining mark stays with its letter.
        if width == 0 {
            continue;
        }
        let class = Class::from_character(character, width);
        let is_full = |before: Class| columns + width > wrap && before.without_spaces && class.without_spaces;
        if previous_class.is_some_and(|before| before.breaks_before(class) || is_full(before)) {
            piece(start..at, columns);
            (start, columns) = (at, 0);
        }
        columns += width;
        previous_class = Some(class);
    }
    piece(start..word.len(), columns);
}

/// Returns the columns of a character: 2 if its East Asian Width is W or F, 0 for marks, 1 for all
/// others.
fn columns_of(character: char) -> usize {
    match character {
        // Latin, Greek and Cyrillic.
        '\0'..'\u{300}' | '\u{370}'..'\u{483}' => 1,
        _ => character.width().unwrap_or(1).min(2),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(word: &str) -> Vec<(&str, usize)> {
        let mut pieces_found = Vec::new();
        pieces(word, 80, |piece, columns| pieces_found.push((&word[piece], columns)));
        pieces_found
    }

    #[test]
    fn word_of_a_script_with_spaces_is_one_segment() {
        for (word, columns) in
            [("Übergrößenträger", 16), ("déjà-vu.example", 15), ("слово", 5), ("한국어", 6), ("é", 1)]
        {
            assert_eq!(of(word), [(word, columns)]);
        }
        assert_eq!(of("e\u{301}te\u{301}"), [("e\u{301}te\u{301}", 3)]);
        assert_eq!(of("a😀b"), [("a😀b", 4)]);
    }

    #[test]
    fn pieces_end_after_punctuation_and_where_the_script_changes_and_never_before_a_mark() {
        fn texts(word: &str) -> Vec<&str> {
            of(word).into_iter().map(|piece| piece.0).collect()
        }
        assert_eq!(texts("好，好").last(), Some(&"好"));
        assert_eq!(texts("日v1.2"), ["日", "v1.2"]);
        assert_eq!(texts("v1.2日"), ["v1.2", "日"]);
        assert!(texts("日(v1)").contains(&"(v1)"));
        let thai = "กำลังไปเที่ยวที่น้ำตก".repeat(9);
        for piece in texts(&thai) {
            assert!(columns_of(piece.chars().next().unwrap()) > 0, "{piece}");
        }
        let japanese = "「近い写し」を、見つける。".repeat(9);
        for piece in texts(&japanese) {
            let (first, last) = (piece.chars().next().unwrap(), piece.chars().next_back().unwrap());
            assert!(!CLOSING.contains(first) && !OPENING.contains(last), "{piece}");
        }
    }

    #[test]
    fn pieces_are_as_wide_as_words() {
        for first in [0x4e00, 0x3042, 0x0e01] {
            let text: String =
                (0..2000u64).filter_map(|i| char::from_u32(first + (splitmix64(i) % 40) as u32)).collect();
            let pieces = of(&text);
            let mean = pieces.iter().map(|piece| piece.1).sum::<usize>() as f64 / pieces.len() as f64;
            assert!((3.0..13.0).contains(&mean), "{first:x}: {mean}");
        }
    }

    proptest! {
        #[test]
        fn a_change_moves_no_break_elsewhere(
            head in "[一-丿]{20}", tail in "[一-丿]{20}", one in "[一-丿a]{0,3}", other in "[一-丿a]{0,3}"
        ) {
            let breaks = |middle: &str| {
                let text = [&head, middle, &tail].concat();
                let (mut head_breaks, mut tail_breaks) = (Vec::new(), Vec::new());
                pieces(&text, usize::MAX, |piece, _| {
                    match piece.start {
                        at if at < head.len() => head_breaks.push(at),
                        at if at > head.len() + middle.len() => tail_breaks.push(text.len() - at),
                        _ => {}
                    }
                });
                (head_breaks, tail_breaks)
            };
            prop_assert_eq!(breaks(&one), breaks(&other));
        }

        #[test]
        fn pieces_concatenate_to_the_word_and_fit(word in "[a-z一-乿あ-んก-๏́。（é한]{1,120}", wrap in 16usize..60) {
            let (mut end, mut widest) = (0, 0);
            pieces(&word, wrap, |piece, columns| {
                assert_eq!(piece.start, end);
                end = piece.end;
                let is_without_spaces = word[piece].chars().all(|c| Class::from_character(c, 1).without_spaces);
                widest = widest.max(if is_without_spaces { columns } else { 0 });
            });
            prop_assert_eq!(end, word.len());
            prop_assert!(widest <= wrap);
        }
    }
}
