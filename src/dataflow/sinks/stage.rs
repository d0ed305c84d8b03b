//! Stages the files of a run of any job, and commits them with the manifest, which makes them a
//! result.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use crate::steps::RunStep;
use webtwin_base::build_info::peak_memory_bytes;
use webtwin_base::error::Result;
use webtwin_base::progress::StageTimes;
use webtwin_engine::Net;
use webtwin_job::{Job, JobDigest};
use webtwin_results::views::views;
use webtwin_spill::{spilled_bytes, taken_at_once_bytes};
use webtwin_storage::location::Location;
use webtwin_storage::manifest::{FileEntry, Manifest, ProcessCosts};
use webtwin_storage::output::{Attempt, random_id};
use webtwin_storage::table::{Table, encode, encode_into};

/// Files of a run before it is committed.
pub struct StagedFiles {
    pub(crate) attempt: Attempt,
    /// Files by path. Worker 0 has the files of all workers.
    pub(crate) files: Vec<FileEntry>,
    /// Attempt of the earlier result, see [`Manifest::earlier`].
    pub(crate) previous_attempt: Option<String>,
    /// Restored steps, see [`Manifest::taken_up`].
    pub(crate) restored_steps: Vec<RunStep>,
}

impl StagedFiles {
    /// Creates the files of a run that has restored no steps.
    pub(crate) fn new(attempt: Attempt, files: Vec<FileEntry>) -> StagedFiles {
        StagedFiles { attempt, files, previous_attempt: None, restored_steps: Vec::new() }
    }
}

/// Creates a new attempt to make `folder` a result, the same on all workers.
pub(crate) fn attempt(net: &mut Net<'_>, folder: &Location) -> Result<Attempt> {
    let id = random_id()?;
    Attempt::new(folder, &net.all_gather("attempts", id)?[0])
}

/// Stages files. If this fails on any worker, or if the first process is terminated, the staged
/// files are deleted.
pub(crate) fn or_discard<T>(
    net: &mut Net<'_>,
    attempt: &Attempt,
    stage: impl FnOnce(&mut Net<'_>) -> Result<T>,
) -> Result<T> {
    let temporary = (net.index() == 0).then(|| attempt.temporary());
    let staged = stage(net);
    match temporary {
        Some(Some(temporary)) if staged.is_ok() => temporary.release(),
        Some(None) if staged.is_err() => attempt.discard(),
        _ => {}
    }
    staged
}

/// Returns the files of all workers, by path.
pub(crate) fn written(net: &mut Net<'_>, own_files: Vec<FileEntry>) -> Result<Vec<FileEntry>> {
    let mut files: Vec<FileEntry> = net.all_gather("files", own_files)?.into_iter().flatten().collect();
    files.sort_unstable();
    Ok(files)
}

/// Stages `summary.json` and `views.sql` in addition to the parts of tables that this worker has
/// staged (`own_files`). Worker 0 returns the files of all workers, by path.
pub(crate) fn put_summary(
    net: &mut Net<'_>,
    attempt: &Attempt,
    own_files: Vec<FileEntry>,
    summary: &str,
) -> Result<Vec<FileEntry>> {
    let write = |path: &str, text: &str| attempt.write(path, |file| file.append(text.as_bytes()));
    let mut files = written(net, own_files)?;
    if net.index() == 0 {
        files.extend([write("summary.json", &format!("{summary}\n"))?, write("views.sql", &views(&files, None))?]);
        files.sort_unstable();
    }
    Ok(files)
}

/// Commits a run: worker 0 writes the manifest, which names all files.
///
/// Takes one round, in which worker 0 receives the costs of all processes.
///
/// # Errors
/// Returns any error of [`Manifest::commit`], the same on all workers.
pub fn commit(
    net: &mut Net<'_>,
    job: &Job,
    counts: &[(&str, u64)],
    recipes: &[(&str, String)],
    stage_times: StageTimes,
    staged: StagedFiles,
) -> Result<()> {
    let StagedFiles { attempt, files, previous_attempt, restored_steps } = staged;
    let (seconds, costs) = (stage_times.seconds.clone(), costs(net, stage_times));
    let worker_costs = or_discard(net, &attempt, |net| net.all_gather("costs", costs))?;
    if net.index() == 0 {
        let manifest = manifest(net, job, counts, recipes, seconds, files, attempt.id());
        let step_names = restored_steps.iter().map(|step| step.name.to_string()).collect();
        let processes = worker_costs.into_iter().step_by(net.workers_per_process()).collect();
        Manifest { earlier: previous_attempt, taken_up: step_names, processes, ..manifest }.commit(&attempt)?;
    }
    Ok(())
}

/// Returns the costs of this process so far.
fn costs(net: &Net<'_>, stage_times: StageTimes) -> ProcessCosts {
    let traffic = net.traffic();
    ProcessCosts {
        peak_memory_bytes: peak_memory_bytes(),
        cpu_seconds: stage_times.cpu_seconds,
        exchanged_bytes: traffic.exchanged_bytes.load(Ordering::Relaxed),
        sent_bytes: traffic.sent_bytes.load(Ordering::Relaxed),
        spilled_bytes: spilled_bytes(),
        spilled_at_once_bytes: taken_at_once_bytes(),
    }
}

fn manifest(
    net: &Net<'_>,
    job: &Job,
    counts: &[(&str, u64)],
    recipes: &[(&str, String)],
    seconds: BTreeMap<String, f64>,
    files: Vec<FileEntry>,
    attempt: &str,
) -> Manifest {
    Manifest {
        digest: JobDigest::from_job(job).hex(),
        recipes: recipes.iter().map(|(name, recipe)| (name.to_string(), recipe.clone())).collect(),
        workers: net.peers() as u64,
        seconds,
        counts: counts.iter().map(|(name, n)| (name.to_string(), *n)).collect(),
        // Includes the round in which all workers learn that the run is committed.
        rounds: Some(net.rounds() + 1),
        files,
        ..Manifest::new(attempt, serde_json::to_value(job).expect("a job is plain values"))
    }
}

/// Stages one of several files of a table.
pub(crate) fn put_part(attempt: &Attempt, name: &str, number: usize, table: &Table) -> Result<FileEntry> {
    let (path, bytes) = (path(name, number), encode(table)?);
    attempt.put(&path, &bytes)?;
    Ok(FileEntry::new(&path, Some(table.rows() as u64), &bytes))
}

/// Stages one of several files of a table, from rows that are given piece by piece. Rows are
/// written as they are given, one row group at a time.
pub(crate) fn put_pieces(
    attempt: &Attempt,
    name: &str,
    number: usize,
    pieces: impl Iterator<Item = Result<Table>>,
) -> Result<FileEntry> {
    let mut rows = 0;
    let counted_pieces = pieces.inspect(|piece| rows += piece.as_ref().map_or(0, |piece| piece.rows() as u64));
    let file = attempt.write(&path(name, number), |file| encode_into(counted_pieces, |bytes| file.append(bytes)))?;
    Ok(FileEntry { rows: Some(rows), ..file })
}

fn path(name: &str, number: usize) -> String {
    format!("{name}/part-{number:05}.parquet")
}
