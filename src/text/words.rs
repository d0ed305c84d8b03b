//! Text becomes words, case-folded, in order.
//!
//! Words are those of Unicode (UAX #29, as in `unicode-segmentation`) that contain a letter or digit: *don't*, *3.14*,
//! *www.example.com* and *snake_case* are one word each. Scripts written without spaces have no words in that sense,
//! only characters; there a word is two neighbouring characters, or one that stands alone.
//!
//! # Deviations
//! - Case is folded to the lower case of each character, not by Unicode's full folding: a final sigma stays as it is.
//! - Text is not normalised: the two encodings of é are different letters.

use unicode_segmentation::UnicodeSegmentation;

use super::runs::Runs;

/// Finds words; keeps its memory between texts.
#[derive(Debug, Default)]
pub struct Words {
    /// The current text, its ASCII letters in lower case.
    lower: String,
    runs: Runs,
    folded: Vec<u8>,
}

impl Words {
    /// Calls `word` with each word of `text`, in order, as UTF-8.
    ///
    /// # Cost
    /// A few passes over ASCII, which needs no tables; a word with other characters, up to the next white space, needs
    /// the tables of Unicode.
    pub fn each(&mut self, text: &str, mut word: impl FnMut(&[u8])) {
        self.lower.clear();
        self.lower.push_str(text);
        self.lower.make_ascii_lowercase();
        let bytes = self.lower.as_bytes();
        self.runs.of(bytes);
        let (mut at, mut next_beyond) = (0, next_beyond_ascii(bytes, 0));
        while let Some((start, end)) = self.runs.next(at) {
            at = end;
            while joins(bytes, at) {
                at = self.runs.end(at + 1);
            }
            let beyond = next_beyond <= at + 1 && (next_beyond < at || may_join_beyond(bytes, at));
            if beyond {
                // A word never contains white space, and what comes before `start` does not affect what follows.
                at = start + bytes[start..].iter().position(u8::is_ascii_whitespace).unwrap_or(bytes.len() - start);
                unicode_words(&self.lower[start..at], &mut self.folded, &mut word);
                next_beyond = next_beyond_ascii(bytes, at);
            } else if bytes[start] != b'_' || bytes[start..at].iter().any(|&byte| byte != b'_') {
                word(&bytes[start..at]);
            }
        }
    }
}

/// Whether the byte at `at`, which follows a run, joins it with the text after it (rules WB6, WB7, WB11 and WB12).
fn joins(bytes: &[u8], at: usize) -> bool {
    let [before, joiner, behind] = match bytes.get(at - 1..at + 2) {
        Some(&[before, joiner, behind]) => [before, joiner, behind],
        _ => return false,
    };
    match joiner {
        b'.' | b'\'' => {
            before.is_ascii_lowercase() && behind.is_ascii_lowercase()
                || before.is_ascii_digit() && behind.is_ascii_digit()
        }
        b':' => before.is_ascii_lowercase() && behind.is_ascii_lowercase(),
        b',' | b';' => before.is_ascii_digit() && behind.is_ascii_digit(),
        _ => false,
    }
}

/// Position of the first non-ASCII byte at or after `from`; the length of the text if there is none.
fn next_beyond_ascii(bytes: &[u8], from: usize) -> usize {
    let ascii = bytes[from..].chunks(64).take_while(|chunk| chunk.is_ascii()).count();
    let start = bytes.len().min(from + 64 * ascii);
    bytes[start..].iter().position(|byte| !byte.is_ascii()).map_or(bytes.len(), |at| start + at)
}

/// Whether the byte at `at` may join the text before it with a character beyond ASCII.
fn may_join_beyond(bytes: &[u8], at: usize) -> bool {
    matches!(bytes.get(at..at + 2), Some(&[b'.' | b',' | b';' | b':' | b'\'', 0x80..=0xff]))
}

/// Finds words by the tables of Unicode.
fn unicode_words(text: &str, folded: &mut Vec<u8>, word: &mut impl FnMut(&[u8])) {
    let mut tell = |part: &str| {
        folded.clear();
        for lower in part.chars().flat_map(char::to_lowercase) {
            folded.extend_from_slice(lower.encode_utf8(&mut [0; 4]).as_bytes());
        }
        word(folded);
    };
    // The last character of a script without spaces, and whether it is part of a pair.
    let mut last: Option<(usize, &str, bool)> = None;
    for (start, part) in text.unicode_word_indices() {
        let spaceless = part.chars().next().is_some_and(is_written_without_spaces);
        let neighbour = last.take_if(|(at, before, _)| spaceless && *at + before.len() == start);
        match neighbour {
            Some((at, _, _)) => tell(&text[at..start + part.len()]),
            None => {
                if let Some((_, alone, false)) = last.take() {
                    tell(alone);
                }
                if !spaceless {
                    tell(part);
                }
            }
        }
        if spaceless {
            last = Some((start, part, neighbour.is_some()));
        }
    }
    if let Some((_, alone, false)) = last {
        tell(alone);
    }
}

/// Whether this character's script is written without spaces between words, and Unicode's tables do not segment it
/// either: Thai, Lao, Burmese, Khmer, Hiragana and Han. (Katakana forms words; Hangul is written with spaces.)
fn is_written_without_spaces(character: char) -> bool {
    matches!(
        u32::from(character),
        0x0e00..=0x0eff
            | 0x1000..=0x109f
            | 0x1780..=0x17ff
            | 0x3005..=0x3007
            | 0x3040..=0x309f
            | 0x3400..=0x4dbf
            | 0x4e00..=0x9fff
            | 0xf900..=0xfaff
            | 0x20000..=0x3ffff
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        Words::default().each(text, |word| found.push(String::from_utf8(word.to_vec()).unwrap()));
        found
    }

    #[test]
    fn words_are_those_of_unicode_in_lower_case() {
        assert_eq!(
            all("Don't print 3.14, but SEE www.Example.com; __ snake_case!"),
            ["don't", "print", "3.14", "but", "see", "www.example.com", "snake_case"]
        );
        assert_eq!(all("Ünïcode ÄRGER—Straße"), ["ünïcode", "ärger", "straße"]);
    }

    #[test]
    fn scripts_without_spaces_give_pairs_of_characters() {
        assert_eq!(all("日本語"), ["日本", "本語"]);
        assert_eq!(all("猫 と犬 v2日"), ["猫", "と犬", "v2", "日"]);
        assert_eq!(all("カタカナです"), ["カタカナ", "です"]);
        assert_eq!(all("서울 도서관"), ["서울", "도서관"]);
        assert_eq!(all("ภาษา").len(), 3);
    }

    proptest! {
        #[test]
        fn the_short_way_through_ascii_equals_the_tables_of_unicode(
            text in "([a-cA-C0-2_.,:;'\"/ \t\n(-]|[äßé́ \u{ad}日本のカ한ก☃\u{200d}א]){0,24}"
        ) {
            let mut want = Vec::new();
            unicode_words(&text, &mut Vec::new(), &mut |word: &[u8]| want.push(String::from_utf8(word.to_vec()).unwrap()));
            prop_assert_eq!(all(&text), want);
        }
    }
}
