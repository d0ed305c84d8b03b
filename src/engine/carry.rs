//! Transport of blocks of rows, shared by all collective calls of [`super::exchange`] and
//! [`super::share`].
//!
//! [`Net::carry`] is compiled once. It moves blocks whose row type is known only to the thin
//! functions above it. A collective call adds no operators to the dataflow: it runs in the calling
//! function, between the steps of the dataflow. So callers may borrow any data and may fail, and a
//! worker alternates between reading, sending and receiving.
//!
//! A call is complete for a worker when the last parcel of every worker has arrived. So it takes
//! the time of one message, not of a round trip ([`super::mail`]). Between machines this latency
//! matters more than the rows if these are few, so [`Net::rounds`] counts the calls.
//!
//! timely's queues are unbounded, so senders limit themselves. A worker has at most
//! [`WINDOW_BYTES`] of full parcels in flight, an equal part of them to each receiver, and each
//! receiver acknowledges the parcels that it has taken. So the queue of a receiver is bounded, too,
//! whatever the senders do. A slow receiver delays only the workers that send to it, and no worker
//! waits for a slow *sender*, unlike with one epoch per block. The last parcel of a call to each
//! worker is not counted and not acknowledged; at most one more of them, that of the next call, is
//! in flight before it is taken. An acknowledgement travels with the last parcel of the next call.
//! It is sent separately only if the sender might wait for those that are due. So a call
//! with few rows is one message from each worker to each, and nothing else.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytemuck::Pod;
use timely::dataflow::channels::ContainerBytes;
use xxhash_rust::xxh3::xxh3_64;

use super::block::{BLOCK_BYTES, Block, Parcel, ParcelAddress};
use super::net::Net;
use webtwin_base::error::{Error, Result};

/// Maximum bytes of one worker that are sent and not yet taken, if the parcels are full: 16 MiB, or
/// a quarter of that if memory is bounded. Two last parcels to each receiver come in addition.
pub(super) const WINDOW_BYTES: usize = 64 * BLOCK_BYTES;

/// Minimum number of parcels that a worker may have in flight to one receiver, so that one can be
/// filled while another is taken.
const MIN_WINDOW: usize = 2;

/// Maximum time for which a waiting worker does not notice the end of the run.
pub(super) const TICK: Duration = Duration::from_millis(20);

/// Counted parcels in flight: sent and not yet taken by their receivers.
pub(super) struct ParcelsInFlight {
    to: Vec<usize>,
    total: usize,
    /// Maximum number in flight, in total and to one receiver.
    window: usize,
    window_of_one: usize,
}

impl ParcelsInFlight {
    /// Returns an empty set of parcels in flight to `peers` workers.
    pub(super) fn new(peers: usize) -> ParcelsInFlight {
        ParcelsInFlight { to: vec![0; peers], total: 0, window: 0, window_of_one: 0 }
    }

    /// Limits the parcels in flight to `window`, an equal part of them to each receiver.
    fn set_window(&mut self, window: usize) {
        self.window = window;
        self.window_of_one = (window / self.to.len()).max(MIN_WINDOW);
    }

    fn is_full(&self) -> bool {
        self.total >= self.window
    }

    fn may_go(&self, to: usize) -> bool {
        !self.is_full() && self.to[to] < self.window_of_one
    }

    fn note_sent(&mut self, to: usize) {
        self.to[to] += 1;
        self.total += 1;
    }

    fn note_taken(&mut self, peer: usize, parcels: usize) {
        self.to[peer] -= parcels;
        self.total -= parcels;
    }
}

/// Blocks that are ready to be sent, and emptied blocks for reuse.
pub(super) struct Outbox<'a> {
    from: u32,
    name: u64,
    pub(super) call: u64,
    /// Kind of the rows in the blocks that are put in.
    pub(super) kind: u16,
    ready: VecDeque<Parcel>,
    /// Size of a full block in bytes.
    pub(super) block_bytes: usize,
    /// Maximum number of parcels in flight.
    window: usize,
    pub(super) spare: &'a mut Vec<Block>,
}

impl Outbox<'_> {
    pub(super) fn push(&mut self, to: usize, rows: Block) {
        let &mut Outbox { from, name, call, kind, .. } = self;
        let address = ParcelAddress { to: to as u32, from, name, call, taken_parcels: 0, last: 0, kind, notice: 0 };
        self.ready.push_back(Parcel { address, rows });
    }

    /// True if all blocks that were put in have been sent.
    pub(super) fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    /// Removes and returns the next parcel that may be sent. Parcels to one receiver keep their
    /// order.
    fn next(&mut self, parcels_in_flight: &ParcelsInFlight) -> Option<Parcel> {
        let mut waits: Vec<u32> = Vec::new();
        let is_sendable = |parcel: &Parcel| {
            let to = parcel.address.to;
            let is_sendable_now = !parcel.address.is_counted(&parcel.rows) || parcels_in_flight.may_go(to as usize);
            // An earlier parcel to this receiver waits, so this one must not overtake it.
            if waits.contains(&to) {
                return false;
            }
            if !is_sendable_now {
                waits.push(to);
            }
            is_sendable_now
        };
        let at = self.ready.iter().position(is_sendable)?;
        self.ready.remove(at)
    }

    /// Marks the last parcel to each worker, and adds the number `notice` and the acknowledgement
    /// to it. A worker without any parcel in the outbox gets an empty one.
    fn close(&mut self, taken_parcels: &mut [u32], notice: u64) {
        let peers = taken_parcels.len();
        let mut has_no_parcel: Vec<bool> = vec![true; peers];
        self.ready.iter().for_each(|parcel| has_no_parcel[parcel.address.to as usize] = false);
        (0..peers).filter(|&to| has_no_parcel[to]).for_each(|to| self.push(to, Block::default()));
        let mut open: Vec<bool> = vec![true; peers];
        for Parcel { address: about, .. } in self.ready.iter_mut().rev() {
            let to = about.to as usize;
            if std::mem::take(&mut open[to]) {
                (about.last, about.notice, about.taken_parcels) = (1, notice, std::mem::take(&mut taken_parcels[to]));
            }
        }
    }

    /// Keeps the memory of an emptied block for reuse if it has the size of a full block.
    fn keep(&mut self, emptied: Block) {
        if emptied.held_bytes() == self.block_bytes && self.spare.len() < self.window {
            self.spare.push(emptied);
        }
    }

    /// Adds a block of all `rows`.
    pub(super) fn push_all<T: Pod>(&mut self, to: usize, rows: &[T]) {
        let rows = Block::from_rows(rows, self.spare);
        self.push(to, rows);
    }

    pub(super) fn push_rows(&mut self, to: usize, rows: Block) {
        if !rows.is_empty() {
            self.push(to, rows);
        }
    }
}

/// Adds blocks to the outbox. Returns true if it has to be called again.
pub(super) type BlockProducer<'p> = dyn FnMut(&mut Outbox<'_>) -> Result<bool> + 'p;

/// Receives a block and its address.
pub(super) type BlockReceiver<'t> = dyn FnMut(&ParcelAddress, &Block) -> Result<()> + 't;

impl Net<'_> {
    /// Ends the run on all processes with the error of a collective call, and returns `result`.
    pub(super) fn or_stop<T>(&self, result: Result<T>) -> Result<T> {
        if let Err(error) = &result {
            self.shared.stop.stop(error.clone());
        }
        result
    }

    /// Makes the last collective call. It fails if another worker still has one to make.
    pub(super) fn end(&mut self) -> Result<()> {
        self.carry("end of the program", 0, &mut |_| Ok(false), &mut |_, _| Ok(())).map(drop)
    }

    /// Sends the blocks that `produce` adds to the outbox, and calls `produce` again while it
    /// returns true. Each block that arrives is passed to `take` with its address. Every worker
    /// also receives the number `notice` of every other worker; they are returned by worker index.
    pub(super) fn carry(
        &mut self,
        name: &str,
        notice: u64,
        produce: &mut BlockProducer<'_>,
        take: &mut BlockReceiver<'_>,
    ) -> Result<Vec<u64>> {
        let carried = self.carry_blocks(name, notice, produce, take);
        self.or_stop(carried)
    }

    fn carry_blocks(
        &mut self,
        name: &str,
        notice: u64,
        produce: &mut BlockProducer<'_>,
        take: &mut BlockReceiver<'_>,
    ) -> Result<Vec<u64>> {
        let call = self.next_call();
        self.rounds += 1;
        let (own_index, peers, hash) = (self.index(), self.peers(), xxh3_64(name.as_bytes()));
        let (process, workers) = (self.process(), self.workers_per_process());
        if own_index == process * workers {
            self.shared.traffic.rounds.fetch_add(1, Ordering::Relaxed);
        }
        let (shared, worker, mail) = (self.shared, &mut *self.worker, &mut self.mail);
        let (ready, block_bytes, spare) = (VecDeque::new(), self.block_bytes, &mut self.spare);
        // Parcels that wait for a receiver are outside of its memory budget, so a bounded run has a
        // smaller window.
        let window = if self.memory.is_bounded() { WINDOW_BYTES / 4 } else { WINDOW_BYTES } / block_bytes;
        self.parcels_in_flight.set_window(window);
        // A worker acknowledges as soon as this many parcels are due. It is less than the sender's
        // window, both to one receiver and to all together, so a sender never waits for an
        // acknowledgement that is held back.
        let max_due = (window / 2 / peers).max(1) as u32;
        let mut outbox =
            Outbox { from: own_index as u32, name: hash, call, kind: 0, ready, block_bytes, window, spare };
        mail.begin();
        let mut has_more = true;
        let (mut ended, mut yet_to_end) = (vec![None; peers], peers);
        // A step that waits first does not flush what was sent before it, so a step without waiting
        // follows every send.
        let mut has_sent = false;
        loop {
            shared.stop.check()?;
            // Rows are produced only while they can be sent, so that the outbox stays bounded.
            if has_more && outbox.is_empty() && !self.parcels_in_flight.is_full() {
                has_more = produce(&mut outbox)?;
                if !has_more {
                    outbox.close(&mut self.taken_parcels, notice);
                }
            }
            while let Some(parcel) = outbox.next(&self.parcels_in_flight) {
                let (to, bytes) = (parcel.address.to as usize, parcel.length_in_bytes() as u64);
                if parcel.address.is_counted(&parcel.rows) {
                    self.parcels_in_flight.note_sent(to);
                }
                if to != own_index {
                    shared.traffic.exchanged_bytes.fetch_add(bytes, Ordering::Relaxed);
                }
                if to / workers != process {
                    shared.traffic.sent_bytes.fetch_add(bytes, Ordering::Relaxed);
                }
                mail.send(parcel);
                has_sent = true;
            }
            let is_idle = !has_sent && (!has_more || !outbox.is_empty() || self.parcels_in_flight.is_full());
            worker.step_or_park(Some(if is_idle { TICK } else { Duration::ZERO }));
            has_sent = false;
            mail.emptied().into_iter().for_each(|block| outbox.keep(block));

            while let Some(Parcel { address, rows }) = mail.next(call) {
                self.parcels_in_flight.note_taken(address.from as usize, address.taken_parcels as usize);
                if address.is_acknowledgement(&rows) {
                    continue;
                }
                if (address.call, address.name) != (call, hash) {
                    // Without this check the run would hang, or take the rows of another call for
                    // its own.
                    return Err(Error::Invariant(format!(
                        "worker {} is in another collective call than worker {own_index}, which is in \"{name}\", call {call}",
                        address.from
                    )));
                }
                self.taken_parcels[address.from as usize] += u32::from(address.is_counted(&rows));
                if !rows.is_empty() {
                    take(&address, &rows)?;
                }
                if address.last == 1 {
                    yet_to_end -= usize::from(ended[address.from as usize].replace(address.notice).is_none());
                }
                outbox.keep(rows);
            }
            // Separate acknowledgements, only if the sender might soon wait for them.
            for (to, count) in self.taken_parcels.iter_mut().enumerate().filter(|(_, taken)| **taken >= max_due) {
                let count = std::mem::take(count);
                let to = to as u32;
                let address = ParcelAddress {
                    to,
                    from: own_index as u32,
                    name: hash,
                    call,
                    taken_parcels: count,
                    last: 0,
                    kind: 0,
                    notice: 0,
                };
                mail.send(Parcel { address, rows: Block::default() });
                has_sent = true;
            }
            if yet_to_end == 0 && !has_more && outbox.is_empty() {
                if has_sent {
                    worker.step();
                }
                return Ok(ended.into_iter().flatten().collect());
            }
        }
    }
}
