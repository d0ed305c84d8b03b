use std::path::Path;

use serde_json::{Value, json};

use crate::support::program::{fail, rows, succeed};

/// Returns words that no two texts share by chance, some of them replaced.
fn text(number: usize, replaced: &[usize]) -> String {
    let word = |at: usize| if replaced.contains(&at) { format!("other{at}") } else { format!("w{number}x{at}") };
    (0..60).map(word).collect::<Vec<_>>().join(" ")
}

fn summary(out: &str) -> Value {
    serde_json::from_slice(&std::fs::read(Path::new(out).join("_webtwin/summary")).unwrap()).unwrap()
}

fn line(id: &str, text: &str) -> String {
    json!({ "meta": { "id": id, "lang": if id < "d" { "en" } else { "de" } }, "text": text }).to_string() + "\n"
}

/// A corpus with copies, near-copies, a chain and unusual lines, deduplicated against an older
/// file.
struct Corpus(tempfile::TempDir);

impl Corpus {
    fn new() -> Corpus {
        let corpus = Corpus(tempfile::tempdir().unwrap());
        let first = [
            line("a", &text(0, &[])),
            "\n".into(),
            line("b", &text(0, &[10])),
            line("c", &text(0, &[10, 40])),
            "no json\n".into(),
            line("d", &text(0, &[])),
            line("e", " "),
        ];
        let second = [line("f", &text(1, &[5])), line("g", &text(2, &[])), line("g", &text(3, &[]))];
        std::fs::create_dir(corpus.at("in")).unwrap();
        std::fs::write(corpus.at("in/1.jsonl"), first.concat()).unwrap();
        std::fs::write(corpus.at("in/2.jsonl.zst"), zstd::encode_all(second.concat().as_bytes(), 3).unwrap()).unwrap();
        std::fs::write(corpus.at("old.jsonl"), line("o", &text(1, &[]))).unwrap();
        corpus.dedup("out", &[]);
        corpus
    }

    fn at(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_string()
    }

    fn dedup(&self, out: &str, more: &[&str]) {
        let (input, against, output) = (self.at("in"), self.at("old.jsonl"), self.at(out));
        let arguments = ["dedup", &input, "--against", &against, "--output", &output, "--id-field", "meta.id"];
        succeed(&[&arguments[..], &["--max-bad", "0.5", "--count-by", "meta.lang"], more].concat());
    }

    fn explain(&self, a: &str, b: &str) -> (String, Value) {
        let out = self.at("out");
        let message = succeed(&["explain", &out, a, b]);
        (message, serde_json::from_str(&succeed(&["explain", &out, a, b, "--json"])).unwrap())
    }
}

#[test]
fn two_records_of_a_corpus_are_explained_by_id_or_location() {
    let corpus = Corpus::new();
    let reason = |a: &str, b: &str, together: bool| {
        let (message, json) = corpus.explain(a, b);
        assert_eq!(json["together"], json!(together), "{message}");
        let reason = json["reasons"][0].as_str().unwrap().to_string();
        assert!(
            message.contains(&format!("{}\n  {reason}", if together { "duplicates:" } else { "APART:" })),
            "{message}"
        );
        reason
    };
    let first = corpus.at("in/1.jsonl");
    assert_eq!(
        reason("a", "d", true),
        format!("B is removed in favour of a ({first}:0), which has the same text, byte for byte")
    );
    assert!(reason("b", "a", true).ends_with("which it resembles by 0.836"));
    assert!(reason("b", "d", true).starts_with("A is removed in favour of a "));
    // Removed records are not compared, so a record that only resembles b is kept.
    let chain = reason("b", "c", false);
    assert!(chain.contains("B resembles that record by 0.697, and is not compared with removed records"), "{chain}");
    assert_eq!(reason("a", "c", false), "their resemblance is 0.697, below --threshold 0.8");
    assert!(reason("a", "e", false).starts_with("a text of white space only"));
    assert!(reason("o", "f", true).contains("a record of --against that it resembles by 0.836"));

    let (message, json) = corpus.explain(&format!("{first}:2"), "a");
    assert_eq!(json["records"][0]["id"], json!("b"));
    assert_eq!((&json["records"][1]["cluster"], &json["minhash"]["shared"]), (&json!(3), &json!(51)));
    assert!(
        message.contains("  minhash: 51 of 56 and 56 shingles (words:5) shared: resemblance 0.836, threshold 0.8\n"),
        "{message}"
    );
    assert!(message.contains(" of 21 bands of 6 minima agree, 1 is needed; 99.9"), "{message}");
    let changed: Vec<&str> = message.lines().filter(|line| line.starts_with(['+', '-'])).collect();
    assert!(changed.len() <= 4 && changed[0].contains("other10") && changed[0].len() < 300, "{message}");
}

#[test]
fn unknown_and_ambiguous_record_names_are_rejected_with_a_remedy() {
    let corpus = Corpus::new();
    let (out, first) = (corpus.at("out"), corpus.at("in/1.jsonl"));
    let refused = |a: &str, code: i32| fail(&["explain", &out, a, "b"], code);
    assert!(refused("nobody", 3).contains("no record of the corpus has this id"));
    assert!(refused(&format!("{first}:1"), 3).contains("the line is blank"));
    assert!(refused(&format!("{first}:4"), 3).contains("the record is rejected"));
    assert!(refused(&format!("{first}:99"), 3).contains("the file has 7 rows"));
    let second = corpus.at("in/2.jsonl.zst");
    assert!(refused("g", 2).contains(&format!("{second}:1, {second}:2")));
    assert!(refused(&format!("{first}:2"), 2).contains("both name one record"));
    assert!(fail(&["explain", &out, "a", "--against", &out], 2).contains("a corpus"));
    // A corpus without ids is addressed by file and row. The file may be relative to the folder in
    // which the run was started.
    let started = ["dedup", "in/1.jsonl", "--output", "plain", "--max-bad", "0.5"];
    let status = crate::support::program::webtwin(&started).current_dir(corpus.0.path()).status().unwrap();
    assert!(status.success());
    assert!(fail(&["explain", &corpus.at("plain"), "a", "b"], 2).contains("FILE:ROW"));
    let message = succeed(&["explain", &corpus.at("plain"), "in/1.jsonl:0", &format!("{first}:5")]);
    assert!(message.contains("TOGETHER") && message.starts_with("A  in/1.jsonl:0\n"), "{message}");
    std::fs::remove_file(Path::new(&corpus.at("in/1.jsonl"))).unwrap();
    fail(&["explain", &corpus.at("plain"), "in/1.jsonl:0", "in/1.jsonl:5"], 3);
}

fn report(corpus: &str, more: &[&str]) -> Value {
    serde_json::from_str(&succeed(&[&["report", corpus, "--json", "--output", "-"], more].concat())).unwrap()
}

#[test]
fn report_of_a_corpus_equals_its_tables_and_shows_texts_side_by_side() {
    let corpus = Corpus::new();
    let out = corpus.at("out");
    let corpus_report = report(&out, &[]);
    let removed = rows(&out, "removed");
    let records = &summary(&out)["records"];
    assert_eq!(corpus_report["run"]["duplicates"], json!(removed.len()));
    assert_eq!((&corpus_report["run"]["read"], &corpus_report["run"]["kept"]), (&records["read"], &records["kept"]));
    assert_eq!(corpus_report["run"]["rejected"], json!({ "bad_json": 1 }));
    // Only settings that differ from the default are shown.
    let settings = corpus_report["run"]["settings"].as_object().unwrap();
    assert_eq!(settings.keys().collect::<Vec<_>>(), ["against", "count_by", "id_field", "max_bad"]);

    let [parts, clusters] = [&corpus_report["parts"], &corpus_report["clusters"]];
    assert_eq!(parts[0]["headline"], json!("33 % of the records are duplicates"));
    let bars = |heading: &str| -> Vec<(String, u64)> {
        let charts = parts[0]["charts"].as_array().unwrap();
        let bars = charts.iter().find(|chart| chart["heading"] == heading).unwrap()["bars"].as_array().unwrap();
        bars.iter().map(|bar| (bar["what"].as_str().unwrap().to_string(), bar["count"].as_u64().unwrap())).collect()
    };
    let counted = |counts: &[(&str, u64)]| counts.iter().map(|(what, n)| (what.to_string(), *n)).collect::<Vec<_>>();
    let fates = [("kept", 5), ("removed: same text", 1), ("removed: similar", 1), ("removed: in the older corpus", 1)];
    assert_eq!(bars("Records"), counted(&[&fates[..], &[("rejected", 1)]].concat()));
    assert_eq!(bars("Similar texts by resemblance"), counted(&[("0.80 to 0.85", 2)]));
    assert_eq!(bars("Clusters by size"), counted(&[("2 records", 1), ("3 records", 1)]));
    let by_field = &parts[1]["tables"][0];
    assert_eq!(
        (&by_field["heading"], &by_field["rows"][0][0], &by_field["rows"][0][1]),
        (&json!("meta.lang"), &json!("de"), &json!(3))
    );

    assert_eq!((&clusters["all"], clusters["shown"].as_array().unwrap().len()), (&json!(2), 2));
    let first = &clusters["shown"][0];
    assert_eq!((&first["kept"]["id"], &first["removed"]), (&json!("a"), &json!(2)));
    assert_eq!(first["removed_by"], json!({ "exact": 1, "near": 1 }));
    // The least similar pair comes first.
    assert_eq!((&first["members"][0]["id"], &first["members"][1]["id"]), (&json!("b"), &json!("d")));
    assert!(first["diff"].to_string().contains(r#"{"changed":true,"text":"other10"}"#), "{}", first["diff"]);
    assert_eq!(clusters["shown"][1]["kept"]["file"], json!(corpus.at("old.jsonl")));

    assert!(report(&out, &["--pairs", "0"])["clusters"]["shown"][0]["diff"].as_array().unwrap().is_empty());
    let page = |out: &str| succeed(&["report", out, "--output", "-", "--no-run-facts"]);
    let html = page(&out);
    for shown in
        ["<ins>other10</ins>", "Clusters of duplicates", "83.6 % similar", "9 records read = 5 kept + 3 duplicates"]
    {
        assert!(html.contains(shown), "{shown}");
    }
    assert!(html == page(&out));
    std::fs::remove_file(corpus.at("in/1.jsonl")).unwrap();
    assert!(report(&out, &[])["clusters"]["shown"][0]["unread"].as_str().unwrap().contains("in/1.jsonl"));
    assert!(page(&out).contains("could not be read again"));
}

#[test]
fn reports_of_a_corpus_are_valid_for_any_records_and_for_none() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let hostile = "</script><img src=x onerror=\"alert(1)\"> ".repeat(9);
    let records = [hostile.clone() + "end", hostile.clone() + "End!", "x".into()];
    let lines: String = records.iter().map(|text| line("\"><script>alert(2)</script>", text)).collect();
    std::fs::write(at("a.jsonl"), lines).unwrap();
    succeed(&["dedup", &at("a.jsonl"), "--id-field", "meta.id", "--annotate", "--output", &at("out")]);
    let html = succeed(&["report", &at("out"), "--output", "-"]);
    assert_eq!(html.matches("<script").count(), 1);
    assert!(!html.contains("<img") && html.contains("same shingles") && html.contains("marked as duplicates"));
    std::fs::write(at("empty.jsonl"), "").unwrap();
    succeed(&["dedup", &at("empty.jsonl"), "--output", &at("none")]);
    assert!(succeed(&["report", &at("none"), "--output", "-"]).contains("No record is a duplicate of another"));
    assert!(fail(&["report", &at("none"), "--against", &at("out"), "--output", "-"], 2).contains("--against"));
}
