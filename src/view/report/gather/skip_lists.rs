//! Exports for crawlers in a report: the first lines of the files in `exports/`, and URL rules.

use crate::report::contract::{Amount, ExportFile, ReportedPrefix, SkipReport, UrlRule};
use webtwin_base::error::Result;
use webtwin_base::read_at::RandomAccess;
use webtwin_core::applications::file_part::FilePart;
use webtwin_results::FinishedRun;
use webtwin_results::url_rules::each_rule;
use webtwin_storage::manifest::FileEntry;
use webtwin_storage::open::open;

/// Maximum number of prefixes to display.
const PREFIXES: usize = 25;

/// Maximum number of rules to display.
const RULES: usize = 25;

/// Maximum number of lines of a file to display.
const LINES: usize = 4;

/// Maximum number of bytes read of a file.
const HEAD_BYTES: u64 = 64 << 10;

/// Maximum length of a displayed line, in characters.
const LINE: usize = 300;

/// Reads the first lines of each export, and the table of URL rules.
///
/// # Errors
/// Returns [`webtwin_base::error::Error::Input`] if a file is missing.
pub fn gather(run: &FinishedRun) -> Result<SkipReport> {
    let mut lists = SkipReport::default();
    for file in run.manifest.files.iter().filter(|file| file.path.starts_with("exports/")) {
        let text = head(run, file)?;
        if lists.prefixes.is_empty() && FilePart::is_part(&file.path, "exports/prefixes.tsv") {
            lists.prefixes = text.lines().skip(1).filter_map(prefix).take(PREFIXES).collect();
        }
        let lines = text.lines().take(LINES).map(|line| line.chars().take(LINE).collect());
        lists.exports.push(ExportFile { path: file.path.clone(), bytes: file.bytes, head: lines.collect() });
    }
    each_rule(run, &mut |row| {
        let (counts, saved_bytes) = (row.counts(), row.saved);
        lists.all_rules += 1;
        lists.saved_by_rules += saved_bytes;
        let position = lists.rules.partition_point(|rule| rule.saved >= saved_bytes);
        if position < RULES {
            let (scope, kind, pattern, replacement) = (row.scope, row.kind, row.pattern, row.replacement);
            let (support, violations) = (counts.support, counts.violations);
            lists.rules.insert(
                position,
                UrlRule { scope, kind, pattern, replacement, support, violations, saved: saved_bytes },
            );
            lists.rules.truncate(RULES);
        }
        Ok(())
    })?;
    Ok(lists)
}

/// Reads the complete lines at the start of a file.
fn head(run: &FinishedRun, file: &FileEntry) -> Result<String> {
    if file.bytes == 0 {
        return Ok(String::new());
    }
    let bytes = open(&run.folder.join(&file.path)?)?.read_at(0, HEAD_BYTES.min(file.bytes) as usize)?;
    let is_whole = match bytes.len() as u64 == file.bytes {
        true => bytes.len(),
        false => bytes.iter().rposition(|byte| *byte == b'\n').unwrap_or(bytes.len()),
    };
    Ok(String::from_utf8_lossy(&bytes[..is_whole]).into_owned())
}

/// Parses a row of `prefixes.tsv`.
fn prefix(line: &str) -> Option<ReportedPrefix> {
    let mut cells = line.split('\t');
    let (prefix, pages, bytes) = (cells.next()?, cells.next()?, cells.next()?);
    let covers = Amount { pages: pages.parse().ok()?, bytes: bytes.parse().ok()? };
    Some(ReportedPrefix { prefix: prefix.into(), covers })
}
