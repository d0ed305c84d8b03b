//! The live index: the pages that have been fetched, and the clusters and advice that follow from
//! them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::advice::advisor::Advisor;
use crate::advice::mirrors::SubstituteUrl;
use crate::advice::place::{host, place_of};
use crate::advice::{Advice, is_probe};
use crate::answer::{AddedPageAnswer, Figures, MirroredFolder, OriginalPage, PageState, UrlAnswer, UrlVerdict};
use crate::digest::PageDigest;
use crate::folder::{ADVICE, check_settings, line, lock, write_advice};
use crate::log::{Log, LogPosition};
use crate::near::{EarlierPages, WHOLE_UNITS};
use crate::pages::{LivePageRow, LivePages, NONE};
use crate::postings::{ChunkPostings, POSTING_BYTES};
use crate::record::{LogPayload, LoggedPage, page_record, url_of};
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::{DocId, doc_id};
use webtwin_job::{Job, OverlapSettings};
use webtwin_pages::url::CanonicalUrl;

/// Maximum number of postings in memory. If memory is bounded, the postings take at most a quarter
/// of the memory.
const POSTINGS_IN_MEMORY: u64 = 1 << 20;

/// Fixed memory, in bytes, that does not grow with the crawl: the process itself and pages in
/// flight.
const IDLE_BYTES: u64 = 64 << 20;

/// Bytes that a page takes in the list of its registered domain.
const DOMAIN_PAGE_BYTES: u64 = 8;

/// Maximum number of copies of a page that an answer lists.
const MAX_COPIES: usize = 20;

/// A live index, open for one writer.
///
/// # Examples
/// ```
/// use webtwin_job::Job;
/// use webtwin_live::{Digester, LiveIndex, PageState, UrlVerdict};
/// use webtwin_pages::record::{PageForm, RawPage};
/// use webtwin_pages::url::CanonicalUrl;
///
/// let (folder, job) = (tempfile::tempdir()?, Job::default());
/// let (mut index, mut digester) = (LiveIndex::open(folder.path(), &job)?, Digester::new(&job));
/// let text = "Chapter one of the manual, which is long enough to be compared. ".repeat(20);
/// let mut add = |url| {
///     let page = RawPage::new(url, text.clone().into_bytes(), PageForm::Text);
///     let digest = digester.digest(&page)?.unwrap();
///     index.add(digest)
/// };
/// assert_eq!(add("http://a.example/1")?.state, PageState::New);
/// assert_eq!(add("http://b.example/1")?.state, PageState::Exact);
/// let url = CanonicalUrl::parse("http://b.example/2")?;
/// assert_eq!(index.ask(&url)?, UrlVerdict::Fetch { why: "new" });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct LiveIndex {
    folder: PathBuf,
    overlap: OverlapSettings,
    /// Memory budget of the index, in bytes; 0 for no limit.
    memory_bytes: u64,
    log: Log,
    pages: LivePages,
    postings: ChunkPostings,
    files: BTreeMap<String, u64>,
    missing: u64,
    advisor: Advisor,
    /// Number of published items of advice: those that are on disk together with the records that
    /// they follow from.
    n_published: usize,
    advice_file: File,
    /// Lock file, held while the index is open.
    _lock: File,
}

/// Pages and notes that were added and are not yet on disk.
#[derive(Debug)]
pub struct UnsyncedWrites {
    file: Arc<File>,
    advice: usize,
}

impl UnsyncedWrites {
    /// Waits until the writes are on disk. The index can be used meanwhile.
    ///
    /// # Errors
    /// Returns [`Error::Storage`] if the disk fails. The writes must not be acknowledged then.
    pub fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(|cause| Error::storage("log of the index", cause))
    }
}

impl LiveIndex {
    /// Opens the index in a folder, or creates one, and replays its log.
    ///
    /// # Errors
    /// Returns [`Error::Usage`] if another process has the index open or if it was created with
    /// other settings, [`Error::Input`] if it is damaged, and [`Error::Storage`] if it cannot be
    /// read or written.
    pub fn open(folder: &Path, job: &Job) -> Result<LiveIndex> {
        let failed = |cause| Error::storage(folder.display().to_string(), cause);
        fs::create_dir_all(folder).map_err(failed)?;
        let lock = lock(folder)?;
        check_settings(folder, job)?;
        let mut pages = LivePages::default();
        let mut postings = ChunkPostings::open(&folder.join("postings"), postings_in_memory(job.effort.memory_bytes))?;
        let (mut files, mut missing, mut advisor) = (BTreeMap::new(), 0, Advisor::default());
        // Runs already have the postings of pages before this one. Only later pages are inserted
        // again.
        let first_missing = postings.first_missing();
        let log = Log::open(&folder.join("log"), |log, place, payload| {
            match LogPayload::decode(payload)? {
                LogPayload::Page(record) => {
                    let page = add_page(&mut pages, &record, place);
                    if page >= first_missing {
                        record.postings().for_each(|hash| postings.insert(hash, page));
                    }
                    advisor.observe(log, &mut pages, page, &record)?;
                }
                LogPayload::Missing(url) => {
                    missing += 1;
                    advisor.mirrors.note_missing(&url);
                }
                LogPayload::File(name, offset) => drop(files.insert(name, offset)),
                LogPayload::Rules(domain, rules) => advisor.take_rules(&domain, rules),
            }
            Ok(())
        })?;
        // A log that lost its end, for example from an older backup, must not be used with newer
        // runs: they would find pages that do not exist.
        if (pages.len() as u32) < first_missing {
            let why = "the postings have pages that the log lacks; remove the folder `postings`, and it is rebuilt";
            return Err(Error::input(folder.display().to_string(), why));
        }
        let advice_file = write_advice(folder, &advisor.published_advice).map_err(failed)?;
        let n_published = advisor.published_advice.len();
        Ok(LiveIndex {
            folder: folder.to_path_buf(),
            overlap: job.overlap,
            memory_bytes: job.effort.memory_bytes,
            log,
            pages,
            postings,
            files,
            missing,
            advisor,
            n_published,
            advice_file,
            _lock: lock,
        })
    }

    /// Adds a page. The page is durable once [`LiveIndex::flush`] and [`UnsyncedWrites::sync`] have
    /// returned.
    ///
    /// A page that was added before with the same text changes nothing. So a client that has
    /// received no answer may send its pages again.
    ///
    /// # Errors
    /// Returns [`Error::MemoryLimit`] if the index would exceed the memory that the job allows;
    /// pages that were added before stay. Returns [`Error::TooManyRows`] if there are no page
    /// numbers left, and any error of reading the log or the postings.
    ///
    /// # Cost
    /// One look-up for each chunk of the sample of the page, and one for each folder that the
    /// folders of the page are compared with.
    pub fn add(&mut self, page: PageDigest) -> Result<AddedPageAnswer> {
        if let Some(existing_page) = self.pages.by_id(page.doc_id)
            // A repeated page is answered and not logged again, so that retries do not let the log
            // grow.
            && self.pages.exact(existing_page) == page.exact
        {
            let answer = self.answer(existing_page, page_record(&self.log, &self.pages, existing_page)?)?;
            return Ok(AddedPageAnswer { state: PageState::Again, ..answer });
        }
        if self.pages.len() as u32 == NONE {
            return Err(Error::TooManyRows {
                what: "pages".into(),
                found: u64::from(NONE),
                allowed: u64::from(NONE) - 1,
            });
        }
        self.check_memory()?;
        let host = self.pages.host(host(&page.url));
        let record = self.earlier().decide(&page, host)?;
        let record = LogPayload::Page(record);
        let place = self.log.append(&record.encode());
        let LogPayload::Page(record) = record else { unreachable!("it is a page") };
        let number = add_page(&mut self.pages, &record, place);
        record.postings().for_each(|hash| self.postings.insert(hash, number));
        self.advisor.observe(&self.log, &mut self.pages, number, &record)?;
        self.answer(number, record)
    }

    /// Records that a URL was fetched and gave no page.
    pub fn note_missing(&mut self, url: &CanonicalUrl) {
        self.missing += 1;
        self.advisor.mirrors.note_missing(url.as_str());
        self.log.append(&LogPayload::Missing(url.as_str().to_string()).encode());
    }

    /// Records that a file has been read up to an offset. The record is flushed together with the
    /// pages that were added since the last flush.
    pub fn note_file(&mut self, name: &str, offset: u64) {
        self.files.insert(name.to_string(), offset);
        self.log.append(&LogPayload::File(name.to_string(), offset).encode());
    }

    /// Returns the files of [`LiveIndex::note_file`], each with the offset up to which it has been
    /// read.
    pub fn files(&self) -> impl Iterator<Item = (&str, u64)> {
        self.files.iter().map(|(name, &offset)| (name.as_str(), offset))
    }

    /// Writes pending records to the operating system; returns `None` if there are none.
    ///
    /// # Errors
    /// Returns [`Error::Storage`] if the log cannot be written. The records stay pending, and may
    /// be flushed again.
    pub fn flush(&mut self) -> Result<Option<UnsyncedWrites>> {
        let advice = self.advisor.published_advice.len();
        Ok(self.log.flush()?.map(|file| UnsyncedWrites { file, advice }))
    }

    /// Publishes the advice that follows from writes that are now on disk: [`LiveIndex::advice`]
    /// returns it from here on. Then calls [`LiveIndex::tend`].
    ///
    /// # Errors
    /// Returns [`Error::Storage`] if `advice.ndjson` cannot be written, and any error of
    /// [`LiveIndex::tend`].
    pub fn synced(&mut self, unsynced: &UnsyncedWrites) -> Result<()> {
        let new = &self.advisor.published_advice[self.n_published.min(unsynced.advice)..unsynced.advice];
        let lines: String = new.iter().map(line).collect();
        let result = self.advice_file.write_all(lines.as_bytes());
        result.map_err(|cause| Error::storage(self.folder.join(ADVICE).display().to_string(), cause))?;
        self.n_published = self.n_published.max(unsynced.advice);
        self.tend()
    }

    /// Advances background work: writes and merges sorted runs of postings, and learns URL rules.
    /// Must be called now and then even if no pages are added. Does nothing while records are not
    /// flushed.
    ///
    /// # Errors
    /// Returns any error of reading the log and of writing postings.
    pub fn tend(&mut self) -> Result<()> {
        // The background threads read the log files, which lack records that are not flushed.
        if !self.log.is_flushed() {
            return Ok(());
        }
        self.postings.tend(self.pages.len() as u32)?;
        let (log, pages) = (self.log.reader(), &self.pages);
        let page_state = |page| (pages.record(page), pages.cluster(page));
        if let Some((domain, rules)) = self.advisor.rules.tend(&log, page_state)? {
            self.log.append(&LogPayload::Rules(domain.clone(), rules.clone()).encode());
            self.advisor.take_rules(&domain, rules);
        }
        Ok(())
    }

    /// Returns the published advice with sequence numbers above `first`, the oldest first.
    pub fn advice(&self, first: u64) -> &[Advice] {
        &self.advisor.published_advice[(first as usize).min(self.n_published)..self.n_published]
    }

    /// Returns the newest page of a URL and its copies; `None` if the URL was not added.
    ///
    /// # Errors
    /// Returns any error of reading the log.
    pub fn known(&self, url: &CanonicalUrl) -> Result<Option<UrlAnswer>> {
        let Some(page) = self.pages.by_id(doc_id(url.as_str())) else { return Ok(None) };
        let copies = self.pages.copies(page).take(MAX_COPIES);
        let copies = copies.map(|member| url_of(&self.log, &self.pages, member)).collect::<Result<_>>()?;
        let record = page_record(&self.log, &self.pages, page)?;
        let fetch_time = record.fetch_time;
        Ok(Some(UrlAnswer { answer: self.answer(page, record)?, fetch_time, copies }))
    }

    /// Decides whether a URL should be fetched, and from which URL.
    ///
    /// # Errors
    /// Returns any error of reading the log.
    pub fn ask(&self, url: &CanonicalUrl) -> Result<UrlVerdict> {
        let url = url.as_str();
        let url_of_page = |page| url_of(&self.log, &self.pages, page).map(Some);
        if self.pages.by_id(doc_id(url)).is_some() {
            return Ok(UrlVerdict::Skip { why: "fetched", url: Some(url.to_string()) });
        }
        // A small sample of URLs is fetched against the advice, so that wrong advice is discovered.
        let is_probe = is_probe(place_of(url));
        let probed = |verdict| if is_probe { UrlVerdict::Fetch { why: "probe" } } else { verdict };
        if let Some(canonical) = self.advisor.rules.rewrite(url) {
            let is_fetched = self.pages.by_id(doc_id(&canonical)).is_some();
            return Ok(probed(match is_fetched {
                true => UrlVerdict::Skip { why: "url_rule", url: Some(canonical) },
                false => UrlVerdict::Rewrite { why: "url_rule", url: canonical },
            }));
        }
        match self.advisor.mirrors.instead(&self.pages, url) {
            Some(SubstituteUrl::Fetched(page)) => {
                return Ok(probed(UrlVerdict::Skip { why: "mirror", url: url_of_page(page)? }));
            }
            Some(SubstituteUrl::Url(url)) => return Ok(probed(UrlVerdict::Rewrite { why: "mirror", url })),
            None => {}
        }
        if self.advisor.traps.find(url).is_some() {
            return Ok(probed(UrlVerdict::Skip { why: "trap", url: None }));
        }
        Ok(UrlVerdict::Fetch { why: "new" })
    }

    /// Returns the doc id of each URL that was added, and the doc id of the first page of its
    /// cluster. Only the newest page of a URL counts.
    pub fn clusters(&self) -> impl Iterator<Item = (DocId, DocId)> + '_ {
        let newest =
            (0..self.pages.len() as u32).filter(|&page| self.pages.by_id(self.pages.doc_id(page)) == Some(page));
        newest.map(|page| (self.pages.doc_id(page), self.pages.doc_id(self.pages.cluster(page))))
    }

    /// Returns counts of the contents of the index.
    pub fn figures(&self) -> Figures {
        Figures {
            pages: self.pages.len() as u64,
            hosts: self.pages.hosts() as u64,
            clusters: self.pages.clusters() as u64,
            missing: self.missing,
            mirrors: self.advisor.mirrors.count_given() as u64,
            url_rules: self.advisor.rules.count() as u64,
            advice: self.n_published as u64,
            log_bytes: self.log.bytes(),
            runs: self.postings.runs() as u64,
        }
    }

    /// Checks that the index fits in the memory that the job allows.
    fn check_memory(&self) -> Result<()> {
        let needed_bytes = IDLE_BYTES + self.memory_bytes();
        if self.memory_bytes == 0 || needed_bytes <= self.memory_bytes {
            return Ok(());
        }
        Err(Error::MemoryLimit {
            what: format!("a live index of {} pages", self.pages.len()),
            needed_bytes: needed_bytes + needed_bytes / 2,
            allowed_bytes: self.memory_bytes,
            setting: "effort.memory_bytes".into(),
        })
    }

    /// Returns the memory that the index takes, in bytes; an estimate.
    fn memory_bytes(&self) -> u64 {
        let Advisor { folders, mirrors, .. } = &self.advisor;
        self.pages.bytes()
            + self.postings.bytes()
            + folders.bytes()
            + mirrors.bytes()
            + DOMAIN_PAGE_BYTES * self.pages.len() as u64
    }

    fn earlier(&self) -> EarlierPages<'_> {
        EarlierPages {
            pages: &self.pages,
            postings: &self.postings,
            log: &self.log,
            mirrors: &self.advisor.mirrors,
            overlap: &self.overlap,
        }
    }

    fn answer(&self, page: u32, record: LoggedPage) -> Result<AddedPageAnswer> {
        let match_kind = match record.of {
            None => None,
            Some((original, resemblance)) => {
                let measure = match (record.sample.is_empty(), self.pages.host_of(original) == self.pages.host_of(page))
                {
                    (true, _) => "exact",
                    (false, true) => "view",
                    (false, false) => "overlap",
                };
                let resemblance = f64::from(resemblance) / WHOLE_UNITS as f64;
                Some(OriginalPage { url: url_of(&self.log, &self.pages, original)?, resemblance, by: measure })
            }
        };
        let state = match &match_kind {
            None => PageState::New,
            Some(match_kind) if match_kind.by == "exact" => PageState::Exact,
            Some(_) => PageState::Near,
        };
        let collection = self
            .advisor
            .mirrors
            .folders(&record.url)
            .map(|(prefix, kept)| MirroredFolder { prefix: prefix.to_string(), kept: kept.to_string() });
        Ok(AddedPageAnswer {
            doc_id: format!("{:016x}", self.pages.doc_id(page)),
            state,
            near: match_kind,
            cluster: format!("{:016x}", self.pages.doc_id(self.pages.cluster(page))),
            collection,
            url: record.url,
        })
    }
}

/// Returns the maximum number of postings that are kept in memory, for a memory budget in bytes.
fn postings_in_memory(memory_bytes: u64) -> usize {
    let limit = match memory_bytes {
        0 => POSTINGS_IN_MEMORY,
        bytes => (bytes / 4 / (2 * POSTING_BYTES)).min(POSTINGS_IN_MEMORY),
    };
    limit as usize
}

/// Adds a page of the log to the table of pages; returns its number.
fn add_page(pages: &mut LivePages, record: &LoggedPage, place: LogPosition) -> u32 {
    let host = pages.host(host(&record.url));
    let page = pages.push(LivePageRow {
        doc_id: doc_id(&record.url),
        exact: record.exact,
        place: place_of(&record.url),
        record: place,
        host,
        title: record.title,
        counting: record.counting,
        original: record.of.map_or(NONE, |(of, _)| of),
    });
    record.joins.iter().for_each(|&other| pages.join(other, page));
    page
}
