use std::path::{Path, PathBuf};

use webtwin::applications::exports::{BY_PAGES, EXPORTS, SCRAPY};
use webtwin::applications::rule_exports::RULE_EXPORTS;
use webtwin::exit_codes::exit_code_table;
use webtwin::job::{resolve, settings_table};

#[test]
fn every_job_file_resolves_and_states_its_purpose() {
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

/// Returns the paths in backticks: words with a slash and no blank that begin with a folder of this
/// repository.
fn paths(text: &str) -> Vec<&str> {
    let ours = ["src/", "tests/", "jobs/", "scripts/", "cluster-config/", ".ci/"];
    text.split('`').skip(1).step_by(2).filter(|word| ours.iter().any(|folder| word.starts_with(folder))).collect()
}

/// Returns every document for users: Markdown files at the top, in `docs/`, and next to jobs,
/// cluster files, scripts and runs.
fn documents() -> Vec<PathBuf> {
    let mut paths_found = Vec::new();
    let mut folders: Vec<PathBuf> = [".", "docs", "jobs", "cluster-config"].map(PathBuf::from).to_vec();
    folders.extend(["scripts/real-crawl", "scripts/runs"].map(PathBuf::from));
    folders.extend(std::fs::read_dir("scripts/runs").unwrap().map(|entry| entry.unwrap().path()));
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        paths_found.extend(files.filter(|file| file.extension().is_some_and(|ending| ending == "md")));
    }
    paths_found.sort();
    paths_found
}

/// Returns the pages of the documentation. The table of contents of the site is not a page.
fn pages() -> Vec<PathBuf> {
    documents().into_iter().filter(|page| page.starts_with("docs") && !page.ends_with("SUMMARY.md")).collect()
}

#[test]
fn every_path_in_the_documents_exists() {
    for document in documents().iter().filter(|document| !document.starts_with("scripts")) {
        let text = std::fs::read_to_string(document).unwrap();
        for path in paths(&text) {
            let plain = !path.contains(['*', ' ', '<', 'N', '{']);
            assert!(!plain || Path::new(path).exists(), "{} names {path}", document.display());
        }
    }
}

/// Returns the targets of `[text](target)` outside of code.
fn links(text: &str) -> Vec<&str> {
    let prose = text.split("```").step_by(2);
    let outside = prose.flat_map(|block| block.split('`').step_by(2));
    outside.flat_map(|piece| piece.split("](").skip(1)).filter_map(|rest| rest.split(')').next()).collect()
}

/// Returns the anchors of a document's headings as GitHub makes them: lower case, hyphens for
/// blanks, other punctuation dropped.
fn anchors(text: &str) -> Vec<String> {
    let prose = text.split("```").step_by(2);
    let headings = prose.flat_map(str::lines).filter(|line| line.starts_with('#'));
    let is_kept = |c: &char| c.is_alphanumeric() || matches!(c, '-' | '_');
    headings
        .map(|line| {
            line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-").chars().filter(is_kept).collect()
        })
        .collect()
}

#[test]
fn every_relative_link_of_a_document_leads_to_a_file_and_a_heading_that_exist() {
    for document in documents() {
        let text = std::fs::read_to_string(&document).unwrap();
        for link in links(&text).into_iter().filter(|link| !link.contains("://")) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { document.clone() } else { document.with_file_name(file) };
            assert!(target.exists(), "{} links to {link}", document.display());
            if !anchor.is_empty() {
                let anchors_found = anchors(&std::fs::read_to_string(&target).unwrap());
                assert!(anchors_found.iter().any(|one| one == anchor), "{} links to {link}", document.display());
            }
        }
    }
}

#[test]
fn the_readme_fits_in_8_kb_and_links_to_every_page_of_the_docs() {
    let readme = std::fs::read_to_string("README.md").unwrap();
    assert!(readme.len() <= 8000, "README.md has {} bytes", readme.len());
    for page in pages() {
        assert!(links(&readme).contains(&page.to_str().unwrap()), "README.md does not link to {}", page.display());
    }
}

#[test]
fn the_docs_list_every_reason_and_every_export() {
    let input = std::fs::read_to_string("docs/input.md").unwrap();
    for reason in webtwin::pages::record::Reason::ALL {
        assert!(input.contains(&format!("`{}`", reason.as_str())), "docs/input.md lacks {}", reason.as_str());
    }
    let crawlers = std::fs::read_to_string("docs/crawlers.md").unwrap();
    let of_rules = RULE_EXPORTS.iter().map(|export| export.name);
    for file in EXPORTS.iter().map(|export| export.name).chain(of_rules).chain([BY_PAGES.name, SCRAPY.0]) {
        assert!(crawlers.contains(&format!("`{file}`")), "docs/crawlers.md lacks {file}");
    }
}

/// Compares a generated table with the text between the markers `<!-- NAME -->` and
/// `<!-- /NAME -->` of a document. With `WEBTWIN_UPDATE_DOCS=1` in the environment, writes the
/// table there instead.
fn check_generated(document: &str, name: &str, table: &str) {
    let text = std::fs::read_to_string(document).unwrap();
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->\n"));
    let (before, rest) = text.split_once(&begin).unwrap_or_else(|| panic!("{document} lacks {begin}"));
    let (current, after) = rest.split_once(&end).unwrap_or_else(|| panic!("{document} lacks {end}"));
    let expected = format!("\n{table}\n");
    if current != expected && std::env::var_os("WEBTWIN_UPDATE_DOCS").is_some() {
        std::fs::write(document, [before, &begin, &expected, &end, after].concat()).unwrap();
        return;
    }
    assert!(
        current == expected,
        "{document}: the table `{name}` differs from the code; run \
         `WEBTWIN_UPDATE_DOCS=1 cargo test --test integration documents::` and commit the page"
    );
}

#[test]
fn table_of_settings_equals_the_code() {
    check_generated("docs/settings.md", "settings", &settings_table());
}

#[test]
fn table_of_exit_codes_equals_the_code() {
    check_generated("docs/operations.md", "exit-codes", &exit_code_table());
}

#[test]
fn the_table_of_contents_of_the_site_names_every_page() {
    let summary = std::fs::read_to_string("docs/SUMMARY.md").unwrap();
    let pages = pages();
    assert!(pages.len() <= 16, "docs/ has {} pages", pages.len());
    for page in pages {
        let name = page.file_name().unwrap().to_str().unwrap();
        assert!(links(&summary).contains(&name), "docs/SUMMARY.md lacks {name}");
    }
}

#[test]
fn every_page_begins_with_its_use_and_a_command() {
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        let (_, body) = text.split_once("\n\n").unwrap();
        assert!(body.starts_with("After reading this page you can "), "{}", page.display());
        let (introduction, _) = body.split_once("```sh\n").unwrap();
        assert!(introduction.lines().count() < 16, "{}: the first command comes late", page.display());
    }
}

#[test]
fn prose_of_documents_has_at_most_100_columns() {
    let top = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "jobs/README.md"].map(PathBuf::from);
    for document in pages().into_iter().chain(top) {
        let text = std::fs::read_to_string(&document).unwrap();
        for line in text.split("```").step_by(2).flat_map(str::lines) {
            let is_prose = !line.starts_with(['|', '!', '#']) && line.trim().contains(' ');
            let columns = line.chars().count();
            assert!(!is_prose || columns <= 100, "{}: {columns} columns: {line}", document.display());
        }
    }
}
