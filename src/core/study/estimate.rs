//! Estimate of the number of duplicates of a collection, from its first steps and the growth in
//! another collection.
//!
//! "As the percentage growth of duplicates per iteration, for each collection, is very similar,
//! observing the percentage growth of one collection it is possible to estimate the number of
//! duplicates of another collection by processing only few iterations."
//!
//! # Source
//! \[PBZ06\] section 4.2.

use serde::{Deserialize, Serialize};

use super::clusters::GrowthStep;

/// Percentages of the steps after which the paper estimates.
pub const PERCENTS: [u32; 2] = [20, 50];

/// An estimate, and the actual number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Estimate {
    /// Percentage of the steps before the estimate.
    pub percent: u32,
    /// Number of clusters expected after all steps.
    pub clusters: u64,
    /// Number of duplicates expected after all steps.
    pub duplicates: u64,
    /// Number of duplicates after all steps.
    pub duplicates_found: u64,
    /// Number of documents of the collection.
    pub documents: u64,
}

/// Returns the totals after a percentage of the steps, rounded up to whole steps.
fn step_after(growth: &[GrowthStep], percent: u32) -> Option<GrowthStep> {
    growth.get((growth.len() * percent as usize).div_ceil(100).checked_sub(1)?).copied()
}

/// Estimates a collection by its first steps. Returns `None` if the reference has no duplicate
/// after these steps.
///
/// # Examples
/// ```
/// use webtwin_core::study::clusters::GrowthStep;
/// use webtwin_core::study::estimate::estimate;
///
/// let growth = |duplicates: [u64; 2]| {
///     duplicates.map(|duplicates| GrowthStep { documents: 100, clusters: 10, duplicates })
/// };
/// // The second half of the steps adds half as many duplicates again to the reference.
/// let of = estimate(&growth([30, 44]), &growth([20, 30]), 50).unwrap();
/// assert_eq!((of.duplicates, of.duplicates_found), (45, 44));
/// ```
pub fn estimate(growth: &[GrowthStep], reference: &[GrowthStep], percent: u32) -> Option<Estimate> {
    let (own_growth, reference_growth) = (step_after(growth, percent)?, step_after(reference, percent)?);
    let (end, reference_end) = (growth.last()?, reference.last()?);
    let scaled = |own_count: u64, reference_count: u64, end: u64| {
        let (own_count, reference_count, end) = (u128::from(own_count), u128::from(reference_count), u128::from(end));
        (own_count * end + reference_count / 2).checked_div(reference_count).map(|estimate| estimate as u64)
    };
    Some(Estimate {
        percent,
        clusters: scaled(own_growth.clusters, reference_growth.clusters, reference_end.clusters)?,
        duplicates: scaled(own_growth.duplicates, reference_growth.duplicates, reference_end.duplicates)?,
        duplicates_found: end.duplicates,
        documents: end.documents,
    })
}

impl Estimate {
    /// Returns the percentage of documents that were expected to be duplicates.
    pub fn expected(&self) -> f64 {
        100.0 * self.duplicates as f64 / self.documents.max(1) as f64
    }

    /// Returns the percentage of documents that are duplicates.
    pub fn real(&self) -> f64 {
        100.0 * self.duplicates_found as f64 / self.documents.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reference_without_duplicates_yields_no_estimate() {
        let growth = |clusters| vec![GrowthStep { documents: 10, clusters, duplicates: 2 * clusters }; 5];
        assert_eq!(estimate(&growth(6), &growth(0), 20), None);
        assert_eq!(estimate(&[], &growth(4), 20), None);
        assert_eq!(estimate(&growth(6), &[], 20), None);
    }
}
