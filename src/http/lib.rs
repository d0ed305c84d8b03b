//! The front of an HTTP service: connections, keys, limits and metrics, whatever the service answers.
//!
//! ```text
//!  connections (listen.rs; places.rs: who gives way) ──▶ who may ask (gate.rs: Host, key, in flight, time)
//!       ──▶ the router of the service ──▶ answers (answer.rs, problem.rs), counted (metrics.rs)
//! ```
//!
//! A service makes a [`Front`], a router of its own, and lets the front [serve](Front::serve) it.

pub mod answer;
mod gate;
mod keys;
mod listen;
mod metrics;
mod places;
mod problem;

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use socket2::SockRef;
use tokio::sync::{Semaphore, watch};

use self::keys::Keys;
use self::metrics::Metrics;
use self::places::Places;
use webtwin_base::error::{Error, Result};

pub use self::metrics::gauge;
pub use self::places::{Phase, Place};
pub use self::problem::Problem;

/// Connections that may wait to be accepted.
const WAITING: i32 = 4096;

/// Where a service listens, for whom, and within which bounds.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where to listen.
    pub listen: String,
    /// Names by which it may be called, in addition to the address it listens on.
    pub hosts: Vec<String>,
    /// File of keys.
    pub keys: Option<PathBuf>,
    /// Threads that answer.
    pub threads: usize,
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
    /// Requests at a time whose work is [heavy](Front::heavy), with other requests next to them.
    pub heavy: usize,
    /// Bytes of a body.
    pub body: usize,
    /// Bytes of a body that holds texts.
    pub text: usize,
    /// Bytes of the head of a request.
    pub head: usize,
    /// URLs, ids or records of a request.
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

/// The front of a service, which all of its requests share.
pub struct Front {
    settings: Settings,
    address: SocketAddr,
    keys: Keys,
    /// Names that `Host` may have.
    names: Vec<String>,
    metrics: Metrics,
    places: Arc<Places>,
    heavy: Semaphore,
    stop: watch::Sender<bool>,
}

impl Front {
    /// Makes the front of a service whose `routes` are counted.
    ///
    /// # Errors
    /// [`Error::Usage`] when the settings are unsound: an address that is none, keys that cannot be read, or none
    /// beyond loopback.
    pub fn new(settings: Settings, routes: &'static [&'static str]) -> Result<Front> {
        let refuse = |what: &str| Error::Usage(format!("--listen {}: {what}", settings.listen));
        let address: SocketAddr =
            settings.listen.parse().map_err(|_| refuse("must be ADDRESS:PORT, as 127.0.0.1:8600"))?;
        let keys = settings.keys.as_deref().map(Keys::read).transpose()?.unwrap_or_default();
        if !address.ip().is_loopback() && keys.is_empty() {
            return Err(refuse("beyond loopback a key is needed: --key FILE, a line NAME KEY for each who may ask"));
        }
        Ok(Front {
            address,
            keys,
            names: Vec::new(),
            metrics: Metrics::new(routes),
            places: Arc::new(Places::new(settings.limits)),
            heavy: Semaphore::new(settings.limits.heavy),
            stop: watch::Sender::new(false),
            settings,
        })
    }

    /// Begins to listen; returns the listener to [serve](Front::serve) with.
    ///
    /// # Errors
    /// [`Error::Usage`] when it cannot listen.
    pub fn bind(&mut self) -> Result<TcpListener> {
        let refuse = |cause: std::io::Error| Error::Usage(format!("--listen {}: {cause}", self.settings.listen));
        let listener = TcpListener::bind(self.address).map_err(refuse)?;
        self.address = listener.local_addr().map_err(refuse)?;
        // Bound with room for 128 that wait to be accepted, beyond which a client waits for seconds.
        SockRef::from(&listener).listen(WAITING).map_err(refuse)?;
        listener.set_nonblocking(true).map_err(refuse)?;
        self.names = gate::names(self.address, &self.settings.hosts);
        Ok(listener)
    }

    /// Answers requests by a router until the service is stopped, while the future `aside` does what else there is to do.
    ///
    /// # Errors
    /// [`Error::Storage`] when the system gives no threads.
    pub fn serve(
        self: &Arc<Front>,
        listener: TcpListener,
        router: Router,
        aside: impl Future<Output = ()> + Send + 'static,
    ) -> Result<()> {
        let mut runtime = match self.settings.threads {
            1 => tokio::runtime::Builder::new_current_thread(),
            threads => {
                let mut runtime = tokio::runtime::Builder::new_multi_thread();
                runtime.worker_threads(threads.max(1));
                runtime
            }
        };
        let runtime = runtime.enable_all().max_blocking_threads(self.settings.limits.heavy + 2).build();
        let runtime = runtime.map_err(|cause| Error::storage("threads of the server", cause))?;
        runtime.spawn(aside);
        runtime.block_on(listen::accept(listener, Arc::clone(self), router))?;
        // Heavy work that nobody waits for any more is left alone.
        runtime.shutdown_timeout(Duration::from_secs(1));
        Ok(())
    }

    /// Address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Bounds.
    pub fn limits(&self) -> &Limits {
        &self.settings.limits
    }

    /// Ends the service once the requests that are on their way have been answered.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Waits until the service is to end.
    pub async fn stopped(&self) {
        // An error would be that the sender is gone, and that is `self`.
        let _ = self.stop.subscribe().wait_for(|is_stopped| *is_stopped).await;
    }

    /// Requests, connections and memory of the process, in the text format of Prometheus.
    pub fn metrics(&self) -> String {
        self.metrics.text(&self.places)
    }

    /// Does work that takes a while on a thread of its own, unless too much of it is being done.
    ///
    /// # Errors
    /// Those of `work`; a problem when the service is busy, or `work` panics.
    pub async fn heavy<T: Send + 'static>(
        self: &Arc<Front>,
        work: impl FnOnce() -> std::result::Result<T, Problem> + Send + 'static,
    ) -> std::result::Result<T, Problem> {
        let front = Arc::clone(self);
        // The permit is kept until the work is done, even if nobody waits for it any more.
        self.heavy.try_acquire().map_err(|_| Problem::busy("too many texts are being compared"))?.forget();
        let done = tokio::task::spawn_blocking(move || {
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            front.heavy.add_permits(1);
            done
        });
        match done.await {
            Ok(Ok(done)) => done,
            Ok(Err(_)) | Err(_) => Err(Problem::broken()),
        }
    }
}
