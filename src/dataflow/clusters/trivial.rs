//! Trivial clusters as later steps receive them.

use webtwin_base::ids::ClusterId;

/// Trivial clusters: labels and sizes.
#[derive(Debug, Clone, Copy)]
pub struct TrivialClusters<'a> {
    /// Trivial cluster of every page.
    pub labels: &'a [ClusterId],
    /// Number of pages of every trivial cluster.
    pub sizes: &'a [u32],
}
