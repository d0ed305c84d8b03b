//! Weights features by inverse document frequency: a feature weighs less the more pages contain it.
//! So simhashes can only be computed after the whole crawl has been read.
//!
//! There are three exchanges and a sum. First the features of pages are sent to their owners, in
//! partitions that spill; the owners count the pages of each feature. Then the features with their
//! weights are sent to workers that collect the features of a page, again in partitions. Finally
//! the simhashes are sent to the owners of their pages.
//!
//! # Memory
//! Takes 10 bytes for each distinct feature of a local page until it is sent. Then takes 16 bytes
//! for each, or what a memory limit allows. In addition takes up to 40 bytes for each feature of
//! one partition, which has some megabytes of them, or all pages of the most frequent feature. The
//! owner of a page takes 16 bytes for it.

use std::collections::hash_map::Entry;

use bytemuck::{Pod, Zeroable};
use itertools::Itertools;

use crate::memory_estimate::MemoryEstimate;
use crate::reading::captures::Crawl;
use crate::reading::worker_pages::WorkerPages;
use crate::shuffle::gather::Gather;
use crate::shuffle::hash_partitions::HashPartitions;
use crate::shuffle::memory;
use webtwin_base::by_hash::HashKeyMap;
use webtwin_base::error::Result;
use webtwin_base::ids::Page;
use webtwin_core::hamming::simhash::Sums;
use webtwin_core::text::{Feature, inverse_document_frequency};
use webtwin_engine::{Net, Owners};
use webtwin_job::Job;

/// Feature of a page, with its weight on the page, or with its weight in the crawl.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct PageFeature {
    high: u32,
    low: u32,
    page: Page,
    weight: u32,
}

impl PageFeature {
    fn new(hash: u64, page: Page, weight: u32) -> PageFeature {
        PageFeature { high: (hash >> 32) as u32, low: hash as u32, page, weight }
    }

    fn hash(&self) -> u64 {
        u64::from(self.high) << 32 | u64::from(self.low)
    }
}

/// Computes the simhashes of all pages whose features are among the local pages of any worker, and
/// stores them with the owners of the pages. Their width is that of the job.
///
/// # Errors
/// Returns [`webtwin_base::error::Error::DiskLimit`] or [`webtwin_base::error::Error::DiskFull`] if
/// features beyond the memory limit do not fit on the disk, and any error of reading from the disk.
pub fn simhashes(net: &mut Net<'_>, local_pages: &mut WorkerPages, crawl: &mut Crawl, job: &Job) -> Result<()> {
    let own_pages = local_pages.kept().filter(|&(slot, _)| local_pages.features.size(slot) > 0).count() as u64;
    let [pages] = net.all_sum("pages with features", [own_pages])?;
    let estimate = MemoryEstimate::with(local_pages, &crawl.pages, None);
    memory::agree(net, estimate.local_pages_bytes(), estimate.features_least_bytes(1), &job.effort)?;
    let page_features = weighted(net, local_pages, pages)?;

    let directory = crawl.directory.clone();
    let mut simhashes = vec![None; crawl.pages.len()];
    let share_simhashes = feature_rows(page_features, job.simhash.bits);
    net.exchange_into(
        "simhashes",
        share_simhashes.flatten_ok(),
        |row| directory.owner(Page(row[0])),
        |simhash_rows: &[[u32; 3]]| {
            simhash_rows.iter().for_each(|&[page, high, low]| {
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

/// Returns the features of pages with their weights in the crawl, partitioned by page. Removes the
/// features from the local pages.
fn weighted(net: &mut Net<'_>, local_pages: &mut WorkerPages, pages: u64) -> Result<HashPartitions<PageFeature>> {
    let count = local_pages.features.items();
    let mut features = local_pages.features.reader();
    let page_rows = local_pages.kept().map(|(slot, page)| -> Result<Vec<PageFeature>> {
        let (hashes, weights) = features.get(slot)?;
        Ok(hashes.iter().zip(weights).map(|(&hash, &weight)| PageFeature::new(hash, page, weight.into())).collect())
    });
    let mut shares = HashPartitions::one_of(net, "features", 2, count, page_rows.flatten_ok(), PageFeature::hash)?;
    local_pages.features.clear();
    let (count, mut pages_with) = (shares.rows(), HashKeyMap::<u32>::default());
    let share_rows_by_page = (0..shares.count()).map(|share| -> Result<Vec<PageFeature>> {
        let mut share_rows = Vec::new();
        shares.take(share, &mut share_rows)?;
        pages_with.clear();
        for row in &share_rows {
            match pages_with.entry(row.hash()) {
                Entry::Occupied(mut pages) => *pages.get_mut() += 1,
                Entry::Vacant(none) => _ = none.insert(1),
            }
        }
        for row in &mut share_rows {
            row.weight *= inverse_document_frequency(pages, pages_with[&row.hash()].into());
        }
        Ok(share_rows)
    });
    HashPartitions::one_of(net, "weighted features", 2, count, share_rows_by_page.flatten_ok(), |row| row.page)
}

/// Computes the simhashes of pages, partition by partition. A row consists of the page and the two
/// halves of its simhash.
fn feature_rows(
    mut page_features: HashPartitions<PageFeature>,
    bits: u32,
) -> impl Iterator<Item = Result<Vec<[u32; 3]>>> {
    let (mut page_rows, mut by_page, mut gather, mut features) =
        (Vec::new(), Vec::new(), Gather::default(), Vec::new());
    (0..page_features.count()).map(move |share| {
        page_features.take(share, &mut page_rows)?;
        gather.by_key(&page_rows, |row| row.page, &mut by_page);
        let simhash = |page_rows_of: &[PageFeature]| {
            features.clear();
            features.extend(page_rows_of.iter().map(|row| Feature { hash: row.hash(), weight: row.weight }));
            let mut sums = Sums::default();
            sums.add_weighted(&features);
            let simhash = sums.simhash(bits);
            [page_rows_of[0].page.0, (simhash >> 32) as u32, simhash as u32]
        };
        Ok(by_page.chunk_by(|x, y| x.page == y.page).map(simhash).collect())
    })
}
