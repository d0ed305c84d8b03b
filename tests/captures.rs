use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;

use crate::bad_warc::build::{Record, gzip, html, http_with};
use crate::support::program::{assert_same_on_any_workers, fail, files, rows, stderr_text, succeed, webtwin};

/// The id that some programs write into every record.
const NULL: &str = "<urn:uuid:null>";

const IDENTICAL: &str = "http://netpreserve.org/warc/1.0/revisit/identical-payload-digest";

/// Returns a page with links, and with words that are unique to `number`.
fn body(number: usize) -> Vec<u8> {
    let words: String = (0..80).map(|k| format!("word{} ", (number * 7919 + k * k * 31) % 9973)).collect();
    let links: String = (0..6).map(|k| format!("<a href=\"/{}\">{k}</a>", (number + k) % 6)).collect();
    format!("<html><head><title>{number}</title></head><body><p>{words}</p>{links}</body></html>").into()
}

/// Returns a record of `http://HOST.example/PAGE` fetched at the given second.
fn record(kind: &'static str, (host, page, second): (&str, usize, usize), lines: &str, payload: Vec<u8>) -> Record {
    let date: &'static str = Box::leak(format!("2026-01-01T00:00:{second:02}Z").into_boxed_str());
    let uri = Some(format!("http://{host}.example/{page}"));
    let media = if kind == "conversion" { "text/plain" } else { "application/http; msgtype=response" };
    Record { kind, uri, date, media, ..Record::with("", payload) }.lines(lines)
}

fn id(id: &str) -> String {
    format!("WARC-Record-ID: {id}\r\n")
}

fn refers_to(record: &str, place: Option<(&str, usize, usize)>) -> String {
    let place = place.map(|(host, page, second)| {
        format!(
            "WARC-Refers-To-Target-URI: http://{host}.example/{page}\r\n\
             WARC-Refers-To-Date: 2026-01-01T00:00:{second:02}Z\r\n"
        )
    });
    format!("WARC-Profile: {IDENTICAL}\r\nWARC-Refers-To: {record}\r\n{}", place.unwrap_or_default())
}

fn digest(body: usize) -> String {
    format!("WARC-Payload-Digest: xyz:{:032x}\r\n", body + 1)
}

fn revisit(at: (&str, usize, usize), lines: &str) -> Record {
    record("revisit", at, lines, http_with("HTTP/1.1 200 OK", "", b""))
}

fn response(at: (&str, usize, usize), lines: &str, number: usize) -> Record {
    record("response", at, lines, html("", &body(number)))
}

/// Writes records into files. Each record comes with the number of its file.
fn write(folder: &Path, records: &[(usize, &Record)]) {
    std::fs::create_dir_all(folder).unwrap();
    let mut files: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
    for (file, record) in records {
        files.entry(*file).or_default().extend(gzip(&record.bytes()));
    }
    for (file, bytes) in files {
        std::fs::write(folder.join(format!("{file}.warc.gz")), bytes).unwrap();
    }
}

/// Runs over the records in several orders and distributions over files, checks that the results
/// are equal, and returns the output of the first run.
fn outcome(folder: &Path, records: &[Record]) -> String {
    type Way = fn(usize, usize) -> (usize, usize);
    let ways: [Way; 4] = [|_, _| (0, 0), |n, count| (0, count - n), |n, _| (n, 0), |n, count| (count - n, 0)];
    let mut outputs = Vec::new();
    for (way, place) in ways.iter().enumerate() {
        // File and order of each record.
        let mut places: Vec<_> = (0..records.len()).map(|n| (place(n, records.len()), n)).collect();
        places.sort_by_key(|((_, order), _)| *order);
        let placed: Vec<(usize, &Record)> = places.iter().map(|&((file, _), n)| (file, &records[n])).collect();
        let [input, output] = ["in", "out"].map(|name| folder.join(format!("{name}-{way}")));
        write(&input, &placed);
        let output = output.to_str().unwrap().to_string();
        let ended = webtwin(&["run", "--input", input.to_str().unwrap(), "--output", &output]).output().unwrap();
        assert!(ended.status.success(), "{}", stderr_text(&ended));
        outputs.push(output);
    }
    let first = contents(&outputs[0]);
    for other in &outputs[1..] {
        let mut contents = contents(other);
        for (name, content) in &first {
            assert_eq!(contents.remove(name).as_ref(), Some(content), "{name} of {other}");
        }
        assert!(contents.is_empty(), "{:?}", contents.keys());
    }
    outputs.swap_remove(0)
}

/// Returns the contents of a result without the locations of records.
fn contents(output: &str) -> BTreeMap<String, String> {
    let mut contents = BTreeMap::new();
    for (name, bytes) in files(output).into_iter().filter(|(name, _)| !name.starts_with("rejected")) {
        let table = name.split('/').next().unwrap().to_string();
        let is_placed = ["pages", "revisits", "manifest.json", "summary.json"].contains(&&table[..]);
        if !is_placed {
            contents.insert(name, format!("{:x}", xxhash_rust::xxh3::xxh3_128(&bytes)));
        }
    }
    for table in ["pages", "revisits"] {
        let has_table = files(output).keys().any(|name| name.starts_with(table));
        let mut rows = if has_table { rows(output, table) } else { Vec::new() };
        for row in &mut rows {
            let is_place = |column: &str| ["source", "offset", "length"].iter().any(|place| column.contains(place));
            row.as_object_mut().unwrap().retain(|column, _| !is_place(column));
        }
        contents.insert(table.to_string(), serde_json::to_string(&rows).unwrap());
    }
    let mut summary = summary(output);
    // The digest of the job depends on the names of the files.
    summary["digest"].take();
    contents.insert("summary.json".to_string(), summary.to_string());
    let mut reasons: Vec<String> = rejected(output);
    reasons.sort_unstable();
    contents.insert("rejected".to_string(), reasons.join("\n"));
    contents
}

fn summary(output: &str) -> serde_json::Value {
    serde_json::from_slice(&files(output)["summary.json"]).expect("the summary is JSON")
}

fn rejected(output: &str) -> Vec<String> {
    rows(output, "rejected").iter().map(|row| format!("{} {}", row["reason"], row["detail"])).collect()
}

/// Returns the title of each page by its URL without `http://`. Conversions have no title.
fn titles(output: &str) -> BTreeMap<String, String> {
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_string();
    rows(output, "pages").iter().map(|row| (text(&row["url"]).split_off(7), text(&row["title"]))).collect()
}

fn titled<const N: usize>(pages: [(&str, &str); N]) -> BTreeMap<String, String> {
    pages.iter().map(|(url, title)| (url.replacen('/', ".example/", 1), title.to_string())).collect()
}

#[test]
fn revisit_has_the_content_named_by_url_and_date_before_the_id() {
    let null = id(NULL);
    let originals = || (0..4).map(|n| response(("a", n, 0), &format!("{null}{}", digest(n)), n));
    let revisit_of = |n, lines: &str| revisit(("b", n, 30), &format!("{null}{lines}"));
    let place = |n| refers_to(NULL, Some(("a", n, 0)));
    let all = [("a/0", "0"), ("a/1", "1"), ("a/2", "2"), ("a/3", "3"), ("b/1", "1")];

    // The original is found by URL and date; by digest; and by URL and date although only another
    // record has the id.
    for lines in
        [place(1), place(1) + &digest(1), refers_to(NULL, None) + &digest(1), refers_to("<urn:a:2>", Some(("a", 1, 0)))]
    {
        let folder = tempfile::tempdir().unwrap();
        let records: Vec<Record> = originals().chain([revisit_of(1, &lines)]).collect();
        assert_eq!(titles(&outcome(folder.path(), &records)), titled(all), "{lines}");
    }
    let folder = tempfile::tempdir().unwrap();
    let own_id = |n: usize| id(&format!("<urn:a:{n}>"));
    let unlike: Vec<Record> = (0..4).map(|n| response(("a", n, 0), &own_id(n), n)).collect();
    let two = refers_to("<urn:a:2>", Some(("a", 1, 0)));
    let records: Vec<Record> = unlike.iter().cloned().chain([revisit_of(1, &two)]).collect();
    assert_eq!(titles(&outcome(folder.path(), &records)), titled(all));

    // The original is found by id alone if only one record has the id, but not if several have it.
    let folder = tempfile::tempdir().unwrap();
    let records: Vec<Record> = unlike.into_iter().chain([revisit_of(1, &refers_to("<urn:a:1>", None))]).collect();
    let output = outcome(folder.path(), &records);
    assert_eq!(titles(&output), titled(all));
    let folder = tempfile::tempdir().unwrap();
    let records: Vec<Record> = originals().chain([revisit_of(1, &refers_to(NULL, None))]).collect();
    let output = outcome(folder.path(), &records);
    assert_eq!(rejected(&output), ["\"revisit\" \"http://b.example/1\""]);
}

#[test]
fn a_revisit_waits_for_the_revisit_that_its_url_and_date_name() {
    let folder = tempfile::tempdir().unwrap();
    let records = [
        response(("a", 0, 0), &(id("<urn:a:0>") + &digest(0)), 0),
        response(("a", 1, 1), &(id("<urn:a:1>") + &digest(1)), 1),
        revisit(("b", 0, 10), &(id("<urn:b:0>") + &refers_to("<urn:a:0>", None))),
        // URL and date lead to content 0 through the previous revisit; the id leads to content 1.
        revisit(("c", 0, 20), &(id("<urn:c:0>") + &refers_to("<urn:a:1>", Some(("b", 0, 10))))),
        // Two revisits name each other, and one of them has a digest.
        revisit(("d", 0, 30), &refers_to("<urn:none>", Some(("d", 1, 31)))),
        revisit(("d", 1, 31), &(refers_to("<urn:none>", Some(("d", 0, 30))) + &digest(1))),
    ];
    let pages = [("a/0", "0"), ("a/1", "1"), ("b/0", "0"), ("c/0", "0"), ("d/0", "1"), ("d/1", "1")];
    assert_eq!(titles(&outcome(folder.path(), &records)), titled(pages));
}

#[test]
fn url_of_the_original_decides_between_equally_good_revisits() {
    let folder = tempfile::tempdir().unwrap();
    // Two originals have the same content. Two revisits of one URL in one second name one of them
    // each, and a third revisit names the URL and the second of both.
    let records = [
        response(("a", 1, 0), &(id("<urn:a:1>") + &digest(0)), 0),
        response(("a", 2, 0), &(id("<urn:a:2>") + &digest(0)), 0),
        revisit(("b", 0, 10), &(id("<urn:b:1>") + &refers_to("<urn:a:1>", Some(("a", 1, 0))))),
        revisit(("b", 0, 10), &(id("<urn:b:2>") + &refers_to("<urn:a:2>", Some(("a", 2, 0))))),
        revisit(("c", 0, 20), &refers_to("<urn:none>", Some(("b", 0, 10)))),
    ];
    let pages = [("a/1", "0"), ("a/2", "0"), ("b/0", "0"), ("c/0", "0")];
    assert_eq!(titles(&outcome(folder.path(), &records)), titled(pages));
}

#[test]
fn conversion_is_not_a_page_if_its_source_is_one() {
    let text = |n: usize| format!("words of the page {n} and nothing else").into_bytes();
    let conversion = |at, lines: &str, n| record("conversion", at, lines, text(n));
    let from = |id: &str| format!("WARC-Refers-To: {id}\r\n");
    let records = [
        // Conversions: made later from a record that it names; at the same time; from an unknown
        // record.
        response(("a", 0, 0), &id("<urn:a:0>"), 0),
        conversion(("a", 0, 50), &from("<urn:a:0>"), 0),
        response(("a", 1, 1), "", 1),
        conversion(("a", 1, 1), &from("<urn:lost>"), 1),
        response(("a", 2, 2), &id(NULL), 2),
        conversion(("a", 2, 40), "", 2),
        // A conversion of a record that is older than the page.
        response(("a", 3, 3), &id("<urn:a:3>"), 3),
        response(("a", 3, 4), &id("<urn:a:4>"), 4),
        conversion(("a", 3, 50), &from("<urn:a:3>"), 3),
        // Conversions: of a missing record, newer than the record that exists; of a record that is
        // not a page; of a revisit.
        response(("b", 0, 0), &id("<urn:b:0>"), 0),
        conversion(("b", 0, 9), &from("<urn:b:9>"), 9),
        record("response", ("b", 1, 1), "", http_with("HTTP/1.1 200 OK", "Content-Type: image/png\r\n", b"\x89PNG")),
        conversion(("b", 1, 1), "", 1),
        revisit(("b", 2, 9), &(id("<urn:b:2>") + &refers_to("<urn:a:0>", None))),
        conversion(("b", 2, 9), &from("<urn:b:2>"), 2),
        conversion(("b", 3, 9), "", 3),
    ];
    let folder = tempfile::tempdir().unwrap();
    let output = outcome(folder.path(), &records);
    let pages =
        [("a/0", "0"), ("a/1", "1"), ("a/2", "2"), ("a/3", "4"), ("b/0", ""), ("b/1", ""), ("b/2", "0"), ("b/3", "")];
    assert_eq!(titles(&output), titled(pages));
    let mut reasons = rejected(&output);
    reasons.retain(|reason| !reason.starts_with("\"not_text"));
    reasons.sort_unstable();
    let conversions = ["a.example/0", "a.example/1", "a.example/2", "a.example/3", "b.example/2"];
    let mut expected: Vec<String> = conversions.iter().map(|url| format!("\"conversion\" \"http://{url}\"")).collect();
    expected.push("\"older_capture\" \"http://a.example/3\"".into());
    expected.push("\"older_capture\" \"http://b.example/0\"".into());
    expected.sort_unstable();
    assert_eq!(reasons, expected);
    // The table has the links of the responses.
    assert!(!rows(&output, "links").is_empty());
}

#[test]
fn shortest_record_of_equal_content_and_second_counts() {
    let folder = tempfile::tempdir().unwrap();
    let records =
        [response(("a", 1, 0), &(id("<urn:a:1>") + &digest(1)), 1), response(("a", 1, 0), &id("<urn:a:2>"), 1)];
    let output = outcome(folder.path(), &records);
    let kept_bytes = summary(&output)["records"]["bytes"]["kept"].as_u64().unwrap();
    assert_eq!(kept_bytes, gzip(&records[1].bytes()).len() as u64);
}

/// Generates a record of any kind, which may have its id, second, URL or content in common with
/// other records.
fn any_record() -> impl Strategy<Value = Record> {
    let host = prop::sample::select(vec!["a", "b"]);
    let id = prop::sample::select(vec![NULL, "<urn:x:1>", "<urn:x:2>", "<urn:x:3>"]);
    let numbers = (0usize..3, 0usize..3, 0usize..4, 0usize..3);
    (0usize..9, host, numbers, id.clone(), id, any::<(bool, bool)>()).prop_map(
        |(kind, host, (page, second, content, other), own, named, (has_digest, is_placed))| {
            let at = (host, page, second);
            let digest = if has_digest { digest(content) } else { String::new() };
            let own = self::id(own);
            let place = is_placed.then_some(("a", other, second));
            match kind {
                0..4 => response(at, &(own + &digest), content),
                4 => record("conversion", at, &format!("{own}WARC-Refers-To: {named}\r\n"), body(content)),
                5 => {
                    let location = format!("Location: /{other}\r\n");
                    record("response", (host, 7, second), &own, http_with("HTTP/1.1 302 Found", &location, b""))
                }
                _ => revisit((host, page, second + other), &(own + &digest + &refers_to(named, place))),
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5, max_shrink_iters: 20, ..ProptestConfig::default() })]

    #[test]
    fn tables_do_not_depend_on_the_order_of_records_or_the_files_they_are_in(
        records in prop::collection::vec(any_record(), 1..40)
    ) {
        let folder = tempfile::tempdir().unwrap();
        outcome(folder.path(), &records);
        assert_same_on_any_workers(
            folder.path(), "same", &["run", "--input", folder.path().join("in-2").to_str().unwrap()]
        );
    }
}

#[test]
fn revisits_without_a_valid_target_are_damage() {
    let folder = tempfile::tempdir().unwrap();
    let [input, output] = ["in", "out"].map(|name| folder.path().join(name));
    let place = refers_to(NULL, Some(("a", 1, 0)));
    let of = |uri: Option<&str>| Record { uri: uri.map(String::from), ..revisit(("b", 1, 30), &place) };
    let records =
        [response(("a", 1, 0), &digest(1), 1), of(None), of(Some("http://:80/")), of(Some("http://b.example/"))];
    write(&input, &records.iter().map(|record| (0, record)).collect::<Vec<_>>());
    let [input, output] = [input, output].map(|path| path.to_str().unwrap().to_string());
    succeed(&["run", "--input", &input, "--output", &output, "--max-bad", "1"]);
    let rejected = rejected(&output);
    assert_eq!(rejected.len(), 2, "{rejected:?}");
    assert!(rejected[0].starts_with("\"no_target_uri\"") && rejected[1].starts_with("\"bad_url\""), "{rejected:?}");
    assert!(rejected[1].contains("http://:80/"), "{rejected:?}");
}

#[test]
fn records_with_a_long_url_count_toward_max_bad_by_number_only() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let line = |url: String, words: usize| {
        serde_json::json!({ "url": url, "text": format!("words of {url} ").repeat(words) }).to_string() + "\n"
    };
    let long_url = |n: usize| format!("http://a.example/{n}/{}", "x".repeat(9000));
    let lines: String = (0..400).map(|n| line(format!("http://a.example/{n}"), 20)).collect();
    let long: String = (0..6).map(|n| line(long_url(n), 5)).collect();
    std::fs::write(at("in.jsonl"), lines + &long).unwrap();
    // 6 of 406 records are more than 1 %, and have half of the bytes.
    let (input, output) = (at("in.jsonl"), at("out"));
    let arguments = ["run", "--input", &input, "--output", &output];
    let message = fail(&arguments, 5);
    assert!(message.contains("url_too_long 6") && !message.contains(" lost"), "{message}");
    succeed(&[&arguments[..], &["--max-bad", "0.02"]].concat());
}
