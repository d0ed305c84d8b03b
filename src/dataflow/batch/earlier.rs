//! Finds the pages of F that are near a page of Q in the tables of the earlier results.
//!
//! The files of these tables are dealt out to the workers. Each worker scans its files once and
//! sends the rows of the wanted pages to the owners of their doc ids. If several results have a
//! page, the newest capture of the page counts, for its links too.
//!
//! # Memory
//! Each process holds 8 bytes for each page of F that is near a page of Q. Each worker holds one
//! batch of rows of a table and the near pages that it owns.

use std::collections::BTreeMap;

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

use crate::hamming::NearPair;
use crate::reading::capture::{Capture, mime, short_title};
use crate::reading::worker_pages::WorkerPages;
use crate::shuffle::directory::{Directory, DocIdIndex, TablePartitions};
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::DocId;
use webtwin_core::text::language::Language;
use webtwin_engine::{Net, Owners, RoundRobin};
use webtwin_results::FinishedRun;
use webtwin_results::scan::scan_file;
use webtwin_spill::SpillColumn;
use webtwin_storage::manifest::FileEntry;
use webtwin_storage::table::Table;

/// Columns of a page that are read in addition to its doc id.
const COLUMNS: [&str; 16] = [
    "url",
    "title",
    "language",
    "fetch_time",
    "status",
    "mime",
    "body_bytes",
    "body",
    "text_bytes",
    "chunks",
    "exact",
    "simhash",
    "has_simhash",
    "source",
    "offset",
    "length",
];

/// Earlier results in which pages of F are looked up.
pub(super) struct PagesOfF<'a> {
    /// Earlier results that contain the pages of F, the newest last.
    pub(super) results: &'a [FinishedRun],
    /// Number of the first input that belongs to an earlier result.
    pub(super) first_source: u32,
    /// Number of the artificial work item to which all pages of earlier results are assigned.
    pub(super) item: u32,
}

/// Pages of earlier crawls that are near pages of the new crawl.
pub(super) struct NearPages {
    /// Pairs whose document of F is not a page of Q.
    pub(super) pairs: SpillColumn<NearPair>,
    /// Inputs of the pages, numbered from [`PagesOfF::first_source`].
    pub(super) sources: Vec<String>,
    /// Number of pairs whose document of F is also a page of Q.
    pub(super) superseded: u64,
    /// Number of near pages of F that are in no result.
    pub(super) unknown_pages: u64,
    /// Number of near pages of F that are in a result.
    pub(super) pages: u64,
}

/// Page of F as an earlier result describes it.
#[derive(Debug, Serialize, Deserialize)]
struct EarlierPage {
    /// Index of the result.
    result: u32,
    /// Capture of the page, without its work item, worker and slot.
    capture: Capture,
    /// Name of the input that the capture was read from.
    source: String,
}

/// Link of an earlier result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct EarlierLink {
    src: DocId,
    dst: DocId,
    /// Index of the result.
    result: u64,
}

impl PagesOfF<'_> {
    /// Adds the pages of F that are near a page of Q, and their links, to the local pages of the
    /// worker that owns their doc id. `query_directory` is the directory of the pages of Q. `pairs`
    /// are this worker's pairs of a document of F and a page of Q.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if a table is damaged. Returns any error of the disk, and an error
    /// if the run has ended.
    pub(super) fn put_near_pages(
        &self,
        net: &mut Net<'_>,
        query_directory: &Directory,
        partitions: TablePartitions,
        mut pairs: SpillColumn<NearPair>,
        local_pages: &mut WorkerPages,
    ) -> Result<NearPages> {
        let query_ids = query_directory.by_doc_id()?;
        let all_pairs = pairs.len();
        // A document of F that is a page of Q, too, is older than that page: the new crawl
        // supersedes it.
        pairs.retain_mut(|pair| query_ids.page(pair.a).is_none())?;
        let mut near_ids = pairs.rows().map(|pair| Ok(pair?.a)).collect::<Result<Vec<DocId>>>()?;
        near_ids.sort_unstable();
        near_ids.dedup();
        let shared_ids = net.broadcast("near documents of F", near_ids)?;
        let near_ids = net.once_per_process(|| {
            let mut sorted_ids = shared_ids.to_vec();
            sorted_ids.sort_unstable();
            sorted_ids.dedup();
            sorted_ids
        })?;

        let pages = self.pages(net, &near_ids, partitions)?;
        let links = self.links(net, &near_ids, &query_ids, partitions)?;
        let mut names: Vec<String> = pages.values().map(|page| page.source.clone()).collect();
        names.sort_unstable();
        names.dedup();
        let mut sources: Vec<String> =
            net.all_gather("inputs of earlier crawls", names)?.into_iter().flatten().collect();
        sources.sort_unstable();
        sources.dedup();

        let page_count = pages.len() as u64;
        // Pages and links are both ascending by doc id, so one merge pass assigns links to pages.
        let mut links = &links[..];
        for (doc_id, EarlierPage { result, mut capture, source }) in pages {
            let earlier_link_count = links.partition_point(|link| link.src < doc_id);
            let remaining = &links[earlier_link_count..];
            let (own_links, later_links) = remaining.split_at(remaining.partition_point(|link| link.src == doc_id));
            links = later_links;
            let targets: Vec<DocId> =
                own_links.iter().filter(|link| link.result == u64::from(result)).map(|link| link.dst).collect();
            capture.source = self.first_source + sources.partition_point(|other| *other < source) as u32;
            (capture.item, capture.worker, capture.slot) =
                (self.item, net.index() as u32, local_pages.links.slots() as u32);
            local_pages.links.push(&targets)?;
            local_pages.fprints.push(&[])?;
            local_pages.captures.push(&capture)?;
        }
        let counts = [all_pairs as u64 - pairs.len() as u64, page_count];
        let [superseded, pages] = net.all_sum("pages of earlier crawls", counts)?;
        Ok(NearPages { pairs, sources, superseded, unknown_pages: near_ids.len() as u64 - pages, pages })
    }

    /// Returns the files of a table, of all results, that this worker reads, each with the index of
    /// its result.
    fn files<'r>(
        &'r self,
        net: &Net<'_>,
        table: &'r str,
    ) -> impl Iterator<Item = (u32, &'r FinishedRun, &'r FileEntry)> {
        let (assignment, own_index) = (RoundRobin::new(net.peers()), net.index());
        let files = (0..)
            .zip(self.results)
            .flat_map(move |(result, run)| run.manifest.table(table).map(move |entry| (result, run, entry)));
        files.enumerate().filter(move |(number, _)| assignment.owner(*number) == own_index).map(|(_, file)| file)
    }

    /// Returns the wanted pages that this worker owns, as the newest result describes them.
    fn pages(
        &self,
        net: &mut Net<'_>,
        doc_ids: &[DocId],
        partitions: TablePartitions,
    ) -> Result<BTreeMap<DocId, EarlierPage>> {
        let mut earlier_pages: Vec<Result<(usize, EarlierPage)>> = Vec::new();
        for (result, run, file) in self.files(net, "pages") {
            net.check()?;
            let has_some = |batch: &Table| Ok(batch.u64("doc_id")?.iter().any(|id| doc_ids.binary_search(id).is_ok()));
            scan_file(run, file, (&["doc_id"], &COLUMNS), has_some, &mut |batch| {
                for (row, doc_id) in batch.u64("doc_id")?.iter().enumerate() {
                    // In a batch without wanted pages the other columns are not decoded.
                    if doc_ids.binary_search(doc_id).is_ok() {
                        earlier_pages.push(Ok((partitions.owner(*doc_id), page(batch, row, result)?)));
                    }
                }
                Ok(())
            })?;
        }
        let mut pages: BTreeMap<DocId, Vec<EarlierPage>> = BTreeMap::new();
        for page in net.exchange_values("pages of earlier crawls", earlier_pages)? {
            pages.entry(page.capture.doc_id).or_default().push(page);
        }
        Ok(pages.into_iter().filter_map(|(doc_id, rows)| Some((doc_id, newest(rows)?))).collect())
    }

    /// Returns the links from wanted pages that this worker owns to wanted pages and to pages of Q,
    /// in ascending order.
    fn links(
        &self,
        net: &mut Net<'_>,
        doc_ids: &[DocId],
        query_ids: &DocIdIndex<'_>,
        partitions: TablePartitions,
    ) -> Result<Vec<EarlierLink>> {
        let mut earlier_links: Vec<EarlierLink> = Vec::new();
        for (result, run, file) in self.files(net, "links") {
            net.check()?;
            scan_file(run, file, (&["src", "dst"], &[]), |_| Ok(false), &mut |batch| {
                let mut current_source = (DocId::MAX, false);
                for (&src, &dst) in batch.u64("src")?.iter().zip(batch.u64("dst")?) {
                    if current_source.0 != src {
                        current_source = (src, doc_ids.binary_search(&src).is_ok());
                    }
                    if current_source.1 && (doc_ids.binary_search(&dst).is_ok() || query_ids.page(dst).is_some()) {
                        earlier_links.push(EarlierLink { src, dst, result: u64::from(result) });
                    }
                }
                Ok(())
            })?;
        }
        let mut links = net.exchange("links of earlier crawls", earlier_links, |link| partitions.owner(link.src))?;
        links.sort_unstable();
        Ok(links)
    }
}

/// Returns the newest capture of a page, from the oldest result that contains it. A later result of
/// a batch repeats pages of earlier crawls, but has only some of their links.
fn newest(mut rows: Vec<EarlierPage>) -> Option<EarlierPage> {
    rows.sort_by_key(|row| row.result);
    let record = |row: &EarlierPage| (row.capture.fetch_time, row.capture.offset, row.source.clone());
    let newest = record(rows.last()?);
    rows.into_iter().find(|row| record(row) == newest)
}

/// Returns the page in a row of the table `pages`.
fn page(batch: &Table, row: usize, result: u32) -> Result<EarlierPage> {
    let text = |name: &str| {
        let text = batch.text(name)?.get(row);
        text.ok_or_else(|| Error::Invariant(format!("column {name} has no row {row}")))
    };
    let number = |name: &str| Result::Ok(batch.u64(name)?[row]);
    let language = text("language")?;
    let capture = Capture {
        doc_id: number("doc_id")?,
        url: text("url")?.to_owned(),
        fetch_time: batch.time("fetch_time")?[row],
        status: batch.u32("status")?[row] as u16,
        mime: mime(text("mime")?),
        title: short_title(text("title")?),
        language: Language::of_code(language),
        body_bytes: number("body_bytes")?,
        body: number("body")?,
        text_bytes: number("text_bytes")?,
        chunks: batch.u32("chunks")?[row],
        exact: number("exact")?,
        simhash: batch.bool("has_simhash")?[row].then_some(number("simhash")?),
        offset: number("offset")?,
        length: number("length")?,
        ..Capture::default()
    };
    Ok(EarlierPage { result, capture, source: text("source")?.to_owned() })
}
