use std::ops::Range;
use std::path::Path;

use crate::bad_warc::build::{Record, gzip, html};
use crate::support::program::{assert_same_from_checkpoints, assert_same_on_any_workers, rows};

const DATE: &str = "2026-01-01T00:00:00Z";

/// Returns a page with `text` at a URL, fetched from `address` unless that is empty.
fn page(url: &str, address: &str, text: &str) -> Vec<u8> {
    let record = Record { uri: Some(url.to_string()), ..Record::with("", html("", text.as_bytes())) };
    gzip(&record.lines(line(address)).bytes())
}

fn line(address: &str) -> String {
    if address.is_empty() { String::new() } else { format!("WARC-IP-Address: {address}\r\n") }
}

/// Returns the text with a number. Texts of different numbers share no line; copies of one number
/// differ in one line.
fn text(number: usize, copy: usize) -> String {
    let line =
        |line: usize| format!("<p>Line {line} of text {number} has {} and {}.", number * 7919 + line, number * line);
    let lines: String = (0..40).map(line).collect();
    format!("<title>Text {number}</title>{lines}<p>Shown for the {copy}th time.")
}

/// Returns a site of 20 pages. Pages in the range `shared` have texts numbered from `first` on, so
/// that another site can have copies of them; the others have texts numbered from `own` on.
fn site(host: &str, address: &str, (first, shared, copy): (usize, Range<usize>, usize), own: usize) -> Vec<u8> {
    let page = |number: usize| {
        let path = if number == 0 { String::new() } else { format!("p{number}") };
        let text = if shared.contains(&number) { text(first + number, copy) } else { text(own + number, 0) };
        page(&format!("http://{host}/{path}"), address, &text)
    };
    (0..20).flat_map(page).collect()
}

/// Returns a revisit record that refers to `http://a.example/p1`.
fn revisit(url: &str, address: &str) -> Vec<u8> {
    let lines = format!(
        "{}WARC-Profile: http://netpreserve.org/warc/1.0/revisit/server-not-modified\r\n\
         WARC-Refers-To-Target-URI: http://a.example/p1\r\nWARC-Refers-To-Date: {DATE}\r\n",
        line(address)
    );
    let record = Record { uri: Some(url.to_string()), ..Record::with("", Vec::new()) };
    let record = record.kind("revisit", "application/http; msgtype=response", b"HTTP/1.1 304 Not Modified\r\n\r\n");
    gzip(&record.lines(lines).bytes())
}

fn write(folder: &Path) -> String {
    let crawl = folder.join("crawl");
    std::fs::create_dir_all(&crawl).unwrap();
    let one = "192.0.2.1";
    let files = [
        // One server with two names. The crawl has other pages under each name, and each page has a
        // counter.
        [site("a.example", one, (100, 0..14, 1), 1_000), site("www.a.example", "", (100, 0..14, 2), 2_000)].concat(),
        [
            // The name has two addresses, one of which is also the address of the other name.
            revisit("http://www.a.example/again", "2001:db8::7"),
            revisit("http://www.a.example/again-and-again", "::ffff:192.0.2.1"),
            // The same two sites, from different addresses and without any address.
            site("b.example", "192.0.2.2", (200, 0..14, 1), 3_000),
            site("mirror-of-b.example", "192.0.2.3", (200, 0..14, 2), 4_000),
            site("c.example", "", (300, 0..14, 1), 5_000),
            site("mirror-of-c.example", one, (300, 0..14, 2), 6_000),
        ]
        .concat(),
        [
            // Shared hosting: both sites have one address, and a manual at the same paths, but
            // nothing else in common.
            site("d.example", one, (400, 0..20, 0), 0),
            site("e.example", one, (500, 1..18, 0), 7_000),
            site("manual-of-e.example", one, (500, 1..18, 0), 8_000),
            // All pages are equal and at the same paths, but come from two addresses.
            site("f.example", "192.0.2.4", (600, 0..20, 0), 0),
            site("www.f.example", "192.0.2.5", (600, 0..20, 0), 0),
        ]
        .concat(),
    ];
    for (number, file) in files.iter().enumerate() {
        std::fs::write(crawl.join(format!("{number}.warc.gz")), file).unwrap();
    }
    crawl.to_str().unwrap().to_string()
}

/// Returns, for each pair of hosts, both hosts, the comparison of their addresses and the relation.
fn pairs(output: &str) -> Vec<[String; 4]> {
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_string();
    let pair = |row: &serde_json::Value| {
        let (mut a, mut b) = (text(&row["host_a"]), text(&row["host_b"]));
        if a > b {
            std::mem::swap(&mut a, &mut b);
        }
        [a, b, text(&row["addresses"]), text(&row["kind"])]
    };
    let mut pairs: Vec<_> = rows(output, "server_pairs").iter().map(pair).collect();
    pairs.sort();
    pairs
}

#[test]
fn hosts_of_one_address_are_one_server_only_with_matching_content() {
    let folder = tempfile::tempdir().unwrap();
    let crawl = write(folder.path());
    let (output, _) = assert_same_on_any_workers(folder.path(), "out", &["run", "--input", &crawl]);
    assert_eq!(
        pairs(&output),
        [
            ["a.example", "www.a.example", "same", "alias"],
            ["b.example", "mirror-of-b.example", "different", "part"],
            ["c.example", "mirror-of-c.example", "unknown", "part"],
            ["e.example", "manual-of-e.example", "same", "part"],
            ["f.example", "www.f.example", "different", "alias"],
        ]
    );
    let of_a =
        rows(&output, "server_pairs").into_iter().find(|row| row["host_a"].as_str().unwrap().contains("a.example"));
    let of_a = of_a.unwrap();
    assert_eq!((of_a["similar_path"].as_u64(), of_a["same_path"].as_u64()), (Some(14), Some(0)), "{of_a}");
    let summary = std::fs::read(format!("{output}/summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_slice(&summary).unwrap();
    assert_eq!(summary["servers"]["alias_pairs"], 2);
}

#[test]
fn addresses_are_stored_in_checkpoints_for_the_next_run() {
    let folder = tempfile::tempdir().unwrap();
    let crawl = write(folder.path());
    assert_same_from_checkpoints(folder.path(), &crawl, "2.warc.gz", 2);
}
