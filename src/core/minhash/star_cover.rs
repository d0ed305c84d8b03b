//! Star cover: keeps each text that is not similar to a text kept before it.
//!
//! Texts are processed in the order in which they are kept. A text is left out in favour of the
//! first kept text that it is similar to. So every text that is left out has the required
//! resemblance to the text that replaces it, and no two kept texts were found similar. Connected
//! components would guarantee neither: in a chain, the first and the last text may have nothing in
//! common.

use super::candidates::{CandidateText, ComparisonTarget, KeptMembers};
use webtwin_base::error::Result;

/// A text that is left out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DroppedText {
    /// Text that is left out.
    pub text: u32,
    /// Kept text that replaces it.
    pub centre: u32,
    /// Resemblance of the two.
    pub resemblance: f64,
}

/// Builder of a star cover, which decides one text after another.
///
/// # Examples
/// Texts 0 and 1 share the key 7, and texts 1 and 2 the key 8. Text 1 is left out, so text 2 is
/// compared with no text.
/// ```
/// use webtwin_base::error::Error;
/// use webtwin_core::minhash::candidates::candidates;
/// use webtwin_core::minhash::star_cover::StarCover;
///
/// let mut of_text = [const { Vec::new() }; 3];
/// candidates(&mut [(7, 0), (7, 1), (8, 1), (8, 2)], 0, || 0, |candidate| {
///     of_text[candidate.text as usize].push(candidate);
///     Ok::<(), Error>(())
/// })?;
/// let mut cover = StarCover::new(3, 0, 0);
/// for (text, candidates) in (0..).zip(&of_text) {
///     cover.decide(text, candidates, |_| Ok(Some(0.9)))?;
/// }
/// assert_eq!(cover.compared, 1);
/// assert_eq!(cover.into_dropped()[0].text, 1);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct StarCover {
    always_kept: u32,
    is_left_out: Vec<u64>,
    dropped: Vec<DroppedText>,
    groups: KeptMembers,
    centres: Vec<u32>,
    /// Number of comparisons made.
    pub compared: u64,
}

impl StarCover {
    /// Creates a cover of `texts` texts, of which the first `always_kept` are always kept, with
    /// candidates in `groups` groups.
    pub fn new(texts: usize, always_kept: u32, groups: usize) -> StarCover {
        StarCover {
            always_kept,
            is_left_out: vec![0; texts.div_ceil(64)],
            dropped: Vec::new(),
            groups: KeptMembers::new(groups),
            centres: Vec::new(),
            compared: 0,
        }
    }

    /// Decides a text by all its candidates. Texts must be passed in ascending order. A text that
    /// is never passed is kept.
    ///
    /// `similar(earlier)` returns the resemblance of the text to an earlier one, if it is enough.
    ///
    /// # Errors
    /// Returns any error of `similar`.
    pub fn decide(
        &mut self,
        text: u32,
        candidates: &[CandidateText],
        mut similar: impl FnMut(u32) -> Result<Option<f64>>,
    ) -> Result<()> {
        if text >= self.always_kept {
            self.centres.clear();
            for candidate in candidates {
                match candidate.other() {
                    ComparisonTarget::Text(other) if !self.is_left_out(other) => self.centres.push(other),
                    ComparisonTarget::Text(_) => {}
                    ComparisonTarget::Group(group) => self.centres.extend(self.groups.members(group)),
                }
            }
            self.centres.sort_unstable();
            self.centres.dedup();
            for &centre in &self.centres {
                self.compared += 1;
                if let Some(resemblance) = similar(centre)? {
                    self.is_left_out[text as usize / 64] |= 1 << (text % 64);
                    self.dropped.push(DroppedText { text, centre, resemblance });
                    return Ok(());
                }
            }
        }
        for candidate in candidates {
            if let ComparisonTarget::Group(group) = candidate.other() {
                self.groups.add(group, text);
            }
        }
        Ok(())
    }

    fn is_left_out(&self, text: u32) -> bool {
        self.is_left_out[text as usize / 64] >> (text % 64) & 1 == 1
    }

    /// Returns the bytes of memory that are held.
    pub fn bytes(&self) -> u64 {
        self.groups.bytes() + (self.is_left_out.len() * 8 + self.dropped.capacity() * size_of::<DroppedText>()) as u64
    }

    /// Returns the texts that are left out, ascending.
    pub fn into_dropped(self) -> Vec<DroppedText> {
        self.dropped
    }
}

/// Computes the texts that are left out by definition, comparing every pair of texts.
///
/// # Examples
/// A chain of three texts: the first and the last are not similar, so both are kept.
/// ```
/// use webtwin_core::minhash::star_cover::{DroppedText, by_definition};
///
/// let similar = |x: u32, y: u32| (x.abs_diff(y) == 1).then_some(0.9);
/// assert_eq!(by_definition(3, 0, similar), [DroppedText { text: 1, centre: 0, resemblance: 0.9 }]);
/// ```
pub fn by_definition(texts: u32, always_kept: u32, similar: impl Fn(u32, u32) -> Option<f64>) -> Vec<DroppedText> {
    let mut centres: Vec<u32> = (0..texts.min(always_kept)).collect();
    let mut dropped = Vec::new();
    for text in always_kept..texts {
        let cover = centres
            .iter()
            .find_map(|&kept| Some(DroppedText { text, centre: kept, resemblance: similar(text, kept)? }));
        match cover {
            Some(found) => dropped.push(found),
            None => centres.push(text),
        }
    }
    dropped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::candidates::candidates;
    use super::super::resemblance::Threshold;
    use super::*;

    proptest! {
        #[test]
        fn cover_equals_the_definition(
            sets in prop::collection::vec(prop::collection::btree_set(0u32..12, 1..6), 0..50),
            keys in prop::collection::vec(prop::collection::btree_set(0u64..9, 0..4), 50),
            always_kept in 0u32..8,
            hundredths in 10u32..100,
        ) {
            let sets: Vec<Vec<u32>> = sets.into_iter().map(|set| set.into_iter().collect()).collect();
            let threshold = Threshold::new(f64::from(hundredths) / 100.0);
            let similar = |x: u32, y: u32| threshold.reached(&sets[x as usize], &sets[y as usize]);
            let share_a_key = |x: u32, y: u32| !keys[x as usize].is_disjoint(&keys[y as usize]);
            let expected = by_definition(sets.len() as u32, always_kept, |x, y| similar(x, y).filter(|_| share_a_key(x, y)));

            let rows_of_text = |text: usize| keys[text].iter().map(move |&key| (key, text as u32));
            let mut rows: Vec<(u64, u32)> = (0..sets.len()).flat_map(rows_of_text).collect();
            let (mut candidate_rows, mut groups) = (Vec::new(), 0);
            let next_group = || {
                groups += 1;
                groups - 1
            };
            candidates(&mut rows, always_kept, next_group, |candidate| {
                candidate_rows.push(candidate);
                Ok::<(), webtwin_base::error::Error>(())
            })
            .unwrap();
            candidate_rows.sort_unstable();
            let mut cover = StarCover::new(sets.len(), always_kept, groups as usize);
            for text_rows in candidate_rows.chunk_by(|x, y| x.text == y.text) {
                let text = text_rows[0].text;
                cover.decide(text, text_rows, |earlier| Ok(similar(text, earlier))).unwrap();
            }
            prop_assert_eq!(cover.into_dropped(), expected);
        }
    }

    #[test]
    fn chain_keeps_both_ends_and_removed_records_resemble_their_keepers() {
        let sets: Vec<Vec<u32>> = [0..10, 2..12, 4..14].map(|set| set.collect()).into();
        let similar = |x: u32, y: u32| Threshold::new(0.6).reached(&sets[x as usize], &sets[y as usize]);
        assert_eq!(by_definition(3, 0, similar), [DroppedText { text: 1, centre: 0, resemblance: 8.0 / 12.0 }]);
    }
}
