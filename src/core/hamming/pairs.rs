//! From simhashes within k bits to similar pairs, reduced to as many as clusters need.
//!
//! Input: [`SimhashDocId`] rows. Output: [`SimilarPair`]s whose value is the distance in bits.
//!
//! A million pages may have one simhash, and their pairs would be about half a million times as
//! many. Therefore this module works on *groups* of pages with equal simhash. Within a group every
//! page is paired with the smallest page of the group, and of the pairs of pages between two groups
//! at most one is returned. The clusters are the same as those of all pairs.
//!
//! With the guard ([`crate::overlap::guard`]; the best match on a host is the one at the smallest
//! distance) this is true, too. Pages at distance 0 are each other's best match, so the guard never
//! divides a group. And the vote of a page of group i for a page q of group j depends only on i, j
//! and the host of q:
//! - on a host where i has no page, q is a best match if no other group with a page on that host is
//!   nearer to i;
//! - on a host where i has a page, that page is nearer than q, so q gets no vote. The exception is
//!   that this page is i's only page, so that the host is its home: then q must be the best match
//!   on any host.
//!
//! So the pages of j that i votes for, and the pages of i that j votes for, may be paired in any
//! way, and one pair represents all.

use bytemuck::{Pod, Zeroable};

use crate::overlap::SimilarPair;
use webtwin_base::ids::{HostId, Page, SimHash};
use webtwin_job::{Guard, Hamming};

use super::close_pairs::within_k;

/// A page with its simhash: 12 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct SimhashDocId {
    simhash_high: u32,
    simhash_low: u32,
    /// Page that has the simhash.
    pub doc: Page,
}

impl SimhashDocId {
    /// Creates a row.
    pub fn new(simhash: SimHash, doc: Page) -> SimhashDocId {
        SimhashDocId { simhash_high: (simhash >> 32) as u32, simhash_low: simhash as u32, doc }
    }

    /// Returns the simhash of the page.
    pub fn simhash(&self) -> SimHash {
        u64::from(self.simhash_high) << 32 | u64::from(self.simhash_low)
    }
}

/// Pages of a group on one host. Orders by host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostGroup {
    /// Host of the pages.
    pub host: HostId,
    /// The smallest of the pages.
    pub page: Page,
}

/// Groups of pages with equal simhash, ascending by simhash.
pub struct SimhashGroups {
    /// Simhash of each group.
    pub simhashes: Vec<SimHash>,
    /// Number of pages of each group.
    sizes: Vec<u32>,
    /// Faces of all groups, ascending by host within a group.
    faces: Vec<HostGroup>,
    /// End of each group's faces in `faces`.
    ends: Vec<u32>,
}

impl SimhashGroups {
    /// Returns the number of pages of a group.
    pub fn size(&self, group: u32) -> u32 {
        self.sizes[group as usize]
    }

    /// Returns the smallest page of a group.
    pub fn smallest(&self, group: u32) -> Page {
        self.faces(group).iter().map(|face| face.page).min().expect("a group has pages")
    }

    /// Returns the faces of a group: the smallest page on each host, ascending by host.
    pub fn faces(&self, group: u32) -> &[HostGroup] {
        let start = group.checked_sub(1).map_or(0, |before| self.ends[before as usize]);
        &self.faces[start as usize..self.ends[group as usize] as usize]
    }
}

/// Counts of distinct simhashes and of pairs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NearCounts {
    /// Number of distinct simhashes.
    pub distinct: u64,
    /// Number of pairs of distinct simhashes within k bits.
    pub near: u64,
    /// Number of those pairs that the guard removed.
    pub guarded: u64,
}

/// Pairs the pages of `rows`, each of which must occur once. `hosts[doc]` is the host of a page.
/// Sorts the rows.
///
/// Returns pairs in ascending order; the module documentation defines which of all pairs are
/// returned.
///
/// # Cost
/// The cost of [`within_k`] on the distinct simhashes, and for every pair of near simhashes a scan
/// of the hosts of both groups.
///
/// # Examples
/// Pages 0 and 1 have one simhash, page 2 differs from them in one bit, and page 3 in many. The two
/// pairs join the same cluster as all three pairs of pages would.
/// ```
/// use webtwin_base::ids::{HostId, Page};
/// use webtwin_core::hamming::pairs::{SimhashDocId, similar_pairs};
/// use webtwin_job::{Guard, Hamming};
///
/// let rows = [(0xabc0, 0), (0xabc0, 1), (0xabc1, 2), (0x1234, 3)];
/// let mut rows = rows.map(|(simhash, doc)| SimhashDocId::new(simhash, Page(doc)));
/// let settings = Hamming { k: 3, guard: Guard::None };
/// let (pairs, counts) = similar_pairs(&mut rows, &[HostId(0); 4], &settings);
///
/// let pairs: Vec<_> = pairs.iter().map(|pair| (pair.a.0, pair.b.0, pair.value)).collect();
/// assert_eq!(pairs, [(0, 1, 0), (0, 2, 1)]);
/// assert_eq!((counts.distinct, counts.near), (3, 1));
/// ```
pub fn similar_pairs(
    rows: &mut [SimhashDocId],
    hosts: &[HostId],
    settings: &Hamming,
) -> (Vec<SimilarPair>, NearCounts) {
    rows.sort_unstable_by_key(|row| (row.simhash(), row.doc));
    let mut pairs = Vec::new();
    let groups = group(rows, hosts, &mut pairs);
    let near = within_k(&groups.simhashes, settings.k);
    let between = pairs.len();
    match settings.guard {
        Guard::None => {
            pairs.extend(near.iter().map(|&(x, y, distance)| pair(groups.smallest(x), groups.smallest(y), distance)));
        }
        Guard::MutualBest => speak(&groups, &near, &mut pairs),
        Guard::Centre | Guard::Neighbours => unreachable!("a job that asks for them is refused"),
    }
    let kept_count = (pairs.len() - between) as u64;
    pairs.sort_unstable();
    let (distinct, near) = (groups.simhashes.len() as u64, near.len() as u64);
    (pairs, NearCounts { distinct, near, guarded: near - kept_count })
}

/// Creates a pair from two pages in any order.
pub fn pair(x: Page, y: Page, value: u32) -> SimilarPair {
    SimilarPair { a: x.min(y), b: x.max(y), value }
}

/// Groups rows that are sorted by simhash, then page, and pairs every page with the smallest of its
/// group.
pub fn group(rows: &[SimhashDocId], hosts: &[HostId], pairs: &mut Vec<SimilarPair>) -> SimhashGroups {
    let mut groups = SimhashGroups { simhashes: Vec::new(), sizes: Vec::new(), faces: Vec::new(), ends: Vec::new() };
    for pages in rows.chunk_by(|x, y| x.simhash() == y.simhash()) {
        groups.simhashes.push(pages[0].simhash());
        groups.sizes.push(pages.len() as u32);
        pairs.extend(pages[1..].iter().map(|page| pair(pages[0].doc, page.doc, 0)));
        let start = groups.faces.len();
        groups.faces.extend(pages.iter().map(|row| HostGroup { host: hosts[row.doc], page: row.doc }));
        let faces = &mut groups.faces[start..];
        faces.sort_unstable_by_key(|face| (face.host, face.page));
        let mut face_count = 0;
        for at in 0..faces.len() {
            if at == 0 || faces[at].host != faces[at - 1].host {
                faces[face_count] = faces[at];
                face_count += 1;
            }
        }
        groups.faces.truncate(start + face_count);
        groups.ends.push(groups.faces.len() as u32);
    }
    groups
}

/// Returns, for each near group, the page that `group` votes for, or `None` if it votes for none.
/// `near` are all groups near `group`, as (distance, faces).
pub fn spoken_for(groups: &SimhashGroups, group: u32, near: &[(u32, &[HostGroup])]) -> Vec<Option<Page>> {
    let home = groups.faces(group);
    let nearest = near.iter().map(|other| other.0).min().unwrap_or(0);
    let mut best: Vec<(HostId, u32)> =
        near.iter().flat_map(|(distance, faces)| faces.iter().map(move |face| (face.host, *distance))).collect();
    best.sort_unstable();
    best.dedup_by_key(|view| view.0);
    let best_on = |host| best[best.partition_point(|view| view.0 < host)].1;
    let speaks = |host, distance| match home.binary_search_by_key(&host, |face| face.host) {
        Ok(_) => groups.size(group) == 1 && distance == nearest,
        Err(_) => distance == best_on(host),
    };
    let page = |(distance, faces): &(u32, &[HostGroup])| {
        faces.iter().filter(|face| speaks(face.host, *distance)).map(|face| face.page).min()
    };
    near.iter().map(page).collect()
}

/// Appends, for every two near groups that vote for pages of each other, the pair of the smallest
/// such pages.
fn speak(groups: &SimhashGroups, near: &[(u32, u32, u32)], pairs: &mut Vec<SimilarPair>) {
    // Each pair of groups from the view of both: (from, to, distance).
    let mut views: Vec<[u32; 3]> = near.iter().flat_map(|&(x, y, d)| [[x, y, d], [y, x, d]]).collect();
    views.sort_unstable();
    let mut spoken_for: Vec<Option<Page>> = Vec::with_capacity(views.len());
    for views in views.chunk_by(|x, y| x[0] == y[0]) {
        let group_views: Vec<_> = views.iter().map(|&[_, to, distance]| (distance, groups.faces(to))).collect();
        spoken_for.extend(self::spoken_for(groups, views[0][0], &group_views));
    }
    for (view, to_page) in views.iter().zip(&spoken_for).filter(|(view, _)| view[0] < view[1]) {
        let reverse = views.binary_search(&[view[1], view[0], view[2]]).expect("both ends see a pair");
        if let (Some(x), Some(y)) = (spoken_for[reverse], to_page) {
            pairs.push(pair(x, *y, view[2]));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::overlap::guard::{GuardedMatch, best_on_each_host};

    /// Returns all pairs of pages within k, or with a guard only those that both pages vote for.
    fn all_pairs(rows: &[SimhashDocId], hosts: &[HostId], settings: &Hamming) -> Vec<(Page, Page)> {
        let distance = |x: &SimhashDocId, y: &SimhashDocId| (x.simhash() ^ y.simhash()).count_ones();
        let mut matches = Vec::new();
        for x in rows {
            for y in rows.iter().filter(|y| y.doc != x.doc && distance(x, y) <= settings.k) {
                let (host, shared) = (hosts[y.doc], 64 - distance(x, y));
                matches.push(GuardedMatch { from: x.doc, host, to: y.doc, shared, larger: 64 });
            }
        }
        let mut votes: BTreeSet<(Page, Page)> = matches.iter().map(|m| (m.from, m.to)).collect();
        if settings.guard == Guard::MutualBest {
            votes.clear();
            best_on_each_host(&mut matches, |page| hosts[page], |m| _ = votes.insert((m.from, m.to)));
        }
        votes.iter().filter(|(x, y)| x < y && votes.contains(&(*y, *x))).copied().collect()
    }

    /// Relabels by the smallest page until nothing changes.
    fn clusters(pages: usize, pairs: &[(Page, Page)]) -> Vec<Page> {
        let mut labels: Vec<Page> = Page::first(pages).collect();
        for _ in 0..pages {
            for &(x, y) in pairs {
                let label = labels[x].min(labels[y]);
                (labels[x], labels[y]) = (label, label);
            }
        }
        labels
    }

    #[test]
    fn equal_simhashes_make_a_star_not_a_clique() {
        let mut rows: Vec<_> = Page::first(1000).map(|doc| SimhashDocId::new(7, doc)).collect();
        let settings = Hamming { k: 3, guard: Guard::MutualBest };
        let (pairs, counts) = similar_pairs(&mut rows, &[HostId(0); 1000], &settings);
        assert_eq!((pairs.len(), counts.distinct, counts.near), (999, 1, 0));
        assert!(pairs.iter().all(|pair| pair.a == Page(0) && pair.value == 0));
    }

    #[test]
    fn the_nearer_page_of_a_host_is_the_match() {
        // Pages 1 and 2 are on one host, at 1 and 2 bits from page 0.
        let mut rows = [(0b000, 0), (0b001, 1), (0b110, 2)].map(|(simhash, doc)| SimhashDocId::new(simhash, Page(doc)));
        let hosts = [0, 1, 1].map(HostId);
        let guarded = similar_pairs(&mut rows, &hosts, &Hamming { k: 2, guard: Guard::MutualBest });
        assert_eq!(guarded.0, [SimilarPair { a: Page(0), b: Page(1), value: 1 }]);
        assert_eq!(guarded.1, NearCounts { distinct: 3, near: 2, guarded: 1 });
        assert_eq!(similar_pairs(&mut rows, &hosts, &Hamming { k: 2, guard: Guard::None }).0.len(), 2);
    }

    proptest! {
        #[test]
        fn clusters_equal_those_of_all_pairs(
            pages in prop::collection::vec((0u64..64, (0u32..5).prop_map(HostId)), 1..40), k in 0u32..4, guarded: bool
        ) {
            let settings = Hamming { k, guard: if guarded { Guard::MutualBest } else { Guard::None } };
            let hosts: Vec<HostId> = pages.iter().map(|page| page.1).collect();
            // Every bit counts double, so that few bits make sparse neighbours.
            let spread = |small: u64| (0..6).filter(|bit| small >> bit & 1 == 1).fold(0, |all, bit| all | 0b11 << (9 * bit));
            let row = |(doc, page): (Page, &(u64, HostId))| SimhashDocId::new(spread(page.0), doc);
            let mut rows: Vec<_> = Page::first(pages.len()).zip(&pages).map(row).collect();
            let settings = Hamming { k: 2 * settings.k, ..settings };
            let expected = all_pairs(&rows, &hosts, &settings);
            let (pairs, _) = similar_pairs(&mut rows, &hosts, &settings);
            let actual: Vec<_> = pairs.iter().map(|pair| (pair.a, pair.b)).collect();
            prop_assert!(actual.iter().all(|pair| expected.contains(pair)));
            prop_assert_eq!(clusters(pages.len(), &actual), clusters(pages.len(), &expected));
        }
    }
}
