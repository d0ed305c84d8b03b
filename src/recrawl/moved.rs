//! Which of the pages that are gone stand at another URL now.
//!
//! First by site: a page of a site that moved stands under its path on the site where that is now, whatever its text. Then by
//! text: under the same path, on the same site, anywhere. Where several pages have one text, the smallest doc ids are paired,
//! then the next ones; but a text on more than [`COMMON`] gone or new pages says nothing about where a page went: it is an error
//! page or an empty form. All steps give the same pairs when old and new change places.

use std::collections::{BTreeMap, HashMap};

use bytemuck::{Pod, Zeroable};

use super::sites::{SiteId, Votes};
use crate::ids::DocId;

/// Pages of one side beyond which a text or path that they have in common says nothing.
pub const COMMON: usize = 20;

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
pub type Pair = [Candidate; 2];

/// Counts what speaks for moves of sites among the candidates of some paths, all of each path. `bare` gives the bare name of a
/// site, by whose equality sites are always compared; others only where a path is on at most [`COMMON`] of each side.
pub fn votes(
    candidates: &mut [Candidate],
    bare: &HashMap<SiteId, u64>,
    near_bits: u32,
    votes: &mut HashMap<(SiteId, SiteId), Votes>,
) {
    let mut vote = |old: &Candidate, new: &Candidate| {
        let votes = votes.entry((old.site, new.site)).or_default();
        votes.paths += 1;
        votes.texts += u64::from(old.same_text(new) || old.bits(new).is_some_and(|bits| bits <= near_bits));
    };
    candidates.sort_unstable_by_key(|one| (one.path, one.is_new(), bare[&one.site], one.doc_id));
    for of_path in candidates.chunk_by(|x, y| x.path == y.path) {
        let (old, new) = sides(of_path);
        if old.len() <= COMMON && new.len() <= COMMON {
            old.iter().for_each(|old| new.iter().for_each(|new| vote(old, new)));
            continue;
        }
        for of_name in old.chunk_by(|x, y| bare[&x.site] == bare[&y.site]) {
            let name = bare[&of_name[0].site];
            let from = new.partition_point(|one| bare[&one.site] < name);
            let others = new[from..].iter().take_while(|one| bare[&one.site] == name);
            // A bare name has few sites: schemes, `www.`, ports.
            others.for_each(|new| of_name.iter().for_each(|old| vote(old, new)));
        }
    }
}

/// Pairs the pages of sites that moved, among the candidates of some paths; `rest` receives the others.
pub fn by_site(
    candidates: &mut [Candidate],
    moved: &BTreeMap<SiteId, SiteId>,
    pairs: &mut Vec<Pair>,
    rest: &mut Vec<Candidate>,
) {
    let target = |one: &Candidate| match one.is_new() {
        true => one.site,
        // No site has the id of its own name, so this keeps pages of sites that did not move apart.
        false => moved.get(&one.site).copied().unwrap_or(!one.site),
    };
    candidates.sort_unstable_by_key(|one| (one.path, target(one), one.is_new(), one.doc_id));
    for group in candidates.chunk_by(|x, y| x.path == y.path && target(x) == target(y)) {
        match group {
            [old, new] if !old.is_new() && new.is_new() => pairs.push([*old, *new]),
            group => rest.extend(group),
        }
    }
}

/// Pairs candidates of some texts, all that are left of each text.
pub fn by_text(candidates: &mut Vec<Candidate>, pairs: &mut Vec<Pair>) {
    let steps: [fn(&Candidate) -> u64; 3] = [|one| one.path, |one| one.site, |_| 0];
    candidates.retain(|one| one.exact != 0);
    for step in steps {
        candidates.sort_unstable_by_key(|one| (one.exact, step(one), one.is_new(), one.doc_id));
        let mut left = Vec::with_capacity(candidates.len());
        for group in candidates.chunk_by(|x, y| x.exact == y.exact && step(x) == step(y)) {
            let (old, new) = sides(group);
            let paired = if old.len().max(new.len()) <= COMMON { old.len().min(new.len()) } else { 0 };
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
