//! The one dataflow under all collective calls: parcels in, parcels out, and the number of the call as the time.
//!
//! A worker hands in the parcels of a call and then closes the call; the frontier passes it once all workers have closed it
//! and everything has come out. So a worker can be told that a call is complete while another is still in it, and be given
//! parcels of the next call while it is still in this one: those wait until it gets there.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use timely::container::NoopBuilder;
use timely::dataflow::channels::pact::DistributorPact;
use timely::dataflow::operators::core::input;
use timely::dataflow::operators::generic::Operator;
use timely::worker::Worker;

use super::block::{ByAddress, Parcel};

type Input = input::Handle<u64, NoopBuilder<Parcel>>;

/// One worker's end of the dataflow.
pub(super) struct Mail {
    input: Input,
    arrived: Rc<RefCell<VecDeque<Parcel>>>,
    /// The first call that may still bring parcels.
    open: Rc<Cell<u64>>,
    early: VecDeque<Parcel>,
}

impl Mail {
    /// Builds the dataflow; all workers must do so at the same point of their program.
    pub fn new(worker: &mut Worker) -> Mail {
        let mut input = Input::new_with_builder();
        let arrived = Rc::new(RefCell::new(VecDeque::new()));
        let open = Rc::new(Cell::new(0));
        let (out, first) = (Rc::clone(&arrived), Rc::clone(&open));
        worker.dataflow_named::<u64, _, _>("collectives", |scope| {
            let parcels = input.to_stream(scope);
            parcels.sink(DistributorPact(|_| ByAddress), "mail", move |(input, frontier)| {
                input.for_each(|_, parcel| out.borrow_mut().push_back(std::mem::take(parcel)));
                first.set(frontier.frontier().first().copied().unwrap_or(u64::MAX));
            });
        });
        Mail { input, arrived, open, early: VecDeque::new() }
    }

    /// Begins a call: parcels of it that came early are there now.
    pub fn begin(&mut self) {
        let mut arrived = self.arrived.borrow_mut();
        self.early.drain(..).rev().for_each(|parcel| arrived.push_front(parcel));
    }

    /// Sends a parcel at the time of the current call, or of the next when the current one has been closed.
    pub fn send(&mut self, mut parcel: Parcel) {
        self.input.send_batch(&mut parcel);
    }

    /// Says that this worker has no more parcels for `call`.
    pub fn close(&mut self, call: u64) {
        self.input.advance_to(call + 1);
    }

    /// Takes out the next parcel that is of no later call than `call`.
    pub fn next(&mut self, call: u64) -> Option<Parcel> {
        loop {
            let parcel = self.arrived.borrow_mut().pop_front()?;
            if parcel.about.call <= call {
                return Some(parcel);
            }
            self.early.push_back(parcel);
        }
    }

    /// Whether nothing will arrive any more for `call`.
    pub fn is_complete(&self, call: u64) -> bool {
        self.open.get() > call
    }
}
