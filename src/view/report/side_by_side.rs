//! Comparison of two texts side by side: by lines, and by words within changed lines.

use similar::{Algorithm, DiffTag, capture_diff_slices};

use super::contract::{DiffRow, DiffWords};
use webtwin_core::explain::diff::{DiffPiece, pieces};

/// Number of equal lines shown around a change.
const CONTEXT: usize = 2;

/// Maximum number of lines compared of each text.
const LINES: usize = 2000;

/// Maximum number of rows shown.
const ROWS: usize = 50;

/// Maximum number of characters shown of a line.
const LINE: usize = 300;

/// Compares two texts.
///
/// # Cost
/// That of Myers' algorithm on at most 2,000 lines of each text, and on the words of 50 lines.
pub fn side_by_side(left_text: &str, right: &str) -> Vec<DiffRow> {
    rows(&pieces(head(left_text), head(right), CONTEXT))
}

/// Returns the first rows of a difference.
pub fn rows(pieces: &[DiffPiece<'_>]) -> Vec<DiffRow> {
    let mut rows = Vec::new();
    for piece in pieces {
        match piece {
            DiffPiece::Same(lines) => rows.extend(lines.iter().map(|line| DiffRow::Same(shortened_line(line)))),
            DiffPiece::Skipped(lines) => rows.push(DiffRow::Equal(*lines as u64)),
            DiffPiece::Changed { left, right } => {
                let max_lines = left.len().max(right.len());
                rows.extend((0..max_lines).map(|at| compare_words(left.get(at).copied(), right.get(at).copied())));
            }
        }
    }
    if rows.len() > ROWS {
        let omitted = rows.len() - ROWS;
        rows.truncate(ROWS);
        rows.push(DiffRow::More(omitted as u64));
    }
    rows
}

/// Returns the first lines of a text.
fn head(text: &str) -> &str {
    let end = text.match_indices('\n').nth(LINES).map_or(text.len(), |(at, _)| at);
    &text[..end]
}

fn shortened_line(line: &str) -> String {
    let mut chars = line.chars();
    let mut line_start: String = chars.by_ref().take(LINE).collect();
    if chars.next().is_some() {
        line_start.push('…');
    }
    line_start
}

/// Compares a changed line word by word. Lines with less than a third of their words in common are
/// shown as entirely changed.
fn compare_words(left_line: Option<&str>, right: Option<&str>) -> DiffRow {
    let whole_line = |line: &str| vec![DiffWords { text: shortened_line(line), changed: true }];
    let (Some(old), Some(new)) = (left_line, right) else {
        return DiffRow::Changed { left: left_line.map(whole_line), right: right.map(whole_line) };
    };
    let (old, new) = (shortened_line(old), shortened_line(new));
    let (x, y): (Vec<&str>, Vec<&str>) = (words(&old), words(&new));
    let ops = capture_diff_slices(Algorithm::Myers, &x, &y);
    let is_word = |word: &&&str| word.starts_with(char::is_alphanumeric);
    let equal_ops = ops.iter().filter(|op| op.tag() == DiffTag::Equal);
    let equal_words: usize = equal_ops.map(|op| x[op.old_range()].iter().filter(is_word).count()).sum();
    let max_words = x.iter().filter(is_word).count().max(y.iter().filter(is_word).count());
    if 3 * equal_words < max_words {
        return DiffRow::Changed { left: Some(whole_line(&old)), right: Some(whole_line(&new)) };
    }
    let (mut left_words, mut right) = (Vec::new(), Vec::new());
    for op in ops {
        let is_changed = op.tag() != DiffTag::Equal;
        add(&mut left_words, &x[op.old_range()], is_changed);
        add(&mut right, &y[op.new_range()], is_changed);
    }
    DiffRow::Changed { left: Some(left_words), right: Some(right) }
}

/// Appends words to a line. Changed words with only a space between them are merged.
fn add(line: &mut Vec<DiffWords>, words: &[&str], is_changed: bool) {
    if words.is_empty() {
        return;
    }
    let text = words.concat();
    if is_changed
        && let [.., DiffWords { changed: true, .. }, space] = &line[..]
        && space.text == " "
    {
        line.pop();
        let last = line.last_mut().expect("it was looked at");
        last.text.push(' ');
        last.text.push_str(&text);
        return;
    }
    line.push(DiffWords { text, changed: is_changed });
}

/// Splits a line into words and the characters between them.
fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut start = 0;
    let mut previous = None;
    for (position, c) in line.char_indices() {
        let is_word = c.is_alphanumeric();
        if previous.is_some_and(|before| before != is_word) || previous == Some(false) {
            words.push(&line[start..position]);
            start = position;
        }
        previous = Some(is_word);
    }
    if start < line.len() {
        words.push(&line[start..]);
    }
    words
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn join_words(words: &Option<Vec<DiffWords>>) -> Option<String> {
        words.as_ref().map(|words| words.iter().map(|of| of.text.as_str()).collect())
    }

    #[test]
    fn only_changed_words_of_a_changed_line_are_marked() {
        let rows = side_by_side("one\ntwo\nversion 2.1 of it\n", "one\ntwo\nversion 2.2 of it\nmore\n");
        let marked = |words: &Option<Vec<DiffWords>>| -> Vec<String> {
            words.iter().flatten().filter(|of| of.changed).map(|of| of.text.clone()).collect()
        };
        let DiffRow::Changed { left, right } = &rows[2] else { panic!("{rows:?}") };
        assert_eq!((marked(left), marked(right)), (vec!["1".into()], vec!["2".into()]));
        let omitted = DiffWords { text: "more".into(), changed: true };
        assert_eq!(rows[3], DiffRow::Changed { left: None, right: Some(vec![omitted]) });
    }

    #[test]
    fn long_texts_are_truncated_with_a_notice() {
        let (left_text, right) = ("a\n".repeat(100), "b\n".repeat(100));
        let rows = side_by_side(&left_text, &right);
        assert_eq!((rows.len(), rows.last()), (ROWS + 1, Some(&DiffRow::More(50))));
        assert_eq!(
            side_by_side(&"x".repeat(400), ""),
            [DiffRow::Changed {
                left: Some(vec![DiffWords { text: "x".repeat(LINE) + "…", changed: true }]),
                right: None
            }]
        );
    }

    proptest! {
        #[test]
        fn each_side_reproduces_its_text(left in "([ab .]{0,6}\n){0,8}", right in "([ab .]{0,6}\n){0,8}") {
            let (mut old, mut new, mut equal) = (Vec::new(), Vec::new(), false);
            for row in side_by_side(&left, &right) {
                match row {
                    DiffRow::Same(line) => { old.push(line.clone()); new.push(line); }
                    DiffRow::Equal(_) | DiffRow::More(_) => equal = true,
                    DiffRow::Changed { left, right } => {
                        old.extend(join_words(&left));
                        new.extend(join_words(&right));
                    }
                }
            }
            if !equal {
                prop_assert_eq!(old, left.lines().collect::<Vec<_>>());
                prop_assert_eq!(new, right.lines().collect::<Vec<_>>());
            }
        }
    }
}
