use std::path::Path;

use crate::bad_warc::build::{Record, gzip};
use crate::support::program::succeed;

/// A crawl of `pages` by `wget --warc-file`: warcinfo, a request and a response a page, and what wget notes at the end.
fn wget_crawl(pages: &[&str]) -> Vec<u8> {
    let of = |kind, target: &str, media, payload: &[u8]| Record {
        uri: Some(format!("<{target}>")),
        ..Record::of("x").kind(kind, media, payload)
    };
    let mut records = vec![Record {
        uri: None,
        ..of("warcinfo", "", "application/warc-fields", b"software: Wget/1.21.3 (linux-gnu)\r\n")
    }];
    for page in pages {
        let target = format!("http://h.example/{page}");
        let request = format!("GET /{page} HTTP/1.1\r\nHost: h.example\r\n\r\n");
        records.push(of("request", &target, "application/http;msgtype=request", request.as_bytes()));
        records.push(Record { uri: Some(format!("<{target}>")), ..Record::of(page) });
    }
    for note in ["MANIFEST.txt", "wget_arguments.txt", "wget.log"] {
        records.push(of(
            "resource",
            &format!("metadata://gnu.org/software/wget/warc/{note}"),
            "text/plain",
            b"words\n",
        ));
    }
    records.iter().flat_map(|record| gzip(&record.bytes())).collect()
}

/// The counts of records in the summary of a run: kept, and rejected by reason.
fn records(out: &str) -> (u64, serde_json::Value) {
    let summary: serde_json::Value =
        serde_json::from_slice(&std::fs::read(Path::new(out).join("summary.json")).unwrap()).unwrap();
    let records = &summary["records"];
    let rejected: u64 = records["rejected"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    let kept = records["kept"].as_u64().unwrap();
    assert_eq!(records["read"].as_u64().unwrap(), kept + rejected, "{records}");
    (kept, records["rejected"].clone())
}

#[test]
fn a_small_crawl_by_wget_is_a_crawl_without_damage() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    std::fs::write(at("site.warc.gz"), wget_crawl(&["a", "b", "c"])).unwrap();
    succeed(&["run", "--input", &at("site.warc.gz"), "--output", &at("out")]);
    // warcinfo, three requests, three notes.
    assert_eq!(records(&at("out")), (3, serde_json::json!({ "not_a_page_record": 7 })));
    let pages = succeed(&["show", &at("out/pages"), "--json"]);
    let mut urls: Vec<_> =
        pages.lines().map(|row| serde_json::from_str::<serde_json::Value>(row).unwrap()["url"].to_string()).collect();
    urls.sort_unstable();
    assert_eq!(urls, ["a", "b", "c"].map(|page| format!("\"http://h.example/{page}\"")));
}
