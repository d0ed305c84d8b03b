//! Trivial clusters as later steps receive them.

use std::sync::Arc;

use webtwin_base::error::Result;
use webtwin_base::ids::ClusterId;
use webtwin_core::clusters::labels::{SetLabels, SetSizes};
use webtwin_engine::Net;

/// Trivial clusters: labels and sizes, which every process holds once.
#[derive(Debug, Clone)]
pub struct TrivialClusters {
    /// Trivial cluster of every page.
    pub labels: Arc<SetLabels<ClusterId>>,
    /// Number of pages of every trivial cluster.
    pub sizes: Arc<SetSizes>,
}

impl TrivialClusters {
    /// Counts the pages of every trivial cluster. `labels` are shared by the workers of a process.
    ///
    /// # Errors
    /// Returns an error only if the run has ended.
    pub fn new(net: &mut Net<'_>, labels: Arc<SetLabels<ClusterId>>) -> Result<TrivialClusters> {
        let sizes = net.once_per_process(|| SetSizes::count(&labels))?;
        Ok(TrivialClusters { labels, sizes })
    }
}
