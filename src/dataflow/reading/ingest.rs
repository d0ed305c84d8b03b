//! Reading: work items are pulled by the workers of a process until none is left; what they read goes on their shelves.
//!
//! Items are dealt out to processes in turn and pulled within a process, so one large file is work for all workers. Which
//! worker reads an item never shows in the answer.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use xxhash_rust::xxh3::xxh3_64;

use crate::enough_memory::enough_bytes;
use crate::memory_estimate::MemoryEstimate;
use crate::reading::addresses::{HostAddress, Noted};
use crate::reading::capture::{Capture, mime, short_title};
use crate::reading::captures::host_key;
use crate::reading::item_part::Part;
use crate::reading::item_record::PageRecord;
use crate::reading::known_pages::{KnownPages, content};
use crate::reading::other_records::{Redirect, Revisit, Segment};
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
use webtwin_job::{Job, JobKind, Links, Simhash};
use webtwin_pages::damage::Damage;
use webtwin_pages::html::Extracted;
use webtwin_pages::public_suffix::domain_of;
use webtwin_pages::record::{self, Found, Means, RawPage, Reason, Refused};
use webtwin_pages::url::CanonicalUrl;
use webtwin_pages::work_items::Work;

/// The work of a run, shared by the workers of a process.
#[derive(Debug)]
pub struct Queue {
    /// Inputs and the items they are cut in.
    pub work: Work,
    turns: WorkQueue,
    /// Turns at items of earlier crawls.
    original_turns: WorkQueue,
    /// What has been read so far, for people who watch.
    pub progress: Arc<Progress>,
    /// Records of finished items, where a run may be taken up again.
    pub resume: Option<Resume>,
    /// Held by who reads a large page where memory has a bound: one at a time, for it takes up to ten times its bytes.
    large_page: Mutex<()>,
}

/// Bytes from which on a page is large.
const LARGE_PAGE: usize = 1 << 20;

impl Queue {
    /// A queue of all items.
    pub fn new(work: Work) -> Arc<Queue> {
        Queue::resuming(work, None)
    }

    /// A queue of all items, some of which an earlier run may have recorded.
    pub fn resuming(work: Work, resume: Option<Resume>) -> Arc<Queue> {
        let progress = Arc::new(Progress::new(work.weight()));
        let (turns, original_turns) = Default::default();
        Arc::new(Queue { work, turns, original_turns, progress, resume, large_page: Mutex::default() })
    }
}

/// Reads items until none is left for this process; those that an earlier run has recorded are not read again. Items of earlier
/// crawls are read afterwards, if there are revisits.
///
/// # Errors
/// What is wrong with an input as a whole, or with the store it lies in; never bad content. What was finished before it is
/// recorded, where anything is.
pub fn read(net: &mut Net<'_>, queue: &Queue, job: &Job) -> Result<WorkerPages> {
    let mut reader = Reader::new(net, job)?;
    if job.effort.memory_bytes > 0 {
        // For the first item, which may be all there is.
        let workers = net.workers_per_process();
        let room = MemoryEstimate::default().room_for_lists(0, workers, job.effort.memory_bytes);
        reader.shelf.hold_lists_at_most(room / workers as u64)?;
    }
    let mut recorder = queue.resume.as_ref().map(Recorder::new);
    let items = &queue.work.items;
    let first_original = items.partition_point(|item| !queue.work.is_original(item.input));
    let mut result = read_items(net, queue, &queue.turns, 0..first_original, job, &mut reader, &mut recorder);
    if result.is_ok() && first_original < items.len() {
        let revisits = net.all_sum("revisits to resolve", [reader.shelf.revisits.len() as u64])?;
        if revisits != [0] {
            let originals = first_original..items.len();
            result = read_items(net, queue, &queue.original_turns, originals, job, &mut reader, &mut recorder);
        }
    }
    if let Some(resume) = &queue.resume {
        resume.known.fetch_add(reader.known_taken, Ordering::Relaxed);
    }
    if let Some(recorder) = &mut recorder {
        recorder.write(&reader.shelf);
    }
    reader.shelf.contents = Vec::new();
    result.map(|()| reader.shelf)
}

/// Reads the items in a range, in turn.
fn read_items(
    net: &Net<'_>,
    queue: &Queue,
    turns: &WorkQueue,
    range: Range<usize>,
    job: &Job,
    reader: &mut Reader,
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
        let begin = Part::from_here(&reader.shelf);
        let taken_up = match &queue.resume {
            Some(resume) => resume.take_up(number, item.input, net.index() as u32, &mut reader.shelf)?,
            None => false,
        };
        if !taken_up {
            if let Some(resume) = &queue.resume {
                reader.records = true;
                reader.known.get_or_insert_with(|| resume.known_pages(job.effort.memory_bytes > 0));
            }
            reader.read(net, queue, job)?;
        }
        if let (Some(recorder), Some(resume)) = (recorder.as_mut(), &queue.resume)
            && (!taken_up || resume.store.moves(number))
        {
            recorder.note(number, begin.to_here(&reader.shelf), &reader.shelf);
        }
        make_room_to_read_on(net, &mut reader.shelf, queue.work.items.len(), job)?;
        queue.progress.done.fetch_add(item.weight(), Ordering::Relaxed);
    }
}

/// Writes to disk what of the lists on a shelf has no room in memory where this has a bound; refuses to read on when the shelves of
/// a process would outgrow it all the same, as far as the items read so far tell.
fn make_room_to_read_on(net: &Net<'_>, shelf: &mut WorkerPages, items: usize, job: &Job) -> Result<()> {
    let allowed_bytes = job.effort.memory_bytes;
    if allowed_bytes == 0 {
        return Ok(());
    }
    let (mine, done, workers) = (MemoryEstimate::on(shelf), shelf.items.len(), net.workers_per_process());
    let held = mine.times(workers, 1);
    if held.peak_bytes(workers) <= allowed_bytes {
        let room = held.room_for_lists(mine.pages * net.peers() as u64, workers, allowed_bytes);
        return shelf.hold_lists_at_most(room / workers as u64);
    }
    let all = mine.times(workers * items.div_ceil(net.peers()).max(done), done);
    // A tenth more: other items may hold more than those read so far.
    let needed = enough_bytes(&all, job, all.pages * net.processes() as u64, workers, net.processes());
    let needed_bytes = needed / 10 * 11;
    Err(too_little("pages and links, and the steps after".into(), needed_bytes, allowed_bytes))
}

/// Turns what is found in the input into what lies on the shelf.
pub(super) struct Reader {
    /// What has been read.
    pub(super) shelf: WorkerPages,
    tools: Tools,
    follow: Links,
    min_text: usize,
    simhash: Simhash,
    /// Whether what is read will be recorded, with what pages were read from.
    records: bool,
    /// Pages that an earlier run has read, where there are any.
    known: Option<Arc<KnownPages>>,
    /// How many of them were taken.
    known_taken: u64,
    worker: u32,
    /// Where the segments after the first are of the record that is taken next.
    pub(super) segments: Vec<(u32, u64)>,
    noted_addresses: Noted,
    /// Work item and input that are being read.
    pub(super) item: (u32, u32),
}

impl Reader {
    /// Reads on where a shelf was left.
    ///
    /// # Errors
    /// None where nothing is read.
    pub(super) fn on(shelf: WorkerPages, net: &Net<'_>, job: &Job) -> Result<Reader> {
        Ok(Reader { shelf, ..Reader::new(net, job)? })
    }

    fn new(net: &Net<'_>, job: &Job) -> Result<Reader> {
        let study = job.kind == JobKind::Study;
        let sets = job.by_shingles().then(|| ShingleSets::new(&net.memory));
        Ok(Reader {
            shelf: WorkerPages { sets, ..WorkerPages::new(&net.memory) },
            tools: Tools::new(job),
            follow: job.links,
            min_text: job.chunks.min_text as usize,
            // A study asks for no simhash.
            simhash: if study { Simhash { bits: 0, ..job.simhash.clone() } } else { job.simhash.clone() },
            records: false,
            known: None,
            known_taken: 0,
            worker: net.index() as u32,
            segments: Vec::new(),
            noted_addresses: Noted::default(),
            item: (0, 0),
        })
    }

    /// Reads the item at hand.
    fn read(&mut self, net: &Net<'_>, queue: &Queue, job: &Job) -> Result<()> {
        let number = self.item.0;
        let end = queue.work.read(&queue.work.items[number as usize], &job.input, &mut |found| {
            queue.progress.records.fetch_add(1, Ordering::Relaxed);
            net.check()?;
            let is_large = matches!(&found, Found::Page(page) if page.body.len() > LARGE_PAGE);
            if !is_large || job.effort.memory_bytes == 0 {
                return self.take(found, &queue.progress);
            }
            let _alone = queue.large_page.lock().expect("nothing panics while it holds this");
            self.take(found, &queue.progress)?;
            // What it has grown to goes, too.
            self.tools = Tools::new(job);
            Ok(())
        })?;
        self.shelf.items.push((number, end));
        Ok(())
    }

    /// Puts what is found on the shelf.
    pub(super) fn take(&mut self, found: Found, progress: &Progress) -> Result<()> {
        match found {
            Found::Refused(refused) => self.refuse(refused)?,
            Found::Page(page) => match CanonicalUrl::parse(&page.url) {
                Err(why) => {
                    let url: String = page.url.chars().take(200).collect();
                    let refused = Refused::new(page.offset, Reason::BadUrl, format!("{why}: {url}"));
                    self.refuse(Refused { bytes: page.length, ..refused })?;
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

    fn refuse(&mut self, Refused { offset, reason, detail, bytes, means }: Refused) -> Result<()> {
        let (item, source) = self.item;
        match means.map(|means| *means) {
            Some(Means::Revisit(revisit)) => {
                if let Ok(url) = CanonicalUrl::parse(&revisit.url) {
                    self.note_address(&url, revisit.address, offset);
                    self.revisit(revisit, &url, offset);
                    return Ok(());
                }
            }
            Some(Means::Segment(segment)) => {
                self.shelf.segments.push(Segment::of(&segment, offset, self.item.0, self.item.1));
                return Ok(());
            }
            Some(Means::Redirect(redirect)) if self.follow.redirects => self.redirect(&redirect, offset),
            Some(Means::Redirect(_)) | None => (),
        }
        self.shelf.rejections.push(&Rejection { source, offset, reason, detail, item, bytes })
    }

    /// Lays a revisit aside until its original is known.
    fn revisit(&mut self, revisit: record::Revisit, url: &CanonicalUrl, offset: u64) {
        let (item, source) = self.item;
        let id = |url: &str| CanonicalUrl::parse(url).map_or(0, |url| doc_id(url.as_str()));
        self.shelf.revisits.push(Revisit {
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
        });
    }

    /// Notes that the host of a URL has answered from an address, if that is known.
    fn note_address(&mut self, url: &CanonicalUrl, address: u64, offset: u64) {
        if address != 0 {
            let row = HostAddress { host: host_key(url.as_str()), address, offset, item: self.item.0 };
            self.noted_addresses.note(&mut self.shelf.addresses, row);
        }
    }

    fn redirect(&mut self, redirect: &record::Redirect, offset: u64) {
        let (item, source) = self.item;
        let Ok(url) = CanonicalUrl::parse(&redirect.url) else { return };
        if let Ok(to) = url.join(&redirect.location) {
            let [own, other] = [&url, &to].map(|url| url.as_str());
            let is_evidence = redirect.is_permanent && own != other && domain_of(own) == domain_of(other);
            self.shelf.redirects.push(Redirect {
                from: doc_id(own),
                to: doc_id(other),
                url: if is_evidence { own.to_string() } else { String::new() },
                fetch_time: redirect.fetch_time,
                source,
                item,
                offset,
            });
        }
    }

    fn keep(&mut self, page: RawPage, url: &CanonicalUrl) -> Result<()> {
        let content = if self.records { content(&page, url) } else { 0 };
        let known = self.known.as_ref().and_then(|known| known.find(content, url.as_str()));
        if let Some(known) = known.filter(|known| known.fits(&self.shelf)) {
            self.known_taken += 1;
            return self.keep_as_known(page, known, content);
        }
        if self.records {
            self.extract_and_keep(page, url)?;
            self.shelf.contents.resize(self.shelf.exact.len(), content);
            return Ok(());
        }
        self.extract_and_keep(page, url)
    }

    /// Puts a page on the shelf of which an earlier run has read what it says.
    fn keep_as_known(&mut self, page: RawPage, mut known: PageRecord, content: u128) -> Result<()> {
        let row = &mut known.capture;
        row.mended.retain(|reason| MENDED_IN_TEXT.contains(reason));
        row.mended.splice(0..0, page.mended);
        (row.fetch_time, row.status, row.mime) = (page.fetch_time, page.status, mime(&page.mime));
        (row.offset, row.length) = (page.offset, page.length);
        ((row.item, row.source), row.worker) = (self.item, self.worker);
        (row.is_conversion, row.record) = (page.converted_from.is_some(), record(&page));
        known.names = page.names;
        known.put(content, &mut self.shelf)
    }

    fn extract_and_keep(&mut self, page: RawPage, url: &CanonicalUrl) -> Result<()> {
        let tools = &mut self.tools;
        let extracted = match tools.extractor.page(&page, url)? {
            Ok(extracted) => extracted,
            Err((reason, detail)) => {
                let refused = Refused::new(page.offset, reason, detail).naming(&page.url);
                return self.refuse(Refused { bytes: page.length, ..refused });
            }
        };
        let document = match &mut tools.paragraphs {
            None => tools.recipe.fingerprint(extracted.text, &mut tools.fprints),
            Some(paragraphs) => paragraphs.marks(extracted.text, &mut tools.fprints),
        };
        // A page that says too little is near nothing, and a copy of those with its bytes only.
        let text = if document.exact == 0 { "" } else { extracted.text };
        let by_bytes = tools.paragraphs.is_none() && self.min_text > extracted.text.len();
        let body = bytes(&page.body);
        let exact = if by_bytes { instead_of_text(body) } else { document.exact };
        let shelf = &mut self.shelf;
        let simhash = match (self.simhash.bits, self.simhash.features.idf) {
            (0, _) => None,
            (_, true) => {
                shelf.features.push(tools.simhashes.features(text))?;
                None
            }
            (_, false) => tools.simhashes.simhash(text),
        };
        if let (Some(sets), Some(shingles)) = (&mut shelf.sets, &mut tools.shingles) {
            sets.push(shingles.of(text))?;
        }
        let projected = tools.projections.as_mut().and_then(|recipe| recipe.project(text)).unwrap_or_default();
        let (item, source) = self.item;
        shelf.captures.push(&Capture {
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
            mended: page.mended.into_iter().chain(mended_by(&extracted)).collect(),
            worker: self.worker,
            slot: shelf.exact.len() as u32,
            original: None,
            segments: std::mem::take(&mut self.segments),
            is_conversion: page.converted_from.is_some(),
            record: record(&page),
            variant: variant(&page),
            canonical: extracted.canonical.unwrap_or_default(),
            notice: tools.notices.as_mut().map_or(0, |notices| notices.of(text, url.as_str())),
        })?;
        shelf.exact.push(exact);
        shelf.names.push(page.names);
        shelf.fprints.push(&tools.fprints)?;
        shelf.links.push(extracted.links)?;
        let slot = shelf.links.slots() as u32 - 1;
        shelf.leads.extend(extracted.leads_to.map(|to| (slot, to)));
        shelf.editions.extend(extracted.editions.iter().map(|&to| (slot, to)));
        Ok(())
    }
}

/// Returns what a capture keeps of the id of its record.
fn record(page: &RawPage) -> u32 {
    page.converted_from.unwrap_or(page.names.id) as u32
}

/// Returns a hash of the form and charset of a page.
fn variant(page: &RawPage) -> u16 {
    let charset = page.charset.as_deref().map_or(Vec::new(), |charset| [b" ", charset.as_bytes()].concat());
    xxh3_64(&[page.form.name().as_bytes(), &charset].concat()) as u16
}

/// What extracting text and links may mend, and reading its record does not.
const MENDED_IN_TEXT: [Reason; 2] = [Reason::PdfDamaged, Reason::TooManyLinks];

/// What extracting text and links has mended.
fn mended_by(extracted: &Extracted<'_>) -> impl Iterator<Item = Reason> {
    let mended = MENDED_IN_TEXT.into_iter().zip([extracted.is_partial, extracted.too_many_links]);
    mended.filter_map(|(reason, is_so)| is_so.then_some(reason))
}

/// Counts the records on a shelf by input; `floors[item]` is the offset from which the records of an item are true.
///
/// # Errors
/// Those of the disk that captures may be on.
pub fn damage(shelf: &WorkerPages, floors: &[u64]) -> Result<BTreeMap<u32, Damage>> {
    let mut of_inputs: BTreeMap<u32, Damage> = BTreeMap::new();
    shelf.captures.each(|capture| {
        if capture.offset >= floors[capture.item as usize] {
            of_inputs.entry(capture.source).or_default().add_page();
        }
    })?;
    for rejection in shelf.rejections.rows() {
        let Rejection { source, offset, reason, detail, item, bytes } = rejection?;
        if offset < floors[item as usize] {
            continue;
        }
        let of_input = of_inputs.entry(source).or_default();
        match reason.is_bad() {
            true => of_input.add_bad((offset, reason, detail), if is_over_a_limit(reason) { 0 } else { bytes }),
            false => of_input.records += 1,
        }
    }
    Ok(of_inputs)
}

/// Whether the record is whole, but larger than the job allows: such as a film.
fn is_over_a_limit(reason: Reason) -> bool {
    matches!(reason, Reason::RecordTooLarge | Reason::DecodedTooLarge)
}
