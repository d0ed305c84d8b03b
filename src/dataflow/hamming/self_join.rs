//! Joins F with itself, as one dataflow:
//!
//! ```text
//! read F ─▶ pass by pass ─▶ exchange by block ─▶ join ─▶ documents of the one ─▶ of the other ─▶ merge ─▶ exchange ─▶ write parts
//! ```
//!
//! A pass is a group of design keys with a common block of bits
//! ([`webtwin_core::hamming::close_pairs`]). Fingerprints that agree on the block are sent to one
//! worker, which joins them. The time of a row is its pass. The next pass begins when all workers
//! have joined the rows of the current one.
//!
//! # Memory
//! Takes 16 bytes for each fingerprint for all passes, and 56 for the current pass, over all
//! workers. Near pairs are spilled to disk beyond a limit.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use timely::dataflow::Scope;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::operators::generic::operator::source;
use timely::dataflow::operators::probe::Handle;
use timely::dataflow::operators::vec::{Map, ToStream};
use timely::dataflow::operators::{Concat, Exchange, Probe};

use super::documents::DocumentReader;
use super::merge::{BATCH, merge, pool_of_sorter};
use super::parts::{PartWriter, write};
use super::rows::ResultRow;
use super::scan::piece_rows;
use super::tally::ProcessTally;
use super::work::HammingWork;
use crate::shuffle::memory::check_bytes_against_bound;
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::splitmix64;
use webtwin_core::hamming::close_pairs::{FingerprintItem, Joiner, KeyGroup};
use webtwin_core::hamming::design::width_mask;
use webtwin_core::hamming::kernels::Level;
use webtwin_core::hamming::postings::distinct;
use webtwin_core::hamming::rows::{FingerprintRun, NearRuns};
use webtwin_engine::{Fallible, Net, RowStream};
use webtwin_job::Job;
use webtwin_spill::RowSorter;

/// Interval at which a worker that waits for the end of a pass checks again.
const PATIENCE: Duration = Duration::from_millis(1);

/// Passes of a join.
#[derive(Clone)]
struct Passes {
    /// One group for each pass. A join of few rows has no groups, and a single pass without a
    /// block.
    groups: Arc<Vec<KeyGroup>>,
    k: u32,
}

impl Passes {
    /// Creates the passes that find pairs which differ in at most `k` of the bits in `bits`, among
    /// about `rows` rows.
    fn new(rows: u64, bits: u64, k: u32) -> Passes {
        Passes { groups: Arc::new(Joiner::new(k, Level::best()).groups(rows as usize, bits)), k }
    }

    fn count(&self) -> u64 {
        self.groups.len().max(1) as u64
    }

    /// Returns the bits by which rows are distributed in a pass.
    fn block(&self, pass: u64) -> u64 {
        self.groups.get(pass as usize).map_or(0, |group| group.block)
    }
}

/// Finds the pairs of two documents of F, `a < b`, and writes them. A document with several rows is
/// not paired with itself.
///
/// # Errors
/// Returns [`Error::Input`] if F is damaged, [`Error::TooManyRows`] if it has more than 2^32 rows,
/// and [`Error::MemoryLimit`] if they do not fit in memory.
pub(super) fn pairs(
    net: &mut Net<'_>,
    job: &Job,
    work: &Arc<HammingWork>,
    output: &PartWriter,
) -> Result<Arc<ProcessTally>> {
    let passes = begin(net, job, work)?;
    let tally = net.once_per_process(|| ProcessTally::new(job))?;
    let rows = piece_rows(work.set.manifest.count, net.peers());
    let at = net.position();
    let pool = pool_of_sorter(bytes(work, net.peers()) * at.workers as u64, at.workers, &job.effort);
    net.dataflow(|scope, failures| {
        let runs = failures.divert(read_f(scope, work, rows, at.process, at.processes));
        let reading = DocumentReader { work, tally: &tally, sorter: &pool, failures };
        let pairs = reading.near_documents(near_runs(runs, &passes), |pair| splitmix64(pair.id()));
        let sorter = move || pool.clone();
        write(merge(pairs, sorter.clone(), failures), output, sorter, failures);
    })?;
    Ok(tally)
}

/// Finds the near fingerprints of F. Returns the pairs that this worker has found.
///
/// # Errors
/// Returns any error of [`pairs`].
pub(super) fn near(
    net: &mut Net<'_>,
    job: &Job,
    work: &Arc<HammingWork>,
) -> Result<(Vec<NearRuns>, Arc<ProcessTally>)> {
    let passes = begin(net, job, work)?;
    let tally = net.once_per_process(|| ProcessTally::new(job))?;
    let rows = piece_rows(work.set.manifest.count, net.peers());
    let at = net.position();
    let output: Rc<RefCell<Vec<NearRuns>>> = Rc::default();
    net.dataflow(|scope, failures| {
        let runs = failures.divert(read_f(scope, work, rows, at.process, at.processes));
        keep(near_runs(runs, &passes), &output);
    })?;
    let run_pairs = output.take();
    tally.add_runs(&run_pairs);
    Ok((run_pairs, tally))
}

/// Finds the pairs of distinct `runs` of all workers that differ in at most `k` of the bits in
/// `bits`. Each pair is returned once, by any worker. Runs must not differ in other bits.
///
/// # Errors
/// Returns an error only if the run has ended.
pub fn close_pairs(net: &mut Net<'_>, runs: Vec<FingerprintRun>, bits: u64, k: u32) -> Result<Vec<NearRuns>> {
    let [rows] = net.all_sum("fingerprints to be joined", [runs.len() as u64])?;
    let passes = Passes::new(rows, bits, k);
    let output: Rc<RefCell<Vec<NearRuns>>> = Rc::default();
    net.dataflow(|scope, _| keep(join(runs.to_stream(scope), &passes), &output))?;
    Ok(output.take())
}

/// Returns the bytes that a worker holds of the fingerprints that are joined.
fn bytes(work: &HammingWork, workers: usize) -> u64 {
    // Kept for all passes: 16; in transit with the number of the receiver: 24; at the worker that
    // joins them, with space to partition: 32.
    72 * work.set.manifest.count.div_ceil(workers as u64)
}

/// Returns the passes of the join. Fails if F is too large to be joined.
fn begin(net: &mut Net<'_>, job: &Job, work: &HammingWork) -> Result<Passes> {
    let rows = work.set.manifest.count;
    if u32::try_from(rows).is_err() {
        let fault = "fingerprints of F to join with themselves".into();
        return Err(Error::TooManyRows { what: fault, found: rows, allowed: u64::from(u32::MAX) });
    }
    let own_bytes = bytes(work, net.peers()) + 2 * RowSorter::<NearRuns>::MIN_BYTES;
    check_bytes_against_bound(net, "fingerprints to join", own_bytes, job.effort.memory_bytes)?;
    work.progress.enter("joining");
    Ok(Passes::new(rows, width_mask(work.set.manifest.f), job.hamming.k))
}

/// Reads the runs of the pieces of F that this worker takes.
fn read_f<'s>(
    scope: Scope<'s, u64>,
    work: &Arc<HammingWork>,
    piece_rows: u64,
    process: usize,
    processes: usize,
) -> RowStream<'s, Fallible<FingerprintRun>> {
    let work = Arc::clone(work);
    source(scope, "read F", move |capability, info| {
        let activator = scope.activator_for(info.address);
        let pieces = work.set.pieces(piece_rows);
        let mut held_capability = Some(capability);
        let (mut fingerprints, mut ends) = (Vec::new(), Vec::new());
        move |output| {
            let Some(capability) = &held_capability else { return };
            let mut session = output.session(capability);
            let Some(&piece) = pieces.get(work.pieces_read.next_of(process, processes)) else {
                drop(session);
                held_capability = None;
                return;
            };
            match work.set.read_piece(piece, &mut fingerprints) {
                Ok(row) => {
                    work.progress.records.fetch_add(fingerprints.len() as u64, Ordering::Relaxed);
                    distinct(&mut fingerprints, &mut ends);
                    let first = work.set.place(piece.chunk, row) as u32;
                    let starts = [0].iter().chain(&ends);
                    let runs = fingerprints.iter().zip(starts.zip(&ends)).map(|(&fingerprint, (start, end))| {
                        Ok(FingerprintRun { fingerprint, first: first + start, copies: end - start })
                    });
                    session.give_iterator(runs);
                    activator.activate();
                }
                Err(error) => {
                    session.give(Err(Box::new(error)));
                    drop(session);
                    held_capability = None;
                }
            }
        }
    })
}

/// Returns runs that are near each other, and runs of several rows paired with themselves.
fn near_runs<'s>(runs: RowStream<'s, FingerprintRun>, passes: &Passes) -> RowStream<'s, NearRuns> {
    let itself = |run: FingerprintRun| (run.copies > 1).then_some(NearRuns { x: run, y: run, distance: 0 });
    join(runs.clone(), passes).concat(runs.flat_map(itself))
}

/// Returns the pairs of distinct runs that are near, each once.
fn join<'s>(runs: RowStream<'s, FingerprintRun>, passes: &Passes) -> RowStream<'s, NearRuns> {
    let probe = Handle::new();
    let distributed = pass_by_pass(runs, passes, &probe).exchange(|row: &(u64, FingerprintRun)| row.0);
    let passes = passes.clone();
    let near = distributed.unary_frontier(Pipeline, "join", move |capability, _| {
        let mut held_capability = Some(capability);
        let mut joiner = Joiner::new(passes.k, Level::best());
        let (mut pass_rows, mut pass): (Vec<FingerprintRun>, u64) = (Vec::new(), 0);
        move |(rows, rows_to_come), output| {
            rows.for_each(|_, rows| pass_rows.extend(rows.drain(..).map(|row| row.1)));
            let Some(capability) = held_capability.as_mut() else { return };
            // Passes without rows must be completed, too: the other workers wait for every pass.
            while pass < passes.count() && !rows_to_come.less_equal(&pass) {
                let mut session = output.session(&*capability);
                let mut sink = |x: &FingerprintRun, y: &FingerprintRun, distance| {
                    session.give(NearRuns { x: *x, y: *y, distance })
                };
                let mut scratch = vec![FingerprintRun::default(); pass_rows.len()];
                if passes.groups.is_empty() {
                    joiner.within(&mut pass_rows, &mut scratch, &mut sink);
                } else {
                    joiner.within_group(&passes.groups, pass as usize, &mut pass_rows, &mut scratch, &mut sink);
                }
                drop(session);
                pass_rows.clear();
                pass += 1;
                capability.downgrade(&pass);
            }
            if pass == passes.count() {
                (pass_rows, held_capability) = (Vec::new(), None);
            }
        }
    });
    near.probe_with(&probe)
}

/// Sends all runs in every pass, with the number by which they are distributed. A pass starts when
/// `probe` shows that all workers have joined the previous one.
fn pass_by_pass<'s>(
    runs: RowStream<'s, FingerprintRun>,
    passes: &Passes,
    probe: &Handle<u64>,
) -> RowStream<'s, (u64, FingerprintRun)> {
    let (scope, passes, probe) = (runs.scope(), passes.clone(), probe.clone());
    runs.unary_frontier(Pipeline, "pass by pass", move |capability, info| {
        let activator = scope.activator_for(info.address);
        let mut held_capability = Some(capability);
        let (mut all_runs, mut pass, mut sent_runs) = (Vec::new(), 0, 0);
        move |(runs, runs_to_come), output| {
            runs.for_each(|_, some| all_runs.append(some));
            let Some(capability) = held_capability.as_mut().filter(|_| runs_to_come.is_empty()) else { return };
            if pass == passes.count() {
                (all_runs, held_capability) = (Vec::new(), None);
                return;
            }
            capability.downgrade(&pass);
            if probe.less_than(&pass) {
                activator.activate_after(PATIENCE);
                return;
            }
            let (block, end) = (passes.block(pass), all_runs.len().min(sent_runs + BATCH));
            let batch = all_runs[sent_runs..end]
                .iter()
                .map(|run: &FingerprintRun| (splitmix64(run.fingerprint() & block), *run));
            output.session(&*capability).give_iterator(batch);
            (sent_runs, pass) = if end == all_runs.len() { (0, pass + 1) } else { (end, pass) };
            activator.activate();
        }
    })
}

fn keep(near: RowStream<'_, NearRuns>, output: &Rc<RefCell<Vec<NearRuns>>>) {
    let output = Rc::clone(output);
    near.sink(Pipeline, "keep", move |(near, _)| near.for_each(|_, near| output.borrow_mut().append(near)));
}
