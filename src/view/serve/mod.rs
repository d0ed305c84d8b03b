//! An index over HTTP, for crawlers in their loop and for people who look.
//!
//! ```text
//!  who may ask (the crate webtwin-http) ──▶ the index of this moment (current.rs) ──▶ routes (routes.rs)
//!       ──▶ answers, of a run (versions.rs), counted (metrics.rs)
//! ```
//!
//! A request takes the index that is current when it comes and keeps it to its end. So another one can take its place at any
//! moment: no request fails for it, and no answer is of two runs. Nothing that was crawled is ever fetched.

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
use self::metrics::Metrics;
use webtwin_base::error::Result;
use webtwin_http::Front;

/// What is served, to whom, and within which bounds.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Folder of an index; or, with `follow`, one in which `CURRENT` names the folder of the index.
    pub index: String,
    /// Whether the index is the one that `CURRENT` names, whenever that changes.
    pub follow: bool,
    /// Share of the pages to skip that are to be fetched all the same.
    pub recheck: f64,
    /// Whether an index is read and held against its checksums before it is served.
    pub verify: bool,
    /// Where it listens, for whom, and within which bounds.
    pub front: webtwin_http::Settings,
}

/// What all requests share.
struct Shared {
    settings: Settings,
    front: Arc<Front>,
    current: Current,
    metrics: Metrics,
}

/// Ends or reloads a server from outside.
#[derive(Clone)]
pub struct Handle {
    shared: Arc<Shared>,
}

impl Handle {
    /// Ends the server once the requests that are on their way have been answered.
    pub fn stop(&self) {
        self.shared.front.stop();
    }

    /// Opens the index anew, and serves it if it is sound; the one before goes on being served otherwise.
    ///
    /// # Errors
    /// As [`crate::lookup::Index::open`].
    pub fn reload(&self) -> Result<()> {
        self.shared.current.reload(&self.shared.settings, &self.shared.metrics)
    }
}

/// Serves an index until it is stopped; `listening` is told where it listens and how to end it.
///
/// # Errors
/// Those of the index and of the [front](Front::new).
pub fn serve(settings: Settings, listening: impl FnOnce(SocketAddr, Handle)) -> Result<()> {
    let mut front = Front::new(settings.front.clone(), metrics::ROUTES)?;
    let current = Current::open(&settings)?;
    let listener = front.bind()?;
    let shared = Arc::new(Shared { settings, front: Arc::new(front), current, metrics: Metrics::default() });
    listening(shared.front.address(), Handle { shared: Arc::clone(&shared) });
    let router = routes::router(Arc::clone(&shared));
    shared.front.serve(listener, router, current::follow(Arc::clone(&shared)))
}
