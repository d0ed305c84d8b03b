use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::ports::reserved_address;

/// Returns the path of `webtwin`. Cargo passes the path to the tests of the package of the program.
/// For the tests of the laboratory, the program is next to `webtwin-lab`; `cargo test` builds both.
pub(crate) fn program() -> PathBuf {
    let of_a_package = option_env!("CARGO_BIN_EXE_webtwin").or(option_env!("CARGO_BIN_EXE_webtwin-lab"));
    let program = Path::new(of_a_package.expect("cargo builds the programs of the tests")).with_file_name("webtwin");
    assert!(program.exists(), "{} is missing: cargo build", program.display());
    program
}

/// Returns a command of the program that captures its output and has no input.
pub(crate) fn webtwin(arguments: &[&str]) -> Command {
    quiet(&program(), arguments)
}

/// Returns a command of a program that captures its output and has no input.
pub(crate) fn quiet(program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Returns what a program wrote to stderr.
pub(crate) fn stderr_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs the program successfully and returns its stdout.
pub(crate) fn succeed(arguments: &[&str]) -> String {
    succeeded(arguments, webtwin(arguments).output().unwrap())
}

/// Runs the program, checks its exit code and that stdout is empty, and returns its stderr.
pub(crate) fn fail(arguments: &[&str], code: i32) -> String {
    let output = webtwin(arguments).output().unwrap();
    assert_eq!(output.stdout, b"", "{arguments:?}");
    failed(arguments, output, code)
}

/// Runs [`webtwin`] to its end with `stdin` as its input.
pub(crate) fn answer(arguments: &[&str], stdin: &str) -> Output {
    let mut child = webtwin(arguments).stdin(Stdio::piped()).spawn().unwrap();
    // Some tests are about a program that ends before it reads its input.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    child.wait_with_output().unwrap()
}

/// Runs a command line like [`succeed`], with `stdin` as its input.
pub(crate) fn succeed_with(arguments: &[&str], stdin: &str) -> String {
    succeeded(arguments, answer(arguments, stdin))
}

/// Runs a command line like [`fail`], with `stdin` as its input. Stdout may have earlier answers.
pub(crate) fn fail_with(arguments: &[&str], stdin: &str, code: i32) -> String {
    failed(arguments, answer(arguments, stdin), code)
}

pub(crate) fn succeeded(arguments: &[&str], output: Output) -> String {
    assert!(output.status.success(), "{arguments:?}: {}", stderr_text(&output));
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) fn failed(arguments: &[&str], output: Output, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr_text(&output));
    stderr_text(&output)
}

/// Reads every file below a folder except the manifest, which has times.
pub(crate) fn files(folder: &(impl AsRef<Path> + ?Sized)) -> BTreeMap<String, Vec<u8>> {
    let folder = folder.as_ref();
    let mut files_found = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(at) = folders.pop() {
        for entry in std::fs::read_dir(at).unwrap().map(|entry| entry.unwrap().path()) {
            let name = entry.strip_prefix(folder).unwrap().to_str().unwrap().to_string();
            if entry.is_dir() {
                folders.push(entry);
            } else if !["manifest.json", "_webtwin/manifest"].contains(&name.as_str()) {
                files_found.insert(name, std::fs::read(entry).unwrap());
            }
        }
    }
    files_found
}

/// Writes a cluster file with these addresses and returns its path.
pub(crate) fn cluster_file(folder: &Path, workers: usize, addresses: &[String]) -> String {
    let processes: String = addresses.iter().map(|address| format!("[[process]]\naddress = \"{address}\"\n")).collect();
    let path = folder.join("cluster.toml");
    std::fs::write(&path, format!("workers = {workers}\ndeadline = \"20s\"\n{processes}")).unwrap();
    path.to_str().unwrap().to_string()
}

/// Runs a job on 1, 2 and 3 workers and in 2 processes of 2 workers, and checks that the results
/// have the same bytes. Returns the folder of the first result, and its messages.
pub(crate) fn assert_same_on_any_workers(folder: &Path, name: &str, run: &[&str]) -> (String, String) {
    let at = |workers: &str| folder.join(format!("{name}-{workers}")).to_str().unwrap().to_string();
    let mut message = String::new();
    for workers in ["1", "2", "3"] {
        let output = webtwin(&[run, &["--output", &at(workers), "--workers", workers]].concat()).output().unwrap();
        assert!(output.status.success(), "{run:?}: {}", stderr_text(&output));
        if workers == "1" {
            message = stderr_text(&output);
        }
        assert!(files(&at(workers)) == files(&at("1")), "{name} on {workers} workers");
    }
    let cluster = cluster_file(folder, 2, &[(); 2].map(|()| reserved_address()));
    let processes = ["0", "1"].map(|process| {
        let at_process = ["--output", &at("2x2"), "--cluster", &cluster, "--process", process];
        webtwin(&[run, &at_process[..]].concat()).spawn().unwrap()
    });
    for process in processes {
        let output = process.wait_with_output().unwrap();
        assert!(output.status.success(), "{run:?}: {}", stderr_text(&output));
    }
    assert!(files(&at("2x2")) == files(&at("1")), "{name} in 2 processes");
    (at("1"), message)
}

/// Returns the rows of a table of a result.
pub(crate) fn rows(output: &str, table: &str) -> Vec<serde_json::Value> {
    let table_json = succeed(&["show", &format!("{output}/{table}"), "--json", "--limit", "1000000"]);
    table_json.lines().map(|row| serde_json::from_str(row).unwrap()).collect()
}

/// Exports of a run or comparison that are an avoid list.
pub(crate) const LISTS: [&str; 8] = [
    "prefixes.tsv",
    "prefixes.txt",
    "urls.txt",
    "regex-urlfilter.txt",
    "scrapy-deny.txt",
    "browsertrix.yaml",
    "heritrix-surts.txt",
    "heritrix-beans.xml",
];

/// Runs with a state over a crawl without its `last` file, and then over all of it. Checks that
/// `known` work items are restored from checkpoints, and that the result equals that of a run
/// without a state.
pub(crate) fn assert_same_from_checkpoints(folder: &Path, crawl: &str, last: &str, known: usize) {
    let at = |name: &str| folder.join(name).to_str().unwrap().to_string();
    succeed(&["run", "--input", crawl, "--output", &at("plain")]);
    let last = format!("{crawl}/{last}");
    std::fs::rename(&last, at("later")).unwrap();
    succeed(&["run", "--input", crawl, "--output", &at("before"), "--state", &at("state")]);
    std::fs::rename(at("later"), &last).unwrap();
    let run = webtwin(&["run", "--input", crawl, "--output", &at("after"), "--state", &at("state")]).output().unwrap();
    let message = format!("{known} work items restored from checkpoints");
    assert!(run.status.success() && stderr_text(&run).contains(&message), "{}", stderr_text(&run));
    assert!(files(&at("after")) == files(&at("plain")));
}
