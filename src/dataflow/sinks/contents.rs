//! Content of collections, by which identical collections of a similar cluster are found.

use itertools::Itertools;

use super::packed_triples::{TriplePacker, each_triple};
use crate::clusters::links::WorkerLinks;
use crate::reading::captures::Crawl;
use crate::shuffle::packed::PackedRow;
use webtwin_base::error::Result;
use webtwin_base::ids::{ClusterId, Page};
use webtwin_core::clusters::identical::CollectionContent;
use webtwin_core::clusters::labels::SetLabels;
use webtwin_core::overlap::SimilarPair;
use webtwin_engine::{Net, Owners};
use webtwin_spill::SpillColumn;

/// Properties of pages that determine the content of collections.
#[derive(Clone, Copy)]
pub struct PageFacts<'a> {
    /// Trivial cluster of every page.
    pub labels: &'a SetLabels<ClusterId>,
    /// Links from this worker's pages.
    pub links: &'a WorkerLinks,
    /// (centre, copy) pairs of this worker; their pages may be owned by any worker.
    pub exact_pairs: &'a SpillColumn<SimilarPair>,
}

/// Returns this worker's part of the content of each collection that contains pages of this worker,
/// in the order of collections. `own_pages` are these pages as [similar cluster, collection, page],
/// ascending. On return they are in the order of pages, so that their data can be read in order.
///
/// Takes two exchanges: exact pairs are sent to the owners of copies, and links out of collections
/// to the owners of their targets.
///
/// # Memory
/// Takes 12 bytes for each exact pair of this worker's pages, and 4 for each of its pages.
pub(super) fn contents(
    net: &mut Net<'_>,
    crawl: &Crawl,
    facts: PageFacts<'_>,
    own_pages: &mut [[Page; 3]],
) -> Result<Vec<CollectionContent>> {
    let directory = crawl.directory.clone();
    let copies = facts.exact_pairs.rows().map_ok(|pair| [pair.b, pair.a]);
    let mut copies = net.exchange("copies of texts", copies, |copy| directory.owner(copy[0]))?;
    copies.sort_unstable();

    // Index of the first local collection of each of this worker's pages.
    let mut place = vec![u32::MAX; crawl.pages.len()];
    let (mut contents, mut collections) = (Vec::new(), Vec::new());
    for pages in own_pages.chunk_by(|x, y| x[..2] == y[..2]) {
        let mut content = CollectionContent::default();
        for &[.., page] in pages {
            let at = copies.partition_point(|copy| copy[0] < page);
            let text = copies.get(at).filter(|copy| copy[0] == page).map_or(page, |copy| copy[1]);
            content.page(facts.labels.label(page), text);
            let place = &mut place[directory.place(page)];
            *place = (*place).min(contents.len() as u32);
        }
        contents.push(content);
        collections.push(pages[0][1]);
    }
    own_pages.sort_unstable_by_key(|row| row[2]);
    let mut links = facts.links.reader();
    let mut pages = own_pages.iter();
    let mut packer = TriplePacker::new(net.peers());
    let source = |send: &mut dyn FnMut(PackedRow)| {
        let mut sent_rows = 0;
        for &[_, collection, page] in pages.by_ref() {
            let targets = links.targets(page)?;
            for &target in targets {
                let link = [target, collection, facts.labels.label(page).smallest()];
                packer.push(directory.owner(target), link).into_iter().for_each(&mut *send);
            }
            sent_rows += targets.len() + 1;
            if sent_rows >= 1 << 15 {
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
                    contents[number].link(ClusterId::from_smallest(from), facts.labels.label(target));
                }
            });
        }
        Ok(())
    };
    net.exchange_from("links of collections", source, |row| directory.owner(Page(row.first)), take)?;
    Ok(contents)
}
