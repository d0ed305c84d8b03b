use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proptest::prelude::*;
use webtwin::dataflow::hamming::self_join::close_pairs;
use webtwin::engine::{ClusterLayout, run};
use webtwin::hamming::rows::{FingerprintRun, NearRuns};
use webtwin::ids::splitmix64;
use webtwin::results::fingerprints::FingerprintSet;
use webtwin::storage::location::Location;
use webtwin::storage::manifest::Manifest;
use webtwin::storage::table::{Table, decode};

use crate::support::ports::reserved_address;
use crate::support::program::{cluster_file, fail, files, succeed, webtwin};

pub(crate) fn table(folder: &str, name: &str) -> Table {
    let folder = Location::parse(folder).unwrap();
    let manifest = Manifest::read(&folder).unwrap();
    let mut all = Table::default();
    for file in manifest.table(name) {
        all.append(decode(&file.path, manifest.read_file(&folder, file).unwrap()).unwrap()).unwrap();
    }
    all
}

/// Returns fingerprints with copies, near-copies, a spike at 0 and a run that agrees in one half.
/// The documents are numbered by position.
fn fingerprints(seed: u64, count: u64) -> Vec<u64> {
    let value = |at: u64| {
        let random = splitmix64(seed << 32 | at);
        let flips = |from: u64, n: u64| (0..n).fold(from, |value, flip| value ^ 1 << (splitmix64(random ^ flip) & 63));
        match at % 10 {
            0..4 => random,
            4 => splitmix64(at / 50),
            5 | 6 => flips(splitmix64(at / 30), at % 7),
            7 => flips(0, at % 3),
            8 => 0xabcd_1234 << 32 | random & 0xffff_ffff,
            _ => random & 0xff,
        }
    };
    (0..count).map(value).collect()
}

fn raw(folder: &Path, name: &str, values: &[u64]) -> String {
    let path = folder.join(name);
    std::fs::write(&path, values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>()).unwrap();
    path.display().to_string()
}

fn pairs(folder: &str) -> Vec<(u64, u64, u32)> {
    let table = table(folder, "pairs");
    let webtwin::storage::table::TableColumn::U32(values) = &table.columns[3].1 else { panic!("value is a number") };
    let (a, b) = (table.u64("a").unwrap(), table.u64("b").unwrap());
    a.iter().zip(b).zip(values).map(|((a, b), value)| (*a, *b, *value)).collect()
}

#[test]
fn batch_equals_brute_force_with_the_same_bytes_on_any_workers() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (f, q) = (fingerprints(1, 3000), fingerprints(2, 1000));
    let (from, queries) = (raw(folder.path(), "f.u64", &f), raw(folder.path(), "q.u64", &q));
    for workers in ["1", "2", "3"] {
        let set = at(&format!("set{workers}"));
        succeed(&["hamming", "build", "--from", &from, "--output", &set, "--workers", workers]);
        assert_eq!(files(&set), files(&at("set1")));
    }
    for k in [0, 3, 5, 8] {
        let bits = k.to_string();
        let batch = |name: &str, more: &[&str]| {
            let out = at(&format!("{name}-{k}"));
            let common = ["hamming", "batch", "--fingerprints", &at("set1"), "--k", &bits, "--output", &out];
            succeed(&[&common[..], more].concat());
            out
        };
        let mut expected = Vec::new();
        for (a, x) in (0u64..).zip(&f) {
            expected.extend((0u64..).zip(&q).map(|(b, y)| (a, b, (x ^ y).count_ones())).filter(|pair| pair.2 <= k));
        }
        let one = batch("join1", &["--queries", &queries, "--workers", "1"]);
        assert_eq!(pairs(&one), expected, "k {k}");
        for workers in ["2", "3"] {
            let other = batch(&format!("join{workers}"), &["--queries", &queries, "--workers", workers]);
            assert_eq!(files(&one), files(&other));
        }
        let mut own_pairs = Vec::new();
        for (a, x) in (0u64..).zip(&f) {
            own_pairs.extend((a + 1..).zip(&f[a as usize + 1..]).map(|(b, y)| (a, b, (x ^ y).count_ones())));
        }
        own_pairs.retain(|pair| pair.2 <= k);
        let one = batch("self1", &["--workers", "1"]);
        assert_eq!(pairs(&one), own_pairs, "k {k}");
        for workers in ["2", "3"] {
            assert_eq!(files(&one), files(&batch(&format!("self{workers}"), &["--workers", workers])));
        }
        groups_equal(&batch("groups", &["--groups"]), &own_pairs);
        let grouped = batch("groups-of-queries", &["--groups", "--queries", &queries]);
        assert_eq!(files(&grouped), files(&batch("groups3", &["--groups", "--queries", &queries, "--workers", "3"])));
        let shifted: Vec<_> = expected.iter().map(|&(a, b, value)| (b, a + (1 << 32), value)).collect();
        groups_equal(&grouped, &shifted);
    }
}

/// Checks that the reported groups are the components of the pairs, each named by its smallest
/// document. With queries, the documents of F have ids beyond those of the queries.
fn groups_equal(message: &str, pairs: &[(u64, u64, u32)]) {
    let mut names: BTreeMap<u64, u64> = BTreeMap::new();
    for &(a, b, _) in pairs {
        let (x, y) = (*names.entry(a).or_insert(a), *names.entry(b).or_insert(b));
        let (small, large) = (x.min(y), x.max(y));
        names.values_mut().filter(|name| **name == large).for_each(|name| *name = small);
    }
    let table = table(message, "groups");
    let webtwin::storage::table::TableColumn::Bool(queries) = &table.columns[2].1 else { panic!("query is a flag") };
    let moved = |doc: u64, query: bool| if queries.contains(&true) && !query { doc + (1 << 32) } else { doc };
    let rows = table.u64("group").unwrap().iter().zip(table.u64("doc_id").unwrap()).zip(queries);
    let message: BTreeMap<u64, u64> = rows.map(|((group, doc), query)| (moved(*doc, *query), *group)).collect();
    assert_eq!(message, names);
}

#[test]
fn two_by_two_processes_write_the_bytes_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let from = raw(folder.path(), "f.u64", &fingerprints(3, 2000));
    let cluster = cluster_file(folder.path(), 2, &[(); 2].map(|()| reserved_address()));
    let run_both = |arguments: &[&str]| {
        let running = ["0", "1"].map(|process| {
            webtwin(&[arguments, &["--cluster", &cluster, "--process", process]].concat()).spawn().unwrap()
        });
        for process in running {
            let output = process.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
    };
    succeed(&["hamming", "build", "--from", &from, "--output", &at("one")]);
    run_both(&["hamming", "build", "--from", &from, "--output", &at("two")]);
    assert_eq!(files(&at("one")), files(&at("two")));
    for (name, more) in [("self", &[][..]), ("join", &["--queries", &from[..]]), ("groups", &["--groups"])] {
        let (one, two) = (at(&format!("{name}1")), at(&format!("{name}2")));
        let common = ["hamming", "batch", "--fingerprints", &at("one")];
        succeed(&[&common[..], more, &["--output", &one]].concat());
        run_both(&[&common[..], more, &["--output", &two]].concat());
        assert_eq!(files(&one), files(&two), "{name}");
    }
}

/// F has more rows than a chunk, with repeated fingerprints and repeated rows. The expected result
/// comes from sorting.
#[test]
fn f_of_several_chunks_equals_sorting_with_any_memory_and_workers() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let even: Vec<u64> = (0..2_000_000).map(splitmix64).collect();
    let values = [fingerprints(5, 60_000), even, vec![77 << 50; 20_000]].concat();
    let from = raw(folder.path(), "f.u64", &values);
    // Each row is repeated with the same document.
    let again = at("again.txt");
    let lines: Vec<String> = (0..).zip(&values[..5000]).map(|(n, value)| format!("{value} {n}\n")).collect();
    std::fs::write(&again, lines.concat()).unwrap();
    let mut expected: Vec<(u64, u64)> = values.iter().copied().zip(0..).collect();
    expected.sort_unstable();

    let build = |name: &str, more: &[&str]| {
        let out = at(name);
        succeed(&[&["hamming", "build", "--from", &from, "--from", &again, "--output", &out], more].concat());
        out
    };
    let one = build("one", &["--workers", "1"]);
    let set = FingerprintSet::open(&one).unwrap();
    assert!(set.manifest.chunks.len() > 1, "{:?}", set.manifest);
    let (fingerprints, documents) = set.read(true).unwrap();
    assert!(fingerprints.into_iter().zip(documents.unwrap()).eq(expected));
    // Less memory leaves no scratch space for writing. This bound forces some rows to disk.
    let little = ["--workers", "1", "--set", "effort.memory_bytes=98000000"];
    for (name, more) in [("two", &["--workers", "2"][..]), ("three", &["--workers", "3"]), ("little", &little)] {
        assert!(files(&build(name, more)) == files(&one), "{name}");
    }
    let cluster = cluster_file(folder.path(), 2, &[(); 2].map(|()| reserved_address()));
    let both = at("both");
    let running = ["0", "1"].map(|process| {
        let arguments =
            ["hamming", "build", "--from", &from, "--from", &again, "--output", &both, "--cluster", &cluster];
        webtwin(&[&arguments[..], &["--process", process]].concat()).spawn().unwrap()
    });
    for process in running {
        let output = process.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert!(files(&both) == files(&one));
}

/// Two parts of the result need the pairs. Within a memory bound, the pairs are spilled in several
/// runs, merged, and spilled again before they are written.
#[test]
fn a_batch_within_little_memory_writes_the_bytes_of_one_without_a_bound() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let spill = at("spill");
    std::fs::create_dir(&spill).unwrap();
    let many = |seed, count: u64| [fingerprints(seed, 500), vec![7 << 40; count as usize]].concat();
    let (f, q) = (many(1, 2100), many(2, 1450));
    let (from, queries) = (raw(folder.path(), "f.u64", &f), raw(folder.path(), "q.u64", &q));
    succeed(&["hamming", "build", "--from", &from, "--output", &at("f")]);
    let mut expected: Vec<(u64, u64, u32)> = Vec::new();
    for (a, x) in (0u64..).zip(&f) {
        expected.extend((0u64..).zip(&q).map(|(b, y)| (a, b, (x ^ y).count_ones())).filter(|pair| pair.2 <= 3));
    }
    assert!(expected.len() > 3_000_000);

    for (name, more) in [("batch", &["--queries", &queries[..]][..]), ("self", &[])] {
        let arguments = |out: &str, workers: u64, within: bool| -> Vec<String> {
            let common = ["hamming", "batch", "--fingerprints", &at("f"), "--output", out, "--set"];
            let spill = format!("effort.spill={spill}");
            let memory = format!("effort.memory_bytes={}", (60 + 70 * workers) * 1_000_000);
            let bound: Vec<&str> = if within { vec!["--set", &memory] } else { Vec::new() };
            [&common[..], &[&spill], more, &bound].concat().into_iter().map(String::from).collect()
        };
        let run = |out: &str, workers: u64, within: bool, others: &[&str]| {
            let arguments = arguments(out, workers, within);
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).chain(others.iter().copied()).collect();
            webtwin(&arguments).spawn().unwrap()
        };
        let ended = |running: std::process::Child| {
            let output = running.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        let spilled = |out: &str| {
            let manifest = Manifest::read(&Location::parse(out).unwrap()).unwrap();
            manifest.processes.iter().map(|process| process.spilled_bytes).sum::<u64>()
        };
        let free = at(&format!("{name}-free"));
        ended(run(&free, 1, false, &["--workers", "1"]));
        assert_eq!(spilled(&free), 0);
        if name == "batch" {
            assert!(pairs(&free) == expected);
        }
        for workers in 1..=3 {
            let out = at(&format!("{name}-{workers}"));
            ended(run(&out, workers, true, &["--workers", &workers.to_string()]));
            assert!(files(&out) == files(&free), "{name} {workers}");
            assert!(spilled(&out) > 0, "{name} {workers}");
        }
        let (out, cluster) =
            (at(&format!("{name}-both")), cluster_file(folder.path(), 2, &[(); 2].map(|()| reserved_address())));
        let both = ["0", "1"].map(|process| run(&out, 2, true, &["--cluster", &cluster, "--process", process]));
        both.into_iter().for_each(ended);
        assert!(files(&out) == files(&free), "{name}");
        // The disk becomes full while rows are written.
        let out = at(&format!("{name}-full"));
        let full = arguments(&out, 1, true);
        let full: Vec<&str> = full.iter().map(String::as_str).collect();
        let stderr_text = fail(&[&full[..], &["--workers", "1", "--set", "effort.disk_bytes=10000000"]].concat(), 9);
        assert!(stderr_text.contains("effort.disk_bytes"), "{stderr_text}");
        assert!(!Path::new(&out).join("manifest.json").exists());
        assert_eq!(std::fs::read_dir(&spill).unwrap().count(), 0);
    }
}

#[test]
fn failed_join_is_reported_and_leaves_no_files() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    assert!(fail(&["hamming", "batch", "--output", &at("x")], 2).contains("no fingerprint file"));
    assert!(
        fail(&["hamming", "batch", "--fingerprints", &at("none"), "--output", &at("x")], 3).contains("hamming build")
    );
    std::fs::write(at("bad.txt"), "12\nx\n").unwrap();
    assert!(fail(&["hamming", "build", "--from", &at("bad.txt"), "--output", &at("x")], 3).contains("line 2"));
    // Too many pairs, from a spike of copies, are counted and reported but not materialized.
    let from = raw(folder.path(), "spike.u64", &[7; 3000]);
    succeed(&["hamming", "build", "--from", &from, "--output", &at("f")]);
    let few = ["hamming", "batch", "--fingerprints", &at("f"), "--output", &at("p"), "--set", "batch.max_pairs=1000"];
    let stderr_text = fail(&few, 9);
    assert!(stderr_text.contains("4498500 pairs") && stderr_text.contains("groups"), "{stderr_text}");
    succeed(&[&few[..], &["--groups"]].concat());
    assert_eq!(table(&at("p"), "groups").rows(), 3000);
    assert_eq!(table(&at("p"), "groups").u64("group").unwrap().iter().collect::<BTreeSet<_>>().len(), 1);
    // Too little memory is reported before any work, with the number of bytes that would suffice.
    let little = ["--set", "effort.memory_bytes=60000000", "--queries", &from];
    let stderr_text = fail(&[&few[..5], &[&at("q")], &little].concat(), 9);
    assert!(
        stderr_text.contains("queries and their tables") && stderr_text.contains("set effort.memory_bytes to "),
        "{stderr_text}"
    );
    // The queries have a different recipe, or a chunk is damaged.
    succeed(&["hamming", "build", "--input", "synth://?pages=100&seed=1", "--output", &at("pages")]);
    let other = ["hamming", "batch", "--fingerprints", &at("f"), "--queries", &at("pages"), "--output", &at("y")];
    assert!(fail(&other, 3).contains("terms-"));
    let chunk = at("pages/part-00000.fp");
    let mut bytes = std::fs::read(&chunk).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&chunk, bytes).unwrap();
    fail(&["hamming", "batch", "--fingerprints", &at("pages"), "--output", &at("z")], 3);
    assert!(!Path::new(&at("z")).join("manifest.json").exists());
}

#[test]
fn an_empty_batch_of_queries_is_near_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let from = raw(folder.path(), "f.u64", &[7; 10]);
    let empty = raw(folder.path(), "empty.u64", &[]);
    std::fs::write(at("empty.txt"), "# no queries tonight\n").unwrap();
    succeed(&["hamming", "build", "--from", &from, "--output", &at("f")]);
    succeed(&["hamming", "build", "--from", &empty, "--output", &at("none")]);
    let out = |name: &str| at(&format!("{name}-out"));
    for queries in [empty, at("empty.txt"), at("none")] {
        for (k, groups) in [("3", &[][..]), ("8", &[]), ("3", &["--groups"])] {
            let folder = out(&format!("{}-{k}{}", queries.rsplit('/').next().unwrap(), groups.len()));
            let common = ["hamming", "batch", "--fingerprints", &at("f"), "--queries", &queries, "--k", k];
            succeed(&[&common[..], groups, &["--output", &folder]].concat());
            assert_eq!(table(&folder, if groups.is_empty() { "pairs" } else { "groups" }).rows(), 0, "{folder}");
        }
    }
}

#[test]
fn document_on_several_rows_is_paired_once_and_never_with_itself() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(at("f.txt"), "0x1 7\n0x3 7\n0x1 9\n0x2 8\n").unwrap();
    std::fs::write(at("q.txt"), "0x1 7\n0x0 20\n0x3 20\n").unwrap();
    succeed(&["hamming", "build", "--from", &at("f.txt"), "--output", &at("f")]);
    succeed(&["hamming", "build", "--from", &at("q.txt"), "--output", &at("q")]);
    for workers in ["1", "2", "3"] {
        let batch = |name: &str, more: &[&str]| {
            let out = at(&format!("{name}{workers}"));
            let common = ["hamming", "batch", "--fingerprints", &at("f"), "--k", "1", "--workers", workers];
            succeed(&[&common[..], more, &["--output", &out]].concat());
            let summary_json = std::fs::read_to_string(format!("{out}/summary.json")).unwrap();
            (pairs(&out), serde_json::from_str::<serde_json::Value>(&summary_json).unwrap()["pairs"].as_u64().unwrap())
        };
        assert_eq!(batch("self", &[]), (vec![(7, 8, 1), (7, 9, 0)], 2));
        let expected = vec![(7, 20, 0), (8, 20, 1), (9, 7, 0), (9, 20, 1)];
        assert_eq!(batch("join", &["--queries", &at("q")]), (expected, 4));
    }
}

#[test]
fn distance_that_includes_all_fingerprints_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let from = raw(folder.path(), "f.u64", &[1, 2, 3]);
    succeed(&["hamming", "build", "--from", &from, "--output", &at("f")]);
    succeed(&["hamming", "build", "--from", &from, "--set", "simhash.bits=32", "--output", &at("narrow")]);
    for (set, k, stderr_text) in [
        ("f", "64", "hamming.k is 64"),
        ("narrow", "64", "hamming.k"),
        ("narrow", "32", "less than the 32 bits of a fingerprint"),
    ] {
        let common = ["hamming", "batch", "--fingerprints", &at(set), "--output", &at("no")];
        for given in [["--k".to_string(), k.into()], ["--set".into(), format!("hamming.k={k}")]] {
            assert!(fail(&[&common[..], &[&given[0], &given[1]]].concat(), 2).contains(stderr_text), "{set} {k}");
        }
    }
}

#[test]
fn the_simhashes_of_a_run_can_be_queries() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    succeed(&["hamming", "build", "--input", "synth://?pages=300&seed=4", "--output", &at("f")]);
    succeed(&["run", "--input", "synth://?pages=300&seed=4", "--output", &at("run")]);
    for (from, out) in [("run", "p"), ("f", "q")] {
        succeed(&["hamming", "batch", "--fingerprints", &at("f"), "--queries", &at(from), "--output", &at(out)]);
    }
    let (of_run, of_set) = (pairs(&at("p")), pairs(&at("q")));
    assert!(!of_run.is_empty() && of_run == of_set);
    assert!(of_run.iter().all(|pair| pair.0 != pair.1), "no page is paired with itself");
    succeed(&["hamming", "batch", "--fingerprints", &at("f"), "--output", &at("self")]);
    let both_ways: BTreeSet<_> = pairs(&at("self")).into_iter().flat_map(|(a, b, d)| [(a, b, d), (b, a, d)]).collect();
    assert_eq!(of_run.into_iter().collect::<BTreeSet<_>>(), both_ways);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn all_pairs_of_workers_equal_brute_force(seed in 0u64..1000, count in 0u64..900, k in 0u32..8, workers in 1usize..4) {
        let mut values = fingerprints(seed, count);
        values.sort_unstable();
        values.dedup();
        let mut expected = Vec::new();
        for (a, x) in (0u32..).zip(&values) {
            expected.extend((a + 1..).zip(&values[a as usize + 1..]).map(|(b, y)| [a, b, (x ^ y).count_ones()]));
        }
        expected.retain(|pair| pair[2] <= k);
        let pairs_of_workers = run(&ClusterLayout::local(workers), 0, [0; 32], move |net| {
            let own_rows = (0..).zip(&values).skip(net.index()).step_by(net.peers());
            let run = |(first, value): (u32, &u64)| FingerprintRun { fingerprint: *value, first, copies: 1 };
            close_pairs(net, own_rows.map(run).collect(), u64::MAX, k)
        }).unwrap();
        let pair = |near: &NearRuns| [near.x.first.min(near.y.first), near.x.first.max(near.y.first), near.distance];
        let mut pairs_of_workers: Vec<_> = pairs_of_workers.iter().flatten().map(pair).collect();
        pairs_of_workers.sort_unstable();
        prop_assert_eq!(pairs_of_workers, expected);
    }
}
