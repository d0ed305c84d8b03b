//! Digest of a page: what the index keeps of its text, title and URL.

use xxhash_rust::xxh3::xxh3_64;

use webtwin_base::error::Result;
use webtwin_base::ids::{DocId, FPrint, doc_id, splitmix64};
use webtwin_core::chunks::{ChunkRecipe, bytes, instead_of_text};
use webtwin_core::text::notices::Notices;
use webtwin_job::Job;
use webtwin_pages::html::Extractor;
use webtwin_pages::record::{RawPage, RefusedRecord};
use webtwin_pages::url::{CanonicalUrl, refusal_reason};

/// Minimum size of a sample, in chunks. A page with fewer chunks is compared by all of them.
pub(crate) const MIN_SAMPLE: usize = 32;

/// Upper limit of sampled hashes: of a longer page, chunks with a hash below this are compared, a
/// quarter of all.
const MAX_SAMPLED_HASH: u64 = 1 << 62;

/// Maximum size of a sample, in chunks.
const MAX_SAMPLE: usize = 1 << 12;

/// Digest of a page, as the index stores and compares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageDigest {
    /// Canonical URL of the page.
    pub url: String,
    /// Hash of the URL.
    pub doc_id: DocId,
    /// Time of the fetch, in seconds since 1970; 0 if unknown.
    pub fetch_time: i64,
    /// Fingerprint of the whole text, or of the raw bytes if the text is too short. 0 for a page
    /// without content.
    pub exact: u64,
    /// Hash of the notice that there is nothing at the URL, or else of the title; 0 for neither.
    /// Pages of one host with equal values may be one page.
    pub title: u32,
    /// Hash of the notice that there is nothing at the URL ([`webtwin_core::text::notices`]); 0 for
    /// none.
    pub notice: u64,
    /// Sample of the hashes of the page's chunks, ascending. It has the smallest hashes of all, so
    /// that the samples of two pages agree about the chunks that both pages have.
    pub sample: Vec<u64>,
}

/// Computes digests of pages, one after another, in the way in which a run with the same job reads
/// the pages. Each thread needs its own digester.
///
/// # Examples
/// ```
/// use webtwin_job::Job;
/// use webtwin_live::Digester;
/// use webtwin_pages::record::{PageForm, RawPage};
///
/// let mut digester = Digester::new(&Job::default());
/// let mut exact = |url, html: &str| {
///     let page = RawPage::new(url, html.as_bytes().to_vec(), PageForm::Html);
///     digester.digest(&page).unwrap().unwrap().exact
/// };
/// // Equal texts have equal digests, whatever the markup.
/// let text = "Chapter one of the manual, which is long enough to be compared. ".repeat(20);
/// let first = exact("http://a.example/1", &format!("<p>{text}</p>"));
/// assert_eq!(first, exact("http://b.example/1", &format!("<div><b>{text}</b></div>")));
/// ```
pub struct Digester {
    extractor: Extractor,
    recipe: ChunkRecipe,
    notices: Notices,
    min_text: usize,
    fprints: Vec<FPrint>,
}

impl Digester {
    /// Creates a digester that reads pages by the settings of a job.
    pub fn new(job: &Job) -> Digester {
        Digester {
            extractor: Extractor::following(&job.input.limits, &job.links),
            recipe: ChunkRecipe::new(&job.chunks),
            notices: Notices::default(),
            min_text: job.chunks.min_text as usize,
            fprints: Vec::new(),
        }
    }

    /// Returns the digest of a page, or the reason for which the page is refused.
    ///
    /// # Errors
    /// Returns any error of the helper process that reads PDF and PostScript documents.
    ///
    /// # Cost
    /// One pass over the body, and one sort of its chunks.
    pub fn digest(&mut self, page: &RawPage) -> Result<std::result::Result<PageDigest, RefusedRecord>> {
        let refused = |reason, detail: String| {
            let refused = RefusedRecord::new(page.offset, reason, detail);
            Ok(Err(RefusedRecord { bytes: page.length, ..refused }))
        };
        let url = match CanonicalUrl::parse(&page.url) {
            Ok(url) => url,
            Err(why) => {
                let url: String = page.url.chars().take(200).collect();
                return refused(refusal_reason(why), format!("{why}: {url}"));
            }
        };
        let extracted = match self.extractor.page(page, &url)? {
            Ok(extracted) => extracted,
            Err((reason, detail)) => return refused(reason, detail),
        };
        let document = self.recipe.fingerprint(extracted.text, &mut self.fprints);
        // A text this short does not identify a page, so the raw bytes do.
        let exact = match extracted.text.len() < self.min_text {
            true => instead_of_text(bytes(&page.body)),
            false => document.exact,
        };
        let title: String = extracted.title.split_whitespace().flat_map(|word| [word, " "]).collect();
        let title = if title.is_empty() { 0 } else { (xxh3_64(title.as_bytes()) as u32).max(1) };
        let notice = self.notices.notice(if document.exact == 0 { "" } else { extracted.text }, url.as_str());
        let title = if notice == 0 { title } else { (notice as u32).max(1) };
        Ok(Ok(PageDigest {
            doc_id: doc_id(url.as_str()),
            url: url.as_str().to_string(),
            fetch_time: page.fetch_time,
            exact,
            title,
            notice,
            sample: sample(&self.fprints),
        }))
    }
}

/// Returns the sample of a page: its smallest chunk hashes, those in the lowest quarter of the
/// range of hashes. It has at least [`MIN_SAMPLE`] hashes if the page has as many, and at most
/// [`MAX_SAMPLE`].
pub(crate) fn sample(fprints: &[FPrint]) -> Vec<u64> {
    let mut hashes: Vec<u64> = fprints.iter().map(|&fprint| splitmix64(fprint)).collect();
    hashes.sort_unstable();
    let sample_size = hashes.partition_point(|&hash| hash < MAX_SAMPLED_HASH);
    hashes.truncate(sample_size.clamp(MIN_SAMPLE, MAX_SAMPLE));
    hashes.shrink_to_fit();
    hashes
}

/// Returns true if a sample may lack chunks of its page.
pub(crate) fn is_cut(sample: &[u64]) -> bool {
    sample.len() >= MIN_SAMPLE
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn samples_agree_on_shared_chunks_of_two_pages(ours in 0_u64..400, theirs in 0_u64..400, shared in 0_u64..400) {
            let page = |own: u64, from: u64| -> Vec<u64> { (0..shared).chain(from..from + own).collect() };
            let (a, b) = (sample(&page(ours, 10_000)), sample(&page(theirs, 20_000)));
            let limit = a.last().min(b.last()).copied().unwrap_or(0);
            let common: Vec<u64> = (0..shared).map(splitmix64).filter(|hash| *hash <= limit).collect();
            for hash in common {
                prop_assert!(a.binary_search(&hash).is_ok() && b.binary_search(&hash).is_ok());
            }
        }
    }
}
