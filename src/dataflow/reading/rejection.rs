//! Records that are not kept, on their way to the `rejected` table: a real crawl has several for each page.

use serde::{Deserialize, Serialize};

use webtwin_pages::record::Reason;

/// A record that is not kept. Orders by source, offset, reason.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Rejection {
    /// Number of the input.
    pub source: u32,
    /// Where the record starts.
    pub offset: u64,
    /// Why it is not kept.
    pub reason: Reason,
    /// Particulars.
    pub detail: String,
    /// Number of the work item.
    pub item: u32,
    /// Bytes of the input that the record takes, estimated within a compressed member; 0 if unknown.
    pub bytes: u64,
}
