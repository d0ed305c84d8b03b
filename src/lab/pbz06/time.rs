//! Time of a study.

use std::sync::Arc;

use super::super::made::duplicates::{SyntheticCollection, Year};
use super::super::measure::{forget_peak_memory, processor_seconds, seconds};
use super::super::{FigureRow, Options, figure};
use super::of_table::of_table;
use webtwin_base::build_info::peak_memory_bytes;
use webtwin_base::error::{Error, Result};
use webtwin_dataflow::reading::ingest::Queue;
use webtwin_dataflow::study::{self, StudySummary};
use webtwin_engine::{ClusterLayout, run as run_on};
use webtwin_job::{JobDigest, resolve};
use webtwin_pages::work_items::WorkList;
use webtwin_storage::location::Location;

/// Number of documents that must be studied within ten minutes.
const DOCUMENTS: f64 = 2e6;

/// Times two studies.
///
/// The first is of a collection like that of 2005. Its time covers equal multisets, false matches,
/// clusters, the growth of the collection, its two parts and its two halves, near-duplicates at
/// three percentages by exact counts, the bow tie and the simulated crawl, but not reading. The
/// second is the whole job on a synthetic crawl of as many pages. Its time covers making the pages,
/// reading, chunking, everything above, and writing.
pub(super) fn run(options: &Options) -> Result<Vec<FigureRow>> {
    let documents = u32::try_from(options.scale)
        .map_err(|_| Error::Usage(format!("--scale {}: at most {}", options.scale, u32::MAX)))?;
    let job = resolve("", "preset = \"study\"", &[])?;
    let collection = Arc::new(SyntheticCollection::new(Year::Y2005, documents, 1)?);
    let reach = 600.0 * options.scale as f64 / DOCUMENTS;
    forget_peak_memory();
    let cpu_before = processor_seconds();
    let studied = of_table(&collection, &job, options.workers)?;
    let cpu_seconds = processor_seconds() - cpu_before;
    let tables = &studied.summary.tables;
    let mut rows = vec![
        figure("the study, from marks and links in memory to all tables", studied.studying, "s").at_most(reach),
        figure("the making of marks and links, not in it", studied.making, "s"),
        figure("processor time of both", cpu_seconds, "s"),
        figure("workers", options.workers as f64, "threads"),
        figure("most memory held", peak_memory_bytes() as f64 / 1e6, "MB"),
        figure("documents", tables.complete.documents as f64, "documents"),
        figure("links", studied.summary.web.links as f64, "links"),
        figure("duplicates", tables.complete.duplicates_percent, "% of documents"),
        figure("near-duplicates at 50 %", tables.near[2].near_duplicates_percent, "% of documents"),
    ];
    drop((studied, collection));

    forget_peak_memory();
    let (clock, summary) = seconds(|| whole_job(options));
    let summary = summary?;
    rows.extend([
        figure("the whole job on a made-up crawl, pages of HTML to tables on disk", clock, "s").at_most(reach),
        figure("the whole job: most memory held", peak_memory_bytes() as f64 / 1e6, "MB"),
        figure("the whole job: documents", summary.tables.complete.documents as f64, "documents"),
        figure("the whole job: links", summary.web.links as f64, "links"),
        figure("the whole job: duplicates", summary.tables.complete.duplicates_percent, "% of documents"),
    ]);
    Ok(rows)
}

fn whole_job(options: &Options) -> Result<StudySummary> {
    let output = options.work.join("study").display().to_string();
    let sets = [
        format!("input.urls=[\"synth://?pages={}&seed=1\"]", options.scale),
        format!("output.url={}", serde_json::Value::from(output.as_str())),
    ];
    let job = resolve("", "preset = \"study\"", &sets)?;
    let queue = Queue::new(WorkList::plan(&job.input, job.effort.shard_bytes)?);
    let (digest, folder) = (JobDigest::from_job(&job).0, Location::parse(&output)?);
    let summary =
        run_on(&ClusterLayout::local(options.workers), 0, digest, move |net| study::run(net, &job, &queue, &folder))?;
    Ok(summary.into_iter().next().unwrap_or_default())
}
