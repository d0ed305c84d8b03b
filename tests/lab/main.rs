//! Tests of `webtwin-lab`, the command line of the laboratory. `webtwin` is the other program of
//! the workspace.

// Comparison of runs with a truth: bands, held-out targets, samples, tags, and the views in a
// report.
mod evaluate;

// Refusals, and output streams and folders that cannot be used.
mod refusals;

// Tables of the papers, computed from a run and from made-up collections.
mod reproduce;

// Made-up crawls.
mod synth;

// Helpers of the tests of several modules. The tests of each program use some of them.
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

/// Returns a command of the laboratory that captures its output and has no input.
fn lab(arguments: &[&str]) -> Command {
    quiet(Path::new(env!("CARGO_BIN_EXE_webtwin-lab")), arguments)
}

/// Runs the laboratory successfully and returns its stdout.
fn measure(arguments: &[&str]) -> String {
    succeeded(arguments, lab(arguments).output().unwrap())
}

/// Runs the laboratory, checks its exit code and that stdout is empty, and returns its stderr.
fn refuse(arguments: &[&str], code: i32) -> String {
    let output = lab(arguments).output().unwrap();
    assert_eq!(output.stdout, b"", "{arguments:?}");
    failed(arguments, output, code)
}
