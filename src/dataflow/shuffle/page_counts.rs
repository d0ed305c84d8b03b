//! Sums of counts for every page over all workers.

use std::sync::Arc;

use bytemuck::Pod;

use webtwin_base::error::Result;
use webtwin_base::ids::Page;
use webtwin_core::overlap::prune::PageSet;
use webtwin_engine::Net;

/// Maximum bytes of a list that is broadcast unreduced if there are two workers.
pub const SHORT_BYTES: usize = 256 << 10;

/// Count that supports saturating addition.
pub trait Count: Pod + Send + Sync {
    /// Returns the sum, or the largest count if the sum would exceed it.
    fn plus(self, other: Self) -> Self;
}

impl Count for u8 {
    fn plus(self, other: u8) -> u8 {
        self.saturating_add(other)
    }
}

impl Count for u32 {
    fn plus(self, other: u32) -> u32 {
        self.saturating_add(other)
    }
}

/// Number of the first count, followed by 60 bytes of counts.
type Stretch = [u32; 16];

/// Adds up lists of counts, which have the same length on all workers. Every process holds one copy
/// of the sum.
///
/// # Errors
/// Returns an error only if the run has ended.
///
/// # Cost
/// Each worker sends its list once and receives data of the length of one list; ranges of zeros are
/// not sent. Takes two or three rounds, or one for [short](is_short) lists, which are broadcast
/// unreduced.
pub fn sum<T: Count>(net: &mut Net<'_>, name: &str, mine: &[T]) -> Result<Arc<Vec<T>>> {
    if let Some(sums) = sum_of_short(net, name, mine)? {
        return Ok(sums);
    }
    let (_, sums) = part_of_sum(net, name, mine)?;
    net.broadcast(name, sums)
}

/// Returns the set of those pages, or other items numbered from 0, for which `is_in` returns true,
/// given their counts summed over all workers. Every process holds one copy of the set.
///
/// # Errors
/// Returns an error only if the run has ended.
///
/// # Cost
/// Costs the same as [`sum`], but only one bit for each page goes to every process.
pub fn pages_by_sum<T: Count>(
    net: &mut Net<'_>,
    name: &str,
    mine: &[T],
    is_in: impl Fn(Page, T) -> bool,
) -> Result<Arc<PageSet>> {
    if let Some(sums) = sum_of_short(net, name, mine)? {
        return net.once_per_process(|| PageSet::new(sums.len(), |page| is_in(page, sums[page])));
    }
    let (first, sums) = part_of_sum(net, name, mine)?;
    let words = PageSet::new(sums.len(), |page| is_in(Page(first as u32 + page.0), sums[page])).into_words();
    let words = net.broadcast(name, words)?;
    net.once_per_process(|| PageSet::of_words(words.to_vec()))
}

/// Returns true if each of `peers` workers broadcasts a list of `bytes` bytes unreduced.
pub fn is_short(bytes: usize, peers: usize) -> bool {
    bytes * peers <= 2 * SHORT_BYTES
}

/// Returns the sum of lists that are short or belong to a single worker, and `None` for other
/// lists.
fn sum_of_short<T: Count>(net: &mut Net<'_>, name: &str, mine: &[T]) -> Result<Option<Arc<Vec<T>>>> {
    if net.peers() == 1 {
        return net.once_per_process(|| mine.to_vec()).map(Some);
    }
    if !is_short(size_of_val(mine), net.peers()) {
        return Ok(None);
    }
    let all = net.broadcast(name, mine.to_vec())?;
    let sum = || {
        let mut sums = vec![T::zeroed(); mine.len()];
        for (at, &more) in all.iter().enumerate() {
            let sum = &mut sums[at % mine.len()];
            *sum = sum.plus(more);
        }
        sums
    };
    net.once_per_process(sum).map(Some)
}

/// Returns the number of the first count that this worker adds up, and the sums of its part. Parts
/// ascend by worker, and begin at multiples of 64.
fn part_of_sum<T: Count>(net: &mut Net<'_>, name: &str, mine: &[T]) -> Result<(usize, Vec<T>)> {
    let counts = 60 / size_of::<T>();
    // A part begins at the start of a range of counts, and of a word of a page set.
    let part = mine.len().div_ceil(net.peers()).next_multiple_of(64 * counts).max(64 * counts);
    let first = (net.index() * part).min(mine.len());
    let mut sums = vec![T::zeroed(); part.min(mine.len() - first)];
    let mut stretches = mine.chunks(counts).enumerate();
    let source = |send: &mut dyn FnMut(Stretch)| {
        // Sends at most 2^14 ranges per call, so that receiving can proceed in between.
        let mut seen = 0;
        for (number, stretch) in stretches.by_ref().take(1 << 14) {
            seen += 1;
            let bytes: &[u8] = bytemuck::cast_slice(stretch);
            if bytes.iter().any(|&byte| byte != 0) {
                let mut row: Stretch = [0; 16];
                row[0] = (number * counts) as u32;
                bytemuck::cast_slice_mut::<u32, u8>(&mut row[1..])[..bytes.len()].copy_from_slice(bytes);
                send(row);
            }
        }
        Ok(seen > 0)
    };
    net.exchange_from(
        name,
        source,
        |row| row[0] as usize / part,
        |rows: &[Stretch]| {
            for row in rows {
                let at = row[0] as usize - first;
                let bytes: &[u8] = bytemuck::cast_slice(&row[1..]);
                // Counts of 8 bytes use only 56 of the 60 bytes.
                let more: &[T] = bytemuck::cast_slice(&bytes[..counts * size_of::<T>()]);
                sums[at..].iter_mut().zip(more).for_each(|(sum, &more)| *sum = sum.plus(more));
            }
            Ok(())
        },
    )?;
    Ok((first, sums))
}

#[cfg(test)]
mod tests {
    use super::*;
    use webtwin_engine::{Cluster, run};

    /// Count whose size does not divide the 60 bytes of a row.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, bytemuck::Zeroable)]
    #[repr(C)]
    struct Largest([u32; 2]);

    impl Count for Largest {
        fn plus(self, Largest(other): Largest) -> Largest {
            Largest([self.0[0].max(other[0]), self.0[1].max(other[1])])
        }
    }

    #[test]
    fn counts_of_eight_bytes_are_added_up_in_short_and_long_lists_and_give_sets_of_pages() {
        for length in [0, 1, 14, SHORT_BYTES / 8, SHORT_BYTES / 8 + 1, SHORT_BYTES] {
            let counts =
                move |worker: u32| (0..length as u32).map(move |at| Largest([at * (worker + 1) % 1009, worker]));
            let sums = run(&Cluster::local(3), 0, [0; 32], move |net| {
                sum(net, "counts", &counts(net.index() as u32).collect::<Vec<_>>())
            });
            let mut expected = vec![Largest([0; 2]); length];
            (0..3).for_each(|worker| expected.iter_mut().zip(counts(worker)).for_each(|(sum, of)| *sum = sum.plus(of)));
            assert!(sums.unwrap().iter().all(|sums| **sums == expected), "{length}");
            let is_in = |page: Page, Largest([most, _]): Largest| (most + page.0).is_multiple_of(3);
            let sets = run(&Cluster::local(3), 0, [0; 32], move |net| {
                pages_by_sum(net, "counts", &counts(net.index() as u32).collect::<Vec<_>>(), is_in)
            });
            let expected = PageSet::new(length, |page| is_in(page, expected[page]));
            assert!(sets.unwrap().iter().all(|set| **set == expected), "{length}");
        }
    }
}
