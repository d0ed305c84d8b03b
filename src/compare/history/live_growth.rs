//! Cluster growing as joins that are kept up to date: `LinkSummary`, the trivial cluster graph (TCG) and its components while pages,
//! trivial clusters and links come and go. A differential dataflow over LINK and TRIVIAL.
//!
//! ```text
//! LINK(p, q) ── join TRIVIAL(p, Ri) ── join TRIVIAL(q, Rj) ──▶ reduce by (Ri, Rj): s, d ── join a = |Ri| ── join b = |Rj| ─┐
//!              ┌──────────────────────────────────────────────────────────────────────── LinkSummary(Ri, Rj, a, b, s, d) ◀─┘
//!              └─ merge condition ──▶ edges of the TCG ── iterate: the smallest cluster that is reached ──▶ components
//! ```
//!
//! A run makes growth anew ([`webtwin_core::clusters`]): it ends between crawls, and to sort the links costs a fiftieth of loading what is
//! arranged here. This is for a process that lives from crawl to crawl and takes edits of a few pages at a time: an edit costs what it
//! changes, some 0.1 ms a page with its links, so one of a hundredth of the pages costs more than making all anew.
//! `webtwin reproduce bench-live-growth` measures that, and that both agree.
//!
//! # Cost
//! Some hundred bytes of memory for each link between trivial clusters, of which a process holds a few tens of millions. A component
//! of n clusters in a row takes n rounds, when it is loaded and when its smallest cluster leaves it.
//!
//! # Source
//! \[CSG00\] Figure 8 for the joins, Algorithm 3.1 steps 1 to 4 for their use; [`webtwin_core::clusters::link_summary`] and
//! [`webtwin_core::clusters::merge`] for what they mean.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use differential_dataflow::VecCollection;
use differential_dataflow::consolidation::consolidate;
use differential_dataflow::input::{Input, InputSession};
use differential_dataflow::lattice::Lattice;
use differential_dataflow::operators::iterate::Iterate;
use timely::WorkerConfig;
use timely::communication::Allocator;
use timely::communication::allocator::thread::Thread;
use timely::dataflow::operators::probe::Handle;
use timely::progress::Timestamp;
use timely::worker::Worker;

use webtwin_base::ids::{ClusterId, ComponentId, HostId, Number, Page};
use webtwin_core::clusters::link_summary::{LinkSummary, cluster_links, link_summary};
use webtwin_core::clusters::merge::may_merge;
use webtwin_core::clusters::union_find::{UnionFind, sizes};
use webtwin_job::MergeCondition;

/// How often a row is there, or comes (+1) and goes (-1).
type Times = i32;

/// What rows are joined by: a page, a trivial cluster, or two of them.
type Key = [u32; 2];

/// What else a row says.
type Said = [u32; 4];

/// Rows of one type in all streams, so that each operator is compiled once.
type Rows<'scope, T> = VecCollection<'scope, T, (Key, Said), Times>;

type Join = Box<dyn FnMut(&Key, &Said, &Said) -> Option<(Key, Said)>>;
type Reduce = Box<dyn FnMut(&Key, &[(&Said, Times)]) -> Said>;
type Each = Box<dyn FnMut((Key, Said)) -> Option<(Key, Said)>>;

/// What comes (+1) and goes (-1).
#[derive(Debug, Clone, Default)]
pub struct Edit {
    /// Pages with their trivial clusters.
    pub trivial: Vec<((Page, ClusterId), Times)>,
    /// Links between pages, each there once at most.
    pub links: Vec<((Page, Page), Times)>,
}

/// What came and went for an edit, ascending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grown {
    /// Rows of `LinkSummary`.
    pub link_summary: Vec<(LinkSummary, Times)>,
    /// Trivial clusters that have an edge of the TCG, with their components.
    pub components: Vec<((ClusterId, ComponentId), Times)>,
}

/// Changes of rows that nobody has asked for yet.
type Told = Rc<RefCell<Vec<((Key, Said), Times)>>>;

/// The dataflow, on a worker of its own in the calling thread.
pub struct LiveGrowth {
    worker: Worker,
    trivial: InputSession<u32, (Key, Said), Times>,
    links: InputSession<u32, (Key, Said), Times>,
    done: [Handle<u32>; 2],
    told: [Told; 2],
    edits: u32,
}

impl LiveGrowth {
    /// Builds the dataflow, in which there is nothing yet.
    ///
    /// With `single_site` clusters of one page are not linked to, as [`webtwin_core::clusters::link_summary::cluster_links`] has it; the
    /// links that are given are those within hosts then.
    pub fn new(merge: MergeCondition, single_site: bool) -> LiveGrowth {
        let mut worker = Worker::new(WorkerConfig::default(), Allocator::Thread(Thread::default()), None);
        let told = [Told::default(), Told::default()];
        let [of_summary, of_components] = told.clone();
        let (trivial, links, done) = worker.dataflow::<u32, _, _>(|scope| {
            let (trivial_in, trivial) = scope.new_collection::<(Key, Said), Times>();
            let (links_in, links) = scope.new_collection::<(Key, Said), Times>();

            let from = joined(links, trivial.clone(), |&[p, _], &[q, ..], &[ri, ..]| Some(([q, 0], [ri, p, 0, 0])));
            let between = joined(from, trivial.clone(), |&[q, _], &[ri, p, ..], &[rj, ..]| {
                (ri != rj).then_some(([ri, rj], [p, q, 0, 0]))
            });
            let counted = reduced(between, |_, links| {
                // They ascend by source.
                let mut targets: Vec<u32> = links.iter().map(|(link, _)| link[1]).collect();
                targets.sort_unstable();
                targets.dedup();
                [links.chunk_by(|x, y| x.0[0] == y.0[0]).count() as u32, targets.len() as u32, 0, 0]
            });
            let pages = each(trivial, |([page, _], [cluster, ..])| Some(([cluster, 0], [page, 0, 0, 0])));
            let sizes = reduced(pages, |_, pages| [pages.len() as u32, 0, 0, 0]);
            let counted = each(counted, |([ri, rj], [s, d, ..])| Some(([ri, 0], [rj, s, d, 0])));
            let with_a = joined(counted, sizes.clone(), |&[ri, _], &[rj, s, d, _], &[a, ..]| {
                (a > 1).then_some(([rj, 0], [ri, s, d, a]))
            });
            let link_summary = joined(with_a, sizes, move |&[rj, _], &[ri, s, d, a], &[b, ..]| {
                (b > 1 || !single_site).then_some(([ri, rj], [a, b, s, d]))
            });

            let forth = each(link_summary.clone(), move |row| {
                may_merge(&summary_of(row), merge).then_some(([row.0[0], 0], [row.0[1], 0, 0, 0]))
            });
            let back = each(forth.clone(), |([ri, _], [rj, ..])| Some(([rj, 0], [ri, 0, 0, 0])));
            let edges = forth.concat(back);
            let own = reduced(edges.clone(), |&[cluster, _], _| [cluster, 0, 0, 0]);
            let components = own.clone().iterate(|scope, smallest| {
                let reached = joined(smallest, edges.enter(scope), |_, smallest, to| Some(([to[0], 0], *smallest)));
                reduced(own.enter(scope).concat(reached), |_, smallest| *smallest[0].0)
            });
            let done = [telling(link_summary, of_summary), telling(components, of_components)];
            (trivial_in, links_in, done)
        });
        LiveGrowth { worker, trivial, links, done, told, edits: 0 }
    }

    /// Makes rows come and go, and returns what did so for that.
    pub fn edit(&mut self, edit: &Edit) -> Grown {
        let row = |x: u32, y: u32| ([x, 0], [y, 0, 0, 0]);
        edit.trivial.iter().for_each(|&((page, of), times)| self.trivial.update(row(page.0, of.0), times));
        edit.links.iter().for_each(|&((src, dst), times)| self.links.update(row(src.0, dst.0), times));
        self.edits += 1;
        for input in [&mut self.trivial, &mut self.links] {
            input.advance_to(self.edits);
            input.flush();
        }
        while self.done.iter().any(|done| done.less_than(&self.edits)) {
            self.worker.step();
        }
        let [link_summary, components] = self.told.each_ref().map(|told| {
            let mut changes = told.take();
            consolidate(&mut changes);
            changes
        });
        let component =
            |([cluster, _], [of, ..]): (Key, Said)| (ClusterId(cluster), ComponentId::from_index(of as usize));
        Grown {
            link_summary: link_summary.into_iter().map(|(row, times)| (summary_of(row), times)).collect(),
            components: components.into_iter().map(|(row, times)| (component(row), times)).collect(),
        }
    }
}

/// The same rows, each once and ascending, by the plain functions: a sort of the links, and union-find.
pub fn made_anew(
    labels: &[ClusterId],
    hosts: &[HostId],
    links: &[(Page, Page)],
    (merge, single_site): (MergeCondition, bool),
) -> (Vec<LinkSummary>, Vec<(ClusterId, ComponentId)>) {
    let sizes = sizes(labels);
    let rows = link_summary(&mut cluster_links(labels, hosts, links, single_site), |cluster| sizes[cluster]);
    let mut sets = UnionFind::new(labels.len());
    let mut with_edges = BTreeSet::new();
    for row in rows.iter().filter(|row| may_merge(row, merge)) {
        sets.union(row.src_cluster.0, row.dst_cluster.0);
        with_edges.extend([row.src_cluster, row.dst_cluster]);
    }
    let components = with_edges.into_iter().map(|cluster| (cluster, ComponentId(sets.find(cluster.0)))).collect();
    (rows, components)
}

fn summary_of(([ri, rj], [a, b, s, d]): (Key, Said)) -> LinkSummary {
    LinkSummary { src_cluster: ClusterId(ri), dst_cluster: ClusterId(rj), a, b, s, d }
}

/// The row that a rule makes of each, if any.
fn each<'scope>(
    rows: Rows<'scope, u32>,
    rule: impl FnMut((Key, Said)) -> Option<(Key, Said)> + 'static,
) -> Rows<'scope, u32> {
    rows.flat_map(Box::new(rule) as Each)
}

/// What follows for each key from all that is said of it, which ascends.
fn reduced<'scope, T: Timestamp + Lattice>(
    rows: Rows<'scope, T>,
    rule: impl FnMut(&Key, &[(&Said, Times)]) -> Said + 'static,
) -> Rows<'scope, T> {
    let mut rule: Reduce = Box::new(rule);
    rows.reduce(move |key, said, follows| follows.push((rule(key, said), 1)))
}

/// The rows that follow from two things said of one key.
fn joined<'scope, T: Timestamp + Lattice>(
    rows: Rows<'scope, T>,
    others: Rows<'scope, T>,
    rule: impl FnMut(&Key, &Said, &Said) -> Option<(Key, Said)> + 'static,
) -> Rows<'scope, T> {
    rows.join_core(others.arrange_by_key(), Box::new(rule) as Join)
}

/// Tells what changes.
fn telling(rows: Rows<'_, u32>, told: Told) -> Handle<u32> {
    rows.inspect_container(move |changes| {
        if let Ok((_, changes)) = changes {
            told.borrow_mut().extend(changes.iter().map(|&(row, _, times)| (row, times)));
        }
    })
    .probe()
    .0
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const PAGES: usize = 14;

    fn apply<Row: Ord>(held: &mut BTreeMap<Row, Times>, changes: Vec<(Row, Times)>) {
        for (row, times) in changes {
            *held.entry(row).or_default() += times;
        }
        held.retain(|_, times| *times != 0);
        assert!(held.values().all(|times| *times == 1));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn what_is_kept_up_to_date_is_what_the_plain_functions_make_anew(
            edits in prop::collection::vec((
                prop::collection::vec((0..PAGES as u32, 0..PAGES as u32), 0..6),
                prop::collection::vec((0..PAGES as u32, 0..PAGES as u32), 0..30)
            ), 1..8),
            merge in prop::sample::select(vec![MergeCondition::Exact, MergeCondition::Extended, MergeCondition::Tolerant]),
            single_site: bool
        ) {
            let mut live = LiveGrowth::new(merge, single_site);
            let (mut rows, mut components) = (BTreeMap::new(), BTreeMap::new());
            // Threes of pages, of which each edit moves some to other clusters; and links that come, or go where they are.
            let mut labels: Vec<ClusterId> = (0..PAGES as u32).map(|page| ClusterId(page / 3 * 3)).collect();
            let mut links = BTreeSet::new();
            let mut edit = Edit::default();
            edit.trivial.extend(Page::first(PAGES).map(|page| ((page, labels[page]), 1)));
            for (moves, toggled) in edits {
                for (page, to) in moves.into_iter().map(|(page, to)| (Page(page), ClusterId(to / 3 * 3))) {
                    edit.trivial.extend([((page, labels[page]), -1), ((page, to), 1)]);
                    labels[page] = to;
                }
                for link in toggled.into_iter().map(|(src, dst)| (Page(src), Page(dst))).filter(|link| link.0 != link.1) {
                    let comes = links.insert(link);
                    if !comes {
                        links.remove(&link);
                    }
                    edit.links.push((link, if comes { 1 } else { -1 }));
                }
                let grown = live.edit(&std::mem::take(&mut edit));
                apply(&mut rows, grown.link_summary);
                apply(&mut components, grown.components);
                let all: Vec<(Page, Page)> = links.iter().copied().collect();
                let want = made_anew(&labels, &[HostId(0); PAGES], &all, (merge, single_site));
                prop_assert_eq!(rows.keys().copied().collect::<Vec<_>>(), want.0);
                prop_assert_eq!(components.keys().copied().collect::<Vec<_>>(), want.1);
            }
        }
    }
}
