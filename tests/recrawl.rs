//! A scheduled job: after any change of its inputs, the result has the same bytes as a run from
//! scratch.

use std::path::{Path, PathBuf};

use proptest::prelude::*;

use crate::bad_warc::build::{Record, gzip, html, http_with};
use crate::support::ports::reserved_address;
use crate::support::program::{cluster_file, fail, files, rows, stderr_text, succeed, webtwin};

/// Settings under which a few pages cover many cases: work items of a few records, short texts,
/// more links than are kept, and crawls that have lost most of their pages.
const SMALL: [&str; 10] = [
    "--set",
    "effort.shard_bytes=65536",
    "--set",
    "chunks.min_text=0",
    "--set",
    "input.max_bad=1",
    "--set",
    "input.limits.links=3",
    "--set",
    "recrawl.least_pages=0",
];

/// Change of the inputs between two runs.
#[derive(Debug, Clone)]
enum Change {
    /// A segment with this content is added, or a live segment changes.
    Write {
        segment: usize,
        seed: u64,
    },
    Retract {
        segment: usize,
    },
    Replace {
        segment: usize,
    },
    /// A whole new crawl: the live segments and these are named as inputs, and all other inputs are
    /// removed.
    Whole {
        seed: u64,
    },
}

fn change() -> impl Strategy<Value = Change> {
    let segment = 0usize..5;
    prop_oneof![
        4 => (segment.clone(), any::<u64>()).prop_map(|(segment, seed)| Change::Write { segment, seed }),
        2 => segment.clone().prop_map(|segment| Change::Retract { segment }),
        1 => segment.prop_map(|segment| Change::Replace { segment }),
        1 => any::<u64>().prop_map(|seed| Change::Whole { seed }),
    ]
}

/// Returns a few records of pages, their copies and versions, revisits, redirects, and records that
/// are not pages. They use few URLs, so that several segments have captures of the same pages.
fn segment(seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut bytes = Vec::new();
    for number in 0..draw(12) {
        let (host, page, text) = (draw(3), draw(8), draw(6));
        let line = |n: u64| {
            format!("<p>Text {} of a page that says {n} things about subject {}.</p>", n * 7 + text / 3, n + page)
        };
        let lines: String = (0..12).map(line).collect();
        let links: String = (0..4).map(|to| format!("<a href='/p{}'>page</a>", (page + to) % 8)).collect();
        let body = format!("<html><body>{lines}{links}</body></html>");
        let uri = Some(format!("http://host{host}.example/p{page}"));
        // The digest has an unknown algorithm or a wrong value.
        let digest = match text {
            5 => format!("sha1:{}", "A".repeat(32)),
            _ => format!("xyz:{:x}", page * 100 + text),
        };
        let lines = format!("WARC-Payload-Digest: {digest}\r\n");
        let date = Box::leak(format!("2026-01-{:02}T00:00:{:02}Z", draw(28) + 1, number).into_boxed_str());
        let record = match draw(8) {
            0 => Record { kind: "revisit", uri, date, ..Record::with("", http_with("HTTP/1.1 200 OK", "", b"")) }
                .lines(format!(
                    "WARC-Profile: http://netpreserve.org/warc/1.0/revisit/identical-payload-digest\r\n{lines}"
                )),
            1 => Record { kind: "metadata", uri, date, ..Record::with("", b"about a page".to_vec()) },
            2 => {
                let head = format!("HTTP/1.1 301 Moved\r\nLocation: /p{}\r\nContent-Length: 0\r\n\r\n", draw(8));
                Record { uri, date, ..Record::with("", head.into_bytes()) }
            }
            _ => Record { uri, date, ..Record::with("", html("", body.as_bytes())) }.lines(lines),
        };
        bytes.extend(gzip(&record.bytes()));
    }
    bytes
}

/// A scheduled job: the folder of its inputs and state, the live inputs, and the number of runs.
struct Schedule {
    folder: tempfile::TempDir,
    live: Vec<usize>,
    runs: usize,
}

impl Schedule {
    fn new() -> Schedule {
        Schedule { folder: tempfile::tempdir().unwrap(), live: Vec::new(), runs: 0 }
    }

    fn at(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().into()
    }

    fn segment(&self, number: usize) -> String {
        self.at(&format!("segment-{number}.warc.gz"))
    }

    fn write(&self, number: usize, seed: u64) {
        // Renames the segment into place, so that it is a different file even if length and time
        // are equal.
        let half = self.at("half");
        let mut bytes = segment(seed);
        bytes.extend(gzip(&Record::with("", html("", b"<p>the last page of a segment</p>")).bytes()));
        std::fs::write(&half, bytes).unwrap();
        std::fs::rename(half, self.segment(number)).unwrap();
    }

    /// Changes the inputs and returns the arguments for the changes.
    fn apply(&mut self, change: &Change) -> Vec<String> {
        let is_live = |number: &usize| self.live.contains(number);
        match *change {
            Change::Write { segment, seed } => {
                self.write(segment, seed);
                match is_live(&segment) {
                    true => Vec::new(),
                    false => {
                        self.live.push(segment);
                        vec!["--add".into(), self.segment(segment)]
                    }
                }
            }
            Change::Retract { segment } if is_live(&segment) && self.live.len() > 1 => {
                self.live.retain(|live| *live != segment);
                vec!["--retract".into(), self.segment(segment)]
            }
            Change::Whole { seed } => {
                // Of the two inputs, one is unchanged if it was live.
                self.live = vec![(seed % 5) as usize, 5];
                if !Path::new(&self.segment(self.live[0])).exists() {
                    self.live.remove(0);
                }
                self.write(5, seed);
                self.live.iter().flat_map(|live| ["--input".into(), self.segment(*live)]).collect()
            }
            Change::Replace { segment } if is_live(&segment) => vec!["--replace".into(), self.segment(segment)],
            Change::Retract { .. } | Change::Replace { .. } => Vec::new(),
        }
    }

    /// Runs from the state and from scratch, and checks that the results are equal. Returns the
    /// messages.
    fn run(&mut self, arguments: &[String], workers: usize) -> String {
        self.runs += 1;
        let (state, output) = (self.at("state"), self.at(&format!("out-{}", self.runs)));
        let mut scratch = vec!["run".to_string(), "--output".into(), self.at(&format!("scratch-{}", self.runs))];
        for live in &self.live {
            scratch.extend(["--input".into(), self.segment(*live)]);
        }
        let common = ["run", "--state", &state, "--output", &output];
        let arguments: Vec<&str> =
            common.into_iter().chain(SMALL).chain(arguments.iter().map(String::as_str)).collect();
        let message = match workers {
            4 => self.in_two_processes(&arguments),
            _ => {
                let ended = webtwin(&[&arguments[..], &["--workers", &workers.to_string()]].concat()).output().unwrap();
                assert!(ended.status.success(), "{arguments:?}: {}", stderr_text(&ended));
                stderr_text(&ended)
            }
        };
        let manifest = std::fs::read(Path::new(&output).join("manifest.json")).unwrap();
        let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
        for original in manifest["job"]["input"]["originals"].as_array().unwrap() {
            scratch.extend(["--originals".into(), original.as_str().unwrap().into()]);
        }
        let scratch: Vec<&str> = scratch.iter().map(String::as_str).chain(SMALL).collect();
        succeed(&scratch);
        let (ours, theirs) = (files(&output), files(scratch[2]));
        assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>());
        let differ: Vec<_> = ours.keys().filter(|name| ours[*name] != theirs[*name]).collect();
        assert!(differ.is_empty(), "{arguments:?}: {differ:?}\n{message}");
        message
    }

    fn in_two_processes(&self, arguments: &[&str]) -> String {
        let cluster = cluster_file(self.folder.path(), 2, &[(); 2].map(|()| reserved_address()));
        let processes = ["0", "1"].map(|process| {
            webtwin(&[arguments, &["--cluster", &cluster, "--process", process]].concat()).spawn().unwrap()
        });
        let [first, second] = processes.map(|process| process.wait_with_output().unwrap());
        assert!(first.status.success() && second.status.success(), "{}\n{}", stderr_text(&first), stderr_text(&second));
        stderr_text(&first)
    }
}

#[test]
fn pairs_of_unchanged_pages_are_reused_after_a_small_change() {
    let mut schedule = Schedule::new();
    let add: Vec<String> =
        (0..14).flat_map(|segment| schedule.apply(&Change::Write { segment, seed: 40 + segment as u64 })).collect();
    let message = schedule.run(&add, 2);
    assert!(!message.contains("similar pairs are"), "{message}");
    for workers in [3, 4] {
        schedule.apply(&Change::Write { segment: 5, seed: 100 + workers as u64 });
        let message = schedule.run(&[], workers);
        assert!(message.contains("similar pairs are reused from the state, except those of"), "{message}");
    }
    // Nearly all segments change.
    for segment in 0..13 {
        schedule.apply(&Change::Write { segment, seed: 200 + segment as u64 });
    }
    let message = schedule.run(&[], 1);
    assert!(message.contains("similar pairs are found from scratch: too many pages have changed"), "{message}");
}

/// Number of sequences of changes to try, from `WEBTWIN_SEQUENCES`.
fn sequences() -> u32 {
    std::env::var("WEBTWIN_SEQUENCES").ok().and_then(|text| text.parse().ok()).unwrap_or(8)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: sequences(), max_shrink_iters: 40, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_changes_yields_the_bytes_of_a_run_from_scratch(
        first: u64,
        steps in prop::collection::vec((prop::collection::vec(change(), 1..4), 1usize..5), 1..5),
    ) {
        let mut schedule = Schedule::new();
        let mut arguments = schedule.apply(&Change::Write { segment: 0, seed: first });
        schedule.run(&arguments, 1);
        for (changes, workers) in &steps {
            // An input that is added and removed in one step is no change.
            let mut changed = std::collections::BTreeSet::new();
            arguments.clear();
            let mut wrote = false;
            for change in changes {
                match change {
                    Change::Whole { .. } => {
                        (arguments, wrote) = (schedule.apply(change), true);
                        break;
                    }
                    Change::Write { segment, .. } | Change::Retract { segment } | Change::Replace { segment } => {
                        if changed.insert(*segment) {
                            arguments.extend(schedule.apply(change));
                            wrote |= matches!(change, Change::Write { .. });
                        }
                    }
                }
            }
            if wrote || !arguments.is_empty() {
                schedule.run(&arguments, *workers);
            }
        }
        succeed(&["state", "check", &schedule.at("state")]);
    }
}

#[test]
fn new_crawl_finds_originals_of_revisits_in_earlier_crawls() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let page = |name: &str, digest: &str, date: &'static str| {
        let uri = Some(format!("http://a.example/{name}"));
        let body = format!(
            "<p>What {name} says is longer than what a page without text would say, and it links</p><a href=/one>one</a>"
        );
        let record = Record { uri, date, ..Record::with("", html("", body.as_bytes())) };
        gzip(&record.lines(format!("WARC-Payload-Digest: {digest}\r\n")).bytes())
    };
    let revisit = |name: &str, digest: &str, date: &'static str| {
        let profile = "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\n";
        let uri = Some(format!("http://a.example/{name}"));
        let record = Record { kind: "revisit", uri, date, ..Record::with("", http_with("HTTP/1.1 200 OK", "", b"")) };
        gzip(&record.lines(format!("{profile}WARC-Payload-Digest: {digest}\r\n")).bytes())
    };
    let write = |name: &str, records: &[Vec<u8>]| std::fs::write(at(name), records.concat()).unwrap();
    write(
        "first.warc.gz",
        &[
            page("one", "x:1", "2026-01-01T00:00:00Z"),
            page("two", "x:2", "2026-01-01T00:00:01Z"),
            page("gone", "x:3", "2026-01-01T00:00:02Z"),
        ],
    );
    write("unused.warc.gz", &[page("unused", "x:9", "2026-01-01T00:00:03Z")]);
    write(
        "second.warc.gz",
        &[revisit("one", "x:1", "2026-02-01T00:00:00Z"), page("two", "x:4", "2026-02-01T00:00:01Z")],
    );
    write(
        "third.warc.gz",
        &[revisit("one", "x:1", "2026-03-01T00:00:00Z"), revisit("two", "x:4", "2026-03-01T00:00:01Z")],
    );
    let run = |output: &str, inputs: &[&str]| {
        let inputs: Vec<String> = inputs.iter().flat_map(|name| ["--input".to_string(), at(name)]).collect();
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        let ended = webtwin(&[&["run", "--state", &at("state"), "--output", &at(output)][..], &inputs].concat())
            .output()
            .unwrap();
        assert!(ended.status.success(), "{}", stderr_text(&ended));
        stderr_text(&ended)
    };
    let urls = |output: &str| -> Vec<String> {
        let mut urls: Vec<String> =
            rows(&at(output), "pages").iter().map(|row| row["url"].as_str().unwrap().into()).collect();
        urls.sort();
        urls
    };
    run("out-1", &["first.warc.gz", "unused.warc.gz"]);
    let message = run("out-2", &["second.warc.gz"]);
    assert!(message.contains("2 records read: 2 pages kept"), "{message}");
    assert_eq!(urls("out-2"), ["http://a.example/one", "http://a.example/two"]);
    // The third crawl revisits pages of the second one and, through it, of the first one. The state
    // drops files that no revisit needs.
    let message = run("out-3", &["third.warc.gz"]);
    assert!(message.contains("state: 2 of 3 work items have checkpoints"), "{message}");
    assert_eq!(urls("out-3"), urls("out-2"));
    assert_eq!(rows(&at("out-3"), "links").len(), 1);
    let scratch =
        ["run", "--output", &at("scratch"), "--input", &at("third.warc.gz"), "--originals", &at("first.warc.gz")];
    succeed(&[&scratch[..], &["--originals", &at("second.warc.gz")]].concat());
    assert!(files(&at("scratch")) == files(&at("out-3")));
    // The same files under another name are the same crawl, so nothing has changed.
    let relative = ["run", "--state", "state", "--output", "out-4", "--input", "third.warc.gz"];
    let ended = webtwin(&relative).current_dir(folder.path()).output().unwrap();
    assert!(stderr_text(&ended).contains("state: 2 of 3 work items have checkpoints"), "{}", stderr_text(&ended));
    assert!(rows(&at("out-4"), "pages").len() == 2, "{}", stderr_text(&ended));
    let again = ["run", "--state", "state", "--output", "out-5", "--input", "third.warc.gz"];
    assert_eq!(webtwin(&again).current_dir(folder.path()).output().unwrap().status.code(), Some(10));
    // Without the earlier crawls the pages are missing, and the message names the remedy.
    let ended = webtwin(&["run", "--output", &at("alone"), "--input", &at("third.warc.gz")]).output().unwrap();
    assert!(
        stderr_text(&ended).contains("name the files of the earlier crawl with --originals"),
        "{}",
        stderr_text(&ended)
    );
}

/// Returns a record of a page or, without a body, of a revisit of the record with the same URL and
/// the date `refers_to`.
fn capture(name: &str, date: &'static str, body: Option<&str>, refers_to: &str) -> Vec<u8> {
    let uri = Some(format!("http://a.example/{name}"));
    let record = match body {
        Some(body) => Record { uri, date, ..Record::with("", html("", body.as_bytes())) },
        None => {
            let profile = "http://netpreserve.org/warc/1.1/revisit/server-not-modified";
            let lines = format!(
                "WARC-Profile: {profile}\r\nWARC-Refers-To-Target-URI: http://a.example/{name}\r\n\
                 WARC-Refers-To-Date: {refers_to}\r\n"
            );
            let head = http_with("HTTP/1.1 304 Not Modified", "", b"");
            Record { kind: "revisit", uri, date, ..Record::with("", head) }.lines(lines)
        }
    };
    gzip(&record.bytes())
}

#[test]
fn result_names_only_the_earlier_files_that_it_needs() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let write = |name: &str, records: &[Vec<u8>]| std::fs::write(at(name), records.concat()).unwrap();
    let (may, june, july) = ("2026-05-01T00:00:00Z", "2026-06-01T00:00:00Z", "2026-07-01T00:00:00Z");
    let text = "<p>a text that is long enough to be the text of a page</p>";
    write("may.warc.gz", &[capture("one", may, Some(text), ""), capture("two", may, Some(text), "")]);
    // Two records have this URL, and the older one is a revisit. It can be recognised as older only
    // if its content is found.
    write("june.warc.gz", &[capture("one", june, None, may), capture("two", june, Some(text), "")]);
    write("july.warc.gz", &[capture("one", july, None, june), capture("two", july, Some(text), "")]);
    write("august.warc.gz", &[capture("two", july, Some(text), ""), capture("two", june, None, may)]);
    let run = |output: &str, input: &str, more: &[&str]| {
        let (state, output, input) = (at("state"), at(output), at(input));
        let arguments = [&["run", "--state", &state, "--output", &output, "--input", &input][..], more].concat();
        let ended = webtwin(&arguments).output().unwrap();
        (ended.status.code(), stderr_text(&ended))
    };
    let originals = |output: &str| -> Vec<String> {
        let manifest = std::fs::read(Path::new(&at(output)).join("manifest.json")).unwrap();
        let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
        let named = manifest["job"]["input"]["originals"].as_array().unwrap();
        named.iter().map(|name| name.as_str().unwrap().to_string()).collect()
    };
    let scratch = |output: &str, input: &str| {
        let (of_scratch, input, originals) = (at(&format!("{output}-scratch")), at(input), originals(output));
        let mut arguments = vec!["run", "--output", &of_scratch, "--input", &input];
        arguments.extend(originals.iter().flat_map(|name| ["--originals", name]));
        succeed(&arguments);
        assert!(files(&of_scratch) == files(&at(output)), "{output}");
    };
    assert_eq!(run("out-1", "may.warc.gz", &[]).0, Some(0));
    // June's record is itself a revisit, which leads to the record of May.
    for (output, input, needed) in [
        ("out-2", "june.warc.gz", &["may.warc.gz"][..]),
        ("out-3", "july.warc.gz", &["june.warc.gz", "may.warc.gz"]),
        ("out-4", "august.warc.gz", &["may.warc.gz"]),
    ] {
        let (code, message) = run(output, input, &["--diff", &at(&format!("{output}-diff"))]);
        assert_eq!(code, Some(0), "{message}");
        assert_eq!(originals(output), needed.iter().map(|name| at(name)).collect::<Vec<_>>(), "{message}");
        scratch(output, input);
        assert_eq!(run("again", input, &[]).0, Some(10), "{input}");
    }
    // If a run ended before its comparison, a later run does not make it but names the command.
    std::fs::remove_dir_all(at("out-4-diff")).unwrap();
    let (code, message) = run("again", "august.warc.gz", &[]);
    let command = format!("webtwin diff {} {}", at("out-3"), at("out-4"));
    assert!(code == Some(10) && message.contains(&command), "{message}");
    let (both, input) = (at("both"), at("august.warc.gz"));
    let ended = webtwin(&["run", "--state", &both, "--output", &both, "--input", &input]).output().unwrap();
    assert!(
        ended.status.code() == Some(2) && stderr_text(&ended).contains("choose a separate folder"),
        "{}",
        stderr_text(&ended)
    );
    // A whole new crawl without revisits does not need the earlier crawls, which may be deleted.
    write("september.warc.gz", &[capture("one", july, Some(text), ""), capture("two", july, Some(text), "")]);
    std::fs::remove_file(at("august.warc.gz")).unwrap();
    let (code, message) = run("out-5", "september.warc.gz", &[]);
    assert!(code == Some(0) && message.contains("revisit records that refer to it are rejected"), "{message}");
    assert_eq!(originals("out-5"), [""; 0]);
    scratch("out-5", "september.warc.gz");
    // `--sticky` is a setting of the result, so a change of it is a change of the job.
    assert_eq!(run("again", "september.warc.gz", &[]).0, Some(10));
    assert_eq!(run("out-6", "september.warc.gz", &["--sticky"]).0, Some(0));
    assert_eq!(run("again", "september.warc.gz", &["--sticky"]).0, Some(10));
    assert_eq!(run("out-7", "september.warc.gz", &[]).0, Some(0));
}

#[test]
fn late_parts_of_a_crawl_find_originals_of_revisits_in_the_previous_crawl() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let (may, june) = ("2026-05-01T00:00:00Z", "2026-06-01T00:00:00Z");
    let write = |name: &str, records: &[Vec<u8>]| {
        std::fs::create_dir_all(Path::new(&at(name)).parent().unwrap()).unwrap();
        std::fs::write(at(name), records.concat()).unwrap();
    };
    let text = "<p>a text that is long enough to be the text of a page</p>";
    for name in ["one", "two", "three"] {
        write(&format!("may/{name}.warc.gz"), &[capture(name, may, Some(text), "")]);
    }
    let run = |output: &str, arguments: &[&str]| {
        let common = ["run", "--state", &at("state"), "--output", &at(output), "--set", "recrawl.least_pages=0"];
        let ended = webtwin(&[&common[..], arguments].concat()).output().unwrap();
        (ended.status.code(), stderr_text(&ended))
    };
    let pages = |output: &str| rows(&at(output), "pages").len();
    let crawl_of_june = at("june");
    let june_again = ["--input", crawl_of_june.as_str()];
    assert_eq!(run("of-may", &["--input", &at("may")]).0, Some(0));
    write("june/one.warc.gz", &[capture("one", june, None, may)]);
    assert_eq!((run("night-1", &june_again).0, pages("night-1")), (Some(0), 1));
    assert_eq!(run("again", &june_again).0, Some(10));
    // The late part is another file of the folder, and then an input of its own.
    write("june/two.warc.gz", &[capture("two", june, None, may)]);
    assert_eq!((run("night-2", &june_again).0, pages("night-2")), (Some(0), 2));
    write("late/three.warc.gz", &[capture("three", june, None, may)]);
    assert_eq!((run("night-3", &["--add", &at("late")]).0, pages("night-3")), (Some(0), 3));
    let scratch = ["run", "--input", &at("june"), "--input", &at("late"), "--output", &at("scratch")];
    let originals = ["one", "three", "two"].map(|name| at(&format!("may/{name}.warc.gz")));
    succeed(&[&scratch[..], &originals.each_ref().map(|name| ["--originals", name.as_str()]).concat()].concat());
    assert!(files(&at("scratch")) == files(&at("night-3")));
    // An original that is missing for one night is searched again.
    std::fs::rename(at("may"), at("away")).unwrap();
    let live = ["--input", &at("june"), "--input", &at("late")];
    assert_eq!((run("night-4", &live).0, pages("night-4")), (Some(0), 0));
    assert_eq!(run("again", &live).0, Some(10));
    std::fs::rename(at("away"), at("may")).unwrap();
    assert_eq!((run("night-5", &live).0, pages("night-5")), (Some(0), 3));
    assert!(files(&at("scratch")) == files(&at("night-5")));
    // Another crawl, without revisits, does not depend on the earlier originals.
    write("july/one.warc.gz", &[capture("one", "2026-07-01T00:00:00Z", Some(text), "")]);
    assert_eq!(run("of-july", &["--input", &at("july")]).0, Some(0));
    let state_json = succeed(&["state", "show", &at("state"), "--json"]);
    let state_json: serde_json::Value = serde_json::from_str(&state_json).unwrap();
    let newest = state_json["generations"].as_array().unwrap().last().unwrap();
    assert_eq!((&newest["crawl_before"], &newest["originals"]), (&serde_json::json!([]), &serde_json::json!([])));
}

#[test]
fn removing_a_file_of_a_glob_replaces_it_by_a_list_with_a_message() {
    let schedule = three_segments(1);
    let (state, glob) = (schedule.at("of-glob"), schedule.at("segment-*.warc.gz"));
    let run = |name: &str, more: &[&str]| {
        let output = schedule.at(name);
        let ended =
            webtwin(&[&["run", "--state", &state, "--output", &output][..], &SMALL, more].concat()).output().unwrap();
        assert!(ended.status.success(), "{}", stderr_text(&ended));
        stderr_text(&ended)
    };
    run("three", &["--input", &glob]);
    let message = run("two", &["--retract", &schedule.segment(1)]);
    assert!(message.contains(&format!("{glob} is replaced by the names of its 2 other files")), "{message}");

    // Files of the folder that are not read do not become inputs.
    let folder = schedule.at("crawl");
    std::fs::create_dir(&folder).unwrap();
    for number in 0..3 {
        std::fs::copy(schedule.segment(number), format!("{folder}/{number}.warc.gz")).unwrap();
    }
    std::fs::write(format!("{folder}/index.cdxj"), "com,example)/ 20260101000000 {}\n").unwrap();
    let state = schedule.at("of-folder");
    let run = |name: &str, more: &[&str]| {
        let output = schedule.at(name);
        stderr_text(
            &webtwin(&[&["run", "--state", &state, "--output", &output][..], &SMALL, more].concat()).output().unwrap(),
        )
    };
    run("three-of-folder", &["--input", &folder]);
    let message = run("two-of-folder", &["--retract", &format!("{folder}/1.warc.gz")]);
    assert!(message.contains(&format!("{folder} is replaced by the names of its 2 other files")), "{message}");
    let pages = |name: &str| rows(&schedule.at(name), "pages").len();
    assert_eq!(pages("two-of-folder"), pages("two"), "{message}");
}

#[test]
fn each_result_is_compared_with_the_previous_one_and_extends_the_history() {
    let mut schedule = Schedule::new();
    let run = |schedule: &Schedule, name: &str, more: &[String]| {
        let (state, output, diff) = (schedule.at("state"), schedule.at(name), schedule.at(&format!("{name}-diff")));
        let arguments = ["run", "--state", &state, "--output", &output, "--diff", &diff, "--set", "chunks.min_text=0"];
        let more: Vec<&str> = more.iter().map(String::as_str).collect();
        let ended = webtwin(&[&arguments[..], &more, &["--max-bad", "1"]].concat()).output().unwrap();
        assert!(ended.status.success(), "{}", stderr_text(&ended));
        stderr_text(&ended)
    };
    let mut change = |segment, seed| schedule.apply(&Change::Write { segment, seed });
    let (first, second) = (change(0, 5), change(1, 82));
    let message = run(&schedule, "may", &first);
    assert!(message.contains("no comparison was made") && !Path::new(&schedule.at("may-diff")).exists(), "{message}");
    run(&schedule, "june", &second);
    let compared = |old: &str, new: &str, more: &[&str]| {
        let (old, new, output) = (schedule.at(old), schedule.at(new), schedule.at(&format!("{new}-compared")));
        succeed(&[&["diff", &old, &new, "--output", &output][..], more].concat());
        files(&output)
    };
    assert!(compared("may", "june", &[]) == files(&schedule.at("june-diff")));
    schedule.write(1, 1234);
    run(&schedule, "july", &[]);
    let history = schedule.at("june-diff");
    assert!(compared("june", "july", &["--history", &history]) == files(&schedule.at("july-diff")));
    // If the comparison cannot succeed, the cause is reported before the run.
    let (state, output, diff) = (schedule.at("state"), schedule.at("refused"), schedule.at("refused-diff"));
    let refused = |[state, diff]: [&str; 2], more: &[&str], code: i32, why: &str| {
        let run = ["run", "--state", state, "--output", &output, "--max-bad", "1", "--diff", diff];
        let message = fail(&[&run[..], &["--set", "chunks.min_text=0"], more].concat(), code);
        assert!(message.contains(why) && !Path::new(&output).exists(), "{message}");
    };
    refused([&state, &diff], &["--against", &schedule.at("nowhere")], 3, "nowhere");
    refused([&state, &diff], &["--set", "overlap.min_shared=3"], 2, "this job has 3");
    refused([&state, &output], &[], 2, "choose a separate folder");
    refused(["/proc/nope", &diff], &["--input", "synth://?pages=100&seed=1"], 2, "choose another --state");
    // After a run without a comparison, the history starts again, and a message reports that.
    schedule.write(1, 4321);
    let alone = schedule.at("august");
    succeed(&["run", "--state", &state, "--output", &alone, "--max-bad", "1", "--set", "chunks.min_text=0"]);
    schedule.write(1, 5678);
    let message = run(&schedule, "september", &[]);
    assert!(message.contains("the history begins with"), "{message}");
}

#[test]
fn unchanged_page_is_not_parsed_again_in_any_file() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let page = |name: &str, media: &str, body: &str, date: &'static str| {
        let head = format!("Content-Type: {media}\r\n");
        let record = Record { date, ..Record::with(name, http_with("HTTP/1.1 200 OK", &head, body.as_bytes())) };
        gzip(&record.bytes())
    };
    let links: String = (0..5).map(|to| format!("<a href='{to}'>to {to}</a>")).collect();
    let text = |name: &str| format!("<p>What {name} says, caf\u{e9}</p>{links}");
    let (may, june) = ("2026-05-01T00:00:00Z", "2026-06-01T00:00:00Z");
    let (utf8, latin, plain) =
        ("text/html; charset=utf-8", "text/html; charset=iso-8859-1", "text/plain; charset=utf-8");
    let write = |name: &str, records: &[Vec<u8>]| std::fs::write(at(name), records.concat()).unwrap();
    let names = ["same", "too", "text", "charset", "form", "gone"];
    write("may-0.warc.gz", &names.map(|name| page(name, utf8, &text(name), may))[..3]);
    write("may-1.warc.gz", &names.map(|name| page(name, utf8, &text(name), may))[3..]);
    // Two pages are unchanged but in another order. Four others differ in one property each: text,
    // charset, format, URL.
    write(
        "june.warc.gz",
        &[
            page("too", utf8, &text("too"), june),
            page("same", utf8, &text("same"), june),
            page("text", utf8, &text("other"), june),
            page("charset", latin, &text("charset"), june),
            page("form", plain, &text("form"), june),
            page("url", utf8, &text("gone"), june),
        ],
    );
    let run = |output: &str, inputs: &[&str], more: &[&str]| {
        let inputs: Vec<String> = inputs.iter().flat_map(|name| ["--input".to_string(), at(name)]).collect();
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        let ended = webtwin(&[&["run", "--output", &at(output)][..], &SMALL, more, &inputs].concat()).output().unwrap();
        assert!(ended.status.success(), "{}", stderr_text(&ended));
        stderr_text(&ended)
    };
    let state = at("state");
    let state = ["--state", &state[..]];
    let message = run("may", &["may-0.warc.gz", "may-1.warc.gz"], &state);
    assert!(!message.contains("not parsed again"), "{message}");
    let message = run("june", &["june.warc.gz"], &state);
    assert!(
        message.contains("0 work items restored from checkpoints, 1 saved; 2 pages of these are unchanged"),
        "{message}"
    );
    run("scratch", &["june.warc.gz"], &[]);
    assert!(files(&at("june")) == files(&at("scratch")));
    // The new checkpoint is complete, so the previous crawl may be deleted.
    std::fs::remove_file(at("may-0.warc.gz")).unwrap();
    let output = at("again");
    succeed(&[&["run", "--output", &output][..], &SMALL, &state, &["--set", "overlap.min_resemblance=0.4"]].concat());
}

fn three_segments(workers: usize) -> Schedule {
    let mut schedule = Schedule::new();
    let arguments: Vec<String> =
        (0..3).flat_map(|segment| schedule.apply(&Change::Write { segment, seed: segment as u64 * 77 + 5 })).collect();
    schedule.run(&arguments, workers);
    schedule
}

#[test]
fn unchanged_inputs_are_not_read_again_and_without_a_change_nothing_is_done() {
    let mut schedule = three_segments(2);
    let arguments = schedule.apply(&Change::Write { segment: 1, seed: 9 });
    let message = schedule.run(&arguments, 2);
    assert!(
        message.contains("state: 2 of 3 work items have checkpoints, in generation 1, of which 1 were removed"),
        "{message}"
    );
    assert!(message.contains("state: 2 work items restored from checkpoints, "), "{message}");
    let (state, output) = (schedule.at("state"), schedule.at("again"));
    let again = [&["run", "--state", &state, "--output", &output][..], &SMALL].concat();
    let message = fail(&again, 10);
    assert!(
        message.contains("nothing to do") && message.contains("generation 2") && message.contains("out-2"),
        "{message}"
    );
    assert!(!Path::new(&output).exists());
    // Different settings of the result use the same checkpoints.
    let message = webtwin(&[&again[..], &["--set", "overlap.min_resemblance=0.9"]].concat()).output().unwrap();
    assert!(
        stderr_text(&message).contains("state: 3 work items restored from checkpoints, 0 saved"),
        "{}",
        stderr_text(&message)
    );
    // Different settings of reading need different checkpoints.
    let output = schedule.at("other");
    let read = [&["run", "--state", &state, "--output", &output][..], &SMALL, &["--set", "chunks.wrap=40"]].concat();
    let message = webtwin(&read).output().unwrap();
    assert!(
        stderr_text(&message)
            .contains("0 of 3 work items have checkpoints, in generation 3, which was read with other settings"),
        "{}",
        stderr_text(&message)
    );
}

impl Schedule {
    fn files_of_state(&self) -> Vec<PathBuf> {
        files(&self.at("state")).into_keys().map(|name| self.folder.path().join("state").join(name)).collect()
    }
}

#[test]
fn damaged_or_missing_checkpoints_and_generations_cost_only_time() {
    for is_missing in [false, true] {
        damaged_or_missing(is_missing);
    }
}

fn damaged_or_missing(is_missing: bool) {
    // One worker writes a single checkpoint file. Writing that file again with the same contents
    // would repair it.
    let mut schedule = three_segments(1);
    for file in schedule.files_of_state().into_iter().filter(|file| file.extension().unwrap() == "run") {
        let bytes = vec![1; std::fs::metadata(&file).unwrap().len() as usize];
        match is_missing {
            false => std::fs::write(&file, bytes).unwrap(),
            true => std::fs::remove_file(&file).unwrap(),
        }
    }
    fail(&["state", "check", &schedule.at("state")], 8);
    let arguments = schedule.apply(&Change::Write { segment: 0, seed: 99 });
    let message = schedule.run(&arguments, 1);
    assert!(message.contains("were damaged, and their items read again"), "{message}");
    // The previous generation still refers to the damaged file.
    fail(&["state", "check", &schedule.at("state")], 8);
    succeed(&["state", "prune", &schedule.at("state"), "--keep", "1"]);
    succeed(&["state", "check", &schedule.at("state")]);

    // A damaged generation is read from its copy. If both are damaged, the message has the command
    // that continues.
    let newest = schedule.folder.path().join("state/gen-000002.json");
    let whole = std::fs::read(&newest).unwrap();
    std::fs::write(&newest, &whole[..whole.len() - 1]).unwrap();
    fail(&["state", "check", &schedule.at("state")], 8);
    let arguments = schedule.apply(&Change::Write { segment: 1, seed: 98 });
    let message = schedule.run(&arguments, 1);
    assert!(message.contains("gen-000002.json: damaged") && message.contains("continues from its copy"), "{message}");
    for name in ["state/gen-000003.json", "state/copies/gen-000003.json"] {
        std::fs::write(schedule.folder.path().join(name), &whole).unwrap();
    }
    let (state, output) = (schedule.at("state"), schedule.at("refused"));
    let run = ["run", "--state", &state, "--output", &output, "--replace", &schedule.segment(0)];
    let message = fail(&run, 3);
    let command = format!("webtwin state prune {state}/ --damaged");
    assert!(message.contains("gen-000003.json") && message.contains(&command), "{message}");
    succeed(&["state", "prune", &state, "--damaged"]);
    succeed(&[&run[..], &SMALL].concat());
}

#[test]
fn inputs_are_removed_by_name_glob_and_folder_and_inactive_ones_are_rejected() {
    let schedule = three_segments(2);
    let (state, glob) = (schedule.at("state"), schedule.at("segment-[01].warc.gz"));
    let run = |more: &[&str], output: &str| {
        let output = schedule.at(output);
        let ended = webtwin(&[&["run", "--state", &state, "--output", &output][..], more].concat()).output().unwrap();
        (ended.status.code().unwrap(), stderr_text(&ended))
    };
    assert_eq!(run(&["--retract", &glob], "a").0, 0);
    let listing = succeed(&["state", "show", &state]);
    assert!(listing.contains("segment-2") && !listing.contains("segment-1"), "{listing}");
    for (arguments, words) in [
        (&["--retract", &schedule.segment(1)][..], "is not a live input; name one of"),
        (&["--replace", &schedule.segment(1)], "is not a live input; name one of"),
        (&["--add", &schedule.segment(2)], "live already"),
        (&["--add", "x", "--input", &schedule.segment(2)], "give one of both"),
        (&["--retract", &schedule.segment(2)], "all live inputs were removed"),
        (&["--add", &schedule.segment(1), "--resume"], "continues from its state"),
    ] {
        let (code, message) = run(arguments, "refused");
        assert!(code == 2 && message.contains(words), "{arguments:?}: {code} {message}");
    }
    assert_eq!(run(&["--input", &glob], "whole").0, 0);
    let message = fail(&["run", "--input", &glob, "--output", &schedule.at("b"), "--add", "x"], 2);
    assert!(message.contains("need a state; add --state"), "{message}");
}

/// Returns pages that exercise many features of HTML and HTTP.
fn pages_of_all_sorts() -> Vec<u8> {
    let page = |name: &str, lines: &str, body: &[u8]| gzip(&Record::with(name, html(lines, body)).bytes());
    let rich = "<!doctype html><html><head><title>All &amp; sundry</title><base href='/docs/'><script>no text</script></head>\
        <body><h1>Of <b>tables</b></h1><table><tr><td>one<td>two</table><pre>  as\n it is</pre><p>caf&eacute; &#x2014; na\u{ef}ve\
        <a href='../a.html#x'>a</a> <a href='b?q=1&amp;r=2'>b</a> <area href='//other.example/c'> <iframe src='d'></iframe>\
        <ul><li>first<li>second</ul><!-- not this --><img src='e.png' alt='not this either'></body></html>";
    let latin = b"<html><head><meta charset=windows-1252></head><body><p>caf\xe9 and na\xefve</p></body></html>";
    [
        page("rich", "", rich.as_bytes()),
        page("latin", "", latin),
        page("refresh", "", b"<meta http-equiv=refresh content='0; url=/there'><p>gone there"),
        page("long", "", "<p>a word and another word, again and again</p>".repeat(400).as_bytes()),
        page("empty", "", b""),
        gzip(&Record::with("missing", http_with("HTTP/1.1 404 Not Found", "", b"no such page")).bytes()),
        gzip(&Record::with("moved", http_with("HTTP/1.1 301 Moved", "Location: /rich\r\n", b"")).bytes()),
        gzip(&Record::with("image", http_with("HTTP/1.1 200 OK", "Content-Type: image/png\r\n", b"\x89PNG")).bytes()),
        segment(3),
        segment(4),
        b"no record at all".to_vec(),
    ]
    .concat()
}

/// Returns the names of the files of a state after its first run, the checkpoint files first.
fn files_of_state(crawl: &[u8]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    std::fs::write(at("crawl.warc.gz"), crawl).unwrap();
    let run =
        ["run", "--state", &at("state"), "--output", &at("out"), "--input", &at("crawl.warc.gz"), "--workers", "1"];
    succeed(&[&run[..], &["--max-bad", "1"]].concat());
    let generation: serde_json::Value =
        serde_json::from_slice(&std::fs::read(at("state/gen-000001.json")).unwrap()).unwrap();
    let names = |of: &str| generation["generation"][of].as_array().unwrap().iter();
    names("files").chain(names("found")).map(|file| file["name"].as_str().unwrap().to_string()).collect()
}

#[test]
fn reading_and_its_checkpoints_change_only_with_the_name_reading() {
    assert_eq!(
        (webtwin::job::READING, &files_of_state(&pages_of_all_sorts())[..1]),
        ("reading-7", &["f681123bedcd8c2babfede47afb21901".to_string()][..]),
        "checkpoints of older builds would be reused although reading has changed: rename job::READING, and update both values here"
    );
}

#[test]
fn pairs_and_their_checkpoints_change_only_with_the_name_pairing() {
    let page = |name: &str, lines: std::ops::Range<u32>| {
        let body: String =
            lines.map(|n| format!("<p>Sentence number {n} of a page that says {n} things.</p>")).collect();
        gzip(&Record::with(name, html("", body.as_bytes())).bytes())
    };
    // The pages are overlapping neighbours, an exact copy, and a page without similar pages.
    let pages: Vec<Vec<u8>> = (0..9)
        .map(|n| page(&format!("page{n}"), n * 3..n * 3 + 40))
        .chain([page("copy", 3..43), page("other", 900..950)])
        .collect();
    assert_eq!(
        (webtwin::job::PAIRING, &files_of_state(&pages.concat())[1..]),
        ("pairing-2", &["ea95fefc0038ee635a2224565f53e450".to_string()][..]),
        "pairs of older builds would be reused although pairing has changed: rename job::PAIRING, and update both values here"
    );
}
