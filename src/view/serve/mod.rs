//! HTTP service over an index, for crawlers and for browsers.
//!
//! ```text
//!  access control (the crate webtwin-http) ──▶ the current index (current.rs) ──▶ routes (routes.rs)
//!       ──▶ answers tagged with their run (versions.rs), counted (metrics.rs)
//! ```
//!
//! A request uses the index that is current when it arrives until it ends. So another index can
//! replace it at any time: no request fails because of that, and no answer mixes two runs. The
//! service never fetches crawled URLs.

mod current;
mod html;
mod metrics;
mod openapi;
mod routes;
#[cfg(feature = "search")]
mod search;
mod versions;

use std::net::SocketAddr;
use std::sync::Arc;

use self::current::Current;
use self::metrics::LookupMetrics;
use webtwin_base::error::Result;
use webtwin_http::Front;

/// Index, access and limits of a server.
#[derive(Debug, Clone)]
pub struct ServeSettings {
    /// Folder of an index; with `follow`, a folder in which `CURRENT` names the folder of the
    /// index.
    pub index: String,
    /// True if the index is the one that `CURRENT` names, and is replaced when that changes.
    pub follow: bool,
    /// Fraction of the skipped pages that are to be fetched nevertheless.
    pub recheck: f64,
    /// True if an index is read and compared with its checksums before it is served.
    pub verify: bool,
    /// Listening address, access and limits.
    pub front: webtwin_http::ServiceSettings,
}

/// State that all requests share.
struct Shared {
    settings: ServeSettings,
    front: Arc<Front>,
    current: Current,
    metrics: LookupMetrics,
}

/// Handle to stop or reload a running server.
#[derive(Clone)]
pub struct ServerHandle {
    state: Arc<Shared>,
}

impl ServerHandle {
    /// Stops the server after all pending requests have been answered.
    pub fn stop(&self) {
        self.state.front.stop();
    }

    /// Opens the index again, and serves it if it is sound; otherwise the previous index continues
    /// to be served.
    ///
    /// # Errors
    /// Returns any error of [`crate::lookup::LookupIndex::open`].
    pub fn reload(&self) -> Result<()> {
        self.state.current.reload(&self.state.settings, &self.state.metrics)
    }
}

/// Serves an index until the server is stopped. `listening` receives the address and a handle.
///
/// # Errors
/// Returns any error of the index and of the [front](Front::new).
pub fn serve(settings: ServeSettings, listening: impl FnOnce(SocketAddr, ServerHandle)) -> Result<()> {
    let mut front = Front::new(settings.front.clone(), metrics::ROUTES)?;
    let current = Current::open(&settings)?;
    let listener = front.bind()?;
    let state = Arc::new(Shared { settings, front: Arc::new(front), current, metrics: LookupMetrics::default() });
    listening(state.front.address(), ServerHandle { state: Arc::clone(&state) });
    let router = routes::router(Arc::clone(&state));
    state.front.serve(listener, router, current::follow(Arc::clone(&state)))
}
