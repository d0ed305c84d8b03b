//! Incremental decoding of compressed members (gzip) and frames (zstd).

use flate2::{Crc, Decompress, FlushDecompress, Status};
use zstd::zstd_safe::{InBuffer, OutBuffer};

use super::{
    blocks::Blocks,
    frames::Frames,
    window::{Buffer, Ending},
};
use crate::decoded::RATIO;
use crate::record::Reason;
use crate::zstd_head;
use webtwin_base::error::Result;
use webtwin_job::RecordLimits;

/// Maximum length of the file name or comment in the head of a gzip member.
const GZIP_TEXT_BYTES: usize = 1024;

/// First bytes of a gzip member that contains deflate data.
const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b, 0x08];

/// Number of bytes after the data of a gzip member: checksum and length.
pub(super) const TRAILER_BYTES: usize = 8;

/// Maximum expansion that deflate allows.
const DEFLATE_RATIO: u64 = 1032;

/// Maximum expansion of zstd in practice: a block of 128 KiB from four bytes.
const ZSTD_RATIO: u64 = 1 << 15;

/// Compression of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codec {
    Gzip,
    Zstd,
}

impl Codec {
    /// All codecs.
    pub(super) const ALL: [Codec; 2] = [Codec::Gzip, Codec::Zstd];

    /// Returns the first bytes of every member.
    pub(super) const fn magic(self) -> &'static [u8] {
        match self {
            Codec::Gzip => GZIP_MAGIC,
            Codec::Zstd => zstd_head::MAGIC,
        }
    }

    /// Returns the codec of the member that starts with these bytes.
    pub(super) fn detect(bytes: &[u8]) -> Option<Codec> {
        Codec::ALL.into_iter().find(|codec| bytes.starts_with(codec.magic()))
    }
}

/// Decoder of one member after another, of either codec.
pub(super) struct MemberDecoder {
    codec: Codec,
    inflate: Decompress,
    crc: Crc,
    frames: Frames,
    start: u64,
    at: u64,
    decoded: u64,
}

impl MemberDecoder {
    /// Makes a decoder without dictionaries.
    pub(super) fn new(limits: &RecordLimits) -> MemberDecoder {
        let (inflate, crc, frames) = (Decompress::new(false), Crc::new(), Frames::new(limits));
        MemberDecoder { codec: Codec::Gzip, inflate, crc, frames, start: 0, at: 0, decoded: 0 }
    }

    /// Adds a dictionary for the frames that follow it in the file.
    pub(super) fn learn(&mut self, dictionary: &[u8]) {
        self.frames.learn(dictionary);
    }

    /// Returns the codec of the member that was opened last.
    pub(super) fn codec(&self) -> Codec {
        self.codec
    }

    /// Returns an upper bound of decoded bytes per encoded byte.
    pub(super) fn ratio(&self) -> u64 {
        match self.codec {
            Codec::Gzip => DEFLATE_RATIO,
            Codec::Zstd => ZSTD_RATIO,
        }
    }

    /// Returns the position in the file after the bytes decoded so far. After the last byte of a
    /// member, that is the end of the member.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Prepares to decode the member at `start`, or returns the reason why there is none.
    ///
    /// # Errors
    /// Returns any error of the file, and [`Error::Input`](webtwin_base::error::Error::Input) for a
    /// window that exceeds the limit.
    pub(super) fn open(
        &mut self,
        blocks: &mut Blocks,
        start: u64,
        limits: &RecordLimits,
    ) -> Result<std::result::Result<(), Reason>> {
        (self.start, self.at, self.decoded) = (start, start, 0);
        let Some(codec) = Codec::detect(&blocks.peek(start, zstd_head::MAGIC.len())?) else {
            return Ok(Err(Reason::Garbage));
        };
        self.codec = codec;
        match codec {
            Codec::Gzip => {
                self.inflate.reset(false);
                self.crc.reset();
                match gzip_head(blocks, start)? {
                    Ok(length) => self.at = start + length,
                    Err(reason) => return Ok(Err(reason)),
                }
            }
            Codec::Zstd if !self.frames.choose(blocks, start, limits)? => return Ok(Err(Reason::BadCompression)),
            Codec::Zstd => (),
        }
        Ok(Ok(()))
    }

    /// Prepares to decode the member that was opened last again, with or without another
    /// dictionary. Returns false if there is no alternative. If the first attempt failed
    /// (`is_damaged`), a dictionary is searched for.
    pub(super) fn open_differently(
        &mut self,
        blocks: &mut Blocks,
        limits: &RecordLimits,
        is_damaged: bool,
    ) -> Result<bool> {
        let is_other =
            self.codec == Codec::Zstd && self.frames.choose_another(blocks, self.start, limits, is_damaged)?;
        if is_other {
            (self.at, self.decoded) = (self.start, 0);
        }
        Ok(is_other)
    }

    /// Appends up to `capacity` decoded bytes to `to`, fewer only if the member ends. Returns how
    /// the member has ended, if it has.
    pub(super) fn more(
        &mut self,
        blocks: &mut Blocks,
        limits: &RecordLimits,
        mut capacity: usize,
        to: &mut Buffer,
    ) -> Result<Option<Ending>> {
        while capacity > 0 {
            let input = blocks.from(self.at)?;
            let no_input = input.is_empty();
            let output = to.capacity(capacity);
            let (consumed, produced, ended) = match self.codec {
                Codec::Gzip => {
                    let (inflate, crc) = (&mut self.inflate, &mut self.crc);
                    let before = (inflate.total_in(), inflate.total_out());
                    let ended = match inflate.decompress(input, output, FlushDecompress::None) {
                        Ok(Status::StreamEnd) => Some(Ending::Member),
                        Ok(_) => None,
                        Err(_) => Some(Ending::Damaged),
                    };
                    let produced = (inflate.total_out() - before.1) as usize;
                    crc.update(&output[..produced]);
                    (inflate.total_in() - before.0, produced, ended)
                }
                Codec::Zstd => {
                    let mut input = InBuffer::around(input);
                    let mut output = OutBuffer::around(output);
                    let ended = match self.frames.context().decompress_stream(&mut output, &mut input) {
                        Ok(0) => Some(Ending::Member),
                        Ok(_) => None,
                        Err(_) => Some(Ending::Damaged),
                    };
                    (input.pos() as u64, output.pos(), ended)
                }
            };
            to.advance(produced);
            capacity -= produced;
            self.at += consumed;
            self.decoded += produced as u64;
            if ended == Some(Ending::Member) {
                return self.trailer(blocks).map(Some);
            }
            if ended.is_some() {
                return Ok(ended);
            }
            // Without this check, the decoder would loop: the file ends here, or the member is
            // damaged.
            if consumed == 0 && produced == 0 {
                return Ok(Some(if no_input { Ending::Cut } else { Ending::Damaged }));
            }
            // Both limits must be exceeded. A long member of many records is not a bomb, nor is a
            // short one that compresses well.
            if self.decoded > limits.record_bytes && self.decoded / (self.at - self.start) > RATIO {
                return Ok(Some(Ending::Bomb));
            }
        }
        Ok(None)
    }

    /// Reads the bytes after the data of a gzip member. The zstd library checks its own.
    fn trailer(&mut self, blocks: &mut Blocks) -> Result<Ending> {
        if self.codec == Codec::Zstd {
            return Ok(Ending::Member);
        }
        let trailer = blocks.peek(self.at, TRAILER_BYTES)?;
        self.at += trailer.len() as u64;
        if trailer.len() < TRAILER_BYTES {
            return Ok(Ending::Cut);
        }
        let checksum = trailer[..4] == self.crc.sum().to_le_bytes();
        let length = trailer[4..] == (self.decoded as u32).to_le_bytes();
        Ok(match (checksum, length) {
            (true, true) => Ending::Member,
            // A match of either is enough evidence that the data are intact.
            (true, false) | (false, true) => Ending::WrongCrc,
            (false, false) => Ending::Damaged,
        })
    }
}

/// Returns the length of the head of the gzip member at `start`.
fn gzip_head(blocks: &mut Blocks, start: u64) -> Result<std::result::Result<u64, Reason>> {
    let fixed = blocks.peek(start, 12)?;
    if fixed.len() < 10 {
        return Ok(Err(Reason::Truncated));
    }
    let flags = fixed[3];
    if flags & 0xe0 != 0 {
        return Ok(Err(Reason::BadCompression));
    }
    let mut at = start + 10;
    if flags & 4 != 0 {
        let Some(&[low, high]) = fixed.get(10..12) else { return Ok(Err(Reason::Truncated)) };
        at += 2 + u64::from(u16::from_le_bytes([low, high]));
    }
    for text in [8, 16] {
        if flags & text != 0 {
            let bytes = blocks.peek(at, GZIP_TEXT_BYTES)?;
            match memchr::memchr(0, &bytes) {
                Some(end) => at += end as u64 + 1,
                None if bytes.len() < GZIP_TEXT_BYTES => return Ok(Err(Reason::Truncated)),
                None => return Ok(Err(Reason::BadCompression)),
            }
        }
    }
    if flags & 2 != 0 {
        at += 2;
    }
    Ok(if at > blocks.len() { Err(Reason::Truncated) } else { Ok(at - start) })
}
