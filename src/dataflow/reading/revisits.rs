//! Resolves revisits: a record that refers to another record for its payload becomes a capture with
//! the content of that record.
//!
//! The original is looked up by the names that the revisit gives, in this order: URL and date,
//! payload digest, record id. Some programs write the same record id into all records, so the id is
//! the weakest name. If several records with different content have the same id, the id identifies
//! none of them, unless digest or URL select one. If the server only reported that nothing has
//! changed, the original is the previous capture of the URL. If a digest is the only name left, the
//! digests of records that lack one are computed.
//!
//! The original of a revisit may itself be a revisit, so the search is repeated until it finds
//! nothing new. A revisit whose original by URL and date is another unresolved revisit waits for
//! that revisit, even if its weaker names would find a record. If several records have the same
//! name, one is chosen by its content, never by its place. So the result is the same for any
//! distribution of records over files.
//!
//! In each round the names that are looked up are broadcast. Two exchanges then send records with
//! these names, and questions, to the owners of the names. After the search each revisit is sent to
//! the worker that has its original among its local pages. Text does not depend on the URL, so it
//! is copied there. Links do depend on it, so an original with another URL is read again. Without
//! revisits only their number is exchanged.
//!
//! # Memory
//! Takes 16 bytes for each page until the search ends. During the search takes 8 bytes in each
//! process for each name that is looked up, and 96 at its owner for each record with such a name.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use crate::reading::capture::{Capture, RecordPlace};
use crate::reading::other_records::RevisitRecord;
use crate::reading::rejection::Rejection;
use crate::reading::segments;
use crate::reading::worker_pages::WorkerPages;
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::{DocId, doc_id, splitmix64};
use webtwin_core::chunks::bytes;
use webtwin_engine::Net;
use webtwin_job::{DigestPolicy, InputSettings, Job};
use webtwin_pages::html::{ExtractedPage, Extractor};
use webtwin_pages::record::{RawPage, ReadResult, Reason, RecordIds};
use webtwin_pages::url::CanonicalUrl;
use webtwin_pages::work_items::WorkList;

/// Maximum number of rounds of the search. A longer chain of revisits remains unresolved.
const ROUNDS: usize = 20;

/// Pairs of the input of a revisit and the input of the record that it refers to, which may be a
/// revisit, too. Without repetitions.
pub type Referrals = BTreeSet<[u32; 2]>;

/// Kind of name by which an original is looked up. The first kind that finds one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
enum Way {
    UrlAndDate,
    Payload,
    Id,
    /// Newest capture of a URL up to a given time.
    Before,
}

impl Way {
    /// Returns the key of a value. The same value has different keys for different kinds of names.
    fn key(self, value: u64) -> u64 {
        splitmix64(value ^ splitmix64(self as u64))
    }

    fn at(url: DocId, time: i64) -> u64 {
        Way::UrlAndDate.key(url ^ splitmix64(time as u64))
    }
}

/// Kind of questions that revisits ask in a round. The search moves to the next kind only if
/// nothing has been found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QuestionKind {
    /// Names that revisits give. A revisit may have to wait for another revisit.
    Names,
    /// Names that revisits give, without waiting: for revisits that wait for each other, or for a
    /// revisit without an original.
    NamesAtOnce,
    /// Previous capture, for revisits that give no name. The previous capture is known only after
    /// all names have been followed.
    NamelessBefore,
    /// Previous capture, even for revisits that give names. This kind comes last, because a record
    /// with one of these names may just have been resolved.
    AnyBefore,
}

impl QuestionKind {
    fn is_by_names(self) -> bool {
        matches!(self, QuestionKind::Names | QuestionKind::NamesAtOnce)
    }
}

/// Record under one of its names.
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Offer {
    key: u64,
    url: DocId,
    time: i64,
    payload: u64,
    id: u64,
    /// 1 for a conversion, which has less information than its original; otherwise 0.
    is_conversion: u64,
    content: Content,
    source: u64,
    offset: u64,
}

/// Content of a record and its place: a slot in the local pages of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Content {
    /// Fingerprint of the body as fetched.
    body: u64,
    /// Hash of the content, see
    /// [`CaptureRow::content_hash`](crate::reading::capture_rows::CaptureRow::content_hash).
    hash: u64,
    /// URL of the record. A revisit that has been resolved has that of its original.
    url: DocId,
    worker: u32,
    slot: u32,
}

impl Content {
    /// Content of a revisit that is not resolved yet.
    const UNKNOWN: Content = Content { body: 0, hash: 0, url: 0, worker: u32::MAX, slot: 0 };

    fn is_known(&self) -> bool {
        self.worker != Content::UNKNOWN.worker
    }
}

/// Name under which a revisit looks up its original.
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Question {
    key: u64,
    /// URL of the original if it is named, otherwise URL of the revisit.
    url: DocId,
    payload: u64,
    id: u64,
    /// Time of the original; 0 if it is not named. For [`Way::Before`], the latest time that
    /// counts.
    time: i64,
    /// Worker that asks. The next fields are its number of the revisit, and the [`Way`].
    asker: u32,
    revisit: u32,
    method: u64,
}

/// Record that a question has found.
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Answer {
    /// Values of the question.
    asker: u32,
    revisit: u32,
    method: u32,
    /// Number of the input of the record.
    source: u32,
    content: Content,
}

/// Converts the revisits of all workers: a revisit whose original is among the local pages of any
/// worker becomes a capture, every other one a rejection.
///
/// `floors[item]` is the offset from which the records of a work item are valid. Returns this
/// worker's [`Referrals`].
///
/// # Errors
/// Returns any error of reading originals again, and an error if the run has ended.
pub fn resolve(
    net: &mut Net<'_>,
    local_pages: &mut WorkerPages,
    work: &WorkList,
    job: &Job,
    floors: &[u64],
) -> Result<Referrals> {
    let (untrue, revisits): (Vec<RevisitRecord>, Vec<RevisitRecord>) =
        std::mem::take(&mut local_pages.revisits).into_iter().partition(|row| row.offset < floors[row.item as usize]);
    local_pages.rejections.extend(untrue.into_iter().map(unresolved))?;
    if net.all_sum("revisits", [revisits.len() as u64])? == [0] {
        local_pages.names = Vec::new();
        return Ok(Referrals::new());
    }
    let (mut contents, mut referrals) = (vec![None; revisits.len()], Referrals::new());
    search(net, local_pages, &revisits, &mut contents, &mut referrals, floors)?;
    if name_payloads(net, local_pages, &revisits, &contents, work, job, floors)? {
        search(net, local_pages, &revisits, &mut contents, &mut referrals, floors)?;
    }
    local_pages.names = Vec::new();
    let mut own_originals = Vec::new();
    for (revisit, content) in revisits.into_iter().zip(contents) {
        match content {
            Some(Content { worker, slot, .. }) => own_originals.push(Ok((worker as usize, (slot, revisit)))),
            None => local_pages.rejections.push(&unresolved(revisit))?,
        }
    }
    // Sorted by slot, so that originals are copied in the order in which they are stored.
    let mut originals = net.exchange_values("revisits with their originals", own_originals)?;
    originals.sort_by_key(|(slot, _)| *slot);
    let outlooks = outlooks(net, local_pages, &originals, work, job)?;
    for ((slot, revisit), outlook) in originals.into_iter().zip(outlooks) {
        keep_locally(local_pages, slot as usize, revisit, outlook)?;
    }
    Ok(referrals)
}

fn unresolved(revisit: RevisitRecord) -> Rejection {
    let RevisitRecord { source, offset, item, url, length, .. } = revisit;
    Rejection { source, offset, reason: Reason::Revisit, detail: url, item, bytes: length }
}

/// Finds the place of the original of each revisit that has not been resolved yet.
fn search(
    net: &mut Net<'_>,
    local_pages: &WorkerPages,
    revisits: &[RevisitRecord],
    contents: &mut [Option<Content>],
    referrals: &mut Referrals,
    floors: &[u64],
) -> Result<()> {
    let mut question_kind = QuestionKind::Names;
    for _ in 0..ROUNDS {
        let questions = questions(revisits, contents, net.index() as u32, question_kind);
        let keys = asked_for(net, &questions)?;
        let is_asked = |key: u64| keys.binary_search(&key).is_ok();
        let offers = offers(local_pages, revisits, contents, floors, net.index() as u32, question_kind, is_asked)?;
        let (mut news, mut waiting) = (0, 0);
        // A revisit that waits for another one gets an answer with unknown content, which counts as
        // waiting, not as found.
        for Answer { revisit, content, source, .. } in round(net, offers, questions, question_kind)? {
            if !content.is_known() {
                waiting += 1;
                continue;
            }
            news += u64::from(contents[revisit as usize].replace(content).is_none());
            referrals.insert([revisits[revisit as usize].source, source]);
        }
        let left = contents.iter().filter(|content| content.is_none()).count() as u64;
        let [news, waiting, left] = net.all_sum("originals found", [news, waiting, left])?;
        question_kind = match (news, question_kind) {
            _ if left == 0 => break,
            (0, QuestionKind::Names) if waiting > 0 => QuestionKind::NamesAtOnce,
            (0, QuestionKind::Names | QuestionKind::NamesAtOnce) => QuestionKind::NamelessBefore,
            (0, QuestionKind::NamelessBefore) => QuestionKind::AnyBefore,
            (0, QuestionKind::AnyBefore) => break,
            _ => QuestionKind::Names,
        };
    }
    Ok(())
}

/// Computes missing payload digests of records if unresolved revisits name payloads. Returns true
/// if any page received a digest that one of them looks up.
///
/// # Cost
/// Reads pages without a digest again, and hashes them in each form of their payload. Costs nothing
/// if all pages have digests, as in crawls whose crawler writes digests.
fn name_payloads(
    net: &mut Net<'_>,
    local_pages: &mut WorkerPages,
    revisits: &[RevisitRecord],
    contents: &[Option<Content>],
    work: &WorkList,
    job: &Job,
    floors: &[u64],
) -> Result<bool> {
    let left = revisits.iter().zip(contents).filter(|(row, content)| content.is_none() && row.names.payload != 0);
    let own_names: Vec<u64> = left.map(|(row, _)| row.names.payload).collect();
    let all_names: HashSet<u64> = net.all_gather("payloads looked for", own_names)?.into_iter().flatten().collect();
    if all_names.is_empty() {
        return Ok(false);
    }
    // Slots by place. Several records may share a place, in a compressed file of one member.
    let mut unnamed: BTreeMap<u32, BTreeMap<u64, Vec<usize>>> = BTreeMap::new();
    let (mut captures, mut names) = (local_pages.captures.reader(), (0..).zip(&local_pages.names));
    local_pages.captures.for_each(|page| {
        let Some((slot, names)) = names.next() else { return };
        if names.payload == 0 && page.rare_fields().segments.is_empty() && page.offset >= floors[page.item as usize] {
            unnamed.entry(page.source).or_default().entry(page.offset).or_default().push(slot);
        }
    })?;
    let computed = InputSettings { digests: DigestPolicy::Compute, ..job.input.clone() };
    let mut name_count = 0;
    for (source, places) in unnamed {
        let offsets: Vec<u64> = places.keys().copied().collect();
        work.read_again(source, &offsets, &computed, &mut |read| {
            net.check()?;
            let ReadResult::Page(page) = read else { return Ok(()) };
            let Some(&name) = page.payloads.iter().find(|name| all_names.contains(name)) else { return Ok(()) };
            let Some(slots) = places.get(&page.offset) else { return Ok(()) };
            let Ok(url) = CanonicalUrl::parse(&page.url) else { return Ok(()) };
            let body = bytes(&page.body);
            for &slot in slots {
                let capture = captures.get(slot)?;
                if capture.body == body && capture.url() == url.as_str() {
                    local_pages.names[slot].payload = name;
                    name_count += 1;
                }
            }
            Ok(())
        })?;
    }
    Ok(net.all_sum("payloads named", [name_count])? != [0])
}

/// Returns the keys of the questions of all workers, ascending.
fn asked_for(net: &mut Net<'_>, questions: &[Question]) -> Result<Arc<Vec<u64>>> {
    let keys = net.broadcast("requested names", questions.iter().map(|question| question.key).collect())?;
    net.once_per_process(|| {
        let mut keys = keys.to_vec();
        keys.sort_unstable();
        keys.dedup();
        keys
    })
}

/// Returns this worker's records with the names that are looked up, under each of these names.
fn offers(
    local_pages: &WorkerPages,
    revisits: &[RevisitRecord],
    contents: &[Option<Content>],
    floors: &[u64],
    own_index: u32,
    question_kind: QuestionKind,
    is_asked: impl Fn(u64) -> bool,
) -> Result<Vec<Offer>> {
    // An unresolved revisit is offered by URL and date only: other revisits must wait for it, but
    // not for its weaker names.
    let keys = |url: DocId, time: i64, names: RecordIds, is_known: bool| {
        let keys = match question_kind.is_by_names() {
            false => [Some(Way::Before.key(url)), None, None],
            true => [
                (time != 0).then(|| Way::at(url, time)),
                (names.payload != 0 && is_known).then(|| Way::Payload.key(names.payload)),
                (names.id != 0 && is_known).then(|| Way::Id.key(names.id)),
            ],
        };
        keys.into_iter().flatten().filter(|&key| is_asked(key))
    };
    let mut offers = Vec::new();
    let mut names = local_pages.names.iter();
    local_pages.captures.for_each(|page| {
        let Some(&names) = names.next() else { return };
        if page.offset < floors[page.item as usize] {
            return;
        }
        offers.extend(keys(page.doc_id, page.fetch_time, names, true).map(|key| Offer {
            key,
            url: page.doc_id,
            time: page.fetch_time,
            payload: names.payload,
            id: names.id,
            is_conversion: page.is_conversion().into(),
            content: Content {
                body: page.body,
                hash: page.content_hash(),
                url: page.doc_id,
                worker: own_index,
                slot: page.slot,
            },
            source: page.source.into(),
            offset: page.offset,
        }));
    })?;
    for (revisit, content) in revisits.iter().zip(contents) {
        // Only in the first kind of rounds may an unresolved revisit be an answer: others then wait
        // for it.
        if content.is_none() && question_kind != QuestionKind::Names {
            continue;
        }
        let (url, names) = (doc_id(&revisit.url), revisit.names);
        offers.extend(keys(url, revisit.fetch_time, names, content.is_some()).map(|key| Offer {
            key,
            url,
            time: revisit.fetch_time,
            payload: names.payload,
            id: names.id,
            is_conversion: 0,
            content: content.unwrap_or(Content::UNKNOWN),
            source: revisit.source.into(),
            offset: revisit.offset,
        }));
    }
    Ok(offers)
}

fn questions(
    revisits: &[RevisitRecord],
    contents: &[Option<Content>],
    own_index: u32,
    question_kind: QuestionKind,
) -> Vec<Question> {
    let mut questions = Vec::new();
    for (number, (row, _)) in revisits.iter().zip(contents).enumerate().filter(|(_, (_, content))| content.is_none()) {
        let url = if row.original == 0 { doc_id(&row.url) } else { row.original };
        let mut ask = |way: Way, key, time| {
            let (payload, id, revisit) = (row.names.payload, row.refers_to, number as u32);
            questions.push(Question { key, url, payload, id, time, asker: own_index, revisit, method: way as u64 });
        };
        if !question_kind.is_by_names() {
            let is_nameless = row.refers_to == 0 && row.original == 0;
            // The content of another payload may have been captured in between, so a revisit with a
            // payload does not ask for the previous capture.
            if row.names.payload == 0 && (is_nameless || question_kind == QuestionKind::AnyBefore) {
                let times = [row.original_time, row.fetch_time, i64::MAX];
                ask(Way::Before, Way::Before.key(url), *times.iter().find(|&&time| time != 0).unwrap_or(&i64::MAX));
            }
            continue;
        }
        if row.original != 0 && row.original_time != 0 {
            ask(Way::UrlAndDate, Way::at(row.original, row.original_time), row.original_time);
        }
        if row.names.payload != 0 {
            ask(Way::Payload, Way::Payload.key(row.names.payload), row.original_time);
        }
        if row.refers_to != 0 {
            ask(Way::Id, Way::Id.key(row.refers_to), row.original_time);
        }
    }
    questions
}

/// Sends questions to the owners of names. Returns, for each revisit with an answer, the answer to
/// its strongest name. The content is unknown for a revisit that waits.
fn round(
    net: &mut Net<'_>,
    offers: Vec<Offer>,
    questions: Vec<Question>,
    question_kind: QuestionKind,
) -> Result<Vec<Answer>> {
    let peers = net.peers() as u64;
    let mut offers = net.exchange("names of records", offers, |row| (row.key % peers) as usize)?;
    offers.sort_unstable_by_key(|offer| offer.key);
    let questions = net.exchange("names of originals", questions, |row| (row.key % peers) as usize)?;
    let answers = questions.into_iter().filter_map(|question| {
        let &Offer { source, content, .. } = best(&offers, &question)?;
        let Question { asker, revisit, method: way, .. } = question;
        Some(Answer { asker, revisit, method: way as u32, source: source as u32, content })
    });
    let mut answers = net.exchange("originals", answers, |answer| answer.asker as usize)?;
    debug_assert!(question_kind == QuestionKind::Names || answers.iter().all(|answer| answer.content.is_known()));
    answers.sort_unstable_by_key(|answer| (answer.revisit, answer.method));
    answers.dedup_by_key(|answer| answer.revisit);
    Ok(answers)
}

/// Returns the record that answers a question. `offers` must be ascending by key.
fn best<'o>(offers: &'o [Offer], question: &Question) -> Option<&'o Offer> {
    let first = offers.partition_point(|offer| offer.key < question.key);
    let candidates = || offers[first..].iter().take_while(|offer| offer.key == question.key);
    if question.method == Way::Before as u64 {
        let earlier_offers = candidates().filter(|offer| offer.time <= question.time);
        return earlier_offers.min_by_key(|offer| (offer.is_conversion, Reverse(offer.time), in_any_order(offer)));
    }
    // Compares the other names that the revisit gives with those of the record. A record with fewer
    // and later mismatches is better.
    let misfits = |offer: &Offer| {
        [
            question.payload != 0 && offer.payload != question.payload,
            offer.url != question.url,
            question.time != 0 && offer.time != question.time,
            question.id != 0 && offer.id != question.id,
        ]
    };
    let known_candidates = || candidates().filter(|offer| offer.content.is_known());
    let Some(best) =
        known_candidates().min_by_key(|&offer| (misfits(offer), offer.is_conversion, offer.time, in_any_order(offer)))
    else {
        return candidates().next();
    };
    let is_rival = |offer: &Offer| misfits(offer) == misfits(best) && offer.content.body != best.content.body;
    let is_ambiguous = question.method == Way::Id as u64 && known_candidates().any(is_rival);
    (!is_ambiguous).then_some(best)
}

/// Returns the order among records that answer equally well: by content, by URL, by the URL of the
/// original if the record is a revisit, and by place only for copies.
fn in_any_order(offer: &Offer) -> impl Ord + use<> {
    (offer.content.body, offer.content.hash, offer.url, offer.content.url, offer.source, offer.offset)
}

/// Links and other references of a page to URLs.
#[derive(Debug, Clone, Default)]
struct Outlook {
    links: Vec<DocId>,
    leads_to: Option<DocId>,
    canonical: DocId,
    editions: Vec<DocId>,
}

/// Returns the references of the pages that revisits become; `None` if they equal the references of
/// the original.
fn outlooks(
    net: &Net<'_>,
    local_pages: &WorkerPages,
    originals: &[(u32, RevisitRecord)],
    work: &WorkList,
    job: &Job,
) -> Result<Vec<Option<Outlook>>> {
    let mut outlooks: Vec<Option<Outlook>> = vec![None; originals.len()];
    // Numbers of revisits by the place of their original.
    let mut places_to_read: BTreeMap<u32, BTreeMap<u64, Vec<usize>>> = BTreeMap::new();
    let mut captures = local_pages.captures.reader();
    for (number, (slot, revisit)) in originals.iter().enumerate() {
        let original = captures.get(*slot as usize)?;
        if original.url() != revisit.url && original.rare_fields().segments.is_empty() {
            places_to_read.entry(original.source).or_default().entry(original.offset).or_default().push(number);
        }
    }
    // An original in segments cannot be read at one offset, so its segments are joined again.
    let mut extractor = Extractor::following(&job.input.limits, &job.links);
    for ((slot, revisit), outlook) in originals.iter().zip(&mut outlooks) {
        let original = captures.get(*slot as usize)?;
        let segments = original.rare_fields().segments;
        if original.url() != revisit.url && !segments.is_empty() {
            let first = (original.source, original.offset);
            let places: Vec<_> = std::iter::once(first).chain(segments).collect();
            if let Ok(page) = segments::read(net, &places, None, work, &job.input)? {
                *outlook = outlook_of(&page, revisit, &mut extractor)?;
            }
        }
    }
    for (source, mut places) in places_to_read {
        let offsets: Vec<u64> = places.keys().copied().collect();
        work.read_again(source, &offsets, &job.input, &mut |read| {
            net.check()?;
            let ReadResult::Page(page) = read else { return Ok(()) };
            let Some(numbers) = places.get_mut(&page.offset) else { return Ok(()) };
            let Ok(url) = CanonicalUrl::parse(&page.url) else { return Ok(()) };
            let body = bytes(&page.body);
            for &number in &*numbers {
                let (slot, revisit) = &originals[number];
                let original = captures.get(*slot as usize)?;
                // Several records may share a place, in a compressed file of one member.
                if original.url() == url.as_str() && original.body == body && outlooks[number].is_none() {
                    outlooks[number] = outlook_of(&page, revisit, &mut extractor)?;
                }
            }
            Ok(())
        })?;
        if let Some(&number) = places.values().flatten().find(|&&number| outlooks[number].is_none()) {
            let place = originals[number].0 as usize;
            let page = captures.get(place)?;
            let (url, offset) = (page.url(), page.offset);
            let fault =
                format!("the record at offset {offset} is no longer {url}: the file changed during the run; run again");
            return Err(Error::input(&work.inputs[source as usize], fault));
        }
    }
    Ok(outlooks)
}

/// Returns the references of a revisit with the content of this page. Relative links are resolved
/// against the URL of the revisit.
fn outlook_of(page: &RawPage, revisit: &RevisitRecord, extractor: &mut Extractor) -> Result<Option<Outlook>> {
    let base_url = CanonicalUrl::parse(&revisit.url).expect("the URL of a revisit is canonical");
    let extracted = extractor.page(page, &base_url)?.ok();
    Ok(extracted.map(|ExtractedPage { links, leads_to, canonical, editions, .. }| Outlook {
        links: links.to_vec(),
        leads_to,
        canonical: canonical.unwrap_or_default(),
        editions: editions.to_vec(),
    }))
}

/// Damage of a record, not of its content: a revisit with the same content does not have it.
const DAMAGE_OF_RECORD: [Reason; 4] = [Reason::BadHeader, Reason::BadContentLength, Reason::BadDate, Reason::GzipCrc];

/// Returns the repairs of a revisit: those of its own record and those of its content.
fn repairs(own_repair: Option<Reason>, of_original: &[Reason]) -> Vec<Reason> {
    let of_content = of_original.iter().copied().filter(|reason| !DAMAGE_OF_RECORD.contains(reason));
    own_repair.into_iter().chain(of_content).collect()
}

/// Adds a revisit to the local pages as a capture with the content in `slot`.
fn keep_locally(
    local_pages: &mut WorkerPages,
    slot: usize,
    revisit: RevisitRecord,
    outlook: Option<Outlook>,
) -> Result<()> {
    let RevisitRecord { url, fetch_time, names, source, item, offset, length, repaired, .. } = revisit;
    let original = local_pages.captures.reader().get(slot)?.to_capture();
    let place = RecordPlace { source: original.source, offset: original.offset, url: original.url.clone() };
    local_pages.captures.push(&Capture {
        doc_id: doc_id(&url),
        url,
        fetch_time,
        source,
        item,
        offset,
        length,
        slot: local_pages.exact.len() as u32,
        repaired: repairs(repaired, &original.repaired),
        original: Some(Box::new(place)),
        is_conversion: false,
        record: names.id as u32,
        canonical: outlook.as_ref().map_or(original.canonical, |outlook| outlook.canonical),
        ..original
    })?;
    // Text does not depend on the URL, so its fingerprints and features are copied from the
    // original.
    local_pages.exact.push(local_pages.exact[slot]);
    local_pages.fprints.push_again(slot)?;
    if local_pages.features.slots() > 0 {
        local_pages.features.push_again(slot)?;
    }
    if let Some(sets) = &mut local_pages.sets {
        sets.push_again(slot);
    }
    let number = local_pages.links.slots() as u32;
    let (leads_to, editions) = match outlook {
        Some(Outlook { links, leads_to, editions, .. }) => {
            local_pages.links.push(&links)?;
            (leads_to, editions)
        }
        None => {
            local_pages.links.push_again(slot)?;
            let at = local_pages.leads.binary_search_by_key(&(slot as u32), |lead| lead.0);
            let is_of_slot = |row: &(u32, DocId)| row.0 as usize == slot;
            let start = local_pages.editions.partition_point(|row| (row.0 as usize) < slot);
            let editions =
                local_pages.editions[start..].iter().copied().take_while(is_of_slot).map(|row| row.1).collect();
            (at.ok().map(|at| local_pages.leads[at].1), editions)
        }
    };
    local_pages.leads.extend(leads_to.map(|to| (number, to)));
    local_pages.editions.extend(editions.into_iter().map(|to| (number, to)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisit_has_the_damage_of_its_record_and_of_its_content() {
        let of_original = [Reason::EncodingLie, Reason::BadDate, Reason::TooManyLinks];
        assert_eq!(repairs(None, &of_original), [Reason::EncodingLie, Reason::TooManyLinks]);
        assert_eq!(repairs(Some(Reason::BadDate), &of_original[..1]), [Reason::BadDate, Reason::EncodingLie]);
        assert_eq!(repairs(Some(Reason::BadDate), &[]), [Reason::BadDate]);
    }
}
