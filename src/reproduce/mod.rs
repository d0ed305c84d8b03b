//! Published tables and figures, ours beside the papers', and figures of our own that no paper has.
//!
//! An entry makes its input, does the work, and returns rows: what was measured, the paper's figure, what is to be
//! reached. Names are `PAPER-ITEM`; `bench-ITEM` for our own.

pub mod csg00;
pub mod ddgmp03;
pub mod draw;
mod measure;
pub mod mjs07;
pub mod pbz06;
pub mod scale;
pub mod sgm98;
mod source;

use std::path::PathBuf;

use crate::error::{Error, Result};
pub use crate::evaluate::Row;

/// What a reproduction may use.
#[derive(Debug, Clone)]
pub struct Options {
    /// Main size: documents, fingerprints or tuples.
    pub scale: u64,
    /// Real data, for those that speak of it: a run's folder.
    pub input: Option<String>,
    /// The truth about the crawl of that run, for those that hold a run against it: a file.
    pub truth: Option<PathBuf>,
    /// Folder for files made on the way; they are removed at the end.
    pub work: PathBuf,
    /// Folder for figures and their data, if any are wanted.
    pub output: Option<PathBuf>,
    /// Worker threads.
    pub workers: usize,
}

/// A table or figure that can be reproduced.
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// What it is, with its place in the paper.
    pub about: &'static str,
    /// What the scale counts.
    pub unit: &'static str,
    /// The scale that ends within a minute.
    pub scale: u64,
    /// The scale of the paper, or of the figure to be reached.
    pub full: u64,
    /// Does it.
    pub run: fn(&Options) -> Result<Vec<Row>>,
}

/// All entries, by name.
pub fn entries() -> Vec<Entry> {
    let mut all = mjs07::entries();
    all.extend(scale::entries());
    all.extend(sgm98::entries());
    all.extend(csg00::entries());
    all.extend(ddgmp03::entries());
    all.extend(pbz06::entries());
    all.sort_by_key(|entry| entry.name);
    all
}

/// The entry of a name.
///
/// # Errors
/// [`Error::Usage`] when there is none, with the nearest.
pub fn find(name: &str) -> Result<Entry> {
    let mut all = entries();
    let nearest = (0..all.len()).min_by_key(|&at| strsim::damerau_levenshtein(all[at].name, name)).unwrap_or(0);
    if all[nearest].name == name {
        return Ok(all.swap_remove(nearest));
    }
    Err(Error::Usage(format!(
        "nothing is called {name}, perhaps {}; `webtwin reproduce --list` names all",
        all[nearest].name
    )))
}

/// A figure that nothing is said of.
pub fn figure(what: &str, ours: f64, unit: &str) -> Row {
    Row { what: what.into(), ours: Some(ours), published: None, reach: None, unit: unit.into(), holds: None }
}

/// A figure beside the paper's.
pub fn beside(what: &str, ours: f64, published: f64, unit: &str) -> Row {
    Row { published: Some(published), ..figure(what, ours, unit) }
}
