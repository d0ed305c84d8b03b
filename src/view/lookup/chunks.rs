//! Which pages share enough chunks with a text to be similar to it, as the job would have found.
//!
//! A chunk that is furniture of a site, or all over the crawl, does not count, by the pages of the crawl. A chunk that no page has
//! counts: were the text a page, it would be on one. So for the text of a page of the crawl the answer is that of the batch, and
//! `tests/lookup.rs` holds it against the table `pairs`.
//!
//! # Deviations
//! Guards decide among pairs by what else is similar to both; a text that is no page of the crawl has no links, and stands on no
//! host. So what is answered is every pair that the measure makes, before any guard.

use super::index::Index;
use super::rows::NONE;
use webtwin_base::error::Result;
use webtwin_base::ids::FPrint;
use webtwin_core::overlap::is_pairwise_similar;
use webtwin_job::Overlap;

/// Marks a chunk on several pages: the other bits say where their list is.
pub(super) const LIST: u32 = 1 << 31;
/// Marks a chunk that is furniture.
pub(super) const TEMPLATE: u32 = NONE;
/// Marks a chunk that is all over the crawl.
pub(super) const FREQUENT: u32 = NONE - 1;

/// A page that a text is similar to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedChunks {
    /// Rank of the page: the first of its exact copies.
    pub page: u32,
    /// Chunks that count and that both have.
    pub shared: u32,
    /// Chunks that count, of the larger.
    pub larger: u32,
}

/// What is known of the chunks of a text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Compared {
    /// Chunks of the text that count.
    pub counting: u32,
    /// Chunks that do not: furniture, and those all over the crawl.
    pub left_out: u32,
    /// Similar pages: the largest share of chunks first, then the smallest rank.
    pub near: Vec<SharedChunks>,
}

/// Whether a chunk counts: a chunk that no page has does, and without chunks in the index each one.
///
/// # Errors
/// As [`compare`].
#[cfg(feature = "search")]
pub fn counts(index: &Index, fprint: FPrint) -> Result<bool> {
    let Some(chunks) = index.chunks() else { return Ok(true) };
    let row = super::find::find(chunks.postings.rows(), fprint, |at| Ok(chunks.postings.get(at)?.hash()))?;
    let value = row.map(|row| chunks.postings.get(row)).transpose()?.map(|row| row.value);
    Ok(!matches!(value, Some(TEMPLATE | FREQUENT)))
}

/// Compares a text, given by its distinct chunks, with all pages; `None` if the index has no chunks.
///
/// # Errors
/// [`webtwin_base::error::Error::Input`] when the index is damaged where this looks.
///
/// # Cost
/// A look-up a chunk, and the pages that have each: at most `overlap.max_documents`.
pub fn compare(index: &Index, fprints: &[FPrint], settings: &Overlap) -> Result<Option<Compared>> {
    let Some(chunks) = index.chunks() else { return Ok(None) };
    let postings = &chunks.postings;
    let mut found = Compared::default();
    let mut pages: Vec<u32> = Vec::new();
    for &fprint in fprints {
        let row = super::find::find(postings.rows(), fprint, |at| Ok(postings.get(at)?.hash()))?;
        match row.map(|row| postings.get(row)).transpose()?.map(|row| row.value) {
            Some(TEMPLATE | FREQUENT) => {
                found.left_out += 1;
                continue;
            }
            Some(list) if list & LIST != 0 => {
                let at = (list & !LIST) as usize;
                let length = chunks.lists.get(at)? as usize;
                pages.extend(chunks.lists.range(at + 1..at + 1 + length)?);
            }
            Some(page) => pages.push(page),
            None => {}
        }
        found.counting += 1;
    }
    pages.sort_unstable();
    for same in pages.chunk_by(|x, y| x == y) {
        let (page, shared) = (same[0], same.len() as u32);
        // As many as the page itself has is the most that it could share.
        if shared < settings.min_shared {
            continue;
        }
        let of_page = chunks.counts.get(page as usize)?;
        if is_pairwise_similar(shared, found.counting, of_page, settings) {
            found.near.push(SharedChunks { page, shared, larger: of_page.max(found.counting) });
        }
    }
    let share = |one: &SharedChunks, of: u32| u64::from(one.shared) * u64::from(of);
    found.near.sort_by(|x, y| share(y, x.larger).cmp(&share(x, y.larger)).then(x.page.cmp(&y.page)));
    Ok(Some(found))
}
