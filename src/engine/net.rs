//! What a program sees of the run it is part of.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use timely::worker::Worker;

use super::block::{Block, bytes_of_full};
use super::carry::OnTheWay;
use super::mail::Mail;
use super::stop::Stop;
use webtwin_base::error::{Error, Result};
use webtwin_base::progress::Traffic;
use webtwin_spill::MemoryPool;

/// What the workers of one process have in common.
pub(super) struct Shared {
    pub stop: Arc<Stop>,
    pub process: usize,
    pub processes: usize,
    pub workers: usize,
    pub strangers: usize,
    pub traffic: Arc<Traffic>,
    pub board: Board,
}

/// One worker's way to all the others.
///
/// Its collective calls (`exchange`, `exchange_rows`, `all_gather`, `sum`, `share`, `once` and so on) must be made by all workers
/// in the same order, whatever their data; a call out of order ends the run with an error that says so. An error that a call
/// returns has ended the run for all workers, and all later calls return it too: pass it on with `?`. So must the program do
/// with errors of its own: the first of any worker ends the run, wherever the others are.
pub struct Net<'a> {
    /// Memory that this worker's containers may fill in the step at hand. Without a bound, unless somebody sets one.
    pub memory: MemoryPool,
    pub(super) worker: &'a mut Worker,
    pub(super) shared: &'a Shared,
    pub(super) mail: Mail,
    pub(super) on_the_way: OnTheWay,
    /// Parcels of each worker that this one has taken and has yet to acknowledge.
    pub(super) taken: Vec<u32>,
    /// Messages that this worker has waited for one after the other.
    pub(super) rounds: u64,
    /// Bytes of a full block.
    pub(super) block_bytes: usize,
    /// Emptied blocks.
    pub(super) spare: Vec<Block>,
    /// Collective calls so far, the same number on all workers.
    calls: u64,
}

impl<'a> Net<'a> {
    pub(super) fn new(worker: &'a mut Worker, shared: &'a Shared) -> Net<'a> {
        let (mail, block_bytes) = (Mail::new(worker), bytes_of_full(worker.peers()));
        let (on_the_way, taken) = (OnTheWay::new(worker.peers()), vec![0; worker.peers()]);
        Net {
            memory: MemoryPool::default(),
            worker,
            shared,
            mail,
            on_the_way,
            taken,
            rounds: 0,
            block_bytes,
            spare: Vec::new(),
            calls: 0,
        }
    }

    /// Number of the collective call that begins.
    pub(super) fn next_call(&mut self) -> u64 {
        self.calls += 1;
        self.calls
    }

    /// Number of times so far that all workers have waited for messages of all others, the same on each: what a run takes at
    /// least, however few its rows are, is this number times the time of a message between its processes.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// What this process has sent so far, for people who watch.
    pub fn traffic(&self) -> Arc<Traffic> {
        Arc::clone(&self.shared.traffic)
    }

    /// Index of this worker, from 0, over all processes: process · workers per process + thread.
    pub fn index(&self) -> usize {
        self.worker.index()
    }

    /// Number of workers of all processes.
    pub fn peers(&self) -> usize {
        self.worker.peers()
    }

    /// Number of this process, from 0.
    pub fn process(&self) -> usize {
        self.shared.process
    }

    /// Number of processes.
    pub fn processes(&self) -> usize {
        self.shared.processes
    }

    /// Number of workers in each process.
    pub fn workers_per_process(&self) -> usize {
        self.shared.workers
    }

    /// Number of connections this process refused while the processes met.
    pub fn strangers(&self) -> usize {
        self.shared.strangers
    }

    /// Returns the error that has ended the run elsewhere. Long local work calls it now and then, so as to end in order:
    /// a few seconds after the run has ended, a process that is still at work is ended from outside.
    ///
    /// # Errors
    /// The reason, the same on all processes.
    pub fn check(&self) -> Result<()> {
        self.shared.stop.check()
    }
}

/// Where a worker leaves values for the other workers of its process.
#[derive(Default)]
pub(super) struct Board {
    /// By call.
    for_all: Mutex<HashMap<u64, Left>>,
    for_one: Mutex<HashMap<Label, Box<dyn Any + Send>>>,
}

/// A call, and the sender and receiver of rows in it.
type Label = (u64, usize, usize);

/// A value, and how many workers have yet to find it.
type Left = (Arc<dyn Any + Send + Sync>, usize);

impl Board {
    /// Leaves `value` under `call` for `readers` workers.
    pub(crate) fn leave(&self, call: u64, value: Arc<dyn Any + Send + Sync>, readers: usize) {
        if readers > 0 {
            self.for_all.lock().unwrap_or_else(PoisonError::into_inner).insert(call, (value, readers));
        }
    }

    /// Returns what was left under `call`, once for each reader; `None` when nothing has been left yet.
    pub(crate) fn find(&self, call: u64) -> Option<Arc<dyn Any + Send + Sync>> {
        let mut board = self.for_all.lock().unwrap_or_else(PoisonError::into_inner);
        let (value, readers) = board.get_mut(&call)?;
        let value = Arc::clone(value);
        *readers -= 1;
        if *readers == 0 {
            board.remove(&call);
        }
        Some(value)
    }

    /// Leaves rows of a call for one worker, under the call, their sender and their receiver.
    pub(crate) fn hand_over<T: Send + 'static>(&self, under: Label, rows: Vec<T>) {
        if !rows.is_empty() {
            self.for_one.lock().unwrap_or_else(PoisonError::into_inner).insert(under, Box::new(rows));
        }
    }

    /// Takes the rows that were handed over; none where there are none.
    ///
    /// # Errors
    /// [`Error::Invariant`] when they are of another type.
    pub(crate) fn taken_over<T: 'static>(&self, under: Label) -> Result<Vec<T>> {
        let rows = self.for_one.lock().unwrap_or_else(PoisonError::into_inner).remove(&under);
        let Some(rows) = rows else { return Ok(Vec::new()) };
        let other = |_| Error::Invariant("the workers of this process are in different collective calls".into());
        rows.downcast().map(|rows| *rows).map_err(other)
    }
}
