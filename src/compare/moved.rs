//! Which of the pages that are gone stand at another URL now.
//!
//! First by site: a page stands under its path on a site that has got pages of its old one, with other text perhaps. Then by
//! text: under the same path, on the same site, anywhere. Where several pages have one text, the smallest doc ids are paired,
//! then the next ones; but a text on more than [`COMMON`] gone or new pages says nothing about where a page went: it is an error
//! page or an empty form. All steps give the same pairs when old and new change places.

use std::collections::HashMap;

use bytemuck::{Pod, Zeroable};

use super::pages::{NEAR_BITS, REWRITTEN_BITS};
use super::sites::{SiteId, SiteMove, Votes};
use webtwin_base::by_hash::ByHash;
use webtwin_base::ids::DocId;

/// Pages of one side beyond which a text or path that they have in common says nothing.
pub(super) const COMMON: usize = 20;

/// A page that only one of the crawls has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Candidate {
    /// Hash of its path and query.
    pub path: u64,
    /// `pages.exact`.
    pub exact: u64,
    /// `pages.simhash`, if [`Candidate::HAS_SIMHASH`].
    pub simhash: u64,
    /// Its site.
    pub site: SiteId,
    /// The page.
    pub doc_id: DocId,
    /// Where what else is known of it has been noted.
    pub note: u64,
    /// Length of its URL in bytes.
    pub url_bytes: u32,
    /// [`Candidate::NEW`], [`Candidate::HAS_SIMHASH`], and who noted it, above these bits.
    pub flags: u32,
}

impl Candidate {
    /// The page is one of the new crawl.
    pub const NEW: u32 = 1;
    /// It has a simhash.
    pub const HAS_SIMHASH: u32 = 2;
    /// Bits of these flags.
    pub const FLAGS: u32 = 2;

    fn is_new(&self) -> bool {
        self.flags & Candidate::NEW != 0
    }

    /// Bits in which the simhashes differ, if both have one.
    pub fn bits(&self, other: &Candidate) -> Option<u32> {
        (self.flags & other.flags & Candidate::HAS_SIMHASH != 0).then(|| (self.simhash ^ other.simhash).count_ones())
    }

    /// Whether both have the same text.
    pub fn same_text(&self, other: &Candidate) -> bool {
        self.exact != 0 && self.exact == other.exact
    }
}

/// An old page and the new one that it became.
pub(super) type Pair = [Candidate; 2];

/// Counts what speaks for moves of sites among the candidates of some paths, all of each path. `bare` gives the bare name of a
/// site, by whose equality sites are always compared; others only where a path is on at most [`COMMON`] of each side.
pub(super) fn votes(candidates: &mut [Candidate], bare: &ByHash<u64>, votes: &mut HashMap<(SiteId, SiteId), Votes>) {
    let mut vote = |old: &Candidate, new: &Candidate| {
        let votes = votes.entry((old.site, new.site)).or_default();
        votes.paths += 1;
        votes.texts += u64::from(old.same_text(new) || old.bits(new).is_some_and(|bits| bits <= NEAR_BITS));
    };
    candidates.sort_unstable_by_key(|one| (one.path, one.is_new(), one.doc_id));
    for of_path in candidates.chunk_by_mut(|x, y| x.path == y.path) {
        let (old, new) = sides(of_path);
        if old.len() <= COMMON && new.len() <= COMMON {
            old.iter().for_each(|old| new.iter().for_each(|new| vote(old, new)));
            continue;
        }
        // In the order of names only where that is asked for: to look names up takes longer than to compare paths.
        of_path.sort_unstable_by_key(|one| (one.is_new(), bare[&one.site], one.doc_id));
        let (old, new) = sides(of_path);
        for of_name in old.chunk_by(|x, y| bare[&x.site] == bare[&y.site]) {
            let name = bare[&of_name[0].site];
            let from = new.partition_point(|one| bare[&one.site] < name);
            let others = new[from..].iter().take_while(|one| bare[&one.site] == name);
            // A bare name has few sites: schemes, `www.`, ports.
            others.for_each(|new| of_name.iter().for_each(|old| vote(old, new)));
        }
    }
}

/// Pairs pages of sites between which pages moved, among the candidates of some paths, all of each path; `rest` receives the others.
/// Where a page could be one of several, the best attested pair of sites decides. Unless the sites are one host, texts that differ in more
/// than `REWRITTEN_BITS` are no page that moved.
pub(super) fn by_site(
    candidates: &mut [Candidate],
    moves: &SiteMoves,
    pairs: &mut Vec<Pair>,
    rest: &mut Vec<Candidate>,
) {
    candidates.sort_unstable_by_key(|one| (one.path, one.is_new(), one.site, one.doc_id));
    for of_path in candidates.chunk_by(|x, y| x.path == y.path) {
        let (old, new) = sides(of_path);
        let mut found: Vec<(usize, usize, usize)> = Vec::new();
        for (i, page) in old.iter().enumerate() {
            for &(rank, to, one_host) in moves.from(page.site) {
                // A site has one page under a path.
                let Ok(j) = new.binary_search_by_key(&to, |one| one.site) else { continue };
                let alike = page.same_text(&new[j]) || page.bits(&new[j]).is_none_or(|bits| bits <= REWRITTEN_BITS);
                if one_host || alike {
                    found.push((rank, i, j));
                }
            }
        }
        found.sort_unstable();
        let (mut left_old, mut left_new) = (vec![true; old.len()], vec![true; new.len()]);
        for (_, i, j) in found {
            if left_old[i] && left_new[j] {
                (left_old[i], left_new[j]) = (false, false);
                pairs.push([old[i], new[j]]);
            }
        }
        let left = old.iter().zip(left_old).chain(new.iter().zip(left_new)).filter(|one| one.1);
        rest.extend(left.map(|one| *one.0));
    }
}

/// Sites between which pages moved, by where they were.
#[derive(Debug, Default)]
pub(super) struct SiteMoves(ByHash<Vec<(usize, SiteId, bool)>>);

impl SiteMoves {
    /// Of pairs of which the best attested come first.
    pub(super) fn of(moves: &[SiteMove]) -> SiteMoves {
        let mut from: ByHash<Vec<_>> = ByHash::default();
        for (rank, one) in moves.iter().enumerate() {
            from.entry(one.from).or_default().push((rank, one.to, one.one_host));
        }
        SiteMoves(from)
    }

    /// Rank and id of the sites that have pages of this one, and whether both are one host.
    fn from(&self, site: SiteId) -> &[(usize, SiteId, bool)] {
        self.0.get(&site).map_or(&[], Vec::as_slice)
    }
}

/// Pairs candidates of some texts, all that are left of each text.
pub(super) fn by_text(candidates: &mut Vec<Candidate>, pairs: &mut Vec<Pair>) {
    let steps: [fn(&Candidate) -> u64; 3] = [|one| one.path, |one| one.site, |_| 0];
    candidates.retain(|one| one.exact != 0);
    candidates.sort_unstable_by_key(|one| (one.exact, one.is_new()));
    let of_texts = candidates.chunk_by(|x, y| x.exact == y.exact);
    let few = of_texts.filter(|of_text| {
        let (old, new) = sides(of_text);
        old.len().max(new.len()) <= COMMON
    });
    *candidates = few.flatten().copied().collect();
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

/// The old and the new pages of a group in which the old come first.
fn sides(group: &[Candidate]) -> (&[Candidate], &[Candidate]) {
    group.split_at(group.partition_point(|one| !one.is_new()))
}
