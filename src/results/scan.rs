//! Reading a table of a result in batches of rows, for callers that must not hold a table that
//! grows with the crawl.

use super::FinishedRun;
use webtwin_base::error::Result;
use webtwin_storage::manifest::FileEntry;
use webtwin_storage::table::Table;
use webtwin_storage::table_rows::TableFile;

/// Number of rows in a batch: a quarter of a row group, in which the rows before the batch are
/// skipped.
const ROWS: usize = 1 << 18;

/// Passes the rows of a table to `take` in order and in batches, with those of the `columns` that
/// the table has. Returns true if the result has the table.
///
/// # Errors
/// Returns [`webtwin_base::error::Error::Input`] for files that differ from the manifest, and any
/// error of `take`.
///
/// # Cost
/// Each file is read once to check it, and then these columns of it. 262,144 rows of them are in
/// memory.
pub fn scan(
    run: &FinishedRun,
    table: &str,
    columns: &[&str],
    take: &mut dyn FnMut(&Table) -> Result<()>,
) -> Result<bool> {
    scan_some(run, table, (columns, &[]), |_| Ok(false), take)
}

/// Passes the rows of a table like [`scan`]. Reads the columns `more` only for the batches for
/// which `wants` returns true, given the first columns alone.
///
/// # Errors
/// Returns any error of [`scan`] and of `wants`.
pub fn scan_some(
    run: &FinishedRun,
    table: &str,
    columns: (&[&str], &[&str]),
    mut wants: impl FnMut(&Table) -> Result<bool>,
    take: &mut dyn FnMut(&Table) -> Result<()>,
) -> Result<bool> {
    let mut is_present = false;
    for entry in run.manifest.table(table) {
        is_present = true;
        scan_file(run, entry, columns, &mut wants, take)?;
    }
    Ok(is_present)
}

/// Passes the rows of one file of a table like [`scan_some`].
///
/// # Errors
/// Returns any error of [`scan_some`].
pub fn scan_file(
    run: &FinishedRun,
    entry: &FileEntry,
    (columns, optional_columns): (&[&str], &[&str]),
    mut wants: impl FnMut(&Table) -> Result<bool>,
    take: &mut dyn FnMut(&Table) -> Result<()>,
) -> Result<()> {
    let file = TableFile::find(&run.folder, entry)?;
    let open = file.open()?;
    for start in (0..file.rows).step_by(ROWS) {
        let rows = start..file.rows.min(start + ROWS);
        let mut batch = open.read(rows.clone(), columns)?;
        if !optional_columns.is_empty() && wants(&batch)? {
            batch.columns.extend(open.read(rows, optional_columns)?.columns);
        }
        take(&batch)?;
    }
    Ok(())
}
