use std::collections::BTreeSet;
use std::path::Path;

use proptest::prelude::*;

use crate::bad_warc::build::{Record, chunked, gzip, html, http_with};
use crate::support::program::{assert_same_on_any_workers, fail, files, rows, stderr_text, succeed, webtwin};

const IDENTICAL: &str = "http://netpreserve.org/warc/1.0/revisit/identical-payload-digest";
const NOT_MODIFIED: &str = "http://netpreserve.org/warc/1.1/revisit/server-not-modified";

/// A fetch of a page, with the content that the server would have sent.
#[derive(Debug, Clone)]
struct Fetch {
    url: String,
    /// Seconds since the start of the crawl, different for each fetch.
    time: usize,
    body: usize,
}

impl Fetch {
    fn date(&self) -> String {
        format!("2026-01-01T{:02}:{:02}:{:02}Z", self.time / 3600, self.time / 60 % 60, self.time % 60)
    }

    fn id(&self) -> String {
        format!("<urn:uuid:00000000-0000-4000-8000-{:012}>", self.time)
    }

    fn digest(&self) -> String {
        format!("xyz:{:032x}", self.body + 1)
    }

    fn record(&self, kind: &'static str, lines: &str, payload: Vec<u8>) -> Vec<u8> {
        let lines = format!("WARC-Record-ID: {}\r\n{lines}", self.id());
        let date = Box::leak(self.date().into_boxed_str());
        let record = Record { uri: Some(self.url.clone()), date, ..Record::with("", payload) };
        gzip(&Record { kind, ..record.lines(lines) }.bytes())
    }

    fn response(&self) -> Vec<u8> {
        let digest = format!("WARC-Payload-Digest: {}\r\n", self.digest());
        self.record("response", &digest, html("", &body(self.body)))
    }

    /// Returns a revisit record with the header lines `lines`.
    fn revisit(&self, profile: &str, lines: &str) -> Vec<u8> {
        let status = if profile == NOT_MODIFIED { "HTTP/1.1 304 Not Modified" } else { "HTTP/1.1 200 OK" };
        self.record("revisit", &format!("WARC-Profile: {profile}\r\n{lines}"), http_with(status, "Server: x\r\n", b""))
    }
}

/// Returns a page with links that are relative to its URL or to a base.
fn body(number: usize) -> Vec<u8> {
    let words: String = (0..60).map(|k| format!("word{} ", (number * 7919 + k * k * 31) % 9973)).collect();
    let base = if number % 4 == 3 { "<base href=\"sub/\">" } else { "" };
    let links: String = (0..8).map(|k| format!("<a href=\"{k}\">{k}</a>")).collect();
    let refresh = if number % 5 == 2 { "<meta http-equiv=refresh content='0; url=1'>" } else { "" };
    format!("<html><head>{base}{refresh}<title>{number}</title></head><body><p>{words}</p>{links}</body></html>").into()
}

/// Returns the record that a crawler writes for a fetch, given its earlier fetches, and true if the
/// record is a revisit.
fn written(fetch: &Fetch, before: &[Fetch], way: usize, which: usize) -> (Vec<u8>, bool) {
    let same: Vec<&Fetch> = before.iter().filter(|other| other.body == fetch.body).collect();
    let Some(original) = same.get(which % same.len().max(1)) else { return (fetch.response(), false) };
    let last = before.iter().filter(|other| other.url == fetch.url).max_by_key(|other| other.time);
    let digest = format!("WARC-Payload-Digest: {}\r\n", fetch.digest());
    let place = format!(
        "WARC-Refers-To-Target-URI: {}\r\nWARC-Refers-To-Date: {}\r\n",
        original.url,
        original.date().replace('Z', ".25Z")
    );
    let id = format!("WARC-Refers-To: {}\r\n", original.id());
    let record = match way {
        0 => return (fetch.response(), false),
        1 => fetch.revisit(IDENTICAL, &(digest + &id)),
        2 => fetch.revisit(IDENTICAL, &digest),
        3 => fetch.revisit(IDENTICAL, &place),
        4 => fetch.revisit(IDENTICAL, &(digest + &place)),
        5 => fetch.revisit(NOT_MODIFIED, &id),
        _ if last.is_some_and(|last| last.body == fetch.body) => fetch.revisit(NOT_MODIFIED, ""),
        _ => return (fetch.response(), false),
    };
    (record, true)
}

fn write(folder: &Path, records: &[(usize, Vec<u8>)]) {
    std::fs::create_dir(folder).unwrap();
    let files = records.iter().map(|record| record.0 + 1).max().unwrap_or(0);
    for file in 0..files {
        let bytes: Vec<u8> =
            records.iter().filter(|record| record.0 == file).flat_map(|record| record.1.clone()).collect();
        std::fs::write(folder.join(format!("{file}.warc.gz")), bytes).unwrap();
    }
}

/// Returns the table of pages without the locations of records.
fn pages(output: &str) -> Vec<serde_json::Value> {
    let mut pages = rows(output, "pages");
    for page in &mut pages {
        page.as_object_mut().unwrap().retain(|column, _| !["source", "offset", "length"].contains(&column.as_str()));
    }
    pages
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5, max_shrink_iters: 20, ..ProptestConfig::default() })]

    /// The crawl is written twice: with a response for each fetch, and as a crawler without
    /// repeated payloads writes it.
    #[test]
    fn crawl_without_repeated_payloads_equals_the_full_crawl(
        fetches in prop::collection::vec((0usize..3, 0usize..8, 0usize..10, 0usize..7, 0usize..9, 0usize..3), 8..60)
    ) {
        let mut known: Vec<Fetch> = Vec::new();
        let (mut whole, mut short, mut revisits) = (Vec::new(), Vec::new(), 0);
        for (time, (host, page, of, way, which, file)) in fetches.into_iter().enumerate() {
            let url = ["http://a.example/d/", "http://b.example/m/d/", "http://b.example/"][host];
            let fetch = Fetch { url: format!("{url}{page}"), time: time * 61, body: of };
            whole.push((file, fetch.response()));
            let (record, is_revisit) = written(&fetch, &known, way, which);
            short.push((file, record));
            revisits += usize::from(is_revisit);
            known.push(fetch);
        }
        // Records may come before records of earlier fetches, both within files and between them.
        short.reverse();

        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
        write(&folder.path().join("whole"), &whole);
        write(&folder.path().join("short"), &short);
        let settings = ["--set", "effort.shard_bytes=65536", "--set", "similar.by=both", "--set", "simhash.recipe=weighted"];
        succeed(&[&["run", "--input", &at("whole"), "--output", &at("out")], &settings[..]].concat());
        let (out, message) = assert_same_on_any_workers(
            folder.path(), "short", &[&["run", "--input", &at("short")], &settings[..]].concat()
        );
        prop_assert_eq!(pages(&out), pages(&at("out")));
        let (expected, found) = (files(&at("out")), files(&out));
        for table in ["links", "pairs", "clusters", "link_summary", "collections", "members", "avoid", "hosts"] {
            let is_of_table = |name: &&String| name.starts_with(table);
            let names: BTreeSet<_> = expected.keys().chain(found.keys()).filter(is_of_table).collect();
            prop_assert!(!names.is_empty());
            for name in names {
                prop_assert!(expected.get(name) == found.get(name), "{}", name);
            }
        }
        let rejected = rows(&out, "rejected");
        prop_assert!(rejected.iter().all(|row| row["reason"] == "older_capture"), "{:?}", rejected);
        prop_assert_eq!(rejected.len() + pages(&out).len(), whole.len());
        prop_assert!(!message.contains("revisit"), "{}", message);

        // The text of a page is read again from the record that contains it.
        let revisited = if found.keys().any(|name| name.starts_with("revisits")) { rows(&out, "revisits") } else { vec![] };
        prop_assert!(revisited.len() <= revisits);
        let urls: Vec<&str> = revisited.iter().map(|row| row["url"].as_str().unwrap()).collect();
        if let [first, .., last] = urls[..] {
            succeed(&["explain", &out, first, last]);
        }
    }
}

/// Runs over records, each in its own gzip member; returns the result and the messages.
fn run(folder: &Path, records: &[Vec<u8>]) -> (String, String) {
    let input = folder.join("in.warc.gz");
    std::fs::write(&input, records.concat()).unwrap();
    let output = folder.join("out").to_str().unwrap().to_string();
    let ended = webtwin(&["run", "--input", input.to_str().unwrap(), "--output", &output]).output().unwrap();
    assert!(ended.status.success(), "{}", stderr_text(&ended));
    (output, stderr_text(&ended))
}

fn reasons(output: &str) -> Vec<String> {
    rows(output, "rejected").iter().map(|row| row["reason"].as_str().unwrap().to_string()).collect()
}

#[test]
fn revisit_without_its_original_is_rejected_with_a_message() {
    let folder = tempfile::tempdir().unwrap();
    let page = |time, url: &str, body| Fetch { url: format!("http://h.example/{url}"), time, body };
    let lost_page = page(9, "lost", 5);
    let lines = format!("WARC-Payload-Digest: {}\r\n", lost_page.digest());
    let records =
        [page(1, "a", 1).response(), lost_page.revisit(IDENTICAL, &lines), page(3, "new", 6).revisit(NOT_MODIFIED, "")];
    let (output, message) = run(folder.path(), &records);
    assert_eq!(reasons(&output), ["revisit", "revisit"]);
    assert_eq!(rows(&output, "pages").len(), 1);
    let line =
        message.lines().find(|line| line.starts_with("2 revisit records")).unwrap_or_else(|| panic!("{message}"));
    assert!(line.contains("earlier crawl"), "{line}");
    fail(&["show", &format!("{output}/revisits")], 2);
}

#[test]
fn unreadable_date_of_a_revisit_is_counted_once() {
    let folder = tempfile::tempdir().unwrap();
    let page = |time, url: &str| Fetch { url: format!("http://h.example/{url}"), time, body: 1 };
    let lines = format!("WARC-Payload-Digest: {}\r\n", page(1, "a").digest());
    let undated = |record: Vec<u8>, fetch: &Fetch| {
        let mut text = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&record[..]), &mut text).unwrap();
        gzip(String::from_utf8(text).unwrap().replace(&fetch.date(), "yesterday").as_bytes())
    };
    let revisit = |time, url: &str| page(time, url).revisit(IDENTICAL, &lines);
    let repaired_of = |name: &str, records: [Vec<u8>; 2]| {
        let inner = folder.path().join(name);
        std::fs::create_dir(&inner).unwrap();
        let (output, _) = run(&inner, &records);
        assert_eq!(rows(&output, "pages").len(), 2);
        let summary = std::fs::read(format!("{output}/summary.json")).unwrap();
        serde_json::from_slice::<serde_json::Value>(&summary).unwrap()["records"]["mended"].clone()
    };
    let bad_dates = serde_json::json!({ "bad_date": 1 });
    let undated_revisit = undated(revisit(2, "b"), &page(2, "b"));
    assert_eq!(repaired_of("revisit", [page(1, "a").response(), undated_revisit]), bad_dates);
    let undated_page = undated(page(1, "a").response(), &page(1, "a"));
    assert_eq!(repaired_of("original", [undated_page, revisit(2, "b")]), bad_dates);
}

#[test]
fn revisit_of_a_revisit_without_reference_waits_for_its_original() {
    let folder = tempfile::tempdir().unwrap();
    let page = |time, url: &str, body| Fetch { url: format!("http://h.example/{url}"), time, body };
    let unchanged = page(3, "five", 3);
    let id = format!("WARC-Refers-To: {}\r\n", unchanged.id());
    let records = [
        page(4, "four", 3).revisit(NOT_MODIFIED, &id),
        unchanged.revisit(NOT_MODIFIED, ""),
        page(2, "four", 6).response(),
        page(1, "five", 3).response(),
    ];
    let (output, _) = run(folder.path(), &records);
    let exact: BTreeSet<String> = rows(&output, "pages").iter().map(|row| row["exact"].to_string()).collect();
    assert_eq!((rows(&output, "pages").len(), exact.len()), (2, 1), "both pages have the text of the first");
}

#[test]
fn response_header_of_a_revisit_may_reject_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let page = |time, url: &str| Fetch { url: format!("http://h.example/{url}"), time, body: 1 };
    let record_of = |time, url: &str, status: &str, lines: &str| {
        let fetch = page(time, url);
        let digest = format!("WARC-Profile: {IDENTICAL}\r\nWARC-Payload-Digest: {}\r\n", fetch.digest());
        fetch.record("revisit", &digest, http_with(status, lines, b""))
    };
    let records = [
        page(1, "a").response(),
        record_of(2, "moved", "HTTP/1.1 301 Moved", "Location: a\r\n"),
        record_of(3, "gone", "HTTP/1.1 404 Not Found", ""),
        record_of(4, "image", "HTTP/1.1 200 OK", "Content-Type: image/png\r\n"),
        record_of(5, "copy", "HTTP/1.1 200 OK", "Content-Type: text/html\r\n"),
    ];
    let (output, _) = run(folder.path(), &records);
    let mut reasons_found = reasons(&output);
    reasons_found.sort();
    assert_eq!(reasons_found, ["not_text", "status_not_2xx", "status_not_2xx"]);
    assert_eq!(rows(&output, "pages").len(), 2);
}

#[test]
fn a_digest_in_another_encoding_is_the_same_digest() {
    let folder = tempfile::tempdir().unwrap();
    let page = |time, url: &str| Fetch { url: format!("http://h.example/{url}"), time, body: 1 };
    let named = |digest: &str| format!("WARC-Payload-Digest: {digest}\r\n");
    let original = page(1, "a").record("response", &named("sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"), html("", &body(1)));
    let copy = page(2, "b").revisit(IDENTICAL, &named("sha1:da39a3ee5e6b4b0d3255bfef95601890afd80709"));
    let (output, _) = run(folder.path(), &[copy, original]);
    assert_eq!(rows(&output, "pages").len(), 2);
    assert_eq!(rows(&output, "pairs").len(), 1);
}

#[test]
fn originals_without_a_digest_are_found_by_computed_payload_digests() {
    use sha1::{Digest, Sha1};
    let folder = tempfile::tempdir().unwrap();
    let page = |time, url: &str, body| Fetch { url: format!("http://h.example/{url}"), time, body };
    let sha1 = |payload: &[u8]| -> String {
        let hexadecimal: String = Sha1::digest(payload).iter().map(|byte| format!("{byte:02x}")).collect();
        format!("WARC-Payload-Digest: sha1:{hexadecimal}\r\n")
    };
    let (packed, cut) = (gzip(&body(2)), chunked(&body(3)));
    let original =
        |time, head: &str, payload: &[u8]| page(time, &time.to_string(), 0).record("response", "", html(head, payload));
    let arc = [
        &b"filedesc://a.arc 0.0.0.0 20260101000000 text/plain 15\n1 0 Internet-A\n"[..],
        format!("http://h.example/arc 1.2.3.4 20260101000000 text/html {}\n", html("", &body(5)).len()).as_bytes(),
        &html("", &body(5)),
        b"\n",
    ]
    .concat();
    std::fs::create_dir(folder.path().join("in")).unwrap();
    std::fs::write(folder.path().join("in/old.arc"), arc).unwrap();
    let records = [
        page(51, "a", 0).revisit(IDENTICAL, &sha1(&body(1))),
        page(52, "b", 0).revisit(IDENTICAL, &sha1(&packed)),
        page(53, "c", 0).revisit(IDENTICAL, &sha1(&body(6))),
        page(54, "d", 0).revisit(IDENTICAL, &sha1(&body(3))),
        page(55, "e", 0).revisit(IDENTICAL, &sha1(&body(4))),
        page(56, "f", 0).revisit(IDENTICAL, &sha1(&body(5))),
        original(1, "", &body(1)),
        original(2, "Content-Encoding: gzip\r\n", &packed),
        original(4, "Content-Encoding: gzip\r\n", &gzip(&body(6))),
        original(3, "Transfer-Encoding: chunked\r\n", &cut),
    ];
    std::fs::write(folder.path().join("in/new.warc.gz"), records.concat()).unwrap();
    let input = folder.path().join("in");
    let (output, _) = assert_same_on_any_workers(folder.path(), "out", &["run", "--input", input.to_str().unwrap()]);
    assert_eq!(reasons(&output), ["revisit", "not_a_page_record"]);
    assert_eq!(rows(&output, "revisits").len(), 5);
    let original = |name: &str| {
        let url = format!("http://h.example/{name}");
        let row = rows(&output, "revisits").into_iter().find(|row| row["url"] == url).unwrap();
        row["original_url"].as_str().unwrap().rsplit('/').next().unwrap().to_string()
    };
    assert_eq!(["a", "b", "c", "d", "f"].map(original), ["1", "2", "4", "3", "arc"]);
}

#[test]
fn run_over_revisits_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let mut records = Vec::new();
    for number in 0..400 {
        let page = |time, host: &str, body| Fetch { url: format!("http://{host}.example/{number}"), time, body };
        let copy = page(2 * number + 1, "b", number);
        records.push((number % 60, copy.revisit(IDENTICAL, &format!("WARC-Payload-Digest: {}\r\n", copy.digest()))));
        records.push((number % 50, page(2 * number, "a", number).response()));
    }
    write(&folder.path().join("crawl"), &records);
    let run = |output: &str, more: &[&str]| -> String {
        let input = at("crawl");
        let common = ["run", "--input", &input, "--output", output, "--set", "effort.shard_bytes=65536"];
        let ended = webtwin(&[&common[..], &["--workers", "1"], more].concat()).output().unwrap();
        format!("{:?} {}", ended.status.code(), stderr_text(&ended))
    };
    assert!(run(&at("whole"), &[]).starts_with("Some(0)"));
    assert_eq!(rows(&at("whole"), "revisits").len(), 400);
    // This memory bound is too small for the crawl and ends the run while it reads its input.
    let mut is_resumed = false;
    for bytes in ["37900000", "38000000", "38100000", "38300000"] {
        let memory_bound = format!("effort.memory_bytes={bytes}");
        let stopped = run(&at("out"), &["--resume", "--set", &memory_bound]);
        assert!(stopped.starts_with("Some(9)"), "{stopped}");
        is_resumed |= stopped.contains(" saved") && !stopped.contains(", 0 saved");
        if is_resumed {
            break;
        }
    }
    assert!(is_resumed);
    let resumed = run(&at("out"), &["--resume"]);
    assert!(resumed.starts_with("Some(0)") && !resumed.contains("resume: 0 work items restored"), "{resumed}");
    let (whole, found) = (files(&at("whole")), files(&at("out")));
    assert!(whole.keys().eq(found.keys()) && whole == found);
}
