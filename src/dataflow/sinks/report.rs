//! Rows of collections with the URLs of their roots.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::reading::captures::Crawl;
use crate::shuffle::page_ranges::PageRanges;
use crate::sinks::avoid::JudgedClusters;
use crate::sinks::collection_rows::{CollectionRow, MemberRow};
use crate::sinks::contents::{PageFacts, contents};
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::Page;
use webtwin_core::clusters::collection::SimilarCluster;
use webtwin_core::clusters::identical::CollectionContent;
use webtwin_engine::{Net, Owners};
use webtwin_spill::SpillColumn;

/// Returns collections and members, each at the owner of its similar cluster's smallest page,
/// ascending.
///
/// There is an exchange for collections and one for members. Members are also sent to the owners of
/// their pages, which know the URLs: they compute the common prefix of the URLs of a collection and
/// its entry page. Two more exchanges compare the content of collections to find identical ones.
///
/// # Errors
/// Returns any error of the disk, and an error if the run has ended.
///
/// # Memory
/// Takes 20 bytes for each page of a collection, or the budget of the step if it is smaller. Takes
/// 32 more for each such page that the worker owns, and 4 for each page.
pub fn rows(
    net: &mut Net<'_>,
    crawl: &Crawl,
    judged_clusters: &JudgedClusters<'_>,
    facts: PageFacts<'_>,
) -> Result<(Vec<CollectionRow>, SpillColumn<MemberRow>)> {
    let directory = crawl.directory.clone();
    let mut collections = Vec::new();
    let single_clusters = || {
        judged_clusters
            .similar_clusters
            .iter()
            .zip(&judged_clusters.kept_collections)
            .filter(|(similar, _)| !similar.double)
    };
    for (similar, &kept_number) in single_clusters() {
        let id = similar.id();
        for (number, collection) in similar.collections.iter().enumerate() {
            let smallest = collection.first_page();
            let row = CollectionRow {
                similar_cluster: id,
                collection: smallest,
                cardinality: similar.collections.len() as u32,
                size: (collection.members.len() + collection.nearby.len()) as u32,
                root: collection.root,
                root_url: String::new(),
                prefix: String::new(),
                kept: number == kept_number,
                links_from_elsewhere: collection.links_from_elsewhere,
                identical_to: smallest,
            };
            collections.push(Ok((directory.owner(id.smallest()), row)));
        }
    }
    let mut collections: Vec<CollectionRow> = net.exchange_values("collections", collections)?;
    collections.sort_unstable();

    let members = single_clusters().flat_map(|(similar, _)| {
        let id = similar.id();
        similar
            .collections
            .iter()
            .flat_map(move |collection| MemberRow::from_collection(id, collection, |page| facts.labels.label(page)))
    });
    let count = |(similar, _): (&SimilarCluster, _)| {
        similar.collections.iter().map(|collection| collection.members.len() as u64).sum::<u64>()
    };
    let mut owned = PageRanges::new(net, crawl.pages.len(), single_clusters().map(count).sum(), 1);
    let smallest = |row: &MemberRow| row.similar_cluster.smallest();
    let take = |rows: &[MemberRow]| rows.iter().try_for_each(|row| owned.push(directory.place(smallest(row)), *row));
    net.exchange_into("members", members, |row| directory.owner(smallest(row)), take)?;
    let owned = owned.sorted(net, |row| *row)?;
    // Only the owners of pages know their URLs and links, so names and contents are computed there.
    let contents = name_collections(net, crawl, facts, &mut collections, &owned)?;
    let rows = collections.chunk_by_mut(|x, y| x.similar_cluster == y.similar_cluster);
    let mut contents = &contents[..];
    for rows in rows {
        let (own_contents, later_contents) = contents.split_at(rows.len());
        contents = later_contents;
        // Rows are ascending by collection, so the first collection with a content names all
        // identical ones.
        let mut firsts: BTreeMap<CollectionContent, Page> = BTreeMap::new();
        for (row, (_, content)) in rows.iter_mut().zip(own_contents) {
            row.identical_to = *firsts.entry(*content).or_insert(row.collection);
        }
    }
    Ok((collections, owned))
}

/// Sets the prefixes and entry pages of collections. `members` are their rows; both are ascending.
/// Returns the contents of the collections, by similar cluster and collection, ascending.
///
/// Each worker sends the common prefix of its own pages of a collection, so each worker sends at
/// most one URL for each collection. Attached pages do not count, because one of them in another
/// folder would widen the prefix to the whole host.
fn name_collections(
    net: &mut Net<'_>,
    crawl: &Crawl,
    facts: PageFacts<'_>,
    collections: &mut [CollectionRow],
    members: &SpillColumn<MemberRow>,
) -> Result<Vec<([Page; 2], CollectionContent)>> {
    let directory = crawl.directory.clone();
    let own_members = net.exchange("pages of collections", members.rows(), |row| directory.owner(row.page))?;
    let attached = own_members.iter().filter(|row| row.attached == 1);
    let mut attached: Vec<[Page; 2]> = attached.map(|row| [row.collection, row.page]).collect();
    attached.sort_unstable();
    let place = |row: MemberRow| [row.similar_cluster.smallest(), row.collection, row.page];
    let mut own_places: Vec<[Page; 3]> = own_members.into_iter().map(place).collect();
    own_places.sort_unstable();
    let collection_key = |pages: &[[Page; 3]]| [pages[0][0], pages[0][1]];
    let collections_here: Vec<[Page; 2]> = own_places.chunk_by(|x, y| x[..2] == y[..2]).map(collection_key).collect();
    let contents = contents(net, crawl, facts, &mut own_places)?;
    let mut names: Vec<Option<Name>> = vec![None; collections_here.len()];
    // `own_places` is now in the order of pages, so that URLs are read in order.
    let mut reader = crawl.reader();
    for &[similar_cluster, collection, page] in &own_places {
        if attached.binary_search(&[collection, page]).is_ok() {
            continue;
        }
        let url = reader.page(page)?.url();
        let at = collections_here
            .binary_search(&[similar_cluster, collection])
            .expect("all collections of these pages are there");
        match &mut names[at] {
            None => names[at] = Some(Name { prefix: url.to_string(), root: page, root_url: url.to_string() }),
            Some(name) => name.join(url, page, url),
        }
    }
    let parts =
        collections_here.iter().zip(names).zip(contents).map(|((&[similar_cluster, collection], name), content)| {
            Ok((directory.owner(similar_cluster), (similar_cluster, collection, name, content)))
        });
    let mut contents_by_collection: Vec<([Page; 2], CollectionContent)> = collections
        .iter()
        .map(|row| ([row.similar_cluster.smallest(), row.collection], CollectionContent::default()))
        .collect();
    let mut names: Vec<Option<Name>> = vec![None; contents_by_collection.len()];
    for (similar_cluster, collection, name, content) in net.exchange_values("parts of collections", parts)? {
        let at = contents_by_collection.binary_search_by_key(&[similar_cluster, collection], |of| of.0);
        let at = at.map_err(|_| Error::Invariant("a collection has pages and no row".into()))?;
        contents_by_collection[at].1 += content;
        match (&mut names[at], name) {
            (_, None) => {}
            (Some(other), Some(name)) => other.join(&name.prefix, name.root, &name.root_url),
            (none, name) => *none = name,
        }
    }
    for (row, name) in collections.iter_mut().zip(names) {
        let name = name.ok_or_else(|| Error::Invariant("a collection has attached pages only".into()))?;
        row.prefix = to_last_slash(&name.prefix).to_string();
        (row.root, row.root_url) = (name.root, name.root_url);
    }
    Ok(contents_by_collection)
}

/// Prefix and entry page of some pages of a collection.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Name {
    prefix: String,
    root: Page,
    root_url: String,
}

impl Name {
    /// Adds other pages of the collection with the given prefix and entry page.
    fn join(&mut self, prefix: &str, root: Page, root_url: &str) {
        self.prefix.truncate(in_common(&self.prefix, prefix).len());
        if (entry_rank(root_url), root) < (entry_rank(&self.root_url), self.root) {
            (self.root, self.root_url) = (root, root_url.to_string());
        }
    }
}

/// Names of pages that serve as the entry of a folder, without file extension.
const ENTRY_NAMES: [&str; 9] = ["index", "default", "home", "main", "start", "welcome", "toc", "contents", "overview"];

/// Returns the sort key by which the entry page of a collection is chosen; the smallest key wins. A
/// page in fewer folders comes first, then a page without a query, the folder itself, a page with a
/// name such as `index.html`, and a shorter URL.
fn entry_rank(url: &str) -> impl Ord + use<> {
    let path_end = url.find(['?', '#']).unwrap_or(url.len());
    let path = &url[..path_end];
    let (folder, file) = path.rsplit_once('/').unwrap_or((path, ""));
    let stem = file.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let by_name = ENTRY_NAMES.iter().position(|name| *name == stem).unwrap_or(ENTRY_NAMES.len());
    (folder.matches('/').count(), path_end < url.len(), !file.is_empty(), by_name, url.len())
}

/// Returns the longest common prefix of two URLs.
fn in_common<'u>(x: &'u str, y: &str) -> &'u str {
    let common_bytes = x.chars().zip(y.chars()).take_while(|(x, y)| x == y).map(|(x, _)| x.len_utf8()).sum();
    &x[..common_bytes]
}

/// Returns a URL, or a prefix of URLs, up to the last slash of its path. Returns it unchanged if it
/// ends before the path.
fn to_last_slash(url: &str) -> &str {
    let path = url.find(['?', '#']).unwrap_or(url.len());
    let host = url.find("://").map_or(0, |at| at + 3);
    url[host..path].rfind('/').map_or(url, |slash| &url[..=host + slash])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_of_a_collection_is_its_folder_or_an_index_page() {
        let urls = [
            "http://a.b/m/",
            "http://a.b/m/index.html",
            "http://a.b/m/toc.html",
            "http://a.b/m/x.html",
            "http://a.b/m/leaf-with-links.html",
            "http://a.b/m/?C=N",
            "http://a.b/m/part/",
        ];
        assert!(urls.windows(2).all(|urls| entry_rank(urls[0]) < entry_rank(urls[1])));
    }

    #[test]
    fn prefix_is_the_common_part_of_urls_up_to_a_slash_of_the_path() {
        for (urls, prefix) in [
            (&["http://a.b/c/d.html", "http://a.b/c/e/f"][..], "http://a.b/c/"),
            (&["http://a.b/c/d.html"], "http://a.b/c/"),
            (&["http://a.b/c?p=/x/y", "http://a.b/c?p=/x/z"], "http://a.b/"),
            (&["http://a.b/", "http://a.b/q"], "http://a.b/"),
            (&["http://a.b/\u{e9}/1", "http://a.b/\u{e8}/1"], "http://a.b/"),
            (&["http://a.b/x", "http://a.c/x"], "http://a."),
        ] {
            let common = urls.iter().copied().reduce(in_common).unwrap();
            assert_eq!(to_last_slash(common), prefix, "{urls:?}");
        }
    }
}
