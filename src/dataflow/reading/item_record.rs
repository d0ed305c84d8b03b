//! Encoding of the checkpoint of one work item: all data that the item added to the local pages.
//!
//! ```text
//! length of the head: u64
//! head                       everything but pages; for each page, a hash of its source, and the length of its part
//! part                       one for each page, in the order of reading
//! ```
//!
//! So a page can be read from a checkpoint without the other pages
//! ([`crate::reading::known_pages`]). Head and parts are encoded by `bincode` with integers of
//! fixed width.

use std::ops::Range;

use bincode::Options;
use serde::{Deserialize, Serialize};

use crate::reading::addresses::HostAddress;
use crate::reading::capture::{Capture, codec};
use crate::reading::item_part::ItemPart;
use crate::reading::other_records::{RedirectRecord, RevisitRecord, SegmentRecord};
use crate::reading::rejection::Rejection;
use crate::reading::shingle_sets::ShingleSets;
use crate::reading::worker_pages::WorkerPages;
use webtwin_base::error::Result;
use webtwin_base::ids::{DocId, FPrint, doc_id};
use webtwin_pages::record::RecordIds;
use webtwin_pages::warc::RangeEnd;

/// Bytes of the length of a head.
const LENGTH_BYTES: usize = 8;

/// Head of a checkpoint, for writing.
#[derive(Serialize)]
struct HeadOf<'a> {
    rejections: &'a [Rejection],
    redirects: &'a [RedirectRecord],
    addresses: &'a [HostAddress],
    revisits: &'a [RevisitRecord],
    segments: &'a [SegmentRecord],
    end: RangeEnd,
    pages: &'a [PageAt],
}

/// Head of a checkpoint, for reading.
#[derive(Deserialize)]
struct Head {
    rejections: Vec<Rejection>,
    redirects: Vec<RedirectRecord>,
    addresses: Vec<HostAddress>,
    revisits: Vec<RevisitRecord>,
    segments: Vec<SegmentRecord>,
    end: RangeEnd,
    pages: Vec<PageAt>,
}

/// Page in the head of a checkpoint.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct PageAt {
    /// Hash of what the page was read from.
    content: u128,
    /// Length of the page's part.
    bytes: u32,
}

/// Page in a checkpoint, for writing.
#[derive(Serialize)]
struct PageOf<'a> {
    capture: Capture,
    names: RecordIds,
    fprints: &'a [FPrint],
    links: &'a [DocId],
    leads_to: Option<DocId>,
    editions: Vec<DocId>,
    features: Option<(&'a [u64], &'a [u16])>,
    set: Option<Vec<u32>>,
}

/// Page in a checkpoint, for reading.
#[derive(Debug, Deserialize)]
pub struct SavedPage {
    /// Capture, with the numbers of the run that read it.
    pub capture: Capture,
    /// Names by which revisits may refer to the record of the page.
    pub names: RecordIds,
    fprints: Vec<FPrint>,
    links: Vec<DocId>,
    leads_to: Option<DocId>,
    editions: Vec<DocId>,
    /// Hashes and weights. `None` if the run keeps no lists of features, not even empty ones.
    features: Option<(Vec<u64>, Vec<u16>)>,
    /// Set of shingles, if pages are compared by shingles.
    set: Option<Vec<u32>>,
}

impl SavedPage {
    /// Decodes the part of a page; `None` if the bytes are not a valid part.
    pub fn decode(part: &[u8]) -> Option<SavedPage> {
        let page: SavedPage = codec().deserialize(part).ok()?;
        let is_whole = page.capture.doc_id == doc_id(&page.capture.url)
            && page.features.as_ref().is_none_or(|(hashes, weights)| hashes.len() == weights.len());
        is_whole.then_some(page)
    }

    /// Returns the distinct chunks of the page, ascending.
    pub fn fprints(&self) -> &[FPrint] {
        &self.fprints
    }

    /// True if the page has a set of shingles exactly if the local pages do.
    pub fn fits(&self, local_pages: &WorkerPages) -> bool {
        self.set.is_some() == local_pages.sets.is_some()
    }

    /// Adds the page to the local pages in the next slot; [`SavedPage::fits`] must be true.
    /// `content` is the hash of what the page was read from.
    ///
    /// # Errors
    /// Returns any error of the disk, to which lists beyond the memory limit are written.
    pub fn put(self, content: u128, local_pages: &mut WorkerPages) -> Result<()> {
        let SavedPage { capture, names, fprints, links, leads_to, editions, features, set } = self;
        let slot = local_pages.exact.len() as u32;
        if let (Some(set), Some(sets)) = (set, &mut local_pages.sets) {
            sets.push(&set)?;
        }
        if let Some((hashes, weights)) = features {
            local_pages.features.push_as_kept(&hashes, &weights)?;
        }
        local_pages.exact.push(capture.exact);
        local_pages.captures.push(&Capture { slot, ..capture })?;
        local_pages.names.push(names);
        local_pages.contents.push(content);
        local_pages.fprints.push(&fprints)?;
        local_pages.links.push(&links)?;
        local_pages.leads.extend(leads_to.map(|to| (slot, to)));
        local_pages.editions.extend(editions.into_iter().map(|to| (slot, to)));
        Ok(())
    }
}

fn append(value: &impl Serialize, to: &mut Vec<u8>) {
    codec().serialize_into(to, value).expect("plain values go into memory");
}

/// Appends the checkpoint of a work item to `record`. The captures of the item must still be in the
/// local pages, and so must the hashes of what its pages were read from.
///
/// # Errors
/// Returns any error of the disk, on which lists beyond the memory limit are.
pub(super) fn encode(part: &ItemPart, local_pages: &WorkerPages, record: &mut Vec<u8>) -> Result<()> {
    let (mut parts, mut pages) = (Vec::new(), Vec::with_capacity(part.slots.len()));
    let mut leads = local_pages.leads[part.leads.clone()].iter().peekable();
    let mut editions = &local_pages.editions[part.editions.clone()];
    let (mut captures, mut fprints, mut links, mut features) = (
        local_pages.captures.reader(),
        local_pages.fprints.reader(),
        local_pages.links.reader(),
        local_pages.features.reader(),
    );
    let set = |sets: &ShingleSets, slot| Ok(sets.get(slot, &mut Vec::new())?.to_vec());
    for slot in part.slots.clone() {
        let previous_length = parts.len();
        let page_editions;
        (page_editions, editions) = editions.split_at(editions.partition_point(|row| row.0 as usize <= slot));
        let page = PageOf {
            capture: captures.get(slot)?.to_capture(),
            names: local_pages.names[slot],
            fprints: fprints.get(slot)?,
            links: links.get(slot)?,
            leads_to: leads.next_if(|lead| lead.0 as usize == slot).map(|lead| lead.1),
            editions: page_editions.iter().map(|row| row.1).collect(),
            features: (local_pages.features.slots() > 0).then(|| features.get(slot)).transpose()?,
            set: local_pages.sets.as_ref().map(|sets| set(sets, slot)).transpose()?,
        };
        append(&page, &mut parts);
        pages.push(PageAt { content: local_pages.contents[slot], bytes: (parts.len() - previous_length) as u32 });
    }
    let rejections = local_pages.rejections.read(part.rejections.clone()).collect::<Result<Vec<Rejection>>>()?;
    let head = HeadOf {
        rejections: &rejections,
        redirects: &local_pages.redirects[part.redirects.clone()],
        addresses: &local_pages.addresses[part.addresses.clone()],
        revisits: &local_pages.revisits[part.revisits.clone()],
        segments: &local_pages.segments[part.segments.clone()],
        end: part.end,
        pages: &pages,
    };
    // The length of the head is known only after the head has been encoded.
    let start = record.len();
    record.extend_from_slice(&[0; LENGTH_BYTES]);
    append(&head, record);
    let bytes = (record.len() - start - LENGTH_BYTES) as u64;
    record[start..start + LENGTH_BYTES].copy_from_slice(&bytes.to_le_bytes());
    record.extend_from_slice(&parts);
    Ok(())
}

/// Returns the head of a checkpoint and the bytes of its parts, if the lengths are valid.
fn split(record: &[u8]) -> Option<(Head, &[u8])> {
    let (length, encoded) = record.split_first_chunk::<LENGTH_BYTES>()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let (head, parts) = encoded.split_at_checked(length)?;
    let head: Head = codec().deserialize(head).ok()?;
    let bytes: u64 = head.pages.iter().map(|page| u64::from(page.bytes)).sum();
    (bytes == parts.len() as u64).then_some((head, parts))
}

/// Returns the hashes of what the pages of a checkpoint were read from, with the ranges of their
/// parts. Empty if the bytes are not a valid checkpoint.
pub(super) fn pages_of(record: &[u8]) -> Vec<(u128, Range<usize>)> {
    let Some((head, parts)) = split(record) else { return Vec::new() };
    let mut at = record.len() - parts.len();
    let place = |page: PageAt| {
        let start = at;
        at += page.bytes as usize;
        (page.content, start..at)
    };
    head.pages.into_iter().map(place).collect()
}

/// Adds the content of a checkpoint to the local pages as work item `item` of input `source`. If
/// the bytes are not a valid checkpoint of the same kind, returns false and leaves the local pages
/// unchanged.
///
/// # Errors
/// Returns any error of the disk, to which lists beyond the memory limit are written.
pub(super) fn decode(
    record: &[u8],
    item: u32,
    source: u32,
    worker: u32,
    local_pages: &mut WorkerPages,
) -> Result<bool> {
    let Some((head, mut parts)) = split(record) else { return Ok(false) };
    let Head { rejections, redirects, addresses, revisits, segments, end, pages } = head;
    // Decodes all pages before the first is added, because an invalid page must leave the local
    // pages unchanged.
    let mut decoded_pages = Vec::with_capacity(pages.len());
    for PageAt { content, bytes } in pages {
        let part;
        (part, parts) = parts.split_at(bytes as usize);
        match SavedPage::decode(part).filter(|page| page.fits(local_pages)) {
            Some(page) => decoded_pages.push((content, page)),
            None => return Ok(false),
        }
    }
    for (content, page) in decoded_pages {
        let capture = Capture { source, item, worker, ..page.capture };
        SavedPage { capture, ..page }.put(content, local_pages)?;
    }
    local_pages.redirects.extend(redirects.into_iter().map(|row| RedirectRecord { source, item, ..row }));
    local_pages.addresses.extend(addresses.into_iter().map(|row| HostAddress { item, ..row }));
    local_pages.revisits.extend(revisits.into_iter().map(|row| RevisitRecord { source, item, ..row }));
    local_pages.segments.extend(segments.into_iter().map(|row| SegmentRecord { source, item, ..row }));
    local_pages.rejections.extend(rejections.into_iter().map(|row| Rejection { source, item, ..row }))?;
    local_pages.items.push((item, end));
    Ok(true)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use webtwin_core::text::Feature;
    use webtwin_core::text::language::Language;
    use webtwin_pages::record::Reason;

    /// Adds an item with these pages: numbers of fingerprints, features and links, and a text.
    fn local_pages(
        pages: &[(usize, usize, usize, String)],
        has_features: bool,
        item: u32,
        first: &mut WorkerPages,
    ) -> ItemPart {
        let begin = ItemPart::from_here(first);
        for (n, (fprints, features, links, text)) in pages.iter().enumerate() {
            let url = format!("http://a.example/{text}");
            let number = n as u64 + 1;
            let slot = first.exact.len() as u32;
            let capture = Capture {
                doc_id: doc_id(&url),
                url,
                fetch_time: -5 * number as i64,
                status: 200 + n as u16,
                mime: text.clone().into(),
                title: text.as_str().into(),
                language: Language::from_number(n as u8 % 3),
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
                repaired: Reason::ALL[..n % 4].to_vec(),
                worker: 1,
                slot,
                original: None,
                segments: vec![(number as u32, number); n % 2],
                is_conversion: n % 2 == 1,
                record: n as u32,
                variant: n as u16,
                notice: number % 2,
                canonical: number % 3,
            };
            first.captures.push(&capture).unwrap();
            first.contents.push(u128::from(number) << 70);
            first.names.push(RecordIds { id: number, payload: !number });
            first.exact.push(u64::MAX - number);
            first.fprints.push(&(0..*fprints as u64).map(|n| n << 40).collect::<Vec<_>>()).unwrap();
            if let Some(sets) = &mut first.sets {
                sets.push(&(0..*features as u32).collect::<Vec<_>>()).unwrap();
            }
            first.links.push(&(0..*links as u64).collect::<Vec<_>>()).unwrap();
            if has_features {
                let weighted = |n| Feature { hash: n, weight: n as u32 * 40 };
                first.features.push(&(0..*features as u64).map(weighted).collect::<Vec<_>>()).unwrap();
            }
            if n % 2 == 1 {
                first.leads.push((first.exact.len() as u32 - 1, number << 5));
                first.editions.extend((0..number % 4).map(|to| (first.exact.len() as u32 - 1, to << 8)));
                let (from, fetch_time) = (number << 6, -(number as i64));
                let url = text.clone();
                first.redirects.push(RedirectRecord {
                    from,
                    to: number,
                    url,
                    fetch_time,
                    source: 3,
                    item,
                    offset: number,
                });
            }
            if n % 3 == 0 {
                first.addresses.push(HostAddress { host: number << 7, address: !number, offset: number, item });
            }
            if n % 3 == 2 {
                first.revisits.push(RevisitRecord {
                    url: text.clone(),
                    fetch_time: -(number as i64),
                    names: RecordIds { id: number << 1, payload: 0 },
                    refers_to: number << 2,
                    original: number << 3,
                    original_time: number as i64,
                    source: 3,
                    item,
                    offset: number,
                    length: number,
                    repaired: (n % 2 == 0).then_some(Reason::BadDate),
                });
            }
            if n % 4 == 1 {
                let (bytes, number) = (number << 9, n as u32);
                let row = SegmentRecord {
                    origin: bytes,
                    number,
                    block: bytes,
                    total: bytes,
                    bytes,
                    source: 3,
                    item,
                    offset: bytes,
                };
                first.segments.push(row);
            }
            if n % 3 == 1 {
                let reason = *Reason::ALL.last().unwrap();
                let detail = text.clone();
                first
                    .rejections
                    .push(&Rejection { source: 3, offset: number, reason, detail, item, bytes: number << 4 })
                    .unwrap();
            }
        }
        let end = RangeEnd { first_start: Some(0), last_start: None, end: 9, records: pages.len() as u64 };
        first.items.push((item, end));
        begin.to_here(first)
    }

    /// Returns empty local pages.
    fn empty(has_sets: bool) -> WorkerPages {
        let sets = || ShingleSets::new(&webtwin_spill::MemoryPool::default());
        WorkerPages { sets: has_sets.then(sets), ..WorkerPages::default() }
    }

    fn pages() -> impl Strategy<Value = Vec<(usize, usize, usize, String)>> {
        prop::collection::vec((0usize..20, 0usize..20, 0usize..20, "[a-zü]{0,9}"), 0..9)
    }

    proptest! {
        #[test]
        fn checkpoint_restores_the_same_local_pages_after_any_others(
            before in pages(), pages in pages(), has_features: bool, has_sets: bool
        ) {
            let mut from = empty(has_sets);
            local_pages(&before, has_features, 4, &mut from);
            let part = local_pages(&pages, has_features, 5, &mut from);
            let mut record = Vec::new();
            encode(&part, &from, &mut record).unwrap();

            // Two items with the same numbers, one of them from its checkpoint, result in equal
            // local pages.
            let mut to = empty(has_sets);
            local_pages(&before, has_features, 4, &mut to);
            prop_assert!(decode(&record, 5, 3, 1, &mut to).unwrap());
            prop_assert_eq!(format!("{to:?}"), format!("{from:?}"));

            // Other numbers change only the rows.
            let mut other = empty(has_sets);
            prop_assert!(decode(&record, 8, 6, 2, &mut other).unwrap());
            let mut rows = other.captures.map(|row| (row.item, row.source, row.worker));
            prop_assert!(rows.all(|row| row.unwrap() == (8, 6, 2)));
            prop_assert!(other.rejections.rows().map(Result::unwrap).all(|row| (row.item, row.source) == (8, 6)));
            prop_assert!(other.revisits.iter().all(|row| (row.item, row.source) == (8, 6)));
            prop_assert!(other.addresses.iter().all(|row| row.item == 8));
            prop_assert_eq!(other.items, [(8, part.end)]);
        }

        #[test]
        fn rejects_invalid_checkpoint_and_leaves_local_pages_unchanged(pages in pages(), cut: usize, at: usize, to: u8) {
            let mut from = empty(true);
            let part = local_pages(&pages, true, 5, &mut from);
            let mut record = Vec::new();
            encode(&part, &from, &mut record).unwrap();
            let mut other = empty(true);
            prop_assert!(!decode(&[], 5, 3, 1, &mut other).unwrap());
            prop_assert!(!decode(&record[..cut % record.len()], 5, 3, 1, &mut other).unwrap());
            prop_assert!(!decode(&[&record[..], b"x"].concat(), 5, 3, 1, &mut other).unwrap());
            prop_assert_eq!(format!("{other:?}"), format!("{:?}", empty(true)));
            let at = at % record.len();
            record[at] = to;
            if !decode(&record, 5, 3, 1, &mut other).unwrap() {
                prop_assert_eq!(format!("{other:?}"), format!("{:?}", empty(true)));
            }
        }
    }
}
