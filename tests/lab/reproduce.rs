use crate::measure;
use crate::support::program::succeed;

#[test]
fn the_papers_tables_can_be_made_of_a_study() {
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
        // The same crawl is its own best reference.
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
fn a_made_up_collection_is_studied_as_planted() {
    let arguments = ["reproduce", "pbz06-figure5", "--scale", "20000", "--json"];
    let report: serde_json::Value = serde_json::from_str(&measure(&arguments)).unwrap();
    let held: Vec<bool> = report["rows"].as_array().unwrap().iter().filter_map(|row| row["holds"].as_bool()).collect();
    assert_eq!(held.len(), 5, "{report}");
}
