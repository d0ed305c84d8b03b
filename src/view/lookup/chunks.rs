//! Pages that share enough chunks with a text to be similar to it by the job's measure.
//!
//! A chunk that is boilerplate of a site, or frequent in the whole crawl, does not count; this
//! depends on the crawl's pages only. A chunk that no page has counts: if the text were a page,
//! that page would have it. So for the text of a page of the crawl the answer equals that of the
//! batch job, and `tests/lookup.rs` compares it with the table `pairs`.
//!
//! # Deviations
//! Guards decide among pairs by the other pages that are similar to both. A text that is not a page
//! of the crawl has no links and no host. So the answer has all pairs of the measure, before any
//! guard.

use super::index::LookupIndex;
use super::rows::NONE;
use webtwin_base::error::Result;
use webtwin_base::ids::FPrint;
use webtwin_core::overlap::is_pairwise_similar;
use webtwin_job::OverlapSettings;

/// Flag of a chunk on several pages. The other bits are the position of its list.
pub(super) const LIST: u32 = 1 << 31;
/// Value of a chunk that is boilerplate.
pub(super) const TEMPLATE: u32 = NONE;
/// Value of a chunk that is frequent in the whole crawl.
pub(super) const FREQUENT_CHUNK: u32 = NONE - 1;

/// Page that a text is similar to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimilarPage {
    /// Rank of the page: the first of its exact copies.
    pub page: u32,
    /// Number of common chunks that count.
    pub shared: u32,
    /// Number of chunks that count, of the larger text.
    pub larger: u32,
}

/// Comparison of a text's chunks with all pages.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextComparison {
    /// Number of chunks of the text that count.
    pub counting: u32,
    /// Number of chunks of the text that do not count: boilerplate and frequent ones.
    pub left_out: u32,
    /// Similar pages by falling fraction of common chunks, then by rank.
    pub near: Vec<SimilarPage>,
}

/// True if a chunk counts. A chunk that no page has counts, and so do all chunks if the index has
/// none.
///
/// # Errors
/// Returns any error of [`compare`].
#[cfg(feature = "search")]
pub fn counts(index: &LookupIndex, fprint: FPrint) -> Result<bool> {
    let Some(chunks) = index.chunks() else { return Ok(true) };
    let row = super::find::find(chunks.postings.rows(), fprint, |at| Ok(chunks.postings.get(at)?.hash()))?;
    let value = row.map(|row| chunks.postings.get(row)).transpose()?.map(|row| row.value);
    Ok(!matches!(value, Some(TEMPLATE | FREQUENT_CHUNK)))
}

/// Compares a text, given by its distinct chunks, with all pages. Returns `None` if the index has
/// no chunks.
///
/// # Errors
/// Returns [`webtwin_base::error::Error::Input`] if a damaged part of the index is read.
///
/// # Cost
/// One look-up for each chunk, and the pages that have it: at most `overlap.max_documents`.
pub fn compare(index: &LookupIndex, fprints: &[FPrint], settings: &OverlapSettings) -> Result<Option<TextComparison>> {
    let Some(chunks) = index.chunks() else { return Ok(None) };
    let postings = &chunks.postings;
    let mut comparison = TextComparison::default();
    let mut pages: Vec<u32> = Vec::new();
    for &fprint in fprints {
        let row = super::find::find(postings.rows(), fprint, |at| Ok(postings.get(at)?.hash()))?;
        match row.map(|row| postings.get(row)).transpose()?.map(|row| row.value) {
            Some(TEMPLATE | FREQUENT_CHUNK) => {
                comparison.left_out += 1;
                continue;
            }
            Some(list) if list & LIST != 0 => {
                let position = (list & !LIST) as usize;
                let length = chunks.lists.get(position)? as usize;
                pages.extend(chunks.lists.range(position + 1..position + 1 + length)?);
            }
            Some(page) => pages.push(page),
            None => {}
        }
        comparison.counting += 1;
    }
    pages.sort_unstable();
    for run in pages.chunk_by(|x, y| x == y) {
        let (page, shared_chunks) = (run[0], run.len() as u32);
        // Common chunks alone can exclude a page, before its own number of chunks is read.
        if shared_chunks < settings.min_shared {
            continue;
        }
        let page_chunks = chunks.counts.get(page as usize)?;
        if is_pairwise_similar(shared_chunks, comparison.counting, page_chunks, settings) {
            comparison.near.push(SimilarPage {
                page,
                shared: shared_chunks,
                larger: page_chunks.max(comparison.counting),
            });
        }
    }
    let share = |one: &SimilarPage, of: u32| u64::from(one.shared) * u64::from(of);
    comparison.near.sort_by(|x, y| share(y, x.larger).cmp(&share(x, y.larger)).then(x.page.cmp(&y.page)));
    Ok(Some(comparison))
}
