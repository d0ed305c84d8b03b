//! Candidates: texts that share a key of a band.
//!
//! A few texts with one key become pairs. Many texts, such as thousands of pages with one template,
//! become members of a *group*: the number of pairs would be the square of their number, while a
//! later text only needs to be compared with the members of the group that were kept. If the texts
//! are similar, few members are kept.

use bytemuck::{Pod, Zeroable};

/// Maximum number of texts with one key that become pairs. Up to this number, pairs need little
/// more space than members.
const MAX_PAIRED_TEXTS: usize = 8;

/// Bit that marks the number of a group.
const GROUP: u32 = 1 << 31;

/// Maximum number of texts, and of groups, that can be numbered.
pub const MAX_TEXTS: u32 = GROUP;

/// A text, and a text or group that it must be compared with: 8 bytes. Rows order by text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct CandidateText {
    /// Text, by its position in the order in which texts are kept.
    pub text: u32,
    other: u32,
}

/// Text or group that a text must be compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComparisonTarget {
    /// An earlier text.
    Text(u32),
    /// Kept texts of a group that contains the text.
    Group(u32),
}

impl CandidateText {
    /// Returns the text or group that the text must be compared with.
    pub fn other(self) -> ComparisonTarget {
        if self.other & GROUP == 0 {
            ComparisonTarget::Text(self.other)
        } else {
            ComparisonTarget::Group(self.other & !GROUP)
        }
    }
}

/// Calls `visit` with the candidates among texts. Each row of `rows` is a key and a text; a text
/// may occur with several keys.
///
/// Texts before `first_compared` are not compared with each other. `next_group` numbers groups.
///
/// # Cost
/// A sort of the rows.
///
/// # Examples
/// Texts 0 and 2 share the key 7; no other text has the key of text 1.
/// ```
/// use std::convert::Infallible;
/// use webtwin_core::minhash::candidates::{ComparisonTarget, candidates};
///
/// let mut found = Vec::new();
/// let each = |candidate| Ok::<(), Infallible>(found.push(candidate));
/// candidates(&mut [(7, 0), (9, 1), (7, 2)], 0, || 0, each).unwrap();
/// assert_eq!(found.len(), 1);
/// assert_eq!((found[0].text, found[0].other()), (2, ComparisonTarget::Text(0)));
/// ```
pub fn candidates<E>(
    rows: &mut [(u64, u32)],
    first_compared: u32,
    mut next_group: impl FnMut() -> u32,
    mut visit: impl FnMut(CandidateText) -> Result<(), E>,
) -> Result<(), E> {
    rows.sort_unstable();
    for texts in rows.chunk_by(|x, y| x.0 == y.0) {
        if texts.last().is_none_or(|last| last.1 < first_compared) {
            continue;
        }
        if texts.len() > MAX_PAIRED_TEXTS {
            let other = GROUP | next_group();
            texts.iter().try_for_each(|&(_, text)| visit(CandidateText { text, other }))?;
            continue;
        }
        for (at, &(_, text)) in texts.iter().enumerate().filter(|(_, row)| row.1 >= first_compared) {
            let earlier_texts = texts[..at].iter().filter(|row| row.1 != text);
            earlier_texts.map(|row| CandidateText { text, other: row.1 }).try_for_each(&mut visit)?;
        }
    }
    Ok(())
}

/// Kept members of each group, as linked lists in one allocation.
#[derive(Debug, Default)]
pub struct KeptMembers {
    /// Index of the newest member of each group; `NONE` if it has none.
    newest: Vec<u32>,
    /// Members, each with the index of the previous member of its group.
    members: Vec<(u32, u32)>,
}

const NONE: u32 = u32::MAX;

impl KeptMembers {
    /// Creates `groups` empty groups.
    pub fn new(groups: usize) -> KeptMembers {
        KeptMembers { newest: vec![NONE; groups], members: Vec::new() }
    }

    /// Adds a text to a group.
    pub fn add(&mut self, group: u32, text: u32) {
        let newest = &mut self.newest[group as usize];
        self.members.push((text, *newest));
        *newest = self.members.len() as u32 - 1;
    }

    /// Yields the texts of a group, the newest first.
    pub fn members(&self, group: u32) -> impl Iterator<Item = u32> + '_ {
        let mut at = self.newest[group as usize];
        std::iter::from_fn(move || {
            let &(text, previous) = self.members.get(at as usize)?;
            at = previous;
            Some(text)
        })
    }

    /// Returns the bytes of memory that are held.
    pub fn bytes(&self) -> u64 {
        (self.newest.capacity() * 4 + self.members.capacity() * 8) as u64
    }
}
