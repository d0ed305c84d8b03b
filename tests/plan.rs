//! Compares the predictions of `webtwin plan` with the reports of runs, for each kind of job, in
//! whole numbers without times.

use std::path::Path;

use serde_json::Value;

use crate::support::manual::write;
use crate::support::ports::reserved_address;
use crate::support::program::{cluster_file, stderr_text, succeed, webtwin};

/// Input of all jobs. It is large enough that a sample is only a part of it.
const CRAWL: &str = "synth://?pages=12000&seed=4";

/// Checks that a prediction is within a quarter of the reported value.
fn assert_near(what: &str, predicted: u64, message: u64) {
    let (predicted, message) = (predicted as f64, message as f64);
    assert!((0.75 * message..=1.25 * message).contains(&predicted), "{what}: {predicted} predicted, {message} told");
}

fn json(file: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

fn plan(settings: &[&str], more: &[&str]) -> Value {
    serde_json::from_str(&succeed(&[&["plan", "--json"], settings, more].concat())).unwrap()
}

/// Returns the sum of a number over the processes of a run.
fn sum(manifest: &Value, what: &str) -> u64 {
    manifest["processes"].as_array().unwrap().iter().map(|process| process[what].as_u64().unwrap()).sum()
}

fn check_against_run(settings: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let output = ["--workers", "2", "--output", out.to_str().unwrap()];
    let settings = [&["--input", CRAWL], settings].concat();
    succeed(&[&["run"], &settings[..], &output].concat());
    let (predicted, manifest) = (plan(&settings, &["--workers", "2"]), json(&out.join("manifest.json")));
    let predicted_number = |what: &str| predicted[what].as_u64().unwrap();
    assert_eq!(predicted["digest"], manifest["digest"]);
    assert_near(&format!("{settings:?}: pages"), predicted["expected"]["pages"].as_u64().unwrap(), 12_000);
    assert_near(
        &format!("{settings:?}: exchanged"),
        predicted_number("exchanged_bytes"),
        sum(&manifest, "exchanged_bytes"),
    );
    assert_near(&format!("{settings:?}: rounds"), predicted_number("rounds"), manifest["rounds"].as_u64().unwrap());
    assert_eq!((predicted_number("sent_bytes"), sum(&manifest, "sent_bytes")), (0, 0), "there is no other process");
    if !cfg!(debug_assertions) {
        // Without optimization, the program itself needs more memory.
        assert_near(
            &format!("{settings:?}: memory"),
            predicted_number("memory_bytes"),
            sum(&manifest, "peak_memory_bytes"),
        );
    }
}

#[test]
fn the_main_job_is_predicted_by_each_measure() {
    for measure in ["overlap", "hamming", "both", "signatures", "minhash"] {
        check_against_run(&["--set", &format!("similar.by={measure}")]);
    }
}

#[test]
fn job_of_external_pairs_is_predicted_except_for_the_pairs() {
    let folder = tempfile::tempdir().unwrap();
    let pairs = write(folder.path(), "pairs.csv", "a,b\nhttp://a.example/,http://b.example/\n");
    let settings = ["--set", "similar.by=given", "--set", &format!("pairs.from={pairs}")];
    check_against_run(&settings);
    let warnings = plan(&[&["--input", CRAWL][..], &settings].concat(), &[])["warnings"].to_string();
    assert!(warnings.contains("pairs.from"), "{warnings}");
}

#[test]
fn the_papers_conditions_and_studies_are_predicted() {
    check_against_run(&["--set", "preset=four-line", "--set", "clusters.merge=exact"]);
    check_against_run(&["--set", "preset=study"]);
}

#[test]
fn bytes_sent_to_other_processes_are_predicted() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let addresses = [(); 3].map(|()| reserved_address());
    let cluster = cluster_file(folder.path(), 1, &addresses);
    let started: Vec<_> = (0..3)
        .map(|process: usize| {
            let (number, output) = (process.to_string(), out.to_str().unwrap());
            let place = ["--cluster", &cluster, "--process", &number];
            webtwin(&[&["run", "--input", CRAWL, "--output", output][..], &place].concat()).spawn().unwrap()
        })
        .collect();
    for mut process in started {
        assert!(process.wait().unwrap().success());
    }
    let manifest = json(&out.join("manifest.json"));
    let predicted = plan(&["--input", CRAWL], &["--machines", "3", "--workers", "1"]);
    assert_eq!(manifest["processes"].as_array().unwrap().len(), 3);
    // All bytes that are sent to another worker go to another process.
    assert_eq!(sum(&manifest, "sent_bytes"), sum(&manifest, "exchanged_bytes"));
    assert_near("sent", predicted["sent_bytes"].as_u64().unwrap(), sum(&manifest, "sent_bytes"));
    assert_near("rounds", predicted["rounds"].as_u64().unwrap(), manifest["rounds"].as_u64().unwrap());
}

#[test]
fn fingerprint_files_and_their_joins_are_predicted() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let metrics = |name: &str| {
        let text = std::fs::read_to_string(at(name)).unwrap();
        move |what: &str| {
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix(&format!("webtwin_{what}{{process=\"0\"}} ")).map(str::to_string));
            line.unwrap().parse::<f64>().unwrap() as u64
        }
    };
    let from_crawl = ["--input", CRAWL, "--set", "kind=fingerprints"];
    let predicted = plan(&from_crawl, &["--workers", "2"]);
    let (f, message) = (at("f"), at("build.prom"));
    succeed(&[&["run"], &from_crawl[..], &["--output", &f, "--metrics", &message, "--workers", "2"]].concat());
    let message = metrics("build.prom");
    assert_near("exchanged for F", predicted["exchanged_bytes"].as_u64().unwrap(), message("exchanged_bytes_total"));
    assert_near("rounds for F", predicted["rounds"].as_u64().unwrap(), message("rounds_total"));
    let fingerprints = json(&folder.path().join("f/fingerprints.json"))["count"].as_u64().unwrap();
    assert!(fingerprints > 8000, "{fingerprints}");

    let f = format!("batch.fingerprints=\"{f}\"");
    let queries = format!("batch.queries=[\"{}\"]", at("f"));
    for queries in [&[][..], &["--set", &queries]] {
        let join = [&["--set", "kind=hamming", "--set", &f], queries].concat();
        let predicted = plan(&join, &["--workers", "2"]);
        assert_eq!(predicted["expected"]["fingerprints"].as_u64(), Some(fingerprints));
        let query_count = if queries.is_empty() { 0 } else { fingerprints };
        assert_eq!(predicted["expected"]["queries"].as_u64(), Some(query_count));
        let out = at(&format!("near-{}", queries.len()));
        succeed(&[&["run"], &join[..], &["--output", &out, "--workers", "2"]].concat());
        let manifest = json(&Path::new(&out).join("manifest.json"));
        assert_near("rounds of a join", predicted["rounds"].as_u64().unwrap(), manifest["rounds"].as_u64().unwrap());
    }
    let ready = ["--set", "kind=fingerprints", "--set", &format!("fingerprints.from=[\"{}\"]", at("f"))];
    assert_eq!(plan(&ready, &[])["expected"]["fingerprints"].as_u64(), Some(fingerprints));
}

#[test]
fn future_crawl_is_predicted_in_proportion() {
    let (one, ten) =
        (plan(&["--pages", "1e8"], &["--machines", "10"]), plan(&["--pages", "1e9"], &["--machines", "10"]));
    let number_of = |plan: &Value, what: &str| plan[what].as_u64().unwrap();
    assert_eq!(number_of(&one["expected"], "pages"), 100_000_000);
    // Only jobs that compare sets of shingles need them.
    let by_shingles = plan(&["--pages", "1e8", "--set", "similar.by=minhash"], &["--machines", "10"]);
    assert_eq!(number_of(&one["expected"], "shingles"), 0);
    assert!(number_of(&by_shingles["expected"], "shingles") > number_of(&by_shingles["expected"], "pages"));
    assert_near("bytes read", number_of(&ten, "read_bytes"), 10 * number_of(&one, "read_bytes"));
    assert_near("bytes sent", number_of(&ten, "sent_bytes"), 10 * number_of(&one, "sent_bytes"));
    // With more machines each one needs less memory, but never less than the data about every page
    // that each machine needs.
    let memory = |machines: &str| number_of(&plan(&["--pages", "1e9"], &["--machines", machines]), "memory_bytes");
    let (ten, hundred, thousand) = (memory("10"), memory("100"), memory("1000"));
    assert!(ten > 2 * hundred && hundred > thousand && thousand > 30_000_000_000, "{ten} {hundred} {thousand}");
    // The numbers of chunks and pairs depend on the settings.
    let totals_of = |preset: &str| {
        let plan = plan(&["--pages", "1e6", "--set", &format!("preset={preset}")], &[]);
        (number_of(&plan["expected"], "tuples"), number_of(&plan["expected"], "pairs"))
    };
    let [two, four, whole, crawl] = ["two-line", "four-line", "document", "crawl"].map(totals_of);
    assert!(two.0 > 3 * four.0 / 2 && four.0 > 2 * whole.0 && two.1 > whole.1, "{two:?} {four:?} {whole:?}");
    assert!(crawl.0 != two.0 && crawl.0 != four.0, "{crawl:?}");
    // The cluster file determines the number of machines.
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/cluster-config/two-processes.toml");
    let planned = plan(&["--pages", "1e6"], &["--cluster", file]);
    assert_eq!((planned["machines"].as_u64(), planned["workers"].as_u64()), (Some(2), Some(2)));
    let sample = plan(&["--input", CRAWL, "--pages", "1200000"], &[]);
    let whole = plan(&["--input", CRAWL], &[]);
    assert_near("chunks", number_of(&sample["expected"], "tuples"), 100 * number_of(&whole["expected"], "tuples"));
}

#[test]
fn a_corpus_is_predicted_and_not_deduplicated() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let line = |n: usize| serde_json::json!({ "text": format!("a text of its own, number {n}") }).to_string() + "\n";
    std::fs::write(at("texts.jsonl"), (0..500).map(line).collect::<String>()).unwrap();
    let message = webtwin(&["dedup", &at("texts.jsonl"), "--output", &at("clean"), "--plan"]).output().unwrap();
    assert!(message.status.success() && stderr_text(&message).contains("at most "), "{}", stderr_text(&message));
    assert!(!folder.path().join("clean/manifest.json").exists());
}

#[test]
fn a_rate_without_its_unit_is_refused() {
    for option in ["--network", "--disk"] {
        let refused = webtwin(&["plan", "--pages", "1000", option, "10"]).output().unwrap();
        assert_eq!(refused.status.code(), Some(2));
        assert!(stderr_text(&refused).contains("add a unit"), "{}", stderr_text(&refused));
    }
}
