use std::path::Path;

use proptest::prelude::*;

use crate::bad_warc::build::{Record, gzip, html, http_with};
use crate::support::program::{assert_same_on_any_workers, fail, files, rows, stderr_text, succeed, webtwin};

const DATES: [&str; 3] = ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"];

fn id(number: usize, segment: usize) -> String {
    format!("<urn:uuid:00000000-0000-4000-8000-{number:06}{segment:06}>")
}

/// Returns a response with page `number`. The pages of each host have the same texts as those of
/// the other hosts.
fn block(number: usize) -> Vec<u8> {
    let words: String = (0..80).map(|k| format!("word{} ", (number / 2 * 7919 + k * k * 31) % 9973)).collect();
    html("", format!("<title>{}</title><p>{words}<a href=\"{}\">x</a>", number / 2, number / 2 + 1).as_bytes())
}

fn record(number: usize, kind: &'static str, lines: &str, block: &[u8]) -> Record {
    let uri = Some(format!("http://{}.example/d/{}", ["a", "b"][number % 2], number / 2));
    let record = Record { uri, date: DATES[number % 3], ..Record::with("", block.to_vec()) };
    let media = if kind == "continuation" { "" } else { record.media };
    Record { kind, media, ..record.lines(lines) }
}

/// Returns the records of a block that is cut at the given ascending offsets.
fn segments(number: usize, block: &[u8], cuts: &[usize]) -> Vec<Vec<u8>> {
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % block.len()).collect();
    ends.push(block.len());
    ends.sort_unstable();
    let mut start = 0;
    let last = ends.len();
    let mut records = Vec::new();
    for (segment, end) in (1..).zip(ends) {
        let mut lines = format!("WARC-Record-ID: {}\r\nWARC-Segment-Number: {segment}\r\n", id(number, segment));
        if segment > 1 {
            lines.push_str(&format!("WARC-Segment-Origin-ID: {}\r\n", id(number, 1)));
        }
        if segment == last {
            lines.push_str(&format!("WARC-Segment-Total-Length: {}\r\n", block.len()));
        }
        let kind = if segment == 1 { "response" } else { "continuation" };
        records.push(gzip(&record(number, kind, &lines, &block[start..end]).bytes()));
        start = end;
    }
    records
}

fn write(folder: &Path, records: &[(usize, Vec<u8>)]) {
    std::fs::create_dir(folder).unwrap();
    for file in 0..3 {
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
    #![proptest_config(ProptestConfig { cases: 4, max_shrink_iters: 10, ..ProptestConfig::default() })]

    /// The crawl is written twice: with one record per page, and in segments in any files and
    /// order.
    #[test]
    fn crawl_in_segments_equals_the_whole_crawl(
        cuts in prop::collection::vec((prop::collection::vec(any::<usize>(), 0..5), 0usize..3, any::<u32>()), 8..40)
    ) {
        let (mut whole, mut cut) = (Vec::new(), Vec::new());
        for (number, (cuts, file, order)) in cuts.iter().enumerate() {
            let block = block(number);
            let id = format!("WARC-Record-ID: {}\r\n", id(number, 1));
            whole.push((*file, gzip(&record(number, "response", &id, &block).bytes())));
            if cuts.is_empty() {
                cut.push(whole.last().cloned().unwrap());
            }
            for (segment, bytes) in segments(number, &block, cuts).into_iter().enumerate().filter(|_| !cuts.is_empty()) {
                let place = (*order as usize).wrapping_mul(segment * 7 + 1) % 97;
                cut.push((place % 3, bytes));
                let last = cut.len() - 1;
                cut.swap(last, place % (last + 1));
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
        write(&folder.path().join("whole"), &whole);
        write(&folder.path().join("cut"), &cut);
        let settings = ["--set", "similar.by=both"];
        succeed(&[&["run", "--input", &at("whole"), "--output", &at("out")], &settings[..]].concat());
        let (out, _) = assert_same_on_any_workers(
            folder.path(), "cut", &[&["run", "--input", &at("cut")], &settings[..]].concat()
        );
        prop_assert_eq!(pages(&out), pages(&at("out")));
        let (expected, found) = (files(&at("out")), files(&out));
        for table in ["links", "pairs", "clusters", "link_summary", "collections", "members", "avoid", "hosts"] {
            for (name, bytes) in expected.iter().filter(|file| file.0.starts_with(table)) {
                prop_assert!(found.get(name) == Some(bytes), "{}", name);
            }
        }
        let rejected = rows(&out, "rejected");
        prop_assert!(rejected.iter().all(|row| row["reason"] == "not_a_page_record"), "{:?}", rejected);
        prop_assert_eq!(rejected.len() + pages(&out).len(), cut.len());
        // The text of a page is read again from all its segments.
        succeed(&["explain", &out, "http://a.example/d/1", "http://b.example/d/1"]);
    }
}

#[test]
fn a_record_without_all_its_segments_is_rejected_and_a_revisit_finds_the_joined_one() {
    let folder = tempfile::tempdir().unwrap();
    let cut = |number: usize| segments(number, &block(number), &[100, 200, 300]);
    let without = |number: usize, left_out: usize| {
        let mut records = cut(number);
        records.remove(left_out);
        records.concat()
    };
    let image = http_with("HTTP/1.1 200 OK", "Content-Type: image/png\r\n", &[b'x'; 500]);
    let of_whole = "WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-999999999999>\r\nWARC-Profile: \
                    http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\nWARC-Refers-To: ";
    let refers = format!("{of_whole}{}\r\n", id(0, 1));
    let revisit = Record { uri: Some("http://c.example/e/0".into()), ..record(0, "revisit", &refers, b"") };
    let lost_header = "WARC-Segment-Number: 2\r\n";
    let records = [
        cut(0).concat(),
        without(2, 1),
        without(4, 3),
        without(6, 0),
        segments(10, &image, &[400]).concat(),
        gzip(&record(12, "continuation", lost_header, b"of nothing").bytes()),
        gzip(&revisit.bytes()),
    ];
    let input = folder.path().join("in.warc.gz");
    std::fs::write(&input, records.concat()).unwrap();
    let output = folder.path().join("out").to_str().unwrap().to_string();
    let ended = webtwin(&["run", "--input", input.to_str().unwrap(), "--output", &output]).output().unwrap();
    assert!(ended.status.success(), "{}", stderr_text(&ended));
    let urls: Vec<_> = rows(&output, "pages").iter().map(|row| row["url"].as_str().unwrap().to_string()).collect();
    assert_eq!(urls.len(), 2, "{urls:?}");
    assert_eq!(rows(&output, "segments").len(), 6);
    let mut reasons = std::collections::BTreeMap::new();
    for row in rows(&output, "rejected") {
        *reasons.entry(row["reason"].as_str().unwrap().to_string()).or_insert(0) += 1;
    }
    // `segmented` counts the first segments of two records, three continuations of another one, and
    // the continuation of the image. `not_a_page_record` counts the other continuations.
    let expected = [("not_a_page_record", 3 + 2 + 2 + 1), ("not_text", 1), ("segmented", 2 + 3 + 1)];
    assert_eq!(reasons, expected.map(|(reason, count)| (reason.to_string(), count)).into(), "{}", stderr_text(&ended));
    succeed(&["explain", &output, "http://a.example/d/0", "http://c.example/e/0"]);

    // The limit of a record applies to the sum of its segments.
    let (small, input) = (folder.path().join("small"), input.to_str().unwrap());
    let set = ["--set", "input.limits.record_bytes=600", "--set", "input.max_bad=1"];
    succeed(&[&["run", "--input", input, "--output", small.to_str().unwrap()], &set[..]].concat());
    let rejected = rows(small.to_str().unwrap(), "rejected");
    assert!(rejected.iter().any(|row| row["reason"] == "record_too_large"), "{rejected:?}");
    fail(&["show", &format!("{}/segments", small.display())], 2);
}
