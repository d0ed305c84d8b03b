//! What the collections of a similar cluster are compared by, to tell identical ones.

use std::collections::BTreeMap;

use crate::clusters::identical::Content;
use crate::dataflow::reading::captures::Crawl;
use crate::engine::{Net, Owners};
use crate::error::Result;
use crate::ids::{ClusterId, Page};
use crate::overlap::SimilarPair;

/// What tells of pages: their trivial clusters, links from this worker's pages, ascending, and this worker's exact pairs.
#[derive(Clone, Copy)]
pub struct Told<'a> {
    /// The trivial cluster of every page.
    pub labels: &'a [ClusterId],
    /// Links from this worker's pages, ascending.
    pub links: &'a [(Page, Page)],
    /// (centre, copy), wherever their pages are.
    pub exact_pairs: &'a [SimilarPair],
}

/// The part of this worker in the content of each collection, by similar cluster and collection. `mine` are its own pages in
/// collections as [similar cluster, collection, page].
///
/// Two exchanges: exact pairs to the owners of copies, and links out of collections to the owners of their targets.
///
/// # Memory
/// 12 bytes an exact pair of this worker's pages, 12 a page in a collection.
pub(super) fn contents(
    net: &mut Net<'_>,
    crawl: &Crawl,
    told: Told<'_>,
    mine: &[[Page; 3]],
) -> Result<BTreeMap<[Page; 2], Content>> {
    let directory = crawl.directory.clone();
    let copies = told.exact_pairs.iter().map(|pair| [pair.b, pair.a]);
    let mut copies = net.exchange_all("copies of texts", copies, |copy| directory.owner(copy[0]))?;
    copies.sort_unstable();
    let mut places: Vec<[Page; 3]> =
        mine.iter().map(|&[similar, collection, page]| [page, similar, collection]).collect();
    places.sort_unstable();
    let place = |page: Page| {
        let at = places.partition_point(|place| place[0] < page);
        places.get(at).filter(|place| place[0] == page)
    };

    let mut contents: BTreeMap<[Page; 2], Content> = BTreeMap::new();
    for &[page, similar, collection] in &places {
        let at = copies.partition_point(|copy| copy[0] < page);
        let text = copies.get(at).filter(|copy| copy[0] == page).map_or(page, |copy| copy[1]);
        contents.entry([similar, collection]).or_default().page(told.labels[page], text);
    }
    let out_of = places.iter().flat_map(|&[page, _, collection]| {
        let from = told.links.partition_point(|link| link.0 < page);
        let of_page = told.links[from..].iter().take_while(move |link| link.0 == page);
        of_page.map(move |link| [link.1, collection, told.labels[page].smallest()])
    });
    net.exchange(
        "links of collections",
        out_of,
        |row| directory.owner(row[0]),
        |rows: &[[Page; 3]]| {
            for &[target, collection, from] in rows {
                if let Some(&[_, similar, _]) = place(target).filter(|place| place[2] == collection) {
                    let content = contents.entry([similar, collection]).or_default();
                    content.link(ClusterId::of(from), told.labels[target]);
                }
            }
            Ok(())
        },
    )?;
    Ok(contents)
}
