use std::path::Path;

use crate::bad_warc::build::{Record, gzip, html};
use crate::containers::zipped;
use crate::support::planted::write_crawl;
use crate::support::ports::reserved_address;
use crate::support::program::{cluster_file, fail, files, stderr_text, succeed, webtwin};

/// Returns a crawl of `pages` as `wget --warc-file` writes it: a warcinfo record, a request and a
/// response per page, and the notes of wget at the end.
pub(crate) fn wget_crawl(pages: &[&str]) -> Vec<u8> {
    let record_of = |kind, target: &str, media, payload: &[u8]| Record {
        uri: Some(format!("<{target}>")),
        ..Record::of("x").kind(kind, media, payload)
    };
    let mut records = vec![Record {
        uri: None,
        ..record_of("warcinfo", "", "application/warc-fields", b"software: Wget/1.21.3 (linux-gnu)\r\n")
    }];
    for page in pages {
        let target = format!("http://h.example/{page}");
        let request = format!("GET /{page} HTTP/1.1\r\nHost: h.example\r\n\r\n");
        records.push(record_of("request", &target, "application/http;msgtype=request", request.as_bytes()));
        records.push(Record { uri: Some(format!("<{target}>")), ..Record::of(page) });
    }
    for note in ["MANIFEST.txt", "wget_arguments.txt", "wget.log"] {
        records.push(record_of(
            "resource",
            &format!("metadata://gnu.org/software/wget/warc/{note}"),
            "text/plain",
            b"words\n",
        ));
    }
    records.iter().flat_map(|record| gzip(&record.bytes())).collect()
}

/// Returns the numbers of records in the summary of a run: kept, and rejected by reason.
pub(crate) fn records(out: &str) -> (u64, serde_json::Value) {
    let summary: serde_json::Value =
        serde_json::from_slice(&std::fs::read(Path::new(out).join("summary.json")).unwrap()).unwrap();
    let records = &summary["records"];
    let rejected: u64 = records["rejected"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    let kept_pages = records["kept"].as_u64().unwrap();
    assert_eq!(records["read"].as_u64().unwrap(), kept_pages + rejected, "{records}");
    (kept_pages, records["rejected"].clone())
}

#[test]
fn a_small_crawl_by_wget_is_a_crawl_without_damage() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    std::fs::write(at("site.warc.gz"), wget_crawl(&["a", "b", "c"])).unwrap();
    succeed(&["run", "--input", &at("site.warc.gz"), "--output", &at("out")]);
    // The seven records are the warcinfo record, three requests and three notes.
    assert_eq!(records(&at("out")), (3, serde_json::json!({ "not_a_page_record": 7 })));
    let pages = succeed(&["show", &at("out/pages"), "--json"]);
    let mut urls: Vec<_> =
        pages.lines().map(|row| serde_json::from_str::<serde_json::Value>(row).unwrap()["url"].to_string()).collect();
    urls.sort_unstable();
    assert_eq!(urls, ["a", "b", "c"].map(|page| format!("\"http://h.example/{page}\"")));
}

/// Writes the files that crawlers and this program leave in the folder of a crawl.
/// `archive/site.cdx` is first in the order of names.
fn put_side_files(crawl: &Path) -> usize {
    let side_files: [(&str, &[u8]); 9] = [
        ("archive/site.cdx", b" CDX N b a m s k r M S V g\nexample,h)/a 20260101000000 http://h.example/a\n"),
        ("archive/site.warc.gz.open", &wget_crawl(&["a"])),
        ("archive/site.warc.gz.sha256", b"00ff  site.warc.gz\n"),
        ("crawl.log", b"2026-01-01T00:00:00.000Z 200 700 http://h.example/a - - text/html\n"),
        ("indexes/index.cdxj", b"example,h)/a 20260101000000 {\"url\": \"http://h.example/a\"}\n"),
        ("logs/crawl.log", b"{\"timestamp\":\"2026-01-01T00:00:00Z\",\"logLevel\":\"info\",\"message\":\"x\"}\n"),
        ("pages/pages.jsonl", b"{\"format\":\"json-pages-1.0\"}\n{\"id\":\"1\",\"url\":\"http://h.example/a\"}\n"),
        (
            "site.zip",
            &zipped(&[(
                "truth.tsv",
                b"url
",
            )]),
        ),
        ("stats.json", b"{\n  \"crawled\": 3\n}\n"),
    ];
    for (name, bytes) in side_files {
        std::fs::create_dir_all(crawl.join(name).parent().unwrap()).unwrap();
        std::fs::write(crawl.join(name), bytes).unwrap();
    }
    side_files.len()
}

#[test]
fn side_files_in_a_folder_do_not_change_the_result_on_any_workers() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    std::fs::create_dir_all(at("crawl/archive")).unwrap();
    std::fs::write(at("crawl/archive/site.warc.gz"), wget_crawl(&["a", "b", "c"])).unwrap();
    succeed(&["run", "--input", &at("crawl/"), "--output", &at("bare")]);
    let bare = files(&folder.path().join("bare"));

    let side_files = put_side_files(&folder.path().join("crawl"));
    let report = format!("skipped {side_files} files that are not crawls; first {}: ", at("crawl/archive/site.cdx"));
    for (input, workers) in [("crawl/", "1"), ("crawl/", "2"), ("crawl/", "3"), ("crawl/**/*", "4")] {
        let run = ["run", "--input", &at(input), "--output", &at(workers), "--workers", workers];
        let stderr_text = stderr_text(&webtwin(&run).output().unwrap());
        assert_eq!(stderr_text.lines().filter(|line| line.starts_with(&report)).count(), 1, "{input}: {stderr_text}");
        let mut result_files = files(&folder.path().join(workers));
        if input.contains('*') {
            // The summary has the digest of the job, which depends on the name of the input.
            result_files.insert("summary.json".into(), bare["summary.json"].clone());
        }
        assert!(result_files == bare, "{input} {workers}");
    }
    let cluster = cluster_file(folder.path(), 2, &[(); 2].map(|()| reserved_address()));
    let processes = ["0", "1"].map(|process| {
        let at_process = ["run", "--cluster", &cluster, "--process", process];
        webtwin(&[&at_process[..], &["--input", &at("crawl/"), "--output", &at("2x2")]].concat()).spawn().unwrap()
    });
    let stderr_text: String = processes.map(|process| stderr_text(&process.wait_with_output().unwrap())).concat();
    assert_eq!(stderr_text.lines().filter(|line| line.starts_with(&report)).count(), 1, "{stderr_text}");
    assert!(files(&folder.path().join("2x2")) == bare);
}

#[test]
fn output_of_synth_is_read_as_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    write_crawl(&at("crawl"), 200, 7);
    let output = webtwin(&["run", "--input", &at("crawl/"), "--output", &at("out")]).output().unwrap();
    assert!(
        output.status.success() && stderr_text(&output).contains("skipped 1 file that is not a crawl"),
        "{}",
        stderr_text(&output)
    );
    assert_eq!(records(&at("out")).0, 200);
}

#[test]
fn named_or_single_side_files_and_damaged_crawls_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let side_files = put_side_files(&folder.path().join("crawl"));
    std::fs::create_dir(at("lost")).unwrap();
    std::fs::write(at("lost/a.warc.gz"), wget_crawl(&["a"])).unwrap();
    std::fs::write(at("lost/b.warc.gz"), "<html>404</html>").unwrap();
    std::fs::write(at("list"), "crawl/archive/site.cdx\n").unwrap();
    let (sound, list) = (at("lost/a.warc.gz"), format!("@{}", at("list")));
    for (input, words) in [
        (at("crawl/"), format!("input {}: none of the {side_files} files found is a crawl; first", at("crawl/"))),
        (at("crawl/*.zip"), "the only file found is not a crawl; first".to_string()),
        (at("crawl/archive/site.cdx"), "site.cdx: not_warc".to_string()),
        (list, "site.cdx: not_warc".to_string()),
        (at("lost"), "b.warc.gz: not_warc: an HTML page".to_string()),
    ] {
        let message = fail(&["run", "--input", &sound, "--input", &input, "--output", &at("out")], 3);
        assert!(message.contains(&words) && message.lines().count() == 1, "{input}: {message}");
    }
    // A file that is named explicitly and also found in a folder counts as named.
    let named = ["run", "--input", &at("crawl"), "--input", &at("crawl/crawl.log"), "--output", &at("out")];
    assert!(fail(&named, 3).contains("crawl.log: not_warc"));
}

#[test]
fn report_has_reasons_repairs_and_truncated_files() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let whole = wget_crawl(&["a", "b", "c"]);
    std::fs::write(at("whole.warc.gz"), &whole).unwrap();
    let lie = html("Content-Encoding: gzip\r\n", b"<p>not encoded at all");
    std::fs::write(at("lie.warc.gz"), gzip(&Record::with("d", lie).bytes())).unwrap();
    for cut in [3, 40, whole.len() / 2] {
        std::fs::write(at("torn.warc.gz"), &whole[..whole.len() - cut]).unwrap();
        let out = at(&format!("out-{cut}"));
        let files = [at("whole.warc.gz"), at("lie.warc.gz"), at("torn.warc.gz")];
        let inputs: Vec<&str> = files.iter().flat_map(|file| ["--input", file]).collect();
        let report = stderr_text(&webtwin(&[&["run", "--output", &out], &inputs[..]].concat()).output().unwrap());
        let (kept_pages, rejected) = records(&out);
        assert_eq!((kept_pages, &rejected["truncated"]), (4, &serde_json::json!(1)), "{report}");
        assert!(report.contains(&format!("{} is truncated within the record at offset ", files[2])), "{report}");
        assert_eq!(report.matches(" is truncated within").count(), 1, "{report}");
        assert!(
            report.contains(&format!("  rejected: {} not_a_page_record, ", rejected["not_a_page_record"])),
            "{report}"
        );
        assert!(report.contains("  kept, but repaired: 1 encoding_lie\n"), "{report}");
    }
}

#[test]
fn too_many_bad_records_are_reported_with_the_first_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let sound = Record::of("a").bytes();
    let bad = |name: &str| Record::with(name, b"no status line".to_vec()).bytes();
    std::fs::write(at("bad.warc"), [sound.clone(), bad("b"), sound.clone(), bad("c")].concat()).unwrap();
    let run = ["run", "--input", &at("bad.warc"), "--output", &at("out")];
    let message = fail(&run, 5);
    let first = format!("the first is bad_http_status at offset {}: the payload does not start", sound.len());
    assert!(message.contains(&first) && message.contains("--max-bad") && message.contains("2 of 4"), "{message}");
}

#[test]
fn input_without_page_fields_is_rejected_early_with_its_fields() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let line = |field: &str, n: usize| {
        serde_json::json!({ field: format!("http://a.example/{n}"), "text": "x" }).to_string() + "\n"
    };
    std::fs::write(at("ids.jsonl"), (0..5000).map(|n| line("id", n)).collect::<String>()).unwrap();
    for command in [&["run", "--output", &at("out")][..], &["plan"]] {
        let stderr_text = fail(&[command, &["--input", &at("ids.jsonl")]].concat(), 5);
        let words = [
            "the first 1000 records were inspected",
            "no field url or uri; the record has id, text",
            "input.fields.url",
        ];
        assert!(words.iter().all(|word| stderr_text.contains(word)), "{stderr_text}");
    }
    // Damaged lines at the beginning do not make an input damaged as a whole.
    let begins_badly = (0..30).map(|n| line("id", n)).chain((0..5000).map(|n| line("url", n)));
    std::fs::write(at("begins.jsonl"), begins_badly.collect::<String>()).unwrap();
    let output = webtwin(&["run", "--input", &at("begins.jsonl"), "--output", &at("out")]).output().unwrap();
    let stderr_text = stderr_text(&output);
    assert!(output.status.success() && stderr_text.starts_with("warning: input "), "{stderr_text}");
    assert!(
        stderr_text.contains("30 of 1000 records are damaged") && stderr_text.contains("5030 records read"),
        "{stderr_text}"
    );
}
