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
    let path = |name: &str| options.work.join(name).display().to_string();
    let mut building = Job { kind: JobKind::Fingerprints, ..Job::default() };
    building.fingerprints.from = vec![path("f.u64")];
    building.output.url = path("f");
    let mut joining = Job { kind: JobKind::Hamming, ..Job::default() };
    joining.hamming.k = K;
    joining.batch.fingerprints = path("f");
    joining.output.url = path("pairs");

    let raw_path = Location::parse(&path("f.u64"))?;
    files::make(options, place, &building, move |net| match net.index() {
        0 => raw_path.put(&(0..count).flat_map(|at| fingerprint(at).to_le_bytes()).collect::<Vec<u8>>()),
        _ => Ok(()),
    })?;
    let (folder, shared_job) = (Location::parse(&path("f"))?, building.clone());
    let (build_seconds, manifest) = seconds(|| {
        let input = FingerprintInput::find(&building)?;
        place.run(&building, move |net| from_fingerprints(net, &shared_job, &input, &folder))
    });
    let manifest = manifest?;
    let (join_seconds, summary) = files::join(place, &joining)?;
    if place.process > 0 {
        return Ok(Vec::new());
    }

    let (_, pairs) = files::pairs(&joining)?;
    // The doc id of a raw fingerprint is its place in the file.
    let (mut expected, mut n_missed) = (0, 0);
    for pair in planted(count) {
        expected += 1;
        n_missed += usize::from(pairs.binary_search(&pair).is_err());
    }
    let bytes: u64 = manifest.chunks.iter().map(|chunk| chunk.bytes).sum();
    let per_worker = |seconds: f64| seconds * place.workers() as f64 * 1e9 / count as f64;
    Ok(vec![
        figure("F made of the raw file in", build_seconds, "s"),
        figure("F made, by fingerprint on one worker", per_worker(build_seconds), "ns"),
        figure("joined with itself in", join_seconds, "s"),
        figure("joined, by fingerprint on one worker", per_worker(join_seconds), "ns"),
        figure("processes", place.cluster.processes() as f64, "processes"),
        figure("workers of all", place.workers() as f64, "threads"),
        figure("F on disk", bytes as f64 / count as f64, "bytes a fingerprint, with its doc id"),
        figure("pairs", summary.pairs as f64, "pairs"),
        figure("planted pairs within k", f64::from(expected), "pairs"),
        figure("planted pairs missed", n_missed as f64, "pairs").at_most(0.0),
        figure("peak memory of process 0", webtwin_base::build_info::peak_memory_bytes() as f64 / 1e6, "MB"),
    ])
}
