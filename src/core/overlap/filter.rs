//! Filter of chunks: excludes chunks of a site's template and chunks that are frequent in the whole
//! crawl.

use webtwin_base::ids::{HostId, Page};
use webtwin_job::OverlapSettings;

/// Classification of a chunk: it counts, or the reason why it does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkVerdict {
    /// The chunk counts toward similarity.
    Counts,
    /// The chunk is on more than `template_pages` pages of one host: menus, footers, banners.
    Template,
    /// The chunk is on more than `max_documents` pages of the crawl.
    Frequent,
}

/// Classifies one chunk, given all pages that have it.
///
/// A chunk that is boilerplate on one host does not count on any host, because mirrors contain the
/// boilerplate of their original.
///
/// # Cost
/// A sort of the pages' hosts; `scratch` is reused between chunks.
///
/// # Examples
/// ```
/// use webtwin_base::ids::{HostId, Page};
/// use webtwin_core::overlap::filter::{ChunkVerdict, judge};
/// use webtwin_job::OverlapSettings;
///
/// let settings = OverlapSettings { template_pages: 2, max_documents: 3, ..OverlapSettings::of_papers(1) };
/// let hosts = [0, 0, 0, 1, 2].map(HostId);
/// let verdict = |docs: &[u32]| {
///     let docs: Vec<Page> = docs.iter().copied().map(Page).collect();
///     judge(&docs, &hosts, &settings, &mut Vec::new())
/// };
/// assert_eq!(verdict(&[0, 1, 3]), ChunkVerdict::Counts);
/// assert_eq!(verdict(&[0, 1, 2]), ChunkVerdict::Template);
/// assert_eq!(verdict(&[0, 1, 3, 4]), ChunkVerdict::Frequent);
/// ```
pub fn judge(docs: &[Page], hosts: &[HostId], settings: &OverlapSettings, scratch: &mut Vec<HostId>) -> ChunkVerdict {
    let max_pages = settings.template_pages as usize;
    if max_pages > 0 && docs.len() > max_pages {
        scratch.clear();
        scratch.extend(docs.iter().map(|&doc| hosts[doc]));
        scratch.sort_unstable();
        if scratch.windows(max_pages + 1).any(|window| window[0] == window[max_pages]) {
            return ChunkVerdict::Template;
        }
    }
    if settings.max_documents > 0 && docs.len() > settings.max_documents as usize {
        return ChunkVerdict::Frequent;
    }
    ChunkVerdict::Counts
}

/// Classifies a chunk on more than `max_documents` pages, given the number of its pages on each
/// host.
pub fn judge_too_many(pages_by_host: &[u32], settings: &OverlapSettings) -> ChunkVerdict {
    let max_pages = settings.template_pages;
    if max_pages > 0 && pages_by_host.iter().any(|&pages| pages > max_pages) {
        ChunkVerdict::Template
    } else {
        ChunkVerdict::Frequent
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use webtwin_job::Job;

    proptest! {
        #[test]
        fn template_chunk_is_on_more_pages_of_one_host_than_allowed(
            hosts in prop::collection::vec((0u32..4).prop_map(HostId), 1..20), template_pages in 0u32..6, max_documents in 0u32..20
        ) {
            let settings = OverlapSettings { template_pages, max_documents, ..Job::default().overlap };
            let docs: Vec<Page> = Page::first(hosts.len()).collect();
            let max_on_host = (0..4).map(|host| hosts.iter().filter(|&&h| h == HostId(host)).count()).max().unwrap();
            let expected = if template_pages > 0 && max_on_host > template_pages as usize {
                ChunkVerdict::Template
            } else if max_documents > 0 && hosts.len() > max_documents as usize {
                ChunkVerdict::Frequent
            } else {
                ChunkVerdict::Counts
            };
            prop_assert_eq!(judge(&docs, &hosts, &settings, &mut Vec::new()), expected);
            if max_documents > 0 && hosts.len() > max_documents as usize {
                let pages_by_host = [0, 1, 2, 3].map(|host| hosts.iter().filter(|&&h| h == HostId(host)).count() as u32);
                prop_assert_eq!(judge_too_many(&pages_by_host, &settings), expected);
            }
        }
    }
}
