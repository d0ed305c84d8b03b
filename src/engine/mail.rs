//! The one dataflow under all collective calls: it transports parcels.
//!
//! Parcels of one sender arrive in the order sent. Each names its call and marks if it is the
//! sender's last one of that call. So a worker detects the end of a call as soon as the last parcel
//! of each sender has arrived: half a round trip after the slowest worker has sent it. The frontier
//! of the dataflow would report the same a whole round trip later, after every worker has reported
//! its consumed parcels to all others. So the frontier is stopped: an input is held open at time 0,
//! all parcels have time 1, and no count of parcels can advance the frontier. So timely's workers
//! exchange no progress messages about them.
//!
//! A worker may receive parcels of the next call while it is still in the current one. They are
//! queued until the next call begins.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use timely::container::NoopBuilder;
use timely::dataflow::channels::pact::DistributorPact;
use timely::dataflow::operators::core::{Concat, input};
use timely::dataflow::operators::generic::Operator;
use timely::worker::Worker;

use super::block::{AddressRouter, Block, Parcel};

type Input = input::Handle<u64, NoopBuilder<Parcel>>;

/// One worker's access to the dataflow.
pub(super) struct Mail {
    input: Input,
    /// Input that never sends anything and holds the frontier at time 0.
    _held_open: Input,
    parcels: Rc<RefCell<VecDeque<Parcel>>>,
    early: VecDeque<Parcel>,
    emptied: Rc<RefCell<Vec<Block>>>,
}

impl Mail {
    /// Builds the dataflow. All workers must do so at the same point of their program.
    pub(crate) fn new(worker: &mut Worker) -> Mail {
        let (mut input, mut held_open) = (Input::new_with_builder(), Input::new_with_builder());
        let parcel_queue = Rc::new(RefCell::new(VecDeque::new()));
        let out = Rc::clone(&parcel_queue);
        let emptied = Rc::default();
        let by_address = AddressRouter(Rc::clone(&emptied));
        worker.dataflow_named::<u64, _, _>("collectives", |scope| {
            let parcels = input.to_stream(scope).concat(held_open.to_stream(scope));
            parcels.sink(DistributorPact(move |_| by_address), "mail", move |(input, _)| {
                input.for_each(|_, parcel| out.borrow_mut().push_back(std::mem::take(parcel)));
            });
        });
        input.advance_to(1);
        Mail { input, _held_open: held_open, parcels: parcel_queue, early: VecDeque::new(), emptied }
    }

    /// Begins a call: makes the queued parcels available again.
    pub(crate) fn begin(&mut self) {
        let mut parcels = self.parcels.borrow_mut();
        self.early.drain(..).rev().for_each(|parcel| parcels.push_front(parcel));
    }

    /// Sends a parcel. It leaves this process with the worker's next step that does not wait.
    pub(crate) fn send(&mut self, mut parcel: Parcel) {
        self.input.send_batch(&mut parcel);
    }

    /// Removes and returns the blocks that have been sent to other processes.
    pub(crate) fn emptied(&self) -> Vec<Block> {
        self.emptied.take()
    }

    /// Removes and returns the next parcel of call `call` or an earlier one, and queues those of
    /// later calls.
    pub(crate) fn next(&mut self, call: u64) -> Option<Parcel> {
        loop {
            let mut parcel = self.parcels.borrow_mut().pop_front()?;
            if parcel.address.call <= call {
                return Some(parcel);
            }
            // A queued parcel must not hold a buffer of the socket, which timely needs for the
            // current call.
            parcel.rows.leave_socket();
            self.early.push_back(parcel);
        }
    }
}
