//! Columns of chunks: the chunks that count, and the pages that have them.
//!
//! A chunk is classified by all pages that have it, as the job does ([`judge`]). Exact copies are
//! left out after that, because the first copy represents all. Fingerprints come from the table
//! `fprint_docid` if the run has it, and otherwise from the pages' texts, which are read again from
//! the input.

use std::sync::Mutex;

use super::Making;
use super::staged::StagedIndex;
use crate::lookup::chunks::{FREQUENT_CHUNK, LIST, TEMPLATE};
use crate::lookup::rows::HashRow;
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::{FPrint, HostId, Number, Page};
use webtwin_base::threads;
use webtwin_core::chunks::ChunkRecipe;
use webtwin_core::overlap::FPrintDocId;
use webtwin_core::overlap::filter::{ChunkVerdict, judge};
use webtwin_job::Job;
use webtwin_results::pages::PageTable;
use webtwin_results::ranges::{RangedTable, Ranges};
use webtwin_spill::Partitions;

/// Approximate number of rows of a range of fingerprints.
const RANGE_ROWS: u64 = 1 << 21;

/// Maximum number of ranges of fingerprints.
const RANGES: u32 = 1024;

/// Assumed number of chunks of a page, which estimates the number of rows before any is read.
const CHUNKS_PER_PAGE: u64 = 64;

/// Writes postings, lists and counts.
pub(super) fn write(making: &Making<'_>, job: &Job, is_copy: &[bool], index_files: &mut StagedIndex) -> Result<()> {
    // The highest bit of a posting's value marks a list, so no rank may have it.
    if making.doc_ids.len() >= LIST as usize {
        let n_pages = making.doc_ids.len() as u64;
        return Err(Error::TooManyRows {
            what: "pages with chunks".into(),
            found: n_pages,
            allowed: u64::from(LIST) - 1,
        });
    }
    let hosts = hosts(making)?;
    let mut writer = Writer {
        postings: index_files.column("chunks")?,
        lists: index_files.column("chunks.pages")?,
        counts: vec![0; hosts.len()],
        is_copy,
        hosts: &hosts,
        job,
        docs: Vec::new(),
        scratch: Vec::new(),
    };
    let rows = making.run.rows("fprint_docid");
    match making.run.manifest.table("fprint_docid").next() {
        Some(_) => {
            let ranges = Ranges::new(rows, RANGE_ROWS, RANGES);
            let key = ("fprint", job.chunks.bits);
            let table = RangedTable::find(&making.run, "fprint_docid", key, ranges, making.settings.workers)?;
            let table = table.ok_or_else(|| Error::Invariant("the table fprint_docid is missing".into()))?;
            let mut rows = Vec::new();
            for range in 0..ranges.count() {
                let read = table.read(range, &["fprint", "doc_id"])?;
                rows.clear();
                for (&fprint, &page) in read.u64("fprint")?.iter().zip(read.u64("doc_id")?) {
                    rows.push(FPrintDocId::new(fprint, Page(making.rank(page)?)));
                }
                writer.take(&mut rows)?;
            }
        }
        None => {
            // The number of rows is unknown before the input is read, so an estimate determines the
            // ranges.
            let ranges = Ranges::new(making.doc_ids.len() as u64 * CHUNKS_PER_PAGE, RANGE_ROWS, RANGES);
            let mut streams = read_again(making, job, ranges)?;
            let (mut rows, mut rows_of_page) = (Vec::new(), Vec::new());
            for range in 0..ranges.count() {
                rows.clear();
                for buckets in &mut streams {
                    buckets.take(range, &mut rows_of_page)?;
                    rows.extend_from_slice(&rows_of_page);
                }
                writer.take(&mut rows)?;
            }
        }
    }
    let Writer { postings, lists, counts, .. } = writer;
    let mut column = index_files.column::<u32>("chunks.counts")?;
    column.extend(&counts)?;
    index_files.add("chunks", postings)?;
    index_files.add("chunks.pages", lists)?;
    index_files.add("chunks.counts", column)
}

struct Writer<'w> {
    postings: crate::lookup::column::ColumnWriter<HashRow>,
    lists: crate::lookup::column::ColumnWriter<u32>,
    counts: Vec<u32>,
    is_copy: &'w [bool],
    hosts: &'w [HostId],
    job: &'w Job,
    docs: Vec<Page>,
    scratch: Vec<HostId>,
}

impl Writer<'_> {
    /// Adds all rows of a range of fingerprints. Ranges come in ascending order.
    fn take(&mut self, rows: &mut [FPrintDocId]) -> Result<()> {
        rows.sort_unstable_by_key(FPrintDocId::key);
        for run in rows.chunk_by(|x, y| x.fprint() == y.fprint()) {
            self.docs.clear();
            self.docs.extend(run.iter().map(|row| row.doc));
            self.docs.dedup();
            let value = match judge(&self.docs, self.hosts, &self.job.overlap, &mut self.scratch) {
                ChunkVerdict::Template => TEMPLATE,
                ChunkVerdict::Frequent => FREQUENT_CHUNK,
                ChunkVerdict::Counts => {
                    self.docs.retain(|&page| !self.is_copy[page]);
                    self.docs.iter().for_each(|&page| self.counts[page] += 1);
                    self.list()?
                }
            };
            self.postings.push(HashRow::new(run[0].fprint(), value))?;
        }
        Ok(())
    }

    /// Returns the value of a posting: the page itself if it is the only one, or the position of a
    /// list.
    fn list(&mut self) -> Result<u32> {
        if let [page] = self.docs[..] {
            return Ok(page.0);
        }
        let row = self.lists.rows();
        if row + u64::from(LIST) >= u64::from(FREQUENT_CHUNK) {
            let purpose = "entries of lists of chunks".into();
            return Err(Error::TooManyRows { what: purpose, found: row, allowed: u64::from(FREQUENT_CHUNK - LIST) });
        }
        self.lists.push(self.docs.len() as u32)?;
        self.lists.extend(bytemuck::cast_slice(&self.docs))?;
        Ok(LIST | row as u32)
    }
}

/// Returns a host number for each page, by rank. The numbers serve only to compare hosts.
fn hosts(making: &Making<'_>) -> Result<Vec<HostId>> {
    let mut host_ids: std::collections::HashMap<String, HostId> = std::collections::HashMap::new();
    let mut hosts = Vec::with_capacity(making.doc_ids.len());
    for range in 0..making.ranges.count() {
        let rows = making.pages.read(range, &["host"])?;
        for host in rows.text("host")? {
            let next = HostId(host_ids.len() as u32);
            match host_ids.get(host) {
                Some(&number) => hosts.push(number),
                None => {
                    host_ids.insert(host.to_string(), next);
                    hosts.push(next);
                }
            }
        }
    }
    Ok(hosts)
}

/// Computes the fingerprints of all pages from the input, partitioned by range; one set of
/// partitions for each thread.
fn read_again(making: &Making<'_>, job: &Job, ranges: Ranges) -> Result<Vec<Partitions<FPrintDocId>>> {
    let pages = PageTable::from_run(&making.run)?;
    let sources = pages.0.text("source")?;
    let mut rows: Vec<usize> = (0..pages.0.rows()).collect();
    rows.sort_by_key(|&row| &sources[row]);
    // One input is the unit of work of a thread.
    let files: Vec<Vec<usize>> = rows.chunk_by(|&x, &y| sources[x] == sources[y]).map(<[usize]>::to_vec).collect();
    let count = files.len();
    let queue = Mutex::new(files.into_iter());
    let share = making.pool.part(making.settings.workers.max(1) as u64);
    let outcome = || Partitions::new(ranges.count(), &share);
    threads::for_each(making.settings.workers, count, outcome, |buckets: &mut Partitions<FPrintDocId>, _| {
        let next = queue.lock().expect("nothing panics while it holds this").next();
        let Some(rows) = next else { return Ok(()) };
        let (mut recipe, mut fprints) = (ChunkRecipe::new(&job.chunks), Vec::new());
        pages.read(&rows, &job.input, &mut |row, _, text| {
            recipe.fingerprint(text, &mut fprints);
            fprints.iter().try_for_each(|&fprint| {
                buckets.push(range_of(fprint, job, ranges), FPrintDocId::new(fprint, Page::from_index(row)))
            })
        })
    })
}

/// Returns the range of a fingerprint, which has the job's number of bits.
fn range_of(fprint: FPrint, job: &Job, ranges: Ranges) -> usize {
    ranges.range(fprint << (64 - job.chunks.bits))
}
