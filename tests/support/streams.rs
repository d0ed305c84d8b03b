use std::fs::OpenOptions;
use std::process::{Command, Stdio};

use super::program::stderr_text;

/// Returns the end of a pipe whose reader has left.
pub(crate) fn left() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

/// Returns a device that takes nothing.
pub(crate) fn full() -> Stdio {
    OpenOptions::new().write(true).open("/dev/full").unwrap().into()
}

/// A command of a program is done if its reader has left, and says so if it cannot print.
pub(crate) fn answers_only_who_listens(program: fn(&[&str]) -> Command, arguments: &[&str]) {
    let output = |stdout: Stdio| program(arguments).stdout(stdout).output().unwrap();
    let read_no_more = output(left());
    assert_eq!((read_no_more.status.code(), stderr_text(&read_no_more)), (Some(0), String::new()), "{arguments:?}");
    let unprintable = output(full());
    assert_eq!(unprintable.status.code(), Some(8), "{arguments:?}: {}", stderr_text(&unprintable));
    assert!(stderr_text(&unprintable).starts_with("error: storage stdout: "), "{}", stderr_text(&unprintable));
}
