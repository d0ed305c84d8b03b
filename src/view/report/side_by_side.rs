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
pub fn side_by_side(left: &str, right: &str) -> Vec<DiffRow> {
    rows(&pieces(head(left), head(right), CONTEXT))
}

/// Returns the first rows of a difference.
pub fn rows(pieces: &[DiffPiece<'_>]) -> Vec<DiffRow> {
    let mut rows = Vec::new();
    for piece in pieces {
        match piece {
            DiffPiece::Same(lines) => rows.extend(lines.iter().map(|line| DiffRow::Same(cut(line)))),
            DiffPiece::Skipped(lines) => rows.push(DiffRow::Equal(*lines as u64)),
            DiffPiece::Changed { left, right } => {
                let most = left.len().max(right.len());
                rows.extend((0..most).map(|at| changed(left.get(at).copied(), right.get(at).copied())));
            }
        }
    }
    if rows.len() > ROWS {
        let more = rows.len() - ROWS;
        rows.truncate(ROWS);
        rows.push(DiffRow::More(more as u64));
    }
    rows
}

/// Returns the first lines of a text.
fn head(text: &str) -> &str {
    let end = text.match_indices('\n').nth(LINES).map_or(text.len(), |(at, _)| at);
    &text[..end]
}

fn cut(line: &str) -> String {
    let mut chars = line.chars();
    let mut cut: String = chars.by_ref().take(LINE).collect();
    if chars.next().is_some() {
        cut.push('…');
    }
    cut
}

/// Compares a changed line word by word. Lines with less than a third of their words in common are
/// shown as entirely changed.
fn changed(left: Option<&str>, right: Option<&str>) -> DiffRow {
    let whole = |line: &str| vec![DiffWords { text: cut(line), changed: true }];
    let (Some(old), Some(new)) = (left, right) else {
        return DiffRow::Changed { left: left.map(whole), right: right.map(whole) };
    };
    let (old, new) = (cut(old), cut(new));
    let (x, y): (Vec<&str>, Vec<&str>) = (words(&old), words(&new));
    let ops = capture_diff_slices(Algorithm::Myers, &x, &y);
    let is_word = |word: &&&str| word.starts_with(char::is_alphanumeric);
    let equal = ops.iter().filter(|op| op.tag() == DiffTag::Equal);
    let equal: usize = equal.map(|op| x[op.old_range()].iter().filter(is_word).count()).sum();
    let most = x.iter().filter(is_word).count().max(y.iter().filter(is_word).count());
    if 3 * equal < most {
        return DiffRow::Changed { left: Some(whole(&old)), right: Some(whole(&new)) };
    }
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for op in ops {
        let changed = op.tag() != DiffTag::Equal;
        add(&mut left, &x[op.old_range()], changed);
        add(&mut right, &y[op.new_range()], changed);
    }
    DiffRow::Changed { left: Some(left), right: Some(right) }
}

/// Appends words to a line. Changed words with only a space between them are merged.
fn add(line: &mut Vec<DiffWords>, words: &[&str], changed: bool) {
    if words.is_empty() {
        return;
    }
    let text = words.concat();
    if changed
        && let [.., DiffWords { changed: true, .. }, space] = &line[..]
        && space.text == " "
    {
        line.pop();
        let last = line.last_mut().expect("it was looked at");
        last.text.push(' ');
        last.text.push_str(&text);
        return;
    }
    line.push(DiffWords { text, changed });
}

/// Splits a line into words and the characters between them.
fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut from = 0;
    let mut before = None;
    for (at, c) in line.char_indices() {
        let is_word = c.is_alphanumeric();
        if before.is_some_and(|before| before != is_word) || before == Some(false) {
            words.push(&line[from..at]);
            from = at;
        }
        before = Some(is_word);
    }
    if from < line.len() {
        words.push(&line[from..]);
    }
    words
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn joined(words: &Option<Vec<DiffWords>>) -> Option<String> {
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
        let more = DiffWords { text: "more".into(), changed: true };
        assert_eq!(rows[3], DiffRow::Changed { left: None, right: Some(vec![more]) });
    }

    #[test]
    fn long_texts_are_truncated_with_a_notice() {
        let (left, right) = ("a\n".repeat(100), "b\n".repeat(100));
        let rows = side_by_side(&left, &right);
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
                        old.extend(joined(&left));
                        new.extend(joined(&right));
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
