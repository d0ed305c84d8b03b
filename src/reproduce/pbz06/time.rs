//! How long a study takes.

use std::sync::Arc;

use super::super::measure::{forget_peak_memory, processor_seconds};
use super::super::{Options, Row, figure};
use crate::build::peak_memory_bytes;
use crate::dataflow::study::of_table;
use crate::error::{Error, Result};
use crate::job::resolve;
use crate::synth::duplicates::{Collection, Year};

/// Documents that are to be studied in ten minutes.
const DOCUMENTS: f64 = 2e6;

/// A study of a collection like that of 2005. In the time: equal multisets, false matches, clusters and growth of the
/// collection, its two parts and its two halves, near-duplicates at three percentages by exact counts, the bow tie and the
/// simulated crawl. Not in it: the reading of pages and the cutting of texts, and the writing of tables.
pub(super) fn run(options: &Options) -> Result<Vec<Row>> {
    let documents = u32::try_from(options.scale).map_err(|_| Error::Usage("at most 2^32 - 1 documents".into()))?;
    let job = resolve("", "preset = \"study\"", &[])?;
    let collection = Arc::new(Collection::new(Year::Y2005, documents, 1)?);
    forget_peak_memory();
    let before = processor_seconds();
    let studied = of_table(&collection, &job, options.workers)?;
    let spent = processor_seconds() - before;
    let tables = &studied.summary.tables;
    Ok(vec![
        figure("the study, from marks and links in memory to all tables", studied.studying, "s")
            .at_most(600.0 * options.scale as f64 / DOCUMENTS),
        figure("the making of marks and links, not in it", studied.making, "s"),
        figure("processor time of both", spent, "s"),
        figure("workers", options.workers as f64, "threads"),
        figure("most memory held", peak_memory_bytes() as f64 / 1e6, "MB"),
        figure("documents", tables.complete.documents as f64, "documents"),
        figure("links", studied.summary.web.links as f64, "links"),
        figure("duplicates", tables.complete.duplicates_percent, "% of documents"),
        figure("near-duplicates at 50 %", tables.near[2].near_duplicates_percent, "% of documents"),
    ])
}
