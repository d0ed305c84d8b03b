//! Which further copies of a trivial cluster stay, so that what each skipped page says is kept.
//!
//! A trivial cluster joins pages over chains of similar pairs: versions of a manual that drift apart, editions in several
//! languages, pages that share a template. The page that stays for all of them ([`super::keep::keeper`]) may say little
//! of what another one says. So a page is skipped only if a page that stays *contains* it, that is, has at least a given
//! fraction of its chunks; a longer page may stand for a shorter one. Pages that no page contains elect a further page that
//! stays, by the same order of preference, until each is contained or stays itself.
//!
//! [`substitutes`] is the definition, for one cluster. The run compares the pages of all clusters round by round instead
//! (`src/dataflow/sinks/substitutes.rs`) and must agree with it.

/// Rounds in which further pages are elected. Pages that are in no page's text after the last round stay themselves.
pub const ROUNDS: usize = 8;

/// Returns, for each of `copies` pages, given from best to worst, the place of the page that stays for it, which is its own place
/// if it stays.
///
/// `stands_for(keeper, page)` is true if the page is kept by keeping the other.
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
        let Some((&keeper, others)) = remaining.split_first() else { break };
        let (contained, left): (Vec<usize>, Vec<usize>) = others.iter().partition(|&&page| stands_for(keeper, page));
        contained.into_iter().for_each(|page| stays[page] = keeper);
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
        fn each_page_stays_or_has_a_page_that_stays_and_stands_for_it(
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
    fn pages_that_nothing_contains_stay() {
        assert_eq!(substitutes(3, |_, _| false), [0, 1, 2]);
        assert_eq!(substitutes(3, |_, _| true), [0, 0, 0]);
        assert_eq!(substitutes(0, |_, _| true), [0; 0]);
    }
}
