//! Chunks, features and links of pages that do not fit in memory are spilled to the local disk, and
//! the result is the same.

use std::fmt::Write;
use std::path::Path;

use crate::support::program::{assert_same_on_any_workers, fail, files, stderr_text, succeed, webtwin};

/// Writes a crawl with `pages` pages on each of two hosts. A page has `lines` lines, one in ten of
/// which differs on the second host, and links to twenty other pages of its host.
fn crawl(file: &Path, pages: usize, lines: usize) {
    let mut crawl = String::new();
    for host in 0..2 {
        for page in 0..pages {
            write!(crawl, "{{\"url\":\"http://h{host}.example/{page}.html\",\"html\":\"<title>{page}</title>").unwrap();
            (1..21).for_each(|next| write!(crawl, "<a href={}.html>x</a>", (page + next) % pages).unwrap());
            for line in 0..lines {
                let own = if line % 10 == 0 { host } else { 0 };
                write!(crawl, "<br>P{page} n{line} {own}.").unwrap();
            }
            crawl.push_str("\"}\n");
        }
    }
    std::fs::write(file, crawl).unwrap();
}

/// Returns the number of bytes that a refusal advises.
fn advised_bytes(refusal: &str) -> u64 {
    let (_, advice) = refusal.split_once("; set effort.memory_bytes to ").expect(refusal);
    advice.split(' ').next().unwrap().parse().unwrap()
}

/// Returns a number from the manifest for the first process of a run.
fn message(output: &str, what: &str) -> u64 {
    let manifest = std::fs::read(format!("{output}/manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    manifest["processes"][0][what].as_u64().unwrap()
}

#[test]
fn local_pages_on_disk_yield_the_same_result_on_any_workers() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    crawl(&folder.path().join("crawl.jsonl"), 100, 4000);
    let kinds: [(&str, &[&str]); 3] = [
        ("overlap", &["--set", "simhash.recipe=weighted", "--set", "output.fprint_docid=true"]),
        ("minhash", &["--set", "similar.by=minhash"]),
        ("study", &["--set", "preset=study"]),
    ];
    for (kind, settings) in kinds {
        let input = at("crawl.jsonl");
        let run = [&["run", "--input", &input, "--set", "effort.shard_bytes=65536"][..], settings].concat();
        succeed(&[&run[..], &["--output", &at(kind), "--workers", "2"]].concat());
        assert_eq!(message(&at(kind), "spilled_bytes"), 0, "{kind}");
        // The loop below finds about the minimum of memory, which depends on the number of workers.
        let mut bytes = 45_000_000;
        let (bound, nearest) = loop {
            let set = format!("effort.memory_bytes={bytes}");
            let output = at(&format!("{kind}-{bytes}"));
            let end = webtwin(&[&run[..], &["--set", &set, "--output", &output, "--workers", "3"]].concat()).output();
            let end = end.unwrap();
            if end.status.success() {
                break (format!("effort.memory_bytes={}", bytes / 20 * 21), output);
            }
            bytes = advised_bytes(&stderr_text(&end)).max(bytes + 1);
        };
        let bounded = [&run[..], &["--set", &bound]].concat();
        let (output, _) = assert_same_on_any_workers(folder.path(), &format!("{kind}-bounded"), &bounded);
        assert!(files(&output) == files(&at(kind)), "{kind} in little memory");
        // With fewer workers a run may not need the disk. The bound in the refusal of a study
        // depends on the amount read so far, and may be large enough to avoid the disk.
        let spilled = message(&nearest, "spilled_bytes");
        assert!(spilled > 2_000_000 || kind == "study", "{kind}: {spilled} bytes spilled, at most {bound}");
    }
}

#[test]
fn run_with_more_chunks_than_memory_respects_its_bound() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    // Six million chunks of few pages take 48 MB in the local pages, and would need 216 MB if they
    // stayed in memory.
    crawl(&folder.path().join("crawl.jsonl"), 30, 100_000);
    let (input, output) = (at("crawl.jsonl"), at("out"));
    let run = ["run", "--input", &input, "--output", &output, "--workers", "2", "--set"];
    let with = |set: &str| webtwin(&[&run[..], &[set]].concat()).output().unwrap();
    let allowed = 175_000_000;
    let end = with(&format!("effort.memory_bytes={allowed}"));
    assert!(end.status.success(), "{}", stderr_text(&end));
    let (peak, spilled) = (message(&output, "peak_memory_bytes"), message(&output, "spilled_bytes"));
    assert!(peak <= allowed / 20 * 21, "{peak} bytes at the peak, {allowed} allowed");
    assert!(spilled > 40_000_000, "{spilled} bytes spilled");
}

#[test]
fn near_copies_of_a_page_with_very_many_chunks_respect_the_bound() {
    const PAGES: u64 = 40;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let mut crawl = String::new();
    for page in 0..PAGES {
        write!(crawl, "{{\"url\":\"http://h{page}.example/\",\"text\":\"").unwrap();
        (0..28_000).for_each(|line| {
            let own = if line == page { page + 1 } else { 0 };
            write!(crawl, "{:07x}{own}\\n", line * 9_569).unwrap()
        });
        crawl.push_str("\"}\n");
    }
    std::fs::write(at("crawl.jsonl"), crawl).unwrap();
    let run = |output: &str, more: &[&str]| {
        let args = ["run", "--input", &at("crawl.jsonl"), "--output", &at(output), "--workers", "2"];
        succeed(&[&args[..], more].concat());
        let summary = std::fs::read(format!("{}/summary.json", at(output))).unwrap();
        let summary: serde_json::Value = serde_json::from_slice(&summary).unwrap();
        assert_eq!(summary["overlap"]["similar"].as_u64(), Some(PAGES * (PAGES - 1) / 2), "{output}");
    };
    run("free", &[]);
    run("bounded", &["--set", "effort.memory_bytes=100000000"]);
    assert!(files(Path::new(&at("bounded"))) == files(Path::new(&at("free"))));
    let peak = message(&at("bounded"), "peak_memory_bytes");
    // The limit includes 30 MB for the code of a debug build.
    assert!(peak < 130_000_000, "{peak} bytes");
}

#[test]
fn full_disk_ends_the_run_with_the_cause() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    crawl(&folder.path().join("crawl.jsonl"), 60, 8000);
    let (input, output) = (at("crawl.jsonl"), at("out"));
    let run =
        ["run", "--input", &input, "--output", &output, "--workers", "1", "--set", "effort.memory_bytes=80000000"];
    let refused = |more: &str, code| fail(&[&run[..], &["--set", more]].concat(), code);
    let nowhere = refused("effort.spill=/nowhere/at/all", 2);
    assert!(nowhere.contains("/nowhere/at/all (effort.spill)"), "{nowhere}");
    let small = refused("effort.disk_bytes=2000000", 9);
    assert!(small.contains("effort.disk_bytes"), "{small}");
    assert!(!folder.path().join("out/manifest.json").exists());
}
