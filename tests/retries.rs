use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::resume::Crawl;
use crate::support::ports::reserved_address;
use crate::support::program::{cluster_file, fail, files, stderr_text, succeed, webtwin};

/// Longer than any wait in these tests takes.
const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until a condition holds.
fn until(what: &str, mut so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !so() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Returns the ids of the child processes of a process.
fn children(of: &Child) -> Vec<u32> {
    let message = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", of.id())).unwrap_or_default();
    message.split_whitespace().map(|id| id.parse().unwrap()).collect()
}

fn is_there(id: u32) -> bool {
    Path::new(&format!("/proc/{id}/exe")).read_link().is_ok()
}

fn signal(name: &str, id: u32) {
    assert!(Command::new("kill").args([name, &id.to_string()]).status().unwrap().success());
}

fn ended(mut child: Child) -> (i32, String) {
    let mut message = String::new();
    child.stderr.take().unwrap().read_to_string(&mut message).unwrap();
    (child.wait().unwrap().code().unwrap(), message)
}

#[test]
fn permanent_failures_are_not_retried() {
    let message = fail(&["run", "--input", "/nowhere/at/all.warc.gz", "--output", "/tmp/never", "--retries", "3"], 3);
    assert!(!message.contains("attempt"), "{message}");
    if cfg!(feature = "aws") {
        let message = fail(&["run", "--input", "synth://?pages=9", "--output", "s3://bucket/out", "--retries", "3"], 2);
        assert!(message.contains("--records DIR") && !message.contains("attempt"), "{message}");
    }
}

#[test]
fn absent_process_is_retried_the_given_number_of_times() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "workers = 1\ndeadline = \"200ms\"\n[[process]]\naddress = \"{}\"\n[[process]]\naddress = \"{}\"\n",
        reserved_address(),
        reserved_address()
    );
    let cluster = folder.path().join("cluster.toml");
    std::fs::write(&cluster, text).unwrap();
    let output = folder.path().join("out");
    let alone = ["--cluster", cluster.to_str().unwrap(), "--process", "0", "--retries", "1"];
    let message = fail(
        &[&["run", "--input", "synth://?pages=100", "--output", output.to_str().unwrap()][..], &alone].concat(),
        7,
    );
    assert_eq!(message.matches("did not join").count(), 2, "{message}");
    assert!(message.contains("attempt 1 of 2 ended with exit code 7; the next begins in 1 s"), "{message}");
    assert!(message.contains("attempt 2 of 2 ended with exit code 7; no attempts remain"), "{message}");
}

#[test]
fn killed_and_restarted_process_joins_again_and_the_result_has_the_same_bytes() {
    let crawl = Crawl::new(3000);
    let cluster = cluster_file(crawl.folder.path(), 1, &[(); 2].map(|()| reserved_address()));
    let start = |process: &str| {
        let more = ["--cluster", &cluster, "--process", process, "--retries", "5"];
        webtwin(&[&crawl.run("two", &[])[..], &more].concat()).spawn().unwrap()
    };
    let (first, mut second) = (start("0"), start("1"));
    let output = crawl.folder.path().join("two");
    until("something is recorded", || !crate::resume::records(&output).is_empty());
    let attempts = children(&second);
    assert_eq!(attempts.len(), 1);
    second.kill().unwrap();
    second.wait().unwrap();
    until("the attempt ends with the process that made it", || !is_there(attempts[0]));
    let (code, message) = ended(start("1"));
    assert_eq!(code, 0, "{message}");
    let (code, message) = ended(first);
    assert_eq!(code, 0, "{message}");
    assert!(message.contains("ended with exit code 7; the next begins in 1 s"), "{message}");
    crawl.assert_whole("two");
}

#[test]
fn attempt_killed_by_the_system_is_retried() {
    let crawl = Crawl::new(3000);
    let child = webtwin(&crawl.run("killed", &["--retries", "2"])).spawn().unwrap();
    let output = crawl.folder.path().join("killed");
    until("something is recorded", || !crate::resume::records(&output).is_empty());
    signal("-KILL", children(&child)[0]);
    let (code, message) = ended(child);
    assert_eq!(code, 0, "{message}");
    assert!(message.contains("attempt 1 of 3 ended with exit code 137, killed; the next begins in 1 s"), "{message}");
    crawl.assert_whole("killed");
}

#[test]
fn signal_ends_the_attempt_orderly_without_a_retry() {
    let crawl = Crawl::new(3000);
    for (name, code) in [("-TERM", 143), ("-INT", 130)] {
        let child = webtwin(&crawl.run("stopped", &["--retries", "2"])).spawn().unwrap();
        let output = crawl.folder.path().join("stopped");
        until("something is recorded", || !crate::resume::records(&output).is_empty());
        signal(name, child.id());
        let (ended, message) = ended(child);
        assert_eq!(ended, code, "{message}");
        assert!(message.contains("stopped by SIG") && !message.contains("attempt"), "{message}");
        std::fs::remove_dir_all(output).unwrap();
    }
    // During a pause there is no attempt to end.
    let mut child = webtwin(&crawl.run("paused", &["--retries", "2"])).spawn().unwrap();
    let output = crawl.folder.path().join("paused");
    until("something is recorded", || !crate::resume::records(&output).is_empty());
    signal("-KILL", children(&child)[0]);
    let mut message = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(message.any(|line| line.unwrap().contains("the next begins")));
    signal("-TERM", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(143));
}

#[test]
fn attempt_that_finds_the_result_of_the_previous_one_succeeds() {
    let crawl = Crawl::new(800);
    // An existing result without a previous attempt belongs to another run.
    fail(&crawl.run("whole", &["--retries", "2"]), 4);
    let mut child = webtwin(&crawl.run("late", &["--retries", "2"])).spawn().unwrap();
    let late = crawl.folder.path().join("late");
    until("something is recorded", || !crate::resume::records(&late).is_empty());
    signal("-KILL", children(&child)[0]);
    let mut message = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(message.any(|line| line.unwrap().contains("the next begins")));
    // The state that an attempt would have left if it had been killed later.
    std::fs::remove_dir_all(&late).unwrap();
    std::fs::rename(crawl.folder.path().join("whole"), &late).unwrap();
    let before = files(&late);
    assert!(message.any(|line| line.unwrap().contains("the result is that of an earlier attempt")));
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(files(&late) == before);
}

#[test]
fn attempt_recognises_the_result_of_its_job_of_any_kind() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let cluster = at("short.toml");
    let addresses = [(); 2].map(|()| format!("[[process]]\naddress = \"{}\"\n", reserved_address()));
    std::fs::write(&cluster, format!("workers = 1\ndeadline = \"500ms\"\n{}", addresses.concat())).unwrap();
    let (state, output) = (at("state"), [at("recrawl"), at("fingerprints")]);
    for (output, more) in output.iter().zip([["--state", &state], ["--set", "kind=fingerprints"]]) {
        let run = [&["run", "--input", "synth://?pages=200&seed=1", "--output", output][..], &more].concat();
        let waits = [&run[..], &["--cluster", &cluster, "--process", "0", "--retries", "6"]].concat();
        let mut child = webtwin(&waits).stderr(std::process::Stdio::piped()).spawn().unwrap();
        let mut message = BufReader::new(child.stderr.take().unwrap()).lines();
        assert!(message.any(|line| line.unwrap().contains("the next begins")), "{more:?}");
        succeed(&run);
        let rest: Vec<String> = message.map(|line| line.unwrap()).collect();
        assert!(rest.iter().any(|line| line.contains("the result is that of an earlier attempt")), "{rest:?}");
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
    let message = fail(&["run", "--input", "synth://?pages=200&seed=1", "--retries", "2"], 2);
    assert!(message.contains("no output is given; add --output"), "{message}");
}

#[test]
fn retries_imply_checkpoints() {
    let crawl = Crawl::new(800);
    let output = webtwin(&crawl.run("recorded", &["--retries", "1"])).output().unwrap();
    assert!(
        output.status.success() && stderr_text(&output).contains("work items restored from checkpoints"),
        "{}",
        stderr_text(&output)
    );
    crawl.assert_whole("recorded");
}
