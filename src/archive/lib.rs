//! Deduplicating archive: rewrites WARC files so that each payload is stored once, and restores the
//! original files.
//!
//! ```text
//!  WARC files ──▶ survey ──▶ keys of payloads ──▶ copies of each payload ──▶ rewrite ──▶ OUT
//!                 survey.rs                       matches.rs                 rewrite.rs
//!
//!  OUT ─────────▶ survey ──▶ stored and missing payloads ──▶ holder of each ──▶ restore ──▶ BACK
//! ```
//!
//! Of all records with the same payload, the one captured first keeps it. The others become
//! `revisit` records of WARC 1.1, which keep their own HTTP heads, so that every tool for web
//! archives can replay them. Everything else is copied byte for byte: the remaining records in
//! their compressed form, and all bytes that do not belong to complete records
//! ([`stored`](webtwin_pages::warc::stored)).
//!
//! An archive may be made against older ones: a payload that one of these holds becomes a reference
//! to it. The older archives are surveyed together with the files to archive. Their records come
//! first and stay unchanged.
//!
//! # What comes back
//! [`restore`] restores every record byte for byte: head and block. A file without copies is
//! identical to the original. In other files the restored records are compressed again, so the
//! compressed bytes may differ from the original. The decompressed bytes are identical, and their
//! SHA-256, which the archive stores in `summary.json`, is checked.
//!
//! # Index
//! On request the archive has a CDXJ index of its captures (`cdxj.rs`). Copied records are read a
//! second time for it.
//!
//! # Memory
//! 48 bytes for each payload and 32 for each record, including older archives; beyond the memory
//! budget they are on the local disk. 8 bytes for each name that a revisit of the input refers to,
//! and for each ambiguous name. One reader and one writer for each thread.
//!
//! # Source
//! \[SGM98\] section 1 (near-copies of a collection stored together); ISO 28500:2017 (WARC 1.1),
//! section 6.7.
//!
//! # Deviations
//! - The standard defines a payload without its transfer encoding. Here two payloads are equal if
//!   their stored bytes are equal and both records have the same transfer and content encodings.
//!   Then they are equal by any definition.
//! - A revisit names no record id that several records have, and no target and date under which
//!   there are other payloads.
//! - A record to which a revisit of the input refers is not replaced by a revisit, so references
//!   never form chains. It may become a near-copy: users who store those separately from their
//!   bases must [`restore`] them before any replay.

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
use webtwin_base::progress::StageTimes;
use webtwin_results::FinishedRun;
use webtwin_spill::MemoryPool;
use webtwin_storage::location::Location;
use webtwin_storage::output;
use webtwin_storage::relative::verify_distinct;

use sorted_lines::SortedLines;

pub use report::{ArchiveCounts, ArchiveSummary, FileSummary, NearSummary, RestoreReport};

/// Input, output and resources of an archive.
#[derive(Debug, Clone)]
pub struct ArchiveSettings {
    /// WARC files: paths, URLs, globs, folders, `@LIST` files.
    pub inputs: Vec<String>,
    /// Older archives to which records may refer: folders that [`archive`] has written, or files in
    /// the form of `inputs`.
    pub against: Vec<String>,
    /// Folder of the archive.
    pub output: String,
    /// Treatment of near-copies; `None` to leave them as they are.
    pub near: Option<NearCopySource>,
    /// True if an index of the captures is written.
    pub cdxj: bool,
    /// Resources.
    pub effort: ArchiveEffort,
}

/// Near-copies: the pages of a finished run that are in a cluster of similar pages and are not the
/// page that the run keeps.
#[derive(Debug, Clone)]
pub struct NearCopySource {
    /// Folder of the run.
    pub run: String,
    /// True if near-copies are written as differences; false to only measure the savings.
    pub write: bool,
    /// Compression level of zstd for the differences, 1 to 19.
    pub level: i32,
}

impl NearCopySource {
    /// Default level: the highest one whose decompression needs no more memory than that of lower
    /// levels.
    pub const LEVEL: i32 = 19;
}

/// Resources, which do not change the result.
#[derive(Debug, Clone)]
pub struct ArchiveEffort {
    /// Number of threads.
    pub workers: usize,
    /// Maximum size in memory of the keys of payloads, in bytes.
    pub memory_bytes: u64,
    /// Folder on a local disk for further keys.
    pub spill: PathBuf,
}

impl ArchiveEffort {
    /// Returns a pool with the memory divided by `parts`.
    fn part(&self, parts: u64) -> MemoryPool {
        MemoryPool::new(self.memory_bytes / parts, &self.spill, "--spill")
    }
}

/// Makes an archive. Messages for the user are passed to `notify`.
///
/// # Errors
/// Returns any error of inputs and stores, [`webtwin_base::error::Error::Usage`] if a file is both
/// an input and an older archive, and [`webtwin_base::error::Error::LostCommit`] if there is
/// already a result.
pub fn archive(settings: &ArchiveSettings, notify: &(dyn Fn(String) + Sync)) -> Result<ArchiveSummary> {
    let folder = Location::parse(&settings.output)?;
    output::prepare(&folder)?;
    let mut stage_times = StageTimes::start();
    let mut files = inputs::find(&settings.inputs, notify)?;
    let older_files = inputs::older_files(&settings.against, notify)?;
    // Payloads of a file that is both new and older would become references to themselves.
    verify_distinct(files.iter().map(|file| &file.location), older_files.iter().map(|file| &file.location))?;
    let new_files = files.len();
    files.extend(older_files);
    let survey = survey::survey(&files, survey::SurveyPurpose::Archive, &settings.effort)?;
    stage_times.end_stage("survey");
    let mut near_copies = match &settings.near {
        Some(near_source) => near::NearCopies::from_run(&FinishedRun::open(&near_source.run)?, &files)?,
        None => near::NearCopies::default(),
    };
    let may_hold = |name: u64| survey.ambiguous.binary_search(&name).is_err();
    let (copies, kept_ambiguous) =
        matches::copies(survey.rows, new_files, &settings.effort, may_hold, |copy| near_copies.leave_out(copy))?;
    stage_times.end_stage("copies");
    let rewriter = rewrite::Rewriter {
        files: &files,
        surveys: &survey.files,
        referred_names: &survey.referred_names,
        ambiguous: &survey.ambiguous,
        kept_ambiguous,
        near_copies: &near_copies,
        writes_near: settings.near.as_ref().is_some_and(|near| near.write),
        index: settings.cdxj.then(|| SortedLines::new(&settings.effort)),
        near_level: settings.near.as_ref().map_or(NearCopySource::LEVEL, |near| near.level),
    };
    rewrite::rewrite(settings, &folder, rewriter, copies, &mut stage_times)
}

/// Restores the records of the archive in the folder `source` into the folder `target`.
/// `older_archives` names the older archives that it was made against.
///
/// # Errors
/// Returns [`webtwin_base::error::Error::Input`] if the archive is incomplete or has changed, any
/// error of stores, and [`webtwin_base::error::Error::LostCommit`] if there is already a result.
pub fn restore(
    source: &str,
    older_archives: &[String],
    target: &str,
    effort: &ArchiveEffort,
    notify: &(dyn Fn(String) + Sync),
) -> Result<RestoreReport> {
    let folder = Location::parse(target)?;
    output::prepare(&folder)?;
    restore::restore(&Location::parse(source)?, older_archives, &folder, effort, notify)
}

/// Converts the result of a write. `path` names the file if the cause does not.
fn result_of_write<T>(result: std::io::Result<T>, path: &str) -> Result<T> {
    result.map_err(|cause| match cause.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(error) => error.clone(),
        None => Error::storage(path, cause),
    })
}

#[cfg(test)]
mod tests;
