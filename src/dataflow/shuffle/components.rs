//! Union-find over all workers. The workers of a process join their edges in shared sets. The
//! spanning forests of the processes are merged two by two, so no process ever holds all edges.
//!
//! Only members that have an edge are in the sets and have stored labels: most pages of a crawl
//! have no copy. All processes know the members that have edges, one bit for each member.
//!
//! log2(processes) exchanges merge the forests in the first process. A forest has fewer edges than
//! there are members with edges. The first process then distributes the components over all
//! processes, and each process broadcasts the components that it received, 4 bytes for each member.
//! If the first process broadcast all of them, its traffic would grow with the number of processes.
//! Small forests are broadcast unmerged instead, and each process merges them for itself.
//!
//! # Memory
//! Takes 2 bits for each member in each process; 4 bytes for each member that has an edge, for the
//! sets, and then 4 for the labels; and 8 for each member of the components that a process was
//! assigned. In a run of one process the sets take 4 bytes for each member.

use std::sync::Arc;

use crate::shuffle::groups::broadcast_groups;
use crate::shuffle::page_set::page_set;
use webtwin_base::error::Result;
use webtwin_base::ids::{Number, Page};
use webtwin_core::clusters::labels::SetLabels;
use webtwin_core::clusters::union_find::SharedSets;
use webtwin_core::overlap::prune::{PageSet, Ranks, SharedPageSet};
use webtwin_engine::{HashOwners, Net, Owners};

/// Maximum bytes of all forests together if each process broadcasts its own forest.
const SHARED_BYTES: usize = 4 << 20;

/// Returns true if forests of the given number of members are broadcast unmerged. A forest has
/// fewer edges than members.
pub fn are_shared(members: usize, processes: usize) -> bool {
    members.saturating_mul(size_of::<[u32; 2]>() * processes * (processes - 1)) <= SHARED_BYTES
}

/// Returns the component of each of `members`, named by its smallest member. `edges` returns this
/// worker's part of all edges; it is called twice.
pub fn components<Member: Number, Label: Number, Edges: IntoIterator<Item = Result<(Member, Member)>>>(
    net: &mut Net<'_>,
    name: &'static str,
    members: usize,
    edges: impl Fn() -> Edges,
) -> Result<Arc<SetLabels<Label>>> {
    if net.processes() == 1 {
        return components_in_process(net, members, edges());
    }
    let is_shared = are_shared(members, net.processes());
    let joined = joined_members(net, name, members, is_shared, edges())?;
    let sets = net.once_per_process(|| SharedSets::new(joined.count()))?;
    let union = |(x, y): (Member, Member)| {
        let ranks = [x, y].map(|member| joined.rank(Page(member.number())));
        if let [Some(x), Some(y)] = ranks {
            sets.union(x as u32, y as u32);
        }
    };
    // An inner iteration: a `for` loop would take twice as long over edges from nested iterators.
    edges().into_iter().try_for_each(|edge| edge.map(union))?;
    // Waits until all workers of this process have joined their edges. Edges of other processes
    // arrive in the exchanges below.
    net.gather_in_process(())?;
    if is_shared {
        return shared_components(net, name, members, &joined, &sets);
    }
    let (process, workers) = (net.process(), net.workers_per_process());
    let mut distance = 1;
    // Merges the forests pairwise, like a reduction tree that ends at process 0.
    while distance < net.processes() {
        let gives = net.is_keeper() && process % (2 * distance) == distance;
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
    let roots = sets.map_or(Vec::new(), SharedSets::labels);
    // A member that is its own root is the default on every process and need not be sent.
    let rooted = (0..).zip(roots).filter(|(rank, root)| rank != root);
    let (owners, root_rows) = (HashOwners::new(net), rooted.map(|(rank, root)| [root, rank]));
    let mut received_rows: Vec<[u32; 2]> = net.exchange(name, root_rows, |row| owners.owner(row[0]))?;
    received_rows.sort_unstable();
    let root_groups = received_rows.chunk_by(|x, y| x[0] == y[0]);
    let groups = root_groups.map(|rows| ([Page(rows[0][0])], rows.iter().map(|row| Page(row[1]))));
    let own_roots = || (0..joined.count() as u32).collect::<Vec<u32>>();
    let root = |_: &mut Vec<u32>, [root]: [Page; 1]| root.0;
    let roots = broadcast_groups(net, name, groups, own_roots, root, |roots, root, rank| roots[rank.index()] = root)?;
    let roots = net.take_back(roots)?;
    net.once_per_process(|| SetLabels::from_ranks(members, joined, roots.expect("it has taken them back")))
}

/// Returns the components in a run of one process. Each member is a page of this process, so all of
/// them are in the sets, and edges need be read only once.
fn components_in_process<Member: Number, Label: Number>(
    net: &mut Net<'_>,
    members: usize,
    edges: impl IntoIterator<Item = Result<(Member, Member)>>,
) -> Result<Arc<SetLabels<Label>>> {
    let sets = net.once_per_process(|| SharedSets::new(members))?;
    edges.into_iter().try_for_each(|edge| edge.map(|(x, y)| sets.union(x.number(), y.number())))?;
    let sets = net.take_back(sets)?;
    net.once_per_process(|| {
        let labels = sets.expect("it has taken them back").labels();
        SetLabels::from_list(bytemuck::cast_slice(&labels))
    })
}

/// Returns the members that have an edge to another one: all of them, or those of this process if
/// its forest is broadcast.
fn joined_members<Member: Number>(
    net: &mut Net<'_>,
    name: &'static str,
    members: usize,
    is_shared: bool,
    edges: impl IntoIterator<Item = Result<(Member, Member)>>,
) -> Result<Arc<Ranks>> {
    let ends = net.once_per_process(|| SharedPageSet::new(members))?;
    let insert = |(x, y): (Member, Member)| {
        if x != y {
            [x, y].into_iter().for_each(|member| ends.insert(Page(member.number())));
        }
    };
    edges.into_iter().try_for_each(|edge| edge.map(insert))?;
    net.gather_in_process(())?;
    let joined = if is_shared {
        net.take_back(ends)?.map(SharedPageSet::into_set)
    } else {
        let workers = net.workers_per_process();
        let all_ends = page_set(net, name, ends.part(net.index() % workers, workers), members)?;
        net.take_back(all_ends)?
    };
    net.once_per_process(|| Ranks::new(joined.expect("it has taken it back")))
}

/// Returns the components, of which each process broadcasts its own forest.
fn shared_components<Label: Number>(
    net: &mut Net<'_>,
    name: &'static str,
    members: usize,
    joined: &Ranks,
    sets: &SharedSets,
) -> Result<Arc<SetLabels<Label>>> {
    let mut own_edges: Vec<[Page; 2]> = Vec::new();
    if net.is_keeper() {
        let pages: Vec<Page> = joined.pages().collect();
        own_edges.extend(sets.forest().map(|(x, y)| [pages[x as usize], pages[y as usize]]));
    }
    let forests = net.broadcast(name, own_edges)?;
    net.once_per_process(|| {
        let mut ends = PageSet::new(members, |_| false);
        forests.iter().flatten().for_each(|&page| ends.insert(page));
        let joined = Ranks::new(ends);
        let sets = SharedSets::new(joined.count());
        let rank = |page: Page| joined.rank(page).expect("the ends of all edges are in the set") as u32;
        forests.iter().for_each(|&[x, y]| sets.union(rank(x), rank(y)));
        SetLabels::from_ranks(members, Arc::new(joined), sets.labels())
    })
}
