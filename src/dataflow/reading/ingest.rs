//! Reads the input: the workers of a process pull work items until there are none left, and add
//! what they read to their local pages.
//!
//! Items are dealt out to processes in turn and pulled within a process, so a single large file
//! keeps all workers busy. The result does not depend on which worker reads an item.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use xxhash_rust::xxh3::xxh3_64;

use crate::enough_memory::enough_bytes;
use crate::memory_estimate::{MemoryEstimate, RunSize};
use crate::reading::addresses::{HostAddress, ItemAddresses};
use crate::reading::capture::{Capture, mime, short_title};
use crate::reading::captures::host_key;
use crate::reading::item_part::ItemPart;
use crate::reading::item_record::SavedPage;
use crate::reading::known_pages::{KnownPages, content};
use crate::reading::other_records::{RedirectRecord, RevisitRecord, SegmentRecord};
use crate::reading::rejection::Rejection;
use crate::reading::resume::{Recorder, Resume};
use crate::reading::shingle_sets::ShingleSets;
use crate::reading::tools::Tools;
use crate::reading::work_queue::WorkQueue;
use crate::reading::worker_pages::WorkerPages;
use crate::shuffle::memory::too_little;
use webtwin_base::error::Result;
use webtwin_base::ids::doc_id;
use webtwin_base::progress::Progress;
use webtwin_core::chunks::{bytes, instead_of_text};
use webtwin_engine::Net;
use webtwin_job::{Job, JobKind, LinkSettings, Simhash};
use webtwin_pages::damage::Damage;
use webtwin_pages::html::ExtractedPage;
use webtwin_pages::public_suffix::domain_of;
use webtwin_pages::record::{self, NonPage, RawPage, ReadResult, Reason, RefusedRecord};
use webtwin_pages::url::{CanonicalUrl, refusal_reason};
use webtwin_pages::work_items::WorkList;

/// Work of a run, shared by the workers of a process.
#[derive(Debug)]
pub struct Queue {
    /// Inputs, and the work items into which they are cut.
    pub work: WorkList,
    turns: WorkQueue,
    /// Queue of the work items of earlier crawls.
    original_turns: WorkQueue,
    /// Progress of reading, for display.
    pub progress: Arc<Progress>,
    /// Checkpoints of finished items, if the run can be resumed.
    pub resume: Option<Resume>,
    /// Lock of the worker that reads a large page while memory is limited. Only one large page is
    /// read at a time, because it takes up to ten times its bytes.
    large_page: Mutex<()>,
}

/// Bytes above which a page is large.
const LARGE_PAGE: usize = 1 << 20;

impl Queue {
    /// Creates a queue of all items.
    pub fn new(work: WorkList) -> Arc<Queue> {
        Queue::resuming(work, None)
    }

    /// Creates a queue of all items, some of which may have checkpoints of an earlier run.
    pub fn resuming(work: WorkList, resume: Option<Resume>) -> Arc<Queue> {
        let progress = Arc::new(Progress::new(work.weight()));
        let (turns, original_turns) = Default::default();
        Arc::new(Queue { work, turns, original_turns, progress, resume, large_page: Mutex::default() })
    }
}

/// Reads work items until there are none left for this process. Items with a checkpoint of an
/// earlier run are restored instead. Items of earlier crawls are read last, and only if there are
/// revisits.
///
/// # Errors
/// Returns an error if an input as a whole or its store fails; never for damaged content. Items
/// that were finished before the error have checkpoints, if the run writes checkpoints.
pub fn read(net: &mut Net<'_>, queue: &Queue, job: &Job) -> Result<WorkerPages> {
    let mut reader = PageIngest::new(net, job)?;
    if job.effort.memory_bytes > 0 {
        // Limits memory for the first item, which may be the only one.
        let workers = net.workers_per_process();
        let budget = MemoryEstimate::default().budget_for_lists(run_size(net, 0), job.effort.memory_bytes);
        reader.local_pages.hold_lists_at_most(budget / workers as u64)?;
    }
    let mut recorder = queue.resume.as_ref().map(Recorder::new);
    let items = &queue.work.items;
    let first_original = items.partition_point(|item| !queue.work.is_original(item.input));
    let mut result = read_items(net, queue, &queue.turns, 0..first_original, job, &mut reader, &mut recorder);
    if result.is_ok() && first_original < items.len() {
        let revisits = net.all_sum("revisits to resolve", [reader.local_pages.revisits.len() as u64])?;
        if revisits != [0] {
            let originals = first_original..items.len();
            result = read_items(net, queue, &queue.original_turns, originals, job, &mut reader, &mut recorder);
        }
    }
    // Progress and checkpoints are also written after an error, so that a resumed run continues
    // from here.
    if let Some(resume) = &queue.resume {
        resume.known.fetch_add(reader.known_taken, Ordering::Relaxed);
    }
    if let Some(recorder) = &mut recorder {
        recorder.write(&reader.local_pages);
    }
    reader.local_pages.contents = Vec::new();
    result.map(|()| reader.local_pages)
}

/// Reads the work items in a range, as this process gets its turns.
fn read_items(
    net: &Net<'_>,
    queue: &Queue,
    turns: &WorkQueue,
    range: Range<usize>,
    job: &Job,
    reader: &mut PageIngest,
    recorder: &mut Option<Recorder<'_>>,
) -> Result<()> {
    loop {
        let number = range.start + turns.next(net);
        if number >= range.end {
            return Ok(());
        }
        let items = &queue.work.items;
        let item = &items[number];
        net.check()?;
        reader.item = (number as u32, item.input);
        let begin = ItemPart::from_here(&reader.local_pages);
        let is_resumed = match &queue.resume {
            Some(resume) => resume.restore(number, item.input, net.index() as u32, &mut reader.local_pages)?,
            None => false,
        };
        if !is_resumed {
            if let Some(resume) = &queue.resume {
                reader.records = true;
                reader.known_pages.get_or_insert_with(|| resume.known_pages(job.effort.memory_bytes > 0));
            }
            reader.read(net, queue, job)?;
        }
        // A restored item is written again only if its checkpoint must move to this run.
        if let (Some(recorder), Some(resume)) = (recorder.as_mut(), &queue.resume)
            && (!is_resumed || resume.store.moves(number))
        {
            recorder.note(number, begin.to_here(&reader.local_pages), &reader.local_pages);
        }
        reserve_memory_to_continue(net, &mut reader.local_pages, queue.work.items.len(), job)?;
        queue.progress.done.fetch_add(item.weight(), Ordering::Relaxed);
    }
}

/// Spills the lists of the local pages beyond the memory limit, if there is one. Refuses to
/// continue if the local pages of a process would exceed the limit even then, extrapolated from the
/// items read so far.
fn reserve_memory_to_continue(net: &Net<'_>, local_pages: &mut WorkerPages, items: usize, job: &Job) -> Result<()> {
    let allowed_bytes = job.effort.memory_bytes;
    if allowed_bytes == 0 {
        return Ok(());
    }
    let (own_estimate, items_done, workers) =
        (MemoryEstimate::on(local_pages), local_pages.items.len(), net.workers_per_process());
    let held_estimate = own_estimate.times(workers, 1);
    if held_estimate.peak_bytes(workers) <= allowed_bytes {
        let run = run_size(net, own_estimate.pages * net.peers() as u64);
        let budget = held_estimate.budget_for_lists(run, allowed_bytes);
        return local_pages.hold_lists_at_most(budget / workers as u64);
    }
    let whole_estimate = own_estimate.times(workers * items.div_ceil(net.peers()).max(items_done), items_done);
    // Adds a tenth: other items may be larger than the items read so far.
    let run = run_size(net, whole_estimate.pages * net.processes() as u64);
    let enough = enough_bytes(&whole_estimate, job, run);
    let needed_bytes = enough / 10 * 11;
    Err(too_little("pages, links and the steps after reading".into(), needed_bytes, allowed_bytes))
}

fn run_size(net: &Net<'_>, all_pages: u64) -> RunSize {
    RunSize { all_pages, workers: net.workers_per_process(), processes: net.processes() }
}

/// Converts the records found in the input into local pages.
pub(super) struct PageIngest {
    /// Local pages that have been read.
    pub(super) local_pages: WorkerPages,
    tools: Tools,
    follow: LinkSettings,
    min_text: usize,
    simhash: Simhash,
    /// True if checkpoints will be written; then a hash of what each page was read from is kept.
    records: bool,
    /// Pages that an earlier run has read, if there are any.
    known_pages: Option<Arc<KnownPages>>,
    /// Number of known pages that were reused.
    known_taken: u64,
    worker: u32,
    /// Places of the segments after the first, for the next record that is taken.
    pub(super) segments: Vec<(u32, u64)>,
    noted_addresses: ItemAddresses,
    /// Numbers of the work item and of the input that are being read.
    pub(super) item: (u32, u32),
}

impl PageIngest {
    /// Creates a reader that adds to the given local pages.
    ///
    /// # Errors
    /// Returns no error at present.
    pub(super) fn on(local_pages: WorkerPages, net: &Net<'_>, job: &Job) -> Result<PageIngest> {
        Ok(PageIngest { local_pages, ..PageIngest::new(net, job)? })
    }

    fn new(net: &Net<'_>, job: &Job) -> Result<PageIngest> {
        let study = job.kind == JobKind::Study;
        let sets = job.by_shingles().then(|| ShingleSets::new(&net.memory));
        Ok(PageIngest {
            local_pages: WorkerPages { sets, ..WorkerPages::new(&net.memory) },
            tools: Tools::new(job),
            follow: job.links,
            min_text: job.chunks.min_text as usize,
            // A study uses no simhashes.
            simhash: if study { Simhash { bits: 0, ..job.simhash.clone() } } else { job.simhash.clone() },
            records: false,
            known_pages: None,
            known_taken: 0,
            worker: net.index() as u32,
            segments: Vec::new(),
            noted_addresses: ItemAddresses::default(),
            item: (0, 0),
        })
    }

    /// Reads the current work item.
    fn read(&mut self, net: &Net<'_>, queue: &Queue, job: &Job) -> Result<()> {
        let number = self.item.0;
        let end = queue.work.read(&queue.work.items[number as usize], &job.input, &mut |found| {
            queue.progress.records.fetch_add(1, Ordering::Relaxed);
            net.check()?;
            let is_large = matches!(&found, ReadResult::Page(page) if page.body.len() > LARGE_PAGE);
            if !is_large || job.effort.memory_bytes == 0 {
                return self.take(found, &queue.progress);
            }
            let _alone = queue.large_page.lock().expect("nothing panics while it holds this");
            self.take(found, &queue.progress)?;
            // Drops the buffers that the large page has grown.
            self.tools = Tools::new(job);
            Ok(())
        })?;
        self.local_pages.items.push((number, end));
        Ok(())
    }

    /// Adds a record to the local pages.
    pub(super) fn take(&mut self, record: ReadResult, progress: &Progress) -> Result<()> {
        match record {
            ReadResult::Refused(refused) => self.refuse(refused)?,
            ReadResult::Page(page) => match CanonicalUrl::parse(&page.url) {
                Err(cause) => {
                    let url: String = page.url.chars().take(200).collect();
                    let rejected = RefusedRecord::new(page.offset, refusal_reason(cause), format!("{cause}: {url}"));
                    self.refuse(RefusedRecord { bytes: page.length, ..rejected })?;
                }
                Ok(url) => {
                    progress.page_bytes.fetch_add(page.body.len() as u64, Ordering::Relaxed);
                    self.note_address(&url, page.address, page.offset);
                    self.keep(page, &url)?;
                }
            },
        }
        Ok(())
    }

    fn refuse(&mut self, RefusedRecord { offset, reason, detail, bytes, means }: RefusedRecord) -> Result<()> {
        let (item, source) = self.item;
        match means.map(|means| *means) {
            Some(NonPage::Revisit(revisit)) => {
                if let Ok(url) = CanonicalUrl::parse(&revisit.url) {
                    self.note_address(&url, revisit.address, offset);
                    self.revisit(revisit, &url, offset);
                    return Ok(());
                }
            }
            Some(NonPage::Segment(segment)) => {
                self.local_pages.segments.push(SegmentRecord::from_segment(&segment, offset, self.item.0, self.item.1));
                return Ok(());
            }
            Some(NonPage::Redirect(redirect)) if self.follow.redirects => self.redirect(&redirect, offset),
            Some(NonPage::Redirect(_)) | None => (),
        }
        self.local_pages.rejections.push(&Rejection { source, offset, reason, detail, item, bytes })
    }

    /// Stores a revisit until its original is known.
    fn revisit(&mut self, revisit: record::Revisit, url: &CanonicalUrl, offset: u64) {
        let (item, source) = self.item;
        let id = |url: &str| CanonicalUrl::parse(url).map_or(0, |url| doc_id(url.as_str()));
        self.local_pages.revisits.push(RevisitRecord {
            url: url.as_str().to_string(),
            fetch_time: revisit.fetch_time,
            names: revisit.names,
            refers_to: revisit.refers_to,
            original: if revisit.refers_to_url.is_empty() { 0 } else { id(&revisit.refers_to_url) },
            original_time: revisit.refers_to_time,
            source,
            item,
            offset,
            length: revisit.length,
            repaired: revisit.repaired,
        });
    }

    /// Notes that the host of a URL has answered from an address. An address of 0 is unknown.
    fn note_address(&mut self, url: &CanonicalUrl, address: u64, offset: u64) {
        if address != 0 {
            let row = HostAddress { host: host_key(url.as_str()), address, offset, item: self.item.0 };
            self.noted_addresses.note(&mut self.local_pages.addresses, row);
        }
    }

    fn redirect(&mut self, redirect: &record::Redirect, offset: u64) {
        let (item, source) = self.item;
        let Ok(url) = CanonicalUrl::parse(&redirect.url) else { return };
        if let Ok(to) = url.join(&redirect.location) {
            let [source_url, other] = [&url, &to].map(|url| url.as_str());
            let is_evidence = redirect.is_permanent && source_url != other && domain_of(source_url) == domain_of(other);
            self.local_pages.redirects.push(RedirectRecord {
                from: doc_id(source_url),
                to: doc_id(other),
                url: if is_evidence { source_url.to_string() } else { String::new() },
                fetch_time: redirect.fetch_time,
                source,
                item,
                offset,
            });
        }
    }

    fn keep(&mut self, page: RawPage, url: &CanonicalUrl) -> Result<()> {
        let content = if self.records { content(&page, url) } else { 0 };
        let known_page = self.known_pages.as_ref().and_then(|known| known.find(content, url.as_str()));
        if let Some(saved_page) = known_page.filter(|known| known.fits(&self.local_pages)) {
            self.known_taken += 1;
            return self.keep_as_known(page, saved_page, content);
        }
        if self.records {
            self.extract_and_keep(page, url)?;
            self.local_pages.contents.resize(self.local_pages.exact.len(), content);
            return Ok(());
        }
        self.extract_and_keep(page, url)
    }

    /// Adds a page that an earlier run has read. Text and links come from the earlier run, the rest
    /// from the current record.
    fn keep_as_known(&mut self, page: RawPage, mut saved_page: SavedPage, content: u128) -> Result<()> {
        let row = &mut saved_page.capture;
        row.repaired.retain(|reason| REPAIRED_IN_TEXT.contains(reason));
        row.repaired.splice(0..0, page.repaired);
        (row.fetch_time, row.status, row.mime) = (page.fetch_time, page.status, mime(&page.mime));
        (row.offset, row.length) = (page.offset, page.length);
        ((row.item, row.source), row.worker) = (self.item, self.worker);
        (row.is_conversion, row.record) = (page.converted_from.is_some(), record(&page));
        saved_page.names = page.names;
        saved_page.put(content, &mut self.local_pages)
    }

    fn extract_and_keep(&mut self, page: RawPage, url: &CanonicalUrl) -> Result<()> {
        let tools = &mut self.tools;
        let extracted = match tools.extractor.page(&page, url)? {
            Ok(extracted) => extracted,
            Err((reason, detail)) => {
                let rejected = RefusedRecord::new(page.offset, reason, detail).naming(&page.url);
                return self.refuse(RefusedRecord { bytes: page.length, ..rejected });
            }
        };
        let document = match &mut tools.paragraphs {
            None => tools.recipe.fingerprint(extracted.text, &mut tools.fprints),
            Some(paragraphs) => paragraphs.marks(extracted.text, &mut tools.fprints),
        };
        // A page with too little text is similar to no page, and a copy only of pages with the same
        // bytes.
        let text = if document.exact == 0 { "" } else { extracted.text };
        let by_bytes = tools.paragraphs.is_none() && self.min_text > extracted.text.len();
        let body = bytes(&page.body);
        let exact = if by_bytes { instead_of_text(body) } else { document.exact };
        // Parallel lists of a slot must all be extended, or none: nothing below may return early
        // without an error that ends the run.
        let local_pages = &mut self.local_pages;
        let simhash = match (self.simhash.bits, self.simhash.features.idf) {
            (0, _) => None,
            (_, true) => {
                local_pages.features.push(tools.simhashes.features(text))?;
                None
            }
            (_, false) => tools.simhashes.simhash(text),
        };
        if let (Some(sets), Some(shingles)) = (&mut local_pages.sets, &mut tools.shingles) {
            sets.push(shingles.hashes(text))?;
        }
        let projected = tools.projections.as_mut().and_then(|recipe| recipe.project(text)).unwrap_or_default();
        let (item, source) = self.item;
        local_pages.captures.push(&Capture {
            doc_id: doc_id(url.as_str()),
            url: url.as_str().to_string(),
            fetch_time: page.fetch_time,
            status: page.status,
            mime: mime(&page.mime),
            title: short_title(extracted.title),
            language: tools.languages.detect(extracted.text),
            body_bytes: page.body.len() as u64,
            body,
            text_bytes: extracted.text.len() as u64,
            chunks: document.chunks,
            exact,
            simhash,
            projected,
            source,
            item,
            offset: page.offset,
            length: page.length,
            repaired: page.repaired.into_iter().chain(repairs_of(&extracted)).collect(),
            worker: self.worker,
            slot: local_pages.exact.len() as u32,
            original: None,
            segments: std::mem::take(&mut self.segments),
            is_conversion: page.converted_from.is_some(),
            record: record(&page),
            variant: variant(&page),
            canonical: extracted.canonical.unwrap_or_default(),
            notice: tools.notices.as_mut().map_or(0, |notices| notices.notice(text, url.as_str())),
        })?;
        local_pages.exact.push(exact);
        local_pages.names.push(page.names);
        local_pages.fprints.push(&tools.fprints)?;
        local_pages.links.push(extracted.links)?;
        let slot = local_pages.links.slots() as u32 - 1;
        local_pages.leads.extend(extracted.leads_to.map(|to| (slot, to)));
        local_pages.editions.extend(extracted.editions.iter().map(|&to| (slot, to)));
        Ok(())
    }
}

/// Returns the part of the record id that a capture stores.
fn record(page: &RawPage) -> u32 {
    page.converted_from.unwrap_or(page.names.id) as u32
}

/// Returns a hash of the form and charset of a page.
fn variant(page: &RawPage) -> u16 {
    let charset = page.charset.as_deref().map_or(Vec::new(), |charset| [b" ", charset.as_bytes()].concat());
    xxh3_64(&[page.form.name().as_bytes(), &charset].concat()) as u16
}

/// Repairs that the extraction of text and links can make, and the parsing of a record cannot.
const REPAIRED_IN_TEXT: [Reason; 2] = [Reason::PdfDamaged, Reason::TooManyLinks];

/// Returns the repairs that the extraction of text and links has made.
fn repairs_of(extracted: &ExtractedPage<'_>) -> impl Iterator<Item = Reason> {
    let repairs = REPAIRED_IN_TEXT.into_iter().zip([extracted.is_partial, extracted.too_many_links]);
    repairs.filter_map(|(reason, is_so)| is_so.then_some(reason))
}

/// Counts the records of the local pages and rejections by input. `floors[item]` is the offset from
/// which the records of an item are valid.
///
/// # Errors
/// Returns any error of the disk, on which captures may be.
pub fn damage(local_pages: &WorkerPages, floors: &[u64]) -> Result<BTreeMap<u32, Damage>> {
    let mut damage_by_input: BTreeMap<u32, Damage> = BTreeMap::new();
    local_pages.captures.for_each(|capture| {
        if capture.offset >= floors[capture.item as usize] {
            damage_by_input.entry(capture.source).or_default().add_page();
        }
    })?;
    for rejection in local_pages.rejections.rows() {
        let Rejection { source, offset, reason, detail, item, bytes } = rejection?;
        if offset < floors[item as usize] {
            continue;
        }
        let input_damage = damage_by_input.entry(source).or_default();
        match reason.is_bad() {
            true => input_damage.add_bad((offset, reason, detail), if reason.is_over_a_limit() { 0 } else { bytes }),
            false => input_damage.records += 1,
        }
    }
    Ok(damage_by_input)
}
