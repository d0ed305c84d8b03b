//! From near fingerprints of F to pairs of its documents: near runs go to the worker that reads the documents of the one, and from
//! there to the worker that reads those of the other.
//!
//! # Memory
//! 36 bytes a near pair while they are counted; the doc ids of a chunk.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use timely::ExchangeData;
use timely::dataflow::channels::pact::Exchange as To;
use timely::dataflow::operators::generic::Operator;

use super::merge::{BATCH, NearPair};
use super::tally::Tally;
use super::work::HammingWork;
use webtwin_base::error::Result;
use webtwin_base::ids::DocId;
use webtwin_core::hamming::rows::{NearRuns, Run};
use webtwin_engine::{Failures, Fallible, Rows};

/// A document, and the run whose documents are near it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct NearDocument {
    document: DocId,
    /// Whether the document has the run's fingerprint itself.
    is_one: bool,
    other: Run,
    distance: u32,
}

/// The pairs of documents that near runs stand for, once they are counted, if they are to be made.
pub(super) fn near_documents<'s>(
    near: Rows<'s, NearRuns>,
    work: &Arc<HammingWork>,
    tally: &Arc<Tally>,
    failures: &Failures,
) -> Rows<'s, NearPair> {
    let tally = Arc::clone(tally);
    let count = move |near: &mut Vec<NearRuns>| {
        if !tally.add_runs(near) {
            near.clear();
        }
    };
    let half = with_documents(
        near,
        "documents of the one",
        work,
        |near| near.x,
        count,
        |near, document| {
            let NearRuns { y, distance, .. } = *near;
            Some(NearDocument { document, is_one: near.is_one(), other: y, distance })
        },
    );
    let pairs = with_documents(
        failures.divert(half),
        "documents of the other",
        work,
        |row| row.other,
        |_| (),
        |row, other| {
            let (a, b) = (row.document.min(other), row.document.max(other));
            // Of a run with itself each pair comes both ways; a document may stand on rows that are near each other.
            let is_told = if row.is_one { row.document < other } else { a != b };
            is_told.then_some(NearPair { a, b, distance: row.distance })
        },
    );
    failures.divert(pairs)
}

/// Hands on what `expand` makes of each row and each document of its run, when all rows have come and `prepare` has seen them.
fn with_documents<'s, R: ExchangeData + Copy, O: Clone + 'static>(
    rows: Rows<'s, R>,
    name: &str,
    work: &Arc<HammingWork>,
    run: fn(&R) -> Run,
    mut prepare: impl FnMut(&mut Vec<R>) + 'static,
    expand: impl Fn(&R, DocId) -> Option<O> + 'static,
) -> Rows<'s, Fallible<O>> {
    let (scope, to, work) = (rows.scope(), Arc::clone(work), Arc::clone(work));
    let chunk = move |row: &R| to.set.chunk_at(u64::from(run(row).first)) as u64;
    rows.unary_frontier(To::new(chunk), name, move |capability, info| {
        let again = scope.activator_for(info.address);
        let mut to_come = Some(capability);
        let (mut rows, mut is_sorted, mut at) = (Vec::new(), false, 0);
        let mut documents = Documents::default();
        move |(arriving, rows_to_come), output| {
            arriving.for_each(|_, some| rows.append(some));
            let Some(capability) = to_come.as_ref().filter(|_| rows_to_come.is_empty()) else { return };
            if !is_sorted {
                prepare(&mut rows);
                rows.sort_unstable_by_key(|row| run(row).first);
                is_sorted = true;
            }
            let mut session = output.session(capability);
            let mut given = 0;
            while given < BATCH
                && let Some(row) = rows.get(at)
            {
                let all = || rows[at..].iter().map(run);
                match documents.of(&work, run(row), all) {
                    Ok(documents) => {
                        given += documents.len();
                        let made = documents.iter().filter_map(|&document| expand(row, document));
                        session.give_iterator(made.map(Ok));
                    }
                    Err(error) => {
                        session.give(Err(Box::new(error)));
                        at = rows.len();
                    }
                }
                at += 1;
            }
            drop(session);
            if at < rows.len() {
                again.activate();
            } else {
                (rows, at, to_come) = (Vec::new(), 0, None);
                documents = Documents::default();
            }
        }
    })
}

/// Documents of the part of a chunk that is needed.
#[derive(Default)]
struct Documents {
    first: u64,
    ids: Vec<DocId>,
}

impl Documents {
    /// Documents of a run; `all` are this one and those that follow, ascending, of which those in its chunk are read with it.
    fn of<I: Iterator<Item = Run>>(&mut self, work: &HammingWork, run: Run, all: impl Fn() -> I) -> Result<&[DocId]> {
        let (from, until) = (u64::from(run.first), u64::from(run.first + run.copies));
        if self.ids.is_empty() || until > self.first + self.ids.len() as u64 {
            let chunk = work.set.chunk_at(from);
            let of_chunk = all().take_while(|run| work.set.chunk_at(u64::from(run.first)) == chunk);
            let end = of_chunk.map(|run| u64::from(run.first + run.copies)).max().unwrap_or(until);
            *self = Documents { first: from, ids: work.set.documents_at(from..end)? };
        }
        Ok(&self.ids[(from - self.first) as usize..(until - self.first) as usize])
    }
}
