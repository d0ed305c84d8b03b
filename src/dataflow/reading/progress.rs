//! How far a process is: counters that workers raise, for people who watch.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

/// Counters of one process.
#[derive(Debug)]
pub struct Progress {
    /// Weight of all work items of the run.
    pub all: u64,
    /// Weight of the items that this process has read.
    pub done: AtomicU64,
    /// Records read.
    pub records: AtomicU64,
    /// Bytes of pages, decoded.
    pub page_bytes: AtomicU64,
    /// Pairs of documents that are known to be coming.
    pub coming: AtomicU64,
    stage: Mutex<&'static str>,
}

impl Progress {
    /// Nothing done of work that weighs `all`.
    pub fn new(all: u64) -> Progress {
        let zero = AtomicU64::default;
        Progress {
            all,
            done: zero(),
            records: zero(),
            page_bytes: zero(),
            coming: zero(),
            stage: Mutex::new("reading"),
        }
    }

    /// Enters a stage.
    pub fn enter(&self, stage: &'static str) {
        *self.stage.lock().expect("no holder of this lock can panic") = stage;
    }

    /// The stage that was entered last.
    pub fn stage(&self) -> &'static str {
        *self.stage.lock().expect("no holder of this lock can panic")
    }
}

/// Seconds by stage, in thousandths, as manifests have them.
pub(crate) struct Laps {
    /// Of the stages that have ended.
    pub seconds: BTreeMap<String, f64>,
    start: Instant,
}

impl Laps {
    /// The first stage begins.
    pub fn start() -> Laps {
        Laps { seconds: BTreeMap::new(), start: Instant::now() }
    }

    /// A stage ends, and the next begins.
    pub fn lap(&mut self, stage: &str) {
        self.seconds.insert(stage.into(), (self.start.elapsed().as_secs_f64() * 1000.0).round() / 1000.0);
        self.start = Instant::now();
    }
}
