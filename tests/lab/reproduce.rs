use std::collections::BTreeMap;

use crate::support::ports::reserved_address;
use crate::support::program::{cluster_file, failed, succeed, succeeded};
use crate::{lab, measure, refuse};

/// Returns the counts of pairs in a report by their kind.
fn pairs(report: &str) -> BTreeMap<String, u64> {
    let report: serde_json::Value = serde_json::from_str(report).unwrap();
    let rows = report["rows"].as_array().unwrap().iter().filter(|row| row["unit"] == "pairs");
    rows.map(|row| (row["what"].as_str().unwrap().to_string(), row["ours"].as_f64().unwrap() as u64)).collect()
}

#[test]
fn two_processes_equal_one() {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().join("work");
    for name in ["mjs07-batch", "bench-hamming-selfjoin-files"] {
        let run = ["reproduce", name, "--scale", "30000", "--work", work.to_str().unwrap(), "--json"];
        let of_one = pairs(&measure(&[&run[..], &["--workers", "1"]].concat()));
        assert_eq!(of_one["planted pairs missed"], 0, "{of_one:?}");
        assert!(of_one["planted pairs within k"] > 100 && of_one["pairs"] >= of_one["planted pairs within k"]);

        let cluster = cluster_file(folder.path(), 2, &[(); 2].map(|()| reserved_address()));
        let processes = ["0", "1"].map(|process| {
            let arguments = [&run[..], &["--cluster", &cluster, "--process", process]].concat();
            lab(&arguments).spawn().unwrap()
        });
        let [first, second] =
            processes.map(|process| succeeded(&[name, "--cluster"], process.wait_with_output().unwrap()));
        assert_eq!((pairs(&first), second.as_str()), (of_one, ""), "{name}");
        assert_eq!(std::fs::read_dir(&work).unwrap().count(), 0, "{name}");
    }
}

#[test]
fn processes_without_a_common_folder_or_scale_report_it() {
    let folder = tempfile::tempdir().unwrap();
    let [shared_folder, other_folder] = ["here", "elsewhere"].map(|name| folder.path().join(name));
    for folder in [&shared_folder, &other_folder] {
        std::fs::create_dir(folder).unwrap();
    }
    for (place, scale, word) in [(&other_folder, "5", "process 1 cannot find it"), (&shared_folder, "6", "job digest")]
    {
        let cluster = cluster_file(folder.path(), 1, &[(); 2].map(|()| reserved_address()));
        let processes = [(&shared_folder, "5", "0"), (place, scale, "1")].map(|(place, scale, process)| {
            let run = ["reproduce", "mjs07-batch", "--scale", scale, "--work", "work", "--process", process];
            lab(&[&run[..], &["--cluster", &cluster]].concat()).current_dir(place).spawn().unwrap()
        });
        for process in processes {
            let line = failed(&[scale], process.wait_with_output().unwrap(), 2);
            assert!(line.contains(word), "{line}");
        }
        assert_eq!(std::fs::read_dir(shared_folder.join("work")).unwrap().count(), 0);
    }
}

#[test]
fn folder_of_another_run_is_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let theirs = folder.path().join("webtwin-reproduce-mjs07-batch-5");
    std::fs::create_dir(&theirs).unwrap();
    let cluster = cluster_file(folder.path(), 1, &[reserved_address()]);
    let work = folder.path().to_str().unwrap();
    let run = ["reproduce", "mjs07-batch", "--scale", "5", "--work", work, "--cluster", &cluster, "--process", "0"];
    let line = refuse(&run, 2);
    assert!(line.contains("webtwin-reproduce-mjs07-batch-5 exists already"), "{line}");
    assert!(theirs.is_dir());
}

#[test]
fn tables_of_the_papers_are_computed_from_a_study() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let job = concat!(env!("CARGO_MANIFEST_DIR"), "/../../jobs/study.toml");
    let run = ["run", "--job", job, "--input", "synth://?pages=800&seed=7"];
    succeed(&[&run[..], &["--output", &at("1")]].concat());
    let row: serde_json::Value =
        serde_json::from_str(succeed(&["show", &at("1/duplicates"), "--limit", "1", "--json"]).trim()).unwrap();
    assert!(["original", "duplicate", "unique"].contains(&row["role"].as_str().unwrap()), "{row}");

    let reference = format!("study.reference={}", at("1"));
    let seed = format!("study.seed={}", row["url"].as_str().unwrap());
    succeed(&[&run[..], &["--set", &reference, "--set", &seed, "--output", &at("with-reference")]].concat());
    for name in ["table2", "table3", "table4", "table5", "table6", "figure2", "figure3", "figure4", "figure5"] {
        let name = format!("pbz06-{name}");
        let arguments = ["reproduce", &name, "--input", &at("with-reference"), "--output", &at("figures"), "--json"];
        let report: serde_json::Value = serde_json::from_str(&measure(&arguments)).unwrap();
        let rows = report["rows"].as_array().unwrap();
        // A crawl agrees with itself as the reference.
        for row in rows
            .iter()
            .filter(|row| row["what"].as_str().unwrap().contains("in the reference") && !row["holds"].is_null())
        {
            assert_eq!((row["ours"].as_f64(), row["holds"].as_bool()), (Some(0.0), Some(true)), "{row}");
        }
        assert!(
            rows.iter().any(|row| row["ours"].is_null()) && rows.iter().any(|row| row["ours"].is_number()),
            "{report}"
        );
    }
    assert!(folder.path().join("figures/pbz06-figure5.svg").exists());
}

#[test]
fn synthetic_collection_is_studied_as_planted() {
    let arguments = ["reproduce", "pbz06-figure5", "--scale", "20000", "--json"];
    let report: serde_json::Value = serde_json::from_str(&measure(&arguments)).unwrap();
    let outcomes: Vec<bool> =
        report["rows"].as_array().unwrap().iter().filter_map(|row| row["holds"].as_bool()).collect();
    assert_eq!(outcomes.len(), 5, "{report}");
}
