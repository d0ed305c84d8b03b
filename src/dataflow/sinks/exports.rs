//! The exports of the avoid list and of URL rules, which worker 0 writes row by row.

use std::borrow::Cow;

use super::sorted::Sorted;
use crate::applications::exports::{AvoidLists, BY_PAGES, EXPORTS, Export, SCRAPY};
use crate::applications::rule_exports::RULE_EXPORTS;
use crate::error::Result;
use crate::storage::manifest::FileEntry;
use crate::storage::output::Attempt;
use crate::url_rules::rows::RuleRow;

/// Stages all exports of what covers the pages to skip, by site, and of URL rules. They lie beside the tables: polars reads no folder that holds anything but Parquet.
///
/// # Errors
/// Those of the disk that holds `sites` and `rules`, and as [`Attempt::write`].
///
/// # Cost
/// One pass over `sites` or `rules` an export. Memory: as [`Sorted`], for the prefixes that are no whole URLs.
pub fn put(attempt: &Attempt, sites: &Sorted<AvoidLists>, rules: &Sorted<RuleRow>) -> Result<Vec<FileEntry>> {
    let mut files = Vec::new();
    for export in &EXPORTS {
        files.push(put_one(attempt, export, sites.rows())?);
    }
    let mut wide = sites.alike();
    for site in sites.rows() {
        site?.wide().try_for_each(|prefix| wide.push(prefix))?;
    }
    files.push(put_one(attempt, &BY_PAGES, wide.finish()?.rows())?);
    for export in &RULE_EXPORTS {
        files.push(put_one(attempt, export, rules.rows())?);
    }
    let (name, text) = SCRAPY;
    files.push(attempt.write(&path(name), |file| file.append(text.as_bytes()))?);
    Ok(files)
}

fn put_one<'r, Row: Clone + 'r>(
    attempt: &Attempt,
    export: &Export<Row>,
    rows: impl Iterator<Item = Result<Cow<'r, Row>>>,
) -> Result<FileEntry> {
    attempt.write(&path(export.name), |file| export.write(rows, |text| file.append(text.as_bytes())))
}

fn path(name: &str) -> String {
    format!("exports/{name}")
}
