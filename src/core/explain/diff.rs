//! Difference between two texts, line by line.

use similar::{Algorithm, DiffTag, capture_diff_slices};

/// A piece of two texts.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DiffPiece<'t> {
    /// Lines that both texts have.
    Same(Vec<&'t str>),
    /// Number of common lines that are too far from any change to be shown.
    Skipped(usize),
    /// Lines of the left text that correspond to lines of the right one; either may be empty.
    Changed {
        /// Lines of the left text.
        left: Vec<&'t str>,
        /// Lines of the right text.
        right: Vec<&'t str>,
    },
}

/// Divides two texts into pieces in order, with `context` common lines around every change.
///
/// # Cost
/// The cost of Myers' algorithm on lines.
///
/// # Examples
/// ```
/// use webtwin_core::explain::diff::{DiffPiece, pieces};
///
/// assert_eq!(
///     pieces("a\nb\nc\nd", "a\nb\nX\nd", 1),
///     [
///         DiffPiece::Skipped(1),
///         DiffPiece::Same(vec!["b"]),
///         DiffPiece::Changed { left: vec!["c"], right: vec!["X"] },
///         DiffPiece::Same(vec!["d"]),
///     ]
/// );
/// ```
pub fn pieces<'t>(left: &'t str, right: &'t str, context: usize) -> Vec<DiffPiece<'t>> {
    let lines = |text: &'t str| text.lines().collect::<Vec<_>>();
    let (left, right) = (lines(left), lines(right));
    let ops = capture_diff_slices(Algorithm::Myers, &left, &right);
    let mut pieces: Vec<DiffPiece> = Vec::new();
    for (at, op) in ops.iter().enumerate() {
        let (tag, old, new) = op.as_tag_tuple();
        if tag != DiffTag::Equal {
            match pieces.last_mut() {
                Some(DiffPiece::Changed { left: left_lines, right: right_lines }) => {
                    left_lines.extend(&left[old]);
                    right_lines.extend(&right[new]);
                }
                _ => pieces.push(DiffPiece::Changed { left: left[old].to_vec(), right: right[new].to_vec() }),
            }
            continue;
        }
        let equal_lines = &left[old];
        let head = if at == 0 { 0 } else { context.min(equal_lines.len()) };
        let tail = if at + 1 == ops.len() { 0 } else { context.min(equal_lines.len() - head) };
        let skipped = equal_lines.len() - head - tail;
        let (head_lines, later_lines) = equal_lines.split_at(head);
        let mut add = |lines: &[&'t str]| {
            if !lines.is_empty() {
                pieces.push(DiffPiece::Same(lines.to_vec()));
            }
        };
        if skipped == 0 {
            add(equal_lines);
        } else {
            add(head_lines);
            pieces.push(DiffPiece::Skipped(skipped));
            if tail > 0 {
                pieces.push(DiffPiece::Same(later_lines[skipped..].to_vec()));
            }
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn changes_are_shown_in_context_and_other_lines_are_counted() {
        let left = "a\nb\nc\nd\ne\nf\ng";
        let right = "a\nb\nc\nX\nY\ne\nf\ng";
        let change = DiffPiece::Changed { left: vec!["d"], right: vec!["X", "Y"] };
        let (left_context, right_context) = (DiffPiece::Same(vec!["c"]), DiffPiece::Same(vec!["e"]));
        assert_eq!(
            pieces(left, right, 1),
            [DiffPiece::Skipped(2), left_context, change, right_context, DiffPiece::Skipped(2)]
        );
        assert_eq!(pieces(left, left, 1), [DiffPiece::Skipped(7)]);
        assert_eq!(pieces("", "", 1), []);
    }

    proptest! {
        #[test]
        fn the_pieces_of_a_side_are_its_lines(left in "[ab\n]{0,40}", right in "[ab\n]{0,40}") {
            let (mut old, mut new) = (Vec::new(), Vec::new());
            for piece in pieces(&left, &right, usize::MAX) {
                match piece {
                    DiffPiece::Same(lines) => {
                        old.extend(lines.clone());
                        new.extend(lines);
                    }
                    DiffPiece::Changed { left, right } => {
                        old.extend(left);
                        new.extend(right);
                    }
                    // Equal texts have no change, so all lines are skipped. A final line break
                    // makes no difference to the lines.
                    DiffPiece::Skipped(lines) => {
                        prop_assert!(left.lines().eq(right.lines()));
                        prop_assert_eq!(lines, left.lines().count());
                        return Ok(());
                    }
                }
            }
            prop_assert_eq!(old, left.lines().collect::<Vec<_>>());
            prop_assert_eq!(new, right.lines().collect::<Vec<_>>());
        }
    }
}
