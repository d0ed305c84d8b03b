//! Trivial clusters, as what comes after them sees them.

use webtwin_base::ids::ClusterId;

/// Trivial clusters: labels and sizes.
#[derive(Debug, Clone, Copy)]
pub struct Trivial<'a> {
    /// The trivial cluster of every page.
    pub labels: &'a [ClusterId],
    /// Pages of every trivial cluster.
    pub sizes: &'a [u32],
}
