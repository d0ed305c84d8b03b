use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::support::program::{fail, rows, succeed, the_same_on_any_workers};

/// Three sites with one manual of six pages that link in a chain; b is the newest, c has the longest pages, and a site of
/// its own links to a.
fn crawl(folder: &Path) -> String {
    let mut lines = String::new();
    for (site, time, extra) in [("a", 100, ""), ("b", 300, ""), ("c", 200, "<p>one line more")] {
        for page in 0..6 {
            let text: String =
                (0..12).map(|line| format!("<p>Page {page} says {line} times {}", page * 100 + line)).collect();
            let next = (page + 1) % 6;
            let html = format!("<html>{text}{extra}<p><a href='{next}.html'>next</a>");
            let url = format!("http://{site}.example/manual/{page}.html");
            let line = serde_json::json!({"url": url, "html": html, "fetch_time": 1_700_000_000 + time});
            lines.push_str(&format!("{line}\n"));
        }
    }
    let home = "<a href='http://a.example/manual/0.html'>the manual</a>";
    lines.push_str(&format!("{}\n", serde_json::json!({"url": "http://home.example/", "html": home})));
    let path = folder.join("crawl.jsonl");
    std::fs::write(&path, lines).unwrap();
    path.to_str().unwrap().to_string()
}

fn site(url: &serde_json::Value) -> String {
    url.as_str().unwrap()[7..8].to_string()
}

/// The sites that are kept, those of the collections that are, and what the pages of each other site lost by.
fn kept(output: &str) -> (BTreeSet<String>, BTreeSet<String>, BTreeMap<String, BTreeSet<String>>) {
    let avoid = rows(output, "avoid");
    assert_eq!(avoid.len(), 12);
    let mut lost: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in &avoid {
        lost.entry(site(&row["url"])).or_default().insert(row["lost_by"].as_str().unwrap().into());
    }
    let collections = rows(output, "collections");
    assert_eq!(collections.len(), 3);
    let of_collections = collections.iter().filter(|row| row["keep"] == true).map(|row| site(&row["root_url"]));
    (avoid.iter().map(|row| site(&row["keep_url"])).collect(), of_collections.collect(), lost)
}

#[test]
fn a_whole_copy_stays_by_the_rule_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let input = crawl(folder.path());
    for (name, sets, stays) in [
        ("links", &["keep.by=links"][..], "a"),
        ("newest", &["keep.by=newest"], "b"),
        ("oldest", &["keep.by=oldest"], "a"),
        ("longest", &["keep.by=longest"], "c"),
        ("prefer", &["keep.prefer=[\"http://c.*\", \"http://b.*\"]", "keep.by=newest"], "c"),
        ("second", &["keep.prefer=[\"http://none/*\", \"*b.example/manual*\"]"], "b"),
    ] {
        let output = folder.path().join(name).to_str().unwrap().to_string();
        let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
        succeed(&[&["run", "--input", &input, "--output", &output], &sets[..]].concat());
        let one: BTreeSet<String> = [stays.to_string()].into();
        let (pages, collections, lost) = kept(&output);
        assert_eq!((pages, collections), (one.clone(), one), "{name}");
        let by = if matches!(name, "prefer" | "second") { "prefer" } else { "collection" };
        assert!(lost.values().all(|words| words.iter().eq([by])), "{name}: {lost:?}");
    }
}

#[test]
fn pages_without_a_collection_stay_by_the_rule_too_and_the_list_says_by_what() {
    let folder = tempfile::tempdir().unwrap();
    let input = crawl(folder.path());
    let output = folder.path().join("out").to_str().unwrap().to_string();
    let apart = ["--set", "clusters.min_size=100", "--set", "keep.by=newest"];
    succeed(&[&["run", "--input", &input, "--output", &output], &apart[..]].concat());
    let avoid = rows(&output, "avoid");
    assert_eq!(avoid.len(), 12);
    assert!(avoid.iter().all(|row| site(&row["keep_url"]) == "b" && row["lost_by"] == "newest"), "{avoid:?}");
}

#[test]
fn votes_are_the_same_on_any_workers() {
    let folder = tempfile::tempdir().unwrap();
    let input = crawl(folder.path());
    the_same_on_any_workers(folder.path(), "keep", &["run", "--input", &input, "--set", "keep.by=longest"]);
}

#[test]
fn a_glob_that_is_none_is_refused_before_the_run() {
    let text = fail(&["check", "--set", "keep.prefer=[\"http://a/***\"]"], 2);
    assert!(text.contains("keep.prefer"), "{text}");
}
