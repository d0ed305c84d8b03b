//! A run's clusters and collections against the truth about its crawl.
//!
//! In: the rows of the `pages`, `clusters` and `members` tables, in any order, and the truth. Out: a [`Report`] of
//! exact counts.
//!
//! The truth names for each page its target, version, page of the target and variant. Pages with equal target and
//! page are copies of each other; a *copy of a target* is its pages of one (target, version, host). Pages of the
//! variants `single` and `hub` are no target pages. Everything is measured on the pages that are both in the run and
//! in the truth; those in one of them only are counted, as *unknown* and *missing*.
//!
//! | measure | definition |
//! |---|---|
//! | predicted pair | two pages of one trivial cluster |
//! | true pair | two target pages with equal target and page |
//! | pair precision, recall | true ones among the predicted pairs; predicted ones among the true pairs |
//! | cluster precision, recall | clusters of ≥ 2 pages, all copies of one page; groups of ≥ 2 copies, all in one cluster |
//! | counted collection | one of ≥ 10 pages in a similar cluster of ≥ 2 collections |
//! | *of a copy* | ≥ 90 % of the collection's pages are of this copy |
//! | corresponding collection | a counted one, of a copy, with a sibling (of any size) of another copy of the target |
//! | problem share | the other ones among the counted collections |
//! | target found | one that has a corresponding collection |
//! | coverage | target pages that are in some corresponding collection |
//! | copy found | one that a corresponding collection is of |
//! | whole copy | one with ≥ 80 % of its pages in one counted collection |
//! | collections a copy | corresponding collections by copies found |
//! | mixed cluster | a similar cluster whose counted collections hold more than one target |
//! | recall of a variant | pages of it that are in the cluster of the same page of the primary copy |
//!
//! The problem share means nothing alone: a rule that grows almost nothing has none. Read it with coverage, whole
//! copies, collections a copy and mixed clusters; throwing everything together does well on all but the last.
//!
//! # Source
//! \[CSG00\] §4 for targets, counted and problem collections.
//!
//! # Deviations
//! - The paper's judges looked at each collection; 90 % and 80 % stand in for them.
//! - A collection holds a target when it has pages of it, but one that is ≥ 90 % of its target pages stands for all of
//!   them: a stray page makes no mixed cluster.
//! - The primary copy is the target's first of variant `primary`, else its first one in the truth.
//! - Targets that are single texts (variant `near`) are no collections: they count for pairs and clusters, not for
//!   collections.

pub use collections::CollectionCounts;
pub use pairs::{ClusterCounts, PairCounts};
pub use report::{Ratio, Report, Row, VariantCounts, table};
pub use truth::{TruthRow, read_truth};

use crate::ids::DocId;
use truth::Known;

mod collections;
mod pairs;
mod report;
mod truth;

/// A row of the table `pages`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRow {
    /// Its id.
    pub doc_id: DocId,
    /// Its canonical URL.
    pub url: String,
}

/// A row of the table `clusters`; a page in none is a cluster of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusterRow {
    /// The trivial cluster.
    pub cluster: DocId,
    /// A page in it.
    pub doc_id: DocId,
}

/// A row of the table `members`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberRow {
    /// The similar cluster.
    pub similar_cluster: DocId,
    /// The collection in it; a number may recur in another similar cluster.
    pub collection: DocId,
    /// A page of the collection.
    pub doc_id: DocId,
}

/// Measures a run.
///
/// URLs of truth and pages are compared as they are; the caller brings them to the same canonical form. Of several
/// truth rows of one URL the first counts.
///
/// # Cost
/// Sorting the rows; pairs are counted by group sizes and never enumerated.
pub fn evaluate(pages: &[PageRow], clusters: &[ClusterRow], members: &[MemberRow], truth: &[TruthRow]) -> Report {
    let known = Known::new(pages, truth);
    let cluster_of = pairs::cluster_of(&known, clusters);
    let (pairs, clusters) = pairs::count(&known, &cluster_of);
    let (collections, copies_found) = collections::count(&known, members);
    let variants = report::by_variant(&known, &pairs::beside_primary(&known, &cluster_of), &copies_found);
    Report {
        pages: pages.len() as u64,
        truth: truth.len() as u64,
        known: known.pages.len() as u64,
        missing: known.missing,
        repeated: known.repeated,
        pairs,
        clusters,
        collections,
        variants,
    }
}

#[cfg(test)]
mod tests;
