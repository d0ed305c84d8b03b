//! Newest capture wins: every canonical URL becomes one page with a rank.
//!
//! Two exchanges: captures to the owner of their doc id, ranks of those that are kept back to the shelf; then the directory
//! is shared.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::dataflow::reading::worker_pages::{Capture, NOT_KEPT, Rejection, WorkerPages};
use crate::dataflow::shuffle::directory::{Directory, Entry, Partitions};
use crate::engine::{HashOwners, Net, Owners};
use crate::error::Result;
use crate::ids::Rank;
use crate::pages::record::Reason;

/// The pages of the run, settled.
#[derive(Debug)]
pub struct Crawl {
    /// All pages by rank.
    pub directory: Arc<Directory>,
    /// Rows of the pages that this worker owns, ascending by rank.
    pub pages: Vec<(Rank, Capture)>,
    /// Records that were read twice, because a work item began inside another's record.
    pub overlapping: u64,
}

impl Crawl {
    /// The row of a page that this worker owns.
    pub fn page(&self, rank: Rank) -> &Capture {
        let at = self.pages.partition_point(|(other, _)| *other < rank);
        &self.pages[at].1
    }

    /// The same, to be changed.
    pub fn page_mut(&mut self, rank: Rank) -> &mut Capture {
        let at = self.pages.partition_point(|(other, _)| *other < rank);
        &mut self.pages[at].1
    }
}

/// Settles the captures on all shelves. `floors[item]` is the offset from which the records of a work item are true.
pub fn settle(net: &mut Net<'_>, shelf: &mut WorkerPages, floors: &[u64], partitions: Partitions) -> Result<Crawl> {
    let before = shelf.rejections.len();
    shelf.rejections.retain(|rejection| rejection.offset >= floors[rejection.item as usize]);
    let mut overlapping = (before - shelf.rejections.len()) as u64;

    let rows = std::mem::take(&mut shelf.captures);
    let owner = |capture: &Capture| partitions.owner(capture.doc_id);
    let mut captures = net.exchange_rows("captures", rows.into_iter().map(move |row| (owner(&row), row)))?;
    captures.sort_unstable_by(|x, y| order(x).cmp(&order(y)));

    let mut pages: Vec<Capture> = Vec::new();
    for capture in captures {
        let reason = match pages.last() {
            _ if capture.offset < floors[capture.item as usize] => {
                overlapping += 1;
                continue;
            }
            Some(kept) if kept.doc_id == capture.doc_id && kept.url == capture.url => Reason::OlderCapture,
            Some(kept) if kept.doc_id == capture.doc_id => Reason::DocIdCollision,
            _ => {
                pages.push(capture);
                continue;
            }
        };
        let Capture { source, offset, url, item, .. } = capture;
        shelf.rejections.push(Rejection { source, offset, reason, detail: url, item });
    }

    let mut counts = vec![0u32; partitions.count()];
    pages.iter().for_each(|page| counts[partitions.of(page.doc_id)] += 1);
    let all = net.all_gather("pages a partition", counts)?;
    let mut next: Vec<Rank> = vec![0; partitions.count()];
    for partition in 1..next.len() {
        next[partition] = next[partition - 1] + all.iter().map(|counts| counts[partition - 1]).sum::<u32>();
    }
    let pages: Vec<(Rank, Capture)> = pages
        .into_iter()
        .map(|page| {
            let rank = &mut next[partitions.of(page.doc_id)];
            *rank += 1;
            (*rank - 1, page)
        })
        .collect();

    shelf.ranks = vec![NOT_KEPT; shelf.exact.len()];
    let kept = pages.iter().map(|(rank, page)| [page.worker, page.slot, *rank]);
    for [_, slot, rank] in net.exchange_all("ranks", kept, |reply| reply[0] as usize)? {
        shelf.ranks[slot as usize] = rank;
    }
    let directory = directory(net, &pages, partitions)?;
    Ok(Crawl { directory, pages, overlapping })
}

/// Groups captures of one doc id, those of the smallest URL first, the newest of these first of all.
fn order(capture: &Capture) -> (u64, &str, Reverse<i64>, u32, u64) {
    (capture.doc_id, &capture.url, Reverse(capture.fetch_time), capture.source, capture.offset)
}

fn directory(net: &mut Net<'_>, pages: &[(Rank, Capture)], partitions: Partitions) -> Result<Arc<Directory>> {
    let host_key = |page: &Capture| xxhash_rust::xxh3::xxh3_64(host(&page.url).as_bytes());
    let mut mine: Vec<u64> = pages.iter().map(|(_, page)| host_key(page)).collect();
    mine.sort_unstable();
    mine.dedup();
    let owners = HashOwners::new(net);
    let mut owned = net.exchange_all("hosts", mine, |key| owners.owner(*key))?;
    owned.sort_unstable();
    owned.dedup();
    let hosts = net.share("all hosts", owned)?;
    let hosts = net.once(|| {
        let mut hosts = hosts.to_vec();
        hosts.sort_unstable();
        hosts
    })?;
    let number = |page: &Capture| hosts.partition_point(|&key| key < host_key(page)) as u32;
    let entries =
        pages.iter().map(|(rank, page)| Entry { doc_id: page.doc_id, rank: *rank, host: number(page) }).collect();
    let entries = net.share("directory rows", entries)?;
    net.once(|| Directory::new(&entries, partitions))
}

/// Host (with port) of a canonical URL.
pub fn host(canonical_url: &str) -> &str {
    let rest = canonical_url.split_once("://").map_or(canonical_url, |(_, rest)| rest);
    &rest[..rest.find(['/', '?']).unwrap_or(rest.len())]
}
