//! Trivial clusters as later steps receive them.

use webtwin_base::ids::ClusterId;
use webtwin_core::clusters::labels::{SetLabels, SetSizes};

/// Trivial clusters: labels and sizes.
#[derive(Debug, Clone, Copy)]
pub struct TrivialClusters<'a> {
    /// Trivial cluster of every page.
    pub labels: &'a SetLabels<ClusterId>,
    /// Number of pages of every trivial cluster.
    pub sizes: &'a SetSizes,
}
