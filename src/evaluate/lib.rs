//! Comparison of the clusters and collections of a run with the truth about its crawl.
//!
//! Input: the rows of the `pages`, `clusters`, `members` and `links` tables, in any order, and the
//! truth. Output: a [`EvaluationReport`] of exact counts.
//!
//! The truth has for each page its target, version, page of the target, and variant. Pages with
//! equal target and page are copies of each other. A *copy of a target* consists of the pages of
//! one (target, version, host). Pages of the variants `single` and `hub` are not target pages. All
//! measures use the pages that are both in the run and in the truth. Pages in only one of them are
//! counted as *unknown* and *missing*.
//!
//! | measure | definition |
//! |---|---|
//! | predicted pair | two pages of one trivial cluster |
//! | true pair | two target pages with equal target and page |
//! | accidental pair | a predicted pair that is not true, whose pages have the same bytes, or are copies of pages with the same bytes: neither hit nor error |
//! | open pair | another predicted pair that may be true by the truth: neither hit nor error |
//! | pair precision, recall | true pairs among the predicted pairs that are neither accidental nor open; predicted pairs among the true pairs |
//! | cluster precision, recall | clusters of ≥ 2 pages, all copies of one page; groups of ≥ 2 copies, all in one cluster |
//! | counted collection | a collection of ≥ 10 pages in a similar cluster of ≥ 2 collections |
//! | *of a copy* | ≥ 90 % of the pages of the collection are of this copy |
//! | corresponding collection | a counted collection, of a copy, with a mirror (of any size) of another copy of the target |
//! | problem share | counted collections that are not corresponding ones |
//! | target found | a target with a corresponding collection |
//! | coverage | target pages that are in some corresponding collection |
//! | copy found | a copy with a corresponding collection |
//! | whole copy | a copy with ≥ 80 % of its pages in one counted collection |
//! | collections a copy | corresponding collections divided by copies found |
//! | page that has a copy | a target page with another page of equal target and page in run and truth |
//! | coverage of pages that have a copy | pages that have a copy and are in some corresponding collection |
//! | connected part | pages of one copy that links between them connect, ≥ 10 of which have a copy |
//! | whole part | a connected part with ≥ 80 % of its pages that have a copy in one counted collection |
//! | collections a connected part | corresponding collections of copies that have such parts, divided by the parts of copies found |
//! | mixed cluster | a similar cluster whose counted collections hold more than one target |
//! | recall of a variant's pages | pages of the variant that are in the cluster of the same page of the primary copy |
//! | recall of a variant's pairs | predicted pairs among the true pairs with a page of the variant; for real versions, among the pairs of two such pages |
//! | linked, unlinked | both pages, or the copy, on hosts to which other hosts link; at least one that is not |
//!
//! The problem share has no meaning alone: a rule that grows almost nothing has none. It must be
//! read with coverage, whole copies, collections a copy and mixed clusters. A single cluster of all
//! pages does well on all but the last.
//!
//! Two measures are reported in addition, because objects that no run can find must not count
//! against a run. A page without a copy is not a replica, so coverage is reported for all target
//! pages and for those that have a copy. A collection grows along links, and editions of a manual
//! in thirty languages that no link joins are thirty collections. Copies are therefore counted as
//! wholes and by their connected parts.
//!
//! # Source
//! \[CSG00\] section 4 for targets, counted and problem collections.
//!
//! # Deviations
//! - The judges of the paper inspected each collection. The thresholds of 90 % and 80 % replace
//!   them.
//! - A collection holds a target if it has pages of that target, but a target with ≥ 90 % of the
//!   target pages of the collection is its only one: a stray page makes no mixed cluster.
//! - The primary copy is the first copy of the target with variant `primary`, or otherwise its
//!   first copy in the truth.
//! - Targets that are single texts (variant `near`) are not collections. They count for pairs and
//!   clusters only.

pub use collections::CollectionCounts;
pub use pairs::{ClusterCounts, KnownPairCounts};
pub use report::{EvaluationReport, FigureRow, Ratio, VariantCounts, table};
pub use truth::{TruthRow, read_truth};

use truth::CommonPages;
use undecided::{NonCopyVerdict, PageKinds};
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
pub struct TruthPageRow {
    /// Doc id of the page.
    pub doc_id: DocId,
    /// Canonical URL of the page.
    pub url: String,
    /// Fingerprint of the HTML of the page; 0 if it has none.
    pub body: FPrint,
}

/// A row of the table `clusters`. A page in no row is a cluster of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusterRow {
    /// Id of the trivial cluster.
    pub cluster: DocId,
    /// Doc id of a page in the cluster.
    pub doc_id: DocId,
}

/// A row of the table `members`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TruthMemberRow {
    /// Id of the similar cluster.
    pub similar_cluster: DocId,
    /// Id of the collection, which may recur in another similar cluster.
    pub collection: DocId,
    /// Doc id of a page of the collection.
    pub doc_id: DocId,
}

/// A row of the table `links`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkRow {
    /// Doc id of the page with the link.
    pub src: DocId,
    /// Doc id of the target of the link.
    pub dst: DocId,
}

/// Rows of a run, and the truth about it.
#[derive(Debug, Clone, Default)]
pub struct ResultRows {
    /// Rows of the table `pages`.
    pub pages: Vec<TruthPageRow>,
    /// Rows of the table `clusters`.
    pub clusters: Vec<ClusterRow>,
    /// Rows of the table `members`.
    pub members: Vec<TruthMemberRow>,
    /// Rows of the table `links`.
    pub links: Vec<LinkRow>,
    /// The truth, one row per page.
    pub truth: Vec<TruthRow>,
}

/// Measures a run.
///
/// URLs of truth and pages are compared as they are, so the caller must canonicalise both. If a URL
/// has several truth rows, the first counts.
///
/// # Cost
/// Sorts the rows. Pairs are counted by group sizes and never enumerated.
///
/// # Examples
/// Three pages of a run, of which the first two are copies by the truth. The run has put all three
/// into one cluster.
/// ```
/// use webtwin_evaluate::{ClusterRow, TruthPageRow, evaluate, read_truth};
///
/// let truth = read_truth("truth.tsv", "url\ttarget\tversion\tpage\tvariant\n\
///     http://a.example/1\tmanual\t1\tone\tprimary\n\
///     http://b.example/1\tmanual\t1\tone\texact\n\
///     http://b.example/2\tmanual\t1\ttwo\texact\n")?;
/// let page = |doc_id: u64| {
///     let url = truth[doc_id as usize - 1].url.clone();
///     TruthPageRow { doc_id, url, body: 0 }
/// };
/// let pages = [1, 2, 3].map(page);
/// let clusters = [1, 2, 3].map(|doc_id| ClusterRow { cluster: 1, doc_id });
///
/// let report = evaluate(&pages, &clusters, &[], &[], &truth);
/// assert_eq!(report.pairs.precision().value(), Some(1.0 / 3.0));
/// assert_eq!(report.pairs.recall().value(), Some(1.0));
/// # Ok::<(), webtwin_base::error::Error>(())
/// ```
pub fn evaluate(
    pages: &[TruthPageRow],
    clusters: &[ClusterRow],
    members: &[TruthMemberRow],
    links: &[LinkRow],
    truth: &[TruthRow],
) -> EvaluationReport {
    TruthComparison::new(pages, clusters, truth).report(members, links)
}

/// Pages of a run, joined with the truth about them.
#[derive(Debug)]
pub struct TruthComparison<'a> {
    common_pages: CommonPages<'a>,
    undecided: PageKinds<'a>,
    /// Trivial cluster of each known page.
    page_clusters: Vec<Option<DocId>>,
    pages: u64,
    truth: u64,
}

impl<'a> TruthComparison<'a> {
    /// Joins the rows of a run with the truth; see [`evaluate`].
    pub fn new(pages: &[TruthPageRow], clusters: &[ClusterRow], truth: &'a [TruthRow]) -> TruthComparison<'a> {
        let common_pages = CommonPages::new(pages, truth);
        let page_clusters = pairs::cluster_of(&common_pages, clusters);
        let undecided = PageKinds::new(&common_pages.pages);
        TruthComparison { common_pages, undecided, page_clusters, pages: pages.len() as u64, truth: truth.len() as u64 }
    }

    /// Counts pairs, clusters and collections.
    pub fn report(&self, members: &[TruthMemberRow], links: &[LinkRow]) -> EvaluationReport {
        let TruthComparison { common_pages: known, undecided, page_clusters: cluster_of, .. } = self;
        let (pairs, clusters) = pairs::count(known, undecided, cluster_of);
        let (collections, copies_found) = collections::count(known, members, &parts::connected_parts(known, links));
        let variants = report::by_variant(known, &pairs::differs_from_primary(known, cluster_of), &copies_found);
        EvaluationReport {
            pages: self.pages,
            truth: self.truth,
            known: known.pages.len() as u64,
            missing: known.missing,
            repeated: known.n_repeated,
            pairs,
            clusters,
            collections,
            variants,
            recall_of: report::recall_of(known, cluster_of),
            copies_by_link: report::copies_by_link(known, &copies_found),
        }
    }

    /// Returns whether two pages are copies of each other by the truth; `None` unless the truth has
    /// both.
    pub fn are_copies(&self, a: DocId, b: DocId) -> Option<bool> {
        let name =
            |page| Some(self.common_pages.pages[*self.common_pages.place.get(&page)?].target_page.map(|of| of.name));
        let (a, b) = (name(a)?, name(b)?);
        Some(a.is_some() && a == b)
    }

    /// Returns whether two pages that are not copies by the truth form an accidental or open pair;
    /// `None` unless the truth has both.
    pub fn are_undecided(&self, a: DocId, b: DocId) -> Option<bool> {
        let (a, b) = (*self.common_pages.place.get(&a)?, *self.common_pages.place.get(&b)?);
        Some(self.undecided.verdict(a, b) != NonCopyVerdict::Different)
    }

    /// Returns whether two pages are in one trivial cluster; `None` unless the truth has both.
    pub fn are_together(&self, a: DocId, b: DocId) -> Option<bool> {
        let cluster = |page| Some(self.page_clusters[*self.common_pages.place.get(&page)?]);
        let (a, b) = (cluster(a)?, cluster(b)?);
        Some(a.is_some() && a == b)
    }

    /// Returns trivial cluster, number of the page of the target, and doc id of each page that both
    /// run and truth have. Copies of each other have the same number.
    pub fn known_pages(&self) -> impl Iterator<Item = (Option<DocId>, Option<u32>, DocId)> {
        let page_of_cluster = |(page, &cluster): (&truth::KnownPage, &Option<DocId>)| {
            (cluster, page.target_page.map(|of| of.name), page.doc_id)
        };
        self.common_pages.pages.iter().zip(&self.page_clusters).map(page_of_cluster)
    }

    /// Returns all true pairs: groups of two or more copies of one page, grouped again by target.
    pub fn groups_by_target(&self) -> Vec<Vec<Vec<DocId>>> {
        let target = |copy: u32| self.common_pages.copies[copy as usize].target;
        let target_key = |page: &truth::KnownPage| page.target_page.map(|of| (target(of.copy), of.name, page.doc_id));
        let mut rows: Vec<(u32, u32, DocId)> = self.common_pages.pages.iter().filter_map(target_key).collect();
        rows.sort_unstable();
        let groups = rows.chunk_by(|x, y| x.0 == y.0).map(|rows| {
            let groups = rows.chunk_by(|x, y| x.1 == y.1).filter(|group| group.len() > 1);
            groups.map(|group| group.iter().map(|row| row.2).collect()).collect()
        });
        groups.collect()
    }
}

#[cfg(test)]
mod tests;
