//! Folders of HTML files, as mirroring programs write them. Each file is a page, whose URL is the
//! base followed by the path below the folder.

use url::{Position, Url};

use super::record::{PageForm, RawPage, ReadResult, Reason, RecordSink, RefusedRecord};
use super::sniff::{self, is_html};
use webtwin_base::error::{Error, Result};
use webtwin_base::read_at::RandomAccess;
use webtwin_job::InputSettings;
use webtwin_storage::expand::{has_ending, has_page_ending};
use webtwin_storage::location::{ListedFile, Location};
use webtwin_storage::open::open_pinned;

/// Reads some files of a folder, one record per file.
///
/// A file is a page if its name has the ending of one, or if its content begins like HTML, PDF or
/// PostScript. Other files are refused as `not_text`. The pages have no fetch time, because the
/// dates of the file system are those of the copy.
///
/// # Errors
/// Returns any error of the store and of the sink, and [`Error::Input`] if a file has changed since
/// it was listed.
pub fn read_files(
    folder: &Location,
    files: &[ListedFile],
    input: &InputSettings,
    sink: &mut RecordSink<'_>,
) -> Result<()> {
    let (base, limits) = (parse_base(&input.base)?, &input.limits);
    for listed_file in files {
        let relative = relative(folder, &listed_file.location);
        let label = String::from_utf8_lossy(relative);
        let refuse = |reason, detail: String| ReadResult::Refused(RefusedRecord::new(0, reason, detail));
        if listed_file.stamp.bytes > limits.record_bytes {
            let detail = format!(
                "{label}: {} bytes; input.limits.record_bytes is {}",
                listed_file.stamp.bytes, limits.record_bytes
            );
            sink(refuse(Reason::RecordTooLarge, detail))?;
            continue;
        }
        let file = open_pinned(&listed_file.location, &listed_file.stamp)?;
        let start = file.read_at(0, sniff::ROOT_BYTES)?;
        let document_form = PageForm::printed(&start).filter(|&form| form.is_wanted(input));
        let (form, mime) = match (document_form, sniff::binary(&start)) {
            (Some(form @ PageForm::Pdf), _) => (form, "application/pdf"),
            (Some(form), _) => (form, "application/postscript"),
            (None, None) if has_ending(&label, ".xhtml") => (PageForm::Xhtml, "application/xhtml+xml"),
            (None, None) if has_page_ending(&label) || is_html(&start) => (PageForm::Html, "text/html"),
            (None, cause) => {
                sink(refuse(Reason::NotText, format!("{label}: {}", cause.unwrap_or("not HTML"))))?;
                continue;
            }
        };
        let body = file.read_at(0, listed_file.stamp.bytes as usize)?;
        sink(ReadResult::Page(RawPage {
            mime: mime.into(),
            length: body.len() as u64,
            ..RawPage::new(url_of(&base, relative), body, form)
        }))?;
    }
    Ok(())
}

/// Parses the base of the URLs of a folder.
///
/// # Errors
/// Returns [`Error::Setting`] unless `base` is an http(s) URL.
pub fn parse_base(base: &str) -> Result<Url> {
    match Url::parse(base) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(url),
        _ => Err(Error::Setting {
            file: "the job".into(),
            setting: "input.base".into(),
            got: base.into(),
            must_be: "an http or https URL".into(),
        }),
    }
}

/// Returns the URL of a file of a folder.
pub fn url_of_file(folder: &Location, file: &ListedFile, base: &Url) -> String {
    url_of(base, relative(folder, &file.location))
}

/// Returns the path of a file below its folder, byte by byte as on the disk. Returns the path as
/// given for a file that is itself an input.
fn relative<'a>(folder: &'a Location, file: &'a Location) -> &'a [u8] {
    let bytes = |location: &'a Location| match location.path() {
        Some(path) => path.as_os_str().as_encoded_bytes(),
        None => location.name().as_bytes(),
    };
    let path = match folder == file {
        true => {
            let key = || file.name().split_once("://").and_then(|(_, rest)| rest.split_once('/'));
            if file.path().is_some() { bytes(file) } else { key().map_or(bytes(file), |(_, key)| key.as_bytes()) }
        }
        false => &bytes(file)[bytes(folder).len()..],
    };
    &path[path.iter().take_while(|&&byte| byte == b'/').count()..]
}

/// Appends a relative path to the base.
///
/// Every byte that has a meaning in URLs or is beyond ASCII is percent-encoded. Different files
/// thus have different URLs, in any encoding of their names. Tabs and newlines are encoded, too,
/// because `Url` would drop them.
fn url_of(base: &Url, relative: &[u8]) -> String {
    let mut url = base[..Position::AfterPath].trim_end_matches('/').to_string();
    for segment in relative.split(|&byte| byte == b'/').filter(|segment| !matches!(*segment, b"." | b".." | b"")) {
        url.push('/');
        for &byte in segment {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => url.push(byte.into()),
                _ if b"-._~!$&'()*+,;=:@".contains(&byte) => url.push(byte.into()),
                _ => url.push_str(&format!("%{byte:02X}")),
            }
        }
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;
    use webtwin_job::RecordLimits;

    fn read(folder: &Location, limits: &RecordLimits) -> Vec<ReadResult> {
        let mut results = Vec::new();
        let input =
            InputSettings { base: "http://base.example/sub/".into(), limits: *limits, ..InputSettings::default() };
        read_files(folder, &folder.list(None).unwrap(), &input, &mut |result| {
            results.push(result);
            Ok(())
        })
        .unwrap();
        results
    }

    #[test]
    fn url_of_a_file_is_base_and_path() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = Location::parse(&format!("{}/", temporary.path().display())).unwrap();
        for (name, body) in [
            ("a b.html", "<p>"),
            ("dir/index.php?id=3#x.HTM", "<p>"),
            ("dir/50%2F.xhtml", "<p>"),
            ("dir/no-ending", "<!DOCTYPE html><p>"),
            ("empty.html", ""),
            ("image.png", "GIF89a"),
            ("list.txt", "words"),
            ("picture.html", "GIF89a"),
            ("large.html", "0123456789012345678901234567890"),
            ("line\nbreak.html", "<p>"),
            ("ü.html", "<p>"),
        ] {
            folder.join(name).unwrap().put(body.as_bytes()).unwrap();
        }
        let results = read(&folder, &RecordLimits { record_bytes: 30, ..RecordLimits::default() });
        let message: Vec<String> = results
            .into_iter()
            .map(|result| match result {
                ReadResult::Page(page) => page.url,
                ReadResult::Refused(refused) => format!("{} {}", refused.reason.as_str(), refused.detail),
            })
            .collect();
        assert_eq!(
            message,
            [
                "http://base.example/sub/a%20b.html",
                "http://base.example/sub/dir/50%252F.xhtml",
                "http://base.example/sub/dir/index.php%3Fid=3%23x.HTM",
                "http://base.example/sub/dir/no-ending",
                "http://base.example/sub/empty.html",
                "not_text image.png: image/gif",
                "record_too_large large.html: 31 bytes; input.limits.record_bytes is 30",
                "http://base.example/sub/line%0Abreak.html",
                "not_text list.txt: not HTML",
                "not_text picture.html: image/gif",
                "http://base.example/sub/%C3%BC.html",
            ]
        );
    }

    #[cfg(unix)]
    #[test]
    fn file_name_without_utf8_is_percent_encoded_in_the_url() {
        use std::os::unix::ffi::OsStrExt;
        let temporary = tempfile::tempdir().unwrap();
        // Two names in Latin-1, the first again in UTF-8, and the percent-encoding of the first.
        for name in
            [&b"caf\xe9.html"[..], b"caf\xe8.html", "caf\u{e9}.html".as_bytes(), b"caf%E9.html", b"caf\\xE9.html"]
        {
            std::fs::write(temporary.path().join(std::ffi::OsStr::from_bytes(name)), "<p>").unwrap();
        }
        let folder = Location::parse(&format!("{}/", temporary.path().display())).unwrap();
        let url = |result| match result {
            ReadResult::Page(page) => page.url.replace("http://base.example/sub/", ""),
            ReadResult::Refused(refused) => refused.detail,
        };
        let mut urls: Vec<String> = read(&folder, &RecordLimits::default()).into_iter().map(url).collect();
        urls.sort();
        assert_eq!(urls, ["caf%25E9.html", "caf%5CxE9.html", "caf%C3%A9.html", "caf%E8.html", "caf%E9.html"]);
        let files = folder.list(None).unwrap();
        assert!(files.windows(2).all(|pair| pair[0].location < pair[1].location));
    }

    #[test]
    fn single_input_file_retains_its_whole_path() {
        for (name, url) in [
            ("/data/site/./a.html", "http://h/data/site/a.html"),
            ("../site/a.html", "http://h/site/a.html"),
            ("a.html", "http://h/a.html"),
        ] {
            let file = Location::parse(name).unwrap();
            assert_eq!(url_of(&parse_base("http://h").unwrap(), relative(&file, &file)), url);
        }
    }

    #[test]
    fn rejects_base_that_is_not_a_web_address() {
        for base in ["", "/a", "file:///a", "example.org"] {
            assert_eq!(parse_base(base).unwrap_err().exit_code(), 2, "{base}");
        }
    }
}
