//! Sets of pages that every process knows.

use std::sync::Arc;

use crate::engine::Net;
use crate::error::Result;
use crate::ids::Page;
use crate::overlap::prune::PageSet;

/// These pages of this worker and of the others, once in each process; the run has `pages` pages.
///
/// # Errors
/// Only when the run has ended.
pub fn page_set(net: &mut Net<'_>, mine: Vec<Page>, pages: usize) -> Result<Arc<PageSet>> {
    let all = net.share("pages of a set", mine)?;
    net.once(|| {
        let mut set = PageSet::new(pages, |_| false);
        all.iter().for_each(|&page| set.insert(page));
        set
    })
}
