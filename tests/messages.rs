//! Compares messages and help texts with `tests/data/messages.txt`, where every change of a text
//! can be reviewed.
//!
//! `WEBTWIN_UPDATE_MESSAGES=1 cargo test --features full --test integration messages` rewrites the
//! file.

use std::path::Path;

use crate::support::program::webtwin;

/// File with the reviewed texts.
const FILE: &str = "tests/data/messages.txt";

/// Input of the runs below.
const INPUT: &str = "synth://?pages=200&seed=1";

/// Commands whose help is compared.
const COMMANDS: [&str; 26] = [
    "run",
    "check",
    "plan",
    "dedup",
    "diff",
    "report",
    "show",
    "explain",
    "index",
    "lookup",
    "search",
    "serve",
    "live",
    "grow",
    "hamming",
    "hamming plan",
    "hamming build",
    "hamming index",
    "hamming query",
    "hamming batch",
    "state",
    "state show",
    "state check",
    "state prune",
    "archive",
    "restore",
];

/// Command lines whose messages are compared, in order: later ones use the results of earlier ones.
/// `INPUT` is [`INPUT`].
const CASES: &str = "\
rn
run --input INPUT
run --output o
run --outpt o
run --input missing.warc.gz --output o
run --input garbage.warc.gz --output o
run --input garbage.txt --output o
run --input INPUT --output garbage.txt/o
run --input INPUT --output o --set effort.memory_bytes=1000000 --workers 2
run --input INPUT --output o --cluster missing.toml --process 0
run --input INPUT --output o --cluster cluster.toml
run --input INPUT --output o --metrics .
run --input INPUT --output o --add x
run --input INPUT --output out --workers 2
run --input INPUT --output out --workers 2
run --input INPUT --output resumed --workers 2 --resume
run --input INPUT --output june --workers 2 --state state
run --output july --workers 2 --state state
run --output july --workers 2 --state state --add INPUT
run --output july --workers 2 --state state --replace x
run --output july --workers 2 --state state --retract x
state show nothing
state check state
state prune state
check --job missing.toml
check --job broken.toml
check --set overlap
check --set overlap.min_share=3
check --set overlap.min_resemblance=7
check --set overlap.min_shared=many
check --set preset=none
plan --input INPUT --latency -1
plan --input INPUT --network 3
plan --input INPUT --workers 2
show nothing
show out none
show out pages --columns none
show out pages --sql
explain out http://none.example/ http://other.example/
explain nothing http://none.example/ http://other.example/
report out --output .
report out
index out --output idx --workers 2
index out --output idx --workers 2
index nothing --output i
lookup nothing
diff out resumed --output diff --workers 2
diff out june --output out/diff
dedup missing.jsonl --output clean
dedup corpus.jsonl --output clean --threshold 7
dedup corpus.jsonl --output clean --keep smallest-id
dedup corpus.jsonl --output clean --workers 2
dedup corpus.jsonl --output clean --workers 2
archive garbage.txt --output archive
restore nothing --output restored
grow --output grown
grow --trivial labels.csv --output grown
hamming plan --documents 10 --k 80
hamming index --fingerprints nothing
hamming query --fingerprints nothing 7
hamming batch --fingerprints nothing --output near
completions none
";

/// Replaces numbers before a unit of time or size, which differ between machines and runs, by `N`.
fn normalised(text: &str, folder: &Path) -> String {
    let text = text.replace(folder.to_str().unwrap(), "FOLDER");
    let mut lines = Vec::new();
    for line in text.lines() {
        // Predicted times depend on the machine.
        if line.starts_with("time  ") || line.starts_with("processor time") {
            lines.push(format!("{} N", line.split("  ").next().unwrap()));
            continue;
        }
        let mut words: Vec<String> = line.split(' ').map(str::to_string).collect();
        for at in 1..words.len() {
            let unit = words[at].trim_end_matches(|c: char| !c.is_alphanumeric());
            let is_unit = ["s", "ms", "µs", "MB", "GB", "kB", "KiB", "MiB", "GiB", "KB"].contains(&unit);
            let number = words[at - 1].trim_start_matches('(');
            if is_unit && !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || c == '.' || c == ',') {
                words[at - 1] = words[at - 1].replace(number, "N");
            }
            // A memory limit that suffices, which depends on what is measured of a run.
            if words[at - 1] == "to" && words[at].len() > 6 && words[at].bytes().all(|byte| byte.is_ascii_digit()) {
                words[at] = "N".into();
            }
        }
        let line = words.join(" ");
        // Rates such as 3.1 MB/s.
        lines.push(match line.split_once("B/s") {
            Some((before, _)) => format!("{} N", before.rsplitn(3, ' ').last().unwrap()),
            None => line.trim_end().to_string(),
        });
    }
    lines.join("\n")
}

/// Runs a command line in `folder`. Returns a section with the command line, the text that it
/// printed for users, and its exit code.
fn section(line: &str, folder: &Path) -> String {
    let arguments: Vec<&str> = line.split(' ').map(|word| if word == "INPUT" { INPUT } else { word }).collect();
    let output = webtwin(&arguments).current_dir(folder).env_remove("COLUMNS").output().unwrap();
    // Tables and jobs are data, while help texts and plans are texts for users.
    let is_text = line.ends_with("--help") || line.starts_with("plan");
    let stdout = if is_text { String::from_utf8(output.stdout).unwrap() } else { String::new() };
    let text = normalised(&(stdout + &String::from_utf8_lossy(&output.stderr)), folder);
    let code = output.status.code().map_or("signal".to_string(), |code| code.to_string());
    format!("$ webtwin {line}\n{text}\n[exit code {code}]\n")
}

/// True if this build has the command.
fn is_built(command: &str) -> bool {
    let needs_search = command == "search";
    let needs_serve = ["serve", "live"].contains(&command);
    (!needs_search || cfg!(feature = "search")) && (!needs_serve || cfg!(feature = "serve"))
}

#[test]
fn messages_and_help_texts_equal_the_reviewed_ones() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("garbage.warc.gz", "neither gzip nor WARC\n");
    write("garbage.txt", "neither gzip nor WARC\n");
    write("broken.toml", "[overlap\n");
    write("cluster.toml", "workers = 1\n[[process]]\naddress = \"127.0.0.1:2101\"\n");
    write("labels.csv", "label,node\na,1\na,2\n");
    let record = |id: u32| format!("{{\"id\": {id}, \"text\": \"the same ten words in a row, and then some more\"}}\n");
    write("corpus.jsonl", &(record(1) + &record(2)));

    let helps = COMMANDS.iter().filter(|command| is_built(command)).map(|command| format!("{command} --help"));
    let all = helps.chain(CASES.lines().map(str::to_string));
    let sections: Vec<String> = all.map(|line| section(&line, folder.path())).collect();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    if std::env::var_os("WEBTWIN_UPDATE_MESSAGES").is_some() {
        std::fs::write(&file, sections.join("\n")).unwrap();
        return;
    }
    let reviewed = std::fs::read_to_string(&file).unwrap();
    let changed: Vec<&String> = sections.iter().filter(|section| !reviewed.contains(section.as_str())).collect();
    assert!(changed.is_empty(), "not as in {FILE}; review, and set WEBTWIN_UPDATE_MESSAGES=1:\n{changed:#?}");
}
