//! Front of an HTTP service: connections, keys, limits and metrics, independent of the responses of
//! the service.
//!
//! ```text
//!  connections (listen.rs, places.rs) ──▶ admission (gate.rs: Host, key, in flight, time)
//!       ──▶ the router of the service ──▶ responses (answer.rs, problem.rs), counted (metrics.rs)
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
use self::metrics::ConnectionMetrics;
use self::places::ConnectionSlots;
use webtwin_base::error::{Error, Result};

pub use self::metrics::gauge;
pub use self::places::{ConnectionPhase, ConnectionSlot};
pub use self::problem::Problem;

/// Maximum number of connections that wait to be accepted.
const MAX_WAITING: i32 = 4096;

/// Address of a service, its clients, and its limits.
#[derive(Debug, Clone)]
pub struct ServiceSettings {
    /// Address on which the service listens.
    pub listen: String,
    /// Names by which the service may be addressed, in addition to the address on which it listens.
    pub hosts: Vec<String>,
    /// File of keys.
    pub keys: Option<PathBuf>,
    /// Number of threads that answer requests.
    pub threads: usize,
    /// Limits of connections and requests.
    pub limits: ServiceLimits,
}

/// Limits of connections and requests.
#[derive(Debug, Clone, Copy)]
pub struct ServiceLimits {
    /// Maximum number of concurrent connections.
    pub connections: usize,
    /// Maximum number of concurrent requests.
    pub in_flight: usize,
    /// Maximum number of concurrent requests whose work is [heavy](Front::heavy). Other requests
    /// are answered in parallel.
    pub heavy: usize,
    /// Maximum length of a body in bytes.
    pub body: usize,
    /// Maximum length of a body with texts in bytes.
    pub text: usize,
    /// Maximum length of the head of a request in bytes.
    pub head: usize,
    /// Maximum number of URLs, ids or records in a request.
    pub batch: usize,
    /// Time limit for the head of a request, with its key, to arrive.
    pub head_time: Duration,
    /// Time limit between the head of a request and its response.
    pub request: Duration,
    /// Time limit between a response and the next request of its connection.
    pub idle: Duration,
    /// Age at which a connection is closed between two requests.
    pub connection: Duration,
}

impl Default for ServiceLimits {
    fn default() -> ServiceLimits {
        ServiceLimits {
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

/// Front of a service, which all of its requests share.
pub struct Front {
    settings: ServiceSettings,
    address: SocketAddr,
    keys: Keys,
    /// Accepted values of `Host`.
    names: Vec<String>,
    metrics: ConnectionMetrics,
    places: Arc<ConnectionSlots>,
    heavy: Semaphore,
    stop: watch::Sender<bool>,
}

impl Front {
    /// Makes the front of a service. Requests are counted by `routes`.
    ///
    /// # Errors
    /// Returns [`Error::Usage`] if the settings are invalid: the address cannot be parsed, the keys
    /// cannot be read, or there is no key although the address is not loopback.
    pub fn new(settings: ServiceSettings, routes: &'static [&'static str]) -> Result<Front> {
        let refuse = |what: &str| Error::Usage(format!("--listen {}: {what}", settings.listen));
        let address: SocketAddr =
            settings.listen.parse().map_err(|_| refuse("must be ADDRESS:PORT, for example 127.0.0.1:8600"))?;
        let keys = settings.keys.as_deref().map(Keys::read).transpose()?.unwrap_or_default();
        if !address.ip().is_loopback() && keys.is_empty() {
            return Err(refuse(
                "an address other than loopback needs keys; add --key FILE, with a line NAME KEY for each client",
            ));
        }
        Ok(Front {
            address,
            keys,
            names: Vec::new(),
            metrics: ConnectionMetrics::new(routes),
            places: Arc::new(ConnectionSlots::new(settings.limits)),
            heavy: Semaphore::new(settings.limits.heavy),
            stop: watch::Sender::new(false),
            settings,
        })
    }

    /// Begins to listen. Returns the listener to [serve](Front::serve) with.
    ///
    /// # Errors
    /// Returns [`Error::Usage`] if the address cannot be bound.
    pub fn bind(&mut self) -> Result<TcpListener> {
        let refuse = |cause: std::io::Error| {
            Error::Usage(format!("--listen {}: {cause}; choose another address or port", self.settings.listen))
        };
        let listener = TcpListener::bind(self.address).map_err(refuse)?;
        self.address = listener.local_addr().map_err(refuse)?;
        // The standard library listens with a queue of 128 connections. Clients beyond it would
        // wait for seconds.
        SockRef::from(&listener).listen(MAX_WAITING).map_err(refuse)?;
        listener.set_nonblocking(true).map_err(refuse)?;
        self.names = gate::names(self.address, &self.settings.hosts);
        Ok(listener)
    }

    /// Answers requests with a router until the service is stopped. The future `background` runs
    /// concurrently.
    ///
    /// # Errors
    /// Returns [`Error::Storage`] if the system cannot create threads.
    pub fn serve(
        self: &Arc<Front>,
        listener: TcpListener,
        router: Router,
        background: impl Future<Output = ()> + Send + 'static,
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
        runtime.spawn(background);
        runtime.block_on(listen::accept(listener, Arc::clone(self), router))?;
        // Heavy work whose client has gone is abandoned.
        runtime.shutdown_timeout(Duration::from_secs(1));
        Ok(())
    }

    /// Returns the address on which the service listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the limits.
    pub fn limits(&self) -> &ServiceLimits {
        &self.settings.limits
    }

    /// Stops the service once the requests in flight have been answered.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Waits until the service is stopped.
    pub async fn stopped(&self) {
        // The only error is that the sender is dropped, but `self` owns the sender.
        let _ = self.stop.subscribe().wait_for(|is_stopped| *is_stopped).await;
    }

    /// Returns metrics of requests, connections and memory of the process, in the text format of
    /// Prometheus.
    pub fn metrics(&self) -> String {
        self.metrics.text(&self.places)
    }

    /// Runs long work on a separate thread, unless the limit of such work is reached.
    ///
    /// # Errors
    /// Returns any error of `work`, and a problem if the service is busy or `work` panics.
    pub async fn heavy<T: Send + 'static>(
        self: &Arc<Front>,
        work: impl FnOnce() -> std::result::Result<T, Problem> + Send + 'static,
    ) -> std::result::Result<T, Problem> {
        let front = Arc::clone(self);
        // The permit is held until the work is done, even if its client has gone.
        self.heavy
            .try_acquire()
            .map_err(|_| Problem::busy("the server has reached its limit of simultaneous comparisons"))?
            .forget();
        let result = tokio::task::spawn_blocking(move || {
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            front.heavy.add_permits(1);
            result
        });
        match result.await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) | Err(_) => Err(Problem::broken()),
        }
    }
}
