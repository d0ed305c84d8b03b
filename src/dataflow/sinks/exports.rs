//! Exports of the avoid list and of URL rules, row by row.

use webtwin_base::error::Result;
use webtwin_core::applications::exports::{BY_PAGES, EXPORTS, RowExport, SCRAPY};
use webtwin_core::applications::file_part::FilePart;
use webtwin_core::applications::rule_exports::RULE_EXPORTS;
use webtwin_core::url_rules::rows::RuleRow;
use webtwin_spill::SortedOutput;
use webtwin_storage::manifest::FileEntry;
use webtwin_storage::output::Attempt;

use super::avoid_table::CrawlerLists;
use crate::shuffle::sorted_ranges::{RangedRow, SortedRanges};

/// Stages the exports of this worker's ranges of the lists that cover the pages to skip. They are
/// not in the folders of tables, because polars reads no folder with other files than Parquet.
///
/// # Errors
/// Returns any error of the disk that stores the lists, and any error of [`Attempt::write`].
///
/// # Cost
/// Takes one pass over the lists for each export.
pub fn put_lists(attempt: &Attempt, lists: &CrawlerLists) -> Result<Vec<FileEntry>> {
    let mut files = Vec::new();
    EXPORTS.iter().try_for_each(|export| put_ranges(attempt, export, &lists.sites, &mut files))?;
    put_ranges(attempt, &BY_PAGES, &lists.wide_prefixes, &mut files)?;
    Ok(files)
}

/// Stages the exports of all URL rules, and the module for Scrapy.
///
/// # Errors
/// Returns any error of the disk that stores the rules, and any error of [`Attempt::write`].
///
/// # Cost
/// Takes one pass over the rules for each export.
pub fn put_rules(attempt: &Attempt, rules: &SortedOutput<RuleRow>) -> Result<Vec<FileEntry>> {
    let (name, text) = SCRAPY;
    let mut files = vec![attempt.write(&path(name), |file| file.append(text.as_bytes()))?];
    for export in &RULE_EXPORTS {
        let text = |put: &mut dyn FnMut(&str) -> Result<()>| export.write(FilePart::WHOLE, rules.rows(), put);
        files.push(attempt.write(&path(export.name), |file| text(&mut |text| file.append(text.as_bytes())))?);
    }
    Ok(files)
}

/// Stages an export of this worker's ranges, each in a file of its own.
fn put_ranges<T: RangedRow>(
    attempt: &Attempt,
    export: &RowExport<T>,
    ranges: &SortedRanges<T>,
    files: &mut Vec<FileEntry>,
) -> Result<()> {
    ranges.each_range(|part, rows| {
        let path = path(&part.file_name(export.name));
        let file = attempt.write(&path, |file| export.write(part, rows, |text| file.append(text.as_bytes())))?;
        files.push(file);
        Ok(())
    })
}

fn path(name: &str) -> String {
    format!("exports/{name}")
}
