//! Keeps to the language guide: words of the glossary, first words of doc comments, names of types
//! and functions, width of lines.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Words that are private idiom in comments and documents, and what to write instead. Only words
/// without a legitimate sense here: "all", "left", "room", "beside", "share", "look", "word" and
/// "record" are common English and are left to reviewers.
const WORDS: [(&str, &str); 24] = [
    ("told", "reported, sent, returned"),
    ("tell", "report, send, distinguish"),
    ("tells", "reports, sends, distinguishes"),
    ("anew", "again; recompute, rebuild"),
    ("shelf", "local pages"),
    ("shelves", "local pages"),
    ("furniture", "boilerplate"),
    ("mended", "repaired"),
    ("nobody", "name the component, or `no worker`"),
    ("somebody", "name the component"),
    ("whoever", "name the component"),
    ("so many", "`n`; the given number of"),
    ("held against", "compared with, checked against"),
    ("taken up", "restored"),
    ("laid down", "written, partitioned"),
    ("handed on", "passed, forwarded"),
    ("hand on", "pass, forward"),
    ("give back", "release, free, return"),
    ("given back", "released, freed, returned"),
    ("what became of", "outcome of"),
    ("second look", "context pass"),
    ("in one go", "in a single pass"),
    ("the like", "name it"),
    ("whence", "from where"),
];

/// Beginnings of doc comments that are no verb in the third person and name nothing.
const BEGINNINGS: [&str; 11] =
    ["What", "How", "Whether", "Where", "The same", "Likewise", "As", "Those of", "That of", "So many", "All that"];

/// Words that no identifier of up to three words has. Longer ones are sentences: names of tests.
const IN_NAMES: [(&str, &str); 9] = [
    ("told", "report"),
    ("tell", "report, notify"),
    ("said", "message"),
    ("shelf", "local_pages"),
    ("furniture", "boilerplate"),
    ("mended", "repaired"),
    ("anew", "again"),
    ("laps", "stage_times"),
    ("tape", "run_log"),
];

/// Names in stored formats, which stay: (name, where it is stored).
const STORED: [(&str, &str); 1] = [("said_by", "a key of `webtwin search --json`")];

/// Particles and participles that name no type.
const NO_TYPES: [&str; 40] = [
    "About", "Again", "Alike", "All", "Apart", "Arrived", "Asked", "Before", "Built", "By", "Changed", "Chosen",
    "Copied", "Counted", "Done", "Earlier", "Found", "From", "Given", "Good", "Held", "Instead", "Judged", "Kept",
    "Known", "Last", "Left", "Made", "Named", "Needed", "Of", "Other", "Past", "Put", "Read", "Said", "Sent", "Shown",
    "Told", "What",
];

/// Pronouns, particles and participles that name no binding of a statement in `src`, and what to
/// use instead. A closure of one line may have a short name.
const NO_BINDINGS: [(&str, &str); 46] = [
    ("across", "a noun"),
    ("alike", "`is_same_...`, `partitioning`"),
    ("alone", "a noun"),
    ("apart", "`is_separate`, `separation`"),
    ("around", "`context`"),
    ("at_once", "`batch_rows`, `rows_per_batch`"),
    ("behind", "a noun"),
    ("beside", "a noun"),
    ("beyond", "`excess`, `is_beyond_...`"),
    ("counted", "`counts`, `pair_counts`"),
    ("dealt", "`assignment`, `distributed_rows`"),
    ("each", "`visit`, or the noun"),
    ("few", "`max_...`, `smaller`"),
    ("folded", "`folded_text`"),
    ("gathered", "a noun"),
    ("given", "`input`, `requested_...`"),
    ("having", "a noun"),
    ("here", "`own_...`, `local_...`"),
    ("instead", "`replacement`, `alternative`"),
    ("left_out", "`omitted`, `is_left_out`"),
    ("listed", "`files`, `entry`"),
    ("many", "`max_...`, `larger`"),
    ("met", "a noun"),
    ("mine", "`own_...`, `local_...`"),
    ("most", "`max_...`"),
    ("much", "a noun"),
    ("needed", "`needed_bytes`, `requirement`"),
    ("on_the_way", "`rows_in_flight`"),
    ("own", "`own_...`"),
    ("put", "`put_...`, `write`"),
    ("reached", "`reachable`"),
    ("resolved", "a noun"),
    ("sent", "`sent_rows`, `row_count`"),
    ("settled", "`deduplicated`"),
    ("shown", "a noun"),
    ("something", "name it"),
    ("taken", "`taken_bytes`, `count`"),
    ("taken_out", "`removed_pages`"),
    ("theirs", "`other_...`, `peer_...`"),
    ("these", "the noun"),
    ("those", "the noun"),
    ("to_come", "`held_capability`, `remaining_...`"),
    ("told", "`report`"),
    ("twice", "`repeated`, `duplicates`"),
    ("whatever", "`is_unconditional`, a noun"),
    ("who", "`peer`, a noun"),
];

/// Types of one name in several modules. Each command has its arguments; clap and the module prefix
/// name them.
const SHARED_TYPES: [&str; 3] = ["Args", "Command", "CommandLine"];

/// Characters in a line of prose.
const WIDTH: usize = 100;

fn files(folder: &Path, ending: &str, into: &mut Vec<PathBuf>) {
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            files(&path, ending, into);
        } else if path.extension().is_some_and(|extension| extension == ending) {
            into.push(path);
        }
    }
}
/// Returns the lines of all sources as (path, number, line), except for this file, which contains the words.
fn lines() -> Vec<(String, usize, String)> {
    let mut paths = Vec::new();
    ["src", "tests", "fuzz/targets", "fuzz/src"].iter().for_each(|folder| files(Path::new(folder), "rs", &mut paths));
    paths.sort();
    let paths = paths.into_iter().filter(|path| !path.ends_with("language.rs"));
    let lines = paths.flat_map(|path| {
        let (name, text) = (path.display().to_string(), std::fs::read_to_string(&path).unwrap());
        (1..).zip(text.lines()).map(|(number, line)| (name.clone(), number, line.to_owned())).collect::<Vec<_>>()
    });
    let lines: Vec<_> = lines.collect();
    assert!(lines.len() > 100_000);
    lines
}

/// Returns the text of a comment that fills its line.
fn comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    ["///", "//!", "//"].iter().find_map(|mark| line.strip_prefix(mark)).map(str::trim)
}

/// Returns a line without string literals and comments.
fn code(line: &str) -> String {
    let (mut code, mut in_string, mut escaped) = (String::new(), false, false);
    let line = if comment(line).is_some() { "" } else { line.split(" // ").next().unwrap() };
    for c in line.chars() {
        match (in_string, escaped, c) {
            (true, true, _) => escaped = false,
            (true, false, '\\') => escaped = true,
            (_, _, '"') => in_string = !in_string,
            (true, ..) => {}
            _ => code.push(c),
        }
    }
    code
}

/// Returns the text outside of backticks in lower case.
fn prose(text: &str) -> String {
    text.split('`').step_by(2).collect::<Vec<_>>().join("`").to_lowercase()
}

/// True if the prose contains the words as whole words.
fn has(prose: &str, words: &str) -> bool {
    let is_letter = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    prose.match_indices(words).any(|(at, _)| {
        !is_letter(prose[..at].chars().next_back()) && !is_letter(prose[at + words.len()..].chars().next())
    })
}

fn fail_if_any(found: &[String]) {
    let shown = found.iter().take(200).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(found.is_empty(), "{} violations of the language guide:\n{shown}", found.len());
}

#[test]
fn comments_use_standard_terms_and_fit_the_width() {
    let mut violations = Vec::new();
    let (mut is_first, mut is_fenced) = (true, false);
    for (path, number, line) in lines() {
        let Some(text) = comment(&line) else {
            (is_first, is_fenced) = (true, false);
            continue;
        };
        is_fenced ^= text.starts_with("```");
        let prose = prose(text);
        for (word, instead) in WORDS.iter().filter(|(word, _)| has(&prose, word)) {
            violations.push(format!("{path}:{number}: `{word}`; write: {instead}"));
        }
        // Diagrams, tables, links and addresses cannot be wrapped.
        let is_prose = !is_fenced && !text.starts_with('|') && !text.contains("](") && !text.contains("://");
        if is_prose && line.chars().count() > WIDTH {
            violations.push(format!("{path}:{number}: {} columns; wrap at {WIDTH}", line.chars().count()));
        }
        if is_first && line.trim_start().starts_with("///") {
            for words in BEGINNINGS.iter().filter(|words| text.starts_with(&format!("{words} "))) {
                violations.push(format!("{path}:{number}: begins with `{words}`; begin with a verb or a noun"));
            }
        }
        is_first = false;
    }
    fail_if_any(&violations);
}

#[test]
fn identifiers_use_standard_terms() {
    let mut violations = Vec::new();
    for (path, number, line) in lines() {
        let code = code(&line);
        for name in code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|name| !name.is_empty()) {
            let lower = name.to_lowercase();
            let parts: Vec<&str> = lower.split('_').collect();
            for (word, instead) in IN_NAMES.iter().filter(|(word, _)| parts.len() <= 3 && parts.contains(word)) {
                if STORED.iter().all(|stored| stored.0 != name) {
                    violations.push(format!("{path}:{number}: `{name}` has `{word}`; use: {instead}"));
                }
            }
        }
    }
    fail_if_any(&violations);
}

#[test]
fn types_are_unique_nouns_and_no_public_function_is_called_of() {
    let (mut violations, mut types) = (Vec::new(), BTreeMap::<String, Vec<String>>::new());
    for (path, number, line) in lines().into_iter().filter(|line| line.0.starts_with("src/")) {
        let code = code(&line);
        let words: Vec<&str> = code.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        if words.iter().find(|word| !word.is_empty()).is_none_or(|word| *word != "pub") {
            continue;
        }
        let follows = |keyword: &str| words.windows(2).find(|pair| pair[0] == keyword).map(|pair| pair[1]);
        if follows("fn") == Some("of") {
            violations.push(format!("{path}:{number}: a function called `of`; name it for what it returns"));
        }
        for name in
            ["struct", "enum", "trait", "type", "union"].into_iter().filter_map(follows).filter(|name| !name.is_empty())
        {
            if NO_TYPES.contains(&name) {
                violations.push(format!("{path}:{number}: type `{name}`; name it by a noun"));
            }
            types.entry(name.to_owned()).or_default().push(format!("{path}:{number}"));
        }
    }
    for (name, places) in
        types.iter().filter(|(name, places)| places.len() > 1 && !SHARED_TYPES.contains(&name.as_str()))
    {
        violations.push(format!("{}: type `{name}` again; rename the less central one", places.join(", ")));
    }
    fail_if_any(&violations);
}

/// Names that a `let`, `if let`, `while let` or `for` at the beginning of a line binds on that
/// line.
fn bindings(line: &str) -> Vec<String> {
    let code = code(line);
    let statement = code.trim_start().trim_start_matches("} ").trim_start_matches("else ").trim_start_matches("&& ");
    let pattern = match statement.strip_prefix("for ") {
        Some(pattern) => pattern.split(" in ").next(),
        None => {
            let statement = statement.trim_start_matches("if ").trim_start_matches("while ");
            statement.strip_prefix("let ").and_then(|pattern| pattern.split(" = ").next())
        }
    };
    let pattern = pattern.unwrap_or_default();
    // The type of a name follows it after a colon; the name of a field precedes its binding.
    let pattern = if pattern.contains('{') { pattern } else { pattern.split(": ").next().unwrap() };
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    let mut words = pattern.split_inclusive(|c: char| !is_letter(c) && c != ':').collect::<Vec<_>>();
    words.retain(|word| !word.trim_end().ends_with(':'));
    words.iter().map(|word| word.trim_matches(|c| !is_letter(c)).to_owned()).collect()
}

#[test]
fn bindings_are_nouns() {
    let mut found = Vec::new();
    for (path, number, line) in lines().into_iter().filter(|line| line.0.starts_with("src/")) {
        for name in bindings(&line) {
            if let Some((word, instead)) = NO_BINDINGS.iter().find(|(word, _)| *word == name) {
                found.push(format!("{path}:{number}: binding `{word}`; name it by a noun, such as {instead}"));
            }
        }
    }
    fail_if_any(&found);
}

#[test]
fn bindings_of_statements_are_seen() {
    let names = |line: &str| bindings(line).into_iter().filter(|name| !name.is_empty()).collect::<Vec<_>>();
    assert_eq!(names("    let mut told: Vec<u8> = of(mine);"), ["mut", "told"]);
    assert_eq!(names("} else if let Some(told) = mine {"), ["Some", "told"]);
    assert_eq!(names("for (told, _) in &mine {"), ["told", "_"]);
    assert_eq!(names("let Report { told: report, .. } = mine;"), ["Report", "report"]);
    assert_eq!(names("rows.map(|told| told.len())"), [""; 0]);
}

#[test]
fn documents_use_standard_terms() {
    let mut paths = Vec::new();
    files(Path::new("docs"), "md", &mut paths);
    paths.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(PathBuf::from));
    let mut texts: Vec<(PathBuf, String)> =
        paths.into_iter().map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect();
    // Of the changes only the newest entry: older ones are history.
    let changes = std::fs::read_to_string("CHANGELOG.md").unwrap();
    let newest = changes.split("\n## ").take(2).collect::<Vec<_>>().join("\n## ");
    texts.push((PathBuf::from("CHANGELOG.md"), newest));
    let mut violations = Vec::new();
    for (path, text) in &texts {
        let mut in_code = false;
        for (number, line) in (1..).zip(text.lines()) {
            in_code ^= line.trim_start().starts_with("```");
            let prose = prose(line);
            for (word, instead) in WORDS.iter().filter(|(word, _)| !in_code && has(&prose, word)) {
                violations.push(format!("{}:{number}: `{word}`; write: {instead}", path.display()));
            }
        }
    }
    fail_if_any(&violations);
}
