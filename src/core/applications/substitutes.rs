//! Choice of further copies of a trivial cluster that stay, so that the text of each skipped page
//! remains available.
//!
//! A trivial cluster joins pages over chains of similar pairs: versions of a manual that drift
//! apart, editions in several languages, pages that share a template. The page that stays for all
//! of them ([`super::keep::keeper`]) may have little of the text of another page. So a page is
//! skipped only if a page that stays *contains* it, that is, has at least a given fraction of its
//! chunks; a longer page may replace a shorter one. The pages that no page contains elect a further
//! page that stays, by the same order of preference, until each is contained or stays itself.
//!
//! [`substitutes`] is the definition, for one cluster. The run instead compares the pages of all
//! clusters round by round (`src/dataflow/sinks/substitutes.rs`) and must return the same result.

/// Number of rounds in which further pages are elected. Pages that no page contains after the last
/// round stay themselves.
pub const ROUNDS: usize = 8;

/// Returns, for each of `copies` pages, given from best to worst, the index of the page that stays
/// for it. This is its own index if it stays.
///
/// `stands_for(keeper, page)` is true if `page` may be skipped when `keeper` stays.
///
/// # Cost
/// At most `copies` times [`ROUNDS`] comparisons.
///
/// # Examples
/// ```
/// use webtwin_core::applications::substitutes::substitutes;
///
/// // Two editions: pages 0, 2 and 3 in one language, 1 and 4 in another.
/// let language = [0, 1, 0, 0, 1];
/// let stays = substitutes(5, |keeper, page| language[keeper] == language[page]);
/// assert_eq!(stays, [0, 1, 0, 0, 1]);
/// ```
pub fn substitutes(copies: usize, stands_for: impl Fn(usize, usize) -> bool) -> Vec<usize> {
    let mut stays: Vec<usize> = (0..copies).collect();
    let mut remaining = stays.clone();
    for _ in 0..ROUNDS {
        let Some((&keeper, candidates)) = remaining.split_first() else { break };
        let (covered, left): (Vec<usize>, Vec<usize>) = candidates.iter().partition(|&&page| stands_for(keeper, page));
        covered.into_iter().for_each(|page| stays[page] = keeper);
        remaining = left;
    }
    stays
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_page_stays_or_has_a_keeper(
            copies in 0usize..20, pairs in prop::collection::btree_set((0usize..20, 0usize..20), 0..60)
        ) {
            let stays = substitutes(copies, |keeper, page| pairs.contains(&(keeper, page)));
            for (page, &keeper) in stays.iter().enumerate() {
                prop_assert_eq!(stays[keeper], keeper);
                prop_assert!(keeper == page || (keeper < page && pairs.contains(&(keeper, page))));
            }
        }
    }

    #[test]
    fn pages_that_no_other_page_contains_stay() {
        assert_eq!(substitutes(3, |_, _| false), [0, 1, 2]);
        assert_eq!(substitutes(3, |_, _| true), [0, 0, 0]);
        assert_eq!(substitutes(0, |_, _| true), [0; 0]);
    }
}
