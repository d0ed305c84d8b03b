//! Joins F with Q, as one dataflow:
//!
//! ```text
//! read Q ─▶ to every process ─▶ tables of Q ─▶ probe pieces of F ─▶ exchange ─▶ merge ─▶ exchange ─▶ write parts
//! ```
//!
//! An idle worker takes the next piece of F, in the same way as pieces are assigned to the mappers
//! of the paper. The workers that merge pairs acknowledge the pairs that arrive. A worker with too
//! many pairs in transit waits, because a receiver that sorts a run and writes it to disk takes no
//! pairs meanwhile.
//!
//! # Source
//! \[MJS07\] section 3.3.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use timely::dataflow::Scope;
use timely::dataflow::channels::pact::{Exchange as To, Pipeline};
use timely::dataflow::operators::Exchange;
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::operators::generic::operator::source;
use timely::dataflow::operators::vec::{Map, ToStream};

use super::merge::{BATCH, MergedWorkers, merge};
use super::parts::{PartWriter, write};
use super::rows::{NearPair, ResultRow};
use super::scan::{Mapper, Queries, ScanMatch, ScanPairs, piece_rows};
use super::tally::ProcessTally;
use super::work::HammingWork;
use webtwin_base::error::Result;
use webtwin_base::ids::splitmix64;
use webtwin_core::hamming::rows::FingerprintRow;
use webtwin_engine::{Failures, Fallible, Net, Position, RowStream};
use webtwin_job::Job;
use webtwin_results::fingerprints::ChunkPiece;
use webtwin_spill::{MemoryPool, SpillColumn};

/// Maximum number of rows of a worker in transit: 20 MB of pairs.
const MAX_ROWS_IN_FLIGHT: u64 = 1 << 20;

/// Interval at which a waiting worker checks again.
const PATIENCE: Duration = Duration::from_millis(1);

/// Shared state of the operators of a worker.
#[derive(Clone)]
struct Batch {
    job: Job,
    work: Arc<HammingWork>,
    at: Position,
    pieces: Arc<Vec<ChunkPiece>>,
    queries: Arc<OnceLock<Queries>>,
    tally: Arc<ProcessTally>,
}

impl Batch {
    fn new(net: &mut Net<'_>, job: &Job, work: &Arc<HammingWork>) -> Result<Batch> {
        let rows = piece_rows(work.set.manifest.count, net.peers());
        let pieces = net.once_per_process(|| work.set.pieces(rows))?;
        let (queries, tally) = (net.once_per_process(OnceLock::new)?, net.once_per_process(|| ProcessTally::new(job))?);
        Ok(Batch { job: job.clone(), work: Arc::clone(work), at: net.position(), pieces, queries, tally })
    }

    fn queries(&self) -> &Queries {
        self.queries.get().expect("tables are built before pieces are scanned")
    }

    /// Counts the pairs that near rows stand for. Returns true if the pairs must be generated.
    fn count(&self, near: &[ScanMatch]) -> bool {
        let postings = &self.queries().postings;
        self.tally.add(near.len() as u64, near.iter().map(|near| (near.distance, near.pairs(postings))))
    }
}

/// Q, and counts of the pairs: results of a batch in addition to its rows.
pub(super) type BatchTotals = (Arc<OnceLock<Queries>>, Arc<ProcessTally>);

/// Finds the pairs of a document of F (`a`) and a document of Q (`b`), and writes them. A document
/// in both is not paired with itself if documents have ids of their own.
///
/// # Errors
/// Returns [`webtwin_base::error::Error::Input`] if F or Q is damaged,
/// [`webtwin_base::error::Error::MemoryLimit`] if Q does not fit in memory, and
/// [`webtwin_base::error::Error::Storage`].
pub(super) fn pairs(net: &mut Net<'_>, job: &Job, work: &Arc<HammingWork>, output: &PartWriter) -> Result<BatchTotals> {
    let batch = Batch::new(net, job, work)?;
    let results = (Arc::clone(&batch.queries), Arc::clone(&batch.tally));
    net.dataflow(|scope, failures| {
        let (merged, sorter) = merged_pairs(read_q(scope, &batch), &batch, failures);
        write(merged, output, sorter, failures);
    })?;
    Ok(results)
}

/// Returns the merged pairs of near documents, and a function that returns the memory pool of a
/// sorter of pairs.
fn merged_pairs<'s>(
    queries: RowStream<'s, Fallible<FingerprintRow>>,
    batch: &Batch,
    failures: &Failures,
) -> (MergedWorkers<'s, NearPair>, impl Fn() -> MemoryPool + Clone + 'static) {
    let ready = tables_of_q(to_every_process(queries, batch, failures), batch, failures);
    let rows_in_flight = Rc::default();
    let mapper = batch.clone();
    let pairs_of = move |near: Vec<ScanMatch>| {
        let near = if mapper.count(&near) { near } else { Vec::new() };
        ScanPairs::new(&mapper.work, Arc::clone(&mapper.queries), near)
    };
    let pairs = failures.divert(probe(ready, batch, &rows_in_flight, pairs_of));
    let pairs = pairs.exchange(|pair| splitmix64(pair.id()));
    acknowledge(pairs.clone(), batch.at.peers() as u64, &rows_in_flight);
    let batch = batch.clone();
    let sorter = move || batch.queries().sorter.clone();
    (merge(pairs, sorter.clone(), failures), sorter)
}

/// Finds the pairs of a document of F (`a`) and one of `queries` (`b`), which are the queries of
/// this worker. Returns the pairs that are merged at this worker, ascending and without
/// repetitions.
///
/// # Errors
/// Returns any error of [`pairs`].
pub(super) fn near_pairs(
    net: &mut Net<'_>,
    job: &Job,
    work: &Arc<HammingWork>,
    queries: Vec<FingerprintRow>,
) -> Result<(SpillColumn<NearPair>, BatchTotals)> {
    let batch = Batch::new(net, job, work)?;
    let results = (Arc::clone(&batch.queries), Arc::clone(&batch.tally));
    let mut merged = Rc::default();
    net.dataflow(|scope, failures| {
        let queries = queries.into_iter().map(Ok).to_stream(scope);
        merged = merged_pairs(queries, &batch, failures).0.rows;
    })?;
    let mut pairs = SpillColumn::new(&net.memory);
    if let Some(mut merged) = merged.take() {
        let mut batch = Vec::new();
        loop {
            merged.take(&mut batch)?;
            if batch.is_empty() {
                break;
            }
            batch.drain(..).try_for_each(|pair| pairs.push(pair))?;
        }
    }
    Ok((pairs, results))
}

/// Finds the rows of F that are near queries. Returns the rows that this worker has found, piece by
/// piece.
///
/// # Errors
/// Returns any error of [`pairs`].
pub(super) fn near_rows(
    net: &mut Net<'_>,
    job: &Job,
    work: &Arc<HammingWork>,
) -> Result<(Vec<ScanMatch>, BatchTotals)> {
    let batch = Batch::new(net, job, work)?;
    let results = (Arc::clone(&batch.queries), Arc::clone(&batch.tally));
    let matches: Rc<RefCell<Vec<ScanMatch>>> = Rc::default();
    net.dataflow(|scope, failures| {
        let ready = tables_of_q(to_every_process(read_q(scope, &batch), &batch, failures), &batch, failures);
        let rows_in_flight = Rc::default();
        let mapper = batch.clone();
        let count_matches = move |near: Vec<ScanMatch>| {
            mapper.count(&near);
            Ok(near.into_iter())
        };
        let near = failures.divert(probe(ready, &batch, &rows_in_flight, count_matches));
        acknowledge(near.clone(), batch.at.peers() as u64, &rows_in_flight);
        let sink_matches = Rc::clone(&matches);
        near.sink(Pipeline, "keep", move |(near, _)| near.for_each(|_, near| sink_matches.borrow_mut().append(near)));
    })?;
    Ok((matches.take(), results))
}

/// Reads the queries of the work items that this worker takes.
fn read_q<'s>(scope: Scope<'s, u64>, batch: &Batch) -> RowStream<'s, Fallible<FingerprintRow>> {
    let Batch { work, at, .. } = batch.clone();
    source(scope, "read Q", move |capability, info| {
        let activator = scope.activator_for(info.address);
        let mut held_capability = Some(capability);
        move |output| {
            let Some(capability) = &held_capability else { return };
            let items = work.queries.as_ref().map_or(&[][..], |queries| &queries.items);
            let item = items.get(work.queries_read.next_of(at.process, at.processes));
            let query_rows = item.map(|item| item.read_all(work.set.manifest.f));
            let mut session = output.session(capability);
            match query_rows {
                Some(Ok(rows)) => {
                    session.give_iterator(rows.into_iter().map(Ok));
                    activator.activate();
                    return;
                }
                Some(Err(error)) => session.give(Err(Box::new(error))),
                None => {}
            }
            drop(session);
            held_capability = None;
        }
    })
}

/// Sends each row to every process. The first component is the receiving worker.
fn to_every_process<'s>(
    rows: RowStream<'s, Fallible<FingerprintRow>>,
    batch: &Batch,
    failures: &Failures,
) -> RowStream<'s, (u64, FingerprintRow)> {
    let at = batch.at;
    let to = move |row| (0..at.processes).map(move |process| (at.first_of(process) as u64, row));
    failures.divert(rows).flat_map(to).exchange(|row: &(u64, FingerprintRow)| row.0)
}

/// Builds the tables once in each process, after all queries have arrived. Notifies all workers, by
/// their numbers.
fn tables_of_q<'s>(
    rows: RowStream<'s, (u64, FingerprintRow)>,
    batch: &Batch,
    failures: &Failures,
) -> RowStream<'s, u64> {
    let Batch { job, work, at, queries, .. } = batch.clone();
    let outcome = rows.unary_frontier(Pipeline, "tables of Q", move |capability, _| {
        let mut held_capability = Some(capability);
        let mut collected = Vec::new();
        move |(rows, rows_to_come), output| {
            let row = |(_, row): (u64, FingerprintRow)| (row.fingerprint, row.document);
            rows.for_each(|_, rows| collected.extend(rows.drain(..).map(row)));
            if !rows_to_come.is_empty() {
                return;
            }
            let Some(capability) = held_capability.take().filter(|_| at.is_first()) else { return };
            let tables = Queries::new(std::mem::take(&mut collected), work.set.manifest.f, at.workers, &job);
            let mut session = output.session(&capability);
            match tables {
                Ok(tables) => {
                    work.progress.enter("scanning");
                    queries.get_or_init(|| tables);
                    session.give_iterator((0..at.peers()).map(|worker| Ok(worker as u64)));
                }
                Err(error) => session.give(Err(Box::new(error))),
            }
        }
    });
    failures.divert(outcome)
}

/// Scans pieces of F one after the other, and passes on the rows that `expand` returns for the near
/// rows of each piece. Scanning starts when all processes have built their tables, because only
/// then is it known how much memory is left for rows that arrive. The time of a row encodes the
/// number n of its piece and the worker w: n · workers + w. The worker waits while too many rows
/// are `rows_in_flight`.
fn probe<'s, R: Clone + 'static, I: Iterator<Item = R> + 'static>(
    ready: RowStream<'s, u64>,
    batch: &Batch,
    rows_in_flight: &Rc<Cell<u64>>,
    mut expand: impl FnMut(Vec<ScanMatch>) -> Result<I> + 'static,
) -> RowStream<'s, Fallible<R>> {
    let (scope, batch, rows_in_flight) = (ready.scope(), batch.clone(), Rc::clone(rows_in_flight));
    ready.unary(To::new(|worker: &u64| *worker), "probe F in tables of Q", move |capability, info| {
        let activator = scope.activator_for(info.address);
        let mut mapper = Mapper::new(&batch.work, batch.job.hamming.k);
        let (mut held_capability, mut ready_processes) = (Some(capability), 0);
        let mut rows: Option<I> = None;
        move |ready, output| {
            ready.for_each(|_, processes| ready_processes += processes.len());
            let Some(capability) = held_capability.as_mut().filter(|_| ready_processes == batch.at.processes) else {
                return;
            };
            if rows_in_flight.get() >= MAX_ROWS_IN_FLIGHT {
                activator.activate_after(PATIENCE);
                return;
            }
            if rows.is_none() {
                let number = batch.work.pieces_read.next_of(batch.at.process, batch.at.processes);
                let Some(&piece) = batch.pieces.get(number) else {
                    held_capability = None;
                    return;
                };
                capability.downgrade(&((number * batch.at.peers() + batch.at.index) as u64));
                match mapper.scan(piece, batch.queries()).and_then(&mut expand) {
                    Ok(some) => rows = Some(some),
                    Err(error) => {
                        output.session(capability).give(Err(Box::new(error)));
                        held_capability = None;
                        return;
                    }
                }
            }
            let mut left = BATCH;
            let batch_rows = rows.iter_mut().flatten().take(BATCH).inspect(|_| left -= 1);
            output.session(capability).give_iterator(batch_rows.map(Ok));
            rows_in_flight.set(rows_in_flight.get() + (BATCH - left) as u64);
            if left > 0 {
                rows = None;
            }
            activator.activate();
        }
    })
}

/// Notifies the worker that has [probed](probe) for `rows` of the number of rows that have arrived
/// here.
fn acknowledge<R: Clone + 'static>(rows: RowStream<'_, R>, workers: u64, rows_in_flight: &Rc<Cell<u64>>) {
    let acknowledgements = rows.unary(Pipeline, "acknowledge", |_, _| {
        move |rows, output| {
            rows.for_each(|time, rows| output.session(&time).give((*time.time() % workers, rows.len() as u64)))
        }
    });
    let rows_in_flight = Rc::clone(rows_in_flight);
    acknowledgements.exchange(|come: &(u64, u64)| come.0).sink(Pipeline, "acknowledged", move |(batches, _)| {
        batches.for_each(|_, counts: &mut Vec<_>| {
            counts.iter().for_each(|come| rows_in_flight.set(rows_in_flight.get() - come.1))
        });
    });
}
