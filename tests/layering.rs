//! Dependency rules that the manifests of the crates cannot express.

use std::path::Path;

/// A source file without its tests and comments.
struct Source {
    path: String,
    code: String,
}

impl Source {
    fn is_in(&self, folders: &[&str]) -> bool {
        folders.iter().any(|folder| self.path.starts_with(&format!("src/{folder}/")))
    }
}

fn sources() -> Vec<Source> {
    let mut sources_found = Vec::new();
    let mut folders = vec![Path::new("src").to_path_buf()];
    while let Some(at) = folders.pop() {
        for path in std::fs::read_dir(at).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") && !path.ends_with("tests.rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
                let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
                sources_found.push(Source {
                    path: path.display().to_string(),
                    code: lines.flat_map(|line| [line, "\n"]).collect(),
                });
            }
        }
    }
    assert!(sources_found.len() > 100);
    sources_found
}

#[test]
fn modules_of_the_papers_use_no_files_networks_or_consoles() {
    // Generators of benchmark data must follow the same rules as the modules that they are for.
    for source in sources().iter().filter(|source| source.is_in(&["core", "evaluate", "synth", "lab/made"])) {
        for name in ["std::fs", "std::net", "println!"] {
            assert!(!source.code.contains(name), "{} names {name}", source.path);
        }
    }
}

#[test]
fn only_the_engine_and_the_fingerprint_joins_use_timely_operators() {
    let is_allowed =
        |source: &&Source| source.is_in(&["engine", "dataflow/hamming"]) || source.path == "src/compare/lifelines.rs";
    for source in sources().iter().filter(|source| !is_allowed(source)) {
        let named = source.code.lines().any(|line| line.trim_start().starts_with("use timely"));
        assert!(!named, "{} names timely", source.path);
    }
}

#[test]
fn only_storage_and_the_server_await() {
    for source in sources().iter().filter(|source| !source.is_in(&["storage", "http", "live/serve", "view/serve"])) {
        assert!(!source.code.contains("async ") && !source.code.contains(".await"), "{} awaits", source.path);
    }
}

#[test]
fn shuffle_is_independent_of_row_types() {
    for source in sources().iter().filter(|source| source.is_in(&["dataflow/shuffle"])) {
        let named = |what: &str| source.code.matches(what).count();
        assert_eq!(named("crate::"), named("crate::shuffle::"), "{} names another folder", source.path);
    }
}
