//! Jobs that read and write files, on all processes of a cluster.

use std::sync::Arc;

use super::super::measure::seconds;
use super::super::{LabProcess, Options};
use webtwin_base::error::{Error, Result};
use webtwin_dataflow::hamming::run as join_on;
use webtwin_dataflow::hamming::work::{HammingSummary, HammingWork};
use webtwin_engine::Net;
use webtwin_job::Job;
use webtwin_storage::location::Location;
use webtwin_storage::manifest::Manifest;
use webtwin_storage::table::decode;

/// Writes the input of a job into the folder for temporary files, on all workers. Once all have
/// written, returns the result of the first worker of this process.
///
/// # Errors
/// Returns [`Error::Usage`] on all processes if one of them does not see the folder, and any error
/// of `write`.
pub(super) fn make<T: Send + 'static>(
    options: &Options,
    place: &LabProcess,
    job: &Job,
    write: impl Fn(&mut Net<'_>) -> Result<T> + Send + Sync + 'static,
) -> Result<T> {
    let work = options.work.clone();
    place.run(job, move |net| {
        if !work.is_dir() {
            let (folder, process) = (work.display(), net.process());
            return Err(Error::Usage(format!(
                "--work: process 0 made {folder}, but process {process} cannot find it; name a folder that all \
                processes share"
            )));
        }
        write(net)
    })
}

/// Runs a job of the kind `hamming`. Returns its wall-clock seconds, and its summary.
pub(super) fn join(place: &LabProcess, job: &Job) -> Result<(f64, HammingSummary)> {
    let (output, shared_job) = (Location::parse(&job.output.url)?, job.clone());
    let (duration, summary) = seconds(|| {
        let work = Arc::new(HammingWork::find(job)?);
        place.run(job, move |net| join_on(net, &shared_job, &work, &output))
    });
    Ok((duration, summary?))
}

/// Returns the manifest and the pairs of the result of such a job. The pairs ascend.
pub(super) fn pairs(job: &Job) -> Result<(Manifest, Vec<(u64, u64)>)> {
    let output = Location::parse(&job.output.url)?;
    let manifest = Manifest::read(&output)?;
    let mut pairs_found = Vec::new();
    for file in manifest.table("pairs") {
        let table = decode(&file.path, manifest.read_file(&output, file)?)?;
        pairs_found.extend(table.u64("a")?.iter().copied().zip(table.u64("b")?.iter().copied()));
    }
    Ok((manifest, pairs_found))
}
