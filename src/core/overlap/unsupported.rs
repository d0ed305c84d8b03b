//! Unsupported pairs: similar pairs that no collection confirms, which must share more chunks than
//! others.
//!
//! A third of the chunks is enough evidence for two versions of a page, because their collections
//! support the pair: the pages around both are copies of each other, too. Two pages of sites that
//! have nothing else in common often share that much if a generator has filled both with its own
//! text, such as the search page of two manuals or the legend of their graphs. So once collections
//! are known, a pair on two hosts *stands alone* if its pages are not in collections of one similar
//! cluster. Such a pair stays only if it shares `overlap.min_resemblance_alone` of the chunks of
//! the larger page.
//!
//! All pages with one text are considered together, and for a page in no collection the pages of
//! its host are considered. No collection can support a page on a host without links, such as the
//! synthetic host of a corpus of texts. Therefore pairs with such a page never stand alone, and
//! neither do pairs within a host.

use std::collections::BTreeSet;

use super::millionths;
use webtwin_base::ids::HostId;
use webtwin_job::OverlapSettings;

/// True if a similar pair shares too few chunks to stand alone. Doubt is added as in
/// [`super::is_pairwise_similar`].
pub fn has_low_resemblance(shared: u32, left_chunks: u32, right_chunks: u32, settings: &OverlapSettings) -> bool {
    let larger = u64::from(left_chunks.max(right_chunks)) + u64::from(settings.doubt);
    u64::from(shared) * 1_000_000 < millionths(settings.min_resemblance_alone) * larger
}

/// Hosts and similar clusters of all pages that have one text, gathered once collections are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextContext<T> {
    /// Hosts of the pages.
    pub hosts: BTreeSet<HostId>,
    /// True if on each of these hosts some page links to a page of the crawl.
    pub links: bool,
    /// Similar clusters of the collections that contain the pages.
    pub similar_clusters: BTreeSet<T>,
}

impl<T: Ord> TextContext<T> {
    /// Gathers the surroundings of a text from (host, true if the host has links, similar cluster)
    /// of each page. A page may occur several times.
    pub fn gather(pages: impl Iterator<Item = (HostId, bool, Option<T>)>) -> TextContext<T> {
        let mut context = TextContext { hosts: BTreeSet::new(), links: true, similar_clusters: BTreeSet::new() };
        for (host, links, similar_cluster) in pages {
            context.hosts.insert(host);
            context.links &= links;
            context.similar_clusters.extend(similar_cluster);
        }
        context
    }
}

/// True if nothing around two texts supports their similarity, although both are on hosts with
/// links.
///
/// # Examples
/// ```
/// use webtwin_base::ids::HostId;
/// use webtwin_core::overlap::unsupported::{TextContext, is_unsupported};
///
/// // The host of each text has links. The second argument is the similar cluster of the page.
/// let text = |host, similar_cluster| {
///     TextContext::gather([(HostId(host), true, similar_cluster)].into_iter())
/// };
/// assert!(!is_unsupported(&text(0, Some(7)), &text(1, Some(7))));
/// assert!(is_unsupported(&text(0, Some(7)), &text(1, None)));
/// // A pair within one host never stands alone.
/// assert!(!is_unsupported(&text(0, Some(7)), &text(0, None)));
/// ```
pub fn is_unsupported<T: Ord>(a: &TextContext<T>, b: &TextContext<T>) -> bool {
    a.links && b.links && a.hosts.is_disjoint(&b.hosts) && a.similar_clusters.is_disjoint(&b.similar_clusters)
}

#[cfg(test)]
mod tests {
    use super::*;
    use webtwin_job::Job;

    #[test]
    fn only_linked_pages_on_two_hosts_without_mirrored_collections_are_unsupported() {
        let page = |host, similar_cluster| (HostId(host), true, similar_cluster);
        let unlinked = |host| (HostId(host), false, None);
        for (a, b, is_alone) in [
            (vec![page(0, Some(1))], vec![page(1, Some(1))], false),
            (vec![page(0, Some(1))], vec![page(1, Some(2))], true),
            (vec![page(0, Some(1))], vec![page(1, None)], true),
            (vec![page(0, None)], vec![page(1, None)], true),
            (vec![page(0, None)], vec![page(0, None)], false),
            (vec![page(0, Some(1))], vec![page(0, Some(2))], false),
            (vec![page(0, None)], vec![unlinked(1)], false),
            // An exact copy supports the page that represents both.
            (vec![page(0, None), page(2, Some(1))], vec![page(1, Some(1))], false),
            (vec![page(0, None), page(2, Some(1))], vec![page(1, Some(2))], true),
            (vec![page(0, None), page(1, None)], vec![page(1, None)], false),
        ] {
            let [x, y] = [&a, &b].map(|pages| TextContext::gather(pages.iter().copied()));
            assert_eq!((is_unsupported(&x, &y), is_unsupported(&y, &x)), (is_alone, is_alone), "{a:?} {b:?}");
        }
    }

    #[test]
    fn pair_is_unsupported_below_both_thresholds() {
        let settings = OverlapSettings { min_resemblance_alone: 0.7, doubt: 2, ..Job::default().overlap };
        assert!(has_low_resemblance(6, 3, 7, &settings) && !has_low_resemblance(7, 8, 3, &settings));
        assert!(!has_low_resemblance(0, 9, 9, &OverlapSettings { min_resemblance_alone: 0.0, ..settings }));
    }
}
