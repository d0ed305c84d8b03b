//! What a worker has read of a work item, as a record: written while a run reads, taken up by the next. An interrupted run
//! resumes from records on its local disk ([`crate::storage::records`]), a scheduled one goes on from those of its state
//! ([`crate::storage::state`]).
//!
//! A record says nothing of numbers that may differ in the next run: those of inputs, items, workers and slots are given anew
//! when it is put on a shelf. So it serves any number of workers, and inputs may have been added or have changed beside it.
//!
//! A record is serialised by serde and `bincode`; both stores frame it with its length and checksum. Records of a state are
//! read by later builds, so a change of their fields, or of what reading makes of a page, needs another number in
//! [`crate::job::READING`]; a test shows both.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bincode::Options;
use serde::{Deserialize, Serialize};

use crate::dataflow::reading::revisits::Revisit;
use crate::dataflow::reading::segments::Segment;
use crate::dataflow::reading::shingle_sets::ShingleSets;
use crate::dataflow::reading::worker_pages::{Capture, Redirect, Rejection, WorkerPages};
use crate::error::Result;
use crate::ids::{DocId, FPrint, doc_id};
use crate::pages::record::Names;
use crate::pages::warc::RangeEnd;
use crate::storage::records::RecordStore;

/// Records are written once they have this many bytes,
const ENOUGH_BYTES: u64 = 64 << 20;

/// or, where a run may be interrupted, after this time or a hundredth of the time read so far, whichever is longer.
const OFTEN: Duration = Duration::from_millis(100);

/// Records of the items of a run, and what came of them. The workers of a process share it.
#[derive(Debug)]
pub struct Resume {
    /// Where they lie.
    pub store: Arc<dyn RecordStore>,
    /// Items that were not read again.
    pub taken_up: AtomicU64,
    /// Items whose records were written.
    pub recorded: AtomicU64,
    /// Whether a record could not be written; then no more are.
    pub gave_up: AtomicBool,
}

impl Resume {
    /// Takes up these records, and adds to them.
    pub fn new(store: Arc<dyn RecordStore>) -> Resume {
        Resume { store, taken_up: AtomicU64::new(0), recorded: AtomicU64::new(0), gave_up: AtomicBool::new(false) }
    }

    /// Puts what an earlier run has read of an item on the shelf; false, and nothing on it, when there is no good record.
    ///
    /// # Errors
    /// Those of the disk that takes sets of shingles.
    pub fn take_up(&self, number: usize, input: u32, worker: u32, shelf: &mut WorkerPages) -> Result<bool> {
        let Some(record) = self.store.read(number) else { return Ok(false) };
        let put = decode(&record, (number as u32, input), worker, shelf)?;
        match put {
            true => drop(self.taken_up.fetch_add(1, Ordering::Relaxed)),
            false => self.store.refuse(),
        }
        Ok(put)
    }
}

/// Writes down what one worker reads.
#[derive(Debug)]
pub struct Recorder<'a> {
    resume: &'a Resume,
    unwritten: Vec<(usize, Part)>,
    unwritten_bytes: u64,
    began: Instant,
    written: Instant,
}

impl<'a> Recorder<'a> {
    /// Nothing read yet.
    pub fn new(resume: &'a Resume) -> Recorder<'a> {
        let now = Instant::now();
        Recorder { resume, unwritten: Vec::new(), unwritten_bytes: 0, began: now, written: now }
    }

    /// Notes that an item is on the shelf, and writes what has come together if it is time.
    pub fn note(&mut self, number: usize, part: Part, shelf: &WorkerPages) {
        self.unwritten_bytes += part.bytes(shelf);
        self.unwritten.push((number, part));
        let often = OFTEN.max(self.began.elapsed() / 100);
        let is_time = self.resume.store.writes_at_once() && self.written.elapsed() >= often;
        if self.unwritten_bytes >= ENOUGH_BYTES || is_time {
            self.write(shelf);
        }
    }

    /// Writes what has come together.
    pub fn write(&mut self, shelf: &WorkerPages) {
        if !self.unwritten.is_empty() && !self.resume.gave_up.load(Ordering::Relaxed) {
            let numbers: Vec<usize> = self.unwritten.iter().map(|item| item.0).collect();
            let mut parts = self.unwritten.iter().map(|item| &item.1);
            let mut encode = |_, record: &mut Vec<u8>| encode(parts.next().expect("a part an item"), shelf, record);
            match self.resume.store.write(&numbers, &mut encode) {
                Ok(()) => drop(self.resume.recorded.fetch_add(numbers.len() as u64, Ordering::Relaxed)),
                Err(_) => self.resume.gave_up.store(true, Ordering::Relaxed),
            }
        }
        self.unwritten.clear();
        self.unwritten_bytes = 0;
        self.written = Instant::now();
    }
}

/// What one item has left on a shelf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Slots of its pages.
    pub slots: Range<usize>,
    /// Places of its rejections.
    pub rejections: Range<usize>,
    /// Places of its pages that lead on.
    pub leads: Range<usize>,
    /// Places of its redirects.
    pub redirects: Range<usize>,
    /// Places of its revisits.
    pub revisits: Range<usize>,
    /// Places of its segments.
    pub segments: Range<usize>,
    /// What reading it came to.
    pub end: RangeEnd,
}

impl Part {
    /// What is put on the shelf after this call, once [`Part::to_here`] says where it ends.
    pub fn from_here(shelf: &WorkerPages) -> Part {
        let from = |rows: usize| rows..rows;
        Part {
            slots: from(shelf.exact.len()),
            rejections: from(shelf.rejections.len()),
            leads: from(shelf.leads.len()),
            redirects: from(shelf.redirects.len()),
            revisits: from(shelf.revisits.len()),
            segments: from(shelf.segments.len()),
            end: RangeEnd { first_start: None, last_start: None, end: 0, records: 0 },
        }
    }

    /// The part up to the item put on the shelf last.
    ///
    /// # Panics
    /// If there is none.
    pub fn to_here(self, shelf: &WorkerPages) -> Part {
        Part {
            slots: self.slots.start..shelf.exact.len(),
            rejections: self.rejections.start..shelf.rejections.len(),
            leads: self.leads.start..shelf.leads.len(),
            redirects: self.redirects.start..shelf.redirects.len(),
            revisits: self.revisits.start..shelf.revisits.len(),
            segments: self.segments.start..shelf.segments.len(),
            end: shelf.items.last().expect("an item has been read").1,
        }
    }

    fn bytes(&self, shelf: &WorkerPages) -> u64 {
        let slots = || self.slots.clone();
        let numbers = shelf.fprints.span(slots()).len() + shelf.links.span(slots()).len();
        let features = shelf.features.span(slots()).0.len();
        let projected: usize = shelf.captures[slots()].iter().map(|page| page.projected.len()).sum();
        let shingles = shelf.sets.as_ref().map_or(0, |sets| sets.items_of(slots()));
        let rows =
            slots().len() + self.rejections.len() + self.redirects.len() + self.revisits.len() + self.segments.len();
        8 * (numbers + projected) as u64 + 10 * features as u64 + 4 * shingles + 200 * rows as u64
    }
}

/// The record of an item, as it is written.
#[derive(Serialize)]
struct RecordOf<'a> {
    captures: &'a [Capture],
    names: &'a [Names],
    rejections: &'a [Rejection],
    /// Pages that lead on, counted from the first of the item.
    leads: Vec<(u32, DocId)>,
    redirects: &'a [Redirect],
    revisits: &'a [Revisit],
    segments: &'a [Segment],
    fprints: Vec<&'a [FPrint]>,
    links: Vec<&'a [DocId]>,
    /// Hashes and weights of each page; `None` where pages have no lists of features, not even empty ones.
    features: Option<Vec<(&'a [u64], &'a [u16])>>,
    /// Sets of shingles, where pages are compared by these.
    sets: Option<Vec<Vec<u32>>>,
    end: RangeEnd,
}

/// The same, as it is read.
#[derive(Deserialize)]
struct Record {
    captures: Vec<Capture>,
    names: Vec<Names>,
    rejections: Vec<Rejection>,
    leads: Vec<(u32, DocId)>,
    redirects: Vec<Redirect>,
    revisits: Vec<Revisit>,
    segments: Vec<Segment>,
    fprints: Vec<Vec<FPrint>>,
    links: Vec<Vec<DocId>>,
    features: Option<Vec<(Vec<u64>, Vec<u16>)>>,
    sets: Option<Vec<Vec<u32>>>,
    end: RangeEnd,
}

/// Nothing may follow a record.
fn codec() -> impl Options {
    bincode::DefaultOptions::new().with_fixint_encoding()
}

/// Appends the record of an item; its captures must still be on the shelf.
///
/// # Errors
/// Those of the disk that holds sets of shingles.
fn encode(part: &Part, shelf: &WorkerPages, record: &mut Vec<u8>) -> Result<()> {
    let slots = || part.slots.clone();
    let set = |sets: &ShingleSets, slot| Ok(sets.get(slot, &mut Vec::new())?.to_vec());
    let sets = shelf.sets.as_ref().map(|sets| slots().map(|slot| set(sets, slot)).collect::<Result<_>>());
    let of = RecordOf {
        captures: &shelf.captures[slots()],
        names: &shelf.names[slots()],
        rejections: &shelf.rejections[part.rejections.clone()],
        leads: shelf.leads[part.leads.clone()].iter().map(|&(slot, to)| (slot - part.slots.start as u32, to)).collect(),
        redirects: &shelf.redirects[part.redirects.clone()],
        revisits: &shelf.revisits[part.revisits.clone()],
        segments: &shelf.segments[part.segments.clone()],
        fprints: slots().map(|slot| shelf.fprints.get(slot)).collect(),
        links: slots().map(|slot| shelf.links.get(slot)).collect(),
        features: (shelf.features.slots() > 0).then(|| slots().map(|slot| shelf.features.get(slot)).collect()),
        sets: sets.transpose()?,
        end: part.end,
    };
    codec().serialize_into(record, &of).expect("plain values go into memory");
    Ok(())
}

/// Puts a record on the shelf as item `(number, input)`; false, and the shelf as it was, when it is no such record.
///
/// # Errors
/// Those of the disk that takes sets of shingles.
fn decode(record: &[u8], (item, source): (u32, u32), worker: u32, shelf: &mut WorkerPages) -> Result<bool> {
    let Ok(record) = codec().deserialize(record) else { return Ok(false) };
    let Record {
        captures,
        names,
        rejections,
        leads,
        redirects,
        revisits,
        segments,
        fprints,
        links,
        features,
        sets,
        end,
    } = record;
    let pages = captures.len();
    let features = features.unwrap_or_default();
    let is_whole = fprints.len() == pages
        && links.len() == pages
        && names.len() == pages
        && leads.iter().all(|&(slot, _)| (slot as usize) < pages)
        && (features.is_empty() || features.len() == pages)
        && features.iter().all(|(hashes, weights)| hashes.len() == weights.len())
        && sets.is_some() == shelf.sets.is_some()
        && sets.as_ref().is_none_or(|sets| sets.len() == pages)
        && captures.iter().all(|page| page.doc_id == doc_id(&page.url));
    if !is_whole {
        return Ok(false);
    }
    if let (Some(of_pages), Some(sets)) = (sets, &mut shelf.sets) {
        of_pages.iter().try_for_each(|set| sets.push(set))?;
    }
    let first = shelf.exact.len() as u32;
    shelf.leads.extend(leads.into_iter().map(|(slot, to)| (first + slot, to)));
    shelf.redirects.extend(redirects.into_iter().map(|row| Redirect { source, item, ..row }));
    for (slot, page) in (first..).zip(captures) {
        shelf.exact.push(page.exact);
        shelf.captures.push(Capture { source, item, worker, slot, ..page });
    }
    fprints.iter().for_each(|list| shelf.fprints.push(list));
    links.iter().for_each(|list| shelf.links.push(list));
    features.iter().for_each(|(hashes, weights)| shelf.features.push_as_kept(hashes, weights));
    shelf.names.extend(names);
    shelf.revisits.extend(revisits.into_iter().map(|row| Revisit { source, item, ..row }));
    shelf.segments.extend(segments.into_iter().map(|row| Segment { source, item, ..row }));
    shelf.rejections.extend(rejections.into_iter().map(|row| Rejection { source, item, ..row }));
    shelf.items.push((item, end));
    Ok(true)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::pages::record::Reason;
    use crate::storage::spill::Disk;
    use crate::text::Feature;

    /// A shelf with an item of these pages: numbers of fingerprints, features and links, and a text.
    fn shelf(pages: &[(usize, usize, usize, String)], with_features: bool, item: u32, first: &mut WorkerPages) -> Part {
        let begin = Part::from_here(first);
        for (n, (fprints, features, links, text)) in pages.iter().enumerate() {
            let url = format!("http://a.example/{text}");
            let number = n as u64 + 1;
            first.captures.push(Capture {
                doc_id: doc_id(&url),
                url,
                fetch_time: -5 * number as i64,
                status: 200 + n as u16,
                mime: text.clone().into(),
                title: text.as_str().into(),
                body_bytes: number << 33,
                body: !number,
                text_bytes: number,
                chunks: *fprints as u32 + 1,
                exact: u64::MAX - number,
                simhash: (n % 2 == 0).then_some(number << 60),
                projected: vec![-7 * number as i64; n % 3],
                source: 3,
                item,
                offset: number * 7,
                length: number * 8,
                mended: Reason::ALL[..n % 4].to_vec(),
                worker: 1,
                slot: first.exact.len() as u32,
                original: None,
                segments: vec![(number as u32, number); n % 2],
            });
            first.names.push(Names { id: number, payload: !number });
            first.exact.push(u64::MAX - number);
            first.fprints.push(&(0..*fprints as u64).map(|n| n << 40).collect::<Vec<_>>());
            if let Some(sets) = &mut first.sets {
                sets.push(&(0..*features as u32).collect::<Vec<_>>()).unwrap();
            }
            first.links.push(&(0..*links as u64).collect::<Vec<_>>());
            if with_features {
                let weighted = |n| Feature { hash: n, weight: n as u32 * 40 };
                first.features.push(&(0..*features as u64).map(weighted).collect::<Vec<_>>());
            }
            if n % 2 == 1 {
                first.leads.push((first.exact.len() as u32 - 1, number << 5));
                let (from, fetch_time) = (number << 6, -(number as i64));
                first.redirects.push(Redirect { from, to: number, fetch_time, source: 3, item, offset: number });
            }
            if n % 3 == 2 {
                first.revisits.push(Revisit {
                    url: text.clone(),
                    fetch_time: -(number as i64),
                    names: Names { id: number << 1, payload: 0 },
                    refers_to: number << 2,
                    original: number << 3,
                    original_time: number as i64,
                    source: 3,
                    item,
                    offset: number,
                    length: number,
                });
            }
            if n % 4 == 1 {
                let (bytes, number) = (number << 9, n as u32);
                let row = Segment { origin: bytes, number, total: bytes, bytes, source: 3, item, offset: bytes };
                first.segments.push(row);
            }
            if n % 3 == 1 {
                let reason = *Reason::ALL.last().unwrap();
                first.rejections.push(Rejection { source: 3, offset: number, reason, detail: text.clone(), item });
            }
        }
        let end = RangeEnd { first_start: Some(0), last_start: None, end: 9, records: pages.len() as u64 };
        first.items.push((item, end));
        begin.to_here(first)
    }

    /// An empty shelf.
    fn empty(with_sets: bool) -> WorkerPages {
        let sets = || ShingleSets::new(u64::MAX, &Disk::new(&std::env::temp_dir(), 0));
        WorkerPages { sets: with_sets.then(sets), ..WorkerPages::default() }
    }

    fn pages() -> impl Strategy<Value = Vec<(usize, usize, usize, String)>> {
        prop::collection::vec((0usize..20, 0usize..20, 0usize..20, "[a-zü]{0,9}"), 0..9)
    }

    proptest! {
        #[test]
        fn a_record_puts_the_same_on_another_shelf_whatever_lies_before_it(
            before in pages(), pages in pages(), with_features: bool, with_sets: bool
        ) {
            let mut from = empty(with_sets);
            shelf(&before, with_features, 4, &mut from);
            let part = shelf(&pages, with_features, 5, &mut from);
            let mut record = Vec::new();
            encode(&part, &from, &mut record).unwrap();

            // The same two items with the same numbers, one of them out of its record, are the same shelf.
            let mut to = empty(with_sets);
            shelf(&before, with_features, 4, &mut to);
            prop_assert!(decode(&record, (5, 3), 1, &mut to).unwrap());
            prop_assert_eq!(format!("{to:?}"), format!("{from:?}"));

            // Other numbers go into rows only.
            let mut other = empty(with_sets);
            prop_assert!(decode(&record, (8, 6), 2, &mut other).unwrap());
            prop_assert!(other.captures.iter().all(|row| (row.item, row.source, row.worker) == (8, 6, 2)));
            prop_assert!(other.rejections.iter().all(|row| (row.item, row.source) == (8, 6)));
            prop_assert!(other.revisits.iter().all(|row| (row.item, row.source) == (8, 6)));
            prop_assert_eq!(other.items, [(8, part.end)]);
        }

        #[test]
        fn what_is_no_record_is_refused_and_leaves_the_shelf_alone(pages in pages(), cut: usize, at: usize, to: u8) {
            let mut from = empty(true);
            let part = shelf(&pages, true, 5, &mut from);
            let mut record = Vec::new();
            encode(&part, &from, &mut record).unwrap();
            let mut other = empty(true);
            prop_assert!(!decode(&[], (5, 3), 1, &mut other).unwrap());
            prop_assert!(!decode(&record[..cut % record.len()], (5, 3), 1, &mut other).unwrap());
            prop_assert!(!decode(&[&record[..], b"x"].concat(), (5, 3), 1, &mut other).unwrap());
            prop_assert_eq!(format!("{other:?}"), format!("{:?}", empty(true)));
            let at = at % record.len();
            record[at] = to;
            if !decode(&record, (5, 3), 1, &mut other).unwrap() {
                prop_assert_eq!(format!("{other:?}"), format!("{:?}", empty(true)));
            }
        }
    }
}
