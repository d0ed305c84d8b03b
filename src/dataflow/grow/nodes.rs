//! Reads the nodes of a graph, which are named by TRIVIAL and ordered by id, and the links between
//! them.
//!
//! A node is named by a number below 2^64, which is its id, or by any other text, whose hash is its
//! id. URLs are canonicalized first, so that pages have the doc ids that they have in a run.

use std::sync::Arc;

use itertools::Itertools;
use xxhash_rust::xxh3::xxh3_64;

use super::{DST, LABEL, NODE, SRC};
use crate::clusters::links::WorkerLinks;
use crate::pairs::exact::fold;
use crate::reading::foreign_rows::{OwnParts, RowCounts};
use crate::shuffle::components::components;
use crate::shuffle::directory::{Directory, TablePartitions};
use crate::shuffle::page_ranges::PageRanges;
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::{ClusterId, DocId, HostId, Number, Page, doc_id};
use webtwin_core::clusters::labels::SetLabels;
use webtwin_engine::{Net, Owners};
use webtwin_pages::url::CanonicalUrl;
use webtwin_spill::{Array, Sorter, SpillColumn, SpillRows};

/// Nodes of a graph, with their names.
pub(super) struct Nodes {
    /// Ids and hosts of all nodes. Each node has a host of its own.
    pub(super) directory: Arc<Directory>,
    /// Nodes of this worker whose names are not their ids, ascending.
    pub(super) named_pages: Vec<Page>,
    /// Names of the nodes in `named_pages`.
    pub(super) names: SpillRows<String>,
}

impl Nodes {
    /// Reads TRIVIAL. Returns its nodes, and the trivial cluster of each node. Labels with a common
    /// node are one cluster.
    ///
    /// # Errors
    /// Returns any error of the tables and of the disk. Returns [`Error::Input`] if two names have
    /// the same id, and [`Error::TooManyRows`] if there are 2^32 nodes. Also fails if the run has
    /// ended.
    pub(super) fn gather(
        net: &mut Net<'_>,
        partitions: TablePartitions,
        trivial: OwnParts<'_>,
    ) -> Result<(Nodes, Arc<SetLabels<ClusterId>>, RowCounts)> {
        let (mut counts, mut sorter) = (RowCounts::default(), Sorter::new(&net.memory));
        let rows = trivial.rows([LABEL, NODE], |[label, node]| Some((xxh3_64(label?.as_bytes()), id_and_name(node?))));
        let rows = rows
            .filter_map_ok(|row| counts.understood(row))
            .map_ok(|(label, (id, name))| (partitions.owner(id), (id, name, label)));
        net.exchange_values_into("TRIVIAL", rows, |row| sorter.push(row))?;

        let (mut ids, mut named_places, mut names) = (Vec::new(), Vec::new(), SpillRows::new(&net.memory));
        let mut labels = SpillColumn::new(&net.memory);
        let mut previous: Option<(DocId, String, u64)> = None;
        // Rows are sorted by node, so equal nodes are neighbours, with equal rows next to each
        // other.
        for row in sorter.finish()?.rows() {
            let row = row?;
            let (id, name, label) = &*row;
            match &previous {
                Some((same, other, _)) if same == id && other != name => return Err(collision([other, name], *id)),
                Some((last_id, _, last_label)) if last_id == id && last_label == label => {
                    counts.duplicates += 1;
                    continue;
                }
                Some((same, ..)) if same == id => {}
                _ => {
                    if !name.is_empty() {
                        named_places.push(ids.len());
                        names.push(name)?;
                    }
                    ids.push(*id);
                }
            }
            labels.push([*label, ids.len() as u64 - 1])?;
            previous = Some(row.into_owned());
        }
        let ids = net.broadcast("ids of nodes", ids)?;
        if u32::try_from(ids.len()).is_err() {
            let (node_count, allowed) = (ids.len() as u64, u64::from(u32::MAX));
            return Err(Error::TooManyRows { what: "nodes of a graph".into(), found: node_count, allowed });
        }
        let directory = net.once_per_process(|| directory(&ids, partitions))?;
        drop(ids);

        let own_pages: Vec<Page> = directory.owned(net.index()).collect();
        // Each label becomes a star of its nodes, which keeps the number of edges below the number
        // of rows.
        let labelled = labels.rows().map_ok(|[label, place]| (label, own_pages[place as usize]));
        let stars = fold(net, labelled, labels.len() as u64)?;
        let edges = || stars.rows().map_ok(|pair| (pair.a, pair.b));
        let clusters = components(net, "trivial clusters", directory.len(), edges)?;
        let named_pages = named_places.into_iter().map(|place| own_pages[place]).collect();
        Ok((Nodes { directory, named_pages, names }, clusters, counts.of_all(net)?))
    }

    /// Reads LINK. Each link is sent to the worker that owns its source node.
    ///
    /// # Errors
    /// Returns any error of the tables and of the disk. Returns [`Error::TooManyRows`] if the nodes
    /// of a worker have 2^32 links. Also fails if the run has ended.
    pub(super) fn links(&self, net: &mut Net<'_>, links: OwnParts<'_>) -> Result<(WorkerLinks, RowCounts)> {
        let (directory, mut counts, mut count) = (&*self.directory, RowCounts::default(), 0);
        let mut link_ranges = PageRanges::new(net, directory.owned(net.index()).count(), links.expected_rows(), 1);
        let ids = directory.by_doc_id()?;
        let rows = links.rows([SRC, DST], |[src, dst]| Some([id_and_name(src?).0, id_and_name(dst?).0]));
        let rows = rows.filter_map_ok(|row| {
            let [src, dst] = counts.understood(row)?;
            if src == dst {
                counts.self_pairs += 1;
                return None;
            }
            let ends = ids.page(src).zip(ids.page(dst));
            counts.unknown += u64::from(ends.is_none());
            ends.map(<[Page; 2]>::from)
        });
        net.exchange_into(
            "LINK",
            rows,
            |link| directory.owner(link[0]),
            |links: &[[Page; 2]]| {
                count += links.len();
                let by_place = |&[src, dst]: &[Page; 2]| {
                    let place = directory.place(src);
                    link_ranges.push(place, [Page::from_index(place), dst])
                };
                links.iter().try_for_each(by_place)
            },
        )?;
        drop(ids);
        let links =
            WorkerLinks::of_page_ranges(net, Arc::clone(&self.directory), link_ranges, Array::new(&net.memory))?;
        counts.duplicates = (count - links.len()) as u64;
        Ok((links, counts.of_all(net)?))
    }
}

/// Returns the directory of all nodes. `ids` may be in any order.
fn directory(ids: &[DocId], partitions: TablePartitions) -> Directory {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    let hosts = (0..ids.len()).map(HostId::from_index).collect();
    Directory::new(ids, hosts, partitions)
}

/// Returns the id of a node and its name. The name is empty if it is the id itself.
fn id_and_name(field: String) -> (DocId, String) {
    if let Ok(id) = field.parse() {
        return (id, String::new());
    }
    let name = match CanonicalUrl::parse(&field) {
        Ok(url) => url.as_str().into(),
        Err(_) => field,
    };
    (doc_id(&name), name)
}

fn collision(names: [&String; 2], id: DocId) -> Error {
    let [first, other] = names.map(|name| if name.is_empty() { id.to_string() } else { name.clone() });
    Error::input(format!("{first}, {other}"), format!("both nodes have the id {id}; rename one of them"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_a_number_a_url_in_any_spelling_or_any_text() {
        let id_and_text = |field: &str| id_and_name(field.to_string());
        let id_of = |name: &str| (doc_id(name), name.to_string());
        assert_eq!(
            [id_and_text("7"), id_and_text("007"), id_and_text("18446744073709551615")],
            [7, 7, u64::MAX].map(|id| (id, String::new()))
        );
        assert_eq!(id_and_text("HTTP://a.example:80/x#top"), id_of("http://a.example/x"));
        assert_eq!(
            ["18446744073709551616", "-1", "1.0", "Ada Lovelace"].map(id_and_text),
            ["18446744073709551616", "-1", "1.0", "Ada Lovelace"].map(id_of)
        );
    }
}
