//! Converts runs of pages into pairs, which are sent to the owners of their smaller pages. Coarse
//! counting drops pairs that cannot be similar. These are steps 4 and 5 of
//! [`crate::pairs::overlap_join`].

use std::ops::Range;
use std::sync::Arc;

use super::allowance::Allowance;
use crate::pairs::overlap_work::OverlapWork;
use crate::shuffle::packed::PackedRow;
use crate::shuffle::packed_links::{LinkPacker, each_link};
use crate::shuffle::page_counts::sum;
use webtwin_base::error::Result;
use webtwin_base::ids::{Number, Page, splitmix64};
use webtwin_core::overlap::coarse_count::{CoarseCounter, HeavyBuckets, Layout};
use webtwin_core::overlap::count_pairs::{pair_key, smaller};
use webtwin_core::overlap::planner::{self, Load};
use webtwin_core::overlap::runs::RecordRuns;
use webtwin_engine::{HashOwners, Net, Owners, RoundRobin};
use webtwin_spill::{BLOCK_BYTES, Partitions, RunLog, partition_bits};

/// Rows or pairs that are sent before arrived ones are processed.
const BATCH: usize = 1 << 15;

/// Step 4, first part: estimates from a sample of pages how many of a thousand generated pairs
/// belong to pages that share at least T chunks.
pub(crate) fn sample_heavy_share(net: &mut Net<'_>, run_log: &RunLog<u32>, rate: u64, min_shared: u32) -> Result<u64> {
    let (mut words, mut pair_keys) = (Vec::new(), Vec::new());
    for block in 0..run_log.blocks() {
        net.check()?;
        run_log.read(block, &mut words)?;
        for docs in RecordRuns(&words) {
            for (at, &a) in docs.iter().enumerate().filter(|&(_, &a)| splitmix64(u64::from(a)).is_multiple_of(rate)) {
                pair_keys.extend(docs[at + 1..].iter().map(|&b| pair_key(a, b)));
            }
        }
    }
    let owners = HashOwners::new(net);
    let mut pairs = net.exchange("pilot sample", pair_keys, |&pair| owners.owner(pair))?;
    let heavy = planner::heavy_thousandths(&mut pairs, min_shared) * pairs.len() as u64;
    let [heavy, pairs] = net.all_sum("heavy pairs", [heavy, pairs.len() as u64])?;
    Ok(heavy / u64::max(pairs, 1))
}

/// Step 4: finds the heavy buckets of all pairs. Each process holds one copy.
pub(crate) fn heavy_buckets(
    net: &mut Net<'_>,
    run_log: &RunLog<u32>,
    layout: Layout,
    min_shared: u32,
) -> Result<Arc<HeavyBuckets>> {
    let mut counter = CoarseCounter::new(layout);
    let mut heavy = HeavyBuckets::new(layout);
    let mut words = Vec::new();
    // Counters are computed in parts, each of which fits in memory, at the cost of one scan of the
    // run log for each part.
    for part in 0..layout.parts {
        counter.begin(part);
        for block in 0..run_log.blocks() {
            net.check()?;
            run_log.read(block, &mut words)?;
            for docs in RecordRuns(&words) {
                for (at, &a) in docs.iter().enumerate() {
                    docs[at + 1..].iter().for_each(|&b| counter.add(pair_key(a, b)));
                }
            }
        }
        heavy.judge(&sum(net, "counters", counter.finish())?, min_shared);
    }
    net.once_per_process(|| heavy)
}

/// Ownership of pages as the smaller pages of pairs: stripes of 2^n pages, which are dealt out to
/// the workers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageStripes {
    shift: u32,
    assignment: RoundRobin,
    count: usize,
}

impl PageStripes {
    /// Chooses stripes for pairs that are generated in `2^pass_bits` passes.
    pub(crate) fn new(pages: usize, peers: usize, load: &Load, pass_bits: u32) -> PageStripes {
        // Open blocks take at most a quarter of the budget.
        let max_bits = (load.worker_bytes / 4 / BLOCK_BYTES as u64).max(1).ilog2();
        let pass_bucket_bits = partition_bits::<u64>((load.pairs / load.workers) >> pass_bits).min(max_bits);
        let bucket_count = peers << (pass_bucket_bits + pass_bits);
        let shift = pages.div_ceil(bucket_count).next_power_of_two().trailing_zeros();
        PageStripes { shift, assignment: RoundRobin::new(peers), count: (pages >> shift) / peers + 1 }
    }

    /// Chooses stripes for few pairs, which need no buckets.
    pub(crate) fn even(pages: usize, peers: usize) -> PageStripes {
        let shift = pages.div_ceil(peers).next_power_of_two().trailing_zeros().saturating_sub(3);
        PageStripes { shift, assignment: RoundRobin::new(peers), count: (pages >> shift) / peers + 1 }
    }

    #[inline]
    fn stripe(&self, smaller: Page) -> usize {
        smaller.index() >> self.shift
    }

    #[inline]
    fn bucket(&self, smaller: Page) -> usize {
        self.assignment.index(self.stripe(smaller))
    }

    /// Divides the buckets of a worker into at most `passes` ranges, or into single buckets if
    /// there are fewer.
    pub(crate) fn passes(&self, passes: usize) -> impl Iterator<Item = Range<usize>> {
        let (count, buckets_per_pass) = (self.count, self.count.div_ceil(passes));
        (0..count).step_by(buckets_per_pass).map(move |start| start..(start + buckets_per_pass).min(count))
    }

    /// Returns the page numbers of a bucket of a worker.
    pub(crate) fn pages(&self, worker: usize, bucket: usize, pages: usize) -> Range<usize> {
        let stripe = self.assignment.number(worker, bucket);
        let start = |stripe: usize| (stripe << self.shift).min(pages);
        start(stripe)..start(stripe + 1)
    }
}

/// The pairs of a page with larger pages belong to the owner of its stripe.
impl Owners<Page> for PageStripes {
    #[inline]
    fn owner(&self, smaller: Page) -> usize {
        self.assignment.owner(self.stripe(smaller))
    }
}

/// Step 5, one pass: sends every pair (or every candidate) to its owner, once for each run that
/// generates it. Only pairs of the given buckets are sent. The buckets returned are numbered from
/// the first of these.
pub(crate) fn by_pair(
    net: &mut Net<'_>,
    run_log: &RunLog<u32>,
    heavy: Option<&HeavyBuckets>,
    stripes: PageStripes,
    buckets: Range<usize>,
    allowance: &Allowance,
    work: &mut OverlapWork,
) -> Result<Partitions<u64>> {
    let mut pairs = Partitions::new(buckets.len(), &allowance.for_buckets());
    let mut source = PairSource {
        run_log,
        heavy,
        stripes,
        buckets: &buckets,
        words: Vec::new(),
        next_word: 0,
        next_block: 0,
        at: 0,
        pairs_sent: 0,
    };
    let mut put_pair = |pair: u64| pairs.push(stripes.bucket(smaller(pair)) - buckets.start, pair);
    if net.processes() == 1 {
        net.exchange_from(
            "pairs",
            |send: &mut dyn FnMut(u64)| source.next(|a, b| send(pair_key(a, b))),
            |&pair| stripes.owner(smaller(pair)),
            |rows: &[u64]| rows.iter().try_for_each(|&pair| put_pair(pair)),
        )?;
    } else {
        let mut packer = LinkPacker::new(net.peers());
        net.exchange_from(
            "pairs",
            |send: &mut dyn FnMut(PackedRow)| {
                let has_more = source.next(|a, b| {
                    if let Some(full) = packer.push(stripes.owner(a), a, b) {
                        send(full);
                    }
                })?;
                if !has_more {
                    packer.finish().for_each(send);
                }
                Ok(has_more)
            },
            |row| stripes.owner(Page(row.first)),
            |rows: &[PackedRow]| rows.iter().try_for_each(|row| each_link(row, |a, b| put_pair(pair_key(a, b)))),
        )?;
    }
    work.pairs_sent += source.pairs_sent;
    Ok(pairs)
}

/// Generates the pairs, or candidates, of the runs of a run log whose buckets are in this pass.
struct PairSource<'a> {
    run_log: &'a RunLog<u32>,
    heavy: Option<&'a HeavyBuckets>,
    stripes: PageStripes,
    buckets: &'a Range<usize>,
    words: Vec<u32>,
    next_word: usize,
    next_block: usize,
    /// Position of the next smaller page in its run.
    at: usize,
    /// Number of pairs generated.
    pairs_sent: u64,
}

impl PairSource<'_> {
    /// Generates some pairs, a limited number per call, so that receiving can proceed in between.
    /// Returns true if there may be more.
    fn next(&mut self, mut send: impl FnMut(Page, Page)) -> Result<bool> {
        let mut inspected_pairs = 0;
        while inspected_pairs < BATCH {
            if self.next_word == self.words.len() {
                if self.next_block == self.run_log.blocks() {
                    break;
                }
                self.run_log.read(self.next_block, &mut self.words)?;
                (self.next_block, self.next_word, self.at) = (self.next_block + 1, 0, 0);
                continue;
            }
            let docs = RecordRuns(&self.words[self.next_word..]).next().expect("there are words left");
            let (a, later_docs) = (docs[self.at], &docs[self.at + 1..]);
            match self.heavy {
                _ if !self.buckets.contains(&self.stripes.bucket(a)) => {}
                None => {
                    later_docs.iter().for_each(|&b| send(a, b));
                    self.pairs_sent += later_docs.len() as u64;
                }
                Some(heavy) => {
                    for &b in later_docs.iter().filter(|&&b| heavy.may_hold(pair_key(a, b))) {
                        send(a, b);
                        self.pairs_sent += 1;
                    }
                }
            }
            inspected_pairs += later_docs.len() + 1;
            self.at += 1;
            if self.at + 1 == docs.len() {
                (self.next_word, self.at) = (self.next_word + docs.len() + 1, 0);
            }
        }
        Ok(inspected_pairs > 0)
    }
}
