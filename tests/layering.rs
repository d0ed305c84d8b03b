use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A file of the sources without its tests and comments.
struct Source {
    path: String,
    /// Folder, or file, below `src`: the module it is part of.
    module: String,
    code: String,
}

impl Source {
    /// Modules of the crate that it names.
    fn names(&self) -> BTreeSet<String> {
        let name = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
        let mut found = BTreeSet::new();
        for after in self.code.split("crate::").skip(1) {
            match after.strip_prefix('{') {
                None => _ = found.insert(name(after)),
                Some(list) => {
                    let mut depth = 0;
                    let end = list.find(|c| {
                        depth += i32::from(c == '{') - i32::from(c == '}');
                        depth < 0
                    });
                    let flat = |c: char| {
                        depth += i32::from(c == '{') - i32::from(c == '}');
                        c == ',' && depth == -1
                    };
                    found.extend(list[..end.unwrap()].split(flat).map(|part| name(part.trim())));
                }
            }
        }
        found.retain(|name| !name.is_empty());
        found
    }
}

fn sources() -> Vec<Source> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new("src").to_path_buf()];
    while let Some(at) = folders.pop() {
        for path in std::fs::read_dir(at).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") && !path.ends_with("tests.rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
                let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
                let module = path.components().nth(1).unwrap().as_os_str().to_str().unwrap();
                found.push(Source {
                    path: path.display().to_string(),
                    module: module.trim_end_matches(".rs").to_string(),
                    code: lines.flat_map(|line| [line, "\n"]).collect(),
                });
            }
        }
    }
    assert!(found.len() > 100);
    found
}

/// Stages and side roads: plain functions over slices.
const STAGES: [&str; 13] = [
    "text",
    "chunks",
    "overlap",
    "hamming",
    "minhash",
    "signatures",
    "clusters",
    "applications",
    "evaluate",
    "explain",
    "synth",
    "study",
    "url_rules",
];

#[test]
fn no_stage_knows_of_workers_files_or_networks() {
    let above =
        ["crate::cli", "crate::reproduce", "crate::dataflow", "crate::engine", "crate::storage", "crate::results"];
    let outside = ["clap::", "std::fs", "std::net", "println!"];
    // Data made for benchmarks are as plain as the stages they are made for.
    let plain =
        |source: &&Source| STAGES.contains(&source.module.as_str()) || source.path.starts_with("src/reproduce/made/");
    for source in sources().iter().filter(plain) {
        for name in above.iter().chain(&outside) {
            assert!(!source.code.contains(name), "{} names {name}", source.path);
        }
    }
}

/// The files that are differential dataflows.
const DIFFERENTIAL: [&str; 2] = ["src/history/lifelines.rs", "src/history/live_growth.rs"];

fn is_differential(source: &Source) -> bool {
    DIFFERENTIAL.contains(&source.path.as_str())
}

#[test]
fn only_engine_and_dataflow_name_timely_and_two_files_differential() {
    for source in sources().iter().filter(|source| !is_differential(source)) {
        assert!(!source.code.contains("differential_dataflow::"), "{} names differential", source.path);
        if !["engine", "dataflow"].contains(&source.module.as_str()) {
            assert!(!source.code.contains("timely::"), "{} names timely", source.path);
        }
    }
}

#[test]
fn only_search_names_its_library() {
    for source in sources().iter().filter(|source| source.module != "search") {
        assert!(!source.code.contains("tantivy::"), "{} names tantivy", source.path);
    }
}

#[test]
fn machinery_knows_no_more_than_it_needs() {
    // Module, and what it may name of the crate beside itself.
    let rules: [(&str, &[&str]); 8] = [
        ("ids", &[]),
        ("error", &[]),
        ("huge", &["error"]),
        ("read_at", &["error"]),
        ("job", &["error"]),
        ("search", &["error"]),
        ("engine", &["console", "error", "heap", "ids", "key_file", "leftovers", "open_files", "progress", "threads"]),
        ("storage", &["build", "error", "heap", "huge", "ids", "leftovers", "read_at", "threads"]),
    ];
    for source in &sources() {
        if let Some((_, may)) = rules.iter().find(|(module, _)| *module == source.module) {
            for name in source.names().iter().filter(|name| **name != source.module) {
                assert!(may.contains(&name.as_str()), "{} names {name}", source.path);
            }
        }
    }
}

#[test]
fn what_brings_pages_and_results_and_the_wiring_stay_below_what_calls_them() {
    for source in &sources() {
        let above: &[&str] = match source.module.as_str() {
            "dataflow" => &["crate::cli", "crate::reproduce", "clap::", "std::net"],
            "pages" | "results" | "dedup" | "history" | "recrawl" | "report" | "lookup" | "serve" => {
                &["crate::cli", "crate::reproduce", "clap::", "crate::dataflow", "crate::engine"]
            }
            _ => &[],
        };
        for name in above {
            assert!(!source.code.contains(name), "{} names {name}", source.path);
        }
    }
}

#[test]
fn only_storage_and_the_server_await() {
    for source in sources().iter().filter(|source| !["storage", "serve"].contains(&source.module.as_str())) {
        assert!(!source.code.contains("async ") && !source.code.contains(".await"), "{} awaits", source.path);
    }
}

#[test]
fn no_folder_needs_one_that_needs_it() {
    let mut needs: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for source in &sources() {
        let names = source.names().into_iter().filter(|name| *name != source.module);
        needs.entry(source.module.clone()).or_default().extend(names);
    }
    // Who needs nobody that is left can go; what cannot is a circle.
    while let Some(free) = needs.iter().find(|(_, names)| names.iter().all(|name| !needs.contains_key(name))) {
        let free = free.0.clone();
        needs.remove(&free);
    }
    // Nor are those of it whom nobody that is left needs.
    while let Some(top) = needs.keys().find(|module| !needs.values().any(|names| names.contains(*module))).cloned() {
        needs.remove(&top);
    }
    assert!(needs.is_empty(), "a circle among {:?}", needs.keys());
}

#[test]
fn of_the_dataflows_only_the_joins_of_fingerprints_are_built_of_timely_operators() {
    for source in sources().iter().filter(|source| source.module != "engine" && !is_differential(source)) {
        let named = source.code.lines().any(|line| line.trim_start().starts_with("use timely"));
        assert!(!named || source.path.starts_with("src/dataflow/hamming/"), "{} names timely", source.path);
    }
}
