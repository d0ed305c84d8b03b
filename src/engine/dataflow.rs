//! Dataflows of a program's own, for what is a stream by nature: rows are read, sent, merged and written side by side by timely
//! operators.
//!
//! The collective calls ([`super::exchange`]) are steps, one after the other; a dataflow is one call, too: all workers
//! build the same operators in the same order, and work until all of it is done on all workers.
//!
//! Errors are rows. What may fail gives [`Fallible`] rows, [`Failures::divert`] leads the errors aside, and the first one ends
//! the run. Operators only see the errors of their own worker; it is the run that ends everywhere.

use std::cell::RefCell;
use std::rc::Rc;

use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::core::OkErr;
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::{Scope, StreamVec};

use super::carry::TICK;
use super::net::Net;
use webtwin_base::error::{Error, Result};

/// A row, or why there is none.
pub type Fallible<T> = std::result::Result<T, Box<Error>>;

/// Rows on their way; the time of a row tells which share of the work made it.
pub type Rows<'s, T> = StreamVec<'s, u64, T>;

/// Where the operators of a worker tell what has failed.
#[derive(Debug, Clone, Default)]
pub struct Failures(Rc<RefCell<Option<Error>>>);

impl Failures {
    /// Tells of an error; the first one counts.
    pub fn tell(&self, error: Error) {
        self.0.borrow_mut().get_or_insert(error);
    }

    /// Leads the errors among rows aside.
    pub fn divert<'s, T: Clone + 'static>(&self, rows: Rows<'s, Fallible<T>>) -> Rows<'s, T> {
        let (rows, errors) = rows.ok_err(|row| row);
        let told = self.clone();
        errors.container::<Vec<Box<Error>>>().sink(Pipeline, "failures", move |(errors, _)| {
            errors.for_each(|_, errors| errors.drain(..).for_each(|error| told.tell(*error)));
        });
        rows.container::<Vec<T>>()
    }
}

/// Where a worker stands among the others; what an operator, which outlives the call that builds it, may know of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Index of the worker, over all processes.
    pub index: usize,
    /// Its process.
    pub process: usize,
    /// Number of processes.
    pub processes: usize,
    /// Workers of each process.
    pub workers: usize,
}

impl Position {
    /// Index of the first worker of a process.
    pub fn first_of(self, process: usize) -> usize {
        process * self.workers
    }

    /// Whether this is the first worker of its process.
    pub fn is_first(self) -> bool {
        self.index == self.first_of(self.process)
    }

    /// Number of workers.
    pub fn peers(self) -> usize {
        self.processes * self.workers
    }
}

impl Net<'_> {
    /// Where this worker stands.
    pub fn position(&self) -> Position {
        let (index, process, processes) = (self.index(), self.process(), self.processes());
        Position { index, process, processes, workers: self.workers_per_process() }
    }

    /// Builds a dataflow and works on it until it is done on all workers.
    ///
    /// All workers make this call, as any collective one, and build the same; decisions are for operators.
    ///
    /// # Errors
    /// The first that this worker's operators tell, which ends the run; or when the run has ended.
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
        // What fails in the last step fails all the same.
        failures.0.take().map_or(Ok(()), |error| self.or_stop(Err(error)))
    }
}
