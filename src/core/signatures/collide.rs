//! Search for all pairs of points that differ by less than a tolerance in every component
//! (\[DDGMP03\] section 3), without comparing all pairs.
//!
//! A set is split in two at the median of the component in which it spreads widest, measured in
//! tolerances. Then each half is joined with itself, and the halves with each other. To join two
//! sets, only points within reach of the other set's bounding box are considered. One of the sets
//! is split again until all remaining points are within reach of all others, or are few. So every
//! pair is found once, and no grid is built: many points in one place form one [`PairBlock`], whose
//! pairs are counted without being enumerated.
//!
//! # Source
//! The paper asks for "index structures for multidimensional data"; this search needs no index in
//! addition to the points.

/// Minimum number of points of a set that is split.
const MIN_SPLIT_POINTS: usize = 24;

/// Points of K components each, numbered from 0.
#[derive(Debug, Clone, Default)]
pub struct Points {
    dims: usize,
    coordinates: Vec<u64>,
}

impl Points {
    /// Creates an empty set of points with `dims` components.
    pub fn new(dims: usize) -> Points {
        Points { dims, coordinates: Vec::new() }
    }

    /// Adds a point; its number is the number of points before it.
    pub fn push(&mut self, point: &[u64]) {
        assert_eq!(point.len(), self.dims, "points have one number of components");
        self.coordinates.extend_from_slice(point);
    }

    /// Returns the number of points so far.
    pub fn len(&self) -> usize {
        self.coordinates.len() / self.dims.max(1)
    }

    /// True if there are no points.
    pub fn is_empty(&self) -> bool {
        self.coordinates.is_empty()
    }

    /// Returns the components of a point.
    pub fn get(&self, number: u32) -> &[u64] {
        &self.coordinates[number as usize * self.dims..][..self.dims]
    }
}

/// Pairs that collide, given by the numbers of their points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairBlock<'a> {
    /// All pairs of these points.
    Within(&'a [u32]),
    /// All pairs of one of the first points with one of the second.
    Across(&'a [u32], &'a [u32]),
}

impl PairBlock<'_> {
    /// Returns the number of pairs in the block.
    pub fn count(&self) -> u64 {
        match self {
            PairBlock::Within(points) => points.len() as u64 * (points.len() as u64 - 1) / 2,
            PairBlock::Across(left, right) => left.len() as u64 * right.len() as u64,
        }
    }

    /// Calls `pair` with each pair.
    pub fn for_each_pair(&self, mut pair: impl FnMut(u32, u32)) {
        match self {
            PairBlock::Within(points) => {
                for (at, &x) in points.iter().enumerate() {
                    points[at + 1..].iter().for_each(|&y| pair(x, y));
                }
            }
            PairBlock::Across(left, right) => left.iter().for_each(|&x| right.iter().for_each(|&y| pair(x, y))),
        }
    }
}

/// Finds all pairs of `points` that differ by less than the tolerance in each component, each once.
/// Pairs of two points with numbers from `home` on are excluded, because they belong to other
/// workers ([`Slabs`]).
///
/// # Cost
/// Some passes over the points at each level of splitting, and over the pairs. Memory: 4 bytes per
/// point.
///
/// # Examples
/// ```
/// use webtwin_core::signatures::collide::{Points, collisions};
/// use webtwin_core::signatures::parts;
///
/// let mut points = Points::new(2);
/// for [hm, rp] in [[0.50, 0.50], [0.55, 0.52], [0.60, 0.50]] {
///     points.push(&[parts(hm), parts(rp)]);
/// }
/// // Points 0 and 2 differ by exactly the tolerance, which is too much.
/// let mut pairs = Vec::new();
/// collisions(&points, 3, &[parts(0.1), parts(0.1)], |block| {
///     block.for_each_pair(|x, y| pairs.push((x.min(y), x.max(y))));
/// });
/// pairs.sort_unstable();
/// assert_eq!(pairs, [(0, 1), (1, 2)]);
/// ```
pub fn collisions(points: &Points, home: usize, tolerance: &[u64], emit: impl FnMut(PairBlock<'_>)) {
    // No distance is less than 0.
    if tolerance.contains(&0) {
        return;
    }
    let mut numbers: Vec<u32> = (0..points.len() as u32).collect();
    let (home, visitors) = numbers.split_at_mut(home);
    let mut join = Join { points, tolerance, emit };
    join.within(home);
    join.across(home, visitors);
}

/// Smallest and largest value of each component.
type Bounds = Vec<(u64, u64)>;

struct Join<'a, F> {
    points: &'a Points,
    tolerance: &'a [u64],
    emit: F,
}

impl<F: FnMut(PairBlock<'_>)> Join<'_, F> {
    fn within(&mut self, set: &mut [u32]) {
        if set.len() < 2 {
            return;
        }
        let bounds = self.bounds(set);
        let Some((_, dim)) = self.widest(&bounds, &bounds) else {
            return (self.emit)(PairBlock::Within(set));
        };
        if set.len() <= MIN_SPLIT_POINTS {
            for (at, &x) in set.iter().enumerate() {
                self.compare(x, &set[at + 1..]);
            }
            return;
        }
        let (low, high) = self.split(set, dim, bounds[dim].0);
        self.within(low);
        self.within(high);
        self.across(low, high);
    }

    fn across(&mut self, left: &mut [u32], right: &mut [u32]) {
        if left.is_empty() || right.is_empty() {
            return;
        }
        let left = self.within_reach(left, &self.bounds(right));
        if left.is_empty() {
            return;
        }
        let left_bounds = self.bounds(left);
        let right = self.within_reach(right, &left_bounds);
        if right.is_empty() {
            return;
        }
        let right_bounds = self.bounds(right);
        let union: Bounds = left_bounds.iter().zip(&right_bounds).map(|(x, y)| (x.0.min(y.0), x.1.max(y.1))).collect();
        let Some((left_spread, dim_of_left)) = self.widest(&union, &left_bounds) else {
            return (self.emit)(PairBlock::Across(left, right));
        };
        if left.len() * right.len() <= MIN_SPLIT_POINTS * MIN_SPLIT_POINTS {
            left.iter().for_each(|&x| self.compare(x, right));
            return;
        }
        // If some points of both sets are within reach of each other, but not all of them, one of
        // the two sets is spread out.
        let (right_spread, dim_of_right) = self.widest(&union, &right_bounds).expect("as wide as it was");
        if left_spread >= right_spread {
            let (low, high) = self.split(left, dim_of_left, left_bounds[dim_of_left].0);
            self.across(low, right);
            self.across(high, right);
        } else {
            let (low, high) = self.split(right, dim_of_right, right_bounds[dim_of_right].0);
            self.across(left, low);
            self.across(left, high);
        }
    }

    fn compare(&mut self, x: u32, candidates: &[u32]) {
        let point = self.points.get(x);
        for y in candidates {
            let near = |((x, y), tolerance): ((&u64, &u64), &u64)| x.abs_diff(*y) < *tolerance;
            if point.iter().zip(self.points.get(*y)).zip(self.tolerance).all(near) {
                (self.emit)(PairBlock::Across(&[x], &[*y]));
            }
        }
    }

    fn bounds(&self, set: &[u32]) -> Bounds {
        let mut bounds = vec![(u64::MAX, 0); self.tolerance.len()];
        for &number in set {
            for (bounds, &x) in bounds.iter_mut().zip(self.points.get(number)) {
                *bounds = (bounds.0.min(x), bounds.1.max(x));
            }
        }
        bounds
    }

    /// Considers the components in which `bounds` spreads by the tolerance or more. Returns the one
    /// in which `set` spreads by the most tolerances.
    fn widest(&self, bounds: &Bounds, set: &Bounds) -> Option<(f64, usize)> {
        let open = (0..bounds.len()).filter(|&dim| bounds[dim].1 - bounds[dim].0 >= self.tolerance[dim]);
        let spread = |dim: usize| (set[dim].1 - set[dim].0) as f64 / self.tolerance[dim].max(1) as f64;
        open.map(|dim| (spread(dim), dim)).max_by(|x, y| x.0.total_cmp(&y.0))
    }

    /// Splits a set that is spread in component `dim`, with smallest value `low`, at the median.
    /// Neither part is empty.
    fn split<'s>(&self, set: &'s mut [u32], dim: usize, low: u64) -> (&'s mut [u32], &'s mut [u32]) {
        let value = |number: u32| self.points.get(number)[dim];
        let middle = set.len() / 2;
        let median = value(*set.select_nth_unstable_by_key(middle, |&number| value(number)).1);
        let cut = median.max(low + 1);
        let end = partition(set, |number| value(number) < cut);
        set.split_at_mut(end)
    }

    /// Moves the points of a set that are within reach of a box to the front of the set, and
    /// returns them.
    fn within_reach<'s>(&self, set: &'s mut [u32], reach: &Bounds) -> &'s mut [u32] {
        let near = |number: u32| {
            let mut components = self.points.get(number).iter().zip(reach).zip(self.tolerance);
            components.all(|((&x, &(low, high)), &tolerance)| {
                low.saturating_sub(x) < tolerance && x.saturating_sub(high) < tolerance
            })
        };
        let end = partition(set, near);
        &mut set[..end]
    }
}

/// Moves the points for which `first` returns true to the front, and returns their number.
fn partition(set: &mut [u32], first: impl Fn(u32) -> bool) -> usize {
    let mut end = 0;
    for at in 0..set.len() {
        if first(set[at]) {
            set.swap(at, end);
            end += 1;
        }
    }
    end
}

/// Assignment of points to workers by ranges of one component, a *slab* for each worker.
///
/// A point is at home in its slab, and visits the lower slabs that have points it may collide with.
/// So each pair is found once, at the home of its lower point.
///
/// # Examples
/// ```
/// use webtwin_core::signatures::collide::{Points, Slabs};
///
/// let mut sample = Points::new(1);
/// [10, 20, 30, 40].into_iter().for_each(|x| sample.push(&[x]));
/// // Two workers; the slab of the second begins at 30.
/// let slabs = Slabs::new(&sample, &[5], 2);
/// assert_eq!([10, 29, 30].map(|x| slabs.home(&[x])), [0, 0, 1]);
/// // A point at 32 may collide with points below 30, and one at 40 may not.
/// assert_eq!((slabs.visited(&[32]), slabs.visited(&[40])), (0..1, 1..1));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slabs {
    dim: usize,
    /// First value of each slab, except the first slab.
    starts: Vec<u64>,
    reach: u64,
}

impl Slabs {
    /// Creates slabs for `workers` with about equal numbers of points, estimated by a sample, along
    /// the component in which the fewest points visit other slabs.
    pub fn new(sample: &Points, tolerance: &[u64], workers: usize) -> Slabs {
        let visits_along = |dim: usize| {
            let mut values: Vec<u64> = (0..sample.len() as u32).map(|number| sample.get(number)[dim]).collect();
            values.sort_unstable();
            let start = |worker: usize| values.get(values.len() * worker / workers).copied().unwrap_or(0);
            let slabs =
                Slabs { dim, starts: (1..workers).map(start).collect(), reach: tolerance[dim].saturating_sub(1) };
            let visits = (0..sample.len() as u32).map(|number| slabs.visited(sample.get(number)).len()).sum::<usize>();
            (visits, slabs)
        };
        (0..tolerance.len()).map(visits_along).min_by_key(|(visits, _)| *visits).expect("there are components").1
    }

    /// Returns the worker at which a point is at home.
    pub fn home(&self, point: &[u64]) -> usize {
        self.slab(point[self.dim])
    }

    /// Returns the workers that a point visits.
    pub fn visited(&self, point: &[u64]) -> std::ops::Range<usize> {
        self.slab(point[self.dim].saturating_sub(self.reach))..self.home(point)
    }

    fn slab(&self, value: u64) -> usize {
        self.starts.partition_point(|start| *start <= value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Points of several kinds, three components: evenly spread, around a few centres, equal in one
    /// component, all equal.
    fn kinds() -> impl Strategy<Value = Vec<[u64; 3]>> {
        let point = (0u32..5, prop::array::uniform3(0u64..1000), 0u64..4);
        prop::collection::vec(
            point.prop_map(|(kind, [x, y, z], centre)| match kind {
                0 => [x, y, z],
                1 => [250 * centre + x % 8, 300 + 31 * centre + y % 4, 7 * centre],
                2 => [500, y, z % 50],
                3 => [x % 30, 999 - y % 30, 10 * (z % 10)],
                _ => [123, 456, 789],
            }),
            0..400,
        )
    }

    fn plain(points: &[[u64; 3]], tolerance: &[u64]) -> Vec<(u32, u32)> {
        let near = |x: &[u64; 3], y: &[u64; 3]| (0..3).all(|dim| x[dim].abs_diff(y[dim]) < tolerance[dim]);
        let all_pairs = (0..points.len()).flat_map(|x| (x + 1..points.len()).map(move |y| (x, y)));
        all_pairs.filter(|&(x, y)| near(&points[x], &points[y])).map(|(x, y)| (x as u32, y as u32)).collect()
    }

    fn points(values: impl IntoIterator<Item = [u64; 3]>) -> Points {
        let mut points = Points::new(3);
        values.into_iter().for_each(|point| points.push(&point));
        points
    }

    proptest! {
        #[test]
        fn collisions_equal_comparing_all(given in kinds(), tolerance in prop::array::uniform3(0u64..60)) {
            let (mut pairs, mut count) = (Vec::new(), 0);
            collisions(&points(given.clone()), given.len(), &tolerance, |block| {
                count += block.count();
                block.for_each_pair(|x, y| pairs.push((x.min(y), x.max(y))));
            });
            pairs.sort_unstable();
            prop_assert_eq!(count, pairs.len() as u64);
            prop_assert_eq!(pairs, plain(&given, &tolerance));
        }

        #[test]
        fn slabs_of_all_workers_equal_comparing_all(
            given in kinds(), tolerance in prop::array::uniform3(1u64..60), workers in 1usize..6
        ) {
            let slabs = Slabs::new(&points(given.iter().step_by(3).copied()), &tolerance, workers);
            let mut pairs = Vec::new();
            for worker in 0..workers {
                let number = |is_in: &dyn Fn(&[u64; 3]) -> bool| {
                    (0..given.len()).filter(|&at| is_in(&given[at])).collect::<Vec<_>>()
                };
                let mut slab_points = number(&|point| slabs.home(point) == worker);
                let home = slab_points.len();
                slab_points.extend(number(&|point| slabs.visited(point).contains(&worker)));
                collisions(&points(slab_points.iter().map(|&at| given[at])), home, &tolerance, |block| {
                    block.for_each_pair(|x, y| {
                        let (x, y) = (slab_points[x as usize] as u32, slab_points[y as usize] as u32);
                        pairs.push((x.min(y), x.max(y)));
                    });
                });
            }
            pairs.sort_unstable();
            prop_assert_eq!(pairs, plain(&given, &tolerance));
        }
    }

    #[test]
    fn a_million_equal_points_are_one_block() {
        let (mut blocks, mut count) = (0, 0);
        collisions(&points(std::iter::repeat_n([5, 5, 5], 1_000_000)), 1_000_000, &[1, 1, 1], |block| {
            blocks += 1;
            count += block.count();
        });
        assert_eq!((blocks, count), (1, 1_000_000 * 999_999 / 2));
    }
}
