//! Local pages of one worker: captures, fingerprints and links of the pages that it has read, in
//! columns.
//!
//! # Memory
//! Takes 28 bytes for each page, some of which are released before tables are built. Captures
//! ([`CaptureRows`]), chunks, features and links ([`SpillLists`]) are in memory up to the limit
//! that [`WorkerPages::hold_lists_at_most`] sets, otherwise on the local disk.

use crate::reading::addresses::HostAddress;
use crate::reading::capture_rows::CaptureRows;
use crate::reading::features::FeatureLists;
use crate::reading::other_records::{RedirectRecord, RevisitRecord, SegmentRecord};
use crate::reading::rejection::Rejection;
use crate::reading::shingle_sets::ShingleSets;
use webtwin_base::error::Result;
use webtwin_base::ids::{DocId, FPrint, Page};
use webtwin_pages::record::RecordIds;
use webtwin_pages::warc::RangeEnd;
use webtwin_spill::{MemoryPool, SpillLists, SpillRows};

/// Marks a slot whose page lost to another capture of its URL.
pub const NOT_KEPT: Page = Page::NONE;

/// Local pages of one worker. Slots number its pages in the order of reading.
#[derive(Debug, Default)]
pub struct WorkerPages {
    /// Captures that have not been sent to their owners yet. Until revisits are resolved, there is
    /// one for each slot.
    pub captures: CaptureRows,
    /// Whole-document fingerprint of each slot, until exact copies are found.
    pub exact: Vec<FPrint>,
    /// Chunk fingerprints of each slot, or in a study the marks of its shingle paragraphs:
    /// ascending, without repetitions.
    pub fprints: SpillLists<u64>,
    /// Weighted features of each slot if simhashes need weights of the whole crawl; otherwise no
    /// slots.
    pub features: FeatureLists,
    /// Set of shingles of each slot, if pages are compared by shingles.
    pub sets: Option<ShingleSets>,
    /// Doc ids of the link targets of each slot.
    pub links: SpillLists<u64>,
    /// Page in each slot after captures have been deduplicated, or [`NOT_KEPT`].
    pub pages: Vec<Page>,
    /// Slots of pages that lead to another URL, ascending, each with the doc id of that URL.
    pub leads: Vec<(u32, DocId)>,
    /// Slots of pages that name editions in other languages, ascending, each with the doc id of an
    /// edition.
    pub editions: Vec<(u32, DocId)>,
    /// Redirects; after links have been resolved, only the permanent ones.
    pub redirects: Vec<RedirectRecord>,
    /// Addresses of hosts, until captures are deduplicated.
    pub addresses: Vec<HostAddress>,
    /// Names of the record of each slot, until revisits are resolved.
    pub names: Vec<RecordIds>,
    /// Hash of what each slot was read from ([`crate::reading::known_pages`]), while checkpoints
    /// are written; otherwise empty.
    pub contents: Vec<u128>,
    /// Revisits, until they are resolved.
    pub revisits: Vec<RevisitRecord>,
    /// Segments of records, until they are joined.
    pub segments: Vec<SegmentRecord>,
    /// Records that are not kept.
    pub rejections: SpillRows<Rejection>,
    /// End of each work item that was read, with its number of records.
    pub items: Vec<(u32, RangeEnd)>,
}

impl WorkerPages {
    /// Creates empty local pages.
    pub fn new(pool: &MemoryPool) -> WorkerPages {
        WorkerPages {
            captures: CaptureRows::new(pool),
            features: FeatureLists::new(pool),
            fprints: SpillLists::new(pool),
            links: SpillLists::new(pool),
            rejections: SpillRows::new(pool),
            ..WorkerPages::default()
        }
    }

    /// Limits captures, chunks, features and links in memory to `bytes` from now on. Up to half is
    /// for captures, which are read most often, and half of the remainder for chunks.
    ///
    /// # Errors
    /// Returns [`webtwin_base::error::Error::DiskLimit`], [`webtwin_base::error::Error::DiskFull`]
    /// or [`webtwin_base::error::Error::Storage`] if the disk cannot store the rest.
    pub fn hold_lists_at_most(&mut self, bytes: u64) -> Result<()> {
        self.captures.hold_at_most(bytes / 2)?;
        let left = bytes - (bytes / 2).min(8 * self.captures.words());
        self.links.hold_at_most(left / 4)?;
        self.features.hold_at_most(left / 4)?;
        self.fprints.hold_at_most(left / 2)
    }

    /// Returns the bytes of captures, chunks, features and links on disk.
    pub fn spilled_bytes(&self) -> u64 {
        let list_bytes = self.fprints.spilled_bytes() + self.features.spilled_bytes() + self.links.spilled_bytes();
        self.captures.spilled_bytes() + list_bytes
    }

    /// Drops the slots without a capture, and renumbers the others. If there are sets of shingles,
    /// no slots are dropped.
    ///
    /// # Errors
    /// Returns any error of [`WorkerPages::hold_lists_at_most`].
    ///
    /// # Cost
    /// Moves the slots that stay, within their memory. On disk, old and new lists exist for a
    /// while.
    pub fn drop_slots_without_captures(&mut self) -> Result<()> {
        if self.sets.is_some() {
            return Ok(());
        }
        let mut stays = vec![false; self.exact.len()];
        self.captures.for_each(|page| stays[page.slot as usize] = true)?;
        self.fprints.retain(&stays)?;
        self.links.retain(&stays)?;
        self.features.retain(&stays)?;
        let mut slots = stays.iter();
        self.exact.retain(|_| *slots.next().expect("a slot for each text"));
        let staying = stays.iter().scan(0, |next, &stays| {
            *next += u32::from(stays);
            Some(stays.then(|| *next - 1))
        });
        let numbers: Vec<Option<u32>> = staying.collect();
        let number = |slot: u32| numbers[slot as usize];
        self.captures.rewrite(|page| {
            page.slot = number(page.slot).expect("a capture's slot stays");
            true
        })?;
        for rows in [&mut self.leads, &mut self.editions] {
            *rows = rows.iter().filter_map(|&(slot, to)| Some((number(slot)?, to))).collect();
        }
        Ok(())
    }

    /// Returns the number of slots.
    pub fn slots(&self) -> usize {
        self.fprints.slots().max(self.pages.len())
    }

    /// Returns the slots of the pages that are kept, with the page numbers.
    pub fn kept(&self) -> impl Iterator<Item = (usize, Page)> + '_ {
        self.pages.iter().copied().enumerate().filter(|&(_, page)| page != NOT_KEPT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::capture::Capture;

    #[test]
    fn slots_without_captures_are_removed_and_the_others_keep_their_rows() {
        let pool = MemoryPool::default().limited(0);
        // In memory, and on disk with lists as long as a block.
        for (mut local_pages, times) in [(WorkerPages::default(), 1), (WorkerPages::new(&pool), 30_000)] {
            local_pages.hold_lists_at_most(0).unwrap();
            drop_some_slots(local_pages, times);
        }
    }

    fn drop_some_slots(mut local_pages: WorkerPages, times: usize) {
        for slot in 0..40u32 {
            local_pages.exact.push(u64::from(slot));
            local_pages.fprints.push(&vec![u64::from(slot); times * (slot as usize % 5)]).unwrap();
            local_pages.links.push(&vec![u64::from(slot) << 8; times * (slot as usize % 3)]).unwrap();
            let features = times * (slot as usize % 4);
            local_pages.features.push_as_kept(&vec![u64::from(slot); features], &vec![slot as u16; features]).unwrap();
            if slot % 2 == 0 {
                local_pages.leads.push((slot, u64::from(slot)));
                local_pages.editions.extend([(slot, u64::from(slot)), (slot, 0)]);
            }
            if slot % 3 == 1 {
                local_pages.captures.push(&Capture { slot, ..Capture::default() }).unwrap();
            }
        }
        local_pages.drop_slots_without_captures().unwrap();
        assert_eq!(local_pages.spilled_bytes() > 0, times > 1);
        let stay: Vec<u64> = (0..40).filter(|slot| slot % 3 == 1).collect();
        assert_eq!(local_pages.exact, stay);
        let (mut fprints, mut links, mut features) =
            (local_pages.fprints.reader(), local_pages.links.reader(), local_pages.features.reader());
        for (slot, &slot_value) in stay.iter().enumerate() {
            let number = slot_value as usize;
            assert_eq!(local_pages.captures.reader().get(slot).unwrap().slot, slot as u32);
            assert_eq!(fprints.get(slot).unwrap(), vec![slot_value; times * (number % 5)]);
            assert_eq!(links.get(slot).unwrap(), vec![slot_value << 8; times * (number % 3)]);
            let expected = (vec![slot_value; times * (number % 4)], vec![slot_value as u16; times * (number % 4)]);
            assert_eq!(features.get(slot).unwrap(), (&expected.0[..], &expected.1[..]));
        }
        let leads: Vec<(u32, DocId)> =
            (0u32..).zip(&stay).filter(|(_, was)| **was % 2 == 0).map(|(slot, &was)| (slot, was)).collect();
        assert_eq!(local_pages.leads, leads);
        let editions: Vec<_> = leads.iter().flat_map(|&(slot, was)| [(slot, was), (slot, 0)]).collect();
        assert_eq!(local_pages.editions, editions);
    }
}
