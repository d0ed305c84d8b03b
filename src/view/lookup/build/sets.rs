//! Columns of trivial clusters and collections: lists of their pages, and the fields that they set
//! in page rows.

use super::staged::StagedIndex;
use super::{Making, lists};
use crate::lookup::rows::{IndexedCollectionRow, ListedCluster};
use webtwin_base::error::{Error, Result};
use webtwin_spill::Partitions;
use webtwin_storage::table::Table;

/// Field of a page row: number of the cluster.
pub(super) const CLUSTER: u32 = 0;
/// Field of a page row: role in the cluster.
pub(super) const ROLE: u32 = 1;
/// Field of a page row: number of the collection.
pub(super) const COLLECTION: u32 = 2;

/// Rank of a page, field and value; partitioned by range of doc ids.
pub(super) type StagedFacts = Partitions<[u32; 3]>;

/// Output that later steps need.
pub(super) struct BuiltSets {
    /// Fields that clusters and collections set in page rows.
    pub facts: StagedFacts,
    /// Place of each cluster in the list of clusters.
    pub places: Vec<u32>,
    /// Roots of collections with the place of their similar cluster in the list of those;
    /// ascending.
    pub roots: Vec<(u32, u32)>,
    /// Collections by number.
    #[cfg_attr(not(feature = "search"), allow(dead_code))]
    pub collections: Vec<IndexedCollectionRow>,
}

/// Distinct values of text columns; a row has the index of a value.
#[derive(Debug, Default)]
pub(super) struct WordNumbers {
    pub words: Vec<String>,
}

impl WordNumbers {
    /// Returns the index of a value, and adds the value if it is new.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if there are more values than a byte can index.
    pub(super) fn number(&mut self, word: &str) -> Result<u8> {
        let position = self.words.iter().position(|known| known == word).unwrap_or_else(|| {
            self.words.push(word.into());
            self.words.len() - 1
        });
        u8::try_from(position).map_err(|_| {
            Error::input(
                "tables of the result",
                "they have more than 256 different roles and reasons; name a result that webtwin wrote",
            )
        })
    }
}

/// Writes clusters and collections.
pub(super) fn write(making: &Making<'_>, words: &mut WordNumbers, index_files: &mut StagedIndex) -> Result<BuiltSets> {
    // Index 0 is the role and the reason of a page that has none.
    words.number("")?;
    let mut facts = Partitions::new(making.ranges.count(), &making.pool.part(2));
    let places = clusters(making, words, &mut facts, index_files)?;
    let collections = collections(making, &mut facts, index_files)?;
    let roots = lists::originals(&collections, index_files)?;
    Ok(BuiltSets { facts, places, roots, collections })
}

fn add_fact(making: &Making<'_>, facts: &mut StagedFacts, page: u64, fact_kind: u32, value: u32) -> Result<u32> {
    let rank = making.rank(page)?;
    facts.push(making.ranges.range(page), [rank, fact_kind, value]).map(|()| rank)
}

/// Writes the clusters and the list of clusters. Returns the place of each cluster in the list.
fn clusters(
    making: &Making<'_>,
    words: &mut WordNumbers,
    facts: &mut StagedFacts,
    index_files: &mut StagedIndex,
) -> Result<Vec<u32>> {
    let mut sizes: Vec<(ListedCluster, u32)> = Vec::new();
    let (mut starts, mut pages) =
        (index_files.column::<u64>("clusters")?, index_files.column::<u32>("clusters.pages")?);
    let mut open = None;
    if let Some(table) = making.table("clusters", "cluster")? {
        for range in 0..making.ranges.count() {
            let rows = table.read(range, &["cluster", "doc_id", "role"])?;
            let roles = rows.text("role")?;
            for ((&cluster, &page), role) in rows.u64("cluster")?.iter().zip(rows.u64("doc_id")?).zip(roles) {
                if open != Some(cluster) {
                    starts.push(pages.rows())?;
                    open = Some(cluster);
                }
                let number = starts.rows() as u32 - 1;
                let rank = add_fact(making, facts, page, CLUSTER, number)?;
                pages.push(rank)?;
                if sizes.len() <= number as usize {
                    sizes.push((ListedCluster { cluster: number, shown: rank }, 0));
                }
                let (list_size, count) = &mut sizes[number as usize];
                *count += 1;
                if role == "keep" {
                    list_size.shown = rank;
                }
                add_fact(making, facts, page, ROLE, u32::from(words.number(role)?))?;
            }
        }
    }
    starts.push(pages.rows())?;
    index_files.add("clusters", starts)?;
    index_files.add("clusters.pages", pages)?;
    lists::clusters(sizes, index_files)
}

/// Borrows a column of ids.
fn ids<'t>(table: &'t Table, name: &str) -> Result<&'t [u64]> {
    table.u64(name)
}

fn collections(
    making: &Making<'_>,
    facts: &mut StagedFacts,
    index_files: &mut StagedIndex,
) -> Result<Vec<IndexedCollectionRow>> {
    let (mut rows_of_all, mut pages) = (Vec::new(), index_files.column::<u32>("collections.pages")?);
    // Both tables are read in the same ranges of similar clusters, so members are at hand in each
    // range.
    let tables = making.table("collections", "similar_cluster")?.zip(making.table("members", "similar_cluster")?);
    for range in 0..tables.as_ref().map_or(0, |_| making.ranges.count()) {
        let (collections, members) = tables.as_ref().expect("there are ranges of both");
        let rows =
            collections.read(range, &["similar_cluster", "collection", "cardinality", "size", "root", "keep"])?;
        let members = members.read(range, &["similar_cluster", "collection", "doc_id"])?;
        let member_rows =
            ids(&members, "similar_cluster")?.iter().zip(ids(&members, "collection")?).zip(ids(&members, "doc_id")?);
        let mut member_rows: Vec<(u64, u64, u64)> =
            member_rows.map(|((&similar, &collection), &page)| (similar, collection, page)).collect();
        member_rows.sort_unstable();
        let mut order: Vec<usize> = (0..rows.rows()).collect();
        let (clusters, collection_ids) = (ids(&rows, "similar_cluster")?, ids(&rows, "collection")?);
        // Collections ascend by similar cluster, so that `Index::mirrors` can search them.
        order.sort_unstable_by_key(|&row| (clusters[row], collection_ids[row]));
        let (cardinality, size) = (rows.u32("cardinality")?, rows.u32("size")?);
        let (root, keep) = (ids(&rows, "root")?, rows.bool("keep")?);
        for row in order {
            let (similar_cluster, id) = (clusters[row], collection_ids[row]);
            let number = rows_of_all.len() as u32;
            rows_of_all.push(IndexedCollectionRow {
                id,
                similar_cluster,
                start: pages.rows(),
                root: making.rank(root[row])?,
                cardinality: cardinality[row],
                size: size[row],
                keep: u32::from(keep[row]),
            });
            let first = member_rows.partition_point(|one| (one.0, one.1) < (similar_cluster, id));
            for &(.., page) in member_rows[first..].iter().take_while(|one| (one.0, one.1) == (similar_cluster, id)) {
                pages.push(add_fact(making, facts, page, COLLECTION, number)?)?;
            }
        }
    }
    let mut column = index_files.column::<IndexedCollectionRow>("collections")?;
    column.extend(&rows_of_all)?;
    index_files.add("collections", column)?;
    index_files.add("collections.pages", pages)?;
    Ok(rows_of_all)
}
