//! Sets of pages that every process knows.

use std::sync::Arc;

use webtwin_base::error::Result;
use webtwin_base::ids::{Number, Page};
use webtwin_core::overlap::prune::PageSet;
use webtwin_engine::Net;

/// Pages of a run whose sets are shared as lists.
const FEW: usize = 1 << 16;

/// Shares pages of all workers as a set, one in each process; the run has `pages` pages. The exchanges are called `name` in messages.
///
/// # Errors
/// Only when the run has ended.
///
/// # Cost
/// Two rounds: each page goes to one worker, and a bit for each of the run to every process. One round of a run of few pages, of which the set's
/// go to every process.
pub fn page_set(
    net: &mut Net<'_>,
    name: &str,
    mine: impl IntoIterator<Item = Page>,
    pages: usize,
) -> Result<Arc<PageSet>> {
    if pages <= FEW {
        let all = net.broadcast(name, mine.into_iter().collect())?;
        return net.once_per_process(|| {
            let mut set = PageSet::new(pages, |_| false);
            all.iter().for_each(|&page| set.insert(page));
            set
        });
    }
    let part = pages.div_ceil(net.peers()).next_multiple_of(64).max(64);
    let first = (net.index() * part).min(pages);
    let mut own = PageSet::new(part.min(pages - first), |_| false);
    let insert = |pages: &[Page]| {
        pages.iter().for_each(|page| own.insert(Page::from_index(page.index() - first)));
        Ok(())
    };
    net.exchange_into(name, mine, |page| page.index() / part, insert)?;
    let words = net.broadcast(name, own.into_words())?;
    net.once_per_process(|| PageSet::of_words(words.to_vec()))
}
