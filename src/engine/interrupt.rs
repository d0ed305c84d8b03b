//! Signals: an interrupted run ends in order, on all processes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::stop::Stop;
use webtwin_base::error::Error;

/// Runs of this process that may be active: number of the process, number of processes, state.
static RUNS: Mutex<Vec<(usize, usize, Weak<Stop>)>> = Mutex::new(Vec::new());

/// Registers a run for as long as its state is alive.
pub(super) fn note(process: usize, processes: usize, stop: &Arc<Stop>) {
    let mut runs = runs();
    runs.retain(|(.., stop)| stop.strong_count() > 0);
    runs.push((process, processes, Arc::downgrade(stop)));
}

/// Ends all active runs of this process, and their peers with them. [`super::run()`] returns
/// [`Error::Stopped`] in each of them, with the name of `signal`. Returns true if there was an
/// active run.
///
/// Workers check for the end between steps. A worker that has not returned after 5 seconds is ended
/// together with its process.
pub fn interrupt(signal: &str, code: u8) -> bool {
    let mut is_first_stop = false;
    for (process, processes, stop) in runs().iter() {
        let Some(stop) = stop.upgrade() else { continue };
        let signal_source = match processes {
            1 => format!("stopped by {signal}"),
            _ => format!("process {process} was stopped by {signal}"),
        };
        is_first_stop |= stop.stop(Error::Stopped { by: signal_source, left: "start it again".into(), code });
    }
    is_first_stop
}

/// Locks the list of runs. A poisoned lock is still consistent, because no code panics while it is
/// held.
fn runs() -> MutexGuard<'static, Vec<(usize, usize, Weak<Stop>)>> {
    RUNS.lock().unwrap_or_else(PoisonError::into_inner)
}
