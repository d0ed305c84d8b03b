//! Growth, sharded by component: all data of a component of the TCG is sent to one worker, and
//! components grow independently.
//!
//! Takes three exchanges: pages, links and TCG edges are sent to the owner of their component,
//! which partitions them and grows the components of one partition after the other.
//!
//! # Memory
//! Takes the memory of [`components`] in each process, and then 2 bits for each page and 4 bytes
//! for each page of a component. Takes 8 bytes for each page, link and edge of clusters that merge,
//! or the budget of the step if it is smaller. Takes 20 to 36 more for each page, link and edge of
//! one partition, which has some megabytes of links or is a single component.

use std::sync::Arc;

use itertools::Itertools;

use crate::clusters::links::{LinkedPage, WorkerLinks};
use crate::shuffle::components::components;
use crate::shuffle::directory::Directory;
use crate::shuffle::hash_partitions::{CommonPartitions, HashPartitions};
use webtwin_base::error::Result;
use webtwin_base::ids::{ClusterId, ComponentId, Number, Page};
use webtwin_core::clusters::collection::SimilarCluster;
use webtwin_core::clusters::growth::{ClusterPage, Component, grow};
use webtwin_core::clusters::labels::SetLabels;
use webtwin_core::overlap::prune::{PageSet, Ranks};
use webtwin_engine::Net;
use webtwin_job::ClusterSettings;
use webtwin_spill::{SpillColumn, partition_bits};

/// Grows all similar clusters. They are at the owners of their components, ascending by smallest
/// page.
///
/// `edges` are this worker's edges of the TCG ([`webtwin_core::clusters::merge::may_merge`]), and
/// `links` are the links from its pages. `incoming_links` counts the links from other hosts to its
/// pages, in the order of the pages.
///
/// # Errors
/// Returns [`webtwin_base::error::Error::DiskLimit`] or [`webtwin_base::error::Error::DiskFull`] if
/// data beyond the memory budget does not fit on the disk, and an error if the run has ended.
pub fn similar_clusters(
    net: &mut Net<'_>,
    directory: &Directory,
    labels: &SetLabels<ClusterId>,
    links: &WorkerLinks,
    incoming_links: &SpillColumn<u32>,
    edges: Vec<(ClusterId, ClusterId)>,
    settings: &ClusterSettings,
) -> Result<Vec<SimilarCluster>> {
    let component: Arc<SetLabels<ComponentId>> =
        components(net, "components of the TCG", directory.len(), || edges.iter().copied().map(Ok))?;
    let components = net.once_per_process(|| PageComponents::new(&component, labels, settings.min_size == 1))?;
    drop(component);
    let component_of = |page: Page| components.of(page);
    // A cluster is in the same component as its pages.
    let component_of_cluster = |cluster: ClusterId| component_of(cluster.smallest());

    let bits = partition_bits::<[Page; 2]>(links.len() as u64);
    let partitioning = CommonPartitions { bits, kinds: 3 };
    let rows = directory
        .owned(net.index())
        .zip(incoming_links.rows())
        .filter(|(page, _)| component_of(*page) != ComponentId::NONE)
        .map(|(page, links)| links.map(|links_from_elsewhere| LinkedPage { page, links_from_elsewhere }));
    let key = |row: &LinkedPage| component_of(row.page);
    let mut pages = HashPartitions::alike(net, "pages of components", partitioning, rows, key)?;
    let is_inside = |&(src, dst): &(Page, Page)| {
        let component = component_of(src);
        component != ComponentId::NONE && component_of(dst) == component
    };
    let key = |row: &[Page; 2]| component_of(row[0]);
    let rows = links.blocks().flatten_ok().filter_ok(is_inside).map_ok(<[Page; 2]>::from);
    let mut inner_links = HashPartitions::alike(net, "links of components", partitioning, rows, key)?;
    let rows = edges.into_iter().map(<[ClusterId; 2]>::from);
    let key = |row: &[ClusterId; 2]| component_of_cluster(row[0]);
    let mut between = HashPartitions::alike(net, "edges of the TCG", partitioning, rows, key)?;

    let mut clusters = Vec::new();
    // The three kinds of rows are partitioned by component in the same way, so each partition can
    // be grown by itself.
    let (mut page_rows, mut link_rows, mut edge_rows) = (Vec::new(), Vec::new(), Vec::new());
    let (mut cluster_pages, mut links, mut edges) = (Vec::new(), Vec::new(), Vec::new());
    for share in 0..pages.count() {
        net.check()?;
        pages.take(share, &mut page_rows)?;
        cluster_pages.clear();
        cluster_pages.extend(page_rows.iter().map(|&LinkedPage { page, links_from_elsewhere }| ClusterPage {
            component: component_of(page),
            cluster: labels.label(page),
            page,
            host: directory.hosts[page],
            links_from_elsewhere,
        }));
        cluster_pages.sort_unstable();
        by_component(&mut inner_links, share, component_of, &mut link_rows, &mut links)?;
        by_component(&mut between, share, component_of_cluster, &mut edge_rows, &mut edges)?;
        let (mut next_link, mut next_edge) = (0, 0);
        for pages in cluster_pages.chunk_by(|x, y| x.component == y.component) {
            let links = rows_of(&links, pages[0].component, &mut next_link);
            let edges = rows_of(&edges, pages[0].component, &mut next_edge);
            clusters.extend(grow(&Component { pages, edges: &edges, links: &links }, settings));
        }
    }
    clusters.sort_unstable_by_key(SimilarCluster::id);
    Ok(clusters)
}

/// Component of each page that may be in a collection. Links are looked up here, so the trivial
/// cluster of a page and the component of that cluster are not looked up one after the other.
struct PageComponents {
    pages: Ranks,
    /// Components of these pages, ascending by page.
    components: Vec<ComponentId>,
}

impl PageComponents {
    /// Finds the pages of clusters that are in a component with other clusters. If
    /// `includes_single`, a cluster of several pages is a component even if it is the only cluster
    /// of it.
    fn new(component: &SetLabels<ComponentId>, labels: &SetLabels<ClusterId>, includes_single: bool) -> PageComponents {
        let may_be_collected =
            |page: Page| component.is_joined(labels.label(page)) || includes_single && labels.is_joined(page);
        let pages = Ranks::new(PageSet::new(labels.members(), may_be_collected));
        let components = pages.pages().map(|page| component.label(labels.label(page))).collect();
        PageComponents { pages, components }
    }

    /// Returns the component of a page, or [`ComponentId::NONE`].
    #[inline]
    fn of(&self, page: Page) -> ComponentId {
        self.pages.rank(page).map_or(ComponentId::NONE, |rank| self.components[rank])
    }
}

/// Replaces the content of `into` by the rows of a partition, with the component of their first
/// page or cluster, ascending and without repetitions.
fn by_component<T: Number>(
    rows: &mut HashPartitions<[T; 2]>,
    share: usize,
    component_of: impl Fn(T) -> ComponentId,
    scratch: &mut Vec<[T; 2]>,
    into: &mut Vec<(ComponentId, T, T)>,
) -> Result<()> {
    rows.take(share, scratch)?;
    into.clear();
    into.extend(scratch.iter().map(|&[from, to]| (component_of(from), from, to)));
    into.sort_unstable();
    into.dedup();
    Ok(())
}

/// Returns the rows of one component, starting the search at `next`. Components must be requested
/// in ascending order.
fn rows_of<T: Number>(rows: &[(ComponentId, T, T)], component: ComponentId, next: &mut usize) -> Vec<(T, T)> {
    let skipped = rows[*next..].iter().take_while(|row| row.0 < component).count();
    let component_rows = rows[*next + skipped..].iter().take_while(|row| row.0 == component);
    let pairs: Vec<(T, T)> = component_rows.map(|row| (row.1, row.2)).collect();
    *next += skipped + pairs.len();
    pairs
}
