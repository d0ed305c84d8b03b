//! Ownership of pages: virtual partitions of the doc ids, and the directory of all pages that every
//! process holds.
//!
//! The number of partitions comes from the job, never from the number of workers. Partition p
//! belongs to worker p mod peers. So the files of a table, and the order of rows in them, are the
//! same with any number of workers.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use webtwin_base::error::{Error, Result};
use webtwin_base::ids::{DocId, HostId, Number, Page};
use webtwin_engine::{Owners, RoundRobin};
use webtwin_spill::{MemoryPool, SpillColumn};

/// Division of the 64-bit key space into `2^bits` equal ranges.
#[derive(Debug, Clone, Copy)]
pub struct TablePartitions {
    bits: u32,
    assignment: RoundRobin,
}

impl TablePartitions {
    /// Divides the keys into `partitions` ranges, which are dealt to `peers` workers. `partitions`
    /// is a power of two.
    pub fn new(partitions: u32, peers: usize) -> TablePartitions {
        TablePartitions { bits: partitions.trailing_zeros(), assignment: RoundRobin::new(peers) }
    }

    /// Returns the number of partitions.
    pub fn count(&self) -> usize {
        1 << self.bits
    }

    /// Returns the partition of a well mixed key.
    pub fn partition(&self, key: u64) -> usize {
        if self.bits == 0 { 0 } else { (key >> (64 - self.bits)) as usize }
    }

    /// Divides the keys of an owner into `ranges` equal ranges, and returns the range that
    /// contains `key`. The range ascends with the key.
    pub fn range(&self, key: u64, ranges: usize) -> usize {
        let owner_partitions = self.assignment.most(self.count()) as u128;
        let place = (self.assignment.index(self.partition(key)) as u128) << 64 | u128::from(key << self.bits);
        ((place >> 32) * ranges as u128 / (owner_partitions << 32)) as usize
    }
}

/// A well mixed key belongs to the owner of its partition.
impl Owners<u64> for TablePartitions {
    fn owner(&self, key: u64) -> usize {
        self.assignment.owner(self.partition(key))
    }
}

/// Returns the number of the first page of each partition, given the number of pages of each.
///
/// # Errors
/// Returns [`Error::TooManyRows`] if there are more pages than page numbers. [`Page::NONE`] is not
/// the number of a page.
pub fn first_pages(counts: &[u64]) -> Result<Vec<u32>> {
    let allowed = u64::from(Page::NONE);
    let page_count = counts.iter().fold(0, |sum: u64, &count| sum.saturating_add(count));
    if page_count > allowed {
        return Err(Error::TooManyRows { what: "pages".into(), found: page_count, allowed });
    }
    let firsts = counts.iter().scan(0, |end, &count| {
        let first = *end;
        *end += count;
        Some(first as u32)
    });
    Ok(firsts.collect())
}

/// Page as it is entered into the directory: the halves of its doc id, and its host. 12 bytes,
/// which an aligned `u64` would make 16.
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct DirectoryEntry {
    doc_id_high: u32,
    doc_id_low: u32,
    host: HostId,
}

impl DirectoryEntry {
    /// Creates the entry of a page.
    pub fn new(doc_id: DocId, host: HostId) -> DirectoryEntry {
        DirectoryEntry { doc_id_high: (doc_id >> 32) as u32, doc_id_low: doc_id as u32, host }
    }

    fn doc_id(self) -> DocId {
        DocId::from(self.doc_id_high) << 32 | DocId::from(self.doc_id_low)
    }
}

/// Directory that is being filled. Each worker enters its own pages in ascending order, so that no
/// page number has to be sent.
#[derive(Debug)]
pub struct Entries {
    directory: Directory,
    doc_ids: Vec<DocId>,
    /// Partition and number of the page that each worker enters next.
    next: Vec<(usize, u32)>,
}

impl Entries {
    /// Creates an empty directory for partitions with the given numbers of pages.
    pub fn new(counts: &[u32], partitions: TablePartitions) -> Entries {
        let mut starts = vec![Page(0)];
        starts.extend(counts.iter().scan(0, |end, count| {
            *end += count;
            Some(Page(*end))
        }));
        let pages = starts[counts.len()].index();
        let next =
            (0..partitions.assignment.peers()).map(|worker| (worker, starts.get(worker).map_or(0, |page| page.0)));
        let next = next.collect();
        let directory = Directory::with(starts, vec![HostId(0); pages], partitions);
        Entries { directory, doc_ids: vec![0; pages], next }
    }

    /// Enters the next page of a worker.
    pub fn put(&mut self, worker: usize, entry: &DirectoryEntry) {
        let Directory { starts, hosts, partitions, .. } = &mut self.directory;
        let (partition, page) = &mut self.next[worker];
        while *page == starts[*partition + 1].0 {
            *partition += partitions.assignment.peers();
            *page = starts[*partition].0;
        }
        self.doc_ids[*page as usize] = entry.doc_id();
        hosts[Page(*page)] = entry.host;
        *page += 1;
    }

    /// Returns the directory, after all pages have been entered.
    pub fn finish(self) -> Directory {
        Directory { doc_ids: Mutex::new(DocIds::InMemory(Arc::new(self.doc_ids))), ..self.directory }
    }
}

/// Doc ids of all pages, ascending.
#[derive(Debug)]
enum DocIds {
    InMemory(Arc<Vec<DocId>>),
    /// Doc ids that are spilled to disk. They are in memory only while a caller holds them.
    Spilled(SpillColumn<DocId>, Weak<Vec<DocId>>),
}

/// Directory of all pages of the run by number, held once by each process. Takes 4 bytes for each
/// page, and 8 for its doc id unless the doc ids are spilled.
#[derive(Debug)]
pub struct Directory {
    doc_ids: Mutex<DocIds>,
    /// Host of each page.
    pub hosts: Vec<HostId>,
    /// First page of each partition, followed by the number of all pages.
    starts: Vec<Page>,
    /// Number of pages in earlier partitions of the same owner, for each partition.
    pages_before: Vec<u32>,
    partitions: TablePartitions,
}

impl Directory {
    /// Creates the directory of pages with the given doc ids, which ascend, and hosts.
    pub fn new(doc_ids: Vec<DocId>, hosts: Vec<HostId>, partitions: TablePartitions) -> Directory {
        let start = |p: usize| Page::from_index(doc_ids.partition_point(|&doc_id| partitions.partition(doc_id) < p));
        let starts = (0..=partitions.count()).map(start).collect();
        let directory = Directory::with(starts, hosts, partitions);
        Directory { doc_ids: Mutex::new(DocIds::InMemory(Arc::new(doc_ids))), ..directory }
    }

    /// Creates the directory of pages of which only number and host are known, such as synthetic
    /// pages. Doc ids are spread evenly.
    pub fn even(hosts: Vec<HostId>, partitions: TablePartitions) -> Directory {
        let step = u64::MAX / hosts.len().max(1) as u64;
        Directory::new((0..hosts.len() as u64).map(|page| page * step).collect(), hosts, partitions)
    }

    /// Creates the directory of pages with the given hosts, without doc ids. `starts` are the first
    /// pages of the partitions.
    fn with(starts: Vec<Page>, hosts: Vec<HostId>, partitions: TablePartitions) -> Directory {
        let mut owned = vec![0; partitions.assignment.peers()];
        let pages_before = starts.windows(2).enumerate().map(|(p, starts)| {
            let owned = &mut owned[partitions.assignment.owner(p)];
            let first_page = *owned;
            *owned += starts[1].0 - starts[0].0;
            first_page
        });
        let first_places = pages_before.collect();
        Directory {
            doc_ids: Mutex::new(DocIds::InMemory(Arc::default())),
            hosts,
            starts,
            pages_before: first_places,
            partitions,
        }
    }

    /// Returns the number of pages.
    pub fn len(&self) -> usize {
        self.hosts.len()
    }

    /// True if there are no pages.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// Returns the doc ids of all pages, in the order of page numbers. Spilled doc ids are read,
    /// unless another worker of the process still holds them.
    ///
    /// # Errors
    /// Returns any error of the disk.
    pub fn doc_ids(&self) -> Result<Arc<Vec<DocId>>> {
        match &mut *self.doc_ids.lock().unwrap_or_else(PoisonError::into_inner) {
            DocIds::InMemory(doc_ids) => Ok(Arc::clone(doc_ids)),
            DocIds::Spilled(spilled, cached) => {
                if let Some(doc_ids) = cached.upgrade() {
                    return Ok(doc_ids);
                }
                let doc_ids = Arc::new(spilled.all_rows()?.into_owned());
                *cached = Arc::downgrade(&doc_ids);
                Ok(doc_ids)
            }
        }
    }

    /// Spills the doc ids if memory is limited, before steps that identify pages by number. The
    /// first worker of a process that calls this function does the work.
    ///
    /// # Errors
    /// Returns any error of the disk.
    pub fn spill_doc_ids(&self, pool: &MemoryPool) -> Result<()> {
        let mut doc_ids = self.doc_ids.lock().unwrap_or_else(PoisonError::into_inner);
        if let DocIds::InMemory(doc_ids_in_memory) = &mut *doc_ids
            && pool.is_bounded()
        {
            let owned_ids = Arc::unwrap_or_clone(std::mem::take(doc_ids_in_memory));
            *doc_ids = DocIds::Spilled(SpillColumn::from_rows(owned_ids, pool)?, Weak::new());
        }
        Ok(())
    }

    /// Returns an index that finds pages by their doc ids.
    ///
    /// # Errors
    /// Returns any error of [`Directory::doc_ids`].
    pub fn by_doc_id(&self) -> Result<DocIdIndex<'_>> {
        Ok(DocIdIndex { directory: self, doc_ids: self.doc_ids()? })
    }

    /// Returns the partition of a page.
    ///
    /// Doc ids are hashes, so the partition can be estimated from the page number. This is faster
    /// than a lookup of the doc id.
    pub fn partition(&self, page: Page) -> usize {
        let guess = (page.0 as u64 * self.partitions.count() as u64 / self.len() as u64) as usize;
        let is_in = |partition: usize| self.starts[partition] <= page && page < self.starts[partition + 1];
        let near = [guess, guess + 1, guess.wrapping_sub(1)];
        let guess = near.into_iter().find(|&partition| partition < self.partitions.count() && is_in(partition));
        guess.unwrap_or_else(|| self.starts.partition_point(|&start| start <= page) - 1)
    }

    /// Returns the pages that a worker owns, ascending.
    pub fn owned(&self, worker: usize) -> impl Iterator<Item = Page> + '_ {
        self.owned_from(worker, 0)
    }

    /// Returns the pages that a worker owns, ascending, starting with the page at index `place`
    /// among them.
    pub fn owned_from(&self, worker: usize, place: usize) -> impl Iterator<Item = Page> + '_ {
        self.parts(worker).flat_map(move |(p, pages)| {
            let passed = (place as u32).saturating_sub(self.pages_before[p]).min(pages.end - pages.start);
            (pages.start + passed..pages.end).map(Page)
        })
    }

    /// Returns the non-empty partitions of a worker in ascending order, each with the range of its
    /// page numbers.
    pub fn parts(&self, worker: usize) -> impl Iterator<Item = (usize, Range<u32>)> + '_ {
        let own_partitions =
            (0..self.partitions.count()).filter(move |&p| self.partitions.assignment.owner(p) == worker);
        own_partitions.map(|p| (p, self.starts[p].0..self.starts[p + 1].0)).filter(|(_, pages)| !pages.is_empty())
    }

    /// Returns the index of a page among the pages of its owner.
    pub fn place(&self, page: Page) -> usize {
        let partition = self.partition(page);
        (self.pages_before[partition] + page.0 - self.starts[partition].0) as usize
    }

    /// Returns the owner of a doc id, which need not belong to a page.
    pub fn owner_of(&self, doc_id: DocId) -> usize {
        self.partitions.owner(doc_id)
    }

    /// Returns the first page of a partition.
    pub fn start(&self, partition: usize) -> Page {
        self.starts[partition]
    }
}

/// Doc ids in memory, for lookups of pages.
#[derive(Debug)]
pub struct DocIdIndex<'a> {
    directory: &'a Directory,
    doc_ids: Arc<Vec<DocId>>,
}

impl DocIdIndex<'_> {
    /// Returns the doc ids in the order of page numbers.
    pub fn doc_ids(&self) -> &[DocId] {
        &self.doc_ids
    }

    /// Returns the page with a doc id, or `None` if no page has it.
    ///
    /// Doc ids are hashes, so the position is estimated from the value (interpolation search) and
    /// corrected from there. Takes about three steps.
    pub fn page(&self, doc_id: DocId) -> Option<Page> {
        let Directory { partitions, starts, .. } = self.directory;
        let partition = partitions.partition(doc_id);
        let (mut low, mut high) = (starts[partition].index(), starts[partition + 1].index());
        let shift = 64 - partitions.bits;
        let within = if shift == 64 { doc_id } else { doc_id & ((1 << shift) - 1) };
        let mut guess = low + ((within as u128 * (high - low) as u128) >> shift) as usize;
        let mut step = 8;
        while low < high {
            match self.doc_ids[guess].cmp(&doc_id) {
                std::cmp::Ordering::Equal => return Some(Page::from_index(guess)),
                std::cmp::Ordering::Less => {
                    low = guess + 1;
                    guess = if low + step < high { low + step } else { low + (high - low) / 2 };
                }
                std::cmp::Ordering::Greater => {
                    high = guess;
                    guess = if low + step < high { high - step } else { low + (high - low) / 2 };
                }
            }
            step *= 4;
        }
        None
    }
}

/// A row of a page belongs to the owner of the page's doc id.
impl Owners<Page> for Directory {
    fn owner(&self, page: Page) -> usize {
        self.partitions.assignment.owner(self.partition(page))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use webtwin_base::ids::splitmix64;

    #[test]
    fn page_numbers_are_below_the_largest_32_bit_value() {
        let max_number = u64::from(u32::MAX);
        assert_eq!(first_pages(&[max_number - 7, 4, 0, 3]).unwrap(), [0, u32::MAX - 7, u32::MAX - 3, u32::MAX - 3]);
        for counts in [&[max_number - 7, 4, 0, 4][..], &[max_number + 1], &[u64::MAX, 2], &[1 << 31; 2]] {
            let total = counts.iter().fold(0, |sum: u64, &count| sum.saturating_add(count));
            let error = first_pages(counts).unwrap_err();
            assert!(matches!(error, Error::TooManyRows { found: message, .. } if message == total), "{error}");
        }
    }

    proptest! {
        #[test]
        fn page_is_found_only_for_its_doc_id(
            keys in prop::collection::btree_set(0u64..500, 0..300), bits in 0u32..6, skewed: bool
        ) {
            let id = |key: u64| if skewed { key } else { splitmix64(key) };
            let mut ids: Vec<u64> = keys.iter().map(|&key| id(key)).collect();
            ids.sort_unstable();
            let pages = || Page::first(ids.len());
            let partitions = TablePartitions::new(1 << bits, 3);
            let mut counts = vec![0; 1 << bits];
            ids.iter().for_each(|&id| counts[partitions.partition(id)] += 1);
            let mut entries = Entries::new(&counts, partitions);
            for worker in [1, 2, 0] {
                let own_ids = ids.iter().filter(|&&id| partitions.owner(id) == worker);
                own_ids.for_each(|&id| entries.put(worker, &DirectoryEntry::new(id, HostId(id as u32))));
            }
            let directory = entries.finish();
            prop_assert!(pages().all(|page| directory.hosts[page] == HostId(ids[page.index()] as u32)));
            for key in 0..500 {
                let expected = ids.binary_search(&id(key)).ok().map(Page::from_index);
                prop_assert_eq!(directory.by_doc_id().unwrap().page(id(key)), expected);
            }
            directory.spill_doc_ids(&MemoryPool::default().limited(0)).unwrap();
            prop_assert_eq!(&*directory.doc_ids().unwrap(), &ids);
            prop_assert!(pages().all(|page| directory.partition(page) == partitions.partition(ids[page.index()])));
            for worker in 0..3 {
                let owned: Vec<Page> = directory.owned(worker).collect();
                prop_assert!(owned.is_sorted() && owned.iter().all(|&page| directory.owner(page) == worker));
                prop_assert!(owned.iter().enumerate().all(|(place, &page)| directory.place(page) == place));
            }
            prop_assert_eq!((0..3).map(|worker| directory.owned(worker).count()).sum::<usize>(), ids.len());
        }
    }
}
