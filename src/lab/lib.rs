//! The laboratory, `webtwin-lab`: compares runs with a truth, computes published tables and figures again, runs our
//! benchmarks, and makes crawls up for them.
//!
//! An entry of `webtwin-lab reproduce` makes its input, does the work, and returns rows: what was measured, our figure,
//! the paper's figure, and the target. Names are `PAPER-ITEM`; `bench-ITEM` for our own.

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
use webtwin_engine::{Cluster, Net, run as run_on};
pub use webtwin_evaluate::Row;
use webtwin_job::{Digest, Job};

/// Options of a reproduction.
#[derive(Debug, Clone)]
pub struct Options {
    /// Main size: documents, fingerprints or tuples.
    pub scale: u64,
    /// A run's folder, for reproductions on real data.
    pub input: Option<String>,
    /// File with the truth about the crawl of that run, for reproductions that need one.
    pub truth: Option<PathBuf>,
    /// Folder for temporary files, which are removed at the end.
    pub work: PathBuf,
    /// Folder for figures and their data; none are written without it.
    pub output: Option<PathBuf>,
    /// Worker threads of each job, in each process.
    pub workers: usize,
}

/// A table or figure that can be reproduced.
pub struct Entry {
    /// Name on the command line.
    pub name: &'static str,
    /// What it is, with its place in the paper.
    pub about: &'static str,
    /// The unit of the scale.
    pub unit: &'static str,
    /// Scale that ends within a minute.
    pub scale: u64,
    /// Scale of the paper, or of our target.
    pub full: u64,
    /// Computes the rows.
    pub run: Run,
}

/// How an entry computes its rows.
#[derive(Debug, Clone, Copy)]
pub enum Run {
    /// In this process.
    Alone(fn(&Options) -> Result<Vec<Row>>),
    /// On all processes of a cluster, which share the folder for temporary files; process 0 has the rows.
    OnCluster(fn(&Options, &Place) -> Result<Vec<Row>>),
}

/// The processes that an entry runs on, and which of them this is.
#[derive(Debug, Clone)]
pub struct Place {
    /// All of them.
    pub cluster: Cluster,
    /// Number of this one.
    pub process: usize,
}

impl Place {
    /// Worker threads of all processes.
    pub fn workers(&self) -> usize {
        self.cluster.workers * self.cluster.processes()
    }

    /// Runs the program of a job on all workers; returns what the first one of this process returns.
    ///
    /// # Errors
    /// As [`webtwin_engine::run`].
    pub fn run<T: Send + 'static>(
        &self,
        job: &Job,
        program: impl Fn(&mut Net<'_>) -> Result<T> + Send + Sync + 'static,
    ) -> Result<T> {
        Ok(run_on(&self.cluster, self.process, Digest::of(job).0, program)?.swap_remove(0))
    }
}

/// All entries, ascending by name.
pub fn entries() -> Vec<Entry> {
    let mut all = mjs07::entries();
    all.extend(scale::entries());
    all.extend(dedup::entries());
    all.extend(sgm98::entries());
    all.extend(csg00::entries());
    all.extend(ddgmp03::entries());
    all.extend(pbz06::entries());
    all.sort_by_key(|entry| entry.name);
    all
}

/// Finds the entry with a name.
///
/// # Errors
/// [`Error::Usage`] if there is none, naming the nearest.
pub fn find(name: &str) -> Result<Entry> {
    let mut all = entries();
    let nearest = (0..all.len()).min_by_key(|&at| strsim::damerau_levenshtein(all[at].name, name)).unwrap_or(0);
    if all[nearest].name == name {
        return Ok(all.swap_remove(nearest));
    }
    Err(Error::Usage(format!(
        "nothing is called {name}, perhaps {}; `webtwin-lab reproduce --list` names all",
        all[nearest].name
    )))
}

/// A row with our figure only.
pub fn figure(what: &str, ours: f64, unit: &str) -> Row {
    Row::new(what, Some(ours), unit)
}

/// A row with our figure beside the paper's.
pub fn beside(what: &str, ours: f64, published: f64, unit: &str) -> Row {
    Row { published: Some(published), ..figure(what, ours, unit) }
}
