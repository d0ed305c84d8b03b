//! Assignment of pages to collections: a one-to-one matching that prefers more links.

/// An admissible match of page `right` with collection `left`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CandidateMatch {
    /// Number of the collection, from 0.
    pub left: u32,
    /// Number of the page, from 0.
    pub right: u32,
    /// Number of links between the page and the pages that the collection has so far; more is
    /// better.
    pub links: u32,
}

/// Computes a maximum one-to-one matching of lefts and rights. Returns `(left, right)`, ascending
/// by `right`.
///
/// Takes candidates with more links first (ties: smaller numbers). Then augmenting paths (Kuhn's
/// algorithm) match the remaining rights, so that a greedy choice never costs a match.
///
/// # Cost
/// A sort. In the worst case unmatched rights times candidates, but nearly always the greedy pass
/// matches all rights.
///
/// # Examples
/// Page 0 has more links with collection 0, but collection 0 is the only one that page 1 can join.
/// ```
/// use webtwin_core::clusters::matching::{CandidateMatch, one_to_one};
///
/// let candidate = |left, right, links| CandidateMatch { left, right, links };
/// let mut candidates = [candidate(0, 0, 3), candidate(1, 0, 1), candidate(0, 1, 2)];
/// assert_eq!(one_to_one(&mut candidates), [(1, 0), (0, 1)]);
/// ```
pub fn one_to_one(candidates: &mut [CandidateMatch]) -> Vec<(u32, u32)> {
    candidates.sort_unstable_by_key(|c| (std::cmp::Reverse(c.links), c.right, c.left));
    let rights = candidates.iter().map(|c| c.right as usize + 1).max().unwrap_or(0);
    let lefts = candidates.iter().map(|c| c.left as usize + 1).max().unwrap_or(0);
    let mut choices = vec![Vec::new(); rights];
    let (mut left_of, mut right_of) = (vec![None; rights], vec![None; lefts]);
    for c in candidates.iter() {
        choices[c.right as usize].push(c.left);
        if left_of[c.right as usize].is_none() && right_of[c.left as usize].is_none() {
            left_of[c.right as usize] = Some(c.left);
            right_of[c.left as usize] = Some(c.right);
        }
    }
    let empty: Vec<u32> = (0..rights as u32).filter(|&right| left_of[right as usize].is_none()).collect();
    for right in empty {
        augment(right, &choices, &mut left_of, &mut right_of);
    }
    (0..).zip(left_of).filter_map(|(right, left)| left.map(|left| (left, right))).collect()
}

/// Searches breadth first for a path from `right` to a free left along which every match can move
/// by one step.
fn augment(right: u32, choices: &[Vec<u32>], left_of: &mut [Option<u32>], right_of: &mut [Option<u32>]) {
    let mut reached_from: Vec<Option<u32>> = vec![None; right_of.len()];
    let mut queue = std::collections::VecDeque::from([right]);
    while let Some(current) = queue.pop_front() {
        for &left in &choices[current as usize] {
            if reached_from[left as usize].is_some() {
                continue;
            }
            reached_from[left as usize] = Some(current);
            let Some(holder) = right_of[left as usize] else {
                let mut free = Some(left);
                while let Some(left) = free {
                    let taker = reached_from[left as usize].expect("every left on the path was reached");
                    free = left_of[taker as usize].replace(left);
                    right_of[left as usize] = Some(taker);
                }
                return;
            };
            queue.push_back(holder);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the size of a largest matching, by exhaustive search.
    fn largest(candidates: &[(u32, u32)], used_right: u32) -> usize {
        match candidates.split_first() {
            None => 0,
            Some((&(left, right), tail)) => {
                let bits = 1 << left | 1 << (right + 8);
                let with_first = if used_right & bits == 0 { 1 + largest(tail, used_right | bits) } else { 0 };
                with_first.max(largest(tail, used_right))
            }
        }
    }

    proptest! {
        #[test]
        fn matching_is_maximal_and_uses_each_page_once(
            edges in prop::collection::btree_map((0u32..5, 0u32..5), 0u32..3, 0..12)
        ) {
            let mut candidates: Vec<_> =
                edges.iter().map(|(&(left, right), &links)| CandidateMatch { left, right, links }).collect();
            let matched = one_to_one(&mut candidates);
            let pairs: Vec<_> = edges.keys().copied().collect();
            prop_assert_eq!(matched.len(), largest(&pairs, 0));
            prop_assert!(matched.iter().all(|pair| edges.contains_key(pair)));
            let mut lefts: Vec<_> = matched.iter().map(|pair| pair.0).collect();
            lefts.sort_unstable();
            lefts.dedup();
            prop_assert_eq!(lefts.len(), matched.len());
        }
    }

    /// p1 -> {q1, q2, q3}, p2 -> q1, p3 -> q1: all of a, b, s, d are 3, and no one-to-one mapping
    /// exists.
    #[test]
    fn the_merge_condition_can_hold_without_a_mapping() {
        let edge = |left, right| CandidateMatch { left, right, links: 1 };
        let mut candidates = [edge(0, 0), edge(0, 1), edge(0, 2), edge(1, 0), edge(2, 0)];
        assert_eq!(one_to_one(&mut candidates).len(), 2);
    }

    #[test]
    fn the_closer_linked_page_is_preferred() {
        let edge = |left, right, links| CandidateMatch { left, right, links };
        let mut candidates = [edge(0, 0, 1), edge(0, 1, 2), edge(1, 0, 2), edge(1, 1, 1)];
        assert_eq!(one_to_one(&mut candidates), [(1, 0), (0, 1)]);
    }
}
