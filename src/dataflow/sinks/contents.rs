//! What the collections of a similar cluster are compared by, to tell identical ones.

use itertools::Itertools;

use crate::clusters::links::Links;
use super::packed_triples::{TriplePacker, each_triple};
use crate::reading::captures::Crawl;
use crate::shuffle::packed::PackedRow;
use webtwin_base::error::Result;
use webtwin_base::ids::{ClusterId, Page};
use webtwin_core::clusters::identical::Content;
use webtwin_core::overlap::SimilarPair;
use webtwin_engine::{Net, Owners};
use webtwin_spill::Column;

/// What tells of pages: their trivial clusters, links from this worker's pages, and this worker's exact pairs.
#[derive(Clone, Copy)]
pub struct Told<'a> {
    /// The trivial cluster of every page.
    pub labels: &'a [ClusterId],
    /// Links from this worker's pages.
    pub links: &'a Links,
    /// (centre, copy), wherever their pages are.
    pub exact_pairs: &'a Column<SimilarPair>,
}

/// The part of this worker in the content of each collection that it has pages of, in the order of collections. `mine` are these
/// pages as [similar cluster, collection, page], ascending; they are left in the order of pages, by which what is known of them is read.
///
/// Two exchanges: exact pairs to the owners of copies, and links out of collections to the owners of their targets.
///
/// # Memory
/// 12 bytes an exact pair of this worker's pages, 4 for each of its pages.
pub(super) fn contents(
    net: &mut Net<'_>,
    crawl: &Crawl,
    told: Told<'_>,
    mine: &mut [[Page; 3]],
) -> Result<Vec<Content>> {
    let directory = crawl.directory.clone();
    let copies = told.exact_pairs.rows().map_ok(|pair| [pair.b, pair.a]);
    let mut copies = net.exchange("copies of texts", copies, |copy| directory.owner(copy[0]))?;
    copies.sort_unstable();

    // For each own page, the number of the first of its collections among those here.
    let mut place = vec![u32::MAX; crawl.pages.len()];
    let (mut contents, mut collections) = (Vec::new(), Vec::new());
    for pages in mine.chunk_by(|x, y| x[..2] == y[..2]) {
        let mut content = Content::default();
        for &[.., page] in pages {
            let at = copies.partition_point(|copy| copy[0] < page);
            let text = copies.get(at).filter(|copy| copy[0] == page).map_or(page, |copy| copy[1]);
            content.page(told.labels[page], text);
            let place = &mut place[directory.place(page)];
            *place = (*place).min(contents.len() as u32);
        }
        contents.push(content);
        collections.push(pages[0][1]);
    }
    mine.sort_unstable_by_key(|row| row[2]);
    let mut links = told.links.reader();
    let mut pages = mine.iter();
    let mut packer = TriplePacker::new(net.peers());
    let source = |send: &mut dyn FnMut(PackedRow)| {
        let mut sent = 0;
        while let Some(&[_, collection, page]) = pages.next() {
            let targets = links.of(page)?;
            for &target in targets {
                let link = [target, collection, told.labels[page].smallest()];
                packer.push(directory.owner(target), link).into_iter().for_each(&mut *send);
            }
            sent += targets.len() + 1;
            if sent >= 1 << 15 {
                return Ok(true);
            }
        }
        packer.finish().for_each(send);
        Ok(false)
    };
    let take = |rows: &[PackedRow]| {
        for row in rows {
            each_triple(row, |[target, collection, from]| {
                let number = place[directory.place(target)] as usize;
                if collections.get(number) == Some(&collection) {
                    contents[number].link(ClusterId::of(from), told.labels[target]);
                }
            });
        }
        Ok(())
    };
    net.exchange_from("links of collections", source, |row| directory.owner(Page(row.first)), take)?;
    Ok(contents)
}
