//! The laboratory, `webtwin-lab`: compares runs with a truth, reproduces published tables and
//! figures, runs our benchmarks, and makes synthetic crawls for them.
//!
//! An entry of `webtwin-lab reproduce` makes its input, does the work, and returns rows with the
//! name of the measure, our value, the value in the paper, and the target. Names have the form
//! `PAPER-ITEM`, or `bench-ITEM` for our own benchmarks.

mod command_line;
pub mod csg00;
pub mod ddgmp03;
pub mod dedup;
pub mod draw;
mod evaluate;
pub mod made;
mod measure;
pub mod mjs07;
pub mod pbz06;
mod reproduce;
pub mod scale;
pub mod sgm98;
mod source;
pub mod synth;
mod table_clusters;
mod table_overlap;

use std::path::PathBuf;

pub use command_line::CommandLine;
use webtwin_base::error::{Error, Result};
use webtwin_engine::{ClusterLayout, Net, run as run_on};
pub use webtwin_evaluate::FigureRow;
use webtwin_job::{Job, JobDigest};

/// Options of a reproduction.
#[derive(Debug, Clone)]
pub struct Options {
    /// Main size: number of documents, fingerprints or tuples.
    pub scale: u64,
    /// Folder of a run, for reproductions on real data.
    pub input: Option<String>,
    /// File with the truth about the crawl of that run, for reproductions that need it.
    pub truth: Option<PathBuf>,
    /// Folder for temporary files, which is removed at the end.
    pub work: PathBuf,
    /// Folder for figures and their data. Without it, none are written.
    pub output: Option<PathBuf>,
    /// Number of worker threads of each job, in each process.
    pub workers: usize,
}

/// A table or figure that can be reproduced.
pub struct Experiment {
    /// Name on the command line.
    pub name: &'static str,
    /// Description, with the place in the paper.
    pub about: &'static str,
    /// Unit of the scale.
    pub unit: &'static str,
    /// Scale at which the entry takes less than a minute.
    pub scale: u64,
    /// Scale of the paper, or of our target.
    pub full: u64,
    /// Function that computes the rows.
    pub run: ExperimentRun,
}

/// Function that computes the rows of an entry.
#[derive(Debug, Clone, Copy)]
pub enum ExperimentRun {
    /// Function that runs in this process.
    Alone(fn(&Options) -> Result<Vec<FigureRow>>),
    /// Function that runs on all processes of a cluster, which share the folder for temporary
    /// files. Process 0 returns the rows.
    OnCluster(fn(&Options, &LabProcess) -> Result<Vec<FigureRow>>),
}

/// The processes on which an entry runs, and the number of this process.
#[derive(Debug, Clone)]
pub struct LabProcess {
    /// All processes.
    pub cluster: ClusterLayout,
    /// Number of this process.
    pub process: usize,
}

impl LabProcess {
    /// Returns the number of worker threads of all processes.
    pub fn workers(&self) -> usize {
        self.cluster.workers * self.cluster.processes()
    }

    /// Runs the program of a job on all workers. Returns the result of the first worker of this
    /// process.
    ///
    /// # Errors
    /// Returns any error of [`webtwin_engine::run`].
    pub fn run<T: Send + 'static>(
        &self,
        job: &Job,
        program: impl Fn(&mut Net<'_>) -> Result<T> + Send + Sync + 'static,
    ) -> Result<T> {
        Ok(run_on(&self.cluster, self.process, JobDigest::from_job(job).0, program)?.swap_remove(0))
    }
}

/// Returns all entries, ascending by name.
pub fn entries() -> Vec<Experiment> {
    let mut experiments = mjs07::entries();
    experiments.extend(scale::entries());
    experiments.extend(dedup::entries());
    experiments.extend(sgm98::entries());
    experiments.extend(csg00::entries());
    experiments.extend(ddgmp03::entries());
    experiments.extend(pbz06::entries());
    experiments.sort_by_key(|entry| entry.name);
    experiments
}

/// Finds the entry with a name.
///
/// # Errors
/// Returns [`Error::Usage`] with the nearest name if there is none.
pub fn find(name: &str) -> Result<Experiment> {
    let mut experiments = entries();
    let nearest =
        (0..experiments.len()).min_by_key(|&at| strsim::damerau_levenshtein(experiments[at].name, name)).unwrap_or(0);
    if experiments[nearest].name == name {
        return Ok(experiments.swap_remove(nearest));
    }
    Err(Error::Usage(format!(
        "unknown name {name}; did you mean {}? `webtwin-lab reproduce --list` lists all names",
        experiments[nearest].name
    )))
}

/// Makes a row with our value only.
pub fn figure(label: &str, value: f64, unit: &str) -> FigureRow {
    FigureRow::new(label, Some(value), unit)
}

/// Makes a row with our value and that of the paper.
pub fn row_against_published(label: &str, value: f64, paper_value: f64, unit: &str) -> FigureRow {
    FigureRow { published: Some(paper_value), ..figure(label, value, unit) }
}
