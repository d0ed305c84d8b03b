//! Pairs of pages that a person has told apart (`pairs.apart`), and what is refused for them ([`webtwin_core::clusters::apart`]).
//!
//! The components of all pairs, once; of those that hold two such pages, all pairs meet at one worker, and all workers hear what
//! it refuses. Nothing without `pairs.apart`.
//!
//! # Memory
//! 8 bytes a page in each process while components are found, 16 a pair of a component that is divided with its worker, and 8 a
//! pair refused in each process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use itertools::Itertools;
use serde::{Deserialize, Serialize};

use crate::pairs::kinds::Pairs;
use crate::reading::captures::Crawl;
use crate::shuffle::components::components;
use webtwin_base::error::Result;
use webtwin_base::ids::{ClusterId, Page};
use webtwin_core::clusters::apart::{refused, without_copies};
use webtwin_core::clusters::weakest_links::Edge;
use webtwin_core::overlap::SimilarPair;
use webtwin_engine::{HashOwners, Net, Owners};
use webtwin_results::decisions::Apart;

/// What became of the pairs in `pairs.apart`: `pairs` is the sum of `gone`, `unjoined` and `parted`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApartCounts {
    /// Pairs of pages that must not come together.
    pub pairs: u64,
    /// Those with a page that is not in this crawl.
    pub gone: u64,
    /// Those that no chain of pairs would have joined.
    pub unjoined: u64,
    /// Those that would be in one trivial cluster.
    pub parted: u64,
    /// Pairs of equal text that were refused for that.
    pub refused_exact: u64,
    /// Similar pairs that were.
    pub refused_similar: u64,
    /// The first of those that were parted, in the order of the file.
    pub shown: Vec<Parted>,
    /// Places in the file of all that were parted.
    #[serde(skip)]
    places: BTreeSet<usize>,
}

impl ApartCounts {
    /// Adds what became of them once the second look has found pairs, which are the weakest: only such ones are refused for that,
    /// and they are not counted.
    pub fn and_then(&mut self, later: ApartCounts) {
        let shown = later.shown.into_iter().zip(&later.places).filter(|(_, place)| !self.places.contains(place));
        self.shown.extend(shown.map(|(parted, _)| parted));
        self.shown.truncate(SHOWN);
        self.places.extend(&later.places);
        self.parted = self.places.len() as u64;
        self.unjoined = self.pairs - self.gone - self.parted;
    }
}

/// Two pages that would be in one trivial cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parted {
    /// Their canonical URLs.
    pub urls: [String; 2],
    /// Why they are apart, as the person has put it.
    pub reason: String,
}

/// Parted pairs that are shown.
const SHOWN: usize = 100;

/// Takes away pairs, such that no chain of the others joins two pages that are apart; returns what became of these, the same
/// on every worker. `pairs` are this worker's.
///
/// # Errors
/// Those of the disk that pairs may be on; or when the run has ended.
pub(crate) fn part(net: &mut Net<'_>, crawl: &Crawl, apart: &[Apart], pairs: &mut Pairs) -> Result<ApartCounts> {
    let mut counts = ApartCounts { pairs: apart.len() as u64, ..ApartCounts::default() };
    if apart.is_empty() {
        return Ok(counts);
    }
    let directory = &crawl.directory;
    let all = directory.by_doc_id()?;
    let pages = |of: &Apart| Some((all.page(of.doc_ids[0])?, all.page(of.doc_ids[1])?));
    let there: Vec<(usize, (Page, Page))> =
        apart.iter().enumerate().filter_map(|(place, of)| Some((place, pages(of)?))).collect();
    drop(all);
    counts.gone = counts.pairs - there.len() as u64;
    if there.is_empty() {
        return Ok(counts);
    }
    let edges = pairs.rows().map_ok(|(_, pair)| (pair.a, pair.b));
    let labels: Arc<Vec<ClusterId>> = components(net, "clusters to divide", directory.len(), edges)?;
    let label = |page: Page| labels[page];
    let joined: Vec<_> = there.into_iter().filter(|(_, (x, y))| label(*x) == label(*y)).collect();
    counts.parted = joined.len() as u64;
    counts.places = joined.iter().map(|(place, _)| *place).collect();
    counts.unjoined = counts.pairs - counts.gone - counts.parted;
    let parted = |of: &Apart| Parted { urls: of.urls.clone(), reason: of.reason.clone() };
    counts.shown = joined.iter().take(SHOWN).map(|(place, _)| parted(&apart[*place])).collect();
    let joined: Vec<(Page, Page)> = joined.into_iter().map(|(_, pages)| pages).collect();
    let [exact, similar, within_sites] = divide(net, &labels, &joined, pairs, Divided::Wholly)?;
    (counts.refused_exact, counts.refused_similar) = (exact, similar + within_sites);
    Ok(counts)
}

/// Whether pages that are apart may be joined by equal texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Divided {
    /// By nothing.
    Wholly,
    /// By equal texts.
    ButCopies,
}

/// Takes away pairs, such that no chain of the others joins pages that are apart, of which each two have one label, that of their component
/// by all pairs. `apart` and `labels` are the same on every worker; so are the numbers of pairs taken away, as of [`Pairs::retain`].
pub(super) fn divide(
    net: &mut Net<'_>,
    labels: &[ClusterId],
    apart: &[(Page, Page)],
    pairs: &mut Pairs,
    how: Divided,
) -> Result<[u64; 3]> {
    if apart.is_empty() {
        return Ok([0; 3]);
    }
    let mut divided: BTreeMap<ClusterId, Vec<(Page, Page)>> = BTreeMap::new();
    apart.iter().for_each(|pages| divided.entry(labels[pages.0]).or_default().push(*pages));
    let owners = HashOwners::new(net);
    let edge = |(pair, strength): (SimilarPair, _)| Edge { cluster: labels[pair.a], a: pair.a, b: pair.b, strength };
    let rows = pairs.with_strength().map_ok(edge).filter_ok(|edge| divided.contains_key(&edge.cluster));
    let mut rows = net.exchange("pairs of clusters to divide", rows, |edge| owners.owner(edge.cluster.smallest()))?;
    rows.sort_unstable();
    let mut mine: Vec<[Page; 2]> = Vec::new();
    for edges in rows.chunk_by(|x, y| x.cluster == y.cluster) {
        let mut apart = divided[&edges[0].cluster].clone();
        if how == Divided::ButCopies {
            without_copies(edges, &mut apart);
        }
        mine.extend(refused(edges, &apart).into_iter().map(|(a, b)| [a, b]));
    }
    let shared = net.broadcast("pairs refused", mine)?;
    let all_refused = net.once_per_process(|| {
        let mut all = shared.to_vec();
        all.sort_unstable();
        all
    })?;
    let gone = pairs.retain(|pair| all_refused.binary_search(&[pair.a, pair.b]).is_err())?;
    net.all_sum("pairs refused", gone)
}
