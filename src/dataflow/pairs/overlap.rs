//! The Overlap table of a crawl: rows from the shelves to [`crate::dataflow::pairs::overlap_join`], and the guard on what comes out.

use std::sync::Arc;

use crate::clusters::union_find::sizes;
use crate::dataflow::pairs::counts::OverlapCounts;
use crate::dataflow::pairs::overlap_join::{self, AllPairs, Pages};
use crate::dataflow::reading::captures::Crawl;
use crate::dataflow::reading::worker_pages::WorkerPages;
use crate::dataflow::shuffle::components::components;
use crate::dataflow::shuffle::memory_estimate::{MemoryEstimate, room};
use crate::engine::{HashOwners, Net, Owners};
use crate::error::Result;
use crate::ids::{FPrint, HostId, Number, Page};
use crate::job::{Guard, Job};
use crate::overlap::SimilarPair;
use crate::overlap::centre::{decide, keep_best};
use crate::overlap::count_pairs::{pair_key, smaller};
use crate::overlap::guard::{Match, best_on_each_host};
use crate::overlap::neighbours::{Linked, keep_apart};
use crate::overlap::prune::PageSet;
use crate::overlap::rows::{Row32, Row64};

/// Finds the similar pairs among the centres on all shelves, `exact_pairs` being this worker's (centre, copy) pairs and
/// `links` those from its pages, ascending.
///
/// What is furniture is judged by all pages; exact copies are left out after that, for mirrors would hide it: the pages
/// of one site, each folded into a copy on another host, no longer stand on one host.
///
/// They lie ascending with each worker; without the guard `centre`, all pairs of a smaller page with one.
///
/// # Errors
/// As [`overlap_join::similar_pairs`].
pub fn similar_pairs(
    net: &mut Net<'_>,
    shelf: &WorkerPages,
    crawl: &Crawl,
    exact_pairs: &[SimilarPair],
    links: &[(Page, Page)],
    job: &Job,
) -> Result<(Vec<SimilarPair>, OverlapCounts)> {
    let hosts = &crawl.directory.hosts;
    let copies = net.share("copies", exact_pairs.iter().map(|pair| pair.b).collect())?;
    let is_copy: Arc<PageSet> = net.once(|| {
        let mut is_copy = PageSet::new(hosts.len(), |_| false);
        copies.iter().for_each(|&copy| is_copy.insert(copy));
        is_copy
    })?;
    drop(copies);
    let held = MemoryEstimate::on(shelf);
    let room = room(net, MemoryEstimate { links: held.links + links.len() as u64, ..held }, job)?;
    let pages = Pages { count: hosts.len(), hosts, copies: &is_copy };

    let mut slots = shelf.kept();
    let source = |send: &mut dyn FnMut(FPrint, Page)| {
        let mut sent = 0;
        for (slot, page) in slots.by_ref() {
            let fprints = shelf.fprints.get(slot);
            fprints.iter().for_each(|&fprint| send(fprint, page));
            sent += fprints.len();
            if sent >= 1 << 15 {
                return Ok(true);
            }
        }
        Ok(false)
    };
    let rows = shelf.fprints.items() as u64;
    let mut pairs = Vec::new();
    let found = |pair| pairs.push(pair);
    let all = if job.chunks.bits <= 32 {
        overlap_join::similar_pairs::<Row32>(net, rows, source, &pages, &job.overlap, &room, found)?
    } else {
        overlap_join::similar_pairs::<Row64>(net, rows, source, &pages, &job.overlap, &room, found)?
    };
    let mut counts = all.work.counts.clone();
    let similar = pairs.len() as u64;
    match job.overlap.guard {
        Guard::None => {}
        Guard::MutualBest => {
            let chunks = &all.chunks;
            let resemblance = |pair: &SimilarPair| (pair.value, chunks[pair.a as usize].max(chunks[pair.b as usize]));
            keep_mutual_best(net, &mut pairs, hosts, &all, resemblance)?;
        }
        Guard::Centre => anchor(net, &mut pairs, &all, hosts.len())?,
        Guard::Neighbours | Guard::Auto => {
            let linking = match job.overlap.guard {
                Guard::Auto => hosts_with_links(net, links, hosts)?,
                _ => net.once(|| vec![true; hosts.len()])?,
            };
            part_neighbours(net, &mut pairs, &all, exact_pairs, (links, &linking), crawl, job.overlap.doubt)?;
        }
    }
    // Pairs may have changed workers, so what was taken away is known of all workers only.
    let [similar, left] = net.sum("pairs left", [similar, pairs.len() as u64])?;
    if net.index() == 0 {
        counts.guarded = similar - left;
    }
    Ok((pairs, counts))
}

/// Keeps one pair a page, that with its cluster's centre ([`crate::overlap::centre`]).
///
/// An exchange to bring the pairs to the owner of the larger page, and one a round to share what was decided.
fn anchor(net: &mut Net<'_>, pairs: &mut Vec<SimilarPair>, all: &AllPairs, pages: usize) -> Result<()> {
    let mut by_larger = net.exchange_all("pairs by larger page", std::mem::take(pairs), |pair| all.owner(pair.b))?;
    by_larger.sort_unstable_by_key(|pair| (pair.b, pair.a));
    let mut larger_pages: Vec<Page> = by_larger.iter().map(|pair| pair.b).collect();
    larger_pages.dedup();
    // Whoever is not the larger page of a pair is a centre from the start.
    let (mut waiting, mut members) = (PageSet::new(pages, |_| false), PageSet::new(pages, |_| false));
    let larger_pages = net.share("pages that wait", larger_pages)?;
    larger_pages.iter().for_each(|&page| waiting.insert(page));
    let mut left = larger_pages.len();
    while left > 0 {
        let mut mine: Vec<[u32; 2]> = Vec::new();
        decide(&by_larger, &waiting, &members, |page, member| mine.push([page, u32::from(member)]));
        let decided = net.share("pages decided", mine)?;
        for &[page, member] in decided.iter() {
            waiting.remove(page);
            if member == 1 {
                members.insert(page);
            }
        }
        left -= decided.len();
    }
    let chunks = &all.chunks;
    keep_best(&mut by_larger, &members, |a, b| chunks[a as usize].max(chunks[b as usize]));
    by_larger.sort_unstable();
    *pairs = by_larger;
    Ok(())
}

/// Keeps the pairs for which both pages speak ([`crate::overlap::guard`]); they lie with the owner of the smaller page.
/// `resemblance` is what a pair shares, and of how much.
pub(crate) fn keep_mutual_best(
    net: &mut Net<'_>,
    pairs: &mut Vec<SimilarPair>,
    hosts: &[HostId],
    owners: &impl Owners<Page>,
    resemblance: impl Fn(&SimilarPair) -> (u32, u32),
) -> Result<()> {
    let rows = pairs.iter().flat_map(|pair| {
        let (shared, larger) = resemblance(pair);
        [(pair.a, pair.b), (pair.b, pair.a)].map(|(from, to)| Match {
            from,
            host: hosts[to as usize],
            to,
            shared,
            larger,
        })
    });
    let mut matches = net.exchange_all("matches", rows, |row: &Match| owners.owner(row.from))?;

    let mut best = Vec::new();
    best_on_each_host(
        &mut matches,
        |page| hosts[page as usize],
        |m| {
            best.push(pair_key(m.from.min(m.to), m.from.max(m.to)));
        },
    );
    let mut votes = net.exchange_all("votes", best, |key| owners.owner(smaller(*key)))?;
    votes.sort_unstable();
    let both = |pair: &SimilarPair| {
        let key = pair_key(pair.a, pair.b);
        votes[votes.partition_point(|vote| *vote < key)..].iter().take_while(|vote| **vote == key).count() == 2
    };
    pairs.retain(both);
    Ok(())
}

/// For each host, whether some page of it links to a page of the crawl. Hosts are no more than pages.
fn hosts_with_links(net: &mut Net<'_>, links: &[(Page, Page)], hosts: &[HostId]) -> Result<Arc<Vec<bool>>> {
    let mut mine: Vec<HostId> = links.iter().map(|link| hosts[link.0 as usize]).collect();
    mine.sort_unstable();
    mine.dedup();
    let all = net.share("hosts with links", mine)?;
    net.once(|| {
        let mut linking = vec![false; hosts.len()];
        all.iter().for_each(|host| linking[host.index()] = true);
        linking
    })
}

/// Keeps the pairs that join no neighbours ([`crate::overlap::neighbours`]); `linking` are the hosts on which pages without
/// links are neighbours.
///
/// The components of similar pages, and three exchanges to bring each to one worker: its pairs, its exact copies, its pages
/// with their links.
///
/// # Memory
/// 8 bytes a page in each process, 4 more in each worker while components are found; then 12 bytes a pair and 20 a page of
/// a component with its worker, and what [`keep_apart`] takes for the largest of its components.
fn part_neighbours(
    net: &mut Net<'_>,
    pairs: &mut Vec<SimilarPair>,
    all: &AllPairs,
    exact_pairs: &[SimilarPair],
    (links, linking): (&[(Page, Page)], &[bool]),
    crawl: &Crawl,
    doubt: u32,
) -> Result<()> {
    let (chunks, hosts) = (&all.chunks, &crawl.directory.hosts);
    let edges = exact_pairs.iter().chain(pairs.iter()).map(|pair| (pair.a, pair.b));
    let labels: Arc<Vec<Page>> = components(net, "components of similar pages", hosts.len(), edges)?;
    let sizes = net.once(|| sizes(&labels))?;
    let component = |page: Page| labels[page as usize];
    let owners = HashOwners::new(net);
    let to = |page: Page| owners.owner(component(page));

    let mut similar = net.exchange_all("similar pairs", std::mem::take(pairs), |pair| to(pair.a))?;
    let mut exact = net.exchange_all("exact copies", exact_pairs.iter().copied(), |pair| to(pair.a))?;
    let with_others = crawl.pages.iter().map(|row| row.0).filter(|&page| sizes[component(page) as usize] > 1);
    let linked = with_others.map(|page| {
        let from = links.partition_point(|link| link.0 < page);
        let of_page = links[from..].iter().take_while(|link| link.0 == page).map(|link| link.1);
        Linked::new(page, of_page.filter(|&target| hosts[target as usize] == hosts[page as usize]))
    });
    let mut linked = net.exchange_all("pages with links", linked, |row| to(row.page))?;

    similar.sort_unstable_by_key(|pair| (component(pair.a), *pair));
    exact.sort_unstable_by_key(|pair| (component(pair.a), *pair));
    linked.sort_unstable_by_key(|row| (component(row.page), *row));
    let (mut similar, mut exact) = (&similar[..], &exact[..]);
    for pages in linked.chunk_by(|x, y| component(x.page) == component(y.page)) {
        let of_these = |rows: &mut &[SimilarPair]| {
            let end = rows.partition_point(|pair| component(pair.a) <= component(pages[0].page));
            let (these, rest) = rows.split_at(end);
            *rows = rest;
            these.to_vec()
        };
        let (mut these, copies) = (of_these(&mut similar), of_these(&mut exact));
        let larger = |a: Page, b: Page| chunks[a as usize].max(chunks[b as usize]) + doubt;
        keep_apart(&mut these, &copies, pages, hosts, |host: HostId| linking[host.index()], larger);
        pairs.append(&mut these);
    }
    pairs.sort_unstable();
    Ok(())
}
