//! Side files: files in the folder of a crawl that are not crawls, such as an index, a log,
//! checksums or a list of pages.
//!
//! A side file that is found in a folder or by a glob is skipped and counted. Two kinds of files
//! are errors instead. One is a file that the user has named, because it was meant to be read. The
//! other is a file whose name claims records (`.warc.gz`, `.parquet`) but whose content has none:
//! it is probably a part of the crawl that was lost in a failed download.
//!
//! The decision depends only on the name and the first bytes of the file, so all processes of a run
//! agree.

use std::fmt;

use super::decoded::Compression;
use super::detect::{FileFormat, HEAD, claims_lines, claims_records, decoded_head, recognise};
use super::jsonl::{Census, census};
use webtwin_base::error::{Error, Result};
use webtwin_base::read_at::RandomAccess;
use webtwin_job::FieldNames;
use webtwin_storage::expand::ExpandedInput;
use webtwin_storage::location::Location;

/// A file that was found but is not a crawl.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SideFile {
    /// The file.
    pub location: Location,
    /// Description of the content, or the reason why it is not a crawl.
    pub reason: &'static str,
}

/// Side files of a run, ascending by name.
#[derive(Debug, Default)]
pub struct SideFiles(pub(super) Vec<SideFile>);

impl SideFiles {
    /// Returns a message with the number of side files and the first one, or `None` if there are
    /// none.
    pub fn message(&self) -> Option<impl fmt::Display + use<>> {
        let SideFile { location, reason } = self.0.first()?;
        let files = if self.0.len() == 1 { "file that is not a crawl" } else { "files that are not crawls" };
        Some(format!("skipped {} {files}; first {location}: {reason}", self.0.len()))
    }

    /// Checks that no folder or glob has found side files only.
    ///
    /// # Errors
    /// Returns [`Error::Input`] for the first such folder or glob, with its first side file.
    pub(super) fn check_against(&self, inputs: &[ExpandedInput]) -> Result<()> {
        let find = |location: &Location| self.0.binary_search_by(|file| file.location.cmp(location)).ok();
        for ExpandedInput { input, locations, .. } in inputs.iter().filter(|input| input.is_search) {
            let positions: Vec<usize> = locations.iter().filter_map(find).collect();
            if positions.len() < locations.len() {
                continue;
            }
            if let Some(SideFile { location, reason }) = positions.into_iter().min().map(|first| &self.0[first]) {
                let files = match locations.len() {
                    1 => "the only file found is not a crawl".to_string(),
                    files => format!("none of the {files} files found is a crawl"),
                };
                return Err(Error::input(input, format!("{files}; first {location}: {reason}")));
            }
        }
        Ok(())
    }
}

/// Detects the format of a file that was found in a folder or by a glob. Returns the reason if the
/// file is a side file.
///
/// # Errors
/// Returns [`Error::Input`] for a file that is not a crawl although its name claims one, and
/// [`Error::Storage`] if the store fails.
///
/// # Cost
/// The cost of [`detect`](super::detect::detect), and twice that for JSON lines.
pub(super) fn recognise_found(
    file: &dyn RandomAccess,
    name: &str,
    fields: &FieldNames,
) -> Result<std::result::Result<FileFormat, &'static str>> {
    if name.ends_with(".open") {
        return Ok(Err("a crawler is still writing it, since its name ends in .open"));
    }
    match recognise(file, name)? {
        Ok(FileFormat::Jsonl(compression)) => Ok(match holds_pages(file, compression, name, fields)? {
            true => Ok(FileFormat::Jsonl(compression)),
            false => Err("JSON, but no line has the fields of a page; name them in input.fields"),
        }),
        Err(reason) if claims_records(name) => Err(Error::input(name, reason)),
        answer => Ok(answer),
    }
}

/// True if a file of JSON lines may have pages. Either one of the first lines is a page, or the
/// examined bytes contain no complete line, or all lines are damaged and the name claims JSON
/// lines.
fn holds_pages(file: &dyn RandomAccess, compression: Compression, name: &str, fields: &FieldNames) -> Result<bool> {
    let head = decoded_head(file, compression)?;
    let Census { pages, other_objects, other_lines } = census(&head, head.len() < HEAD, fields)?;
    let are_damaged = other_objects == 0 && claims_lines(name);
    Ok(pages > 0 || other_objects + other_lines == 0 || are_damaged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use webtwin_base::read_at::Bytes;
    use webtwin_job::Job;

    #[test]
    fn side_files_of_crawlers_are_distinguished_from_crawls() {
        let page = r#"{"url":"http://a/","text":"x"}"#;
        let log = r#"{"timestamp":"2026-01-01T00:00:00Z","logLevel":"info","message":"x"}"#;
        let page_list = "{\"format\":\"json-pages-1.0\",\"id\":\"pages\"}\n{\"id\":\"1\",\"url\":\"http://a/\"}\n";
        let long = format!("{{\"x\":\"{}", "x".repeat(2 * HEAD));
        for (case, name, content, is_crawl) in [
            ("WARC", "a.warc", "WARC/1.0\r\nWARC-Type: warcinfo\r\n", Some(true)),
            ("a WARC being written", "a.warc.gz.open", "WARC/1.0\r\nWARC-Type: warcinfo\r\n", Some(false)),
            ("a failed download", "a.warc.gz", "<html>404</html>", None),
            ("a pointer", "a.warc.gz", "version https://git-lfs.github.com/spec/v1\n", None),
            ("noise under a crawl's name", "a.parquet", "noise", None),
            ("ARC", "a.arc", "filedesc://a.arc 0.0.0.0", Some(true)),
            ("an index", "a.cdx", " CDX N b a m s k r M S V g\ncom,example)/ 2026 -", Some(false)),
            ("an index of pywb", "a.cdxj", "com,example)/ 2026 {\"url\":\"http://example.com/\"}\n", Some(false)),
            ("checksums", "a.warc.gz.sha256", "00ff  a.warc.gz\n", Some(false)),
            ("truth.tsv", "truth.tsv", "url\tcopy_of\nhttp://a/\t-\n", Some(false)),
            ("a WACZ that was cut off", "a.wacz", "PK\x03\x04", None),
            ("zip", "a.zip", "PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", Some(false)),
            ("a log of JSON", "a.log", log, Some(false)),
            ("a list of pages", "pages.jsonl", page_list, Some(false)),
            ("pretty JSON", "stats.json", "{\n  \"pages\": 3\n}\n", Some(false)),
            ("lines of JSON", "a.jsonl", page, Some(true)),
            ("lines of JSON by content", "a", &format!("{log}\n{page}\n"), Some(true)),
            ("damaged lines", "a.jsonl", "no json\nno json\n", Some(true)),
            ("damaged lines of something", "a.json", "no json\nno json\n", Some(false)),
            ("a line without end", "a.json", &long, Some(true)),
            ("nothing", "a.log", "", Some(true)),
        ] {
            let recognised = recognise_found(&Bytes(content.as_bytes().to_vec()), name, &Job::default().input.fields);
            assert_eq!(recognised.ok().map(|kind| kind.is_ok()), is_crawl, "{case}");
        }
    }
}
