//! Scheduled runs after a failure of the crawl, of the previous comparison or of a command.

use std::path::Path;

use crate::support::ports::reserved_address;
use crate::support::program::{LISTS, cluster_file, fail, files, rows, stderr_text, succeed, webtwin};

/// A state, crawls of a made-up web, and their results, in a temporary folder.
struct Schedule {
    folder: tempfile::TempDir,
}

impl Schedule {
    fn new() -> Schedule {
        Schedule { folder: tempfile::tempdir().unwrap() }
    }

    fn at(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().into()
    }

    /// Writes a crawl of the pages of these hosts. Each host has the same six pages.
    fn crawl(&self, name: &str, week: i64, hosts: &[&str]) -> String {
        let page = |host: &&str, number: u32| {
            let text: String = (0..12).map(|line| format!("<p>Page {number} says {number}{line} of it")).collect();
            let html = format!("<html>{text}<a href='/{}'>next</a>", (number + 1) % 6);
            let time = 1_700_000_000 + week * 7 * 86_400;
            serde_json::json!({ "url": format!("http://{host}.example/{number}"), "html": html, "fetch_time": time })
                .to_string()
                + "\n"
        };
        let lines: String = hosts.iter().flat_map(|host| (0..6).map(move |number| page(host, number))).collect();
        std::fs::write(self.at(name), lines).unwrap();
        self.at(name)
    }

    /// Makes a scheduled run and returns its exit code and messages.
    fn run(&self, output: &str, more: &[&str]) -> (i32, String) {
        let (state, output) = (self.at("state"), self.at(output));
        let ended = webtwin(&[&["run", "--state", &state, "--output", &output][..], more].concat()).output().unwrap();
        (ended.status.code().unwrap(), stderr_text(&ended))
    }
}

const HOSTS: [&str; 4] = ["a", "b", "c", "d"];

#[test]
fn mostly_failed_crawl_is_rejected_and_the_next_one_continues() {
    let schedule = Schedule::new();
    let whole = schedule.crawl("week-0.jsonl", 0, &HOSTS);
    assert_eq!(schedule.run("run-0", &["--input", &whole]).0, 0);
    let state = files(&schedule.at("state"));
    let broken = schedule.crawl("week-1.jsonl", 1, &["a"]);
    let (code, message) = schedule.run("run-1", &["--input", &broken, "--diff", &schedule.at("diff-1")]);
    assert_eq!(code, 5, "{message}");
    let refused = format!(
        "input {broken}: 6 pages, less than the fraction 0.5 (recrawl.least_pages) of the 24 pages of generation 1"
    );
    assert!(message.contains(&refused) && message.contains("--set recrawl.least_pages=0"), "{message}");
    assert!(files(&schedule.at("state")) == state);
    for none in ["run-1/manifest.json", "diff-1"] {
        assert!(!Path::new(&schedule.at(none)).exists(), "{none}");
    }
    // The same folders can be used, since they are empty.
    let good = schedule.crawl("week-2.jsonl", 2, &HOSTS[..3]);
    let (code, message) = schedule.run("run-1", &["--input", &good, "--diff", &schedule.at("diff-1")]);
    assert!(code == 0 && message.contains("24 pages in the older crawl, 18 in the newer"), "{message}");
}

#[test]
fn partial_crawl_is_accepted_on_request_and_inputs_are_removed_by_name() {
    let schedule = Schedule::new();
    let segments = HOSTS.map(|host| schedule.crawl(&format!("segment-{host}.jsonl"), 0, &[host]));
    let inputs: Vec<&str> = segments.iter().flat_map(|segment| ["--input", segment]).collect();
    assert_eq!(schedule.run("all", &inputs).0, 0);
    let retract: Vec<&str> = segments[1..].iter().flat_map(|segment| ["--retract", segment]).collect();
    assert_eq!(schedule.run("one", &retract).0, 0);
    assert_eq!(schedule.run("all-again", &inputs).0, 0);
    assert_eq!(schedule.run("part", &["--input", &segments[0]]).0, 5);
    assert_eq!(schedule.run("part", &["--input", &segments[0], "--set", "recrawl.least_pages=0"]).0, 0);
    // A missing file that a glob covered is not requested by name.
    let glob = schedule.at("segment-*.jsonl");
    assert_eq!(schedule.run("of-glob", &["--input", &glob]).0, 0);
    segments[1..].iter().for_each(|segment| std::fs::remove_file(segment).unwrap());
    assert_eq!(schedule.run("of-less", &[]).0, 5);
}

#[test]
fn pages_on_the_avoid_list_are_not_missing_if_the_crawler_obeys_it() {
    let schedule = Schedule::new();
    let whole = schedule.crawl("week-0.jsonl", 0, &HOSTS);
    assert_eq!(schedule.run("run-0", &["--input", &whole]).0, 0);
    let kept_urls: Vec<String> =
        rows(&schedule.at("run-0"), "avoid").iter().map(|row| row["keep_url"].as_str().unwrap().into()).collect();
    let host = kept_urls[0].strip_prefix("http://").unwrap().split('.').next().unwrap();
    let obeyed = schedule.crawl("week-1.jsonl", 1, &[host]);
    let diff = schedule.at("diff-1");
    let run = ["--input", &obeyed, "--diff", &diff];
    assert_eq!(schedule.run("run-1", &run).0, 5);
    let (code, message) = schedule.run("run-1", &[&run[..], &["--set", "recrawl.avoided=yes"]].concat());
    assert_eq!(code, 0, "{message}");
}

#[test]
fn the_same_command_again_has_nothing_to_do_until_an_input_changes() {
    let schedule = Schedule::new();
    let crawl = |week| schedule.crawl("crawl.jsonl", week, &HOSTS);
    let input = crawl(0);
    let [first, second] = ["diff-0", "diff-1"].map(|name| schedule.at(name));
    let runs = [("run-0", first), ("run-1", second)];
    for (week, (output, diff)) in runs.iter().enumerate() {
        crawl(week as i64);
        let run = ["--input", &input, "--diff", diff];
        assert_eq!(schedule.run(output, &run).0, 0);
        let (code, message) = schedule.run(output, &run);
        assert!(code == 10 && message.contains("nothing to do") && message.contains(output), "{message}");
    }
    // There is something to do, but the input is missing.
    crawl(2);
    let (output, diff) = &runs[1];
    let (code, message) = schedule.run(output, &["--input", &input, "--diff", diff]);
    assert!(code == 4 && message.contains("choose a new --output"), "{message}");
    assert_eq!(schedule.run("run-2", &["--input", &input, "--diff", diff]).0, 4);
    let joins = ["--add".to_string(), schedule.crawl("more.jsonl", 2, &["e"])];
    let joins = joins.each_ref().map(String::as_str);
    assert_eq!(schedule.run("run-2", &joins).0, 0);
    assert_eq!(schedule.run("run-2", &joins).0, 4);
}

/// Three weeks of a crawler that obeys the list, with a mirror that is skipped from the second week
/// on.
struct Obeyed {
    schedule: Schedule,
    /// Hosts that may be fetched.
    kept: Vec<&'static str>,
}

impl Obeyed {
    fn new() -> Obeyed {
        let schedule = Schedule::new();
        let whole = schedule.crawl("week-0.jsonl", 0, &HOSTS);
        assert_eq!(schedule.run("run-0", &["--input", &whole]).0, 0);
        let list = std::fs::read_to_string(schedule.at("run-0/exports/prefixes.txt")).unwrap();
        let kept_hosts = HOSTS.into_iter().filter(|host| !list.contains(&format!("http://{host}.example/"))).collect();
        let obeyed = Obeyed { schedule, kept: kept_hosts };
        assert_eq!(obeyed.week(1), (0, String::new()));
        obeyed
    }

    /// Runs over a crawl of the pages that may be fetched. Returns the exit code, and the messages
    /// unless the run succeeded completely.
    fn week(&self, week: i64) -> (i32, String) {
        let input = self.schedule.crawl(&format!("week-{week}.jsonl"), week, &self.kept);
        let diff = self.schedule.at(&format!("diff-{week}"));
        let run = ["--input", &input, "--diff", &diff, "--set", "recrawl.avoided=yes"];
        let (code, message) = self.schedule.run(&format!("run-{week}"), &run);
        let is_expected = code > 0 || message.contains("the history begins");
        (code, if is_expected { message } else { String::new() })
    }

    fn list(&self, diff: &str, name: &str) -> String {
        std::fs::read_to_string(self.schedule.at(&format!("{diff}/exports/{name}"))).unwrap()
    }
}

#[test]
fn run_without_the_previous_comparison_names_the_command_that_makes_it() {
    let obeyed = Obeyed::new();
    let diff_files = files(&obeyed.schedule.at("diff-1"));
    std::fs::remove_dir_all(obeyed.schedule.at("diff-1")).unwrap();
    let state = files(&obeyed.schedule.at("state"));
    let (code, message) = obeyed.week(2);
    assert_eq!(code, 3, "{message}");
    assert!(files(&obeyed.schedule.at("state")) == state && !Path::new(&obeyed.schedule.at("run-2")).exists());
    let command = message.lines().last().unwrap().split("make it first: webtwin ").nth(1).unwrap();
    succeed(&command.split(' ').collect::<Vec<_>>());
    assert!(files(&obeyed.schedule.at("diff-1")) == diff_files, "{command}");
    assert_eq!(obeyed.week(2).0, 0);
    assert_eq!(obeyed.list("diff-2", "remove-prefixes.txt"), "");
    assert_eq!(obeyed.list("diff-2", "prefixes.txt"), obeyed.list("run-0", "prefixes.txt"));
}

#[test]
fn lost_list_of_the_crawler_is_replaced_by_the_whole_list_without_a_patch() {
    let obeyed = Obeyed::new();
    // Neither comparison can be made again.
    for lost in ["diff-1", "run-0"] {
        std::fs::remove_dir_all(obeyed.schedule.at(lost)).unwrap();
    }
    let (code, message) = obeyed.week(2);
    assert!(code == 0 && message.contains("because the previous comparison is missing"), "{message}");
    let diff = files(&obeyed.schedule.at("diff-2"));
    let is_patch = |name: &&String| name.contains("exports/add-") || name.contains("exports/remove-");
    assert_eq!(diff.keys().find(is_patch), None);
    for name in LISTS {
        assert_eq!(obeyed.list("diff-2", name), obeyed.list("run-2", name));
    }
    let patch = |week: u32| {
        let summary: serde_json::Value =
            serde_json::from_slice(&files(&obeyed.schedule.at(&format!("diff-{week}")))["summary.json"]).unwrap();
        summary["patch"].as_bool().unwrap()
    };
    assert!(!patch(2));
    // The crawler has this list, and the next patch applies to it.
    assert_eq!(obeyed.week(3), (0, String::new()));
    assert!(patch(3) && Path::new(&obeyed.schedule.at("diff-3/exports/add-prefixes.txt")).exists());
}

#[test]
fn a_comparison_has_a_folder_of_its_own() {
    let schedule = Schedule::new();
    let whole = schedule.crawl("week-0.jsonl", 0, &HOSTS);
    assert_eq!(schedule.run("run-0", &["--input", &whole]).0, 0);
    let later = schedule.crawl("week-1.jsonl", 1, &HOSTS);
    for (output, diff) in [
        ("run-1", "run-1"),
        ("run-1", "run-1/diff"),
        ("run-1", "state/diff"),
        ("diff/run-1", "diff"),
        ("state/run-1", "diff"),
    ] {
        let (code, message) = schedule.run(output, &["--input", &later, "--diff", &schedule.at(diff)]);
        assert!(code == 2 && message.contains("choose a separate folder"), "{output} {diff}: {message}");
    }
    assert_eq!(schedule.run("run-1", &["--input", &later]).0, 0);
    let (old, new, one) = (schedule.at("run-0"), schedule.at("run-1"), schedule.at("one"));
    succeed(&["diff", &old, &new, "--output", &one]);
    let before = files(schedule.folder.path());
    for within in [&old, &new, &one] {
        let output = format!("{within}/diff");
        fail(&["diff", &old, &new, "--history", &one, "--output", &output], 2);
    }
    assert!(files(schedule.folder.path()) == before);
}

#[test]
fn all_processes_of_a_cluster_reject_a_crawl_equally() {
    let schedule = Schedule::new();
    let whole = schedule.crawl("week-0.jsonl", 0, &HOSTS);
    assert_eq!(schedule.run("run-0", &["--input", &whole]).0, 0);
    let state = files(&schedule.at("state"));
    let broken = schedule.crawl("week-1.jsonl", 1, &["a"]);
    let cluster = cluster_file(schedule.folder.path(), 2, &[(); 2].map(|()| reserved_address()));
    let (at_state, output) = (schedule.at("state"), schedule.at("run-1"));
    let run = ["run", "--state", &at_state, "--output", &output, "--input", &broken, "--cluster", &cluster];
    // The setting of the first process applies to all processes.
    let processes = [("0", "0.5"), ("1", "0")].map(|(process, least)| {
        let least = format!("recrawl.least_pages={least}");
        webtwin(&[&run[..], &["--process", process, "--set", &least]].concat()).spawn().unwrap()
    });
    for process in processes {
        let ended = process.wait_with_output().unwrap();
        assert!(
            ended.status.code() == Some(5) && stderr_text(&ended).contains("6 pages, less than"),
            "{}",
            stderr_text(&ended)
        );
    }
    assert!(files(&at_state) == state);
}
