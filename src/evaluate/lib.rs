//! A run's clusters and collections compared with the truth about its crawl.
//!
//! In: the rows of the `pages`, `clusters`, `members` and `links` tables, in any order, and the truth. Out: a [`Report`] of
//! exact counts.
//!
//! The truth gives for each page its target, version, page of the target, and variant. Pages with equal target and page
//! are copies of each other; a *copy of a target* is its pages of one (target, version, host). Pages of the variants
//! `single` and `hub` are not target pages. Everything is measured on the pages that are both in the run and in the
//! truth; pages in only one of them are counted, as *unknown* and *missing*.
//!
//! | measure | definition |
//! |---|---|
//! | predicted pair | two pages of one trivial cluster |
//! | true pair | two target pages with equal target and page |
//! | accidental pair | a predicted pair that is not true, of pages of the same bytes, or of copies of such ones:
//! neither hit nor error |
//! | open pair | another predicted pair of which the truth says that it may be true: neither hit nor error |
//! | pair precision, recall | true pairs among the predicted pairs that are neither accidental nor open; predicted pairs among
//! the true pairs |
//! | cluster precision, recall | clusters of ≥ 2 pages, all copies of one page; groups of ≥ 2 copies, all in one cluster |
//! | counted collection | one of ≥ 10 pages in a similar cluster of ≥ 2 collections |
//! | *of a copy* | ≥ 90 % of the collection's pages are of this copy |
//! | corresponding collection | a counted one, of a copy, with a mirror (of any size) of another copy of the target |
//! | problem share | counted collections that are not corresponding ones |
//! | target found | one that has a corresponding collection |
//! | coverage | target pages that are in some corresponding collection |
//! | copy found | one that a corresponding collection is of |
//! | whole copy | one with ≥ 80 % of its pages in one counted collection |
//! | collections a copy | corresponding collections divided by copies found |
//! | page that has a copy | a target page with another one of equal target and page in run and truth |
//! | coverage of pages that have a copy | those that are in some corresponding collection |
//! | connected part | pages of one copy that links between them connect, ≥ 10 of which have a copy |
//! | whole part | one with ≥ 80 % of its pages that have a copy in one counted collection |
//! | collections a connected part | corresponding collections of a copy that has such parts, divided by the parts of copies found |
//! | mixed cluster | a similar cluster whose counted collections hold more than one target |
//! | recall of a variant's pages | pages of it that are in the cluster of the same page of the primary copy |
//! | recall of a variant's pairs | predicted pairs among the true pairs with a page of it; for real versions, among
//! those of two such pages |
//! | linked, unlinked | both pages, or the copy, on hosts that other hosts link to; at least one that is not |
//!
//! The problem share means nothing alone: a rule that grows almost nothing has none. Read it with coverage, whole
//! copies, collections a copy and mixed clusters; throwing everything together does well on all but the last.
//!
//! Two rules stand beside each other, because what no run can find says nothing of a run. A page without a copy is no replica,
//! so coverage is told of all target pages and of those that have a copy. A collection grows along links, and the editions of
//! a manual in thirty languages, which no link joins, are thirty: so copies are told as wholes and by their connected parts.
//!
//! # Source
//! \[CSG00\] §4 for targets, counted and problem collections.
//!
//! # Deviations
//! - The paper's judges looked at each collection; 90 % and 80 % replace them.
//! - A collection holds a target if it has pages of it, but one target with ≥ 90 % of its target pages stands for all
//!   of them: a stray page makes no mixed cluster.
//! - The primary copy is the target's first one of variant `primary`, or else its first one in the truth.
//! - Targets that are single texts (variant `near`) are not collections: they count for pairs and clusters only.

pub use collections::CollectionCounts;
pub use pairs::{ClusterCounts, PairCounts};
pub use report::{Ratio, Report, Row, VariantCounts, table};
pub use truth::{TruthRow, read_truth};

use truth::Known;
use undecided::{Undecided, Verdict};
use webtwin_base::ids::{DocId, FPrint};

mod collections;
mod columns;
mod pairs;
mod parts;
mod report;
pub mod tags;
mod truth;
mod undecided;

/// A row of the table `pages`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRow {
    /// The page's id.
    pub doc_id: DocId,
    /// Canonical URL of the page.
    pub url: String,
    /// Fingerprint of its HTML; 0 if it has none.
    pub body: FPrint,
}

/// A row of the table `clusters`; a page in none is a cluster of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusterRow {
    /// Name of the trivial cluster.
    pub cluster: DocId,
    /// A page in it.
    pub doc_id: DocId,
}

/// A row of the table `members`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberRow {
    /// Name of the similar cluster.
    pub similar_cluster: DocId,
    /// Name of the collection; it may recur in another similar cluster.
    pub collection: DocId,
    /// A page of the collection.
    pub doc_id: DocId,
}

/// A row of the table `links`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkRow {
    /// The page that links.
    pub src: DocId,
    /// The page that it links to.
    pub dst: DocId,
}

/// Rows of a run, and the truth about it.
#[derive(Debug, Clone, Default)]
pub struct Rows {
    /// Rows of the table `pages`.
    pub pages: Vec<PageRow>,
    /// Rows of the table `clusters`.
    pub clusters: Vec<ClusterRow>,
    /// Rows of the table `members`.
    pub members: Vec<MemberRow>,
    /// Rows of the table `links`.
    pub links: Vec<LinkRow>,
    /// The truth, one row per page.
    pub truth: Vec<TruthRow>,
}

/// Measures a run.
///
/// URLs of truth and pages are compared as they are; the caller brings both to canonical form. If a URL has several
/// truth rows, the first counts.
///
/// # Cost
/// Sorting the rows; pairs are counted by group sizes and never enumerated.
pub fn evaluate(
    pages: &[PageRow],
    clusters: &[ClusterRow],
    members: &[MemberRow],
    links: &[LinkRow],
    truth: &[TruthRow],
) -> Report {
    Comparison::new(pages, clusters, truth).report(members, links)
}

/// The pages of a run, joined with the truth about them.
#[derive(Debug)]
pub struct Comparison<'a> {
    known: Known<'a>,
    undecided: Undecided<'a>,
    /// Trivial cluster of each known page.
    cluster_of: Vec<Option<DocId>>,
    pages: u64,
    truth: u64,
}

impl<'a> Comparison<'a> {
    /// Joins the rows of a run with the truth; see [`evaluate`].
    pub fn new(pages: &[PageRow], clusters: &[ClusterRow], truth: &'a [TruthRow]) -> Comparison<'a> {
        let known = Known::new(pages, truth);
        let cluster_of = pairs::cluster_of(&known, clusters);
        let undecided = Undecided::new(&known.pages);
        Comparison { known, undecided, cluster_of, pages: pages.len() as u64, truth: truth.len() as u64 }
    }

    /// Counts pairs, clusters and collections.
    pub fn report(&self, members: &[MemberRow], links: &[LinkRow]) -> Report {
        let Comparison { known, undecided, cluster_of, .. } = self;
        let (pairs, clusters) = pairs::count(known, undecided, cluster_of);
        let (collections, copies_found) = collections::count(known, members, &parts::of(known, links));
        let variants = report::by_variant(known, &pairs::beside_primary(known, cluster_of), &copies_found);
        Report {
            pages: self.pages,
            truth: self.truth,
            known: known.pages.len() as u64,
            missing: known.missing,
            repeated: known.repeated,
            pairs,
            clusters,
            collections,
            variants,
            recall_of: report::recall_of(known, cluster_of),
            copies_by_link: report::copies_by_link(known, &copies_found),
        }
    }

    /// Whether two pages are copies of each other by the truth; `None` unless it knows both.
    pub fn are_copies(&self, a: DocId, b: DocId) -> Option<bool> {
        let name = |page| Some(self.known.pages[*self.known.place.get(&page)?].target_page.map(|of| of.name));
        let (a, b) = (name(a)?, name(b)?);
        Some(a.is_some() && a == b)
    }

    /// Whether two pages that are no copies by the truth are accidental or open all the same; `None` unless it knows both.
    pub fn are_undecided(&self, a: DocId, b: DocId) -> Option<bool> {
        let (a, b) = (*self.known.place.get(&a)?, *self.known.place.get(&b)?);
        Some(self.undecided.verdict(a, b) != Verdict::Different)
    }

    /// Whether two pages are in one trivial cluster; `None` unless the truth knows both.
    pub fn are_together(&self, a: DocId, b: DocId) -> Option<bool> {
        let cluster = |page| Some(self.cluster_of[*self.known.place.get(&page)?]);
        let (a, b) = (cluster(a)?, cluster(b)?);
        Some(a.is_some() && a == b)
    }

    /// Trivial cluster, number of the page of the target, and id of each page that run and truth know: copies of each other have
    /// one number.
    pub fn known_pages(&self) -> impl Iterator<Item = (Option<DocId>, Option<u32>, DocId)> {
        let of = |(page, &cluster): (&truth::KnownPage, &Option<DocId>)| {
            (cluster, page.target_page.map(|of| of.name), page.doc_id)
        };
        self.known.pages.iter().zip(&self.cluster_of).map(of)
    }

    /// Groups of two or more copies of one page, grouped again by target: all true pairs.
    pub fn groups_by_target(&self) -> Vec<Vec<Vec<DocId>>> {
        let target = |copy: u32| self.known.copies[copy as usize].target;
        let of = |page: &truth::KnownPage| page.target_page.map(|of| (target(of.copy), of.name, page.doc_id));
        let mut rows: Vec<(u32, u32, DocId)> = self.known.pages.iter().filter_map(of).collect();
        rows.sort_unstable();
        let by_target = rows.chunk_by(|x, y| x.0 == y.0).map(|rows| {
            let groups = rows.chunk_by(|x, y| x.1 == y.1).filter(|group| group.len() > 1);
            groups.map(|group| group.iter().map(|row| row.2).collect()).collect()
        });
        by_target.collect()
    }
}

#[cfg(test)]
mod tests;
