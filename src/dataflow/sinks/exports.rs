//! Exports of the avoid list and of URL rules, which worker 0 writes row by row.

use webtwin_base::error::Result;
use webtwin_core::applications::export_folder::write_exports;
use webtwin_core::applications::exports::AvoidLists;
use webtwin_core::url_rules::rows::RuleRow;
use webtwin_spill::SortedOutput;
use webtwin_storage::manifest::FileEntry;
use webtwin_storage::output::Attempt;

/// Stages all exports of the lists that cover the pages to skip, by site, and of URL rules. They
/// are not in the folders of tables, because polars reads no folder with other files than Parquet.
///
/// # Errors
/// Returns any error of the disk that stores `sites` and `rules`, and any error of
/// [`Attempt::write`].
///
/// # Cost
/// Takes one pass over `sites` or `rules` for each export. Memory: that of [`SortedOutput`], for
/// the prefixes that are not whole URLs.
pub fn put(
    attempt: &Attempt,
    sites: &SortedOutput<AvoidLists>,
    rules: &SortedOutput<RuleRow>,
) -> Result<Vec<FileEntry>> {
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
