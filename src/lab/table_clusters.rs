//! Trivial clusters of a synthetic `FPrint-DocID` table, for the histograms and times in the
//! papers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use super::made::tables::{SyntheticTable, TableParams};
use super::table_overlap::{MeasurementLimits, pool};
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::{FPrint, Page};
use webtwin_core::clusters::labels::SetLabels;
use webtwin_core::clusters::union_find::UnionFind;
use webtwin_core::overlap::prune::PageSet;
use webtwin_core::overlap::rows::Row32;
use webtwin_dataflow::pairs::overlap_join::similar_pairs;
use webtwin_dataflow::pairs::overlap_work::OverlapPages;
use webtwin_dataflow::shuffle::components::components;
use webtwin_engine::{ClusterLayout, HashOwners, Net, Owners, run};
use webtwin_job::OverlapSettings;

/// Numbers of trivial clusters, by their number of pages.
pub(crate) type ClusterHistogram = BTreeMap<u64, u64>;

/// Clusters of a table, and the effort to find them. Times are those of the slowest worker.
#[derive(Debug, Clone, Default)]
pub(crate) struct TableClusters {
    /// Number of rows of `FPrint-DocID`.
    pub rows: u64,
    /// Clusters of pages with equal text.
    pub exact: ClusterHistogram,
    /// The clusters of `exact`, joined by similar pairs.
    pub similar: ClusterHistogram,
    /// Seconds for exact copies, for rows made and sorted, for all-pairs overlap, and for
    /// union-find.
    pub seconds: [f64; 4],
}

/// Finds the exact copies of a synthetic table, all pairs of the rest with F >= T, and the clusters
/// of both.
///
/// # Errors
/// Returns any error of [`SyntheticTable::new`] and [`similar_pairs`], and [`Error::Usage`] for
/// fingerprints of 64 bits.
pub(crate) fn of_table(params: TableParams, limits: &MeasurementLimits) -> Result<TableClusters> {
    if params.bits != 32 {
        return Err(Error::Usage("fingerprints must have 32 bits, as in the papers".into()));
    }
    let table = Arc::new(SyntheticTable::new(params)?);
    let mut overlap = webtwin_job::resolve("", "preset = \"two-line\"", &[])?.overlap;
    overlap.min_shared = params.chunking.threshold();
    let pool = pool(limits.memory_bytes, limits.workers, &limits.spill);
    let parts = run(&ClusterLayout::local(limits.workers), 0, [0; 32], move |net| {
        net.memory = pool.clone();
        run_worker(net, &table, &overlap)
    })?;
    let mut clusters = TableClusters::default();
    for part in parts {
        clusters.rows += part.rows;
        clusters.seconds = std::array::from_fn(|stage| clusters.seconds[stage].max(part.seconds[stage]));
        if !part.similar.is_empty() {
            (clusters.exact, clusters.similar) = (part.exact, part.similar);
        }
    }
    Ok(clusters)
}

fn run_worker(net: &mut Net<'_>, table: &SyntheticTable, overlap: &OverlapSettings) -> Result<TableClusters> {
    let count = table.pages() as usize;
    let page_range = table.part(net.index(), net.peers());
    let start = Instant::now();
    let wholes = page_range.clone().map(Page).map(|doc| {
        let exact = table.exact(doc);
        [(exact >> 32) as u32, exact as u32, doc.0]
    });
    let owners = HashOwners::new(net);
    let owner_of = |row: &[u32; 3]| owners.owner(u64::from(row[0]) << 32 | u64::from(row[1]));
    let mut wholes = net.exchange("FPrint-DocID-Exact", wholes, owner_of)?;
    wholes.sort_unstable();
    let mut sets = UnionFind::new(count);
    let mut copies: Vec<Page> = Vec::new();
    for group in wholes.chunk_by(|x, y| x[..2] == y[..2]) {
        for copy in &group[1..] {
            sets.union(group[0][2], copy[2]);
            copies.push(Page(copy[2]));
        }
    }
    drop(wholes);
    let exact = components(net, "exact copies", count, || sets.forest().map(Ok))?;
    // All workers need the exact copies, which take no part in pairs.
    let all_copies = net.broadcast("copies", copies)?;
    let mut copies = PageSet::new(count, |_| false);
    all_copies.iter().for_each(|&copy| copies.insert(copy));
    drop(all_copies);
    let exact_seconds = start.elapsed().as_secs_f64();

    let sources = || {
        // Small batches bound the number of rows that are made before they are sent.
        let (mut next, last) = (page_range.start, page_range.end);
        move |send: &mut dyn FnMut(FPrint, Page)| {
            let end = (next + 1500).min(last);
            table.rows(next..end, |row| send(row.fprint(), row.doc));
            next = end;
            Ok(next < last)
        }
    };
    let pages = OverlapPages { count, hosts: &[], copies: &copies };
    let rows = page_range.len() as u64 * 24;
    let similarity = similar_pairs::<Row32, _>(net, rows, sources, &pages, overlap, None, |pair| {
        sets.union(pair.a.0, pair.b.0);
    })?;
    let seconds_of = |stages: &[&str]| -> f64 {
        similarity.work.seconds.iter().filter(|stage| stages.contains(&stage.0)).map(|stage| stage.1).sum()
    };
    let sorting = seconds_of(&["exchange rows", "sort rows"]);
    let join_start = Instant::now();
    let similar_labels = components(net, "trivial clusters", count, || sets.forest().map(Ok))?;
    let seconds = [
        exact_seconds,
        sorting,
        similarity.work.seconds.iter().map(|stage| stage.1).sum::<f64>() - sorting,
        join_start.elapsed().as_secs_f64(),
    ];
    let groups_on_first =
        |labels: &SetLabels<Page>| if net.index() == 0 { groups(&labels.to_list()) } else { ClusterHistogram::new() };
    Ok(TableClusters {
        rows: similarity.work.counts.tuples,
        exact: groups_on_first(&exact),
        similar: groups_on_first(&similar_labels),
        seconds,
    })
}

fn groups(labels: &[Page]) -> ClusterHistogram {
    let mut sizes = vec![0u64; labels.len()];
    labels.iter().for_each(|&least| sizes[least] += 1);
    let mut groups = ClusterHistogram::new();
    sizes.into_iter().filter(|&size| size > 0).for_each(|size| *groups.entry(size).or_default() += 1);
    groups
}
