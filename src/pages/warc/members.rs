//! A file as a sequence of members (gzip) or frames (zstd), and plain bytes between them.
//!
//! The records are in the sequence of bytes to which the members decode: a record may begin in one
//! member and end in another. A member that starts with a record is an entry point, at which a
//! range may begin to read. Each range reads from its first entry point to the first one after its
//! end, and everything between them: members that start elsewhere (bgzip), and plain records. In a
//! file that begins plain, a plain record is an entry point, too. In other files it is not, because
//! compressed data may contain the bytes of one.
//!
//! A member starts with a record if it decodes to `WARC/` or, in ARC, to a URL. After a member that
//! ended well, the next one is expected immediately. After a damaged member, the next one is
//! searched for from the byte after the start of the damaged one, because a decoder may read far
//! into the following members before it detects damage.

use super::{
    RangeEnd, RecordFormat,
    blocks::Blocks,
    chain::{Chain, ChainMember},
    decoder::{Codec, MemberDecoder, TRAILER_BYTES},
    frames::{dictionary, skippable},
    plain::Plain,
    records::{CountingSink, RecordReader},
    window::{Buffer, ByteSource, Ending, Window},
};
use crate::record::Reason;
use webtwin_base::error::Result;
use webtwin_job::RecordLimits;

/// Number of decoded bytes by which a place is classified. It is small because many places only
/// look like members.
const GLANCE_BYTES: usize = 64;

/// Number of decoded bytes that are requested at a time if they are not kept.
const CHECK_BYTES: usize = 64 << 10;

/// Maximum number of line ends and blanks before a plain record that follows a member.
const PADDING_BYTES: usize = 1024;

/// Number of consecutive damaged members after which everything that they span is skipped. Bounds
/// the cost of decoding a pile of forged members to a multiple of its size.
const RETRIES: u32 = 64;

/// Classification of a place in a compressed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MemberStart {
    /// A member that starts with a record. It has been opened.
    Record,
    /// A member that starts with other content, which may continue the content before it. It has
    /// been opened.
    More,
    /// An empty member that ends at this position.
    Empty(u64),
    /// No member, or one that is damaged from the start.
    Other(Reason),
}

/// Content after a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextMember {
    /// A place from which records can be read.
    Start(Start),
    /// Bytes, from this position on, from which no record can be read.
    Other(u64, Reason),
    /// The end of the file.
    End,
}

/// A place from which records can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Start {
    position: u64,
    from: From,
}

impl Start {
    /// Returns the position in the file.
    pub(super) fn at(self) -> u64 {
        self.position
    }

    /// True if this is a member that starts with a record.
    pub(super) fn is_record(self) -> bool {
        self.from == From::Record
    }

    /// True if this is a member that may continue the content before it.
    pub(super) fn continues(self) -> bool {
        self.from == From::More
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    /// A member that starts with a record. It has been opened.
    Record,
    /// A member that starts with other content. It has been opened. Bytes before its first record
    /// are reported.
    More,
    /// A member like `More`, but bytes before its first record are not reported, because they
    /// belong to damage before it.
    MoreSilently,
    /// A plain record.
    Plain,
    /// Plain bytes. Those before the first record are reported.
    PlainGap,
    /// Plain bytes in which records are searched for.
    PlainSearch,
}

/// Way in which a reader finds its first record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryPoint {
    /// The first record is searched for.
    Search,
    /// The first record is at a place where a record has been read before.
    Known,
}

/// Reader of the records of one file.
pub(super) struct Members<'f, 'l> {
    pub(super) blocks: Blocks<'f>,
    pub(super) decoder: MemberDecoder,
    pub(super) limits: &'l RecordLimits,
    format: RecordFormat,
    /// True if the file begins with plain bytes.
    begins_plain: bool,
    entry: EntryPoint,
    /// First bytes of the member that was opened last; `ended` is how that member ended, if it has.
    pub(super) first: Buffer,
    pub(super) ending: Option<Ending>,
    /// Members of the current chain; `decoded` is the number of decoded bytes in them.
    pub(super) pieces: Vec<ChainMember>,
    pub(super) decoded_bytes: u64,
    /// Content after the current chain, once known.
    pub(super) next: Option<NextMember>,
    /// Memory of the window, reused for each chain.
    buffer: Buffer,
    retries: u32,
    furthest: u64,
}

impl<'f, 'l> Members<'f, 'l> {
    /// Makes a reader. Loads the dictionary at the start of the file, if there is one.
    pub(super) fn new(
        mut blocks: Blocks<'f>,
        format: RecordFormat,
        begins_plain: bool,
        limits: &'l RecordLimits,
    ) -> Result<Self> {
        let mut decoder = MemberDecoder::new(limits);
        if let Some(dictionary) = dictionary(&mut blocks, 0, limits)? {
            decoder.learn(&dictionary);
        }
        Ok(Members {
            blocks,
            decoder,
            limits,
            format,
            begins_plain,
            entry: EntryPoint::Search,
            first: Buffer::default(),
            ending: None,
            pieces: Vec::new(),
            decoded_bytes: 0,
            next: None,
            buffer: Buffer::default(),
            retries: 0,
            furthest: 0,
        })
    }

    /// Reads the records that start in `start..limit`. If `start` is 0, the start of the file,
    /// records are expected there without a search.
    pub(super) fn read(
        &mut self,
        start: u64,
        limit: u64,
        entry: EntryPoint,
        sink: &mut CountingSink,
    ) -> Result<RangeEnd> {
        self.entry = entry;
        let mut end = RangeEnd { first_start: None, last_start: None, end: start, records: 0 };
        let mut next = match entry {
            _ if start == 0 && self.begins_plain => Some(Start { position: 0, from: From::PlainGap }),
            _ if start == 0 => self.start_behind(0, sink)?,
            EntryPoint::Known => self.start_at(start)?,
            EntryPoint::Search if self.begins_plain => Some(Start { position: start, from: From::PlainSearch }),
            EntryPoint::Search => self.scan_records(start, limit)?,
        };
        while let Some(start) = next {
            if start.position >= limit && (self.is_hint(start) || entry == EntryPoint::Known) {
                end.end = end.end.max(start.position);
                break;
            }
            next = self.read_from(start, limit, sink, &mut end)?;
            if next.is_none() && end.first_start.is_some() {
                end.end = self.blocks.len();
            }
        }
        end.records = sink.n_results;
        Ok(end)
    }

    /// True if a range may begin to read here.
    fn is_hint(&self, start: Start) -> bool {
        start.from == From::Record || start.from == From::Plain && self.begins_plain
    }

    fn read_from(
        &mut self,
        start: Start,
        limit: u64,
        sink: &mut CountingSink,
        end: &mut RangeEnd,
    ) -> Result<Option<Start>> {
        match start.from {
            From::Record | From::More | From::MoreSilently => self.read_members(start, limit, sink, end),
            From::Plain | From::PlainGap | From::PlainSearch => self.read_plain(start, limit, sink, end),
        }
    }

    /// Reads the member at `start`, which has been opened, and the members that continue its
    /// content. Returns the next start.
    fn read_members(
        &mut self,
        start: Start,
        limit: u64,
        sink: &mut CountingSink,
        end: &mut RangeEnd,
    ) -> Result<Option<Start>> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        buffer.append(self.first.filled());
        self.decoded_bytes = buffer.filled().len() as u64;
        self.pieces.clear();
        self.pieces.push(ChainMember { position: 0, start: start.position, end: None });
        self.next = None;
        let stop = if self.entry == EntryPoint::Known { limit } else { u64::MAX };

        let first = match start.from {
            From::Record => buffer.filled().len() - buffer.filled().trim_ascii_start().len(),
            _ => 0,
        };
        let format = self.format;
        let window = Window::new(Chain { members: self, first: first as u64 }, buffer, 0, None);
        let mut records = RecordReader::new(window, sink, format);
        let first = match start.from {
            From::Record => Some(first as u64),
            From::More => records.gap(0)?,
            _ => {
                let first_record = records.find(0, u64::MAX, None)?;
                let position_reached =
                    records.window.source.file_position(first_record.unwrap_or(records.window.end()));
                records.sink.lose_more(position_reached - start.position);
                first_record
            }
        };
        let rest = records.run(first, stop)?;
        end.add(records.first, records.last);
        let (place, ending) = (records.place, records.window.ended());
        self.buffer = records.window.into_buffer();
        if rest.is_some() {
            return Ok(None);
        }
        let ending = ending.expect("records are read until their source ends");
        if ending == Ending::Member || ending == Ending::File {
            (self.retries, self.furthest) = (0, 0);
            let next = self.next.take().expect("a source looks behind its last member");
            return self.start_of(next, sink);
        }
        self.start_behind_damage(ending, place, sink)
    }

    /// Reads plain bytes up to the next member. Returns the next start.
    fn read_plain(
        &mut self,
        start: Start,
        limit: u64,
        sink: &mut CountingSink,
        end: &mut RangeEnd,
    ) -> Result<Option<Start>> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        let stop = if self.begins_plain || self.entry == EntryPoint::Known { limit } else { u64::MAX };
        let format = self.format;
        let window = Window::new(Plain { members: self, position: start.position }, buffer, start.position, None);
        let mut records = RecordReader::new(window, sink, format);
        let first = match start.from {
            From::PlainGap => records.gap(start.position)?,
            From::PlainSearch => records.find(start.position, limit, None)?,
            _ => Some(start.position),
        };
        let rest = records.run(first, stop)?;
        end.add(records.first, records.last);
        let (ending, end_reached) = (records.window.ended(), records.window.end());
        self.buffer = records.window.into_buffer();
        match (rest, ending) {
            (Some(rest), _) => Ok(Some(Start { position: rest, from: From::Plain })),
            (None, Some(Ending::Member)) => self.start_behind(end_reached, sink),
            (None, _) => Ok(None),
        }
    }

    /// Returns the next start from `offset` on. Bytes before it are reported.
    fn start_behind(&mut self, offset: u64, sink: &mut CountingSink) -> Result<Option<Start>> {
        let next = self.behind(offset)?;
        self.start_of(next, sink)
    }

    fn start_of(&mut self, next: NextMember, sink: &mut CountingSink) -> Result<Option<Start>> {
        let (position, reason) = match next {
            NextMember::Start(start) => return Ok(Some(start)),
            NextMember::Other(position, reason) => (position, reason),
            NextMember::End => return Ok(None),
        };
        let is_member = Codec::detect(&self.blocks.peek(position, 4)?).is_some();
        let start = match is_member {
            true => self.scan(position + 1)?,
            false => self.scan_among_garbage(position)?,
        };
        let bytes = start.map_or(self.blocks.len(), |start| start.position) - position;
        sink.refuse(position, reason, format!("{bytes} bytes between members"), bytes)?;
        Ok(start)
    }

    /// Returns the next start after a member that ended badly. `place` is the position in the file
    /// where the last record or gap begins.
    fn start_behind_damage(
        &mut self,
        ending: Ending,
        place: Option<u64>,
        sink: &mut CountingSink,
    ) -> Result<Option<Start>> {
        let decoder_position = self.decoder.at();
        let damage_start = self.pieces.last().map_or(decoder_position, |piece| piece.start);
        let start = match ending {
            // The data are intact, but the next member may begin within the bytes that were read as
            // the trailer.
            Ending::WrongCrc => decoder_position - TRAILER_BYTES as u64,
            // These bytes have been examined. A step back to them would only find the same member
            // again.
            Ending::Bomb => decoder_position.max(damage_start + 1),
            _ => damage_start + 1,
        };
        let next = if matches!(ending, Ending::WrongCrc | Ending::Bomb) {
            (self.retries, self.furthest) = (0, 0);
            self.scan(start)?
        } else {
            self.retries += 1;
            self.furthest = self.furthest.max(decoder_position);
            let mut start = start;
            if self.retries > RETRIES {
                self.retries = 0;
                start = start.max(self.furthest);
            }
            self.scan(start)?
        };
        let end = next.map_or(self.blocks.len(), |start| start.position);
        let lost_bytes = end.saturating_sub(decoder_position);
        let reason = if ending == Ending::Cut { Reason::Truncated } else { Reason::BadCompression };
        match place {
            _ if ending == Ending::WrongCrc => (),
            // The bytes that were not decoded are the rest of a record that is already refused.
            Some(place) if ending == Ending::Bomb && sink.refused_last(end.saturating_sub(place)) => (),
            Some(place) => sink.lose(damage_start, reason, end.saturating_sub(place), lost_bytes)?,
            None => sink.lose_more(lost_bytes),
        }
        Ok(next)
    }

    /// Classifies the content at `position`, after a member that ended well. Skips empty members,
    /// zeros and skippable frames.
    pub(super) fn behind(&mut self, mut position: u64) -> Result<NextMember> {
        loop {
            position = self.blocks.skip_zeros(position)?;
            if position >= self.blocks.len() {
                return Ok(NextMember::End);
            }
            let head = self.blocks.peek(position, 8)?;
            if let Some(length) = skippable(&head) {
                let end = position + 8 + length;
                if end > self.blocks.len() {
                    return Ok(NextMember::Other(position, Reason::Truncated));
                }
                if position > 0
                    && let Some(dictionary) = dictionary(&mut self.blocks, position, self.limits)?
                {
                    self.decoder.learn(&dictionary);
                }
                position = end;
                continue;
            }
            if Codec::detect(&head).is_none() {
                let head = self.blocks.peek(position, PADDING_BYTES + self.format.sniff_bytes())?;
                let blank = head.len() - head.trim_ascii_start().len();
                return Ok(match self.format.starts(&head[blank..]) {
                    true => NextMember::Start(Start { position: position + blank as u64, from: From::Plain }),
                    false => NextMember::Other(position, Reason::Garbage),
                });
            }
            match self.open(position)? {
                MemberStart::Empty(end) => position = end,
                MemberStart::Record => return Ok(NextMember::Start(Start { position, from: From::Record })),
                MemberStart::More => return Ok(NextMember::Start(Start { position, from: From::More })),
                MemberStart::Other(reason) => return Ok(NextMember::Other(position, reason)),
            }
        }
    }

    /// Returns the start at `position`, where a record has been read before.
    fn start_at(&mut self, position: u64) -> Result<Option<Start>> {
        let start = match Codec::detect(&self.blocks.peek(position, 4)?) {
            None => From::PlainSearch,
            Some(_) => match self.open(position)? {
                MemberStart::Record => From::Record,
                MemberStart::More => From::MoreSilently,
                MemberStart::Empty(_) | MemberStart::Other(_) => return Ok(None),
            },
        };
        Ok(Some(Start { position, from: start }))
    }

    /// Returns the first member in `start..end` that starts with a record, and opens it.
    fn scan_records(&mut self, start: u64, end: u64) -> Result<Option<Start>> {
        let record_start = self.find_record(start, end)?;
        Ok(record_start.map(|at| Start { position: at, from: From::Record }))
    }

    /// Returns the position of the first member in `start..end` that starts with a record, and
    /// opens it.
    pub(super) fn find_record(&mut self, start: u64, end: u64) -> Result<Option<u64>> {
        let mut position = start;
        while let Some(record_start) = self.find_magic(position, end)? {
            if self.open(record_start)? == MemberStart::Record {
                return Ok(Some(record_start));
            }
            position = record_start + 1;
        }
        Ok(None)
    }

    /// Returns the first member from `start` on that starts with a record or can be decoded to its
    /// end, and opens it.
    fn scan(&mut self, start: u64) -> Result<Option<Start>> {
        let mut position = start;
        while let Some(record_start) = self.find_magic(position, u64::MAX)? {
            match self.open(record_start)? {
                MemberStart::Record => return Ok(Some(Start { position: record_start, from: From::Record })),
                MemberStart::More if self.is_whole()? => {
                    self.open(record_start)?;
                    return Ok(Some(Start { position: record_start, from: From::MoreSilently }));
                }
                _ => position = record_start + 1,
            }
        }
        Ok(None)
    }

    /// Returns the first start like [`Members::scan`], or a plain record after a blank line.
    /// Without the blank line, the bytes could be data of a member with a damaged start that only
    /// look like a record.
    fn scan_among_garbage(&mut self, begin: u64) -> Result<Option<Start>> {
        let member = self.scan(begin)?;
        let limit = member.map_or(self.blocks.len(), |start| start.position);
        let mut position = begin;
        while position < limit {
            let bytes = self.blocks.peek(position, CHECK_BYTES + self.format.sniff_bytes())?;
            let ends = memchr::memchr_iter(b'\n', &bytes[..bytes.len().min(CHECK_BYTES)]);
            let starts = ends.filter(|&end| matches!(bytes.get(end.wrapping_sub(1)), Some(b'\r' | b'\n')));
            for start in starts.map(|end| end + 1) {
                if position + (start as u64) < limit && self.format.starts(&bytes[start..]) {
                    return Ok(Some(Start { position: position + start as u64, from: From::Plain }));
                }
            }
            position += CHECK_BYTES as u64;
        }
        if let Some(start) = member {
            self.open(start.position)?;
        }
        Ok(member)
    }

    fn find_magic(&mut self, start: u64, end: u64) -> Result<Option<u64>> {
        self.blocks.find_any(&Codec::ALL.map(Codec::magic), start, end)
    }

    /// True if the member that was opened last can be decoded to its end.
    fn is_whole(&mut self) -> Result<bool> {
        while self.ending.is_none() {
            self.first.clear();
            self.ending = self.decoder.more(&mut self.blocks, self.limits, CHECK_BYTES, &mut self.first)?;
        }
        Ok(self.ending == Some(Ending::Member))
    }

    /// Classifies the place `position` and opens a member there. The same bytes are decoded in the
    /// same steps whether a member is expected there or not, so that the content of a damaged
    /// member does not depend on the way in which the reader has reached it.
    pub(super) fn open(&mut self, position: u64) -> Result<MemberStart> {
        let place = self.glance(position)?;
        let is_damaged = match place {
            MemberStart::Record | MemberStart::Empty(_) => return Ok(place),
            MemberStart::More => false,
            MemberStart::Other(_) => true,
        };
        // The frame may need the last dictionary, or none.
        if !self.decoder.open_differently(&mut self.blocks, self.limits, is_damaged)? {
            return Ok(place);
        }
        match self.judge()? {
            MemberStart::Other(_) | MemberStart::Empty(_) => self.glance(position),
            MemberStart::More if !is_damaged => self.glance(position),
            other => Ok(other),
        }
    }

    fn glance(&mut self, position: u64) -> Result<MemberStart> {
        match self.decoder.open(&mut self.blocks, position, self.limits)? {
            Ok(()) => self.judge(),
            Err(reason) => Ok(MemberStart::Other(reason)),
        }
    }

    /// Classifies the member that was opened last, by its first decoded bytes.
    fn judge(&mut self) -> Result<MemberStart> {
        self.first.clear();
        self.ending = self.decoder.more(&mut self.blocks, self.limits, GLANCE_BYTES, &mut self.first)?;
        let first = self.first.filled();
        Ok(match self.ending {
            _ if self.format.begins(first) => MemberStart::Record,
            Some(Ending::Member) if first.is_empty() => MemberStart::Empty(self.decoder.at()),
            Some(Ending::Cut) if self.format.may_begin(first) => MemberStart::Other(Reason::Truncated),
            Some(Ending::Damaged | Ending::WrongCrc) => MemberStart::Other(Reason::BadCompression),
            Some(Ending::Cut | Ending::Bomb | Ending::File) => MemberStart::Other(Reason::Garbage),
            Some(Ending::Member) | None => MemberStart::More,
        })
    }

    /// Returns the codec of the member that was opened last.
    pub(super) fn codec(&self) -> Codec {
        self.decoder.codec()
    }

    /// Returns the first decoded bytes of the member that was opened last.
    pub(super) fn first_bytes(&self) -> &[u8] {
        self.first.filled()
    }

    /// Returns the first decoded bytes from the member at `position` on, which has been opened:
    /// enough to recognise a record, unless there are fewer.
    pub(super) fn first_bytes_of_chain(&mut self, position: u64) -> Result<Vec<u8>> {
        self.decoded_bytes = self.first.filled().len() as u64;
        self.pieces.clear();
        self.pieces.push(ChainMember { position: 0, start: position, end: None });
        let mut buffer = Buffer::default();
        buffer.append(self.first.filled());
        let length = self.format.sniff_bytes() as u64;
        let mut window = Window::new(Chain { members: self, first: 0 }, buffer, 0, None);
        window.fill(length)?;
        Ok(window.get(0, length).to_vec())
    }
}
