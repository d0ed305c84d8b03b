//! Batch join: tables are built from a batch of queries and probed by a scan of fingerprints.
//!
//! For each condition ([`super::conditions`]) there is a table of 65,536 buckets, one for each
//! value of the key. A bucket is a *line* of 8, 16 or 32 lanes of 16 bits: the siblings of its
//! queries, with empty lanes repeating the first. The last lane is a flag, which is 0 if there are
//! more queries than lanes. One load, one exclusive-or and one bit count determine the queries of a
//! bucket that can be close. Whole queries are read only for the few that pass.
//!
//! The outer loop runs over tables for a chunk of F, so that one table of at most 4 MB is live at a
//! time. If a bucket has more queries than lanes, the siblings of all its queries are scanned.
//! Buckets of thousands of queries are joined after the scan of a table, each with all fingerprints
//! that met it, by partitioning ([`super::close_pairs`]), so the cost of clusters is proportional
//! to their output.
//!
//! # Source
//! \[MJS07\] section 3.3: tables from Q in memory, F scanned chunk by chunk.
//!
//! # Deviations
//! The paper keeps whole fingerprints in permuted, sorted tables and searches them. These tables
//! hold 16-bit sketches in buckets.

use super::close_pairs::Joiner;
use super::conditions::{Condition, conditions};
use super::kernels::{Lanes, Level, SIBLING_BITS, Survivor, cross, gather, probe, scan};
use webtwin_base::error::Result;
use webtwin_base::huge::HugeArray;

/// Number of fingerprints that are probed before the survivors are processed, so that these stay in
/// cache.
const SUB_CHUNK: usize = 1 << 15;

/// Maximum number of queries of a bucket whose siblings are scanned for every fingerprint that
/// meets it. Longer buckets are joined by partitioning.
const LONG_BUCKET: usize = 2048;

/// Number of buckets of a table.
const BUCKETS: usize = 1 << SIBLING_BITS;

/// Maximum number of queries of one set of tables. Larger batches are divided.
pub const MAX_QUERIES: usize = 1_300_000;

/// A fingerprint and a query at most k bits apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FingerprintHit {
    /// Position of the fingerprint in the chunk.
    pub at: u32,
    /// Position of the query in the batch.
    pub query: u32,
    /// Number of bits in which they differ.
    pub distance: u32,
}

/// Tables for a batch of at most [`MAX_QUERIES`] distinct queries.
///
/// Memory: 14 bytes a query and up to 4.5 MB for each condition.
///
/// # Examples
/// ```
/// use webtwin_core::hamming::kernels::Level;
/// use webtwin_core::hamming::query_tables::{QueryTables, JoinBuffers};
///
/// let (k, level) = (3, Level::best());
/// let tables = QueryTables::new(&[0x00ff, 0xffff], k, level)?;
/// let mut hits = Vec::new();
/// tables.join(&[0x00f0, 0x00fc], &mut JoinBuffers::new(k, level), &mut |hit| {
///     hits.push((hit.at, hit.query, hit.distance));
/// });
/// // The second fingerprint and the first query differ in two bits.
/// assert_eq!(hits, [(1, 0, 2)]);
/// # Ok::<(), webtwin_base::error::Error>(())
/// ```
pub struct QueryTables {
    k: u32,
    level: Level,
    lanes: Lanes,
    /// Maximum number of queries of a bucket that is scanned.
    long_bucket: usize,
    tables: Vec<ConditionTable>,
}

/// The table of one condition.
struct ConditionTable {
    condition: Condition,
    /// One line for each key.
    lines: HugeArray<u16>,
    /// Start of each key's queries, followed by the number of queries.
    starts: Vec<u32>,
    /// Queries ordered by key, ascending within a key.
    queries: HugeArray<u64>,
    /// Positions of the queries in the batch.
    numbers: HugeArray<u32>,
    /// Siblings of the queries.
    siblings: HugeArray<u16>,
}

impl QueryTables {
    /// Builds the tables for `queries`, which must be ascending and distinct.
    ///
    /// # Errors
    /// Returns [`webtwin_base::error::Error::NoMemory`] if there is no memory for the tables.
    ///
    /// # Panics
    /// Panics if there are more than [`MAX_QUERIES`] queries, or if `k` is above
    /// [`super::conditions::MAX_K`].
    ///
    /// # Cost
    /// About 10 ns a query and condition.
    pub fn new(queries: &[u64], k: u32, level: Level) -> Result<QueryTables> {
        assert!(queries.len() <= MAX_QUERIES, "a batch is cut before tables are made from it");
        let lanes = lanes(queries.len());
        let table = |condition| ConditionTable::new(queries, condition, lanes, level);
        let tables = conditions(k).into_iter().map(table).collect::<Result<_>>()?;
        Ok(QueryTables { k, level, lanes, long_bucket: LONG_BUCKET, tables })
    }

    /// Returns the bytes of the tables for `queries` queries at distance `k`.
    pub fn bytes(queries: usize, k: u32) -> u64 {
        let line = 64;
        conditions(k).len() as u64 * (14 * queries as u64 + (line + 4) * BUCKETS as u64)
    }

    /// Finds every fingerprint and query at most k bits apart, each such pair once, and passes them
    /// to `sink` in no particular order.
    ///
    /// `fingerprints` must be distinct. The join is slightly faster if they ascend.
    ///
    /// # Cost
    /// About 9 ns a fingerprint for a million uniform queries at k = 3, from 2^20 fingerprints up,
    /// and 10 ns a hit.
    pub fn join(&self, fingerprints: &[u64], scratch: &mut JoinBuffers, sink: &mut impl FnMut(FingerprintHit)) {
        for (number, table) in self.tables.iter().enumerate() {
            let previous_tables = &self.tables[..number];
            let is_first = |difference: u64| previous_tables.iter().all(|table| !table.condition.is_met(difference));
            table.warm();
            scratch.crowded.clear();
            for (sub, batch) in fingerprints.chunks(SUB_CHUNK).enumerate() {
                let base = (sub * SUB_CHUNK) as u32;
                scratch.survivors.clear();
                probe(self.level, self.lanes, &table.lines, &table.condition, batch, base, &mut scratch.survivors);
                table.drain(fingerprints, self, scratch, &is_first, sink);
            }
            table.join_crowded(fingerprints, self, scratch, &is_first, sink);
        }
    }
}

/// Returns the lanes of a line: at least twice the mean load, so that random keys seldom overflow a
/// line.
pub(super) fn lanes(queries: usize) -> Lanes {
    let enough = |lanes: &Lanes| queries / BUCKETS < lanes.count() / 4;
    [Lanes::Eight, Lanes::Sixteen].into_iter().find(enough).unwrap_or(Lanes::ThirtyTwo)
}

/// Scratch buffers of a worker that joins.
pub struct JoinBuffers {
    survivors: Vec<Survivor>,
    /// (bucket, position) of fingerprints that met a bucket with more queries than [`LONG_BUCKET`].
    crowded: Vec<(u16, u32)>,
    joiner: Joiner,
    values: Vec<u64>,
    keys: Vec<u32>,
    siblings: Vec<u32>,
    left: Vec<(u64, u32)>,
    right: Vec<(u64, u32)>,
    pairs: Vec<(u32, u32, u32)>,
    near: Vec<u32>,
}

impl JoinBuffers {
    /// Creates empty buffers for distances up to `k`.
    pub fn new(k: u32, level: Level) -> JoinBuffers {
        let (survivors, crowded, values, keys, siblings) = Default::default();
        let (left, right, pairs, near) = Default::default();
        JoinBuffers {
            survivors,
            crowded,
            joiner: Joiner::new(k, level),
            values,
            keys,
            siblings,
            left,
            right,
            pairs,
            near,
        }
    }
}

impl ConditionTable {
    fn new(queries: &[u64], condition: Condition, lanes: Lanes, level: Level) -> Result<ConditionTable> {
        let mut starts = vec![0u32; BUCKETS + 1];
        let gathered_bits = |mask: u64| {
            let mut bits = vec![0; queries.len()];
            gather(level, queries, mask, &mut bits);
            bits
        };
        let keys = gathered_bits(condition.key);
        keys.iter().for_each(|key| starts[*key as usize + 1] += 1);
        (0..BUCKETS).for_each(|key| starts[key + 1] += starts[key]);

        let mut next = starts.clone();
        let mut by_key = HugeArray::zeroed(queries.len())?;
        let mut numbers = HugeArray::zeroed(queries.len())?;
        let mut siblings = HugeArray::zeroed(queries.len())?;
        for (((number, query), key), sibling) in (0..).zip(queries).zip(keys).zip(gathered_bits(condition.sibling)) {
            let place = &mut next[key as usize];
            by_key[*place as usize] = *query;
            numbers[*place as usize] = number;
            siblings[*place as usize] = sibling as u16;
            *place += 1;
        }
        let mut lines = HugeArray::zeroed(lanes.count() << SIBLING_BITS)?;
        for (key, line) in lines.chunks_exact_mut(lanes.count()).enumerate() {
            let bucket = &siblings[starts[key] as usize..starts[key + 1] as usize];
            let (flag, lanes) = line.split_last_mut().expect("a line has lanes");
            *flag = if bucket.len() > lanes.len() { 0 } else { u16::MAX };
            let filler = bucket.first().copied().unwrap_or(0);
            lanes.iter_mut().enumerate().for_each(|(lane, sibling)| *sibling = *bucket.get(lane).unwrap_or(&filler));
        }
        Ok(ConditionTable { condition, lines, starts, queries: by_key, numbers, siblings })
    }

    /// Reads the lines in order, because random reads would bring them into cache one miss at a
    /// time.
    fn warm(&self) {
        let sum = self.lines.chunks_exact(32).fold(0, |sum: u16, line| sum.wrapping_add(line[0]));
        std::hint::black_box(sum);
    }

    fn bucket(&self, key: u16) -> std::ops::Range<usize> {
        self.starts[key as usize] as usize..self.starts[key as usize + 1] as usize
    }

    /// Compares the whole queries of the lanes that passed, in three rounds, so that the reads of a
    /// round overlap.
    fn drain(
        &self,
        fingerprints: &[u64],
        tables: &QueryTables,
        scratch: &mut JoinBuffers,
        is_first: &impl Fn(u64) -> bool,
        sink: &mut impl FnMut(FingerprintHit),
    ) {
        let flag = 1 << (tables.lanes.count() - 1);
        let mut hit = |at: u32, place: usize| {
            let difference = fingerprints[at as usize] ^ self.queries[place];
            let distance = difference.count_ones();
            if distance <= tables.k && is_first(difference) {
                sink(FingerprintHit { at, query: self.numbers[place], distance });
            }
        };
        let JoinBuffers { survivors, values, keys, siblings, pairs, near, crowded, .. } = scratch;
        values.clear();
        values.extend(survivors.iter().map(|survivor| fingerprints[survivor.at as usize]));
        keys.resize(values.len(), 0);
        siblings.resize(values.len(), 0);
        gather(tables.level, values, self.condition.key, keys);
        gather(tables.level, values, self.condition.sibling, siblings);
        pairs.clear();
        for ((survivor, &key), &sibling) in survivors.iter().zip(&*keys).zip(&*siblings) {
            let key = key as u16;
            // The flag lane passes only if it is 0, which marks a bucket with more queries than
            // lanes.
            if survivor.lanes & flag != 0 {
                let bucket = self.bucket(key);
                if bucket.len() > tables.long_bucket {
                    crowded.push((key, survivor.at));
                    continue;
                }
                near.clear();
                scan(tables.level, &self.siblings[bucket.clone()], sibling as u16, self.condition.errors, near);
                near.iter().for_each(|&place| hit(survivor.at, bucket.start + place as usize));
            } else {
                let start = self.starts[key as usize];
                let length = self.starts[key as usize + 1] - start;
                // Lanes past the end of the bucket repeat its first query.
                let lanes = survivor.lanes & !(u32::MAX << length.min(31));
                pairs.push((survivor.at, start, lanes));
            }
        }
        for &(at, start, lanes) in &*pairs {
            let mut remaining = lanes;
            while remaining != 0 {
                let place = (start + remaining.trailing_zeros()) as usize;
                remaining &= remaining - 1;
                hit(at, place);
            }
        }
    }

    /// Joins the buckets with more queries than [`LONG_BUCKET`] with the fingerprints that met
    /// them.
    fn join_crowded(
        &self,
        fingerprints: &[u64],
        tables: &QueryTables,
        scratch: &mut JoinBuffers,
        is_first: &impl Fn(u64) -> bool,
        sink: &mut impl FnMut(FingerprintHit),
    ) {
        /// Maximum number of comparisons that are made without partitioning.
        const PAIRWISE_COMPARISONS: usize = 1 << 16;
        let JoinBuffers { crowded, joiner, left, right, pairs, .. } = scratch;
        crowded.sort_unstable();
        for bucket_hits in crowded.chunk_by(|x, y| x.0 == y.0) {
            let bucket = self.bucket(bucket_hits[0].0);
            let (queries, numbers) = (&self.queries[bucket.clone()], &self.numbers[bucket]);
            let mut hit = |at: u32, query: usize, distance: u32| {
                let difference = fingerprints[at as usize] ^ queries[query];
                // `cross` and the joiner find all pairs within k bits. A pair that does not meet
                // this condition, or that meets an earlier one, is found by another table.
                if self.condition.is_met(difference) && is_first(difference) {
                    sink(FingerprintHit { at, query: numbers[query], distance });
                }
            };
            if bucket_hits.len() * queries.len() <= PAIRWISE_COMPARISONS {
                let values: Vec<u64> = bucket_hits.iter().map(|&(_, at)| fingerprints[at as usize]).collect();
                pairs.clear();
                cross(tables.level, &values, queries, tables.k, pairs);
                pairs.iter().for_each(|&(i, j, distance)| hit(bucket_hits[i as usize].1, j as usize, distance));
                continue;
            }
            left.clear();
            left.extend(bucket_hits.iter().map(|&(_, at)| (fingerprints[at as usize], at)));
            right.clear();
            right.extend((0..).zip(queries).map(|(number, query)| (*query, number)));
            let (mut left_scratch, mut right_scratch) = (left.clone(), right.clone());
            joiner.across((left, &mut left_scratch), (right, &mut right_scratch), &mut |x, y, distance| {
                hit(x.1, y.1 as usize, distance);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::close_pairs::tests::kinds;
    use super::*;
    use proptest::prelude::*;

    fn join(fingerprints: &[u64], queries: &[u64], k: u32, level: Level, long_bucket: usize) -> Vec<FingerprintHit> {
        let tables = QueryTables { long_bucket, ..QueryTables::new(queries, k, level).unwrap() };
        let mut hits = Vec::new();
        tables.join(fingerprints, &mut JoinBuffers::new(k, level), &mut |hit| hits.push(hit));
        hits.sort_unstable();
        hits
    }

    fn plain(fingerprints: &[u64], queries: &[u64], k: u32) -> Vec<FingerprintHit> {
        let mut hits = Vec::new();
        for (at, fingerprint) in (0..).zip(fingerprints) {
            for (query, value) in (0..).zip(queries) {
                let distance = (fingerprint ^ value).count_ones();
                if distance <= k {
                    hits.push(FingerprintHit { at, query, distance });
                }
            }
        }
        hits
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn the_join_equals_brute_force(fingerprints in kinds(), queries in kinds(), k in 0u32..7) {
            let expected = plain(&fingerprints, &queries, k);
            for level in Level::all() {
                for long_bucket in [0, 20, LONG_BUCKET] {
                    prop_assert_eq!(&join(&fingerprints, &queries, k, level, long_bucket), &expected, "{:?} {}", level, long_bucket);
                }
            }
        }
    }

    #[test]
    fn every_width_of_line_equals_brute_force() {
        let random = |seed: u64, n: u64| {
            let mut values: Vec<u64> = (0..n).map(|i| webtwin_base::ids::splitmix64(seed << 32 | i)).collect();
            values.sort_unstable();
            values
        };
        for queries in [1, 3_000, 200_000, 600_000] {
            let queries = random(1, queries);
            let mut fingerprints = random(2, 300);
            for flips in 0..7u64 {
                let near = queries.iter().step_by(queries.len() / 40 + 1).enumerate().map(|(i, query)| {
                    (0..flips).fold(*query, |value, flip| {
                        value ^ 1 << (webtwin_base::ids::splitmix64(i as u64 * 8 + flip) & 63)
                    })
                });
                fingerprints.extend(near);
            }
            fingerprints.sort_unstable();
            fingerprints.dedup();
            for k in [3, 6] {
                let mut expected = Vec::new();
                cross(Level::best(), &fingerprints, &queries, k, &mut expected);
                let expected: Vec<FingerprintHit> =
                    expected.into_iter().map(|(at, query, distance)| FingerprintHit { at, query, distance }).collect();
                assert!(!expected.is_empty());
                assert_eq!(join(&fingerprints, &queries, k, Level::best(), LONG_BUCKET), expected);
            }
        }
    }
}
