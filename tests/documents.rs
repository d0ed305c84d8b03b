use std::path::Path;

use webtwin::job::{Job, resolve};

#[test]
fn every_job_file_resolves_and_says_what_it_is_for() {
    let entries = ["jobs", "jobs/repro"].into_iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    for entry in entries {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "toml") {
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(text.starts_with("# "), "{path:?}");
            resolve(path.to_str().unwrap(), &text, &[]).unwrap();
            let name = path.strip_prefix("jobs").unwrap().to_str().unwrap();
            assert!(
                std::fs::read_to_string("jobs/README.md").unwrap().contains(name),
                "{name} is not in jobs/README.md"
            );
        }
    }
}

/// A path in backticks: has a slash, no blank, and begins with a folder of ours.
fn paths(text: &str) -> Vec<&str> {
    let ours = ["src/", "tests/", "jobs/", "scripts/", "cluster-config/", ".ci/"];
    text.split('`').skip(1).step_by(2).filter(|word| ours.iter().any(|folder| word.starts_with(folder))).collect()
}

#[test]
fn every_path_in_the_documents_exists() {
    for document in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "jobs/README.md", "cluster-config/README.md"] {
        let text = std::fs::read_to_string(document).unwrap();
        for path in paths(&text) {
            let plain = !path.contains(['*', ' ', '<', 'N', '{']);
            assert!(!plain || Path::new(path).exists(), "{document} names {path}");
        }
    }
}

/// Every setting by dotted name, with its default as TOML.
fn defaults(prefix: &str, table: &toml::Table, found: &mut Vec<(String, String)>) {
    for (key, value) in table {
        match value {
            toml::Value::Table(inner) => defaults(&format!("{prefix}{key}."), inner, found),
            value => found.push((format!("{prefix}{key}"), value.to_string())),
        }
    }
}

#[test]
fn the_table_of_settings_names_every_setting_with_its_default() {
    let text = std::fs::read_to_string("jobs/README.md").unwrap();
    let mut settings = Vec::new();
    defaults("", &toml::Table::try_from(Job::default()).unwrap(), &mut settings);
    for (name, value) in settings {
        let row = format!("| `{name}` | `{value}` |");
        assert!(text.contains(&row), "jobs/README.md lacks the row {row}");
    }
}
