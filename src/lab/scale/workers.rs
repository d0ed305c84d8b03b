//! Comparison of two workers with one.

use super::super::measure::processor_seconds;
use super::super::{FigureRow, Options, figure};
use super::{components, growth, of_the_machine, overlap};
use webtwin_base::error::Result;

/// A benchmark whose first row is its time.
type Timed = (&'static str, fn(&Options) -> Result<Vec<FigureRow>>);

const TIMED_STAGES: [Timed; 4] = [
    ("two-line overlap", overlap::two_line),
    ("four-line overlap", overlap::four_line),
    ("trivial clusters", components::run),
    ("LinkSummary and growth", growth::run),
];

/// Runs each benchmark with two workers and with one.
pub(super) fn run(options: &Options) -> Result<Vec<FigureRow>> {
    let cpu_before = processor_seconds();
    let mut rows = Vec::new();
    for (label, run) in TIMED_STAGES {
        let time = |workers| -> Result<f64> {
            Ok(run(&Options { workers, ..options.clone() })?[0].ours.expect("its time is measured"))
        };
        let (double_time, single_time) = (time(2)?, time(1)?);
        rows.extend([
            figure(&format!("{label}, two workers"), double_time, "s"),
            figure(&format!("{label}, one worker"), single_time, "s"),
            figure("  the former against the latter", single_time / double_time, "times").at_least(1.7),
        ]);
    }
    rows.extend(of_the_machine(cpu_before, 1));
    Ok(rows)
}
