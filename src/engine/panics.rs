//! Conversion of panics in this program's code into errors.
//!
//! An uncaught panic of one worker would make all others hang, and would print pages of
//! consequential errors. A contained panic is one [`Error::Invariant`] with its source position,
//! and ends the run like any other error.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use webtwin_base::error::{Error, Result};
use webtwin_base::heap;

thread_local! {
    /// Message of the last panic of this thread while it runs contained; `None` outside of
    /// [`contain`].
    static PANIC_MESSAGE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `work`. A panic in it is returned as [`Error::Invariant`] with its position and message,
/// and is not printed.
///
/// Threads that `work` starts are not contained: their panics are printed as usual, and a scope
/// that joins them panics in turn.
pub fn contain<T>(work: impl FnOnce() -> T) -> Result<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous_hook = take_hook();
        set_hook(Box::new(move |panic| {
            heap::end_if_for_want_of_memory(heap::message_of(panic).unwrap_or_default());
            if !note(panic) {
                previous_hook(panic);
            }
        }));
    });
    let outer = PANIC_MESSAGE.replace(Some(String::new()));
    let result = catch_unwind(AssertUnwindSafe(work));
    let text = PANIC_MESSAGE.replace(outer).unwrap_or_default();
    result.map_err(|_| Error::Invariant(text))
}

/// Stores the message of a contained panic. Returns false if the thread is not contained.
fn note(panic: &PanicHookInfo<'_>) -> bool {
    PANIC_MESSAGE.with_borrow_mut(|text| match text {
        Some(text) => {
            let place = panic.location().map(|at| format!("{}:{}", at.file(), at.line())).unwrap_or_default();
            let message = heap::message_of(panic).unwrap_or("no message");
            *text = format!("panic at {place}: {}", message.replace('\n', " "));
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_one_line_with_its_place() {
        let lines = 2;
        let error = contain(|| panic!("{lines}\nlines")).unwrap_err();
        assert_eq!(error.exit_code(), 70);
        let line = error.to_string();
        assert!(line.contains("panics.rs:") && line.ends_with("2 lines") && !line.contains('\n'), "{line}");
    }

    #[test]
    fn contained_panic_does_not_affect_the_surrounding_work() {
        let inner = contain(|| contain(|| panic!("inner")).is_err());
        assert!(inner.unwrap());
        assert!(contain(|| panic!("outer")).unwrap_err().to_string().contains("outer"));
    }
}
