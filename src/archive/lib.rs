//! An archive that keeps things once: WARC files become the same files, in which a payload that is stored already is a
//! reference to where it is; and these become what they were.
//!
//! ```text
//!  WARC files ──▶ survey ──▶ keys of payloads, by key ──▶ which record is a copy of which ──▶ rewrite ──▶ OUT
//!                 survey.rs      matches.rs                                                   rewrite.rs
//!
//!  OUT ─────────▶ survey ──▶ payloads there are, and wanted ──▶ where each is ──────────────▶ restore ──▶ BACK
//! ```
//!
//! Of records with the same payload the one captured first keeps it. The others become `revisit` records of WARC 1.1, which
//! keep their own HTTP heads, so that every tool for web archives replays them. All else is copied, byte for byte: the
//! records that stay, still compressed as they were, and all bytes that are no whole records
//! ([`stored`](webtwin_pages::warc::stored)).
//!
//! An archive may be made against older ones: a payload that one of these holds is a reference to it. They are surveyed with
//! the files to archive, their records come first, and they stay as they are.
//!
//! # What comes back
//! [`restore`] gives every record back, byte for byte: head and block. A file without copies is the same file. In another,
//! the members of what was restored are compressed anew, so it may differ from the original in its compressed bytes; its
//! decompressed bytes are the same, and their SHA-256, which the archive has in `summary.json`, is checked.
//!
//! # Index
//! On request the archive has a CDXJ of its captures (`cdxj.rs`). Records that are copied are read once more for it.
//!
//! # Memory
//! 48 bytes a payload and 32 a record, of older archives, too, which go to the local disk beyond the memory allowed; 8 bytes for each of what revisits of the input
//! refer to, and for each name that is not that of one record; one reader and one writer a thread.
//!
//! # Source
//! \[SGM98\] section 1 (near-copies of a collection stored together); ISO 28500:2017 (WARC 1.1), section 6.7.
//!
//! # Deviations
//! - The standard's payload has no transfer encoding. Here two payloads are the same if they are so as stored, and if both
//!   records name the same transfer and content encodings: then they are the same by any definition.
//! - A revisit names no record id that several records have, and refers to no target and date under which there are other
//!   payloads.
//! - A record is no revisit if one of the input's own revisits refers to it: references never form chains. It may be a
//!   near-copy: who keeps those apart from their bases needs [`restore`] before any replay.

mod cdxj;
pub mod head;
mod inputs;
mod matches;
mod names;
mod near;
mod pack;
mod record;
mod references;
mod report;
mod restore;
mod rewrite;
mod sorted_lines;
mod survey;

use std::path::PathBuf;

use webtwin_base::error::{Error, Result};
use webtwin_base::progress::Laps;
use webtwin_results::Run;
use webtwin_spill::MemoryPool;
use webtwin_storage::location::Location;
use webtwin_storage::output;

use sorted_lines::SortedLines;

pub use report::{Counts, FileSummary, NearSummary, Restored, Summary};

/// What an archive is made of, and with which means.
#[derive(Debug, Clone)]
pub struct Settings {
    /// WARC files: paths, URLs, globs, folders, `@LIST`s.
    pub inputs: Vec<String>,
    /// Older archives, to which records may refer: folders that [`archive`] has written, or as `inputs`.
    pub against: Vec<String>,
    /// Folder for the archive.
    pub output: String,
    /// What to do about near-copies.
    pub near: Option<Near>,
    /// Whether to write an index of its captures, too.
    pub cdxj: bool,
    /// Means.
    pub effort: Effort,
}

/// Near-copies: the pages of a finished run that are in a cluster of similar pages and not the one it keeps.
#[derive(Debug, Clone)]
pub struct Near {
    /// Folder of the run.
    pub run: String,
    /// Whether to write them as differences, or only to measure what that would save.
    pub write: bool,
    /// Level of zstd for the differences, 1 to 19.
    pub level: i32,
}

impl Near {
    /// The strongest level that needs no more memory to decompress than others.
    pub const LEVEL: i32 = 19;
}

/// Means, which do not change the result.
#[derive(Debug, Clone)]
pub struct Effort {
    /// Threads.
    pub workers: usize,
    /// Bytes of payload keys to hold in memory.
    pub memory_bytes: u64,
    /// Folder on a local disk for more of them.
    pub spill: PathBuf,
}

impl Effort {
    /// One of so many parts of the memory.
    fn part(&self, parts: u64) -> MemoryPool {
        MemoryPool::new(self.memory_bytes / parts, &self.spill, "--spill")
    }
}

/// Makes an archive; `tell` is told what the user should know.
///
/// # Errors
/// Those of inputs and stores; [`webtwin_base::error::Error::LostCommit`] when there is a result already.
pub fn archive(settings: &Settings, tell: &(dyn Fn(String) + Sync)) -> Result<Summary> {
    let folder = Location::parse(&settings.output)?;
    output::prepare(&folder)?;
    let mut laps = Laps::start();
    let mut files = inputs::find(&settings.inputs, tell)?;
    let new_files = files.len();
    files.extend(inputs::older(&settings.against, tell)?);
    let survey = survey::survey(&files, survey::Purpose::Archive, &settings.effort)?;
    laps.lap("survey");
    let mut near = match &settings.near {
        Some(near) => near::NearCopies::of(&Run::open(&near.run)?, &files)?,
        None => near::NearCopies::default(),
    };
    let may_hold = |name: u64| survey.ambiguous.binary_search(&name).is_err();
    let (copies, kept_ambiguous) =
        matches::copies(survey.rows, new_files, &settings.effort, may_hold, |copy| near.leave_out(copy))?;
    laps.lap("copies");
    let rewriter = rewrite::Rewriter {
        files: &files,
        surveyed: &survey.files,
        referred: &survey.referred,
        ambiguous: &survey.ambiguous,
        kept_ambiguous,
        near: &near,
        writes_near: settings.near.as_ref().is_some_and(|near| near.write),
        index: settings.cdxj.then(|| SortedLines::new(&settings.effort)),
        near_level: settings.near.as_ref().map_or(Near::LEVEL, |near| near.level),
    };
    rewrite::rewrite(settings, &folder, rewriter, copies, &mut laps)
}

/// Restores the records of the archive in the folder `from` into the folder `to`; `against` names the older archives that it
/// was made against.
///
/// # Errors
/// [`webtwin_base::error::Error::Input`] when the archive is incomplete or changed; those of stores;
/// [`webtwin_base::error::Error::LostCommit`] when there is a result already.
pub fn restore(
    from: &str,
    against: &[String],
    to: &str,
    effort: &Effort,
    tell: &(dyn Fn(String) + Sync),
) -> Result<Restored> {
    let folder = Location::parse(to)?;
    output::prepare(&folder)?;
    restore::restore(&Location::parse(from)?, against, &folder, effort, tell)
}

/// What was written, or why it could not be; `path` names the file if the cause does not.
fn written<T>(done: std::io::Result<T>, path: &str) -> Result<T> {
    done.map_err(|cause| match cause.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(error) => error.clone(),
        None => Error::storage(path, cause),
    })
}

#[cfg(test)]
mod tests;
