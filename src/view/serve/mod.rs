//! An index over HTTP, for crawlers in their loop and for people who look.
//!
//! ```text
//!  connections (listen.rs; places.rs: who gives way) ──▶ who may ask (gate.rs: Host, key, in flight, time)
//!       ──▶ routes (routes.rs) ──▶ the index of this moment (current.rs) ──▶ answers, counted (metrics.rs)
//! ```
//!
//! A request takes the index that is current when it comes and keeps it to its end. So another one can take its place at any
//! moment: no request fails for it, and no answer is of two runs. Nothing that was crawled is ever fetched.

mod current;
mod gate;
mod html;
mod keys;
mod listen;
mod metrics;
mod openapi;
mod places;
mod problem;
mod routes;
#[cfg(feature = "search")]
mod search;

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use socket2::SockRef;
use tokio::sync::watch;

use self::current::Current;
use self::keys::Keys;
use self::metrics::Metrics;
use self::places::Places;
use webtwin_base::error::{Error, Result};

/// Connections that may wait to be accepted.
const WAITING: i32 = 4096;

/// What is served, to whom, and within which bounds.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Folder of an index; or, with `follow`, one in which `CURRENT` names the folder of the index.
    pub index: String,
    /// Whether the index is the one that `CURRENT` names, whenever that changes.
    pub follow: bool,
    /// Where to listen.
    pub listen: String,
    /// Names by which it may be called, beside the address it listens on.
    pub hosts: Vec<String>,
    /// File of keys.
    pub keys: Option<PathBuf>,
    /// Threads that answer.
    pub threads: usize,
    /// Share of the pages to skip that are to be fetched all the same.
    pub recheck: f64,
    /// Whether an index is read and held against its checksums before it is served.
    pub verify: bool,
    /// Bounds.
    pub limits: Limits,
}

/// Bounds of what is taken from who asks.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections at a time.
    pub connections: usize,
    /// Requests at a time.
    pub in_flight: usize,
    /// Texts that are checked, or pairs explained, at a time, beside other requests.
    pub heavy: usize,
    /// Bytes of a body.
    pub body: usize,
    /// Bytes of a text to check.
    pub text: usize,
    /// Bytes of the head of a request.
    pub head: usize,
    /// URLs or ids of a request.
    pub batch: usize,
    /// Time for the head of a request, with its key, to come.
    pub head_time: Duration,
    /// Time between the head of a request and its answer.
    pub request: Duration,
    /// Time between an answer and the next request of its connection.
    pub idle: Duration,
    /// Age of a connection, after which it is closed between two requests.
    pub connection: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 512,
            in_flight: 128,
            heavy: 8,
            body: 1 << 20,
            text: 16 << 20,
            head: 8 << 10,
            batch: 10_000,
            head_time: Duration::from_secs(2),
            request: Duration::from_secs(10),
            idle: Duration::from_secs(60),
            connection: Duration::from_secs(600),
        }
    }
}

/// What all requests share.
struct Shared {
    settings: Settings,
    keys: Keys,
    current: Current,
    metrics: Metrics,
    places: Arc<Places>,
    heavy: tokio::sync::Semaphore,
    /// Names that `Host` may have.
    names: Vec<String>,
}

/// Ends or reloads a server from outside.
#[derive(Clone)]
pub struct Handle {
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
}

impl Handle {
    /// Ends the server once the requests that are on their way have been answered.
    pub fn stop(&self) {
        let _ = self.stop.send(true);
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
/// Those of the index and of keys; [`Error::Usage`] when it would listen beyond loopback without a key, or cannot listen.
pub fn serve(settings: Settings, listening: impl FnOnce(SocketAddr, Handle)) -> Result<()> {
    let refuse = |what: String| Error::Usage(format!("--listen {}: {what}", settings.listen));
    let address: SocketAddr =
        settings.listen.parse().map_err(|_| refuse("must be ADDRESS:PORT, as 127.0.0.1:8600".into()))?;
    let keys = settings.keys.as_deref().map(Keys::read).transpose()?.unwrap_or_default();
    if !address.ip().is_loopback() && keys.is_empty() {
        return Err(refuse("beyond loopback a key is needed: --key FILE, a line NAME KEY for each who may ask".into()));
    }
    let metrics = Metrics::default();
    let current = Current::open(&settings)?;
    let listener = TcpListener::bind(address).map_err(|cause| refuse(cause.to_string()))?;
    let address = listener.local_addr().map_err(|cause| refuse(cause.to_string()))?;
    // Bound with room for 128 that wait to be accepted, beyond which a client waits for seconds.
    SockRef::from(&listener).listen(WAITING).map_err(|cause| refuse(cause.to_string()))?;
    listener.set_nonblocking(true).map_err(|cause| refuse(cause.to_string()))?;

    let names = gate::names(address, &settings.hosts);
    let heavy = tokio::sync::Semaphore::new(settings.limits.heavy);
    let places = Arc::new(Places::new(settings.limits));
    let shared = Arc::new(Shared { keys, current, metrics, places, heavy, names, settings });
    let (stop, stopped) = watch::channel(false);
    listening(address, Handle { shared: Arc::clone(&shared), stop });

    let mut runtime = match shared.settings.threads {
        1 => tokio::runtime::Builder::new_current_thread(),
        threads => {
            let mut runtime = tokio::runtime::Builder::new_multi_thread();
            runtime.worker_threads(threads.max(1));
            runtime
        }
    };
    let runtime = runtime.enable_all().max_blocking_threads(shared.settings.limits.heavy + 2).build();
    let runtime = runtime.map_err(|cause| Error::storage("threads of the server", cause))?;
    runtime.block_on(listen::accept(listener, Arc::clone(&shared), stopped))?;
    // What still explains a pair is not waited for.
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(())
}
