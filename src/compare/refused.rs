//! URLs that the new crawl fetched but did not keep: a page that is gone may only have failed.

use std::collections::BTreeSet;
use std::sync::Mutex;

use bytemuck::{Pod, Zeroable};
use xxhash_rust::xxh3::xxh3_64;

use super::gather::ThreadRows;
use super::sites::{Sites, host_of};
use super::two_crawls::ComparableResults;
use webtwin_base::by_hash::Hashes;
use webtwin_base::error::Result;
use webtwin_base::ids::{DocId, doc_id};
use webtwin_base::threads;
use webtwin_results::rejected::url_in;
use webtwin_spill::Partitions;
use webtwin_storage::manifest::FileEntry;
use webtwin_storage::table_rows::TableFile;

/// Number of rows read at a time.
const ROWS: usize = 1 << 16;

/// Record that was not kept: the page that it would have been, and the index of the reason.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Refused {
    doc_id: DocId,
    reason: u64,
}

/// URLs that the new crawl refused, and hosts from which it fetched anything, according to its
/// result.
pub(super) struct SeenUrls {
    refused: ThreadRows<Refused>,
    reasons: Vec<String>,
    /// Hashes of host names.
    hosts: Hashes,
}

impl SeenUrls {
    /// Returns the reasons why URLs of a range are not pages of the new crawl: by doc id,
    /// ascending, with the alphabetically first reason of each. A range can be taken once.
    ///
    /// # Errors
    /// Returns [`webtwin_base::error::Error::Storage`] if the disk fails.
    pub(super) fn take(&self, range: usize) -> Result<Vec<(DocId, &str)>> {
        let rows = self.refused.take(range)?;
        let mut rows: Vec<_> =
            rows.iter().map(|row| (row.doc_id, self.reasons[row.reason as usize].as_str())).collect();
        rows.sort_unstable();
        rows.dedup_by_key(|row| row.0);
        Ok(rows)
    }

    /// True if the new crawl fetched anything from the host of a site.
    pub(super) fn has_host_of(&self, site: &str) -> bool {
        self.hosts.contains(&xxh3_64(host_of(site).as_bytes()))
    }
}

/// Reads the table `rejected` of the new crawl.
///
/// # Errors
/// Returns [`webtwin_base::error::Error::Input`] if a file differs from the manifest, and any error
/// of the disk.
pub(super) fn read_seen(results: &ComparableResults, sites: &Sites) -> Result<SeenUrls> {
    let entries: Vec<&FileEntry> = results.new.manifest.table("rejected").collect();
    let share = results.pool.part(results.workers as u64 * 8);
    let reasons: Mutex<BTreeSet<String>> = Mutex::default();
    // Collects all reasons in a first pass, so that their indices do not depend on which thread
    // reads which file.
    let outcome = || ();
    let visit_refused = |number: usize, take: &mut dyn FnMut(&str, &str) -> Result<()>| -> Result<()> {
        let file = TableFile::find(&results.new.folder, entries[number])?;
        let open = file.open()?;
        for start in (0..file.rows).step_by(ROWS) {
            let table = open.read(start..file.rows.min(start + ROWS), &["reason", "detail"])?;
            table.text("reason")?.iter().zip(table.text("detail")?).try_for_each(|(x, y)| take(x, y))?;
        }
        Ok(())
    };
    threads::for_each(results.workers, entries.len(), outcome, |(), number| {
        let mut hosts_seen: BTreeSet<String> = BTreeSet::new();
        visit_refused(number, &mut |reason, _| {
            if !hosts_seen.contains(reason) {
                hosts_seen.insert(reason.into());
            }
            Ok(())
        })?;
        reasons.lock().expect("nothing panics while it holds this").extend(hosts_seen);
        Ok(())
    })?;
    let reasons: Vec<String> = reasons.into_inner().expect("no thread has panicked").into_iter().collect();
    let outcome = || (Partitions::new(results.ranges.count(), &share), Hashes::default());
    let outcomes = threads::for_each(results.workers, entries.len(), outcome, |(refused, hosts), number| {
        visit_refused(number, &mut |reason, detail| {
            let Some(url) = url_in(detail) else { return Ok(()) };
            hosts.insert(xxh3_64(host_of(url.origin()).as_bytes()));
            let doc_id = doc_id(url.as_str());
            let reason = reasons.binary_search_by(|one| one.as_str().cmp(reason)).expect("all have been read") as u64;
            refused.push(results.ranges.range(doc_id), Refused { doc_id, reason })
        })
    })?;
    let (refused, host_hashes): (Vec<_>, Vec<Hashes>) = outcomes.into_iter().unzip();
    // Hosts with kept pages have answered too.
    let page_sites = sites.0.values().filter(|site| site.pages[1] > 0);
    let mut hosts: Hashes = page_sites.map(|site| xxh3_64(host_of(&site.name).as_bytes())).collect();
    hosts.extend(host_hashes.into_iter().flatten());
    Ok(SeenUrls { refused: ThreadRows::new(refused), reasons, hosts })
}
