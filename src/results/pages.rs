//! Pages of a run, read again from its input.
//!
//! A run stores nothing of a page but its row in the table `pages`. A text can therefore only be
//! read from the unchanged input. Each page that is read again is checked against its row: length,
//! length of the text, fingerprint of the text.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::FinishedRun;
use super::scan::{scan, scan_some};
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::{DocId, FPrint};
use webtwin_core::chunks::{bytes, instead_of_text, whole};
use webtwin_job::InputSettings;
use webtwin_pages::again::FormerInput;
use webtwin_pages::html::Extractor;
use webtwin_pages::record::{RawPage, ReadResult};
use webtwin_pages::url::CanonicalUrl;
use webtwin_pages::warc::segments::{WarcSegment, join};
use webtwin_storage::location::{seen_from_anywhere, working_folder};
use webtwin_storage::table::{Table, TableColumn};
use webtwin_storage::texts::StringTable;

/// Table `pages` of a run, in memory; the rows whose content is in another record; the rows whose
/// record is in segments; and the folder in which the run was started.
#[derive(Debug)]
pub struct PageTable(pub Table, BTreeMap<usize, Record>, BTreeMap<usize, Vec<Place>>, String);

/// Place of a record: name of the input, and offset.
type Place = (String, u64);

/// Place of the content of a page.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Record {
    source: String,
    offset: u64,
    /// Canonical URL of the record. It differs from the URL of the page if the record of the page
    /// is a revisit.
    url: String,
}

/// Receiver of pages: index of the row, the page as fetched, and its visible text.
pub type PageReceiver<'t> = dyn FnMut(usize, &RawPage, &str) -> Result<()> + 't;

/// Columns of the table `pages` by which pages are checked.
struct Rows<'p> {
    urls: &'p StringTable,
    body_bytes: &'p [u64],
    text_bytes: &'p [u64],
    exact: &'p [FPrint],
    started_in: &'p str,
}

impl PageTable {
    /// Reads the table of a run.
    ///
    /// # Errors
    /// Returns any error of [`FinishedRun::table`], and [`Error::Input`] if a table lacks a column.
    pub fn from_run(run: &FinishedRun) -> Result<PageTable> {
        let mut pages =
            PageTable(run.table("pages")?, BTreeMap::new(), BTreeMap::new(), run.manifest.started_in.clone());
        pages.take_revisits(&run.table("revisits")?)?;
        pages.take_segments(&run.table("segments")?)?;
        Ok(pages)
    }

    /// Reads only the rows of some pages. `ids` must ascend.
    ///
    /// # Errors
    /// Returns any error of [`scan`].
    ///
    /// # Cost
    /// Memory for these rows, and for the batches of [`scan`].
    pub fn some(run: &FinishedRun, ids: &[DocId]) -> Result<PageTable> {
        let mut rows = Table::default();
        let is_wanted = |doc_id: &DocId| ids.binary_search(doc_id).is_ok();
        let columns = ["url", "host", "body_bytes", "text_bytes", "chunks", "exact", "simhash", "has_simhash"];
        let columns = [&columns[..], &["title", "source", "offset"]].concat();
        let any = |batch: &Table| Ok(batch.u64("doc_id")?.iter().any(is_wanted));
        scan_some(run, "pages", (&["doc_id"], &columns), any, &mut |batch| {
            let doc_ids = batch.u64("doc_id")?;
            let selected: Vec<usize> = (0..batch.rows()).filter(|&row| is_wanted(&doc_ids[row])).collect();
            if selected.is_empty() { Ok(()) } else { rows.append(batch.pick(&selected)) }
        })?;
        if rows.columns.is_empty() {
            rows = Table::new([("doc_id", TableColumn::Id(Vec::new()))]);
        }
        let mut pages = PageTable(rows, BTreeMap::new(), BTreeMap::new(), run.manifest.started_in.clone());
        let columns = ["doc_id", "original_url", "original_source", "original_offset"];
        scan(run, "revisits", &columns, &mut |batch| pages.take_revisits(batch))?;
        let columns = ["doc_id", "source", "offset"];
        scan(run, "segments", &columns, &mut |batch| pages.take_segments(batch))?;
        Ok(pages)
    }

    /// Adds the places of the content of pages whose own record is a revisit.
    fn take_revisits(&mut self, revisits: &Table) -> Result<()> {
        if revisits.rows() == 0 {
            return Ok(());
        }
        let (urls, sources) = (revisits.text("original_url")?, revisits.text("original_source")?);
        let offsets = revisits.u64("original_offset")?;
        for (number, doc_id) in revisits.u64("doc_id")?.iter().enumerate() {
            let Some(row) = self.row(*doc_id)? else { continue };
            let (source, url) = (sources[number].to_string(), urls[number].to_string());
            self.1.insert(row, Record { source, offset: offsets[number], url });
        }
        Ok(())
    }

    /// Adds the places of the segments of pages.
    fn take_segments(&mut self, segments: &Table) -> Result<()> {
        if segments.rows() == 0 {
            return Ok(());
        }
        let (sources, offsets) = (segments.text("source")?, segments.u64("offset")?);
        // The rows are sorted by page and number of the segment.
        for (number, doc_id) in segments.u64("doc_id")?.iter().enumerate() {
            let Some(row) = self.row(*doc_id)? else { continue };
            self.2.entry(row).or_default().push((sources[number].to_string(), offsets[number]));
        }
        Ok(())
    }

    /// Returns the doc ids, one per row, ascending.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the table has no such column.
    pub fn doc_ids(&self) -> Result<&[DocId]> {
        self.0.u64("doc_id")
    }

    /// Returns the canonical URLs, one per row.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the table has no such column.
    pub fn urls(&self) -> Result<&StringTable> {
        self.0.text("url")
    }

    /// Returns the index of the row of a page, if it is in the table.
    ///
    /// # Errors
    /// Returns any error of [`PageTable::doc_ids`].
    pub fn row(&self, page: DocId) -> Result<Option<usize>> {
        Ok(self.doc_ids()?.binary_search(&page).ok())
    }

    /// Returns the place of the content of the page in a row: the name of an input, and the offset
    /// of a record in it. If the record of the page is a revisit, this is the place of its
    /// original.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the table lacks a column.
    pub fn place(&self, row: usize) -> Result<(&str, u64)> {
        match self.1.get(&row) {
            Some(original) => Ok((&original.source, original.offset)),
            None => Ok((&self.0.text("source")?[row], self.0.u64("offset")?[row])),
        }
    }

    /// Reads the pages of some rows, each once, and passes them to `take` in input order. Pages
    /// whose records are in segments come last.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if an input is missing, or has other content in the place of a
    /// page, and any error of `take`.
    ///
    /// # Cost
    /// Holds one page in memory. [`FormerInput::read`] describes which other bytes are read.
    pub fn read(&self, rows: &[usize], input: &InputSettings, take: &mut PageReceiver<'_>) -> Result<()> {
        let rows_read = Rows {
            urls: self.urls()?,
            body_bytes: self.0.u64("body_bytes")?,
            text_bytes: self.0.u64("text_bytes")?,
            exact: self.0.u64("exact")?,
            started_in: &self.3,
        };
        let (sources, offsets) = (self.0.text("source")?, self.0.u64("offset")?);
        let record = |&row: &usize| {
            let record_of_row = || Record {
                source: sources[row].to_string(),
                offset: offsets[row],
                url: rows_read.urls[row].to_string(),
            };
            (self.1.get(&row).cloned().unwrap_or_else(record_of_row), row)
        };
        let in_segments = |row: &&usize| self.2.contains_key(row);
        let mut records: Vec<(Record, usize)> = rows.iter().filter(|row| !in_segments(row)).map(record).collect();
        records.sort_unstable();
        records.dedup();
        let mut extractor = Extractor::new(&input.limits);
        for input_records in records.chunk_by(|x, y| x.0.source == y.0.source) {
            rows_read.read_input(input_records, input, &mut extractor, take)?;
        }
        let mut segment_records: Vec<(Record, usize)> = rows.iter().filter(in_segments).map(record).collect();
        segment_records.sort_unstable();
        segment_records.dedup();
        for (first, row) in segment_records {
            let later_segments = &self.2[&row];
            let page = rows_read.read_segments(&first, later_segments, input)?;
            let is_taken = match page {
                Some(page) => rows_read.take_if_same(row, page, &mut extractor, take)?,
                None => false,
            };
            if !is_taken {
                return Err(changed_page_error(&first.source, first.offset, &first.url));
            }
        }
        Ok(())
    }
}

impl Rows<'_> {
    /// Opens an input relative to the folder in which the run was started. If that fails, opens it
    /// relative to the current folder, because the input may have been moved.
    fn open(&self, name: &str, input: &InputSettings) -> Result<FormerInput> {
        let resolved_name = seen_from_anywhere(name, self.started_in);
        FormerInput::open(&resolved_name, input)
            .or_else(|first| {
                let now = seen_from_anywhere(name, &working_folder());
                if now == resolved_name {
                    return Err(first);
                }
                FormerInput::open(&now, input).map_err(|_| first)
            })
            .map_err(|cause| {
                let remedy = match resolved_name == name || self.started_in.is_empty() {
                    true => String::new(),
                    false => format!("; if the input was moved, start in the folder to which {name} is relative"),
                };
                Error::input(name, format!("the run's input cannot be read again: {cause}{remedy}"))
            })
    }

    /// Reads pages of one input, given with their rows and in ascending order of offsets.
    fn read_input(
        &self,
        records: &[(Record, usize)],
        input: &InputSettings,
        extractor: &mut Extractor,
        take: &mut PageReceiver<'_>,
    ) -> Result<()> {
        let name = &records[0].0.source;
        let reader = self.open(name, input)?;
        let mut offsets: Vec<u64> = records.iter().map(|(record, _)| record.offset).collect();
        offsets.dedup();
        // Rows by URL and offset of a record, which may be the content of several rows.
        let mut left: HashMap<&str, BTreeMap<u64, Vec<usize>>> = HashMap::new();
        for (record, row) in records {
            left.entry(&record.url).or_default().entry(record.offset).or_default().push(*row);
        }
        let urls_wanted: HashSet<&str> = left.keys().copied().collect();
        let is_wanted = |url: &str| CanonicalUrl::parse(url).is_ok_and(|url| urls_wanted.contains(url.as_str()));
        reader.read(&offsets, is_wanted, input, &mut |result| {
            let ReadResult::Page(mut page) = result else { return Ok(()) };
            let Ok(url) = CanonicalUrl::parse(&page.url) else { return Ok(()) };
            let Some(rows) = left.get_mut(url.as_str()).and_then(|of| of.get_mut(&page.offset)) else { return Ok(()) };
            let text = match extractor.page(&page, &url)? {
                Ok(extracted) => extracted.text,
                Err((reason, detail)) => {
                    let message =
                        format!("the record at offset {} cannot be read: {}: {detail}", page.offset, reason.as_str());
                    return Err(Error::input(name, message));
                }
            };
            if rows.first().is_some_and(|&row| self.is_same(row, &page, text)) {
                for row in std::mem::take(rows) {
                    self.urls[row].clone_into(&mut page.url);
                    take(row, &page, text)?;
                }
            }
            Ok(())
        })?;
        let lost_pages = left.iter().flat_map(|(url, of)| of.iter().map(move |(offset, rows)| (offset, url, rows)));
        match lost_pages.filter(|(.., rows)| !rows.is_empty()).min() {
            None => Ok(()),
            Some((offset, url, _)) => Err(changed_page_error(name, *offset, url)),
        }
    }

    /// Joins the page in the segments of a record: the first, and those that continue it. Returns
    /// `None` if one of them no longer exists.
    fn read_segments(
        &self,
        first: &Record,
        following_places: &[Place],
        input: &InputSettings,
    ) -> Result<Option<RawPage>> {
        let mut segments = Vec::with_capacity(1 + following_places.len());
        let mut origin = None;
        let places =
            std::iter::once((&first.source, first.offset)).chain(following_places.iter().map(|(name, at)| (name, *at)));
        for ((name, offset), number) in places.zip(1..) {
            let mut page = None;
            self.open(name, input)?.read(&[offset], |_| true, input, &mut |read| {
                page = page.take().or(WarcSegment::pick(read, offset, number, origin));
                Ok(())
            })?;
            let Some(segment) = page else { return Ok(None) };
            origin = Some(segment.origin);
            segments.push(segment);
        }
        Ok(join(&segments, input).ok().map(|page| RawPage { offset: first.offset, ..page }))
    }

    /// Passes a page from a segmented record to `take`, if it matches the row. Returns true if it
    /// does.
    fn take_if_same(
        &self,
        row: usize,
        mut page: RawPage,
        extractor: &mut Extractor,
        take: &mut PageReceiver<'_>,
    ) -> Result<bool> {
        let Ok(url) = CanonicalUrl::parse(&page.url) else { return Ok(false) };
        let Ok(extracted) = extractor.page(&page, &url)? else { return Ok(false) };
        if !self.is_same(row, &page, extracted.text) {
            return Ok(false);
        }
        self.urls[row].clone_into(&mut page.url);
        take(row, &page, extracted.text)?;
        Ok(true)
    }

    /// True if a page that was read again is the one that the run read.
    fn is_same(&self, row: usize, page: &RawPage, text: &str) -> bool {
        page.body.len() as u64 == self.body_bytes[row]
            && text.len() as u64 == self.text_bytes[row]
            && [0, whole(text), instead_of_text(bytes(&page.body))].contains(&self.exact[row])
    }
}

fn changed_page_error(name: &str, offset: u64, url: &str) -> Error {
    let message = format!(
        "the record at offset {offset} is not {url} as the run read it; the input has changed since, so run again"
    );
    Error::input(name, message)
}
