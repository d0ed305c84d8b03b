//! Line breaks in texts with long lines, so that these can be compared line by line.

use xxhash_rust::xxh3::xxh3_64;

/// Maximum number of characters of a line that is not broken.
const MAX_CHARACTERS: usize = 160;

/// Inverse fraction of words that end a piece of a sentence that is too long.
const WORDS: u64 = 8;

/// Breaks the long lines of a text such that two texts with the same words break at the same
/// places: after sentences, and within long sentences after words that are selected by their hash.
/// Only line breaks are added, in the place of spaces.
///
/// # Examples
/// ```
/// use webtwin_core::explain::broken_lines::broken;
///
/// let long = "One is short. ".repeat(20);
/// assert_eq!(broken(&long).lines().next(), Some("One is short."));
/// // A short line is not broken.
/// assert_eq!(broken("One. Two."), "One. Two.");
/// ```
pub fn broken(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 64);
    for line in text.split_inclusive('\n') {
        match line.chars().nth(MAX_CHARACTERS) {
            None => out.push_str(line),
            Some(_) => sentences(line, &mut out),
        }
    }
    out
}

fn sentences(line: &str, out: &mut String) {
    let mut remaining = line;
    while !remaining.is_empty() {
        let (sentence, tail) = remaining.split_at(end_of_sentence(remaining));
        match sentence.chars().nth(MAX_CHARACTERS) {
            None => out.push_str(sentence),
            Some(_) => words(sentence, out),
        }
        remaining = tail;
        if !remaining.is_empty() {
            end_line(out);
        }
    }
}

/// Returns the end of the first sentence: after a full stop and the following space, or after a
/// full-width stop.
fn end_of_sentence(text: &str) -> usize {
    let mut characters = text.char_indices().peekable();
    while let Some((_, character)) = characters.next() {
        let next = characters.peek();
        match character {
            '.' | '!' | '?' if next.is_some_and(|(_, next)| *next == ' ') => {
                return next.map_or(text.len(), |(at, _)| at + 1);
            }
            '。' | '！' | '？' => return next.map_or(text.len(), |(at, _)| *at),
            _ => {}
        }
    }
    text.len()
}

fn words(sentence: &str, out: &mut String) {
    for word in sentence.split_inclusive(' ') {
        out.push_str(word);
        if word.ends_with(' ') && xxh3_64(word.as_bytes()).is_multiple_of(WORDS) {
            end_line(out);
        }
    }
}

/// Replaces the last space, if there is one, by a line break.
fn end_line(out: &mut String) {
    if out.ends_with(' ') {
        out.pop();
    }
    if !out.ends_with('\n') {
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_edit_of_a_long_line_changes_few_of_its_pieces() {
        let text: String = (0..400).map(|word| format!("word{word} ")).collect();
        let (old, new) = (broken(&text), broken(&text.replace("word200 ", "")));
        let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
        assert!(old.len() > 20);
        assert!(old.iter().filter(|line| !new.contains(line)).count() <= 2);
        let sentences = "One is short. ".repeat(20);
        assert_eq!(broken(&sentences).lines().next(), Some("One is short."));
        assert_eq!(broken(&"一文。".repeat(80)).lines().count(), 80);
    }

    proptest! {
        #[test]
        fn only_line_breaks_are_added(text in "([a-z]{1,9}[ .!。\n]{1,2}){0,90}") {
            let without_spaces = |text: &str| text.replace([' ', '\n'], "");
            prop_assert_eq!(without_spaces(&broken(&text)), without_spaces(&text));
            let lines = text.lines().all(|line| line.chars().count() <= MAX_CHARACTERS);
            prop_assert!(!lines || broken(&text) == text);
        }
    }
}
