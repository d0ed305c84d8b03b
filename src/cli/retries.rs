//! `webtwin run --retries N`: starts a run again if the cause of its end may not recur.
//!
//! Each attempt is a separate process, started by this one with the same arguments. A worker that
//! does not return ends its process, and the system may kill a process that uses too much memory;
//! no attempt within this process would survive that. An attempt ends when this process does, for
//! whatever reason: it reads from a pipe that is never written to and that is closed then. So a
//! supervisor that kills and restarts this process never has two attempts at the same time.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::signals;
use webtwin_base::console::notify;
use webtwin_base::error::{Error, Result};
use webtwin_base::exit_codes::EXIT_CODES;
use webtwin_base::leftovers::exit;
use webtwin_base::threads;

/// Pause before the second attempt. Each later pause is twice as long, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Maximum pause before an attempt.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Interval between two checks of an attempt.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Exit codes of a run that finds a result at its output. A scheduled run has the second if the
/// result is the one that it would make.
const COMMITTED_CODES: [u8; 2] = [4, 10];

/// Returns true if a run that ended with `code` may succeed when it is started again.
fn is_retryable(code: u8) -> bool {
    EXIT_CODES.iter().any(|exit| exit.code == code && exit.is_retryable)
}

/// Returns the pause before an attempt. The first attempt has number 1.
fn pause(attempt: u32) -> Duration {
    let exponent = attempt.saturating_sub(2).min(31);
    FIRST_PAUSE.saturating_mul(1 << exponent).min(LONGEST_PAUSE)
}

/// Returns the shell's exit code for the end of a process.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// State that a signal handler needs: an attempt to pass the signal to, or a pause to end.
#[derive(Default)]
struct Running {
    attempt: Option<Child>,
    signal: Option<Signal>,
}

#[derive(Default)]
struct Shared(Mutex<Running>, Condvar);

impl Shared {
    /// Locks the state. No code panics while it holds the lock, so a poisoned lock is usable.
    fn lock(&self) -> MutexGuard<'_, Running> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes a signal to the attempt, and prevents further attempts.
    fn interrupt(&self, signal: Signal) {
        let mut running = self.lock();
        running.signal = Some(signal);
        if let Some(attempt) = &running.attempt {
            // The attempt has not been waited for while it is in this field, so its process id is
            // still its own.
            let _ = kill(Pid::from_raw(attempt.id() as i32), signal);
        }
        self.1.notify_all();
    }

    /// Starts an attempt and waits for its end. If a signal arrived before, the process ends.
    fn attempt(&self, number: u32) -> Result<u8> {
        let mut running = self.lock();
        if let Some(signal) = running.signal {
            exit(128 + signal as u8);
        }
        running.attempt = Some(start(number)?);
        loop {
            let attempt = running.attempt.as_mut().expect("only this thread takes it away");
            let exit_status = attempt.try_wait().map_err(|cause| Error::storage("an attempt", cause))?;
            if let Some(status) = exit_status {
                running.attempt = None;
                return Ok(code(status));
            }
            running = self.1.wait_timeout(running, CHECK_INTERVAL).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits for the duration of the pause. If a signal arrives, the process ends.
    fn pause(&self, pause: Duration) {
        let deadline = Instant::now() + pause;
        let mut running = self.lock();
        loop {
            if let Some(signal) = running.signal {
                exit(128 + signal as u8);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            running = self.1.wait_timeout(running, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Starts this program again with the same arguments and `--attempt`.
fn start(number: u32) -> Result<Child> {
    let failed = |cause: std::io::Error| Error::storage("this program", cause);
    // The executable may have been replaced meanwhile, but processes of one run must be of the same
    // build.
    let own_program = std::path::Path::new("/proc/self/exe");
    let program =
        if own_program.exists() { own_program.to_path_buf() } else { std::env::current_exe().map_err(failed)? };
    let mut arguments = std::env::args_os();
    let mut command = Command::new(program);
    command.arg0(arguments.next().unwrap_or_else(|| OsString::from("webtwin")));
    command.args(arguments).args(["--attempt", &number.to_string()]);
    // A terminal sends signals to a whole process group. With a group of its own, the attempt
    // receives each signal once.
    command.stdin(Stdio::piped()).process_group(0);
    command.spawn().map_err(failed)
}

/// Runs up to `retries` further attempts after the first. Ends the process with the exit code of
/// the last attempt, unless that is 0.
///
/// `is_committed` is true if the result of this job is at its output. An attempt that finds it
/// there follows one that committed but was lost before it could report success.
///
/// # Errors
/// Returns any error of starting a process.
pub(super) fn supervise(retries: u32, is_committed: impl Fn() -> bool) -> Result<()> {
    let state = Arc::new(Shared::default());
    let state_of_signals = Arc::clone(&state);
    signals::ends_by(move |signal| {
        if let Ok(signal) = Signal::try_from(signal) {
            state_of_signals.interrupt(signal);
        }
    });
    let n_attempts = retries.saturating_add(1);
    for attempt in 1..=n_attempts {
        let code = state.attempt(attempt)?;
        if code == 0 {
            return Ok(());
        }
        if COMMITTED_CODES.contains(&code) && attempt > 1 && is_committed() {
            notify("the result is that of an earlier attempt");
            return Ok(());
        }
        let killed_text = if code > 128 { ", killed" } else { "" };
        if !is_retryable(code) || state.lock().signal.is_some() {
            exit(code);
        }
        if attempt == n_attempts {
            notify(format_args!(
                "attempt {attempt} of {n_attempts} ended with exit code {code}{killed_text}; no attempts \
                 remain"
            ));
            exit(code);
        }
        let pause = pause(attempt + 1);
        notify(format_args!(
            "attempt {attempt} of {n_attempts} ended with exit code {code}{killed_text}; the next begins \
             in {} s",
            pause.as_secs()
        ));
        state.pause(pause);
    }
    unreachable!("the last attempt ends the process")
}

/// In an attempt: ends this process immediately when its supervisor has ended, as if it was killed
/// with it.
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
    fn transient_failures_are_retried_and_permanent_ones_are_not() {
        let retried: Vec<u8> = (0..=u8::MAX).filter(|&code| is_retryable(code)).collect();
        assert_eq!(retried, [6, 7, 8, 137]);
    }

    #[test]
    fn exit_by_a_signal_has_the_shells_exit_code() {
        let code_of = |script: &str| code(Command::new("sh").args(["-c", script]).status().unwrap());
        assert_eq!([code_of("exit 7"), code_of("kill -9 $$"), code_of("kill -15 $$")], [7, 137, 143]);
    }
}
