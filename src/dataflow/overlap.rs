//! The sort-based Overlap, sharded: exchange by fingerprint, emit pairs, exchange by pair, count.
//!
//! Three exchanges, and two more where the guard is on. What a row means is decided in [`crate::overlap`].

use super::captures::Crawl;
pub use super::counts::Counts;
use super::memory::{Held, hold_against_bound};
use super::shelf::Shelf;
use crate::engine::Net;
use crate::error::Result;
use crate::ids::{FPrint, Rank, mix};
use crate::job::{Guard, Overlap};
use crate::overlap::filter::{Verdict, judge};
use crate::overlap::guard::{Match, best_on_each_host};
use crate::overlap::{FPrintDocId, SimilarPair, is_pairwise_similar};

/// Finds the similar pairs among the centres on all shelves, `exact_pairs` being this worker's (centre, copy) pairs;
///
/// What is furniture is judged by all pages; exact copies are left out after that, for mirrors would hide it: the pages
/// of one site, each folded into a copy on another host, no longer stand on one host.
///
/// The pairs they lie, ascending, with the owner of the pair.
///
/// # Errors
/// [`crate::error::Error::Space`] when the pairs would not fit in `memory_bytes`, before any is emitted.
pub fn similar_pairs(
    net: &mut Net<'_>,
    shelf: &Shelf,
    crawl: &Crawl,
    exact_pairs: &[SimilarPair],
    settings: &Overlap,
    memory_bytes: u64,
) -> Result<(Vec<SimilarPair>, Counts)> {
    let hosts = &crawl.directory.hosts;
    let mut counts = Counts::default();
    let copies = net.share("copies", exact_pairs.iter().map(|pair| pair.b).collect())?;
    let is_copy = net.once(|| {
        let mut is_copy = vec![false; hosts.len()];
        copies.iter().for_each(|&copy| is_copy[copy as usize] = true);
        is_copy
    })?;
    let mut table = by_fprint(net, shelf)?;
    counts.tuples = table.len() as u64;
    keep_what_counts(&mut table, hosts, settings, &mut counts);
    table.retain(|row| !is_copy[row.doc as usize]);
    let chunks = chunks_of_pages(net, &table, crawl)?;
    let runs = table.chunk_by(|x, y| x.fprint() == y.fprint());
    counts.emitted = runs.map(|run| run.len() as u64 * (run.len() as u64 - 1) / 2).sum();
    hold_against_bound(net, "pairs of pages", Held { pairs: counts.emitted, ..Held::on(shelf) }, memory_bytes)?;
    let keys = by_pair(net, &table)?;
    drop(table);

    let mut pairs = Vec::new();
    for run in keys.chunk_by(|x, y| x == y) {
        let (a, b) = ((run[0] >> 32) as Rank, run[0] as Rank);
        counts.candidates += 1;
        if is_pairwise_similar(run.len() as u32, chunks[a as usize], chunks[b as usize], settings) {
            pairs.push(SimilarPair { a, b, value: run.len() as u32 });
        }
    }
    drop(keys);
    counts.similar = pairs.len() as u64;
    if settings.guard == Guard::MutualBest {
        guard(net, &mut pairs, &chunks, crawl)?;
        counts.guarded = counts.similar - pairs.len() as u64;
    }
    Ok((pairs, counts))
}

/// `FPrint-DocID`, sorted, with the owners of its fingerprints.
fn by_fprint(net: &mut Net<'_>, shelf: &Shelf) -> Result<Vec<FPrintDocId>> {
    let peers = net.peers() as u64;
    let mut slots = shelf.kept();
    let source = |send: &mut dyn FnMut(FPrintDocId)| {
        let mut sent = 0;
        for (slot, rank) in slots.by_ref() {
            let fprints = shelf.fprints.get(slot);
            fprints.iter().for_each(|&fprint| send(FPrintDocId::new(fprint, rank)));
            sent += fprints.len();
            if sent >= 1 << 15 {
                return true;
            }
        }
        false
    };
    let mut table: Vec<FPrintDocId> = Vec::new();
    let to = move |row: &FPrintDocId| owner(row.fprint(), peers);
    net.exchange("FPrint-DocID", source, to, |rows: &[FPrintDocId]| table.extend_from_slice(rows))?;
    table.sort_unstable_by_key(FPrintDocId::key);
    Ok(table)
}

/// Worker that owns a fingerprint. 32-bit fingerprints leave the high half empty, hence the mixing.
fn owner(fprint: FPrint, peers: u64) -> usize {
    (mix(fprint) % peers) as usize
}

/// Drops the rows of chunks that do not count.
fn keep_what_counts(table: &mut Vec<FPrintDocId>, hosts: &[u32], settings: &Overlap, counts: &mut Counts) {
    let (mut docs, mut scratch) = (Vec::new(), Vec::new());
    let (mut kept, mut start) = (0, 0);
    while start < table.len() {
        let fprint = table[start].fprint();
        let end = start + table[start..].iter().take_while(|row| row.fprint() == fprint).count();
        let rows = (end - start) as u64;
        counts.chunks += 1;
        docs.clear();
        docs.extend(table[start..end].iter().map(|row| row.doc));
        match judge(&docs, hosts, settings, &mut scratch) {
            Verdict::Counts => {
                table.copy_within(start..end, kept);
                kept += end - start;
            }
            Verdict::Template => {
                counts.template_chunks += 1;
                counts.template_tuples += rows;
            }
            Verdict::Frequent => {
                counts.frequent_chunks += 1;
                counts.frequent_tuples += rows;
            }
        }
        start = end;
    }
    table.truncate(kept);
}

/// Chunks that count of every page, by rank, in every process.
fn chunks_of_pages(net: &mut Net<'_>, table: &[FPrintDocId], crawl: &Crawl) -> Result<std::sync::Arc<Vec<u32>>> {
    let pages = crawl.directory.len();
    let mut mine = vec![0u32; pages];
    table.iter().for_each(|row| mine[row.doc as usize] += 1);
    let rows: Vec<[u32; 2]> = (0..).zip(mine).filter(|&(_, chunks)| chunks > 0).map(|(rank, n)| [rank, n]).collect();
    let rows = net.share("chunks a page", rows)?;
    net.once(|| {
        let mut chunks = vec![0u32; pages];
        rows.iter().for_each(|&[rank, n]| chunks[rank as usize] += n);
        chunks
    })
}

/// Every pair of pages that share a chunk, as often as they do, sorted, with the owner of the pair.
fn by_pair(net: &mut Net<'_>, table: &[FPrintDocId]) -> Result<Vec<u64>> {
    let peers = net.peers() as u64;
    let mut runs = table.chunk_by(|x, y| x.fprint() == y.fprint()).filter(|run| run.len() > 1);
    let (mut run, mut at): (&[FPrintDocId], usize) = (&[], 0);
    let source = |send: &mut dyn FnMut(u64)| {
        let mut sent = 0;
        while sent < 1 << 15 {
            if at + 1 >= run.len() {
                match runs.next() {
                    Some(next) => (run, at) = (next, 0),
                    None => break,
                }
            }
            let left = u64::from(run[at].doc) << 32;
            run[at + 1..].iter().for_each(|right| send(left | u64::from(right.doc)));
            sent += run.len() - at - 1;
            at += 1;
        }
        sent > 0
    };
    let mut keys = Vec::new();
    net.exchange("pairs", source, move |key| owner(*key, peers), |rows: &[u64]| keys.extend_from_slice(rows))?;
    keys.sort_unstable();
    Ok(keys)
}

/// Keeps the pairs for which both pages speak ([`crate::overlap::guard`]).
fn guard(net: &mut Net<'_>, pairs: &mut Vec<SimilarPair>, chunks: &[u32], crawl: &Crawl) -> Result<()> {
    let (peers, hosts) = (net.peers() as u64, &crawl.directory.hosts);
    let rows = pairs.iter().flat_map(|&SimilarPair { a, b, value }| {
        let larger = chunks[a as usize].max(chunks[b as usize]);
        [(a, b), (b, a)].map(|(from, to)| Match { from, host: hosts[to as usize], to, shared: value, larger })
    });
    let mut matches = net.exchange_all("matches", rows, |row: &Match| owner(u64::from(row.from), peers))?;

    let mut best = Vec::new();
    best_on_each_host(
        &mut matches,
        |page| hosts[page as usize],
        |m| {
            best.push(u64::from(m.from.min(m.to)) << 32 | u64::from(m.from.max(m.to)));
        },
    );
    let mut votes = net.exchange_all("votes", best, |key| owner(*key, peers))?;
    votes.sort_unstable();
    let both = |pair: &SimilarPair| {
        let key = u64::from(pair.a) << 32 | u64::from(pair.b);
        votes[votes.partition_point(|vote| *vote < key)..].iter().take_while(|vote| **vote == key).count() == 2
    };
    pairs.retain(both);
    Ok(())
}
