//! What stood of avoid lists before the older one, beside it: pages that were not fetched since, and entries of a crawler's list for them.
//!
//! A crawl that obeys a list has nothing of the pages on it, so its own list has nothing of them either. What stands all the same
//! ([`super::standing`]) is in two tables of the comparison, which the next one reads. So that a comparison made again can read them
//! too, they hold what stood after the older crawl beside what stands after the newer one.

use super::avoid::COLUMNS;
use super::past_texts::Past;
use webtwin_base::error::Result;
use webtwin_core::applications::prefixes::Prefix;
use webtwin_results::Run;
use webtwin_results::ranges::{RangedTable, Ranges};
use webtwin_storage::table::{Column, Table};

/// The table of pages.
pub(super) const AVOID_STANDING: &str = "avoid_standing";

/// The table of entries.
pub(super) const ENTRIES_STANDING: &str = "entries_standing";

/// An entry of a crawler's list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Entry {
    /// A URL, or what URLs begin with.
    pub url: String,
    /// Whether it stands for that URL alone.
    pub single: bool,
    /// Whether Heritrix has a line for it: not where that would keep it from pages that stay, or another line says it.
    pub heritrix: bool,
    /// Pages that it stood for where a result last listed it; means nothing where it stands for one URL.
    pub pages: u64,
    /// Bytes of HTML of these pages, decoded.
    pub bytes: u64,
}

impl Entry {
    /// As exports are made of it.
    pub(super) fn prefix(&self) -> Prefix {
        Prefix { prefix: self.url.clone(), single: self.single, pages: self.pages, bytes: self.bytes }
    }
}

/// What stood after the older crawl, and is not on the list of its result.
#[derive(Debug)]
pub(super) struct Stood {
    pages: RangedTable,
    /// Which rows these are: 0, or 1 if the comparison has a crawl behind the older one.
    crawls_ago: u32,
    /// Entries, ascending.
    pub entries: Vec<Entry>,
}

impl Stood {
    /// Finds what an earlier comparison says. `None` if it does not know the older result or the crawl before, or its lists were not compared.
    ///
    /// # Errors
    /// Those of [`Run::open`] and [`RangedTable::find`].
    pub(super) fn open(past: &Past, ranges: Ranges, workers: usize) -> Result<Option<Stood>> {
        let Some(saved) = past.saved.as_ref().filter(|saved| saved.newest == 1 && saved.later <= 1) else {
            return Ok(None);
        };
        let run = Run::open(&saved.comparison)?;
        let Some(pages) = RangedTable::find(&run, AVOID_STANDING, ("doc_id", 64), ranges, workers)? else {
            return Ok(None);
        };
        let table = run.table(ENTRIES_STANDING)?;
        let (single, ago) = (table.bool("single")?, table.u32("crawls_ago")?);
        // Older builds did not tell, and took it to have all lines.
        let heritrix = table.bool("heritrix").ok();
        let sizes = table.u64("pages").ok().zip(table.u64("bytes").ok());
        let rows = table.text("url")?.iter().enumerate().filter(|(row, _)| ago[*row] == saved.later);
        let entry = |(row, url): (usize, &str)| Entry {
            url: url.to_string(),
            single: single[row],
            heritrix: heritrix.is_none_or(|heritrix| heritrix[row]),
            pages: sizes.map_or(0, |sizes| sizes.0[row]),
            bytes: sizes.map_or(0, |sizes| sizes.1[row]),
        };
        let entries = rows.map(entry).collect();
        Ok(Some(Stood { pages, crawls_ago: saved.later, entries }))
    }

    /// Its pages in a range of doc ids, with the columns of `avoid` that are compared.
    ///
    /// # Errors
    /// As [`RangedTable::read`].
    pub(super) fn read(&self, range: usize) -> Result<Table> {
        let mut table = self.pages.read(range, &[&COLUMNS[..], &["crawls_ago"]].concat())?;
        let ago = table.u32("crawls_ago")?;
        let rows: Vec<usize> = (0..ago.len()).filter(|&row| ago[row] == self.crawls_ago).collect();
        table = table.pick(&rows);
        table.columns.retain(|(name, _)| name != "crawls_ago");
        Ok(table)
    }
}

/// Rows of `avoid_standing`: those that stood and those that stand.
///
/// # Errors
/// [`webtwin_base::error::Error::Input`] if their columns differ.
pub(super) fn pages(stood: Table, stands: Table) -> Result<Table> {
    let ago = [vec![1; stood.rows()], vec![0; stands.rows()]].concat();
    let mut table = stood;
    table.append(stands)?;
    table.columns.push(("crawls_ago".into(), Column::U32(ago)));
    by_page(&table)
}

/// The table of entries that stood and of those that stand.
pub(super) fn entries(stood: &[Entry], stands: &[Entry]) -> Table {
    let all = || stood.iter().chain(stands);
    Table::new([
        ("url", Column::Text(all().map(|entry| entry.url.as_str()).collect())),
        ("single", Column::Bool(all().map(|entry| entry.single).collect())),
        ("heritrix", Column::Bool(all().map(|entry| entry.heritrix).collect())),
        ("pages", Column::Count(all().map(|entry| entry.pages).collect())),
        ("bytes", Column::Count(all().map(|entry| entry.bytes).collect())),
        ("crawls_ago", Column::U32([vec![1; stood.len()], vec![0; stands.len()]].concat())),
    ])
}

/// The rows of a table in the order of `doc_id`, equal ones as they are.
///
/// # Errors
/// [`webtwin_base::error::Error::Input`] if it has no such column.
pub(super) fn by_page(table: &Table) -> Result<Table> {
    let ids = table.u64("doc_id")?;
    let mut order: Vec<usize> = (0..ids.len()).collect();
    order.sort_by_key(|&row| ids[row]);
    Ok(table.pick(&order))
}
