//! Which chunks count: neither those of a site's template, nor those all over the crawl.

use webtwin_base::ids::{HostId, Page};
use webtwin_job::Overlap;

/// Whether a chunk counts, and if not, why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It counts toward similarity.
    Counts,
    /// It is on more than `template_pages` pages of one host: menus, footers, banners.
    Template,
    /// It is on more than `max_documents` pages of the crawl.
    Frequent,
}

/// Judges one chunk, given all pages that have it.
///
/// A chunk that is furniture on one host does not count on any: mirrors carry the furniture of their original.
///
/// # Cost
/// A sort of the pages' hosts; `scratch` is reused between chunks.
pub fn judge(docs: &[Page], hosts: &[HostId], settings: &Overlap, scratch: &mut Vec<HostId>) -> Verdict {
    let few = settings.template_pages as usize;
    if few > 0 && docs.len() > few {
        scratch.clear();
        scratch.extend(docs.iter().map(|&doc| hosts[doc]));
        scratch.sort_unstable();
        if scratch.windows(few + 1).any(|window| window[0] == window[few]) {
            return Verdict::Template;
        }
    }
    if settings.max_documents > 0 && docs.len() > settings.max_documents as usize {
        return Verdict::Frequent;
    }
    Verdict::Counts
}

/// The same of a chunk on more than `max_documents` pages, given how many it is on of each host.
pub fn judge_too_many(on_hosts: &[u32], settings: &Overlap) -> Verdict {
    let few = settings.template_pages;
    if few > 0 && on_hosts.iter().any(|&pages| pages > few) { Verdict::Template } else { Verdict::Frequent }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use webtwin_job::Job;

    proptest! {
        #[test]
        fn a_template_chunk_stands_on_more_pages_of_one_host_than_allowed(
            hosts in prop::collection::vec((0u32..4).prop_map(HostId), 1..20), template_pages in 0u32..6, max_documents in 0u32..20
        ) {
            let settings = Overlap { template_pages, max_documents, ..Job::default().overlap };
            let docs: Vec<Page> = Page::first(hosts.len()).collect();
            let most = (0..4).map(|host| hosts.iter().filter(|&&h| h == HostId(host)).count()).max().unwrap();
            let want = if template_pages > 0 && most > template_pages as usize {
                Verdict::Template
            } else if max_documents > 0 && hosts.len() > max_documents as usize {
                Verdict::Frequent
            } else {
                Verdict::Counts
            };
            prop_assert_eq!(judge(&docs, &hosts, &settings, &mut Vec::new()), want);
            if max_documents > 0 && hosts.len() > max_documents as usize {
                let on_hosts = [0, 1, 2, 3].map(|host| hosts.iter().filter(|&&h| h == HostId(host)).count() as u32);
                prop_assert_eq!(judge_too_many(&on_hosts, &settings), want);
            }
        }
    }
}
