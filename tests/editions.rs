use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::bad_warc::build::{Record, gzip, html};
use crate::support::program::{assert_same_from_checkpoints, assert_same_on_any_workers, rows, succeed};

/// Returns a page about a topic in one of its versions. Versions differ in four lines of 60.
fn page(url: &str, (topic, version): (usize, usize), head: &str, fields: &str) -> Vec<u8> {
    let line = |line: usize| {
        let number = topic * 100_000 + line * 100 + if line % 15 == 7 { version } else { 0 };
        format!("<p>Line {line} of {topic} has {number} and {} and the rest of {}.</p>", number * 7919, number * 31)
    };
    let lines: String = (0..60).map(line).collect();
    let body = format!("{head}<title>Topic {topic}</title><body>{lines}");
    gzip(&Record { uri: Some(url.to_string()), ..Record::with("", html(fields, body.as_bytes())) }.bytes())
}

/// Returns link elements that declare editions, given by language and URL.
fn named(editions: &[(&str, &str)]) -> String {
    let link = |(language, url): &(&str, &str)| format!("<link href='{url}' hrefLang={language} rel=alternate>");
    editions.iter().map(link).collect()
}

fn write(folder: &Path) -> String {
    let url = |host: &str, topic: usize| format!("http://{host}.example/topic{topic}");
    let (mut first, mut second) = (Vec::new(), Vec::new());
    let mut add_pair =
        |topic: usize, hosts: [&str; 2], versions: [usize; 2], heads: [String; 2], fields: [String; 2]| {
            first.extend(page(&url(hosts[0], topic), (topic, versions[0]), &heads[0], &fields[0]));
            second.extend(page(&url(hosts[1], topic), (topic, versions[1]), &heads[1], &fields[1]));
        };
    let no_heads = || [String::new(), String::new()];
    let head = |hosts: [&str; 2], topic: usize, languages: [&str; 2]| {
        let [a, b] = hosts.map(|host| url(host, topic));
        named(&[("x-default", &b), (languages[0], &a), (languages[1], &b)])
    };
    let hosts = ["en", "de"];
    // Neither page declares editions.
    add_pair(1, hosts, [1, 2], no_heads(), no_heads());
    // Topic 2: both pages declare both editions. Topic 3: one page declares the other and has its
    // own language in its root element. Topic 4: HTTP headers declare them.
    add_pair(2, hosts, [1, 2], [(); 2].map(|()| head(hosts, 2, ["en-GB", "de"])), no_heads());
    let single_edition = named(&[("en", &url("en", 3))]);
    add_pair(3, hosts, [1, 2], [String::new(), format!("<html lang=de-AT>{single_edition}")], no_heads());
    let field = format!(
        "Link: <{}>; rel=\"alternate\"; hreflang=\"en\", </topic4>; rel=alternate; hreflang=de\r\n",
        url("en", 4)
    );
    add_pair(4, hosts, [1, 2], no_heads(), [String::new(), field]);
    // Topic 5: regions of one language. Topic 6: none of the editions is that of the page itself.
    // Topic 7: both pages have the same text.
    add_pair(5, hosts, [1, 2], [(); 2].map(|()| head(hosts, 5, ["en-GB", "en-US"])), no_heads());
    add_pair(
        6,
        hosts,
        [1, 2],
        [named(&[("x-default", &url("de", 6)), ("de", &url("de", 6))]), String::new()],
        no_heads(),
    );
    add_pair(7, hosts, [1, 1], [(); 2].map(|()| head(hosts, 7, ["en", "de"])), no_heads());
    // Topic 8: a third page, which declares no edition, resembles the second page most.
    add_pair(8, hosts, [1, 2], [(); 2].map(|()| head(hosts, 8, ["en", "de"])), no_heads());
    second.extend(page(&url("other", 8), (8, 2), "<p>Copied.", ""));
    let crawl = folder.join("crawl");
    std::fs::create_dir_all(&crawl).unwrap();
    std::fs::write(crawl.join("1.warc.gz"), first).unwrap();
    std::fs::write(crawl.join("2.warc.gz"), second).unwrap();
    crawl.to_str().unwrap().to_string()
}

/// Returns the trivial clusters as URLs without scheme and domain.
fn clusters(output: &str) -> BTreeSet<BTreeSet<String>> {
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_string();
    let urls: BTreeMap<String, String> =
        rows(output, "pages").iter().map(|row| (text(&row["doc_id"]), text(&row["url"]))).collect();
    let mut sets: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in rows(output, "clusters") {
        let url = urls[&text(&row["doc_id"])].replace("http://", "").replace(".example/topic", "");
        sets.entry(text(&row["cluster"])).or_default().insert(url);
    }
    sets.into_values().collect()
}

#[test]
fn editions_in_other_languages_are_joined_only_by_equal_texts() {
    let folder = tempfile::tempdir().unwrap();
    let crawl = write(folder.path());
    let (output, message) = assert_same_on_any_workers(folder.path(), "out", &["run", "--input", &crawl]);
    let sets = [&["de1", "en1"], &["de5", "en5"], &["de6", "en6"], &["de7", "en7"], &["de8", "other8"]];
    let expected: BTreeSet<BTreeSet<String>> =
        sets.iter().map(|set| set.iter().map(ToString::to_string).collect()).collect();
    assert_eq!(clusters(&output), expected);
    assert!(
        message.contains("pairs refused, because a page declares the other as its edition in another language"),
        "{message}"
    );
    let summary: serde_json::Value =
        serde_json::from_slice(&std::fs::read(format!("{output}/summary.json")).unwrap()).unwrap();
    // Topics 2, 7 and 8 are declared by both pages, topics 3 and 4 by one. The third page of topic
    // 8 also resembles the first one.
    assert_eq!(summary["editions"]["named"], 8, "{summary}");
    assert_eq!(summary["editions"]["refused"], 5, "{summary}");
    let why = |topic: usize| {
        let urls = ["de", "en"].map(|host| format!("http://{host}.example/topic{topic}"));
        succeed(&["explain", &output, &urls[0], &urls[1]])
    };
    let named = "names http://en.example/topic3 as its edition in another language";
    assert!(why(3).contains(named), "{}", why(3));
    assert!(!why(7).contains("as its edition"), "{}", why(7));
}

#[test]
fn editions_are_stored_in_checkpoints_for_the_next_run() {
    let folder = tempfile::tempdir().unwrap();
    let crawl = write(folder.path());
    assert_same_from_checkpoints(folder.path(), &crawl, "2.warc.gz", 1);
}
