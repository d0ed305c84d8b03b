//! All pairs within k bits by partitioning: for every key of a design, items with equal keys are
//! brought together and partitioned again.
//!
//! Items that agree on a key form a bucket. A bucket is compared pair by pair if that is cheap.
//! Otherwise it is split again, by a design over those of its bits that still vary. So a run of a
//! million fingerprints with an equal half becomes a problem of the other 32 bits, and the cost
//! stays close to the size of input and output whatever bits the fingerprints have in common.
//!
//! Each pair is found once: it belongs to the first key of a level on which it agrees, and buckets
//! whose items all agree on an earlier key are skipped.

use super::design::BlockDesign;
use super::design::covering::block_designs;
use super::kernels::{Level, cross, gather, within};

/// Maximum number of bits of a key by which one pass partitions.
const PASS_BITS: u32 = 11;

/// Number of items whose keys are gathered together.
const KEYS_PER_BATCH: usize = 1024;

/// Maximum number of items that are always compared pair by pair.
const PAIRWISE_ITEMS: usize = 64;

/// Nanoseconds to move an item to its bucket in one pass, and to compare a vector of eight items.
/// [`Joiner`] weighs these costs.
const MOVE_NS: f64 = 3.0;
const COMPARE_NS: f64 = 0.5;

/// An item that has a fingerprint.
pub trait FingerprintItem: Copy {
    /// Returns the fingerprint of the item.
    fn fingerprint(&self) -> u64;
}

impl FingerprintItem for u64 {
    fn fingerprint(&self) -> u64 {
        *self
    }
}

/// A fingerprint and its number.
impl FingerprintItem for (u64, u32) {
    fn fingerprint(&self) -> u64 {
        self.0
    }
}

/// A fingerprint and its number in the format that workers exchange: 12 bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct NumberedFingerprint {
    high: u32,
    low: u32,
    /// Number of the fingerprint.
    pub number: u32,
}

impl NumberedFingerprint {
    /// Creates an item from a fingerprint and its number.
    pub fn new(fingerprint: u64, number: u32) -> NumberedFingerprint {
        NumberedFingerprint { high: (fingerprint >> 32) as u32, low: fingerprint as u32, number }
    }
}

impl FingerprintItem for NumberedFingerprint {
    fn fingerprint(&self) -> u64 {
        u64::from(self.high) << 32 | u64::from(self.low)
    }
}

/// Returns the pairs of indices in `fingerprints` that are at most `k` bits apart: (index, index,
/// distance) with the smaller index first, ascending. The fingerprints must be distinct.
///
/// # Examples
/// ```
/// use webtwin_core::hamming::close_pairs::within_k;
///
/// let fingerprints = [0b0000, 0b0111, 0b1111];
/// assert_eq!(within_k(&fingerprints, 1), [(1, 2, 1)]);
/// assert_eq!(within_k(&fingerprints, 3), [(0, 1, 3), (1, 2, 1)]);
/// ```
pub fn within_k(fingerprints: &[u64], k: u32) -> Vec<(u32, u32, u32)> {
    let mut items: Vec<NumberedFingerprint> =
        (0..).zip(fingerprints).map(|(n, value)| NumberedFingerprint::new(*value, n)).collect();
    let mut scratch = vec![NumberedFingerprint::default(); items.len()];
    let mut pairs = Vec::new();
    Joiner::new(k, Level::best()).within(&mut items, &mut scratch, &mut |x, y, distance| {
        pairs.push((x.number.min(y.number), x.number.max(y.number), distance));
    });
    pairs.sort_unstable();
    pairs
}

/// Keys of a design that have a block in common. One pass over many items serves all these keys;
/// the passes by their other blocks stay within the few items of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyGroup {
    /// Bits of the common block.
    pub block: u64,
    /// Other bits of each key.
    rests: Vec<u64>,
}

impl KeyGroup {
    /// Groups the keys of a design over some bits by block. The most common block comes first; ties
    /// go to the highest block, because ascending items are already partitioned by it.
    fn from_design(design: &BlockDesign, bits: u64) -> Vec<KeyGroup> {
        let single_blocks =
            BlockDesign { blocks: design.blocks, keys: (0..design.blocks).map(|block| 1 << block).collect() };
        let blocks = single_blocks.over(bits);
        let mut keys = design.over(bits);
        let mut groups = Vec::new();
        while !keys.is_empty() {
            let key_count = |block: &u64| keys.iter().filter(|key| *key & block != 0).count();
            let block = *blocks.iter().max_by_key(|block| key_count(block)).expect("a design has blocks");
            let (keys_with_block, other_keys): (Vec<u64>, _) = keys.into_iter().partition(|key| key & block != 0);
            groups.push(KeyGroup { block, rests: keys_with_block.into_iter().map(|key| key & !block).collect() });
            keys = other_keys;
        }
        groups
    }

    fn keys(&self) -> impl Iterator<Item = u64> {
        self.rests.iter().map(|rest| self.block | rest)
    }
}

/// Finds close pairs. Holds the designs for one k, and buffers.
pub struct Joiner {
    k: u32,
    level: Level,
    designs: Vec<BlockDesign>,
    pairwise_items: usize,
    move_ns: f64,
    /// Keys on which pairs of the current bucket must not agree, because such pairs are found in
    /// another bucket.
    excluded: Vec<u64>,
    left: Vec<u64>,
    right: Vec<u64>,
    pairs: Vec<(u32, u32, u32)>,
}

impl Joiner {
    /// Creates a joiner for distances up to `k`.
    pub fn new(k: u32, level: Level) -> Joiner {
        let designs = block_designs(k);
        let (excluded, left, right, pairs) = Default::default();
        Joiner { k, level, designs, pairwise_items: PAIRWISE_ITEMS, move_ns: MOVE_NS, excluded, left, right, pairs }
    }

    /// Calls `sink` once with every pair of two distinct indices in `items` that is at most k bits
    /// apart. The order of the pairs, and of the two items of a pair, is unspecified. Reorders the
    /// items. `scratch` must have the same length and is overwritten.
    ///
    /// # Cost
    /// Uniform fingerprints: 40 to 60 ns an item for 100 million, k = 3. Equal items are compared
    /// like all others. To keep the cost linear, pass each fingerprint once.
    pub fn within<T: FingerprintItem>(
        &mut self,
        items: &mut [T],
        scratch: &mut [T],
        sink: &mut impl FnMut(&T, &T, u32),
    ) {
        let n = items.len() as f64;
        let is_small = items.len() <= self.pairwise_items;
        let Some(groups) = (!is_small).then(|| self.cheapest(varying(items), n, n / 2.0)).flatten() else {
            return self.compare(items, sink);
        };
        let outer = self.excluded.len();
        let (mut source, mut target) = (items, scratch);
        for KeyGroup { block, rests } in &groups {
            let excluded_count = self.excluded.len();
            buckets(source, target, *block, self.level, &mut |part, scratch| {
                if part.len() > 1 {
                    self.within_part(part, scratch, *block, rests, sink);
                    self.excluded.truncate(excluded_count);
                }
            });
            (source, target) = (target, source);
            self.excluded.extend(rests.iter().map(|rest| block | rest));
        }
        self.excluded.truncate(outer);
        if groups.len() % 2 == 1 {
            target.copy_from_slice(source);
        }
    }

    /// Finds pairs among the items of one part, which agree on a block, by the other blocks of the
    /// keys in the group.
    fn within_part<T: FingerprintItem>(
        &mut self,
        items: &mut [T],
        scratch: &mut [T],
        block: u64,
        rests: &[u64],
        sink: &mut impl FnMut(&T, &T, u32),
    ) {
        let (mut source, mut target) = (items, scratch);
        for key in rests {
            buckets(source, target, *key, self.level, &mut |bucket, scratch| {
                if bucket.len() > 1 && !self.comes_elsewhere(bucket) {
                    self.within(bucket, scratch, sink);
                }
            });
            (source, target) = (target, source);
            self.excluded.push(block | key);
        }
        if rests.len() % 2 == 1 {
            target.copy_from_slice(source);
        }
    }

    /// Plans the join of `items` fingerprints that may differ in `bits` and are distributed over
    /// many workers. For each group in turn, items that agree on the group's block must be brought
    /// together. The result is empty if comparing all items with all is cheapest.
    pub fn groups(&self, items: usize, bits: u64) -> Vec<KeyGroup> {
        let n = items as f64;
        self.cheapest(bits, n, n / 2.0).unwrap_or_default()
    }

    /// Finds the pairs of `items` that belong to the group `groups[place]`. All items that agree on
    /// the group's block must be in `items`. In all other respects it works as [`Joiner::within`].
    pub fn within_group<T: FingerprintItem>(
        &mut self,
        groups: &[KeyGroup],
        place: usize,
        items: &mut [T],
        scratch: &mut [T],
        sink: &mut impl FnMut(&T, &T, u32),
    ) {
        self.excluded.extend(groups[..place].iter().flat_map(KeyGroup::keys));
        let KeyGroup { block, rests } = &groups[place];
        let excluded_count = self.excluded.len();
        buckets(items, scratch, *block, self.level, &mut |part, scratch| {
            if part.len() > 1 {
                self.within_part(part, scratch, *block, rests, sink);
                self.excluded.truncate(excluded_count);
            }
        });
        self.excluded.clear();
    }

    /// Finds pairs of one item of `left` and one of `right`, in the way of [`Joiner::within`].
    pub fn across<T: FingerprintItem>(
        &mut self,
        left: (&mut [T], &mut [T]),
        right: (&mut [T], &mut [T]),
        sink: &mut impl FnMut(&T, &T, u32),
    ) {
        let (items, scratch) = left;
        let (right_items, other_scratch) = right;
        let (n, m) = (items.len() as f64, right_items.len() as f64);
        let groups = if items.len() * right_items.len() <= self.pairwise_items * self.pairwise_items {
            None
        } else {
            let bits = varying(items) | varying(right_items) | (items[0].fingerprint() ^ right_items[0].fingerprint());
            if self.excluded.iter().any(|key| bits & key == 0) {
                return;
            }
            self.cheapest(bits, n + m, n * m / (n + m))
        };
        let Some(groups) = groups else {
            return self.compare_across(items, right_items, sink);
        };
        let outer = self.excluded.len();
        let (mut source, mut target, mut other_here, mut other_there) = (items, scratch, right_items, other_scratch);
        for key in groups.iter().flat_map(KeyGroup::keys) {
            two_buckets((source, target), (other_here, other_there), key, self.level, &mut |left, right| {
                self.across(left, right, sink);
            });
            (source, target, other_here, other_there) = (target, source, other_there, other_here);
            self.excluded.push(key);
        }
        let is_swapped = (self.excluded.len() - outer) % 2 == 1;
        self.excluded.truncate(outer);
        if is_swapped {
            target.copy_from_slice(source);
            other_there.copy_from_slice(other_here);
        }
    }

    /// Returns the keys of the design with the lowest expected cost, or `None` if comparing all
    /// items is cheaper. `items` are moved for each key, and without partitioning each would be
    /// compared with `other_count` items.
    fn cheapest(&self, bits: u64, items: f64, other_count: f64) -> Option<Vec<KeyGroup>> {
        let width = bits.count_ones();
        let compare = |others: f64| items * COMPARE_NS * (others / 8.0).max(1.0);
        let cost = |design: &BlockDesign| {
            let p = width * design.keys[0].count_ones() / design.blocks;
            let passes = f64::from(p.div_ceil(PASS_BITS));
            design.keys.len() as f64 * (items * self.move_ns * passes + compare(other_count / 2f64.powi(p as i32)))
        };
        let fits = self.designs.iter().filter(|design| design.blocks <= width);
        let best = fits.map(|design| (cost(design), design)).min_by(|x, y| x.0.total_cmp(&y.0))?;
        (best.0 < compare(other_count)).then(|| KeyGroup::from_design(best.1, bits))
    }

    /// True if all pairs of the items agree on an excluded key. Few items are not tested, because
    /// comparing them is cheaper than the test.
    fn comes_elsewhere<T: FingerprintItem>(&self, items: &[T]) -> bool {
        if self.excluded.is_empty() || items.len() <= self.pairwise_items {
            return false;
        }
        let bits = varying(items);
        self.excluded.iter().any(|key| bits & key == 0)
    }

    fn compare<T: FingerprintItem>(&mut self, items: &[T], sink: &mut impl FnMut(&T, &T, u32)) {
        self.left.clear();
        self.left.extend(items.iter().map(T::fingerprint));
        within(self.level, &self.left, self.k, &mut self.pairs);
        for (i, j, distance) in self.pairs.drain(..) {
            let (x, y) = (&items[i as usize], &items[j as usize]);
            let difference = x.fingerprint() ^ y.fingerprint();
            if self.excluded.iter().all(|key| difference & key != 0) {
                sink(x, y, distance);
            }
        }
    }

    fn compare_across<T: FingerprintItem>(
        &mut self,
        items: &[T],
        right_items: &[T],
        sink: &mut impl FnMut(&T, &T, u32),
    ) {
        self.left.clear();
        self.left.extend(items.iter().map(T::fingerprint));
        self.right.clear();
        self.right.extend(right_items.iter().map(T::fingerprint));
        // The left items are compared in parts, so that the buffer of pairs stays small.
        for (part, left) in self.left.chunks(KEYS_PER_BATCH).enumerate() {
            cross(self.level, left, &self.right, self.k, &mut self.pairs);
            for (i, j, distance) in self.pairs.drain(..) {
                let (x, y) = (&items[part * KEYS_PER_BATCH + i as usize], &right_items[j as usize]);
                let difference = x.fingerprint() ^ y.fingerprint();
                if self.excluded.iter().all(|key| difference & key != 0) {
                    sink(x, y, distance);
                }
            }
        }
    }
}

/// Returns the bits in which some item differs from the first.
fn varying<T: FingerprintItem>(items: &[T]) -> u64 {
    let first = items.first().map_or(0, T::fingerprint);
    items.iter().fold(0, |bits, item| bits | (item.fingerprint() ^ first))
}

/// Splits a key into the highest bits, by which one pass partitions `items` items, and the rest.
fn pass(key: u64, items: usize) -> (u64, u64) {
    let bits = (items / 4).max(2).ilog2().clamp(1, PASS_BITS).min(key.count_ones());
    let mut high = key;
    // Passes of equal size are cheaper than a full one and a small one.
    let passes = key.count_ones().div_ceil(bits);
    let low = key.count_ones() - key.count_ones().div_ceil(passes);
    (0..low).for_each(|_| high &= high - 1);
    (high, key & !high)
}

/// Moves the items of `from` to `to`, with items of equal bits of `key` next to each other. Calls
/// `visit` with each such bucket and a scratch of the same length. `visit` may reorder a bucket.
/// Afterwards all items are in `to`.
fn buckets<T: FingerprintItem>(
    from: &mut [T],
    to: &mut [T],
    key: u64,
    level: Level,
    visit: &mut impl FnMut(&mut [T], &mut [T]),
) {
    if key == 0 || from.len() < 2 {
        visit(from, to);
        to.copy_from_slice(from);
        return;
    }
    let (high, low_key) = pass(key, from.len());
    let ends = partition(from, to, high, level);
    let mut start = 0;
    for end in ends {
        let (bucket, scratch) = (&mut to[start..end], &mut from[start..end]);
        if low_key == 0 {
            visit(bucket, scratch);
        } else if !bucket.is_empty() {
            buckets(bucket, scratch, low_key, level, visit);
            bucket.copy_from_slice(scratch);
        }
        start = end;
    }
}

/// Partitions two lists together: `visit` receives the buckets of both that have the same key.
fn two_buckets<T: FingerprintItem>(
    left: (&mut [T], &mut [T]),
    two: (&mut [T], &mut [T]),
    key: u64,
    level: Level,
    visit: &mut impl FnMut((&mut [T], &mut [T]), (&mut [T], &mut [T])),
) {
    let ((from, to), (other_from, other_to)) = (left, two);
    if key == 0 || from.is_empty() || other_from.is_empty() {
        if key == 0 {
            visit((&mut *from, &mut *to), (&mut *other_from, &mut *other_to));
        }
        to.copy_from_slice(from);
        other_to.copy_from_slice(other_from);
        return;
    }
    let (high, low_key) = pass(key, from.len().max(other_from.len()));
    let ends = partition(from, to, high, level);
    let other_ends = partition(other_from, other_to, high, level);
    let (mut start, mut other_start) = (0, 0);
    for (end, other_end) in ends.into_iter().zip(other_ends) {
        let (bucket, scratch) = (&mut to[start..end], &mut from[start..end]);
        let (other, other_scratch) = (&mut other_to[other_start..other_end], &mut other_from[other_start..other_end]);
        if !bucket.is_empty() && !other.is_empty() {
            if low_key == 0 {
                visit((bucket, scratch), (other, other_scratch));
            } else {
                two_buckets((&mut *bucket, &mut *scratch), (&mut *other, &mut *other_scratch), low_key, level, visit);
                bucket.copy_from_slice(scratch);
                other.copy_from_slice(other_scratch);
            }
        }
        (start, other_start) = (end, other_end);
    }
}

/// Moves items from `from` to `to` in the order of their bits in `key`. Returns the end of each
/// key's items.
fn partition<T: FingerprintItem>(from: &[T], to: &mut [T], key: u64, level: Level) -> Vec<usize> {
    let (mut values, mut keys) = ([0; KEYS_PER_BATCH], [0; KEYS_PER_BATCH]);
    let mut keys_of = |items: &[T], take: &mut dyn FnMut(&[u32])| {
        for batch in items.chunks(KEYS_PER_BATCH) {
            values.iter_mut().zip(batch).for_each(|(value, item)| *value = item.fingerprint());
            gather(level, &values[..batch.len()], key, &mut keys[..batch.len()]);
            take(&keys[..batch.len()]);
        }
    };
    let mut places = vec![0; 1 << key.count_ones()];
    keys_of(from, &mut |keys| keys.iter().for_each(|key| places[*key as usize] += 1));
    let mut sum = 0;
    for place in &mut places {
        (*place, sum) = (sum, sum + *place);
    }
    let mut at = 0;
    keys_of(from, &mut |keys| {
        for (key, item) in keys.iter().zip(&from[at..]) {
            let place = &mut places[*key as usize];
            to[*place] = *item;
            *place += 1;
        }
        at += keys.len();
    });
    places
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Fingerprints of several kinds: uniform, around a few centres, with an equal half, of few
    /// bits.
    pub(crate) fn kinds() -> impl Strategy<Value = Vec<u64>> {
        let fingerprint = (0u32..5, any::<u64>(), any::<u64>(), 0u64..4);
        prop::collection::btree_set(
            fingerprint.prop_map(|(kind, x, flips, centre)| match kind {
                0 => x,
                1 => webtwin_base::ids::splitmix64(centre) ^ 1 << (x & 63) ^ 1 << (x >> 8 & 63) ^ 1 << (x >> 16 & 63),
                2 => x & 0xffff_ffff | 0x1234_5678 << 32,
                3 => flips & 0x0101_0101_0101_0101,
                _ => x & 0x3ff,
            }),
            0..600,
        )
        .prop_map(|set| set.into_iter().collect())
    }

    fn plain(left: &[u64], right: &[u64], k: u32) -> Vec<(u64, u64, u32)> {
        let all_pairs = left.iter().flat_map(|x| right.iter().map(move |y| (*x, *y, (x ^ y).count_ones())));
        let mut pairs: Vec<_> = all_pairs.filter(|pair| pair.2 <= k).collect();
        pairs.sort_unstable();
        pairs
    }

    /// Returns a joiner that partitions whenever the items differ.
    fn eager(k: u32) -> Joiner {
        Joiner { pairwise_items: 2, move_ns: 0.0, ..Joiner::new(k, Level::best()) }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn within_equals_comparing_all(values in kinds(), k in 0u32..7) {
            let mut expected = plain(&values, &values, k);
            expected.retain(|pair| pair.0 < pair.1);
            for mut joiner in [Joiner::new(k, Level::Portable), Joiner::new(k, Level::best()), eager(k)] {
                let (mut items, mut scratch, mut pairs) = (values.clone(), vec![0; values.len()], Vec::new());
                joiner.within(&mut items, &mut scratch, &mut |x, y, distance| pairs.push((*x.min(y), *x.max(y), distance)));
                pairs.sort_unstable();
                prop_assert_eq!(&pairs, &expected);
                items.sort_unstable();
                prop_assert_eq!(&items, &values, "all items are still there");
            }
        }

        #[test]
        fn groups_distributed_by_block_equal_comparing_all(values in kinds(), k in 1u32..7, workers in 1u64..4) {
            let mut expected = plain(&values, &values, k);
            expected.retain(|pair| pair.0 < pair.1);
            let mut joiner = eager(k);
            let groups = joiner.groups(values.len(), u64::MAX);
            let mut pairs = Vec::new();
            for (place, group) in groups.iter().enumerate() {
                for worker in 0..workers {
                    let owned = |value: &&u64| webtwin_base::ids::splitmix64(*value & group.block) % workers == worker;
                    let mut items: Vec<u64> = values.iter().filter(owned).copied().collect();
                    let mut scratch = items.clone();
                    joiner.within_group(&groups, place, &mut items, &mut scratch, &mut |x, y, distance| {
                        pairs.push((*x.min(y), *x.max(y), distance));
                    });
                }
            }
            pairs.sort_unstable();
            if groups.is_empty() {
                prop_assert!(values.len() < 200);
            } else {
                prop_assert_eq!(pairs, expected);
            }
        }

        #[test]
        fn places_within_k_equal_comparing_all(values in kinds(), k in 0u32..12) {
            let mut expected = Vec::new();
            for (i, x) in (0u32..).zip(&values) {
                for (j, y) in (i + 1..).zip(&values[i as usize + 1..]) {
                    expected.extend(((x ^ y).count_ones() <= k).then(|| (i, j, (x ^ y).count_ones())));
                }
            }
            prop_assert_eq!(within_k(&values, k), expected);
        }

        #[test]
        fn across_equals_comparing_all(left in kinds(), right in kinds(), k in 0u32..7) {
            let expected = plain(&left, &right, k);
            let (mut xs, mut ys) = (left.clone(), right.clone());
            let (mut x_scratch, mut y_scratch, mut pairs) = (vec![0; left.len()], vec![0; right.len()], Vec::new());
            eager(k).across((&mut xs, &mut x_scratch), (&mut ys, &mut y_scratch), &mut |x, y, distance| {
                pairs.push((*x, *y, distance));
            });
            pairs.sort_unstable();
            prop_assert_eq!(&pairs, &expected);
            xs.sort_unstable();
            prop_assert_eq!(&xs, &left);
        }
    }
}
