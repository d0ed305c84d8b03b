//! The context pass ([`webtwin_core::clusters::context_pass`]) over all workers: similar cluster by
//! similar cluster, then pair by pair.
//!
//! The collection of every page is broadcast. Pages and links of collections are sent to the owner
//! of their similar cluster, which proposes pairs by links. Pages below roots are sent to the owner
//! of their place, which proposes pairs by place ([`webtwin_core::clusters::places`]). Chunks of
//! the pages of all pairs are sent, in partitions ([`HashPartitions`]), to the owner of the pair,
//! which compares them. Each worker checks an equal part of the pairs for being by far the best
//! pair of one of their pages. Copies are then decided once in each process, from all pairs. Pairs
//! by place join clusters first. The guard by neighbours makes the final decision about pairs by
//! links.
//!
//! # Memory
//! Takes the memory of [`super::places`]. Takes, in each process, 24 bytes for each proposed pair,
//! and one and a half times as much while these are sorted. Takes 12 for each page of a pair at the
//! worker that has read it, and 3 bits for each page. Takes, for one partition at a time, 8 bytes
//! for each link and 24 for each page of collections, 8 more for each link while they are sorted,
//! about 20 for each link of one similar cluster, and 12 for each chunk of a page that is compared.

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use itertools::Itertools;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::host_links::{PagePlaces, by_source, links_of};
use super::places::{PagePositions, for_each_place};
use super::trivial::TrivialClusters;
use crate::pairs::guards::{self, Context};
use crate::reading::worker_pages::WorkerPages;
use crate::shuffle::gather::by_number;
use crate::shuffle::hash_partitions::{CommonPartitions, HashPartitions, rows_and_links};
use webtwin_base::error::Result;
use webtwin_base::ids::{ClusterId, FPrint, Page};
use webtwin_core::clusters::context_pass::{
    CandidatePair, ContextPage, MILLION, best_by_far, candidates, name, one_to_one, share,
};
use webtwin_core::clusters::labels::SetLabels;
use webtwin_core::clusters::places::{TEXT, equal_pages};
use webtwin_core::overlap::SimilarPair;
use webtwin_core::overlap::prune::{PageSet, Ranks};
use webtwin_engine::Net;
use webtwin_job::{Guard, Job, Measure, MergeCondition};
use webtwin_spill::{SpillColumn, partition_bits};

/// Counts of the context pass, over all workers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextPassCounts {
    /// Pairs of pages with the same name in mirrored collections whose links agree.
    pub proposed: u64,
    /// Proposed pairs whose texts agree, too, and each of whose pages is the other's best match.
    pub matched: u64,
    /// Matched pairs that the guard refused.
    pub refused: u64,
    /// Pairs of pages at the same place of mirrored collections with the same content. The guard
    /// does not apply to them.
    #[serde(default)]
    pub by_place: u64,
    /// Pairs by shared chunks that were removed, because they share little and no collections
    /// support them.
    #[serde(default)]
    pub alone: u64,
    /// Pages that were attached to a collection because a copy is at the same place of another
    /// collection.
    #[serde(default)]
    pub attached: u64,
}

impl ContextPassCounts {
    /// True if any pair was added or removed.
    pub fn has_changed_pairs(&self) -> bool {
        self.matched + self.by_place > self.refused || self.alone > 0
    }
}

/// Returns true if a job runs the context pass. The papers' own merge conditions exclude it,
/// because they have no guard by neighbours.
pub fn is_asked_for(job: &Job) -> bool {
    matches!(job.similar.by, Measure::Overlap | Measure::Both)
        && job.overlap.guard == Guard::Neighbours
        && job.clusters.merge == MergeCondition::Tolerant
}

/// Page of a collection in transit to the owner of its similar cluster.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct NamedPage {
    page: Page,
    name_high: u32,
    name_low: u32,
}

/// Chunk of a page of a pair.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Chunk {
    pair: u32,
    fprint_high: u32,
    fprint_low: u32,
}

impl Chunk {
    fn fprint(&self) -> FPrint {
        FPrint::from(self.fprint_high) << 32 | FPrint::from(self.fprint_low)
    }
}

/// Finds the pairs that only their collections support, ascending, at the workers where the guard
/// leaves them. The value of a pair is the mean agreement of links and texts, in millionths.
///
/// `trivial` are the clusters into which `context.joined_pairs` joins pages, and `places` are the
/// places of pages in the collections that these grew to.
///
/// # Errors
/// Returns [`webtwin_base::error::Error::DiskLimit`] or [`webtwin_base::error::Error::DiskFull`] if
/// data beyond the memory budget does not fit on the disk, and an error if the run has ended.
pub(crate) fn look(
    net: &mut Net<'_>,
    local_pages: &WorkerPages,
    trivial: &TrivialClusters,
    places: &PagePositions,
    context: &Context<'_>,
) -> Result<(Vec<SimilarPair>, ContextPassCounts)> {
    let by_links = proposed_by_links(net, &trivial.labels, places, context)?;
    let by_place = proposed_by_place(net, trivial, places, context)?;
    let proposed = net.once_per_process(|| [&by_links[..], &by_place].concat())?;
    let all_texts = compared(net, local_pages, &proposed, trivial.labels.members())?;
    drop(proposed);
    let (texts, place_texts) = all_texts.split_at(by_links.len());
    let best = best_by_far(&by_links, texts, (net.index(), net.peers()));
    let best = net.broadcast("best matches", best)?;
    let matched = net.once_per_process(|| {
        let agreeing = by_place.iter().zip(place_texts).filter(|(_, text)| **text >= TEXT);
        let by_place: Vec<SimilarPair> = agreeing.map(|(pair, text)| similar(pair, (MILLION + text) / 2)).collect();
        let is_new = |(pair, _): &(CandidatePair, u32)| {
            by_place.binary_search_by_key(&(pair.a, pair.b), |found| (found.a, found.b)).is_err()
        };
        let by_links = one_to_one(&by_links, texts, &best).into_iter().filter(is_new);
        (by_links.map(|(pair, value)| similar(&pair, value)).collect::<Vec<_>>(), by_place)
    })?;
    let (index, peers) = (net.index(), net.peers());
    let own_pairs =
        |pairs: &[SimilarPair]| -> Vec<SimilarPair> { pairs.iter().skip(index).step_by(peers).copied().collect() };
    let (mut verified_pairs, pairs_by_place) = (own_pairs(&matched.0), own_pairs(&matched.1));
    let counts = ContextPassCounts {
        proposed: by_links.len() as u64,
        matched: matched.0.len() as u64,
        by_place: matched.1.len() as u64,
        ..ContextPassCounts::default()
    };
    drop((by_links, by_place, all_texts, best, matched));
    // Pairs that already join clusters are not checked again.
    let placed_pairs = SpillColumn::from_rows(pairs_by_place, &net.memory)?;
    let all_columns = [context.joined_pairs, &[&placed_pairs]].concat();
    let context = Context { joined_pairs: &all_columns, ..*context };
    let refused_pairs = guards::keep_neighbours_apart(net, &mut verified_pairs, &context)?;
    verified_pairs.extend(placed_pairs.take()?);
    verified_pairs.sort_unstable();
    Ok((verified_pairs, ContextPassCounts { refused: refused_pairs, ..counts }))
}

/// Converts a candidate into a similar pair.
fn similar(&CandidatePair { a, b, .. }: &CandidatePair, value: u32) -> SimilarPair {
    SimilarPair { a, b, value }
}

/// Returns the candidates by place of all workers, ascending.
fn proposed_by_place(
    net: &mut Net<'_>,
    TrivialClusters { labels, sizes }: &TrivialClusters,
    places: &PagePositions,
    &Context { crawl, links, .. }: &Context<'_>,
) -> Result<Arc<Vec<CandidatePair>>> {
    let mut proposed_pairs = Vec::new();
    for_each_place(net, crawl, links, labels, places, |group| {
        proposed_pairs.extend(equal_pages(group, |page| labels.label(page), |cluster| sizes.size(cluster)));
    })?;
    all_of(net, "pairs proposed by place", proposed_pairs)
}

/// Returns the candidates of all workers, ascending and without repetitions. Pages below roots of
/// several similar clusters may be paired twice.
fn all_of(net: &mut Net<'_>, name: &str, mut pairs: Vec<CandidatePair>) -> Result<Arc<Vec<CandidatePair>>> {
    pairs.sort_unstable();
    let shared_pairs = net.broadcast(name, pairs)?;
    net.once_per_process(|| {
        let mut sorted_pairs = shared_pairs.to_vec();
        // The stable sort merges runs that workers have sorted.
        sorted_pairs.sort();
        sorted_pairs.dedup_by_key(|pair| (pair.a, pair.b));
        sorted_pairs
    })
}

/// Returns the candidates by links of all workers, ascending.
fn proposed_by_links(
    net: &mut Net<'_>,
    labels: &SetLabels<ClusterId>,
    places: &PagePositions,
    &Context { crawl, links, .. }: &Context<'_>,
) -> Result<Arc<Vec<CandidatePair>>> {
    let similar_cluster_of = |page: Page| places.position(page).map_or(Page::NONE, |place| place.1);
    let is_within =
        |(src, dst): &(Page, Page)| places.position(*src).is_some() && places.position(*src) == places.position(*dst);
    let bits = partition_bits::<[Page; 2]>(links.len() as u64);
    let rows = crawl.pages.map(|row| {
        places.position(row.page)?;
        let name = xxh3_64(name(row.url()).as_bytes());
        Some(NamedPage { page: row.page, name_high: (name >> 32) as u32, name_low: name as u32 })
    });
    let key = |row: &NamedPage| similar_cluster_of(row.page);
    let within = links.blocks().flatten_ok().filter_ok(is_within);
    let within = (within, similar_cluster_of);
    let (mut pages, mut links) = rows_and_links(
        net,
        "names and links in mirrors",
        CommonPartitions { bits, kinds: 2 },
        (rows.flatten_ok(), key),
        within,
    )?;

    let mut proposed_pairs = Vec::new();
    let mut at = PagePlaces::new();
    let (mut rows, mut link_rows, mut group_links) = (Vec::new(), Vec::new(), Vec::new());
    let (mut ends, mut by_place) = (Vec::new(), Vec::new());
    for share in 0..pages.count() {
        net.check()?;
        pages.take(share, &mut rows)?;
        links.take(share, &mut link_rows)?;
        let mut pages_here: Vec<(Page, ContextPage)> = rows
            .iter()
            .map(|&NamedPage { page, name_high, name_low }| {
                let name = u64::from(name_high) << 32 | u64::from(name_low);
                let (collection, similar_cluster) = places.position(page).expect("pages of collections were sent");
                (similar_cluster, ContextPage { collection, page, cluster: labels.label(page), name })
            })
            .collect();
        // Links refer to pages by index among the pages of this partition, so that the links of a
        // similar cluster are a range of them.
        pages_here.sort_unstable();
        at.put(pages_here.iter().map(|row| row.1.page));
        by_source(&link_rows, &at, pages_here.len(), &mut ends, &mut by_place);
        let mut first = 0;
        for group in pages_here.chunk_by(|x, y| x.0 == y.0) {
            let last = first + group.len();
            links_of(&by_place, &ends, first..last, &mut group_links);
            let context_pages: Vec<ContextPage> = group.iter().map(|row| row.1).collect();
            proposed_pairs.extend(candidates(&context_pages, &group_links));
            first = last;
        }
    }
    all_of(net, "pairs proposed by links", proposed_pairs)
}

/// Returns the agreement of the texts of pairs in millionths: the number of common chunks divided
/// by the number of chunks of either page. `pages` is the number of all pages.
fn compared(
    net: &mut Net<'_>,
    local_pages: &WorkerPages,
    pairs: &[CandidatePair],
    pages: usize,
) -> Result<Arc<Vec<u32>>> {
    let (mut ends, mut pairs_of) = (Vec::new(), Vec::new());
    let own_pages = pairs_of_own(local_pages, pairs, pages, &mut ends, &mut pairs_of);
    let pairs_with = |page: Page| {
        let rank = own_pages.rank(page).expect("it is this worker's");
        pairs_of[if rank == 0 { 0 } else { ends[rank - 1] as usize }..ends[rank] as usize].iter().copied()
    };
    let mut fprints = local_pages.fprints.reader();
    let paired = || local_pages.kept().flat_map(|(slot, page)| pairs_with(page).map(move |pair| (slot, pair)));
    let count = paired().map(|(slot, _)| local_pages.fprints.size(slot) as u64).sum();
    let row = |pair, fprint: FPrint| Chunk { pair, fprint_high: (fprint >> 32) as u32, fprint_low: fprint as u32 };
    let rows = paired().map(|(slot, pair)| -> Result<Vec<Chunk>> {
        Ok(fprints.get(slot)?.iter().map(|&fprint| row(pair, fprint)).collect())
    });
    let key = |row: &Chunk| row.pair;
    let mut shares = HashPartitions::new(net, "chunks of pairs", count, rows.flatten_ok(), key)?;
    let (mut chunks, mut fprints, mut pair_counts) = (Vec::new(), Vec::new(), Vec::new());
    for share in 0..shares.count() {
        net.check()?;
        shares.take(share, &mut chunks)?;
        // The chunks of a page arrive ascending, in one or two runs.
        let mut pieces: Vec<&[Chunk]> = chunks.chunk_by(|x: &Chunk, y| x.pair == y.pair).collect();
        pieces.sort_unstable_by_key(|piece| piece[0].pair);
        for pieces in pieces.chunk_by(|x, y| x[0].pair == y[0].pair) {
            fprints.clear();
            fprints.extend(pieces.iter().flat_map(|piece| piece.iter().map(Chunk::fprint)));
            fprints.sort();
            let distinct_count = fprints.chunk_by(|x, y| x == y).count();
            pair_counts.push([pieces[0][0].pair, (fprints.len() - distinct_count) as u32, distinct_count as u32]);
        }
    }
    let whole = || vec![MILLION; pairs.len()];
    net.broadcast_into("texts of pairs", pair_counts, whole, |texts, _, &[pair, common, union]| {
        texts[pair as usize] = share(common.into(), union.into());
    })
}

/// Replaces the content of `pairs_of` by the numbers of the pairs of each of this worker's pages,
/// and the content of `ends` by the ends of these lists, by rank of the page. Returns the ranks.
fn pairs_of_own(
    local_pages: &WorkerPages,
    pairs: &[CandidatePair],
    pages: usize,
    ends: &mut Vec<u32>,
    pairs_of: &mut Vec<u32>,
) -> Ranks {
    let mut page_set = PageSet::new(pages, |_| false);
    local_pages.kept().for_each(|(_, page)| page_set.insert(page));
    let own_pages = Ranks::new(page_set);
    let mut rows: Vec<[u32; 2]> = Vec::new();
    for (pair, at) in pairs.iter().zip(0..) {
        rows.extend([pair.a, pair.b].into_iter().filter_map(|page| Some([own_pages.rank(page)? as u32, at])));
    }
    by_number(&rows, |row: &[u32; 2]| row[0], |row: &[u32; 2]| row[1], own_pages.count(), ends, pairs_of);
    own_pages
}
