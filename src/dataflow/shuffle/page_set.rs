//! Sets of pages that every process knows.

use std::sync::Arc;

use webtwin_base::error::Result;
use webtwin_base::ids::Page;
use webtwin_core::overlap::prune::PageSet;
use webtwin_engine::Net;

/// Shares pages of all workers as a set, one in each process; the run has `pages` pages. One exchange, which is called `name` in
/// messages.
///
/// # Errors
/// Only when the run has ended.
pub fn page_set(net: &mut Net<'_>, name: &str, mine: Vec<Page>, pages: usize) -> Result<Arc<PageSet>> {
    let all = net.broadcast(name, mine)?;
    net.once_per_process(|| {
        let mut set = PageSet::new(pages, |_| false);
        all.iter().for_each(|&page| set.insert(page));
        set
    })
}
