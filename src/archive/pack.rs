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
                let compressor = Compressor::with_dictionary(SMALL_LEVEL, dictionary.unwrap_or_default());
                Packer::Zstd(Box::new(compressor.map_err(zstd_error)?))
            }
        })
    }

    /// Returns the compressed form of a record that is given in parts.
    pub(crate) fn pack(&mut self, parts: &[&[u8]]) -> Result<Vec<u8>> {
        let block = parts.concat();
        match self {
            Packer::Plain => Ok(block),
            Packer::Gzip => {
                let mut member = GzEncoder::new(Vec::new(), flate2::Compression::best());
                member.write_all(&block).and_then(|()| member.finish()).map_err(zstd_error)
            }
            Packer::Zstd(compressor) => compressor.compress(&block).map_err(zstd_error),
        }
    }
}

fn zstd_error(cause: std::io::Error) -> Error {
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
    pub(crate) fn begin(writer: W, compression: RecordCompression, dictionary: Option<&[u8]>) -> std::io::Result<Self> {
        Ok(match compression {
            RecordCompression::Plain => MemberWriter::Plain(writer),
            RecordCompression::Gzip => MemberWriter::Gzip(GzEncoder::new(writer, flate2::Compression::default())),
            RecordCompression::Zstd => {
                let mut encoder = Encoder::with_dictionary(writer, LEVEL, dictionary.unwrap_or_default())?;
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
            MemberWriter::Plain(writer) => writer.write(bytes),
            MemberWriter::Gzip(encoder) => encoder.write(bytes),
            MemberWriter::Zstd(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            MemberWriter::Plain(writer) => writer.flush(),
            MemberWriter::Gzip(encoder) => encoder.flush(),
            MemberWriter::Zstd(encoder) => encoder.flush(),
        }
    }
}
