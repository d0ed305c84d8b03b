use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::Path;

use serde_json::{Value, json};

use crate::containers::{bzip2, xz};
use crate::support::program::{fail, files, stderr_text, succeed, webtwin};

/// Returns words that no two texts share by chance.
fn text(number: usize, words: usize) -> String {
    (0..words).map(|at| format!("w{}x{at}", number)).collect::<Vec<_>>().join(" ")
}

fn edited(number: usize, words: usize, at: usize) -> String {
    text(number, words).replace(&format!("w{number}x{at}"), "edited")
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Default::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    flate2::read::GzDecoder::new(bytes).read_to_end(&mut all).unwrap();
    all
}

/// Returns the rows of a table as JSON.
fn rows(table: &str) -> Vec<Value> {
    succeed(&["show", table, "--json", "--limit", "1000000"])
        .lines()
        .map(|row| serde_json::from_str(row).unwrap())
        .collect()
}

fn summary(out: &str) -> Value {
    let summary: Value =
        serde_json::from_slice(&std::fs::read(Path::new(out).join("_webtwin/summary")).unwrap()).unwrap();
    let records = &summary["records"];
    let n = |name: &str| records[name].as_u64().unwrap();
    assert_eq!(n("read"), n("kept") + n("removed") + n("rejected"), "{records}");
    summary
}

/// Returns lines that are unusual but valid, then copies and near-copies of some of them, and two
/// lines that are not records.
fn odd_lines() -> Vec<String> {
    let mut lines = vec![
        format!("{{ \"text\" : \"{}\" ,\t\"z\":[1,{{\"text\":\"no\"}}]}}\r\n", text(0, 60)),
        format!("{{\"n\":1.50e+1,\"text\":\"{}\\u00e9\\n\"}}  \n", text(1, 60)),
        format!("{{\"text\":\"x\",\"text\":\"{}\"}}\n", text(2, 60)),
        "\n".to_string(),
        "no json\n".to_string(),
        format!("{{\"id\":\"é\",\"content\":\"{}\"}}\n", text(3, 60)),
        "{\"title\":\"without a text\"}\n".to_string(),
        "{\"text\":\"\"}\n".to_string(),
        "{\"text\":\"\"}\n".to_string(),
        "{\"text\":\"short\"}\n".to_string(),
    ];
    lines.push(format!("{{\"copy\":1,\"text\":\"{}\"}}\n", text(0, 60)));
    lines.push(format!("{{\"near\":1,\"text\":\"{}\"}}\n", edited(3, 60, 30)));
    lines.push("{\"text\":\"Short!\"}".to_string());
    lines
}

#[test]
fn kept_records_have_unchanged_bytes_in_any_compression_and_with_any_threads() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let lines = odd_lines();
    let all: String = lines.concat();
    std::fs::create_dir_all(at("in/b")).unwrap();
    std::fs::write(at("in/a.jsonl"), format!("\u{feff}{all}")).unwrap();
    std::fs::write(at("in/b/a.jsonl.gz"), gzip(all.as_bytes())).unwrap();
    std::fs::write(at("in/z.zst"), zstd::encode_all(all.as_bytes(), 3).unwrap()).unwrap();
    std::fs::write(at("in/x.xz"), xz(all.as_bytes())).unwrap();
    std::fs::write(at("in/y.bz2"), bzip2(all.as_bytes())).unwrap();
    std::fs::write(at("in/notes.txt"), "no corpus\n").unwrap();
    for workers in ["1", "2", "3"] {
        let arguments = ["dedup", &at("in"), "--output", &at(workers), "--workers", workers, "--max-bad", "0.5"];
        succeed(&arguments);
    }
    let one = files(&at("1"));
    assert_eq!(
        one.keys().collect::<Vec<_>>(),
        [
            "_webtwin/rejected/part-00000",
            "_webtwin/removed/part-00000",
            "_webtwin/summary",
            "a.jsonl",
            "b/a.jsonl.gz",
            "x.xz",
            "y.bz2",
            "z.zst"
        ]
    );
    assert!(files(&at("2")) == one && files(&at("3")) == one);
    // Line 3 is blank, lines 4 and 6 are not records, and lines 10 to 12 are duplicates.
    let is_kept = |at: &usize| !matches!(at, 3 | 4 | 6 | 10..=12);
    let want: String = (0..lines.len()).filter(is_kept).map(|at| lines[at].as_str()).collect();
    assert_eq!(String::from_utf8(one["a.jsonl"].clone()).unwrap(), format!("\u{feff}{want}"));
    // Only texts that are never duplicates stay in the other files.
    let empty = "{\"text\":\"\"}\n{\"text\":\"\"}\n";
    assert_eq!(String::from_utf8(gunzip(&one["b/a.jsonl.gz"])).unwrap(), empty);
    assert_eq!(String::from_utf8(zstd::decode_all(&one["z.zst"][..]).unwrap()).unwrap(), empty);
    let mut unpacked = String::new();
    liblzma::read::XzDecoder::new(&one["x.xz"][..]).read_to_string(&mut unpacked).unwrap();
    bzip2::read::BzDecoder::new(&one["y.bz2"][..]).read_to_string(&mut unpacked).unwrap();
    assert_eq!(unpacked, empty.repeat(2));
    let summary = summary(&at("1"));
    assert_eq!(summary["records"]["rejected_by"], json!({ "bad_field": 5, "bad_json": 5 }));
    assert_eq!((&summary["empty_texts"], &summary["records"]["read"]), (&json!(10), &json!(60)));
    let removed = rows(&at("1/removed"));
    assert_eq!(rows(&at("1/_webtwin/removed")), removed);
    assert_eq!(removed.len(), 3 + 4 * 8);
    let [copy, near, short] = &removed[..3] else { panic!() };
    assert_eq!(
        (&copy["row"], &copy["kept_row"], &copy["why"], &copy["similarity"]),
        (&json!(10), &json!(0), &json!("exact"), &json!(1.0))
    );
    // Both texts have 56 shingles, five of which the edit changes.
    assert_eq!(
        (&near["row"], &near["kept_row"], &near["why"], &near["similarity"]),
        (&json!(11), &json!(5), &json!("near"), &json!(51.0 / 61.0))
    );
    assert_eq!(
        (&short["row"], &short["kept_row"], &short["why"], &short["similarity"]),
        (&json!(12), &json!(9), &json!("near"), &json!(1.0))
    );
    assert_eq!(near["id"], json!(format!("{}:11", at("in/a.jsonl"))));
    let rejected = rows(&at("1/rejected"));
    assert_eq!(rejected[0]["reason"], json!("bad_json"));
    let offset = rejected[0]["offset"].as_u64().unwrap() as usize;
    assert_eq!(&format!("\u{feff}{all}")[offset..offset + 7], "no json");
}

#[test]
fn mostly_damaged_file_ends_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let lines = |range: std::ops::Range<usize>| {
        range.map(|n| format!("{{\"text\":\"{}\"}}\n", text(n, 60))).collect::<String>()
    };
    let (first, second) = (gzip(lines(0..400).as_bytes()), gzip(lines(400..4000).as_bytes()));
    // The header of the second gzip member is damaged.
    let damaged = [&first[..], &[0x1f, 0x8b, 9], &second[3..]].concat();
    std::fs::write(at("a.jsonl.gz"), &damaged).unwrap();
    let arguments = ["dedup", &at("a.jsonl.gz"), "--output", &at("out")];
    let ended = webtwin(&arguments).output().unwrap();
    assert_eq!(ended.status.code(), Some(5), "{}", stderr_text(&ended));
    assert!(stderr_text(&ended).contains(" lost"), "{}", stderr_text(&ended));
    succeed(&[&arguments[..], &["--max-bad", "0.95"]].concat());
    let records = &summary(&at("out"))["records"];
    assert_eq!((&records["kept"], &records["rejected"]), (&json!(400), &json!(1)));
    // Cutting off the end costs only the last record.
    std::fs::write(at("b.jsonl.gz"), &second[..second.len() - 3]).unwrap();
    succeed(&["dedup", &at("b.jsonl.gz"), "--output", &at("torn")]);
}

#[test]
fn non_finite_numbers_stay_as_python_writes_them() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let lines = "{\"text\":\"a NaN in a text\",\"score\":NaN}\n{\"score\":-Infinity,\"text\":\"another\"}\n";
    std::fs::write(at("a.jsonl"), lines).unwrap();
    succeed(&["dedup", &at("a.jsonl"), "--output", &at("out")]);
    assert_eq!(std::fs::read_to_string(at("out/a.jsonl")).unwrap(), lines);
}

#[test]
fn window_over_the_limit_is_rejected_with_the_option_that_raises_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(22).unwrap();
    std::io::Write::write_all(&mut encoder, "{\"text\":\"some words\"}\n".repeat(9).as_bytes()).unwrap();
    std::fs::write(at("a.jsonl.zst"), encoder.finish().unwrap()).unwrap();
    let arguments = ["dedup", &at("a.jsonl.zst"), "--output", &at("out"), "--max-window"];
    let ended = webtwin(&[&arguments[..], &["1MiB"]].concat()).output().unwrap();
    assert_eq!(ended.status.code(), Some(3), "{}", stderr_text(&ended));
    assert!(stderr_text(&ended).contains("--max-window"), "{}", stderr_text(&ended));
    succeed(&[&arguments[..], &["4MiB"]].concat());
}

#[test]
fn annotated_records_retain_their_bytes_and_name_their_originals() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let lines = [
        format!("{{\"id\":7,\"text\":\"{}\"}} \r\n", text(0, 60)),
        format!("{{\"id\":8,\"text\":\"{}\"}}\n", text(0, 60)),
        format!("{{\"id\":9,\"text\":\"{}\"}}\n", text(1, 60)),
    ];
    std::fs::write(at("a.jsonl"), lines.concat()).unwrap();
    let common = ["dedup", &at("a.jsonl"), "--id-field", "id", "--annotate"];
    succeed(&[&common[..], &["--output", &at("out")]].concat());
    let noted = std::fs::read_to_string(at("out/a.jsonl")).unwrap();
    let notes = [
        ",\"duplicate_of\":null,\"similarity\":null,\"cluster\":\"7\"} \r\n",
        ",\"duplicate_of\":\"7\",\"similarity\":1.0,\"cluster\":\"7\"}\n",
        ",\"duplicate_of\":null,\"similarity\":null,\"cluster\":null}\n",
    ];
    let want: String =
        lines.iter().zip(notes).map(|(line, note)| line[..line.rfind('}').unwrap()].to_string() + note).collect();
    assert_eq!(noted, want);
    // The input already has the annotation fields, so a second annotation needs another prefix.
    let second_run = ["dedup", &at("out/a.jsonl"), "--annotate", "--output"];
    assert!(fail(&[&second_run[..], &[&at("again")]].concat(), 3).contains("duplicate_of"));
    succeed(&[&second_run[..], &[&at("again"), "--annotate-prefix", "second_"]].concat());
    assert!(fail(&["dedup", &at("a.jsonl"), "--against", &at("out"), "--output", &at("x")], 3).contains("--annotate"));
}

#[test]
fn records_of_an_earlier_result_are_removed_from_new_ones() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let line = |id: &str, text: String| format!("{{\"id\":\"{id}\",\"text\":\"{text}\"}}\n");
    std::fs::write(at("old.jsonl"), [line("a", text(0, 60)), line("b", text(0, 60)), line("c", text(1, 60))].concat())
        .unwrap();
    let new = [line("d", text(0, 60)), line("e", edited(1, 60, 9)), line("f", text(2, 60)), line("g", text(2, 60))];
    std::fs::write(at("new.jsonl"), new.concat()).unwrap();
    succeed(&["dedup", &at("old.jsonl"), "--id-field", "id", "--output", &at("old")]);
    succeed(&["dedup", &at("new.jsonl"), "--id-field", "id", "--against", &at("old"), "--output", &at("new")]);
    let removed: BTreeMap<String, (String, String)> = rows(&at("new/removed"))
        .iter()
        .map(|row| ["id", "kept_id", "why"].map(|name| row[name].as_str().unwrap().to_string()))
        .map(|[id, kept, why]| (id, (kept, why)))
        .collect();
    let pair = |kept: &str, why: &str| (kept.to_string(), why.to_string());
    let want = [("d", pair("a", "against")), ("e", pair("c", "against")), ("g", pair("f", "exact"))];
    assert_eq!(removed, want.map(|(id, kept)| (id.to_string(), kept)).into());
    assert_eq!(std::fs::read_to_string(at("new/new.jsonl")).unwrap(), new[2]);
    assert_eq!(summary(&at("new"))["against"], json!(2));
}

#[test]
fn the_rule_decides_which_of_several_stays() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let line = |id: u32, n: &str, date: &str, extra: &str| {
        format!("{{\"id\":{id},\"meta\":{{\"n\":{n},\"at\":\"{date}\"}},\"text\":\"{}{extra}\"}}\n", text(0, 60))
    };
    std::fs::write(at("a.jsonl"), line(10, "2", "2020-01-01", "") + &line(9, "7.5", "2024-01-01T00:00:00Z", " x"))
        .unwrap();
    std::fs::write(at("b.jsonl"), line(8, "null", "never", "") + &line(11, "-1", "2022-01-01", "")).unwrap();
    for (rule, stays) in [
        (&["--keep", "first"][..], 10),
        (&["--keep", "longest"], 9),
        (&["--keep", "newest:meta.at"], 9),
        (&["--keep", "max:meta.n"], 9),
        (&["--keep", "min:meta.n"], 11),
        (&["--keep", "smallest-id"], 8),
        (&["--prefer", "*/b.jsonl"], 8),
        (&["--prefer", "b.jsonl,a.jsonl", "--keep", "min:meta.n"], 11),
    ] {
        let out = at(&rule.join("").replace(['/', '*'], ""));
        let input = [at("a.jsonl"), at("b.jsonl")];
        succeed(&[&["dedup", &input[0], &input[1], "--id-field", "id", "--output", &out][..], rule].concat());
        let kept_rows =
            ["a.jsonl", "b.jsonl"].map(|name| std::fs::read_to_string(Path::new(&out).join(name)).unwrap()).concat();
        let kept_rows: Vec<Value> = kept_rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(kept_rows.iter().map(|row| row["id"].as_u64().unwrap()).collect::<Vec<_>>(), [stays], "{rule:?}");
    }
}

#[test]
fn records_are_counted_by_the_values_of_fields() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let line =
        |number: usize, meta: &str| format!("{{\"text\":\"{}\",\"meta\":{meta},\"n\":{number}}}\n", text(number, 60));
    let lines = [
        line(0, r#"{"lang":"en","good":true}"#),
        line(0, r#"{"lang":"en","good":false}"#),
        line(1, r#"{"lang":"de","good":true}"#),
        line(1, r#"{"lang":null}"#),
        line(2, r#"{"lang":["en"]}"#),
        "no json\n".into(),
    ];
    std::fs::write(at("a.jsonl"), lines.concat()).unwrap();
    std::fs::write(at("b.jsonl"), lines[..3].concat()).unwrap();
    let dedup = |out: &str, workers: &str| {
        let fields = ["--count-by", "meta.lang", "--count-by", "meta.good", "--max-bad", "0.5"];
        succeed(
            &[&["dedup", &at("a.jsonl"), &at("b.jsonl"), "--output", &at(out), "--workers", workers], &fields[..]]
                .concat(),
        );
    };
    ["1", "2", "3"].into_iter().for_each(|workers| dedup(workers, workers));
    assert!(files(&at("2")) == files(&at("1")) && files(&at("3")) == files(&at("1")));
    let counts = summary(&at("1"))["counts_by"].clone();
    let rows = |field: &str| -> Vec<(Value, u64, u64)> {
        let count_row =
            |row: &Value| (row["value"].clone(), row["kept"].as_u64().unwrap(), row["removed"].as_u64().unwrap());
        counts[field].as_array().unwrap().iter().map(count_row).collect()
    };
    assert_eq!(rows("meta.lang"), [(json!("en"), 1, 3), (json!(null), 1, 1), (json!("de"), 1, 1)]);
    assert_eq!(rows("meta.good"), [(json!("true"), 2, 2), (json!(null), 1, 1), (json!("false"), 0, 2)]);
    assert_eq!(counts["meta.lang"][0]["removed_by"], json!({ "exact": 3 }));
    let many: String = (0..10_001).map(|n| format!("{{\"text\":\"{n}\",\"n\":{n}}}\n")).collect();
    std::fs::write(at("many.jsonl"), many).unwrap();
    let refused = fail(&["dedup", &at("many.jsonl"), "--count-by", "n", "--output", &at("many")], 2);
    assert!(refused.contains("more than 10000 values"), "{refused}");
}

#[test]
fn errors_are_reported_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    std::fs::write(at("a.jsonl"), format!("{{\"body\":\"{}\"}}\n", text(0, 9)).repeat(5)).unwrap();
    std::fs::write(at("page.html"), "<!doctype html><p>x").unwrap();
    let out = at("out");
    let dedup =
        |input: &str, more: &[&str], code| fail(&[&["dedup", &at(input), "--output", &out][..], more].concat(), code);
    assert!(
        dedup("a.jsonl", &[], 5).contains("no field text or content; name the field of the text with --text-field")
    );
    assert!(dedup("missing", &[], 3).contains("no such file"));
    assert!(dedup("page.html", &[], 3).contains("neither JSONL nor Parquet"));
    assert!(dedup("a.jsonl", &["--memory", "1MB"], 9).contains("--memory"));
    assert!(dedup("a.jsonl", &["--threshold", "7"], 2).contains("--threshold"));
    assert!(dedup("a.jsonl", &["--keep", "best"], 2).contains("max:FIELD"));
    assert!(dedup("a.jsonl", &["--keep", "smallest-id"], 2).contains("--id-field"));
    assert!(!Path::new(&out).exists());
    succeed(&["dedup", &at("a.jsonl"), "--text-field", "body", "--output", &out]);
    assert!(dedup("a.jsonl", &["--text-field", "body"], 4).contains("already been committed"));
}

#[test]
fn exact_copies_alone_can_be_removed_and_empty_input_gives_an_empty_result() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let line = |text: String| format!("{{\"text\":\"{text}\"}}\n");
    std::fs::write(at("a.jsonl"), line(text(0, 60)) + &line(edited(0, 60, 3)) + &line(text(0, 60))).unwrap();
    succeed(&["dedup", &at("a.jsonl"), "--by", "exact", "--output", &at("out")]);
    assert_eq!(std::fs::read_to_string(at("out/a.jsonl")).unwrap().lines().count(), 2);
    std::fs::write(at("empty.jsonl"), "").unwrap();
    succeed(&["dedup", &at("empty.jsonl"), "--output", &at("none")]);
    assert_eq!(std::fs::read(at("none/empty.jsonl")).unwrap(), b"");
    assert_eq!(summary(&at("none"))["records"]["read"], json!(0));
}

/// Returns a corpus of texts with made-up URLs of one host, as users pass it to `run`.
#[test]
fn near_copies_among_texts_without_links_are_found_by_the_default_job() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let lines = |number: usize| {
        (0..12).map(|at| format!("line {at} of text {number} has words of its own")).collect::<Vec<_>>()
    };
    let page = |name: String, lines: &[String]| json!({ "url": format!("http://corpus.invalid/{name}"), "text": lines.join("\n") });
    let mut pages = Vec::new();
    for number in 0..20 {
        let mut lines = lines(number);
        pages.push(page(format!("{number}"), &lines));
        lines[4] = "another line".into();
        pages.push(page(format!("copy-{number}"), &lines));
    }
    std::fs::write(at("a.jsonl"), pages.iter().map(|page| format!("{page}\n")).collect::<String>()).unwrap();
    let run = |guard: &[&str], out: &str| {
        let output =
            webtwin(&[&["run", "--input", &at("a.jsonl"), "--output", &at(out)][..], guard].concat()).output().unwrap();
        assert!(output.status.success());
        (rows(&at(&format!("{out}/clusters"))).len(), stderr_text(&output))
    };
    let (clusters_found, message) = run(&[], "default");
    assert_eq!(clusters_found, 40);
    assert!(message.contains("20 similar pairs by overlap, of which the guard `neighbours` refused 0"), "{message}");
    // Job files and results of earlier builds have this name for the same guard.
    let (clusters_found, message) = run(&["--set", "similar.guard=auto"], "auto");
    assert!(clusters_found == 40 && message.contains("the guard `neighbours` refused 0"), "{message}");
}
