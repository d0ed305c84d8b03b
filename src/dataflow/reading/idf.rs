//! Inverse document frequencies: features weigh less the more pages they are on, so simhashes wait for the whole crawl.
//!
//! Two exchanges and a share: pages of each feature, counted by worker, to the owner of the feature; those on two pages or
//! more to every process (any other is on one); simhashes to the owners of their pages.
//!
//! # Memory
//! 10 bytes a distinct feature of a page on the shelf, until its simhash is made, or what a bound leaves of them in memory; 12 bytes a distinct feature of the crawl
//! and 16 a page with its owner, and 24 a feature of two pages or more in each process.

use crate::by_hash::ByHash;
use crate::dataflow::reading::captures::Crawl;
use crate::dataflow::reading::worker_pages::WorkerPages;
use crate::engine::{HashOwners, Net, Owners};
use crate::error::Result;
use crate::hamming::simhash::Sums;
use crate::ids::Page;
use crate::text::{Feature, inverse_document_frequency};

/// Pages by feature.
type Frequencies = ByHash<u32>;

/// Makes the simhashes, `bits` wide, of the pages whose features are on the shelves, and gives them to their owners' rows.
pub fn simhashes(net: &mut Net<'_>, shelf: &mut WorkerPages, crawl: &mut Crawl, bits: u32) -> Result<()> {
    let mine = shelf.kept().filter(|&(slot, _)| shelf.features.size(slot) > 0).count() as u64;
    let [pages] = net.sum("pages with features", [mine])?;
    let frequencies = document_frequencies(net, shelf)?;

    let mut weighted = Vec::new();
    let directory = crawl.directory.clone();
    let (mut slots, mut features) = (shelf.kept(), shelf.features.reader());
    let source = |send: &mut dyn FnMut([u32; 3])| {
        let Some((slot, page)) = slots.next() else { return Ok(false) };
        let (hashes, weights) = features.get(slot)?;
        if hashes.is_empty() {
            return Ok(true);
        }
        weighted.clear();
        weighted.extend(hashes.iter().zip(weights).map(|(&hash, &weight)| {
            let pages_with = frequencies.get(&hash).copied().unwrap_or(1);
            Feature { hash, weight: u32::from(weight) * inverse_document_frequency(pages, u64::from(pages_with)) }
        }));
        let mut sums = Sums::default();
        sums.add_weighted(&weighted);
        let simhash = sums.simhash(bits);
        send([page.0, (simhash >> 32) as u32, simhash as u32]);
        Ok(true)
    };
    let mut of_pages = vec![None; crawl.pages.len()];
    net.exchange_from(
        "simhashes",
        source,
        |row| directory.owner(Page(row[0])),
        |rows| {
            rows.iter().for_each(|&[page, high, low]| {
                of_pages[directory.place(Page(page))] = Some(u64::from(high) << 32 | u64::from(low));
            });
            Ok(())
        },
    )?;
    drop(slots);
    crawl.pages.rewrite(|page| {
        page.set_simhash(of_pages[directory.place(page.page)]);
        true
    })?;
    shelf.features.clear();
    Ok(())
}

/// The features on two pages or more with their numbers of pages, once in each process.
fn document_frequencies(net: &mut Net<'_>, shelf: &WorkerPages) -> Result<std::sync::Arc<Frequencies>> {
    let mut mine = Frequencies::default();
    let mut features = shelf.features.reader();
    for (slot, _) in shelf.kept() {
        features.get(slot)?.0.iter().for_each(|&hash| *mine.entry(hash).or_default() += 1);
    }
    let owners = HashOwners::new(net);
    let rows = mine.into_iter().map(|(hash, pages)| [(hash >> 32) as u32, hash as u32, pages]);
    let hash = |row: &[u32; 3]| u64::from(row[0]) << 32 | u64::from(row[1]);
    let mut owned = net.exchange_all("document frequencies", rows, |row| owners.owner(hash(row)))?;
    owned.sort_unstable();
    let sums =
        owned.chunk_by(|x, y| hash(x) == hash(y)).map(|run| [run[0][0], run[0][1], run.iter().map(|row| row[2]).sum()]);
    let common = net.share("common features", sums.filter(|row| row[2] > 1).collect())?;
    net.once(|| common.iter().map(|row| (hash(row), row[2])).collect())
}
