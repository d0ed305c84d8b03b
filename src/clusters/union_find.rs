//! Union-find over dense numbers; the representative of a set is its smallest member.

/// Disjoint sets over `0..n`; 4 bytes a member.
#[derive(Debug, Clone)]
pub struct UnionFind {
    parent: Vec<u32>,
}

impl UnionFind {
    /// `n` sets of one member each.
    pub fn new(n: usize) -> UnionFind {
        UnionFind { parent: (0..n as u32).collect() }
    }

    /// The smallest member of the set of `x`; halves the path on its way. A path of one step is only read: nearly all are.
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

    /// Joins the sets of `x` and `y`; whether they were two.
    pub fn union(&mut self, x: u32, y: u32) -> bool {
        let (x, y) = (self.find(x), self.find(y));
        if x != y {
            self.parent[x.max(y) as usize] = x.min(y);
        }
        x != y
    }

    /// Edges of a spanning forest: fewer than `n`, whatever was joined. This is all another worker needs to know.
    pub fn forest(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.parent.iter().enumerate().filter(|&(x, &parent)| x as u32 != parent).map(|(x, &parent)| (x as u32, parent))
    }

    /// For every member the smallest member of its set.
    pub fn labels(mut self) -> Vec<u32> {
        // A parent is never larger than its child, so one pass in ascending order settles every path.
        for x in 0..self.parent.len() {
            self.parent[x] = self.parent[self.parent[x] as usize];
        }
        self.parent
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Short and slow: relabels until nothing changes.
    fn reference(n: usize, edges: &[(u32, u32)]) -> Vec<u32> {
        let mut labels: Vec<u32> = (0..n as u32).collect();
        for _ in 0..n {
            for &(x, y) in edges {
                let least = labels[x as usize].min(labels[y as usize]);
                labels[x as usize] = least;
                labels[y as usize] = least;
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
        fn forests_of_two_halves_carry_all_that_the_edges_do(
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
