//! The service: pages come over HTTP and from files that grow, and answers and advice go out.
//!
//! ```text
//! POST /v1/pages (body.rs) ─┐ records (reading.rs)    group, fsync
//!                           ├────────────▶ writer.rs ─────────────▶ acknowledged ──▶ advice (events.rs)
//! files (follow.rs) ────────┘                 │
//!                                             ▼
//!                     questions (routes.rs) ─ Index
//! ```

mod body;
mod events;
mod follow;
mod openapi;
mod reading;
mod routes;
mod writer;

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;

use self::follow::FollowedFiles;
pub use self::follow::{EndCondition, OnComplete};
use self::reading::Digesters;
pub use self::reading::ReadCounts;
use self::writer::BatchSender;
use crate::answer::Figures;
use crate::index::LiveIndex;
use webtwin_base::console::notify;
use webtwin_base::error::Result;
use webtwin_base::threads;
use webtwin_http::{Front, ServiceLimits};
use webtwin_job::Job;

/// Bytes of all bodies together that are on their way.
const BODIES: usize = 256 << 20;

/// Returns the bounds of the service: as those of any other, with time for a body and for a long poll.
pub fn limits(threads: usize) -> ServiceLimits {
    ServiceLimits { heavy: 2 * threads + 14, request: Duration::from_secs(40), ..ServiceLimits::default() }
}

/// Settings of the service: its folder, its clients, and the files that it follows.
pub struct LiveServeSettings {
    /// Folder of the index.
    pub folder: PathBuf,
    /// The job by whose settings pages are read and compared.
    pub job: Job,
    /// Files to follow: globs.
    pub follow: Vec<String>,
    /// Receives the names of followed files once they are complete.
    pub on_complete: Option<OnComplete>,
    /// When to end.
    pub until: EndCondition,
    /// Threads that read followed files.
    pub threads: usize,
    /// Where to listen; `None` for nowhere.
    pub front: Option<webtwin_http::ServiceSettings>,
}

/// Ends a service from outside.
#[derive(Clone)]
pub struct ServiceHandle {
    stop: Arc<AtomicBool>,
    front: Option<Arc<Front>>,
}

impl ServiceHandle {
    /// Ends the service once what has come is acknowledged.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(front) = &self.front {
            front.stop();
        }
    }
}

/// State that all requests share.
struct Service {
    folder: PathBuf,
    front: Arc<Front>,
    shared: Arc<writer::SharedIndex>,
    writer: BatchSender,
    digesters: Arc<Digesters>,
    counts: Arc<Mutex<ReadCounts>>,
    /// Memory for bodies.
    bodies: Arc<Semaphore>,
    /// Turns of requests whose records are read.
    turns: Semaphore,
}

/// Fills an index and answers for it, until it is time to end; `started` is called with where it listens, and how to end it.
/// Returns what the index has then, and what was read.
///
/// # Errors
/// Those of the index, of the [front](Front::new) and of followed files; [`webtwin_base::error::Error::Storage`] when what
/// came cannot be written.
pub fn serve(
    settings: LiveServeSettings,
    started: impl FnOnce(Option<SocketAddr>, ServiceHandle),
) -> Result<(Figures, ReadCounts)> {
    let mut front = settings.front.clone().map(|front| Front::new(front, routes::ROUTES)).transpose()?;
    let index = LiveIndex::open(&settings.folder, &settings.job)?;
    let listener: Option<TcpListener> = front.as_mut().map(Front::bind).transpose()?;
    let front = front.map(Arc::new);
    let handle = ServiceHandle { stop: Arc::default(), front: front.clone() };
    let ended = handle.clone();
    let (shared, writer, thread) = BatchSender::start(index, move || ended.stop())?;
    let digesters = Arc::new(Digesters::new(settings.job));
    let counts: Arc<Mutex<ReadCounts>> = Arc::default();
    let followed = FollowedFiles {
        patterns: settings.follow,
        until: settings.until,
        threads: settings.threads,
        shared: Arc::clone(&shared),
        writer: writer.clone(),
        digesters: Arc::clone(&digesters),
        counts: Arc::clone(&counts),
        stop: Arc::clone(&handle.stop),
        on_complete: settings.on_complete,
    };
    started(front.as_ref().map(|front| front.address()), handle.clone());
    let done = match (front, listener) {
        (Some(front), Some(listener)) => {
            let following = threads::start(move || {
                let done = followed.run();
                handle.stop();
                done
            })?;
            let turns = Semaphore::new(front.limits().heavy);
            let service = Service {
                folder: settings.folder,
                front: Arc::clone(&front),
                shared: Arc::clone(&shared),
                writer,
                digesters,
                counts: Arc::clone(&counts),
                bodies: Arc::new(Semaphore::new(BODIES)),
                turns,
            };
            let served = front.serve(listener, routes::router(Arc::new(service)), async {});
            served.and(joined(following))
        }
        _ => {
            drop(writer);
            followed.run()
        }
    };
    let written = joined(thread);
    let figures = shared.index().figures();
    let counts = counts.lock().unwrap_or_else(PoisonError::into_inner).clone();
    written.and(done).map(|()| (figures, counts))
}

/// Waits for a thread.
fn joined(thread: std::thread::JoinHandle<Result<()>>) -> Result<()> {
    thread.join().unwrap_or_else(|_| {
        notify("error: a thread of the service panicked");
        Err(webtwin_base::error::Error::Invariant("a thread of the service panicked".into()))
    })
}
