//! Rows of the table `pages` for the pages that a report names, and sums over other pages.

use std::collections::HashMap;

use crate::report::contract::{Amount, SetMember};
use webtwin_base::error::Result;
use webtwin_base::ids::DocId;
use webtwin_results::FinishedRun;
use webtwin_results::scan::scan_some;

/// Rows and sums of the table `pages`.
#[derive(Debug, Default)]
pub struct PageRows {
    rows: HashMap<DocId, NamedPage>,
    /// Pages and bytes by the index of the mirror that the pages were given with.
    pub sums: HashMap<u32, Amount>,
}

/// Page that a report names.
#[derive(Debug, Clone)]
pub struct NamedPage {
    /// The page, without a role.
    pub member: SetMember,
    /// Hash of its whole text; 0 if there is none.
    pub exact: u64,
    /// Simhash, if it has one.
    pub simhash: Option<u64>,
    /// Language of its text, a value of `pages.language`; empty if unknown.
    pub language: String,
}

impl PageRows {
    /// Reads the rows of the `ids` pages. Sums up the pages in `summed` by their number; `summed`
    /// ascends by page.
    ///
    /// # Errors
    /// Returns [`webtwin_base::error::Error::Input`] if a column is missing, except `title` and
    /// `language`; and any error of [`scan_some`].
    pub fn read(run: &FinishedRun, mut ids: Vec<DocId>, summed: &[(DocId, u32)]) -> Result<PageRows> {
        ids.sort_unstable();
        ids.dedup();
        let mut page_rows = PageRows::default();
        let is_named = |doc_id: &DocId| ids.binary_search(doc_id).is_ok();
        let columns = ["url", "title", "host", "text_bytes", "chunks", "exact", "simhash", "has_simhash", "language"];
        let any = |batch: &webtwin_storage::table::Table| Ok(batch.u64("doc_id")?.iter().any(is_named));
        scan_some(run, "pages", (&["doc_id", "body_bytes"], &columns), any, &mut |batch| {
            let (doc_ids, bytes) = (batch.u64("doc_id")?, batch.u64("body_bytes")?);
            let Some((&first, &last)) = doc_ids.first().zip(doc_ids.last()) else { return Ok(()) };
            let start = summed.partition_point(|row| row.0 < first);
            for (page, number) in summed[start..].iter().take_while(|row| row.0 <= last) {
                if let Ok(row) = doc_ids.binary_search(page) {
                    let sum = page_rows.sums.entry(*number).or_default();
                    sum.pages += 1;
                    sum.bytes += bytes[row];
                }
            }
            for (row, doc_id) in doc_ids.iter().enumerate().filter(|of| is_named(of.1)) {
                let member = SetMember {
                    id: *doc_id,
                    url: batch.text("url")?[row].to_string(),
                    title: batch.text("title").map_or_else(|_| String::new(), |titles| titles[row].to_string()),
                    host: batch.text("host")?[row].to_string(),
                    role: String::new(),
                    text_bytes: batch.u64("text_bytes")?[row],
                    chunks: u64::from(batch.u32("chunks")?[row]),
                };
                let simhash = batch.bool("has_simhash")?[row].then_some(batch.u64("simhash")?[row]);
                let language = batch.text("language").map_or_else(|_| String::new(), |codes| codes[row].to_string());
                let exact = batch.u64("exact")?[row];
                page_rows.rows.insert(*doc_id, NamedPage { member, exact, simhash, language });
            }
            Ok(())
        })?;
        Ok(page_rows)
    }

    /// Returns a page, if it was named and exists.
    pub fn get(&self, page: DocId) -> Option<&NamedPage> {
        self.rows.get(&page)
    }
}
