//! `webtwin run --retries N`: a run that is begun again when what ended it may not happen again.
//!
//! Each attempt is a process of its own, started by this one with the same arguments: a worker that does not return ends its
//! process, and the system may kill one that takes too much memory, which no attempt within this process would outlive. An
//! attempt ends when this process does, however that ends: it reads from a pipe that nobody writes to and that is closed
//! then. So who kills and starts again this process never has two of them.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::signals;
use webtwin_base::console::tell;
use webtwin_base::error::{Error, Result};
use webtwin_base::leftovers::exit;
use webtwin_base::threads;

/// Pause before the second attempt; each later one is twice as long,
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Time between two looks at an attempt.
const LOOK: Duration = Duration::from_millis(20);

/// Exit codes of a run that finds a result at its output; of a scheduled one, the second if that is what it would make.
const COMMITTED: [u8; 2] = [4, 10];

/// Whether a run that ended with this code may well not do so again: the store did not tell what became of the commit, a
/// process was lost, a store failed; or the system killed it, as it does when memory is short.
fn is_retryable(code: u8) -> bool {
    matches!(code, 6..=8) || code == 128 + Signal::SIGKILL as u8
}

/// Pause before an attempt, of which the first is number 1.
fn pause(attempt: u32) -> Duration {
    let doubled = attempt.saturating_sub(2).min(31);
    FIRST_PAUSE.saturating_mul(1 << doubled).min(LONGEST_PAUSE)
}

/// The shell's code for how a process has ended.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// What a signal finds: an attempt to pass it on to, and a pause to end.
#[derive(Default)]
struct Running {
    attempt: Option<Child>,
    signal: Option<Signal>,
}

#[derive(Default)]
struct Shared(Mutex<Running>, Condvar);

impl Shared {
    /// No code panics while it holds the lock.
    fn lock(&self) -> MutexGuard<'_, Running> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes a signal on to the attempt; there will be no other.
    fn interrupt(&self, signal: Signal) {
        let mut running = self.lock();
        running.signal = Some(signal);
        if let Some(attempt) = &running.attempt {
            // It is not yet waited for as long as it is here, so its number is no other's.
            let _ = kill(Pid::from_raw(attempt.id() as i32), signal);
        }
        self.1.notify_all();
    }

    /// Starts an attempt and waits for its end; a signal that came before ends the process.
    fn attempt(&self, number: u32) -> Result<u8> {
        let mut running = self.lock();
        if let Some(signal) = running.signal {
            exit(128 + signal as u8);
        }
        running.attempt = Some(start(number)?);
        loop {
            let attempt = running.attempt.as_mut().expect("only this thread takes it away");
            let ended = attempt.try_wait().map_err(|cause| Error::storage("an attempt", cause))?;
            if let Some(status) = ended {
                running.attempt = None;
                return Ok(code(status));
            }
            running = self.1.wait_timeout(running, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits, or ends the process if a signal comes.
    fn pause(&self, pause: Duration) {
        let until = Instant::now() + pause;
        let mut running = self.lock();
        loop {
            if let Some(signal) = running.signal {
                exit(128 + signal as u8);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            running = self.1.wait_timeout(running, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Starts this program again with the same arguments, and one that says so.
fn start(number: u32) -> Result<Child> {
    let failed = |cause: std::io::Error| Error::storage("this program", cause);
    // The executable may have been replaced meanwhile; processes of one run must be of one build.
    let same = std::path::Path::new("/proc/self/exe");
    let program = if same.exists() { same.to_path_buf() } else { std::env::current_exe().map_err(failed)? };
    let mut arguments = std::env::args_os();
    let mut command = Command::new(program);
    command.arg0(arguments.next().unwrap_or_else(|| OsString::from("webtwin")));
    command.args(arguments).args(["--attempt", &number.to_string()]);
    // A terminal sends its signals to all of a group, and the attempt is to get each of them once.
    command.stdin(Stdio::piped()).process_group(0);
    command.spawn().map_err(failed)
}

/// Runs up to `retries` attempts more after the first; ends the process with the code of the last, unless that is 0.
///
/// `is_committed` tells whether the result of this job is at its output: an attempt that finds it there has come after one
/// that did not live to say so.
///
/// # Errors
/// Those of starting a process.
pub(super) fn supervise(retries: u32, is_committed: impl Fn() -> bool) -> Result<()> {
    let shared = Arc::new(Shared::default());
    let stopping = Arc::clone(&shared);
    signals::ends_by(move |signal| {
        if let Ok(signal) = Signal::try_from(signal) {
            stopping.interrupt(signal);
        }
    });
    let attempts = retries.saturating_add(1);
    for attempt in 1..=attempts {
        let code = shared.attempt(attempt)?;
        if code == 0 {
            return Ok(());
        }
        if COMMITTED.contains(&code) && attempt > 1 && is_committed() {
            tell("the result is that of an earlier attempt");
            return Ok(());
        }
        let killed = if code > 128 { ", killed" } else { "" };
        if !is_retryable(code) || shared.lock().signal.is_some() {
            exit(code);
        }
        if attempt == attempts {
            tell(format_args!(
                "attempt {attempt} of {attempts} ended with exit code {code}{killed}; no attempts \
                 remain"
            ));
            exit(code);
        }
        let pause = pause(attempt + 1);
        tell(format_args!(
            "attempt {attempt} of {attempts} ended with exit code {code}{killed}; the next begins \
             in {} s",
            pause.as_secs()
        ));
        shared.pause(pause);
    }
    unreachable!("the last attempt ends the process")
}

/// In an attempt: ends this process at once when the one that started it is gone, as if killed with it.
pub(super) fn end_with_supervisor() {
    let _ = threads::start(|| {
        let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
        exit(128 + Signal::SIGKILL as u8)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_a_minute() {
        let seconds: Vec<u64> = (2..12).map(|attempt| pause(attempt).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60, 60, 60]);
        assert_eq!(pause(u32::MAX), LONGEST_PAUSE);
    }

    #[test]
    fn what_may_pass_is_retried_and_what_would_end_alike_is_not() {
        let retried: Vec<u8> = (0..=u8::MAX).filter(|&code| is_retryable(code)).collect();
        assert_eq!(retried, [6, 7, 8, 137]);
    }

    #[test]
    fn an_end_by_a_signal_has_the_code_of_the_shell() {
        let ended = |script: &str| code(Command::new("sh").args(["-c", script]).status().unwrap());
        assert_eq!([ended("exit 7"), ended("kill -9 $$"), ended("kill -15 $$")], [7, 137, 143]);
    }
}
