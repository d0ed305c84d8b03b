//! What became of each collection over all crawls, kept up to date as crawls are appended, replaced and retracted: a
//! differential dataflow over the rules of [`super::lives`].
//!
//! ```text
//! collections ─┐                                ┌─ silent ──── join ──▶ missing, died
//! offers ──────┴▶ reduce by the earlier version ┤              ▲
//!                   nearest crawl, best first   └─ bids ─┐     └ steps: which crawls follow which
//! collections ──────────────────────────────────────────┴▶ reduce by the later version ──▶ born, split, joined, lives
//!                                                                                           └─ iterate ──▶ lines
//! ```
//!
//! Its time counts edits. As long as crawls are only appended, that is the number of the crawl, and what comes out at a time
//! is what that crawl changed. A crawl is part of a row and not the time, because a crawl that is replaced or retracted lies
//! in the past, to which no dataflow can return; as data, all three are rows that come and go.
//!
//! Pages never enter: what two crawls have in common is found by sorting ([`super::matching`]), which for two million pages
//! takes a tenth of a second where arrangements take three, and 28 bytes a page where they take a hundred. What enters is
//! a row for each collection and for each two of them that match.
//!
//! # Why it agrees with the plain rules
//! A version is open for a crawl if no nearer crawl has an offer for it; so of all its offers those of the least distance
//! are those that the crawl-by-crawl rules look at, and none of a greater distance is. No rule of a crawl looks at a later one,
//! so the order in which rows arrive is of no account.
//!
//! # One type of rows
//! Each operator of differential dataflow is compiled again for each type of rows, times and rules. So all streams have the
//! same rows, what is `Said` of a version, and rules are called by reference: a third of the code, and of its compilation.
//!
//! # Cost
//! Some 300 bytes of memory for each version with its offers. An edit costs what it changes, and a sort of that.

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

use super::lives::{Bid, Fact, Offer, Version, facts_of};

/// The type of how often a row is there, which comes with each row.
type Times = i32;

/// A row of any stream.
type Row = (Version, Said);

/// Rows of one type, at times of one type.
type Rows<'scope, T> = VecCollection<'scope, T, Row, Times>;

/// Rules of [`each`], [`reduced`] and [`joined`].
type Each = Box<dyn FnMut(Row) -> Option<Row>>;
type Reduce = Box<dyn FnMut(&Version, &mut dyn Iterator<Item = Said>, &mut dyn FnMut(Said))>;
type Join = Box<dyn FnMut(&Version, &Said, &Said) -> Option<Row>>;

/// Rows that come (+1) and go (-1).
#[derive(Debug, Clone, Default)]
pub struct Edit {
    /// Collections of crawls.
    pub versions: Vec<(Version, Times)>,
    /// What versions have in common with later ones.
    pub offers: Vec<((Version, Offer), Times)>,
    /// A crawl, a later one that is at most `patience` crawls behind, and how many.
    pub steps: Vec<((u32, u32, u8), Times)>,
}

/// What is said of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
enum Said {
    /// It is there.
    There,
    /// A later one offers to continue it.
    Offer(Offer),
    /// It hears nothing, before the crawl at this distance.
    NothingBefore(u8),
    /// Its best offer.
    Best(Offer),
    /// Another offer of the same crawl.
    Other(Offer),
    /// It may continue an earlier one.
    Bid(Bid),
    /// What became of it.
    Fact(Fact),
    /// Of a crawl: a later one, and how many crawls later it is.
    Step { later: u32, distance: u8 },
    /// Of a crawl: a version of it hears nothing before that distance.
    Silent { old: Version, until: u8 },
    /// The next version of it.
    Next(Version),
    /// The first version of its line.
    Line(Version),
}

/// What stands for a whole crawl among the keys of rows.
fn of_crawl(crawl: u32) -> Version {
    Version { crawl, collection: 0 }
}

/// The rows that a rule makes of rows, one of each at most.
fn each<'scope>(rows: Rows<'scope, u32>, rule: impl FnMut(Row) -> Option<Row> + 'static) -> Rows<'scope, u32> {
    rows.flat_map(Box::new(rule) as Each)
}

/// What follows for each version from all that is said of it, which ascends.
fn reduced<'scope>(
    rows: Rows<'scope, u32>,
    rule: impl FnMut(&Version, &mut dyn Iterator<Item = Said>, &mut dyn FnMut(Said)) + 'static,
) -> Rows<'scope, u32> {
    let mut rule: Reduce = Box::new(rule);
    rows.reduce(move |version, said, follows| {
        rule(version, &mut said.iter().map(|(said, _)| **said), &mut |what| follows.push((what, 1)));
    })
}

/// The rows that follow from two things said of one version.
fn joined<'scope, T: Timestamp + Lattice>(
    rows: Rows<'scope, T>,
    others: Rows<'scope, T>,
    rule: impl FnMut(&Version, &Said, &Said) -> Option<Row> + 'static,
) -> Rows<'scope, T> {
    rows.join_core(others.arrange_by_key(), Box::new(rule) as Join)
}

/// The dataflow, on a worker of its own in the calling thread.
pub struct Lifelines {
    worker: Worker,
    rows: InputSession<u32, Row, Times>,
    done: Handle<u32>,
    changes: Rc<RefCell<Vec<(Fact, Times)>>>,
    edits: u32,
}

impl Lifelines {
    /// Builds the dataflow, in which there is no crawl yet.
    ///
    /// A collection has died once `patience` crawls in a row have nothing of it.
    pub fn new(patience: u8) -> Lifelines {
        let mut worker = Worker::new(WorkerConfig::default(), Allocator::Thread(Thread::default()), None);
        let changes = Rc::new(RefCell::new(Vec::new()));
        let told = Rc::clone(&changes);
        let (rows, done) = worker.dataflow::<u32, _, _>(|scope| {
            let (rows_in, rows) = scope.new_collection::<Row, Times>();
            let there = each(rows.clone(), |row| matches!(row.1, Said::There).then_some(row));
            let steps = each(rows.clone(), |row| matches!(row.1, Said::Step { .. }).then_some(row));
            let offers = each(rows, |row| matches!(row.1, Said::Offer(_)).then_some(row));

            let heard = reduced(offers.concat(there.clone()), |_, said, hears| {
                let mut offers = said.filter_map(|said| if let Said::Offer(offer) = said { Some(offer) } else { None });
                let Some(best) = offers.next() else { return hears(Said::NothingBefore(u8::MAX)) };
                hears(Said::NothingBefore(best.distance));
                hears(Said::Best(best));
                let others = offers.take_while(|offer| offer.distance == best.distance);
                others.for_each(|offer| hears(Said::Other(offer)));
            });

            let bids = each(heard.clone(), |(old, heard)| match heard {
                Said::Best(offer) => Some((offer.new, Said::Bid(offer.bid(old, true)))),
                Said::Other(offer) => Some((offer.new, Said::Bid(offer.bid(old, false)))),
                _ => None,
            });
            let facts = reduced(bids.concat(there), |&new, said, follows| {
                let bids = said.filter_map(|said| if let Said::Bid(bid) = said { Some(bid) } else { None });
                facts_of(new, bids).into_iter().for_each(|fact| follows(Said::Fact(fact)));
            });

            let silent = each(heard, |(old, heard)| match heard {
                Said::NothingBefore(until) => Some((of_crawl(old.crawl), Said::Silent { old, until })),
                _ => None,
            });
            let missing = joined(silent, steps, move |_, silent, step| match (*silent, *step) {
                (Said::Silent { old, until }, Said::Step { later: crawl, distance }) if distance < until => {
                    Some((old, Said::Fact(Fact::Missing { old, crawl, died: distance == patience })))
                }
                _ => None,
            });

            let first = each(facts.clone(), |(new, said)| match said {
                Said::Fact(Fact::Born { .. } | Fact::Split { .. }) => Some((new, Said::Line(new))),
                _ => None,
            });
            let next = each(facts.clone(), |(_, said)| match said {
                Said::Fact(Fact::Lives { new, old, .. }) => Some((old, Said::Next(new))),
                _ => None,
            });
            // A version has one version before it at most, so no line reaches it twice, and nothing has to be made distinct.
            let lines = first.clone().iterate(|scope, lines| {
                let continued = joined(lines, next.enter(scope), |_, line, next| match *next {
                    Said::Next(new) => Some((new, *line)),
                    _ => None,
                });
                first.enter(scope).concat(continued)
            });
            let lines = each(lines, |(of, said)| match said {
                Said::Line(line) => Some((of, Said::Fact(Fact::Line { of, line }))),
                _ => None,
            });

            let done = facts
                .concat(missing)
                .concat(lines)
                .inspect_container(move |rows| {
                    if let Ok((_, rows)) = rows {
                        let facts = rows.iter().filter_map(|((_, said), _, times)| match said {
                            Said::Fact(fact) => Some((*fact, *times)),
                            _ => None,
                        });
                        told.borrow_mut().extend(facts);
                    }
                })
                .probe()
                .0;
            (rows_in, done)
        });
        Lifelines { worker, rows, done, changes, edits: 0 }
    }

    /// Makes rows come and go, and returns which facts did so for that, ascending.
    pub fn edit(&mut self, edit: Edit) -> Vec<(Fact, Times)> {
        let versions = edit.versions.into_iter().map(|(version, times)| ((version, Said::There), times));
        let offers = edit.offers.into_iter().map(|((old, offer), times)| ((old, Said::Offer(offer)), times));
        let step = |(crawl, later, distance)| (of_crawl(crawl), Said::Step { later, distance });
        let steps = edit.steps.into_iter().map(|(row, times)| (step(row), times));
        versions.chain(offers).chain(steps).for_each(|(row, times)| self.rows.update(row, times));
        self.edits += 1;
        self.rows.advance_to(self.edits);
        self.rows.flush();
        while self.done.less_than(&self.edits) {
            self.worker.step();
        }
        let mut changes = self.changes.take();
        consolidate(&mut changes);
        changes
    }
}
