//! A crawler that obeys the avoid list loses no page that the list reports as kept.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::support::planted::write_crawl;
use crate::support::program::{assert_same_on_any_workers, files, rows, succeed};

/// Returns twelve lines of text that are unique to `name`.
fn text(name: &str) -> String {
    (0..12).map(|line| format!("<p>The page {name} says {line} in the words of {name}{line}</p>")).collect()
}

fn write(folder: &Path, pages: &[(&str, String)]) -> String {
    let mut lines = String::new();
    for (url, html) in pages {
        let mime = if url.ends_with(".txt") { "text/plain" } else { "text/html" };
        lines += &format!("{}\n", serde_json::json!({"url": url, "html": html, "mime": mime}));
    }
    let path = folder.join("crawl.jsonl");
    std::fs::write(&path, lines).unwrap();
    path.to_str().unwrap().to_string()
}

fn link(to: &str) -> String {
    format!("<a href='{to}'>on</a>")
}

/// Writes a crawl in which the entry page of a manual, to which a third site links, is an exact
/// copy of its main page. A mirror of the manual has one page more. Both sites have the same
/// `robots.txt`.
fn crawl(folder: &Path) -> String {
    let (main, robots) = (text("main") + &link("a.html") + &link("b.html"), text("robots"));
    let pages = [
        ("http://one.example/", text("home") + &link("git/index.html")),
        ("http://one.example/git/index.html", main.clone()),
        ("http://one.example/git/git.html", main.clone()),
        ("http://one.example/git/a.html", text("a") + &link("git.html") + &link("b.html")),
        ("http://one.example/git/b.html", text("b") + &link("git.html") + &link("a.html")),
        ("http://one.example/robots.txt", robots.clone()),
        ("http://two.example/", text("other") + &link("m/git.html")),
        ("http://two.example/m/git.html", main),
        ("http://two.example/m/a.html", text("a") + &link("git.html") + &link("b.html")),
        ("http://two.example/m/b.html", text("b") + &link("git.html") + &link("own.html")),
        ("http://two.example/m/own.html", text("own") + &link("git.html")),
        ("http://two.example/robots.txt", robots),
        ("http://three.example/", text("three") + &link("http://one.example/git/a.html")),
    ];
    write(folder, &pages)
}

fn role(output: &str) -> BTreeMap<String, String> {
    let word = |value: &serde_json::Value| value.as_str().unwrap().to_string();
    let id = |value: &serde_json::Value| value.to_string().trim_matches('"').to_string();
    let urls: BTreeMap<String, String> =
        rows(output, "pages").iter().map(|row| (id(&row["doc_id"]), word(&row["url"]))).collect();
    rows(output, "clusters").iter().map(|row| (urls[&id(&row["doc_id"])].clone(), word(&row["role"]))).collect()
}

/// Returns the pages that stay but cannot be reached from the first page of their host by the table
/// `links` without skipped pages.
fn cut_off(output: &str) -> BTreeSet<String> {
    let id = |value: &serde_json::Value| value.to_string().trim_matches('"').to_string();
    let pages = rows(output, "pages");
    let mut first: BTreeMap<String, (usize, String)> = BTreeMap::new();
    for row in &pages {
        let url = row["url"].as_str().unwrap();
        let host = url.split('/').nth(2).unwrap().to_string();
        let this = (url.len(), id(&row["doc_id"]));
        first.entry(host).and_modify(|so_far| *so_far = this.clone().min(so_far.clone())).or_insert(this);
    }
    let skip: BTreeSet<String> = rows(output, "avoid").iter().map(|row| id(&row["doc_id"])).collect();
    let links: Vec<(String, String)> =
        rows(output, "links").iter().map(|row| (id(&row["src"]), id(&row["dst"]))).collect();
    let reached = |skip: &BTreeSet<String>| {
        let mut reached: BTreeSet<String> =
            first.values().map(|page| page.1.clone()).filter(|page| !skip.contains(page)).collect();
        loop {
            let before = reached.len();
            for (src, dst) in &links {
                if reached.contains(src) && !skip.contains(dst) {
                    reached.insert(dst.clone());
                }
            }
            if reached.len() == before {
                return reached;
            }
        }
    };
    reached(&BTreeSet::new()).difference(&reached(&skip)).filter(|page| !skip.contains(*page)).cloned().collect()
}

#[test]
fn entry_pages_pages_on_paths_and_robots_are_visited() {
    let folder = tempfile::tempdir().unwrap();
    let input = crawl(folder.path());
    let (output, _) = assert_same_on_any_workers(folder.path(), "out", &["run", "--input", &input]);
    let role = role(&output);
    // The home page links only to index.html.
    assert_eq!(role["http://one.example/git/index.html"], "keep", "{role:?}");
    assert_eq!(role["http://one.example/git/git.html"], "exact");
    // own.html is reached through git.html and b.html of its site.
    assert_eq!(role["http://two.example/m/git.html"], "way");
    assert_eq!(role["http://two.example/m/b.html"], "way");
    assert_eq!(role["http://two.example/m/a.html"], "exact");
    let robots: BTreeSet<&str> =
        ["one", "two"].map(|site| role[&format!("http://{site}.example/robots.txt")].as_str()).into();
    assert_eq!(robots, BTreeSet::from(["keep", "must-visit"]));
    assert_eq!(cut_off(&output), BTreeSet::new());
    let summary: serde_json::Value =
        serde_json::from_slice(&std::fs::read(format!("{output}/summary.json")).unwrap()).unwrap();
    assert_eq!(summary["ways"]["visited_for_the_way"], 2, "{}", summary["ways"]);
    assert_eq!(summary["ways"]["cut_off"], 0);
}

#[test]
fn one_of_two_mirrors_on_one_host_stays_complete() {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..8).map(|page| format!("page{page}")).collect();
    let mut pages = vec![("http://one.example/".to_string(), text("home") + &link("v1/0.html") + &link("v2/0.html"))];
    for version in ["v1", "v2"] {
        for (number, name) in names.iter().enumerate() {
            let html = text(name) + &link(&format!("{}.html", number + 1)) + &link("0.html");
            pages.push((format!("http://one.example/{version}/{number}.html"), html));
        }
    }
    let pages: Vec<(&str, String)> = pages.iter().map(|(url, html)| (&url[..], html.clone())).collect();
    let input = write(folder.path(), &pages);
    let (output, _) = assert_same_on_any_workers(folder.path(), "out", &["run", "--input", &input]);
    let kept_pages: BTreeSet<String> = role(&output)
        .into_iter()
        .filter(|(_, role)| role == "keep")
        .map(|(url, _)| url.split('/').nth(3).unwrap().to_string())
        .collect();
    assert_eq!(kept_pages.len(), 1, "{kept_pages:?}");
    assert!(rows(&output, "collections").is_empty());
    assert_eq!(cut_off(&output), BTreeSet::new());
}

#[test]
fn seeds_are_visited_and_dissimilar_pages_if_requested() {
    let folder = tempfile::tempdir().unwrap();
    let half = |own: &str| text("shared") + &text("common") + &text(own);
    let pages = [
        ("http://one.example/", half("x") + &link("same.html")),
        ("http://two.example/page", half("y") + &link("same.html")),
        ("http://one.example/same.html", text("same")),
        ("http://two.example/same.html", text("same")),
    ];
    let input = write(folder.path(), &pages);
    let run = |name: &str, sets: &[&str]| {
        let output = folder.path().join(name).to_str().unwrap().to_string();
        let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
        succeed(&[&["run", "--input", &input, "--output", &output], &sets[..]].concat());
        output
    };
    // By default two pages that share half of their text need the support of a collection; this
    // setting drops that rule.
    let weak = "overlap.min_resemblance_alone=0";
    let output = run("all", &[weak]);
    let skipped = rows(&output, "avoid");
    let row = |url: &str| skipped.iter().find(|row| row["url"] == url).unwrap_or_else(|| panic!("{skipped:?}"));
    let similar = row("http://two.example/page");
    // 24 lines and the link of 48 lines and the link are shared.
    assert_eq!((similar["resemblance"].as_f64(), similar["kind"].as_str()), (Some(0.510204), Some("version")));
    let same = row("http://two.example/same.html");
    assert_eq!((same["resemblance"].as_f64(), same["kind"].as_str()), (Some(1.0), Some("copy")));
    assert_eq!(same["keep_is"], "unknown");

    // Of its 36 lines and the link, the page that stays contains 24 lines and the link.
    assert_eq!(similar["contained"].as_f64(), Some(0.675676));

    let output = run("alike", &[weak, "keep.min_resemblance=0.7"]);
    assert_eq!(role(&output)["http://two.example/page"], "unlike");
    assert_eq!(rows(&output, "avoid").len(), 1);
    let output = run("seeds", &["keep.seeds=[\"http://two.example:80/same.html\"]"]);
    assert!(rows(&output, "avoid").iter().all(|row| row["url"] != "http://two.example/same.html"));
}

#[test]
fn no_page_of_synthetic_crawls_becomes_unreachable() {
    for seed in 1..4 {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
        write_crawl(&at("made"), 1500, seed);
        succeed(&["run", "--input", &at("made"), "--output", &at("out")]);
        assert_eq!(cut_off(&at("out")), BTreeSet::new(), "seed {seed}");
    }
}

/// Exports of a result, of which the parts of a list are joined.
fn joined_exports(output: &str) -> BTreeMap<String, Vec<u8>> {
    let mut joined: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for (path, bytes) in files(output) {
        let Some(name) = path.strip_prefix("exports/") else { continue };
        let (stem, extension) = name.rsplit_once('.').unwrap();
        let number = stem.rsplit_once('-').filter(|(_, number)| number.len() == 5 && number.parse::<u32>().is_ok());
        let name = number.map_or(name.to_string(), |(stem, _)| format!("{stem}.{extension}"));
        joined.entry(name).or_default().extend(bytes);
    }
    joined
}

#[test]
fn parts_of_large_lists_are_the_lists_and_are_read_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let run = ["run", "--input", "synth://?pages=3000&seed=7"];
    let divide = [&run[..], &["--set", "output.export_bytes=4096"]].concat();
    let (divided, _) = assert_same_on_any_workers(folder.path(), "divided", &divide);
    succeed(&[&run[..], &["--output", &at("whole")]].concat());
    let parts = files(&divided).keys().filter(|path| path.starts_with("exports/urls-0")).count();
    assert!(parts > 3, "{parts}");
    assert!(files(&divided).contains_key("exports/prefixes-00001.tsv"));
    let whole = joined_exports(&at("whole"));
    assert_eq!(joined_exports(&divided).keys().collect::<Vec<_>>(), whole.keys().collect::<Vec<_>>());
    for (name, bytes) in joined_exports(&divided) {
        assert!(bytes == whole[&name], "{name}");
    }

    for (name, result) in [("whole", at("whole")), ("divided", divided)] {
        succeed(&["diff", &result, &result, "--output", &at(&format!("diff-{name}"))]);
        succeed(&["index", &result, "--output", &at(&format!("index-{name}"))]);
        succeed(&["report", &result, "--output", &at(&format!("{name}.html"))]);
    }
    assert!(joined_exports(&at("diff-divided")) == joined_exports(&at("diff-whole")));
    let prefixes = |name: &str| files(&at(name)).into_iter().find(|(path, _)| path.contains("prefixes")).unwrap();
    assert!(prefixes("index-divided") == prefixes("index-whole"));
    let report = std::fs::read_to_string(at("divided.html")).unwrap();
    assert!(report.contains("exports/urls-00000.txt"));
}
