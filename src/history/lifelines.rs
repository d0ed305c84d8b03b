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
//! takes a tenth of a second where arrangements take three, and 24 bytes a page where they take a hundred. What enters is
//! a row for each collection and for each two of them that match.
//!
//! # Why it agrees with the plain rules
//! A version is open for a crawl if no nearer crawl has an offer for it; so of all its offers those of the least distance
//! are those that the crawl-by-crawl rules look at, and none of a greater distance is. No rule of a crawl looks at a later one,
//! so the order in which rows arrive is of no account.
//!
//! # Cost
//! Some 400 bytes of memory for each version with its offers. An edit costs what it changes, and a sort of that.

use std::cell::RefCell;
use std::rc::Rc;

use differential_dataflow::consolidation::consolidate;
use differential_dataflow::input::{Input, InputSession};
use differential_dataflow::operators::iterate::Iterate;
use serde::{Deserialize, Serialize};
use timely::WorkerConfig;
use timely::communication::Allocator;
use timely::communication::allocator::thread::Thread;
use timely::dataflow::operators::probe::Handle;
use timely::worker::Worker;

use super::lives::{Bid, Fact, Offer, Version, facts_of};

/// The type of how often a row is there, which comes with each row.
type Times = i32;

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

/// What a version hears from later crawls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
enum Heard {
    /// Nothing, before the crawl at this distance.
    NothingBefore(u8),
    /// Its best offer.
    Best(Offer),
    /// Another one of the same crawl.
    Other(Offer),
}

/// The dataflow, on a worker of its own in the calling thread.
pub struct Lifelines {
    worker: Worker,
    versions: InputSession<u32, Version, Times>,
    offers: InputSession<u32, (Version, Offer), Times>,
    steps: InputSession<u32, (u32, u32, u8), Times>,
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
        let (versions, offers, steps, done) = worker.dataflow::<u32, _, _>(|scope| {
            let (versions_in, versions) = scope.new_collection::<Version, Times>();
            let (offers_in, offers) = scope.new_collection::<(Version, Offer), Times>();
            let (steps_in, steps) = scope.new_collection::<(u32, u32, u8), Times>();

            let there = versions.clone().map(|version| (version, None));
            let heard = offers.map(|(old, offer)| (old, Some(offer))).concat(there).reduce(|_, offers, heard| {
                let mut offers = offers.iter().filter_map(|(offer, _)| **offer);
                let Some(best) = offers.next() else { return heard.push((Heard::NothingBefore(u8::MAX), 1)) };
                heard.push((Heard::NothingBefore(best.distance), 1));
                heard.push((Heard::Best(best), 1));
                let others = offers.take_while(|offer| offer.distance == best.distance);
                heard.extend(others.map(|offer| (Heard::Other(offer), 1)));
            });

            let bids = heard.clone().flat_map(|(old, heard)| match heard {
                Heard::NothingBefore(_) => None,
                Heard::Best(offer) => Some((offer.new, Some(offer.bid(old, true)))),
                Heard::Other(offer) => Some((offer.new, Some(offer.bid(old, false)))),
            });
            let facts = bids
                .concat(versions.map(|version| (version, None::<Bid>)))
                .reduce(|&new, bids, facts| {
                    let bids = bids.iter().filter_map(|(bid, _)| **bid);
                    facts.extend(facts_of(new, bids).into_iter().map(|fact| (fact, 1)));
                })
                .map(|(_, fact)| fact);

            let silent = heard.flat_map(|(old, heard)| match heard {
                Heard::NothingBefore(distance) => Some((old.crawl, (old, distance))),
                _ => None,
            });
            let steps = steps.map(|(crawl, later, distance)| (crawl, (later, distance)));
            let missing = silent
                .join_map(steps, move |_, &(old, until), &(crawl, distance)| {
                    (distance < until).then_some(Fact::Missing { old, crawl, died: distance == patience })
                })
                .flat_map(|fact| fact);

            let first = facts.clone().flat_map(|fact| match fact {
                Fact::Born { new } | Fact::Split { new, .. } => Some((new, new)),
                _ => None,
            });
            let next = facts.clone().flat_map(|fact| match fact {
                Fact::Lives { new, old, .. } => Some((old, new)),
                _ => None,
            });
            // A version has one version before it at most, so no line reaches it twice, and nothing has to be made distinct.
            let lines = first.clone().iterate(|scope, lines| {
                let continued = lines.join_map(next.enter(scope), |_, &line, &new| (new, line));
                first.enter(scope).concat(continued)
            });

            let done = facts
                .concat(missing)
                .concat(lines.map(|(of, line)| Fact::Line { of, line }))
                .inspect_container(move |rows| {
                    if let Ok((_, rows)) = rows {
                        told.borrow_mut().extend(rows.iter().map(|(fact, _, times)| (*fact, *times)));
                    }
                })
                .probe()
                .0;
            (versions_in, offers_in, steps_in, done)
        });
        Lifelines { worker, versions, offers, steps, done, changes, edits: 0 }
    }

    /// Makes rows come and go, and returns which facts did so for that, ascending.
    pub fn edit(&mut self, edit: Edit) -> Vec<(Fact, Times)> {
        edit.versions.into_iter().for_each(|(row, times)| self.versions.update(row, times));
        edit.offers.into_iter().for_each(|(row, times)| self.offers.update(row, times));
        edit.steps.into_iter().for_each(|(row, times)| self.steps.update(row, times));
        self.edits += 1;
        self.versions.advance_to(self.edits);
        self.offers.advance_to(self.edits);
        self.steps.advance_to(self.edits);
        self.versions.flush();
        self.offers.flush();
        self.steps.flush();
        while self.done.less_than(&self.edits) {
            self.worker.step();
        }
        let mut changes = self.changes.take();
        consolidate(&mut changes);
        changes
    }
}
