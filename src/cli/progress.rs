//! Progress on stderr during a run: a line that is overwritten on a terminal, JSON lines with `--log json`.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::console::say;
use crate::dataflow::reading::progress::Progress;

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Log {
    /// A line on a terminal, nothing elsewhere
    Text,
    /// A JSON object per line
    Json,
}

/// Shows progress until it is dropped.
pub(super) struct Watcher {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    pub(super) fn start(progress: Arc<Progress>, log: Log) -> Watcher {
        let every = match log {
            Log::Json => Duration::from_secs(5),
            Log::Text if std::io::stderr().is_terminal() => Duration::from_millis(500),
            Log::Text => return Watcher { stop: None, thread: None },
        };
        let (stop, stopped) = channel();
        let thread = std::thread::spawn(move || {
            let start = Instant::now();
            while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                tell(&progress, log, start.elapsed().as_secs_f64());
            }
            if log == Log::Text {
                say("\r\x1b[K");
            }
        });
        Watcher { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn tell(progress: &Progress, log: Log, seconds: f64) {
    let stage = progress.stage();
    let done = progress.done.load(Ordering::Relaxed) as f64 / progress.all.max(1) as f64;
    let records = progress.records.load(Ordering::Relaxed);
    let rate = progress.page_bytes.load(Ordering::Relaxed) as f64 / 1e6 / seconds;
    let memory = crate::build::memory_bytes();
    let left = if done > 0.0 { seconds / done - seconds } else { 0.0 };
    let line = match log {
        Log::Json => {
            serde_json::json!({
                "stage": stage, "seconds": seconds, "share_read": done, "records": records,
                "pairs_coming": progress.coming.load(Ordering::Relaxed),
                "page_megabytes_a_second": rate, "seconds_left_to_read": left, "memory_bytes": memory,
            })
            .to_string()
                + "\n"
        }
        Log::Text if stage == "reading" => format!(
            "\r\x1b[K{stage}: {:.0} % of the input, {records} records, {rate:.0} MB of pages a second, {left:.0} s left, {} MB",
            100.0 * done,
            memory >> 20,
        ),
        Log::Text if progress.coming.load(Ordering::Relaxed) > 0 => format!(
            "\r\x1b[K{stage}: {} pairs are coming, {seconds:.0} s so far, {} MB",
            progress.coming.load(Ordering::Relaxed),
            memory >> 20
        ),
        Log::Text => format!("\r\x1b[K{stage}: {records} records, {seconds:.0} s so far, {} MB", memory >> 20),
    };
    say(line);
}
