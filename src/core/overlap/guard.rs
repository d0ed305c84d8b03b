//! Guard on transitivity by mutual best matches: a pair joins two clusters only if each page is the
//! best match of the other on its host.
//!
//! Single link turns one false pair into a false cluster. Most false pairs are second best: the
//! true counterpart of a page is on the same host and matches better. So among all pairs between
//! page p and the pages of host h, only those with the highest resemblance on h *get a vote* from
//! p. A pair stays if both of its pages vote for it.

use bytemuck::{Pod, Zeroable};

use webtwin_base::ids::{HostId, Page};

/// A similar pair as seen from one of its pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct GuardedMatch {
    /// Page whose matches are compared.
    pub from: Page,
    /// Host of the matched page.
    pub host: HostId,
    /// Matched page.
    pub to: Page,
    /// Number of fingerprints shared.
    pub shared: u32,
    /// Number of chunks of the larger of the two pages; resemblance is `shared / larger`.
    pub larger: u32,
}

impl GuardedMatch {
    /// Compares resemblances: greater is better.
    pub fn better_than(&self, other: &GuardedMatch) -> std::cmp::Ordering {
        (u64::from(self.shared) * u64::from(other.larger)).cmp(&(u64::from(other.shared) * u64::from(self.larger)))
    }
}

/// Calls `vote` for every match that no other match of the same page on the same host exceeds. All
/// tied matches get a vote.
///
/// On its own host a page has neighbours that resemble it, such as chapters of a manual, more often
/// than copies. So a match there must not be exceeded by any match on another host either.
/// `home(page)` is the host of a page.
///
/// `matches` must hold all matches of each `from` page in it; the function sorts it.
///
/// # Examples
/// Page 0 resembles two pages of another host. Only the better match gets its vote.
/// ```
/// use webtwin_base::ids::{HostId, Page};
/// use webtwin_core::overlap::guard::{GuardedMatch, best_on_each_host};
///
/// let to = |page: u32, shared: u32| GuardedMatch {
///     from: Page(0),
///     host: HostId(1),
///     to: Page(page),
///     shared,
///     larger: 10,
/// };
/// let mut votes = Vec::new();
/// best_on_each_host(&mut [to(5, 6), to(6, 9)], |_| HostId(0), |vote| votes.push(vote.to));
/// assert_eq!(votes, [Page(6)]);
/// ```
pub fn best_on_each_host(
    matches: &mut [GuardedMatch],
    home: impl Fn(Page) -> HostId,
    mut vote: impl FnMut(&GuardedMatch),
) {
    matches.sort_unstable();
    let best_of =
        |rivals: &[GuardedMatch]| *rivals.iter().max_by(|x, y| x.better_than(y)).expect("rivals are not none");
    for page_matches in matches.chunk_by(|x, y| x.from == y.from) {
        let best_anywhere = best_of(page_matches);
        for rivals in page_matches.chunk_by(|x, y| x.host == y.host) {
            let is_same_host = rivals[0].host == home(rivals[0].from);
            let best = if is_same_host { best_anywhere } else { best_of(rivals) };
            rivals.iter().filter(|rival| rival.better_than(&best).is_eq()).for_each(&mut vote);
        }
    }
}
