//! Detection of the format of an input, by content. The name decides only if the content does not.

use std::io::Read;

use super::decoded::{Compression, DecodedFile, sort_out};
use super::sniff::is_html;
use super::zstd_head::LARGEST_WINDOW_LOG;
use super::{warc, zip_entries};
use webtwin_base::error::{Error, Result};
use webtwin_base::read_at::RandomAccess;
use webtwin_job::RecordLimits;

/// Number of bytes of a file, and of decoded bytes, that are examined.
pub(super) const HEAD: usize = 64 << 10;

/// First bytes of a zip archive: of its first entry, or of the end of an empty directory.
const ZIP_MARKS: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];

/// Format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum FileFormat {
    /// An empty file, which has no records.
    Empty,
    /// WARC, WET or ARC, not compressed.
    WarcPlain,
    /// WARC, WET or ARC in gzip, with one member per record or any other members.
    WarcGzip,
    /// WARC, WET or ARC in zstd.
    WarcZstd,
    /// WARC, WET or ARC in a compression in which no record can be read without those before it.
    WarcStream(Compression),
    /// One JSON object per line.
    Jsonl(Compression),
    /// Parquet, detected by its magic number.
    Parquet,
    /// A single HTML page.
    HtmlFile,
    /// A zip archive with WARC files, such as a WACZ.
    Zip,
}

/// Detects the format of a file. `name` is used in messages, and decides if the content does not.
///
/// # Errors
/// Returns [`Error::Input`] for any other format, with a description of the content and a remedy.
/// Returns [`Error::Storage`] if the store fails.
///
/// # Cost
/// Reads the first 64 KiB.
pub fn detect(file: &dyn RandomAccess, name: &str) -> Result<FileFormat> {
    recognise(file, name).map_err(|error| error.of_input(name))?.map_err(|reason| Error::input(name, reason))
}

/// Detects the format of a file like [`detect`], but returns the description of an unsupported
/// format as a value instead of an error.
pub(super) fn recognise(file: &dyn RandomAccess, name: &str) -> Result<std::result::Result<FileFormat, &'static str>> {
    let refuse = |reason| Ok(Err(reason));
    if file.is_empty() {
        return match ends_in(name, &[".parquet"]) {
            true => refuse("bad_parquet: the file is empty; write or fetch it again"),
            false => Ok(Ok(FileFormat::Empty)),
        };
    }
    let file_head = file.read_at(0, HEAD)?;
    if file_head.starts_with(b"PAR1") || file_head.starts_with(b"PARE") {
        return Ok(Ok(FileFormat::Parquet));
    }
    if ZIP_MARKS.iter().any(|mark| file_head.starts_with(mark)) {
        return Ok(zip_entries::entries(file)?.map(|_| FileFormat::Zip));
    }
    // A WARC in zstd may begin with its dictionary, without which nothing decodes.
    if file_head.starts_with(&[0x5d, 0x2a, 0x4d, 0x18]) {
        return Ok(Ok(FileFormat::WarcZstd));
    }
    let compression = Compression::detect(&file_head);
    let head = decoded_head(file, compression)?;
    if head.is_empty() && compression != Compression::None {
        // The first member is damaged, or the examined bytes hold nothing but empty members.
        return match head_of_later_member(&file_head)
            .map_or_else(|| detect_name(name, compression), |head| detect_head(&head, compression))
        {
            Some(kind) => Ok(Ok(kind)),
            None if file_head.len() < HEAD && decodes_to_nothing(file, compression)? => Ok(Ok(FileFormat::Empty)),
            None => refuse("its compressed data is damaged from the start; fetch it again"),
        };
    }
    if Compression::detect(&head) != Compression::None && compression != Compression::None {
        return refuse("compressed twice (gzip in gzip, or similar); decompress it once and run again");
    }
    if let Some(description) = looks_like(&head) {
        return refuse(description);
    }
    match detect_head(&head, compression).or_else(|| detect_name(name, compression)) {
        Some(FileFormat::HtmlFile) if compression != Compression::None => {
            refuse("a compressed HTML page; decompress it, or give WARC, JSONL or Parquet")
        }
        Some(FileFormat::HtmlFile) if is_crawl_name(name) => {
            refuse("not_warc: an HTML page under the name of a crawl file, perhaps a failed download; fetch it again")
        }
        Some(kind) => Ok(Ok(kind)),
        None if head.iter().all(u8::is_ascii_whitespace) && file_head.len() < HEAD => Ok(Ok(FileFormat::Empty)),
        None => refuse("not_warc: neither WARC nor JSONL, Parquet or HTML; docs/input.md lists the formats"),
    }
}

/// Returns the format that the first decoded bytes show, or `None` if they are ambiguous.
fn detect_head(head: &[u8], compression: Compression) -> Option<FileFormat> {
    let archive = match compression {
        Compression::None => FileFormat::WarcPlain,
        Compression::Gzip => FileFormat::WarcGzip,
        Compression::Zstd => FileFormat::WarcZstd,
        Compression::Xz | Compression::Bzip2 => FileFormat::WarcStream(compression),
    };
    let start = trim(head);
    if start.starts_with(b"WARC/") || start.starts_with(b"warc/") || start.starts_with(b"filedesc:") {
        return Some(archive);
    }
    if start.starts_with(b"{") {
        return Some(FileFormat::Jsonl(compression));
    }
    if is_html(head) {
        return Some(FileFormat::HtmlFile);
    }
    // A damaged first record does not change the format of the rest, so later lines are examined.
    let mut lines = head.split(|&byte| byte == b'\n');
    lines.find_map(|line| {
        let line = trim(line);
        match line.starts_with(b"WARC/1.") || warc::is_arc_line(line) {
            true => Some(archive),
            false => line.starts_with(b"{\"").then_some(FileFormat::Jsonl(compression)),
        }
    })
}

/// Returns the format that the name implies, for content that is ambiguous.
fn detect_name(name: &str, compression: Compression) -> Option<FileFormat> {
    let is_json = claims_lines(name) || ends_in(uncompressed(name), &[".json"]);
    is_json.then_some(FileFormat::Jsonl(compression))
}

/// Describes content in a format that users give by mistake.
fn looks_like(head: &[u8]) -> Option<&'static str> {
    let known_heads: [(&[u8], &str); 7] = [
        (b"version https://git-lfs.github.com/spec", "not_warc: a Git LFS pointer, not the file; run `git lfs pull`"),
        (b"\xff\xfe", "not_utf8: UTF-16; convert it to UTF-8"),
        (b"\xfe\xff", "not_utf8: UTF-16; convert it to UTF-8"),
        (b"{\0", "not_utf8: UTF-16; convert it to UTF-8"),
        (b"\0{", "not_utf8: UTF-16; convert it to UTF-8"),
        (b"PK\x03\x04", "a compressed zip archive; decompress it"),
        (b"%PDF-", "a PDF"),
    ];
    known_heads.iter().find(|(magic, _)| head.starts_with(magic)).map(|&(_, what)| what)
}

/// True if the name is that of a file with many pages, or may be.
fn is_crawl_name(name: &str) -> bool {
    let base_name = uncompressed(name);
    base_name.len() < name.len() || ends_in(base_name, &[".json"]) || claims_records(name)
}

/// True if the name has the ending of a format in which each file is a crawl, or a part of one.
pub(super) fn claims_records(name: &str) -> bool {
    claims_archive(name) || claims_wacz(name) || claims_rows(name)
}

/// True if the name is that of a WARC or ARC file.
pub fn claims_archive(name: &str) -> bool {
    ends_in(uncompressed(name), &[".warc", ".wet", ".wat", ".arc"])
}

/// True if the name is that of a WACZ file, a zip archive of WARC files.
pub fn claims_wacz(name: &str) -> bool {
    ends_in(name, &[".wacz"])
}

/// True if the name is that of a zip archive.
pub(super) fn is_zip_name(name: &str) -> bool {
    ends_in(name, &[".wacz", ".zip"])
}

/// True if the name is that of JSON lines or of a Parquet table: formats with one record per row.
pub fn claims_rows(name: &str) -> bool {
    claims_lines(name) || ends_in(uncompressed(name), &[".parquet"])
}

/// True if the name is that of JSON lines.
pub(super) fn claims_lines(name: &str) -> bool {
    ends_in(uncompressed(name), &[".jsonl", ".ndjson"])
}

/// Removes the ending of a compression from a name.
fn uncompressed(name: &str) -> &str {
    let ending = [".gz", ".zst", ".xz", ".bz2"].into_iter().find(|ending| ends_in(name, &[ending]));
    &name[..name.len() - ending.map_or(0, str::len)]
}

/// True if a name has one of these endings, in upper or lower case.
fn ends_in(name: &str, suffixes: &[&str]) -> bool {
    let has_suffix = |ending: &&str| {
        let start = name.len().checked_sub(ending.len());
        start.is_some_and(|at| name.as_bytes()[at..].eq_ignore_ascii_case(ending.as_bytes()))
    };
    suffixes.iter().any(has_suffix)
}

fn trim(head: &[u8]) -> &[u8] {
    head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start()
}

/// Returns the first [`HEAD`] decoded bytes of a file, or fewer if damage comes before.
pub(super) fn decoded_head(file: &dyn RandomAccess, compression: Compression) -> Result<Vec<u8>> {
    let mut head = Vec::new();
    let read = DecodedFile::new(file, compression, &limits())
        .and_then(|stream| stream.take(HEAD as u64).read_to_end(&mut head));
    match read.map_err(sort_out) {
        Err(Err(failure)) => Err(failure),
        // The reader reports damage that comes later.
        Ok(_) | Err(Ok(_)) => Ok(head),
    }
}

/// Limits of detection. They allow windows of any size, because only the reader decodes enough
/// content to fill one.
fn limits() -> RecordLimits {
    RecordLimits { window_bytes: 1 << LARGEST_WINDOW_LOG, ..RecordLimits::default() }
}

fn decodes_to_nothing(file: &dyn RandomAccess, compression: Compression) -> Result<bool> {
    let read = DecodedFile::new(file, compression, &limits()).and_then(|mut stream| stream.read(&mut [0]));
    match read.map_err(sort_out) {
        Ok(count) => Ok(count == 0),
        Err(Ok(_)) => Ok(false),
        Err(Err(failure)) => Err(failure),
    }
}

/// Returns decoded bytes of the first gzip member, after that at offset 0, that yields any.
fn head_of_later_member(compressed: &[u8]) -> Option<Vec<u8>> {
    let starts = memchr::memmem::find_iter(compressed, b"\x1f\x8b\x08").filter(|&start| start > 0);
    starts.into_iter().find_map(|start| {
        let mut head = Vec::new();
        // The member is cut off at the end of `compressed`, so an error there is expected.
        drop(flate2::bufread::GzDecoder::new(&compressed[start..]).take(1 << 10).read_to_end(&mut head));
        (!head.is_empty()).then_some(head)
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use webtwin_base::read_at::Bytes;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Default::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn xz(bytes: &[u8]) -> Vec<u8> {
        let mut compressed = Vec::new();
        liblzma::read::XzEncoder::new(bytes, 6).read_to_end(&mut compressed).unwrap();
        compressed
    }

    fn bzip2(bytes: &[u8]) -> Vec<u8> {
        let mut compressed = Vec::new();
        bzip2::read::BzEncoder::new(bytes, bzip2::Compression::default()).read_to_end(&mut compressed).unwrap();
        compressed
    }

    fn utf16(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    fn recognised(bytes: &[u8], name: &str) -> Result<FileFormat> {
        detect(&Bytes(bytes.to_vec()), name)
    }

    #[test]
    fn content_decides_with_any_file_name() {
        let warc = b"WARC/1.0\r\nWARC-Type: warcinfo\r\n";
        let line = b"{\"url\":\"http://a/\",\"text\":\"x\"}\n";
        let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 3).unwrap();
        let mut first_damaged = gzip(b"x");
        first_damaged[3..].fill(0xff);
        first_damaged.extend(gzip(warc));
        for (case, bytes, name, kind) in [
            ("plain", warc.to_vec(), "x.warc.gz", FileFormat::WarcPlain),
            ("gzip named .warc (9)", gzip(warc), "x.warc", FileFormat::WarcGzip),
            ("an empty member first (12)", [gzip(b""), gzip(warc)].concat(), "x", FileFormat::WarcGzip),
            ("a damaged member first", first_damaged, "x", FileFormat::WarcGzip),
            ("garbage first", [b"\x01\x02garbage\n", &warc[..]].concat(), "x", FileFormat::WarcPlain),
            ("zstd", zstd(warc), "x", FileFormat::WarcZstd),
            ("zstd with a dictionary", b"\x5d\x2a\x4d\x18\x04\0\0\0dict".to_vec(), "x", FileFormat::WarcZstd),
            (
                "zstd after a skippable frame",
                [b"\x50\x2a\x4d\x18\x01\0\0\0x", &zstd(warc)[..]].concat(),
                "x",
                FileFormat::WarcZstd,
            ),
            (
                "ARC",
                b"filedesc://a.arc 0.0.0.0 20080101000000 text/plain 9\n1 0 x\n".to_vec(),
                "x",
                FileFormat::WarcPlain,
            ),
            ("ARC in gzip", gzip(b"filedesc://a.arc"), "x", FileFormat::WarcGzip),
            (
                "ARC without its head",
                b"\nhttp://a/ 1.2.3.4 20080101000000 text/html 9\n".to_vec(),
                "x",
                FileFormat::WarcPlain,
            ),
            ("jsonl", line.to_vec(), "x.warc", FileFormat::Jsonl(Compression::None)),
            ("jsonl.gz", gzip(line), "x", FileFormat::Jsonl(Compression::Gzip)),
            ("jsonl.xz", xz(line), "x", FileFormat::Jsonl(Compression::Xz)),
            ("jsonl.bz2", bzip2(line), "x", FileFormat::Jsonl(Compression::Bzip2)),
            ("warc.xz", xz(warc), "x", FileFormat::WarcStream(Compression::Xz)),
            ("warc.bz2", bzip2(warc), "x", FileFormat::WarcStream(Compression::Bzip2)),
            ("empty bzip2", bzip2(b""), "x", FileFormat::Empty),
            ("jsonl.zst", zstd(line), "x", FileFormat::Jsonl(Compression::Zstd)),
            ("byte order mark", [b"\xef\xbb\xbf\r\n ", &line[..]].concat(), "x", FileFormat::Jsonl(Compression::None)),
            ("an array first (123)", [b"[1,2]\n", &line[..]].concat(), "x", FileFormat::Jsonl(Compression::None)),
            ("all lines bad (132)", b"no json here\n".repeat(50), "x.jsonl", FileFormat::Jsonl(Compression::None)),
            ("parquet", b"PAR1".to_vec(), "x", FileFormat::Parquet),
            ("html", b"\n <!DOCTYPE html>".to_vec(), "x", FileFormat::HtmlFile),
            ("xhtml", b"<?xml version='1.0'?>\n<html>".to_vec(), "x", FileFormat::HtmlFile),
            ("empty (11)", Vec::new(), "x.warc.gz", FileFormat::Empty),
            ("an empty member only", gzip(b""), "x", FileFormat::Empty),
            ("blank lines only", b"\r\n\n".to_vec(), "x", FileFormat::Empty),
        ] {
            assert_eq!(recognised(&bytes, name).unwrap(), kind, "{case}");
        }
    }

    #[test]
    fn unreadable_files_are_named_by_their_kind() {
        let line = "{\"url\":\"http://a/\",\"text\":\"x\"}\n";
        for (case, bytes, name, words) in [
            ("gzip in gzip (10)", gzip(&gzip(b"WARC/1.0")), "x.warc.gz", "compressed twice"),
            ("HTML instead of WARC (13)", b"<html>404</html>".to_vec(), "x.warc.gz", "not_warc: an HTML page"),
            (
                "LFS pointer (14)",
                b"version https://git-lfs.github.com/spec/v1\noid".to_vec(),
                "x.warc.gz",
                "git lfs pull",
            ),
            ("UTF-16 with a mark (133)", [b"\xff\xfe", &utf16(line)[..]].concat(), "x.jsonl", "not_utf8"),
            ("UTF-16 without", utf16(line), "x.jsonl", "not_utf8"),
            ("empty Parquet (142)", Vec::new(), "x.parquet", "bad_parquet"),
            ("zip", b"PK\x03\x04".to_vec(), "x", "a damaged zip archive"),
            ("xz that ends at once", b"\xfd7zXZ\0".to_vec(), "x", "damaged from the start"),
            ("compressed HTML", gzip(b"<html>"), "x", "compressed HTML"),
            ("noise", b"\x01\x02\x03".to_vec(), "x.warc", "not_warc"),
            ("gzip of noise that does not decode", b"\x1f\x8b\x08\xff\xff\xff".to_vec(), "x", "damaged from the start"),
        ] {
            let error = recognised(&bytes, name).unwrap_err();
            assert_eq!(error.exit_code(), 3, "{case}");
            assert!(error.to_string().contains(words) && error.to_string().contains(name), "{case}: {error}");
        }
    }

    #[test]
    fn file_name_claims_records_in_any_compression_and_case() {
        for name in ["a.jsonl", "a.ndjson.xz", "A.JSONL.BZ2", "a.Parquet", "a.jsonl.zst", "s3://b/A.WARC.GZ", "a.WACZ"]
        {
            assert!(claims_records(name), "{name}");
        }
        for name in ["jsonl", "a.jsonl.txt", "a.gz", "ö", "", "a.jsonl.gz.xz"] {
            assert!(!claims_records(name), "{name}");
        }
        assert!(claims_rows("a.PARQUET") && !claims_rows("a.warc") && claims_archive("a.WET.gz"));
    }
}
