//! Messages on stderr, and output of commands on stdout.
//!
//! Both streams may be closed: a pipe whose reader has left, or a full device. A lost message is no
//! reason to stop a run, so errors of stderr are ignored. The output of a command is its result, so
//! it is an error if it cannot be written, unless the reader has closed the pipe.

use std::fmt::Display;
use std::io::{BufWriter, ErrorKind, Result as Written, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

/// True if all messages are JSON, one object per line.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// Switches all later messages to JSON, including those of panics.
pub fn use_json() {
    IS_JSON.store(true, Ordering::Relaxed);
    std::panic::set_hook(Box::new(|panic| notify(format_args!("error: {panic}"))));
}

/// True if messages are JSON.
pub fn is_json() -> bool {
    IS_JSON.load(Ordering::Relaxed)
}

/// Writes a line to stderr, and ignores errors. In JSON mode the line becomes the `message` of a
/// `level` (info, warning, error).
pub fn notify(line: impl Display) {
    if !is_json() {
        return write_to_stderr(format_args!("{line}\n"));
    }
    let line = line.to_string();
    let marks = [("error", "error: "), ("warning", "warning: "), ("info", "")];
    let report = marks.iter().find_map(|(level, mark)| Some((level, line.strip_prefix(mark)?.trim())));
    let (level, message) = report.expect("every line starts with the empty mark");
    notify_object(serde_json::json!({ "level": level, "message": message }));
}

/// Writes an object to stderr in JSON mode, and nothing otherwise.
pub fn notify_object(object: serde_json::Value) {
    if is_json() {
        write_to_stderr(format_args!("{object}\n"));
    }
}

/// Writes a text to stderr without an end of line, and ignores errors.
pub fn write_to_stderr(text: impl Display) {
    // Formatted before stderr is locked, because formatting may wait for memory. Written in a
    // single call, so that lines of several threads and processes are not interleaved.
    let text = text.to_string();
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Writes to stdout with `write`.
///
/// # Errors
/// Returns [`Error::Storage`] if stdout cannot be written. A closed pipe (`| head`) is not an
/// error.
pub fn print(write: impl FnOnce(&mut dyn Write) -> Written<()>) -> Result<()> {
    let mut writer = BufWriter::new(std::io::stdout().lock());
    let result = write(&mut writer).and_then(|()| writer.flush());
    // Flushing the rest of the buffer after a failure would only fail again.
    drop(writer.into_parts());
    match result {
        Err(cause) if cause.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(failed),
    }
}

/// Checks a write to stdout by a command that prints while it works. If the reader has closed the
/// pipe, the process ends with success.
///
/// # Errors
/// Returns the errors of [`print()`].
pub fn ended(result: Written<()>) -> Result<()> {
    match result {
        Err(cause) if cause.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        result => result.map_err(failed),
    }
}

fn failed(cause: std::io::Error) -> Error {
    Error::storage("stdout", cause)
}
