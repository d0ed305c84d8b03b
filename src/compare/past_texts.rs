//! Texts that pages had in crawls before the older one. A page that has one of them again has
//! `reverted`.
//!
//! The texts are in the results of those crawls, or in the table `texts_before` of an earlier
//! comparison. That table has the text of a page in a crawl if the next crawl has another text or
//! no page at that URL. So pages that never change have no rows. A comparison that is repeated
//! finds the texts that it needs by ignoring the crawls after its older result.

use super::gather::PageColumns;
use super::merge::{MergeSide, merge};
use webtwin_base::error::Result;
use webtwin_base::ids::DocId;
use webtwin_results::FinishedRun;
use webtwin_results::ranges::{RangedTable, Ranges};
use webtwin_storage::table::{Table, TableColumn};

/// Name of the table with past texts.
pub const TEXTS_BEFORE: &str = "texts_before";

const COLUMNS: [&str; 3] = ["doc_id", "text", "crawls_ago"];

/// Columns of `pages` that identify the text.
const PAGE_COLUMNS: [&str; 3] = ["doc_id", "exact", "body"];

/// Sources for the crawls before the older one.
#[derive(Debug, Clone, Default)]
pub struct PastIntervals {
    /// Folders of results, newest first: the one before the older result, the one before that, and
    /// so on.
    pub results: Vec<String>,
    /// Earlier comparison that has some of those crawls, or the older one and crawls before it.
    pub comparison: Option<SavedPast>,
    /// True if a comparison in between is missing, so that the list which the crawler had before
    /// the newer crawl is unknown.
    pub list_is_lost: bool,
}

/// Crawls that an earlier comparison has.
#[derive(Debug, Clone)]
pub struct SavedPast {
    /// Folder of the comparison.
    pub comparison: String,
    /// Position of its newest crawl among the crawls at hand: 1 is the older of the two that are
    /// compared, 2 the one before.
    pub newest: u32,
    /// Number of its crawls after that one, which are ignored.
    pub later: u32,
}

/// Text of a page in a crawl. Rows order by page, newest crawl first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PastText {
    /// The page.
    pub doc_id: DocId,
    /// Number of crawls between this one and the newer of the two that are compared, whose number
    /// is 0.
    pub crawls_ago: u32,
    /// `exact` of the page, or `body` if the page has no text.
    pub text: u64,
}

/// Tables with the texts of the crawls before the older one.
#[derive(Debug, Default)]
pub struct PastTexts {
    /// Table `pages` of each crawl, with the crawl's distance from the newer one.
    results: Vec<(u32, RangedTable)>,
    /// Table of an earlier comparison. Its distances become distances from the newer crawl by
    /// subtracting the first number and adding the second.
    earlier_table: Option<(u32, u32, RangedTable)>,
}

impl PastTexts {
    /// Finds the tables of the last `versions` crawls, including the newer one.
    ///
    /// # Errors
    /// Returns any error of [`FinishedRun::open`] and [`RangedTable::find`].
    pub fn open(intervals: &PastIntervals, versions: u32, ranges: Ranges, workers: usize) -> Result<PastTexts> {
        let find = |folder: &str, table| {
            RangedTable::find(&FinishedRun::open(folder)?, table, ("doc_id", 64), ranges, workers)
        };
        let mut texts = PastTexts::default();
        let last = intervals.comparison.as_ref().map_or(versions, |saved| saved.newest.min(versions));
        for (crawls_ago, folder) in (2..=last).zip(&intervals.results) {
            texts.results.extend(find(folder, "pages")?.map(|pages| (crawls_ago, pages)));
        }
        if let Some(saved_past) = intervals.comparison.as_ref().filter(|saved| saved.newest < versions) {
            let table = find(&saved_past.comparison, TEXTS_BEFORE)?;
            texts.earlier_table = table.map(|table| (saved_past.later, saved_past.newest, table));
        }
        Ok(texts)
    }

    /// Reads the past texts of a range of pages, in no particular order.
    ///
    /// # Errors
    /// Returns any error of [`RangedTable::read`].
    fn read(&self, range: usize) -> Result<Vec<PastText>> {
        let mut texts = Vec::new();
        for (crawls_ago, pages) in &self.results {
            let table = pages.read(range, &PAGE_COLUMNS)?;
            let pages = table.u64("doc_id")?.iter().zip(table.u64("exact")?).zip(table.u64("body")?);
            texts.extend(pages.map(|((&doc_id, &exact), &body)| PastText {
                doc_id,
                crawls_ago: *crawls_ago,
                text: text(exact, body),
            }));
        }
        if let Some((n_later, last, table)) = &self.earlier_table {
            let table = table.read(range, &COLUMNS)?;
            let rows = table.u64("doc_id")?.iter().zip(table.u64("text")?).zip(table.u32("crawls_ago")?);
            let rows = rows.filter(|(_, ago)| *ago > n_later);
            texts.extend(rows.map(|((&doc_id, &text), crawls_ago)| PastText {
                doc_id,
                crawls_ago: crawls_ago - n_later + last,
                text,
            }));
        }
        Ok(texts)
    }

    /// Computes reversions and past texts of a range of pages. `old` and `new` are the range's
    /// pages of the two results.
    ///
    /// # Errors
    /// Returns any error of [`RangedTable::read`].
    pub fn page_memory(
        &self,
        range: usize,
        old: &PageColumns<'_>,
        new: &PageColumns<'_>,
        versions: u32,
    ) -> Result<PageMemory> {
        let mut texts = self.read(range)?;
        let mut add = |columns: &PageColumns<'_>, row, crawls_ago| {
            let content = columns.content(row);
            texts.push(PastText { doc_id: columns.doc_ids[row], crawls_ago, text: text(content.exact, content.body) });
        };
        for side in merge(old.doc_ids, new.doc_ids) {
            match side {
                MergeSide::Old(i) => add(old, i, 1),
                MergeSide::New(j) => add(new, j, 0),
                MergeSide::Both(i, j) => {
                    add(new, j, 0);
                    add(old, i, 1);
                }
            }
        }
        Ok(remember(texts, versions))
    }
}

fn text(exact: u64, body: u64) -> u64 {
    if exact == 0 { body } else { exact }
}

/// Reversions and past texts of some pages.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PageMemory {
    /// Pages that have again a text of a crawl before the older one, which the older crawl did not
    /// have; ascending, with the distance of the newest crawl that had it.
    pub reverted_texts: Vec<(DocId, u32)>,
    /// Texts that the next comparison needs, ascending.
    pub texts: Vec<PastText>,
}

/// Finds reversions, and the texts to store, from the texts of pages in `versions` crawls.
///
/// A crawl of which `texts` has only those texts that the next crawl lacks yields the same output
/// as a whole crawl.
fn remember(mut texts: Vec<PastText>, versions: u32) -> PageMemory {
    // The input consists of sorted runs, which the standard library's stable sort merges.
    texts.sort();
    let mut memory = PageMemory::default();
    for page in texts.chunk_by(|x, y| x.doc_id == y.doc_id) {
        if let [now, previous, older_versions @ ..] = page
            && (now.crawls_ago, previous.crawls_ago) == (0, 1)
            && now.text != previous.text
        {
            let same_before = older_versions.iter().find(|past| past.crawls_ago < versions && past.text == now.text);
            memory.reverted_texts.extend(same_before.map(|past| (past.doc_id, past.crawls_ago)));
        }
        for (number, row) in page.iter().enumerate().filter(|(_, row)| (1..=versions).contains(&row.crawls_ago)) {
            let lasted =
                number > 0 && page[number - 1].crawls_ago + 1 == row.crawls_ago && page[number - 1].text == row.text;
            if !lasted {
                memory.texts.push(*row);
            }
        }
    }
    memory
}

/// Builds the table `texts_before`.
pub fn table(rows: &[PastText]) -> Table {
    let ids = |value: fn(&PastText) -> u64| TableColumn::Id(rows.iter().map(value).collect());
    Table::new([
        ("doc_id", ids(|row| row.doc_id)),
        ("text", ids(|row| row.text)),
        ("crawls_ago", TableColumn::U32(rows.iter().map(|row| row.crawls_ago).collect())),
    ])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Generates the texts of a few pages in a few crawls, oldest first.
    fn crawls() -> impl Strategy<Value = Vec<Vec<Option<u64>>>> {
        let page = prop::option::weighted(0.8, 1u64..4);
        prop::collection::vec(prop::collection::vec(page, 5), 2..8)
    }

    /// Returns all texts of all crawls.
    fn all_texts(crawls: &[Vec<Option<u64>>]) -> Vec<PastText> {
        let rows = crawls.iter().rev().zip(0..).flat_map(|(crawl, crawls_ago)| {
            (0..).zip(crawl).filter_map(move |(doc_id, text)| Some(PastText { doc_id, crawls_ago, text: (*text)? }))
        });
        rows.collect()
    }

    proptest! {
        #[test]
        fn page_has_reverted_if_only_an_earlier_crawl_has_its_text(
            crawls in crawls(), versions in 2u32..7
        ) {
            let plain = (0..5).filter_map(|page| {
                let mut back = crawls.iter().rev().map(|crawl| crawl[page]);
                let (now, before) = (back.next()??, back.next()??);
                let ago = back.position(|text| text == Some(now)).filter(|_| now != before)? as u32 + 2;
                (ago < versions).then_some((page as DocId, ago))
            });
            prop_assert_eq!(remember(all_texts(&crawls), versions).reverted_texts, plain.collect::<Vec<_>>());
        }

        #[test]
        fn history_equals_the_crawls_even_without_the_newest_one(
            crawls in crawls(), versions in 2u32..7, left_out in prop::bool::ANY
        ) {
            let known = &crawls[..crawls.len() - 1];
            let seen = &known[..known.len() - usize::from(left_out)];
            prop_assume!(!seen.is_empty());
            let later = u32::from(left_out);
            let saved = remember(all_texts(known), versions).texts;
            // The crawl to be compared follows the last crawl that is not left out.
            let now = [seen.last().unwrap().clone(), crawls.last().unwrap().clone()];
            let past = saved.into_iter().filter(|row| row.crawls_ago > later);
            let past = past.map(|row| PastText { crawls_ago: row.crawls_ago - later + 1, ..row });
            let again = remember(all_texts(&now).into_iter().chain(past).collect(), versions);
            let whole = remember(all_texts(&[seen, &now[1..]].concat()), versions);
            prop_assert_eq!(&again.reverted_texts, &whole.reverted_texts);
            // The table stores `versions` crawls. With one left out, the oldest crawl is out of its
            // reach.
            let kept = versions - later;
            prop_assert!(again.texts.iter().filter(|row| row.crawls_ago <= kept).eq(whole.texts.iter().filter(|row| row.crawls_ago <= kept)));
        }
    }
}
