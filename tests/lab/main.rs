//! The command line of the laboratory, `webtwin-lab`; `webtwin` is the other program of the
//! workspace.

// Runs compared with a truth: bands, held-out targets, samples, tags, and what a report shows of
// it.
mod evaluate;

// Streams and folders that are not for its output, and other refusals.
mod refusals;

// The papers' tables, of a run and of made-up collections.
mod reproduce;

// Crawls made up.
mod synth;

// Helpers of the tests of several modules; each program's tests use some of them.
#[allow(dead_code)]
#[path = "../support"]
mod support {
    pub(crate) mod manual;
    pub(crate) mod ports;
    pub(crate) mod program;
    pub(crate) mod report;
    pub(crate) mod streams;
}

use std::path::Path;
use std::process::Command;

use support::program::{failed, quiet, succeeded};

/// Returns the laboratory, with its output kept and nothing to read.
fn lab(arguments: &[&str]) -> Command {
    quiet(Path::new(env!("CARGO_BIN_EXE_webtwin-lab")), arguments)
}

/// Runs it to a good end; returns its stdout.
fn measure(arguments: &[&str]) -> String {
    succeeded(arguments, lab(arguments).output().unwrap())
}

/// Runs it to an end with this code and an empty stdout; returns its stderr.
fn refuse(arguments: &[&str], code: i32) -> String {
    let output = lab(arguments).output().unwrap();
    assert_eq!(output.stdout, b"", "{arguments:?}");
    failed(arguments, output, code)
}
