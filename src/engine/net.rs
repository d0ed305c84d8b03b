//! Interface between a program and the run that it is part of.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use timely::worker::Worker;

use super::block::{Block, bytes_of_full};
use super::carry::ParcelsInFlight;
use super::mail::Mail;
use super::stop::Stop;
use webtwin_base::error::{Error, Result};
use webtwin_base::progress::Traffic;
use webtwin_spill::MemoryPool;

/// State that the workers of one process share.
pub(super) struct ProcessState {
    pub stop: Arc<Stop>,
    pub process: usize,
    pub processes: usize,
    pub workers: usize,
    pub strangers: usize,
    pub traffic: Arc<Traffic>,
    pub board: Board,
}

/// Connection of one worker to all others.
///
/// Its collective calls (`exchange`, `exchange_rows`, `all_gather`, `sum`, `share`, `once` and so
/// on) must be made by all workers in the same order, whatever their data. A call out of order ends
/// the run with an error that names the call. An error that a call returns has ended the run for
/// all workers, and all later calls return it, too: propagate it with `?`. A program must also
/// return its own errors: the first error of any worker ends the run for all.
pub struct Net<'a> {
    /// Memory budget of this worker's containers in the current step. Unbounded by default.
    pub memory: MemoryPool,
    pub(super) worker: &'a mut Worker,
    pub(super) shared: &'a ProcessState,
    pub(super) mail: Mail,
    pub(super) parcels_in_flight: ParcelsInFlight,
    /// Number of parcels of each worker that this one has taken and not yet acknowledged.
    pub(super) taken_parcels: Vec<u32>,
    /// Number of collective rounds so far: messages that this worker has waited for one after the
    /// other.
    pub(super) rounds: u64,
    /// Size of a full block in bytes.
    pub(super) block_bytes: usize,
    /// Emptied blocks, for reuse.
    pub(super) spare: Vec<Block>,
    /// Number of collective calls so far, the same on all workers.
    calls: u64,
}

impl<'a> Net<'a> {
    pub(super) fn new(worker: &'a mut Worker, shared: &'a ProcessState) -> Net<'a> {
        let (mail, block_bytes) = (Mail::new(worker), bytes_of_full(worker.peers()));
        let (parcels_in_flight, taken_parcels) = (ParcelsInFlight::new(worker.peers()), vec![0; worker.peers()]);
        Net {
            memory: MemoryPool::default(),
            worker,
            shared,
            mail,
            parcels_in_flight,
            taken_parcels,
            rounds: 0,
            block_bytes,
            spare: Vec::new(),
            calls: 0,
        }
    }

    /// Returns the number of the collective call that begins.
    pub(super) fn next_call(&mut self) -> u64 {
        self.calls += 1;
        self.calls
    }

    /// Returns the number of times so far that all workers have waited for messages of all others.
    /// It is the same on each worker. This number times the latency between processes is the
    /// minimum duration of a run, however few its rows are.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Returns counters of what this process has sent so far, for progress displays.
    pub fn traffic(&self) -> Arc<Traffic> {
        Arc::clone(&self.shared.traffic)
    }

    /// Returns the index of this worker over all processes, from 0: process · workers per process +
    /// thread.
    pub fn index(&self) -> usize {
        self.worker.index()
    }

    /// Returns the number of workers of all processes.
    pub fn peers(&self) -> usize {
        self.worker.peers()
    }

    /// Returns the number of this process, from 0.
    pub fn process(&self) -> usize {
        self.shared.process
    }

    /// Returns the number of processes.
    pub fn processes(&self) -> usize {
        self.shared.processes
    }

    /// Returns the number of workers in each process.
    pub fn workers_per_process(&self) -> usize {
        self.shared.workers
    }

    /// Returns the number of connections that this process refused while the processes met.
    pub fn strangers(&self) -> usize {
        self.shared.strangers
    }

    /// Returns the error that has ended the run elsewhere, if one has. Long local work must call it
    /// regularly so as to end in order: a process that is still at work a few seconds after the end
    /// of the run is terminated.
    ///
    /// # Errors
    /// Returns the error that has ended the run, the same on all processes.
    pub fn check(&self) -> Result<()> {
        self.shared.stop.check()
    }
}

/// Exchange of values between the workers of one process.
#[derive(Default)]
pub(super) struct Board {
    /// Values by number of call.
    for_all: Mutex<HashMap<u64, SharedValue>>,
    for_one: Mutex<HashMap<Label, Box<dyn Any + Send>>>,
}

/// Number of a call, sender of its rows, and their receiver.
type Label = (u64, usize, usize);

/// A value, and the number of workers that have yet to read it.
type SharedValue = (Arc<dyn Any + Send + Sync>, usize);

impl Board {
    /// Stores `value` under `call` for `readers` workers.
    pub(crate) fn leave(&self, call: u64, value: Arc<dyn Any + Send + Sync>, readers: usize) {
        if readers > 0 {
            self.for_all.lock().unwrap_or_else(PoisonError::into_inner).insert(call, (value, readers));
        }
    }

    /// Returns the value that was stored under `call`, once for each reader, or `None` if nothing
    /// has been stored yet.
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

    /// Stores rows for one worker, under their call, sender and receiver.
    pub(crate) fn pass_on<T: Send + 'static>(&self, label: Label, rows: Vec<T>) {
        if !rows.is_empty() {
            self.for_one.lock().unwrap_or_else(PoisonError::into_inner).insert(label, Box::new(rows));
        }
    }

    /// Removes and returns the rows that were stored under a label; empty if there are none.
    ///
    /// # Errors
    /// Returns [`Error::Invariant`] if the rows have another type.
    pub(crate) fn taken_over<T: 'static>(&self, label: Label) -> Result<Vec<T>> {
        let rows = self.for_one.lock().unwrap_or_else(PoisonError::into_inner).remove(&label);
        let Some(rows) = rows else { return Ok(Vec::new()) };
        let other = |_| Error::Invariant("the workers of this process are in different collective calls".into());
        rows.downcast().map(|rows| *rows).map_err(other)
    }
}
