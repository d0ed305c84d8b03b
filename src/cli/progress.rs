//! Progress of a run: on stderr a line that is overwritten on a terminal, one line a minute
//! elsewhere, JSON lines with `--log json`; with `--metrics FILE` a text file in the format of
//! Prometheus.
//!
//! A library would only draw the line on a terminal, which is the smallest part: all forms are
//! derived from one set of counters.

use std::fmt::Write;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use webtwin_base::build_info::{cpu_seconds, peak_memory_bytes};
use webtwin_base::console::{is_json, notify, notify_object, write_to_stderr};
use webtwin_base::error::{Error, Result};
use webtwin_base::leftovers::Temporary;
use webtwin_base::progress::Progress;
use webtwin_base::threads;
use webtwin_spill::{spilled_bytes, taken_bytes};

/// Interval between two samples of the progress.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(200);

/// Number of samples between two JSON lines of one stage, and between two files of metrics: five
/// seconds.
const SAMPLES_PER_LINE: u32 = 25;

/// Number of samples between two lines if stderr is not a terminal: a minute.
const SAMPLES_PER_MINUTE: u32 = 300;

/// File of metrics, if requested.
static METRICS: OnceLock<PathBuf> = OnceLock::new();

/// Number of this process in its cluster.
static PROCESS: AtomicUsize = AtomicUsize::new(0);

/// Metrics that were written last, without those of the run's end.
static LAST_METRICS: Mutex<String> = Mutex::new(String::new());

/// Makes watchers write metrics to this file too, or to the target if it is a symbolic link.
///
/// # Errors
/// Returns [`Error::Usage`] for a device, a pipe or a folder, because a new file replaces the old
/// one.
pub(super) fn write_metrics_to(file: PathBuf) -> Result<()> {
    let metadata = std::fs::metadata(&file);
    if metadata.as_ref().is_ok_and(|found| !found.is_file()) {
        return Err(Error::Usage(format!(
            "--metrics {}: is not a file; name a file, or leave the option out",
            file.display()
        )));
    }
    let _ = METRICS.set(if metadata.is_ok() { file.canonicalize().unwrap_or(file) } else { file });
    Ok(())
}

/// Sets the number of the process for which metrics are written.
pub(super) fn is_process(number: usize) {
    PROCESS.store(number, Ordering::Relaxed);
}

/// Appends the outcome of the run to the metrics that were written last.
pub(super) fn write_end(code: u8) {
    if let Some(file) = METRICS.get() {
        let last = LAST_METRICS.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let rows = [
            is_ended(true),
            ("end_time_seconds", "gauge", "When the run ended, in seconds since 1970.", since_1970.as_secs_f64()),
            ("exit_code", "gauge", "Exit code of the run.", f64::from(code)),
        ];
        write_metrics(file, &(last + &samples(&rows)));
    }
}

/// Shows progress until it is dropped.
pub(super) struct Watcher {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    /// Watches work that passes through `stages`, in this order. If no thread can be started, the
    /// work continues unwatched.
    pub(super) fn start(progress: Arc<Progress>, stages: &'static [&'static str]) -> Watcher {
        let (json, terminal) = (is_json(), std::io::stderr().is_terminal());
        let (stop, stopped) = channel();
        let thread = threads::start(move || {
            let (start, mut last, mut looks) = (Instant::now(), "", 0);
            let record = |stage| {
                if let Some(file) = METRICS.get() {
                    let text = metrics(&progress, stage, stages, start.elapsed().as_secs_f64());
                    write_metrics(file, &(text.clone() + &samples(&[is_ended(false)])));
                    *LAST_METRICS.lock().unwrap_or_else(PoisonError::into_inner) = text;
                }
            };
            while stopped.recv_timeout(SAMPLE_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let (stage, seconds) = (progress.stage(), start.elapsed().as_secs_f64());
                let pass = progress.pass_seconds();
                looks += 1;
                let is_time = stage != last || looks % SAMPLES_PER_LINE == 0;
                if json {
                    if is_time {
                        notify_object(object(&progress, stage, stages, (seconds, pass)));
                    }
                } else if terminal {
                    write_to_stderr(format_args!("\r\x1b[K{}", line(&progress, stage, stages, (seconds, pass))));
                } else if looks % SAMPLES_PER_MINUTE == 0 {
                    notify(line(&progress, stage, stages, (seconds, pass)));
                }
                if is_time {
                    record(stage);
                }
                last = stage;
            }
            record(progress.stage());
            if terminal && !json {
                write_to_stderr("\r\x1b[K");
            }
        });
        Watcher { stop: Some(stop), thread: thread.ok() }
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

/// Returns the fraction of the input that has been read, and the estimated seconds to read the
/// remainder.
fn reading(progress: &Progress, seconds: f64) -> (f64, f64) {
    let fraction = progress.done.load(Ordering::Relaxed) as f64 / progress.all.max(1) as f64;
    (fraction, if fraction > 0.0 { seconds / fraction - seconds } else { 0.0 })
}

/// Returns the number of a stage, from 1; 0 if the stage is not listed.
fn number(stage: &str, stages: &[&str]) -> usize {
    stages.iter().position(|of| *of == stage).map_or(0, |at| at + 1)
}

/// Returns the progress as a JSON object. The times are the seconds since the start, and those
/// spent in a stage that reads the input.
fn object(progress: &Progress, stage: &str, stages: &[&str], (seconds, pass): (f64, Option<f64>)) -> serde_json::Value {
    let pass = pass.unwrap_or(seconds);
    let (fraction, left) = reading(progress, pass);
    serde_json::json!({
        "level": "progress", "stage": stage, "stage_number": number(stage, stages), "stages": stages.len(),
        "seconds": seconds, "share_read": fraction, "records": progress.records.load(Ordering::Relaxed),
        "pairs_coming": progress.coming.load(Ordering::Relaxed),
        "page_megabytes_a_second": progress.page_bytes.load(Ordering::Relaxed) as f64 / 1e6 / pass,
        "seconds_left_to_read": left, "memory_bytes": webtwin_base::build_info::memory_bytes(),
    })
}

/// Returns the progress as text for Prometheus.
fn metrics(progress: &Progress, stage: &str, stages: &[&str], seconds: f64) -> String {
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64;
    let traffic = progress.traffic.get();
    let rows = [
        ("stage_number", "gauge", "Stage that the run is in, from 1.", number(stage, stages) as f64),
        ("stages", "gauge", "Stages of the run.", stages.len() as f64),
        ("seconds", "gauge", "Seconds since the run began.", seconds),
        ("share_read", "gauge", "Fraction of the input that this process has read.", reading(progress, seconds).0),
        ("records_total", "counter", "Records read by this process.", read(&progress.records)),
        ("page_bytes_total", "counter", "Bytes of pages read by this process, decoded.", read(&progress.page_bytes)),
        ("pairs_coming", "gauge", "Pairs of pages that are counted and still to be made.", read(&progress.coming)),
        ("memory_bytes", "gauge", "Memory of this process.", webtwin_base::build_info::memory_bytes() as f64),
        ("peak_memory_bytes", "gauge", "Peak memory of this process.", peak_memory_bytes() as f64),
        ("cpu_seconds_total", "counter", "Processor seconds of this process and its helpers.", cpu_seconds()),
        ("spilled_bytes_total", "counter", "Bytes written to spill files.", spilled_bytes() as f64),
        ("spill_files_bytes", "gauge", "Bytes of spill files on disk.", taken_bytes() as f64),
        (
            "rounds_total",
            "counter",
            "Number of times that all workers waited for messages of all others.",
            traffic.map_or(0.0, |traffic| read(&traffic.rounds)),
        ),
        (
            "exchanged_bytes_total",
            "counter",
            "Bytes of rows sent to other workers, of this process (but for rows with texts) or of others.",
            traffic.map_or(0.0, |traffic| read(&traffic.exchanged_bytes)),
        ),
        (
            "sent_bytes_total",
            "counter",
            "Bytes of rows sent to other processes.",
            traffic.map_or(0.0, |traffic| read(&traffic.sent_bytes)),
        ),
    ];
    samples(&rows)
}

/// Name, kind, help and value of a metric.
type Sample = (&'static str, &'static str, &'static str, f64);

fn is_ended(value: bool) -> Sample {
    ("ended", "gauge", "1 once the run has ended.", f64::from(u8::from(value)))
}

/// Formats metrics of this process as text.
fn samples(rows: &[Sample]) -> String {
    let process = PROCESS.load(Ordering::Relaxed);
    let mut text = String::new();
    for (name, kind, help, value) in rows {
        let name = format!("webtwin_{name}");
        writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name}{{process=\"{process}\"}} {value}")
            .expect("text takes all that is written");
    }
    text
}

/// Replaces the file of metrics atomically. A failure does not end the run and is reported once.
fn write_metrics(file: &Path, text: &str) {
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let half = Temporary::at(PathBuf::from(name));
    if let Err(cause) = std::fs::write(half.path(), text).and_then(|()| std::fs::rename(half.path(), file)) {
        static SHOWN: Once = Once::new();
        SHOWN.call_once(|| {
            notify(format_args!("warning: --metrics {}: {cause}; the run continues without this file", file.display()))
        });
    }
}

fn line(progress: &Progress, stage: &str, stages: &[&str], (seconds, pass): (f64, Option<f64>)) -> String {
    let (records, coming) = (progress.records.load(Ordering::Relaxed), progress.coming.load(Ordering::Relaxed));
    let (number, memory) = (number(stage, stages), webtwin_base::build_info::memory_bytes() >> 20);
    let stage = if number > 0 { format!("{number} of {}: {stage}", stages.len()) } else { stage.to_string() };
    match pass {
        Some(seconds) => {
            let (fraction, left) = reading(progress, seconds);
            let rate = progress.page_bytes.load(Ordering::Relaxed) as f64 / 1e6 / seconds;
            format!(
                "{stage}, {:.0} % of the input, {records} records, {rate:.0} MB of text a second, {left:.0} s left to read; \
                 {memory} MB of memory",
                100.0 * fraction
            )
        }
        None if coming > 0 => {
            format!("{stage}, {coming} pairs to make, {seconds:.0} s so far; {memory} MB of memory")
        }
        None => format!("{stage}, {records} records, {seconds:.0} s so far; {memory} MB of memory"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_line_has_the_stage_and_the_number_of_stages() {
        let progress = Progress::new(10);
        progress.done.store(5, Ordering::Relaxed);
        let stages = ["reading", "finding", "writing"];
        let message = line(&progress, "reading", &stages, (9.0, Some(2.0)));
        assert!(
            message.starts_with("1 of 3: reading, 50 % of the input") && message.contains("2 s left to read"),
            "{message}"
        );
        assert!(line(&progress, "writing", &stages, (2.0, None)).starts_with("3 of 3: writing, 0 records"));
        assert_eq!(object(&progress, "finding", &stages, (2.0, None))["stage_number"], 2);
    }

    #[test]
    fn metrics_are_in_prometheus_format_and_replace_earlier_ones() {
        let progress = Progress::new(10);
        progress.done.store(5, Ordering::Relaxed);
        let text = metrics(&progress, "finding", &["reading", "finding"], 2.0);
        assert!(text.contains("\n# TYPE webtwin_share_read gauge\nwebtwin_share_read{process=\"0\"} 0.5\n"), "{text}");
        assert!(text.contains("\nwebtwin_stage_number{process=\"0\"} 2\n"), "{text}");
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let is_sample = words.len() == 2 && words[1].parse::<f64>().is_ok();
            assert!(words[0] == "#" && words[2].starts_with("webtwin_") || is_sample, "{line}");
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("run.prom");
        std::fs::write(&file, "before").unwrap();
        write_metrics(&file, &text);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
