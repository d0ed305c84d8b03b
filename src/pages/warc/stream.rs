//! Records in a stream of decoded bytes, which can only be read once from its start.

use std::io::Read;

use super::RecordFormat;
use super::records::{CountingSink, RecordReader};
use super::window::{Buffer, ByteSource, Ending, Window};
use super::{RangeEnd, record_head};
use crate::decoded::{FileStream, sort_out};
use crate::record::Reason;
use webtwin_base::error::Result;

/// Number of bytes that are requested at a time.
const CHUNK_BYTES: usize = 256 << 10;

/// Number of bytes from which the format is detected.
const GLANCE_BYTES: u64 = record_head::SNIFF_BYTES as u64;

/// Reads the records of a stream. Their offsets and lengths count decoded bytes.
pub(super) fn read(stream: impl Read + FileStream, sink: &mut CountingSink) -> Result<RangeEnd> {
    let mut window = Window::new(Decoded(stream), Buffer::default(), 0, None);
    window.fill(GLANCE_BYTES)?;
    let start = window.get(0, GLANCE_BYTES).trim_ascii_start();
    let format = if RecordFormat::Arc.begins(start) { RecordFormat::Arc } else { RecordFormat::Warc };
    let mut records = RecordReader::new(window, sink, format);
    let first = records.gap(0)?;
    records.run(first, u64::MAX)?;
    let (first_start, last_start, end) = (records.first, records.last, records.end);
    let (ending, rest) = (records.window.ended(), records.window.source.0.rest());
    if ending != Some(Ending::Member) && rest > 0 {
        sink.lose_rest(end, Reason::BadCompression, rest)?;
    }
    sink.flush()?;
    Ok(RangeEnd { first_start, last_start, end, records: sink.n_results })
}

struct Decoded<R>(R);

impl<R: Read + FileStream> ByteSource for Decoded<R> {
    fn more(&mut self, output: &mut Buffer) -> Result<Option<Ending>> {
        let ending = match self.0.read(output.capacity(CHUNK_BYTES)) {
            Ok(0) => Ending::Member,
            Ok(count) => {
                output.advance(count);
                return Ok(None);
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => return Ok(None),
            Err(error) => match sort_out(error)?.0 {
                Reason::Truncated => Ending::Cut,
                Reason::DecodedTooLarge => Ending::Bomb,
                _ => Ending::Damaged,
            },
        };
        Ok(Some(ending))
    }

    fn jump(&mut self, _: u64) -> bool {
        false
    }

    fn peek(&mut self, _: u64, _: usize) -> Result<Option<(Vec<u8>, bool)>> {
        Ok(None)
    }

    fn file_position(&self, position: u64) -> u64 {
        self.0.file_bytes(position)
    }

    /// The length is unknown. The value is small enough to be added to a position without overflow.
    fn longest(&self) -> u64 {
        u64::MAX / 4
    }
}
