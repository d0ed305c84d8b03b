//! Overlap of each pair of crawls, of all results that are compared together. [`super::overlap`]
//! has the overlap of the last two.

use std::collections::BTreeSet;

use xxhash_rust::xxh3::xxh3_64;

use super::gather::{ThreadRows, bucket_of};
use super::overlap::{CrawlOverlap, chunks, distinct};
use super::sites::{host_of, split};
use super::two_crawls::ComparableResults;
use webtwin_base::error::Result;
use webtwin_base::threads;
use webtwin_results::FinishedRun;
use webtwin_results::ranges::RangedTable;
use webtwin_spill::Partitions;

/// Number of partitions of hashes. A partition is sorted in memory.
const BUCKETS: usize = 64;

/// Two crawls by their position (the newest is 0), the earlier one first; a unit; and their
/// overlap.
pub(super) type CrawlPair = ([usize; 2], &'static str, CrawlOverlap);

/// Hashes of the texts of a crawl and of its bytes.
type Hashes<T> = [T; 2];

/// Rows that one thread gathers, by crawl or by pair.
struct Share {
    urls: Vec<CrawlOverlap>,
    hosts: Vec<BTreeSet<u64>>,
    hashes: Vec<Hashes<Partitions<u64>>>,
}

/// Computes the overlap of all pairs of crawls except the last two. `earlier` are the results
/// before the older one, newest first.
///
/// # Errors
/// Returns any error of the tables and of the disk.
///
/// # Cost
/// Reads the tables `pages` once. Holds in memory `memory_bytes` of hashes, 40 bytes for each host
/// of each crawl, and the rows of one range for each thread.
pub(super) fn matrix(results: &ComparableResults, earlier: &[String]) -> Result<Vec<CrawlPair>> {
    let earlier = earlier.iter().map(|url| FinishedRun::open(url)).collect::<Result<Vec<FinishedRun>>>()?;
    let find = |run: &FinishedRun| RangedTable::find(run, "pages", ("doc_id", 64), results.ranges, results.workers);
    let tables = earlier.iter().map(find).collect::<Result<Vec<_>>>()?;
    let tables: Vec<&RangedTable> =
        [&results.pages[1], &results.pages[0]].into_iter().chain(tables.iter().flatten()).collect();
    let crawls = tables.len();
    // The pair of the last two crawls is left out, because the main comparison computes it.
    let pairs: Vec<[usize; 2]> =
        (2..crawls).flat_map(|earlier| (0..earlier).map(move |later| [earlier, later])).collect();

    let part = results.pool.part((results.workers * crawls * 2) as u64);
    let buckets = || std::array::from_fn(|_| Partitions::new(BUCKETS, &part));
    let share = || Share {
        urls: vec![CrawlOverlap::default(); pairs.len()],
        hosts: vec![BTreeSet::new(); crawls],
        hashes: (0..crawls).map(|_| buckets()).collect(),
    };
    let shares = threads::for_each(results.workers, results.ranges.count(), share, |share, range| {
        let mut doc_ids = Vec::with_capacity(crawls);
        for (crawl, pages) in tables.iter().enumerate() {
            let table = pages.read(range, &["doc_id", "url", "exact", "body"])?;
            for (hashes, column) in share.hashes[crawl].iter_mut().zip(["exact", "body"]) {
                let nonzero = table.u64(column)?.iter().filter(|hash| **hash != 0);
                nonzero.copied().try_for_each(|hash| hashes.push(bucket_of(hash, BUCKETS), hash))?;
            }
            share.hosts[crawl].extend(table.text("url")?.iter().map(|url| xxh3_64(host_of(split(url).0).as_bytes())));
            doc_ids.push(table.u64("doc_id")?.to_vec());
        }
        add(&mut share.urls, &pairs, &doc_ids);
        Ok(())
    })?;

    let mut overlaps_by_unit = [("url", vec![CrawlOverlap::default(); pairs.len()])].to_vec();
    let mut hosts = vec![BTreeSet::new(); crawls];
    let mut hashes: Vec<Hashes<Vec<Partitions<u64>>>> = (0..crawls).map(|_| Default::default()).collect();
    for share in shares {
        overlaps_by_unit[0].1.iter_mut().zip(share.urls).for_each(|(all, one)| all.add(one));
        hosts.iter_mut().zip(share.hosts).for_each(|(all, one)| all.extend(one));
        for (pooled, share_hashes) in hashes.iter_mut().zip(share.hashes) {
            pooled.iter_mut().zip(share_hashes).for_each(|(all, one)| all.push(one));
        }
    }
    // Hosts and hashes must be distinct over all ranges, so they are counted after the pass; URLs
    // are counted in their range.
    let mut overlaps = vec![CrawlOverlap::default(); pairs.len()];
    let hosts: Vec<Vec<u64>> = hosts.into_iter().map(|hosts| hosts.into_iter().collect()).collect();
    add(&mut overlaps, &pairs, &hosts);
    overlaps_by_unit.push(("host", overlaps));
    let hashes: Vec<Hashes<ThreadRows<u64>>> =
        hashes.into_iter().map(|of_crawl| of_crawl.map(ThreadRows::new)).collect();
    for (number, unit) in ["text", "body"].into_iter().enumerate() {
        let sums = || vec![CrawlOverlap::default(); pairs.len()];
        let thread_sums = threads::for_each(results.workers, BUCKETS, sums, |sums, bucket| {
            let take = |of_crawl: &Hashes<ThreadRows<u64>>| of_crawl[number].take(bucket).map(distinct);
            add(sums, &pairs, &hashes.iter().map(take).collect::<Result<Vec<_>>>()?);
            Ok(())
        })?;
        let mut overlaps = sums();
        for sums in thread_sums {
            overlaps.iter_mut().zip(sums).for_each(|(all, one)| all.add(one));
        }
        overlaps_by_unit.push((unit, overlaps));
    }

    let mut cells: Vec<CrawlPair> = Vec::new();
    for (unit, overlaps) in overlaps_by_unit {
        cells.extend(pairs.iter().zip(overlaps).map(|(&pair, overlap)| (pair, unit, overlap)));
    }
    let runs: Vec<&FinishedRun> = [&results.new, &results.old].into_iter().chain(&earlier).collect();
    // Chunks are compared table by table, because they are too many to hold for all crawls.
    for &[a, b] in &pairs {
        cells.extend(chunks(runs[a], runs[b], results.workers)?.map(|overlap| ([a, b], "chunk", overlap)));
    }
    cells.sort_unstable_by_key(|&(pair, unit, _)| (pair, unit));
    Ok(cells)
}

/// Adds the overlap of each pair. The values of each crawl are distinct and ascend.
fn add(sums: &mut [CrawlOverlap], pairs: &[[usize; 2]], crawls: &[Vec<u64>]) {
    for (sum, &[a, b]) in sums.iter_mut().zip(pairs) {
        sum.add(CrawlOverlap::between(&crawls[a], &crawls[b]));
    }
}

/// Returns the name of a crawl in tables by its position; 0 is the newest.
pub(super) fn name(crawl: usize) -> String {
    match crawl {
        0 => "new".into(),
        1 => "old".into(),
        earlier => format!("old-{}", earlier - 1),
    }
}
