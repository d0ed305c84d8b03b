//! A compressed file as a sequence of members (gzip) or frames (zstd), each of which holds records.
//!
//! A member counts as the start of records if it decodes to `WARC/` or, in ARC, a URL. After a member that ended well, the next is
//! expected at once. After a damaged one, it is searched for from the byte after its start, because a decoder that has
//! lost its way may run far into the following members before it notices.

use super::{
    Compression, Format, RangeEnd,
    blocks::Blocks,
    decoder::{Decoder, TRAILER_BYTES},
    records::{Out, Records},
    window::{Buffer, Ending, Source, Window},
};
use crate::{error::Result, job::Limits, pages::record::Reason};

/// Decoded bytes requested at a time; most members are smaller and need one call.
const CHUNK_BYTES: usize = 256 << 10;

/// Decoded bytes by which a place is judged; few, because many places may merely look like members.
const GLANCE_BYTES: usize = 64;

/// Damaged members in a row before everything they span is given up. Bounds the cost of decoding a pile of forged
/// members to a multiple of its size.
const RETRIES: u32 = 64;

/// What is found at a place of a compressed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// A member that starts with a record; it has been opened.
    Record,
    /// An empty member or a skippable frame, up to this position.
    Empty(u64),
    /// No member, or a member without a record.
    Other(Reason),
}

/// Reads the members of one file.
pub(super) struct Members<'f, 'l> {
    blocks: Blocks<'f>,
    decoder: Decoder,
    format: Format,
    limits: &'l Limits,
    /// First bytes of the member opened last; below, how it ended, if it did.
    buffer: Buffer,
    ended: Option<Ending>,
    retries: u32,
    furthest: u64,
}

impl<'f, 'l> Members<'f, 'l> {
    /// # Panics
    /// If `compression` is [`Compression::Plain`].
    pub fn new(mut blocks: Blocks<'f>, format: Format, compression: Compression, limits: &'l Limits) -> Result<Self> {
        let decoder = match compression {
            Compression::Gzip => Decoder::gzip(),
            Compression::Zstd => Decoder::zstd(dictionary(&mut blocks, limits)?.as_deref()),
            Compression::Plain => panic!("a plain file has no members"),
        };
        Ok(Members { blocks, decoder, format, limits, buffer: Buffer::default(), ended: None, retries: 0, furthest: 0 })
    }

    /// Reads the members that start in `from..until`, and the bytes after each; `from` 0 is the start of the file,
    /// where a member is expected at once.
    pub fn read(&mut self, from: u64, until: u64, out: &mut Out) -> Result<RangeEnd> {
        let mut end = RangeEnd { first_start: None, last_start: None, end: from, records: 0 };
        let mut next = if from == 0 { self.behind(0, out)? } else { self.scan(from, until)? };
        while let Some(start) = next.filter(|&start| start < until) {
            end.first_start.get_or_insert(start);
            end.last_start = Some(start);
            let searched;
            (next, searched) = self.member(start, until, out)?;
            end.end = next.unwrap_or(searched);
        }
        end.records = out.found;
        Ok(end)
    }

    /// Reads the member at `start`, which has been opened; returns the next one, or else the position up to which there
    /// is none.
    fn member(&mut self, start: u64, until: u64, out: &mut Out) -> Result<(Option<u64>, u64)> {
        let buffer = std::mem::take(&mut self.buffer);
        let (blocks, decoder, limits) = (&mut self.blocks, &mut self.decoder, self.limits);
        let filled = buffer.filled();
        let first = (filled.len() - filled.trim_ascii_start().len()) as u64;
        let source = Member { blocks, decoder, limits, start, first };
        let mut records = Records::new(Window::new(source, buffer, 0, self.ended), out, self.format);
        records.run(Some(first), u64::MAX)?;
        let ended = records.window.ended().expect("records are read until their source ends");
        self.buffer = records.window.into_buffer();

        let reached = self.decoder.at();
        match ended {
            Ending::File | Ending::Member => {
                (self.retries, self.furthest) = (0, 0);
                return Ok((self.behind(reached, out)?, self.blocks.len()));
            }
            Ending::WrongCrc => {
                (self.retries, self.furthest) = (0, 0);
                // The data are whole, but the next member may begin within what was read as the trailer.
                return Ok((self.scan(reached - TRAILER_BYTES as u64, until)?, until));
            }
            Ending::Bomb => {
                // These bytes have been examined; going back to them would only find the member again.
                (self.retries, self.furthest) = (0, 0);
                return Ok((self.scan(reached.max(start + 1), until)?, until));
            }
            Ending::Cut | Ending::Damaged => (),
        }
        self.retries += 1;
        self.furthest = self.furthest.max(reached);
        let mut from = start + 1;
        if self.retries > RETRIES {
            self.retries = 0;
            from = from.max(self.furthest);
        }
        Ok((self.scan(from, until)?, until))
    }

    /// Returns the next member, expected at `at`. Empty members and zeros are skipped; anything else is reported.
    fn behind(&mut self, mut at: u64, out: &mut Out) -> Result<Option<u64>> {
        loop {
            at = self.blocks.skip_zeros(at)?;
            if at >= self.blocks.len() {
                return Ok(None);
            }
            match self.open(at)? {
                Place::Record => return Ok(Some(at)),
                Place::Empty(end) => at = end,
                Place::Other(reason) => {
                    let next = self.scan(at + 1, u64::MAX)?;
                    let length = next.unwrap_or(self.blocks.len()) - at;
                    out.refuse(at, reason, format!("{length} bytes between members"))?;
                    return Ok(next);
                }
            }
        }
    }

    /// Returns the first member in `from..until` that starts with a record, and opens it.
    pub fn scan(&mut self, from: u64, until: u64) -> Result<Option<u64>> {
        let mut at = from;
        while let Some(found) = self.blocks.find(self.decoder.magic(), at, until)? {
            if self.open(found)? == Place::Record {
                return Ok(Some(found));
            }
            at = found + 1;
        }
        Ok(None)
    }

    /// Examines the place `at`. Decodes the same bytes in the same steps whether a member is expected there or not, so
    /// that the content of a damaged one does not depend on how reading got there.
    pub fn open(&mut self, at: u64) -> Result<Place> {
        if let Some(end) = self.skippable(at)? {
            return Ok(if end <= self.blocks.len() { Place::Empty(end) } else { Place::Other(Reason::Truncated) });
        }
        if let Err(reason) = self.decoder.open(&mut self.blocks, at)? {
            return Ok(Place::Other(reason));
        }
        self.buffer.clear();
        self.ended = self.decoder.more(&mut self.blocks, self.limits, GLANCE_BYTES, &mut self.buffer)?;
        let first = self.buffer.filled();
        Ok(match self.ended {
            _ if self.format.begins(first) => Place::Record,
            Some(Ending::Member) if first.is_empty() => Place::Empty(self.decoder.at()),
            Some(Ending::Cut) if self.format.may_begin(first) => Place::Other(Reason::Truncated),
            Some(Ending::Damaged | Ending::WrongCrc) => Place::Other(Reason::BadCompression),
            _ => Place::Other(Reason::Garbage),
        })
    }

    /// First decoded bytes of the member opened last.
    pub fn first_bytes(&self) -> &[u8] {
        self.buffer.filled()
    }

    /// Returns the end of the skippable zstd frame at `at`, if there is one.
    fn skippable(&mut self, at: u64) -> Result<Option<u64>> {
        if self.decoder.magic().len() < 4 {
            return Ok(None);
        }
        Ok(skippable(&self.blocks.peek(at, 8)?).map(|length| at + 8 + length))
    }
}

/// Returns the length of the content of a skippable frame, given its first eight bytes.
fn skippable(head: &[u8]) -> Option<u64> {
    let head: &[u8; 8] = head.try_into().ok()?;
    let [mark, 0x2a, 0x4d, 0x18, length @ ..] = *head else { return None };
    (mark & 0xf0 == 0x50).then(|| u64::from(u32::from_le_bytes(length)))
}

/// Reads the dictionary that a `.warc.zst` may have at its start, in a skippable frame of a special kind, compressed or
/// not.
pub(super) fn dictionary(blocks: &mut Blocks, limits: &Limits) -> Result<Option<Vec<u8>>> {
    let head = blocks.peek(0, 8)?;
    let Some(length) = skippable(&head).filter(|&length| head[0] == 0x5d && length <= limits.record_bytes) else {
        return Ok(None);
    };
    let frame = blocks.peek(8, length as usize)?;
    if !frame.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        return Ok(Some(frame));
    }
    Ok(zstd::bulk::decompress(&frame, limits.record_bytes as usize).ok())
}

/// One member as a source of records, all of which have its start as their offset.
struct Member<'m, 'f> {
    blocks: &'m mut Blocks<'f>,
    decoder: &'m mut Decoder,
    limits: &'m Limits,
    start: u64,
    /// Where its first record starts.
    first: u64,
}

impl Source for Member<'_, '_> {
    fn more(&mut self, to: &mut Buffer) -> Result<Option<Ending>> {
        self.decoder.more(self.blocks, self.limits, CHUNK_BYTES, to)
    }

    fn jump(&mut self, _: u64) -> bool {
        false
    }

    fn peek(&mut self, _: u64, _: usize) -> Result<Option<(Vec<u8>, bool)>> {
        Ok(None)
    }

    fn longest(&self) -> u64 {
        self.blocks.len().saturating_mul(self.decoder.ratio())
    }

    fn member_magic(&self) -> Option<&'static [u8]> {
        Some(self.decoder.magic())
    }

    fn offset(&self, _: u64) -> u64 {
        self.start
    }

    fn length(&self, from: u64, _: u64, last: bool) -> u64 {
        if from == self.first && last { self.decoder.at() - self.start } else { 0 }
    }
}
