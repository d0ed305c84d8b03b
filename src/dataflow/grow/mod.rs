//! Runs the `grow` job on one worker: finds similar clusters in any graph whose similar nodes are
//! known (\[CSG00\] section 6).
//!
//! The graph is given as the two tables of \[CSG00\] section 3.2: TRIVIAL(label, node) is read from
//! `pairs.from`, and LINK(src, dst) from `input.urls`. The steps after reading are those of the
//! main job. A graph has no hosts, so each node is assigned a host of its own: any nodes may form a
//! collection, and growth starts at the trivial clusters with the most nodes.
//!
//! # Memory
//! Takes 20 bytes for each node in each process, and 24 more while clusters grow. Names, labels and
//! links spill.

mod nodes;
mod tables;

use serde::{Deserialize, Serialize};

use self::nodes::Nodes;
use self::tables::GraphTables;
use crate::clusters::grown::{GROWTH, edges_of};
use crate::clusters::link_summary::of_clusters;
use crate::clusters::trivial::TrivialClusters;
use crate::clusters::{growth, links};
use crate::reading::foreign_rows::{OwnParts, RowCounts};
use crate::shuffle::directory::TablePartitions;
use crate::shuffle::memory::{agree, for_each_page, remaining_budget};
use crate::sinks::stage::{StagedFiles, attempt, commit, or_discard, put_summary};
use webtwin_base::error::{Error, Result};
use webtwin_base::progress::StageTimes;
use webtwin_engine::Net;
use webtwin_job::{Job, JobDigest};
use webtwin_pages::foreign_table::ForeignTable;
use webtwin_results::foreign;
use webtwin_storage::location::Location;

/// Accepted names of the columns of TRIVIAL.
const LABEL: &[&str] = &["label", "cluster", "rid"];
const NODE: &[&str] = &["node", "page", "pid", "doc_id", "url"];
/// Accepted names of the columns of LINK.
const SRC: &[&str] = &["src"];
const DST: &[&str] = &["dst"];

/// Content of `summary.json` of the job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrowSummary {
    /// Digest of the job.
    pub digest: String,
    /// Counts of the rows of TRIVIAL.
    pub trivial: RowCounts,
    /// Counts of the rows of LINK. A row with an end that is not in TRIVIAL is unknown.
    pub links: RowCounts,
    /// Number of nodes.
    pub nodes: u64,
    /// Trivial clusters of two or more nodes.
    pub trivial_clusters: u64,
    /// Rows of `LinkSummary`.
    pub link_summary: u64,
    /// Rows of `LinkSummary` that meet the merge condition.
    pub merging: u64,
    /// Number of similar clusters.
    pub similar_clusters: u64,
    /// Collections in all similar clusters.
    pub collections: u64,
    /// Nodes in all collections.
    pub members: u64,
    /// Nodes that were removed from collections because they failed Definition 5.
    pub taken_out: u64,
}

/// Runs the job. Every worker returns the same summary after the result is committed.
///
/// # Errors
/// Returns any [`Error`], the same on all workers; no result exists then.
pub fn run(net: &mut Net<'_>, job: &Job, folder: &Location) -> Result<GrowSummary> {
    let mut stage_times = StageTimes::start();
    net.memory = remaining_budget(net, 0, &job.effort);
    let partitions = TablePartitions::new(job.output.partitions, net.peers());
    let tables = net.once_per_process(|| open(job))?;
    let [trivial, links] = tables.as_ref().as_ref().map_err(Error::clone)?;
    let [trivial, links] = [trivial, links].map(|all| OwnParts::new(net, all.iter().collect(), &job.input.limits));
    let (nodes, labels, trivial) = Nodes::gather(net, partitions, trivial)?;
    let (links, link_counts) = nodes.links(net, links)?;
    stage_times.end_stage("1 read");

    let (directory, settings) = (&nodes.directory, &job.clusters);
    // Bytes of this worker's own nodes and links; growth cannot spill its bytes for each node.
    let held_bytes = 12 * directory.owned(net.index()).count() + 4 * links.len();
    agree(net, held_bytes as u64, for_each_page(net, GROWTH.bytes_a_page, directory.len()), &job.effort)?;
    let clusters = TrivialClusters::new(net, labels)?;
    let labels = &clusters.labels;
    let incoming_links = links::count_incoming(net, &links)?;
    let (rows, _) = of_clusters(net, &links, &directory.hosts, &clusters, None, settings)?;
    let edges = edges_of(&rows, settings.merge)?;
    let merging = edges.len() as u64;
    let similar = growth::similar_clusters(net, directory, labels, &links, &incoming_links, edges, settings)?;
    drop((links, incoming_links));
    let tables = GraphTables::exchange(net, directory, labels, rows, &similar)?;
    let local = [
        tables.link_summary.len() as u64,
        merging,
        similar.len() as u64,
        tables.collections.len() as u64,
        tables.members.len() as u64,
        similar.iter().map(|cluster| u64::from(cluster.taken_out)).sum(),
    ];
    let [link_summary, merging, similar_clusters, collections, members, removed_pages] =
        net.all_sum("summary", local)?;
    let summary = GrowSummary {
        digest: JobDigest::from_job(job).hex(),
        trivial,
        links: link_counts,
        nodes: directory.len() as u64,
        trivial_clusters: clusters.sizes.iter().filter(|&size| size > 1).count() as u64,
        link_summary,
        merging,
        similar_clusters,
        collections,
        members,
        taken_out: removed_pages,
    };
    stage_times.end_stage("2 grow");

    // From here on a failure must discard the files that have been staged.
    let attempt = attempt(net, folder)?;
    let files = or_discard(net, &attempt, |net| {
        let parts = tables.put(net, job, &nodes, &attempt)?;
        put_summary(net, &attempt, parts, &serde_json::to_string_pretty(&summary).expect("plain values"))
    })?;
    stage_times.end_stage("3 write");
    let counts = [
        ("nodes", summary.nodes),
        ("links", summary.links.used),
        ("trivial_clusters", summary.trivial_clusters),
        ("similar_clusters", summary.similar_clusters),
        ("collections", summary.collections),
    ];
    commit(net, job, &counts, &[("doc_id", "xxh3-64-v1".into())], stage_times, StagedFiles::new(attempt, files))?;
    Ok(summary)
}

/// Opens the tables of TRIVIAL and of LINK.
fn open(job: &Job) -> Result<[Vec<ForeignTable>; 2]> {
    let trivial = tables_with(job, &job.pairs.from, "clusters", [LABEL, NODE])?;
    Ok([trivial, tables_with(job, &job.input.urls, "links", [SRC, DST])?])
}

/// Opens tables that have a column of each of the two kinds. `run_table` is the name of the table
/// to read if a name in `names` is a run.
fn tables_with(job: &Job, names: &[String], run_table: &str, kinds: [&[&str]; 2]) -> Result<Vec<ForeignTable>> {
    let tables = foreign::tables(names, run_table, &job.input.limits)?;
    for table in &tables {
        if let Some(kind) = kinds.iter().find(|kind| !table.has(kind)) {
            let reason = format!("has no column {}; its columns are {}", kind.join(" or "), table.columns.join(", "));
            return Err(Error::input(table.location.name(), reason));
        }
    }
    Ok(tables)
}
