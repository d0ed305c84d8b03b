//! Benchmark from links to collections: `LinkSummary` and growth.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use super::super::made::link_graph::LinkGraph;
use super::super::measure::{forget_peak_memory, processor_seconds, seconds};
use super::super::table_overlap::pool;
use super::super::{FigureRow, Options, figure, row_against_published};
use super::{of_the_machine, scaled};
use webtwin_base::build_info::peak_memory_bytes;
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::{ClusterId, Page};
use webtwin_core::clusters::labels::{SetLabels, SetSizes};
use webtwin_core::clusters::merge::may_merge;
use webtwin_dataflow::clusters::links::{self, WorkerLinks};
use webtwin_dataflow::clusters::trivial::TrivialClusters;
use webtwin_dataflow::clusters::{growth, link_summary, tolerant};
use webtwin_dataflow::shuffle::directory::{Directory, TablePartitions};
use webtwin_engine::{ClusterLayout, Net, run as run_on};
use webtwin_job::{ClusterSettings, Job, MergeCondition};

/// Number of bytes that a process needs for any number of pages.
const FIXED_BYTES: u64 = 256 << 20;

/// Part of the 4 GiB, in GiB, for links and edges on their way to the owners of clusters and
/// components. The rest is for data that cannot be spilled, 40 bytes per page and 4 per link.
const PARTITION_GIB: f64 = 1.25;

const GIB: f64 = (1u64 << 30) as f64;

/// Data that all workers share.
struct Web {
    directory: Arc<Directory>,
    trivial: TrivialClusters,
}

/// Measurements of one worker.
#[derive(Default)]
struct Done {
    links: u64,
    making: f64,
    stages: Vec<(&'static str, f64)>,
    summary_rows: u64,
    merging: u64,
    clusters: u64,
    collections: u64,
    pages: u64,
    taken_out: u64,
}

/// Measures growth under the extended condition of the papers.
pub(super) fn run(options: &Options) -> Result<Vec<FigureRow>> {
    run_under(MergeCondition::Extended, options)
}

/// Measures growth under the tolerant condition.
pub(super) fn tolerant(options: &Options) -> Result<Vec<FigureRow>> {
    run_under(MergeCondition::Tolerant, options)
}

fn run_under(merge: MergeCondition, options: &Options) -> Result<Vec<FigureRow>> {
    let pages = u32::try_from(options.scale)
        .map_err(|_| Error::Usage(format!("--scale {}: at most {}", options.scale, u32::MAX)))?;
    let settings = ClusterSettings { merge, ..Job::default().clusters };
    let graph = Arc::new(LinkGraph::new(pages, 1));
    let (making, web) = seconds(|| Arc::new(Web::of(&graph, options.workers)));
    let allowed_bytes = FIXED_BYTES as f64 + scaled(options.scale, 4.0 * GIB - FIXED_BYTES as f64);
    let memory_bytes = scaled(options.scale, PARTITION_GIB * GIB) as u64;
    let pool = pool(memory_bytes, options.workers, &options.work);
    let truth = Planted::of(&graph);
    // The peak must not include memory that only the making of the graph needed.
    forget_peak_memory();
    let cpu_before = processor_seconds();
    let parts = run_on(&ClusterLayout::local(options.workers), 0, [0; 32], move |net| {
        net.memory = pool.clone();
        run_worker(net, &graph, &web, &settings)
    })?;
    let (peak, cpu_seconds) = (peak_memory_bytes(), of_the_machine(cpu_before, options.workers));

    let sum = |of: fn(&Done) -> u64| parts.iter().map(of).sum::<u64>() as f64;
    let slowest_part = |stage: usize| parts.iter().map(|part| part.stages[stage].1).fold(0.0, f64::max);
    let stages: Vec<(&str, f64)> =
        (0..parts[0].stages.len()).map(|at| (parts[0].stages[at].0, slowest_part(at))).collect();
    let total_seconds: f64 = stages.iter().map(|stage| stage.1).sum();
    let mut rows = vec![
        row_against_published("LinkSummary and growth", total_seconds, scaled(options.scale, 20.0 * 3600.0), "s")
            .at_most(scaled(options.scale, 60.0)),
    ];
    rows.extend(stages.into_iter().map(|(stage, seconds)| figure(&format!("  {stage}"), seconds, "s")));
    let making = making + parts.iter().map(|part| part.making).fold(0.0, f64::max);
    rows.extend([
        figure("the making of pages and links, not in the above", making, "s"),
        figure("workers", options.workers as f64, "threads"),
        figure("links", sum(|part| part.links) / 1e6, "million"),
        figure("rows of LinkSummary", sum(|part| part.summary_rows) / 1e6, "million"),
        figure("edges of the TCG, or links along them", sum(|part| part.merging) / 1e6, "million"),
        figure("similar clusters", sum(|part| part.clusters), "clusters"),
        figure("  planted", truth.clusters as f64, "clusters"),
        figure("collections", sum(|part| part.collections), "collections"),
        figure("  planted", truth.collections as f64, "collections"),
        figure("pages in collections", sum(|part| part.pages), "pages"),
        figure("  planted", truth.pages as f64, "pages"),
        figure("pages taken out by Definition 5, or ours", sum(|part| part.taken_out), "pages"),
        figure("peak memory", peak as f64 / 1e6, "MB").at_most(allowed_bytes / 1e6),
    ]);
    rows.extend(cpu_seconds);
    Ok(rows)
}

/// Runs the job on one worker: makes its links, and continues from them to similar clusters.
fn run_worker(net: &mut Net<'_>, graph: &LinkGraph, web: &Web, settings: &ClusterSettings) -> Result<Done> {
    let make_start = Instant::now();
    let out_links = WorkerLinks::new(net, Arc::clone(&web.directory), |page, targets| graph.links(page, targets))?;
    let mut outcome =
        Done { links: out_links.len() as u64, making: make_start.elapsed().as_secs_f64(), ..Done::default() };
    // All workers must begin the timed part together.
    net.all_gather("links made", ())?;
    let mut stage_start = Instant::now();
    let mut stages = Vec::new();
    let mut stage = |name| {
        stages.push((name, stage_start.elapsed().as_secs_f64()));
        stage_start = Instant::now();
    };
    let Web { directory, trivial } = web;
    let labels = &trivial.labels;
    let from_elsewhere = links::count_incoming(net, &out_links)?;
    stage("links from elsewhere");

    let (rows, merging) = link_summary::of_clusters(net, &out_links, &directory.hosts, trivial, None, settings)?;
    outcome.summary_rows = rows.len() as u64;
    let edges: Vec<(ClusterId, ClusterId)> = match settings.merge {
        MergeCondition::Tolerant => Vec::new(),
        merge => {
            let rows = rows.all_rows()?;
            rows.iter().filter(|row| may_merge(row, merge)).map(|row| (row.src_cluster, row.dst_cluster)).collect()
        }
    };
    drop(rows);
    outcome.merging = edges.len() as u64;
    for block in merging.blocks() {
        outcome.merging += block?.len() as u64;
    }
    stage("LinkSummary");

    let mut clusters = match settings.merge {
        MergeCondition::Tolerant => {
            tolerant::similar_clusters(net, directory, labels, merging, &out_links, &from_elsewhere, settings)?
        }
        MergeCondition::Exact | MergeCondition::Extended => {
            growth::similar_clusters(net, directory, labels, &out_links, &from_elsewhere, edges, settings)?
        }
    };
    stage("growth");
    clusters.retain(|cluster| !cluster.double);
    outcome.clusters = clusters.len() as u64;
    outcome.collections = clusters.iter().map(|cluster| cluster.collections.len() as u64).sum();
    outcome.pages =
        clusters.iter().flat_map(|cluster| &cluster.collections).map(|found| found.members.len() as u64).sum();
    outcome.taken_out = clusters.iter().map(|cluster| u64::from(cluster.taken_out)).sum();
    outcome.stages = stages;
    Ok(outcome)
}

/// Returns the trivial cluster of every page of a graph, named by its smallest page.
pub(super) fn labels(graph: &LinkGraph) -> Vec<ClusterId> {
    let count = graph.pages() as usize;
    let mut smallest = vec![Page::NONE; count];
    Page::first(count)
        .map(|page| {
            let smallest = &mut smallest[graph.trivial_cluster(page) as usize];
            *smallest = page.min(*smallest);
            ClusterId::from_smallest(*smallest)
        })
        .collect()
}

impl Web {
    /// Makes the directory and the trivial clusters of a graph. Clusters are named by their
    /// smallest pages.
    fn of(graph: &LinkGraph, workers: usize) -> Web {
        let partitions = TablePartitions::new(Job::default().output.partitions, workers);
        let count = graph.pages() as usize;
        let directory =
            Arc::new(Directory::even(Page::first(count).map(|page| graph.host(page)).collect(), partitions));
        let labels = SetLabels::from_list(&labels(graph));
        let trivial = TrivialClusters { sizes: Arc::new(SetSizes::count(&labels)), labels: Arc::new(labels) };
        Web { directory, trivial }
    }
}

/// Truth about a graph.
#[derive(Default)]
struct Planted {
    clusters: usize,
    collections: usize,
    pages: usize,
}

impl Planted {
    fn of(graph: &LinkGraph) -> Planted {
        let mut counts = Planted::default();
        let (mut clusters, mut collections) = (BTreeSet::new(), BTreeSet::new());
        for page in Page::first(graph.pages() as usize).filter(|&page| graph.cardinality(page) > 1) {
            counts.pages += 1;
            clusters.insert(graph.similar_cluster(page));
            collections.insert(graph.host(page));
        }
        Planted { clusters: clusters.len(), collections: collections.len(), ..counts }
    }
}
