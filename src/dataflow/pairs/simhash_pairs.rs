//! Finds pairs of pages whose simhashes are near. Pages with the same simhash are sent to one
//! worker, which groups them. The dataflow that joins F with itself ([`crate::hamming::self_join`])
//! finds near groups, and each of two near groups receives the pages of the other.
//!
//! [`webtwin_core::hamming::pairs`] defines which pages form a pair, and explains why equal
//! simhashes do not pair every two pages. Takes five exchanges in addition to those of the join.
//!
//! # Memory
//! Takes 12 bytes for each page, 72 for each distinct simhash during the join, and 40 for each host
//! of either group of a near pair, over all workers.

use bytemuck::{Pod, Zeroable};
use itertools::Itertools;
use serde::{Deserialize, Serialize};

use crate::hamming::self_join::close_pairs;
use crate::pairs::exact;
use crate::reading::captures::Crawl;
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::{HostId, Page};
use webtwin_core::hamming::pairs::{HostGroup, SimhashDocId, SimhashGroups, group, pair, spoken_for};
use webtwin_core::hamming::rows::{FingerprintRun, NearRuns};
use webtwin_core::overlap::SimilarPair;
use webtwin_engine::{HashOwners, Net, Owners};
use webtwin_job::{Guard, Hamming};
use webtwin_spill::SpillColumn;

/// Counts of the steps, over all workers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SimhashCounts {
    /// Pages that have a simhash and are not copies of other pages.
    pub simhashes: u64,
    /// Number of distinct simhashes of these pages.
    pub distinct: u64,
    /// Pairs of distinct simhashes within k bits; in a batch, pairs of a page of earlier crawls and
    /// a page of the new crawl.
    pub near: u64,
    /// Near pairs that the guard removed.
    pub guarded: u64,
    /// Pairs of pages: the smallest number that yields the same clusters.
    pub similar: u64,
}

/// One face of a group (a page on a host) in the form that is sent to a near group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct View {
    /// Number of the group that receives the face.
    from: u32,
    /// Number of the group that the face belongs to.
    to: u32,
    distance: u32,
    host: HostId,
    page: Page,
}

/// Page of a near group that a group selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct SpokenFor {
    /// Numbers of the two groups, the smaller number first.
    x: u32,
    y: u32,
    distance: u32,
    page: Page,
}

/// Ownership of groups by their numbers.
struct Numbers {
    /// First number of each worker, and at the end the number of all groups.
    firsts: Vec<u32>,
}

impl Owners<u32> for Numbers {
    fn owner(&self, number: u32) -> usize {
        self.firsts.partition_point(|first| *first <= number) - 1
    }
}

/// Finds the similar pairs among the centres. `exact_pairs` are (centre, copy) pairs at any worker.
/// Each worker returns the pairs that it has found, ascending. All workers return the same counts.
///
/// # Errors
/// Returns [`Error::TooManyRows`] if there are more than 2^32 distinct simhashes, and an error if
/// the run has ended.
pub fn similar_pairs(
    net: &mut Net<'_>,
    crawl: &Crawl,
    exact_pairs: &SpillColumn<SimilarPair>,
    settings: &Hamming,
) -> Result<(Vec<SimilarPair>, SimhashCounts)> {
    let directory = &crawl.directory;
    let copies = exact::copies_of(exact_pairs)?.into_iter();
    let mut copies: Vec<Page> = net.exchange("copies", copies, |copy| directory.owner(*copy))?;
    copies.sort_unstable();
    let rows = crawl.pages.map(|row| {
        let is_centre = copies.binary_search(&row.page).is_err();
        row.simhash().filter(|_| is_centre).map(|simhash| SimhashDocId::new(simhash, row.page))
    });
    let owners = HashOwners::new(net);
    let owner = |row: &SimhashDocId| owners.owner(row.simhash());
    let mut rows = net.exchange("simhashes of centres", rows.flatten_ok(), owner)?;
    rows.sort_unstable_by_key(|row| (row.simhash(), row.doc));
    let mut pairs = Vec::new();
    let groups = group(&rows, &directory.hosts, &mut pairs);
    let group_pairs = pairs.len() as u64;

    let numbers = numbers(net, &groups)?;
    let first = numbers.firsts[net.index()];
    let runs =
        (first..).zip(&groups.simhashes).map(|(first, &fingerprint)| FingerprintRun { fingerprint, first, copies: 1 });
    let near = close_pairs(net, runs.collect(), u64::MAX, settings.k)?;
    let views = views(net, &groups, &numbers, &near, settings.guard)?;
    let spoken_for = spoken_for_pages(&groups, first, &views, settings.guard);
    let mut spoken_for = net.exchange("pages of groups", spoken_for, |row| numbers.owner(row.x))?;
    spoken_for.sort_unstable();
    // Both groups must select a page of the other one. A group that does not has no row.
    let agreed = spoken_for.chunk_by(|one, other| (one.x, one.y) == (other.x, other.y)).filter(|rows| rows.len() == 2);
    pairs.extend(agreed.map(|rows| pair(rows[0].page, rows[1].page, rows[0].distance)));
    pairs.sort_unstable();

    let own_counts = [rows.len() as u64, near.len() as u64, pairs.len() as u64, group_pairs];
    let [simhashes, near, similar, group_pairs] = net.all_sum("near simhashes", own_counts)?;
    let distinct = u64::from(numbers.firsts[net.peers()]);
    Ok((pairs, SimhashCounts { simhashes, distinct, near, guarded: near - (similar - group_pairs), similar }))
}

/// Numbers the groups of all workers, those of worker 0 first.
fn numbers(net: &mut Net<'_>, groups: &SimhashGroups) -> Result<Numbers> {
    let counts: Vec<u64> = net.all_gather("distinct simhashes", groups.simhashes.len() as u64)?;
    let total: u64 = counts.iter().sum();
    if u32::try_from(total).is_err() {
        let content = "distinct simhashes to join with themselves".into();
        return Err(Error::TooManyRows { what: content, found: total, allowed: u64::from(u32::MAX) });
    }
    let mut firsts = vec![0];
    counts.iter().for_each(|count| firsts.push(firsts[firsts.len() - 1] + *count as u32));
    Ok(Numbers { firsts })
}

/// Sends the faces of groups to the groups near them. Returns the faces that this worker's groups
/// receive, ascending. Without a guard, the smallest page of a group suffices.
fn views(
    net: &mut Net<'_>,
    groups: &SimhashGroups,
    numbers: &Numbers,
    near: &[NearRuns],
    guard: Guard,
) -> Result<Vec<View>> {
    let requests = near.iter().flat_map(|near| {
        let (x, y) = (near.x.first, near.y.first);
        [[x, y, near.distance], [y, x, near.distance]]
    });
    let received = net.exchange("near simhashes", requests, |row| numbers.owner(row[1]))?;
    let first = numbers.firsts[net.index()];
    let views_back = received.iter().flat_map(|&[from, to, distance]| {
        let smallest = [HostGroup { host: HostId(0), page: groups.smallest(to - first) }];
        let faces = if guard == Guard::None { smallest.to_vec() } else { groups.faces(to - first).to_vec() };
        faces.into_iter().map(move |HostGroup { host, page }| View { from, to, distance, host, page })
    });
    let mut views = net.exchange("views of groups", views_back, |view| numbers.owner(view.from))?;
    views.sort_unstable();
    Ok(views)
}

/// Returns, for each near group of a group of this worker, the page that the group selects. `first`
/// is the number of this worker's first group.
fn spoken_for_pages(groups: &SimhashGroups, first: u32, views: &[View], guard: Guard) -> Vec<SpokenFor> {
    let mut message = Vec::new();
    for views in views.chunk_by(|x, y| x.from == y.from) {
        let from = views[0].from;
        let neighbours: Vec<&[View]> = views.chunk_by(|x, y| x.to == y.to).collect();
        let faces: Vec<Vec<HostGroup>> = neighbours
            .iter()
            .map(|other| other.iter().map(|view| HostGroup { host: view.host, page: view.page }).collect())
            .collect();
        let near: Vec<(u32, &[HostGroup])> =
            neighbours.iter().zip(&faces).map(|(other, faces)| (other[0].distance, &faces[..])).collect();
        let pages = match guard {
            Guard::None => near.iter().map(|(_, faces)| Some(faces[0].page)).collect(),
            _ => spoken_for(groups, from - first, &near),
        };
        message.extend(neighbours.iter().zip(pages).filter_map(|(other, page)| {
            let (to, distance) = (other[0].to, other[0].distance);
            Some(SpokenFor { x: from.min(to), y: from.max(to), distance, page: page? })
        }));
    }
    message
}
