//! Compression of an output file like its input: in the same format, in a single member, frame or
//! stream (because some readers stop after the first), and at a fast level if the input was
//! compressed fast.

use std::io::{self, Write};

use bzip2::write::BzEncoder;
use flate2::write::GzEncoder;
use liblzma::write::XzEncoder;
use zstd::zstd_safe::CParameter;

use webtwin_base::error::{Error, Result};
use webtwin_pages::decoded::Compression;
use webtwin_storage::new_file::NewFile;

/// Level of xz. The default level would take 94 MiB.
const XZ_LEVEL: u32 = 3;

/// Level of zstd for inputs whose level is unknown: its default, which most tools use.
const ZSTD_LEVEL: i32 = 3;

/// Uncompressed size of a zstd job in bytes. A frame is divided into jobs, which several threads
/// compress. The bytes of the frame depend on the size of the jobs, but not on the number of
/// threads. Smaller jobs cost compression and time. Larger ones cost memory: six jobs for each
/// file.
const ZSTD_JOB_BYTES: u32 = 4 << 20;

/// Number of bytes at the beginning of a file that [`Coding::like`] inspects.
pub(crate) const HEAD: usize = 16;

/// Format and level of compression of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Coding {
    compression: Compression,
    level: i32,
}

impl Coding {
    /// Returns the coding of an input with the given first bytes.
    ///
    /// Only fast levels can be recognised. gzip marks its fastest level. zstd records the size of
    /// the window, which is smaller than that of the default only at lower levels. Otherwise the
    /// level is the default.
    pub(crate) fn like(compression: Compression, head: &[u8]) -> Coding {
        let level = match compression {
            Compression::None => 0,
            // XFL, RFC 1952 section 2.3.1: the value 4 marks the fastest level.
            Compression::Gzip if head.get(8) == Some(&4) => 1,
            Compression::Gzip => flate2::Compression::default().level() as i32,
            Compression::Zstd => match zstd_window(head) {
                Some(..=0x8_0000) => 1,
                Some(..=0x10_0000) => 2,
                _ => ZSTD_LEVEL,
            },
            Compression::Xz => XZ_LEVEL as i32,
            Compression::Bzip2 => bzip2::Compression::default().level() as i32,
        };
        Coding { compression, level }
    }
}

/// Returns the window of a zstd frame in bytes, if its header has one. It may be absent in a frame
/// of known length (RFC 8878 section 3.1.1.1.2).
fn zstd_window(head: &[u8]) -> Option<u64> {
    let &[0x28, 0xb5, 0x2f, 0xfd, descriptor, window, ..] = head else { return None };
    let is_single_segment = descriptor & 1 << 5 != 0;
    let base = 1u64 << (10 + (window >> 3));
    (!is_single_segment).then_some(base + base / 8 * u64::from(window & 7))
}

/// Compressing writer.
pub(crate) enum OutputCompressor {
    /// Uncompressed.
    Plain(NewFile),
    /// Compressed as one gzip member.
    Gzip(GzEncoder<NewFile>),
    /// Compressed as one zstd frame with a checksum.
    Zstd(zstd::stream::write::Encoder<'static, NewFile>),
    /// Compressed as one xz stream.
    Xz(XzEncoder<NewFile>),
    /// Compressed as one bzip2 stream.
    Bzip2(BzEncoder<NewFile>),
}

impl OutputCompressor {
    /// Begins a file. Only zstd uses several threads: `threads` in addition to the one that writes.
    ///
    /// # Errors
    /// Returns [`Error::Invariant`] if zstd rejects its settings.
    pub(crate) fn new(
        writer: NewFile,
        Coding { compression, level }: Coding,
        threads: usize,
    ) -> Result<OutputCompressor> {
        let magnitude = level.unsigned_abs();
        Ok(match compression {
            Compression::None => OutputCompressor::Plain(writer),
            Compression::Gzip => OutputCompressor::Gzip(GzEncoder::new(writer, flate2::Compression::new(magnitude))),
            Compression::Zstd => OutputCompressor::Zstd(
                zstd_encoder(writer, level, threads)
                    .map_err(|cause| Error::Invariant(format!("zstd cannot be started: {cause}")))?,
            ),
            Compression::Xz => OutputCompressor::Xz(XzEncoder::new(writer, magnitude)),
            Compression::Bzip2 => OutputCompressor::Bzip2(BzEncoder::new(writer, bzip2::Compression::new(magnitude))),
        })
    }

    /// Ends the file.
    ///
    /// # Errors
    /// Returns any error of the store.
    pub(crate) fn finish(self) -> io::Result<NewFile> {
        match self {
            OutputCompressor::Plain(writer) => Ok(writer),
            OutputCompressor::Gzip(encoder) => encoder.finish(),
            OutputCompressor::Zstd(encoder) => encoder.finish(),
            OutputCompressor::Xz(encoder) => encoder.finish(),
            OutputCompressor::Bzip2(encoder) => encoder.finish(),
        }
    }
}

fn zstd_encoder<W: Write>(
    writer: W,
    level: i32,
    threads: usize,
) -> io::Result<zstd::stream::write::Encoder<'static, W>> {
    let mut encoder = zstd::stream::write::Encoder::new(writer, level)?;
    encoder.include_checksum(true)?;
    // Without a worker thread, zstd would not divide the frame into jobs.
    encoder.multithread(threads.max(1) as u32)?;
    encoder.set_parameter(CParameter::JobSize(ZSTD_JOB_BYTES))?;
    Ok(encoder)
}

impl Write for OutputCompressor {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            OutputCompressor::Plain(writer) => writer.write(bytes),
            OutputCompressor::Gzip(encoder) => encoder.write(bytes),
            OutputCompressor::Zstd(encoder) => encoder.write(bytes),
            OutputCompressor::Xz(encoder) => encoder.write(bytes),
            OutputCompressor::Bzip2(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use xxhash_rust::xxh3::xxh3_64;

    use super::*;

    /// Returns bytes that are compressible, but not to almost nothing.
    fn compressible(length: usize) -> Vec<u8> {
        (0..length).map(|at| b'a' + (xxh3_64(&(at as u32 / 7 % 50_000).to_le_bytes()) % 26) as u8).collect()
    }

    fn gzip(level: u32) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::new(level));
        encoder.write_all(b"text").unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn fast_compression_is_retained_and_otherwise_default() {
        let level = |compression, bytes: &[u8]| Coding::like(compression, &bytes[..bytes.len().min(HEAD)]).level;
        for (zstd_level, want) in [(-5, 1), (1, 1), (2, 2), (3, 3), (4, 3), (9, 3), (19, 3)] {
            let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), zstd_level).unwrap();
            encoder.write_all(&compressible(300_000)).unwrap();
            assert_eq!(level(Compression::Zstd, &encoder.finish().unwrap()), want, "{zstd_level}");
            // A frame of known length, which does not contain the size of its window.
            assert_eq!(level(Compression::Zstd, &zstd::bulk::compress(&compressible(3000), zstd_level).unwrap()), 3);
        }
        assert_eq!(
            (1..=9).map(|of| level(Compression::Gzip, &gzip(of))).collect::<Vec<_>>(),
            [1, 6, 6, 6, 6, 6, 6, 6, 6]
        );
        for short_head in [&b""[..], b"\x28\xb5\x2f\xfd", b"\x50\x2a\x4d\x18\0\0\0\0\0\0"] {
            assert_eq!((level(Compression::Zstd, short_head), level(Compression::Gzip, short_head)), (3, 6));
        }
    }

    #[test]
    fn frame_has_the_same_bytes_with_any_threads_and_write_sizes() {
        let bytes = compressible(3 * ZSTD_JOB_BYTES as usize + 12_345);
        for level in [1, 3] {
            let compressed = |threads: usize, step: usize| {
                let mut encoder = zstd_encoder(Vec::new(), level, threads).unwrap();
                bytes.chunks(step).for_each(|piece| encoder.write_all(piece).unwrap());
                encoder.finish().unwrap()
            };
            let single_threaded = compressed(1, 1 << 20);
            assert_eq!(zstd::bulk::decompress(&single_threaded, bytes.len()).unwrap(), bytes);
            for (threads, step) in [(0, 1 << 20), (2, 1 << 20), (2, 77_777), (5, bytes.len())] {
                assert!(compressed(threads, step) == single_threaded, "{threads} threads, {step} bytes at a time");
            }
        }
    }
}
