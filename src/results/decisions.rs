//! Decisions of users about pages: copies to keep (`keep.pins`), and pairs of pages that must stay
//! in different clusters (`pairs.apart`).
//!
//! Each file has one of two forms. In the plain form, a line consists of one URL (for pins) or two
//! (for pairs) and an optional reason, separated by tabs. Empty lines and lines that begin with `#`
//! are ignored. The other form is a table, of the report or in any format of [`ForeignTable`]. If
//! it has a column `tag`, rows tagged `keep` are pins, rows tagged `false` are pairs, and others
//! are ignored. One file can thus contain all decisions of a user about a crawl. Without that
//! column all its rows are pins or pairs.

use std::collections::BTreeSet;

use sha2::{Digest as _, Sha256};

use super::compared::canonical;
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::{DocId, doc_id};
use webtwin_evaluate::tags::{PairTag, TaggedPair, read_tags};
use webtwin_job::{Job, RecordLimits};
use webtwin_pages::decoded::Compression;
use webtwin_pages::foreign_table::{ForeignTable, ForeignTableRow};
use webtwin_storage::location::Location;

/// Accepted names of the columns of a table: of the page, of the other page of a pair, of the
/// decision, and of its reason.
const PAGE: &[&str] = &["url_a", "url"];
const OTHER_PAGE: &[&str] = &["url_b"];
const TAG: &[&str] = &["tag"];
const REASON: &[&str] = &["note", "reason"];

/// Decisions of users about the pages of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decisions {
    /// Pages to keep for their copies, in the order of the file, without repetitions.
    pub pins: Vec<Pin>,
    /// Pairs of pages that must stay in different clusters, in the order of the file, without
    /// repetitions.
    pub apart: Vec<SeparatePair>,
}

/// A page that is kept and represents its copies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// Doc id of the page.
    pub doc_id: DocId,
    /// Canonical URL of the page.
    pub url: String,
    /// Reason as the user has written it; may be empty.
    pub reason: String,
}

/// Two pages that must stay in different clusters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeparatePair {
    /// Doc ids of the pages.
    pub doc_ids: [DocId; 2],
    /// Canonical URLs of the pages.
    pub urls: [String; 2],
    /// Reason as the user has written it; may be empty.
    pub reason: String,
}

/// Reads the files that a job names, and sets their digests in the job, so that a change of their
/// content makes another job.
///
/// # Errors
/// Returns [`Error::Input`] for a file that does not exist, and with the line number for a line
/// that cannot be parsed. Returns [`Error::Setting`] if the job already has a digest and the file
/// has another.
pub fn bind(job: &mut Job) -> Result<()> {
    let files = [
        ("keep.pins_sha256", &job.keep.pins, &mut job.keep.pins_sha256),
        ("pairs.apart_sha256", &job.pairs.apart, &mut job.pairs.apart_sha256),
    ];
    for (setting, file, digest) in files {
        if file.is_empty() {
            digest.clear();
            continue;
        }
        let actual = sha256(&contents(file)?);
        if !digest.is_empty() && *digest != actual {
            return Err(other_content(setting, file, digest, &actual));
        }
        *digest = actual;
    }
    Decisions::read(job)?;
    Ok(())
}

impl Decisions {
    /// Reads the files that a job names, which [`bind`] must have read before.
    ///
    /// # Errors
    /// Returns the errors of [`bind`].
    pub fn read(job: &Job) -> Result<Decisions> {
        let mut decisions = Decisions::default();
        let limits = &job.input.limits;
        if !job.keep.pins.is_empty() {
            let bytes = same_contents("keep.pins_sha256", &job.keep.pins, &job.keep.pins_sha256)?;
            decisions.pins = pins(&job.keep.pins, &bytes, limits)?;
        }
        if !job.pairs.apart.is_empty() {
            let bytes = same_contents("pairs.apart_sha256", &job.pairs.apart, &job.pairs.apart_sha256)?;
            decisions.apart = separate_pairs(&job.pairs.apart, &bytes, limits)?;
        }
        Ok(decisions)
    }
}

/// Returns the pins of a file.
fn pins(file: &str, bytes: &[u8], limits: &RecordLimits) -> Result<Vec<Pin>> {
    let mut seen_lines = BTreeSet::new();
    let rows = rows::<1>(file, bytes, PairTag::Keep, limits)?;
    let pin = |Row { urls: [url], reason, .. }| Pin { doc_id: doc_id(&url), url, reason };
    Ok(rows.into_iter().map(pin).filter(|pin| seen_lines.insert(pin.doc_id)).collect())
}

/// Returns the pairs of a file.
fn separate_pairs(file: &str, bytes: &[u8], limits: &RecordLimits) -> Result<Vec<SeparatePair>> {
    let mut seen_lines = BTreeSet::new();
    let mut pairs = Vec::new();
    for Row { line, urls, reason } in rows::<2>(file, bytes, PairTag::False, limits)? {
        let doc_ids = [doc_id(&urls[0]), doc_id(&urls[1])];
        if doc_ids[0] == doc_ids[1] {
            return Err(refused(file, line, &format!("{} is named twice; name two different pages", urls[0])));
        }
        if seen_lines.insert((doc_ids[0].min(doc_ids[1]), doc_ids[0].max(doc_ids[1]))) {
            pairs.push(SeparatePair { doc_ids, urls, reason });
        }
    }
    Ok(pairs)
}

/// A line with a decision.
struct Row<const N: usize> {
    line: usize,
    /// Canonical URLs.
    urls: [String; N],
    reason: String,
}

/// Returns the lines of a file with a decision: in a table the rows with this tag, otherwise all.
fn rows<const N: usize>(file: &str, bytes: &[u8], tag: PairTag, limits: &RecordLimits) -> Result<Vec<Row<N>>> {
    let mut rows = Vec::new();
    let mut add = |line: usize, urls: [&str; N], reason: &str| {
        let mut row = Row { line, urls: [const { String::new() }; N], reason: reason.trim().into() };
        for (column, url) in urls.iter().enumerate() {
            let url = canonical(&format!("{file}, line {line}"), url)?;
            row.urls[column] = url.as_str().into();
        }
        rows.push(row);
        Ok::<(), Error>(())
    };
    if is_table(bytes) {
        let rows = match std::str::from_utf8(bytes) {
            Ok(text) if is_of_report(text) => read_tags(file, text)?,
            _ => table_rows(file, N == 2, tag, limits)?,
        };
        for row in rows.into_iter().filter(|row| row.tag == tag) {
            let urls = std::array::from_fn(|at| row.urls[at].as_str());
            add(row.line, urls, &row.note)?;
        }
    } else {
        let text = text(file, bytes)?.trim_start_matches('\u{feff}');
        for (line, text) in (1..).zip(text.lines()) {
            if text.trim().is_empty() || text.starts_with('#') {
                continue;
            }
            let fields: Vec<&str> = text.splitn(N + 1, '\t').collect();
            let Some(urls) = fields.first_chunk::<N>() else {
                let message = format!(
                    "has {} of {N} URLs; write URL, tab, URL, and optionally a tab and the reason",
                    fields.len()
                );
                return Err(refused(file, line, &message));
            };
            add(line, *urls, fields.get(N).copied().unwrap_or_default())?;
        }
    }
    Ok(rows)
}

/// True for a file that is not in the plain form: Parquet, a compressed table, JSON lines, or lines
/// under a line of column names. A column name is not a URL, so it is no plain line.
fn is_table(bytes: &[u8]) -> bool {
    if bytes.starts_with(b"PAR1") || Compression::detect(bytes) != Compression::None {
        return true;
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let first_line = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).find(|line| !line.is_empty());
    let Some(Ok(first_line)) = first_line.map(std::str::from_utf8) else { return false };
    let mut names = first_line.split(['\t', ',']).map(|name| name.trim_matches('"'));
    first_line.starts_with('{') || names.any(|name| [PAGE, OTHER_PAGE, TAG].concat().contains(&name))
}

/// True for a table as the report writes it: separated by tabs, with tags, and without quotes, so
/// that a reason may begin with a quote.
fn is_of_report(text: &str) -> bool {
    let head: Vec<&str> = text.trim_start_matches('\u{feff}').lines().next().unwrap_or_default().split('\t').collect();
    ["url_a", "tag"].iter().all(|name| head.contains(name))
}

/// Returns the rows of a table. Without tags, all rows have the given one.
fn table_rows(file: &str, are_pairs: bool, tag: PairTag, limits: &RecordLimits) -> Result<Vec<TaggedPair>> {
    let table = ForeignTable::open(&Location::parse(file)?, limits)?;
    let has_tags = table.has(TAG);
    let has_pages = table.has(PAGE) && (table.has(OTHER_PAGE) || !are_pairs);
    // A table of pairs without tags does not name the page to keep.
    if !has_pages || (!are_pairs && !has_tags && table.has(OTHER_PAGE)) {
        let reason = match are_pairs {
            true => "a table of pairs needs url_a and url_b, and may have tag and note",
            false => "a table of pages to keep needs url, or url_a and tag, and may have note",
        };
        return Err(Error::input(file, format!("its columns are {}; {reason}", table.columns.join(", "))));
    }
    let mut tagged_rows = Vec::new();
    for row in table.rows([PAGE, OTHER_PAGE, TAG, REASON], limits, |_| true)? {
        let ForeignTableRow { fields, number, .. } = row?;
        let line = number as usize;
        let Some(fields) = fields else {
            return Err(refused(file, line, "is not a row of the table; close quotes, and write UTF-8"));
        };
        let [page, other_page, row_tag, note] = fields.map(Option::unwrap_or_default);
        let urls = [page, other_page];
        if urls[0].is_empty() || (are_pairs && !has_tags && urls[1].is_empty()) {
            return Err(refused(file, line, "lacks a URL; write one in each column of pages"));
        }
        if has_tags {
            tagged_rows.push(TaggedPair::parse(file, line, urls.each_ref().map(String::as_str), &row_tag, &note)?);
        } else {
            tagged_rows.push(TaggedPair { line, urls, tag, note });
        }
    }
    Ok(tagged_rows)
}

fn refused(file: &str, line: usize, message: &str) -> Error {
    Error::input(file, format!("line {line}: {message}"))
}

fn contents(file: &str) -> Result<Vec<u8>> {
    Location::parse(file)?.get()?.ok_or_else(|| Error::input(file, "there is no such file; check the path"))
}

fn text<'b>(file: &str, bytes: &'b [u8]) -> Result<&'b str> {
    std::str::from_utf8(bytes).map_err(|cause| {
        let line = 1 + bytes[..cause.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        refused(file, line, "is not UTF-8; convert it")
    })
}

fn same_contents(setting: &str, file: &str, digest: &str) -> Result<Vec<u8>> {
    let bytes = contents(file)?;
    let actual = sha256(&bytes);
    match actual == digest {
        true => Ok(bytes),
        false => Err(other_content(setting, file, digest, &actual)),
    }
}

/// Makes the error for a file whose digest differs from that in the job.
pub(super) fn other_content(setting: &str, file: &str, digest: &str, actual: &str) -> Error {
    Error::Setting {
        file: file.into(),
        setting: setting.into(),
        got: format!("{digest:?}"),
        must_be: format!("{actual:?}, the SHA-256 of the file, or left out"),
    }
}

fn sha256(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(&Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use webtwin_storage::table::{Table, TableColumn, encode};

    /// Writes a file, and passes its name and content to `read`.
    fn of_file<T>(name: &str, bytes: &[u8], read: fn(&str, &[u8], &RecordLimits) -> Result<T>) -> Result<T> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(name);
        std::fs::write(&file, bytes).unwrap();
        read(file.to_str().unwrap(), bytes, &RecordLimits::default())
    }

    fn pins(name: &str, text: &str) -> Result<Vec<Pin>> {
        of_file(name, text.as_bytes(), super::pins)
    }

    fn separate_pairs(name: &str, text: &str) -> Result<Vec<SeparatePair>> {
        of_file(name, text.as_bytes(), super::separate_pairs)
    }

    #[test]
    fn pins_and_pairs_are_read_in_the_formats_of_other_tables() {
        let pinned = [Pin { doc_id: doc_id("http://a/x,y"), url: "http://a/x,y".into(), reason: "ours".into() }];
        for table in [
            "url,reason\n\"http://a/x,y\",ours\n",
            "\u{feff}\"url\",note\r\n\r\n\"http://a/x,y\",ours\r\n",
            "url_a,url_b,tag,note\n\"http://a/x,y\",,keep,ours\nhttp://a/x,http://b/x,false,\n",
            "note\turl\nours\thttp://a/x,y\n",
            "{\"url\": \"http://a/x,y\", \"note\": \"ours\"}\n",
        ] {
            assert_eq!(pins("pins.csv", table).unwrap(), pinned, "{table}");
        }
        let column = |text: &str| TableColumn::Text([text.to_string()].into_iter().collect());
        let table = encode(&Table::new([("url", column("http://a/x,y")), ("note", column("ours"))])).unwrap();
        assert_eq!(of_file("pins.parquet", &table, super::pins).unwrap(), pinned);
        assert_eq!(pins("pins.csv", "url\nhttp://a/x,y\n").unwrap().len(), 1);
        for table in ["url_a,url_b\nhttp://a/x,http://b/x\n", "url_a,url_b,tag\nhttp://a/x,http://b/x,false\n"] {
            assert_eq!(separate_pairs("apart.csv", table).unwrap().len(), 1, "{table}");
        }
    }

    #[test]
    fn table_without_decisions_is_refused_with_what_it_needs() {
        for (text, words) in [
            ("url_a,url_b\nhttp://a/,http://b/\n", "its columns are url_a, url_b; a table of pages to keep needs"),
            ("tag,page\nkeep,http://a/\n", "needs url, or url_a and tag"),
            ("url,tag\nhttp://a/,\n", "line 2: the tag of http://a/"),
            ("url,note\n\n,ours\n", "line 3: lacks a URL"),
            ("url,note\n\"http://a/\n", "line 2: is not a row"),
        ] {
            let error = pins("pins.csv", text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
        let error = separate_pairs("apart.csv", "url,tag\nhttp://a/,false\n").unwrap_err().to_string();
        assert!(error.contains("a table of pairs needs url_a and url_b"), "{error}");
    }

    #[test]
    fn plain_lines_equal_a_table() {
        let table = "url_a\turl_b\ttag\tnote\nhttp://a/x\t\tkeep\tours\nhttp://a/x\thttp://b/x\tfalse\tother text\n\
                     http://a/x\thttp://c/\ttrue\t\nhttp://a/x\thttp://d/\tunknown\t\n";
        let quoted = "url_a\turl_b\ttag\tnote\nhttp://a/x\t\tkeep\t\"ours\n";
        assert_eq!(pins("t", quoted).unwrap()[0].reason, "\"ours");
        let plain_pins = "\u{feff}# kept\nHTTP://A/x#top\tours\n\nhttp://a/x\tagain\n";
        let plain_apart = "http://a/x\thttp://b/x\tother text\nhttp://b/x\thttp://a/x\n";
        let pinned = pins("t", table).unwrap();
        assert_eq!(pinned, [Pin { doc_id: doc_id("http://a/x"), url: "http://a/x".into(), reason: "ours".into() }]);
        assert_eq!(pins("t", plain_pins).unwrap(), pinned);
        let separate = separate_pairs("t", table).unwrap();
        assert_eq!((separate.len(), separate[0].reason.as_str()), (1, "other text"));
        assert_eq!(separate_pairs("t", plain_apart).unwrap(), separate);
        assert_eq!((pins("t", "").unwrap(), separate_pairs("t", "# none\n").unwrap()), (vec![], vec![]));
    }

    #[test]
    fn empty_decision_line_is_named() {
        for (text, word) in [
            ("http://a/\nnot a url\n", "line 2"),
            ("http://a/\nftp://b/\n", "line 2"),
            ("# x\n\n\thttp://a/\n", "line 3"),
            ("url_a\turl_b\ttag\nhttp://a/\thttp://b/\tmaybe\n", "line 2"),
            ("url_a\turl_b\ttag\nx\t\tkeep\n", "line 2"),
        ] {
            let error = pins("pins.tsv", text).unwrap_err();
            assert!(error.to_string().contains("pins.tsv") && error.to_string().contains(word), "{text}: {error}");
        }
        for (text, word) in [
            ("http://a/\thttp://b/\nhttp://a/\n", "line 2: has 1 of 2 URLs"),
            ("http://a/\thttp://a/#x\n", "line 1: http://a/ is named twice"),
            ("http://a/\tb c\n", "line 1"),
        ] {
            let error = separate_pairs("apart.tsv", text).unwrap_err();
            assert!(error.to_string().contains(word), "{text}: {error}");
        }
    }

    #[test]
    fn contents_of_a_decision_file_are_part_of_the_job() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pins.tsv");
        std::fs::write(&file, "http://a/\n").unwrap();
        let mut job = Job::default();
        job.keep.pins = file.display().to_string();
        assert!(Decisions::read(&job).is_err());
        bind(&mut job).unwrap();
        assert_eq!(Decisions::read(&job).unwrap().pins.len(), 1);
        std::fs::write(&file, "http://b/\n").unwrap();
        for error in [Decisions::read(&job).unwrap_err(), bind(&mut job.clone()).unwrap_err()] {
            assert!(error.to_string().contains("keep.pins_sha256"), "{error}");
        }
        std::fs::write(&file, b"http://b/\n\xff").unwrap();
        job.keep.pins_sha256.clear();
        assert!(bind(&mut job).unwrap_err().to_string().contains("line 2"));
        job.keep.pins = folder.path().join("none").display().to_string();
        assert!(bind(&mut job).unwrap_err().to_string().contains("no such file"));
    }
}
