//! HTTP service of a live index. Pages arrive by HTTP and from growing files; the service returns
//! answers and advice.
//!
//! ```text
//! POST /v1/pages (body.rs) ─┐ records (reading.rs)   fsync
//!                           ├──────────▶ writer.rs ────────▶ acknowledged ──▶ advice (events.rs)
//! files (follow.rs) ────────┘               │
//!                                           ▼
//!                   questions (routes.rs) ─ Index
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

/// Memory for the bodies of all requests in flight, in bytes.
const BODIES: usize = 256 << 20;

/// Returns the limits of the service: the defaults, with more time for a request, because of large
/// bodies and long polls, and with a number of heavy requests that grows with `threads`.
pub fn limits(threads: usize) -> ServiceLimits {
    ServiceLimits { heavy: 2 * threads + 14, request: Duration::from_secs(40), ..ServiceLimits::default() }
}

/// Settings of the service: the index, the clients, and the files to follow.
pub struct LiveServeSettings {
    /// Folder of the index.
    pub folder: PathBuf,
    /// Job whose settings determine how pages are read and compared.
    pub job: Job,
    /// Glob patterns of the files to follow.
    pub follow: Vec<String>,
    /// Callback that receives the names of followed files that are complete.
    pub on_complete: Option<OnComplete>,
    /// Condition for the end of the service.
    pub end_condition: EndCondition,
    /// Number of threads that read followed files.
    pub threads: usize,
    /// Settings of the HTTP server; `None` if the service only follows files.
    pub front: Option<webtwin_http::ServiceSettings>,
}

/// Handle that stops the service from another thread.
#[derive(Clone)]
pub struct ServiceHandle {
    stop: Arc<AtomicBool>,
    front: Option<Arc<Front>>,
}

impl ServiceHandle {
    /// Stops the service once all received records are acknowledged.
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
    index: Arc<writer::SharedIndex>,
    writer: BatchSender,
    digesters: Arc<Digesters>,
    counts: Arc<Mutex<ReadCounts>>,
    /// Memory for request bodies: one permit for each byte.
    bodies: Arc<Semaphore>,
    /// Permits for requests whose records are being read and added.
    turns: Semaphore,
}

/// Runs the service until its end condition holds or it is stopped. Calls `started` with the
/// address of the server, if there is one, and with the handle that stops the service. Returns the
/// final counts of the index and of the records that were read.
///
/// # Errors
/// Returns any error of the index, of the [HTTP server](Front::new) and of the followed files, and
/// [`webtwin_base::error::Error::Storage`] if received pages cannot be written.
pub fn serve(
    settings: LiveServeSettings,
    started: impl FnOnce(Option<SocketAddr>, ServiceHandle),
) -> Result<(Figures, ReadCounts)> {
    let mut front = settings.front.clone().map(|front| Front::new(front, routes::ROUTES)).transpose()?;
    let index = LiveIndex::open(&settings.folder, &settings.job)?;
    // The index is opened before the port is bound, so that clients connect only once the log has
    // been replayed.
    let listener: Option<TcpListener> = front.as_mut().map(Front::bind).transpose()?;
    let front = front.map(Arc::new);
    let handle = ServiceHandle { stop: Arc::default(), front: front.clone() };
    let stop_handle = handle.clone();
    let (index_handle, writer, thread) = BatchSender::start(index, move || stop_handle.stop())?;
    let digesters = Arc::new(Digesters::new(settings.job));
    let counts: Arc<Mutex<ReadCounts>> = Arc::default();
    let followed = FollowedFiles {
        patterns: settings.follow,
        end_condition: settings.end_condition,
        threads: settings.threads,
        index: Arc::clone(&index_handle),
        writer: writer.clone(),
        digesters: Arc::clone(&digesters),
        counts: Arc::clone(&counts),
        stop: Arc::clone(&handle.stop),
        on_complete: settings.on_complete,
    };
    started(front.as_ref().map(|front| front.address()), handle.clone());
    let outcome = match (front, listener) {
        (Some(front), Some(listener)) => {
            let follower = threads::start(move || {
                let result = followed.run();
                handle.stop();
                result
            })?;
            let turns = Semaphore::new(front.limits().heavy);
            let service = Service {
                folder: settings.folder,
                front: Arc::clone(&front),
                index: Arc::clone(&index_handle),
                writer,
                digesters,
                counts: Arc::clone(&counts),
                bodies: Arc::new(Semaphore::new(BODIES)),
                turns,
            };
            let serving = front.serve(listener, routes::router(Arc::new(service)), async {});
            serving.and(join_thread(follower))
        }
        _ => {
            // The writer thread ends when the last sender is dropped; `followed` has the only other
            // one.
            drop(writer);
            followed.run()
        }
    };
    let writer_result = join_thread(thread);
    let figures = index_handle.index().figures();
    let counts = counts.lock().unwrap_or_else(PoisonError::into_inner).clone();
    writer_result.and(outcome).map(|()| (figures, counts))
}

/// Waits for a thread; converts a panic into an error.
fn join_thread(thread: std::thread::JoinHandle<Result<()>>) -> Result<()> {
    thread.join().unwrap_or_else(|_| {
        notify("error: a thread of the service panicked");
        Err(webtwin_base::error::Error::Invariant("a thread of the service panicked".into()))
    })
}
