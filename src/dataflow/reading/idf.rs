//! Inverse document frequencies: features weigh less the more pages they are on, so simhashes wait for the whole crawl.
//!
//! Three exchanges and a sum: features of pages to their owners, in shares that spill, who count the pages of each; features with their
//! weights back to where those of a page meet, in shares, too; simhashes to the owners of their pages.
//!
//! # Memory
//! 10 bytes a distinct feature of a page on the shelf, until it is sent; then 16, or what a bound leaves of them in memory. Up to 40
//! more for those of one share, which has some megabytes of them, or all pages of the commonest feature; and 16 a page with its
//! owner.

use std::collections::hash_map::Entry;

use bytemuck::{Pod, Zeroable};
use itertools::Itertools;

use crate::memory_estimate::MemoryEstimate;
use crate::reading::captures::Crawl;
use crate::reading::worker_pages::WorkerPages;
use crate::shuffle::gather::Gather;
use crate::shuffle::hash_partitions::HashPartitions;
use crate::shuffle::memory;
use webtwin_base::by_hash::ByHash;
use webtwin_base::error::Result;
use webtwin_base::ids::Page;
use webtwin_core::hamming::simhash::Sums;
use webtwin_core::text::{Feature, inverse_document_frequency};
use webtwin_engine::{Net, Owners};
use webtwin_job::Job;

/// A feature of a page, as it counts there or as it counts in the crawl.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct OfPage {
    high: u32,
    low: u32,
    page: Page,
    weight: u32,
}

impl OfPage {
    fn new(hash: u64, page: Page, weight: u32) -> OfPage {
        OfPage { high: (hash >> 32) as u32, low: hash as u32, page, weight }
    }

    fn hash(&self) -> u64 {
        u64::from(self.high) << 32 | u64::from(self.low)
    }
}

/// Makes the simhashes, `bits` wide, of the pages whose features are on the shelves, and gives them to their owners' rows.
///
/// # Errors
/// [`webtwin_base::error::Error::DiskLimit`] or [`webtwin_base::error::Error::DiskFull`] when the disk does not take what has no memory; those of
/// reading from it.
pub fn simhashes(net: &mut Net<'_>, shelf: &mut WorkerPages, crawl: &mut Crawl, job: &Job) -> Result<()> {
    let mine = shelf.kept().filter(|&(slot, _)| shelf.features.size(slot) > 0).count() as u64;
    let [pages] = net.all_sum("pages with features", [mine])?;
    let held = MemoryEstimate::with(shelf, &crawl.pages, None);
    memory::agree(net, held.shelf_bytes(), held.features_least_bytes(1), &job.effort)?;
    let of_pages = weighted(net, shelf, pages)?;

    let directory = crawl.directory.clone();
    let mut simhashes = vec![None; crawl.pages.len()];
    let of_shares = made(of_pages, job.simhash.bits);
    net.exchange_into(
        "simhashes",
        of_shares.flatten_ok(),
        |row| directory.owner(Page(row[0])),
        |of_shares: &[[u32; 3]]| {
            of_shares.iter().for_each(|&[page, high, low]| {
                simhashes[directory.place(Page(page))] = Some(u64::from(high) << 32 | u64::from(low));
            });
            Ok(())
        },
    )?;
    crawl.pages.rewrite(|page| {
        page.set_simhash(simhashes[directory.place(page.page)]);
        true
    })
}

/// The features of pages as they count in the crawl, by page. Takes them from the shelf.
fn weighted(net: &mut Net<'_>, shelf: &mut WorkerPages, pages: u64) -> Result<HashPartitions<OfPage>> {
    let count = shelf.features.items();
    let mut features = shelf.features.reader();
    let of_pages = shelf.kept().map(|(slot, page)| -> Result<Vec<OfPage>> {
        let (hashes, weights) = features.get(slot)?;
        Ok(hashes.iter().zip(weights).map(|(&hash, &weight)| OfPage::new(hash, page, weight.into())).collect())
    });
    let mut shares = HashPartitions::one_of(net, "features", 2, count, of_pages.flatten_ok(), OfPage::hash)?;
    shelf.features.clear();
    let (count, mut pages_with) = (shares.rows(), ByHash::<u32>::default());
    let of_shares = (0..shares.count()).map(|share| -> Result<Vec<OfPage>> {
        let mut some = Vec::new();
        shares.take(share, &mut some)?;
        pages_with.clear();
        for row in &some {
            match pages_with.entry(row.hash()) {
                Entry::Occupied(mut pages) => *pages.get_mut() += 1,
                Entry::Vacant(none) => _ = none.insert(1),
            }
        }
        for row in &mut some {
            row.weight *= inverse_document_frequency(pages, pages_with[&row.hash()].into());
        }
        Ok(some)
    });
    HashPartitions::one_of(net, "weighted features", 2, count, of_shares.flatten_ok(), |row| row.page)
}

/// The simhashes of pages, as [page, the halves of the simhash], share by share.
fn made(mut of_pages: HashPartitions<OfPage>, bits: u32) -> impl Iterator<Item = Result<Vec<[u32; 3]>>> {
    let (mut some, mut by_page, mut gather, mut features) = (Vec::new(), Vec::new(), Gather::default(), Vec::new());
    (0..of_pages.count()).map(move |share| {
        of_pages.take(share, &mut some)?;
        gather.by_key(&some, |row| row.page, &mut by_page);
        let simhash = |of_page: &[OfPage]| {
            features.clear();
            features.extend(of_page.iter().map(|row| Feature { hash: row.hash(), weight: row.weight }));
            let mut sums = Sums::default();
            sums.add_weighted(&features);
            let simhash = sums.simhash(bits);
            [of_page[0].page.0, (simhash >> 32) as u32, simhash as u32]
        };
        Ok(by_page.chunk_by(|x, y| x.page == y.page).map(simhash).collect())
    })
}
