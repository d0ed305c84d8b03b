//! Avoid-list entries of crawls before the older one that still stood next to the older list: pages
//! that were not fetched since, and the entries of a crawler's list for them.
//!
//! A crawl that obeys a list lacks the pages on it, so its own list lacks them too. The entries
//! that stand nevertheless ([`super::standing`]) are in two tables of the comparison, which the
//! next comparison reads. The tables have the entries that stood after the older crawl in addition
//! to those that stand after the newer one, so that a repeated comparison can read them too.

use super::avoid::COLUMNS;
use super::past_texts::PastIntervals;
use webtwin_base::error::Result;
use webtwin_core::applications::prefixes::SkipPrefix;
use webtwin_results::FinishedRun;
use webtwin_results::ranges::{RangedTable, Ranges};
use webtwin_storage::table::{Table, TableColumn};

/// Name of the table of pages.
pub(super) const AVOID_STANDING: &str = "avoid_standing";

/// Name of the table of entries.
pub(super) const ENTRIES_STANDING: &str = "entries_standing";

/// Entry of a crawler's list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ListEntry {
    /// URL, or prefix of URLs.
    pub url: String,
    /// True if the entry stands for that URL only.
    pub is_single: bool,
    /// True if Heritrix has a line for it. False if the line would exclude pages that must be
    /// fetched, or if another line covers it.
    pub heritrix: bool,
    /// Number of pages that it stood for when a result last listed it. Meaningless for a single
    /// URL.
    pub pages: u64,
    /// Decoded HTML size of these pages, in bytes.
    pub bytes: u64,
}

impl ListEntry {
    /// Converts the entry into a prefix for the exports.
    pub(super) fn prefix(&self) -> SkipPrefix {
        SkipPrefix { prefix: self.url.clone(), single: self.is_single, pages: self.pages, bytes: self.bytes }
    }
}

/// Entries that stood after the older crawl and are not on the list of its result.
#[derive(Debug)]
pub(super) struct FormerEntries {
    pages: RangedTable,
    /// Value of `crawls_ago` of the rows: 0, or 1 if the comparison has a crawl after the older
    /// one.
    crawls_ago: u32,
    /// Entries, ascending.
    pub entries: Vec<ListEntry>,
}

impl FormerEntries {
    /// Opens the tables of an earlier comparison. Returns `None` if it has neither the older result
    /// nor the crawl before as its newest, or if it did not compare lists.
    ///
    /// # Errors
    /// Returns any error of [`FinishedRun::open`] and [`RangedTable::find`].
    pub(super) fn open(intervals: &PastIntervals, ranges: Ranges, workers: usize) -> Result<Option<FormerEntries>> {
        let Some(saved_past) = intervals.comparison.as_ref().filter(|saved| saved.newest == 1 && saved.later <= 1)
        else {
            return Ok(None);
        };
        let run = FinishedRun::open(&saved_past.comparison)?;
        let Some(pages) = RangedTable::find(&run, AVOID_STANDING, ("doc_id", 64), ranges, workers)? else {
            return Ok(None);
        };
        let table = run.table(ENTRIES_STANDING)?;
        let (is_single, crawls_ago) = (table.bool("single")?, table.u32("crawls_ago")?);
        // Older builds did not store this column, and gave each entry a line for Heritrix.
        let heritrix = table.bool("heritrix").ok();
        let sizes = table.u64("pages").ok().zip(table.u64("bytes").ok());
        let rows = table.text("url")?.iter().enumerate().filter(|(row, _)| crawls_ago[*row] == saved_past.later);
        let entry = |(row, url): (usize, &str)| ListEntry {
            url: url.to_string(),
            is_single: is_single[row],
            heritrix: heritrix.is_none_or(|heritrix| heritrix[row]),
            pages: sizes.map_or(0, |sizes| sizes.0[row]),
            bytes: sizes.map_or(0, |sizes| sizes.1[row]),
        };
        let entries = rows.map(entry).collect();
        Ok(Some(FormerEntries { pages, crawls_ago: saved_past.later, entries }))
    }

    /// Reads the pages in a range of doc ids, with the columns of `avoid` that are compared.
    ///
    /// # Errors
    /// Returns any error of [`RangedTable::read`].
    pub(super) fn read(&self, range: usize) -> Result<Table> {
        let mut table = self.pages.read(range, &[&COLUMNS[..], &["crawls_ago"]].concat())?;
        let crawls_ago = table.u32("crawls_ago")?;
        let rows: Vec<usize> = (0..crawls_ago.len()).filter(|&row| crawls_ago[row] == self.crawls_ago).collect();
        table = table.pick(&rows);
        table.columns.retain(|(name, _)| name != "crawls_ago");
        Ok(table)
    }
}

/// Builds a range of `avoid_standing`: rows that stood and rows that stand.
///
/// # Errors
/// Returns [`webtwin_base::error::Error::Input`] if their columns differ.
pub(super) fn pages(former: Table, standing_rows: Table) -> Result<Table> {
    let crawls_ago = [vec![1; former.rows()], vec![0; standing_rows.rows()]].concat();
    let mut table = former;
    table.append(standing_rows)?;
    table.columns.push(("crawls_ago".into(), TableColumn::U32(crawls_ago)));
    by_page(&table)
}

/// Builds the table of entries that stood and of those that stand.
pub(super) fn entries(former: &[ListEntry], standing_rows: &[ListEntry]) -> Table {
    let both_lists = || former.iter().chain(standing_rows);
    Table::new([
        ("url", TableColumn::Text(both_lists().map(|entry| entry.url.as_str()).collect())),
        ("single", TableColumn::Bool(both_lists().map(|entry| entry.is_single).collect())),
        ("heritrix", TableColumn::Bool(both_lists().map(|entry| entry.heritrix).collect())),
        ("pages", TableColumn::Count(both_lists().map(|entry| entry.pages).collect())),
        ("bytes", TableColumn::Count(both_lists().map(|entry| entry.bytes).collect())),
        ("crawls_ago", TableColumn::U32([vec![1; former.len()], vec![0; standing_rows.len()]].concat())),
    ])
}

/// Sorts the rows of a table by `doc_id`; the sort is stable.
///
/// # Errors
/// Returns [`webtwin_base::error::Error::Input`] if the table lacks the column.
pub(super) fn by_page(table: &Table) -> Result<Table> {
    let ids = table.u64("doc_id")?;
    let mut order: Vec<usize> = (0..ids.len()).collect();
    order.sort_by_key(|&row| ids[row]);
    Ok(table.pick(&order))
}
