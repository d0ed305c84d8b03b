use std::collections::BTreeMap;

use webtwin::results::{FinishedRun, compared};
use webtwin::storage::location::Location;
use webtwin::synth::{Params, Synth};

/// Writes a made-up crawl and its truth, as `webtwin-lab synth` does.
pub(crate) fn write_crawl(folder: &str, pages: u64, seed: u64) {
    write_crawl_to(&Location::parse(folder).unwrap(), pages, seed);
}

/// Writes the crawl of [`write_crawl`] to a folder at any location.
pub(crate) fn write_crawl_to(folder: &Location, pages: u64, seed: u64) {
    let synth = Synth::new(&Params { pages, seed, ..Params::default() }).unwrap();
    webtwin_lab::synth::write(&synth, folder).unwrap();
}

/// Returns the figures of a run over a made-up crawl by name, as `webtwin-lab evaluate` computes
/// them.
pub(crate) fn figures(output: &str, crawl: &str) -> BTreeMap<String, f64> {
    let report = compared::report(&FinishedRun::open(output).unwrap(), compared::planted(crawl).unwrap()).unwrap();
    report.rows().into_iter().filter_map(|row| Some((row.what, row.ours?))).collect()
}
