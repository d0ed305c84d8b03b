//! Dataflows that a program builds itself, for work that is a stream by nature: timely operators
//! read, send, merge and write rows concurrently.
//!
//! The collective calls ([`super::exchange`]) are steps, one after the other. A dataflow is one
//! such call: all workers build the same operators in the same order, and work until all of it is
//! complete on all workers.
//!
//! Errors are rows. An operator that may fail emits [`Fallible`] rows. [`Failures::divert`]
//! separates the errors from them, and the first error ends the run. Operators only see the errors
//! of their own worker; the run ends on all workers.

use std::cell::RefCell;
use std::rc::Rc;

use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::core::OkErr;
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::{Scope, StreamVec};

use super::carry::TICK;
use super::net::Net;
use webtwin_base::error::{Error, Result};

/// A row, or the error that occurred in its place.
pub type Fallible<T> = std::result::Result<T, Box<Error>>;

/// Stream of rows. The time of a row is the number of the part of the work that produced it.
pub type RowStream<'s, T> = StreamVec<'s, u64, T>;

/// Collector of the errors of a worker's operators.
#[derive(Debug, Clone, Default)]
pub struct Failures(Rc<RefCell<Option<Error>>>);

impl Failures {
    /// Records an error, unless an earlier one is recorded.
    pub fn notify(&self, error: Error) {
        self.0.borrow_mut().get_or_insert(error);
    }

    /// Removes and records the errors among `rows`, and returns the stream of the others.
    pub fn divert<'s, T: Clone + 'static>(&self, rows: RowStream<'s, Fallible<T>>) -> RowStream<'s, T> {
        let (rows, errors) = rows.ok_err(|row| row);
        let notice = self.clone();
        errors.container::<Vec<Box<Error>>>().sink(Pipeline, "failures", move |(errors, _)| {
            errors.for_each(|_, errors| errors.drain(..).for_each(|error| notice.notify(*error)));
        });
        rows.container::<Vec<T>>()
    }
}

/// Position of a worker in the cluster. Operators hold a copy of it, because they outlive the
/// [`Net`] borrow of the call that builds them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Index of the worker over all processes.
    pub index: usize,
    /// Number of the worker's process.
    pub process: usize,
    /// Number of processes.
    pub processes: usize,
    /// Number of workers of each process.
    pub workers: usize,
}

impl Position {
    /// Returns the index of the first worker of a process.
    pub fn first_of(self, process: usize) -> usize {
        process * self.workers
    }

    /// True if this is the first worker of its process.
    pub fn is_first(self) -> bool {
        self.index == self.first_of(self.process)
    }

    /// Returns the number of workers of all processes.
    pub fn peers(self) -> usize {
        self.processes * self.workers
    }
}

impl Net<'_> {
    /// Returns the position of this worker in the cluster.
    pub fn position(&self) -> Position {
        let (index, process, processes) = (self.index(), self.process(), self.processes());
        Position { index, process, processes, workers: self.workers_per_process() }
    }

    /// Builds a dataflow and works on it until it is complete on all workers.
    ///
    /// This is a collective call. All workers must build the same operators; decisions that depend
    /// on data belong into operators.
    ///
    /// # Errors
    /// Returns the first error that this worker's operators record, which ends the run, or the
    /// error that has ended the run elsewhere.
    pub fn dataflow(&mut self, build: impl for<'s> FnOnce(Scope<'s, u64>, &Failures)) -> Result<()> {
        let (failures, number) = (Failures::default(), self.worker.next_dataflow_index());
        self.rounds += 1;
        self.worker.dataflow::<u64, _, _>(|scope| build(scope, &failures));
        while self.worker.installed_dataflows().contains(&number) {
            self.worker.step_or_park(Some(TICK));
            self.shared.stop.check()?;
            if let Some(error) = failures.0.take() {
                return self.or_stop(Err(error));
            }
        }
        // An error of the last step is recorded after the last check in the loop.
        failures.0.take().map_or(Ok(()), |error| self.or_stop(Err(error)))
    }
}
