//! SIGINT and SIGTERM: running work ends in order and reports what remains of it. A second signal
//! ends the process immediately.

use std::sync::{Mutex, MutexGuard, PoisonError};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use webtwin_base::console::notify;
use webtwin_base::error::Error;
use webtwin_base::leftovers::exit;
use webtwin_base::threads;
use webtwin_engine::interrupt;
use webtwin_storage::location::Location;
use webtwin_storage::manifest;

type Left = Box<dyn Fn() -> String + Send>;

type Stop = Box<dyn Fn(i32) + Send>;

/// Stop function of this process, if it has its own way to end in order.
static STOP_FUNCTION: Mutex<Option<Stop>> = Mutex::new(None);

/// Function that describes the remains of the work after a stop.
static REMAINS: Mutex<Option<Left>> = Mutex::new(None);

/// Starts a thread that handles signals. If that fails, signals end the process by default.
pub(super) fn listen() {
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else { return };
    let _ = threads::start(move || {
        let mut ending = false;
        for signal in signals.forever() {
            // Exit codes of the shell for processes that a signal ended.
            let (name, code) = if signal == SIGINT { ("SIGINT", 130) } else { ("SIGTERM", 143) };
            if ending {
                notify(format_args!("error: ended immediately by a second signal, {name}"));
                exit(code);
            }
            if let Some(stop) = &*STOP_FUNCTION.lock().unwrap_or_else(PoisonError::into_inner) {
                stop(signal);
                ending = true;
                continue;
            }
            ending = interrupt(name, code);
            if !ending {
                notify(format_args!("error: {}", stopped(format!("stopped by {name}"), code)));
                exit(code);
            }
        }
    });
}

/// Makes signals call `stop` with their number; the process then ends on its own.
pub(super) fn ends_by(stop: impl Fn(i32) + Send + 'static) {
    *STOP_FUNCTION.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(stop));
}

/// Work that can be stopped. Dropping this marks its end.
pub(super) struct StoppableWork;

impl StoppableWork {
    /// Starts the single work of this process. `left` describes what exists after a stop, and how
    /// to continue.
    pub(super) fn begin(left: impl Fn() -> String + Send + 'static) -> StoppableWork {
        *work() = Some(Box::new(left));
        StoppableWork
    }

    /// Starts work whose result is in `folder` once the manifest exists, and that must be repeated
    /// otherwise.
    pub(super) fn writing(folder: Location) -> StoppableWork {
        StoppableWork::begin(move || match manifest::is_in(&folder) {
            Ok(true) => format!("the result had been committed: {folder}"),
            Ok(false) => format!("no result in {folder}; run it again"),
            Err(_) => format!("check for a manifest in {folder} before running again"),
        })
    }

    /// Adds a description of the remains to an error that stopped the work.
    pub(super) fn explain(&self, error: Error) -> Error {
        match error {
            Error::Stopped { by: source, code, .. } => stopped(source, code),
            error => error,
        }
    }
}

impl Drop for StoppableWork {
    fn drop(&mut self) {
        *work() = None;
    }
}

fn stopped(source: String, code: u8) -> Error {
    let left = work().as_ref().map_or("start it again".into(), |left| left());
    Error::Stopped { by: source, left, code }
}

/// Locks the function. No code panics while it holds the lock, so a poisoned lock is usable.
fn work() -> MutexGuard<'static, Option<Left>> {
    REMAINS.lock().unwrap_or_else(PoisonError::into_inner)
}
