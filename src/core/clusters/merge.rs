//! Merge condition: determines the trivial clusters that may be joined, which are the edges of the
//! trivial cluster graph (TCG).

use super::link_summary::LinkSummary;
use webtwin_job::MergeCondition;

/// True if a row of `LinkSummary` is an edge Ri -> Rj of the TCG.
///
/// # Source
/// \[CSG00\] section 3.1 (`Exact`) and section 4 (`Extended`). `Tolerant` is not from the paper,
/// see [`super::tolerant`].
///
/// # Examples
/// ```
/// use webtwin_base::ids::ClusterId;
/// use webtwin_core::clusters::link_summary::LinkSummary;
/// use webtwin_core::clusters::merge::may_merge;
/// use webtwin_job::MergeCondition::{Exact, Extended};
///
/// let row = |[a, b, s, d]: [u32; 4]| LinkSummary {
///     src_cluster: ClusterId(0),
///     dst_cluster: ClusterId(1),
///     a,
///     b,
///     s,
///     d,
/// };
/// assert!(may_merge(&row([3, 3, 3, 3]), Exact));
/// // One of three collections lacks the page that is linked to.
/// assert!(!may_merge(&row([3, 2, 3, 2]), Exact));
/// assert!(may_merge(&row([3, 2, 3, 2]), Extended));
/// ```
pub fn may_merge(row: &LinkSummary, condition: MergeCondition) -> bool {
    match condition {
        MergeCondition::Exact => row.a == row.s && row.s == row.d && row.d == row.b,
        MergeCondition::Extended => row.a == row.s && row.s >= row.d && row.d == row.b,
        MergeCondition::Tolerant => row.s.min(row.d) > 1 && 3 * row.s >= row.a && 3 * row.d >= row.b,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use webtwin_base::ids::ClusterId;

    proptest! {
        #[test]
        fn the_extended_condition_keeps_every_exact_merge(a in 1u32..4, b in 1u32..4, s in 1u32..4, d in 1u32..4) {
            let row = LinkSummary { src_cluster: ClusterId(0), dst_cluster: ClusterId(1), a, b, s, d };
            prop_assert!(!may_merge(&row, MergeCondition::Exact) || may_merge(&row, MergeCondition::Extended));
        }
    }

    proptest! {
        #[test]
        fn the_tolerant_condition_keeps_every_exact_merge_of_two_pages(a in 2u32..9, b in 2u32..9, s in 1u32..9, d in 1u32..9) {
            let row = LinkSummary { src_cluster: ClusterId(0), dst_cluster: ClusterId(1), a, b, s, d };
            prop_assert!(!may_merge(&row, MergeCondition::Exact) || may_merge(&row, MergeCondition::Tolerant));
        }
    }
}
