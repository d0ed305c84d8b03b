use std::process::{Output, Stdio};

use crate::support::program::{stderr_text, succeed, webtwin};
use crate::support::streams::{assert_unread_and_unwritable_output, full, left};

const CRAWL: &str = "synth://?pages=200&seed=3";

fn output(arguments: &[&str], stdout: Stdio) -> Output {
    webtwin(arguments).stdout(stdout).output().unwrap()
}

#[test]
fn run_with_unread_output_ends_with_its_result() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    for (name, gone, more) in [
        ("pipe", left as fn() -> Stdio, &[][..]),
        ("full", full, &[]),
        ("pipe-resume", left, &["--resume"]),
        ("full-json", full, &["--log", "json"]),
    ] {
        let arguments = ["run", "--input", CRAWL, "--output", &at(name)];
        let status = webtwin(&[&arguments[..], more].concat()).stderr(gone()).status().unwrap();
        assert_eq!(status.code(), Some(0), "{name}");
        assert!(folder.path().join(name).join("manifest.json").exists(), "{name}");
    }
    // An error ends with its own exit code even so.
    let arguments = ["run", "--input", CRAWL, "--output", &at("pipe")];
    assert_eq!(webtwin(&arguments).stderr(left()).status().unwrap().code(), Some(4));
    assert_eq!(webtwin(&["run", "--no-such-option"]).stderr(full()).status().unwrap().code(), Some(2));
}

#[test]
fn closed_pipe_is_success_and_unwritable_output_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    succeed(&["run", "--input", CRAWL, "--output", &at("out")]);
    let pages = succeed(&["show", &at("out/pages"), "--json", "--limit", "1"]);
    let page: serde_json::Value = serde_json::from_str(&pages).unwrap();
    let url = page["url"].as_str().unwrap();
    let (out, table) = (at("out"), at("out/pages"));
    let commands: [&[&str]; 11] = [
        &["check"],
        &["check", "--cluster", "cluster-config/two-processes.toml"],
        &["plan", "--input", CRAWL],
        &["plan", "--input", CRAWL, "--json"],
        &["completions", "bash"],
        &["hamming", "plan", "--documents", "1000"],
        &["show", &table, "--limit", "0"],
        &["show", &out],
        &["show", &out, "--sql"],
        &["explain", &out, url, url],
        &["--help"],
    ];
    for arguments in commands {
        assert_unread_and_unwritable_output(webtwin, arguments);
    }
}

/// Returns the JSON objects that a command prints. It must not print anything else.
fn objects(arguments: &[&str], code: i32) -> Vec<serde_json::Value> {
    let output = output(&[arguments, &["--log", "json"]].concat(), Stdio::null());
    let stderr_text = stderr_text(&output);
    assert_eq!(output.status.code(), Some(code), "{stderr_text}");
    stderr_text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{arguments:?}: {line}")))
        .collect()
}

#[test]
fn log_json_prints_only_json_also_on_failure() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let run = objects(&["run", "--input", CRAWL, "--output", &at("out"), "--resume"], 0);
    let result = run.iter().find(|object| object["level"] == "result").unwrap();
    assert!(result["results"] == at("out") && result["pages"].as_u64().unwrap() > 100, "{result}");
    assert!(run.iter().any(|object| object["level"] == "info" && object["message"].is_string()));
    for (arguments, code) in [
        (&["run", "--input", CRAWL, "--output", &at("out")][..], 4),
        (&["run", "--input", "gone", "--output", &at("other")], 3),
        (&["run", "--no-such-option"], 2),
        (&["show", &at("out"), "nothing"], 2),
    ] {
        let errors = objects(arguments, code);
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert_eq!((&errors[0]["level"], errors[0]["exit_code"].as_i64()), (&"error".into(), Some(code.into())));
    }
}
