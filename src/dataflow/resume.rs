//! What a worker has read of a work item, as a record on the local disk: written while a run reads, taken up by the next.
//!
//! A record says nothing of numbers that may differ in the next run: those of inputs, items, workers and slots are given anew
//! when it is put on a shelf. So it serves any number of workers, and inputs may have been added or have changed beside it.
//!
//! # Layout of a record
//! `Head`, `Row` for each page, `RejectionRow`; fingerprints, feature hashes, links, projections (8 bytes each), feature
//! weights (2); then bytes: what was mended, URLs and media types of the pages, details of the rejections; all in the order of reading.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytemuck::{Pod, Zeroable};

use super::shelf::{Capture, Rejection, Shelf};
use crate::ids::{FPrint, doc_id};
use crate::pages::record::Reason;
use crate::pages::warc::RangeEnd;
use crate::storage::records::Records;

/// Records are written once they have this many bytes,
const ENOUGH_BYTES: u64 = 64 << 20;

/// or after this time, or a hundredth of the time read so far, whichever is longer.
const OFTEN: Duration = Duration::from_millis(100);

/// Records of the items of a run, and what came of them. The workers of a process share it.
#[derive(Debug)]
pub struct Resume {
    /// Where they lie.
    pub records: Records,
    /// Items that were not read again.
    pub taken_up: AtomicU64,
    /// Items whose records were written.
    pub recorded: AtomicU64,
    /// Whether a record could not be written; then no more are.
    pub gave_up: AtomicBool,
}

impl Resume {
    /// Takes up these records, and adds to them.
    pub fn new(records: Records) -> Resume {
        Resume { records, taken_up: AtomicU64::new(0), recorded: AtomicU64::new(0), gave_up: AtomicBool::new(false) }
    }

    /// Puts what an earlier run has read of an item on the shelf; false, and nothing on it, when there is no good record.
    pub fn take_up(&self, number: usize, input: u32, worker: u32, shelf: &mut Shelf) -> bool {
        let Some(record) = self.records.read(number) else { return false };
        let put = decode(&record, (number as u32, input), worker, shelf).is_some();
        let counter = if put { &self.taken_up } else { &self.records.ignored.damaged };
        counter.fetch_add(1, Ordering::Relaxed);
        put
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
    pub fn note(&mut self, number: usize, part: Part, shelf: &Shelf) {
        self.unwritten_bytes += part.bytes(shelf);
        self.unwritten.push((number, part));
        let often = OFTEN.max(self.began.elapsed() / 100);
        if self.unwritten_bytes >= ENOUGH_BYTES || self.written.elapsed() >= often {
            self.write(shelf);
        }
    }

    /// Writes what has come together.
    pub fn write(&mut self, shelf: &Shelf) {
        if !self.unwritten.is_empty() && !self.resume.gave_up.load(Ordering::Relaxed) {
            let numbers: Vec<usize> = self.unwritten.iter().map(|item| item.0).collect();
            let mut parts = self.unwritten.iter().map(|item| &item.1);
            let mut encode = |_, record: &mut Vec<u8>| encode(parts.next().expect("a part an item"), shelf, record);
            match self.resume.records.write(&numbers, &mut encode) {
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
    /// What reading it came to.
    pub end: RangeEnd,
}

impl Part {
    fn bytes(&self, shelf: &Shelf) -> u64 {
        let slots = || self.slots.clone();
        let numbers = shelf.fprints.span(slots()).len() + shelf.links.span(slots()).len();
        let features = shelf.features.span(slots()).0.len();
        let projected: usize = shelf.captures[slots()].iter().map(|page| page.projected.len()).sum();
        8 * (numbers + projected) as u64 + 10 * features as u64 + 200 * (slots().len() + self.rejections.len()) as u64
    }
}

/// Lengths of what follows, and the end of the item.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Head {
    pages: u64,
    rejections: u64,
    fprints: u64,
    features: u64,
    links: u64,
    /// Whether pages have lists of features, even empty ones.
    with_features: u64,
    first_start: u64,
    last_start: u64,
    /// Bit 0: there is a first start; bit 1: there is a last one.
    starts: u64,
    end: u64,
    records: u64,
}

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Row {
    fetch_time: i64,
    body_bytes: u64,
    body: FPrint,
    text_bytes: u64,
    exact: u64,
    simhash: u64,
    offset: u64,
    length: u64,
    fprints: u64,
    features: u64,
    links: u64,
    projected: u64,
    url: u64,
    mime: u64,
    mended: u64,
    chunks: u32,
    status: u16,
    has_simhash: u16,
}

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct RejectionRow {
    offset: u64,
    reason: u64,
    detail: u64,
}

fn put<T: Pod>(record: &mut Vec<u8>, rows: &[T]) {
    record.extend_from_slice(bytemuck::cast_slice(rows));
}

/// Appends the record of an item; its captures must still be on the shelf.
fn encode(part: &Part, shelf: &Shelf, record: &mut Vec<u8>) {
    let Part { slots, rejections, end } = part;
    let (fprints, links) = (shelf.fprints.span(slots.clone()), shelf.links.span(slots.clone()));
    let (hashes, weights) = shelf.features.span(slots.clone());
    let captures = &shelf.captures[slots.clone()];
    let refused = &shelf.rejections[rejections.clone()];
    put(
        record,
        &[Head {
            pages: slots.len() as u64,
            rejections: refused.len() as u64,
            fprints: fprints.len() as u64,
            features: hashes.len() as u64,
            links: links.len() as u64,
            with_features: (shelf.features.slots() > 0).into(),
            first_start: end.first_start.unwrap_or(0),
            last_start: end.last_start.unwrap_or(0),
            starts: u64::from(end.first_start.is_some()) | u64::from(end.last_start.is_some()) << 1,
            end: end.end,
            records: end.records,
        }],
    );
    for (slot, page) in slots.clone().zip(captures) {
        put(
            record,
            &[Row {
                fetch_time: page.fetch_time,
                body_bytes: page.body_bytes,
                body: page.body,
                text_bytes: page.text_bytes,
                exact: page.exact,
                simhash: page.simhash.unwrap_or(0),
                offset: page.offset,
                length: page.length,
                fprints: shelf.fprints.get(slot).len() as u64,
                features: shelf.features.span(slot..slot + 1).0.len() as u64,
                links: shelf.links.get(slot).len() as u64,
                projected: page.projected.len() as u64,
                url: page.url.len() as u64,
                mime: page.mime.len() as u64,
                mended: page.mended.len() as u64,
                chunks: page.chunks,
                status: page.status,
                has_simhash: page.simhash.is_some().into(),
            }],
        );
    }
    for Rejection { offset, reason, detail, .. } in refused {
        put(record, &[RejectionRow { offset: *offset, reason: *reason as u64, detail: detail.len() as u64 }]);
    }
    put(record, fprints);
    put(record, hashes);
    put(record, links);
    captures.iter().for_each(|page| put(record, &page.projected));
    put(record, weights);
    captures.iter().flat_map(|page| &page.mended).for_each(|&reason| record.push(reason as u8));
    captures.iter().for_each(|page| record.extend(page.url.bytes().chain(page.mime.bytes())));
    refused.iter().for_each(|row| record.extend(row.detail.bytes()));
}

/// What is left of a list that is taken from the front.
struct Rest<'a, T>(&'a [T]);

impl<'a, T> Rest<'a, T> {
    fn take(&mut self, n: u64) -> Option<&'a [T]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(n).ok()?)?;
        self.0 = rest;
        Some(taken)
    }
}

impl<'a> Rest<'a, u8> {
    fn rows<T: Pod>(&mut self, n: u64) -> Option<Vec<T>> {
        Some(bytemuck::pod_collect_to_vec(self.take(n.checked_mul(size_of::<T>() as u64)?)?))
    }

    fn text(&mut self, n: u64) -> Option<String> {
        Some(std::str::from_utf8(self.take(n)?).ok()?.to_string())
    }
}

fn reason(number: u64) -> Option<Reason> {
    Reason::ALL.get(usize::try_from(number).ok()?).copied()
}

/// Puts a record on the shelf as item `(number, input)`; `None`, and the shelf as it was, when it is no such record.
fn decode(record: &[u8], (item, source): (u32, u32), worker: u32, shelf: &mut Shelf) -> Option<()> {
    let mut rest = Rest(record);
    let head: Head = rest.rows(1)?[0];
    let rows: Vec<Row> = rest.rows(head.pages)?;
    let rejection_rows: Vec<RejectionRow> = rest.rows(head.rejections)?;
    let fprints: Vec<u64> = rest.rows(head.fprints)?;
    let hashes: Vec<u64> = rest.rows(head.features)?;
    let links: Vec<u64> = rest.rows(head.links)?;
    let projected = rows.iter().map(|row| rest.rows(row.projected)).collect::<Option<Vec<Vec<i64>>>>()?;
    let weights: Vec<u16> = rest.rows(head.features)?;
    let mut mended = Vec::with_capacity(rows.len());
    for row in &rows {
        mended.push(rest.take(row.mended)?.iter().map(|&number| reason(number.into())).collect::<Option<Vec<_>>>()?);
    }
    let first_slot = shelf.exact.len();
    let mut captures = Vec::with_capacity(rows.len());
    for (at, ((row, mended), projected)) in rows.iter().zip(mended).zip(projected).enumerate() {
        let url = rest.text(row.url)?;
        captures.push(Capture {
            doc_id: doc_id(&url),
            url,
            fetch_time: row.fetch_time,
            status: row.status,
            mime: rest.text(row.mime)?,
            body_bytes: row.body_bytes,
            body: row.body,
            text_bytes: row.text_bytes,
            chunks: row.chunks,
            exact: row.exact,
            simhash: (row.has_simhash != 0).then_some(row.simhash),
            projected,
            source,
            item,
            offset: row.offset,
            length: row.length,
            mended,
            worker,
            slot: (first_slot + at) as u32,
        });
    }
    let mut rejections = Vec::with_capacity(rejection_rows.len());
    for row in &rejection_rows {
        let (reason, detail) = (reason(row.reason)?, rest.text(row.detail)?);
        rejections.push(Rejection { source, offset: row.offset, reason, detail, item });
    }
    let sum = |n: fn(&Row) -> u64| rows.iter().try_fold(0u64, |sum, row| sum.checked_add(n(row)));
    let lists = [sum(|row| row.fprints)?, sum(|row| row.features)?, sum(|row| row.links)?];
    if lists != [head.fprints, head.features, head.links] || !rest.0.is_empty() {
        return None;
    }

    let (mut fprints, mut links) = (Rest(&fprints[..]), Rest(&links[..]));
    let (mut hashes, mut weights) = (Rest(&hashes[..]), Rest(&weights[..]));
    for row in &rows {
        shelf.exact.push(row.exact);
        shelf.fprints.push(fprints.take(row.fprints)?);
        shelf.links.push(links.take(row.links)?);
        if head.with_features != 0 {
            shelf.features.push_as_kept(hashes.take(row.features)?, weights.take(row.features)?);
        }
    }
    shelf.captures.append(&mut captures);
    shelf.rejections.append(&mut rejections);
    let start = |bit: u64, start: u64| (head.starts & bit != 0).then_some(start);
    let (first_start, last_start) = (start(1, head.first_start), start(2, head.last_start));
    shelf.items.push((item, RangeEnd { first_start, last_start, end: head.end, records: head.records }));
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::Feature;

    /// A shelf with an item of these pages: numbers of fingerprints, features and links, and a text.
    fn shelf(pages: &[(usize, usize, usize, String)], with_features: bool, item: u32, first: &mut Shelf) -> Part {
        let (slots, rejections) = (first.exact.len(), first.rejections.len());
        for (n, (fprints, features, links, text)) in pages.iter().enumerate() {
            let url = format!("http://a.example/{text}");
            let number = n as u64 + 1;
            first.captures.push(Capture {
                doc_id: doc_id(&url),
                url,
                fetch_time: -5 * number as i64,
                status: 200 + n as u16,
                mime: text.clone(),
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
            });
            first.exact.push(u64::MAX - number);
            first.fprints.push(&(0..*fprints as u64).map(|n| n << 40).collect::<Vec<_>>());
            first.links.push(&(0..*links as u64).collect::<Vec<_>>());
            if with_features {
                let weighted = |n| Feature { hash: n, weight: n as u32 * 40 };
                first.features.push(&(0..*features as u64).map(weighted).collect::<Vec<_>>());
            }
            if n % 3 == 1 {
                let reason = *Reason::ALL.last().unwrap();
                first.rejections.push(Rejection { source: 3, offset: number, reason, detail: text.clone(), item });
            }
        }
        let end = RangeEnd { first_start: Some(0), last_start: None, end: 9, records: pages.len() as u64 };
        first.items.push((item, end));
        Part { slots: slots..first.exact.len(), rejections: rejections..first.rejections.len(), end }
    }

    fn pages() -> impl Strategy<Value = Vec<(usize, usize, usize, String)>> {
        prop::collection::vec((0usize..20, 0usize..20, 0usize..20, "[a-zü]{0,9}"), 0..9)
    }

    proptest! {
        #[test]
        fn a_record_puts_the_same_on_another_shelf_whatever_lies_before_it(
            before in pages(), pages in pages(), with_features: bool
        ) {
            let mut from = Shelf::default();
            shelf(&before, with_features, 4, &mut from);
            let part = shelf(&pages, with_features, 5, &mut from);
            let mut record = Vec::new();
            encode(&part, &from, &mut record);

            // The same two items with the same numbers, one of them out of its record, are the same shelf.
            let mut to = Shelf::default();
            shelf(&before, with_features, 4, &mut to);
            prop_assert!(decode(&record, (5, 3), 1, &mut to).is_some());
            prop_assert_eq!(format!("{to:?}"), format!("{from:?}"));

            // Other numbers go into rows only.
            let mut other = Shelf::default();
            decode(&record, (8, 6), 2, &mut other).unwrap();
            prop_assert!(other.captures.iter().all(|row| (row.item, row.source, row.worker) == (8, 6, 2)));
            prop_assert!(other.rejections.iter().all(|row| (row.item, row.source) == (8, 6)));
            prop_assert_eq!(other.items, [(8, part.end)]);
        }

        #[test]
        fn what_is_no_record_is_refused_and_leaves_the_shelf_alone(pages in pages(), cut: usize, at: usize, to: u8) {
            let mut from = Shelf::default();
            let part = shelf(&pages, true, 5, &mut from);
            let mut record = Vec::new();
            encode(&part, &from, &mut record);
            let mut other = Shelf::default();
            prop_assert!(decode(&record[..cut % record.len()], (5, 3), 1, &mut other).is_none());
            prop_assert!(decode(&[&record[..], b"x"].concat(), (5, 3), 1, &mut other).is_none());
            prop_assert_eq!(format!("{other:?}"), format!("{:?}", Shelf::default()));
            let at = at % record.len();
            record[at] = to;
            if decode(&record, (5, 3), 1, &mut other).is_none() {
                prop_assert_eq!(format!("{other:?}"), format!("{:?}", Shelf::default()));
            }
        }
    }
}
