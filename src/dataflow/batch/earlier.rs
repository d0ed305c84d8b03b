//! Pages of F that are near a page of Q, out of the tables of the results that have read them.
//!
//! Files of the tables are dealt out to the workers, each of which passes over them once and sends on the rows of pages that are
//! wanted, to the owners of their doc ids. Where several results have a page, its newest record counts, for its links too.
//!
//! # Memory
//! 8 bytes in each process for each page of F that is near one of Q; a batch of rows of a table; and these pages, with their owners.

use std::collections::BTreeMap;

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

use crate::hamming::NearPair;
use crate::reading::capture::{Capture, mime, short_title};
use crate::reading::worker_pages::WorkerPages;
use crate::shuffle::directory::{ByDocId, Directory, TablePartitions};
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::DocId;
use webtwin_core::text::language::Language;
use webtwin_engine::{Net, Owners, RoundRobin};
use webtwin_results::Run;
use webtwin_results::scan::scan_file;
use webtwin_spill::Column;
use webtwin_storage::manifest::FileEntry;
use webtwin_storage::table::Table;

/// Columns of a page, beside its doc id.
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

/// Results in which pages of F are looked up.
pub(super) struct PagesOfF<'a> {
    /// The results that have them, the newest last.
    pub(super) results: &'a [Run],
    /// Number of the first input that is one of theirs.
    pub(super) first_source: u32,
    /// The work item that stands for all that they have read.
    pub(super) item: u32,
}

/// Pages of earlier crawls that are near pages of the new one.
pub(super) struct NearPages {
    /// Pairs of pages that are there.
    pub(super) pairs: Column<NearPair>,
    /// The inputs of the pages, from [`PagesOfF::first_source`] on.
    pub(super) sources: Vec<String>,
    /// Pairs whose document of F is a page of Q, too.
    pub(super) superseded: u64,
    /// Pages that are in no result.
    pub(super) unknown_pages: u64,
    /// Pages that were found.
    pub(super) pages: u64,
}

/// A page as an earlier result has it.
#[derive(Debug, Serialize, Deserialize)]
struct EarlierPage {
    /// Place of the result.
    result: u32,
    /// Its capture, but for where it lies.
    capture: Capture,
    /// Name of its input.
    source: String,
}

/// A link of an earlier result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct EarlierLink {
    src: DocId,
    dst: DocId,
    /// Place of the result.
    result: u64,
}

impl PagesOfF<'_> {
    /// Puts the pages of F that are near a page of Q, with their links, beside the pages that the owner of their doc id has read.
    /// `of_q` has the pages of Q, and `pairs` are this worker's pairs of a document of F and a page of Q.
    ///
    /// # Errors
    /// [`Error::Input`] when a table is damaged; those of the disk; or when the run has ended.
    pub(super) fn put_near_pages(
        &self,
        net: &mut Net<'_>,
        of_q: &Directory,
        partitions: TablePartitions,
        mut pairs: Column<NearPair>,
        shelf: &mut WorkerPages,
    ) -> Result<NearPages> {
        let of_q = of_q.by_doc_id()?;
        let all_pairs = pairs.len();
        pairs.retain_mut(|pair| of_q.page(pair.a).is_none())?;
        let mut wanted = pairs.rows().map(|pair| Ok(pair?.a)).collect::<Result<Vec<DocId>>>()?;
        wanted.sort_unstable();
        wanted.dedup();
        let wanted = net.broadcast("near documents of F", wanted)?;
        let wanted = net.once_per_process(|| {
            let mut wanted = wanted.to_vec();
            wanted.sort_unstable();
            wanted.dedup();
            wanted
        })?;

        let pages = self.pages(net, &wanted, partitions)?;
        let links = self.links(net, &wanted, &of_q, partitions)?;
        let mut names: Vec<String> = pages.values().map(|page| page.source.clone()).collect();
        names.sort_unstable();
        names.dedup();
        let mut sources: Vec<String> =
            net.all_gather("inputs of earlier crawls", names)?.into_iter().flatten().collect();
        sources.sort_unstable();
        sources.dedup();

        let found = pages.len() as u64;
        let mut links = &links[..];
        for (doc_id, EarlierPage { result, mut capture, source }) in pages {
            let of_earlier_pages = links.partition_point(|link| link.src < doc_id);
            let own = &links[of_earlier_pages..];
            let (own, others) = own.split_at(own.partition_point(|link| link.src == doc_id));
            links = others;
            let targets: Vec<DocId> =
                own.iter().filter(|link| link.result == u64::from(result)).map(|link| link.dst).collect();
            capture.source = self.first_source + sources.partition_point(|other| *other < source) as u32;
            (capture.item, capture.worker, capture.slot) = (self.item, net.index() as u32, shelf.links.slots() as u32);
            shelf.links.push(&targets)?;
            shelf.fprints.push(&[])?;
            shelf.captures.push(&capture)?;
        }
        let mine = [all_pairs as u64 - pairs.len() as u64, found];
        let [superseded, pages] = net.all_sum("pages of earlier crawls", mine)?;
        Ok(NearPages { pairs, sources, superseded, unknown_pages: wanted.len() as u64 - pages, pages })
    }

    /// The files of a table of all results that this worker reads, each with the place of its result.
    fn files<'r>(&'r self, net: &Net<'_>, table: &'r str) -> impl Iterator<Item = (u32, &'r Run, &'r FileEntry)> {
        let (dealt, me) = (RoundRobin::new(net.peers()), net.index());
        let files = (0..)
            .zip(self.results)
            .flat_map(move |(result, run)| run.manifest.table(table).map(move |entry| (result, run, entry)));
        files.enumerate().filter(move |(number, _)| dealt.owner(*number) == me).map(|(_, file)| file)
    }

    /// The wanted pages that this worker owns, as the newest result has them.
    fn pages(
        &self,
        net: &mut Net<'_>,
        wanted: &[DocId],
        partitions: TablePartitions,
    ) -> Result<BTreeMap<DocId, EarlierPage>> {
        let mut found: Vec<Result<(usize, EarlierPage)>> = Vec::new();
        for (result, run, file) in self.files(net, "pages") {
            net.check()?;
            let has_some = |batch: &Table| Ok(batch.u64("doc_id")?.iter().any(|id| wanted.binary_search(id).is_ok()));
            scan_file(run, file, (&["doc_id"], &COLUMNS), has_some, &mut |batch| {
                for (row, doc_id) in batch.u64("doc_id")?.iter().enumerate() {
                    // A batch without wanted pages has no other columns.
                    if wanted.binary_search(doc_id).is_ok() {
                        found.push(Ok((partitions.owner(*doc_id), page(batch, row, result)?)));
                    }
                }
                Ok(())
            })?;
        }
        let mut pages: BTreeMap<DocId, Vec<EarlierPage>> = BTreeMap::new();
        for page in net.exchange_values("pages of earlier crawls", found)? {
            pages.entry(page.capture.doc_id).or_default().push(page);
        }
        Ok(pages.into_iter().filter_map(|(doc_id, rows)| Some((doc_id, newest(rows)?))).collect())
    }

    /// The links of wanted pages that this worker owns, to wanted pages and to pages of Q, ascending.
    fn links(
        &self,
        net: &mut Net<'_>,
        wanted: &[DocId],
        of_q: &ByDocId<'_>,
        partitions: TablePartitions,
    ) -> Result<Vec<EarlierLink>> {
        let mut found: Vec<EarlierLink> = Vec::new();
        for (result, run, file) in self.files(net, "links") {
            net.check()?;
            scan_file(run, file, (&["src", "dst"], &[]), |_| Ok(false), &mut |batch| {
                let mut of_source = (DocId::MAX, false);
                for (&src, &dst) in batch.u64("src")?.iter().zip(batch.u64("dst")?) {
                    if of_source.0 != src {
                        of_source = (src, wanted.binary_search(&src).is_ok());
                    }
                    if of_source.1 && (wanted.binary_search(&dst).is_ok() || of_q.page(dst).is_some()) {
                        found.push(EarlierLink { src, dst, result: u64::from(result) });
                    }
                }
                Ok(())
            })?;
        }
        let mut links = net.exchange("links of earlier crawls", found, |link| partitions.owner(link.src))?;
        links.sort_unstable();
        Ok(links)
    }
}

/// The newest record of a page, out of the first result that has it. The result of a batch has pages of the crawls before it, too, but
/// only some of their links.
fn newest(mut rows: Vec<EarlierPage>) -> Option<EarlierPage> {
    rows.sort_by_key(|row| row.result);
    let record = |row: &EarlierPage| (row.capture.fetch_time, row.capture.offset, row.source.clone());
    let newest = record(rows.last()?);
    rows.into_iter().find(|row| record(row) == newest)
}

/// The page in a row of the table `pages`.
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
