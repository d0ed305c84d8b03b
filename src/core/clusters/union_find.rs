//! Union-find over dense numbers; the representative of a set is its smallest member.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use webtwin_base::ids::Number;

/// Disjoint sets over `0..n`; 4 bytes per member.
///
/// # Examples
/// ```
/// use webtwin_core::clusters::union_find::UnionFind;
///
/// let mut sets = UnionFind::new(5);
/// assert!(sets.union(4, 1));
/// assert!(sets.union(4, 2));
/// assert!(!sets.union(1, 2));
/// // Every set has the name of its smallest member.
/// assert_eq!(sets.labels(), [0, 1, 1, 3, 1]);
/// ```
#[derive(Debug, Clone)]
pub struct UnionFind {
    parent: Vec<u32>,
}

impl UnionFind {
    /// Creates `n` sets of one member each.
    pub fn new(n: usize) -> UnionFind {
        UnionFind { parent: (0..n as u32).collect() }
    }

    /// Returns the smallest member of the set of `x`. Halves the path on the way; a path of one
    /// step, which is the usual case, is only read.
    pub fn find(&mut self, mut x: u32) -> u32 {
        loop {
            let parent = self.parent[x as usize];
            let grandparent = self.parent[parent as usize];
            if parent == grandparent {
                return parent;
            }
            self.parent[x as usize] = grandparent;
            x = grandparent;
        }
    }

    /// Joins the sets of `x` and `y`. Returns true if they were different.
    pub fn union(&mut self, x: u32, y: u32) -> bool {
        let (x, y) = (self.find(x), self.find(y));
        if x != y {
            self.parent[x.max(y) as usize] = x.min(y);
        }
        x != y
    }

    /// Yields the edges of a spanning forest. These are fewer than `n`, whatever was joined, and
    /// suffice for another worker to join the same sets.
    pub fn forest(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.parent.iter().enumerate().filter(|&(x, &parent)| x as u32 != parent).map(|(x, &parent)| (x as u32, parent))
    }

    /// Returns, for every member, the smallest member of its set.
    pub fn labels(mut self) -> Vec<u32> {
        // A parent is never larger than its child, so one pass in ascending order shortens every
        // path to one step.
        for x in 0..self.parent.len() {
            self.parent[x] = self.parent[self.parent[x] as usize];
        }
        self.parent
    }
}

/// Disjoint sets over `0..n` that many threads join concurrently, without locks; 4 bytes per
/// member.
///
/// A root is put below a smaller one by compare-and-swap, so a parent is never larger than its
/// child. A thread retries if its root has stopped being one. Paths are halved by plain stores: any
/// value stored there, old or new, is an ancestor. So the sets depend on the edges alone, not on
/// the order in which threads add them.
///
/// # Examples
/// ```
/// use std::thread;
/// use webtwin_core::clusters::union_find::SharedSets;
///
/// let sets = SharedSets::new(4);
/// thread::scope(|scope| {
///     scope.spawn(|| sets.union(0, 2));
///     scope.spawn(|| sets.union(2, 3));
/// });
/// assert_eq!(sets.labels(), [0, 1, 0, 0]);
/// ```
#[derive(Debug)]
pub struct SharedSets {
    parent: Vec<AtomicU32>,
}

impl SharedSets {
    /// Creates `n` sets of one member each.
    pub fn new(n: usize) -> SharedSets {
        SharedSets { parent: (0..n as u32).map(AtomicU32::new).collect() }
    }

    fn parent(&self, x: u32) -> u32 {
        self.parent[x as usize].load(Relaxed)
    }

    /// Returns a member of the set of `x` that was its smallest at some time during the call. Other
    /// threads may join the set to another one concurrently.
    fn find(&self, mut x: u32) -> u32 {
        loop {
            let parent = self.parent(x);
            let grandparent = self.parent(parent);
            if parent == grandparent {
                return parent;
            }
            self.parent[x as usize].store(grandparent, Relaxed);
            x = grandparent;
        }
    }

    /// Joins the sets of `x` and `y`.
    pub fn union(&self, x: u32, y: u32) {
        loop {
            let (x, y) = (self.find(x), self.find(y));
            let (smaller, larger) = (x.min(y), x.max(y));
            if smaller == larger
                || self.parent[larger as usize].compare_exchange(larger, smaller, Relaxed, Relaxed).is_ok()
            {
                return;
            }
        }
    }

    /// Yields the edges of a spanning forest. Valid once all threads have joined their edges.
    pub fn forest(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        (0..).zip(&self.parent).map(|(x, parent)| (x, parent.load(Relaxed))).filter(|(x, parent)| x != parent)
    }

    /// Returns, for every member, the smallest member of its set. Reuses the memory of the sets.
    pub fn labels(self) -> Vec<u32> {
        UnionFind { parent: self.parent.into_iter().map(AtomicU32::into_inner).collect() }.labels()
    }
}

/// Returns the number of members of every set, by its name, and 0 for numbers that name no set.
///
/// # Examples
/// ```
/// use webtwin_base::ids::ClusterId;
/// use webtwin_core::clusters::union_find::sizes;
///
/// assert_eq!(sizes(&[0, 1, 0, 0].map(ClusterId)), [3, 1, 0, 0]);
/// ```
pub fn sizes(names: &[impl Number]) -> Vec<u32> {
    let mut sizes = vec![0; names.len()];
    names.iter().for_each(|name| sizes[name.index()] += 1);
    sizes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reference: relabels until nothing changes.
    fn reference(n: usize, edges: &[(u32, u32)]) -> Vec<u32> {
        let mut labels: Vec<u32> = (0..n as u32).collect();
        for _ in 0..n {
            for &(x, y) in edges {
                let label = labels[x as usize].min(labels[y as usize]);
                labels[x as usize] = label;
                labels[y as usize] = label;
            }
        }
        labels
    }

    proptest! {
        #[test]
        fn labels_are_the_smallest_reachable_members_in_any_order_of_edges(
            edges in prop::collection::vec((0u32..30, 0u32..30), 0..60)
        ) {
            let mut sets = UnionFind::new(30);
            edges.iter().for_each(|&(x, y)| _ = sets.union(x, y));
            let mut backwards = UnionFind::new(30);
            edges.iter().rev().for_each(|&(x, y)| _ = backwards.union(y, x));
            prop_assert_eq!(&sets.clone().labels(), &reference(30, &edges));
            prop_assert_eq!(sets.labels(), backwards.labels());
        }

        #[test]
        fn concurrent_unions_yield_the_same_sets(
            edges in prop::collection::vec((0u32..200, 0u32..200), 0..400), threads in 1usize..5
        ) {
            let sets = SharedSets::new(200);
            std::thread::scope(|scope| {
                for thread in 0..threads {
                    let (edges, sets) = (&edges, &sets);
                    scope.spawn(move || edges.iter().skip(thread).step_by(threads).for_each(|&(x, y)| sets.union(x, y)));
                }
            });
            let labels = reference(200, &edges);
            let rebuilt = SharedSets::new(200);
            sets.forest().for_each(|(x, y)| rebuilt.union(x, y));
            prop_assert_eq!(&rebuilt.labels(), &labels);
            prop_assert_eq!(sets.labels(), labels);
        }

        #[test]
        fn forests_of_two_halves_preserve_connectivity(
            edges in prop::collection::vec((0u32..30, 0u32..30), 0..60), cut in 0usize..60
        ) {
            let (left, right) = edges.split_at(cut.min(edges.len()));
            let mut merged = UnionFind::new(30);
            for half in [left, right] {
                let mut sets = UnionFind::new(30);
                half.iter().for_each(|&(x, y)| _ = sets.union(x, y));
                prop_assert!(sets.forest().count() < 30);
                sets.forest().for_each(|(x, y)| _ = merged.union(x, y));
            }
            prop_assert_eq!(merged.labels(), reference(30, &edges));
        }
    }
}
