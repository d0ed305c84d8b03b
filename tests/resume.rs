use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::support::planted::write_crawl;
use crate::support::ports::reserved_address;
use crate::support::program::{cluster_file, fail, files, stderr_text, succeed, webtwin};

/// A crawl of many small work items, and the bytes of its result.
pub(crate) struct Crawl {
    pub(crate) folder: tempfile::TempDir,
}

impl Crawl {
    pub(crate) fn new(pages: u64) -> Crawl {
        let crawl = Crawl { folder: tempfile::tempdir().unwrap() };
        write_crawl(&crawl.at("crawl"), pages, 7);
        succeed(&crawl.run("whole", &[]));
        crawl
    }

    pub(crate) fn at(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_string()
    }

    pub(crate) fn run<'a>(&'a self, output: &str, more: &[&'a str]) -> Vec<&'a str> {
        let leaked = |text: String| -> &'a str { Box::leak(text.into_boxed_str()) };
        let input = leaked(self.at("crawl") + "/*.warc.gz");
        let output = leaked(self.at(output));
        let common = ["run", "--input", input, "--output", output, "--set", "effort.shard_bytes=65536"];
        [&common[..], &["--set", "similar.by=both", "--set", "simhash.recipe=weighted"], more].concat()
    }

    /// Resumes a run and returns its messages.
    pub(crate) fn resume(&self, output: &str, more: &[&str]) -> String {
        let output = webtwin(&[&self.run(output, &["--resume"])[..], more].concat()).output().unwrap();
        assert!(output.status.success(), "{}", stderr_text(&output));
        stderr_text(&output)
    }

    pub(crate) fn assert_whole(&self, output: &str) {
        let (whole, other) = (files(&self.folder.path().join("whole")), files(&self.folder.path().join(output)));
        assert_eq!(whole.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>(), "{output}");
        let differ: Vec<_> = whole.keys().filter(|name| whole[*name] != other[*name]).collect();
        assert!(whole.len() > 10 && differ.is_empty(), "{output}: {differ:?}");
    }
}

/// Returns the checkpoint files below the folder of a result.
pub(crate) fn records(output: &Path) -> Vec<PathBuf> {
    let inner = |path: PathBuf| std::fs::read_dir(path).into_iter().flatten().map(|entry| entry.unwrap().path());
    let records_found = inner(output.to_path_buf()).filter(|path| path.to_str().unwrap().contains("/_records-"));
    let mut records_found: Vec<_> =
        records_found.flat_map(inner).filter(|path| path.extension().unwrap() == "records").collect();
    records_found.sort();
    records_found
}

/// Returns the number before some words.
fn number(text: &str, words: &str) -> usize {
    let before = text.split(words).next().filter(|before| before.len() < text.len());
    let before = before.unwrap_or_else(|| panic!("no {words:?} in {text}"));
    before.split(|c: char| !c.is_ascii_digit()).next_back().unwrap().parse().unwrap()
}

/// Returns the numbers of work items in a message: with checkpoints, in all, and restored.
fn numbers(message: &str) -> (usize, usize, usize) {
    (
        number(message, " of "),
        number(message, " work items have checkpoints"),
        number(message, " work items restored from checkpoints,"),
    )
}

/// Memory bound that ends a run while it reads its input.
const LITTLE: &str = "effort.memory_bytes=39917000";

/// Starts a run and kills it as soon as it has written a checkpoint.
fn kill(crawl: &Crawl, name: &str, workers: &str) {
    let output = crawl.folder.path().join(name);
    let mut child = webtwin(&crawl.run(name, &["--workers", workers, "--resume"])).spawn().unwrap();
    let start = Instant::now();
    while records(&output).is_empty() && start.elapsed() < Duration::from_secs(120) {
        assert!(child.try_wait().unwrap().is_none(), "the run ended before it wrote a checkpoint");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!output.join("manifest.json").exists());
}

#[test]
fn killed_run_is_resumed_by_any_number_of_workers_and_writes_the_same_bytes() {
    let crawl = Crawl::new(6000);
    for (before, after) in [("1", "2"), ("2", "1")] {
        // On a busy machine the kill may come after the reading. Resuming works then, too, but
        // another attempt is needed to test a kill during the reading.
        let amid = (0..5).any(|attempt| {
            let name = format!("killed-{before}-{attempt}");
            kill(&crawl, &name, before);
            let message = crawl.resume(&name, &["--workers", after]);
            let (with_checkpoint, all, restored) = numbers(&message);
            assert!(0 < with_checkpoint && with_checkpoint == restored && !message.contains("ignored"), "{message}");
            assert!(message.contains(&format!("restored from checkpoints, {} saved\n", all - restored)), "{message}");
            crawl.assert_whole(&name);
            assert!(records(&crawl.folder.path().join(&name)).is_empty());
            fail(&crawl.run(&name, &["--resume"]), 4);
            restored < all
        });
        assert!(amid);
    }
}

#[test]
fn damaged_foreign_and_stale_checkpoints_are_counted_and_items_read_again() {
    let crawl = Crawl::new(800);
    let output = crawl.folder.path().join("out");
    let stop = |name: &str, more: &[&str]| {
        let arguments = crawl.run(name, &["--workers", "1", "--resume", "--set", LITTLE]);
        let output = webtwin(&[&arguments[..], more].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(9), "{}", stderr_text(&output));
        assert!(stderr_text(&output).contains("resume: "), "{}", stderr_text(&output));
    };
    stop("out", &[]);
    let file = &records(&output)[0];
    let whole = std::fs::read(file).unwrap();

    // A run without `--resume` neither reads checkpoints nor writes any.
    succeed(&crawl.run("other", &["--workers", "2"]));
    assert!(records(&crawl.folder.path().join("other")).is_empty());

    // A checkpoint of another job replaces one of this job.
    stop("another", &["--set", "overlap.min_shared=2"]);
    let foreign = &records(&crawl.folder.path().join("another"))[0];
    std::fs::copy(foreign, file.with_file_name("0.records")).unwrap();
    // A bit is flipped in the middle of a checkpoint, so that some of its items are intact and one
    // is damaged.
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    std::fs::write(file, flipped).unwrap();
    let message = crawl.resume("out", &["--workers", "2"]);
    let (with_checkpoint, all, restored) = numbers(&message);
    assert!(0 < restored && restored < all && restored <= with_checkpoint, "{message}");
    assert!(message.contains("; ignored: 1 damaged, 1 of another job, build or format\n"), "{message}");
    crawl.assert_whole("out");
    assert!(!file.parent().unwrap().exists());

    // Inputs that are written again, even with the same bytes, invalidate their checkpoints.
    stop("stale", &[]);
    for entry in std::fs::read_dir(crawl.at("crawl")).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, bytes).unwrap();
    }
    let message = crawl.resume("stale", &[]);
    assert_eq!((numbers(&message).0, numbers(&message).2), (0, 0), "{message}");
    assert!(number(&message, " of input that has changed") > 0, "{message}");
    crawl.assert_whole("stale");
}

#[test]
fn processes_find_their_own_checkpoints() {
    let crawl = Crawl::new(800);
    let start = |more: &[&str]| {
        let cluster = cluster_file(crawl.folder.path(), 1, &[(); 2].map(|()| reserved_address()));
        let children = ["0", "1"].map(|process| {
            // Each process has its own disk.
            let disk = crawl.at(&format!("disk-{process}"));
            let own = ["--resume", "--cluster", &cluster, "--process", process, "--records", &disk];
            webtwin(&[&crawl.run("two", &[])[..], &own, more].concat()).spawn().unwrap()
        });
        children.map(|child| child.wait_with_output().unwrap())
    };
    for output in start(&["--set", "effort.memory_bytes=38817000"]) {
        assert_eq!(output.status.code(), Some(9), "{}", stderr_text(&output));
    }
    let mut restored = 0;
    for output in start(&[]) {
        assert!(output.status.success(), "{}", stderr_text(&output));
        let (with_checkpoint, _, of_this) = numbers(&stderr_text(&output));
        assert_eq!(with_checkpoint, of_this, "{}", stderr_text(&output));
        restored += of_this;
    }
    assert!(restored > 0);
    crawl.assert_whole("two");
    assert_eq!(std::fs::read_dir(crawl.at("disk-0")).unwrap().count(), 0);
}

#[test]
fn checkpoints_are_rejected_on_a_store_and_for_a_job_without_a_crawl() {
    if cfg!(feature = "aws") {
        let stderr_text = fail(&["run", "--input", "synth://?pages=9", "--output", "s3://bucket/out", "--resume"], 2);
        assert!(stderr_text.contains("--records DIR"), "{stderr_text}");
    }
    let stderr_text = fail(&["run", "--set", "kind=hamming", "--output", "/nowhere/out", "--resume"], 2);
    assert!(stderr_text.contains("reads no crawl"), "{stderr_text}");
}

/// Returns the checkpoint files of steps below the folder of a result.
fn steps(output: &Path) -> Vec<PathBuf> {
    let inner = |path: PathBuf| std::fs::read_dir(path).into_iter().flatten().map(|entry| entry.unwrap().path());
    let steps_found = inner(output.to_path_buf()).filter(|path| path.to_str().unwrap().contains("/_records-"));
    let mut steps_found: Vec<_> =
        steps_found.flat_map(inner).filter(|path| path.extension().unwrap() == "step").collect();
    steps_found.sort();
    steps_found
}

/// True if each of `workers` workers has a checkpoint of the step.
fn is_recorded(output: &Path, step: &str, workers: usize) -> bool {
    let names: Vec<_> = steps(output).iter().map(|path| path.file_name().unwrap().to_owned()).collect();
    (0..workers).all(|worker| names.iter().any(|name| *name == *format!("{step}-{worker}-of-{workers}.step")))
}

/// Starts a run and kills it once a step has its checkpoints.
fn kill_after(crawl: &Crawl, name: &str, step: &str, workers: usize, more: &[&str]) {
    let output = crawl.folder.path().join(name);
    let threads = workers.to_string();
    let arguments = crawl.run(name, &["--workers", &threads, "--resume"]);
    // On a busy machine the kill may come after the result is committed. Try again then.
    let amid = (0..5).any(|_| {
        drop(std::fs::remove_dir_all(&output));
        let mut child = webtwin(&[&arguments[..], more].concat()).spawn().unwrap();
        let start = Instant::now();
        while !is_recorded(&output, step, workers) && start.elapsed() < Duration::from_secs(120) {
            assert!(child.try_wait().unwrap().is_none(), "the run ended before the checkpoint of {step}");
            std::thread::sleep(Duration::from_micros(200));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        !output.join("manifest.json").exists() && !output.join("_commit.json").exists()
    });
    assert!(amid, "{step}: killed too late");
}

fn restored_steps(output: &Path) -> Vec<String> {
    let manifest = std::fs::read(output.join("manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    let steps = manifest["taken_up"].as_array().cloned().unwrap_or_default();
    steps.iter().map(|step| step.as_str().unwrap().to_string()).collect()
}

#[test]
fn run_killed_after_any_step_continues_after_it_and_writes_the_same_bytes() {
    let crawl = Crawl::new(3000);
    let steps = ["overlap", "hamming", "growth", "second-look", "second-growth", "keeping"];
    for step in steps.into_iter().filter(|step| *step != "second-growth") {
        let name = format!("killed-{step}");
        kill_after(&crawl, &name, step, 2, &[]);
        let message = crawl.resume(&name, &["--workers", "2"]);
        let output = crawl.folder.path().join(&name);
        let restored = restored_steps(&output);
        let before = steps.iter().position(|other| *other == step).unwrap();
        // Collections grow a second time only if the context pass has found pairs.
        let due = steps[..=before].iter().filter(|step| **step != "second-growth");
        assert!(due.clone().all(|step| restored.iter().any(|restored| restored == step)), "{step}: {restored:?}");
        assert!(message.contains(&format!("resume: steps restored: {}\n", restored.join(", "))), "{message}");
        crawl.assert_whole(&name);
        assert!(self::steps(&output).is_empty());
    }
    assert!(restored_steps(&crawl.folder.path().join("whole")).is_empty());
}

#[test]
fn runs_by_other_measures_continue_after_their_pairs() {
    let crawl = Crawl::new(1500);
    for (step, more) in [("minhash", "similar.by=minhash"), ("signatures", "similar.by=signatures")] {
        let (whole, killed) = (format!("whole-{step}"), format!("killed-{step}"));
        let more = ["--set", more, "--set", "simhash.recipe=plain"];
        succeed(&crawl.run(&whole, &more));
        kill_after(&crawl, &killed, step, 1, &more);
        crawl.resume(&killed, &[&["--workers", "1"], &more[..]].concat());
        let [whole, killed] = [whole, killed].map(|name| crawl.folder.path().join(name));
        assert_eq!(restored_steps(&killed)[0], step);
        assert!(files(&whole) == files(&killed), "{step}");
    }
}

#[test]
fn step_is_repeated_unless_all_workers_have_intact_checkpoints_of_one_equal_run() {
    let crawl = Crawl::new(1500);
    let damage = |name: &str, step: &str| {
        let file = steps(&crawl.folder.path().join(name))
            .into_iter()
            .find(|file| file.to_str().unwrap().contains(&format!("{step}-1-")));
        let mut bytes = std::fs::read(file.as_ref().unwrap()).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 4;
        std::fs::write(file.unwrap(), bytes).unwrap();
    };
    let replace = |name: &str| {
        // The checkpoint of one worker comes from another run.
        kill_after(&crawl, "another", "overlap", 2, &[]);
        let first_step = |name: &str| {
            steps(&crawl.folder.path().join(name))
                .into_iter()
                .find(|file| file.to_str().unwrap().contains("overlap-0-"))
                .unwrap()
        };
        std::fs::copy(first_step("another"), first_step(name)).unwrap();
    };
    let remove = |name: &str| {
        let file = steps(&crawl.folder.path().join(name))
            .into_iter()
            .find(|file| file.to_str().unwrap().contains("overlap-1-"));
        std::fs::remove_file(file.unwrap()).unwrap();
    };
    let nothing = |_: &str| {};
    for (what, change, workers) in [
        ("damaged", &(|name: &str| damage(name, "overlap")) as &dyn Fn(&str), "2"),
        ("replaced", &replace, "2"),
        ("removed", &remove, "2"),
        ("fewer", &nothing, "1"),
    ] {
        kill_after(&crawl, what, "overlap", 2, &[]);
        change(what);
        crawl.resume(what, &["--workers", workers]);
        let restored = restored_steps(&crawl.folder.path().join(what));
        assert!(!restored.contains(&"overlap".to_string()), "{what}: {restored:?}");
        crawl.assert_whole(what);
    }
    // First only the last step is damaged, while the others are intact. Then the run continues with
    // more workers, which own different shards.
    kill_after(&crawl, "last", "keeping", 2, &[]);
    damage("last", "keeping");
    crawl.resume("last", &["--workers", "2"]);
    let restored = restored_steps(&crawl.folder.path().join("last"));
    assert!(
        restored.contains(&"second-look".to_string()) && !restored.contains(&"keeping".to_string()),
        "{restored:?}"
    );
    crawl.assert_whole("last");
    kill_after(&crawl, "more-workers", "keeping", 2, &[]);
    crawl.resume("more-workers", &["--workers", "3"]);
    assert!(restored_steps(&crawl.folder.path().join("more-workers")).is_empty());
    crawl.assert_whole("more-workers");
    // The crawl gets one more page, which the checkpoints of the killed run do not cover.
    kill_after(&crawl, "more", "overlap", 2, &[]);
    let page = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>a page that was not there before";
    let head = "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://more.example/\r\n\
                WARC-Date: 2020-01-01T00:00:00Z\r\nContent-Type: application/http; msgtype=response\r\n";
    let record = format!("{head}Content-Length: {}\r\n\r\n{page}\r\n\r\n", page.len());
    let file = std::fs::File::create(crawl.at("crawl") + "/more.warc.gz").unwrap();
    let mut file = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    file.write_all(record.as_bytes()).and_then(|()| file.try_finish()).unwrap();
    let message = crawl.resume("more", &["--workers", "2"]);
    assert!(
        !message.contains("steps restored") && number(&message, " work items restored from checkpoints") > 0,
        "{message}"
    );
    assert!(restored_steps(&crawl.folder.path().join("more")).is_empty());
}

#[test]
fn keepers_are_chosen_again_when_a_date_or_the_earlier_result_has_changed() {
    let crawl = Crawl::new(600);
    let dated = |years: [u32; 2]| {
        let page =
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>a page that is on two hosts, and on both the same";
        let records = ["one", "two"].iter().zip(years).map(|(host, year)| {
            format!(
                "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://{host}.example/\r\n\
                 WARC-Date: {year}-01-01T00:00:00Z\r\nContent-Type: application/http; msgtype=response\r\n\
                 Content-Length: {}\r\n\r\n{page}\r\n\r\n",
                page.len()
            )
        });
        let file = std::fs::File::create(crawl.at("crawl") + "/dated.warc.gz").unwrap();
        let mut file = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        file.write_all(records.collect::<String>().as_bytes()).and_then(|()| file.try_finish()).unwrap();
    };
    let answer = |name: &str| files(&crawl.folder.path().join(name));
    let earlier = crawl.at("earlier");
    let sticky = ["--set", &format!("keep.sticky={earlier}")];
    let keeps = |name: &str, by: &str| succeed(&crawl.run(name, &["--set", &format!("keep.by={by}")]));

    dated([2020, 2021]);
    keeps("earlier", "newest");
    keeps("another", "oldest");
    kill_after(&crawl, "dates", "keeping", 1, &sticky);
    kill_after(&crawl, "sticky", "keeping", 1, &sticky);
    kill_after(&crawl, "same", "keeping", 1, &sticky);
    succeed(&crawl.run("fresh", &sticky));
    crawl.resume("same", &[&["--workers", "1"], &sticky[..]].concat());
    assert!(restored_steps(&crawl.folder.path().join("same")).contains(&"keeping".to_string()));
    assert!(answer("same") == answer("fresh"));

    std::fs::rename(&earlier, crawl.at("aside")).unwrap();
    std::fs::rename(crawl.at("another"), &earlier).unwrap();
    succeed(&crawl.run("fresh-sticky", &sticky));
    crawl.resume("sticky", &[&["--workers", "1"], &sticky[..]].concat());
    assert!(answer("sticky") == answer("fresh-sticky") && answer("sticky") != answer("fresh"));

    std::fs::remove_dir_all(&earlier).unwrap();
    std::fs::rename(crawl.at("aside"), &earlier).unwrap();
    dated([2021, 2020]);
    succeed(&crawl.run("fresh-dates", &sticky));
    crawl.resume("dates", &[&["--workers", "1"], &sticky[..]].concat());
    assert!(answer("dates") == answer("fresh-dates") && answer("dates") != answer("fresh"));
}

#[test]
fn processes_restore_their_steps_only_if_all_write_checkpoints() {
    let crawl = Crawl::new(1500);
    let start = |name: &str, resume: [bool; 2]| {
        let cluster = cluster_file(crawl.folder.path(), 1, &[(); 2].map(|()| reserved_address()));
        [0, 1].map(|process: usize| {
            let (disk, number) = (crawl.at(&format!("{name}-{process}")), process.to_string());
            let own = ["--cluster", &cluster, "--process", &number, "--records", &disk];
            let resume = if resume[process] { &["--resume"][..] } else { &[] };
            webtwin(&[&crawl.run(name, &[])[..], &own, resume].concat()).spawn().unwrap()
        })
    };
    let on_record = |name: &str, process: usize| {
        let folder = crawl.folder.path().join(format!("{name}-{process}"));
        steps(&folder).iter().any(|file| file.to_str().unwrap().contains("/overlap-"))
    };
    let mut children = start("steps", [true; 2]);
    let started = Instant::now();
    while !(on_record("steps", 0) && on_record("steps", 1)) && started.elapsed() < Duration::from_secs(120) {
        std::thread::sleep(Duration::from_micros(200));
    }
    children[1].kill().unwrap();
    let [first, _] = children.map(|child| child.wait_with_output().unwrap());
    assert_eq!(first.status.code(), Some(7), "{}", stderr_text(&first));
    for output in start("steps", [true; 2]).map(|child| child.wait_with_output().unwrap()) {
        assert!(output.status.success(), "{}", stderr_text(&output));
        assert!(stderr_text(&output).contains("resume: steps restored: views, overlap"), "{}", stderr_text(&output));
    }
    crawl.assert_whole("steps");
    for output in start("one", [true, false]).map(|child| child.wait_with_output().unwrap()) {
        assert!(output.status.success() && !stderr_text(&output).contains("steps"), "{}", stderr_text(&output));
    }
    crawl.assert_whole("one");
}
