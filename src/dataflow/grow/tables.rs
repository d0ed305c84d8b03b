//! Writes the tables of a graph: the tables of a run without the columns that only pages of a crawl
//! have, and the names of nodes.

use bytemuck::Pod;

use super::nodes::Nodes;
use crate::shuffle::directory::Directory;
use crate::shuffle::page_ranges::PageRanges;
use crate::sinks::collection_rows::MemberRow;
use crate::sinks::drafts::{by_page, spilled_by_page};
use crate::sinks::files::{TableMaker, put_tables};
use crate::sinks::tables::{ids, link_summary, members, u32s};
use webtwin_base::error::Result;
use webtwin_base::ids::{ClusterId, DocId, Page};
use webtwin_core::clusters::collection::SimilarCluster;
use webtwin_core::clusters::labels::SetLabels;
use webtwin_core::clusters::link_summary::LinkSummary;
use webtwin_engine::{Net, Owners};
use webtwin_job::Job;
use webtwin_spill::SpillColumn;
use webtwin_storage::manifest::FileEntry;
use webtwin_storage::output::Attempt;
use webtwin_storage::table::{Table, TableColumn as Values};
use webtwin_storage::texts::StringTable;

/// Names of the tables, ascending.
const NAMES: [&str; 5] = ["clusters", "collections", "link_summary", "members", "names"];

/// Row of `clusters`: the smallest node of a trivial cluster, and one of its nodes.
type ClusterRow = [Page; 2];

/// Row of `collections`: the smallest node of the similar cluster, the smallest node of the
/// collection, the number of collections of the similar cluster, the number of nodes of the
/// collection, and its entry node.
type CollectionRow = [u32; 5];

/// Rows of the tables in ascending order, each at the worker that owns the first node of the row.
pub(super) struct GraphTables {
    clusters: SpillColumn<ClusterRow>,
    pub(super) link_summary: SpillColumn<LinkSummary>,
    pub(super) collections: SpillColumn<CollectionRow>,
    pub(super) members: SpillColumn<MemberRow>,
}

impl GraphTables {
    /// Sends all rows to their owners. Takes four exchanges.
    ///
    /// # Errors
    /// Returns any error of the disk, and an error if the run has ended.
    ///
    /// # Memory
    /// Takes 8 bytes for each node, 24 for each row of `LinkSummary` and 20 for each node of a
    /// collection, or less if the budget of the step is smaller.
    pub(super) fn exchange(
        net: &mut Net<'_>,
        directory: &Directory,
        labels: &SetLabels<ClusterId>,
        rows: SpillColumn<LinkSummary>,
        similar: &[SimilarCluster],
    ) -> Result<GraphTables> {
        let clustered_pages = directory.owned(net.index()).filter(|&page| labels.is_joined(page));
        let page_rows = clustered_pages.map(|page| Ok([labels.label(page).smallest(), page]));
        let nodes = directory.owned(net.index()).count() as u64;
        let clusters = to_owners(net, directory, ("trivial clusters", nodes), page_rows, |row: &ClusterRow| row[0])?;

        let count = rows.len() as u64;
        let first = |row: &LinkSummary| row.src_cluster.smallest();
        let link_summary = to_owners(net, directory, ("link summary", count), rows.rows(), first)?;
        drop(rows);

        let collections = || similar.iter().flat_map(|cluster| cluster.collections.iter().map(move |of| (cluster, of)));
        let collection_messages = collections().map(|(cluster, collection)| {
            let (cardinality, size) = (cluster.collections.len() as u32, collection.members.len() as u32);
            Ok([cluster.id().smallest().0, collection.first_page().0, cardinality, size, collection.root.0])
        });
        let member_rows = collections()
            .flat_map(|(cluster, collection)| {
                MemberRow::from_collection(cluster.id(), collection, |page| labels.label(page))
            })
            .map(Ok);
        let count = collections().count() as u64;
        let first = |row: &CollectionRow| Page(row[0]);
        let collection_rows = to_owners(net, directory, ("collections", count), collection_messages, first)?;
        let count = collections().map(|(_, collection)| collection.members.len() as u64).sum();
        let first = |row: &MemberRow| row.similar_cluster.smallest();
        let members = to_owners(net, directory, ("members", count), member_rows, first)?;
        Ok(GraphTables { clusters, link_summary, collections: collection_rows, members })
    }

    /// Stages all tables. Returns the files that this worker has staged.
    ///
    /// # Errors
    /// Returns any error of the disk and of the output, and an error if the run has ended.
    pub(super) fn put(&self, net: &mut Net<'_>, job: &Job, nodes: &Nodes, attempt: &Attempt) -> Result<Vec<FileEntry>> {
        let directory = &*nodes.directory;
        let doc_ids = directory.doc_ids()?;
        let doc_ids = &doc_ids[..];
        let first = |row: &ClusterRow| row[0];
        let mut parts =
            spilled_by_page("clusters", directory, &self.clusters, first, |rows| Ok(clusters(doc_ids, rows)))?;
        let first = |row: &CollectionRow| Page(row[0]);
        let make = |rows: &[CollectionRow]| Ok(collections(doc_ids, rows));
        parts.extend(spilled_by_page("collections", directory, &self.collections, first, make)?);
        let first = |row: &LinkSummary| row.src_cluster.smallest();
        let make = |rows: &[LinkSummary]| Ok(link_summary(doc_ids, rows));
        parts.extend(spilled_by_page("link_summary", directory, &self.link_summary, first, make)?);
        let first = |row: &MemberRow| row.similar_cluster.smallest();
        parts.extend(spilled_by_page("members", directory, &self.members, first, |rows| Ok(members(doc_ids, rows)))?);
        parts.extend(by_page("names", directory, &nodes.named_pages, |&page| page, |rows| names(nodes, doc_ids, rows)));
        let empty = |name: &str| {
            Ok(match name {
                "clusters" => clusters(&[], &[]),
                "collections" => collections(&[], &[]),
                "link_summary" => link_summary(&[], &[]),
                "members" => members(&[], &[]),
                _ => names(nodes, &[], &[])?,
            })
        };
        let making = TableMaker::by(net, job, &NAMES, &empty)?;
        put_tables(net, attempt, parts, making)
    }
}

/// Sends about `count` rows to the owners of the nodes that they begin with.
fn to_owners<Row: Pod + Ord>(
    net: &mut Net<'_>,
    directory: &Directory,
    (name, count): (&'static str, u64),
    rows: impl Iterator<Item = Result<Row>>,
    first: impl Fn(&Row) -> Page,
) -> Result<SpillColumn<Row>> {
    let mut owned = PageRanges::new(net, directory.owned(net.index()).count(), count, 1);
    let take = |rows: &[Row]| rows.iter().try_for_each(|row| owned.push(directory.place(first(row)), *row));
    net.exchange_into(name, rows, |row| directory.owner(first(row)), take)?;
    owned.sorted(net, |row| *row)
}

fn clusters(doc_ids: &[DocId], rows: &[ClusterRow]) -> Table {
    Table::new([("cluster", ids(doc_ids, rows, |row| row[0])), ("doc_id", ids(doc_ids, rows, |row| row[1]))])
}

fn collections(doc_ids: &[DocId], rows: &[CollectionRow]) -> Table {
    Table::new([
        ("similar_cluster", ids(doc_ids, rows, |row| Page(row[0]))),
        ("collection", ids(doc_ids, rows, |row| Page(row[1]))),
        ("cardinality", u32s(rows, |row| row[2])),
        ("size", u32s(rows, |row| row[3])),
        ("root", ids(doc_ids, rows, |row| Page(row[4]))),
    ])
}

/// Returns the names of `rows`, which are consecutive named nodes of this worker.
fn names(nodes: &Nodes, doc_ids: &[DocId], rows: &[Page]) -> Result<Table> {
    let first_name = nodes.named_pages.partition_point(|page| rows.first().is_some_and(|first| page < first));
    let mut names = StringTable::new();
    for name in nodes.names.read(first_name..first_name + rows.len()) {
        names.push(&name?);
    }
    Ok(Table::new([("doc_id", ids(doc_ids, rows, |&page| page)), ("name", Values::Text(names))]))
}
