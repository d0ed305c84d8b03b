//! Sums of counts for every page over all workers.

use std::iter::Peekable;
use std::ops::Range;
use std::sync::Arc;

use bytemuck::Pod;

use super::packed::{OpenRow, PackedRow, groups_of};
use webtwin_base::error::Result;
use webtwin_base::ids::{Number, Page};
use webtwin_core::overlap::chunk_counts::{ChunkCounts, Count};
use webtwin_core::overlap::prune::PageSet;
use webtwin_engine::Net;

/// Maximum bytes of a list that is broadcast unreduced if there are two workers.
pub const SHORT_BYTES: usize = 256 << 10;

/// Count that supports saturating addition.
pub trait CounterValue: Pod + Send + Sync {
    /// Returns the sum, or the largest count if the sum would exceed it.
    fn plus(self, other: Self) -> Self;
}

impl CounterValue for u8 {
    fn plus(self, other: u8) -> u8 {
        self.saturating_add(other)
    }
}

impl CounterValue for u32 {
    fn plus(self, other: u32) -> u32 {
        self.saturating_add(other)
    }
}

/// Adds up lists of counts, which have the same length on all workers. Every process holds one copy
/// of the sum.
///
/// # Errors
/// Returns an error only if the run has ended.
///
/// # Cost
/// Each worker sends its list once and receives data of the length of one list, in [`PackedRow`]s:
/// half a byte for a count of up to 7, a byte up to 63, and half a byte or a byte for a range of
/// zeros. Takes two rounds, or one for [short](is_short) lists, which are broadcast unreduced.
pub fn sum<T: CounterValue>(net: &mut Net<'_>, name: &str, own_counts: &[T]) -> Result<Arc<Vec<T>>> {
    if net.peers() == 1 {
        return net.once_per_process(|| own_counts.to_vec());
    }
    let part = part_or_all::<T>(net, own_counts.len(), net.peers());
    sum_of_rows(net, name, rows_of(own_counts, 0, part), own_counts.len())
}

/// Returns the set of those pages, or other items numbered from 0, for which `is_in` returns true,
/// given their counts summed over all workers. Every process holds one copy of the set.
///
/// # Errors
/// Returns an error only if the run has ended.
///
/// # Cost
/// Costs the same as [`sum`], but only one bit for each page goes to every process.
pub fn pages_by_sum<T: CounterValue>(
    net: &mut Net<'_>,
    name: &str,
    own_counts: &[T],
    is_in: impl Fn(Page, T) -> bool,
) -> Result<Arc<PageSet>> {
    if net.peers() == 1 {
        return net.once_per_process(|| set_of_part(own_counts, 0, is_in));
    }
    let part = part_or_all::<T>(net, own_counts.len(), net.peers());
    pages_by_rows(net, name, rows_of(own_counts, 0, part), own_counts.len(), is_in)
}

/// Adds up the counts of all processes, each of which has been filled by the workers of the
/// process. Their counters must have been flushed and dropped. Every process holds one copy of the
/// sum.
///
/// # Errors
/// Returns an error only if the run has ended.
///
/// # Cost
/// Sends nothing in a single process. Otherwise each *process* sends its counts once, and costs are
/// those of [`sum`].
pub fn sum_of_processes<T: CounterValue + Count>(
    net: &mut Net<'_>,
    name: &str,
    counts: Arc<ChunkCounts<T>>,
) -> Result<Arc<Vec<T>>> {
    if net.processes() == 1 {
        let counts = net.take_back(counts)?;
        return net.once_per_process(|| counts.expect("the first worker has taken them back").into_vec());
    }
    let pages = counts.pages();
    let rows = rows_of_process(net, &counts)?;
    sum_of_rows(net, name, rows, pages)
}

/// Returns the set of those pages for which `is_in` returns true, given their counts summed over
/// all processes as in [`sum_of_processes`]. All counters must have been flushed. The counts are 0
/// afterwards, so that counting may begin again.
///
/// # Errors
/// Returns an error only if the run has ended.
///
/// # Cost
/// Costs the same as [`sum_of_processes`], but only one bit for each page goes to every process.
pub fn pages_by_sum_of_processes<T: CounterValue + Count>(
    net: &mut Net<'_>,
    name: &str,
    counts: &ChunkCounts<T>,
    is_in: impl Fn(Page, T) -> bool,
) -> Result<Arc<PageSet>> {
    if net.processes() == 1 {
        let part = part_of_process(net, counts)?;
        let first = part.start;
        let drained: Vec<T> = counts.drain(part).map(|(_, count)| count).collect();
        let words = set_of_part(&drained, first, is_in).into_words();
        let words = net.gather_in_process(words)?;
        return net.once_per_process(|| PageSet::of_words(words.iter().flat_map(|words| words.to_vec()).collect()));
    }
    let rows = rows_of_process(net, counts)?;
    pages_by_rows::<T>(net, name, rows, counts.pages(), is_in)
}

/// Returns the pages whose counts this worker drains, once all workers of the process have counted.
fn part_of_process<T: Count>(net: &mut Net<'_>, counts: &ChunkCounts<T>) -> Result<Range<usize>> {
    net.gather_in_process(())?;
    let workers = net.workers_per_process();
    Ok(counts.part(net.index() % workers, workers))
}

/// Returns the rows of this worker's part of the counts of the process.
fn rows_of_process<'a, T: CounterValue + Count>(
    net: &mut Net<'_>,
    counts: &'a ChunkCounts<T>,
) -> Result<Rows<impl Iterator<Item = (usize, u64)> + 'a>> {
    let drained = counts.drain(part_of_process(net, counts)?);
    let numbers = drained.map(|(page, count)| (page, to_number(count))).filter(|(_, count)| *count > 0);
    let part = part_or_all::<T>(net, counts.pages(), net.processes());
    Ok(Rows { counts: numbers.peekable(), part })
}

/// Returns the pages of a part for which `is_in` returns true, numbered from the first of the part.
/// `sums` are the sums of the part.
fn set_of_part<T: Copy>(sums: &[T], first: usize, is_in: impl Fn(Page, T) -> bool) -> PageSet {
    PageSet::new(sums.len(), |page| is_in(Page(first as u32 + page.0), sums[page]))
}

/// Returns true if each of `peers` workers broadcasts a list of `bytes` bytes unreduced.
pub fn is_short(bytes: usize, peers: usize) -> bool {
    bytes * peers <= 2 * SHORT_BYTES
}

/// Returns the sum of the rows of all workers, which are below `count`.
fn sum_of_rows<T: CounterValue>(
    net: &mut Net<'_>,
    name: &str,
    rows: Rows<impl Iterator<Item = (usize, u64)>>,
    count: usize,
) -> Result<Arc<Vec<T>>> {
    if rows.part == ALL {
        return net.broadcast_into(name, rows, || vec![T::zeroed(); count], |sums, _, row| add(row, 0, sums));
    }
    let (first, sums) = part_of_rows::<T>(net, name, rows, count)?;
    sum_of_rows(net, name, rows_of(&sums, first, ALL), count)
}

/// Returns the set of the pages for which `is_in` returns true, given the sums of the rows of all
/// workers, which are below `count`.
fn pages_by_rows<T: CounterValue>(
    net: &mut Net<'_>,
    name: &str,
    rows: Rows<impl Iterator<Item = (usize, u64)>>,
    count: usize,
    is_in: impl Fn(Page, T) -> bool,
) -> Result<Arc<PageSet>> {
    if rows.part == ALL {
        let sums = sum_of_rows(net, name, rows, count)?;
        return net.once_per_process(|| set_of_part(&sums, 0, is_in));
    }
    let (first, sums) = part_of_rows(net, name, rows, count)?;
    let words = net.broadcast(name, set_of_part(&sums, first, is_in).into_words())?;
    net.once_per_process(|| PageSet::of_words(words.to_vec()))
}

/// Part of counts that are [short](is_short) and therefore broadcast unreduced.
const ALL: usize = usize::MAX;

/// Returns the numbers of a worker's part if `senders` lists of `count` counts are summed, or
/// [`ALL`] if they are short.
fn part_or_all<T>(net: &Net<'_>, count: usize, senders: usize) -> usize {
    if is_short(count * size_of::<T>(), senders) { ALL } else { part_of(count, net.peers()) }
}

/// Numbers of a worker's part, which begins with a word of a set.
fn part_of(count: usize, peers: usize) -> usize {
    count.div_ceil(peers).next_multiple_of(64).max(64)
}

/// Returns the number of the first count that this worker adds up, and the sums of its part. Parts
/// ascend by worker, and begin at multiples of 64.
fn part_of_rows<T: CounterValue>(
    net: &mut Net<'_>,
    name: &str,
    rows: Rows<impl Iterator<Item = (usize, u64)>>,
    count: usize,
) -> Result<(usize, Vec<T>)> {
    let part = rows.part;
    let first = (net.index() * part).min(count);
    let mut sums = vec![T::zeroed(); part.min(count - first)];
    let take = |rows: &[PackedRow]| {
        rows.iter().for_each(|row| add(row, first, &mut sums));
        Ok(())
    };
    net.exchange_into(name, rows, |row| row.first as usize / part, take)?;
    Ok((first, sums))
}

/// Adds up counts of pages below `pages`; returns the sums of the pages that this worker asks for,
/// in their order. `own_counts` are this worker's counts, and `pages_asked` pages, both ascending
/// by page, each page once.
///
/// # Errors
/// Only when the run has ended.
///
/// # Cost
/// Three rounds. A count, a question and an answer take a byte or two each; what is sent does not
/// grow with the number of processes.
pub fn sums_of(
    net: &mut Net<'_>,
    name: &str,
    pages: usize,
    own_counts: &[(Page, u32)],
    pages_asked: &[Page],
) -> Result<Vec<u32>> {
    let part = part_of(pages, net.peers());
    let counts = own_counts.iter().map(|&(page, count)| (page.index(), u64::from(count)));
    let rows = Rows { counts: counts.filter(|(_, count)| *count > 0).peekable(), part };
    let (first, sums) = part_of_rows::<u32>(net, name, rows, pages)?;

    let own_index = net.index() as u64;
    // Questions: the first page in full, the worker that asks, then the distance of each page from
    // the one before.
    let mut next = 0;
    let questions = std::iter::from_fn(|| {
        let mut row = OpenRow::new(pages_asked.get(next)?.0);
        let to = pages_asked[next].index() / part;
        row.push(own_index);
        next += 1;
        while let Some(page) = pages_asked.get(next).filter(|page| page.index() / part == to) {
            let distance = u64::from(page.0 - pages_asked[next - 1].0);
            if !row.has_room_for(groups_of(distance)) {
                break;
            }
            row.push(distance);
            next += 1;
        }
        Some(row.finish())
    });
    let mut worker_sums: Vec<Vec<u32>> = vec![Vec::new(); net.peers()];
    let take = |rows: &[PackedRow]| {
        for row in rows {
            let mut numbers = row.numbers();
            let from = numbers.next().expect("a question has the worker that asks") as usize;
            let mut page = row.first as usize;
            worker_sums[from].push(sums[page - first]);
            for distance in numbers {
                page += distance as usize;
                worker_sums[from].push(sums[page - first]);
            }
        }
        Ok(())
    };
    net.exchange_into(name, questions, |row| row.first as usize / part, take)?;

    // Answers: the worker that answers in full, the one that asks, then sums in the order of
    // questions.
    let answers = worker_sums.iter().enumerate().flat_map(|(to, sums)| {
        let mut sums = sums.iter().map(|&sum| u64::from(sum)).peekable();
        std::iter::from_fn(move || {
            sums.peek()?;
            let mut row = OpenRow::new(own_index as u32);
            row.push(to as u64);
            while let Some(sum) = sums.next_if(|&sum| row.has_room_for(groups_of(sum))) {
                row.push(sum);
            }
            Some(row.finish())
        })
    });
    let mut answered = vec![0; pages_asked.len()];
    let mut places: Vec<usize> =
        (0..net.peers()).map(|worker| pages_asked.partition_point(|page| page.index() / part < worker)).collect();
    let take = |rows: &[PackedRow]| {
        for row in rows {
            let place = &mut places[row.first as usize];
            for sum in row.numbers().skip(1) {
                answered[*place] = sum as u32;
                *place += 1;
            }
        }
        Ok(())
    };
    let to = |row: &PackedRow| row.numbers().next().expect("an answer has the worker that asks") as usize;
    net.exchange_into(name, answers, to, take)?;
    Ok(answered)
}

/// Iterates over the rows of ascending counts that are not 0, each row within one part. A row
/// begins with the number of its first count; 0 stands for a range of zeros, and is followed by the
/// length of the range less 1.
struct Rows<I: Iterator> {
    counts: Peekable<I>,
    part: usize,
}

/// Returns the rows of a list, of which the first count has number `first`.
fn rows_of<T: CounterValue>(list: &[T], first: usize, part: usize) -> Rows<impl Iterator<Item = (usize, u64)>> {
    let counts = (first..).zip(list).map(|(number, count)| (number, to_number(*count)));
    Rows { counts: counts.filter(|(_, count)| *count > 0).peekable(), part }
}

impl<I: Iterator<Item = (usize, u64)>> Iterator for Rows<I> {
    type Item = PackedRow;

    fn next(&mut self) -> Option<PackedRow> {
        let &(first, _) = self.counts.peek()?;
        let mut row = OpenRow::new(u32::try_from(first).expect("pages have numbers of 32 bits"));
        let (end, mut next) = ((first / self.part + 1).saturating_mul(self.part), first);
        while let Some(&(number, count)) = self.counts.peek() {
            let zeros = (number - next) as u64;
            let zero_groups = if zeros > 0 { 1 + groups_of(zeros - 1) } else { 0 };
            if number >= end || !row.has_room_for(zero_groups + groups_of(count)) {
                break;
            }
            if zeros > 0 {
                row.push(0);
                row.push(zeros - 1);
            }
            row.push(count);
            next = number + 1;
            self.counts.next();
        }
        Some(row.finish())
    }
}

/// Adds the counts of a row to sums, of which the first has number `first`.
fn add<T: CounterValue>(row: &PackedRow, first: usize, sums: &mut [T]) {
    let mut at = row.first as usize - first;
    let mut numbers = row.numbers();
    while let Some(number) = numbers.next() {
        if number == 0 {
            at += numbers.next().map_or(0, |length| length as usize + 1);
            continue;
        }
        sums[at] = sums[at].plus(of_number(number));
        at += 1;
    }
}

/// A count of up to 8 bytes as a number.
#[inline]
fn to_number<T: Pod>(count: T) -> u64 {
    const { assert!(size_of::<T>() <= size_of::<u64>()) };
    let mut bytes = [0; 8];
    bytes[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&count));
    u64::from_le_bytes(bytes)
}

/// The count that [`to_number`] has made a number of.
#[inline]
fn of_number<T: Pod>(number: u64) -> T {
    bytemuck::pod_read_unaligned(&number.to_le_bytes()[..size_of::<T>()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use webtwin_engine::{ClusterLayout, run};

    /// Count whose size does not divide the 60 bytes of a row.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, bytemuck::Zeroable)]
    #[repr(C)]
    struct Largest([u32; 2]);

    impl CounterValue for Largest {
        fn plus(self, Largest(other): Largest) -> Largest {
            Largest([self.0[0].max(other[0]), self.0[1].max(other[1])])
        }
    }

    #[test]
    fn counts_of_eight_bytes_are_summed_in_short_and_long_lists_and_yield_sets_of_pages() {
        for length in [0, 1, 14, SHORT_BYTES / 8, SHORT_BYTES / 8 + 1, SHORT_BYTES] {
            let counts =
                move |worker: u32| (0..length as u32).map(move |at| Largest([at * (worker + 1) % 1009, worker]));
            let sums = run(&ClusterLayout::local(3), 0, [0; 32], move |net| {
                sum(net, "counts", &counts(net.index() as u32).collect::<Vec<_>>())
            });
            let mut expected = vec![Largest([0; 2]); length];
            (0..3).for_each(|worker| expected.iter_mut().zip(counts(worker)).for_each(|(sum, of)| *sum = sum.plus(of)));
            assert!(sums.unwrap().iter().all(|sums| **sums == expected), "{length}");
            let is_in = |page: Page, Largest([most, _]): Largest| (most + page.0).is_multiple_of(3);
            let sets = run(&ClusterLayout::local(3), 0, [0; 32], move |net| {
                pages_by_sum(net, "counts", &counts(net.index() as u32).collect::<Vec<_>>(), is_in)
            });
            let expected = PageSet::new(length, |page| is_in(page, expected[page]));
            assert!(sets.unwrap().iter().all(|set| **set == expected), "{length}");
        }
    }

    #[test]
    fn counts_of_four_bytes_are_summed_if_most_are_zero_and_some_are_large() {
        let length = SHORT_BYTES;
        let count = |worker: usize, at: usize| match at % 977 {
            0..40 => (at % 9) as u32,
            40 if worker == 1 => u32::MAX - 5,
            41 => 1 << (at % 28),
            _ => 0,
        };
        let sums = run(&ClusterLayout::local(3), 0, [0; 32], move |net| {
            let own_counts: Vec<u32> = (0..length).map(|at| count(net.index(), at)).collect();
            sum(net, "counts", &own_counts)
        });
        let total_at = |at: usize| (0..3).fold(0u32, |sum, worker| sum.plus(count(worker, at)));
        assert!(sums.unwrap().iter().all(|sums| **sums == (0..length).map(total_at).collect::<Vec<_>>()));
    }

    #[test]
    fn each_worker_receives_the_sums_of_its_requested_pages() {
        let count = |worker: usize, page: usize| (page * (worker + 3) % 11 * (page % 200)) as u32;
        for pages in [1, 63, 20_000] {
            let pages_asked =
                move |worker: usize| (0..pages).filter(move |page| page % 7 < worker).map(Page::from_index);
            let sums = run(&ClusterLayout::local(3), 0, [0; 32], move |net| {
                let own_pages = (0..pages).filter(|page| page % 5 != net.index());
                let own_counts: Vec<_> =
                    own_pages.map(|page| (Page::from_index(page), count(net.index(), page))).collect();
                sums_of(net, "counts", pages, &own_counts, &pages_asked(net.index()).collect::<Vec<_>>())
            });
            let total_of = |page: Page| {
                let workers = (0..3).filter(|worker| page.index() % 5 != *worker);
                workers.map(|worker| count(worker, page.index())).sum::<u32>()
            };
            for (worker, sums) in sums.unwrap().into_iter().enumerate() {
                assert!(sums == pages_asked(worker).map(total_of).collect::<Vec<_>>(), "{pages}");
            }
        }
    }
}
