//! The second look ([`webtwin_core::clusters::second_look`]) over all workers: similar cluster by similar cluster, then pair by pair.
//!
//! What collection a page is in, every process is told. Pages and links of collections go to the owner of their similar
//! cluster, who proposes pairs by links, and pages below roots to the owner of their place, who proposes pairs by place
//! ([`webtwin_core::clusters::places`]); chunks of the pages of all pairs, in shares ([`HashPartitions`]), to the owner of the pair, who
//! compares them. Whether a pair is the best by far for one of its pages, the workers see in equal parts; what is a copy is decided once in
//! each process, by all pairs. Pairs by place join first; on those by links
//! the guard by neighbours has the last word.
//!
//! # Memory
//! That of [`super::places`]; 24 bytes for each pair proposed, in each process, and one and a half times as much more while they are put in order; 12 for
//! each of its pages with the worker that has read it, and 3 bits a page; for one share at a time, 8 bytes a
//! link and 24 a page of collections, 8 more for a link while they are put in order, some 20 for each link of one similar cluster, and
//! 12 for each chunk of a page that is compared.

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use itertools::Itertools;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::host_links::{PagePlaces, by_source, links_of};
use super::places::{Places, for_each_place};
use crate::pairs::guards::{self, Context};
use crate::reading::worker_pages::WorkerPages;
use crate::shuffle::gather::by_number;
use crate::shuffle::hash_partitions::{Alike, HashPartitions, rows_and_links};
use webtwin_base::error::Result;
use webtwin_base::ids::{ClusterId, FPrint, Page};
use webtwin_core::clusters::places::{TEXT, alike};
use webtwin_core::clusters::second_look::{Candidate, Seen, WHOLE, best_by_far, candidates, name, one_to_one, share};
use webtwin_core::clusters::union_find::sizes;
use webtwin_core::overlap::SimilarPair;
use webtwin_core::overlap::prune::{PageSet, Ranks};
use webtwin_engine::Net;
use webtwin_job::{Guard, Job, Measure, MergeCondition};
use webtwin_spill::{Column, partition_bits};

/// What came of the second look, of all workers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecondLook {
    /// Pairs of pages of one name in mirrored collections whose links agree.
    pub proposed: u64,
    /// Those whose texts agree too, each page the other's best match.
    pub matched: u64,
    /// Those that the guard refused.
    pub refused: u64,
    /// Pairs of pages in one place of mirrored collections that say the same; no guard is asked about them.
    #[serde(default)]
    pub by_place: u64,
    /// Pairs by shared chunks that were taken back, because no collections vouch for what little they share.
    #[serde(default)]
    pub alone: u64,
    /// Pages that were attached to a collection, after all, because a copy of theirs is in the same place of another.
    #[serde(default)]
    pub attached: u64,
}

impl SecondLook {
    /// Whether any pair was added or taken back.
    pub fn has_changed_pairs(&self) -> bool {
        self.matched + self.by_place > self.refused || self.alone > 0
    }
}

/// Whether a job looks twice: not under the papers' own conditions, which know no guard by neighbours.
pub fn is_asked_for(job: &Job) -> bool {
    matches!(job.similar.by, Measure::Overlap | Measure::Both)
        && job.overlap.guard == Guard::Neighbours
        && job.clusters.merge == MergeCondition::Tolerant
}

/// A page of a collection on its way to the owner of its similar cluster.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Named {
    page: Page,
    name_high: u32,
    name_low: u32,
}

/// A chunk of a page of a pair.
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

/// Finds the pairs that only their collections tell to be copies, ascending, with this worker where its guard put them. The
/// value of a pair is the mean agreement of links and texts, in millionths.
///
/// `labels` are the trivial clusters that `context.joined` joins pages into, `places` those of what they grew to.
///
/// # Errors
/// [`webtwin_base::error::Error::DiskLimit`] or [`webtwin_base::error::Error::DiskFull`] when the disk does not take what has no
/// room in memory; or when the run has ended.
pub(crate) fn look(
    net: &mut Net<'_>,
    shelf: &WorkerPages,
    labels: &[ClusterId],
    places: &Places,
    context: &Context<'_>,
) -> Result<(Vec<SimilarPair>, SecondLook)> {
    let by_links = proposed_by_links(net, labels, places, context)?;
    let by_place = proposed_by_place(net, labels, places, context)?;
    let proposed = net.once_per_process(|| [&by_links[..], &by_place].concat())?;
    let all_texts = compared(net, shelf, &proposed, labels.len())?;
    drop(proposed);
    let (texts, of_places) = all_texts.split_at(by_links.len());
    let best = best_by_far(&by_links, texts, (net.index(), net.peers()));
    let best = net.broadcast("best matches", best)?;
    let matched = net.once_per_process(|| {
        let agreeing = by_place.iter().zip(of_places).filter(|(_, text)| **text >= TEXT);
        let by_place: Vec<SimilarPair> = agreeing.map(|(pair, text)| similar(pair, (WHOLE + text) / 2)).collect();
        let is_new = |(pair, _): &(Candidate, u32)| {
            by_place.binary_search_by_key(&(pair.a, pair.b), |found| (found.a, found.b)).is_err()
        };
        let by_links = one_to_one(&by_links, texts, &best).into_iter().filter(is_new);
        (by_links.map(|(pair, value)| similar(&pair, value)).collect::<Vec<_>>(), by_place)
    })?;
    let (index, peers) = (net.index(), net.peers());
    let mine =
        |pairs: &[SimilarPair]| -> Vec<SimilarPair> { pairs.iter().skip(index).step_by(peers).copied().collect() };
    let (mut kept, placed) = (mine(&matched.0), mine(&matched.1));
    let counts = SecondLook {
        proposed: by_links.len() as u64,
        matched: matched.0.len() as u64,
        by_place: matched.1.len() as u64,
        ..SecondLook::default()
    };
    drop((by_links, by_place, all_texts, best, matched));
    // What joined clusters before is not asked again.
    let placed = Column::of(placed, &net.memory)?;
    let joined = [context.joined, &[&placed]].concat();
    let context = Context { joined: &joined, ..*context };
    let refused = guards::keep_neighbours_apart(net, &mut kept, &context)?;
    kept.extend(placed.take()?);
    kept.sort_unstable();
    Ok((kept, SecondLook { refused, ..counts }))
}

/// A candidate that is a pair.
fn similar(&Candidate { a, b, .. }: &Candidate, value: u32) -> SimilarPair {
    SimilarPair { a, b, value }
}

/// All workers' candidates by place, ascending.
fn proposed_by_place(
    net: &mut Net<'_>,
    labels: &[ClusterId],
    places: &Places,
    &Context { crawl, links, .. }: &Context<'_>,
) -> Result<Arc<Vec<Candidate>>> {
    let sizes = net.once_per_process(|| sizes(labels))?;
    let mut mine = Vec::new();
    for_each_place(net, crawl, links, labels, places, |group| {
        mine.extend(alike(group, |page| labels[page], |cluster| sizes[cluster]));
    })?;
    all_of(net, "pairs proposed by place", mine)
}

/// The candidates of all workers, ascending, each once: pages that are below roots of several similar clusters may meet twice.
fn all_of(net: &mut Net<'_>, name: &str, mut mine: Vec<Candidate>) -> Result<Arc<Vec<Candidate>>> {
    mine.sort_unstable();
    let all = net.broadcast(name, mine)?;
    net.once_per_process(|| {
        let mut all = all.to_vec();
        // The stable sort merges what workers have sorted.
        all.sort();
        all.dedup_by_key(|pair| (pair.a, pair.b));
        all
    })
}

/// All workers' candidates by links, ascending.
fn proposed_by_links(
    net: &mut Net<'_>,
    labels: &[ClusterId],
    places: &Places,
    &Context { crawl, links, .. }: &Context<'_>,
) -> Result<Arc<Vec<Candidate>>> {
    let of = |page: Page| places.of(page).map_or(Page::NONE, |place| place.1);
    let is_within = |(src, dst): &(Page, Page)| places.of(*src).is_some() && places.of(*src) == places.of(*dst);
    let bits = partition_bits::<[Page; 2]>(links.len() as u64);
    let rows = crawl.pages.map(|row| {
        places.of(row.page)?;
        let name = xxh3_64(name(row.url()).as_bytes());
        Some(Named { page: row.page, name_high: (name >> 32) as u32, name_low: name as u32 })
    });
    let key = |row: &Named| of(row.page);
    let within = links.blocks().flatten_ok().filter_ok(is_within);
    let within = (within, of);
    let (mut pages, mut links) =
        rows_and_links(net, "names and links in mirrors", Alike { bits, kinds: 2 }, (rows.flatten_ok(), key), within)?;

    let mut mine = Vec::new();
    let mut at = PagePlaces::new();
    let (mut some, mut some_links, mut own) = (Vec::new(), Vec::new(), Vec::new());
    let (mut ends, mut by_place) = (Vec::new(), Vec::new());
    for share in 0..pages.count() {
        net.check()?;
        pages.take(share, &mut some)?;
        links.take(share, &mut some_links)?;
        let mut here: Vec<(Page, Seen)> = some
            .iter()
            .map(|&Named { page, name_high, name_low }| {
                let name = u64::from(name_high) << 32 | u64::from(name_low);
                let (collection, of) = places.of(page).expect("pages of collections were sent");
                (of, Seen { collection, page, cluster: labels[page], name })
            })
            .collect();
        here.sort_unstable();
        at.put(here.iter().map(|row| row.1.page));
        by_source(&some_links, &at, here.len(), &mut ends, &mut by_place);
        let mut first = 0;
        for seen in here.chunk_by(|x, y| x.0 == y.0) {
            let last = first + seen.len();
            links_of(&by_place, &ends, first..last, &mut own);
            let seen: Vec<Seen> = seen.iter().map(|row| row.1).collect();
            mine.extend(candidates(&seen, &own));
            first = last;
        }
    }
    all_of(net, "pairs proposed by links", mine)
}

/// The agreement of the texts of pairs, of so many pages: chunks common to both pages, of those of either, in millionths.
fn compared(net: &mut Net<'_>, shelf: &WorkerPages, pairs: &[Candidate], pages: usize) -> Result<Arc<Vec<u32>>> {
    let (mut ends, mut pairs_of) = (Vec::new(), Vec::new());
    let own = pairs_of_own(shelf, pairs, pages, &mut ends, &mut pairs_of);
    let pairs_with = |page: Page| {
        let rank = own.rank(page).expect("it is this worker's");
        pairs_of[if rank == 0 { 0 } else { ends[rank - 1] as usize }..ends[rank] as usize].iter().copied()
    };
    let mut fprints = shelf.fprints.reader();
    let paired = || shelf.kept().flat_map(|(slot, page)| pairs_with(page).map(move |pair| (slot, pair)));
    let count = paired().map(|(slot, _)| shelf.fprints.size(slot) as u64).sum();
    let row = |pair, fprint: FPrint| Chunk { pair, fprint_high: (fprint >> 32) as u32, fprint_low: fprint as u32 };
    let rows = paired().map(|(slot, pair)| -> Result<Vec<Chunk>> {
        Ok(fprints.get(slot)?.iter().map(|&fprint| row(pair, fprint)).collect())
    });
    let key = |row: &Chunk| row.pair;
    let mut shares = HashPartitions::new(net, "chunks of pairs", count, rows.flatten_ok(), key)?;
    let (mut some, mut both, mut counted) = (Vec::new(), Vec::new(), Vec::new());
    for share in 0..shares.count() {
        net.check()?;
        shares.take(share, &mut some)?;
        // The chunks of a page come ascending, in a piece or two.
        let mut pieces: Vec<&[Chunk]> = some.chunk_by(|x: &Chunk, y| x.pair == y.pair).collect();
        pieces.sort_unstable_by_key(|piece| piece[0].pair);
        for pieces in pieces.chunk_by(|x, y| x[0].pair == y[0].pair) {
            both.clear();
            both.extend(pieces.iter().flat_map(|piece| piece.iter().map(Chunk::fprint)));
            both.sort();
            let all = both.chunk_by(|x, y| x == y).count();
            counted.push([pieces[0][0].pair, (both.len() - all) as u32, all as u32]);
        }
    }
    let whole = || vec![WHOLE; pairs.len()];
    net.broadcast_into("texts of pairs", counted, whole, |texts, _, &[pair, common, all]| {
        texts[pair as usize] = share(common.into(), all.into());
    })
}

/// This worker's pages with the numbers of the pairs that each is in: where those of each end, by its rank.
fn pairs_of_own(
    shelf: &WorkerPages,
    pairs: &[Candidate],
    pages: usize,
    ends: &mut Vec<u32>,
    pairs_of: &mut Vec<u32>,
) -> Ranks {
    let mut own = PageSet::new(pages, |_| false);
    shelf.kept().for_each(|(_, page)| own.insert(page));
    let own = Ranks::of(own);
    let mut rows: Vec<[u32; 2]> = Vec::new();
    for (pair, at) in pairs.iter().zip(0..) {
        rows.extend([pair.a, pair.b].into_iter().filter_map(|page| Some([own.rank(page)? as u32, at])));
    }
    by_number(&rows, |row: &[u32; 2]| row[0], |row: &[u32; 2]| row[1], own.count(), ends, pairs_of);
    own
}
