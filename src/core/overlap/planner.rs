//! Choice of the method that computes the Overlap table: sorting all pairs, or coarse counting.
//!
//! Sorting handles every pair three times (emit, spill, count). Coarse counting reads each pair
//! once per hashing scan and once more to select candidates, stores none of them, and handles the
//! candidates as sorting does. So coarse counting is faster if the pairs do not fit in memory and
//! few of them occur T times.

use super::coarse_count::Layout;

/// Method of counting pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountingMethod {
    /// Sorting of all pairs (\[SGM98\] section 2.1).
    SortBased,
    /// Counting in buckets first, then of the candidates (\[SGM98\] section 2.2).
    CoarseCount(Layout),
}

/// Inputs of the choice. Pairs are those that remain after [`super::prune`], one for each chunk
/// that two pages share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Number of pairs of all workers.
    pub pairs: u64,
    /// Fraction of these pairs, in thousandths, whose pages share T chunks. Estimated from the
    /// pilot sample.
    pub heavy_thousandths: u64,
    /// T: minimum number of chunks that similar pages share.
    pub min_shared: u32,
    /// Bytes that each worker may use for pairs or counters.
    pub worker_bytes: u64,
    /// Number of workers of all processes.
    pub workers: u64,
    /// Bytes that pairs may take on disk at one time, all workers together.
    pub disk_bytes: u64,
}

impl Load {
    /// Returns the bytes of the pairs that `method` stores. For coarse counting these are
    /// candidates, whose number is estimated from the pilot sample.
    pub fn bytes(&self, method: CountingMethod) -> u64 {
        let pairs = match method {
            CountingMethod::SortBased => self.pairs,
            CountingMethod::CoarseCount(_) => self.candidates(),
        };
        pairs.saturating_mul(PAIR)
    }

    /// Returns the bytes of memory for pairs, all workers together.
    pub fn memory_bytes(&self) -> u64 {
        self.worker_bytes.saturating_mul(self.workers)
    }

    /// Estimates the number of pairs that pass coarse counting.
    fn candidates(&self) -> u64 {
        self.pairs / 1000 * (self.heavy_thousandths + FALSE_POSITIVE_THOUSANDTHS)
    }

    /// Returns the number of `pairs` that do not fit in memory.
    fn beyond_memory(&self, pairs: u64) -> u64 {
        pairs.saturating_sub(self.memory_bytes() / PAIR)
    }
}

/// Binary logarithm of the maximum number of passes. Rows or pairs are produced in several passes
/// if the disk cannot hold all of them at one time.
pub const MAX_PASS_BITS: u32 = 6;

/// Returns the binary logarithm of the number of passes for `bytes`, of which `in_memory` bytes of
/// each pass fit in memory. Chooses the fewest passes whose spilled bytes take at most a quarter of
/// the disk, because passes differ in size and their results also take disk space. Returns `None`
/// if more than `2^MAX_PASS_BITS` passes would be needed.
pub fn pass_bits(bytes: u64, in_memory: u64, disk_bytes: u64) -> Option<u32> {
    (0..=MAX_PASS_BITS).find(|bits| (bytes >> bits).saturating_sub(in_memory) <= disk_bytes / 4)
}

/// Returns the minimum bytes of disk with which the maximum number of passes suffices.
pub fn required_disk_bytes(bytes: u64, in_memory: u64) -> u64 {
    (bytes >> MAX_PASS_BITS).saturating_sub(in_memory) * 4
}

/// Number of bytes of a pair.
const PAIR: u64 = 8;

/// Minimum T for coarse counting. With a smaller T nearly all buckets are heavy.
const MIN_T: u32 = 8;

/// Divisor of T that yields the mean of the counters, from which their number is chosen.
const FILL: u64 = 4;

/// Number of light pairs that pass at this fill, per thousand (approximate).
const FALSE_POSITIVE_THOUSANDTHS: u64 = 20;

/// Number of pairs in a pilot sample.
const PILOT: u64 = 4_000_000;

/// Nanoseconds of one worker per pair, measured on one core of an EPYC of 2023 while two were busy.
mod cost {
    /// Emitting a pair, exchanging it, putting it into a bucket and counting it.
    pub(super) const SORT: u64 = 25;
    /// Writing 8 bytes to disk and reading them again.
    pub(super) const SPILL: u64 = 12;
    /// Skipping a pair of another part.
    pub(super) const PASS_OVER: u64 = 3;
    /// Counting a pair in A.
    pub(super) const HASH: u64 = 12;
    /// Looking a pair up in BITMAP.
    pub(super) const SELECT: u64 = 8;
}

/// True if a pilot sample, as in reference \[17\] of \[SGM98\], could change the choice.
pub fn pilot_decides(load: &Load) -> bool {
    load.pairs > load.worker_bytes.saturating_mul(load.workers) / PAIR && load.min_shared >= MIN_T
}

/// Returns the sampling rate `n` of the pilot sample: one page of every `n`, chosen by its mixed
/// number, contributes its pairs.
///
/// The sample has all occurrences of a pair or none, so its fraction of heavy pairs is unbiased.
pub fn pilot_rate(pairs: u64) -> u64 {
    (pairs / PILOT + 1).next_power_of_two()
}

/// Returns the fraction, in thousandths, of the pairs of a sample that occur at least `min_shared`
/// times. Sorts the sample.
pub fn heavy_thousandths(sample: &mut [u64], min_shared: u32) -> u64 {
    sample.sort_unstable();
    let lengths = sample.chunk_by(|x, y| x == y).map(<[u64]>::len);
    let heavy: usize = lengths.filter(|&length| length >= min_shared as usize).sum();
    heavy as u64 * 1000 / (sample.len() as u64).max(1)
}

/// Chooses a method. Also returns the reason in one sentence.
///
/// # Examples
/// ```
/// use webtwin_core::overlap::planner::{Load, CountingMethod, choose};
///
/// let load = Load {
///     pairs: 5_000_000,
///     heavy_thousandths: 100,
///     min_shared: 10,
///     worker_bytes: 1 << 30,
///     workers: 2,
///     disk_bytes: 1 << 40,
/// };
/// let (method, reason) = choose(&load);
/// assert_eq!(method, CountingMethod::SortBased);
/// assert_eq!(reason, "sort-based: the 5 million pairs are kept in memory");
///
/// // If pairs fit neither in memory nor on the disk, only coarse counting remains.
/// let (method, _) = choose(&Load { pairs: 500_000_000_000, disk_bytes: 1 << 30, ..load });
/// assert!(matches!(method, CountingMethod::CoarseCount(_)));
/// ```
pub fn choose(load: &Load) -> (CountingMethod, String) {
    let Load { pairs, heavy_thousandths, min_shared, workers, disk_bytes, .. } = *load;
    let spilled = load.beyond_memory(pairs);
    let mega = |n: u64| n.div_ceil(1_000_000);
    if spilled == 0 {
        return (
            CountingMethod::SortBased,
            format!("sort-based: the {} million pairs are kept in memory", mega(pairs)),
        );
    }
    // With a small T coarse counting would select nearly all pairs, so it would only add its scans.
    if min_shared < MIN_T {
        let reason = format!(
            "sort-based: {} million pairs are spilled to disk, because every bucket is heavy with T = {min_shared}",
            mega(spilled)
        );
        return (CountingMethod::SortBased, reason);
    }
    // Costs are summed over all workers, in nanoseconds.
    let layout = layout(load);
    let sort = pairs.saturating_mul(cost::SORT) + spilled.saturating_mul(cost::SPILL);
    let scans = cost::HASH + cost::PASS_OVER * u64::from(layout.parts - 1) + cost::SELECT;
    let candidates = load.candidates();
    let spilled_candidates = load.beyond_memory(candidates);
    let coarse = pairs.saturating_mul(scans) + candidates * cost::SORT + spilled_candidates * cost::SPILL;
    let seconds = |nanoseconds: u64| nanoseconds / workers.max(1) / 1_000_000_000;
    // If no permitted number of passes makes the pairs fit on the disk, only coarse counting
    // remains, whatever its cost.
    let fits = pass_bits(load.bytes(CountingMethod::SortBased), load.memory_bytes(), disk_bytes).is_some();
    let heavy = format!("of which {}.{} % occur T times or more", heavy_thousandths / 10, heavy_thousandths % 10);
    if fits && sort <= coarse {
        let reason = format!(
            "sort-based: {} million pairs, {heavy}; {} million are spilled to disk, in about {} s; coarse counting would \
             scan them {} times in about {} s",
            mega(pairs),
            mega(spilled),
            seconds(sort),
            layout.parts + 1,
            seconds(coarse)
        );
        return (CountingMethod::SortBased, reason);
    }
    let alternative = if fits {
        format!("sorting them would take about {} s", seconds(sort))
    } else {
        format!("sorting them would take {} MB of disk, much more than is free", mega(spilled.saturating_mul(PAIR)))
    };
    let reason = format!(
        "coarse counting: {} million pairs, {heavy}, into {} million counters with {} hash functions in {} hashing scans, in about \
         {} s; {alternative}",
        mega(pairs),
        mega(u64::from(layout.lines) * 64 * u64::from(layout.parts)),
        layout.hashes,
        layout.parts,
        seconds(coarse)
    );
    (CountingMethod::CoarseCount(layout), reason)
}

/// Returns m and the number of hashing scans: counters with a mean of T / 4 that use at most half
/// of a worker's bytes, including their sum.
pub fn layout(load: &Load) -> Layout {
    let per_counter = u64::from(load.min_shared.clamp(1, 255)).div_ceil(FILL);
    let lines = (load.pairs / per_counter / 64).max(16);
    // A quarter for the counters of a worker, a quarter for their sum on its way to all workers,
    // and an eighth of the counters for the bitmap of each part.
    let fit = (load.worker_bytes / 4 / 64).clamp(16, u64::from(u32::MAX));
    let parts = lines.div_ceil(fit).clamp(1, 64);
    Layout { lines: lines.div_ceil(parts).min(fit) as u32, hashes: 2, parts: parts as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn load(pairs: u64, min_shared: u32, worker_bytes: u64) -> Load {
        Load { pairs, heavy_thousandths: 30, min_shared, worker_bytes, workers: 2, disk_bytes: 500 * GIB }
    }

    #[test]
    fn pairs_that_fit_in_memory_are_sorted() {
        let (method, reason) = choose(&load(100_000_000, 25, GIB));
        assert_eq!(method, CountingMethod::SortBased);
        assert_eq!(reason, "sort-based: the 100 million pairs are kept in memory");
    }

    #[test]
    fn small_t_is_not_counted_coarsely() {
        let (method, reason) = choose(&load(10_000_000_000, 1, GIB));
        assert_eq!(method, CountingMethod::SortBased);
        assert!(reason.contains("T = 1"), "{reason}");
    }

    #[test]
    fn many_pairs_and_a_large_t_are_counted_coarsely() {
        let (method, reason) = choose(&load(10_000_000_000, 25, GIB));
        let CountingMethod::CoarseCount(layout) = method else { panic!("{reason}") };
        let (counters, bitmaps) = layout.bytes();
        assert!(counters <= GIB / 4 && bitmaps <= GIB / 4, "{layout:?}");
        assert!(reason.starts_with("coarse counting: 10000 million pairs, of which 3.0 % occur"), "{reason}");
    }

    #[test]
    fn pairs_that_mostly_occur_t_times_are_sorted_even_on_disk() {
        let (method, reason) = choose(&Load { heavy_thousandths: 900, ..load(10_000_000_000, 25, GIB) });
        assert_eq!(method, CountingMethod::SortBased, "{reason}");
    }

    #[test]
    fn pilot_runs_where_coarse_counting_could_be_faster() {
        assert!(!pilot_decides(&load(100_000_000, 25, GIB)));
        assert!(!pilot_decides(&load(10_000_000_000, 1, GIB)));
        assert!(pilot_decides(&load(1_000_000_000, 25, GIB)));
        assert_eq!(pilot_rate(1_000_000_000), 256);
        assert_eq!(heavy_thousandths(&mut [5, 7, 5, 9, 5, 7, 1, 2], 3), 375);
    }

    #[test]
    fn passes_use_a_quarter_of_the_disk_and_are_limited() {
        assert_eq!(pass_bits(GIB, 0, u64::MAX), Some(0));
        assert_eq!(pass_bits(GIB, 0, 4 * GIB), Some(0));
        assert_eq!(pass_bits(GIB, 0, 2 * GIB), Some(1));
        assert_eq!(pass_bits(64 * GIB, 0, 4 * GIB), Some(MAX_PASS_BITS));
        // Each pass has the whole memory.
        assert_eq!(pass_bits(4 * GIB, GIB, 0), Some(2));
        for bytes in [128 * GIB + 64, 200 * GIB, 1000 * GIB, 1 << 60] {
            assert_eq!(pass_bits(bytes, GIB, 4 * GIB), None);
            assert!(pass_bits(bytes, GIB, required_disk_bytes(bytes, GIB)).is_some());
        }
    }

    #[test]
    fn pairs_beyond_any_disk_are_counted_coarsely_at_any_cost() {
        let (method, reason) = choose(&Load { disk_bytes: GIB / 2, ..load(4_000_000_000, 9, GIB / 64) });
        assert!(matches!(method, CountingMethod::CoarseCount(_)), "{reason}");
        assert!(reason.contains("more than is free"), "{reason}");
    }
}
