//! Captures as a worker stores them: numbers and texts of each capture back to back, in memory or
//! on the local disk.
//!
//! A run reads URLs and numbers of its pages about thirty times, nearly always in the order of
//! pages. So all data of a page is stored in one place. It is read in place while it is in memory,
//! and otherwise from the disk in blocks.

use bincode::Options;
use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::reading::capture::{Capture, HTML, RecordPlace, codec, mime};
use webtwin_base::error::Result;
use webtwin_base::ids::{DocId, FPrint, Page, SimHash};
use webtwin_core::text::language::Language;
use webtwin_pages::record::Reason;
use webtwin_spill::{ListReader, MemoryPool, SpillLists};

/// Numbers of a [`Capture`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Numbers {
    /// Hash of the canonical URL.
    pub doc_id: DocId,
    /// Fetch time in seconds since 1970; 0 if it is unknown.
    pub fetch_time: i64,
    /// Bytes of the body as fetched, after decoding.
    pub body_bytes: u64,
    /// Fingerprint of the body.
    pub body: FPrint,
    /// Bytes of text.
    pub text_bytes: u64,
    /// Fingerprint of the whole text.
    pub exact: FPrint,
    simhash: SimHash,
    /// Offset at which the record starts.
    pub offset: u64,
    /// Length of the record.
    pub length: u64,
    /// Number of the page, after captures have been deduplicated.
    pub page: Page,
    /// Number of chunks, with repetitions.
    pub chunks: u32,
    /// Number of the input.
    pub source: u32,
    /// Number of the work item.
    pub item: u32,
    /// Worker whose local pages contain the fingerprints and links.
    pub worker: u32,
    /// Slot in the local pages of that worker.
    pub slot: u32,
    /// HTTP status.
    pub status: u16,
    /// Combination of [`HAS_SIMHASH`] and [`IS_CONVERSION`].
    flags: u8,
    language: u8,
    title_bytes: u8,
    /// Bytes of the media type plus one; 0 for [`HTML`], which is not written.
    mime_bytes: u8,
    /// Hash of form and charset, see [`Capture::variant`].
    variant: u16,
    /// Part of the record id, see [`Capture::record`].
    pub record: u32,
    url_bytes: u32,
    rest_bytes: u32,
    /// Number of words of the whole capture.
    words: u32,
}

/// Flag of a capture that has a simhash.
const HAS_SIMHASH: u8 = 1;

/// Flag of a conversion.
const IS_CONVERSION: u8 = 2;

/// Number of words of the numbers.
const NUMBERS: usize = size_of::<Numbers>() / 8;

impl Numbers {
    /// Returns the simhash of the features of the text, if there is one.
    pub fn simhash(&self) -> Option<SimHash> {
        (self.flags & HAS_SIMHASH != 0).then_some(self.simhash)
    }

    /// Returns the language of the text.
    pub fn language(&self) -> Language {
        Language::from_number(self.language)
    }

    /// Sets or removes the simhash.
    pub fn set_simhash(&mut self, simhash: Option<SimHash>) {
        self.simhash = simhash.unwrap_or_default();
        self.flags = self.flags & !HAS_SIMHASH | if simhash.is_some() { HAS_SIMHASH } else { 0 };
    }

    /// True for a conversion, see [`Capture::is_conversion`].
    pub fn is_conversion(&self) -> bool {
        self.flags & IS_CONVERSION != 0
    }
}

/// Values that only few captures have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RareFields {
    /// Projection of the text, see [`Capture::projected`].
    pub projected: Vec<i64>,
    /// Repaired defects, see [`Capture::repaired`].
    pub repaired: Vec<Reason>,
    /// Place of the original, see [`Capture::original`].
    pub original: Option<Box<RecordPlace>>,
    /// Places of further segments, see [`Capture::segments`].
    pub segments: Vec<(u32, u64)>,
    /// Notice in the text, see [`Capture::notice`].
    pub notice: u64,
    /// Canonical URL that the page declares, see [`Capture::canonical`].
    pub canonical: DocId,
}

/// Borrowed view of a stored capture.
#[derive(Debug, Clone, Copy)]
pub struct CaptureRow<'a> {
    numbers: &'a Numbers,
    texts: &'a [u8],
}

impl std::ops::Deref for CaptureRow<'_> {
    type Target = Numbers;

    fn deref(&self) -> &Numbers {
        self.numbers
    }
}

impl<'a> CaptureRow<'a> {
    /// Returns the capture that `words` begin with.
    pub(super) fn from_words(words: &'a [u64]) -> CaptureRow<'a> {
        let (numbers, texts) = words.split_at(NUMBERS);
        let numbers: &Numbers = bytemuck::from_bytes(bytemuck::cast_slice(numbers));
        CaptureRow { numbers, texts: bytemuck::cast_slice(&texts[..numbers.words as usize - NUMBERS]) }
    }

    /// Returns the numbers of the capture.
    pub fn numbers(&self) -> Numbers {
        *self.numbers
    }

    /// Returns the canonical URL.
    pub fn url(&self) -> &'a str {
        self.text(0, self.url_bytes)
    }

    /// Returns the title, see [`Capture::title`].
    pub fn title(&self) -> &'a str {
        self.text(self.url_bytes, self.title_bytes.into())
    }

    /// Returns the media type.
    pub fn mime(&self) -> &'a str {
        match self.mime_bytes {
            0 => HTML,
            bytes => self.text(self.url_bytes + u32::from(self.title_bytes), u32::from(bytes) - 1),
        }
    }

    /// Returns the values that only few captures have.
    pub fn rare_fields(&self) -> RareFields {
        if self.rest_bytes == 0 {
            return RareFields::default();
        }
        let texts = u32::from(self.title_bytes) + u32::from(self.mime_bytes).saturating_sub(1);
        let start = (self.url_bytes + texts) as usize;
        let encoded = &self.texts[start..start + self.rest_bytes as usize];
        codec().deserialize(encoded).expect("it is as it was written")
    }

    fn text(&self, start: u32, bytes: u32) -> &'a str {
        let text = &self.texts[start as usize..(start + bytes) as usize];
        std::str::from_utf8(text).expect("it was written as text")
    }

    /// Returns a hash of the content of the record, which does not depend on the place of the
    /// record. Captures of one URL with equal hashes have the same text and links.
    pub fn content_hash(&self) -> u64 {
        let mut hash = Xxh3::new();
        let numbers = [self.body, self.exact, self.text_bytes, self.variant.into(), self.status.into()];
        hash.update(bytemuck::cast_slice(&numbers));
        hash.update(self.mime().as_bytes());
        self.rare_fields().repaired.iter().for_each(|reason| hash.update(reason.as_str().as_bytes()));
        hash.digest()
    }

    /// Returns the capture as a stand-alone value.
    pub fn to_capture(self) -> Capture {
        let RareFields { projected, repaired: repairs, original, segments, notice, canonical } = self.rare_fields();
        Capture {
            doc_id: self.doc_id,
            url: self.url().to_string(),
            fetch_time: self.fetch_time,
            status: self.status,
            mime: mime(self.mime()),
            title: self.title().into(),
            language: self.language(),
            body_bytes: self.body_bytes,
            body: self.body,
            text_bytes: self.text_bytes,
            chunks: self.chunks,
            exact: self.exact,
            simhash: self.simhash(),
            projected,
            source: self.source,
            item: self.item,
            offset: self.offset,
            length: self.length,
            repaired: repairs,
            worker: self.worker,
            slot: self.slot,
            original,
            segments,
            is_conversion: self.is_conversion(),
            record: self.record,
            variant: self.variant,
            notice,
            canonical,
        }
    }
}

/// Appends the encoded words of a capture.
fn write(capture: &Capture, words: &mut Vec<u64>) {
    let &Capture { ref projected, repaired: ref repairs, ref original, ref segments, notice, canonical, .. } = capture;
    let has_rest = !projected.is_empty()
        || !repairs.is_empty()
        || original.is_some()
        || !segments.is_empty()
        || notice != 0
        || canonical != 0;
    // The rest is encoded only if it has a value: nearly all captures then take no bytes for it.
    let encoded = match has_rest {
        true => codec()
            .serialize(&(projected, repairs, original, segments, notice, canonical))
            .expect("plain values go into memory"),
        false => Vec::new(),
    };
    let is_html = capture.mime == HTML;
    let mime = if is_html { "" } else { &*capture.mime };
    let texts = [capture.url.as_bytes(), capture.title.as_bytes(), mime.as_bytes(), &encoded];
    let bytes: usize = texts.iter().map(|text| text.len()).sum();
    let (start, count) = (words.len(), NUMBERS + bytes.div_ceil(8));
    let numbers = Numbers {
        doc_id: capture.doc_id,
        fetch_time: capture.fetch_time,
        body_bytes: capture.body_bytes,
        body: capture.body,
        text_bytes: capture.text_bytes,
        exact: capture.exact,
        simhash: capture.simhash.unwrap_or_default(),
        offset: capture.offset,
        length: capture.length,
        page: Page::NONE,
        chunks: capture.chunks,
        source: capture.source,
        item: capture.item,
        worker: capture.worker,
        slot: capture.slot,
        status: capture.status,
        language: capture.language.number(),
        flags: if capture.simhash.is_some() { HAS_SIMHASH } else { 0 }
            | if capture.is_conversion { IS_CONVERSION } else { 0 },
        title_bytes: capture.title.len().try_into().expect("titles are short"),
        mime_bytes: if is_html { 0 } else { u8::try_from(mime.len()).expect("media types are short") + 1 },
        variant: capture.variant,
        record: capture.record,
        url_bytes: capture.url.len() as u32,
        rest_bytes: encoded.len() as u32,
        words: count as u32,
    };
    // Texts are padded to a whole word, so that the numbers of the next capture are aligned.
    words.resize(start + count, 0);
    let scratch: &mut [u8] = bytemuck::cast_slice_mut(&mut words[start..]);
    let (head, mut scratch) = scratch.split_at_mut(NUMBERS * 8);
    head.copy_from_slice(bytemuck::bytes_of(&numbers));
    for text in texts {
        let target;
        (target, scratch) = scratch.split_at_mut(text.len());
        target.copy_from_slice(text);
    }
}

/// Returns the encoded captures that `words` consist of, one after the other.
pub fn captures_in(mut words: &[u64]) -> impl Iterator<Item = &[u64]> {
    std::iter::from_fn(move || {
        let count = (!words.is_empty()).then(|| CaptureRow::from_words(words).words as usize)?;
        let capture;
        (capture, words) = words.split_at(count);
        Some(capture)
    })
}

/// Captures by number, in the order of insertion.
///
/// # Memory
/// Takes 4 bytes for each capture, and 120 bytes and the texts for each capture that is not on
/// disk.
#[derive(Debug, Default)]
pub struct CaptureRows {
    rows: SpillLists<u64>,
    /// Scratch in which a capture is encoded.
    scratch: Vec<u64>,
}

impl CaptureRows {
    /// Creates an empty container.
    pub fn new(pool: &MemoryPool) -> CaptureRows {
        CaptureRows { rows: SpillLists::new(pool), scratch: Vec::new() }
    }

    /// Creates an empty container with the same memory limit as `self`.
    pub fn like(&self) -> CaptureRows {
        self.like_part(1)
    }

    /// Creates an empty container for one of `parts` equal parts of the content, with a
    /// corresponding part of the memory limit.
    pub(super) fn like_part(&self, parts: u64) -> CaptureRows {
        CaptureRows { rows: self.rows.like_part(parts), scratch: Vec::new() }
    }

    /// Appends a capture.
    ///
    /// # Errors
    /// Returns [`webtwin_base::error::Error::Storage`] or a similar error if the disk fails or is
    /// full.
    pub fn push(&mut self, capture: &Capture) -> Result<()> {
        self.scratch.clear();
        write(capture, &mut self.scratch);
        self.rows.push(&self.scratch)
    }

    /// Appends an encoded capture.
    ///
    /// # Errors
    /// Returns any error of [`CaptureRows::push`].
    pub fn push_words(&mut self, words: &[u64]) -> Result<()> {
        self.rows.push(words)
    }

    /// Appends a copy of a capture with the page number `page`.
    ///
    /// # Errors
    /// Returns any error of [`CaptureRows::push`].
    pub fn push_page(&mut self, row: CaptureRow<'_>, page: Page) -> Result<()> {
        self.scratch.clear();
        self.scratch.extend_from_slice(bytemuck::cast_slice(bytemuck::bytes_of(&Numbers { page, ..*row.numbers })));
        self.scratch.extend_from_slice(bytemuck::cast_slice(row.texts));
        self.rows.push(&self.scratch)
    }

    /// Returns the number of captures.
    pub fn len(&self) -> usize {
        self.rows.slots()
    }

    /// True if there are no captures.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the capture with a number. It is borrowed if it is in memory, and otherwise read
    /// into `scratch`.
    ///
    /// # Errors
    /// Returns [`webtwin_base::error::Error::Storage`] if the disk fails, or returns other bytes
    /// than were written.
    pub(super) fn get<'a>(&'a self, number: usize, scratch: &'a mut Vec<u64>) -> Result<CaptureRow<'a>> {
        Ok(CaptureRow::from_words(self.rows.get(number, scratch)?))
    }

    /// Returns a reader of the captures.
    pub fn reader(&self) -> CaptureReader<'_> {
        CaptureReader(self.rows.reader())
    }

    /// Applies `convert` to each capture, in their order.
    pub fn map<'a, T>(
        &'a self,
        mut convert: impl FnMut(CaptureRow<'_>) -> T + 'a,
    ) -> impl Iterator<Item = Result<T>> + 'a {
        let mut rows = self.reader();
        (0..self.len()).map(move |at| Ok(convert(rows.get(at)?)))
    }

    /// Calls `visit` for each capture, in their order.
    ///
    /// # Errors
    /// Returns any error of the disk.
    pub fn for_each(&self, mut visit: impl FnMut(CaptureRow<'_>)) -> Result<()> {
        let mut rows = self.reader();
        (0..self.len()).try_for_each(|at| {
            visit(rows.get(at)?);
            Ok(())
        })
    }

    /// Calls `stays` for each capture, which may change the numbers. Captures for which `stays`
    /// returns false are removed.
    ///
    /// # Errors
    /// Returns any error of the disk, on which old and new captures are for a while.
    pub fn rewrite(&mut self, mut stays: impl FnMut(&mut Numbers) -> bool) -> Result<()> {
        let mut rewritten = self.like();
        let mut scratch = Vec::new();
        self.rows.drain(|words| {
            scratch.clear();
            scratch.extend_from_slice(words);
            if stays(bytemuck::from_bytes_mut(bytemuck::cast_slice_mut(&mut scratch[..NUMBERS]))) {
                rewritten.push_words(&scratch)?;
            }
            Ok(())
        })?;
        *self = rewritten;
        Ok(())
    }

    /// Calls `visit` with captures and their encoded words, starting at the number `from`, until
    /// `words` words have been passed. Returns the number after the last of these captures. They
    /// and all captures before them release their memory, and must not be read again.
    ///
    /// # Errors
    /// Returns any error of the disk and of `visit`.
    pub fn pass(
        &mut self,
        from: usize,
        words: u64,
        mut visit: impl FnMut(CaptureRow<'_>, &[u64]) -> Result<()>,
    ) -> Result<usize> {
        if from == self.len() {
            return Ok(from);
        }
        self.rows.pass(from, words, |words| visit(CaptureRow::from_words(words), words))
    }

    /// Limits the captures in memory to `bytes` from now on.
    ///
    /// # Errors
    /// Returns any error of [`CaptureRows::push`].
    pub fn hold_at_most(&mut self, bytes: u64) -> Result<()> {
        self.rows.hold_at_most(bytes)
    }

    /// Writes up to about `bytes` bytes of the captures to disk. Returns the number of bytes
    /// written.
    ///
    /// # Errors
    /// Returns any error of [`CaptureRows::push`].
    pub fn give_up(&mut self, bytes: u64) -> Result<u64> {
        self.rows.give_up(bytes)
    }

    /// Reads all captures on disk into memory, without regard to the limit.
    ///
    /// # Errors
    /// Returns any error of [`CaptureRows::get`].
    pub(super) fn take_in(&mut self) -> Result<()> {
        self.rows.take_in()
    }

    /// Returns the number of words of all captures.
    pub fn words(&self) -> u64 {
        self.rows.items()
    }

    /// Returns the number of words of a range of captures.
    pub fn words_of(&self, numbers: std::ops::Range<usize>) -> u64 {
        self.rows.items_of(numbers)
    }

    /// Returns the number of bytes on disk.
    pub fn spilled_bytes(&self) -> u64 {
        self.rows.spilled_bytes()
    }
}

/// Reader of captures, optimized for access in their order.
#[derive(Debug)]
pub struct CaptureReader<'a>(ListReader<'a, u64>);

impl CaptureReader<'_> {
    /// Returns the capture with a number.
    ///
    /// # Errors
    /// Returns [`webtwin_base::error::Error::Storage`] if the disk fails, or returns other bytes
    /// than were written.
    pub fn get(&mut self, number: usize) -> Result<CaptureRow<'_>> {
        Ok(CaptureRow::from_words(self.0.get(number)?))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn capture() -> impl Strategy<Value = Capture> {
        let texts = (
            "[a-zü]{0,9}",
            prop::sample::select(vec!["", HTML, "text/plain", "ü"]),
            prop::collection::vec(any::<i64>(), 0..3),
        );
        let numbers = (any::<u64>(), any::<i64>(), any::<u32>(), any::<u16>(), any::<Option<u64>>(), 0usize..3);
        (texts, numbers).prop_map(
            |((text, media, projected), (n, fetch_time, small_number, status, simhash, count))| Capture {
                doc_id: n,
                url: format!("http://a.example/{text}"),
                fetch_time,
                status,
                mime: mime(media),
                title: text.repeat(count).into(),
                language: Language::from_number(count as u8),
                body_bytes: n ^ 1,
                body: n ^ 2,
                text_bytes: n ^ 3,
                chunks: small_number,
                exact: n ^ 4,
                simhash,
                projected,
                source: small_number ^ 1,
                item: small_number ^ 2,
                offset: n ^ 5,
                length: n ^ 6,
                repaired: Reason::ALL[..count].to_vec(),
                worker: small_number ^ 3,
                slot: small_number ^ 4,
                original: (count == 1).then(|| Box::new(RecordPlace { source: small_number, offset: n, url: text })),
                segments: vec![(small_number, n); count / 2],
                is_conversion: status % 2 == 0,
                record: small_number ^ 5,
                variant: status ^ 1,
                notice: if count == 2 { n } else { 0 },
                canonical: if count == 1 { n } else { 0 },
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn captures_are_returned_unchanged_from_memory_and_disk(
            captures in prop::collection::vec(capture(), 0..30), times in prop::sample::select(vec![1usize, 20_000]),
            words in 1u64..200_000
        ) {
            let captures: Vec<Capture> =
                captures.into_iter().map(|one| Capture { url: one.url.repeat(times), ..one }).collect();
            for allowed in [u64::MAX, 0] {
                let mut rows = CaptureRows::new(&MemoryPool::default());
                rows.hold_at_most(allowed).unwrap();
                captures.iter().for_each(|one| rows.push(one).unwrap());
                let read_back: Vec<Capture> = rows.map(|row| row.to_capture()).collect::<Result<_>>().unwrap();
                prop_assert_eq!(&read_back, &captures);
                let mut reader = rows.reader();
                for (number, capture) in captures.iter().enumerate().rev() {
                    prop_assert_eq!(&reader.get(number).unwrap().to_capture(), capture);
                }

                // Half of them as other pages, in ranges of `words` words.
                rows.rewrite(|numbers| {
                    numbers.set_simhash(None);
                    numbers.chunks % 2 == 0
                }).unwrap();
                let left: Vec<Capture> = captures
                    .iter()
                    .filter(|one| one.chunks % 2 == 0)
                    .map(|one| Capture { simhash: None, ..one.clone() })
                    .collect();
                let (mut next, mut other_rows) = (0, rows.like());
                while next < rows.len() {
                    let from = next;
                    next = rows.pass(from, words, |row, row_words| {
                        assert_eq!(captures_in(row_words).collect::<Vec<_>>(), [row_words]);
                        other_rows.push_page(row, Page(row.chunks))
                    }).unwrap();
                    prop_assert!(next > from);
                }
                let mut row_count = 0;
                other_rows.for_each(|row| {
                    assert!(row.to_capture() == left[row_count] && row.page == Page(row.chunks));
                    row_count += 1;
                }).unwrap();
                prop_assert_eq!(row_count, left.len());
            }
        }
    }
}
