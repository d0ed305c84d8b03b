//! A file as a stream of its decoded bytes.

use std::io::{self, BufReader, Read};
use std::sync::Arc;

use super::record::Reason;
use crate::error::Error;
use crate::job::Limits;
use crate::read_at::ReadAt;

/// Memory that the decoder of an xz file may take: `xz -9` needs 65 MiB.
const XZ_BYTES: u64 = 256 << 20;

/// How a file as a whole is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Compression {
    /// Not compressed.
    None,
    /// Gzip, one member or several.
    Gzip,
    /// Zstandard, one frame or several.
    Zstd,
    /// Xz, one stream or several.
    Xz,
    /// Bzip2, one stream or several.
    Bzip2,
}

impl Compression {
    /// Detects the compression from the first bytes.
    pub fn of(head: &[u8]) -> Compression {
        match head {
            [0x1f, 0x8b, ..] => Compression::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Compression::Zstd,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Compression::Xz,
            // Behind the size of its blocks comes a block, or the end of an empty stream.
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, ..]
            | [b'B', b'Z', b'h', b'1'..=b'9', 0x17, 0x72, 0x45, 0x38, 0x50, 0x90, ..] => Compression::Bzip2,
            _ => Compression::None,
        }
    }
}

/// Reads a file from an offset on. A failure of the store is passed on as an [`io::Error`] that contains our [`Error`].
pub struct FileReader<'a> {
    file: File<'a>,
    next: u64,
}

enum File<'a> {
    Borrowed(&'a dyn ReadAt),
    Shared(Arc<dyn ReadAt>),
}

impl<'a> FileReader<'a> {
    pub(crate) fn from(file: &'a dyn ReadAt, offset: u64) -> FileReader<'a> {
        FileReader { file: File::Borrowed(file), next: offset }
    }

    fn read_at(&self, length: usize) -> crate::error::Result<Vec<u8>> {
        match &self.file {
            File::Borrowed(file) => file.read_at(self.next, length),
            File::Shared(file) => file.read_at(self.next, length),
        }
    }
}

impl Read for FileReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let bytes = self.read_at(into.len()).map_err(io::Error::other)?;
        self.next += bytes.len() as u64;
        into[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }
}

/// Decoded bytes of a file, from its start.
pub struct Decoded<'a> {
    stream: Stream<'a>,
    yielded: u64,
    ratio: u64,
}

enum Stream<'a> {
    Plain(FileReader<'a>),
    Gzip(Box<flate2::bufread::MultiGzDecoder<BufReader<FileReader<'a>>>>),
    Zstd(zstd::stream::read::Decoder<'static, BufReader<FileReader<'a>>>),
    Xz(liblzma::bufread::XzDecoder<BufReader<FileReader<'a>>>),
    Bzip2(bzip2::bufread::MultiBzDecoder<BufReader<FileReader<'a>>>),
}

impl<'a> Decoded<'a> {
    pub(crate) fn new(file: &'a dyn ReadAt, compression: Compression, limits: &Limits) -> io::Result<Decoded<'a>> {
        Decoded::of(FileReader::from(file, 0), compression, limits)
    }

    /// As a stream that shares the file.
    ///
    /// # Errors
    /// When the decoder cannot begin.
    pub fn shared(file: Arc<dyn ReadAt>, compression: Compression, limits: &Limits) -> io::Result<Decoded<'static>> {
        Decoded::of(FileReader { file: File::Shared(file), next: 0 }, compression, limits)
    }

    fn of<'f>(input: FileReader<'f>, compression: Compression, limits: &Limits) -> io::Result<Decoded<'f>> {
        let buffered = |input| BufReader::with_capacity(256 << 10, input);
        let stream = match compression {
            Compression::None => Stream::Plain(input),
            Compression::Gzip => Stream::Gzip(Box::new(flate2::bufread::MultiGzDecoder::new(buffered(input)))),
            Compression::Zstd => Stream::Zstd(zstd::stream::read::Decoder::with_buffer(buffered(input))?),
            Compression::Xz => {
                let stream = liblzma::stream::Stream::new_stream_decoder(XZ_BYTES, liblzma::stream::CONCATENATED)?;
                Stream::Xz(liblzma::bufread::XzDecoder::new_stream(buffered(input), stream))
            }
            Compression::Bzip2 => Stream::Bzip2(bzip2::bufread::MultiBzDecoder::new(buffered(input))),
        };
        Ok(Decoded { stream, yielded: 0, ratio: limits.ratio })
    }

    fn encoded(&self) -> u64 {
        match &self.stream {
            Stream::Plain(input) => input.next,
            Stream::Gzip(decoder) => decoder.get_ref().get_ref().next,
            Stream::Zstd(decoder) => decoder.get_ref().get_ref().next,
            Stream::Xz(decoder) => decoder.get_ref().get_ref().next,
            Stream::Bzip2(decoder) => decoder.get_ref().get_ref().next,
        }
    }
}

impl Read for Decoded<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = match &mut self.stream {
            Stream::Plain(input) => input.read(into),
            Stream::Gzip(decoder) => decoder.read(into),
            Stream::Zstd(decoder) => decoder.read(into),
            Stream::Xz(decoder) => decoder.read(into),
            Stream::Bzip2(decoder) => decoder.read(into),
        }?;
        self.yielded += count as u64;
        if self.yielded > 1 << 20 && self.yielded / self.ratio > self.encoded() {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it expands beyond limits.ratio"));
        }
        Ok(count)
    }
}

/// Tells a failure of the run, which ends it, from damaged content, which is a refusal.
pub fn sort_out(error: io::Error) -> Result<(Reason, String), Error> {
    let (kind, text) = (error.kind(), error.to_string());
    match error.into_inner().map(|inner| inner.downcast::<Error>()) {
        Some(Ok(failure)) => Err(*failure),
        _ => Ok(match kind {
            io::ErrorKind::UnexpectedEof => (Reason::Truncated, "the compressed data ends before its end mark".into()),
            io::ErrorKind::FileTooLarge => (Reason::DecodedTooLarge, text),
            _ => (Reason::BadCompression, text),
        }),
    }
}
