use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proptest::prelude::*;

use crate::bad_warc::build::{Record, gzip, html, http_with};
use crate::support::program::{assert_same_on_any_workers, rows, succeed};

fn page(name: &str, html_of: &str) -> Vec<u8> {
    let words: String = name.bytes().cycle().take(90).map(|byte| format!("{name}{byte} ")).collect();
    gzip(&Record::with(name, html("", format!("{html_of}<p>{words}").as_bytes())).bytes())
}

/// Returns a page with these links.
fn linking(name: &str, links: &[&str]) -> Vec<u8> {
    page(name, &links.iter().map(|link| format!("<a href=\"{link}\">x</a>")).collect::<String>())
}

fn redirect(name: &str, status: u16, location: &str, date: &'static str) -> Vec<u8> {
    let head = http_with(&format!("HTTP/1.1 {status} Moved"), &format!("Location: {location}\r\n"), b"");
    gzip(&Record::with(name, head).date(date).bytes())
}

const DATE: &str = "2026-01-01T00:00:00Z";

/// Returns the links of a result by the last part of each URL.
fn links(output: &str) -> BTreeSet<(String, String)> {
    let name = |url: &serde_json::Value| url.as_str().unwrap().rsplit('/').next().unwrap().to_string();
    let pages: BTreeMap<_, _> =
        rows(output, "pages").iter().map(|row| (row["doc_id"].to_string(), name(&row["url"]))).collect();
    let name_of = |id: &serde_json::Value| pages[&id.to_string()].clone();
    rows(output, "links").iter().map(|row| (name_of(&row["src"]), name_of(&row["dst"]))).collect()
}

fn pairs(of: &[(&str, &str)]) -> BTreeSet<(String, String)> {
    of.iter().map(|(src, dst)| (src.to_string(), dst.to_string())).collect()
}

/// Runs over these records, half of which are in one file and half in another; returns the result.
fn run(folder: &Path, records: &[Vec<u8>], settings: &[&str]) -> String {
    let crawl = folder.join("crawl");
    std::fs::create_dir_all(&crawl).unwrap();
    let (first, second) = records.split_at(records.len() / 2);
    std::fs::write(crawl.join("1.warc.gz"), first.concat()).unwrap();
    std::fs::write(crawl.join("2.warc.gz"), second.concat()).unwrap();
    let output = tempfile::tempdir_in(folder).unwrap().keep().join("out").to_str().unwrap().to_string();
    let sets: Vec<&str> = settings.iter().flat_map(|set| ["--set", set]).collect();
    succeed(&[&["run", "--input", crawl.to_str().unwrap(), "--output", &output], &sets[..]].concat());
    output
}

#[test]
fn links_to_redirects_count_as_links_to_the_pages_they_lead_to() {
    let folder = tempfile::tempdir().unwrap();
    let mut records = vec![
        linking("a", &["r301", "loop1", "far0", "near1", "out", "old", "b2"]),
        linking("b", &["a"]),
        linking("c", &[]),
        linking("d", &[]),
        redirect("r301", 301, "r302", DATE),
        redirect("r302", 302, "http://h.example/r303", DATE),
        redirect("r303", 303, "/r307#x", DATE),
        redirect("r307", 307, "//h.example/r308", DATE),
        redirect("r308", 308, "./b?", DATE),
        redirect("loop1", 301, "loop2", DATE),
        redirect("loop2", 301, "loop1", DATE),
        redirect("out", 301, "http://elsewhere.example/", DATE),
        // The newest fetch of a URL determines where it leads.
        redirect("old", 301, "c", "2025-01-01T00:00:00Z"),
        redirect("old", 301, "d", "2026-06-01T00:00:00Z"),
        redirect("old", 301, "c", "2025-06-01T00:00:00Z"),
        // A URL with a page in the crawl leads to that page, even if it redirected at another time.
        redirect("c", 301, "d", "2026-06-01T00:00:00Z"),
        redirect("b2", 304, "d", DATE),
    ];
    for hop in 0..11 {
        let to = if hop == 10 { "c".into() } else { format!("far{}", hop + 1) };
        records.push(redirect(&format!("far{hop}"), 301, &to, DATE));
        let to = if hop == 10 { "c".into() } else { format!("near{}", hop + 1) };
        records.push(redirect(&format!("near{hop}"), 301, &to, DATE));
    }
    let output = run(folder.path(), &records, &[]);
    // `b?` and `b` are different URLs. Ten hops are followed, and eleven are not.
    assert_eq!(links(&output), pairs(&[("a", "d"), ("b", "a"), ("a", "c")]));
    let rejected = rows(&output, "rejected");
    assert!(rejected.iter().all(|row| row["reason"] == "status_not_2xx"), "{rejected:?}");
    assert_eq!(rejected.len() + 4, records.len());

    records[8] = redirect("r308", 308, "./b", DATE);
    let output = run(folder.path(), &records, &[]);
    assert_eq!(links(&output), pairs(&[("a", "b"), ("a", "d"), ("b", "a"), ("a", "c")]));
    let output = run(folder.path(), &records, &["links.through=[\"refresh\"]"]);
    assert_eq!(links(&output), pairs(&[("b", "a")]));
}

#[test]
fn refresh_and_canonical_links_redirect_to_their_target() {
    let folder = tempfile::tempdir().unwrap();
    let refresh = |content: &str| format!("<meta http-equiv=\"Refresh\" content=\"{content}\">");
    let records = vec![
        linking("a", &["soon", "late", "canonical", "itself"]),
        page("soon", &refresh("0; URL='moved'")),
        page("late", &refresh("300; url=b")),
        page("canonical", "<link rel=\"canonical\" href=\"c\">"),
        page("itself", &refresh("5")),
        linking("b", &[]),
        linking("c", &[]),
        redirect("moved", 301, "b", DATE),
    ];
    let plain = [("a", "soon"), ("a", "late"), ("a", "canonical"), ("a", "itself")];
    let follow = [("a", "b"), ("soon", "b")];
    assert_eq!(links(&run(folder.path(), &records, &[])), pairs(&[&plain[..], &follow].concat()));
    assert_eq!(links(&run(folder.path(), &records, &["links.through=[\"redirects\"]"])), pairs(&plain));
    let linked_pages = run(folder.path(), &records, &["links.through=[\"redirects\",\"refresh\",\"canonical\"]"]);
    assert_eq!(links(&linked_pages), pairs(&[&plain[..], &follow, &[("a", "c")]].concat()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, max_shrink_iters: 20, ..ProptestConfig::default() })]

    /// URLs are numbers. Some are pages, some redirect, and some are neither.
    #[test]
    fn redirects_resolve_as_by_following_them_one_by_one(
        pages in prop::collection::btree_map(0usize..30, prop::collection::vec(0usize..30, 0..6), 1..12),
        leads in prop::collection::btree_map(0usize..30, 0usize..30, 0..25),
    ) {
        let mut records = Vec::new();
        for (number, to) in &pages {
            let to: Vec<String> = to.iter().map(usize::to_string).collect();
            records.push(linking(&number.to_string(), &to.iter().map(String::as_str).collect::<Vec<_>>()));
        }
        for (from, to) in &leads {
            records.push(redirect(&from.to_string(), 302, &to.to_string(), DATE));
        }
        let mut expected = BTreeSet::new();
        for (src, to) in &pages {
            for &target in to {
                let mut url = target;
                for _ in 0..10 {
                    url = if pages.contains_key(&url) { url } else { *leads.get(&url).unwrap_or(&url) };
                }
                if pages.contains_key(&url) && url != *src {
                    expected.insert((src.to_string(), url.to_string()));
                }
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = records.split_at(records.len() / 2);
        std::fs::create_dir(folder.path().join("crawl")).unwrap();
        std::fs::write(folder.path().join("crawl/1.warc.gz"), first.concat()).unwrap();
        std::fs::write(folder.path().join("crawl/2.warc.gz"), second.concat()).unwrap();
        let crawl = folder.path().join("crawl").to_str().unwrap().to_string();
        let (output, _) = assert_same_on_any_workers(folder.path(), "out", &["run", "--input", &crawl]);
        prop_assert_eq!(links(&output), expected);
    }
}
