//! What counting of shared chunks is told of pages, and what it tells of its work.

use super::counts::OverlapCounts;
use webtwin_base::ids::HostId;
use webtwin_core::overlap::prune::PageSet;

/// What is known of the pages.
pub struct Pages<'a> {
    /// Number of pages.
    pub count: usize,
    /// Host of each, or nothing when no filter asks for it.
    pub hosts: &'a [HostId],
    /// Exact copies of others, which count as pages of a chunk and then are left out.
    pub copies: &'a PageSet,
}

/// What one worker did, and how all counted.
#[derive(Debug, Clone, Default)]
pub struct OverlapWork {
    /// Rows and pairs, this worker's.
    pub counts: OverlapCounts,
    /// Rows left after pruning, this worker's.
    pub core_rows: u64,
    /// Pairs that they make, once for each chunk.
    pub core_pairs: u64,
    /// Pages left after pruning, of all.
    pub core_pages: u64,
    /// Of these, pages of the most frequent chunk, of all.
    pub longest: u64,
    /// Rounds of pruning.
    pub rounds: u32,
    /// Pairs handed to their owners, after the selection of candidates; this worker's.
    pub sent: u64,
    /// The planner's reason.
    pub why: String,
    /// Bytes written to disk.
    pub spilled_bytes: u64,
    /// Stages with their seconds, by this worker's clock.
    pub seconds: Vec<(&'static str, f64)>,
}
