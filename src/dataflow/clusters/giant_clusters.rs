//! Giant trivial clusters, with the pairs that hold them together
//! ([`webtwin_core::clusters::weakest_links`]).
//!
//! Every worker thins out its pairs of giant clusters to two for each page. The remaining pairs of
//! a cluster are sent to one worker. Takes one exchange, and two small ones for the URLs of pages.
//!
//! # Memory
//! Takes about 120 bytes for each page of giant clusters on each worker, and about 60 at the worker
//! of a cluster.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::trivial::TrivialClusters;
use crate::pairs::kinds::PairsByKind;
use crate::reading::captures::Crawl;
use crate::sinks::largest::MAX_FINDINGS;
use webtwin_base::error::Result;
use webtwin_base::ids::{ClusterId, DocId, HostId, Page};
use webtwin_core::clusters::weakest_links::{CutEdge, Edge, thin, weakest};
use webtwin_core::overlap::SimilarPair;
use webtwin_engine::{Net, Owners, RoundRobin};

/// Minimum number of pages of a giant trivial cluster.
pub const GIANT: u32 = 100;

/// Giant trivial cluster as it appears in `summary.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GiantCluster {
    /// Number of pages.
    pub pages: u32,
    /// Number of hosts that these pages are on.
    pub hosts: u32,
    /// Smallest page of the cluster.
    #[serde(with = "webtwin_base::ids::as_text")]
    pub doc_id: DocId,
    /// URL of that page.
    pub url: String,
    /// Bridges, weakest first: without any one of these pairs, the cluster would be two clusters.
    pub bridges: Vec<WeakLink>,
    /// Pair at which the cluster splits in two when T (or k) is made stricter. `None` if only small
    /// parts are cut off.
    pub splits: Option<WeakLink>,
}

/// Weak pair of a giant cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeakLink {
    /// URL of the smaller page.
    pub a: String,
    /// URL of the larger page.
    pub b: String,
    /// Strength of the pair, see [`PairKind::strength`](crate::pairs::kinds::PairKind::strength). For
    /// views, placeholders and declared copies the resemblance in millionths; the number of shared
    /// chunks; 64 minus the number of bits in which simhashes differ; 10^9 minus the distance of RP
    /// signatures in billionths; for shingles the resemblance in millionths; 0 for pairs that only
    /// collections support.
    pub strength: u32,
    /// Number of pages of the smaller part that the pair connects.
    pub cuts_off: u32,
}

/// Returns the largest giant clusters, the same on every worker. `pairs` are this worker's pairs.
pub fn giants(
    net: &mut Net<'_>,
    crawl: &Crawl,
    TrivialClusters { labels, sizes }: &TrivialClusters,
    pairs: &PairsByKind,
) -> Result<Vec<GiantCluster>> {
    let mut clusters: Vec<ClusterId> = sizes.with_at_least(GIANT).collect();
    clusters.sort_unstable_by_key(|&cluster| (Reverse(sizes.size(cluster)), cluster));
    clusters.truncate(MAX_FINDINGS);
    if clusters.is_empty() {
        return Ok(Vec::new());
    }
    let place: BTreeMap<ClusterId, usize> = clusters.iter().copied().zip(0..).collect();

    let clustered_pages: usize = clusters.iter().map(|&cluster| sizes.size(cluster) as usize).sum();
    let mut edges: Vec<Edge> = Vec::new();
    for pair in pairs.with_strength() {
        let (SimilarPair { a, b, .. }, strength) = pair?;
        let cluster = labels.label(a);
        if place.contains_key(&cluster) {
            edges.push(Edge { cluster, a, b, strength });
            // Thins out repeatedly, so that memory does not grow with the number of pairs.
            if edges.len() > 4 * clustered_pages + (1 << 12) {
                thin(&mut edges);
            }
        }
    }
    thin(&mut edges);
    let assignment = RoundRobin::new(net.peers());
    let mut edges = net.exchange("links of giant clusters", edges, |edge| assignment.owner(place[&edge.cluster]))?;
    edges.sort_unstable();
    let cut = |cut: CutEdge| (cut.edge.a, cut.edge.b, cut.edge.strength, cut.cuts_off);
    let own_rows: Vec<_> = edges
        .chunk_by(|x, y| x.cluster == y.cluster)
        .map(|edges| {
            let (bridges, split) = weakest(edges);
            (edges[0].cluster, bridges.into_iter().map(cut).collect::<Vec<_>>(), split.map(cut))
        })
        .collect();
    let mut all_rows: Vec<_> = net.all_gather("giant clusters", own_rows)?.into_iter().flatten().collect();
    all_rows.sort_unstable_by_key(|row| place[&row.0]);

    let hosts = net.once_per_process(|| {
        let mut hosts: Vec<BTreeSet<HostId>> = vec![BTreeSet::new(); clusters.len()];
        for (page, cluster) in labels.joined() {
            if let Some(&at) = place.get(&cluster) {
                hosts[at].insert(crawl.directory.hosts[page]);
            }
        }
        hosts.iter().map(|hosts| hosts.len() as u32).collect::<Vec<u32>>()
    })?;
    let shown_pages = all_rows.iter().flat_map(|(cluster, bridges, split)| {
        bridges.iter().chain(split).flat_map(|cut| [cut.0, cut.1]).chain([cluster.smallest()])
    });
    // Only the owner of a page knows its URL.
    let page_set: BTreeSet<Page> = shown_pages.collect();
    let own_pages = page_set.iter().filter(|&&page| crawl.directory.owner(page) == net.index());
    let mut pages = crawl.reader();
    let name_of = |&page: &Page| {
        let row = pages.page(page)?;
        Ok((page, (row.url().to_string(), row.doc_id)))
    };
    let own_names: Vec<(Page, (String, DocId))> = own_pages.map(name_of).collect::<Result<_>>()?;
    let urls: BTreeMap<Page, (String, DocId)> =
        net.all_gather("pages of giant clusters", own_names)?.into_iter().flatten().collect();
    let weak = |&(a, b, strength, cuts_off): &(Page, Page, u32, u32)| WeakLink {
        a: urls[&a].0.clone(),
        b: urls[&b].0.clone(),
        strength,
        cuts_off,
    };
    let giant = |(cluster, bridges, split): &(ClusterId, Vec<_>, Option<_>)| GiantCluster {
        pages: sizes.size(*cluster),
        hosts: hosts[place[cluster]],
        doc_id: urls[&cluster.smallest()].1,
        url: urls[&cluster.smallest()].0.clone(),
        bridges: bridges.iter().map(weak).collect(),
        splits: split.as_ref().map(weak),
    };
    Ok(all_rows.iter().map(giant).collect())
}
