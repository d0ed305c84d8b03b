//! Input of the counting of shared chunks in addition to rows, and statistics about its work.

use super::counts::OverlapCounts;
use webtwin_base::ids::HostId;
use webtwin_core::overlap::prune::PageSet;

/// Properties of the pages.
pub struct OverlapPages<'a> {
    /// Number of pages.
    pub count: usize,
    /// Host of each page; empty if no filter needs hosts.
    pub hosts: &'a [HostId],
    /// Exact copies of other pages. They count as pages of a chunk, and are then left out.
    pub copies: &'a PageSet,
}

/// Statistics of one worker, with the counting method that all workers used.
#[derive(Debug, Clone, Default)]
pub struct OverlapWork {
    /// Counts of rows and pairs of this worker.
    pub counts: OverlapCounts,
    /// Rows of this worker that are left after pruning.
    pub core_rows: u64,
    /// Pairs that these rows produce, once for each chunk.
    pub core_pairs: u64,
    /// Pages of all workers that are left after pruning.
    pub core_pages: u64,
    /// Number of pages of the most frequent chunk after pruning, over all workers.
    pub longest: u64,
    /// Number of pruning rounds.
    pub rounds: u32,
    /// Pairs that this worker sent to their owners, after the selection of candidates.
    pub pairs_sent: u64,
    /// Reason of the planner for its choice.
    pub reason: String,
    /// Number of bytes written to disk.
    pub spilled_bytes: u64,
    /// Stages with their seconds, by this worker's clock.
    pub seconds: Vec<(&'static str, f64)>,
}
