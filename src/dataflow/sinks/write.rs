//! Stages the files of a `replicas` run: tables and exports at their owners, and `summary.json`.

use crate::memory_estimate::{in_proportion, lacking_to_make_tables};
use crate::reading::rejection::Rejection;
use crate::sinks::drafts::Draft;
use crate::sinks::exports;
use crate::sinks::files::{self, TableMaker};
use crate::sinks::found::ReplicaTables;
use crate::sinks::rejected::RejectedRows;
use crate::sinks::stage::{StagedFiles, attempt, or_discard, written};
use crate::sinks::tables::{NAMES, TableRows, drafts, empty};
use webtwin_base::error::Result;
use webtwin_base::heap::release_free_memory;
use webtwin_engine::Net;
use webtwin_job::Job;
use webtwin_results::views::views;
use webtwin_spill::SpillRows;
use webtwin_storage::location::Location;
use webtwin_storage::manifest::FileEntry;
use webtwin_storage::output::Attempt;

/// Stages all files except the manifest. Worker 0 receives the list of all files.
///
/// Takes one exchange that sends the rejected records to their owners, and those of [`files`]. Each
/// file is held in memory while it is encoded.
pub fn result(
    net: &mut Net<'_>,
    folder: &Location,
    tables: &mut ReplicaTables,
    sources: &[String],
    rejections: SpillRows<Rejection>,
    job: &Job,
) -> Result<StagedFiles> {
    let partitions = job.output.partitions as usize;
    let rejected = RejectedRows::gather(net, rejections, sources.len(), partitions)?;
    let more_tables = std::mem::take(&mut tables.more_tables);
    let rows = TableRows::collect(tables)?;
    reserve_memory(net, tables, job)?;
    let attempt = attempt(net, folder)?;
    let files = or_discard(net, &attempt, |net| {
        let mut parts = drafts(tables, &rows, sources)?;
        parts.extend(rejected.drafts(sources));
        parts.extend(more_tables.into_iter().map(Draft::from));
        let empty = |name: &str| empty(name, &tables.crawl);
        let making = TableMaker::by(net, job, &NAMES, &empty)?;
        let mut own_files = files::put_tables(net, &attempt, parts, making)?;
        drop((rows, rejected));
        release_free_memory();
        own_files.extend(exports::put_lists(&attempt, &tables.lists)?);
        let mut files = written(net, own_files)?;
        if net.index() == 0 {
            files.extend(put_other_files(&attempt, tables, &files)?);
            files.sort_unstable();
        }
        Ok(files)
    })?;
    let restored_steps = std::mem::take(&mut tables.restored_steps);
    Ok(StagedFiles { attempt, files, previous_attempt: tables.previous_attempt.take(), restored_steps })
}

/// Spills links and captures if memory is limited, to the extent that building files of tables
/// needs their memory.
fn reserve_memory(net: &mut Net<'_>, tables: &mut ReplicaTables, job: &Job) -> Result<()> {
    if job.effort.memory_bytes == 0 {
        return Ok(());
    }
    let (pages, workers) = (tables.crawl.directory.len() as u64, net.workers_per_process());
    // All workers have about equal pages, so the captures of one of them stand for those of all.
    let own_captures = &tables.crawl.pages;
    let captures = in_proportion(8 * own_captures.words(), pages, own_captures.len() as u64);
    let lacking = net.once_per_process(|| {
        release_free_memory();
        lacking_to_make_tables(pages, captures, workers, job.effort.memory_bytes)
    })?;
    let share = *lacking / workers as u64;
    let released = tables.links.give_up(share)?;
    tables.crawl.pages.give_up(share.saturating_sub(released))?;
    // All workers must have spilled before one of them measures the free memory.
    net.gather_in_process(())?;
    Ok(())
}

/// Stages the files that only worker 0 writes: exports of URL rules, summary and views.
fn put_other_files(attempt: &Attempt, result: &ReplicaTables, tables: &[FileEntry]) -> Result<Vec<FileEntry>> {
    let mut files = exports::put_rules(attempt, &result.url_rules)?;
    let summary = serde_json::to_string_pretty(&result.summary).expect("a summary is plain values") + "\n";
    for (path, text) in [("summary.json", &summary), ("views.sql", &views(tables, None))] {
        files.push(attempt.write(path, |file| file.append(text.as_bytes()))?);
    }
    Ok(files)
}
