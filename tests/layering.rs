use std::path::Path;

fn sources(folder: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new("src").join(folder)];
    while let Some(at) = folders.pop() {
        for path in std::fs::read_dir(at).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                found.push((path.display().to_string(), std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found
}

/// Folder, and what its files do not name.
const RULES: [(&[&str], &[&str]); 7] = [
    (
        &[
            "text",
            "chunks",
            "overlap",
            "hamming",
            "signatures",
            "clusters",
            "applications",
            "evaluate",
            "explain",
            "synth",
            "study",
        ],
        &["timely", "crate::dataflow", "crate::engine", "crate::storage", "clap::", "std::fs"],
    ),
    (&["pages"], &["timely", "crate::dataflow", "crate::engine", "clap::", "async "]),
    (&["storage"], &["timely", "crate::dataflow", "crate::engine", "crate::cli", "clap::"]),
    (&["results"], &["timely", "crate::dataflow", "crate::engine", "crate::cli", "clap::", "std::fs"]),
    (&["job"], &["timely", "crate::storage", "crate::dataflow", "crate::engine"]),
    (
        &["engine"],
        &["crate::dataflow", "crate::pages", "crate::overlap", "crate::clusters", "crate::storage", "clap::"],
    ),
    (&["dataflow"], &["clap::", "std::net", "crate::cli", "async "]),
];

#[test]
fn no_stage_knows_of_workers_and_no_engine_of_what_is_computed() {
    for (folders, unknown) in RULES {
        for (file, text) in folders.iter().flat_map(|folder| sources(folder)) {
            let code = text.split("#[cfg(test)]").next().unwrap();
            for name in unknown {
                let named = code.lines().any(|line| !line.trim_start().starts_with("//") && line.contains(name));
                assert!(!named, "{file} names {name}");
            }
        }
    }
}

#[test]
fn of_the_dataflows_only_the_joins_of_fingerprints_are_built_of_timely_operators() {
    for (file, text) in sources("dataflow") {
        let named = text.lines().any(|line| line.starts_with("use timely"));
        assert!(!named || file.starts_with("src/dataflow/hamming/"), "{file} names timely");
    }
}
