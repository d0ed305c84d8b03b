//! In-memory table of postings.

use hashbrown::HashTable;

use super::run::Posting;
use webtwin_base::ids::splitmix64;

/// Entry number that ends a list.
const END: u32 = u32::MAX;

/// A posting, and the number of the previous entry of the same chunk.
#[derive(Debug, Clone, Copy)]
struct Entry {
    hash: u64,
    page: u32,
    previous: u32,
}

/// Postings by chunk: 16 bytes for each posting, and 5 to 11 bytes for each chunk.
#[derive(Debug, Default)]
pub(super) struct ChunkTable {
    entries: Vec<Entry>,
    /// Number of the newest entry of each chunk.
    last: HashTable<u32>,
}

impl ChunkTable {
    /// Returns the number of postings.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Adds a posting.
    pub(super) fn insert(&mut self, hash: u64, page: u32) {
        let number = self.entries.len() as u32;
        let entries = &self.entries;
        let hash_of = |entry: &u32| splitmix64(entries[*entry as usize].hash);
        let is_match = |entry: &u32| entries[*entry as usize].hash == hash;
        let previous = match self.last.entry(splitmix64(hash), is_match, hash_of) {
            hashbrown::hash_table::Entry::Occupied(mut occupied) => std::mem::replace(occupied.get_mut(), number),
            hashbrown::hash_table::Entry::Vacant(free) => {
                free.insert(number);
                END
            }
        };
        self.entries.push(Entry { hash, page, previous });
    }

    /// Appends the pages that have a chunk to `pages`, the newest first.
    pub(super) fn find(&self, hash: u64, pages: &mut Vec<u32>) {
        let is_match = |entry: &u32| self.entries[*entry as usize].hash == hash;
        let mut position = self.last.find(splitmix64(hash), is_match).copied().unwrap_or(END);
        while position != END {
            let Entry { page, previous, .. } = self.entries[position as usize];
            pages.push(page);
            position = previous;
        }
    }

    /// Returns all postings, in ascending order.
    pub(super) fn sorted(&self) -> Vec<Posting> {
        let mut postings: Vec<Posting> = self.entries.iter().map(|entry| (entry.hash, entry.page)).collect();
        postings.sort_unstable();
        postings
    }
}
