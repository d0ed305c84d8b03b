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
    position: u64,
    decoded_bytes: u64,
}

impl MemberDecoder {
    /// Makes a decoder without dictionaries.
    pub(super) fn new(limits: &RecordLimits) -> MemberDecoder {
        let (inflate, crc, frames) = (Decompress::new(false), Crc::new(), Frames::new(limits));
        MemberDecoder { codec: Codec::Gzip, inflate, crc, frames, start: 0, position: 0, decoded_bytes: 0 }
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
        self.position
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
        (self.start, self.position, self.decoded_bytes) = (start, start, 0);
        let Some(codec) = Codec::detect(&blocks.peek(start, zstd_head::MAGIC.len())?) else {
            return Ok(Err(Reason::Garbage));
        };
        self.codec = codec;
        match codec {
            Codec::Gzip => {
                self.inflate.reset(false);
                self.crc.reset();
                match gzip_head(blocks, start)? {
                    Ok(length) => self.position = start + length,
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
            (self.position, self.decoded_bytes) = (self.start, 0);
        }
        Ok(is_other)
    }

    /// Appends up to `capacity` decoded bytes to `buffer`, fewer only if the member ends. Returns
    /// how the member has ended, if it has.
    pub(super) fn more(
        &mut self,
        blocks: &mut Blocks,
        limits: &RecordLimits,
        mut capacity: usize,
        buffer: &mut Buffer,
    ) -> Result<Option<Ending>> {
        while capacity > 0 {
            let input = blocks.from(self.position)?;
            let no_input = input.is_empty();
            let output = buffer.capacity(capacity);
            let (consumed, output_bytes, is_ended) = match self.codec {
                Codec::Gzip => {
                    let (inflate, crc) = (&mut self.inflate, &mut self.crc);
                    let totals_before = (inflate.total_in(), inflate.total_out());
                    let is_ended = match inflate.decompress(input, output, FlushDecompress::None) {
                        Ok(Status::StreamEnd) => Some(Ending::Member),
                        Ok(_) => None,
                        Err(_) => Some(Ending::Damaged),
                    };
                    let output_bytes = (inflate.total_out() - totals_before.1) as usize;
                    crc.update(&output[..output_bytes]);
                    (inflate.total_in() - totals_before.0, output_bytes, is_ended)
                }
                Codec::Zstd => {
                    let mut input = InBuffer::around(input);
                    let mut output = OutBuffer::around(output);
                    let is_ended = match self.frames.context().decompress_stream(&mut output, &mut input) {
                        Ok(0) => Some(Ending::Member),
                        Ok(_) => None,
                        Err(_) => Some(Ending::Damaged),
                    };
                    (input.pos() as u64, output.pos(), is_ended)
                }
            };
            buffer.advance(output_bytes);
            capacity -= output_bytes;
            self.position += consumed;
            self.decoded_bytes += output_bytes as u64;
            if is_ended == Some(Ending::Member) {
                return self.trailer(blocks).map(Some);
            }
            if is_ended.is_some() {
                return Ok(is_ended);
            }
            // Without this check, the decoder would loop: the file ends here, or the member is
            // damaged.
            if consumed == 0 && output_bytes == 0 {
                return Ok(Some(if no_input { Ending::Cut } else { Ending::Damaged }));
            }
            // Both limits must be exceeded. A long member of many records is not a bomb, nor is a
            // short one that compresses well.
            if self.decoded_bytes > limits.record_bytes && self.decoded_bytes / (self.position - self.start) > RATIO {
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
        let trailer = blocks.peek(self.position, TRAILER_BYTES)?;
        self.position += trailer.len() as u64;
        if trailer.len() < TRAILER_BYTES {
            return Ok(Ending::Cut);
        }
        let checksum = trailer[..4] == self.crc.sum().to_le_bytes();
        let length = trailer[4..] == (self.decoded_bytes as u32).to_le_bytes();
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
    let fixed_head = blocks.peek(start, 12)?;
    if fixed_head.len() < 10 {
        return Ok(Err(Reason::Truncated));
    }
    let flags = fixed_head[3];
    if flags & 0xe0 != 0 {
        return Ok(Err(Reason::BadCompression));
    }
    let mut position = start + 10;
    if flags & 4 != 0 {
        let Some(&[low, high]) = fixed_head.get(10..12) else { return Ok(Err(Reason::Truncated)) };
        position += 2 + u64::from(u16::from_le_bytes([low, high]));
    }
    for text in [8, 16] {
        if flags & text != 0 {
            let bytes = blocks.peek(position, GZIP_TEXT_BYTES)?;
            match memchr::memchr(0, &bytes) {
                Some(end) => position += end as u64 + 1,
                None if bytes.len() < GZIP_TEXT_BYTES => return Ok(Err(Reason::Truncated)),
                None => return Ok(Err(Reason::BadCompression)),
            }
        }
    }
    if flags & 2 != 0 {
        position += 2;
    }
    Ok(if position > blocks.len() { Err(Reason::Truncated) } else { Ok(position - start) })
}
