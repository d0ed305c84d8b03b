//! Records that are not kept, for the `rejected` table. A real crawl has several of them for each
//! page.

use serde::{Deserialize, Serialize};

use webtwin_pages::record::Reason;

/// Record that is not kept. Ordered by source, offset, reason.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Rejection {
    /// Number of the input.
    pub source: u32,
    /// Offset at which the record starts.
    pub offset: u64,
    /// Reason for which the record is not kept.
    pub reason: Reason,
    /// Details of the reason.
    pub detail: String,
    /// Number of the work item.
    pub item: u32,
    /// Bytes of the input that the record takes. Estimated within a compressed member; 0 if
    /// unknown.
    pub bytes: u64,
}
