use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::support::program::{assert_same_on_any_workers, fail, files, rows, stderr_text, succeed, webtwin};

/// Writes a crawl of three sites with one manual of six pages that link in a chain. The pages of b
/// are the newest and those of c the longest. A home site links to a.
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

/// Returns the sites that are kept, the sites of kept collections, and the criteria by which the
/// pages of each other site lost.
fn kept(output: &str) -> (BTreeSet<String>, BTreeSet<String>, BTreeMap<String, BTreeSet<String>>) {
    let avoid = rows(output, "avoid");
    assert_eq!(avoid.len(), 12);
    let mut criteria: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in &avoid {
        criteria.entry(site(&row["url"])).or_default().insert(row["lost_by"].as_str().unwrap().into());
    }
    let collections = rows(output, "collections");
    assert_eq!(collections.len(), 3);
    let of_collections = collections.iter().filter(|row| row["keep"] == true).map(|row| site(&row["root_url"]));
    (avoid.iter().map(|row| site(&row["keep_url"])).collect(), of_collections.collect(), criteria)
}

#[test]
fn complete_copy_stays_by_the_requested_rule() {
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
        let (pages, collections, criteria) = kept(&output);
        assert_eq!((pages, collections), (one.clone(), one), "{name}");
        let by = if matches!(name, "prefer" | "second") { "prefer" } else { "collection" };
        assert!(criteria.values().all(|words| words.iter().eq([by])), "{name}: {criteria:?}");
    }
}

#[test]
fn pages_without_a_collection_follow_the_rule_and_the_list_has_the_criterion() {
    let folder = tempfile::tempdir().unwrap();
    let input = crawl(folder.path());
    let output = folder.path().join("out").to_str().unwrap().to_string();
    let without_collections = ["--set", "clusters.min_size=100", "--set", "keep.by=newest"];
    succeed(&[&["run", "--input", &input, "--output", &output], &without_collections[..]].concat());
    let avoid = rows(&output, "avoid");
    assert_eq!(avoid.len(), 12);
    assert!(avoid.iter().all(|row| site(&row["keep_url"]) == "b" && row["lost_by"] == "newest"), "{avoid:?}");
}

/// Returns a JSON file of a result.
fn json(output: &str, file: &str) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(Path::new(output).join(file)).unwrap()).unwrap()
}

/// Returns the outcome of the pages that an earlier result kept.
fn kept_before(output: &str) -> serde_json::Value {
    json(output, "summary.json")["kept_before"].clone()
}

#[test]
fn previously_kept_pages_stay_under_another_rule_unless_a_page_is_preferred() {
    let folder = tempfile::tempdir().unwrap();
    let input = crawl(folder.path());
    let run = |name: &str, sets: &[&str]| {
        let output = folder.path().join(name).to_str().unwrap().to_string();
        let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
        let ended = webtwin(&[&["run", "--input", &input, "--output", &output], &sets[..]].concat()).output().unwrap();
        assert!(ended.status.success(), "{}", stderr_text(&ended));
        (output, stderr_text(&ended))
    };
    let (may, _) = run("may", &["keep.by=newest"]);
    let sticky = format!("keep.sticky={may}");
    let one = |site: &str| BTreeSet::from([site.to_string()]);

    for by in ["keep.by=links", "keep.by=longest"] {
        let (june, message) = run(by, &[by, &sticky]);
        let (pages, collections, criteria) = kept(&june);
        assert_eq!((pages, collections), (one("b"), one("b")), "{by}");
        assert!(criteria.values().all(|words| words.iter().eq(["kept-before"])), "{criteria:?}");
        let before = kept_before(&june);
        assert_eq!(
            (before["pages"].as_u64(), before["kept"].as_u64(), before["flipped"].as_u64()),
            (Some(6), Some(6), Some(0))
        );
        assert!(message.contains("of 6 pages kept by"), "{message}");
        assert_eq!(json(&june, "manifest.json")["earlier"], json(&may, "manifest.json")["attempt"]);
    }
    let (july, message) = run("prefer", &["keep.prefer=[\"http://c.*\"]", &sticky]);
    assert_eq!((kept(&july).0, kept(&july).1), (one("c"), one("c")));
    assert_eq!(kept_before(&july)["flipped_by"], serde_json::json!({"prefer": 6}));
    assert!(message.contains("6 flipped (6 by prefer)"), "{message}");

    let (plain, message) = run("plain", &[]);
    assert!(kept_before(&plain).is_null() && json(&plain, "manifest.json")["earlier"].is_null());
    assert!(!message.contains("kept by"), "{message}");
}

#[test]
fn previously_kept_pages_without_copies_or_deleted_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let may_crawl = crawl(folder.path());
    let may = folder.path().join("may").to_str().unwrap().to_string();
    succeed(&["run", "--input", &may_crawl, "--output", &may, "--set", "keep.by=newest"]);
    // Pages 0 to 2 of b have disappeared, page 3 no longer has a copy, and pages 4 and 5 are
    // unchanged.
    let is_left = |line: &&str| {
        let has_page =
            |site: &str, page: usize| line.contains(&format!("\"http://{site}.example/manual/{page}.html\""));
        let leaves = (0..3).any(|page| has_page("b", page)) || has_page("a", 3) || has_page("c", 3);
        // A line also contains links, but only the URL of the page includes a quoted host.
        !leaves
    };
    let text = std::fs::read_to_string(&may_crawl).unwrap();
    let june_crawl = folder.path().join("june.jsonl");
    std::fs::write(&june_crawl, text.lines().filter(is_left).flat_map(|line| [line, "\n"]).collect::<String>())
        .unwrap();
    let june = folder.path().join("june").to_str().unwrap().to_string();
    let sticky = format!("keep.sticky={may}");
    succeed(&["run", "--input", june_crawl.to_str().unwrap(), "--output", &june, "--set", &sticky]);
    let want = serde_json::json!({
        "pages": 6, "kept": 2, "alone": 1, "visited": 0, "flipped": 0, "flipped_by": {}, "gone": 3
    });
    assert_eq!(kept_before(&june), want);
    let compared = folder.path().join("diff").to_str().unwrap().to_string();
    succeed(&["diff", &may, &june, "--output", &compared, "--across-settings"]);
}

#[test]
fn synthetic_crawl_retains_kept_pages_under_another_rule() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let crawl = ["run", "--input", "synth://?pages=600&seed=5", "--set"];
    succeed(&[&crawl[..], &["keep.by=smallest-id", "--output", &at("may")]].concat());
    succeed(&[&crawl[..], &["keep.by=shortest-url", "--output", &at("plain")]].concat());
    let sticky = format!("keep.sticky={}", at("may"));
    let run = [&crawl[..], &["keep.by=shortest-url", "--set", &sticky]].concat();
    let (june, _) = assert_same_on_any_workers(folder.path(), "june", &run);

    let ids = |output: &str, column: &str| -> BTreeSet<String> {
        rows(output, "avoid").iter().map(|row| row[column].to_string()).collect()
    };
    // According to the tables, each cluster that had a kept page keeps one of these pages.
    let kept_pages = ids(&at("may"), "keep_url");
    let mut clusters: BTreeMap<String, Vec<(String, bool)>> = BTreeMap::new();
    let names: BTreeMap<String, String> =
        rows(&june, "pages").iter().map(|row| (row["doc_id"].to_string(), row["url"].to_string())).collect();
    for row in rows(&june, "clusters") {
        let page = names[&row["doc_id"].to_string()].clone();
        clusters.entry(row["cluster"].to_string()).or_default().push((page, row["role"] == "keep"));
    }
    let remember = clusters.values().filter(|pages| pages.iter().any(|page| kept_pages.contains(&page.0)));
    let mut remembered = 0;
    for pages in remember {
        remembered += 1;
        assert!(pages.iter().any(|(page, keep)| *keep && kept_pages.contains(page)), "{pages:?}");
    }
    assert!(remembered > 20, "{remembered}");
    assert!(kept_pages.is_disjoint(&ids(&june, "url")));
    assert!(
        !kept_pages.is_disjoint(&ids(&at("plain"), "url")),
        "both rules keep the same pages, so the test has no effect"
    );
    let before = kept_before(&june);
    assert_eq!((before["flipped"].as_u64(), before["pages"].as_u64()), (Some(0), Some(kept_pages.len() as u64)));
}

#[test]
fn invalid_earlier_result_is_rejected_before_the_crawl_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let (input, nothing) = (crawl(folder.path()), folder.path().join("nothing").to_str().unwrap().to_string());
    let output = folder.path().join("out").to_str().unwrap().to_string();
    let message = fail(&["run", "--input", &input, "--output", &output, "--set", &format!("keep.sticky={nothing}")], 3);
    assert!(message.contains("no manifest.json"), "{message}");
    let message = fail(&["run", "--input", &input, "--output", &output, "--sticky"], 2);
    assert!(message.contains("keep.sticky"), "{message}");
}

#[test]
fn scheduled_run_retains_kept_pages_of_the_newest_generation_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let (input, state) = (crawl(folder.path()), at("state"));
    // These sites link to c and so reverse the decision of the rule.
    let fans = |sites: &[&str]| -> String {
        let links: String = (0..6).map(|page| format!("<a href='http://c.example/manual/{page}.html'>c</a>")).collect();
        let page = |site: &&str| {
            let (url, html) = (format!("http://{site}.example/"), format!("<p>{site}{links}"));
            serde_json::json!({"url": url, "html": html}).to_string() + "\n"
        };
        sites.iter().map(page).collect()
    };
    std::fs::write(at("fans.jsonl"), fans(&["d", "e", "f"])).unwrap();
    std::fs::write(at("more.jsonl"), fans(&["g"])).unwrap();
    let stays = |name: &str| kept(&at(name)).0.into_iter().collect::<String>();

    succeed(&["run", "--state", &state, "--sticky", "--input", &input, "--output", &at("may")]);
    assert!(kept_before(&at("may")).is_null());
    assert_eq!(stays("may"), "a");
    fail(&["run", "--state", &state, "--sticky", "--output", &at("none")], 10);
    let june =
        ["--state", &state, "--sticky", "--add", &at("fans.jsonl"), "--output", &at("june"), "--diff", &at("diff")];
    succeed(&[&["run"], &june[..]].concat());
    assert_eq!(stays("june"), "a");
    assert_eq!(rows(&at("diff"), "avoid_changed").len(), 0);
    fail(&["run", "--state", &state, "--sticky", "--output", &at("none")], 10);
    // The result equals that of a run from scratch with `keep.sticky`.
    let sticky = format!("keep.sticky={}", at("may"));
    let inputs = ["--input", &input, "--input", &at("fans.jsonl")];
    succeed(&[&["run", "--output", &at("scratch"), "--set", &sticky], &inputs[..]].concat());
    assert!(files(&at("june")) == files(&at("scratch")));
    // Without `--sticky` the earlier result has no effect.
    succeed(&["run", "--state", &state, "--add", &at("more.jsonl"), "--output", &at("july")]);
    assert_eq!(stays("july"), "c");
    assert!(kept_before(&at("july")).is_null());
}

#[test]
fn votes_are_the_same_on_any_workers() {
    let folder = tempfile::tempdir().unwrap();
    let input = crawl(folder.path());
    assert_same_on_any_workers(folder.path(), "keep", &["run", "--input", &input, "--set", "keep.by=longest"]);
}

#[test]
fn invalid_glob_is_rejected_before_the_run() {
    let text = fail(&["check", "--set", "keep.prefer=[\"http://a/***\"]"], 2);
    assert!(text.contains("keep.prefer"), "{text}");
}
