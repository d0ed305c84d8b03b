//! Words of texts and queries.
//!
//! A word is a run of letters and digits within a Unicode word (UAX #29), in lower case. The host
//! `www.example.com` has three words, and each of them finds it. In scripts without spaces each
//! character is a word.
//!
//! # Deviations
//! Words are not stemmed: a crawl has many languages, and users find a text by the words as they
//! appear in it.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

/// Maximum length of a word that can be found, in bytes. Longer ones are keys and encoded files.
pub const MAX_WORD_BYTES: usize = 128;

/// Maximum length of a query, in bytes.
pub const QUESTION: usize = 1000;

/// Maximum number of words of a query.
pub const MAX_QUERY_WORDS: usize = 32;

/// Finds the words of a text, in order, as byte ranges.
pub fn words(text: &str, ranges: &mut Vec<Range<usize>>) {
    ranges.clear();
    let mut position = 0;
    // A Unicode word contains no white space.
    for piece in text.split_inclusive(char::is_whitespace) {
        match piece.is_ascii() {
            true => runs(piece, position, ranges),
            false => piece.unicode_word_indices().for_each(|(start, word)| runs(word, position + start, ranges)),
        }
        position += piece.len();
    }
}

/// Splits a Unicode word at ASCII characters that are neither letters nor digits.
fn runs(text: &str, start: usize, output: &mut Vec<Range<usize>>) {
    let parts = text.split(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric());
    let start_of = |part: &str| start + (part.as_ptr().addr() - text.as_ptr().addr());
    let ranges =
        parts.filter(|part| (1..=MAX_WORD_BYTES).contains(&part.len())).map(|part| (start_of(part), part.len()));
    output.extend(ranges.map(|(start, length)| start..start + length));
}

/// Folds a word for comparison.
pub fn fold(word: &str, output: &mut String) {
    output.clear();
    match word.is_ascii() {
        true => {
            output.push_str(word);
            output.make_ascii_lowercase();
        }
        false => output.extend(word.chars().flat_map(char::to_lowercase)),
    }
}

/// Parsed query.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Question {
    /// Words that a text must have, folded and distinct.
    pub words: Vec<String>,
    /// Hosts to which the results are limited. Empty if there is no such limit.
    pub hosts: Vec<String>,
    /// True to find pages of collections with mirrors only.
    pub in_mirrors: bool,
}

impl Question {
    /// Parses a query of words, `host:NAME` and `in:mirrors`.
    ///
    /// # Errors
    /// Returns a description of the problem if the query is too long or has no word.
    pub fn parse(text: &str) -> Result<Question, String> {
        if text.len() > QUESTION {
            return Err(format!("the query has more than {QUESTION} bytes; shorten it"));
        }
        let (mut question, mut marks, mut word) = (Question::default(), Vec::new(), String::new());
        for part in text.split_whitespace() {
            let value_of = |name: &str| {
                let (prefix, value) = part.split_at_checked(name.len())?;
                prefix.eq_ignore_ascii_case(name).then_some(value)
            };
            match (value_of("host:"), value_of("in:")) {
                (Some(host), _) if !host.is_empty() => question.hosts.push(host.to_lowercase()),
                (_, Some(value)) if value.eq_ignore_ascii_case("mirrors") => question.in_mirrors = true,
                _ => {
                    words(part, &mut marks);
                    for range in &marks {
                        fold(&part[range.clone()], &mut word);
                        if !question.words.contains(&word) {
                            question.words.push(word.clone());
                        }
                    }
                }
            }
        }
        match question.words.len() {
            0 => Err("the query has no word; add one".into()),
            1..=MAX_QUERY_WORDS => Ok(question),
            count => Err(format!("the query has {count} words, but at most {MAX_QUERY_WORDS} are allowed")),
        }
    }
}

/// Finds the occurrences of the folded words in a text.
pub fn marks(text: &str, query_words: &[String]) -> Vec<Range<usize>> {
    let (mut ranges, mut word) = (Vec::new(), String::new());
    words(text, &mut ranges);
    ranges.retain(|range| {
        fold(&text[range.clone()], &mut word);
        query_words.contains(&word)
    });
    ranges
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all_words(text: &str) -> Vec<String> {
        let (mut ranges, mut word) = (Vec::new(), String::new());
        words(text, &mut ranges);
        let mut push_folded = |range: Range<usize>| {
            fold(&text[range], &mut word);
            word.clone()
        };
        ranges.into_iter().map(&mut push_folded).collect()
    }

    #[test]
    fn words_are_runs_of_letters_and_digits_or_single_characters_without_spaces() {
        assert_eq!(all_words("Don't  see www.Example.com/a_b"), ["don", "t", "see", "www", "example", "com", "a", "b"]);
        assert_eq!(all_words("Straße—ÄRGER ünï.code"), ["straße", "ärger", "ünï", "code"]);
        assert_eq!(all_words("e\u{301}te\u{301} हिन्दी"), ["e\u{301}te\u{301}", "हिन्दी"]);
        assert_eq!(all_words("日本語 カタカナ"), ["日", "本", "語", "カタカナ"]);
        assert!(all_words(&"x".repeat(MAX_WORD_BYTES + 1)).is_empty() && all_words("-- … ☃").is_empty());
    }

    #[test]
    fn a_question_has_words_hosts_and_mirrors() {
        let question = Question::parse("Manual host:WWW.a.example IN:mirrors of the MANUAL in:stock").unwrap();
        assert_eq!(question.words, ["manual", "of", "the", "in", "stock"]);
        assert_eq!((question.hosts, question.in_mirrors), (vec!["www.a.example".to_string()], true));
        for bad in
            ["", "host:a.example", "...", &"word ".repeat(400), &(0..33).map(|n| format!("w{n} ")).collect::<String>()]
        {
            assert!(Question::parse(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn words_are_in_order_of_the_text_and_marks_are_the_queried_ones(text in "\\PC{0,60}") {
            let mut found = Vec::new();
            words(&text, &mut found);
            prop_assert!(found.iter().all(|range| text.get(range.clone()).is_some_and(|word| !word.is_empty())));
            prop_assert!(found.is_sorted_by(|x, y| x.end <= y.start));
            prop_assert_eq!(&marks(&text, &all_words(&text)), &found);
            prop_assert!(marks(&text, &[]).is_empty());
        }
    }
}
