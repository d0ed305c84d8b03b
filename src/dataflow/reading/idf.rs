//! Inverse document frequencies: features weigh less the more pages they are on, so simhashes wait for the whole crawl.
//!
//! Two exchanges and a share: features of pages to their owners, who count the pages of each; features on two pages or
//! more to every process (any other is on one); simhashes to the owners of their pages.
//!
//! # Memory
//! 10 bytes a distinct feature of a page on the shelf, until its simhash is made, and 8 with its owner while it is counted, or what a
//! bound leaves of them in memory; 56 bytes a feature of two pages or more in each process, and 16 a page with its owner.

use std::sync::Arc;

use crate::by_hash::ByHash;
use crate::dataflow::reading::captures::Crawl;
use crate::dataflow::reading::lists::until_failure;
use crate::dataflow::reading::worker_pages::WorkerPages;
use crate::dataflow::shuffle::hash_partitions::HashPartitions;
use crate::dataflow::shuffle::memory_estimate::{AT_REST, MemoryEstimate, hold_bytes_against_bound, room};
use crate::engine::{Net, Owners};
use crate::error::Result;
use crate::hamming::simhash::Sums;
use crate::ids::Page;
use crate::job::Job;
use crate::text::{Feature, inverse_document_frequency};

/// Bytes in a process of a feature of two pages or more: as it is told, and in a map.
const A_COMMON_FEATURE: u64 = 56;

/// Pages by feature.
type Frequencies = ByHash<u32>;

/// Makes the simhashes, `bits` wide, of the pages whose features are on the shelves, and gives them to their owners' rows.
///
/// # Errors
/// [`crate::error::Error::MemoryLimit`] when features of two pages or more have no room; those of the disk.
pub fn simhashes(net: &mut Net<'_>, shelf: &mut WorkerPages, crawl: &mut Crawl, job: &Job) -> Result<()> {
    let bits = job.simhash.bits;
    let mine = shelf.kept().filter(|&(slot, _)| shelf.features.size(slot) > 0).count() as u64;
    let [pages] = net.sum("pages with features", [mine])?;
    let held = MemoryEstimate::with(shelf, &crawl.pages, None);
    let frequencies = document_frequencies(net, shelf, held, job)?;

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
fn document_frequencies(
    net: &mut Net<'_>,
    shelf: &mut WorkerPages,
    held: MemoryEstimate,
    job: &Job,
) -> Result<Arc<Frequencies>> {
    let room = room(net, held, job)?.parted(2);
    let mut features = shelf.features.reader();
    let of_pages = shelf.kept().map(|(slot, _)| Ok(features.get(slot)?.0.to_vec()));
    let (count, key) = (shelf.features.items(), |&hash: &u64| hash);
    let mut shares = until_failure(of_pages, |rows| {
        HashPartitions::laid_down(net, "document frequencies", count, rows.flatten(), key, &room)
    })?;
    let (mut some, mut common) = (Vec::new(), Vec::new());
    for share in 0..shares.count() {
        net.check()?;
        shares.take(share, &mut some)?;
        some.sort_unstable();
        let on_several = some.chunk_by(|x, y| x == y).filter(|pages| pages.len() > 1);
        common.extend(on_several.map(|pages| [(pages[0] >> 32) as u32, pages[0] as u32, pages.len() as u32]));
    }
    drop((shares, some));
    let [all] = net.sum("common features", [common.len() as u64])?;
    let (workers, allowed) = (net.workers_per_process() as u64, job.effort.memory_bytes);
    let least = held.least_shelf_bytes(1) + A_COMMON_FEATURE * all / workers;
    hold_bytes_against_bound(net, "features of two pages or more", least, allowed)?;
    if allowed > 0 {
        // Lists make room for them.
        shelf.hold_lists_at_most((allowed / workers).saturating_sub(least + AT_REST / workers))?;
    }
    let common = net.share("common features", common)?;
    net.once(|| common.iter().map(|row| (u64::from(row[0]) << 32 | u64::from(row[1]), row[2])).collect())
}
