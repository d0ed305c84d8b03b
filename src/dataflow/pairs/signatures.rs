//! Signatures of all pages, and the pairs of pages whose signatures collide.
//!
//! Minimum and maximum values are reduced over all workers, and the HM recursion runs over the
//! links ([`crate::pairs::hyperlink_map`]). One exchange sends every point to the worker of its
//! slab ([`webtwin_core::signatures::collide::Slabs`]), and to the workers of neighbouring slabs
//! that it must visit. Exact copies have signatures, but only their centres are joined.
//!
//! # Memory
//! Takes 64 bytes for each component of each page, and about as much for each visit of a page to a
//! slab. Takes 12 for each pair, up to the number that
//! [`Signatures::max_pairs`](webtwin_job::Signatures::max_pairs) allows, and 48 more with the
//! guard.

use serde::{Deserialize, Serialize};

use crate::clusters::links::WorkerLinks;
use crate::pairs::exact;
use crate::pairs::guards::keep_mutual_best;
use crate::pairs::hyperlink_map::hyperlink_map;
use crate::parts::TablePart;
use crate::reading::captures::Crawl;
use crate::shuffle::memory::check_bytes_against_bound;
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::{DocId, Page};
use webtwin_core::overlap::SimilarPair;
use webtwin_core::signatures::collide::{Points, Slabs, collisions};
use webtwin_core::signatures::random_projection::ComponentBounds;
use webtwin_core::signatures::{ONE, distance, number, parts};
use webtwin_engine::{Net, Owners};
use webtwin_job::{Guard, Job, Signatures};
use webtwin_storage::table::{Table, TableColumn};

/// Number of points of all workers from which slabs are chosen.
const SAMPLE: usize = 1 << 12;

/// Name of the table of signatures.
pub const TABLE: &str = "signatures";

/// Counts of the steps, over all workers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignatureCounts {
    /// Pages that have signatures.
    pub signatures: u64,
    /// Pages with signatures that are not copies of other pages.
    pub joined: u64,
    /// Pairs of the joined pages that collide.
    pub collisions: u64,
    /// Colliding pairs that the guard removed.
    pub guarded: u64,
}

/// Result of the join of signatures.
#[derive(Debug)]
pub struct SignaturePairs {
    /// Pairs that collide, ascending, at the owner of the smaller page. The value is the distance
    /// of their RP signatures, in billionths.
    pub pairs: Vec<SimilarPair>,
    /// Counts of the steps.
    pub counts: SignatureCounts,
    /// Parts of the `signatures` table, ascending, at the owner of the page.
    pub parts: Vec<TablePart>,
}

/// Computes the signatures of this worker's pages, and finds the similar pairs among the centres.
/// `exact_pairs` are (centre, copy) pairs at any worker, and `links` are the links of this worker's
/// pages.
///
/// # Errors
/// Returns [`Error::TooManyPairs`] if there are more than `max_pairs` pairs, before any worker
/// stores more than that. Returns [`Error::MemoryLimit`] if the memory limit does not suffice.
pub fn similar_pairs(
    net: &mut Net<'_>,
    crawl: &Crawl,
    links: &WorkerLinks,
    exact_pairs: &webtwin_spill::SpillColumn<SimilarPair>,
    job: &Job,
) -> Result<SignaturePairs> {
    let settings = &job.signatures;
    let dims = settings.vectors.dims as usize;
    let held_bytes = 64 * dims as u64 * crawl.pages.len() as u64;
    check_bytes_against_bound(net, "pages and their signatures", held_bytes, job.effort.memory_bytes)?;
    let rp = random_projections(net, crawl, dims)?;
    let signed: Vec<bool> = crawl.pages.map(|page| !page.rare_fields().projected.is_empty()).collect::<Result<_>>()?;
    let hm = hyperlink_map(net, &crawl.directory, &rp, &signed, links, &settings.vectors)?;
    let directory = crawl.directory.clone();
    let mut copies = net.exchange("copies", exact::copies_of(exact_pairs)?, |&copy| directory.owner(copy))?;
    copies.sort_unstable();

    let (mut points, mut pages) = (Points::new(2 * dims), Vec::new());
    let mut point = Vec::new();
    let mut signatures = 0;
    for (at, page) in directory.owned(net.index()).enumerate().filter(|row| signed[row.0]) {
        signatures += 1;
        if copies.binary_search(&page).is_err() {
            let components = at * dims..(at + 1) * dims;
            point.clear();
            point.extend(rp[components.clone()].iter().chain(&hm[components]));
            points.push(&point);
            pages.push(page);
        }
    }
    let joined_pages = pages.len() as u64;
    let (pairs, collisions) = collide(net, points, pages, settings)?;
    let mut pairs = net.exchange("signature pairs", pairs, |pair| directory.owner(pair.a))?;
    pairs.sort_unstable();
    if settings.guard == Guard::MutualBest {
        // Two pages share a billion parts minus their distance.
        let resemblance = |pair: &SimilarPair| (BILLIONTHS - pair.value, BILLIONTHS);
        keep_mutual_best(net, &mut pairs, &directory.hosts, &*directory, resemblance)?;
    }
    let [signatures, joined_pages, collisions, left] =
        net.all_sum("counts of signatures", [signatures, joined_pages, collisions, pairs.len() as u64])?;
    let counts = SignatureCounts { signatures, joined: joined_pages, collisions, guarded: collisions - left };
    let own_pages: Vec<Page> = directory.owned(net.index()).collect();
    let signed: Vec<usize> = (0..own_pages.len()).filter(|&at| signed[at]).collect();
    let partition = |at: usize| directory.partition(own_pages[at]);
    let runs = signed.chunk_by(|&x, &y| partition(x) == partition(y));
    let doc_ids = directory.doc_ids()?;
    let table = |rows: &[usize]| table(&doc_ids, &own_pages, rows, &rp, &hm, dims);
    let mut parts: Vec<TablePart> =
        runs.map(|rows| TablePart { name: TABLE, partition: partition(rows[0]), rows: table(rows) }).collect();
    if counts.signatures == 0 && net.index() == 0 {
        parts.push(TablePart { name: TABLE, partition: 0, rows: table(&[]) });
    }
    Ok(SignaturePairs { pairs, counts, parts })
}

/// Returns the RP signatures of this worker's pages, one after the other; 0 for pages without a
/// signature.
fn random_projections(net: &mut Net<'_>, crawl: &Crawl, dims: usize) -> Result<Vec<u64>> {
    let mut own_bounds = ComponentBounds::default();
    crawl.pages.for_each(|page| {
        let projected = page.rare_fields().projected;
        if !projected.is_empty() {
            own_bounds.extend(&projected);
        }
    })?;
    let bounds = net.all_reduce("bounds of projections", own_bounds, |mut bounds, other| {
        bounds.join(other);
        bounds
    })?;
    let mut rp = vec![0; crawl.pages.len() * dims];
    let mut page_components = rp.chunks_mut(dims);
    crawl.pages.for_each(|page| {
        let signature = page_components.next().expect("a signature for each page");
        signature.iter_mut().zip(bounds.signature(&page.rare_fields().projected)).for_each(|(own, part)| *own = part);
    })?;
    Ok(rp)
}

/// Returns the pairs of points that collide, with their pages, at the workers that found them; and
/// the number of these pairs.
fn collide(
    net: &mut Net<'_>,
    points: Points,
    pages: Vec<Page>,
    settings: &Signatures,
) -> Result<(Vec<SimilarPair>, u64)> {
    let dims = settings.vectors.dims as usize;
    let mut tolerance = vec![parts(settings.rp_tolerance); dims];
    tolerance.resize(2 * dims, parts(settings.hm_tolerance));
    let (own_index, peers) = (net.index(), net.peers());
    let sample_step = (points.len() * peers).div_ceil(SAMPLE).max(1);
    let own_sample: Vec<Vec<u64>> =
        (0..points.len()).step_by(sample_step).map(|at| points.get(at as u32).to_vec()).collect();
    let mut sample = Points::new(2 * dims);
    net.all_gather("sample of signatures", own_sample)?.iter().flatten().for_each(|point| sample.push(point));
    let slabs = Slabs::new(&sample, &tolerance, peers);

    let rows = pages.iter().zip(0..).flat_map(|(&page, at)| {
        let point = points.get(at);
        let to = slabs.visited(point).chain([slabs.home(point)]);
        to.map(move |worker| Ok((worker, (page, point.to_vec()))))
    });
    let mut rows: Vec<(Page, Vec<u64>)> = net.exchange_values("signatures", rows)?;
    drop((points, pages));
    // Points of this worker's own slab come first, then visitors: each pair is found once, at the
    // home of its lower point.
    rows.sort_unstable_by_key(|(page, point)| (slabs.home(point) != own_index, *page));
    let home = rows.partition_point(|(_, point)| slabs.home(point) == own_index);
    let mut local_points = Points::new(2 * dims);
    rows.iter().for_each(|(_, point)| local_points.push(point));
    let pages: Vec<Page> = rows.into_iter().map(|row| row.0).collect();

    let (mut pairs, mut count) = (Vec::new(), 0);
    collisions(&local_points, home, &tolerance, |block| {
        count += block.count();
        if count <= settings.max_pairs {
            block.for_each_pair(|x, y| {
                let value = distance(&local_points.get(x)[..dims], &local_points.get(y)[..dims])
                    / (ONE / u64::from(BILLIONTHS));
                let (x, y) = (pages[x as usize], pages[y as usize]);
                pairs.push(SimilarPair { a: x.min(y), b: x.max(y), value: value as u32 });
            });
        }
    });
    let [total_collisions] = net.all_sum("collisions", [count])?;
    if total_collisions > settings.max_pairs {
        return Err(Error::TooManyPairs {
            what: "pairs of pages collide".into(),
            found: total_collisions,
            pair_bytes: 60,
            limit: format!("signatures.max_pairs allows {}", settings.max_pairs),
            remedy: "smaller signatures.rp_tolerance and signatures.hm_tolerance make fewer pairs".into(),
        });
    }
    Ok((pairs, count))
}

/// Unit of the value of a pair.
const BILLIONTHS: u32 = 1_000_000_000;

/// Returns the rows of the pages at the given indices.
fn table(doc_ids: &[DocId], own_pages: &[Page], rows: &[usize], rp: &[u64], hm: &[u64], dims: usize) -> Table {
    let ids = rows.iter().map(|&at| doc_ids[own_pages[at]]).collect();
    let mut columns = vec![("doc_id".to_string(), TableColumn::Id(ids))];
    for (name, values) in [("rp", rp), ("hm", hm)] {
        columns.extend((0..dims).map(|dim| {
            let values = rows.iter().map(|&at| number(values[at * dims + dim])).collect();
            (format!("{name}_{dim}"), TableColumn::F64(values))
        }));
    }
    Table { columns }
}
