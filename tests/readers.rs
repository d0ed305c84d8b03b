use std::process::Command;

use crate::support::program::{stderr_text, succeed};

/// Needs `pip install pandas pyarrow polars duckdb` in the Python that PYTHON names, or in
/// `python3`.
#[test]
fn data_frames_duckdb_and_json_readers_see_the_same_tables_and_all_digits_of_ids() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out").to_str().unwrap().to_string();
    succeed(&["run", "--input", "synth://?pages=400&seed=5", "--output", &out, "--set", "output.fprint_docid=true"]);
    let python = std::env::var("PYTHON").unwrap_or("python3".into());
    let readers = ["scripts/formats/readers.py", &out, env!("CARGO_BIN_EXE_webtwin")];
    let Ok(output) = Command::new(python).args(readers).output() else {
        println!("skipped: no Python");
        return;
    };
    let message = String::from_utf8_lossy(&output.stdout);
    match output.status.code() {
        Some(77) => println!("{message}"),
        code => assert_eq!(code, Some(0), "{message}{}", stderr_text(&output)),
    }
}

/// Needs `pip install pyarrow`; also uses pandas, polars, duckdb, datasets and pyspark if they are
/// installed.
#[test]
fn deduplicated_corpus_opens_in_every_reader_of_the_corpus() {
    let python = std::env::var("PYTHON").unwrap_or("python3".into());
    let corpus = ["scripts/formats/corpus.py", env!("CARGO_BIN_EXE_webtwin")];
    let Ok(output) = Command::new(python).args(corpus).env("HF_HUB_OFFLINE", "1").output() else {
        println!("skipped: no Python");
        return;
    };
    let message = String::from_utf8_lossy(&output.stdout);
    assert!(matches!(output.status.code(), Some(0 | 77)), "{message}{}", stderr_text(&output));
    println!("{message}");
}

/// Runs the tests of the package in `python/`, which skip those that need a missing module.
#[test]
fn python_package_equals_the_output_of_show() {
    let python = std::env::var("PYTHON").unwrap_or("python3".into());
    let mut tests = Command::new(python);
    tests.args(["-m", "unittest", "discover", "--verbose", "python/tests"]);
    tests
        .envs([("PYTHONPATH", "python"), ("WEBTWIN", env!("CARGO_BIN_EXE_webtwin"))])
        .env("PYTHONDONTWRITEBYTECODE", "1");
    let Ok(output) = tests.output() else {
        println!("skipped: no Python");
        return;
    };
    assert!(output.status.success(), "{}", stderr_text(&output));
    println!("{}", stderr_text(&output));
}
