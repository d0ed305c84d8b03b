//! Finds pairs of pages whose sets of shingles resemble each other. MinHash proposes candidates,
//! and a comparison of the sets decides.
//!
//! 1. The worker that holds a page's set computes its signature, and sends the key of each band to
//!    the owner of the key.
//! 2. Pages with the same key become candidates ([`webtwin_core::minhash::pairs`]), which are sent
//!    to the worker that holds the set of the smaller page.
//! 3. That worker compares each candidate once, in rounds. In each round it fetches as many sets of
//!    larger pages from other workers as fit in memory.
//! 4. Pairs that reach the threshold are sent to the owner of the smaller page, and the guard
//!    decides on them.
//!
//! Keys and candidates are partitioned into buckets. All workers process the same bucket at the
//! same time.
//!
//! # Memory
//! Takes 8 bytes for each page in each process, and 12 more while these are broadcast. If memory is
//! limited, keys (12 bytes for each band of a page) and candidates (8 bytes for each key that two
//! pages share) are spilled to disk, except for one bucket.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

use crate::clusters::links::WorkerLinks;
use crate::memory_estimate::{MemoryEstimate, RunSize};
use crate::pairs::exact::copies;
use crate::pairs::guards::{Context, GUARD_PAGE_BYTES, keep};
use crate::reading::captures::Crawl;
use crate::reading::shingle_sets::ShingleSets;
use crate::reading::worker_pages::WorkerPages;
use crate::shuffle::memory::{self, at_rest, of_largest_process, too_little};
use webtwin_base::error::Result;
use webtwin_base::ids::Page;
use webtwin_core::minhash::bands::BandLayout;
use webtwin_core::minhash::pairs::{omitted_pairs, pairs};
use webtwin_core::minhash::resemblance::Threshold;
use webtwin_core::minhash::signature::Permutations;
use webtwin_core::overlap::SimilarPair;
use webtwin_engine::{HashOwners, Net, Owners};
use webtwin_job::{Job, Minhash};
use webtwin_spill::{BLOCK_BYTES, Partitions, SpillColumn, partition_bits};

/// Maximum bytes of sets that a worker fetches in a round.
const ROUND_BYTES: u64 = 64 << 20;

/// Minimum bytes that a worker needs.
const MIN_BYTES: u64 = 8 << 20;

/// Bytes of a page in a process: the holder and the size of its set, and the row in which they are
/// broadcast.
const PAGE_BYTES: u64 = 20;

/// Bytes of a key of a page in the current bucket, and of the page itself.
const KEY_BYTES: u64 = size_of::<KeyRow>() as u64 + size_of::<Page>() as u64;

/// Counts of the steps, over all workers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MinhashCounts {
    /// Pages that have shingles and are not copies of other pages.
    pub pages: u64,
    /// Pairs of pages that share a key and were compared.
    pub candidates: u64,
    /// Pairs that were not compared, once for each shared key that is on more than 200 pages.
    pub left_out: u64,
    /// Pairs that reach the threshold.
    pub similar: u64,
    /// Similar pairs that the guard removed.
    pub guarded: u64,
}

/// Key of a band, and a page that has it, in 12 bytes. Ordered by key, then page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct KeyRow {
    key_high: u32,
    key_low: u32,
    page: Page,
}

impl KeyRow {
    fn key(&self) -> u64 {
        u64::from(self.key_high) << 32 | u64::from(self.key_low)
    }
}

/// Two pages to be compared, the smaller first.
type Candidate = [Page; 2];

/// Page whose set is requested, and the requesting worker, in 8 bytes. Ordered by page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Request {
    page: Page,
    to: u32,
}

/// Part of a set in transit, in 64 bytes.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Piece {
    to: u32,
    page: Page,
    shingles: [u32; 14],
}

/// Page whose set is held by a worker, with the size of the set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct SetHolder {
    page: Page,
    worker: u32,
    size: u32,
}

/// Holder and size of the set of each page. The size is 0 for pages that are not compared.
struct Holders {
    workers: Vec<u32>,
    sizes: Vec<u32>,
}

/// Sets that this worker holds.
struct LocalSets<'a> {
    sets: &'a ShingleSets,
    /// Pages that are compared, ascending, with their slots.
    slots: Vec<(Page, u32)>,
}

impl LocalSets<'_> {
    fn set<'r>(&'r self, page: Page, scratch: &'r mut Vec<u32>) -> Result<&'r [u32]> {
        let at = self.slots.partition_point(|(other, _)| *other < page);
        self.sets.get(self.slots[at].1 as usize, scratch)
    }
}

/// Sets of other holders, back to back.
struct Fetched {
    /// Fetched pages in ascending order, each with the start of its set.
    pages: Vec<(Page, usize)>,
    shingles: Vec<u32>,
}

impl Fetched {
    /// Returns the index of a page, which must be among the fetched pages.
    fn number(&self, page: Page) -> usize {
        self.pages.partition_point(|(other, _)| *other < page)
    }

    fn set(&self, page: Page) -> &[u32] {
        let number = self.number(page);
        let end = self.pages.get(number + 1).map_or(self.shingles.len(), |next| next.1);
        &self.shingles[self.pages[number].1..end]
    }
}

/// Finds the similar pairs among the centres of all workers' local pages. `exact_pairs` are this
/// worker's (centre, copy) pairs, and `links` are the links from its pages, ascending. The result
/// is ascending on each worker. All workers return the same counts.
///
/// # Errors
/// Returns [`webtwin_base::error::Error::MemoryLimit`] if the memory limit does not suffice, and
/// any error of the disk.
pub fn similar_pairs(
    net: &mut Net<'_>,
    local_pages: &WorkerPages,
    crawl: &Crawl,
    exact_pairs: &SpillColumn<SimilarPair>,
    links: &WorkerLinks,
    job: &Job,
) -> Result<(Vec<SimilarPair>, MinhashCounts)> {
    let (pages, settings) = (crawl.directory.len(), &job.minhash);
    let sets = local_pages.sets.as_ref().expect("reading kept the sets that this measure compares");
    let is_copy = copies(net, exact_pairs, pages)?;
    let compared = local_pages.kept().filter(|&(slot, page)| sets.size(slot) > 0 && !is_copy.contains(page));
    let mut slots: Vec<(Page, u32)> = compared.map(|(slot, page)| (page, slot as u32)).collect();
    slots.sort_unstable();
    let local_sets = LocalSets { sets, slots };
    let [compared] = net.all_sum("pages compared", [local_sets.slots.len() as u64])?;

    let keys_bytes = keys_bytes(compared, settings) / net.peers() as u64;
    let held_bytes =
        of_largest_process(net, MemoryEstimate::with(local_pages, &crawl.pages, Some(links)).local_pages_bytes())?
            + at_rest(net.workers_per_process())
            + PAGE_BYTES * pages as u64;
    let allowed = job.effort.memory_bytes;
    let min_bytes = held_bytes + required_bytes(keys_bytes) * net.workers_per_process() as u64;
    if allowed > 0 && min_bytes > allowed {
        return Err(too_little(
            "sets of shingles that are compared, in addition to the pages read".into(),
            enough_bytes(min_bytes),
            allowed,
        ));
    }
    let pool = memory::remaining_budget(net, held_bytes, &job.effort);
    let share = pool.of_worker();
    // Workers process their buckets together, so all use the smallest number, although their
    // budgets may differ.
    let buckets = 1 << net.all_reduce("buckets of keys", buckets_bits(keys_bytes, share), Ord::min)?;
    let holders = holders(net, &local_sets, pages)?;

    let mut keys = keys(net, &local_sets, settings, Partitions::new(buckets, &pool.part(4)))?;
    let largest = (0..keys.count()).map(|bucket| keys.rows_of(bucket) * KEY_BYTES).max().unwrap_or(0);
    let fits = net.all_reduce("keys that fit", u64::from(largest <= share / 2), Ord::min)?;
    // The largest bucket of any worker decides for all, so that all workers return the same error.
    let largest = net.all_reduce("the largest bucket of keys", largest, Ord::max)?;
    if fits == 0 {
        let needed_bytes = held_bytes + 2 * largest * net.workers_per_process() as u64;
        return Err(too_little("pages that have the same key of a band".into(), needed_bytes, allowed));
    }
    let empty = Partitions::new(buckets, &pool.part(4));
    let (mut candidates, omitted) = candidates(net, &mut keys, &holders, settings, empty)?;
    drop(keys);
    let (similar_found, candidates) =
        compare(net, &local_sets, &holders, &mut candidates, settings, ROUND_BYTES.min(share / 8))?;

    let directory = Arc::clone(&crawl.directory);
    let mut similar = net.exchange("similar pairs", similar_found, |pair| directory.owner(pair.a))?;
    similar.sort_unstable();
    let [candidates, omitted, similar_count] =
        net.all_sum("pairs by shingles", [candidates, omitted, similar.len() as u64])?;
    let estimate = MemoryEstimate::with(local_pages, &crawl.pages, Some(links));
    memory::agree(net, estimate.local_pages_bytes(), memory::for_each_page(net, GUARD_PAGE_BYTES, pages), &job.effort)?;
    let context = Context { crawl, joined_pairs: &[exact_pairs], links };
    // The values are resemblances already, so the divisor is 1.
    let guarded = keep(net, settings.guard, &mut similar, &*directory, &context, |_, _| 1, 0)?;
    Ok((similar, MinhashCounts { pages: compared, candidates, left_out: omitted, similar: similar_count, guarded }))
}

/// Returns the bytes of the keys of `pages` pages.
pub fn keys_bytes(pages: u64, settings: &Minhash) -> u64 {
    pages * u64::from(BandLayout::from_settings(settings).bands) * size_of::<KeyRow>() as u64
}

/// Returns the minimum bytes of a process with the content `estimate` if all pages are compared;
/// and the bytes of its keys, which are spilled beyond this minimum.
pub fn required_of_process(estimate: &MemoryEstimate, run: RunSize, settings: &Minhash) -> (u64, u64) {
    let RunSize { all_pages, workers, processes } = run;
    let keys_bytes = keys_bytes(all_pages, settings) / processes as u64;
    let worker_bytes = required_bytes(keys_bytes / workers as u64);
    (
        at_rest(workers)
            + estimate.min_local_pages_bytes(workers)
            + PAGE_BYTES * all_pages
            + worker_bytes * workers as u64,
        keys_bytes,
    )
}

/// Returns the bytes to request if at least `min_bytes` bytes are needed. A margin is added because
/// the use of blocks varies from run to run.
pub fn enough_bytes(min_bytes: u64) -> u64 {
    min_bytes + min_bytes / 32
}

/// Returns the minimum bytes of a worker with `keys_bytes` bytes of keys. An eighth of them is for
/// the open blocks of either kind of buckets, of which there are as many as a power of two allows,
/// and one bucket of keys takes at most a quarter.
fn required_bytes(keys_bytes: u64) -> u64 {
    (64 * BLOCK_BYTES as u64 * keys_bytes).isqrt().max(MIN_BYTES)
}

/// Returns the number of partitions of `keys_bytes` bytes of keys within a worker's share of the
/// memory, as a power of two.
fn buckets_bits(keys_bytes: u64, share: u64) -> u32 {
    partition_bits::<u8>(keys_bytes).min((share / (8 * BLOCK_BYTES as u64)).max(1).ilog2())
}

fn holders(net: &mut Net<'_>, local_sets: &LocalSets<'_>, pages: usize) -> Result<Arc<Holders>> {
    let worker = net.index() as u32;
    let holding = |&(page, slot): &(Page, u32)| SetHolder { page, worker, size: local_sets.sets.size(slot as usize) };
    let all_holdings = net.broadcast("holders of sets", local_sets.slots.iter().map(holding).collect())?;
    net.once_per_process(|| {
        let mut holders = Holders { workers: vec![0; pages], sizes: vec![0; pages] };
        for SetHolder { page, worker, size } in all_holdings.iter() {
            (holders.workers[*page], holders.sizes[*page]) = (*worker, *size);
        }
        holders
    })
}

/// Sends the keys of the held pages to their owners, which partition them into buckets.
fn keys(
    net: &mut Net<'_>,
    local_sets: &LocalSets<'_>,
    settings: &Minhash,
    mut buckets: Partitions<KeyRow>,
) -> Result<Partitions<KeyRow>> {
    let bands = BandLayout::from_settings(settings);
    let permutations = Permutations::new(bands.permutations());
    let pages_per_batch = ((1 << 15) / bands.bands as usize).max(1);
    let (mut left, mut scratch, mut signature) = (local_sets.slots.chunks(pages_per_batch), Vec::new(), Vec::new());
    let source = |send: &mut dyn FnMut(KeyRow)| {
        let Some(slots) = left.next() else { return Ok(false) };
        for &(page, slot) in slots {
            permutations.signature(local_sets.sets.get(slot as usize, &mut scratch)?, &mut signature);
            let row = |key: u64| KeyRow { key_high: (key >> 32) as u32, key_low: key as u32, page };
            bands.keys(&signature).map(row).for_each(&mut *send);
        }
        Ok(true)
    };
    let owners = HashOwners::new(net);
    let count = buckets.count() as u64;
    net.exchange_from(
        "keys of bands",
        source,
        |row| owners.owner(row.key()),
        |rows| {
            let bucket = |row: &KeyRow| ((u64::from(row.key_high) * count) >> 32) as usize;
            rows.iter().try_for_each(|row| buckets.push(bucket(row), *row))
        },
    )?;
    Ok(buckets)
}

/// Sends the candidates to the holders of their smaller pages, which partition them into buckets by
/// that page. Returns the buckets, and the number of pairs that this worker left out.
fn candidates(
    net: &mut Net<'_>,
    keys: &mut Partitions<KeyRow>,
    holders: &Holders,
    settings: &Minhash,
    mut buckets: Partitions<Candidate>,
) -> Result<(Partitions<Candidate>, u64)> {
    let (count, pages) = (buckets.count() as u64, holders.workers.len() as u64);
    let all_below = settings.max_documents as usize;
    let (mut rows, mut surplus) = (Vec::new(), 0);
    for bucket in 0..keys.count() {
        keys.take(bucket, &mut rows)?;
        rows.sort_unstable();
        rows.dedup();
        let key_pages: Vec<Page> = rows.iter().map(|row| row.page).collect();
        let mut remaining = &key_pages[..];
        let groups: Vec<&[Page]> = rows
            .chunk_by(|x, y| x.key() == y.key())
            .map(|group| remaining.split_off(..group.len()).expect("there is a page a row"))
            .filter(|group| group.len() > 1)
            .collect();
        surplus += groups.iter().map(|group| omitted_pairs(group.len(), all_below)).sum::<u64>();
        net.exchange_into(
            "candidates",
            groups.iter().flat_map(|group| pairs(group, all_below)).map(|(a, b)| [a, b]),
            |[a, _]| holders.workers[*a] as usize,
            |rows| rows.iter().try_for_each(|row| buckets.push((u64::from(row[0]) * count / pages) as usize, *row)),
        )?;
    }
    Ok((buckets, surplus))
}

/// Compares the candidates. Returns the pairs that reach the threshold, ascending, and the number
/// of pairs that this worker compared.
fn compare(
    net: &mut Net<'_>,
    local_sets: &LocalSets<'_>,
    holders: &Holders,
    candidates: &mut Partitions<Candidate>,
    settings: &Minhash,
    round_bytes: u64,
) -> Result<(Vec<SimilarPair>, u64)> {
    let threshold = Threshold::new(settings.threshold);
    let (mut similar, mut compared) = (Vec::new(), 0);
    let (mut bucket_candidates, mut scratch, mut other_scratch) = (Vec::new(), Vec::new(), Vec::new());
    for bucket in 0..candidates.count() {
        candidates.take(bucket, &mut bucket_candidates)?;
        bucket_candidates.sort_unstable();
        bucket_candidates.dedup();
        compared += bucket_candidates.len() as u64;
        let mut remaining = &bucket_candidates[..];
        // All workers take part in every round until no worker has candidates left in this bucket.
        loop {
            let (pages_to_fetch, count) = round(remaining, holders, net.index() as u32, round_bytes);
            let fetched = fetch(net, local_sets, holders, pages_to_fetch)?;
            let (round_candidates, later) = remaining.split_at(count);
            for page_candidates in round_candidates.chunk_by(|x, y| x[0] == y[0]) {
                let a = page_candidates[0][0];
                let set = local_sets.set(a, &mut scratch)?;
                for &[_, b] in page_candidates {
                    let other = match holders.workers[b] as usize == net.index() {
                        true => local_sets.set(b, &mut other_scratch)?,
                        false => fetched.set(b),
                    };
                    let value = threshold.reached_millionths(set, other);
                    similar.extend(value.map(|value| SimilarPair { a, b, value }));
                }
            }
            remaining = later;
            if net.all_sum("candidates left", [remaining.len() as u64])? == [0] {
                break;
            }
        }
    }
    Ok((similar, compared))
}

/// Returns the pages whose sets are fetched for the first candidates, and the number of these
/// candidates: as many as fit in `round_bytes`, and at least one.
fn round(candidates: &[Candidate], holders: &Holders, own_index: u32, round_bytes: u64) -> (BTreeSet<Page>, usize) {
    let (mut pages_to_fetch, mut bytes) = (BTreeSet::new(), 0);
    for (count, &[_, b]) in candidates.iter().enumerate() {
        if holders.workers[b] == own_index || pages_to_fetch.contains(&b) {
            continue;
        }
        bytes += 4 * u64::from(holders.sizes[b]);
        if bytes > round_bytes && count > 0 {
            return (pages_to_fetch, count);
        }
        pages_to_fetch.insert(b);
    }
    (pages_to_fetch, candidates.len())
}

/// Fetches the sets of pages from their holders.
fn fetch(
    net: &mut Net<'_>,
    local_sets: &LocalSets<'_>,
    holders: &Holders,
    pages_to_fetch: BTreeSet<Page>,
) -> Result<Fetched> {
    let own_index = net.index() as u32;
    let requests = pages_to_fetch.iter().map(|&page| Request { page, to: own_index });
    let mut received = net.exchange("requested sets", requests, |row| holders.workers[row.page] as usize)?;
    received.sort_unstable();

    let mut end = 0;
    let place = |page: Page| {
        let begin = end;
        end += holders.sizes[page] as usize;
        (page, begin)
    };
    let pages: Vec<(Page, usize)> = pages_to_fetch.into_iter().map(place).collect();
    let mut fetched = Fetched { pages, shingles: vec![0; end] };
    // Number of shingles of each set that have arrived.
    let mut received_shingles = vec![0; fetched.pages.len()];
    let (mut left, mut scratch) = (received.iter(), Vec::new());
    let source = |send: &mut dyn FnMut(Piece)| {
        let mut sent_pieces = 0;
        while sent_pieces < 1 << 12 {
            let Some(&Request { page, to }) = left.next() else { return Ok(false) };
            for piece in local_sets.set(page, &mut scratch)?.chunks(14) {
                let mut shingles = [0; 14];
                shingles[..piece.len()].copy_from_slice(piece);
                send(Piece { to, page, shingles });
                sent_pieces += 1;
            }
        }
        Ok(true)
    };
    net.exchange_from(
        "sets of shingles",
        source,
        |piece| piece.to as usize,
        |pieces| {
            // All pieces of a page have the same sender, so they arrive in order.
            for piece in pieces {
                let number = fetched.number(piece.page);
                let begin = fetched.pages[number].1 + received_shingles[number];
                let piece_length = 14.min(holders.sizes[piece.page] as usize - received_shingles[number]);
                fetched.shingles[begin..begin + piece_length].copy_from_slice(&piece.shingles[..piece_length]);
                received_shingles[number] += piece_length;
            }
            Ok(())
        },
    )?;
    Ok(fetched)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_minimum_memory_a_bucket_of_keys_takes_at_most_a_quarter() {
        for keys_bytes in [0, 1, 1 << 20, 1 << 27, 3 << 30, 1 << 36] {
            let share = required_bytes(keys_bytes);
            let buckets = 1u64 << buckets_bits(keys_bytes, share);
            assert!(buckets * BLOCK_BYTES as u64 <= share / 8 && keys_bytes / buckets <= share / 4, "{keys_bytes}");
        }
    }

    #[test]
    fn memory_grows_with_pages_bands_and_owned_keys() {
        let memory_of = |pages, bands, workers, processes| {
            let estimate = MemoryEstimate { pages, ..MemoryEstimate::default() };
            let settings = Minhash { bands, rows: 4, ..Job::default().minhash };
            required_of_process(&estimate, RunSize { all_pages: pages, workers, processes }, &settings)
        };
        let (min_bytes, keys) = memory_of(10_000_000, 32, 2, 1);
        assert_eq!(keys, 10_000_000 * 32 * 12);
        // The minimum that the step itself checks.
        assert_eq!(min_bytes - memory_of(0, 32, 2, 1).0, 48 * 10_000_000 + 2 * (required_bytes(keys / 2) - MIN_BYTES));
        assert!(memory_of(10_000_000, 64, 2, 1).0 > min_bytes && memory_of(10_000_000, 32, 2, 4).0 < min_bytes);
        assert_eq!(memory_of(10_000_000, 32, 2, 4).1, keys / 4);
    }

    #[test]
    fn round_fetches_what_fits_and_at_least_one_set() {
        let holders = Holders { workers: vec![0, 0, 1, 1, 1], sizes: vec![100, 100, 100, 100, 1000] };
        let candidates = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [1, 4]].map(|pair| pair.map(Page));
        let first_round = |candidates: &[Candidate], bytes| {
            let (pages_to_fetch, count) = round(candidates, &holders, 0, bytes);
            (pages_to_fetch.into_iter().map(|page| page.0).collect::<Vec<_>>(), count)
        };
        assert_eq!(first_round(&candidates, 1 << 20), (vec![2, 3, 4], 6));
        assert_eq!(first_round(&candidates, 800), (vec![2, 3], 5));
        assert_eq!(first_round(&candidates, 799), (vec![2], 2));
        assert_eq!(first_round(&candidates[5..], 10), (vec![4], 1));
    }
}
