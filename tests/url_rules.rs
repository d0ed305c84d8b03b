//! URL rules from end to end: learned, exported, looked up.

use std::fmt::Write;
use std::path::Path;

use serde_json::Value;

use crate::bad_warc::build::{Record, gzip, html, http_with};
use crate::support::program::{assert_same_on_any_workers, files, rows, succeed, succeed_with};

/// Writes a crawl of a wiki whose pages have session ids, and of a shop on two hosts in which
/// `brand` matters on list pages only. In a `later` crawl each session has different pages, and no
/// product was fetched with its brand.
fn crawl(at: &Path, is_later: bool) -> String {
    let mut lines = String::new();
    let mut add_page = |url: String, topic: &str, n: u32| {
        let line = |k: u32| (0..6).map(|w| format!("{topic}{}", n * 1000 + k * 6 + w)).collect::<Vec<_>>().join(" ");
        let text: Vec<String> = (0..20).map(line).collect();
        let row = serde_json::json!({ "url": url, "text": text.join("\n") });
        writeln!(lines, "{row}").unwrap();
    };
    for n in 0..120 {
        add_page(format!("http://wiki.example.org/page?id={n}"), "wiki", n);
        let topic = if is_later { "session" } else { "wiki" };
        add_page(format!("http://wiki.example.org/page?id={n}&sid={:08x}", n * 7919), topic, n);
        add_page(format!("http://www.example.org/product/{n}"), "product", n);
        if !is_later {
            add_page(format!("http://www.example.org/product/{n}?brand={}", n % 7), "product", n);
        }
        add_page(format!("http://example.org/product/{n}"), "product", n);
        add_page(format!("http://www.example.org/list/{n}"), "list", n);
        add_page(format!("http://www.example.org/list/{n}?brand={}", n % 7), "brands", n);
    }
    let path = at.join(if is_later { "later.jsonl" } else { "crawl.jsonl" });
    std::fs::write(&path, lines).unwrap();
    path.to_str().unwrap().to_string()
}

#[test]
fn rules_are_learned_by_any_number_of_workers_and_apply_to_uncrawled_urls() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let input = crawl(folder.path(), false);
    let settings = ["--set", "similar.guard=none", "--set", "overlap.template_pages=0"];
    for (name, more) in [("one", ["--workers", "1"]), ("three", ["--workers", "3"])] {
        succeed(&[&["run", "--input", &input, "--output", &at(name)][..], &settings, &more].concat());
    }
    let bounded = ["--workers", "2", "--set", "effort.memory_bytes=300MB"];
    succeed(&[&["run", "--input", &input, "--output", &at("bounded")][..], &settings, &bounded].concat());
    let rule_files = |name: &str| {
        let is_of_rules = |file: &(String, Vec<u8>)| file.0.contains("url_rules") || file.0.contains("exports");
        files(&folder.path().join(name)).into_iter().filter(is_of_rules).collect::<Vec<_>>()
    };
    assert!(rule_files("one") == rule_files("three") && rule_files("one") == rule_files("bounded"));

    let table_json = succeed(&["show", &at("one"), "url_rules", "--json"]);
    let rules: Vec<Value> = table_json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let text = |rule: &Value, name: &str| rule[name].as_str().unwrap().to_string();
    let mut rules_found: Vec<[String; 3]> =
        rules.iter().map(|rule| ["scope", "kind", "pattern"].map(|name| text(rule, name))).collect();
    rules_found.sort();
    assert_eq!(
        rules_found,
        [
            ["*.example.org/*", "host", "http://www.example.org"],
            ["*.example.org/*", "parameter", "sid"],
            ["www.example.org/product/*", "parameter", "brand"],
        ]
    );
    assert!(rules.iter().all(|rule| rule["violations"] == 0 && rule["saved"].as_u64() >= Some(100)), "{rules:?}");

    succeed(&["index", &at("one"), "--output", &at("idx")]);
    let urls = "http://wiki.example.org/page?id=7&sid=new\nhttp://www.example.org/product/9?brand=8\n\
                 http://www.example.org/list/9?brand=8\nhttp://wiki.example.org/other?sid=1\n";
    let lines = succeed_with(&["lookup", &at("idx")], urls);
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines[0], "skip\thttp://wiki.example.org/page?id=7");
    assert!(lines[1].starts_with("skip\t") && lines[1].contains("example.org/product/9"), "{}", lines[1]);
    assert_eq!(lines[2..], ["unknown", "unknown"]);
    let json = succeed_with(&["lookup", &at("idx"), "--json"], urls);
    let last: Value = serde_json::from_str(json.lines().last().unwrap()).unwrap();
    assert_eq!(last["rewritten"], "http://wiki.example.org/other");
    assert_eq!(last["rule"]["pattern"], "sid");
}

#[test]
fn later_crawl_confirms_retains_or_withdraws_rules() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let settings = ["--set", "similar.guard=none", "--set", "overlap.template_pages=0"];
    for (name, is_later) in [("old", false), ("new", true)] {
        let input = crawl(folder.path(), is_later);
        succeed(&[&["run", "--input", &input, "--output", &at(name)][..], &settings].concat());
    }
    succeed(&["diff", &at("old"), &at("new"), "--output", &at("changes")]);
    let table_json = succeed(&["show", &at("changes"), "url_rules_changed", "--json"]);
    let rules: Vec<Value> = table_json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let text = |rule: &Value, name: &str| rule[name].as_str().unwrap().to_string();
    let mut changes_found: Vec<[String; 2]> =
        rules.iter().map(|rule| ["kind", "what"].map(|name| text(rule, name))).collect();
    changes_found.sort();
    assert_eq!(changes_found, [["host", "confirmed"], ["parameter", "standing"], ["parameter", "withdrawn"]]);
    let withdrawn = rules.iter().find(|rule| rule["what"] == "withdrawn").unwrap();
    assert_eq!((&withdrawn["pattern"], withdrawn["violations_new"].as_u64()), (&Value::from("sid"), Some(120)));
    let in_force = String::from_utf8(files(&at("changes"))["exports/url-rules.tsv"].clone()).unwrap();
    let patterns: Vec<&str> = in_force.lines().skip(1).map(|line| line.split('\t').nth(4).unwrap()).collect();
    assert_eq!(patterns, ["http://www.example.org", "brand"]);
    // An index applies the same rules.
    succeed(&["index", &at("new"), "--in-force", &at("changes"), "--output", &at("idx")]);
    let rules = webtwin::lookup::LookupIndex::open(&at("idx")).unwrap().rules().all().to_vec();
    let patterns: Vec<String> = rules.iter().map(|rule| rule.edit.texts().0).collect();
    assert_eq!(patterns, ["http://www.example.org", "brand"]);
}

#[test]
fn only_permanent_redirects_of_few_paths_are_evidence() {
    let folder = tempfile::tempdir().unwrap();
    let record = |url: &str, message: Vec<u8>| {
        gzip(&Record { uri: Some(format!("http://shop.example.org{url}")), ..Record::with("", message) }.bytes())
    };
    let page = |url: &str, n: usize| {
        let words: String = (0..200).map(|word| format!("word{} ", n * 1000 + word)).collect();
        record(url, html("", format!("<title>{n}</title><p>{words}").as_bytes()))
    };
    let redirect = |url: &str, status: u16, to: &str| {
        record(url, http_with(&format!("HTTP/1.1 {status} Moved"), &format!("Location: {to}\r\n"), b""))
    };
    let mut files = [Vec::new(), Vec::new()];
    for n in 0..120 {
        let item = format!("/item?id={n}");
        files[0].extend(page(&item, n));
        // The redirects are permanent and pass through another redirect. Each one occurs twice.
        files[n % 2].extend(redirect(&format!("{item}&ref=mail{n}"), 301, &format!("{item}&ref=")));
        files[1].extend(redirect(&format!("{item}&ref="), 308, &item));
        files[1].extend(redirect(&format!("{item}&ref=mail{n}"), 301, &format!("{item}&ref=")));
        // These redirects are temporary, or lead to a page for members only.
        files[1].extend(redirect(&format!("{item}&tmp={n}"), 302, &item));
        files[0].extend(redirect(&format!("/member/{n}?page={n}"), 301, "/login"));
    }
    files[1].extend(page("/login", 999));
    for (number, file) in files.iter().enumerate() {
        std::fs::write(folder.path().join(format!("{number}.warc.gz")), file).unwrap();
    }
    let input = folder.path().join("*.warc.gz").to_str().unwrap().to_string();
    let (output, _) = assert_same_on_any_workers(folder.path(), "out", &["run", "--input", &input]);
    let rules = rows(&output, "url_rules");
    let texts: Vec<[&str; 3]> =
        rules.iter().map(|rule| ["scope", "kind", "pattern"].map(|name| rule[name].as_str().unwrap())).collect();
    assert_eq!(texts, [["*.example.org/*", "parameter", "ref"]]);
    let counts = ["support", "violations", "saved"].map(|name| rules[0][name].as_u64().unwrap());
    assert_eq!(counts, [240, 0, 0]);
    let index = folder.path().join("idx").to_str().unwrap().to_string();
    succeed(&["index", &output, "--output", &index]);
    let urls = "http://shop.example.org/item?id=7&ref=new\nhttp://shop.example.org/item?id=7&tmp=new\n";
    let answers = succeed_with(&["lookup", &index], urls);
    assert_eq!(answers.lines().collect::<Vec<_>>(), ["skip\thttp://shop.example.org/item?id=7", "unknown"]);
}
