//! F made from a raw file of fingerprints, and joined with itself, as `webtwin hamming build` and
//! `batch` do.

use super::super::measure::seconds;
use super::super::{FigureRow, LabProcess, Options, figure};
use super::self_join::{fingerprint, planted};
use super::{K, files};
use webtwin_base::error::Result;
use webtwin_dataflow::hamming::build::{FingerprintInput, from_fingerprints};
use webtwin_job::{Job, JobKind};
use webtwin_storage::location::Location;

/// Measures the build and the self-join from disk to disk, and checks the planted pairs.
pub(super) fn run(options: &Options, place: &LabProcess) -> Result<Vec<FigureRow>> {
    let count = options.scale;
    let at = |name: &str| options.work.join(name).display().to_string();
    let mut building = Job { kind: JobKind::Fingerprints, ..Job::default() };
    building.fingerprints.from = vec![at("f.u64")];
    building.output.url = at("f");
    let mut joining = Job { kind: JobKind::Hamming, ..Job::default() };
    joining.hamming.k = K;
    joining.batch.fingerprints = at("f");
    joining.output.url = at("pairs");

    let raw = Location::parse(&at("f.u64"))?;
    files::make(options, place, &building, move |net| match net.index() {
        0 => raw.put(&(0..count).flat_map(|at| fingerprint(at).to_le_bytes()).collect::<Vec<u8>>()),
        _ => Ok(()),
    })?;
    let (folder, shared) = (Location::parse(&at("f"))?, building.clone());
    let (built, manifest) = seconds(|| {
        let ready = FingerprintInput::find(&building)?;
        place.run(&building, move |net| from_fingerprints(net, &shared, &ready, &folder))
    });
    let manifest = manifest?;
    let (joined, summary) = files::join(place, &joining)?;
    if place.process > 0 {
        return Ok(Vec::new());
    }

    let (_, pairs) = files::pairs(&joining)?;
    // The doc id of a raw fingerprint is its place in the file.
    let (mut expected, mut missed) = (0, 0);
    for pair in planted(count) {
        expected += 1;
        missed += usize::from(pairs.binary_search(&pair).is_err());
    }
    let bytes: u64 = manifest.chunks.iter().map(|chunk| chunk.bytes).sum();
    let by_worker = |seconds: f64| seconds * place.workers() as f64 * 1e9 / count as f64;
    Ok(vec![
        figure("F made of the raw file in", built, "s"),
        figure("F made, by fingerprint on one worker", by_worker(built), "ns"),
        figure("joined with itself in", joined, "s"),
        figure("joined, by fingerprint on one worker", by_worker(joined), "ns"),
        figure("processes", place.cluster.processes() as f64, "processes"),
        figure("workers of all", place.workers() as f64, "threads"),
        figure("F on disk", bytes as f64 / count as f64, "bytes a fingerprint, with its doc id"),
        figure("pairs", summary.pairs as f64, "pairs"),
        figure("planted pairs within k", f64::from(expected), "pairs"),
        figure("planted pairs missed", missed as f64, "pairs").at_most(0.0),
        figure("peak memory of process 0", webtwin_base::build_info::peak_memory_bytes() as f64 / 1e6, "MB"),
    ])
}
