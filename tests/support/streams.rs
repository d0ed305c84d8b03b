use std::fs::OpenOptions;
use std::process::{Command, Stdio};

use super::program::stderr_text;

/// Returns the writing end of a pipe whose reader is closed.
pub(crate) fn left() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

/// Returns a device on which every write fails.
pub(crate) fn full() -> Stdio {
    OpenOptions::new().write(true).open("/dev/full").unwrap().into()
}

/// Checks that a command succeeds if the reader of its output has left, and reports an error if the
/// output cannot be written.
pub(crate) fn assert_unread_and_unwritable_output(program: fn(&[&str]) -> Command, arguments: &[&str]) {
    let output = |stdout: Stdio| program(arguments).stdout(stdout).output().unwrap();
    let read_no_more = output(left());
    assert_eq!((read_no_more.status.code(), stderr_text(&read_no_more)), (Some(0), String::new()), "{arguments:?}");
    let unprintable = output(full());
    assert_eq!(unprintable.status.code(), Some(8), "{arguments:?}: {}", stderr_text(&unprintable));
    assert!(stderr_text(&unprintable).starts_with("error: storage stdout: "), "{}", stderr_text(&unprintable));
}
