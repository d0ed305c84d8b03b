//! First pass over the pages of both results: collects what the second pass needs to classify a
//! page.
//!
//! Pages are merged by doc id, range by range. A page that only one crawl has becomes a
//! [`UnmatchedPage`] for a move. Candidates are partitioned by path into buckets, which are spilled
//! to the local disk when over budget, and a [`PageNote`] stores the columns of their output row.
//! The pass also counts sites, and partitions hashes of texts and bytes into buckets to count their
//! distinct values.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use bytemuck::Pod;
use xxhash_rust::xxh3::xxh3_64;

use super::avoid::{self, AvoidColumns};
use super::merge::{MergeSide, merge};
use super::moved::UnmatchedPage;
use super::pages::PageContent;
use super::sites::{SiteTally, Sites, site_id, split};
use super::two_crawls::ComparableResults;
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::DocId;
use webtwin_base::threads;
use webtwin_spill::{Array, MemoryPool, Partitions};
use webtwin_storage::table::Table;
use webtwin_storage::texts::StringTable;

/// Number of partitions of candidates and of hashes. A partition is sorted in memory.
const BUCKETS: usize = 64;

/// Index of the old crawl's text hashes in [`FirstPass::hashes`]. The new crawl's hashes follow.
pub(super) const TEXTS: usize = 0;
/// Index of the old crawl's hashes of bytes in [`FirstPass::hashes`]. The new crawl's hashes
/// follow.
pub(super) const BODIES: usize = 2;

/// Partitions that each thread has filled. A bucket is read from the partitions of all threads.
pub struct ThreadRows<T>(Vec<Mutex<Partitions<T>>>);

impl<T: Pod> ThreadRows<T> {
    /// Collects the partitions of all threads.
    pub fn new(thread_rows: impl IntoIterator<Item = Partitions<T>>) -> ThreadRows<T> {
        ThreadRows(thread_rows.into_iter().map(Mutex::new).collect())
    }

    /// Takes the rows of a bucket, in no particular order.
    ///
    /// # Errors
    /// Returns [`Error::Storage`] if the disk fails.
    pub fn take(&self, bucket: usize) -> Result<Vec<T>> {
        let (mut rows, mut partition) = (Vec::new(), Vec::new());
        for buckets in &self.0 {
            buckets.lock().expect("nothing panics while it holds this").take(bucket, &mut partition)?;
            rows.extend_from_slice(&partition);
        }
        Ok(rows)
    }

    /// Puts the rows of a bucket back after [`ThreadRows::take`], so that the bucket can be taken
    /// again.
    ///
    /// # Errors
    /// Returns any error of [`ThreadRows::take`].
    pub fn put_back(&self, bucket: usize, rows: &[T]) -> Result<()> {
        let mut buckets = self.0[0].lock().expect("nothing panics while it holds this");
        rows.iter().try_for_each(|&row| buckets.push(bucket, row))
    }
}

/// Returns the bucket of a hash, out of the given number of buckets.
pub(super) fn bucket_of(hash: u64, buckets: usize) -> usize {
    ((u128::from(hash) * buckets as u128) >> 64) as usize
}

/// Columns of a page that appear in its output row but do not affect its classification.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageNote {
    /// URL of the page.
    pub url: String,
    /// Fetch time, in seconds since 1970.
    pub time: i64,
    /// Size of the page's text, in bytes.
    pub text_bytes: u64,
    /// Number of chunks of the page's text.
    pub chunks: u32,
}

/// Bytes of an encoded note before its URL.
const NOTE_BYTES: usize = 20;

/// Encoded notes, one array for each thread.
pub struct Notes(Vec<Array<u8>>);

impl Notes {
    /// Decodes the note of a candidate, using `scratch` as scratch buffer.
    ///
    /// # Errors
    /// Returns [`Error::Storage`] if the disk fails.
    pub fn decode(&self, candidate: &UnmatchedPage, scratch: &mut Vec<u8>) -> Result<PageNote> {
        let notes = &self.0[(candidate.flags >> UnmatchedPage::FLAGS) as usize];
        let bytes = notes.get(candidate.note, NOTE_BYTES + candidate.url_bytes as usize, scratch)?;
        let (head, url) = bytes.split_at(NOTE_BYTES);
        let number = |from: usize| u64::from_le_bytes(head[from..from + 8].try_into().expect("eight bytes"));
        Ok(PageNote {
            url: String::from_utf8_lossy(url).into_owned(),
            time: number(0) as i64,
            text_bytes: number(8),
            chunks: u32::from_le_bytes(head[16..].try_into().expect("four bytes")),
        })
    }
}

/// Output of the first pass.
pub struct FirstPass {
    /// Candidates for moves, partitioned by path.
    pub unmatched: ThreadRows<UnmatchedPage>,
    /// Number of buckets of `by_path` and `hashes`.
    pub buckets: usize,
    /// Notes of the candidates.
    pub notes: Notes,
    /// Hashes of the texts of the old and the new crawl, then of their bytes. Pages without content
    /// are left out.
    pub hashes: [ThreadRows<u64>; 4],
    /// Sites of both crawls.
    pub sites: Sites,
    /// Number of URLs that both crawls have.
    pub n_common: u64,
}

/// Rows that one thread gathers.
struct Share {
    number: u32,
    unmatched: Partitions<UnmatchedPage>,
    notes: Array<u8>,
    hashes: [Partitions<u64>; 4],
    sites: SiteTally,
    n_common: u64,
}

impl Share {
    fn new(number: u32, pool: &MemoryPool) -> Share {
        Share {
            number,
            unmatched: Partitions::new(BUCKETS, &pool.part(4)),
            notes: Array::new(&pool.part(4)),
            hashes: std::array::from_fn(|_| Partitions::new(BUCKETS, &pool.part(8))),
            sites: SiteTally::default(),
            n_common: 0,
        }
    }

    /// Adds a page that only one crawl has.
    fn candidate(&mut self, page: &PageColumns<'_>, row: usize, new: bool) -> Result<()> {
        let PageContent { exact, simhash, .. } = page.content(row);
        let url = &page.urls[row];
        let (site, path) = split(url);
        let note = self.notes.push(&page.times[row].to_le_bytes())?;
        self.notes.push(&page.text_bytes[row].to_le_bytes())?;
        self.notes.push(&page.chunks[row].to_le_bytes())?;
        self.notes.push(url.as_bytes())?;
        let flags = if new { UnmatchedPage::NEW_FLAG } else { 0 }
            | if simhash.is_some() { UnmatchedPage::HAS_SIMHASH } else { 0 };
        let path = xxh3_64(path.as_bytes());
        let candidate = UnmatchedPage {
            path,
            exact,
            simhash: simhash.unwrap_or_default(),
            site: site_id(site),
            doc_id: page.doc_ids[row],
            note,
            url_bytes: url.len() as u32,
            flags: self.number << UnmatchedPage::FLAGS | flags,
        };
        self.unmatched.push(bucket_of(path, BUCKETS), candidate)
    }
}

/// Columns of `pages` that classify a page or appear in its output row.
pub struct PageColumns<'t> {
    /// Doc ids, strictly ascending.
    pub doc_ids: &'t [DocId],
    /// Canonical URLs.
    pub urls: &'t StringTable,
    /// Fetch times, seconds since 1970.
    pub times: &'t [i64],
    /// Size of the text, in bytes.
    pub text_bytes: &'t [u64],
    /// Number of chunks.
    pub chunks: &'t [u32],
    contents: Contents<'t>,
}

/// Columns of `pages` that describe the content of pages.
pub(super) struct Contents<'t> {
    exact: &'t [u64],
    body: &'t [u64],
    simhash: &'t [u64],
    has_simhash: &'t [bool],
}

impl<'t> Contents<'t> {
    /// Names of these columns in the table `pages`, and of the doc ids.
    pub(super) const NAMES: [&'static str; 5] = ["doc_id", "body", "exact", "simhash", "has_simhash"];

    /// Borrows the columns from a table.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the table lacks a column.
    pub(super) fn from_table(table: &'t Table) -> Result<Contents<'t>> {
        Ok(Contents {
            exact: table.u64("exact")?,
            body: table.u64("body")?,
            simhash: table.u64("simhash")?,
            has_simhash: table.bool("has_simhash")?,
        })
    }

    /// Returns the content of the page in `row`.
    pub(super) fn content(&self, row: usize) -> PageContent {
        let simhash = self.has_simhash[row].then_some(self.simhash[row]);
        PageContent { exact: self.exact[row], body: self.body[row], simhash }
    }
}

impl<'t> PageColumns<'t> {
    /// Names of these columns in the table `pages`.
    pub const NAMES: [&'static str; 9] =
        ["doc_id", "url", "fetch_time", "body", "text_bytes", "chunks", "exact", "simhash", "has_simhash"];

    /// Borrows the columns from a table.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the table lacks a column, or if doc ids do not strictly ascend.
    pub fn from_table(table: &'t Table) -> Result<PageColumns<'t>> {
        let doc_ids = table.u64("doc_id")?;
        if !doc_ids.is_sorted_by(|x, y| x < y) {
            return Err(Error::input("pages", "two rows have the same doc_id; name a result that webtwin wrote"));
        }
        Ok(PageColumns {
            doc_ids,
            urls: table.text("url")?,
            times: table.time("fetch_time")?,
            text_bytes: table.u64("text_bytes")?,
            chunks: table.u32("chunks")?,
            contents: Contents::from_table(table)?,
        })
    }

    /// Returns the content of the page in `row`.
    pub fn content(&self, row: usize) -> PageContent {
        self.contents.content(row)
    }
}

/// Reads the pages of both results once.
///
/// # Errors
/// Returns any error of [`webtwin_results::ranges::RangedTable::read`] and of the disk.
pub(super) fn gather(results: &ComparableResults) -> Result<FirstPass> {
    let next = AtomicU32::new(0);
    let share = || Share::new(next.fetch_add(1, Ordering::Relaxed), &results.pool.part(results.workers as u64));
    let shares = threads::for_each(results.workers, results.ranges.count(), share, |share, range| {
        let tables = results.pages(range)?;
        let [old, new] = [PageColumns::from_table(&tables[0])?, PageColumns::from_table(&tables[1])?];
        // A page that the crawler skipped has not moved, and is not new when it comes back.
        let rows_in_force = if results.recrawl.obeys() { results.in_force(range)? } else { avoid::none() };
        let mut is_avoided = AvoidColumns::from_table(&rows_in_force)?.has();
        for side in merge(old.doc_ids, new.doc_ids) {
            let (url, is_old, is_new) = match side {
                MergeSide::Old(i) => (&old.urls[i], true, false),
                MergeSide::New(j) => (&new.urls[j], false, true),
                MergeSide::Both(i, _) => (&old.urls[i], true, true),
            };
            share.sites.add(split(url).0, is_old, is_new);
            match side {
                MergeSide::Old(i) if !is_avoided(old.doc_ids[i]) => share.candidate(&old, i, false)?,
                MergeSide::New(j) if !is_avoided(new.doc_ids[j]) => share.candidate(&new, j, true)?,
                MergeSide::Old(_) | MergeSide::New(_) => {}
                MergeSide::Both(..) => share.n_common += 1,
            }
        }
        for (number, pages) in [&old, &new].into_iter().enumerate() {
            for row in 0..pages.doc_ids.len() {
                let PageContent { exact, body, .. } = pages.content(row);
                for (hash_kind, hash) in [(TEXTS, exact), (BODIES, body)].into_iter().filter(|one| one.1 != 0) {
                    share.hashes[hash_kind + number].push(bucket_of(hash, BUCKETS), hash)?;
                }
            }
        }
        Ok(())
    })?;
    let n_common = shares.iter().map(|share| share.n_common).sum();
    // A candidate refers to its note by the number of the thread that wrote the note.
    let mut shares = shares;
    shares.sort_unstable_by_key(|share| share.number);
    let mut hashes: [Vec<Partitions<u64>>; 4] = Default::default();
    let (mut unmatched, mut notes, mut tallies) = (Vec::new(), Vec::new(), Vec::new());
    for share in shares {
        unmatched.push(share.unmatched);
        notes.push(share.notes);
        tallies.push(share.sites);
        hashes.iter_mut().zip(share.hashes).for_each(|(all, one)| all.push(one));
    }
    let (unmatched, notes, sites) = (ThreadRows::new(unmatched), Notes(notes), Sites::from_tallies(tallies));
    Ok(FirstPass { unmatched, buckets: BUCKETS, notes, hashes: hashes.map(ThreadRows::new), sites, n_common })
}
