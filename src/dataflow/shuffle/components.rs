//! Union-find over all workers: those of a process join their edges in the same sets, and spanning forests of processes are
//! merged two by two, never all edges in one place.
//!
//! log2(processes) rounds merge the forests, of fewer edges than there are members, and the labels are shared. One exchange a
//! round, one to share.
//!
//! # Memory
//! 4 bytes a member in each process for the sets, and 4 for the labels.

use std::sync::Arc;

use crate::clusters::union_find::SharedSets;
use crate::engine::Net;
use crate::error::Result;
use crate::ids::Number;

/// For every one of `members` its component, by the smallest member; `edges` are this worker's share.
pub fn components<Member: Number, Label: Number>(
    net: &mut Net<'_>,
    name: &'static str,
    members: usize,
    edges: impl Iterator<Item = (Member, Member)>,
) -> Result<Arc<Vec<Label>>> {
    let sets = net.once(|| SharedSets::new(members))?;
    edges.for_each(|(x, y)| sets.union(x.number(), y.number()));
    net.all_gather(name, ())?;
    let (process, workers) = (net.process(), net.workers_per_process());
    let leads = net.index().is_multiple_of(workers);
    let mut distance = 1;
    while distance < net.processes() {
        let gives = leads && process % (2 * distance) == distance;
        let forest = sets.forest().take(if gives { members } else { 0 }).map(<[u32; 2]>::from);
        let to = process.saturating_sub(distance) * workers;
        let join = |rows: &[[u32; 2]]| {
            rows.iter().for_each(|&[x, y]| sets.union(x, y));
            Ok(())
        };
        net.exchange(name, forest, |_| to, join)?;
        distance *= 2;
    }
    net.share(name, if net.index() == 0 { bytemuck::cast_vec(sets.labels()) } else { Vec::new() })
}
