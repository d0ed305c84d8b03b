//! Progress of a process: counters that its threads increment, for progress displays; and the time
//! of each stage.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use crate::build_info::cpu_seconds as cpu_seconds_so_far;

/// Amount of data that the workers of one process have sent to others.
#[derive(Debug, Default)]
pub struct Traffic {
    /// Number of times that all workers have waited for messages of all others.
    pub rounds: AtomicU64,
    /// Bytes of rows and their addresses sent to other workers, of this process or of others. Rows
    /// with texts are moved within a process and only count between processes.
    pub exchanged_bytes: AtomicU64,
    /// Part of `exchanged_bytes` that was sent to other processes, before encryption.
    pub sent_bytes: AtomicU64,
}

/// Progress counters of one process.
#[derive(Debug)]
pub struct Progress {
    /// Weight of all input.
    pub all: u64,
    /// Weight of the input that this process has read, in the current pass if there are several.
    pub done: AtomicU64,
    /// Number of records read.
    pub records: AtomicU64,
    /// Bytes of pages or texts, decoded, in the current pass.
    pub page_bytes: AtomicU64,
    /// Number of pairs of documents that are known to be produced.
    pub coming: AtomicU64,
    /// Data sent, as soon as the workers of all processes are connected.
    pub traffic: OnceLock<Arc<Traffic>>,
    stage: Mutex<Stage>,
}

#[derive(Debug, Clone, Copy)]
struct Stage {
    name: &'static str,
    /// Start of the stage, if it reads the input.
    pass: Option<Instant>,
}

impl Progress {
    /// Returns the counters of work with weight `total`. The first stage reads it.
    pub fn new(total: u64) -> Progress {
        let zero = AtomicU64::default;
        Progress {
            all: total,
            done: zero(),
            records: zero(),
            page_bytes: zero(),
            coming: zero(),
            traffic: OnceLock::new(),
            stage: Mutex::new(Stage { name: "reading", pass: Some(Instant::now()) }),
        }
    }

    /// Enters a stage that does not read the input.
    pub fn enter(&self, stage: &'static str) {
        self.set(Stage { name: stage, pass: None });
    }

    /// Enters a stage that reads the input again.
    pub fn read_again(&self, stage: &'static str) {
        self.done.store(0, Ordering::Relaxed);
        self.page_bytes.store(0, Ordering::Relaxed);
        self.set(Stage { name: stage, pass: Some(Instant::now()) });
    }

    fn set(&self, stage: Stage) {
        *self.stage.lock().expect("no holder of this lock can panic") = stage;
    }

    fn get(&self) -> Stage {
        *self.stage.lock().expect("no holder of this lock can panic")
    }

    /// Returns the stage that was entered last.
    pub fn stage(&self) -> &'static str {
        self.get().name
    }

    /// Returns the seconds since the start of the stage, if the stage reads the input.
    pub fn pass_seconds(&self) -> Option<f64> {
        self.get().pass.map(|began| began.elapsed().as_secs_f64())
    }
}

/// Durations of stages in seconds, rounded to milliseconds, as stored in manifests.
pub struct StageTimes {
    /// Durations of the stages that have ended.
    pub seconds: BTreeMap<String, f64>,
    /// Processor seconds of the whole process in these stages, helper processes included.
    pub cpu_seconds: BTreeMap<String, f64>,
    start: Instant,
    cpu_start: f64,
}

impl StageTimes {
    /// Starts the first stage.
    pub fn start() -> StageTimes {
        let (seconds, cpu_seconds) = (BTreeMap::new(), BTreeMap::new());
        StageTimes { seconds, cpu_seconds, start: Instant::now(), cpu_start: cpu_seconds_so_far() }
    }

    /// Ends the current stage under the name `stage`, and starts the next one.
    pub fn end_stage(&mut self, stage: &str) {
        let seconds = std::mem::replace(&mut self.start, Instant::now()).elapsed().as_secs_f64();
        let cpu_now = cpu_seconds_so_far();
        let cpu_seconds = cpu_now - std::mem::replace(&mut self.cpu_start, cpu_now);
        let thousandths = |seconds: f64| (seconds * 1000.0).round() / 1000.0;
        self.seconds.insert(stage.into(), thousandths(seconds));
        self.cpu_seconds.insert(stage.into(), thousandths(cpu_seconds));
    }
}
