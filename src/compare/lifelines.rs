//! Incremental facts about collections over all crawls, updated as crawls are appended, replaced
//! and retracted: a differential dataflow of the rules in [`super::lives`].
//!
//! ```text
//! collections ─┐                                ┌─ silent ──── join ──▶ missing, died
//! offers ──────┴▶ reduce by the earlier version ┤              ▲
//!                   nearest crawl, best first   └─ bids ─┐     └ steps: which crawls follow which
//! collections ──────────────────────────────────────────┴▶ reduce by the later version ──▶ born, split, joined, lives
//!                                                                                           └─ iterate ──▶ lines
//! ```
//!
//! The timestamps of the dataflow count edits. While crawls are only appended, the timestamp is the
//! number of the crawl, and the output at a timestamp is the change that this crawl caused. A crawl
//! is part of a row rather than the timestamp, because a crawl that is replaced or retracted lies
//! in the past, to which a dataflow cannot return. As data, all three edits are rows that are added
//! and removed.
//!
//! Pages never enter the dataflow. Matches of two crawls are found by sorting
//! ([`super::matching`]), which takes a tenth of a second for two million pages, while arrangements
//! take three seconds, and 28 bytes a page instead of a hundred. The input is one row for each
//! collection and for each pair of collections that match.
//!
//! # Why it agrees with the plain rules
//! A version is open for a crawl if no nearer crawl has an offer for it. So of all its offers
//! exactly those of the minimum distance are the ones that the crawl-by-crawl rules consider. No
//! rule for a crawl depends on a later crawl, so the order in which rows arrive does not matter.
//!
//! # One type of rows
//! Each operator of differential dataflow is compiled again for each type of rows, times and rules.
//! So all streams have one type of row, a version and a `FollowedFact`, and rules are boxed: a
//! third of the code and of the compile time.
//!
//! # Cost
//! About 300 bytes of memory for each version with its offers. An edit costs time proportional to
//! its changes, and a sort of these.

use std::cell::RefCell;
use std::rc::Rc;

use differential_dataflow::VecCollection;
use differential_dataflow::consolidation::consolidate;
use differential_dataflow::input::{Input, InputSession};
use differential_dataflow::lattice::Lattice;
use differential_dataflow::operators::iterate::Iterate;
use serde::{Deserialize, Serialize};
use timely::WorkerConfig;
use timely::communication::Allocator;
use timely::communication::allocator::thread::Thread;
use timely::dataflow::operators::probe::Handle;
use timely::progress::Timestamp;
use timely::worker::Worker;

use super::lives::{Fact, MatchBid, Offer, Version, facts_of};

/// Multiplicity of a row.
type Times = i32;

/// Row of any stream.
type Row = (Version, FollowedFact);

/// Stream of rows, at timestamps of type `T`.
type Rows<'scope, T> = VecCollection<'scope, T, Row, Times>;

/// Boxed rules of [`map_rows`], [`reduced`] and [`join_rows`].
type Each = Box<dyn FnMut(Row) -> Option<Row>>;
type Reduce = Box<dyn FnMut(&Version, &mut dyn Iterator<Item = FollowedFact>, &mut dyn FnMut(FollowedFact))>;
type Join = Box<dyn FnMut(&Version, &FollowedFact, &FollowedFact) -> Option<Row>>;

/// Rows to add (+1) and to remove (-1).
#[derive(Debug, Clone, Default)]
pub struct RowEdit {
    /// Collections of crawls.
    pub versions: Vec<(Version, Times)>,
    /// Matches of versions with later ones.
    pub offers: Vec<((Version, Offer), Times)>,
    /// A crawl, a crawl at most `patience` positions after it, and the distance.
    pub steps: Vec<((u32, u32, u8), Times)>,
}

/// Statement about a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
enum FollowedFact {
    /// The version exists.
    There,
    /// A later version offers to continue it.
    Offer(Offer),
    /// It has no offer of any crawl nearer than this distance.
    NothingBefore(u8),
    /// Its best offer.
    Best(Offer),
    /// Another offer of the same crawl as the best one.
    Other(Offer),
    /// It may continue an earlier version.
    Bid(MatchBid),
    /// A fact about it.
    Fact(Fact),
    /// About a crawl: a later crawl and its distance.
    Step { later: u32, distance: u8 },
    /// About a crawl: one of its versions has no offer of any crawl nearer than `until`.
    Silent { old: Version, until: u8 },
    /// The version that continues it.
    Next(Version),
    /// The first version of its line.
    Line(Version),
}

/// Returns the key of rows about a whole crawl.
fn crawl_key(crawl: u32) -> Version {
    Version { crawl, collection: 0 }
}

/// Applies a rule to each row. The rule returns at most one row.
fn map_rows<'scope>(rows: Rows<'scope, u32>, rule: impl FnMut(Row) -> Option<Row> + 'static) -> Rows<'scope, u32> {
    rows.flat_map(Box::new(rule) as Each)
}

/// Applies a rule to each version and all statements about it, ascending. The rule may make any
/// number of statements.
fn reduced<'scope>(
    rows: Rows<'scope, u32>,
    rule: impl FnMut(&Version, &mut dyn Iterator<Item = FollowedFact>, &mut dyn FnMut(FollowedFact)) + 'static,
) -> Rows<'scope, u32> {
    let mut rule: Reduce = Box::new(rule);
    rows.reduce(move |version, text, output| {
        rule(version, &mut text.iter().map(|(text, _)| **text), &mut |what| output.push((what, 1)));
    })
}

/// Applies a rule to each pair of statements about a version, one of each stream.
fn join_rows<'scope, T: Timestamp + Lattice>(
    rows: Rows<'scope, T>,
    right_rows: Rows<'scope, T>,
    rule: impl FnMut(&Version, &FollowedFact, &FollowedFact) -> Option<Row> + 'static,
) -> Rows<'scope, T> {
    rows.join_core(right_rows.arrange_by_key(), Box::new(rule) as Join)
}

/// The dataflow, with its own worker in the calling thread.
pub struct Lifelines {
    worker: Worker,
    rows: InputSession<u32, Row, Times>,
    probe: Handle<u32>,
    changes: Rc<RefCell<Vec<(Fact, Times)>>>,
    edits: u32,
}

impl Lifelines {
    /// Builds the dataflow without any crawl.
    ///
    /// A collection has died after `patience` consecutive crawls without a match.
    pub fn new(patience: u8) -> Lifelines {
        let mut worker = Worker::new(WorkerConfig::default(), Allocator::Thread(Thread::default()), None);
        let changes = Rc::new(RefCell::new(Vec::new()));
        let message = Rc::clone(&changes);
        let (rows, probe) = worker.dataflow::<u32, _, _>(|scope| {
            let (rows_in, rows) = scope.new_collection::<Row, Times>();
            let present_rows = map_rows(rows.clone(), |row| matches!(row.1, FollowedFact::There).then_some(row));
            let steps = map_rows(rows.clone(), |row| matches!(row.1, FollowedFact::Step { .. }).then_some(row));
            let offers = map_rows(rows, |row| matches!(row.1, FollowedFact::Offer(_)).then_some(row));

            // An open version considers only offers of its nearest crawl: a match there closes it
            // for all later ones.
            let best_offers = reduced(offers.concat(present_rows.clone()), |_, text, output| {
                let mut offers =
                    text.filter_map(|text| if let FollowedFact::Offer(offer) = text { Some(offer) } else { None });
                let Some(best) = offers.next() else { return output(FollowedFact::NothingBefore(u8::MAX)) };
                output(FollowedFact::NothingBefore(best.distance));
                output(FollowedFact::Best(best));
                let equal_offers = offers.take_while(|offer| offer.distance == best.distance);
                equal_offers.for_each(|offer| output(FollowedFact::Other(offer)));
            });

            let bids = map_rows(best_offers.clone(), |(old, best_offers)| match best_offers {
                FollowedFact::Best(offer) => Some((offer.new, FollowedFact::Bid(offer.bid(old, true)))),
                FollowedFact::Other(offer) => Some((offer.new, FollowedFact::Bid(offer.bid(old, false)))),
                _ => None,
            });
            let facts = reduced(bids.concat(present_rows), |&new, text, output| {
                let bids = text.filter_map(|text| if let FollowedFact::Bid(bid) = text { Some(bid) } else { None });
                facts_of(new, bids).into_iter().for_each(|fact| output(FollowedFact::Fact(fact)));
            });

            let silent_mirrors = map_rows(best_offers, |(old, answer)| match answer {
                FollowedFact::NothingBefore(last_crawl) => {
                    Some((crawl_key(old.crawl), FollowedFact::Silent { old, until: last_crawl }))
                }
                _ => None,
            });
            let missing =
                join_rows(silent_mirrors, steps, move |_, silent_mirrors, step| match (*silent_mirrors, *step) {
                    (
                        FollowedFact::Silent { old, until: last_crawl },
                        FollowedFact::Step { later: crawl, distance },
                    ) if distance < last_crawl => {
                        Some((old, FollowedFact::Fact(Fact::Missing { old, crawl, died: distance == patience })))
                    }
                    _ => None,
                });

            let first = map_rows(facts.clone(), |(new, text)| match text {
                FollowedFact::Fact(Fact::Born { .. } | Fact::Split { .. }) => Some((new, FollowedFact::Line(new))),
                _ => None,
            });
            let next = map_rows(facts.clone(), |(_, text)| match text {
                FollowedFact::Fact(Fact::Lives { new, old, .. }) => Some((old, FollowedFact::Next(new))),
                _ => None,
            });
            // A version has at most one previous version. So no line reaches it twice, and the
            // iteration needs no `distinct`.
            let lines = first.clone().iterate(|scope, lines| {
                let continued_lines = join_rows(lines, next.enter(scope), |_, line, next| match *next {
                    FollowedFact::Next(new) => Some((new, *line)),
                    _ => None,
                });
                first.enter(scope).concat(continued_lines)
            });
            let lines = map_rows(lines, |(version, text)| match text {
                FollowedFact::Line(line) => Some((version, FollowedFact::Fact(Fact::Line { of: version, line }))),
                _ => None,
            });

            // The probe reports when an edit has been processed completely.
            let probe_handle = facts
                .concat(missing)
                .concat(lines)
                .inspect_container(move |rows| {
                    if let Ok((_, rows)) = rows {
                        let facts = rows.iter().filter_map(|((_, text), _, times)| match text {
                            FollowedFact::Fact(fact) => Some((*fact, *times)),
                            _ => None,
                        });
                        message.borrow_mut().extend(facts);
                    }
                })
                .probe()
                .0;
            (rows_in, probe_handle)
        });
        Lifelines { worker, rows, probe, changes, edits: 0 }
    }

    /// Adds and removes rows, and returns the facts that this adds and removes, ascending.
    pub fn edit(&mut self, edit: RowEdit) -> Vec<(Fact, Times)> {
        let versions = edit.versions.into_iter().map(|(version, times)| ((version, FollowedFact::There), times));
        let offers = edit.offers.into_iter().map(|((old, offer), times)| ((old, FollowedFact::Offer(offer)), times));
        let step = |(crawl, later, distance)| (crawl_key(crawl), FollowedFact::Step { later, distance });
        let steps = edit.steps.into_iter().map(|(row, times)| (step(row), times));
        versions.chain(offers).chain(steps).for_each(|(row, times)| self.rows.update(row, times));
        self.edits += 1;
        self.rows.advance_to(self.edits);
        self.rows.flush();
        while self.probe.less_than(&self.edits) {
            self.worker.step();
        }
        let mut changes = self.changes.take();
        consolidate(&mut changes);
        changes
    }
}
