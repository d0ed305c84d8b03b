//! Records in sequence in a [`ByteSource`]: the true length of each, and the start of the next one.
//!
//! `Content-Length` is trusted if the bytes after it look like the end of a record ([`landing`]).
//! Otherwise the record extends to the next place where a record starts, or to the end of its
//! source. Both tests depend only on the bytes there, so two readers that start at different places
//! agree from the first record on that both reach.

use memchr::memmem;

use super::{
    RecordFormat, page,
    record_head::{self, HeadEnd, MAGIC},
    revisits, segments,
    window::{ByteSource, Ending, Window},
};
use crate::record::{NonPage, RawPage, ReadResult, Reason, RecordSink, Refusal, RefusedRecord};
use webtwin_base::error::Result;
use webtwin_job::{DigestPolicy, InputSettings};

/// Maximum number of bytes of line ends between two records that [`landing`] examines.
const TRAILER_BYTES: usize = 1024;

/// Number of bytes within which the head of a member is expected to end.
const MEMBER_HEAD_BYTES: u64 = 64;

/// Number of consecutive records that exceed the limit and claim a wrong end far away, after which
/// such claims are no longer checked. Bounds the reads that a pile of forged heads can cause.
const MAX_FAR_CLAIMS: u32 = 64;

/// Maximum number of lost bytes that are not reported if the record before them is intact:
/// checksums, ends of streams.
const NEGLIGIBLE_BYTES: u64 = 64;

/// Receiver of pages and refusals, which counts them.
pub(super) struct CountingSink<'r, 's> {
    pub input: &'r InputSettings,
    sink: &'r mut RecordSink<'s>,
    pub n_results: u64,
    /// Last result, if it is a refusal. The number of bytes that are lost with it may become known
    /// later.
    pending_refusal: Option<RefusedRecord>,
}

impl<'r, 's> CountingSink<'r, 's> {
    pub(super) fn new(input: &'r InputSettings, sink: &'r mut RecordSink<'s>) -> Self {
        CountingSink { input, sink, n_results: 0, pending_refusal: None }
    }

    /// Passes a page to the sink.
    pub(super) fn page(&mut self, page: RawPage) -> Result<()> {
        self.flush()?;
        self.n_results += 1;
        (self.sink)(ReadResult::Page(page))
    }

    /// Holds a new refusal. Passes the previous one to the sink.
    pub(super) fn refuse(&mut self, offset: u64, reason: Reason, detail: impl Into<String>, bytes: u64) -> Result<()> {
        self.forward(RefusedRecord { bytes, ..RefusedRecord::new(offset, reason, detail) })
    }

    /// Holds a refusal. Passes the previous one to the sink.
    pub(super) fn forward(&mut self, refused: RefusedRecord) -> Result<()> {
        self.flush()?;
        self.n_results += 1;
        self.pending_refusal = Some(refused);
        Ok(())
    }

    /// Passes the held refusal, if any, to the sink.
    pub(super) fn flush(&mut self) -> Result<()> {
        self.pending_refusal.take().map_or(Ok(()), |refused| (self.sink)(ReadResult::Refused(refused)))
    }

    /// Adds lost bytes to the last refusal.
    pub(super) fn lose_more(&mut self, bytes: u64) {
        if let Some(refusal) = self.pending_refusal.as_mut().filter(|held| held.reason.is_bad()) {
            refusal.bytes += bytes;
        }
    }

    /// Counts the rest of a stream, which cannot be decoded from `offset` on. The bytes are added
    /// to the last refusal if its record is damaged.
    pub(super) fn lose_rest(&mut self, offset: u64, reason: Reason, bytes: u64) -> Result<()> {
        match self.pending_refusal.as_mut().filter(|held| held.reason.is_bad()) {
            Some(refusal) => refusal.bytes += bytes,
            None => {
                self.refuse(offset, reason, format!("the rest of the file, {bytes} bytes, cannot be decoded"), bytes)?
            }
        }
        Ok(())
    }

    /// Returns true if the last record is refused, and sets the number of bytes of that refusal.
    pub(super) fn refused_last(&mut self, bytes: u64) -> bool {
        self.pending_refusal.as_mut().map(|held| held.bytes = bytes).is_some()
    }

    /// Counts the bytes that are lost by damage at `offset`. If the last record is damaged, its
    /// refusal gets `with_last` bytes. Otherwise a new refusal gets `bytes_after` bytes, unless
    /// they are negligible.
    pub(super) fn lose(&mut self, offset: u64, reason: Reason, with_last: u64, bytes_after: u64) -> Result<()> {
        if let Some(refusal) = self.pending_refusal.as_mut().filter(|held| held.reason.is_bad()) {
            refusal.bytes = with_last;
        } else if bytes_after > NEGLIGIBLE_BYTES {
            self.refuse(offset, reason, format!("{bytes_after} bytes after the damage are lost"), bytes_after)?;
        }
        Ok(())
    }
}

/// Content after a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// A record at this position.
    Record(u64),
    /// The end of the source at this position.
    End(u64),
    /// Other bytes from this position on.
    Gap(u64),
    /// Unknown content: nothing can be concluded from the record, so the next one must be searched
    /// for from this position on.
    Lost(u64),
}

impl Next {
    fn position(self) -> u64 {
        let (Next::Record(position) | Next::End(position) | Next::Gap(position) | Next::Lost(position)) = self;
        position
    }
}

/// Reader of the records of one source.
pub(super) struct RecordReader<'o, 'r, 's, S> {
    pub window: Window<S>,
    pub sink: &'o mut CountingSink<'r, 's>,
    /// Start of the first record that was read.
    pub first: Option<u64>,
    /// Start of the last record that was read.
    pub last: Option<u64>,
    /// Start of the record after the last one that was read, or the end of the source.
    pub end: u64,
    /// Position in the file at which the current record or gap begins, if one was read.
    pub place: Option<u64>,
    far_claims: u32,
    format: RecordFormat,
}

impl<'o, 'r, 's, S: ByteSource> RecordReader<'o, 'r, 's, S> {
    pub(super) fn new(window: Window<S>, sink: &'o mut CountingSink<'r, 's>, format: RecordFormat) -> Self {
        RecordReader { window, sink, first: None, last: None, end: 0, place: None, far_claims: 0, format }
    }

    /// Returns the number of bytes after a record from which [`landing`] decides.
    fn landing_bytes(&self) -> usize {
        TRAILER_BYTES + self.format.sniff_bytes()
    }

    /// Reads records, beginning with the one at `next`, while their offsets are below `end`.
    /// Bytes between and after them are reported, too. Returns the first record at or after
    /// `end`.
    pub(super) fn run(&mut self, mut next: Option<u64>, end: u64) -> Result<Option<u64>> {
        while let Some(start) = next {
            let offset = self.window.source.offset(start);
            if offset >= end {
                break;
            }
            self.first.get_or_insert(offset);
            self.last = Some(offset);
            next = self.record(start)?;
            self.end = next.unwrap_or(self.window.end());
        }
        Ok(next)
    }

    /// Returns the first position in `start..end` where a record starts. Keeps the bytes from
    /// `keep` on in the window while they are within the record limit. Without `keep`, drops all
    /// bytes that it passes.
    pub(super) fn find(&mut self, start: u64, end: u64, keep: Option<u64>) -> Result<Option<u64>> {
        let mut position = start.max(self.window.base());
        while position < end {
            let candidate =
                self.format.next_candidate(self.window.get(position, u64::MAX)).map(|i| position + i as u64);
            let examined = candidate.unwrap_or(self.window.end()).min(end);
            if let Some(member) = self.window.source.find_member(position, examined)? {
                self.window.end_at(member, Ending::Member);
                return Ok(None);
            }
            match candidate {
                Some(record_start) => {
                    if self.starts(record_start)? && !self.swallowed(record_start) {
                        return Ok((record_start < end).then_some(record_start));
                    }
                    position = record_start + 1;
                }
                None => {
                    let end = self.window.end();
                    position = position.max(end.saturating_sub(self.format.straddling_bytes()));
                    let limit = self.sink.input.limits.record_bytes + self.landing_bytes() as u64;
                    if keep.is_none_or(|keep| end.saturating_sub(keep) > limit) {
                        self.window.forget(position.saturating_sub(MEMBER_HEAD_BYTES));
                    }
                    if !self.window.fill(end + 1)? {
                        return Ok(None);
                    }
                }
            }
        }
        Ok(None)
    }

    /// True if a record starts at `position`.
    fn starts(&mut self, position: u64) -> Result<bool> {
        let end = position + self.format.sniff_bytes() as u64;
        self.window.fill(end)?;
        Ok(self.format.starts(self.window.get(position, end)))
    }

    /// True if the record at `position` lies in a separate member, whose bytes a damaged member has
    /// decoded as its own data. The record is read later, with its own member.
    fn swallowed(&self, position: u64) -> bool {
        let bytes_before = self.window.get(position.saturating_sub(MEMBER_HEAD_BYTES), position);
        self.window.source.member_magics().iter().any(|magic| memmem::find(bytes_before, magic).is_some())
    }

    /// Moves from `start` to the next record. Blanks and zeros are padding. Other bytes are
    /// reported.
    pub(super) fn gap(&mut self, mut start: u64) -> Result<Option<u64>> {
        while self.window.fill(start + 1)? {
            let bytes = self.window.get(start, u64::MAX);
            let blanks = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n' | b' ' | b'\t' | 0));
            start += blanks.unwrap_or(bytes.len()) as u64;
            self.window.forget(start);
            if blanks.is_some() {
                break;
            }
        }
        if !self.window.fill(start + 1)? {
            return Ok(None);
        }
        if self.starts(start)? {
            return Ok(Some(start));
        }
        if self.window.source.is_member(start)? {
            self.window.end_at(start, Ending::Member);
            return Ok(None);
        }
        let place = self.window.source.file_position(start);
        self.place = Some(place);
        let offset = self.window.source.offset(start);
        let bytes = self.window.get(start, start + record_head::SNIFF_BYTES as u64);
        let detail = match record_head::has_magic(bytes) {
            true if bytes[MAGIC.len()..].starts_with(b"1.") || bytes[MAGIC.len()..].starts_with(b"0.") => {
                Reason::BadHeader
            }
            true => Reason::BadVersion,
            false => Reason::Garbage,
        };
        let next = self.find(start, u64::MAX, None)?;
        // If the source ends within the gap, the way in which it ends is the better explanation.
        let reason = match (next, self.window.ended()) {
            (None, Some(Ending::Cut)) => Reason::Truncated,
            (None, Some(Ending::File)) if detail == Reason::BadHeader => Reason::Truncated,
            (None, Some(Ending::Damaged | Ending::WrongCrc)) => Reason::BadCompression,
            _ => detail,
        };
        let length = next.unwrap_or(self.window.end()) - start;
        let bytes = self.window.source.file_position(start + length).saturating_sub(place);
        self.sink.refuse(offset, reason, format!("{length} bytes between records"), bytes)?;
        Ok(next)
    }

    /// Reads the record at `start`, yields it, and returns the start of the next one.
    fn record(&mut self, start: u64) -> Result<Option<u64>> {
        self.window.source.pass(start);
        self.place = Some(self.window.source.file_position(start));
        self.window.forget(start);
        let (head, body) = match self.head(start)? {
            Ok(head_found) => head_found,
            Err((reason, detail)) => {
                let next = self.find(start + 1, u64::MAX, None)?;
                self.refuse(start, next.unwrap_or(self.window.end()), reason, detail)?;
                return Ok(next);
            }
        };
        let longest = self.window.source.longest();
        let length = match &head.length {
            Ok(length) if *length <= longest => *length,
            cause => {
                let too_long = |length: &u64| format!("Content-Length {length} is more than the file can hold");
                let detail = cause.as_ref().map_or_else(Clone::clone, too_long);
                let next = self.find(body, u64::MAX, None)?;
                self.refuse(start, next.unwrap_or(self.window.end()), Reason::BadContentLength, detail)?;
                return Ok(next);
            }
        };
        let claimed = body + length;
        let limit = self.sink.input.limits.record_bytes;
        if length > limit {
            if let Some(next) = self.oversized(start, &head, body, claimed)? {
                return self.go_on(next);
            }
        } else if self.window.fill(claimed)?
            && let Some((end, next)) = self.landing(claimed)?
        {
            let repair_reason = match next {
                Next::End(_) => broken_off(self.window.ended()),
                _ => None,
            };
            self.forward(start, &head, (body, end), next, repair_reason)?;
            return self.go_on(next);
        }
        self.misjudged(start, &head, body, claimed)
    }

    /// Reads the head at `start`. Returns it with the position of the payload.
    fn head(&mut self, start: u64) -> Result<std::result::Result<(record_head::RecordHead, u64), Refusal>> {
        let limit = self.sink.input.limits.head_bytes;
        loop {
            let bytes = self.window.get(start, start + limit);
            match self.format.head_end(bytes) {
                HeadEnd::Complete(length) => {
                    let not_one = || (Reason::BadHeader, "the line is not the first line of a record".to_owned());
                    let head = self.format.parse(&bytes[..length]).ok_or_else(not_one);
                    return Ok(head.map(|head| (head, start + length as u64)));
                }
                HeadEnd::NextRecord(_) => {
                    return Ok(Err((Reason::BadHeader, "another record starts within the head".to_owned())));
                }
                HeadEnd::Incomplete if bytes.len() as u64 == limit => {
                    return Ok(Err((Reason::HeaderTooLarge, format!("WARC head of more than {limit} bytes"))));
                }
                HeadEnd::Incomplete => {
                    let end = self.window.end();
                    if !self.window.fill(end + 1)? {
                        let reason = match self.window.ended() {
                            Some(Ending::File | Ending::Cut) => Reason::Truncated,
                            Some(Ending::Damaged | Ending::WrongCrc) => Reason::BadCompression,
                            _ => Reason::BadHeader,
                        };
                        return Ok(Err((reason, "the head does not end".to_owned())));
                    }
                }
            }
        }
    }

    /// Determines from the bytes at `claimed` whether a record may end there. The position must be
    /// in the window.
    fn landing(&mut self, claimed: u64) -> Result<Option<(u64, Next)>> {
        let end = claimed + self.landing_bytes() as u64;
        self.window.fill(end)?;
        let bytes = self.window.get(claimed, end);
        let last = self.window.ended().is_some() && claimed + bytes.len() as u64 == self.window.end();
        Ok(landing(self.format, claimed, bytes, last).or_else(|| {
            // A record may also end with its member.
            let edge = self.window.source.edge(claimed).filter(|&edge| edge - claimed <= TRAILER_BYTES as u64)?;
            let blank = self.window.get(claimed, edge).iter().all(|byte| matches!(byte, b'\r' | b'\n'));
            blank.then_some((claimed, Next::Gap(edge)))
        }))
    }

    /// Skips a record that claims to exceed the limit, if its claim is right. Returns the content
    /// after it, or `None` if the claim is wrong.
    fn oversized(
        &mut self,
        start: u64,
        head: &record_head::RecordHead,
        body: u64,
        claimed: u64,
    ) -> Result<Option<Next>> {
        let limit = self.sink.input.limits.record_bytes;
        let next = if self.far_claims < MAX_FAR_CLAIMS {
            let landing_bytes = self.landing_bytes();
            match self.window.source.peek(claimed, landing_bytes)? {
                Some((bytes, last)) => landing(self.format, claimed, &bytes, last),
                None if self.window.fill(body + limit + 1)? => {
                    self.window.seek(claimed)?;
                    let landed = if self.window.fill(claimed)? { self.landing(claimed)? } else { None };
                    // The window may have dropped the bytes between, so there is no way back to
                    // them.
                    let base = self.window.base();
                    landed.or_else(|| (base > body).then_some((claimed, Next::Lost(base))))
                }
                None => None,
            }
        } else {
            None
        };
        let Some((_, next)) = next else {
            self.far_claims += 1;
            return Ok(None);
        };
        self.far_claims = 0;
        self.refuse_unread(
            start,
            head,
            next.position(),
            Reason::RecordTooLarge,
            format!("more than {limit} bytes (input.limits.record_bytes)"),
        )?;
        self.window.seek(next.position())?;
        Ok(Some(next))
    }

    /// Yields a record with a wrong length. The record extends to the next record.
    fn misjudged(
        &mut self,
        start: u64,
        head: &record_head::RecordHead,
        body: u64,
        claimed: u64,
    ) -> Result<Option<u64>> {
        let next = self.find(body, u64::MAX, Some(body))?;
        let end = next.unwrap_or(self.window.end());
        if self.window.base() > body || end - body > self.sink.input.limits.record_bytes {
            let detail = format!("more than {} bytes (input.limits.record_bytes)", self.sink.input.limits.record_bytes);
            self.refuse_unread(start, head, end, Reason::RecordTooLarge, detail)?;
            return Ok(next);
        }
        let repair_reason = match (next, self.window.ended()) {
            (None, Some(Ending::File | Ending::Cut)) if claimed > end => Reason::Truncated,
            (None, Some(Ending::Damaged | Ending::WrongCrc)) => {
                self.refuse_unread(
                    start,
                    head,
                    end,
                    Reason::BadCompression,
                    "the compressed data is damaged within the record",
                )?;
                return Ok(None);
            }
            (None, Some(Ending::Bomb)) => {
                self.refuse_unread(start, head, end, Reason::RecordTooLarge, "expands to more than the allowed ratio")?;
                return Ok(None);
            }
            _ => Reason::BadContentLength,
        };
        let payload = without_trailer(self.window.get(body, end)).len() as u64;
        let next_step = next.map_or(Next::End(end), Next::Record);
        self.forward(start, head, (body, body + payload), next_step, Some(repair_reason))?;
        Ok(next)
    }

    fn go_on(&mut self, next: Next) -> Result<Option<u64>> {
        match next {
            Next::Record(position) => Ok(Some(position)),
            Next::End(_) => Ok(None),
            Next::Gap(position) => self.gap(position),
            Next::Lost(position) => self.find(position, u64::MAX, None),
        }
    }

    fn forward(
        &mut self,
        start: u64,
        head: &record_head::RecordHead,
        (body, end): (u64, u64),
        next: Next,
        repair_reason: Option<Reason>,
    ) -> Result<()> {
        if repair_reason == Some(Reason::Truncated) {
            let detail = format!("the file ends within the record: {} {}", head.kind, head.uri);
            return self.refuse(
                start,
                next.position(),
                Reason::Truncated,
                detail.chars().take(200).collect::<String>(),
            );
        }
        let offset = self.window.source.offset(start);
        let length = self.window.source.length(start, next.position(), matches!(next, Next::End(_)));
        let payload = self.window.get(body, end);
        let head = &*self.format.settle(head, payload);
        match page::page(head, payload, repair_reason, self.sink.input) {
            Ok(page) => {
                let is_other = self.sink.input.digests == DigestPolicy::Check
                    && page.repaired.is_none()
                    && page::is_other(head, payload, &page.body, &self.sink.input.limits);
                let repair_reason = page.repaired.or(is_other.then_some(Reason::DigestMismatch));
                let is_asked = self.sink.input.digests == DigestPolicy::Compute && page.names.payload == 0;
                let payload_names = || page::payload_names(head, payload, &page.body, &self.sink.input.limits);
                let payloads = if is_asked { payload_names() } else { Vec::new() };
                self.sink.page(RawPage { offset, length, repaired: repair_reason, payloads, ..page })
            }
            Err((reason, detail)) => {
                let segment = segments::segment(head, payload, length, reason, repair_reason).map(NonPage::Segment);
                let limits = &self.sink.input.limits;
                let meaning = segment.or_else(|| revisits::means(head, payload, reason, length, repair_reason, limits));
                let bytes = if length > 0 { length } else { self.bytes_to(next.position()) };
                let refused = RefusedRecord::new(offset, reason, detail).naming(&head.uri);
                self.sink.forward(RefusedRecord { means: meaning.map(Box::new), bytes, ..refused })
            }
        }
    }

    /// Refuses a record up to `end` that cannot be read, or gives the reason why it is not a page,
    /// if its head has one.
    fn refuse_unread(
        &mut self,
        start: u64,
        head: &record_head::RecordHead,
        end: u64,
        reason: Reason,
        detail: impl Into<String>,
    ) -> Result<()> {
        let (reason, detail) = page::no_page(head).unwrap_or_else(|| (reason, detail.into()));
        let (offset, bytes) = (self.window.source.offset(start), self.bytes_to(end));
        self.sink.forward(RefusedRecord { bytes, ..RefusedRecord::new(offset, reason, detail).naming(&head.uri) })
    }

    fn refuse(&mut self, start: u64, end: u64, reason: Reason, detail: impl Into<String>) -> Result<()> {
        let (offset, bytes) = (self.window.source.offset(start), self.bytes_to(end));
        self.sink.refuse(offset, reason, detail, bytes)
    }

    /// Returns the number of bytes of the file from the start of the current record to `end`.
    fn bytes_to(&self, end: u64) -> u64 {
        let end = self.window.source.file_position(end);
        self.place.map_or(0, |place| end.saturating_sub(place))
    }
}

/// Returns the damage of an intact record whose source ended badly directly after it.
fn broken_off(ending: Option<Ending>) -> Option<Reason> {
    match ending? {
        Ending::File | Ending::Member => None,
        Ending::WrongCrc => Some(Reason::GzipCrc),
        Ending::Cut => Some(Reason::Truncated),
        Ending::Damaged | Ending::Bomb => Some(Reason::BadCompression),
    }
}

/// Determines whether a record may end at `claimed`, from the bytes there and whether they are the
/// last. Returns the end of its payload and the content after it.
///
/// A record may end there if only line ends separate it from the next record or from the end, or if
/// two line ends follow (in ARC one), before any other bytes. A length that is up to two bytes too
/// short is accepted, because old versions of wget wrote such lengths.
fn landing(format: RecordFormat, claimed: u64, bytes: &[u8], last: bool) -> Option<(u64, Next)> {
    (0..=2).find_map(|missing_bytes: usize| {
        let bytes_after = bytes.get(missing_bytes..)?;
        let blank = bytes_after.iter().take(TRAILER_BYTES).take_while(|&&byte| byte == b'\r' || byte == b'\n').count();
        let line_ends = memchr::memchr_iter(b'\n', &bytes_after[..blank]).count();
        let (end, position) = (claimed + missing_bytes as u64, claimed + (missing_bytes + blank) as u64);
        let next = if last && blank == bytes_after.len() {
            Next::End(position)
        } else if (missing_bytes == 0 || line_ends >= 2) && format.starts(&bytes_after[blank..]) {
            Next::Record(position)
        } else if missing_bytes == 0 && line_ends >= format.line_ends() {
            Next::Gap(position)
        } else {
            return None;
        };
        Some((end, next))
    })
}

fn without_trailer(payload: &[u8]) -> &[u8] {
    let trim_one = |bytes: &[u8]| {
        let trimmed_length = bytes.strip_suffix(b"\n").map(|bytes| bytes.strip_suffix(b"\r").unwrap_or(bytes).len());
        trimmed_length.unwrap_or(bytes.len())
    };
    let payload = &payload[..trim_one(payload)];
    &payload[..trim_one(payload)]
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEXT: &str = "WARC/1.0\r\nWARC-Type: response\r\n";

    #[test]
    fn a_record_ends_before_another_one_or_the_end_or_a_blank_line() {
        let landing_of = |bytes: &str, last| landing(RecordFormat::Warc, 100, bytes.as_bytes(), last);
        assert_eq!(landing_of(&format!("\r\n\r\n{NEXT}"), false), Some((100, Next::Record(104))));
        assert_eq!(landing_of(NEXT, false), Some((100, Next::Record(100))));
        assert_eq!(landing_of("", true), Some((100, Next::End(100))));
        assert_eq!(landing_of("\r\n", true), Some((100, Next::End(102))));
        assert_eq!(landing_of("\n\nother", false), Some((100, Next::Gap(102))));
        assert_eq!(landing_of("\nother", false), None);
        assert_eq!(landing_of("other", true), None);
        assert_eq!(landing_of("", false), None);
    }

    #[test]
    fn length_up_to_two_bytes_short_is_accepted() {
        let landing_of = |bytes: &str, last| landing(RecordFormat::Warc, 100, bytes.as_bytes(), last);
        assert_eq!(landing_of(&format!(">\r\n\r\n{NEXT}"), false), Some((101, Next::Record(105))));
        assert_eq!(landing_of(&format!("l>\n\n{NEXT}"), false), Some((102, Next::Record(104))));
        assert_eq!(landing_of(&format!("ml>\n\n{NEXT}"), false), None);
        assert_eq!(landing_of(">\n\nother", false), None);
    }

    #[test]
    fn only_two_line_ends_belong_to_the_trailer() {
        assert_eq!(without_trailer(b"a\n\r\n\r\n"), b"a\n");
        assert_eq!(without_trailer(b"a\n"), b"a");
        assert_eq!(without_trailer(b""), b"");
    }
}
