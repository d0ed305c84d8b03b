//! Refuses similar pairs that would join pages which name each other as editions in other languages
//! (`hreflang`).
//!
//! As with pages that a person marked as different ([`super::apart`]), no chain of pairs may join
//! them, except pairs of equal text: a text has one language, regardless of the declarations of its
//! pages. Nothing is done if no page names an edition.
//!
//! # Memory
//! Takes the memory of [`super::apart`] if two such pages would be joined.

use itertools::Itertools;
use serde::{Deserialize, Serialize};

use crate::pairs::apart::{SeparationRule, divide};
use crate::pairs::kinds::PairsByKind;
use crate::reading::worker_pages::NOT_KEPT;
use crate::run::WorkerRun;
use crate::shuffle::components::components;
use crate::web::WorkerWeb;
use webtwin_base::error::Result;
use webtwin_base::ids::{ClusterId, Page};

/// Counts of editions in other languages, and of the pairs refused for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditionCounts {
    /// Pages of the crawl that a page names as its edition in another language, once for each
    /// naming page.
    pub named: u64,
    /// Pairs that were refused to keep editions apart.
    pub refused: u64,
    /// Refused pairs of the similarity measures, which join pages of any sites.
    pub refused_similar: u64,
}

impl EditionCounts {
    /// Adds the counts of a second division, after more pairs have been found.
    pub fn and_then(&mut self, later: EditionCounts) {
        self.refused += later.refused;
    }
}

/// Removes pairs so that no chain of the remaining pairs joins a page with a page that it names as
/// its edition in another language, unless equal texts join them. Returns the counts, the same on
/// every worker. `pairs` are this worker's pairs.
///
/// # Errors
/// Returns any error of the disk, on which pairs may be, and an error if the run has ended.
pub(crate) fn part(run: &mut WorkerRun<'_, '_>, web: &WorkerWeb, pairs: &mut PairsByKind) -> Result<EditionCounts> {
    if !web.links.name_editions {
        return Ok(EditionCounts::default());
    }
    let (net, local_pages, crawl) = (&mut *run.net, &*run.local_pages, &web.crawl);
    let pages = crawl.directory.len();
    let edges = || pairs.rows().map_ok(|(_, pair)| (pair.a, pair.b));
    let labels = components::<Page, ClusterId, _>(net, "clusters with editions", pages, edges)?;
    let (mut named_editions, mut clustered_pairs) = (0, Vec::new());
    let ids = crawl.directory.by_doc_id()?;
    for &(slot, url) in &local_pages.editions {
        let page = local_pages.pages[slot as usize];
        let Some(other) = ids.page(url).filter(|&other| page != NOT_KEPT && other != page) else { continue };
        named_editions += 1;
        if labels.label(page) == labels.label(other) {
            clustered_pairs.push([page.min(other), page.max(other)]);
        }
    }
    drop(ids);
    let [named_editions] = net.all_sum("editions", [named_editions])?;
    let shared = net.broadcast("editions in one cluster", clustered_pairs)?;
    let distinct_pairs = net.once_per_process(|| {
        let mut page_pairs: Vec<(Page, Page)> = shared.iter().map(|&[a, b]| (a, b)).collect();
        page_pairs.sort_unstable();
        page_pairs.dedup();
        page_pairs
    })?;
    let [_, similar, within_sites] = divide(net, &labels, &distinct_pairs, pairs, SeparationRule::ButCopies)?;
    Ok(EditionCounts { named: named_editions, refused: similar + within_sites, refused_similar: similar })
}
