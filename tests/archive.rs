use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use flate2::read::MultiGzDecoder;

use crate::support::program::{fail, files, succeed, webtwin};

/// A made-up crawl with exact copies, in a folder of its own.
fn crawl(folder: &Path) -> String {
    let path = folder.join("crawl").to_str().unwrap().to_string();
    succeed(&["synth", "--output", &path, "--pages", "600", "--seed", "3"]);
    path
}

fn told(arguments: &[&str]) -> String {
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
fn a_crawl_is_archived_the_same_by_any_threads_and_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let crawl = crawl(folder.path());
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    // Side files such as truth.tsv are passed over.
    let line = told(&["archive", &crawl, "--output", &at("one"), "--workers", "1"]);
    assert!(line.contains("passed over 1 that are no WARC files") && line.contains("written as revisits"), "{line}");
    told(&["archive", &crawl, "--output", &at("three"), "--workers", "3", "--memory", "0"]);
    assert!(files(&at("one")) == files(&at("three")));

    let line = told(&["restore", &at("one"), "--output", &at("back")]);
    assert!(line.contains("all as they were archived"), "{line}");
    let (before, archived, after) = (files(&crawl), files(&at("one")), files(&at("back")));
    assert!(unpacked(&before) == unpacked(&after));
    let bytes = |files: &BTreeMap<String, Vec<u8>>| unpacked(files).values().map(Vec::len).sum::<usize>();
    assert!(bytes(&archived) < bytes(&before));

    // What an archive is made of, other commands read.
    let summary: serde_json::Value = serde_json::from_slice(&archived["summary.json"]).unwrap();
    let records = &summary["records"];
    assert!(records["revisits"].as_u64().unwrap() > 10);
    let sum = records["copied"].as_u64().unwrap() + records["revisits"].as_u64().unwrap();
    assert_eq!(records["read"].as_u64().unwrap(), sum);
    let kept = |input: &str, output: &str| {
        let told = told(&["run", "--input", input, "--output", &at(output)]);
        told.lines().find(|line| line.contains(" pages kept")).unwrap().to_string()
    };
    assert_eq!(kept(&crawl, "run-before"), kept(&at("one"), "run-after"));
}

#[test]
fn what_cannot_be_archived_or_restored_is_told_by_code() {
    let folder = tempfile::tempdir().unwrap();
    let crawl = crawl(folder.path());
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    fail(&["archive", &at("missing"), "--output", &at("out")], 3);
    let truth = format!("{crawl}/truth.tsv");
    assert!(fail(&["archive", &truth, "--output", &at("out")], 3).contains("made of WARC files"));
    fail(&["archive", &crawl], 2);
    assert!(fail(&["restore", &crawl, "--output", &at("out")], 3).contains("manifest.json"));
    assert!(!Path::new(&at("out")).exists());

    told(&["archive", &crawl, "--output", &at("out")]);
    fail(&["archive", &crawl, "--output", &at("out")], 4);
    fail(&["archive", &crawl, "--output", &crawl], 2);
    assert!(fail(&["archive", &at("out"), "--output", &at("again")], 3).contains("restore it first"));
    assert!(!Path::new(&at("again")).exists());

    // A payload that revisits refer to is changed where it is.
    let name = format!("{}/crawl-00000.warc.gz", at("out"));
    let mut bytes = std::fs::read(&name).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 20].fill(0x55);
    std::fs::write(&name, bytes).unwrap();
    fail(&["restore", &at("out"), "--output", &at("back")], 3);
    assert!(!Path::new(&at("back")).join("manifest.json").exists());
}

#[test]
fn near_copies_are_measured_or_written_as_differences_and_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let crawl = crawl(folder.path());
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let input = format!("{crawl}/*.warc.gz");
    told(&["run", "--input", &input, "--output", &at("run")]);
    fail(&["archive", &input, "--near", "--output", &at("x")], 2);
    let other = at("crawl/../crawl/*.warc.gz");
    assert!(fail(&["archive", &other, "--run", &at("run"), "--output", &at("x")], 3).contains("name them alike"));

    let table = succeed(&["archive", &input, "--run", &at("run"), "--output", &at("measured")]);
    assert!(table.contains("near-copies as differences"), "{table}");
    told(&["archive", &input, "--output", &at("plain")]);
    let of = |name: &str| {
        let mut files = files(&at(name));
        let summary = files.remove("summary.json").unwrap();
        (files, serde_json::from_slice::<serde_json::Value>(&summary).unwrap())
    };
    let ((measured, predicted), (plain, _)) = (of("measured"), of("plain"));
    assert!(measured == plain);

    told(&["archive", &input, "--run", &at("run"), "--near", "--output", &at("near"), "--workers", "1"]);
    told(&["archive", &input, "--run", &at("run"), "--near", "--output", &at("same"), "--workers", "3"]);
    assert!(files(&at("near")) == files(&at("same")));
    let (written, summary) = of("near");
    let number = |value: &serde_json::Value| value.as_u64().unwrap();
    assert!(number(&summary["records"]["near"]) > 10);
    assert_eq!(summary["records"]["near"], predicted["near"]["records"]);
    let saved = number(&predicted["near"]["stored_bytes"]) - number(&predicted["near"]["near_bytes"]);
    assert_eq!(number(&summary["bytes_out"]) + saved, number(&predicted["bytes_out"]));

    // At any level it comes back.
    let fast = ["archive", &input, "--run", &at("run"), "--near", "--level", "1", "--output", &at("fast")];
    told(&fast);
    told(&["restore", &at("fast"), "--output", &at("back-from-fast")]);
    assert!(unpacked(&files(&at("back-from-fast"))) == unpacked(&files(&crawl)));
    fail(&["archive", &input, "--run", &at("run"), "--level", "20", "--output", &at("x")], 2);

    // Other tools see what stands for a near-copy as a note about the crawl, which is no page.
    let notes: usize =
        unpacked(&written).values().map(|file| String::from_utf8_lossy(file).matches("\nWebtwin-Near: ").count()).sum();
    assert_eq!(notes as u64, number(&summary["records"]["near"]));
    told(&["restore", &at("near"), "--output", &at("back")]);
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
