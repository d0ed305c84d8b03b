//! Premature end of a run: the first error wins, and is visible to every thread of the process.
//!
//! Workers check the state between steps. The heartbeat forwards the error to all other processes.
//! A timely thread that loses a socket waits a moment for the true reason before it reports the
//! peer as lost.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use webtwin_base::error::{Error, Result};

/// Time that a thread with a broken socket waits for an orderly reason that may still be in
/// transit.
pub(super) const GRACE: Duration = Duration::from_millis(500);

/// Phase of a run.
#[derive(Debug, Clone)]
pub(super) enum RunPhase {
    /// The workers are active.
    Running,
    /// Every worker of every process has finished.
    Over,
    /// A process failed. All processes report this error.
    Stopped(Error),
}

/// State of one run in one process, shared by all its threads.
#[derive(Debug)]
pub(super) struct Stop {
    phase: Mutex<RunPhase>,
    condition: Condvar,
    stopped: AtomicBool,
}

impl Stop {
    /// Returns the state of a run that begins.
    pub(crate) fn new() -> Stop {
        Stop { phase: Mutex::new(RunPhase::Running), condition: Condvar::new(), stopped: AtomicBool::new(false) }
    }

    /// Ends the run with `error`, unless it has already ended. Returns true if it was running.
    pub(crate) fn stop(&self, error: Error) -> bool {
        let mut phase = self.lock();
        let running = matches!(*phase, RunPhase::Running);
        if running {
            *phase = RunPhase::Stopped(error);
            self.stopped.store(true, Ordering::Release);
            self.condition.notify_all();
        }
        running
    }

    /// Ends the run with `error` unless a better reason arrives within [`GRACE`]. Blocks for that
    /// time.
    pub(crate) fn stop_unless_explained(&self, error: Error) {
        if matches!(self.wait(GRACE), RunPhase::Running) {
            self.stop(error);
        }
    }

    /// Marks the run as done, unless it was stopped.
    pub(crate) fn finish(&self) {
        let mut phase = self.lock();
        if matches!(*phase, RunPhase::Running) {
            *phase = RunPhase::Over;
            self.condition.notify_all();
        }
    }

    /// True if an error has ended the run. One atomic load: cheap enough for inner loops.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Returns the error that has ended the run, if there is one.
    pub(crate) fn check(&self) -> Result<()> {
        if !self.is_stopped() {
            return Ok(());
        }
        match &*self.lock() {
            RunPhase::Stopped(error) => Err(error.clone()),
            RunPhase::Running | RunPhase::Over => Ok(()),
        }
    }

    /// Waits until the run has ended, at most `patience`, and returns its phase.
    pub(crate) fn wait(&self, patience: Duration) -> RunPhase {
        let deadline = Instant::now() + patience;
        let mut phase = self.lock();
        while matches!(*phase, RunPhase::Running) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            phase = self.condition.wait_timeout(phase, left).unwrap_or_else(|poison| poison.into_inner()).0;
        }
        phase.clone()
    }

    /// Locks the phase. A poisoned lock is still consistent, because no code panics while it is
    /// held.
    fn lock(&self) -> MutexGuard<'_, RunPhase> {
        self.phase.lock().unwrap_or_else(|poison| poison.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn the_first_error_wins() {
        let stop = Stop::new();
        assert!(stop.check().is_ok());
        stop.stop(Error::Handshake("first".into()));
        stop.stop(Error::PeerLost("second".into()));
        stop.finish();
        assert_eq!(stop.check().unwrap_err().to_string(), "rendezvous: first");
    }

    #[test]
    fn a_run_that_is_over_cannot_be_stopped() {
        let stop = Stop::new();
        stop.finish();
        stop.stop(Error::PeerLost("late".into()));
        assert!(stop.check().is_ok() && matches!(stop.wait(Duration::ZERO), RunPhase::Over));
    }

    #[test]
    fn reason_within_the_grace_period_takes_precedence_over_a_broken_socket() {
        let stop = Arc::new(Stop::new());
        let broken = Arc::clone(&stop);
        let socket = std::thread::spawn(move || broken.stop_unless_explained(Error::PeerLost("closed".into())));
        std::thread::sleep(GRACE / 10);
        stop.stop(Error::input("a.warc", "missing"));
        socket.join().unwrap();
        assert_eq!(stop.check().unwrap_err().exit_code(), 3);
    }

    #[test]
    fn a_broken_socket_without_a_reason_ends_the_run_by_itself() {
        let stop = Stop::new();
        stop.stop_unless_explained(Error::PeerLost("closed".into()));
        assert_eq!(stop.check().unwrap_err().exit_code(), 7);
    }
}
