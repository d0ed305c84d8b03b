//! Progress on stderr during a run: a line that is overwritten on a terminal, JSON lines with `--log json`.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::console::{is_json, say, tell_object};
use crate::progress::Progress;

/// Time between two looks at a stage.
const LOOK: Duration = Duration::from_millis(200);

/// Looks between two lines of JSON in one stage: five seconds.
const LOOKS_A_LINE: u32 = 25;

/// Shows progress until it is dropped.
pub(super) struct Watcher {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    /// Watches work that goes through `stages`, in this order.
    pub(super) fn start(progress: Arc<Progress>, stages: &'static [&'static str]) -> Watcher {
        let json = is_json();
        if !json && !std::io::stderr().is_terminal() {
            return Watcher { stop: None, thread: None };
        }
        let (stop, stopped) = channel();
        let thread = std::thread::spawn(move || {
            let (start, mut last, mut looks) = (Instant::now(), "", 0);
            while stopped.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                let (stage, seconds) = (progress.stage(), start.elapsed().as_secs_f64());
                let pass = progress.pass_seconds();
                looks += 1;
                if !json {
                    say(format_args!("\r\x1b[K{}", line(&progress, stage, stages, (seconds, pass))));
                } else if stage != last || looks % LOOKS_A_LINE == 0 {
                    tell_object(object(&progress, stage, stages, (seconds, pass)));
                }
                last = stage;
            }
            if !json {
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

/// Share of the input that has been read, and the seconds left to read the rest.
fn reading(progress: &Progress, seconds: f64) -> (f64, f64) {
    let done = progress.done.load(Ordering::Relaxed) as f64 / progress.all.max(1) as f64;
    (done, if done > 0.0 { seconds / done - seconds } else { 0.0 })
}

/// Number of a stage from 1; 0 for one that is not listed.
fn number(stage: &str, stages: &[&str]) -> usize {
    stages.iter().position(|of| *of == stage).map_or(0, |at| at + 1)
}

/// Progress after so many seconds, and so many of them in a stage that reads the input.
fn object(progress: &Progress, stage: &str, stages: &[&str], (seconds, pass): (f64, Option<f64>)) -> serde_json::Value {
    let pass = pass.unwrap_or(seconds);
    let (done, left) = reading(progress, pass);
    serde_json::json!({
        "level": "progress", "stage": stage, "stage_number": number(stage, stages), "stages": stages.len(),
        "seconds": seconds, "share_read": done, "records": progress.records.load(Ordering::Relaxed),
        "pairs_coming": progress.coming.load(Ordering::Relaxed),
        "page_megabytes_a_second": progress.page_bytes.load(Ordering::Relaxed) as f64 / 1e6 / pass,
        "seconds_left_to_read": left, "memory_bytes": crate::build::memory_bytes(),
    })
}

fn line(progress: &Progress, stage: &str, stages: &[&str], (seconds, pass): (f64, Option<f64>)) -> String {
    let (records, coming) = (progress.records.load(Ordering::Relaxed), progress.coming.load(Ordering::Relaxed));
    let (number, memory) = (number(stage, stages), crate::build::memory_bytes() >> 20);
    let stage = if number > 0 { format!("{number} of {}: {stage}", stages.len()) } else { stage.to_string() };
    match pass {
        Some(seconds) => {
            let (done, left) = reading(progress, seconds);
            let rate = progress.page_bytes.load(Ordering::Relaxed) as f64 / 1e6 / seconds;
            format!(
                "{stage}, {:.0} % of the input, {records} records, {rate:.0} MB of text a second, {left:.0} s left to read; \
                 {memory} MB of memory",
                100.0 * done
            )
        }
        None if coming > 0 => {
            format!("{stage}, {coming} pairs are coming, {seconds:.0} s so far; {memory} MB of memory")
        }
        None => format!("{stage}, {records} records, {seconds:.0} s so far; {memory} MB of memory"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_which_stage_of_how_many() {
        let progress = Progress::new(10);
        progress.done.store(5, Ordering::Relaxed);
        let stages = ["reading", "finding", "writing"];
        let told = line(&progress, "reading", &stages, (9.0, Some(2.0)));
        assert!(told.starts_with("1 of 3: reading, 50 % of the input") && told.contains("2 s left to read"), "{told}");
        assert!(line(&progress, "writing", &stages, (2.0, None)).starts_with("3 of 3: writing, 0 records"));
        assert_eq!(object(&progress, "finding", &stages, (2.0, None))["stage_number"], 2);
    }
}
