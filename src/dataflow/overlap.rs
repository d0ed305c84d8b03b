//! The Overlap table of a crawl: rows from the shelves to [`super::all_pairs`], and the guard on what comes out.

use std::sync::Arc;

use super::all_pairs::{self, AllPairs, Pages};
use super::captures::Crawl;
pub use super::counts::Counts;
use super::memory::{Held, room};
use super::shelf::Shelf;
use crate::engine::Net;
use crate::error::Result;
use crate::ids::{FPrint, Rank};
use crate::job::{Guard, Job};
use crate::overlap::SimilarPair;
use crate::overlap::count_pairs::pair_key;
use crate::overlap::guard::{Match, best_on_each_host};
use crate::overlap::prune::PageSet;
use crate::overlap::rows::{Narrow, Wide};

/// Finds the similar pairs among the centres on all shelves, `exact_pairs` being this worker's (centre, copy) pairs.
///
/// What is furniture is judged by all pages; exact copies are left out after that, for mirrors would hide it: the pages
/// of one site, each folded into a copy on another host, no longer stand on one host.
///
/// All pairs of a page lie with one worker, ascending.
///
/// # Errors
/// As [`all_pairs::similar_pairs`].
pub fn similar_pairs(
    net: &mut Net<'_>,
    shelf: &Shelf,
    crawl: &Crawl,
    exact_pairs: &[SimilarPair],
    job: &Job,
) -> Result<(Vec<SimilarPair>, Counts)> {
    let hosts = &crawl.directory.hosts;
    let copies = net.share("copies", exact_pairs.iter().map(|pair| pair.b).collect())?;
    let is_copy: Arc<PageSet> = net.once(|| {
        let mut is_copy = PageSet::new(hosts.len(), |_| false);
        copies.iter().for_each(|&copy| is_copy.insert(copy));
        is_copy
    })?;
    drop(copies);
    let room = room(net, Held::on(shelf), job)?;
    let pages = Pages { count: hosts.len(), hosts, copies: &is_copy };

    let mut slots = shelf.kept();
    let source = |send: &mut dyn FnMut(FPrint, Rank)| {
        let mut sent = 0;
        for (slot, rank) in slots.by_ref() {
            let fprints = shelf.fprints.get(slot);
            fprints.iter().for_each(|&fprint| send(fprint, rank));
            sent += fprints.len();
            if sent >= 1 << 15 {
                return true;
            }
        }
        false
    };
    let rows = shelf.fprints.items() as u64;
    let mut pairs = Vec::new();
    let found = |pair| pairs.push(pair);
    let all = if job.chunks.bits <= 32 {
        all_pairs::similar_pairs::<Narrow>(net, rows, source, &pages, &job.overlap, &room, found)?
    } else {
        all_pairs::similar_pairs::<Wide>(net, rows, source, &pages, &job.overlap, &room, found)?
    };
    let mut counts = all.work.counts.clone();
    if job.overlap.guard == Guard::MutualBest {
        guard(net, &mut pairs, &all, crawl)?;
        counts.guarded = counts.similar - pairs.len() as u64;
    }
    Ok((pairs, counts))
}

/// Keeps the pairs for which both pages speak ([`crate::overlap::guard`]).
fn guard(net: &mut Net<'_>, pairs: &mut Vec<SimilarPair>, all: &AllPairs, crawl: &Crawl) -> Result<()> {
    let (chunks, hosts) = (&all.chunks, &crawl.directory.hosts);
    let rows = pairs.iter().flat_map(|&SimilarPair { a, b, value }| {
        let larger = chunks[a as usize].max(chunks[b as usize]);
        [(a, b), (b, a)].map(|(from, to)| Match { from, host: hosts[to as usize], to, shared: value, larger })
    });
    let mut matches = net.exchange_all("matches", rows, |row: &Match| all.owner(row.from))?;

    let mut best = Vec::new();
    best_on_each_host(
        &mut matches,
        |page| hosts[page as usize],
        |m| {
            best.push(pair_key(m.from.min(m.to), m.from.max(m.to)));
        },
    );
    let mut votes = net.exchange_all("votes", best, |key| all.owner((key >> 32) as Rank))?;
    votes.sort_unstable();
    let both = |pair: &SimilarPair| {
        let key = pair_key(pair.a, pair.b);
        votes[votes.partition_point(|vote| *vote < key)..].iter().take_while(|vote| **vote == key).count() == 2
    };
    pairs.retain(both);
    Ok(())
}
