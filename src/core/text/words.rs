//! Words of a text, normalised and case-folded ([`super::fold`]), in order.
//!
//! Words are those of Unicode (UAX #29, as in `unicode-segmentation`) that contain a letter or
//! digit: *don't*, *3.14*, *www.example.com* and *snake_case* are one word each. Scripts written
//! without spaces have no words in that sense, only characters. There, a word is a pair of
//! neighbouring characters, or a character without neighbours.

use unicode_segmentation::UnicodeSegmentation;

use super::fold::Folding;
use super::memo::Memo;
use super::runs::WordBytes;
use super::scripts::is_written_without_spaces;

/// Extractor of words, which reuses its buffers between texts.
///
/// # Examples
/// ```
/// use webtwin_core::text::words::WordSplitter;
///
/// let mut words = Vec::new();
/// WordSplitter::default().for_each_word("Don't \u{2014} see Pi, 3.14!", |word| {
///     words.push(String::from_utf8_lossy(word).into_owned());
/// });
/// assert_eq!(words, ["don't", "see", "pi", "3.14"]);
/// ```
#[derive(Debug, Default)]
pub struct WordSplitter {
    /// Current text, with its ASCII letters in lower case.
    lower: String,
    runs: WordBytes,
    folding: Folding,
    memo: Memo,
}

impl WordSplitter {
    /// Calls `word` with each word of `text`, in order, as UTF-8.
    ///
    /// # Cost
    /// A few passes over ASCII, which needs no tables. A word with other characters, up to the next
    /// white space, needs the tables of Unicode unless it is cached.
    pub fn for_each_word(&mut self, text: &str, mut word: impl FnMut(&[u8])) {
        let WordSplitter { lower, runs, folding, memo } = self;
        lower.clear();
        lower.push_str(text);
        lower.make_ascii_lowercase();
        let bytes = lower.as_bytes();
        runs.set_text(bytes);
        let (mut at, mut next_beyond) = (0, next_beyond_ascii(bytes, 0));
        while let Some((start, end)) = runs.next(at) {
            at = end;
            while joins(bytes, at) {
                at = runs.end(at + 1);
            }
            let is_beyond_ascii = next_beyond <= at + 1 && (next_beyond < at || may_join_beyond(bytes, at));
            if is_beyond_ascii {
                // A word never contains white space, and characters before `start` do not affect
                // the following ones.
                at = start + bytes[start..].iter().position(u8::is_ascii_whitespace).unwrap_or(bytes.len() - start);
                let token = &lower[start..at];
                memo.for_each_word(token, |emit| unicode_words(folding.folded(token), emit), &mut word);
                next_beyond = next_beyond_ascii(bytes, at);
            } else if bytes[start] != b'_' || bytes[start..at].iter().any(|&byte| byte != b'_') {
                word(&bytes[start..at]);
            }
        }
    }
}

/// True if the byte at `at`, which follows a run, joins it with the text after it (rules WB6, WB7,
/// WB11 and WB12).
fn joins(bytes: &[u8], at: usize) -> bool {
    let [left, joiner, right] = match bytes.get(at - 1..at + 2) {
        Some(&[before, joiner, behind]) => [before, joiner, behind],
        _ => return false,
    };
    match joiner {
        b'.' | b'\'' => {
            left.is_ascii_lowercase() && right.is_ascii_lowercase() || left.is_ascii_digit() && right.is_ascii_digit()
        }
        b':' => left.is_ascii_lowercase() && right.is_ascii_lowercase(),
        b',' | b';' => left.is_ascii_digit() && right.is_ascii_digit(),
        _ => false,
    }
}

/// Returns the position of the first non-ASCII byte at or after `from`, or the length of the text
/// if there is none.
fn next_beyond_ascii(bytes: &[u8], from: usize) -> usize {
    let ascii = bytes[from..].chunks(64).take_while(|chunk| chunk.is_ascii()).count();
    let start = bytes.len().min(from + 64 * ascii);
    bytes[start..].iter().position(|byte| !byte.is_ascii()).map_or(bytes.len(), |at| start + at)
}

/// True if the byte at `at` may join the text before it with a non-ASCII character.
fn may_join_beyond(bytes: &[u8], at: usize) -> bool {
    matches!(bytes.get(at..at + 2), Some(&[b'.' | b',' | b';' | b':' | b'\'', 0x80..=0xff]))
}

/// Splits a folded text into words by the tables of Unicode.
fn unicode_words(text: &str, word: &mut dyn FnMut(&[u8])) {
    let mut emit = |part: &str| word(part.as_bytes());
    // Last character of a script without spaces, and true if it is part of a pair.
    let mut last: Option<(usize, &str, bool)> = None;
    for (start, part) in text.unicode_word_indices() {
        let spaceless = part.chars().next().is_some_and(is_written_without_spaces);
        let neighbour = last.take_if(|(at, before, _)| spaceless && *at + before.len() == start);
        match neighbour {
            Some((at, _, _)) => emit(&text[at..start + part.len()]),
            None => {
                if let Some((_, single_word, false)) = last.take() {
                    emit(single_word);
                }
                if !spaceless {
                    emit(part);
                }
            }
        }
        if spaceless {
            last = Some((start, part, neighbour.is_some()));
        }
    }
    if let Some((_, single_word, false)) = last {
        emit(single_word);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words_of(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        WordSplitter::default().for_each_word(text, |word| words.push(String::from_utf8(word.to_vec()).unwrap()));
        words
    }

    #[test]
    fn words_follow_unicode_and_are_folded() {
        assert_eq!(
            words_of("Don't print 3.14, but SEE www.Example.com; __ snake_case!"),
            ["don't", "print", "3.14", "but", "see", "www.example.com", "snake_case"]
        );
        assert_eq!(words_of("Ünïcode ÄRGER—Straße"), ["ünïcode", "ärger", "strasse"]);
        assert_eq!(
            words_of("matin\u{202f}; 12\u{202f}000 \u{ab}\u{a0}co\u{ad}op\u{2009}\u{bb}"),
            ["matin", "12", "000", "coop"]
        );
    }

    #[test]
    fn scripts_without_spaces_yield_pairs_of_characters() {
        assert_eq!(words_of("日本語"), ["日本", "本語"]);
        assert_eq!(words_of("猫 と犬 v2日"), ["猫", "と犬", "v2", "日"]);
        assert_eq!(words_of("カタカナです"), ["カタカナ", "です"]);
        assert_eq!(words_of("서울 도서관"), ["서울", "도서관"]);
        assert_eq!(words_of("ภาษา").len(), 3);
        assert_eq!(words_of("ภา\u{200b}ษา"), words_of("ภาษา"));
    }

    proptest! {
        #[test]
        fn fast_path_for_ascii_equals_the_unicode_tables(
            text in "([a-cA-C0-2_.,:;'\"/ \t\n(<=-]|[äÄßé\u{301}\u{338}\u{a0}\u{ad}日本のカ한ก☃\u{200b}\u{200d}\u{202f}\u{feff}．´א]){0,24}"
        ) {
            let mut expected = Vec::new();
            let mut push = |word: &[u8]| expected.push(String::from_utf8(word.to_vec()).unwrap());
            unicode_words(Folding::default().folded(&text), &mut push);
            prop_assert_eq!(words_of(&text), expected);
        }
    }
}
