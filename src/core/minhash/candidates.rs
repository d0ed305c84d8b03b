//! Texts that share a key of a band become candidates for each other.
//!
//! Few texts with one key become pairs. Many, such as thousands of pages with one template, become members of a
//! *group*: pairs would be their square, while a later text only needs to be compared with those of the group that
//! were kept, which are few where the texts are similar.

use bytemuck::{Pod, Zeroable};

/// Texts with one key of which all pairs are made: with no more, pairs take little more room than members.
const PAIRED: usize = 8;

/// Marks the number of a group.
const GROUP: u32 = 1 << 31;

/// The most texts, and the most groups, that can be numbered.
pub const MOST: u32 = GROUP;

/// A text, and what it is to be compared with: 8 bytes. Rows order by text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct Candidate {
    /// The text, by its place in the order in which texts are kept.
    pub text: u32,
    other: u32,
}

/// What a text is to be compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Other {
    /// A text that comes before it.
    Text(u32),
    /// The kept texts of a group that it is a member of.
    Group(u32),
}

impl Candidate {
    /// What the text is to be compared with.
    pub fn other(self) -> Other {
        if self.other & GROUP == 0 { Other::Text(self.other) } else { Other::Group(self.other & !GROUP) }
    }
}

/// Calls `each` with the candidates among texts, given with one key each; a text may come with several keys.
///
/// Texts before `first_compared` are not compared with each other. `next_group` numbers groups.
///
/// # Cost
/// A sort of the rows.
pub fn candidates<E>(
    rows: &mut [(u64, u32)],
    first_compared: u32,
    mut next_group: impl FnMut() -> u32,
    mut each: impl FnMut(Candidate) -> Result<(), E>,
) -> Result<(), E> {
    rows.sort_unstable();
    for texts in rows.chunk_by(|x, y| x.0 == y.0) {
        if texts.last().is_none_or(|last| last.1 < first_compared) {
            continue;
        }
        if texts.len() > PAIRED {
            let other = GROUP | next_group();
            texts.iter().try_for_each(|&(_, text)| each(Candidate { text, other }))?;
            continue;
        }
        for (at, &(_, text)) in texts.iter().enumerate().filter(|(_, row)| row.1 >= first_compared) {
            let before = texts[..at].iter().filter(|row| row.1 != text);
            before.map(|row| Candidate { text, other: row.1 }).try_for_each(&mut each)?;
        }
    }
    Ok(())
}

/// The kept members of each group.
#[derive(Debug, Default)]
pub struct KeptMembers {
    /// For each group, the place of its newest member; `NONE` for none yet.
    newest: Vec<u32>,
    /// Members, each with the place of the one before it in its group.
    members: Vec<(u32, u32)>,
}

const NONE: u32 = u32::MAX;

impl KeptMembers {
    /// As many empty groups.
    pub fn new(groups: usize) -> KeptMembers {
        KeptMembers { newest: vec![NONE; groups], members: Vec::new() }
    }

    /// Adds a text to a group.
    pub fn add(&mut self, group: u32, text: u32) {
        let newest = &mut self.newest[group as usize];
        self.members.push((text, *newest));
        *newest = self.members.len() as u32 - 1;
    }

    /// The texts of a group, the newest first.
    pub fn of(&self, group: u32) -> impl Iterator<Item = u32> + '_ {
        let mut at = self.newest[group as usize];
        std::iter::from_fn(move || {
            let &(text, before) = self.members.get(at as usize)?;
            at = before;
            Some(text)
        })
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        (self.newest.capacity() * 4 + self.members.capacity() * 8) as u64
    }
}
