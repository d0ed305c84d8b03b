//! The second look ([`crate::clusters::second_look`]) over all workers: similar cluster by similar cluster, then pair by pair.
//!
//! What collection a page is in, every process is told. Pages and links of collections go to the owner of their similar
//! cluster, who proposes pairs; chunks of their pages, in shares ([`HashPartitions`]), to the owner of the pair, who
//! compares them. What is a copy is decided once in each process, by all pairs; the guard by neighbours has the last word.
//!
//! # Memory
//! 8 bytes a page in each process; 24 for each pair proposed, and 8 for each of its pages; for one share at a time, 8 bytes a
//! link and 24 a page of collections, some 60 for each link of one similar cluster, and 12 for each chunk of a page that
//! is compared.

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::clusters::collection::SimilarCluster;
use crate::clusters::second_look::{Candidate, Seen, WHOLE, candidates, name, one_to_one, share};
use crate::dataflow::pairs::guards::{self, Context};
use crate::dataflow::reading::worker_pages::WorkerPages;
use crate::dataflow::shuffle::hash_partitions::HashPartitions;
use crate::dataflow::shuffle::memory_budget::{MemoryBudget, bucket_bits};
use crate::engine::Net;
use crate::error::Result;
use crate::ids::{ClusterId, FPrint, Number, Page};
use crate::job::{Guard, Job, Measure, MergeCondition};
use crate::overlap::SimilarPair;

/// What came of the second look, of all workers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecondLook {
    /// Pairs of pages of one name in mirrored collections whose links agree.
    pub proposed: u64,
    /// Those whose texts agree too, each page the other's best match.
    pub matched: u64,
    /// Those that the guard refused.
    pub refused: u64,
}

/// Whether a job looks twice: not under the papers' own conditions, which know no guard by neighbours.
pub fn is_asked_for(job: &Job) -> bool {
    matches!(job.similar.by, Measure::Overlap | Measure::Both)
        && matches!(job.overlap.guard, Guard::Neighbours | Guard::Auto)
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Chunk {
    pair: u32,
    fprint_high: u32,
    fprint_low: u32,
}

/// Where pages are: for each, the first page of its collection and the smallest of its similar cluster, or [`NOWHERE`].
type Places = Arc<Vec<[Page; 2]>>;

/// Stands for no page.
const NOWHERE: Page = Page::NONE;

/// Finds the pairs that only their collections tell to be copies, ascending, with this worker where its guard put them. The
/// value of a pair is the mean agreement of links and texts, in millionths.
///
/// `labels` are the trivial clusters that `context.joined` joins pages into, `found` what they grew to.
///
/// # Errors
/// [`crate::error::Error::DiskLimit`] or [`crate::error::Error::DiskFull`] when the disk does not take what `room` has no
/// memory for; or when the run has ended.
pub(crate) fn look(
    net: &mut Net<'_>,
    job: &Job,
    shelf: &WorkerPages,
    labels: &[ClusterId],
    found: &[SimilarCluster],
    context: &Context<'_>,
    room: &MemoryBudget,
) -> Result<(Vec<SimilarPair>, SecondLook)> {
    let places = places(net, found, labels.len())?;
    let proposed = proposed(net, labels, &places, context, room)?;
    let texts = compared(net, shelf, &proposed, room)?;
    let matched = net.once(|| one_to_one(&proposed, &texts))?;
    let mine = matched.iter().skip(net.index()).step_by(net.peers());
    let mut kept: Vec<SimilarPair> = mine.map(|&(Candidate { a, b, .. }, value)| SimilarPair { a, b, value }).collect();
    // What joined clusters before is not asked again.
    let refused = guards::keep_neighbours_apart(net, job.overlap.guard, &mut kept, context)?;
    let counts = SecondLook { proposed: proposed.len() as u64, matched: matched.len() as u64, refused };
    Ok((kept, counts))
}

/// Tells all processes which page is where.
fn places(net: &mut Net<'_>, found: &[SimilarCluster], pages: usize) -> Result<Places> {
    let mut rows: Vec<[Page; 3]> = Vec::new();
    for cluster in found.iter().filter(|cluster| !cluster.double) {
        let of = cluster.id().smallest();
        for collection in &cluster.collections {
            let first = collection.first_page();
            let pages = collection.members.iter().map(|member| member.1).chain(collection.nearby.iter().copied());
            rows.extend(pages.map(|page| [page, first, of]));
        }
    }
    let rows = net.share("pages of mirrors", rows)?;
    net.once(|| {
        let mut places = vec![[NOWHERE; 2]; pages];
        rows.iter().for_each(|&[page, first, of]| places[page.index()] = [first, of]);
        places
    })
}

/// All workers' candidates, ascending.
fn proposed(
    net: &mut Net<'_>,
    labels: &[ClusterId],
    places: &Places,
    &Context { crawl, links, .. }: &Context<'_>,
    room: &MemoryBudget,
) -> Result<Arc<Vec<Candidate>>> {
    let [first, of] = [0, 1].map(|which| move |page: Page| places[page.index()][which]);
    let room = room.parted(2);
    let within = || links.iter().filter(|(src, dst)| first(*src) != NOWHERE && first(*src) == first(*dst));
    let [all] = net.sum("links within mirrors", [within().count() as u64])?;
    let bits = bucket_bits(all / net.peers() as u64 * 8);
    let rows = crawl.pages.iter().filter(|row| first(row.0) != NOWHERE).map(|(page, capture)| {
        let name = xxh3_64(name(&capture.url).as_bytes());
        Named { page: *page, name_high: (name >> 32) as u32, name_low: name as u32 }
    });
    let mut pages = HashPartitions::with_bits(net, "names in mirrors", bits, rows, |row| of(row.page), &room)?;
    let rows = within().map(|&(src, dst)| [src, dst]);
    let mut links = HashPartitions::with_bits(net, "links in mirrors", bits, rows, |row| of(row[0]), &room)?;

    let mut mine = Vec::new();
    let (mut some, mut some_links, mut own) = (Vec::new(), Vec::new(), Vec::new());
    for share in 0..pages.count() {
        net.check()?;
        pages.take(share, &mut some)?;
        links.take(share, &mut some_links)?;
        let mut here: Vec<(Page, Seen)> = some
            .iter()
            .map(|&Named { page, name_high, name_low }| {
                let name = u64::from(name_high) << 32 | u64::from(name_low);
                (of(page), Seen { collection: first(page), page, cluster: labels[page.index()], name })
            })
            .collect();
        here.sort_unstable();
        some_links.sort_unstable_by_key(|&[src, dst]: &[Page; 2]| (of(src), src, dst));
        for seen in here.chunk_by(|x, y| x.0 == y.0) {
            let from = some_links.partition_point(|link| of(link[0]) < seen[0].0);
            let of_this = some_links[from..].iter().take_while(|link| of(link[0]) == seen[0].0);
            own.clear();
            own.extend(of_this.map(|&[src, dst]| (src, dst)));
            let seen: Vec<Seen> = seen.iter().map(|row| row.1).collect();
            mine.extend(candidates(&seen, &own));
        }
    }
    let all = net.share("proposed pairs", mine)?;
    net.once(|| {
        let mut all = all.to_vec();
        all.sort_unstable();
        all
    })
}

/// The agreement of the texts of pairs: chunks common to both pages, of those of either, in millionths.
fn compared(
    net: &mut Net<'_>,
    shelf: &WorkerPages,
    pairs: &Arc<Vec<Candidate>>,
    room: &MemoryBudget,
) -> Result<Arc<Vec<u32>>> {
    let pairs_of = net.once(|| {
        let mut pairs_of: Vec<[u32; 2]> = Vec::with_capacity(2 * pairs.len());
        for (at, pair) in pairs.iter().enumerate() {
            pairs_of.extend([pair.a, pair.b].map(|page| [page.number(), at as u32]));
        }
        pairs_of.sort_unstable();
        pairs_of
    })?;
    let pairs_with = |page: Page| {
        let from = pairs_of.partition_point(|row| row[0] < page.number());
        pairs_of[from..].iter().take_while(move |row| row[0] == page.number()).map(|row| row[1])
    };
    let chunks = |(slot, page): (usize, Page)| pairs_with(page).map(move |pair| (pair, shelf.fprints.get(slot)));
    let count = shelf.kept().flat_map(chunks).map(|(_, fprints)| fprints.len() as u64).sum();
    let row = |pair, fprint: FPrint| Chunk { pair, fprint_high: (fprint >> 32) as u32, fprint_low: fprint as u32 };
    let rows = shelf.kept().flat_map(chunks).flat_map(|(pair, fprints)| fprints.iter().map(move |&f| row(pair, f)));
    let mut shares = HashPartitions::laid_down(net, "chunks of pairs", count, rows, |row| row.pair, room)?;
    let (mut some, mut counted) = (Vec::new(), Vec::new());
    for share in 0..shares.count() {
        net.check()?;
        shares.take(share, &mut some)?;
        some.sort_unstable();
        for chunks in some.chunk_by(|x: &Chunk, y| x.pair == y.pair) {
            let all = chunks.chunk_by(|x, y| x == y).count();
            counted.push([chunks[0].pair, (chunks.len() - all) as u32, all as u32]);
        }
    }
    let counted = net.share("texts of pairs", counted)?;
    net.once(|| {
        let mut texts = vec![WHOLE; pairs.len()];
        counted.iter().for_each(|&[pair, common, all]| texts[pair as usize] = share(common.into(), all.into()));
        texts
    })
}
