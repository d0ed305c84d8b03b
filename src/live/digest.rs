//! A page as the index takes it: what is left of its text, title and URL once both have been read.

use xxhash_rust::xxh3::xxh3_64;

use webtwin_base::error::Result;
use webtwin_base::ids::{DocId, FPrint, doc_id, splitmix64};
use webtwin_core::chunks::{ChunkRecipe, bytes, instead_of_text};
use webtwin_core::text::notices::Notices;
use webtwin_job::Job;
use webtwin_pages::html::Extractor;
use webtwin_pages::record::{RawPage, Reason, RefusedRecord};
use webtwin_pages::url::CanonicalUrl;

/// Chunks of a page that are compared whatever its length: all those of a short page.
pub(crate) const LEAST_SAMPLE: usize = 32;

/// Of a longer page the chunks are compared whose hash is below this: a quarter of them.
const SAMPLED_BELOW: u64 = 1 << 62;

/// Most chunks of a page that are compared.
const MOST_SAMPLE: usize = 1 << 12;

/// A page as the index takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageDigest {
    /// Canonical URL.
    pub url: String,
    /// Hash of the URL.
    pub doc_id: DocId,
    /// Seconds since 1970; 0 when unknown.
    pub fetch_time: i64,
    /// Fingerprint of its whole text; of its bytes where the text is too short. 0 for a page without content.
    pub exact: u64,
    /// Hash of its notice of nothing, or else of its title: pages of a host that have it in common may be one page. 0 for neither.
    pub title: u32,
    /// Notice that there is nothing at its URL ([`webtwin_core::text::notices`]); 0 for none.
    pub notice: u64,
    /// Hashes of the chunks that it is compared by, ascending: the smallest of all, so that the samples of two pages agree on what
    /// both pages have.
    pub sample: Vec<u64>,
}

/// Makes digests, one page after another, as a run with the same job reads them; one for each thread.
///
/// # Examples
/// ```
/// use webtwin_job::Job;
/// use webtwin_live::Digester;
/// use webtwin_pages::record::{Form, RawPage};
///
/// let mut digester = Digester::new(&Job::default());
/// let mut exact = |url, html: &str| {
///     let page = RawPage::new(url, html.as_bytes().to_vec(), Form::Html);
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
    /// Reads pages as a job does.
    pub fn new(job: &Job) -> Digester {
        Digester {
            extractor: Extractor::following(&job.input.limits, &job.links),
            recipe: ChunkRecipe::new(&job.chunks),
            notices: Notices::default(),
            min_text: job.chunks.min_text as usize,
            fprints: Vec::new(),
        }
    }

    /// Returns the digest of a page, or why the page is refused.
    ///
    /// # Errors
    /// Those of a helper process that reads a document made for paper.
    ///
    /// # Cost
    /// One pass over the body, and a sort of its chunks.
    pub fn digest(&mut self, page: &RawPage) -> Result<std::result::Result<PageDigest, RefusedRecord>> {
        let refused = |reason, detail: String| {
            let refused = RefusedRecord::new(page.offset, reason, detail);
            Ok(Err(RefusedRecord { bytes: page.length, ..refused }))
        };
        let url = match CanonicalUrl::parse(&page.url) {
            Ok(url) => url,
            Err(why) => {
                let url: String = page.url.chars().take(200).collect();
                return refused(Reason::BadUrl, format!("{why}: {url}"));
            }
        };
        let extracted = match self.extractor.page(page, &url)? {
            Ok(extracted) => extracted,
            Err((reason, detail)) => return refused(reason, detail),
        };
        let document = self.recipe.fingerprint(extracted.text, &mut self.fprints);
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

/// Returns the smallest hashes of chunks: those below a quarter of all hashes, and at least [`LEAST_SAMPLE`].
pub(crate) fn sample(fprints: &[FPrint]) -> Vec<u64> {
    let mut hashes: Vec<u64> = fprints.iter().map(|&fprint| splitmix64(fprint)).collect();
    hashes.sort_unstable();
    let below = hashes.partition_point(|&hash| hash < SAMPLED_BELOW);
    hashes.truncate(below.clamp(LEAST_SAMPLE, MOST_SAMPLE));
    hashes.shrink_to_fit();
    hashes
}

/// Returns whether a sample may lack chunks of its page.
pub(crate) fn is_cut(sample: &[u64]) -> bool {
    sample.len() >= LEAST_SAMPLE
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn samples_agree_on_what_two_pages_share(ours in 0_u64..400, theirs in 0_u64..400, shared in 0_u64..400) {
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
