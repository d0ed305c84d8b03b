//! The list in force while a crawler obeys it. Later crawls contain few of the listed pages, so the
//! list in force comes from the comparison. Its exports and its index must answer like those of the
//! first run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::support::program::{LISTS, fail, files, rows, succeed, succeed_with};

/// Exports of a run that are not avoid lists.
const OTHERS: [&str; 7] = [
    "scrapy_webtwin.py",
    "url-rules.tsv",
    "url-substitutions.tsv",
    "regex-normalize.xml",
    "heritrix-canonicalization.xml",
    "stormcrawler-urlfilters.json",
    "norconex-url-normalizer.xml",
];

/// Results of three weeks. From the second week on the crawler obeys the list.
struct Weeks {
    folder: tempfile::TempDir,
}

impl Weeks {
    /// Runs over three weeks. The results are `run-0` to `run-2`, and the comparisons `diff-1` and
    /// `diff-2`.
    fn new() -> Weeks {
        let weeks = Weeks { folder: tempfile::tempdir().unwrap() };
        for week in 0..3 {
            let input = weeks.at(&format!("week-{week}.jsonl"));
            std::fs::write(&input, crawl(week)).unwrap();
            succeed(&["run", "--input", &input, "--output", &weeks.at(&format!("run-{week}"))]);
        }
        let obeyed = ["--set", "recrawl.avoided=yes"];
        let compare = |names: [&str; 3], more: &[&str]| {
            let [old, new, output] = names.map(|name| weeks.at(name));
            succeed(&[&["diff", &old, &new, "--output", &output][..], &obeyed, more].concat());
        };
        compare(["run-0", "run-1", "diff-1"], &[]);
        compare(["run-1", "run-2", "diff-2"], &["--history", &weeks.at("diff-1")]);
        weeks
    }

    fn at(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().into()
    }

    /// Returns the exports of a result by name.
    fn exports(&self, result: &str) -> BTreeMap<String, String> {
        let text = |(name, bytes): (String, Vec<u8>)| (name, String::from_utf8(bytes).unwrap());
        files(&Path::new(&self.at(result)).join("exports")).into_iter().map(text).collect()
    }

    /// Returns the pages on the list of the first run with the pages that are kept in place of
    /// them.
    fn listed(&self) -> BTreeMap<String, String> {
        let text = |row: &Value, name: &str| row[name].as_str().unwrap().to_string();
        rows(&self.at("run-0"), "avoid").iter().map(|row| (text(row, "url"), text(row, "keep_url"))).collect()
    }
}

/// Returns a crawl of a manual on host a and its mirror below `/M/` of host x. Host x also has
/// pages of its own at URLs that differ only by case, so no SURT prefix can cover the mirror. A
/// second mirror is below `/copy/` of host y, and one page has a copy at the root of host z. From
/// the second week on, the crawl lacks the pages on the list.
fn crawl(week: u32) -> String {
    let mut lines = String::new();
    let mut add_page = |url: String, text: String| {
        let time = 1_700_000_000 + i64::from(week) * 7 * 86_400;
        lines +=
            &format!("{}\n", serde_json::json!({ "url": url, "html": format!("<html>{text}"), "fetch_time": time }));
    };
    let text = |of: &str, number: u32| -> String {
        let lines = (0..12).map(|line| format!("<p>{of} {number} says {} about {of} {line}", number * 100 + line));
        lines.chain([format!("<p><a href='{}'>next</a>", (number + 1) % 8)]).collect()
    };
    for number in 0..8 {
        add_page(format!("http://a.example/m/{number}"), text("Page", number));
        add_page(format!("http://x.example/m/{number}"), text("Other", number));
        if week == 0 {
            add_page(format!("http://x.example/M/{number}"), text("Page", number));
            add_page(format!("http://y.example/copy/{number}"), text("Page", number));
        }
    }
    if week == 0 {
        add_page("http://z.example/one".into(), text("Page", 5));
    }
    add_page("http://z.example/".into(), text("Home", 0));
    let link = |number: u32| format!("<a href='http://a.example/m/{number}'>{number}</a>");
    add_page("http://home.example/".into(), (0..8).map(link).collect());
    lines
}

#[test]
fn exports_of_a_comparison_have_the_form_of_those_of_a_run() {
    let weeks = Weeks::new();
    let first = weeks.exports("run-0");
    assert_eq!(first.keys().map(String::as_str).collect::<BTreeSet<_>>(), LISTS.into_iter().chain(OTHERS).collect());
    assert!(first["heritrix-beans.xml"].contains("<value>http://x\\.example/M/3</value>"));
    assert!(first["prefixes.txt"].contains("http://y.example/copy/") && first["urls.txt"].contains("z.example/one"));
    for (run, diff) in [("run-1", "diff-1"), ("run-2", "diff-2")] {
        // The run of the week does not know the list; the comparison keeps it as a whole.
        let exports = weeks.exports(diff);
        for name in LISTS {
            assert_ne!(weeks.exports(run)[name], first[name], "{name} of {run}");
            assert_eq!(exports[name], first[name], "{name} of {diff}");
        }
        for name in OTHERS {
            assert_eq!(exports[name], first[name], "{name} of {diff}");
        }
        let is_patch = |name: &str| name.starts_with("add-") || name.starts_with("remove-");
        let patches: Vec<&String> = exports.keys().filter(|name| is_patch(name)).collect();
        assert!(patches.len() == 12 && patches.iter().all(|name| exports[*name].is_empty()), "{patches:?}");
    }
}

#[test]
fn an_index_with_the_list_in_force_answers_for_pages_that_were_not_fetched() {
    let weeks = Weeks::new();
    let listed = weeks.listed();
    let urls: String = listed.keys().map(|url| format!("{url}\n")).collect();
    let skipped: String = listed.values().map(|keep| format!("skip\t{keep}\n")).collect();
    assert_eq!(listed.len(), 17);
    for (week, workers) in [(1, "1"), (2, "3")] {
        let [run, diff] = ["run", "diff"].map(|kind| weeks.at(&format!("{kind}-{week}")));
        let [without_list, index, repeated] =
            ["alone", "index", "again"].map(|name| weeks.at(&format!("{name}-{week}")));
        succeed(&["index", &run, "--output", &without_list]);
        assert_eq!(succeed_with(&["lookup", &without_list], &urls), "unknown\n".repeat(listed.len()));
        let in_force = ["index", &run, "--in-force", &diff, "--chunks", "--simhashes"];
        succeed(&[&in_force[..], &["--output", &index, "--workers", "2"]].concat());
        succeed(&[&in_force[..], &["--output", &repeated, "--workers", workers, "--memory", "1MiB"]].concat());
        assert!(files(&index) == files(&repeated));
        assert_eq!(succeed_with(&["lookup", &index], &urls), skipped);
        // Pages of the run are answered as without the list. A URL below a listed prefix is not
        // fetched.
        let others = "http://a.example/m/3\nhttp://x.example/m/3\nhttp://y.example/copy/new\nhttp://y.example/new\n";
        assert_eq!(succeed_with(&["lookup", &index], others), "fetch\nfetch\nskip\nunknown\n");
        let json: Value =
            serde_json::from_str(&succeed_with(&["lookup", &index, "--json"], "http://z.example/one\n")).unwrap();
        assert_eq!((&json["action"], &json["known"]), (&"skip".into(), &false.into()));
        assert_eq!(json["keep"]["url"], "http://a.example/m/5");
        let row =
            rows(&weeks.at("run-0"), "avoid").into_iter().find(|row| row["url"] == "http://z.example/one").unwrap();
        assert_eq!(json["why"], row["why"]);
        let id = format!("{}\n", json["id"].as_str().unwrap());
        assert_eq!(succeed_with(&["lookup", &index, "--id"], &id), "skip\thttp://a.example/m/5\n");
        succeed_with(&["lookup", &index, "--verify"], "");
    }
}

#[test]
fn list_in_force_must_belong_to_the_comparison_of_the_run() {
    let weeks = Weeks::new();
    let index = weeks.at("index");
    for (run, diff, message) in [
        ("run-1", "run-0", "is not a comparison"),
        ("run-1", "diff-2", "the newer result of this comparison is"),
        ("run-0", "diff-1", "the newer result of this comparison is"),
    ] {
        let stderr_text = fail(&["index", &weeks.at(run), "--in-force", &weeks.at(diff), "--output", &index], 2);
        assert!(stderr_text.contains(&format!("--in-force {}: {message}", weeks.at(diff))), "{stderr_text}");
    }
    assert!(!Path::new(&index).exists());
}
