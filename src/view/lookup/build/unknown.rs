//! Columns that explain why a URL is unknown: hosts of the run, and URLs of records that were not
//! kept.

use std::collections::HashMap;

use xxhash_rust::xxh3::xxh3_64;

use super::Making;
use super::sets::WordNumbers;
use super::staged::StagedIndex;
use crate::lookup::rows::HashRow;
use webtwin_base::error::Result;
use webtwin_base::ids::doc_id;
use webtwin_results::rejected::url_in;
use webtwin_results::scan::scan;
use webtwin_spill::Partitions;

/// Reason of records, such as requests, that name the URL of a page but are not a page record.
const NO_PAGE_RECORD: &str = "not_a_page_record";

/// Writes hosts with the number of their pages.
pub(super) fn hosts(pages_of: &HashMap<String, u32>, index_files: &mut StagedIndex) -> Result<()> {
    let mut rows: Vec<HashRow> =
        pages_of.iter().map(|(host, &pages)| HashRow::new(xxh3_64(host.as_bytes()), pages)).collect();
    rows.sort_unstable();
    let mut column = index_files.column("hosts")?;
    column.extend(&rows)?;
    index_files.add("hosts", column)
}

/// Writes the URLs of records that were not kept, unless they are pages of the run. A URL with
/// several reasons gets the one with the smallest number.
pub(super) fn rejected(making: &Making<'_>, words: &mut WordNumbers, index_files: &mut StagedIndex) -> Result<()> {
    let mut urls: Partitions<HashRow> = Partitions::new(making.ranges.count(), &making.pool.part(2));
    scan(&making.run, "rejected", &["reason", "detail"], &mut |batch| {
        for (reason, detail) in batch.text("reason")?.iter().zip(batch.text("detail")?) {
            let url = if reason == NO_PAGE_RECORD { None } else { url_in(detail) };
            let id = url.map(|url| doc_id(url.as_str())).filter(|id| making.doc_ids.binary_search(id).is_err());
            if let Some(id) = id {
                let reason = u32::from(words.number(reason)?);
                urls.push(making.ranges.range(id), HashRow::new(id, reason))?;
            }
        }
        Ok(())
    })?;
    let (mut column, mut rows) = (index_files.column("rejected")?, Vec::new());
    for bucket in 0..urls.count() {
        urls.take(bucket, &mut rows)?;
        rows.sort_unstable();
        rows.dedup_by_key(|row| row.hash());
        column.extend(&rows)?;
    }
    index_files.add("rejected", column)
}
