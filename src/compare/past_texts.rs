//! The texts that pages had in crawls before the older one: a page that has one of them again has `reverted`.
//!
//! They are in the results of those crawls, or in the table `texts_before` that an earlier comparison left for the next one. That
//! table has the text of a page in a crawl if the crawl after it has another one, or nothing at that URL; so pages that never
//! change have no rows, and a comparison made again finds what it needs when crawls behind its older result are left out.

use super::gather::PageColumns;
use super::merge::{Side, merge};
use webtwin_base::error::Result;
use webtwin_base::ids::DocId;
use webtwin_results::Run;
use webtwin_results::ranges::{RangedTable, Ranges};
use webtwin_storage::table::{Column, Table};

/// Name of the table.
pub const TEXTS_BEFORE: &str = "texts_before";

const COLUMNS: [&str; 3] = ["doc_id", "text", "crawls_ago"];

/// Columns of `pages` that tell the text.
const OF_PAGES: [&str; 3] = ["doc_id", "exact", "body"];

/// Where crawls before the older one are told of.
#[derive(Debug, Clone, Default)]
pub struct Past {
    /// Folders of results, the newest first: that before the older one, that before this, and so on.
    pub results: Vec<String>,
    /// An earlier comparison, which knows some of those crawls, or the older one, and crawls before it.
    pub saved: Option<SavedPast>,
    /// Whether a comparison in between is missing, so that nobody knows the list that the crawler had before the newer crawl.
    pub list_is_lost: bool,
}

/// What an earlier comparison knows.
#[derive(Debug, Clone)]
pub struct SavedPast {
    /// Folder of the comparison.
    pub comparison: String,
    /// Which crawl is the newest of those at hand that it knows: 1 is the older of the two that are compared, 2 the one before.
    pub newest: u32,
    /// Crawls it knows that came after that one, which are passed over.
    pub later: u32,
}

/// The text of a page in a crawl. Rows order by page, newest crawl first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PastText {
    /// The page.
    pub doc_id: DocId,
    /// Crawls from this one to the newer of the two that are compared, which is 0.
    pub ago: u32,
    /// `exact` of the page; of a page without text `body`.
    pub text: u64,
}

/// The tables that tell of crawls before the older one.
#[derive(Debug, Default)]
pub struct PastTexts {
    /// Pages of each crawl, with its distance from the newer one.
    results: Vec<(u32, RangedTable)>,
    /// Rows of an earlier comparison, with what turns its distances to those from the newer crawl: the first is taken away, the
    /// second added.
    saved: Option<(u32, u32, RangedTable)>,
}

impl PastTexts {
    /// Finds the tables of so many crawls, `versions`, the newer one included.
    ///
    /// # Errors
    /// Those of [`Run::open`] and [`RangedTable::find`].
    pub fn open(past: &Past, versions: u32, ranges: Ranges, workers: usize) -> Result<PastTexts> {
        let find = |folder: &str, table| RangedTable::find(&Run::open(folder)?, table, ("doc_id", 64), ranges, workers);
        let mut found = PastTexts::default();
        let last = past.saved.as_ref().map_or(versions, |saved| saved.newest.min(versions));
        for (ago, folder) in (2..=last).zip(&past.results) {
            found.results.extend(find(folder, "pages")?.map(|pages| (ago, pages)));
        }
        if let Some(saved) = past.saved.as_ref().filter(|saved| saved.newest < versions) {
            let table = find(&saved.comparison, TEXTS_BEFORE)?;
            found.saved = table.map(|table| (saved.later, saved.newest, table));
        }
        Ok(found)
    }

    /// The texts of a range of pages, in no particular order.
    ///
    /// # Errors
    /// As [`RangedTable::read`].
    fn read(&self, range: usize) -> Result<Vec<PastText>> {
        let mut texts = Vec::new();
        for (ago, pages) in &self.results {
            let table = pages.read(range, &OF_PAGES)?;
            let pages = table.u64("doc_id")?.iter().zip(table.u64("exact")?).zip(table.u64("body")?);
            texts.extend(pages.map(|((&doc_id, &exact), &body)| PastText {
                doc_id,
                ago: *ago,
                text: text(exact, body),
            }));
        }
        if let Some((later, last, table)) = &self.saved {
            let table = table.read(range, &COLUMNS)?;
            let rows = table.u64("doc_id")?.iter().zip(table.u64("text")?).zip(table.u32("crawls_ago")?);
            let rows = rows.filter(|(_, ago)| *ago > later);
            texts.extend(rows.map(|((&doc_id, &text), ago)| PastText { doc_id, ago: ago - later + last, text }));
        }
        Ok(texts)
    }

    /// What is known of a range of pages, those of the two results among them.
    ///
    /// # Errors
    /// As [`RangedTable::read`].
    pub fn of(&self, range: usize, old: &PageColumns<'_>, new: &PageColumns<'_>, versions: u32) -> Result<Remembered> {
        let mut texts = self.read(range)?;
        let mut add = |of: &PageColumns<'_>, row, ago| {
            let content = of.content(row);
            texts.push(PastText { doc_id: of.doc_ids[row], ago, text: text(content.exact, content.body) });
        };
        for side in merge(old.doc_ids, new.doc_ids) {
            match side {
                Side::Old(i) => add(old, i, 1),
                Side::New(j) => add(new, j, 0),
                Side::Both(i, j) => {
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

/// What crawls say of pages together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Remembered {
    /// Pages that have a text again which they had before the older crawl and not in it, ascending, with the newest crawl that had it.
    pub reverted: Vec<(DocId, u32)>,
    /// What the next comparison has to know, ascending.
    pub texts: Vec<PastText>,
}

/// Sees what pages reverted to, and what there is to remember of them, by their texts in `versions` crawls.
///
/// Crawls of which only those texts are known that the crawl after does not have do as well as whole ones.
fn remember(mut texts: Vec<PastText>, versions: u32) -> Remembered {
    // Sorted runs, one behind the other, which the standard library's stable sort merges.
    texts.sort();
    let mut remembered = Remembered::default();
    for page in texts.chunk_by(|x, y| x.doc_id == y.doc_id) {
        if let [now, before, past @ ..] = page
            && (now.ago, before.ago) == (0, 1)
            && now.text != before.text
        {
            let had = past.iter().find(|past| past.ago < versions && past.text == now.text);
            remembered.reverted.extend(had.map(|past| (past.doc_id, past.ago)));
        }
        for (at, row) in page.iter().enumerate().filter(|(_, row)| (1..=versions).contains(&row.ago)) {
            let lasted = at > 0 && page[at - 1].ago + 1 == row.ago && page[at - 1].text == row.text;
            if !lasted {
                remembered.texts.push(*row);
            }
        }
    }
    remembered
}

/// Rows of `texts_before`.
pub fn table(rows: &[PastText]) -> Table {
    let ids = |value: fn(&PastText) -> u64| Column::Id(rows.iter().map(value).collect());
    Table::new([
        ("doc_id", ids(|row| row.doc_id)),
        ("text", ids(|row| row.text)),
        ("crawls_ago", Column::U32(rows.iter().map(|row| row.ago).collect())),
    ])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Texts of a few pages in a few crawls, oldest first.
    fn crawls() -> impl Strategy<Value = Vec<Vec<Option<u64>>>> {
        let page = prop::option::weighted(0.8, 1u64..4);
        prop::collection::vec(prop::collection::vec(page, 5), 2..8)
    }

    /// All that the crawls say.
    fn all(crawls: &[Vec<Option<u64>>]) -> Vec<PastText> {
        let rows = crawls.iter().rev().zip(0..).flat_map(|(crawl, ago)| {
            (0..).zip(crawl).filter_map(move |(doc_id, text)| Some(PastText { doc_id, ago, text: (*text)? }))
        });
        rows.collect()
    }

    proptest! {
        #[test]
        fn a_page_has_reverted_if_an_earlier_crawl_has_its_text_and_the_last_one_another(
            crawls in crawls(), versions in 2u32..7
        ) {
            let plain = (0..5).filter_map(|page| {
                let mut back = crawls.iter().rev().map(|crawl| crawl[page]);
                let (now, before) = (back.next()??, back.next()??);
                let ago = back.position(|text| text == Some(now)).filter(|_| now != before)? as u32 + 2;
                (ago < versions).then_some((page as DocId, ago))
            });
            prop_assert_eq!(remember(all(&crawls), versions).reverted, plain.collect::<Vec<_>>());
        }

        #[test]
        fn what_is_remembered_does_as_well_as_the_crawls_also_if_the_newest_was_left_out(
            crawls in crawls(), versions in 2u32..7, left_out in prop::bool::ANY
        ) {
            let known = &crawls[..crawls.len() - 1];
            let seen = &known[..known.len() - usize::from(left_out)];
            prop_assume!(!seen.is_empty());
            let later = u32::from(left_out);
            let saved = remember(all(known), versions).texts;
            // The crawl to be compared follows the last that was seen.
            let now = [seen.last().unwrap().clone(), crawls.last().unwrap().clone()];
            let past = saved.into_iter().filter(|row| row.ago > later);
            let past = past.map(|row| PastText { ago: row.ago - later + 1, ..row });
            let again = remember(all(&now).into_iter().chain(past).collect(), versions);
            let whole = remember(all(&[seen, &now[1..]].concat()), versions);
            prop_assert_eq!(&again.reverted, &whole.reverted);
            // Without the crawl that was left out, the oldest crawl is one more back than is saved.
            let kept = versions - later;
            prop_assert!(again.texts.iter().filter(|row| row.ago <= kept).eq(whole.texts.iter().filter(|row| row.ago <= kept)));
        }
    }
}
