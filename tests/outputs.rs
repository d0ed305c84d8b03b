//! Several runs into one output, and runs that are killed while they write it: the output has one
//! complete result, and the other run reports the right cause.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Output};
use std::time::{Duration, Instant};

use crate::support::program::{fail, files, stderr_text, succeed, webtwin};

const JOBS: [&str; 2] = ["synth://?pages=120&seed=1", "synth://?pages=120&seed=2"];

fn start(job: usize, output: &str) -> Child {
    webtwin(&["run", "--input", JOBS[job], "--output", output, "--workers", "1"]).spawn().unwrap()
}

/// Returns the results of both jobs without interference, and the duration of the second one.
fn undisturbed(folder: &Path) -> ([BTreeMap<String, Vec<u8>>; 2], Duration) {
    let mut took = Duration::ZERO;
    let results = [0, 1].map(|job| {
        let began = Instant::now();
        let output = folder.join(format!("undisturbed-{job}"));
        succeed(&["run", "--input", JOBS[job], "--output", output.to_str().unwrap(), "--workers", "1"]);
        took = began.elapsed();
        files(&output)
    });
    assert!(results[0] != results[1]);
    (results, took)
}

/// Checks that exactly one run has succeeded, and returns its index.
pub(crate) fn assert_one_won(ends: &[Output; 2], what: &str) -> usize {
    let codes = ends.each_ref().map(|end| end.status.code().unwrap());
    let message = ends.each_ref().map(stderr_text);
    assert!(codes == [0, 4] || codes == [4, 0], "{what}: {codes:?} {message:?}");
    let loser = usize::from(codes[0] == 0);
    assert!(message[loser].contains("another run has already been committed here"), "{what}: {message:?}");
    1 - loser
}

#[test]
fn one_of_two_jobs_into_one_output_wins_completely_and_the_other_reports_it() {
    let folder = tempfile::tempdir().unwrap();
    let (results, took) = undisturbed(folder.path());
    for round in 0..10u32 {
        let output = folder.path().join(round.to_string());
        let first = start(0, output.to_str().unwrap());
        std::thread::sleep(took * (round % 5) / 8);
        let second = start(1, output.to_str().unwrap());
        let ends = [first, second].map(|run| run.wait_with_output().unwrap());
        let winner = assert_one_won(&ends, &format!("round {round}"));
        assert!(files(&output) == results[winner], "round {round}: {:?}", files(&output).keys());
    }
}

#[test]
fn run_after_a_kill_at_any_moment_yields_the_same_result() {
    let folder = tempfile::tempdir().unwrap();
    let (results, took) = undisturbed(folder.path());
    for round in 0..8u32 {
        let output = folder.path().join(round.to_string());
        let mut run = start(0, output.to_str().unwrap());
        std::thread::sleep(took * (round + 3) / 10);
        run.kill().unwrap();
        run.wait().unwrap();
        let second_run = start(0, output.to_str().unwrap()).wait_with_output().unwrap();
        // The exit code is 4 if the killed run had already committed its result.
        assert!([Some(0), Some(4)].contains(&second_run.status.code()), "round {round}: {}", stderr_text(&second_run));
        assert!(files(&output) == results[0], "round {round}: {:?}", files(&output).keys());
        assert!(output.join("manifest.json").exists());
    }
}

#[test]
fn a_folder_with_other_files_is_refused_before_any_work() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out");
    std::fs::create_dir_all(output.join("pages")).unwrap();
    std::fs::write(output.join("pages/mine.parquet"), "mine").unwrap();
    // The missing input would be detected later than the files in the folder.
    let line = fail(&["run", "--input", "gone.warc.gz", "--output", output.to_str().unwrap()], 2);
    assert!(line.contains("pages/mine.parquet"), "{line}");
    // The other commands that write a folder refuse it, too.
    let output = output.to_str().unwrap();
    std::fs::write(folder.path().join("texts.jsonl"), "{\"text\":\"a\"}\n").unwrap();
    let texts = folder.path().join("texts.jsonl").to_str().unwrap().to_string();
    for command in [
        &["dedup", &texts][..],
        &["archive", "gone.warc.gz"],
        &["restore", "gone"],
        &["hamming", "build", "--input", "gone.warc.gz"],
        &["hamming", "batch", "--fingerprints", "gone"],
        &["run", "--set", "preset=study", "--input", "gone.warc.gz"],
    ] {
        let line = fail(&[command, &["--output", output]].concat(), 2);
        assert!(line.contains("pages/mine.parquet") && line.contains("not overwritten"), "{command:?}: {line}");
    }
    assert_eq!(files(output).len(), 1);
}

/// A process that cannot allocate memory reports this and leaves no files, at whatever point it
/// happens.
#[cfg(target_os = "linux")]
#[test]
fn a_limit_of_memory_ends_a_run_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_webtwin");
    let limited = |kilobytes: usize, arguments: &str| {
        let script = format!("ulimit -v {kilobytes}; exec {program} {arguments}");
        std::process::Command::new("sh").args(["-c", &script]).output().unwrap()
    };
    // The program cannot be loaded with less.
    let least = (1..).map(|n| n * 10_000).find(|&kilobytes| limited(kilobytes, "--version").status.success()).unwrap();
    let mut refused = 0;
    for kilobytes in (least + 20_000..least + 200_000).step_by(12_000) {
        for log in ["text", "json"] {
            let output = folder.path().join(format!("out-{kilobytes}-{log}"));
            let run = format!("run --input '{}' --output {} --workers 3 --log {log}", JOBS[0], output.display());
            let end = limited(kilobytes, &run);
            if end.status.success() {
                continue;
            }
            refused += 1;
            assert_eq!(end.status.code(), Some(9), "{kilobytes}: {}", stderr_text(&end));
            let reasons = ["the system cannot allocate", "cannot start another thread"];
            assert!(
                reasons.iter().any(|reason| stderr_text(&end).contains(reason)),
                "{kilobytes}: {}",
                stderr_text(&end)
            );
            assert!(
                log == "text" || stderr_text(&end).lines().all(|line| line.starts_with('{')),
                "{}",
                stderr_text(&end)
            );
            if ["_commit.json", "manifest.json"].iter().any(|name| output.join(name).exists()) {
                // The result was already committed. The next run completes it if necessary.
                assert_eq!(limited(100_000_000, &run).status.code(), Some(4));
                assert!(output.join("manifest.json").exists());
                continue;
            }
            let remaining = std::fs::read_dir(&output).map_or(0, |entries| entries.count());
            assert_eq!(remaining, 0, "{kilobytes}: {:?}", files(&output).keys());
        }
    }
    assert!(refused > 0);
}

/// Processes with too few file descriptors for their connections report this. If only the soft
/// limit is too low, they raise it.
#[cfg(unix)]
#[test]
fn limit_of_open_files_is_reported_or_raised() {
    let folder = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_webtwin");
    let addresses = [(); 2].map(|()| crate::support::ports::reserved_address());
    let cluster = crate::support::program::cluster_file(folder.path(), 1, &addresses);
    for (limit, code) in [("-n 20", 8), ("-Sn 20", 0)] {
        let output = folder.path().join("out");
        let processes = ["0", "1"].map(|process| {
            let run = format!("run --input '{}' --output {} --cluster {cluster}", JOBS[0], output.display());
            let script = format!("ulimit {limit}; exec {program} {run} --process {process}");
            let mut shell = std::process::Command::new("sh");
            shell.args(["-c", &script]).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
            shell.spawn().unwrap()
        });
        for process in processes {
            let end = process.wait_with_output().unwrap();
            assert_eq!(end.status.code(), Some(code), "{limit}: {}", stderr_text(&end));
            assert!(code == 0 || stderr_text(&end).contains("(ulimit -n)"), "{limit}: {}", stderr_text(&end));
        }
    }
}

/// A write beyond the file size limit fails like any other write. By default the system would end
/// the process without a message.
#[cfg(unix)]
#[test]
fn a_limit_of_file_sizes_is_a_failure_of_storage() {
    let folder = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_webtwin");
    let output = folder.path().join("out");
    let script = format!("ulimit -f 4; exec {program} run --input '{}' --output {}", JOBS[0], output.display());
    let end = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_eq!(end.status.code(), Some(8), "{}", stderr_text(&end));
    assert!(stderr_text(&end).contains("File too large"), "{}", stderr_text(&end));
    assert!(!output.exists(), "{:?}", files(&output).keys());
}
