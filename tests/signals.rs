use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use crate::resume::{Crawl, records};
use crate::support::ports::reserved_address;
use crate::support::program::{cluster_file, files, stderr_text, succeed, webtwin};

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

/// Waits until a run is reading its input.
fn wait_for_records(output: &Path, child: &mut Child) {
    while records(output).is_empty() {
        assert!(child.try_wait().unwrap().is_none(), "the run ended before it wrote a checkpoint");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the line in which a stopped run reports its state. Checks that no incomplete file is
/// left.
fn stopped(output: &Output, code: i32, folder: &Path) -> String {
    let text = stderr_text(output);
    assert_eq!(output.status.code(), Some(code), "{text}");
    let mut errors = text.lines().filter(|line| line.starts_with("error: "));
    let line = errors.next().unwrap_or_default().to_string();
    assert_eq!(errors.next(), None, "{text}");
    if folder.exists() {
        let names: Vec<String> = files(folder).into_keys().collect();
        assert!(names.iter().all(|name| !name.ends_with(".tmp") && !name.ends_with(".half")), "{names:?}");
        assert!(!folder.join("manifest.json").exists());
    }
    line
}

#[test]
fn stopped_run_reports_its_checkpoints_and_continues_from_them() {
    let crawl = Crawl::new(6000);
    let out = crawl.folder.path().join("stopped");
    let mut child = webtwin(&crawl.run("stopped", &["--workers", "2", "--resume"])).spawn().unwrap();
    wait_for_records(&out, &mut child);
    signal(&child, "-TERM");
    let line = stopped(&child.wait_with_output().unwrap(), 143, &out);
    let words = [
        "error: stopped by SIGTERM; no result in ",
        "but checkpoints in ",
        "/_records-",
        "continue with the same command and --resume",
    ];
    assert!(words.iter().all(|words| line.contains(words)), "{line}");
    let message = crawl.resume("stopped", &["--workers", "2"]);
    assert!(!message.starts_with("resume: 0 of"), "{message}");
    crawl.assert_whole("stopped");
}

#[test]
fn stopped_process_notifies_its_peers_and_all_end_equally() {
    let crawl = Crawl::new(6000);
    let out = crawl.folder.path().join("stopped");
    let cluster = cluster_file(crawl.folder.path(), 1, &[(); 2].map(|()| reserved_address()));
    let start = |process| {
        let more = ["--resume", "--cluster", &cluster, "--process", process];
        webtwin(&crawl.run("stopped", &more)).spawn().unwrap()
    };
    let (first, mut second) = (start("0"), start("1"));
    wait_for_records(&out, &mut second);
    signal(&second, "-TERM");
    for child in [first, second] {
        let line = stopped(&child.wait_with_output().unwrap(), 143, &out);
        assert!(line.starts_with("error: process 1 was stopped by SIGTERM; no result in "), "{line}");
    }
    crawl.resume("stopped", &[]);
    crawl.assert_whole("stopped");
}

#[test]
fn a_process_that_waits_for_others_can_be_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let addresses = [(); 2].map(|()| reserved_address());
    let cluster = cluster_file(folder.path(), 1, &addresses);
    let input = "synth://?pages=100&seed=1";
    let arguments = ["run", "--input", input, "--output", out.to_str().unwrap(), "--cluster", &cluster];
    let child = webtwin(&[&arguments[..], &["--process", "0"]].concat()).spawn().unwrap();
    while TcpStream::connect(&addresses[0]).is_err() {
        std::thread::sleep(Duration::from_millis(1));
    }
    signal(&child, "-INT");
    let line = stopped(&child.wait_with_output().unwrap(), 130, &out);
    let words = ["error: process 0 was stopped by SIGINT; no result in ", "; run it again, with --resume"];
    assert!(words.iter().all(|words| line.contains(words)), "{line}");
}

#[test]
fn command_without_a_run_ends_immediately() {
    let folder = tempfile::tempdir().unwrap();
    let fingerprints = folder.path().join("f").to_str().unwrap().to_string();
    succeed(&["hamming", "build", "--input", "synth://?pages=100&seed=1", "--output", &fingerprints]);
    succeed(&["hamming", "index", "--fingerprints", &fingerprints]);
    let query = ["hamming", "query", "--fingerprints", &fingerprints, "--json", "-"];
    let mut child = webtwin(&query).stdin(Stdio::piped()).spawn().unwrap();
    let mut questions = child.stdin.take().unwrap();
    questions.write_all(b"17\n").unwrap();
    let mut answer = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut answer).unwrap();
    assert!(answer.contains("near"), "{answer}");
    signal(&child, "-INT");
    let line = stopped(&child.wait_with_output().unwrap(), 130, Path::new(&fingerprints));
    assert_eq!(line, "error: stopped by SIGINT; start it again");
}
