//! The guard on transitivity: a pair joins two clusters only if it is the best either page can do on the other's host.
//!
//! Single link turns one false pair into a false cluster. Most false pairs are second best: the page that truly
//! corresponds stands on the same host and matches better. So of all pairs between page p and the pages of host h only
//! those with p's highest resemblance on h *speak for* the pair, and a pair stays when both of its ends do.

use bytemuck::{Pod, Zeroable};

use crate::ids::{HostId, Rank};

/// A similar pair as seen from one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct Match {
    /// The page that looks.
    pub from: Rank,
    /// Host of the page it finds.
    pub host: HostId,
    /// The page it finds.
    pub to: Rank,
    /// Fingerprints shared.
    pub shared: u32,
    /// Chunks of the larger of the two pages; resemblance is `shared / larger`.
    pub larger: u32,
}

impl Match {
    fn better_than(&self, other: &Match) -> std::cmp::Ordering {
        (u64::from(self.shared) * u64::from(other.larger)).cmp(&(u64::from(other.shared) * u64::from(self.larger)))
    }
}

/// Calls `vote` for every match that no other match of the same page on the same host beats; equals all stay.
///
/// `matches` must hold all matches of each `from` page in it; it is sorted on the way.
pub fn best_on_each_host(matches: &mut [Match], mut vote: impl FnMut(&Match)) {
    matches.sort_unstable();
    for rivals in matches.chunk_by(|x, y| (x.from, x.host) == (y.from, y.host)) {
        let best = rivals.iter().max_by(|x, y| x.better_than(y)).expect("a chunk is not empty");
        rivals.iter().filter(|rival| rival.better_than(best).is_eq()).for_each(&mut vote);
    }
}
