use std::path::Path;

use serde_json::Value;

use crate::support::program::{fail, files, rows, stderr_text, succeed, webtwin};

/// Returns an HTML page with the given lines of text.
fn html(lines: &[&str]) -> String {
    format!(
        "<html><title>t</title><body>{}</body></html>",
        lines.iter().map(|line| format!("<p>{line}</p>")).collect::<String>()
    )
}

/// Writes a crawl as JSONL and runs the main job over it.
fn run(folder: &Path, name: &str, pages: &[(String, String)]) -> String {
    let input = folder.join(format!("{name}.jsonl"));
    let line = |(url, html): &(String, String)| serde_json::json!({ "url": url, "html": html }).to_string() + "\n";
    std::fs::write(&input, pages.iter().map(line).collect::<String>()).unwrap();
    let output = folder.join(name).to_str().unwrap().to_string();
    succeed(&["run", "--input", input.to_str().unwrap(), "--output", &output]);
    output
}

fn text(n: usize) -> String {
    let line =
        |at: usize| format!("Line {at} of text {n} says {} and nothing that any other line says.", n * 31 + at * 7);
    let lines: Vec<String> = (0..20).map(line).collect();
    html(&lines.iter().map(String::as_str).collect::<Vec<_>>())
}

fn what(output: &str, url: &str) -> (String, String) {
    let rows = rows(output, "pages_changed");
    let row = rows.iter().find(|row| row["url"] == url).unwrap_or_else(|| panic!("{url} is not in {output}"));
    (row["what"].as_str().unwrap().into(), row["other_url"].as_str().unwrap().into())
}

#[test]
fn two_crawls_are_compared_and_a_changed_page_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let page = |url: &str, n: usize| (url.to_string(), text(n));
    let moves = |site: &str| (10..15).map(|n| page(&format!("{site}/{n}"), n)).collect::<Vec<_>>();
    let mut old = vec![
        page("http://a.example/same", 1),
        page("http://a.example/bytes", 2),
        page("http://a.example/edited", 3),
        page("http://a.example/other", 4),
        page("http://a.example/went", 5),
        page("http://a.example/renamed", 6),
    ];
    old.extend(moves("http://b.example"));
    let mut new = vec![
        page("http://a.example/same", 1),
        ("http://a.example/bytes".into(), text(2).replace("<body>", "<body ><!-- 7 -->")),
        ("http://a.example/edited".into(), text(3).replace("Line 7 of", "Verse 7 of")),
        page("http://a.example/other", 40),
        page("http://a.example/came", 7),
        page("http://a.example/new-name", 6),
    ];
    new.extend(moves("https://www.b.example"));
    let (old, new) = (run(folder.path(), "old", &old), run(folder.path(), "new", &new));

    let output = webtwin(&["diff", &old, &new, "--output", &at("diff"), "--texts"]).output().unwrap();
    assert!(
        output.status.success()
            && stderr_text(&output).contains("11 pages in the older crawl, 11 in the newer: 1 bytes"),
        "{}",
        stderr_text(&output)
    );
    for (url, is) in [("bytes", "bytes"), ("edited", "near"), ("other", "rewritten"), ("went", "gone"), ("came", "new")]
    {
        assert_eq!(what(&at("diff"), &format!("http://a.example/{url}")), (is.into(), String::new()), "{url}");
    }
    let assert_moved = |was: &str, is: &str| {
        assert_eq!(what(&at("diff"), was), ("moved_from".into(), is.into()));
        assert_eq!(what(&at("diff"), is), ("moved_to".into(), was.into()));
    };
    assert_moved("http://a.example/renamed", "http://a.example/new-name");
    assert_moved("http://b.example/12", "https://www.b.example/12");
    let sites = rows(&at("diff"), "hosts_changed");
    let moved = sites.iter().find(|row| row["site"] == "http://b.example").unwrap();
    assert_eq!((&moved["what"], &moved["other_site"]), (&"moved_from".into(), &"https://www.b.example".into()));

    let explanation = succeed(&["explain", &new, "http://a.example/edited", "--against", &old]);
    assert!(explanation.contains("- Line 7 of text 3") && explanation.contains("+ Verse 7 of text 3"), "{explanation}");
    let object: Value =
        serde_json::from_str(&succeed(&["explain", &new, "http://a.example/same", "--against", &old, "--json"]))
            .unwrap();
    assert_eq!((&object["same_bytes"], &object["bits"]), (&true.into(), &0.into()));
    assert!(
        fail(&["explain", &new, "http://a.example/went", "--against", &old], 3).contains("is not a page of this run")
    );

    // A comparison is not overwritten, like any other result, and its tables can be queried by SQL.
    fail(&["diff", &old, &new, "--output", &at("diff")], 4);
    assert!(succeed(&["show", &at("diff"), "--sql"]).contains("VIEW pages_changed"));
}

#[test]
fn comparison_of_synthetic_crawls_adds_up_with_any_threads() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    for (name, seed) in [("old", "1"), ("new", "2")] {
        succeed(&[
            "run",
            "--input",
            &format!("synth://?pages=600&seed={seed}"),
            "--output",
            &at(name),
            "--set",
            "output.fprint_docid=true",
        ]);
    }
    for (workers, memory) in [("1", "1GiB"), ("2", "0"), ("3", "100kB")] {
        succeed(&["diff", &at("old"), &at("new"), "--output", &at(workers), "--workers", workers, "--memory", memory]);
        assert!(files(&at(workers)) == files(&at("1")), "{workers} threads");
    }
    let summary: Value = serde_json::from_slice(&files(&at("1"))["summary.json"]).unwrap();
    let count = |what: &str| summary["pages"][what].as_u64().unwrap();
    let both: u64 = ["same", "bytes", "near", "changed", "rewritten"].map(count).iter().sum();
    assert_eq!(summary["pages_old"], both + count("gone") + count("moved_from"));
    assert_eq!(summary["pages_new"], both + count("new") + count("moved_to"));
    assert!(rows(&at("1"), "crawl_overlap").iter().any(|row| row["unit"] == "chunk" && row["both"] != 0));

    // The old avoid list and its changes yield the new list.
    let urls = |output: &str, table: &str, is: &[&str]| -> std::collections::BTreeSet<String> {
        let rows = rows(output, table);
        let wanted = rows.iter().filter(|row| is.is_empty() || is.contains(&row["what"].as_str().unwrap()));
        wanted.map(|row| row["url"].as_str().unwrap().to_string()).collect()
    };
    let mut list = urls(&at("old"), "avoid", &[]);
    let (added, removed) = (urls(&at("1"), "avoid_changed", &["added"]), urls(&at("1"), "avoid_changed", &["removed"]));
    assert!(!added.is_empty() && added.is_disjoint(&list) && removed.is_subset(&list));
    list.retain(|url| !removed.contains(url));
    list.extend(added);
    assert_eq!(list, urls(&at("new"), "avoid", &[]));
}

#[test]
fn incomparable_results_are_rejected_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let crawl = "synth://?pages=100&seed=1";
    succeed(&["run", "--input", crawl, "--output", &at("a")]);
    succeed(&["run", "--input", crawl, "--output", &at("b"), "--set", "overlap.template_pages=7"]);
    let refused = fail(&["diff", &at("a"), &at("b"), "--output", &at("diff")], 2);
    assert!(refused.contains("overlap.template_pages = 6") && refused.contains("--across-settings"), "{refused}");
    succeed(&["diff", &at("a"), &at("b"), "--output", &at("pages"), "--across-settings"]);
    assert!(rows(&at("pages"), "pages_changed").is_empty());
    fail(&["diff", &at("a"), &at("a"), "--output", &at("x"), "--set", "overlap.template_pages=7"], 2);
    fail(&["diff", &at("a"), &at("nothing"), "--output", &at("x")], 3);
    // A comparison is not the result of a crawl.
    assert!(fail(&["diff", &at("a"), &at("pages"), "--output", &at("x")], 2).contains("no table of pages"));
    let part = folder.path().join("b/pages/part-00000.parquet");
    let mut bytes = std::fs::read(&part).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&part, bytes).unwrap();
    let damaged = fail(&["diff", &at("b"), &at("b"), "--output", &at("x")], 3);
    assert!(damaged.contains("checksum") && !Path::new(&at("x")).exists(), "{damaged}");
}

#[test]
fn failed_page_is_distinguished_from_a_deleted_one() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let record = |path: &str, status: &str, html: &str| {
        let block = format!("HTTP/1.1 {status}\r\nContent-Type: text/html\r\n\r\n{html}");
        format!(
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/{path}\r\nWARC-Date: 2026-01-01T00:00:00Z\r\n\
             Content-Type: application/http;msgtype=response\r\nContent-Length: {}\r\n\r\n{block}\r\n\r\n",
            block.len()
        )
    };
    let pages = |failing: &str| {
        (0..6).map(|n| record(&n.to_string(), if n == 3 { failing } else { "200 OK" }, &text(n))).collect::<String>()
    };
    for (name, failing) in [("old", "200 OK"), ("new", "503 Service Unavailable")] {
        std::fs::write(at(&format!("{name}.warc")), pages(failing)).unwrap();
        succeed(&["run", "--input", &at(&format!("{name}.warc")), "--output", &at(name)]);
    }
    succeed(&["diff", &at("old"), &at("new"), "--output", &at("diff")]);
    let rows = rows(&at("diff"), "pages_changed");
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!((&rows[0]["what"], &rows[0]["why_gone"]), (&"gone".into(), &"rejected:status_not_2xx".into()));
    let why = fail(&["explain", &at("new"), "http://a.example/3", "--against", &at("old")], 3);
    assert!(why.contains("its record was rejected: status_not_2xx"), "{why}");
}
