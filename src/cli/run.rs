//! `webtwin run`: runs a job of any kind.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::progress::{Watcher, is_process, write_end, write_metrics_to};
use super::recrawl::{PreviousResult, RecrawlArgs, ScheduledJob, sets_of_a_comparison};
use super::{JobArgs, WorkerArgs, diff, outcome, plan, retries, signals};
use webtwin_base::console::notify;
use webtwin_base::error::{Error, Result};
use webtwin_base::heap;
use webtwin_core::hamming::fingerprint_file;
use webtwin_dataflow as dataflow;
use webtwin_dataflow::batch::BatchWork;
use webtwin_dataflow::hamming::build::{self, FingerprintInput};
use webtwin_dataflow::reading::first_inspection::first_inspection;
use webtwin_dataflow::reading::ingest::Queue;
use webtwin_dataflow::reading::resume::Resume;
use webtwin_dataflow::recrawl::StateUpdate;
use webtwin_dataflow::shuffle::memory;
use webtwin_dataflow::sinks::kept_before;
use webtwin_dataflow::sinks::summary::RunSummary;
use webtwin_engine::{ClusterLayout, run as run_on};
use webtwin_job::{Job, JobDigest, JobKind, Recrawl};
use webtwin_pages::work_items::WorkList;
use webtwin_results::FinishedRun;
use webtwin_storage::location::{Location, seen_from_anywhere, working_folder};
use webtwin_storage::manifest::{self, Manifest};
use webtwin_storage::output;
use webtwin_storage::records::{RecordStore, SavedRecords, folder_below};
use webtwin_storage::state::JobState;

/// Number of generations that a state keeps: the newest, and the previous one, to which a run with
/// damaged output can return.
const GENERATIONS_TO_KEEP: usize = 2;

/// Stages of a job that reads a crawl and writes tables.
const CRAWL_STAGES: [&str; 3] = ["reading", "finding", "writing"];

/// Stages of a job that also compares the crawl with earlier crawls.
const BATCH_STAGES: [&str; 4] = ["reading", "scanning", "finding", "writing"];

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    job: JobArgs,
    #[command(flatten)]
    workers: WorkerArgs,
    #[command(flatten)]
    recrawl: RecrawlArgs,
    /// Save checkpoints on a local disk, and continue from those of an interrupted run of this job;
    /// the result is the same. The checkpoints are removed once it is committed
    #[arg(long, help_heading = "Effort")]
    resume: bool,
    /// Folder on a local disk for the checkpoints of --resume, if the output is an object store
    /// [default: the folder of the result]
    #[arg(long, value_name = "DIR", help_heading = "Effort")]
    records: Option<String>,
    /// Maximum number of times to start the run again after a lost process, a failed store or a
    /// kill by the system (exit codes 6, 7, 8, 137); the first pause is 1 second, and each next one
    /// twice as long. Implies --resume if the job reads a crawl. In a cluster, give it to all
    /// processes
    #[arg(long, value_name = "N", help_heading = "Effort")]
    retries: Option<u32>,
    /// File for metrics of this process in the text format of Prometheus (text file collector of
    /// node_exporter), rewritten every 5 seconds
    #[arg(long, value_name = "FILE", help_heading = "Effort")]
    metrics: Option<PathBuf>,
    /// Number of this attempt, set by the supervising process
    #[arg(long, hide = true, requires = "retries")]
    attempt: Option<u32>,
}

pub(super) fn run(args: Args) -> Result<()> {
    let mut job = args.job.resolve()?;
    job.effort.resume |= args.resume;
    job.effort.records = args.records.unwrap_or_default();
    args.recrawl.overlay(&mut job)?;
    if let Some(file) = args.metrics {
        write_metrics_to(file)?;
    }
    let Some(retries) = args.retries else { return execute_to_the_end(job, &args.workers) };
    // A recrawl resumes from its state.
    job.effort.resume |= reads_crawl(&job) && job.kind != JobKind::Recrawl;
    if args.attempt.is_some() {
        retries::end_with_supervisor();
        return execute_to_the_end(job, &args.workers);
    }
    let folder = output_of(&job)?;
    retries::supervise(retries, || {
        let is_committed = is_committed(&job, &folder).unwrap_or(false);
        // The attempt that committed was lost before it could remove its checkpoints.
        if is_committed && let Ok(Some(records)) = records_folder(&job, &folder) {
            SavedRecords::remove_from(&records);
        }
        is_committed
    })
}

/// Runs a job, and writes its outcome to the metrics if they were requested.
fn execute_to_the_end(job: Job, workers: &WorkerArgs) -> Result<()> {
    let result = execute(job, workers);
    write_end(result.as_ref().map_or_else(Error::exit_code, |()| 0));
    result
}

/// Returns the folder of a job's result.
fn output_of(job: &Job) -> Result<Location> {
    if job.output.url.is_empty() {
        return Err(Error::Usage("no output is given; add --output or output.url, for example --output out/".into()));
    }
    Location::parse(&job.output.url)
}

/// True if the result in a folder is that of a job. For a recrawl the state decides, because it has
/// the live inputs. Fingerprints are identified by their recipe.
fn is_committed(job: &Job, folder: &Location) -> Result<bool> {
    match job.kind {
        JobKind::Recrawl => {
            let newest = JobState::at(Location::parse(&job.recrawl.state)?.into_folder()).newest()?;
            let result = seen_from_anywhere(&job.output.url, &working_folder());
            let Some(newest) = newest.filter(|newest| newest.result == result) else { return Ok(false) };
            // A comparison is made after the state is written. The first result has none.
            Ok(job.recrawl.diff.is_empty() || newest.number == 1 || FinishedRun::open(&job.recrawl.diff).is_ok())
        }
        JobKind::Fingerprints => {
            let manifest = folder.join(fingerprint_file::NAME)?;
            let bytes = manifest.get()?.unwrap_or_default();
            let manifest = fingerprint_file::FingerprintManifest::from_json(manifest.name(), &bytes)?;
            Ok(!job.fingerprints.from.is_empty() || manifest.recipe == job.simhash.recipe())
        }
        _ => Ok(Manifest::read(folder)?.digest == JobDigest::from_job(job).hex()),
    }
}

/// Runs a job of any kind, including the report on stderr.
pub(super) fn execute(job: Job, workers: &WorkerArgs) -> Result<()> {
    let folder = output_of(&job)?;
    if job.effort.memory_bytes > 0 {
        heap::release_large_allocations();
    }
    if job.effort.memory_bytes > 0 || !job.effort.spill.is_empty() {
        memory::of_process(0, &job.effort).look()?;
    }
    let place = workers.resolve()?;
    is_process(place.1);
    let Recrawl { state, add, retract, replace, sticky, .. } = &job.recrawl;
    let is_plain = state.is_empty() && add.is_empty() && retract.is_empty() && replace.is_empty() && !sticky;
    if job.kind != JobKind::Recrawl && !is_plain {
        return Err(Error::Usage(
            "--add, --retract, --replace and --sticky need a state; add --state, or kind = \"recrawl\" \
             in a job file with a state; without a state, keep.sticky prefers the pages kept earlier"
                .into(),
        ));
    }
    let records = records_folder(&job, &folder)?;
    let name = if job.kind == JobKind::Fingerprints { fingerprint_file::NAME } else { manifest::NAME };
    let lost_commit = match output::prepare(&folder) {
        // That there is nothing to do is known only after the inputs are listed, and takes
        // precedence.
        Err(lost_commit @ Error::LostCommit(_)) if job.kind == JobKind::Recrawl => Some(lost_commit),
        prepared => prepared.map(|()| None)?,
    };
    let (reads, result) = (reads_crawl(&job), folder.clone());
    let work = signals::StoppableWork::begin(move || left(&result, name, reads, records.as_deref()));
    let result = match job.kind {
        JobKind::Replicas | JobKind::Signatures => replicas(job, place, folder),
        JobKind::Fingerprints => fingerprints(job, place, folder),
        JobKind::Hamming => hamming(job, place, folder),
        JobKind::Batch => batch(job, place, folder),
        JobKind::Study => study(job, place, folder),
        JobKind::Grow => grow(job, place, folder),
        JobKind::Recrawl => recrawl(job, place, folder, lost_commit),
    };
    result.map_err(|error| work.explain(error))
}

/// Describes the state after a run was stopped, and how to continue.
pub(super) fn left(folder: &Location, manifest: &str, reads: bool, records: Option<&Path>) -> String {
    let is_present = folder.join(manifest).and_then(|manifest| manifest.exists());
    match (is_present, records) {
        (Ok(true), _) => format!("the result had been committed: {folder}"),
        (Err(_), _) => format!("check for {manifest} in {folder} before running again"),
        (Ok(false), Some(records)) if records.exists() => format!(
            "no result in {folder}, but checkpoints in {}; continue with the same command and --resume",
            records.display()
        ),
        (Ok(false), None) if reads => format!("no result in {folder}; run it again, with --resume to save checkpoints"),
        (Ok(false), _) => format!("no result in {folder}; run it again"),
    }
}

/// True if a job reads a crawl.
fn reads_crawl(job: &Job) -> bool {
    use JobKind::{Batch, Recrawl, Replicas, Signatures, Study};
    matches!(job.kind, Replicas | Signatures | Study | Recrawl | Batch)
        || job.kind == JobKind::Fingerprints && job.fingerprints.from.is_empty()
}

fn replicas(job: Job, (cluster, process): (ClusterLayout, usize), folder: Location) -> Result<()> {
    kept_before::open(&job.keep)?;
    plan::refuse_what_cannot_fit(&job, &folder, cluster.workers, cluster.processes())?;
    let (queue, records) = queue(&job, &folder, process)?;
    let digest = JobDigest::from_job(&job).0;
    let job_of_network = job.clone();
    let shared_inputs = (job, Arc::clone(&queue), folder.clone());
    let summaries = reading((&queue, records.as_deref()), &CRAWL_STAGES, || {
        run_on(&cluster, process, digest, move |net| {
            dataflow::replicas::run(net, &shared_inputs.0, &shared_inputs.1, &shared_inputs.2)
        })
    })?;
    report_replicas(&job_of_network, process, &summaries, &folder);
    Ok(())
}

/// Maximum number of pages of a synthetic crawl that is compared with its truth right after a run,
/// unless memory is bounded. The comparison takes 1 kB a page; `webtwin-lab evaluate` makes it for
/// any size.
const MAX_COMPARED_WITH_TRUTH: u64 = 200_000;

/// Reports the findings of a run on stderr.
fn report_replicas(job: &Job, process: usize, summaries: &[RunSummary], folder: &Location) {
    if process == 0
        && let Some(summary) = summaries.first()
    {
        outcome::replicas(job, summary, folder.name());
        if let [url] = &job.input.urls[..]
            && url.starts_with("synth://")
            && summary.pages.pages <= MAX_COMPARED_WITH_TRUTH
            && job.effort.memory_bytes == 0
        {
            // The result is committed, so a failed comparison with the truth is only a warning.
            if let Err(error) = outcome::truth(url, folder) {
                notify(format_args!(
                    "warning: the result is complete, but was not compared with the planted \
                     replicas: {error}"
                ));
            }
        }
    }
}

/// Inputs of a scheduled run.
struct ToDo {
    job: Job,
    work: WorkList,
    next: StateUpdate,
    last: PreviousResult,
}

/// Determines the work of a scheduled run.
///
/// # Errors
/// Returns [`Error::NothingToDo`] if nothing has changed, and any error of its settings, inputs and
/// state.
fn scheduled_work(job: Job, cluster: &ClusterLayout, process: usize, folder: &Location) -> Result<ToDo> {
    let (job, schedule) = ScheduledJob::find(job, process)?;
    kept_before::open(&job.keep)?;
    let mut last = schedule.last(&job, process)?;
    plan::refuse_what_cannot_fit(&job, folder, cluster.workers, cluster.processes())?;
    let work = work(&job, process)?;
    let next = schedule.next(&job, &work, process)?;
    last.refuse_without_the_comparison_before()?;
    Ok(ToDo { job, work, next, last })
}

/// Runs a scheduled job. If its output or its comparison exists already (`lost_commit`), it only
/// determines whether there is anything to do.
fn recrawl(
    job: Job,
    (cluster, process): (ClusterLayout, usize),
    folder: Location,
    mut lost_commit: Option<Error>,
) -> Result<()> {
    if job.effort.resume {
        return Err(Error::Usage("--resume: a recrawl continues from its state; leave the option out".into()));
    }
    if !job.recrawl.diff.is_empty() {
        let diff = Location::parse(&job.recrawl.diff)?.into_folder();
        for url in [&job.output.url, &job.recrawl.state, &job.recrawl.against] {
            if !url.is_empty() {
                diff::refuse_within("--diff", &job.recrawl.diff, url)?;
            }
        }
        // Otherwise the comparison would contain files that are not its own.
        diff::refuse_within("--output", &job.output.url, &job.recrawl.diff)?;
        match output::prepare(&diff) {
            Err(lost_again @ Error::LostCommit(_)) => lost_commit = lost_commit.or(Some(lost_again)),
            prepared => prepared?,
        }
    }
    let to_do = scheduled_work(job, &cluster, process, &folder);
    let ToDo { job, work, next, last } = match (to_do, lost_commit) {
        (Err(nothing @ Error::NothingToDo(_)), _) => return Err(nothing),
        (_, Some(lost_commit)) => return Err(lost_commit),
        (to_do, None) => to_do?,
    };
    let workers = cluster.workers;
    let (records, state) = (Arc::clone(&next.records), next.state.clone());
    let resume = Resume::new(Arc::clone(&next.records) as Arc<dyn RecordStore>, &work);
    let queue = Queue::resuming(work, Some(resume));
    let digest = JobDigest::from_job(&job).0;
    let number = next.generation.number;
    let shared_inputs = (job.clone(), Arc::clone(&queue), folder.clone(), next);
    let watcher = Watcher::start(queue.progress.clone(), &CRAWL_STAGES);
    let summaries = run_on(&cluster, process, digest, move |net| {
        dataflow::recrawl::run(net, &shared_inputs.0, &shared_inputs.1, &shared_inputs.2, &shared_inputs.3)
    });
    drop(watcher);
    let resume = queue.resume.as_ref().expect("a recrawl has records");
    let (taken_up, n_recorded) = (resume.taken_up.load(Ordering::Relaxed), resume.recorded.load(Ordering::Relaxed));
    let damaged_text = match records.damaged.load(Ordering::Relaxed) {
        0 => String::new(),
        n => format!("; {n} checkpoints were damaged, and their items read again"),
    };
    let known_text = match resume.known.load(Ordering::Relaxed) {
        0 => String::new(),
        n => format!("; {n} pages of these are unchanged and were not parsed again"),
    };
    notify(format_args!(
        "state: {taken_up} work items restored from checkpoints, {n_recorded} saved{known_text}{damaged_text}"
    ));
    if let Some(pairs) = resume.pairs.get() {
        notify(format_args!("state: {pairs}"));
    }
    let summaries = summaries?;
    report_replicas(&job, process, &summaries, &folder);
    if process == 0 {
        // Generations that cannot be removed now are removed by a later run.
        let n_pruned = state.prune(GENERATIONS_TO_KEEP).unwrap_or_default();
        let message = if n_pruned.generations == 0 { "" } else { "; older ones were removed" };
        notify(format_args!("state: generation {number} in {}{message}", state.folder()));
        compare(&job, &last, workers)?;
    }
    Ok(())
}

/// Compares a scheduled result with the previous one, if requested.
fn compare(job: &Job, last: &PreviousResult, workers: usize) -> Result<()> {
    if job.recrawl.diff.is_empty() {
        return Ok(());
    }
    let Some(old) = &last.result else {
        notify("no comparison was made, because this is the first result of the state");
        return Ok(());
    };
    let history = (last.history.as_deref(), last.list_is_lost);
    diff::scheduled(job, old, history, workers).inspect_err(|_| {
        let history = last.history.as_ref().map_or(String::new(), |history| format!(" --history {history}"));
        notify(format_args!(
            "the result and the state are valid, but the comparison failed; make it later with: \
             webtwin diff {old} {} --output {}{history}{}",
            job.output.url,
            job.recrawl.diff,
            sets_of_a_comparison(&job.recrawl)
        ));
    })
}

/// Returns the folder for the records of a job's work items if the job is to be resumed: within the
/// folder of the result, unless set otherwise.
fn records_folder(job: &Job, folder: &Location) -> Result<Option<PathBuf>> {
    if !job.effort.resume {
        return Ok(None);
    }
    if !reads_crawl(job) {
        return Err(Error::Usage(
            "--resume: this job reads no crawl and saves no checkpoints; leave the option out".into(),
        ));
    }
    let root = match job.effort.records.as_str() {
        "" => folder.clone(),
        folder => Location::parse(folder)?,
    };
    folder_below(&root, &JobDigest::from_job(job).hex()[..16], "--records DIR").map(Some)
}

/// Lists the work of a job that reads a crawl. Reports files that are not read, and suspicious
/// inputs.
fn work(job: &Job, process: usize) -> Result<WorkList> {
    let work = WorkList::plan(&job.input, job.effort.shard_bytes)?;
    if process == 0
        && let Some(message) = work.side_files.message()
    {
        notify(message);
    }
    for warning in first_inspection(&work, &job.input)? {
        notify(warning);
    }
    Ok(work)
}

/// Returns the queue of a job that reads a crawl, with the records of an earlier run if the job is
/// to be resumed.
fn queue(job: &Job, folder: &Location, process: usize) -> Result<(Arc<Queue>, Option<Arc<SavedRecords>>)> {
    let work = work(job, process)?;
    let Some(folder) = records_folder(job, folder)? else { return Ok((Queue::new(work), None)) };
    let records =
        SavedRecords::open(&folder, JobDigest::from_job(job).0, webtwin_base::build_info::version(), work.keys())?;
    let ignored_text = records.ignored.message().map_or(String::new(), |message| format!("; ignored: {message}"));
    notify(format_args!(
        "resume: {} of {} work items have checkpoints{ignored_text}",
        records.found(),
        work.items.len()
    ));
    let records = Arc::new(records);
    let resume = Resume::new(Arc::clone(&records) as Arc<dyn RecordStore>, &work);
    Ok((Queue::resuming(work, Some(resume)), Some(records)))
}

/// Runs a job that reads a crawl and shows progress. Removes its records after success.
fn reading<T>(
    (queue, records): (&Queue, Option<&SavedRecords>),
    stages: &'static [&'static str],
    run: impl FnOnce() -> Result<Vec<T>>,
) -> Result<Vec<T>> {
    let watcher = Watcher::start(queue.progress.clone(), stages);
    let result = run();
    drop(watcher);
    if let (Some(resume), Some(records)) = (&queue.resume, records) {
        end_of_reading(resume, records);
    }
    let result = result?;
    if let Some(records) = records {
        records.remove();
    }
    Ok(result)
}

/// Reports on stderr how many records this process used and wrote.
fn end_of_reading(resume: &Resume, records: &SavedRecords) {
    let ignored_text = records.ignored.message().map_or(String::new(), |message| format!("; ignored: {message}"));
    let (taken_up, n_recorded) = (resume.taken_up.load(Ordering::Relaxed), resume.recorded.load(Ordering::Relaxed));
    notify(format_args!("resume: {taken_up} work items restored from checkpoints, {n_recorded} saved{ignored_text}"));
    let steps = resume.steps();
    for (label, steps) in [("restored", &steps.taken_up), ("saved", &steps.recorded)] {
        if !steps.is_empty() {
            notify(format_args!("resume: steps {label}: {}", steps.join(", ")));
        }
    }
    if resume.gave_up.load(Ordering::Relaxed) {
        notify(format_args!(
            "warning: resume: no further checkpoints were saved, because {} cannot be written",
            records.folder().display()
        ));
    }
}

fn fingerprints(job: Job, (cluster, process): (ClusterLayout, usize), folder: Location) -> Result<()> {
    let digest = JobDigest::from_job(&job).0;
    let folder_of_output = folder.clone();
    let manifests = if job.fingerprints.from.is_empty() {
        let (queue, records) = queue(&job, &folder, process)?;
        let shared_inputs = Arc::clone(&queue);
        reading((&queue, records.as_deref()), &["reading", "sorting"], || {
            run_on(&cluster, process, digest, move |net| {
                build::from_crawl(net, &job, &shared_inputs, &folder_of_output)
            })
        })?
    } else {
        let input = FingerprintInput::find(&job)?;
        let _watcher = Watcher::start(input.progress.clone(), &["reading"]);
        run_on(&cluster, process, digest, move |net| build::from_fingerprints(net, &job, &input, &folder_of_output))?
    };
    if process == 0
        && let Some(set) = manifests.first()
    {
        outcome::fingerprints(set, folder.name());
    }
    Ok(())
}

fn hamming(job: Job, (cluster, process): (ClusterLayout, usize), folder: Location) -> Result<()> {
    let work = Arc::new(dataflow::hamming::work::HammingWork::find(&job)?);
    let digest = JobDigest::from_job(&job).0;
    let (k, groups) = (job.hamming.k, job.batch.groups);
    let stages: &[&str] = match job.batch.queries.is_empty() {
        true => &["reading", "joining", "writing"],
        false => &["reading", "scanning", "writing"],
    };
    let watcher = Watcher::start(work.progress.clone(), stages);
    let folder_of_output = folder.clone();
    let summaries =
        run_on(&cluster, process, digest, move |net| dataflow::hamming::run(net, &job, &work, &folder_of_output));
    drop(watcher);
    let summaries = summaries?;
    if process == 0
        && let Some(summary) = summaries.first()
    {
        outcome::hamming(k, groups, summary, folder.name());
    }
    Ok(())
}

fn batch(job: Job, (cluster, process): (ClusterLayout, usize), folder: Location) -> Result<()> {
    let earlier = BatchWork::find(&job)?;
    let (queue, records) = queue(&job, &folder, process)?;
    let digest = JobDigest::from_job(&job).0;
    let shared_inputs = (job.clone(), Arc::clone(&queue), earlier, folder.clone());
    let summaries = reading((&queue, records.as_deref()), &BATCH_STAGES, || {
        run_on(&cluster, process, digest, move |net| {
            dataflow::batch::run(net, &shared_inputs.0, &shared_inputs.1, &shared_inputs.2, &shared_inputs.3)
        })
    })?;
    report_replicas(&job, process, &summaries, &folder);
    Ok(())
}

fn grow(job: Job, (cluster, process): (ClusterLayout, usize), folder: Location) -> Result<()> {
    if job.pairs.from.is_empty() {
        return Err(Error::Usage(
            "no labels are given; add --trivial or pairs.from, a table of labels of nodes".into(),
        ));
    }
    if job.input.urls.is_empty() {
        return Err(Error::Usage(
            "no links are given; add --links or input.urls, a table of links between nodes".into(),
        ));
    }
    let (digest, folder_of_output) = (JobDigest::from_job(&job).0, folder.clone());
    let summaries = run_on(&cluster, process, digest, move |net| dataflow::grow::run(net, &job, &folder_of_output))?;
    if process == 0
        && let Some(summary) = summaries.first()
    {
        outcome::grow(summary, folder.name());
    }
    Ok(())
}

fn study(job: Job, (cluster, process): (ClusterLayout, usize), folder: Location) -> Result<()> {
    let (queue, records) = queue(&job, &folder, process)?;
    let digest = JobDigest::from_job(&job).0;
    let shared_inputs = (job, Arc::clone(&queue), folder.clone());
    let summaries = reading((&queue, records.as_deref()), &CRAWL_STAGES, || {
        run_on(&cluster, process, digest, move |net| {
            dataflow::study::run(net, &shared_inputs.0, &shared_inputs.1, &shared_inputs.2)
        })
    })?;
    if process == 0
        && let Some(summary) = summaries.first()
    {
        outcome::study(summary, folder.name());
    }
    Ok(())
}
