//! A table of a result, read a batch of rows at a time, for what must not hold a table that grows with the crawl.

use super::Run;
use webtwin_base::error::Result;
use webtwin_storage::manifest::FileEntry;
use webtwin_storage::table::Table;
use webtwin_storage::table_rows::TableFile;

/// Rows in a batch: a quarter of a row group, of which what lies before the batch is skipped.
const ROWS: usize = 1 << 18;

/// Passes the rows of a table in order, in batches, with those of the `columns` that the table has. Whether the result has the
/// table.
///
/// # Errors
/// [`webtwin_base::error::Error::Input`] for files that are not what the manifest names; those of `take`.
///
/// # Cost
/// Each file is read once to check it, and then these columns of it; 262,144 rows of them are in memory.
pub fn scan(run: &Run, table: &str, columns: &[&str], take: &mut dyn FnMut(&Table) -> Result<()>) -> Result<bool> {
    scan_some(run, table, (columns, &[]), |_| Ok(false), take)
}

/// As [`scan`], with `more` columns in the batches of which `wants` says so, given the first columns alone.
///
/// # Errors
/// As [`scan`], and those of `wants`.
pub fn scan_some(
    run: &Run,
    table: &str,
    columns: (&[&str], &[&str]),
    mut wants: impl FnMut(&Table) -> Result<bool>,
    take: &mut dyn FnMut(&Table) -> Result<()>,
) -> Result<bool> {
    let mut there = false;
    for entry in run.manifest.table(table) {
        there = true;
        scan_file(run, entry, columns, &mut wants, take)?;
    }
    Ok(there)
}

/// As [`scan_some`], for one file of a table.
///
/// # Errors
/// As [`scan_some`].
pub fn scan_file(
    run: &Run,
    entry: &FileEntry,
    (columns, more): (&[&str], &[&str]),
    mut wants: impl FnMut(&Table) -> Result<bool>,
    take: &mut dyn FnMut(&Table) -> Result<()>,
) -> Result<()> {
    let file = TableFile::find(&run.folder, entry)?;
    let open = file.open()?;
    for at in (0..file.rows).step_by(ROWS) {
        let rows = at..file.rows.min(at + ROWS);
        let mut batch = open.read(rows.clone(), columns)?;
        if !more.is_empty() && wants(&batch)? {
            batch.columns.extend(open.read(rows, more)?.columns);
        }
        take(&batch)?;
    }
    Ok(())
}
