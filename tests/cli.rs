use std::process::{Child, Command, Output};

use crate::support::planted::{figures, write_crawl};
use crate::support::ports::reserved_address;
use crate::support::program::{cluster_file, fail, files, rows, stderr_text, succeed, webtwin};

const CRAWL: &str = "synth://?pages=800&seed=7";

#[test]
fn one_two_and_three_threads_and_two_by_two_processes_write_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    write_crawl(&at("crawl"), 800, 7);
    // Small work items make ranges begin inside gzip members and give each worker some work.
    let input = at("crawl") + "/*.warc.gz";
    let settings =
        ["--set", "effort.shard_bytes=65536", "--set", "similar.by=both", "--set", "simhash.recipe=weighted"];
    let common = [&["--input", &input][..], &settings].concat();
    for workers in ["1", "2", "3"] {
        succeed(&[&["run", "--workers", workers, "--output", &at(workers)], &common[..]].concat());
    }
    let cluster = cluster_file(folder.path(), 2, &[(); 2].map(|()| reserved_address()));
    let children = ["0", "1"].map(|process| {
        let arguments = ["run", "--cluster", &cluster, "--process", process, "--output", &at("2x2")];
        webtwin(&[&arguments[..], &common[..]].concat()).spawn().unwrap()
    });
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", stderr_text(&output));
    }
    let one = files(&folder.path().join("1"));
    assert!(one.len() > 10 && one.contains_key("summary.json") && one.contains_key("exports/prefixes.txt"));
    for other in ["2", "3", "2x2"] {
        let other_files = files(&folder.path().join(other));
        assert_eq!(one.keys().collect::<Vec<_>>(), other_files.keys().collect::<Vec<_>>(), "{other}");
        let differ: Vec<_> = one.keys().filter(|name| one[*name] != other_files[*name]).collect();
        assert!(differ.is_empty(), "{other}: {differ:?}");
    }
}

#[test]
fn the_version_names_the_commit_that_is_checked_out() {
    let git = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output();
    let Some(git) = git.ok().filter(|git| git.status.success()) else {
        assert!(succeed(&["--version"]).contains("(unknown commit)"));
        return;
    };
    let commit = String::from_utf8(git.stdout).unwrap();
    let version = succeed(&["--version"]);
    assert!(version.contains(&format!("({}", commit.trim())), "{version} is not of {commit}");
}

#[test]
fn planted_copies_are_found_and_the_tables_are_readable() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    succeed(&["run", "--input", CRAWL, "--output", &at("out")]);
    let ours = figures(&at("out"), CRAWL);
    assert!(ours["pair precision"] > 0.9 && ours["pair recall"] > 0.8, "{ours:?}");
    assert_eq!(ours["targets found"], ours["targets"]);
    for table in [
        "hosts",
        "server_pairs",
        "url_rules",
        "pages",
        "links",
        "pairs",
        "clusters",
        "link_summary",
        "collections",
        "members",
        "avoid",
        "rejected",
    ] {
        assert!(!succeed(&["show", &at(&format!("out/{table}")), "--limit", "3"]).is_empty(), "{table}");
    }
    let parts = files(&at("out")).into_keys().filter(|name| name.ends_with(".parquet"));
    assert_eq!(
        parts.filter(|name| !name.ends_with("/part-00000.parquet")).collect::<Vec<_>>(),
        [""; 0],
        "small tables"
    );
    let row = succeed(&["show", &at("out/pages"), "--limit", "1", "--json"]);
    assert!(serde_json::from_str::<serde_json::Value>(&row).unwrap()["url"].is_string());
    fail(&["show", &at("out/nothing")], 2);
    let listed = succeed(&["show", &at("out")]);
    assert!(listed.lines().any(|line| line.starts_with("pages\t") && line.contains("doc_id,url")), "{listed}");
    assert_eq!(listed, succeed(&["show", &(at("out") + "/")]));
    assert!(fail(&["show", &at("out"), "pages", "--columns", "urk"], 2).contains("doc_id, url"));
    assert!(fail(&["show", &at("nowhere/pages")], 3).contains("neither a result"));
    fail(&["run", "--input", CRAWL, "--output", &at("out")], 4);
}

#[test]
fn show_sorts_selects_columns_and_resolves_ids() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out").to_str().unwrap().to_string();
    succeed(&["run", "--input", CRAWL, "--output", &out]);
    let sizes = |limit: &str| -> Vec<u64> {
        let table = succeed(&["show", &out, "pages", "--columns", "length,url", "--sort", "-length", "--limit", limit]);
        table.lines().skip(1).map(|line| line.split('\t').next().unwrap().parse().unwrap()).collect()
    };
    let all = sizes("0");
    assert!(all.len() > 700 && all.is_sorted_by(|x, y| x >= y));
    assert_eq!(sizes("5"), all[..5]);
    let ids = rows(&out, "members");
    let urls: std::collections::BTreeMap<String, String> =
        rows(&out, "pages").iter().map(|row| (text(&row["doc_id"]), text(&row["url"]))).collect();
    let named = succeed(&["show", &out, "members", "--urls", "--json", "--limit", "0"]);
    for (ids, named) in ids.iter().zip(named.lines()) {
        let named: serde_json::Value = serde_json::from_str(named).unwrap();
        for column in ["similar_cluster", "collection", "cluster", "doc_id"] {
            assert_eq!(named[column], urls[&text(&ids[column])]);
        }
    }
    let pair = succeed(&["show", &out, "server_pairs", "--urls", "--columns", "a,host_a", "--limit", "1"]);
    let cells: Vec<&str> = pair.lines().nth(1).unwrap().split('\t').collect();
    assert_eq!(cells[0], cells[1]);
}

#[test]
fn explain_reads_pages_again_from_any_folder() {
    let folder = tempfile::tempdir().unwrap();
    let from =
        |at: &std::path::Path, arguments: &[&str]| -> Output { webtwin(arguments).current_dir(at).output().unwrap() };
    let first_folder = folder.path();
    write_crawl(first_folder.join("crawl").to_str().unwrap(), 200, 1);
    let run = from(first_folder, &["run", "--input", "crawl/*.warc.gz", "--output", "out"]);
    assert!(run.status.success(), "{}", stderr_text(&run));
    let out = first_folder.join("out").to_str().unwrap().to_string();
    let pair = &rows(&out, "avoid")[0];
    let (page, keep_url) = (text(&pair["url"]), text(&pair["keep_url"]));
    let explain = ["explain", &out, &page, &keep_url];
    let other_folder = tempfile::tempdir().unwrap();
    let report = from(first_folder, &explain);
    assert!(report.status.success(), "{}", stderr_text(&report));
    assert_eq!(from(other_folder.path(), &explain).stdout, report.stdout);
    // The crawl has moved. Its name resolves from the other folder only.
    std::fs::rename(first_folder.join("crawl"), other_folder.path().join("crawl")).unwrap();
    let failure = from(first_folder, &explain);
    assert!(
        failure.status.code() == Some(3) && stderr_text(&failure).contains("start in the folder"),
        "{}",
        stderr_text(&failure)
    );
    assert_eq!(from(other_folder.path(), &explain).stdout, report.stdout);
}

fn text(value: &serde_json::Value) -> String {
    value.as_str().unwrap().to_string()
}

#[test]
fn simhashes_find_the_planted_copies() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    for (by, setting, words) in
        [("hamming", "preset=simhash", 1), ("hamming", "hamming.k=6", 1), ("both", "preset=simhash", 2)]
    {
        let (out, by) = (at(&format!("{by}-{setting}")), format!("similar.by={by}"));
        succeed(&["run", "--input", CRAWL, "--output", &out, "--set", setting, "--set", &by]);
        let ours = figures(&out, CRAWL);
        assert!(ours["pair precision"] > 0.9 && ours["pair recall"] > 0.4, "{by} {setting}: {ours:?}");

        let pages = succeed(&["show", &format!("{out}/pages"), "--json"]);
        let rows: Vec<serde_json::Value> = pages.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let has_one = |row: &serde_json::Value| row["has_simhash"].as_bool().unwrap();
        let with = rows.iter().filter(|row| has_one(row)).count();
        assert!(with > rows.len() * 9 / 10, "{with} of {}", rows.len());
        assert!(
            rows.iter().all(|row| has_one(row) || row["text_bytes"].as_u64().unwrap() < 200 && row["simhash"] == "0")
        );

        let pairs = succeed(&["show", &format!("{out}/pairs")]);
        let measures: std::collections::BTreeSet<_> =
            pairs.lines().skip(1).filter_map(|line| line.split('\t').nth(2)).filter(|word| *word != "exact").collect();
        assert_eq!(measures.len(), words, "{measures:?}");
        assert!(measures.contains("hamming"));
    }
}

#[test]
fn summaries_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    succeed(&["run", "--input", CRAWL, "--output", out.to_str().unwrap()]);
    let summary: serde_json::Value = serde_json::from_slice(&std::fs::read(out.join("summary.json")).unwrap()).unwrap();
    let number = |value: &serde_json::Value| value.as_u64().unwrap();
    let records = &summary["records"];
    let rejected: u64 = records["rejected"].as_object().unwrap().values().map(number).sum();
    assert_eq!(number(&records["read"]), number(&records["kept"]) + rejected);
    for bars in ["replication_exact", "replication_similar"] {
        let pages: u64 = summary[bars].as_array().unwrap().iter().map(|bar| number(&bar["pages"])).sum();
        assert_eq!(pages, number(&summary["pages"]["pages"]), "{bars}");
    }
    let by_reason: u64 = summary["skip_by_reason"].as_object().unwrap().values().map(|why| number(&why["pages"])).sum();
    assert_eq!(by_reason, number(&summary["skip"]["pages"]));
}

#[test]
fn errors_have_the_documented_exit_codes() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    std::fs::write(at("job.toml"), "[overlap]\nmin_share = 3\n").unwrap();
    std::fs::write(at("bad.jsonl"), "no json\n".repeat(10)).unwrap();
    let out = at("out");
    let cases: [(&[&str], i32, &str); 8] = [
        (&["run", "--output", &out], 2, "--input"),
        (&["run", "--input", CRAWL], 2, "--output"),
        (&["run", "--input", CRAWL, "--output", &out, "--job", &at("job.toml")], 2, "overlap.min_shared"),
        (&["run", "--input", CRAWL, "--output", &out, "--set", "chunks.bits=48"], 2, "32 or 64"),
        (&["run", "--input", "synth://?page=3", "--output", &out], 2, "pages"),
        (&["run", "--input", &at("gone/*.warc.gz"), "--output", &out], 3, "gone"),
        (&["run", "--input", &at("bad.jsonl"), "--output", &out], 5, "bad_json 10"),
        (
            &["run", "--input", CRAWL, "--output", &out, "--set", "effort.memory_bytes=38417000"],
            9,
            "effort.memory_bytes",
        ),
    ];
    for (arguments, code, word) in cases {
        let message = fail(arguments, code);
        assert!(message.contains(word) && message.starts_with("error: "), "{arguments:?}: {message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
    assert!(!folder.path().join("out/manifest.json").exists());
}

#[test]
fn following_the_advice_of_memory_errors_leads_to_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out").to_str().unwrap().to_string();
    let mut memory = 1_000_000u64;
    for _ in 0..10 {
        let set = format!("effort.memory_bytes={memory}");
        let run = webtwin(&["run", "--input", CRAWL, "--output", &out, "--workers", "2", "--set", &set]);
        let output = { run }.output().unwrap();
        let message = stderr_text(&output);
        if output.status.success() {
            assert!(memory > 1_000_000, "{message}");
            return;
        }
        assert_eq!(output.status.code(), Some(9), "{message}");
        let (_, advice) = message.split_once("; set effort.memory_bytes to ").expect(&message);
        let next = advice.split(' ').next().unwrap().parse().unwrap();
        assert!(next > memory, "{memory}: {message}");
        memory = next;
    }
    panic!("following the advice leads to endless refusals");
}

#[test]
fn processes_of_different_jobs_reject_each_other_and_none_hangs() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = cluster_file(folder.path(), 1, &[(); 2].map(|()| reserved_address()));
    let out = folder.path().join("out").to_str().unwrap().to_string();
    let start = |process: &str, setting: &str| -> Child {
        let arguments = ["run", "--input", CRAWL, "--output", &out, "--cluster", &cluster, "--process", process];
        webtwin(&[&arguments[..], &["--set", setting]].concat()).spawn().unwrap()
    };
    let children = [start("0", "overlap.min_shared=1"), start("1", "overlap.min_shared=2")];
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", stderr_text(&output));
        assert!(stderr_text(&output).contains("digest"), "{}", stderr_text(&output));
    }
}

#[test]
fn processes_with_different_settings_report_the_differing_setting() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out").to_str().unwrap().to_string();
    for (setting, values) in [("effort.shard_bytes", ["65536", "131072"]), ("effort.memory_bytes", ["0", "500000000"])]
    {
        let cluster = cluster_file(folder.path(), 1, &[(); 2].map(|()| reserved_address()));
        let children = [("0", values[0]), ("1", values[1])].map(|(process, value)| {
            let arguments = ["run", "--input", CRAWL, "--output", &out, "--cluster", &cluster, "--process", process];
            webtwin(&[&arguments[..], &["--set", &format!("{setting}={value}")]].concat()).spawn().unwrap()
        });
        for child in children {
            let output = child.wait_with_output().unwrap();
            let line = stderr_text(&output);
            assert_eq!(output.status.code(), Some(2), "{line}");
            let words = [format!("process 1: {setting} is {}", values[1]), format!("{} as in process 0", values[0])];
            assert!(words.iter().all(|words| line.contains(words)), "{line}");
        }
    }
}

#[test]
fn a_process_that_fails_ends_the_run_on_every_process_with_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = cluster_file(folder.path(), 1, &[(); 2].map(|()| reserved_address()));
    let bad = folder.path().join("bad.jsonl").to_str().unwrap().to_string();
    std::fs::write(&bad, "no json\n".repeat(10)).unwrap();
    let out = folder.path().join("out").to_str().unwrap().to_string();
    let children = ["0", "1"].map(|process| {
        let arguments = ["run", "--input", &bad, "--output", &out, "--cluster", &cluster, "--process", process];
        webtwin(&arguments).spawn().unwrap()
    });
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(5), "{}", stderr_text(&output));
        assert_eq!(stderr_text(&output).lines().count(), 1, "{}", stderr_text(&output));
    }
    assert!(!folder.path().join("out/manifest.json").exists());
}

#[test]
fn check_prints_a_job_that_resolves_to_itself() {
    let folder = tempfile::tempdir().unwrap();
    let effective = succeed(&["check", "--job", "jobs/four-line.toml", "--set", "overlap.min_shared=20"]);
    let file = folder.path().join("job.toml");
    std::fs::write(&file, &effective).unwrap();
    assert_eq!(succeed(&["check", "--job", file.to_str().unwrap()]), effective);
    let graph = succeed(&["check", "--job", "jobs/crawl-batch.toml", "--dataflow"]);
    assert!(graph.contains("probe F  (hamming/batch.rs)\n    <- F: pieces, in turn\n"), "{graph}");
    assert!(succeed(&["check", "--dataflow", "dot"]).starts_with("digraph webtwin {\n"));
}

#[test]
fn every_command_of_the_help_has_a_manual_page_and_is_completed() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    succeed(&["manual", pages.to_str().unwrap()]);
    let read = |name: &str| std::fs::read_to_string(pages.join(name)).unwrap();
    let help = succeed(&["--help"]);
    let listed = help.split_once("Commands:\n").unwrap().1.split_once("\n\n").unwrap().0;
    // Continuation lines of long descriptions are indented further.
    let commands: Vec<&str> = listed
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(commands.contains(&"run") && commands.contains(&"dedup"), "{commands:?}");
    for command in &commands {
        assert!(read(&format!("webtwin-{command}.1")).contains(&format!("webtwin\\-{command}")), "{command}");
        assert!(read("webtwin.1").contains(&format!("webtwin\\-{command}(1)")), "{command}");
    }
    assert!(read("webtwin-hamming-build.1").contains("\\-\\-input"));
    for shell in ["bash", "zsh", "fish"] {
        let script = succeed(&["completions", shell]);
        for command in &commands {
            assert!(script.contains(command), "{shell}: {command}");
        }
    }
    assert!(!pages.join("webtwin-print-text.1").exists(), "the helper process has no manual page");
    // The page of each command has the exit codes of the documentation.
    let documented = std::fs::read_to_string("docs/operations.md").unwrap();
    let rows =
        documented.split_once("| code | meaning").unwrap().1.lines().skip(2).take_while(|line| line.starts_with('|'));
    let codes: Vec<&str> = rows.flat_map(|row| row.split('|').nth(1).unwrap().split(',')).map(str::trim).collect();
    assert!(codes.len() >= 14, "{codes:?}");
    for code in codes {
        assert!(read("webtwin-run.1").contains(&format!("\n\\fB{code}\\fR\n")), "{code}");
    }
    succeed(&["manual", pages.to_str().unwrap()]);
    assert_eq!(read("webtwin-report.1").matches("EXIT STATUS").count(), 1);
    let file = pages.join("webtwin.1/below");
    fail(&["manual", file.to_str().unwrap()], 2);
}

#[test]
fn plan_predicts_the_chunks_of_a_run_from_a_part_of_its_input() {
    let plan: serde_json::Value =
        serde_json::from_str(&succeed(&["plan", "--input", "synth://?pages=4000&seed=3", "--json"])).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    succeed(&["run", "--input", "synth://?pages=4000&seed=3", "--output", out.to_str().unwrap()]);
    let manifest: serde_json::Value =
        serde_json::from_slice(&std::fs::read(out.join("manifest.json")).unwrap()).unwrap();
    assert_eq!(plan["digest"], manifest["digest"]);
    assert!((3000..5000).contains(&plan["expected"]["pages"].as_u64().unwrap()), "{plan}");
    assert!(plan["counting"].as_str().unwrap().starts_with("sort-based: the "), "{plan}");
}

#[test]
fn memory_named_by_a_rejection_suffices() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out").to_str().unwrap().to_string();
    let run = |bytes: &str| {
        let set = format!("effort.memory_bytes={bytes}");
        webtwin(&["run", "--input", "synth://?pages=3000&seed=1", "--output", &output, "--set", &set]).output().unwrap()
    };
    let refused = run("38000000");
    assert_eq!(refused.status.code(), Some(9), "{}", stderr_text(&refused));
    let text = stderr_text(&refused);
    let sufficient_bytes =
        text.split("set effort.memory_bytes to ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    let end = run(sufficient_bytes);
    assert!(end.status.success(), "{sufficient_bytes}: {}", stderr_text(&end));
}
