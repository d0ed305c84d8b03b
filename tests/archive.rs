use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use sha1::{Digest, Sha1};

use crate::bad_warc::build::{Record, gzip};
use crate::support::planted::write_crawl;
use crate::support::program::{fail, files, succeed, webtwin};

/// Writes a made-up crawl with exact copies into a folder of its own.
fn crawl(folder: &Path) -> String {
    let path = folder.join("crawl").to_str().unwrap().to_string();
    write_crawl(&path, 600, 3);
    path
}

fn message(arguments: &[&str]) -> String {
    let output = webtwin(arguments).output().unwrap();
    assert!(output.status.success() && output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

fn unpacked(files: &BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Vec<u8>> {
    let gzip = files.iter().filter(|(name, _)| name.ends_with(".warc.gz"));
    gzip.map(|(name, bytes)| {
        let mut whole = Vec::new();
        MultiGzDecoder::new(&bytes[..]).read_to_end(&mut whole).unwrap();
        (name.clone(), whole)
    })
    .collect()
}

#[test]
fn crawl_is_archived_equally_by_any_threads_and_restored() {
    let folder = tempfile::tempdir().unwrap();
    let crawl = crawl(folder.path());
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    // Side files such as truth.tsv are ignored.
    let line = message(&["archive", &crawl, "--output", &at("one"), "--workers", "1"]);
    assert!(line.contains("skipped 1 files that are not WARC") && line.contains("written as revisits"), "{line}");
    message(&["archive", &crawl, "--output", &at("three"), "--workers", "3", "--memory", "0"]);
    assert!(files(&at("one")) == files(&at("three")));

    let line = message(&["restore", &at("one"), "--output", &at("back")]);
    assert!(line.contains("all equal to the archived ones"), "{line}");
    let (before, archived, after) = (files(&crawl), files(&at("one")), files(&at("back")));
    assert!(unpacked(&before) == unpacked(&after));
    let bytes = |files: &BTreeMap<String, Vec<u8>>| unpacked(files).values().map(Vec::len).sum::<usize>();
    assert!(bytes(&archived) < bytes(&before));

    // Other commands can read an archive.
    let summary: serde_json::Value = serde_json::from_slice(&archived["summary.json"]).unwrap();
    let records = &summary["records"];
    assert!(records["revisits"].as_u64().unwrap() > 10);
    let sum = records["copied"].as_u64().unwrap() + records["revisits"].as_u64().unwrap();
    assert_eq!(records["read"].as_u64().unwrap(), sum);
    let kept = |input: &str, output: &str| {
        let message = message(&["run", "--input", input, "--output", &at(output)]);
        message.lines().find(|line| line.contains(" pages kept")).unwrap().to_string()
    };
    assert_eq!(kept(&crawl, "run-before"), kept(&at("one"), "run-after"));
}

#[test]
fn archive_and_restore_errors_have_their_exit_codes() {
    let folder = tempfile::tempdir().unwrap();
    let crawl = crawl(folder.path());
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    fail(&["archive", &at("missing"), "--output", &at("out")], 3);
    let truth = format!("{crawl}/truth.tsv");
    assert!(fail(&["archive", &truth, "--output", &at("out")], 3).contains("the only inputs of an archive"));
    fail(&["archive", &crawl], 2);
    assert!(fail(&["restore", &crawl, "--output", &at("out")], 3).contains("manifest.json"));
    assert!(!Path::new(&at("out")).exists());

    message(&["archive", &crawl, "--output", &at("out")]);
    fail(&["archive", &crawl, "--output", &at("out")], 4);
    fail(&["archive", &crawl, "--output", &crawl], 2);
    assert!(fail(&["archive", &at("out"), "--output", &at("again")], 3).contains("restore that archive first"));
    assert!(!Path::new(&at("again")).exists());

    // Overwrites a payload, to which revisits refer, in place.
    let name = format!("{}/crawl-00000.warc.gz", at("out"));
    let mut bytes = std::fs::read(&name).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 20].fill(0x55);
    std::fs::write(&name, bytes).unwrap();
    fail(&["restore", &at("out"), "--output", &at("back")], 3);
    assert!(!Path::new(&at("back")).join("manifest.json").exists());
}

/// A response of a made-up crawl.
struct Response {
    uri: String,
    date: String,
    http: Vec<u8>,
    payload: Vec<u8>,
}

impl Response {
    /// Returns the responses of a WARC file.
    fn all(mut warc: &[u8]) -> Vec<Response> {
        let mut all = Vec::new();
        while !warc.is_empty() {
            let (head, rest) = after_blank_line(warc);
            let head = String::from_utf8_lossy(head).into_owned();
            let field =
                |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().to_string();
            let (block, behind) = rest.split_at(field("Content-Length: ").parse().unwrap());
            if field("WARC-Type: ") == "response" {
                let (http, payload) = after_blank_line(block);
                let (uri, date) = (field("WARC-Target-URI: "), field("WARC-Date: "));
                all.push(Response { uri, date, http: http.to_vec(), payload: payload.to_vec() });
            }
            warc = &behind[b"\r\n\r\n".len()..];
        }
        all
    }

    /// Writes the capture as a WARC record.
    fn record(&self) -> Vec<u8> {
        let record = Record::with("", [&self.http[..], &self.payload].concat())
            .lines(format!("WARC-Record-ID: <urn:id:{}>\r\n", self.uri));
        gzip(&Record { uri: Some(self.uri.clone()), date: "2023-11-14T22:13:20Z", ..record }.bytes())
    }

    /// Writes a capture of the same page a year later as a revisit. `lines` are the header lines
    /// that refer to its original.
    fn revisit(&self, lines: &str) -> Vec<u8> {
        let profile = "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\n";
        let id = format!("WARC-Record-ID: <urn:again:{}>\r\n", self.uri);
        let record = Record { uri: Some(self.uri.clone()), date: "2024-11-14T22:13:20Z", ..Record::of("") };
        let record = record.lines(format!("{profile}{id}{lines}"));
        gzip(&Record { kind: "revisit", version: "WARC/1.1", payload: self.http.clone(), ..record }.bytes())
    }
}

fn after_blank_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    bytes.split_at(bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4)
}

#[test]
fn near_copies_are_unchanged_by_a_week_of_revisits() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let crawl = crawl(folder.path());
    let week = std::fs::read(format!("{crawl}/crawl-00000.warc.gz")).unwrap();
    let near = |name: &str, weeks: &[(&str, &[u8])]| {
        std::fs::create_dir(at(name)).unwrap();
        weeks.iter().for_each(|(file, bytes)| std::fs::write(format!("{}/{file}", at(name)), bytes).unwrap());
        let (input, run, out, back) =
            (at(&format!("{name}/*.warc.gz")), at(&format!("{name}-run")), at(&format!("{name}-out")), at("back"));
        message(&["run", "--input", &input, "--output", &run]);
        message(&["archive", &input, "--run", &run, "--near", "--level", "3", "--output", &out]);
        message(&["restore", &out, "--output", &format!("{back}-{name}")]);
        assert!(unpacked(&files(&format!("{back}-{name}"))) == unpacked(&files(&at(name))));
        let summary = std::fs::read(format!("{out}/summary.json")).unwrap();
        serde_json::from_slice::<serde_json::Value>(&summary).unwrap()["records"]["near"].as_u64().unwrap()
    };
    let expected = near("alone", &[("week-1.warc.gz", &week)]);
    assert!(expected > 10);

    let responses = Response::all(&unpacked(&files(&crawl))["crawl-00000.warc.gz"]);
    let write_revisits = |lines: &dyn Fn(&Response) -> String| -> Vec<u8> {
        responses.iter().flat_map(|response| response.revisit(&lines(response))).collect()
    };
    let by_place = write_revisits(&|Response { uri, date, .. }| {
        format!("WARC-Refers-To-Target-URI: {uri}\r\nWARC-Refers-To-Date: {date}\r\n")
    });
    let by_digest = write_revisits(&|Response { payload, .. }| {
        let hexadecimal: String = Sha1::digest(payload).iter().map(|byte| format!("{byte:02x}")).collect();
        format!("WARC-Payload-Digest: sha1:{hexadecimal}\r\n")
    });
    assert_eq!(near("by-place", &[("week-1.warc.gz", &week), ("week-2.warc.gz", &by_place)]), expected);
    assert_eq!(near("by-digest", &[("week-1.warc.gz", &week), ("week-2.warc.gz", &by_digest)]), expected);
    assert_eq!(near("in-one-file", &[("both.warc.gz", &[&by_place[..], &week].concat())]), expected);
}

#[test]
fn incremental_archive_refers_to_the_older_one_and_needs_it_for_restore() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let crawl = unpacked(&files(&crawl(folder.path())));
    let responses = Response::all(&crawl["crawl-00000.warc.gz"]);
    for (month, is_of) in [("may", 0), ("june", 1)] {
        let half = responses.iter().enumerate().filter(|(number, _)| number % 2 == is_of);
        std::fs::create_dir(at(month)).unwrap();
        // Both crawls have a file with this name.
        let file = format!("{}/pages.warc.gz", at(month));
        std::fs::write(file, half.flat_map(|(_, response)| response.record()).collect::<Vec<u8>>()).unwrap();
    }
    message(&["archive", &at("may"), "--output", &at("may-out")]);
    let june = |older: &str, more: &[&str], output: &str| {
        let line =
            message(&[&["archive", &at("june"), "--against", &at(older), "--output", &at(output)], more].concat());
        assert!(line.contains(&format!("of these refer to {}", at(older))), "{line}");
        let summary: serde_json::Value = serde_json::from_slice(&files(&at(output))["summary.json"]).unwrap();
        let number = |value: &serde_json::Value| value.as_u64().unwrap();
        for counts in [&summary["records"], &summary["bytes"]] {
            let kinds = ["copied", "revisits", "near"].map(|kind| number(&counts[kind]));
            assert_eq!(number(&counts["read"]), kinds.iter().sum::<u64>());
        }
        assert_eq!(summary["bytes"]["read"], summary["bytes_in"]);
        (number(&summary["records"]["near"]), number(&summary["against"]))
    };
    let (_, referring) = june("may-out", &["--workers", "1"], "one");
    assert!(referring > 10);
    june("may-out", &["--workers", "3", "--memory", "0"], "three");
    assert!(files(&at("one")) == files(&at("three")));
    // In the crawl of May, unlike in its archive, no record is a reference. June can therefore
    // refer to more records.
    assert!(june("may", &[], "of-crawl").1 >= referring);

    let refused = fail(&["restore", &at("one"), "--output", &at("back")], 3);
    assert!(refused.contains(&format!("made against {}, so add it with --against", at("may-out"))), "{refused}");
    for older in ["may", "may-out"] {
        let back = at(&format!("back-with-{older}"));
        message(&["restore", &at("one"), "--against", &at(older), "--output", &back]);
        assert!(unpacked(&files(&back)) == unpacked(&files(&at("june"))));
    }

    let [may, june_files] = ["may-out", "june"].map(|month| at(&format!("{month}/*.warc.gz")));
    message(&["run", "--input", &may, "--input", &june_files, "--output", &at("run")]);
    let (near, all) = june("may-out", &["--run", &at("run"), "--near", "--level", "3"], "near");
    assert!(near > 10 && all > referring, "{near} differences, {all} references to older records, {referring} before");
    fail(&["restore", &at("near"), "--output", &at("back")], 3);
    message(&["restore", &at("near"), "--against", &at("may-out"), "--output", &at("back")]);
    assert!(unpacked(&files(&at("back"))) == unpacked(&files(&at("june"))));
}

#[test]
fn an_index_leads_to_each_capture_of_an_archive() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let crawl = crawl(folder.path());
    let responses = Response::all(&unpacked(&files(&crawl))["crawl-00000.warc.gz"]);
    let by_place = |Response { uri, date, .. }: &Response| {
        format!("WARC-Refers-To-Target-URI: {uri}\r\nWARC-Refers-To-Date: {date}\r\n")
    };
    // The input also has revisits of its own, after bytes that are not a record.
    let again = responses.iter().take(50).map(|response| response.revisit(&by_place(response)));
    let again: Vec<u8> = [b"odd".to_vec()].into_iter().chain(again).flatten().collect();
    std::fs::create_dir(format!("{crawl}/week-2")).unwrap();
    let again = [&gzip(b"WARC/1.1\r\nWARC-Type: warcinfo\r\nContent-Length: 0\r\n\r\n\r\n\r\n")[..], &again].concat();
    std::fs::write(format!("{crawl}/week-2/again.warc.gz"), again).unwrap();
    message(&["run", "--input", &crawl, "--output", &at("run")]);
    let near = ["archive", &crawl, "--run", &at("run"), "--near", "--level", "1", "--cdxj", "--output"];
    message(&[&near[..], &[&at("one"), "--workers", "1"]].concat());
    message(&[&near[..], &[&at("three"), "--workers", "3", "--memory", "0"]].concat());
    let one = files(&at("one"));
    assert!(one == files(&at("three")));

    let index = String::from_utf8(one["index.cdxj"].clone()).unwrap();
    assert!(index.lines().is_sorted());
    let mut kinds = BTreeMap::<&str, u64>::new();
    for line in index.lines() {
        let [_, timestamp, fields] = line.splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let fields: serde_json::Value = serde_json::from_str(fields).unwrap();
        let text = |name: &str| fields[name].as_str().unwrap();
        let [offset, length] = ["offset", "length"].map(|name| text(name).parse::<usize>().unwrap());
        // The offset in the index leads to one gzip member with the capture of the index line.
        let mut record = Vec::new();
        let file = &one[text("filename")][offset..offset + length];
        flate2::read::GzDecoder::new(file).read_to_end(&mut record).unwrap();
        let record = String::from_utf8_lossy(&record).into_owned();
        let has = |line: String| record.contains(&format!("\r\n{line}\r\n"));
        assert!(has(format!("WARC-Target-URI: {}", text("url"))), "{line}");
        let date: String = record.split("WARC-Date: ").nth(1).unwrap().chars().take(20).collect();
        assert_eq!(date.replace(['-', ':', 'T', 'Z'], ""), timestamp);
        assert_eq!(text("status"), "200");
        let kind = if text("mime") == "warc/revisit" { "revisit" } else { "response" };
        assert!(has(format!("WARC-Type: {kind}")), "{line}");
        *kinds.entry(kind).or_default() += 1;
    }
    let summary: serde_json::Value = serde_json::from_slice(&one["summary.json"]).unwrap();
    let [revisits, near] = ["revisits", "near"].map(|kind| summary["records"][kind].as_u64().unwrap());
    assert!(revisits > 10 && near > 10);
    assert_eq!(kinds["revisit"], revisits + 50);
    assert_eq!(kinds["response"], responses.len() as u64 - revisits - near);
    message(&["restore", &at("one"), "--output", &at("back")]);
    let plain = ["archive", &crawl, "--output", &at("plain")];
    message(&plain);
    assert!(!files(&at("plain")).contains_key("index.cdxj"));
}

#[test]
fn near_copies_are_measured_or_written_as_differences_and_restored() {
    let folder = tempfile::tempdir().unwrap();
    let crawl = crawl(folder.path());
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let input = format!("{crawl}/*.warc.gz");
    message(&["run", "--input", &input, "--output", &at("run")]);
    fail(&["archive", &input, "--near", "--output", &at("x")], 2);
    let other = at("crawl/../crawl/*.warc.gz");
    assert!(
        fail(&["archive", &other, "--run", &at("run"), "--output", &at("x")], 3)
            .contains("name the files as that run did")
    );

    let table = succeed(&["archive", &input, "--run", &at("run"), "--output", &at("measured")]);
    assert!(table.contains("near-copies as differences"), "{table}");
    message(&["archive", &input, "--output", &at("plain")]);
    let run_near = |name: &str| {
        let mut files = files(&at(name));
        let summary = files.remove("summary.json").unwrap();
        (files, serde_json::from_slice::<serde_json::Value>(&summary).unwrap())
    };
    let ((measured, predicted), (plain, _)) = (run_near("measured"), run_near("plain"));
    assert!(measured == plain);

    message(&["archive", &input, "--run", &at("run"), "--near", "--output", &at("near"), "--workers", "1"]);
    message(&["archive", &input, "--run", &at("run"), "--near", "--output", &at("same"), "--workers", "3"]);
    assert!(files(&at("near")) == files(&at("same")));
    let (written, summary) = run_near("near");
    let number = |value: &serde_json::Value| value.as_u64().unwrap();
    assert!(number(&summary["records"]["near"]) > 10);
    assert_eq!(summary["records"]["near"], predicted["near"]["records"]);
    let saved = number(&predicted["near"]["stored_bytes"]) - number(&predicted["near"]["near_bytes"]);
    assert_eq!(number(&summary["bytes_out"]) + saved, number(&predicted["bytes_out"]));

    // Restoring works with every compression level.
    let fast = ["archive", &input, "--run", &at("run"), "--near", "--level", "1", "--output", &at("fast")];
    message(&fast);
    message(&["restore", &at("fast"), "--output", &at("back-from-fast")]);
    assert!(unpacked(&files(&at("back-from-fast"))) == unpacked(&files(&crawl)));
    fail(&["archive", &input, "--run", &at("run"), "--level", "20", "--output", &at("x")], 2);

    // For other tools, the record that replaces a near-copy is a note about the crawl and not a
    // page.
    let notes: usize =
        unpacked(&written).values().map(|file| String::from_utf8_lossy(file).matches("\nWebtwin-Near: ").count()).sum();
    assert_eq!(notes as u64, number(&summary["records"]["near"]));
    message(&["restore", &at("near"), "--output", &at("back")]);
    assert!(unpacked(&files(&at("back"))) == unpacked(&files(&crawl)));

    let differences = Path::new(&at("near")).join("_near/crawl-00000.warc.gz.near");
    let mut bytes = std::fs::read(&differences).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&differences, bytes).unwrap();
    fail(&["restore", &at("near"), "--output", &at("damaged")], 3);
    std::fs::remove_file(&differences).unwrap();
    fail(&["restore", &at("near"), "--output", &at("damaged")], 3);
}
