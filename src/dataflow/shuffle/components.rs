//! Union-find over all workers: those of a process join their edges in the same sets, and spanning forests of processes are
//! merged two by two, never all edges in one place.
//!
//! log2(processes) exchanges merge the forests, of fewer edges than there are members, in the first process. It deals the components of
//! several members out to all, and each tells the others those that it was dealt, 4 bytes a member: were the first to tell all of them, what it
//! sends would grow with the number of processes. Small forests are shared as they are, and each process merges them for itself.
//!
//! # Memory
//! 4 bytes a member in each process for the sets, and 4 for the labels; 8 for those that a process was dealt.

use std::sync::Arc;

use crate::shuffle::groups::broadcast_groups;
use webtwin_base::error::Result;
use webtwin_base::ids::{Number, Page};
use webtwin_core::clusters::union_find::SharedSets;
use webtwin_engine::{HashOwners, Net, Owners};

/// Most bytes that forests take when each process sends its own to all others.
const SHARED_BYTES: usize = 4 << 20;

/// Whether forests of so many members are shared as they are, of which none has as many edges as there are members.
pub fn are_shared(members: usize, processes: usize) -> bool {
    members.saturating_mul(size_of::<[u32; 2]>() * processes * (processes - 1)) <= SHARED_BYTES
}

/// For every one of `members` its component, by the smallest member; `edges` are this worker's share.
pub fn components<Member: Number, Label: Number>(
    net: &mut Net<'_>,
    name: &'static str,
    members: usize,
    edges: impl IntoIterator<Item = Result<(Member, Member)>>,
) -> Result<Arc<Vec<Label>>> {
    let sets = net.once_per_process(|| SharedSets::new(members))?;
    // As a loop from without, it would take twice as long where edges are made of nested iterators.
    edges.into_iter().try_for_each(|edge| edge.map(|(x, y)| sets.union(x.number(), y.number())))?;
    // All workers of this process have joined theirs; what others do shows in what they send.
    net.gather_in_process(())?;
    let (process, workers) = (net.process(), net.workers_per_process());
    let leads = net.is_keeper();
    if are_shared(members, net.processes()) {
        let gives = leads && net.processes() > 1;
        let mine = sets.forest().take(if gives { members } else { 0 }).map(<[u32; 2]>::from).collect();
        let forests = if net.processes() > 1 { net.broadcast(name, mine)? } else { Arc::new(mine) };
        let sets = net.take_back(sets)?;
        return net.once_per_process(|| {
            let sets = sets.expect("it has taken them back");
            forests.iter().for_each(|&[x, y]| sets.union(x, y));
            bytemuck::cast_vec(sets.labels())
        });
    }
    let mut distance = 1;
    while distance < net.processes() {
        let gives = leads && process % (2 * distance) == distance;
        let forest = sets.forest().take(if gives { members } else { 0 }).map(<[u32; 2]>::from);
        let to = process.saturating_sub(distance) * workers;
        let join = |rows: &[[u32; 2]]| {
            rows.iter().for_each(|&[x, y]| sets.union(x, y));
            Ok(())
        };
        net.exchange_into(name, forest, |_| to, join)?;
        distance *= 2;
    }
    let sets = net.take_back(sets)?.filter(|_| net.index() == 0);
    let labels = sets.map_or(Vec::new(), SharedSets::labels);
    let others = (0..).zip(labels).filter(|(member, label)| member != label);
    let (owners, dealt) = (HashOwners::new(net), others.map(|(member, label)| [label, member]));
    let mut dealt: Vec<[u32; 2]> = net.exchange(name, dealt, |row| owners.owner(row[0]))?;
    dealt.sort_unstable();
    let of_label = dealt.chunk_by(|x, y| x[0] == y[0]);
    let groups = of_label.map(|rows| ([Page(rows[0][0])], rows.iter().map(|row| Page(row[1]))));
    let alone = || (0..members).map(Label::from_index).collect::<Vec<Label>>();
    let label = |_: &mut Vec<Label>, [label]: [Page; 1]| label.0;
    broadcast_groups(net, name, groups, alone, label, |labels, label, member| {
        labels[member.index()] = Label::from_index(label as usize);
    })
}
