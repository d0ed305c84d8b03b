//! Sets of pages that every process holds.

use std::sync::Arc;

use webtwin_base::error::Result;
use webtwin_base::ids::{Number, Page};
use webtwin_core::overlap::prune::PageSet;
use webtwin_engine::Net;

/// Maximum number of pages of a run whose page sets are broadcast as lists.
const MAX_LISTED_PAGES: usize = 1 << 16;

/// Broadcasts a set of pages, of which each worker contributes some. Each process holds one copy.
/// The run has `pages` pages. Messages call the exchanges `name`.
///
/// # Errors
/// Returns an error only if the run has ended.
///
/// # Cost
/// Takes two rounds: each page of the set is sent to one worker, and then one bit for each page of
/// the run to every process. In a run with few pages, takes one round, in which the pages of the
/// set are sent to every process.
pub fn page_set(
    net: &mut Net<'_>,
    name: &str,
    own_pages: impl IntoIterator<Item = Page>,
    pages: usize,
) -> Result<Arc<PageSet>> {
    if pages <= MAX_LISTED_PAGES {
        let all_pages = net.broadcast(name, own_pages.into_iter().collect())?;
        return net.once_per_process(|| {
            let mut set = PageSet::new(pages, |_| false);
            all_pages.iter().for_each(|&page| set.insert(page));
            set
        });
    }
    let part = pages.div_ceil(net.peers()).next_multiple_of(64).max(64);
    let first = (net.index() * part).min(pages);
    let mut range_pages = PageSet::new(part.min(pages - first), |_| false);
    let insert = |pages: &[Page]| {
        pages.iter().for_each(|page| range_pages.insert(Page::from_index(page.index() - first)));
        Ok(())
    };
    net.exchange_into(name, own_pages, |page| page.index() / part, insert)?;
    let words = net.broadcast(name, range_pages.into_words())?;
    net.once_per_process(|| PageSet::of_words(words.to_vec()))
}
