use std::collections::BTreeMap;

use serde_json::Value;

use crate::support::manual::{crawl, url, write};
use crate::support::program::{fail, rows, stderr_text, succeed, webtwin};
use crate::support::report::{report, tile};
use crate::{lab, measure, refuse};

/// A crawl in files, its truth, and a run over it.
struct Compared {
    folder: tempfile::TempDir,
}

impl Compared {
    fn new() -> Compared {
        let compared = Compared { folder: tempfile::tempdir().unwrap() };
        measure(&["synth", "--pages", "800", "--seed", "7", "--output", &compared.at("crawl")]);
        std::fs::copy(compared.at("crawl/truth.tsv"), compared.at("truth.tsv")).unwrap();
        let input = compared.at("crawl") + "/*.warc.gz";
        succeed(&["run", "--input", &input, "--output", &compared.at("out")]);
        compared
    }

    fn at(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_string()
    }

    fn evaluate(&self, more: &[&str]) -> BTreeMap<String, Option<f64>> {
        let (out, truth) = (self.at("out"), self.at("truth.tsv"));
        let json = measure(&[&["evaluate", &out, "--truth", &truth, "--json"], more].concat());
        let report: Value = serde_json::from_str(&json).unwrap();
        let row = |row: &Value| (row["what"].as_str().unwrap().to_string(), row["ours"].as_f64());
        report["rows"].as_array().unwrap().iter().map(row).collect()
    }

    /// Returns the target of each page of variant `primary`.
    fn targets(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.at("truth.tsv")).unwrap();
        let rows = text.lines().skip(1).map(|line| line.split('\t').collect::<Vec<_>>());
        rows.filter(|row| row[4] == "primary").map(|row| row[1].to_string()).collect()
    }
}

#[test]
fn bands_and_variants_add_up_to_all_true_pairs_and_each_side_has_its_own_targets() {
    let compared = Compared::new();
    std::fs::write(compared.at("held"), format!("# one\n{}\n", compared.targets()[0])).unwrap();
    let rows = compared.evaluate(&["--bands", "--held-out", &compared.at("held")]);
    let ours = |what: &str| rows[what].unwrap_or_else(|| panic!("{what}: {rows:?}"));
    let banded: f64 =
        rows.iter().filter(|row| row.0.starts_with("true pairs, resemblance")).map(|row| row.1.unwrap()).sum();
    assert_eq!(banded, ours("true pairs"));
    assert!(ours("true pairs, resemblance >= 0.9") > 0.0 && ours("recall, resemblance >= 0.9") > 0.9, "{rows:?}");
    assert_eq!(ours("held out: targets") + ours("tuning: targets"), ours("targets"));
    assert_eq!(ours("held out: true pairs") + ours("tuning: true pairs"), ours("true pairs"));
    assert!(rows.contains_key("recall of pairs with exact pages"), "{rows:?}");

    std::fs::write(compared.at("held"), "nobody\n").unwrap();
    let arguments = [compared.at("out"), compared.at("truth.tsv"), compared.at("held")];
    let message = refuse(&["evaluate", &arguments[0], "--truth", &arguments[1], "--held-out", &arguments[2]], 3);
    assert!(message.contains("nobody is not a target"), "{message}");
}

#[test]
fn a_sample_is_drawn_once_judged_and_counted() {
    let compared = Compared::new();
    let (sheet, tags) = (compared.at("sample.html"), compared.at("sample.tsv"));
    compared.evaluate(&["--sample", "12", "--output", &sheet]);
    let text = std::fs::read_to_string(&tags).unwrap();
    assert!(text.lines().count() > 4 && std::fs::read_to_string(&sheet).unwrap().contains("<h2>1: found</h2>"));
    // The tags follow the truth: false pairs are tagged false, the others true.
    let judged: String = text
        .lines()
        .map(|line| line.replace("\tunknown\t", if line.ends_with("false") { "\tfalse\t" } else { "\ttrue\t" }) + "\n")
        .collect();
    std::fs::write(&tags, judged).unwrap();
    let rows = compared.evaluate(&["--tags", &tags]);
    let (precision, recall) = ("pair precision", "pair recall");
    for (by_tags, by_truth) in [("pair precision by tags", precision), ("pair recall by tags", recall)] {
        let (by_tags, by_truth) = (rows[by_tags], rows[by_truth]);
        assert!((by_tags.unwrap() - by_truth.unwrap()).abs() < 1e-9, "{rows:?}");
    }
    let (out, truth) = (compared.at("out"), compared.at("truth.tsv"));
    let message = refuse(&["evaluate", &out, "--truth", &truth, "--sample", "9", "--output", &sheet], 2);
    assert!(message.contains("sample.tsv exists already"), "{message}");
}

/// A file saved by `webtwin report` can be read by the next run, for both settings, and by
/// `evaluate`.
#[test]
fn one_file_of_decisions_serves_the_next_run_and_evaluate() {
    let folder = tempfile::tempdir().unwrap();
    let input = crawl(folder.path());
    let table = format!(
        "url_a\turl_b\ttag\tnote\n{0}\t\tkeep\t\n{1}\t{2}\tfalse\tset 1\n{3}\t{4}\ttrue\t\n{3}\t{5}\tunknown\t\n",
        url("b", 5),
        url("a", 0),
        url("c", 0),
        url("a", 1),
        url("b", 1),
        url("c", 1)
    );
    let file = write(folder.path(), "decisions.tsv", &table);
    let output = folder.path().join("out").display().to_string();
    let sets = [format!("keep.pins={file}"), format!("pairs.apart={file}")];
    succeed(&["run", "--input", &input, "--output", &output, "--set", &sets[0], "--set", &sets[1]]);
    let stderr_text: Value =
        serde_json::from_slice(&std::fs::read(folder.path().join("out/summary.json")).unwrap()).unwrap();
    assert_eq!(
        [&stderr_text["pins"]["kept"], &stderr_text["pins"]["pins"], &stderr_text["apart"]["parted"]],
        [1, 1, 1]
    );

    let mut truth = "url\ttarget\tversion\tpage\tvariant\n".to_string();
    for site in ["a", "b", "c"] {
        (0..6).for_each(|page| truth.push_str(&format!("{}\tmanual\t{site}\t{page}\treal\n", url(site, page))));
    }
    let truth = write(folder.path(), "truth.tsv", &truth);
    let evaluation = measure(&["evaluate", &output, "--truth", &truth, "--tags", &file, "--json"]);
    let evaluation: Value = serde_json::from_str(&evaluation).unwrap();
    let row = |what: &str| {
        evaluation["rows"].as_array().unwrap().iter().find(|row| row["what"] == what).unwrap()["ours"].clone()
    };
    assert_eq!([row("missed pairs tagged false"), row("found pairs tagged true")], [1.0, 1.0]);
    assert_eq!(row("found pairs tagged unknown"), 1.0);
}

#[test]
fn an_evaluation_is_a_view_of_the_run_that_it_evaluates() {
    let folder = tempfile::tempdir().unwrap();
    let [run, other, truth, file] = ["run", "other", "truth.tsv", "evaluation.json"]
        .map(|name| folder.path().join(name).to_str().unwrap().to_string());
    succeed(&["run", "--input", "synth://?pages=300&seed=1", "--output", &run]);
    succeed(&[
        "run",
        "--input",
        "synth://?pages=200&seed=1",
        "--output",
        &other,
        "--set",
        "preset=signatures",
        "--set",
        "kind=signatures",
    ]);
    measure(&["synth", "--pages", "300", "--seed", "1", "--truth", &truth]);
    let evaluation = measure(&["evaluate", &run, "--truth", &truth, "--json"]);
    std::fs::write(&file, &evaluation).unwrap();
    let part = report(&run, &["--evaluation", &file])["parts"][0].clone();
    let evaluation: Value = serde_json::from_str(&evaluation).unwrap();
    let row = evaluation["rows"].as_array().unwrap().iter().find(|row| row["what"] == "pair precision").unwrap();
    assert_eq!(tile(&part, "pair precision"), format!("{:.3}", row["ours"].as_f64().unwrap()));
    assert_eq!(part["tables"][0]["all"], evaluation["rows"].as_array().unwrap().len());
    // A job by signatures has the same views. The evaluation of another job is refused.
    assert_eq!(report(&other, &[])["kind"], "signatures");
    assert!(fail(&["report", &other, "--evaluation", &file, "--output", "-"], 2).contains("another job"));
    std::fs::write(&file, "[1]").unwrap();
    assert!(fail(&["report", &run, "--evaluation", &file, "--output", "-"], 3).contains("webtwin-lab evaluate --json"));
}

#[test]
fn pages_are_read_again_from_any_folder() {
    let (crawl_folder, other_folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let synthesized =
        lab(&["synth", "--pages", "200", "--output", "crawl"]).current_dir(crawl_folder.path()).output().unwrap();
    assert!(synthesized.status.success(), "{}", stderr_text(&synthesized));
    let run = ["run", "--input", "crawl/*.warc.gz", "--output", "out"];
    let run = webtwin(&run).current_dir(crawl_folder.path()).output().unwrap();
    assert!(run.status.success(), "{}", stderr_text(&run));
    let [out, truth] =
        ["out", "crawl/truth.tsv"].map(|name| crawl_folder.path().join(name).to_str().unwrap().to_string());
    let bands = ["evaluate", &out, "--truth", &truth, "--bands"];
    let bands = lab(&bands).current_dir(other_folder.path()).output().unwrap();
    assert!(bands.status.success(), "{}", stderr_text(&bands));
}

#[test]
fn planted_copies_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let [out, truth] = ["out", "truth.tsv"].map(|name| folder.path().join(name).to_str().unwrap().to_string());
    succeed(&["run", "--input", "synth://?pages=800&seed=7", "--output", &out]);
    measure(&["synth", "--pages", "800", "--seed", "7", "--truth", &truth]);
    let report: Value = serde_json::from_str(&measure(&["evaluate", &out, "--truth", &truth, "--json"])).unwrap();
    let ours = |what: &str| {
        let row = report["rows"].as_array().unwrap().iter().find(|row| row["what"] == what).unwrap();
        row["ours"].as_f64().unwrap()
    };
    assert!(ours("pair precision") > 0.9 && ours("pair recall") > 0.8, "{report}");
    assert_eq!(ours("targets found"), ours("targets"));
    assert_eq!(ours("known pages"), rows(&out, "pages").len() as f64);
}
