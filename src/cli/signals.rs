//! SIGINT and SIGTERM: what is at work ends in order, and says what is left of it. A second signal ends it at once.

use std::sync::{Mutex, MutexGuard, PoisonError};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use webtwin_base::console::tell;
use webtwin_base::error::Error;
use webtwin_base::leftovers::exit;
use webtwin_base::threads;
use webtwin_engine::interrupt;
use webtwin_storage::location::Location;
use webtwin_storage::manifest;

type Left = Box<dyn Fn() -> String + Send>;

type Stop = Box<dyn Fn(i32) + Send>;

/// Ends this process in order, if it has a way of its own to do so.
static ENDS_BY: Mutex<Option<Stop>> = Mutex::new(None);

/// Tells what is left of the work when it is stopped.
static LEFT: Mutex<Option<Left>> = Mutex::new(None);

/// Listens to signals from now on, in a thread of its own. Where that cannot be, they end the process as they always did.
pub(super) fn listen() {
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else { return };
    let _ = threads::start(move || {
        let mut ending = false;
        for signal in signals.forever() {
            // The shell's codes for what ended by a signal.
            let (name, code) = if signal == SIGINT { ("SIGINT", 130) } else { ("SIGTERM", 143) };
            if ending {
                tell(format_args!("error: ended immediately by a second signal, {name}"));
                exit(code);
            }
            if let Some(stop) = &*ENDS_BY.lock().unwrap_or_else(PoisonError::into_inner) {
                stop(signal);
                ending = true;
                continue;
            }
            ending = interrupt(name, code);
            if !ending {
                tell(format_args!("error: {}", stopped(format!("stopped by {name}"), code)));
                exit(code);
            }
        }
    });
}

/// From now on a signal calls `stop` with its number, and the process ends by itself.
pub(super) fn ends_by(stop: impl Fn(i32) + Send + 'static) {
    *ENDS_BY.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(stop));
}

/// Work that tells what is left of it when it is stopped, until this is dropped.
pub(super) struct StoppableWork;

impl StoppableWork {
    /// Begins the one work of this process; `left` says what is there when it is stopped, and how to go on.
    pub(super) fn begin(left: impl Fn() -> String + Send + 'static) -> StoppableWork {
        *work() = Some(Box::new(left));
        StoppableWork
    }

    /// Begins work whose result is in `folder` once its manifest is, and that starts anew otherwise.
    pub(super) fn writing(folder: Location) -> StoppableWork {
        StoppableWork::begin(move || match manifest::is_in(&folder) {
            Ok(true) => format!("the result had been committed: {folder}"),
            Ok(false) => format!("no result in {folder}; run it again"),
            Err(_) => format!("check for a manifest in {folder} before running again"),
        })
    }

    /// Says of an error by which the work was stopped what is left now.
    pub(super) fn explain(&self, error: Error) -> Error {
        match error {
            Error::Stopped { by, code, .. } => stopped(by, code),
            error => error,
        }
    }
}

impl Drop for StoppableWork {
    fn drop(&mut self) {
        *work() = None;
    }
}

fn stopped(by: String, code: u8) -> Error {
    let left = work().as_ref().map_or("start it again".into(), |left| left());
    Error::Stopped { by, left, code }
}

/// No code panics while it holds the lock.
fn work() -> MutexGuard<'static, Option<Left>> {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner)
}
