//! Union-find over all workers. The workers of a process join their edges in shared sets. The
//! spanning forests of the processes are merged two by two, so no process ever holds all edges.
//!
//! log2(processes) exchanges merge the forests in the first process. A forest has fewer edges than
//! there are members. The first process then distributes the components of several members over all
//! processes, and each process broadcasts the components that it received, 4 bytes for each member.
//! If the first process broadcast all of them, its traffic would grow with the number of processes.
//! Small forests are broadcast unmerged instead, and each process merges them for itself.
//!
//! # Memory
//! Takes 4 bytes for each member in each process for the sets, and 4 for the labels, and 8 for each
//! member of the components that a process was assigned.

use std::sync::Arc;

use crate::shuffle::groups::broadcast_groups;
use webtwin_base::error::Result;
use webtwin_base::ids::{Number, Page};
use webtwin_core::clusters::union_find::SharedSets;
use webtwin_engine::{HashOwners, Net, Owners};

/// Maximum bytes of all forests together if each process broadcasts its own forest.
const SHARED_BYTES: usize = 4 << 20;

/// Returns true if forests of the given number of members are broadcast unmerged. A forest has
/// fewer edges than members.
pub fn are_shared(members: usize, processes: usize) -> bool {
    members.saturating_mul(size_of::<[u32; 2]>() * processes * (processes - 1)) <= SHARED_BYTES
}

/// Returns the component of each of `members`, named by its smallest member. `edges` are this
/// worker's part of all edges.
pub fn components<Member: Number, Label: Number>(
    net: &mut Net<'_>,
    name: &'static str,
    members: usize,
    edges: impl IntoIterator<Item = Result<(Member, Member)>>,
) -> Result<Arc<Vec<Label>>> {
    let sets = net.once_per_process(|| SharedSets::new(members))?;
    // An inner iteration: a `for` loop would take twice as long over edges from nested iterators.
    edges.into_iter().try_for_each(|edge| edge.map(|(x, y)| sets.union(x.number(), y.number())))?;
    // Waits until all workers of this process have joined their edges. Edges of other processes
    // arrive in the exchanges below.
    net.gather_in_process(())?;
    let (process, workers) = (net.process(), net.workers_per_process());
    let leads = net.is_keeper();
    if are_shared(members, net.processes()) {
        let gives = leads && net.processes() > 1;
        let own_edges = sets.forest().take(if gives { members } else { 0 }).map(<[u32; 2]>::from).collect();
        let forests = if net.processes() > 1 { net.broadcast(name, own_edges)? } else { Arc::new(own_edges) };
        let sets = net.take_back(sets)?;
        return net.once_per_process(|| {
            let sets = sets.expect("it has taken them back");
            forests.iter().for_each(|&[x, y]| sets.union(x, y));
            bytemuck::cast_vec(sets.labels())
        });
    }
    let mut distance = 1;
    // Merges the forests pairwise, like a reduction tree that ends at process 0.
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
    // A member that is its own label is the default on every process and need not be sent.
    let labelled = (0..).zip(labels).filter(|(member, label)| member != label);
    let (owners, label_rows) = (HashOwners::new(net), labelled.map(|(member, label)| [label, member]));
    let mut received_rows: Vec<[u32; 2]> = net.exchange(name, label_rows, |row| owners.owner(row[0]))?;
    received_rows.sort_unstable();
    let label_groups = received_rows.chunk_by(|x, y| x[0] == y[0]);
    let groups = label_groups.map(|rows| ([Page(rows[0][0])], rows.iter().map(|row| Page(row[1]))));
    let single_labels = || (0..members).map(Label::from_index).collect::<Vec<Label>>();
    let label = |_: &mut Vec<Label>, [label]: [Page; 1]| label.0;
    broadcast_groups(net, name, groups, single_labels, label, |labels, label, member| {
        labels[member.index()] = Label::from_index(label as usize);
    })
}
