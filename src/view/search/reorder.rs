//! Reordering of search results: a result that repeats the content of a higher one moves down.
//!
//! # Source
//! \[SGM98\] section 1: search results that are near-copies of each other may be shown in an order
//! that puts new content first. The paper names the use and gives no rule; the rule here is our
//! own.

/// Result at its new place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReorderedResult {
    /// Previous place of the result.
    pub rank: usize,
    /// Among the results that are now above it, the one with most of its chunks, by its previous
    /// place, and the number of these chunks. `None` if no result above has any of its chunks.
    pub said_by: Option<(usize, usize)>,
}

/// Reorders results greedily. The next result is the one with the highest score times the fraction
/// of its chunks that no single result above it has; ties go to the result that was higher. The
/// chunks of a result are distinct and ascend.
///
/// # Cost
/// Compares all pairs of results; intended for some hundreds.
pub fn reorder(scores: &[f32], chunks: &[Vec<u64>]) -> Vec<ReorderedResult> {
    assert_eq!(scores.len(), chunks.len(), "a result has a score and chunks");
    let mut pending: Vec<ReorderedResult> =
        (0..scores.len()).map(|was| ReorderedResult { rank: was, said_by: None }).collect();
    let mut placed: Vec<ReorderedResult> = Vec::with_capacity(pending.len());
    while !pending.is_empty() {
        let score_of = |result: &ReorderedResult| {
            let n_chunks = chunks[result.rank].len().max(1) as f64;
            let new = n_chunks - result.said_by.map_or(0, |(_, shared)| shared) as f64;
            f64::from(scores[result.rank]) * new / n_chunks
        };
        // The first of equal ones: `pending` keeps the previous order.
        let best = (0..pending.len()).reduce(|x, y| if score_of(&pending[y]) > score_of(&pending[x]) { y } else { x });
        let next = pending.remove(best.expect("some are waiting"));
        for result in &mut pending {
            let shared_chunks = count_common(&chunks[result.rank], &chunks[next.rank]);
            if shared_chunks > result.said_by.map_or(0, |(_, shared)| shared) {
                result.said_by = Some((next.rank, shared_chunks));
            }
        }
        placed.push(next);
    }
    placed
}

/// Counts the common numbers of two ascending lists.
fn count_common(x: &[u64], y: &[u64]) -> usize {
    let (mut rest, mut count) = (y, 0);
    for hash in x {
        rest = &rest[rest.partition_point(|other| other < hash)..];
        count += usize::from(rest.first() == Some(hash));
    }
    count
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn copy_moves_below_new_results_and_stays_if_nothing_is_shared() {
        let chunks = [vec![1, 2, 3, 4], vec![1, 2, 3, 4], vec![3, 4, 5, 6], vec![7, 8], vec![]];
        let order = reorder(&[10.0, 9.0, 8.0, 5.0, 4.5], &chunks);
        assert_eq!(order.iter().map(|one| one.rank).collect::<Vec<_>>(), [0, 3, 4, 2, 1]);
        assert_eq!((order[3].said_by, order[4].said_by, order[1].said_by), (Some((0, 2)), Some((0, 4)), None));
        let disjoint: Vec<Vec<u64>> = (0..5).map(|n| vec![n]).collect();
        assert!(reorder(&[5.0, 4.0, 3.0, 2.0, 1.0], &disjoint).iter().zip(0..).all(|(one, place)| one.rank == place));
    }

    proptest! {
        #[test]
        fn each_result_occurs_once_and_the_best_next_one_comes_first(
            made in prop::collection::vec((1u8..9, prop::collection::btree_set(0u64..12, 0..6)), 0..12)
        ) {
            let scores: Vec<f32> = made.iter().map(|one| f32::from(one.0)).collect();
            let chunks: Vec<Vec<u64>> = made.iter().map(|one| one.1.iter().copied().collect()).collect();
            let order = reorder(&scores, &chunks);
            prop_assert_eq!(order.iter().map(|one| one.rank).collect::<BTreeSet<_>>().len(), made.len());
            // Number of chunks that the most similar result above shares.
            let message = |above: &[ReorderedResult], was: usize| {
                above.iter().map(|one| made[was].1.intersection(&made[one.rank].1).count()).max().unwrap_or(0)
            };
            let worth = |above: &[ReorderedResult], was: usize| {
                let all = made[was].1.len().max(1) as f64;
                f64::from(scores[was]) * (all - message(above, was) as f64) / all
            };
            for place in 0..order.len() {
                let (above, below) = order.split_at(place);
                prop_assert_eq!(below[0].said_by.map_or(0, |(_, shared)| shared), message(above, below[0].rank));
                prop_assert!(below.iter().all(|one| worth(above, one.rank) <= worth(above, below[0].rank)));
            }
        }
    }
}
