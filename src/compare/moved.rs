//! Matching of pages that are gone with new pages at another URL.
//!
//! Pages are matched by site first: a page of an old site matches the page with the same path on a
//! site that received pages of the old one, even if its text differs. The remaining pages are
//! matched by text: first with the same path, then on the same site, then anywhere. If several
//! pages have one text, the smallest doc ids are paired, then the next ones. But a text of more
//! than [`COMMON`] gone or new pages, such as an error page or an empty form, is no evidence of a
//! move and is ignored. All steps yield the same pairs when old and new are exchanged.

use std::collections::HashMap;

use bytemuck::{Pod, Zeroable};

use super::pages::{MAX_NEAR_BITS, REWRITTEN_BITS};
use super::sites::{SiteId, SiteMove, SiteVotes};
use webtwin_base::by_hash::HashKeyMap;
use webtwin_base::ids::DocId;

/// Maximum number of pages of one side with a common text or path. Beyond it, the text or path is
/// no evidence.
pub(super) const COMMON: usize = 20;

/// Page that only one of the crawls has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct UnmatchedPage {
    /// Hash of the page's path and query.
    pub path: u64,
    /// `pages.exact`.
    pub exact: u64,
    /// `pages.simhash`, if [`UnmatchedPage::HAS_SIMHASH`].
    pub simhash: u64,
    /// Site of the page.
    pub site: SiteId,
    /// Doc id of the page.
    pub doc_id: DocId,
    /// Offset of the page's [`super::gather::PageNote`] in the notes of its thread.
    pub note: u64,
    /// Length of the page's URL, in bytes.
    pub url_bytes: u32,
    /// [`UnmatchedPage::NEW_FLAG`] and [`UnmatchedPage::HAS_SIMHASH`]; the bits above them are the
    /// number of the thread that wrote the note.
    pub flags: u32,
}

impl UnmatchedPage {
    /// Flag of a page of the new crawl.
    pub const NEW_FLAG: u32 = 1;
    /// Flag of a page with a simhash.
    pub const HAS_SIMHASH: u32 = 2;
    /// Number of bits that the flags take.
    pub const FLAGS: u32 = 2;

    fn is_new(&self) -> bool {
        self.flags & UnmatchedPage::NEW_FLAG != 0
    }

    /// Returns the Hamming distance of the simhashes, if both pages have one.
    pub fn bits(&self, other: &UnmatchedPage) -> Option<u32> {
        (self.flags & other.flags & UnmatchedPage::HAS_SIMHASH != 0)
            .then(|| (self.simhash ^ other.simhash).count_ones())
    }

    /// True if both pages have the same text.
    pub fn same_text(&self, other: &UnmatchedPage) -> bool {
        self.exact != 0 && self.exact == other.exact
    }
}

/// An old page and the new page that it became.
pub(super) type MovedPair = [UnmatchedPage; 2];

/// Counts evidence for moves of sites among the candidates of some paths. `candidates` has all
/// candidates of each path. `bare_names` maps a site to its bare name. Sites with equal bare names
/// are always compared; other sites only if a path has at most [`COMMON`] candidates on each side.
pub(super) fn votes(
    candidates: &mut [UnmatchedPage],
    bare_names: &HashKeyMap<u64>,
    votes: &mut HashMap<(SiteId, SiteId), SiteVotes>,
) {
    let mut vote = |old: &UnmatchedPage, new: &UnmatchedPage| {
        let votes = votes.entry((old.site, new.site)).or_default();
        votes.paths += 1;
        votes.texts += u64::from(old.same_text(new) || old.bits(new).is_some_and(|bits| bits <= MAX_NEAR_BITS));
    };
    candidates.sort_unstable_by_key(|one| (one.path, one.is_new(), one.doc_id));
    for same_path in candidates.chunk_by_mut(|x, y| x.path == y.path) {
        let (old, new) = sides(same_path);
        if old.len() <= COMMON && new.len() <= COMMON {
            old.iter().for_each(|old| new.iter().for_each(|new| vote(old, new)));
            continue;
        }
        // Sorts by name only for such paths, because looking up names takes longer than comparing
        // paths.
        same_path.sort_unstable_by_key(|one| (one.is_new(), bare_names[&one.site], one.doc_id));
        let (old, new) = sides(same_path);
        for same_name in old.chunk_by(|x, y| bare_names[&x.site] == bare_names[&y.site]) {
            let name = bare_names[&same_name[0].site];
            let start = new.partition_point(|one| bare_names[&one.site] < name);
            let counterparts = new[start..].iter().take_while(|one| bare_names[&one.site] == name);
            // A bare name has few sites: they differ in scheme, `www.` or port.
            counterparts.for_each(|new| same_name.iter().for_each(|old| vote(old, new)));
        }
    }
}

/// Pairs pages of sites between which pages moved, among the candidates of some paths. `candidates`
/// has all candidates of each path; `rest` receives those without a match. If a page has several
/// possible counterparts, the pair of sites with the most evidence decides. Unless the sites have
/// one host, pages whose simhashes differ in more than `REWRITTEN_BITS` bits are not paired.
pub(super) fn by_site(
    candidates: &mut [UnmatchedPage],
    site_moves: &SiteMoves,
    pairs: &mut Vec<MovedPair>,
    rest: &mut Vec<UnmatchedPage>,
) {
    candidates.sort_unstable_by_key(|one| (one.path, one.is_new(), one.site, one.doc_id));
    for same_path in candidates.chunk_by(|x, y| x.path == y.path) {
        let (old, new) = sides(same_path);
        let mut matches: Vec<(usize, usize, usize)> = Vec::new();
        for (i, page) in old.iter().enumerate() {
            for &(rank, target, one_host) in site_moves.moves_from(page.site) {
                // A site has at most one page per path.
                let Ok(j) = new.binary_search_by_key(&target, |one| one.site) else { continue };
                let is_similar =
                    page.same_text(&new[j]) || page.bits(&new[j]).is_none_or(|bits| bits <= REWRITTEN_BITS);
                if one_host || is_similar {
                    matches.push((rank, i, j));
                }
            }
        }
        matches.sort_unstable();
        let (mut left_old, mut left_new) = (vec![true; old.len()], vec![true; new.len()]);
        for (_, i, j) in matches {
            if left_old[i] && left_new[j] {
                (left_old[i], left_new[j]) = (false, false);
                pairs.push([old[i], new[j]]);
            }
        }
        let left = old.iter().zip(left_old).chain(new.iter().zip(left_new)).filter(|one| one.1);
        rest.extend(left.map(|one| *one.0));
    }
}

/// Moves of sites, by the site that pages left.
#[derive(Debug, Default)]
pub(super) struct SiteMoves(HashKeyMap<Vec<(usize, SiteId, bool)>>);

impl SiteMoves {
    /// Indexes pairs of sites. `site_moves` has those with the most evidence first.
    pub(super) fn from_moves(site_moves: &[SiteMove]) -> SiteMoves {
        let mut moves_from: HashKeyMap<Vec<_>> = HashKeyMap::default();
        for (rank, site_move) in site_moves.iter().enumerate() {
            moves_from.entry(site_move.source).or_default().push((rank, site_move.target, site_move.one_host));
        }
        SiteMoves(moves_from)
    }

    /// Returns the sites that received pages of `site`: the rank and id of each, and whether both
    /// sites have one host.
    fn moves_from(&self, site: SiteId) -> &[(usize, SiteId, bool)] {
        self.0.get(&site).map_or(&[], Vec::as_slice)
    }
}

/// Pairs candidates of some texts. `candidates` has all remaining candidates of each text.
pub(super) fn by_text(candidates: &mut Vec<UnmatchedPage>, pairs: &mut Vec<MovedPair>) {
    let steps: [fn(&UnmatchedPage) -> u64; 3] = [|one| one.path, |one| one.site, |_| 0];
    candidates.retain(|one| one.exact != 0);
    candidates.sort_unstable_by_key(|one| (one.exact, one.is_new()));
    let groups = candidates.chunk_by(|x, y| x.exact == y.exact);
    let small_groups = groups.filter(|group| {
        let (old, new) = sides(group);
        old.len().max(new.len()) <= COMMON
    });
    *candidates = small_groups.flatten().copied().collect();
    for step in steps {
        candidates.sort_unstable_by_key(|one| (one.exact, step(one), one.is_new(), one.doc_id));
        let mut left = Vec::with_capacity(candidates.len());
        for group in candidates.chunk_by(|x, y| x.exact == y.exact && step(x) == step(y)) {
            let (old, new) = sides(group);
            let paired = old.len().min(new.len());
            pairs.extend(old.iter().zip(new).take(paired).map(|(old, new)| [*old, *new]));
            left.extend(old[paired..].iter().chain(&new[paired..]));
        }
        *candidates = left;
    }
}

/// Splits a group, in which the old pages come first, into old and new pages.
fn sides(group: &[UnmatchedPage]) -> (&[UnmatchedPage], &[UnmatchedPage]) {
    group.split_at(group.partition_point(|one| !one.is_new()))
}
