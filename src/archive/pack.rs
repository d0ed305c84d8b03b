//! Compression of records in the format of their file.

use std::io::Write;

use flate2::write::GzEncoder;
use zstd::bulk::Compressor;
use zstd::stream::write::Encoder;

use webtwin_base::error::{Error, Result};
use webtwin_pages::warc::RecordCompression;

/// Level of zstd for rewritten records, which are small and rarely read.
const SMALL_LEVEL: i32 = 19;

/// Level of zstd for restored records: its default.
const LEVEL: i32 = 3;

/// Compressor of small records that are in memory.
pub(super) enum Packer {
    Plain,
    Gzip,
    Zstd(Box<Compressor<'static>>),
}

impl Packer {
    /// Returns the compressor for a file with the given compression and dictionary.
    pub(crate) fn new(compression: RecordCompression, dictionary: Option<&[u8]>) -> Result<Packer> {
        Ok(match compression {
            RecordCompression::Plain => Packer::Plain,
            RecordCompression::Gzip => Packer::Gzip,
            RecordCompression::Zstd => {
                let made = Compressor::with_dictionary(SMALL_LEVEL, dictionary.unwrap_or_default());
                Packer::Zstd(Box::new(made.map_err(broken)?))
            }
        })
    }

    /// Returns the compressed form of a record that is given in parts.
    pub(crate) fn pack(&mut self, parts: &[&[u8]]) -> Result<Vec<u8>> {
        let whole = parts.concat();
        match self {
            Packer::Plain => Ok(whole),
            Packer::Gzip => {
                let mut member = GzEncoder::new(Vec::new(), flate2::Compression::best());
                member.write_all(&whole).and_then(|()| member.finish()).map_err(broken)
            }
            Packer::Zstd(compressor) => compressor.compress(&whole).map_err(broken),
        }
    }
}

fn broken(cause: std::io::Error) -> Error {
    Error::Invariant(format!("a record cannot be compressed: {cause}"))
}

/// Compressor of a record of any length, which is written to `W` as a stream.
pub(super) enum MemberWriter<'d, W: Write> {
    Plain(W),
    Gzip(GzEncoder<W>),
    Zstd(Encoder<'d, W>),
}

impl<W: Write> MemberWriter<'_, W> {
    /// Begins a record of a file with the given compression and dictionary.
    pub(crate) fn begin(out: W, compression: RecordCompression, dictionary: Option<&[u8]>) -> std::io::Result<Self> {
        Ok(match compression {
            RecordCompression::Plain => MemberWriter::Plain(out),
            RecordCompression::Gzip => MemberWriter::Gzip(GzEncoder::new(out, flate2::Compression::default())),
            RecordCompression::Zstd => {
                let mut encoder = Encoder::with_dictionary(out, LEVEL, dictionary.unwrap_or_default())?;
                encoder.include_checksum(true)?;
                MemberWriter::Zstd(encoder)
            }
        })
    }

    /// Ends the record.
    pub(crate) fn end(self) -> std::io::Result<()> {
        match self {
            MemberWriter::Plain(_) => Ok(()),
            MemberWriter::Gzip(encoder) => encoder.finish().map(drop),
            MemberWriter::Zstd(encoder) => encoder.finish().map(drop),
        }
    }
}

impl<W: Write> Write for MemberWriter<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            MemberWriter::Plain(out) => out.write(bytes),
            MemberWriter::Gzip(encoder) => encoder.write(bytes),
            MemberWriter::Zstd(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            MemberWriter::Plain(out) => out.flush(),
            MemberWriter::Gzip(encoder) => encoder.flush(),
            MemberWriter::Zstd(encoder) => encoder.flush(),
        }
    }
}
