//! The guard on transitivity: a pair joins two clusters only if it is the best either page can do on the other's host.
//!
//! Single link turns one false pair into a false cluster. Most false pairs are second best: the page that truly
//! corresponds stands on the same host and matches better. So of all pairs between page p and the pages of host h only
//! those with p's highest resemblance on h *speak for* the pair, and a pair stays when both of its ends do.

use bytemuck::{Pod, Zeroable};

use webtwin_base::ids::{HostId, Page};

/// A similar pair as seen from one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct Match {
    /// The page that looks for matches.
    pub from: Page,
    /// Host of the page it finds.
    pub host: HostId,
    /// The page it finds.
    pub to: Page,
    /// Number of fingerprints shared.
    pub shared: u32,
    /// Chunks of the larger of the two pages; resemblance is `shared / larger`.
    pub larger: u32,
}

impl Match {
    /// Compares resemblances: greater is better.
    pub fn better_than(&self, other: &Match) -> std::cmp::Ordering {
        (u64::from(self.shared) * u64::from(other.larger)).cmp(&(u64::from(other.shared) * u64::from(self.larger)))
    }
}

/// Calls `vote` for every match that no other match of the same page on the same host beats; ties all stay.
///
/// On its own host a page finds neighbours that resemble it, as chapters of a manual do, more often than copies. So a
/// match there must not be beaten by any match elsewhere either. `home(page)` is a page's host.
///
/// `matches` must hold all matches of each `from` page in it; it is sorted on the way.
pub fn best_on_each_host(matches: &mut [Match], home: impl Fn(Page) -> HostId, mut vote: impl FnMut(&Match)) {
    matches.sort_unstable();
    let best_of = |rivals: &[Match]| *rivals.iter().max_by(|x, y| x.better_than(y)).expect("rivals are not none");
    for of_page in matches.chunk_by(|x, y| x.from == y.from) {
        let best_anywhere = best_of(of_page);
        for rivals in of_page.chunk_by(|x, y| x.host == y.host) {
            let at_home = rivals[0].host == home(rivals[0].from);
            let best = if at_home { best_anywhere } else { best_of(rivals) };
            rivals.iter().filter(|rival| rival.better_than(&best).is_eq()).for_each(&mut vote);
        }
    }
}
