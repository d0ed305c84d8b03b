//! Union-find over all workers: spanning forests are merged two by two, never all edges in one place.
//!
//! Each worker joins its own edges and is left with a forest of fewer edges than there are members; log2(peers) rounds
//! merge forests pairwise, and the labels are shared. One exchange a round, one to share.
//!
//! # Memory
//! 4 bytes a member in each worker, and 4 in each process for the labels; a worker that has given its forest away has
//! forgotten it before the labels are shared.

use std::sync::Arc;

use crate::clusters::union_find::UnionFind;
use crate::engine::Net;
use crate::error::Result;

/// For every one of `members` the smallest member of its component; `edges` are this worker's share.
pub fn components(
    net: &mut Net<'_>,
    name: &'static str,
    members: usize,
    edges: impl Iterator<Item = (u32, u32)>,
) -> Result<Arc<Vec<u32>>> {
    let mut sets = UnionFind::new(members);
    edges.for_each(|(x, y)| _ = sets.union(x, y));
    let (me, peers) = (net.index(), net.peers());
    let mut distance = 1;
    while distance < peers {
        if me % (2 * distance) == distance {
            let mut forest = sets.forest();
            let source =
                |send: &mut dyn FnMut([u32; 2])| forest.by_ref().take(1 << 15).map(|(x, y)| send([x, y])).count() > 0;
            net.exchange(name, source, move |_| me - distance, |_| {})?;
            drop(forest);
            sets = UnionFind::new(0);
        } else {
            let joined = |rows: &[[u32; 2]]| rows.iter().for_each(|&[x, y]| _ = sets.union(x, y));
            net.exchange(name, |_| false, |_| me, joined)?;
        }
        distance *= 2;
    }
    let labels = if me == 0 { sets.labels() } else { Vec::new() };
    net.share(name, labels)
}
