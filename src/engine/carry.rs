//! How all collective calls move blocks of rows: those of [`super::exchange`] and [`super::share`].
//!
//! [`Net::carry`] is compiled once: it moves blocks of rows whose type only the thin functions above it
//! know. A call contains no code of the dataflow's: it runs in the calling function, between the dataflow's steps. So
//! callers may borrow what they like, may fail, and a worker reads, sends and receives in turn.
//!
//! A call is complete for a worker when the last parcel of every worker is here, so it takes the time of one message,
//! not of a question and its answer ([`super::mail`]). Between machines that time counts more than the rows where these
//! are few, so [`Net::rounds`] counts the calls.
//!
//! timely's queues are unbounded, so senders hold back: a worker has at most [`WINDOW_BYTES`] of full parcels on their
//! way, an equal part of them to each receiver, who acknowledges what it has taken. So what waits for a receiver is
//! bounded, too, whoever sends how much. A slow receiver slows down those who send to it and nobody
//! else; in particular nobody waits for a slow *sender*, as it would be with one epoch a block. The last parcel of a
//! call to each worker does not count, and is not acknowledged: there is one more at most, of the next call, before it
//! is taken. An acknowledgement goes with the last parcel of the next call, and by itself only where so many are due
//! that the sender might wait for them. So a call with few rows is a message from each worker to each, and nothing
//! else.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytemuck::Pod;
use timely::dataflow::channels::ContainerBytes;
use xxhash_rust::xxh3::xxh3_64;

use super::block::{Address, BLOCK_BYTES, Block, Parcel};
use super::net::Net;
use webtwin_base::error::{Error, Result};

/// Most bytes of one worker that were sent and not yet taken, beside two last parcels to each, when the parcels are
/// full: 16 MiB, or a quarter of that where memory has a bound.
pub(super) const WINDOW_BYTES: usize = 64 * BLOCK_BYTES;

/// Fewest parcels that a worker may have on their way to another: one is filled while one is taken.
const LEAST_WINDOW: usize = 2;

/// Longest time a waiting worker is deaf to the end of the run.
pub(super) const TICK: Duration = Duration::from_millis(20);

/// Parcels that count and that were sent and not yet taken.
pub(super) struct OnTheWay {
    to: Vec<usize>,
    total: usize,
    /// Most of them, and most of them to one receiver.
    window: usize,
    window_of_one: usize,
}

impl OnTheWay {
    /// None yet, to so many workers.
    pub(super) fn new(peers: usize) -> OnTheWay {
        OnTheWay { to: vec![0; peers], total: 0, window: 0, window_of_one: 0 }
    }

    /// Lets so many be on their way, an equal part to each receiver.
    fn set_window(&mut self, window: usize) {
        self.window = window;
        self.window_of_one = (window / self.to.len()).max(LEAST_WINDOW);
    }

    fn is_full(&self) -> bool {
        self.total >= self.window
    }

    fn may_go(&self, to: usize) -> bool {
        !self.is_full() && self.to[to] < self.window_of_one
    }

    fn sent(&mut self, to: usize) {
        self.to[to] += 1;
        self.total += 1;
    }

    fn taken(&mut self, by: usize, parcels: usize) {
        self.to[by] -= parcels;
        self.total -= parcels;
    }
}

/// Blocks ready to be sent, and emptied ones to fill again.
pub(super) struct Outbox<'a> {
    from: u32,
    name: u64,
    pub(super) call: u64,
    /// Of the rows that are put in.
    pub(super) kind: u16,
    ready: VecDeque<Parcel>,
    /// Bytes of a full block.
    pub(super) block_bytes: usize,
    /// Most parcels on their way.
    window: usize,
    pub(super) spare: &'a mut Vec<Block>,
}

impl Outbox<'_> {
    pub(super) fn push(&mut self, to: usize, rows: Block) {
        let &mut Outbox { from, name, call, kind, .. } = self;
        let about = Address { to: to as u32, from, name, call, taken: 0, last: 0, kind, told: 0 };
        self.ready.push_back(Parcel { about, rows });
    }

    /// Returns whether everything put in was sent.
    pub(super) fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    /// Takes out the next parcel that may go; those to one receiver go in their order.
    fn next(&mut self, on_the_way: &OnTheWay) -> Option<Parcel> {
        let mut waits: Vec<u32> = Vec::new();
        let goes = |parcel: &Parcel| {
            let to = parcel.about.to;
            let goes = !parcel.about.is_counted(&parcel.rows) || on_the_way.may_go(to as usize);
            if waits.contains(&to) {
                return false;
            }
            if !goes {
                waits.push(to);
            }
            goes
        };
        let at = self.ready.iter().position(goes)?;
        self.ready.remove(at)
    }

    /// Marks the last parcel to each worker, with what is told and acknowledged; one that is sent nothing else is sent
    /// an empty one.
    fn close(&mut self, taken: &mut [u32], told: u64) {
        let peers = taken.len();
        let mut without: Vec<bool> = vec![true; peers];
        self.ready.iter().for_each(|parcel| without[parcel.about.to as usize] = false);
        (0..peers).filter(|&to| without[to]).for_each(|to| self.push(to, Block::default()));
        let mut open: Vec<bool> = vec![true; peers];
        for Parcel { about, .. } in self.ready.iter_mut().rev() {
            let to = about.to as usize;
            if std::mem::take(&mut open[to]) {
                (about.last, about.told, about.taken) = (1, told, std::mem::take(&mut taken[to]));
            }
        }
    }

    /// Keeps the memory of an emptied block for another, if it is worth it.
    fn keep(&mut self, emptied: Block) {
        if emptied.held_bytes() == self.block_bytes && self.spare.len() < self.window {
            self.spare.push(emptied);
        }
    }

    /// Puts in a block of these rows, however many.
    pub(super) fn push_all<T: Pod>(&mut self, to: usize, rows: &[T]) {
        let rows = Block::of(rows, self.spare);
        self.push(to, rows);
    }

    pub(super) fn push_rows(&mut self, to: usize, rows: Block) {
        if !rows.is_empty() {
            self.push(to, rows);
        }
    }
}

/// Puts blocks into the outbox; returns whether there may be more.
pub(super) type Produce<'p> = dyn FnMut(&mut Outbox<'_>) -> Result<bool> + 'p;

/// Takes a block that has arrived, with its address.
pub(super) type Take<'t> = dyn FnMut(&Address, &Block) -> Result<()> + 't;

impl Net<'_> {
    /// Ends the run with the error of a collective call, so that it is everybody's.
    pub(super) fn or_stop<T>(&self, result: Result<T>) -> Result<T> {
        if let Err(error) = &result {
            self.shared.stop.stop(error.clone());
        }
        result
    }

    /// Makes the last collective call: fails when some other worker still has one to make.
    pub(super) fn end(&mut self) -> Result<()> {
        self.carry("end of the program", 0, &mut |_| Ok(false), &mut |_, _| Ok(())).map(drop)
    }

    /// Sends what `produce` puts into the outbox while it returns true, and hands each block that arrives to `take`,
    /// with its address; tells all workers a number, and returns theirs.
    pub(super) fn carry(
        &mut self,
        name: &str,
        told: u64,
        produce: &mut Produce<'_>,
        take: &mut Take<'_>,
    ) -> Result<Vec<u64>> {
        let carried = self.carry_blocks(name, told, produce, take);
        self.or_stop(carried)
    }

    fn carry_blocks(
        &mut self,
        name: &str,
        told: u64,
        produce: &mut Produce<'_>,
        take: &mut Take<'_>,
    ) -> Result<Vec<u64>> {
        let call = self.next_call();
        self.rounds += 1;
        let (me, peers, hash) = (self.index(), self.peers(), xxh3_64(name.as_bytes()));
        let (process, workers) = (self.process(), self.workers_per_process());
        if me == process * workers {
            self.shared.traffic.rounds.fetch_add(1, Ordering::Relaxed);
        }
        let (shared, worker, mail) = (self.shared, &mut *self.worker, &mut self.mail);
        let (ready, block_bytes, spare) = (VecDeque::new(), self.block_bytes, &mut self.spare);
        // What waits for a receiver is no part of what its containers may fill.
        let window = if self.memory.is_bounded() { WINDOW_BYTES / 4 } else { WINDOW_BYTES } / block_bytes;
        self.on_the_way.set_window(window);
        // What is due to a worker is less than it may have on their way, by one other and by all together.
        let most_due = (window / 2 / peers).max(1) as u32;
        let mut outbox = Outbox { from: me as u32, name: hash, call, kind: 0, ready, block_bytes, window, spare };
        mail.begin();
        let mut more = true;
        let (mut ended, mut yet_to_end) = (vec![None; peers], peers);
        // What is sent leaves the process at the end of a step, but not of one that waits first.
        let mut has_sent = false;
        loop {
            shared.stop.check()?;
            if more && outbox.is_empty() && !self.on_the_way.is_full() {
                more = produce(&mut outbox)?;
                if !more {
                    outbox.close(&mut self.taken, told);
                }
            }
            while let Some(parcel) = outbox.next(&self.on_the_way) {
                let (to, bytes) = (parcel.about.to as usize, parcel.length_in_bytes() as u64);
                if parcel.about.is_counted(&parcel.rows) {
                    self.on_the_way.sent(to);
                }
                if to != me {
                    shared.traffic.exchanged_bytes.fetch_add(bytes, Ordering::Relaxed);
                }
                if to / workers != process {
                    shared.traffic.sent_bytes.fetch_add(bytes, Ordering::Relaxed);
                }
                mail.send(parcel);
                has_sent = true;
            }
            let is_idle = !has_sent && (!more || !outbox.is_empty() || self.on_the_way.is_full());
            worker.step_or_park(Some(if is_idle { TICK } else { Duration::ZERO }));
            has_sent = false;
            mail.emptied().into_iter().for_each(|block| outbox.keep(block));

            while let Some(Parcel { about, rows }) = mail.next(call) {
                self.on_the_way.taken(about.from as usize, about.taken as usize);
                if about.is_acknowledgement(&rows) {
                    continue;
                }
                if (about.call, about.name) != (call, hash) {
                    // Left alone this would be a hang, or rows taken for others.
                    return Err(Error::Invariant(format!(
                        "worker {} is in another collective call than worker {me}, which is in \"{name}\", call {call}",
                        about.from
                    )));
                }
                self.taken[about.from as usize] += u32::from(about.is_counted(&rows));
                if !rows.is_empty() {
                    take(&about, &rows)?;
                }
                if about.last == 1 {
                    yet_to_end -= usize::from(ended[about.from as usize].replace(about.told).is_none());
                }
                outbox.keep(rows);
            }
            for (to, taken) in self.taken.iter_mut().enumerate().filter(|(_, taken)| **taken >= most_due) {
                let taken = std::mem::take(taken);
                let to = to as u32;
                let about = Address { to, from: me as u32, name: hash, call, taken, last: 0, kind: 0, told: 0 };
                mail.send(Parcel { about, rows: Block::default() });
                has_sent = true;
            }
            if yet_to_end == 0 && !more && outbox.is_empty() {
                if has_sent {
                    worker.step();
                }
                return Ok(ended.into_iter().flatten().collect());
            }
        }
    }
}
