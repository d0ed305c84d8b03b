//! `explain` on finished runs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::support::planted::write_crawl;
use crate::support::program::{fail, rows, succeed};

/// A crawl in files, its truth, and a run over it.
struct Compared {
    folder: tempfile::TempDir,
}

impl Compared {
    fn new() -> Compared {
        let compared = Compared { folder: tempfile::tempdir().unwrap() };
        write_crawl(&compared.at("crawl"), 800, 7);
        std::fs::copy(compared.at("crawl/truth.tsv"), compared.at("truth.tsv")).unwrap();
        compared.run("out", &[]);
        compared
    }

    fn at(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_string()
    }

    fn run(&self, name: &str, settings: &[&str]) {
        let input = self.at("crawl") + "/*.warc.gz";
        succeed(&[&["run", "--input", &input, "--output", &self.at(name)], settings].concat());
    }

    /// Returns the rows of the truth: URL, target, page and variant.
    fn truth(&self) -> Vec<[String; 4]> {
        let text = std::fs::read_to_string(self.at("truth.tsv")).unwrap();
        let row = |line: &str| {
            let fields: Vec<&str> = line.split('\t').collect();
            [0, 1, 3, 4].map(|at| fields[at].to_string())
        };
        text.lines().skip(1).map(row).collect()
    }
}

#[test]
fn two_pages_are_explained_from_the_finished_run_and_its_input() {
    let compared = Compared::new();
    let truth = compared.truth();
    let first = truth.iter().find(|row| row[3] == "exact").unwrap();
    let same = truth.iter().find(|row| row[1..3] == first[1..3] && row[0] != first[0]).unwrap();
    let other = truth.iter().find(|row| row[3] == "single").unwrap();
    let explain = |run: &str, a: &str, b: &str, more: &[&str]| -> Value {
        let json = succeed(&[&["explain", &compared.at(run), a, b, "--json"], more].concat());
        serde_json::from_str(&json).unwrap()
    };
    let explanation = explain("out", &first[0], &same[0], &[]);
    assert_eq!(
        (&explanation["together"], explanation["chain"].as_array().unwrap().is_empty()),
        (&Value::Bool(true), false),
        "{explanation}"
    );
    let explanation = explain("out", &first[0], &other[0], &[]);
    assert_eq!(explanation["together"], false);
    assert!(
        !explanation["reasons"].as_array().unwrap().is_empty() && explanation["chain"].as_array().unwrap().is_empty(),
        "{explanation}"
    );
    let text = succeed(&["explain", &compared.at("out"), &first[0], &other[0]]);
    assert!(text.contains("APART:") && text.contains("BY MEASURE:") && text.contains("DIFFERENCE"), "{text}");

    // A run with the table of chunks gives `explain` the same information as reading the whole
    // crawl.
    compared.run("with-table", &["--set", "output.fprint_docid=true"]);
    let crawl = explain("out", &first[0], &same[0], &["--read-crawl"]);
    assert_eq!(crawl, explain("with-table", &first[0], &same[0], &[]));
    assert_eq!(crawl["overlap"]["known"], "crawl");

    let message = fail(&["explain", &compared.at("out"), &first[0], "http://nowhere.example/"], 3);
    assert!(message.contains("http://nowhere.example/ is not a page of this run"), "{message}");
    // `explain` detects that another crawl is at the same location.
    std::fs::remove_dir_all(compared.at("crawl")).unwrap();
    write_crawl(&compared.at("crawl"), 800, 8);
    let message = fail(&["explain", &compared.at("out"), &first[0], &other[0]], 3);
    assert!(message.contains("the input has changed since"), "{message}");
    std::fs::remove_dir_all(compared.at("crawl")).unwrap();
    let message = fail(&["explain", &compared.at("out"), &first[0], &other[0]], 3);
    assert!(message.contains("cannot be read again"), "{message}");
}

#[test]
fn every_form_of_input_can_be_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let text = |n: usize| -> String {
        (0..30).map(|line| format!("page {n} says {} in line {line}<br>\n", n * line)).collect()
    };
    std::fs::create_dir(at("site")).unwrap();
    let mut lines = String::new();
    for n in 0..5 {
        std::fs::write(at(&format!("site/{n}.html")), text(n)).unwrap();
        let row = serde_json::json!({"url": format!("http://localhost/{n}.html"), "html": text(n)});
        lines.push_str(&format!("{row}\n"));
    }
    std::fs::write(at("pages.jsonl"), &lines).unwrap();
    std::fs::write(at("pages.jsonl.zst"), zstd::encode_all(lines.as_bytes(), 1).unwrap()).unwrap();
    let mut texts = Vec::new();
    for (number, input) in ["site", "pages.jsonl", "pages.jsonl.zst"].into_iter().enumerate() {
        let out = at(&number.to_string());
        succeed(&["run", "--input", &at(input), "--output", &out]);
        let text = succeed(&["explain", &out, "http://localhost/1.html", "http://localhost/4.html", "--limit", "0"]);
        assert!(text.contains("page 4 says 40 in line 10"), "{text}");
        texts.push(text);
    }
    assert!(texts.iter().all(|text| *text == texts[0]));
}

/// \[CSG00\] Definitions 3 and 7, recomputed from the tables alone.
#[test]
fn identical_collections_have_the_same_texts_and_the_same_links_between_them() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out").to_str().unwrap().to_string();
    succeed(&["run", "--input", "synth://?pages=800&seed=7", "--output", &out]);
    let table = |name: &str| rows(&out, name);
    let text = |row: &Value, column: &str| row[column].as_str().unwrap().to_string();
    let same: BTreeMap<String, String> = table("pairs")
        .iter()
        .filter(|row| row["measure"] == "exact")
        .map(|row| (text(row, "b"), text(row, "a")))
        .collect();
    // Pages of each collection by trivial cluster, with the first page of the same text.
    let mut pages: BTreeMap<String, BTreeSet<(String, String)>> = BTreeMap::new();
    let mut place: BTreeMap<String, (String, String)> = BTreeMap::new();
    for row in table("members") {
        let (page, cluster) = (text(&row, "doc_id"), text(&row, "cluster"));
        let first = same.get(&page).unwrap_or(&page).clone();
        pages.entry(text(&row, "collection")).or_default().insert((cluster.clone(), first));
        place.insert(page, (text(&row, "collection"), cluster));
    }
    let mut links: BTreeMap<String, BTreeSet<(String, String)>> = BTreeMap::new();
    for row in table("links") {
        if let (Some(from), Some(to)) = (place.get(&text(&row, "src")), place.get(&text(&row, "dst")))
            && from.0 == to.0
        {
            links.entry(from.0.clone()).or_default().insert((from.1.clone(), to.1.clone()));
        }
    }
    let collections = table("collections");
    let mut identical = 0;
    for row in &collections {
        let of_cluster = collections.iter().filter(|other| other["similar_cluster"] == row["similar_cluster"]);
        let content = |row: &Value| (&pages[&text(row, "collection")], links.get(&text(row, "collection")));
        let first = of_cluster.into_iter().find(|other| content(other) == content(row)).unwrap();
        assert_eq!(row["identical_to"], first["collection"]);
        identical += usize::from(row["identical_to"] != row["collection"]);
    }
    assert!(identical > 0 && identical + 2 < collections.len(), "{identical} of {}", collections.len());
    let summary: Value =
        serde_json::from_str(&std::fs::read_to_string(format!("{out}/summary.json")).unwrap()).unwrap();
    assert!(summary["identical_collections"].as_u64().unwrap() > identical as u64);
}

#[test]
fn exact_copy_is_explained_by_the_chunks_of_its_representative() {
    let compared = Compared::new();
    let out = compared.at("out");
    let text = |row: &Value, column: &str| row[column].as_str().unwrap().to_string();
    let urls: BTreeMap<String, String> =
        rows(&out, "pages").iter().map(|row| (text(row, "doc_id"), text(row, "url"))).collect();
    let pairs = rows(&out, "pairs");
    let copies: BTreeMap<String, String> =
        pairs.iter().filter(|row| row["measure"] == "exact").map(|row| (text(row, "a"), text(row, "b"))).collect();
    let by_overlap = pairs.iter().filter(|row| row["measure"] == "overlap");
    let (a, copy) = by_overlap.filter_map(|row| Some((text(row, "a"), copies.get(&text(row, "b"))?))).next().unwrap();
    let explanation = succeed(&["explain", &out, &urls[&a], &urls[copy], "--json"]);
    let explanation: Value = serde_json::from_str(&explanation).unwrap();
    let overlap = &explanation["overlap"];
    assert!(overlap["shared"].as_u64().unwrap() > 0 && overlap["chunks"][1].as_u64().unwrap() > 0, "{overlap}");
}
