//! Data for the reproductions of \[SGM98\] and \[CSG00\]: a given run, a job that is run now, or a
//! synthetic table.

use std::path::Path;
use std::sync::Arc;

use super::made::tables::{Chunking, TableParams};
use super::table_clusters::{ClusterHistogram, TableClusters, of_table};
use super::table_overlap::MeasurementLimits;
use super::{FigureRow, Options};
use webtwin_base::error::{Error, Result};
use webtwin_dataflow::reading::ingest::Queue;
use webtwin_dataflow::replicas;
use webtwin_dataflow::sinks::summary::{Bar, RunSummary, bars};
use webtwin_engine::{ClusterLayout, run as run_on};
use webtwin_evaluate::TruthRow;
use webtwin_job::{Job, JobDigest, JobKind, resolve};
use webtwin_pages::work_items::WorkList;
use webtwin_results::compared;
use webtwin_storage::location::Location;

/// Unit of comparison of pages: a column of Table 1 of the papers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ComparisonUnit {
    Document,
    FourLines,
    TwoLines,
    /// Any other unit.
    Other,
}

impl ComparisonUnit {
    /// Returns the name of the column.
    pub(super) fn name(self) -> &'static str {
        match self {
            ComparisonUnit::Document => "entire document",
            ComparisonUnit::FourLines => "four lines",
            ComparisonUnit::TwoLines => "two lines",
            ComparisonUnit::Other => "this run's chunks",
        }
    }
}

/// A finished run with its summary.
pub(super) struct MeasuredRun {
    run: webtwin_results::FinishedRun,
    pub summary: RunSummary,
}

impl std::ops::Deref for MeasuredRun {
    type Target = webtwin_results::FinishedRun;

    fn deref(&self) -> &webtwin_results::FinishedRun {
        &self.run
    }
}

impl MeasuredRun {
    /// Reads the given run, or runs a job on a synthetic crawl of `scale` pages.
    pub(super) fn given_or_made(options: &Options, job_file: &str, job: &str) -> Result<MeasuredRun> {
        match &options.input {
            Some(run) => MeasuredRun::read(run),
            None => MeasuredRun::run_job_file(options, job_file, job),
        }
    }

    /// Reads the run in a folder, with its summary.
    pub(super) fn read(url: &str) -> Result<MeasuredRun> {
        let run = webtwin_results::FinishedRun::open(url)?;
        let file = run.manifest.files.iter().find(|file| file.path == "summary.json");
        let file = file.ok_or_else(|| Error::input(url, "has no summary.json; name the result of `webtwin run`"))?;
        let summary = serde_json::from_slice(&run.manifest.read_file(&run.folder, file)?)
            .map_err(|cause| Error::input(url, format!("summary.json: {cause}; run the job again with this build")))?;
        Ok(MeasuredRun { run, summary })
    }

    fn run_job_file(options: &Options, job_file: &str, job: &str) -> Result<MeasuredRun> {
        let output = options.work.join("run").display().to_string();
        let sets = [
            format!("input.urls=[\"synth://?pages={}&seed=1\"]", options.scale),
            format!("output.url={}", serde_json::Value::from(output.as_str())),
        ];
        let job = resolve(job_file, job, &sets)?;
        run_job(options, job)?;
        MeasuredRun::read(&output)
    }

    /// Returns the unit by which its pages were compared.
    pub(super) fn by(&self) -> ComparisonUnit {
        let job = &self.manifest.job;
        let settings = (&job["chunks"]["unit"], &job["chunks"]["count"], &job["overlap"]["min_shared"]);
        match (settings.0.as_str(), settings.1.as_u64(), settings.2.as_u64()) {
            (Some("document"), ..) => ComparisonUnit::Document,
            (Some("lines"), Some(4), Some(15)) => ComparisonUnit::FourLines,
            (Some("lines"), Some(2), Some(25)) => ComparisonUnit::TwoLines,
            _ => ComparisonUnit::Other,
        }
    }

    /// Returns the number of bytes of one of its tables on disk.
    pub(super) fn bytes(&self, table: &str) -> u64 {
        self.manifest.table(table).map(|file| file.bytes).sum()
    }
}

/// Runs a job in the work folder and opens its result.
pub(super) fn run_job(options: &Options, job: Job) -> Result<webtwin_results::FinishedRun> {
    let (output, digest) = (job.output.url.clone(), JobDigest::from_job(&job).0);
    let queue = Queue::new(WorkList::plan(&job.input, job.effort.shard_bytes)?);
    let shared_input = (Arc::new(job), queue, Location::parse(&output)?);
    let cluster = ClusterLayout::local(options.workers);
    run_on(&cluster, 0, digest, move |net| replicas::run(net, &shared_input.0, &shared_input.1, &shared_input.2))?;
    webtwin_results::FinishedRun::open(&output)
}

/// Returns a job, and the truth about its crawl: those of the given run, or those of a job file on
/// a synthetic crawl of `scale` pages.
pub(super) fn job_and_truth(options: &Options, job_file: &str, job: &str) -> Result<(Job, Vec<TruthRow>)> {
    let (Some(run), Some(truth)) = (&options.input, &options.truth) else {
        if options.input.is_some() {
            return Err(Error::Usage("--input RUN needs --truth FILE for this figure".into()));
        }
        let crawl = format!("synth://?pages={}&seed=1", options.scale);
        let sets = [format!("input.urls=[\"{crawl}\"]")];
        return Ok((resolve(job_file, job, &sets)?, compared::planted(&crawl)?));
    };
    let file = truth.display().to_string();
    let text = std::fs::read_to_string(truth).map_err(|cause| Error::input(&file, cause))?;
    let job = webtwin_results::FinishedRun::open(run)?.job()?;
    if !matches!(job.kind, JobKind::Replicas | JobKind::Signatures) {
        return Err(Error::Usage(format!(
            "--input {run}: a job of another kind; name a run of the kind replicas or signatures"
        )));
    }
    Ok((job, compared::truth(&file, &text)?))
}

/// Returns the clusters of a synthetic table of `scale` pages, found with 8 GiB of memory.
pub(super) fn made_up(options: &Options, chunking: Chunking) -> Result<TableClusters> {
    let pages = u32::try_from(options.scale)
        .map_err(|_| Error::Usage(format!("--scale {}: at most {}", options.scale, u32::MAX)))?;
    let limits = MeasurementLimits { workers: options.workers, memory_bytes: 8 << 30, spill: options.work.clone() };
    of_table(TableParams { pages, seed: 1, chunking, bits: 32 }, &limits)
}

/// Returns the bars of pages by number of replicas, for each unit of comparison.
pub(super) fn replication(options: &Options) -> Result<Vec<(ComparisonUnit, Vec<Bar>)>> {
    if let Some(run) = &options.input {
        let run = MeasuredRun::read(run)?;
        let mut histograms = vec![(ComparisonUnit::Document, run.summary.replication_exact.clone())];
        if run.by() != ComparisonUnit::Document {
            histograms.push((run.by(), run.summary.replication_similar.clone()));
        }
        return Ok(histograms);
    }
    let [two_lines, four] = [Chunking::TwoLines, Chunking::FourLines].map(|chunking| made_up(options, chunking));
    let (two_lines, four) = (two_lines?, four?);
    let bars = |groups: &ClusterHistogram| bars(groups, options.scale);
    Ok(vec![
        (ComparisonUnit::Document, bars(&two_lines.exact)),
        (ComparisonUnit::FourLines, bars(&four.similar)),
        (ComparisonUnit::TwoLines, bars(&two_lines.similar)),
    ])
}

/// Makes a row for a value of the paper that our data cannot confirm or refute.
pub(super) fn not_ours(label: &str, paper_value: f64, unit: &str) -> FigureRow {
    FigureRow {
        what: label.into(),
        ours: None,
        published: Some(paper_value),
        reach: None,
        unit: unit.into(),
        holds: None,
    }
}

/// Writes a figure and its data if `--output` is given.
pub(super) fn put(options: &Options, name: &str, svg: String, tsv: String) -> Result<()> {
    let Some(folder) = &options.output else { return Ok(()) };
    let failed = |path: &Path, cause: std::io::Error| Error::storage(path.display().to_string(), cause);
    std::fs::create_dir_all(folder).map_err(|cause| failed(folder, cause))?;
    for (ending, text) in [("svg", svg), ("tsv", tsv)] {
        let path = folder.join(format!("{name}.{ending}"));
        std::fs::write(&path, text).map_err(|cause| failed(&path, cause))?;
    }
    Ok(())
}
