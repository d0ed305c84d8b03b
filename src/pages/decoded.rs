//! Decoding of a compressed file into one stream of bytes.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;

use super::record::Reason;
use super::zstd_head::{FrameHead, refuse_window, window_log};
use webtwin_base::error::{Error, size};
use webtwin_base::read_at::RandomAccess;
use webtwin_job::RecordLimits;

/// Maximum memory of an xz decoder in addition to its window, in bytes.
const XZ_BYTES: u64 = 1 << 20;

/// Number of bytes from which a compression is detected.
const HEAD_BYTES: usize = 18;

/// Compression of a whole file.
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
    /// Detects the compression from the first bytes of a file or member.
    pub fn detect(head: &[u8]) -> Compression {
        match head {
            [0x1f, 0x8b, ..] => Compression::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Compression::Zstd,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Compression::Xz,
            // The size of the blocks is followed by a block, or by the end of an empty stream.
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, ..]
            | [b'B', b'Z', b'h', b'1'..=b'9', 0x17, 0x72, 0x45, 0x38, 0x50, 0x90, ..] => Compression::Bzip2,
            _ => Compression::None,
        }
    }
}

/// Reader of a file from an offset on. A failure of the store is returned as an [`io::Error`] that
/// contains our [`Error`].
pub struct FileReader<'a> {
    file: File<'a>,
    next: u64,
}

enum File<'a> {
    Borrowed(&'a dyn RandomAccess),
    Shared(Arc<dyn RandomAccess>),
}

impl<'a> FileReader<'a> {
    /// Makes a reader that begins at `offset`.
    pub(crate) fn from(file: &'a dyn RandomAccess, offset: u64) -> FileReader<'a> {
        FileReader { file: File::Borrowed(file), next: offset }
    }

    fn read_from(&self, offset: u64, length: usize) -> webtwin_base::error::Result<Vec<u8>> {
        match &self.file {
            File::Borrowed(file) => file.read_at(offset, length),
            File::Shared(file) => file.read_at(offset, length),
        }
    }
}

impl Read for FileReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.read_from(self.next, buffer.len()).map_err(io::Error::other)?;
        self.next += bytes.len() as u64;
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }
}

/// Stream that is read from a file, which may have fewer bytes than the stream yields.
pub trait FileStream {
    /// Estimates the number of bytes of the file that correspond to `decoded_bytes` bytes of the
    /// stream so far.
    fn file_bytes(&self, decoded_bytes: u64) -> u64;

    /// Returns the number of bytes of the file that have not been read.
    fn rest(&self) -> u64;
}

impl FileStream for &[u8] {
    fn file_bytes(&self, decoded_bytes: u64) -> u64 {
        decoded_bytes
    }

    fn rest(&self) -> u64 {
        self.len() as u64
    }
}

impl FileStream for FileReader<'_> {
    fn file_bytes(&self, decoded_bytes: u64) -> u64 {
        decoded_bytes
    }

    fn rest(&self) -> u64 {
        let length = match &self.file {
            File::Borrowed(file) => file.len(),
            File::Shared(file) => file.len(),
        };
        length.saturating_sub(self.next)
    }
}

/// Maximum ratio of decoded to encoded bytes, once 1 MiB has been decoded. Only content that was
/// made to do harm expands more.
pub(crate) const RATIO: u64 = 1000;

/// Decoded bytes of a file from its start: of its members, frames or streams, one after another,
/// and of plain bytes that follow them.
pub struct DecodedFile<'a> {
    stream: Stream<'a>,
    yielded: u64,
    window_bytes: u64,
    /// Offset in the file at which the stream has ended.
    end: u64,
}

type Buffered<'a> = BufReader<FileReader<'a>>;

enum Stream<'a> {
    Plain(Buffered<'a>),
    /// Plain lines after a member, up to a line that begins another member.
    Lines {
        input: Buffered<'a>,
        is_start: bool,
    },
    Gzip(Box<flate2::bufread::GzDecoder<Buffered<'a>>>),
    Zstd(zstd::stream::read::Decoder<'static, Buffered<'a>>),
    Xz(liblzma::bufread::XzDecoder<Buffered<'a>>),
    Bzip2(bzip2::bufread::BzDecoder<Buffered<'a>>),
    End,
}

impl<'a> Stream<'a> {
    /// Makes the decoder for the content at the position of `input`.
    fn of(mut input: Buffered<'a>, compression: Compression, window_bytes: u64) -> io::Result<Stream<'a>> {
        Ok(match compression {
            Compression::None => Stream::Plain(input),
            Compression::Gzip => Stream::Gzip(Box::new(flate2::bufread::GzDecoder::new(input))),
            Compression::Zstd => {
                let head = FrameHead::parse(&peek(&mut input)?);
                if let Some(head) = head.filter(|head| head.window > window_bytes) {
                    return Err(io::Error::other(refuse_window(head.window, window_bytes)));
                }
                let mut decoder = zstd::stream::read::Decoder::with_buffer(input)?.single_frame();
                decoder.window_log_max(window_log(window_bytes))?;
                Stream::Zstd(decoder)
            }
            Compression::Xz => {
                let stream = liblzma::stream::Stream::new_stream_decoder(window_bytes + XZ_BYTES, 0)?;
                Stream::Xz(liblzma::bufread::XzDecoder::new_stream(input, stream))
            }
            Compression::Bzip2 => Stream::Bzip2(bzip2::bufread::BzDecoder::new(input)),
        })
    }

    fn input(&self) -> Option<&Buffered<'a>> {
        match self {
            Stream::Plain(input) | Stream::Lines { input, .. } => Some(input),
            Stream::Gzip(decoder) => Some(decoder.get_ref()),
            Stream::Zstd(decoder) => Some(decoder.get_ref()),
            Stream::Xz(decoder) => Some(decoder.get_ref()),
            Stream::Bzip2(decoder) => Some(decoder.get_ref()),
            Stream::End => None,
        }
    }

    /// Makes the decoder for the content that follows this stream. Zero bytes between them are
    /// padding.
    fn next(self, window_bytes: u64) -> io::Result<Stream<'a>> {
        let mut input = match self {
            Stream::Plain(_) | Stream::End => return Ok(Stream::End),
            Stream::Lines { input, .. } => input,
            Stream::Gzip(decoder) => decoder.into_inner(),
            Stream::Zstd(decoder) => decoder.finish(),
            Stream::Xz(decoder) => decoder.into_inner(),
            Stream::Bzip2(decoder) => decoder.into_inner(),
        };
        loop {
            let buffer = input.fill_buf()?;
            if buffer.is_empty() {
                return Ok(Stream::End);
            }
            let zeros = buffer.iter().take_while(|&&byte| byte == 0).count();
            if zeros == 0 {
                break;
            }
            input.consume(zeros);
        }
        let head = peek(&mut input)?;
        match Compression::detect(&head) {
            // The payload of a plain WARC record may begin like a compressed member, so the rest of
            // the file is plain.
            Compression::None if head.starts_with(b"WARC/") => Ok(Stream::Plain(input)),
            Compression::None => Ok(Stream::Lines { input, is_start: true }),
            compression => Stream::of(input, compression, window_bytes),
        }
    }
}

/// Returns the next bytes of an input without consuming them.
fn peek(input: &mut Buffered) -> io::Result<Vec<u8>> {
    let buffered = input.fill_buf()?;
    if buffered.len() >= HEAD_BYTES {
        return Ok(buffered[..HEAD_BYTES].to_vec());
    }
    let place = input.get_ref().next - input.buffer().len() as u64;
    input.get_ref().read_from(place, HEAD_BYTES).map_err(io::Error::other)
}

/// Reads up to the end of a line. Stops before a line that begins a member.
fn read_line(input: &mut Buffered, is_start: &mut bool, output: &mut [u8]) -> io::Result<usize> {
    if *is_start && Compression::detect(&peek(input)?) != Compression::None {
        return Ok(0);
    }
    let buffer = input.fill_buf()?;
    let end = memchr::memchr(b'\n', buffer).map_or(buffer.len(), |end| end + 1).min(output.len());
    output[..end].copy_from_slice(&buffer[..end]);
    *is_start = end > 0 && buffer[end - 1] == b'\n';
    input.consume(end);
    Ok(end)
}

impl<'a> DecodedFile<'a> {
    /// Opens a stream that borrows the file.
    pub(crate) fn new(
        file: &'a dyn RandomAccess,
        compression: Compression,
        limits: &RecordLimits,
    ) -> io::Result<DecodedFile<'a>> {
        DecodedFile::of(FileReader::from(file, 0), compression, limits)
    }

    /// Opens a stream that shares ownership of the file.
    ///
    /// # Errors
    /// Returns an error if the decoder cannot be started.
    pub fn shared(
        file: Arc<dyn RandomAccess>,
        compression: Compression,
        limits: &RecordLimits,
    ) -> io::Result<DecodedFile<'static>> {
        DecodedFile::of(FileReader { file: File::Shared(file), next: 0 }, compression, limits)
    }

    fn of<'f>(input: FileReader<'f>, compression: Compression, limits: &RecordLimits) -> io::Result<DecodedFile<'f>> {
        let stream = Stream::of(BufReader::with_capacity(256 << 10, input), compression, limits.window_bytes)?;
        Ok(DecodedFile { stream, yielded: 0, window_bytes: limits.window_bytes, end: 0 })
    }

    /// Returns the number of bytes of the file that have been decoded.
    fn encoded_bytes(&self) -> u64 {
        self.stream.input().map_or(self.end, |input| input.get_ref().next - input.buffer().len() as u64)
    }
}

impl Read for DecodedFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = match &mut self.stream {
                Stream::Plain(input) => input.read(buffer),
                Stream::Lines { input, is_start } => read_line(input, is_start, buffer),
                Stream::Gzip(decoder) => decoder.read(buffer),
                Stream::Zstd(decoder) => decoder.read(buffer),
                Stream::Xz(decoder) => decoder.read(buffer),
                Stream::Bzip2(decoder) => decoder.read(buffer),
                Stream::End => return Ok(0),
            }
            .map_err(|error| name_window(error, self.window_bytes))?;
            self.yielded += count as u64;
            if self.yielded > 1 << 20 && self.yielded / RATIO > self.encoded_bytes() {
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it expands to more than 1000 times its size"));
            }
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            self.end = self.encoded_bytes();
            self.stream = std::mem::replace(&mut self.stream, Stream::End).next(self.window_bytes)?;
        }
    }
}

impl FileStream for DecodedFile<'_> {
    fn file_bytes(&self, decoded_bytes: u64) -> u64 {
        (u128::from(decoded_bytes) * u128::from(self.encoded_bytes()) / u128::from(self.yielded.max(1))) as u64
    }

    fn rest(&self) -> u64 {
        self.stream.input().map_or(0, |input| input.get_ref().rest() + input.buffer().len() as u64)
    }
}

/// Replaces the error of an xz stream whose window exceeds the limit by one that names the setting.
/// Returns any other error unchanged.
fn name_window(error: io::Error, limit: u64) -> io::Error {
    let is_limit = |inner: &(dyn std::error::Error + Send + Sync + 'static)| {
        matches!(inner.downcast_ref(), Some(liblzma::stream::Error::MemLimit))
    };
    match error.get_ref().is_some_and(is_limit) {
        true => io::Error::other(Error::input(
            "",
            format!(
                "its decoder needs more memory than the {} that input.limits.window_bytes (of dedup: --max-window) allows; set it to {} \
                 or more, which each worker may take",
                size(limit),
                limit * 2
            ),
        )),
        false => error,
    }
}

/// Separates failures of the run from damaged content: a failure of the store is returned as an
/// error, damage as a reason with details.
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
