//! How far a process is: counters that its threads raise, for people who watch; and what each stage took.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use crate::build_info::cpu_seconds as cpu_seconds_so_far;

/// What the workers of one process have sent those of others.
#[derive(Debug, Default)]
pub struct Traffic {
    /// Times that all workers have waited for messages of all others.
    pub rounds: AtomicU64,
    /// Bytes of rows and their addresses sent to other workers, of this process or of others; rows with texts are handed over within
    /// a process, and count between processes.
    pub exchanged_bytes: AtomicU64,
    /// Those of them sent to other processes, before encryption.
    pub sent_bytes: AtomicU64,
}

/// Counters of one process.
#[derive(Debug)]
pub struct Progress {
    /// Weight of all that is to be read.
    pub all: u64,
    /// Weight of what this process has read, in this pass if there are several.
    pub done: AtomicU64,
    /// Records read.
    pub records: AtomicU64,
    /// Bytes of pages or texts, decoded, in this pass.
    pub page_bytes: AtomicU64,
    /// Pairs of documents that are known to be coming.
    pub coming: AtomicU64,
    /// What it has sent, once its workers have met those of others.
    pub traffic: OnceLock<Arc<Traffic>>,
    stage: Mutex<Stage>,
}

#[derive(Debug, Clone, Copy)]
struct Stage {
    name: &'static str,
    /// When it began, if it reads the input.
    pass: Option<Instant>,
}

impl Progress {
    /// Nothing done of work that weighs `all`; the first stage reads it.
    pub fn new(all: u64) -> Progress {
        let zero = AtomicU64::default;
        Progress {
            all,
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

    /// Enters a stage that reads the input once more.
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

    /// The stage that was entered last.
    pub fn stage(&self) -> &'static str {
        self.get().name
    }

    /// Seconds since the stage began, if it reads the input.
    pub fn pass_seconds(&self) -> Option<f64> {
        self.get().pass.map(|began| began.elapsed().as_secs_f64())
    }
}

/// Seconds by stage, in thousandths, as manifests have them.
pub struct Laps {
    /// Of the stages that have ended.
    pub seconds: BTreeMap<String, f64>,
    /// Likewise processor seconds of the whole process, helper processes included.
    pub cpu_seconds: BTreeMap<String, f64>,
    start: Instant,
    cpu_start: f64,
}

impl Laps {
    /// The first stage begins.
    pub fn start() -> Laps {
        let (seconds, cpu_seconds) = (BTreeMap::new(), BTreeMap::new());
        Laps { seconds, cpu_seconds, start: Instant::now(), cpu_start: cpu_seconds_so_far() }
    }

    /// A stage ends, and the next begins.
    pub fn lap(&mut self, stage: &str) {
        let seconds = std::mem::replace(&mut self.start, Instant::now()).elapsed().as_secs_f64();
        let cpu_now = cpu_seconds_so_far();
        let cpu_seconds = cpu_now - std::mem::replace(&mut self.cpu_start, cpu_now);
        let thousandths = |seconds: f64| (seconds * 1000.0).round() / 1000.0;
        self.seconds.insert(stage.into(), thousandths(seconds));
        self.cpu_seconds.insert(stage.into(), thousandths(cpu_seconds));
    }
}
