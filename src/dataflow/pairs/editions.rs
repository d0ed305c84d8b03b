//! Pages that name each other as editions in other languages (`hreflang`), and the similar pairs that are refused for that.
//!
//! As with pages that a person has told apart ([`super::apart`]), no chain of pairs joins them, but for pairs of equal text: what is one
//! text has one language, whatever its pages say. Nothing where no page names any.
//!
//! # Memory
//! As [`super::apart`], where two such pages would come together.

use itertools::Itertools;
use serde::{Deserialize, Serialize};

use crate::pairs::apart::{Divided, divide};
use crate::pairs::kinds::Pairs;
use crate::reading::worker_pages::NOT_KEPT;
use crate::run::Run;
use crate::shuffle::components::components;
use crate::web::Web;
use webtwin_base::error::Result;
use webtwin_base::ids::{ClusterId, Page};

/// What editions in other languages came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditionCounts {
    /// Pages of the crawl that a page names as its edition in another language, once for each page that does.
    pub named: u64,
    /// Pairs that were refused for that.
    pub refused: u64,
    /// Of these, similar pairs of the measures, which join pages of any sites.
    pub refused_similar: u64,
}

impl EditionCounts {
    /// Adds what they came to once more pairs were found.
    pub fn and_then(&mut self, later: EditionCounts) {
        self.refused += later.refused;
    }
}

/// Takes away pairs, such that no chain of the others joins a page with one that it names as its edition in another language, unless
/// equal texts do. Returns what they came to, the same on every worker. `pairs` are this worker's.
///
/// # Errors
/// Those of the disk that pairs may be on; or when the run has ended.
pub(crate) fn part(run: &mut Run<'_, '_>, web: &Web, pairs: &mut Pairs) -> Result<EditionCounts> {
    if !web.links.name_editions {
        return Ok(EditionCounts::default());
    }
    let (net, shelf, crawl) = (&mut *run.net, &*run.shelf, &web.crawl);
    let pages = crawl.directory.len();
    let edges = pairs.rows().map_ok(|(_, pair)| (pair.a, pair.b));
    let labels = components::<Page, ClusterId>(net, "clusters with editions", pages, edges)?;
    let (mut named, mut joined) = (0, Vec::new());
    let all = crawl.directory.by_doc_id()?;
    for &(slot, url) in &shelf.editions {
        let page = shelf.pages[slot as usize];
        let Some(other) = all.page(url).filter(|&other| page != NOT_KEPT && other != page) else { continue };
        named += 1;
        if labels[page] == labels[other] {
            joined.push([page.min(other), page.max(other)]);
        }
    }
    drop(all);
    let [named] = net.all_sum("editions", [named])?;
    let shared = net.broadcast("editions in one cluster", joined)?;
    let joined = net.once_per_process(|| {
        let mut all: Vec<(Page, Page)> = shared.iter().map(|&[a, b]| (a, b)).collect();
        all.sort_unstable();
        all.dedup();
        all
    })?;
    let [_, similar, within_sites] = divide(net, &labels, &joined, pairs, Divided::ButCopies)?;
    Ok(EditionCounts { named, refused: similar + within_sites, refused_similar: similar })
}
