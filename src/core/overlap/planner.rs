//! Which way to the Overlap table: by sorting all pairs, or by coarse counting.
//!
//! Sorting handles every pair three times (emit, spill, count). Coarse counting looks at each pair once per hashing
//! scan and once more to select candidates, keeps none, and handles the candidates as sorting does. So it wins if pairs
//! do not fit in memory and few of them occur T times.

use super::coarse_count::Layout;

/// How pairs are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Sort all pairs (\[SGM98\] section 2.1).
    SortBased,
    /// Count in buckets first (\[SGM98\] section 2.2).
    CoarseCount(Layout),
}

/// What the choice depends on. Pairs are those left after [`super::prune`], one for each chunk that two pages share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Pairs of all workers.
    pub pairs: u64,
    /// Of a thousand of these, those of pages that share T chunks: from the pilot sample.
    pub heavy_thousandths: u64,
    /// T: fewest chunks that similar pages share.
    pub min_shared: u32,
    /// Bytes each worker may use for pairs or counters.
    pub worker_bytes: u64,
    /// Workers of all processes.
    pub workers: u64,
    /// Bytes that pairs may take on disk at once, all workers together.
    pub disk_bytes: u64,
}

impl Load {
    /// Bytes of the pairs, or of about as many candidates as the pilot sample tells.
    pub fn bytes(&self, method: Method) -> u64 {
        let pairs = match method {
            Method::SortBased => self.pairs,
            Method::CoarseCount(_) => self.candidates(),
        };
        pairs.saturating_mul(PAIR)
    }

    /// Bytes of memory for them, all workers together.
    pub fn memory_bytes(&self) -> u64 {
        self.worker_bytes.saturating_mul(self.workers)
    }

    /// Pairs that pass coarse counting.
    fn candidates(&self) -> u64 {
        self.pairs / 1000 * (self.heavy_thousandths + FALSE_THOUSANDTHS)
    }

    /// Those of so many pairs that do not fit in memory.
    fn beyond_memory(&self, pairs: u64) -> u64 {
        pairs.saturating_sub(self.memory_bytes() / PAIR)
    }
}

/// Most passes in which rows, or pairs, are made that have no room on the disk at once, as a power of two.
pub const MOST_PASS_BITS: u32 = 6;

/// Passes in which so many bytes are made of which some have room in memory, as a power of two: so that what goes to disk takes a quarter
/// of what there is, for passes are not alike, and what they leave grows beside them. None if too many were needed.
pub fn pass_bits(bytes: u64, in_memory: u64, disk_bytes: u64) -> Option<u32> {
    (0..=MOST_PASS_BITS).find(|bits| (bytes >> bits).saturating_sub(in_memory) <= disk_bytes / 4)
}

/// Bytes of the disk without which there are not passes enough.
pub fn least_disk_bytes(bytes: u64, in_memory: u64) -> u64 {
    (bytes >> MOST_PASS_BITS).saturating_sub(in_memory) * 4
}

/// Bytes per pair.
const PAIR: u64 = 8;

/// Smallest T for coarse counting: with less, nearly all buckets are heavy.
const LEAST_T: u32 = 8;

/// The number of counters keeps their mean at T over this.
const FILL: u64 = 4;

/// At this fill, about this many of a thousand light pairs pass.
const FALSE_THOUSANDTHS: u64 = 20;

/// Pairs in a pilot sample.
const PILOT: u64 = 4_000_000;

/// Nanoseconds of one worker per pair, measured on one core of an EPYC of 2023 while two were at work.
mod cost {
    /// Emit, exchange, put into a bucket, count.
    pub(super) const SORT: u64 = 25;
    /// Write to disk and read again, 8 bytes.
    pub(super) const SPILL: u64 = 12;
    /// Skip a pair of another part.
    pub(super) const PASS_OVER: u64 = 3;
    /// Count a pair in A.
    pub(super) const HASH: u64 = 12;
    /// Look a pair up in BITMAP.
    pub(super) const SELECT: u64 = 8;
}

/// Whether a pilot sample as in \[SGM98\] \[17\] would change the choice.
pub fn pilot_decides(load: &Load) -> bool {
    load.pairs > load.worker_bytes.saturating_mul(load.workers) / PAIR && load.min_shared >= LEAST_T
}

/// One page in this many, chosen by its mixed number, contributes its pairs to the pilot sample.
///
/// The sample has all occurrences of a pair or none, so its share of heavy pairs is unbiased.
pub fn pilot_rate(pairs: u64) -> u64 {
    (pairs / PILOT + 1).next_power_of_two()
}

/// Of a thousand pairs of a sample, those of pairs that occur at least `min_shared` times. Sorts the sample.
pub fn heavy_thousandths(sample: &mut [u64], min_shared: u32) -> u64 {
    sample.sort_unstable();
    let lengths = sample.chunk_by(|x, y| x == y).map(<[u64]>::len);
    let heavy: usize = lengths.filter(|&length| length >= min_shared as usize).sum();
    heavy as u64 * 1000 / (sample.len() as u64).max(1)
}

/// Chooses, and gives the reason in one sentence.
pub fn choose(load: &Load) -> (Method, String) {
    let Load { pairs, heavy_thousandths, min_shared, workers, disk_bytes, .. } = *load;
    let spilled = load.beyond_memory(pairs);
    let mega = |n: u64| n.div_ceil(1_000_000);
    if spilled == 0 {
        return (Method::SortBased, format!("sort-based: the {} million pairs fit in memory", mega(pairs)));
    }
    if min_shared < LEAST_T {
        let why = format!(
            "sort-based: {} million pairs are spilled to disk, for with T = {min_shared} every bucket is heavy",
            mega(spilled)
        );
        return (Method::SortBased, why);
    }
    let layout = layout(load);
    let sort = pairs.saturating_mul(cost::SORT) + spilled.saturating_mul(cost::SPILL);
    let scans = cost::HASH + cost::PASS_OVER * u64::from(layout.parts - 1) + cost::SELECT;
    let candidates = load.candidates();
    let spilled_candidates = load.beyond_memory(candidates);
    let coarse = pairs.saturating_mul(scans) + candidates * cost::SORT + spilled_candidates * cost::SPILL;
    let seconds = |nanoseconds: u64| nanoseconds / workers.max(1) / 1_000_000_000;
    // If the pairs do not fit on the disk in any passes, coarse counting is the only way, whatever it costs.
    let fits = pass_bits(load.bytes(Method::SortBased), load.memory_bytes(), disk_bytes).is_some();
    let heavy = format!("{}.{} % of them of pairs that occur T times", heavy_thousandths / 10, heavy_thousandths % 10);
    if fits && sort <= coarse {
        let why = format!(
            "sort-based: {} million pairs, {heavy}; {} million are spilled to disk, in about {} s; coarse counting would \
             scan them {} times in about {} s",
            mega(pairs),
            mega(spilled),
            seconds(sort),
            layout.parts + 1,
            seconds(coarse)
        );
        return (Method::SortBased, why);
    }
    let instead = if fits {
        format!("sorting them would take about {} s", seconds(sort))
    } else {
        format!("sorting them would take {} MB of disk, far more than is free", mega(spilled.saturating_mul(PAIR)))
    };
    let why = format!(
        "coarse counting: {} million pairs, {heavy}, into {} million counters with {} hash functions in {} hashing scans, in about \
         {} s; {instead}",
        mega(pairs),
        mega(u64::from(layout.lines) * 64 * u64::from(layout.parts)),
        layout.hashes,
        layout.parts,
        seconds(coarse)
    );
    (Method::CoarseCount(layout), why)
}

/// m and the number of hashing scans: counters for a mean of T / 4, using at most half of a worker's bytes, including
/// their sum.
pub fn layout(load: &Load) -> Layout {
    let per_counter = u64::from(load.min_shared.clamp(1, 255)).div_ceil(FILL);
    let lines = (load.pairs / per_counter / 64).max(16);
    // A worker's counters, their sum on its way to all workers, and an eighth for the bitmap of each part.
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
        let (method, why) = choose(&load(100_000_000, 25, GIB));
        assert_eq!(method, Method::SortBased);
        assert_eq!(why, "sort-based: the 100 million pairs fit in memory");
    }

    #[test]
    fn with_a_small_t_nothing_is_gained_by_counting_coarsely() {
        let (method, why) = choose(&load(10_000_000_000, 1, GIB));
        assert_eq!(method, Method::SortBased);
        assert!(why.contains("T = 1"), "{why}");
    }

    #[test]
    fn many_pairs_and_a_large_t_are_counted_coarsely() {
        let (method, why) = choose(&load(10_000_000_000, 25, GIB));
        let Method::CoarseCount(layout) = method else { panic!("{why}") };
        let (counters, bitmaps) = layout.bytes();
        assert!(counters <= GIB / 4 && bitmaps <= GIB / 4, "{layout:?}");
        assert!(why.starts_with("coarse counting: 10000 million pairs, 3.0 % of them of pairs"), "{why}");
    }

    #[test]
    fn pairs_that_mostly_occur_t_times_are_sorted_even_on_disk() {
        let (method, why) = choose(&Load { heavy_thousandths: 900, ..load(10_000_000_000, 25, GIB) });
        assert_eq!(method, Method::SortBased, "{why}");
    }

    #[test]
    fn a_pilot_is_taken_where_coarse_counting_could_win() {
        assert!(!pilot_decides(&load(100_000_000, 25, GIB)));
        assert!(!pilot_decides(&load(10_000_000_000, 1, GIB)));
        assert!(pilot_decides(&load(1_000_000_000, 25, GIB)));
        assert_eq!(pilot_rate(1_000_000_000), 256);
        assert_eq!(heavy_thousandths(&mut [5, 7, 5, 9, 5, 7, 1, 2], 3), 375);
    }

    #[test]
    fn passes_are_as_few_as_take_a_quarter_of_the_disk_and_refused_beyond_the_most() {
        assert_eq!(pass_bits(GIB, 0, u64::MAX), Some(0));
        assert_eq!(pass_bits(GIB, 0, 4 * GIB), Some(0));
        assert_eq!(pass_bits(GIB, 0, 2 * GIB), Some(1));
        assert_eq!(pass_bits(64 * GIB, 0, 4 * GIB), Some(MOST_PASS_BITS));
        // There is as much memory in each pass.
        assert_eq!(pass_bits(4 * GIB, GIB, 0), Some(2));
        for bytes in [128 * GIB + 64, 200 * GIB, 1000 * GIB, 1 << 60] {
            assert_eq!(pass_bits(bytes, GIB, 4 * GIB), None);
            assert!(pass_bits(bytes, GIB, least_disk_bytes(bytes, GIB)).is_some());
        }
    }

    #[test]
    fn pairs_that_fit_on_no_disk_are_counted_coarsely_however_long_that_takes() {
        let (method, why) = choose(&Load { disk_bytes: GIB / 2, ..load(4_000_000_000, 9, GIB / 64) });
        assert!(matches!(method, Method::CoarseCount(_)), "{why}");
        assert!(why.contains("more than is free"), "{why}");
    }
}
