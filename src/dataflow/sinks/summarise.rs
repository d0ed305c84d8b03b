//! Summary of a run, computed from its results.

use std::collections::{BTreeMap, BTreeSet};

use super::largest::{self, LargestFinding};
use super::resemblance::share;
use super::summary::{self, ContainmentBar, RunSummary, SkipSavings};
use crate::pairs::counts::{OverlapCounts, PairCounts};
use crate::pairs::kinds::PairKind;
use crate::reading::captures::Crawl;
use crate::sinks::found::ReplicaTables;
use webtwin_base::error::Result;
use webtwin_base::ids::{HostId, Page};
use webtwin_core::applications::keep::SkipReason;
use webtwin_core::clusters::labels::SetSizes;
use webtwin_engine::{Net, Owners};
use webtwin_job::Job;

/// Returns the number of trivial clusters of each size.
pub fn by_size(sizes: &SetSizes) -> BTreeMap<u64, u64> {
    let mut clusters = BTreeMap::new();
    sizes.iter().for_each(|size| *clusters.entry(u64::from(size)).or_default() += 1);
    clusters
}

/// Counts of one worker, which are added up over all workers.
type Tally = BTreeMap<String, u64>;

/// Computes the summary of a run, the same on every worker, except for counts that steps provide
/// themselves. `trivial_clusters` are the numbers of trivial clusters by size, and `removed_pages`
/// is the number of pages removed from this worker's similar clusters. `server` has for every host
/// the smallest host of its server.
///
/// # Errors
/// Returns any error of the disk, and an error if the run has ended.
pub fn summarise(
    net: &mut Net<'_>,
    job: &Job,
    tables: &ReplicaTables,
    counts: &PairCounts,
    trivial_clusters: BTreeMap<u64, u64>,
    removed_pages: u64,
    server: &[HostId],
) -> Result<RunSummary> {
    let mut own_tally = Tally::new();
    let mut add = |name: &str, n: u64| *own_tally.entry(name.to_string()).or_default() += n;
    let (mut bytes, mut savings) = (0, BTreeMap::<SkipReason, SkipSavings>::new());
    let mut containment = ContainmentBar::default();
    let mut skipped = tables.avoid.rows.rows().peekable();
    tables.crawl.pages.for_each(|page| {
        bytes += page.body_bytes;
        if let Some(Ok(row)) = skipped.next_if(|row| row.as_ref().is_ok_and(|row| row.page == page.page)) {
            let saving = savings.entry(row.reason()).or_default();
            (saving.pages, saving.bytes) = (saving.pages + 1, saving.bytes + page.body_bytes);
            let fraction = if row.resemblance.is_unknown() { 1.0 } else { row.resemblance.containment() };
            containment.below_half += u64::from(fraction < 0.5);
            containment.below_four_fifths += u64::from(fraction < 0.8);
            containment.below_all += u64::from(fraction < 1.0);
        }
    })?;
    // A remaining row is one that could not be read.
    skipped.next().transpose()?;
    add("bytes", bytes);
    add("contained below half", containment.below_half);
    add("contained below four fifths", containment.below_four_fifths);
    add("contained below all", containment.below_all);
    for (reason, saving) in savings {
        add(&format!("skip pages {}", reason.as_str()), saving.pages);
        add(&format!("skip bytes {}", reason.as_str()), saving.bytes);
    }
    // Pairs are ascending by centre, so all copies of a text are adjacent.
    let mut exact_pairs = 0;
    tables.pairs.each_group(
        |x, y| x[0] == y[0],
        |pairs| {
            let copies = pairs.iter().filter(|row| row[2] == PairKind::Exact as u32).count() as u64;
            if copies > 0 {
                exact_pairs += copies;
                add(&format!("exact {}", copies + 1), 1);
            }
        },
    )?;
    add("exact pairs", exact_pairs);
    add("links", tables.links.len() as u64);
    add("similar clusters", tables.collections.chunk_by(|x, y| x.similar_cluster == y.similar_cluster).count() as u64);
    add("collections", tables.collections.len() as u64);
    for rows in tables.collections.chunk_by(|x, y| x.similar_cluster == y.similar_cluster) {
        let copies = rows.iter().filter(|row| row.identical_to != row.collection);
        let firsts: BTreeSet<Page> = copies.clone().map(|row| row.identical_to).collect();
        add("identical collections", (copies.count() + firsts.len()) as u64);
        add("identical clusters", u64::from(rows.iter().all(|row| row.identical_to == rows[0].identical_to)));
    }
    add("members", tables.members.len() as u64);
    add("taken out", removed_pages);
    add("prefixes", tables.lists.wide);
    let mut totals = Tally::new();
    let (tallies, all_counts): (Vec<Tally>, Vec<PairCounts>) =
        net.all_gather("summary", (own_tally, counts.clone()))?.into_iter().unzip();
    for (name, n) in tallies.into_iter().flatten() {
        *totals.entry(name).or_default() += n;
    }
    let overlap = all_counts.iter().fold(OverlapCounts::default(), |x, y| x + &y.overlap);
    // Other counts than those of the overlap are already sums over all workers.
    let hamming = all_counts[0].hamming;
    let mut trivial = Vec::new();
    tables.verdicts.each_group(
        |x, y| x.cluster == y.cluster,
        |pages| {
            let pages_on = pages.iter().map(|row| row.page);
            let hosts = largest::hosts_and_servers(pages_on, &tables.crawl.directory, server);
            trivial.push((pages[0].keep, hosts, pages.len() as u32));
        },
    )?;
    let trivial = name_largest(net, &tables.crawl, trivial)?;
    let similar = largest::similar_clusters_of(&tables.collections, &tables.crawl.directory, server);
    let [largest_trivial_clusters, largest_similar_clusters] = largest::largest(net, [trivial, similar])?;

    let get = |name: &str| totals.get(name).copied().unwrap_or(0);
    let pages = SkipSavings { pages: tables.crawl.directory.len() as u64, bytes: get("bytes") };
    let skip_by_reason: BTreeMap<SkipReason, SkipSavings> =
        [SkipReason::Exact, SkipReason::Collection, SkipReason::Similar]
            .map(|reason| {
                let saved = |what: &str| get(&format!("skip {what} {}", reason.as_str()));
                (reason, SkipSavings { pages: saved("pages"), bytes: saved("bytes") })
            })
            .into();
    let skip = SkipSavings {
        pages: skip_by_reason.values().map(|saving| saving.pages).sum(),
        bytes: skip_by_reason.values().map(|saving| saving.bytes).sum(),
    };
    let exact_groups: BTreeMap<u64, u64> =
        totals.iter().filter_map(|(name, &n)| Some((name.strip_prefix("exact ")?.parse().ok()?, n))).collect();
    Ok(RunSummary {
        digest: webtwin_job::JobDigest::from_job(job).hex(),
        pages,
        hosts: tables.crawl.directory.hosts.iter().max().map_or(0, |host| u64::from(*host) + 1),
        links: get("links"),
        replication_exact: summary::bars(&exact_groups, pages.pages),
        replication_similar: summary::bars(&trivial_clusters, pages.pages),
        overlap,
        hamming,
        signatures: counts.signatures,
        minhash: counts.minhash,
        given: (!job.pairs.from.is_empty()).then_some(counts.given),
        views: counts.views,
        exact_pairs: get("exact pairs"),
        trivial_clusters: trivial_clusters.iter().filter(|(size, _)| **size > 1).map(|(_, n)| n).sum(),
        similar_clusters: get("similar clusters"),
        collections: get("collections"),
        identical_clusters: get("identical clusters"),
        identical_collections: get("identical collections"),
        pages_in_collections: get("members"),
        taken_out: get("taken out"),
        skip,
        skip_share_of_pages: share(skip.pages, pages.pages),
        skip_share_of_bytes: share(skip.bytes, pages.bytes),
        skip_by_reason,
        skip_contained: ContainmentBar {
            below_half: get("contained below half"),
            below_four_fifths: get("contained below four fifths"),
            below_all: get("contained below all"),
        },
        avoid_prefixes: get("prefixes"),
        largest_similar_clusters,
        largest_trivial_clusters,
        ..RunSummary::default()
    })
}

/// Returns the largest of this worker's trivial clusters, given as (page that is kept, hosts and
/// servers, pages), with the URL of the kept page.
fn name_largest(
    net: &mut Net<'_>,
    crawl: &Crawl,
    mut clusters: Vec<(Page, (u32, u32), u32)>,
) -> Result<Vec<LargestFinding>> {
    clusters.sort_unstable_by_key(|&(keep, (hosts, _), pages)| (std::cmp::Reverse((hosts, pages)), keep));
    clusters.truncate(largest::MAX_FINDINGS);
    let directory = crawl.directory.clone();
    let rows = clusters.into_iter().map(|row| Ok((directory.owner(row.0), row)));
    let requests = net.exchange_values("kept pages", rows)?;
    let mut pages = crawl.reader();
    let largest = |(keep, (hosts, servers), copies): (Page, (u32, u32), u32)| {
        let page = pages.page(keep)?;
        Ok(LargestFinding { hosts, servers, copies, size: 1, doc_id: page.doc_id, url: page.url().to_string() })
    };
    requests.into_iter().map(largest).collect()
}
