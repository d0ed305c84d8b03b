//! Divides clusters so that pages which a person marked as different (`pairs.apart`) are not
//! joined, by refusing pairs ([`webtwin_core::clusters::apart`]).
//!
//! The components of all pairs are computed once. For the components that contain two such pages,
//! all pairs are sent to one worker, and the pairs that it refuses are broadcast. Without
//! `pairs.apart` nothing is done.
//!
//! # Memory
//! Takes 8 bytes for each page in each process while components are found. Takes 16 bytes for each
//! pair of a component that is divided, at its worker, and 8 for each refused pair in each process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use itertools::Itertools;
use serde::{Deserialize, Serialize};

use crate::pairs::kinds::PairsByKind;
use crate::reading::captures::Crawl;
use crate::shuffle::components::components;
use webtwin_base::error::Result;
use webtwin_base::ids::{ClusterId, Page};
use webtwin_core::clusters::apart::{refused_pairs, without_copies};
use webtwin_core::clusters::labels::SetLabels;
use webtwin_core::clusters::weakest_links::Edge;
use webtwin_core::overlap::SimilarPair;
use webtwin_engine::{HashOwners, Net, Owners};
use webtwin_results::decisions::SeparatePair;

/// Counts of the pairs in `pairs.apart` by outcome: `pairs` is the sum of `gone`, `unjoined` and
/// `parted`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeparationCounts {
    /// Pairs of pages that must not be in the same cluster.
    pub pairs: u64,
    /// Pairs with a page that is not in this crawl.
    pub gone: u64,
    /// Pairs whose pages no chain of similar pairs would have joined.
    pub unjoined: u64,
    /// Pairs whose pages would have been in one trivial cluster.
    pub parted: u64,
    /// Exact copies that were refused to part these pages.
    pub refused_exact: u64,
    /// Similar pairs that were refused to part these pages.
    pub refused_similar: u64,
    /// First of the parted pairs, in the order of the file.
    pub shown: Vec<JoinedPair>,
    /// Positions in the file of all parted pairs.
    #[serde(skip)]
    places: BTreeSet<usize>,
}

impl SeparationCounts {
    /// Adds the counts of a second division, after the context pass has found more pairs. Pairs of
    /// the context pass are the weakest, so only such pairs are refused then, and they are not
    /// counted.
    pub fn and_then(&mut self, later: SeparationCounts) {
        let later_shown = later.shown.into_iter().zip(&later.places).filter(|(_, place)| !self.places.contains(place));
        self.shown.extend(later_shown.map(|(parted, _)| parted));
        self.shown.truncate(MAX_SHOWN_PAIRS);
        self.places.extend(&later.places);
        self.parted = self.places.len() as u64;
        self.unjoined = self.pairs - self.gone - self.parted;
    }
}

/// Two pages that would have been in one trivial cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinedPair {
    /// Canonical URLs of the two pages.
    pub urls: [String; 2],
    /// Reason that the person gave.
    pub reason: String,
}

/// Maximum number of parted pairs that are shown.
const MAX_SHOWN_PAIRS: usize = 100;

/// Removes pairs so that no chain of the remaining pairs joins two pages that are marked as
/// different. Returns the counts, the same on every worker. `pairs` are this worker's pairs.
///
/// # Errors
/// Returns any error of the disk, on which pairs may be, and an error if the run has ended.
pub(crate) fn part(
    net: &mut Net<'_>,
    crawl: &Crawl,
    separate_pairs: &[SeparatePair],
    pairs: &mut PairsByKind,
) -> Result<SeparationCounts> {
    let mut counts = SeparationCounts { pairs: separate_pairs.len() as u64, ..SeparationCounts::default() };
    if separate_pairs.is_empty() {
        return Ok(counts);
    }
    let directory = &crawl.directory;
    let ids = directory.by_doc_id()?;
    let pages = |of: &SeparatePair| Some((ids.page(of.doc_ids[0])?, ids.page(of.doc_ids[1])?));
    let present: Vec<(usize, (Page, Page))> =
        separate_pairs.iter().enumerate().filter_map(|(place, of)| Some((place, pages(of)?))).collect();
    drop(ids);
    counts.gone = counts.pairs - present.len() as u64;
    if present.is_empty() {
        return Ok(counts);
    }
    let edges = || pairs.rows().map_ok(|(_, pair)| (pair.a, pair.b));
    let labels: Arc<SetLabels<ClusterId>> = components(net, "clusters to divide", directory.len(), edges)?;
    let label = |page: Page| labels.label(page);
    let clustered: Vec<_> = present.into_iter().filter(|(_, (x, y))| label(*x) == label(*y)).collect();
    counts.parted = clustered.len() as u64;
    counts.places = clustered.iter().map(|(place, _)| *place).collect();
    counts.unjoined = counts.pairs - counts.gone - counts.parted;
    let parted = |of: &SeparatePair| JoinedPair { urls: of.urls.clone(), reason: of.reason.clone() };
    counts.shown = clustered.iter().take(MAX_SHOWN_PAIRS).map(|(place, _)| parted(&separate_pairs[*place])).collect();
    let page_pairs: Vec<(Page, Page)> = clustered.into_iter().map(|(_, pages)| pages).collect();
    let [exact, similar, within_sites] = divide(net, &labels, &page_pairs, pairs, SeparationRule::Wholly)?;
    (counts.refused_exact, counts.refused_similar) = (exact, similar + within_sites);
    Ok(counts)
}

/// Treatment of pages that must be kept apart but have equal texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SeparationRule {
    /// Pages are kept apart even if they have equal texts.
    Wholly,
    /// Pages with equal texts may be joined.
    ButCopies,
}

/// Removes pairs so that no chain of the remaining pairs joins pages that must be kept apart. The
/// two pages of each element of `separate_pages` must have the same label, which is that of their
/// component in the graph of all pairs. `separate_pages` and `labels` are the same on every worker.
/// Returns the numbers of removed pairs of all workers, in the order of [`PairsByKind::retain`].
pub(super) fn divide(
    net: &mut Net<'_>,
    labels: &SetLabels<ClusterId>,
    separate_pages: &[(Page, Page)],
    pairs: &mut PairsByKind,
    rule: SeparationRule,
) -> Result<[u64; 3]> {
    if separate_pages.is_empty() {
        return Ok([0; 3]);
    }
    let mut divided: BTreeMap<ClusterId, Vec<(Page, Page)>> = BTreeMap::new();
    separate_pages.iter().for_each(|pages| divided.entry(labels.label(pages.0)).or_default().push(*pages));
    let owners = HashOwners::new(net);
    let edge =
        |(pair, strength): (SimilarPair, _)| Edge { cluster: labels.label(pair.a), a: pair.a, b: pair.b, strength };
    let rows = pairs.with_strength().map_ok(edge).filter_ok(|edge| divided.contains_key(&edge.cluster));
    let mut rows = net.exchange("pairs of clusters to divide", rows, |edge| owners.owner(edge.cluster.smallest()))?;
    rows.sort_unstable();
    let mut refused_here: Vec<[Page; 2]> = Vec::new();
    for edges in rows.chunk_by(|x, y| x.cluster == y.cluster) {
        let mut cluster_pairs = divided[&edges[0].cluster].clone();
        if rule == SeparationRule::ButCopies {
            without_copies(edges, &mut cluster_pairs);
        }
        refused_here.extend(refused_pairs(edges, &cluster_pairs).into_iter().map(|(a, b)| [a, b]));
    }
    let shared = net.broadcast("pairs refused", refused_here)?;
    let all_refused = net.once_per_process(|| {
        let mut sorted_pairs = shared.to_vec();
        sorted_pairs.sort_unstable();
        sorted_pairs
    })?;
    let removed = pairs.retain(|pair| all_refused.binary_search(&[pair.a, pair.b]).is_err())?;
    net.all_sum("pairs refused", removed)
}
