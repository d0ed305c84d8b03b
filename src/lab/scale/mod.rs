//! Benchmarks of the pipeline from `FPrint-DocID` rows to collections at the scale of \[SGM98\] and
//! \[CSG00\]: 24 million pages.
//!
//! Inputs are made by [`super::made`], because the crawls of the papers are not published. Targets
//! are given for 24 million pages, and scaled linearly for fewer.

mod components;
mod diff;
mod growth;
mod history;
mod lookup;
mod overlap;
mod peer;
mod revisit;
mod workers;

use super::measure::processor_seconds;
use super::{Experiment, ExperimentRun, FigureRow, figure};

/// Number of pages of the crawl of the papers.
const PAGES: u64 = 24_000_000;

/// A sixteenth of that number: the smaller end of the measurement of growth.
const SIXTEENTH: u64 = 1_500_000;

/// Returns the entries for our benchmarks on the problems of the papers.
pub fn entries() -> Vec<Experiment> {
    let experiment = |name, summary, run| Experiment {
        name,
        about: summary,
        unit: "pages",
        scale: SIXTEENTH,
        full: PAGES,
        run: ExperimentRun::Alone(run),
    };
    vec![
        experiment(
            "bench-overlap-two-line",
            "sort and all-pairs overlap, two-line chunks, T = 25, 8 GiB (SGM98 Table 1)",
            overlap::two_line,
        ),
        experiment(
            "bench-overlap-four-line",
            "sort and all-pairs overlap, four-line chunks, T = 15, 8 GiB (SGM98 Table 1)",
            overlap::four_line,
        ),
        experiment(
            "bench-overlap-memory",
            "the two-line job with 1 GiB for each process, compared with 8 GiB",
            overlap::memory,
        ),
        experiment(
            "bench-overlap-growth",
            "the two-line job: two workers compared with one, and its cost for sixteen times the pages",
            overlap::growth,
        ),
        Experiment {
            name: "bench-overlap-peer",
            about: "all-pairs overlap, T = 15, compared with DuckDB's self-join of the same table (python3 with \
                duckdb)",
            unit: "rows",
            scale: 6_000_000,
            full: 58_750_324,
            run: ExperimentRun::Alone(peer::run),
        },
        experiment("bench-diff", "two results of made-up pages compared, as webtwin diff does", diff::run),
        experiment(
            "bench-workers",
            "overlap, trivial clusters and growth: two workers compared with one",
            workers::run,
        ),
        experiment(
            "bench-components",
            "trivial clusters of 24 million pages from 200 million similar pairs",
            components::run,
        ),
        experiment(
            "bench-growth",
            "LinkSummary and growth, 24 million pages, 200 million links, 4 GiB (CSG00 section 5.1)",
            growth::run,
        ),
        experiment(
            "bench-tolerant-growth",
            "LinkSummary and growth under the tolerant condition, 24 million pages, 200 million links, 4 GiB",
            growth::tolerant,
        ),
        Experiment {
            name: "bench-history",
            about: "one more crawl added to the history of 20 crawls of collections: 2 s, 1 GiB",
            unit: "collections",
            scale: 10_000,
            full: 100_000,
            run: ExperimentRun::Alone(history::run),
        },
        Experiment {
            name: "bench-lookup",
            about: "an index of made-up pages, queried for random URLs on one core: 500,000 URLs/s; the index stays \
                in --output",
            unit: "pages",
            scale: 1_000_000,
            full: 10_000_000,
            run: ExperimentRun::Alone(lookup::look_ups),
        },
        Experiment {
            name: "bench-near-chunks",
            about: "texts compared with made-up pages by shared chunks: median of 1 ms",
            unit: "pages",
            scale: 100_000,
            full: 1_000_000,
            run: ExperimentRun::Alone(lookup::near),
        },
        Experiment {
            name: "bench-revisit",
            about: "fraction of wrong skips found by visits by hazard over 50 crawls, compared with uniform and \
                proportional visits",
            unit: "mirrors",
            scale: 5_000,
            full: 50_000,
            run: ExperimentRun::Alone(revisit::run),
        },
    ]
}

/// Scales a target for 24 million pages to another number of pages.
fn scaled(pages: u64, reach: f64) -> f64 {
    reach * pages as f64 / PAGES as f64
}

/// Returns the available capacity of the machine: processor time since `cpu_before`, and the number
/// of processes ready to run in the last minute, including those of other programs. Returns only
/// the former if the system does not report the load.
fn of_the_machine(cpu_before: f64, workers: usize) -> Vec<FigureRow> {
    let cpu_used = processor_seconds() - cpu_before;
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().and_then(|load| load.parse().ok());
    let mut rows = vec![figure("processor time of all this, by worker", cpu_used / workers as f64, "s")];
    rows.extend(load.map(|load| figure("load of the machine in the last minute", load, "threads")));
    rows
}
