//! The one dataflow under all collective calls: parcels in, parcels out.
//!
//! Parcels of one sender arrive in the order sent, and each says of which call it is and whether it is the sender's last of
//! that call. So a worker knows by itself, as soon as the last parcel of each sender is here, that a call is complete: half
//! a round trip after the slowest has sent it. The frontier of the dataflow would say the same a whole round trip after
//! that, once every worker has told all others what it has taken. It stands still instead: as long as an input is held open at
//! time 0, no count of parcels, which all have time 1, can move it, so timely's workers tell each other none of them.
//!
//! A worker may be given parcels of the next call while it is still in this one: those wait until it gets there.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use timely::container::NoopBuilder;
use timely::dataflow::channels::pact::DistributorPact;
use timely::dataflow::operators::core::{Concat, input};
use timely::dataflow::operators::generic::Operator;
use timely::worker::Worker;

use super::block::{Block, ByAddress, Parcel};

type Input = input::Handle<u64, NoopBuilder<Parcel>>;

/// One worker's end of the dataflow.
pub(super) struct Mail {
    input: Input,
    /// Sends nothing, ever.
    _held_open: Input,
    arrived: Rc<RefCell<VecDeque<Parcel>>>,
    early: VecDeque<Parcel>,
    emptied: Rc<RefCell<Vec<Block>>>,
}

impl Mail {
    /// Builds the dataflow; all workers must do so at the same point of their program.
    pub(crate) fn new(worker: &mut Worker) -> Mail {
        let (mut input, mut held_open) = (Input::new_with_builder(), Input::new_with_builder());
        let arrived = Rc::new(RefCell::new(VecDeque::new()));
        let out = Rc::clone(&arrived);
        let emptied = Rc::default();
        let by_address = ByAddress(Rc::clone(&emptied));
        worker.dataflow_named::<u64, _, _>("collectives", |scope| {
            let parcels = input.to_stream(scope).concat(held_open.to_stream(scope));
            parcels.sink(DistributorPact(move |_| by_address), "mail", move |(input, _)| {
                input.for_each(|_, parcel| out.borrow_mut().push_back(std::mem::take(parcel)));
            });
        });
        input.advance_to(1);
        Mail { input, _held_open: held_open, arrived, early: VecDeque::new(), emptied }
    }

    /// Begins a call: parcels of it that came early are there now.
    pub(crate) fn begin(&mut self) {
        let mut arrived = self.arrived.borrow_mut();
        self.early.drain(..).rev().for_each(|parcel| arrived.push_front(parcel));
    }

    /// Sends a parcel; it leaves this process with the next step of the worker that does not wait.
    pub(crate) fn send(&mut self, mut parcel: Parcel) {
        self.input.send_batch(&mut parcel);
    }

    /// Takes out the blocks that have been sent to other processes.
    pub(crate) fn emptied(&self) -> Vec<Block> {
        self.emptied.take()
    }

    /// Takes out the next parcel that is of no later call than `call`.
    pub(crate) fn next(&mut self, call: u64) -> Option<Parcel> {
        loop {
            let mut parcel = self.arrived.borrow_mut().pop_front()?;
            if parcel.about.call <= call {
                return Some(parcel);
            }
            parcel.rows.leave_socket();
            self.early.push_back(parcel);
        }
    }
}
