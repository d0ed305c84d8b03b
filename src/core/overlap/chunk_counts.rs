//! Numbers of chunks of each page, which the threads of a process count together.
//!
//! Each thread sees chunks of any page, so the counts of one process are shared by all its threads:
//! counts of each thread's own would take memory in proportion to pages times threads.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use webtwin_base::ids::{Number, Page};

/// Binary logarithm of the pages of a region. The counts of a region stay in a core's cache while
/// they are raised.
const REGION_BITS: u32 = 16;

/// Number of pages that all threads together buffer for a region before they raise the counts of
/// the region, and (next constant) minimum number for each thread.
const PENDING: usize = 1 << 13;
const MIN_PENDING: usize = 1 << 9;

/// Number that counts up to its largest value.
pub trait Count: Copy + Default {
    /// Returns the next number, or the largest one if there is none.
    fn next(self) -> Self;
}

impl Count for u8 {
    fn next(self) -> u8 {
        self.saturating_add(1)
    }
}

impl Count for u32 {
    fn next(self) -> u32 {
        self.saturating_add(1)
    }
}

/// Number of chunks of each page, counted by any number of threads through a [`ChunkCounter`] each.
/// Counts saturate at the largest value of `C`.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use webtwin_base::ids::Page;
/// use webtwin_core::overlap::chunk_counts::{ChunkCounter, ChunkCounts};
///
/// let counts = Arc::new(ChunkCounts::<u8>::new(3));
/// let mut counter = ChunkCounter::new(Arc::clone(&counts), 1);
/// // One chunk is on pages 0 and 1, another one on pages 0 and 2.
/// counter.count(&[Page(0), Page(1)]);
/// counter.count(&[Page(0), Page(2)]);
/// counter.flush();
/// assert_eq!(counts.drain(0..3).collect::<Vec<_>>(), [(0, 2), (1, 1), (2, 1)]);
/// ```
#[derive(Debug)]
pub struct ChunkCounts<C> {
    /// Counts of 2^[`REGION_BITS`] pages each, fewer in the last region. A region without a list
    /// has counts of 0.
    regions: Vec<Mutex<Vec<C>>>,
    pages: usize,
}

impl<C: Count> ChunkCounts<C> {
    /// Creates counts of zero for pages `0..pages`.
    pub fn new(pages: usize) -> ChunkCounts<C> {
        let regions = (0..pages.div_ceil(1 << REGION_BITS)).map(|_| Mutex::default()).collect();
        ChunkCounts { regions, pages }
    }

    /// Returns the number of pages.
    pub fn pages(&self) -> usize {
        self.pages
    }

    /// Returns the pages whose counts the given one of `threads` threads drains, if each drains a
    /// part. The parts are about equal, and begin at multiples of 64.
    pub fn part(&self, thread: usize, threads: usize) -> Range<usize> {
        let start = |thread: usize| (self.pages.div_ceil(64) * thread / threads * 64).min(self.pages);
        start(thread)..start(thread + 1)
    }

    /// Returns the numbers of the given pages with their counts, ascending, and resets the counts
    /// to 0. Frees the memory of regions that are drained as a whole.
    pub fn drain(&self, pages: Range<usize>) -> impl Iterator<Item = (usize, C)> + '_ {
        let regions = pages.start >> REGION_BITS..pages.end.div_ceil(1 << REGION_BITS);
        regions.flat_map(move |region| {
            let first = region << REGION_BITS;
            let mut counts = self.region(region);
            let within = pages.start.max(first) - first..(pages.end - first).min(counts.len());
            let start = first + within.start;
            let drained: Vec<C> = match within.len() == counts.len() {
                true => std::mem::take(&mut *counts),
                false => counts[within].iter_mut().map(std::mem::take).collect(),
            };
            (start..).zip(drained)
        })
    }

    /// Returns the counts, by page.
    pub fn into_vec(self) -> Vec<C> {
        let mut counts = Vec::with_capacity(self.pages);
        counts.extend(self.drain(0..self.pages).map(|(_, count)| count));
        counts
    }

    /// Returns the counts of a region, which is locked.
    fn region(&self, region: usize) -> MutexGuard<'_, Vec<C>> {
        let mut counts = self.regions[region].lock().unwrap_or_else(PoisonError::into_inner);
        if counts.is_empty() {
            counts.resize((self.pages - (region << REGION_BITS)).min(1 << REGION_BITS), C::default());
        }
        counts
    }
}

/// Counter of one thread for [`ChunkCounts`].
///
/// The counts of many pages do not fit in a cache, so pages are buffered by region, and counted
/// when a buffer is full. So the lock of a region is taken once for thousands of pages.
#[derive(Debug)]
pub struct ChunkCounter<C> {
    counts: Arc<ChunkCounts<C>>,
    /// Pages to count, by region, each as its index in the region.
    pending: Vec<Vec<u16>>,
    /// Number of pages that are buffered for a region.
    max_pending: usize,
}

impl<C: Count> ChunkCounter<C> {
    /// Creates the counter of one of `threads` threads.
    pub fn new(counts: Arc<ChunkCounts<C>>, threads: usize) -> ChunkCounter<C> {
        let pending = counts.regions.iter().map(|_| Vec::new()).collect();
        ChunkCounter { counts, pending, max_pending: (PENDING / threads).max(MIN_PENDING) }
    }

    /// Counts one chunk for each page that has it.
    #[inline]
    pub fn count(&mut self, docs: &[Page]) {
        for &doc in docs {
            let region = doc.index() >> REGION_BITS;
            let pending = &mut self.pending[region];
            if pending.len() == pending.capacity() {
                self.raise(region);
            }
            self.pending[region].push(doc.0 as u16);
        }
    }

    #[cold]
    fn raise(&mut self, region: usize) {
        let pending = &mut self.pending[region];
        let mut counts = self.counts.region(region);
        for page in pending.drain(..) {
            let count = &mut counts[page as usize];
            *count = count.next();
        }
        drop(counts);
        pending.reserve_exact(self.max_pending);
    }

    /// Adds the pages that are buffered to the counts.
    pub fn flush(&mut self) {
        for region in 0..self.pending.len() {
            if !self.pending[region].is_empty() {
                self.raise(region);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]

        #[test]
        fn threads_count_what_one_loop_counts(
            pages in 1usize..200_000, threads in 1usize..4, seed: u64, chunks in 0u64..60_000
        ) {
            let page = |n: u64| Page((webtwin_base::ids::splitmix64(seed ^ n) % pages as u64) as u32);
            let mut expected = vec![0u32; pages];
            (0..chunks).for_each(|n| expected[page(n)] += 1);
            let counts = Arc::new(ChunkCounts::<u32>::new(pages));
            std::thread::scope(|scope| {
                for thread in 0..threads {
                    let mut counter = ChunkCounter::new(Arc::clone(&counts), threads);
                    scope.spawn(move || {
                        (0..chunks).filter(|n| n % threads as u64 == thread as u64).for_each(|n| counter.count(&[page(n)]));
                        counter.flush();
                    });
                }
            });
            let parts = (0..threads).flat_map(|thread| counts.drain(counts.part(thread, threads)));
            prop_assert!(parts.eq(expected.iter().copied().enumerate()));
            prop_assert!(counts.drain(0..pages).all(|(_, count)| count == 0));
        }
    }

    #[test]
    fn counts_stop_at_the_largest_value() {
        let counts = Arc::new(ChunkCounts::<u8>::new(1));
        let mut counter = ChunkCounter::new(Arc::clone(&counts), 1);
        (0..300).for_each(|_| counter.count(&[Page(0)]));
        counter.flush();
        drop(counter);
        assert_eq!(Arc::into_inner(counts).unwrap().into_vec(), [255]);
    }
}
