//! Postings in memory.

use hashbrown::HashTable;

use super::run::Posting;
use webtwin_base::ids::splitmix64;

/// The end of a list.
const END: u32 = u32::MAX;

/// A posting, and the one of the same chunk that came before.
#[derive(Debug, Clone, Copy)]
struct Entry {
    hash: u64,
    page: u32,
    before: u32,
}

/// Postings by chunk: 16 bytes each, and 5 to 11 for a chunk.
#[derive(Debug, Default)]
pub(super) struct ChunkTable {
    entries: Vec<Entry>,
    /// The last entry of each chunk.
    last: HashTable<u32>,
}

impl ChunkTable {
    /// Number of postings.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Adds a posting.
    pub(super) fn insert(&mut self, hash: u64, page: u32) {
        let number = self.entries.len() as u32;
        let entries = &self.entries;
        let of = |entry: &u32| splitmix64(entries[*entry as usize].hash);
        let is_it = |entry: &u32| entries[*entry as usize].hash == hash;
        let before = match self.last.entry(splitmix64(hash), is_it, of) {
            hashbrown::hash_table::Entry::Occupied(mut there) => std::mem::replace(there.get_mut(), number),
            hashbrown::hash_table::Entry::Vacant(free) => {
                free.insert(number);
                END
            }
        };
        self.entries.push(Entry { hash, page, before });
    }

    /// Adds the pages that have a chunk, the last one first.
    pub(super) fn find(&self, hash: u64, pages: &mut Vec<u32>) {
        let is_it = |entry: &u32| self.entries[*entry as usize].hash == hash;
        let mut at = self.last.find(splitmix64(hash), is_it).copied().unwrap_or(END);
        while at != END {
            let Entry { page, before, .. } = self.entries[at as usize];
            pages.push(page);
            at = before;
        }
    }

    /// All postings, ascending.
    pub(super) fn sorted(&self) -> Vec<Posting> {
        let mut postings: Vec<Posting> = self.entries.iter().map(|entry| (entry.hash, entry.page)).collect();
        postings.sort_unstable();
        postings
    }
}
