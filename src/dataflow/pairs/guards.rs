//! Guards on transitivity: decide which similar pairs may join clusters. They apply to any measure
//! that finds all of its pairs.

use std::sync::Arc;

use itertools::Itertools;

use crate::clusters::links::WorkerLinks;
use crate::reading::captures::Crawl;
use crate::shuffle::components::components;
use crate::shuffle::hash_partitions::{CommonPartitions, two_alike};
use webtwin_base::error::Result;
use webtwin_base::ids::{HostId, Page};
use webtwin_core::clusters::labels::SetLabels;
use webtwin_core::overlap::SimilarPair;
use webtwin_core::overlap::centre::{decide, keep_best};
use webtwin_core::overlap::count_pairs::{pair_key, smaller};
use webtwin_core::overlap::guard::{GuardedMatch, best_on_each_host};
use webtwin_core::overlap::neighbours::{LinkSample, keep_apart};
use webtwin_core::overlap::prune::PageSet;
use webtwin_engine::{Net, Owners};
use webtwin_job::Guard;
use webtwin_spill::{SpillColumn, partition_bits};

/// Bytes for each page that a process takes for the components of similar pages.
pub(super) const GUARD_PAGE_BYTES: u64 = 9;

/// Data that a guard uses in addition to the pairs.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    /// Pages of the run.
    pub crawl: &'a Crawl,
    /// This worker's pairs that already join clusters, at any worker: (centre, copy) pairs, and
    /// pairs kept earlier.
    pub joined_pairs: &'a [&'a SpillColumn<SimilarPair>],
    /// Links from this worker's pages.
    pub links: &'a WorkerLinks,
}

/// Keeps the pairs that may join clusters, ascending on each worker. Returns the number of refused
/// pairs over all workers.
///
/// Pairs must be at the owner of the smaller page. Afterwards they may be at other workers. The
/// resemblance of a pair is its value divided by `larger(a, b)`. The guard by neighbours adds
/// `doubt` to this divisor.
///
/// # Errors
/// Returns any error of the disk, and an error if the run has ended.
pub(crate) fn keep(
    net: &mut Net<'_>,
    guard: Guard,
    pairs: &mut Vec<SimilarPair>,
    owners: &impl Owners<Page>,
    context: &Context<'_>,
    larger: impl Fn(Page, Page) -> u32,
    doubt: u32,
) -> Result<u64> {
    let hosts = &context.crawl.directory.hosts;
    let similar = pairs.len() as u64;
    match guard {
        Guard::None => {}
        Guard::MutualBest => {
            keep_mutual_best(net, pairs, hosts, owners, |pair| (pair.value, larger(pair.a, pair.b)))?;
        }
        Guard::Centre => anchor(net, pairs, owners, hosts.len(), larger)?,
        Guard::Neighbours => part_neighbours(net, pairs, context, |a, b| larger(a, b) + doubt)?,
    }
    // Pairs may have moved to other workers, so the number of removed pairs is known only over all
    // workers.
    let [similar, left] = net.all_sum("pairs left", [similar, pairs.len() as u64])?;
    Ok(similar - left)
}

/// Keeps the pairs that do not join neighbours to the clusters of `context.joined_pairs`, ascending
/// on each worker. Returns the number of refused pairs over all workers. Pairs may be at any worker
/// before and after. Their resemblance is their value.
///
/// # Errors
/// Returns any error of the disk, and an error if the run has ended.
pub(crate) fn keep_neighbours_apart(
    net: &mut Net<'_>,
    pairs: &mut Vec<SimilarPair>,
    context: &Context<'_>,
) -> Result<u64> {
    let previous_count = pairs.len() as u64;
    part_neighbours(net, pairs, context, |_, _| 1)?;
    let [previous_total, left] = net.all_sum("pairs left", [previous_count, pairs.len() as u64])?;
    Ok(previous_total - left)
}

/// Keeps one pair for each page, the pair with its cluster's centre
/// ([`webtwin_core::overlap::centre`]).
///
/// Takes one exchange that sends the pairs to the owner of the larger page, and one for each round
/// of decisions.
fn anchor(
    net: &mut Net<'_>,
    pairs: &mut Vec<SimilarPair>,
    owners: &impl Owners<Page>,
    pages: usize,
    larger: impl Fn(Page, Page) -> u32,
) -> Result<()> {
    let mut by_larger = net.exchange("pairs by larger page", std::mem::take(pairs), |pair| owners.owner(pair.b))?;
    by_larger.sort_unstable_by_key(|pair| (pair.b, pair.a));
    let mut larger_pages: Vec<Page> = by_larger.iter().map(|pair| pair.b).collect();
    larger_pages.dedup();
    // A page that is not the larger page of any pair is a centre from the start.
    let (mut waiting, mut members) = (PageSet::new(pages, |_| false), PageSet::new(pages, |_| false));
    let larger_pages = net.broadcast("pages that wait", larger_pages)?;
    larger_pages.iter().for_each(|&page| waiting.insert(page));
    let mut left = larger_pages.len();
    while left > 0 {
        let mut own_decisions: Vec<[u32; 2]> = Vec::new();
        decide(&by_larger, &waiting, &members, |page, member| own_decisions.push([page.0, u32::from(member)]));
        let decided = net.broadcast("pages decided", own_decisions)?;
        for &[page, member] in decided.iter() {
            let page = Page(page);
            waiting.remove(page);
            if member == 1 {
                members.insert(page);
            }
        }
        left -= decided.len();
    }
    keep_best(&mut by_larger, &members, larger);
    by_larger.sort_unstable();
    *pairs = by_larger;
    Ok(())
}

/// Keeps the pairs that both pages select as best match ([`webtwin_core::overlap::guard`]). Pairs
/// are at the owner of the smaller page. `resemblance` returns the shared amount of a pair, and the
/// amount of which it is a part.
pub(crate) fn keep_mutual_best(
    net: &mut Net<'_>,
    pairs: &mut Vec<SimilarPair>,
    hosts: &[HostId],
    owners: &impl Owners<Page>,
    resemblance: impl Fn(&SimilarPair) -> (u32, u32),
) -> Result<()> {
    let rows = pairs.iter().flat_map(|pair| {
        let (shared, larger) = resemblance(pair);
        [(pair.a, pair.b), (pair.b, pair.a)].map(|(from, to)| GuardedMatch {
            from,
            host: hosts[to],
            to,
            shared,
            larger,
        })
    });
    let mut matches = net.exchange("matches", rows, |row: &GuardedMatch| owners.owner(row.from))?;

    let mut best = Vec::new();
    best_on_each_host(
        &mut matches,
        |page| hosts[page],
        |m| {
            best.push(pair_key(m.from.min(m.to), m.from.max(m.to)));
        },
    );
    let mut votes = net.exchange("votes", best, |key| owners.owner(smaller(*key)))?;
    votes.sort_unstable();
    let is_mutual = |pair: &SimilarPair| {
        let key = pair_key(pair.a, pair.b);
        votes[votes.partition_point(|vote| *vote < key)..].iter().take_while(|vote| **vote == key).count() == 2
    };
    pairs.retain(is_mutual);
    Ok(())
}

/// Keeps the pairs that join no neighbours ([`webtwin_core::overlap::neighbours`]). Pages without
/// links count as neighbours only on hosts with links.
///
/// Computes the components of similar pages. Then one exchange sends each component to one worker,
/// in partitions: its pairs, its exact copies, and its pages with their links.
///
/// # Memory
/// Takes the memory of [`components`] in each process. Takes 12
/// bytes for each pair, and at the worker of a component 16 for each pair and 20 for each page, or
/// the budget of the step if it is smaller. One partition at a time takes these again, plus what
/// [`keep_apart`] takes for the largest of its components.
fn part_neighbours(
    net: &mut Net<'_>,
    pairs: &mut Vec<SimilarPair>,
    &Context { crawl, joined_pairs, links }: &Context<'_>,
    larger: impl Fn(Page, Page) -> u32,
) -> Result<()> {
    let hosts = &crawl.directory.hosts;
    let rows = || joined_pairs.iter().flat_map(|pairs| pairs.rows());
    let edges = || rows().chain(pairs.iter().copied().map(Ok)).map_ok(|pair| (pair.a, pair.b));
    let labels: Arc<SetLabels<Page>> = components(net, "components of similar pages", hosts.len(), edges)?;
    let component = |page: Page| labels.label(page);

    // Pairs of both kinds travel together, distinguished by a number: 0 for pairs to decide, 1 for
    // pairs that already join clusters.
    let row_of_kind = |kind: u32| move |SimilarPair { a, b, value }: SimilarPair| [a.0, b.0, value, kind];
    let count = pairs.len() + joined_pairs.iter().map(|pairs| pairs.len()).sum::<usize>();
    let candidates = std::mem::take(pairs).into_iter().map(row_of_kind(0));
    let matched_pages = crawl.directory.owned(net.index()).filter(|&page| labels.is_joined(page));
    let mut links_of = links.reader();
    let pages = matched_pages.map(|page| {
        let page_targets = links_of.targets(page)?.iter().copied();
        Ok(LinkSample::new(page, page_targets.filter(|&target| hosts[target] == hosts[page])))
    });
    let bits = partition_bits::<[u32; 4]>(count as u64);
    let rows = candidates.map(Ok).chain(rows().map_ok(row_of_kind(1)));
    let rows = (rows, |row: &[u32; 4]| component(Page(row[0])));
    let pages = (pages, |row: &LinkSample| component(row.page));
    let (mut all_rows, mut all_linked) =
        two_alike(net, "pairs and pages with links", CommonPartitions { bits, kinds: 2 }, rows, pages)?;

    let (mut rows, mut linked, mut by_kind) = (Vec::new(), Vec::new(), [const { Vec::new() }; 2]);
    for share in 0..all_rows.count() {
        net.check()?;
        all_rows.take(share, &mut rows)?;
        all_linked.take(share, &mut linked)?;
        by_kind.iter_mut().for_each(Vec::clear);
        for &[a, b, value, kind] in &rows {
            by_kind[kind as usize].push(SimilarPair { a: Page(a), b: Page(b), value });
        }
        // All three lists are ordered by component, so that one merge pass over the components
        // finds their rows.
        by_kind.iter_mut().for_each(|pairs| pairs.sort_unstable_by_key(|pair| (component(pair.a), *pair)));
        linked.sort_unstable_by_key(|row| (component(row.page), *row));
        let [mut similar, mut exact] = by_kind.each_ref().map(|pairs| &pairs[..]);
        for pages in linked.chunk_by(|x, y| component(x.page) == component(y.page)) {
            let chunk_pairs = |rows: &mut &[SimilarPair]| {
                let end = rows.partition_point(|pair| component(pair.a) <= component(pages[0].page));
                let (chunk, remaining) = rows.split_at(end);
                *rows = remaining;
                chunk.to_vec()
            };
            let (mut kept_pairs, copies) = (chunk_pairs(&mut similar), chunk_pairs(&mut exact));
            keep_apart(&mut kept_pairs, &copies, pages, hosts, |host: HostId| links.lead_from(host), &larger);
            pairs.append(&mut kept_pairs);
        }
    }
    pairs.sort_unstable();
    Ok(())
}
