//! What people are told on stderr, and what a command prints on stdout.
//!
//! Both may be gone: a pipe whose reader has left, a full device. Nobody to tell is no reason to stop a run, so what is
//! told may be lost; what is printed is what a command is for, so it is lost only where the reader wants no more.

use std::fmt::Display;
use std::io::{BufWriter, ErrorKind, Result as Written, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

/// Whether all that is told is JSON, an object a line.
static IN_JSON: AtomicBool = AtomicBool::new(false);

/// Tells in JSON from now on, also of panics.
pub fn tell_in_json() {
    IN_JSON.store(true, Ordering::Relaxed);
    std::panic::set_hook(Box::new(|panic| tell(format_args!("error: {panic}"))));
}

/// Whether all that is told is JSON.
pub fn is_json() -> bool {
    IN_JSON.load(Ordering::Relaxed)
}

/// Tells a line on stderr, whether or not anybody reads it; in JSON, as `message` of a `level` (info, warning, error).
pub fn tell(line: impl Display) {
    if !is_json() {
        return say(format_args!("{line}\n"));
    }
    let line = line.to_string();
    let marks = [("error", "error: "), ("warning", "warning: "), ("info", "")];
    let told = marks.iter().find_map(|(level, mark)| Some((level, line.strip_prefix(mark)?.trim())));
    let (level, message) = told.expect("every line begins with nothing");
    tell_object(serde_json::json!({ "level": level, "message": message }));
}

/// Tells an object on stderr, where all is JSON.
pub fn tell_object(object: serde_json::Value) {
    if is_json() {
        say(format_args!("{object}\n"));
    }
}

/// As [`tell`], without an end of line.
pub fn say(text: impl Display) {
    // Made before the lock is taken, for what makes it may wait for memory; in one write, so that lines of several threads and
    // processes stay whole.
    let text = text.to_string();
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Prints on stdout what `write` writes.
///
/// # Errors
/// [`Error::Storage`] when stdout cannot be written; a reader that has seen enough (`| head`) is no failure.
pub fn print(write: impl FnOnce(&mut dyn Write) -> Written<()>) -> Result<()> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let written = write(&mut out).and_then(|()| out.flush());
    // What is left in the buffer after a failure would fail again.
    drop(out.into_parts());
    match written {
        Err(cause) if cause.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(failed),
    }
}

/// Goes on after a write to stdout of a command that prints as it works; where the reader has left, the process ends, done.
///
/// # Errors
/// As [`print()`].
pub fn ended(written: Written<()>) -> Result<()> {
    match written {
        Err(cause) if cause.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        written => written.map_err(failed),
    }
}

fn failed(cause: std::io::Error) -> Error {
    Error::storage("stdout", cause)
}
