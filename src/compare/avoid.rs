//! Changes of the avoid list between two crawls.

use super::merge::{MergeSide, merge};
use super::pages::PageChange;
use webtwin_base::error::Result;
use webtwin_base::ids::DocId;
use webtwin_storage::table::{Table, TableColumn};
use webtwin_storage::texts::StringTable;

/// Columns of the table `avoid` that are compared.
pub(super) const COLUMNS: [&str; 5] = ["doc_id", "url", "keep_doc_id", "keep_url", "why"];

/// Borrowed columns of a table `avoid`, or of a range of it.
pub(super) struct AvoidColumns<'t> {
    /// Pages on the list, strictly ascending.
    pub doc_ids: &'t [DocId],
    urls: &'t StringTable,
    keep: &'t [DocId],
    keep_urls: &'t StringTable,
    why: &'t StringTable,
}

impl<'t> AvoidColumns<'t> {
    /// Borrows the columns from a table.
    ///
    /// # Errors
    /// Returns [`webtwin_base::error::Error::Input`] if the table lacks a column.
    pub(super) fn from_table(table: &'t Table) -> Result<AvoidColumns<'t>> {
        Ok(AvoidColumns {
            doc_ids: table.u64("doc_id")?,
            urls: table.text("url")?,
            keep: table.u64("keep_doc_id")?,
            keep_urls: table.text("keep_url")?,
            why: table.text("why")?,
        })
    }

    /// Returns the page and the URL of a row.
    pub(super) fn page(&self, row: usize) -> (DocId, &'t str) {
        (self.doc_ids[row], &self.urls[row])
    }

    /// Returns the page that is kept for the page of a row.
    pub(super) fn keep(&self, row: usize) -> DocId {
        self.keep[row]
    }

    /// Returns a function that is true for pages on the list. It must be called with pages in
    /// ascending order.
    pub(super) fn has(&self) -> impl FnMut(DocId) -> bool + 't {
        let mut left = self.doc_ids;
        move |page| {
            while let [first, rest @ ..] = left
                && *first < page
            {
                left = rest;
            }
            left.first() == Some(&page)
        }
    }
}

/// Row of `avoid_changed`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AvoidChange<'t> {
    /// The page.
    pub doc_id: DocId,
    /// URL of the page.
    pub url: &'t str,
    /// `added`, `removed`, `keep_changed` or `why_changed`.
    pub what: &'static str,
    /// Change of the page itself.
    pub page: Option<PageChange>,
    /// URL of the page kept for it, in the old and in the new result. Empty where the page is not
    /// on the list.
    pub keep: [&'t str; 2],
    /// `avoid.why` in the old and in the new result. Empty where the page is not on the list.
    pub why: [&'t str; 2],
}

/// Appends the changes of a range of the list to `output`. `page` returns the change of a page.
/// `is_standing` is called with each row of the old list that the new list lacks; if it returns
/// true, the row is still in force and is not a change.
pub(super) fn changes<'t>(
    old: &AvoidColumns<'t>,
    new: &AvoidColumns<'t>,
    page: impl Fn(DocId) -> Option<PageChange>,
    mut is_standing: impl FnMut(usize) -> bool,
    output: &mut Vec<AvoidChange<'t>>,
) {
    let entry = |list: &AvoidColumns<'t>, row: usize| (&list.keep_urls[row], &list.why[row]);
    for side in merge(old.doc_ids, new.doc_ids) {
        let (what, list, row, old_state, new_state) = match side {
            MergeSide::Old(i) if is_standing(i) => continue,
            MergeSide::Old(i) => ("removed", old, i, entry(old, i), Default::default()),
            MergeSide::New(j) => ("added", new, j, Default::default(), entry(new, j)),
            MergeSide::Both(i, j) if old.keep[i] != new.keep[j] => {
                ("keep_changed", new, j, entry(old, i), entry(new, j))
            }
            MergeSide::Both(i, j) if old.why[i] != new.why[j] => ("why_changed", new, j, entry(old, i), entry(new, j)),
            MergeSide::Both(..) => continue,
        };
        let (doc_id, url) = (list.doc_ids[row], &list.urls[row]);
        output.push(AvoidChange {
            doc_id,
            url,
            what,
            page: page(doc_id),
            keep: [old_state.0, new_state.0],
            why: [old_state.1, new_state.1],
        });
    }
}

/// Builds the table `avoid_changed`.
pub(super) fn table(rows: &[AvoidChange<'_>]) -> Table {
    let texts = |value: for<'a> fn(&'a AvoidChange<'a>) -> &'a str| TableColumn::Text(rows.iter().map(value).collect());
    Table::new([
        ("doc_id", TableColumn::Id(rows.iter().map(|row| row.doc_id).collect())),
        ("url", texts(|row| row.url)),
        ("what", texts(|row| row.what)),
        ("page", texts(|row| row.page.map_or("", PageChange::as_str))),
        ("keep_old_url", texts(|row| row.keep[0])),
        ("keep_new_url", texts(|row| row.keep[1])),
        ("why_old", texts(|row| row.why[0])),
        ("why_new", texts(|row| row.why[1])),
    ])
}

/// Returns an empty list.
pub(super) fn none() -> Table {
    let ids = || TableColumn::Id(Vec::new());
    let texts = || TableColumn::Text(StringTable::new());
    Table::new([("doc_id", ids()), ("url", texts()), ("keep_doc_id", ids()), ("keep_url", texts()), ("why", texts())])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ascending_pages_are_found_as_by_binary_search(
            list in prop::collection::btree_set(0u64..40, 0..30), pages in prop::collection::vec(0u64..40, 0..30)
        ) {
            let (list, mut pages): (Vec<u64>, Vec<u64>) = (list.into_iter().collect(), pages);
            pages.sort_unstable();
            let texts = || (0..list.len()).map(|_| "").collect();
            let table = Table::new([
                ("doc_id", TableColumn::Id(list.clone())),
                ("url", TableColumn::Text(texts())),
                ("keep_doc_id", TableColumn::Id(list.clone())),
                ("keep_url", TableColumn::Text(texts())),
                ("why", TableColumn::Text(texts())),
            ]);
            let mut has = AvoidColumns::from_table(&table).unwrap().has();
            for page in pages {
                prop_assert_eq!(has(page), list.contains(&page), "{}", page);
            }
        }
    }
}
