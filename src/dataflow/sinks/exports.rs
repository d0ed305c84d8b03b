//! The exports of the avoid list and of URL rules, which worker 0 writes row by row.

use webtwin_base::error::Result;
use webtwin_core::applications::export_folder::write_exports;
use webtwin_core::applications::exports::AvoidLists;
use webtwin_core::url_rules::rows::RuleRow;
use webtwin_spill::Sorted;
use webtwin_storage::manifest::FileEntry;
use webtwin_storage::output::Attempt;

/// Stages all exports of what covers the pages to skip, by site, and of URL rules. They lie beside the tables: polars reads no folder that holds anything but Parquet.
///
/// # Errors
/// Those of the disk that holds `sites` and `rules`, and as [`Attempt::write`].
///
/// # Cost
/// One pass over `sites` or `rules` an export. Memory: as [`Sorted`], for the prefixes that are no whole URLs.
pub fn put(attempt: &Attempt, sites: &Sorted<AvoidLists>, rules: &Sorted<RuleRow>) -> Result<Vec<FileEntry>> {
    let mut wide = sites.alike();
    for site in sites.rows() {
        site?.wide().try_for_each(|prefix| wide.push(prefix))?;
    }
    let wide = wide.finish()?;
    let mut files = Vec::new();
    write_exports(
        || sites.rows(),
        || wide.rows(),
        || rules.rows(),
        |name, write| {
            let path = format!("exports/{name}");
            files.push(attempt.write(&path, |file| write(&mut |text| file.append(text.as_bytes())))?);
            Ok(())
        },
    )?;
    Ok(files)
}
