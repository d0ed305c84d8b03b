//! The collective calls everything distributed is built on: rows to their workers, a value to all, one copy a process.
//!
//! All calls go through [`Net::carry`], compiled once: it moves blocks of rows whose type only the thin functions above it
//! know. A call contains no code of the dataflow's: it runs in the calling function, between the dataflow's steps. So
//! callers may borrow what they like, may fail, and a worker reads, sends and receives in turn.
//!
//! timely's queues are unbounded, so senders hold back: a worker has at most [`WINDOW`] parcels on their way, and the
//! receiver acknowledges what it has taken. A slow receiver slows down those who send to it and nobody else; in particular
//! nobody waits for a slow *sender*, as it would be with one epoch a block.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytemuck::Pod;
use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::xxh3_64;

use super::block::{Address, BLOCK_BYTES, Block, Parcel};
use super::net::Net;
use crate::error::{Error, Result};

/// Most parcels of one worker that were sent and not yet taken: 16 MiB when they are full blocks.
const WINDOW: usize = 64;

/// Rows that are sent before what has arrived is looked at.
const BATCH: usize = 1 << 15;

/// Rows of variable length that are sent before what has arrived is looked at.
const SMALL_BATCH: usize = 1024;

/// Longest time a waiting worker is deaf to the end of the run.
pub(super) const TICK: Duration = Duration::from_millis(20);

/// Blocks ready to be sent, and emptied ones to fill again.
struct Outbox<'a> {
    from: u32,
    name: u64,
    call: u64,
    ready: VecDeque<Parcel>,
    spare: &'a mut Vec<Block>,
}

impl Outbox<'_> {
    fn push(&mut self, to: usize, rows: Block) {
        let about = Address { to: to as u32, from: self.from, name: self.name, call: self.call, taken: 0 };
        self.ready.push_back(Parcel { about, rows });
    }

    fn push_rows(&mut self, to: usize, rows: Block) {
        if !rows.is_empty() {
            self.push(to, rows);
        }
    }
}

impl Net<'_> {
    /// Sends every row to worker `to(&row)`, and hands what arrives here to `take`.
    ///
    /// Rows of one sender arrive in the order sent, in blocks of up to 256 KiB; the blocks of different senders come in no
    /// particular order.
    ///
    /// # Errors
    /// The first error of `take`, which ends the run; or when the run has ended.
    ///
    /// # Panics
    /// When `to` names no worker.
    ///
    /// # Cost
    /// One copy of each row into its block, one more on either side of a socket. Memory: one open block for each
    /// receiver, and at most 16 MiB on the way from each worker.
    pub fn exchange<T: Pod>(
        &mut self,
        name: &str,
        rows: impl IntoIterator<Item = T>,
        to: impl Fn(&T) -> usize,
        take: impl FnMut(&[T]) -> Result<()>,
    ) -> Result<()> {
        let mut rows = rows.into_iter();
        let source = |send: &mut dyn FnMut(T)| Ok(rows.by_ref().take(BATCH).map(send).count() == BATCH);
        self.exchange_from(name, source, to, take)
    }

    /// As [`Net::exchange`], for rows that are made on the way: `source` is called again while it returns true, and gives a
    /// bounded number of rows each time (some ten thousand), so that receiving is not kept waiting.
    ///
    /// # Errors
    /// The first error of `source` or `take`, which ends the run; or when the run has ended.
    pub fn exchange_from<T: Pod>(
        &mut self,
        name: &str,
        mut source: impl FnMut(&mut dyn FnMut(T)) -> Result<bool>,
        to: impl Fn(&T) -> usize,
        mut take: impl FnMut(&[T]) -> Result<()>,
    ) -> Result<()> {
        let mut open: Vec<Block> = vec![Block::default(); self.peers()];
        let mut produce = |outbox: &mut Outbox<'_>| {
            let more = source(&mut |row| {
                let to = to(&row);
                let block = &mut open[to];
                // True for a full block, and for one without memory, which every receiver begins with.
                if block.is_full::<T>() {
                    let full = std::mem::replace(block, Block::new::<T>(outbox.spare.pop()));
                    outbox.push_rows(to, full);
                }
                block.push(&row);
            })?;
            if !more {
                open.iter_mut().enumerate().for_each(|(to, block)| outbox.push_rows(to, std::mem::take(block)));
            }
            Ok(more)
        };
        self.carry(name, &mut produce, &mut |_, block| take(block.rows()))
    }

    /// Sends every row to worker `to(&row)`; returns the rows that arrive here, in no particular order.
    ///
    /// # Errors
    /// Only when the run has ended.
    ///
    /// # Cost
    /// As [`Net::exchange`], and the rows that arrive.
    pub fn exchange_all<T: Pod>(
        &mut self,
        name: &str,
        rows: impl IntoIterator<Item = T>,
        to: impl Fn(&T) -> usize,
    ) -> Result<Vec<T>> {
        let mut arrived = Vec::new();
        self.exchange(name, rows, to, |rows| {
            arrived.extend_from_slice(rows);
            Ok(())
        })?;
        Ok(arrived)
    }

    /// Sends each row to the worker beside it, serialised unless it stays; returns the rows that arrive here, by sender and then in
    /// the order sent.
    ///
    /// # Errors
    /// Only when the run has ended.
    ///
    /// # Panics
    /// When a row is for no worker.
    pub fn exchange_rows<T: Serialize + DeserializeOwned>(
        &mut self,
        name: &str,
        rows: impl IntoIterator<Item = (usize, T)>,
    ) -> Result<Vec<T>> {
        let (me, peers) = (self.index(), self.peers());
        let mut rows = rows.into_iter();
        let mut open: Vec<Vec<u8>> = vec![Vec::new(); peers];
        let mut own = Vec::new();
        let mut produce = |outbox: &mut Outbox<'_>| {
            let mut seen = 0;
            for (to, row) in rows.by_ref().take(SMALL_BATCH) {
                seen += 1;
                if to == me {
                    own.push(row);
                    continue;
                }
                bincode::serialize_into(&mut open[to], &row)
                    .map_err(|cause| Error::Invariant(format!("a row of \"{name}\" cannot be serialised: {cause}")))?;
                if open[to].len() >= BLOCK_BYTES {
                    outbox.push(to, Block::of(&open[to]));
                    open[to].clear();
                }
            }
            let more = seen == SMALL_BATCH;
            if !more {
                open.iter().enumerate().for_each(|(to, bytes)| outbox.push_rows(to, Block::of(bytes)));
            }
            Ok(more)
        };
        let mut arrived: Vec<Vec<T>> = (0..peers).map(|_| Vec::new()).collect();
        self.carry(name, &mut produce, &mut |from, block| {
            let mut bytes: &[u8] = block.rows();
            while !bytes.is_empty() {
                arrived[from].push(bincode::deserialize_from(&mut bytes).map_err(|cause| {
                    Error::Invariant(format!("a row of \"{name}\" from worker {from} cannot be read: {cause}"))
                })?);
            }
            Ok(())
        })?;
        arrived[me] = own;
        if peers == 1 {
            return Ok(arrived.remove(me));
        }
        Ok(arrived.into_iter().flatten().collect())
    }

    /// Gives every worker the value of each, by worker index.
    ///
    /// # Errors
    /// Only when the run has ended.
    pub fn all_gather<T: Serialize + DeserializeOwned + Clone>(&mut self, name: &str, mine: T) -> Result<Vec<T>> {
        let peers = self.peers();
        self.exchange_rows(name, (0..peers).map(|to| (to, mine.clone())))
    }

    /// Combines the values of all workers by `with`, in the order of their indices: the same result on each.
    ///
    /// # Errors
    /// Only when the run has ended.
    pub fn reduce<T: Serialize + DeserializeOwned + Clone>(
        &mut self,
        name: &str,
        mine: T,
        with: impl Fn(T, T) -> T,
    ) -> Result<T> {
        let all = self.all_gather(name, mine)?;
        Ok(all.into_iter().reduce(with).expect("there is at least one worker"))
    }

    /// Adds up counts over all workers.
    ///
    /// # Errors
    /// Only when the run has ended.
    pub fn sum<const N: usize>(&mut self, name: &str, mine: [u64; N]) -> Result<[u64; N]> {
        let all = self.all_gather(name, mine.to_vec())?;
        Ok(std::array::from_fn(|at| all.iter().map(|of_worker| of_worker[at]).sum()))
    }

    /// Gives every worker the rows of all, those of worker 0 first; the workers of a process share one copy.
    ///
    /// # Errors
    /// Only when the run has ended.
    ///
    /// # Cost
    /// Each row is sent once to each process. Memory: all rows once in each process.
    pub fn share<T: Pod + Send + Sync>(&mut self, name: &str, mine: Vec<T>) -> Result<Arc<Vec<T>>> {
        let lengths: Vec<u64> = self.all_gather(name, mine.len() as u64)?;
        let (workers, processes) = (self.workers_per_process(), self.processes());
        let keeper = self.process() * workers == self.index();

        // Where the next rows of each worker go; the keeper of a process receives for all its workers.
        let mut next: Vec<usize> = Vec::with_capacity(lengths.len());
        let mut total = 0;
        for length in lengths {
            next.push(total);
            total += length as usize;
        }
        let mut all: Vec<T> = if keeper { bytemuck::zeroed_vec(total) } else { Vec::new() };
        let mut blocks = (0..processes)
            .flat_map(|process| mine.chunks(Block::room::<T>()).map(move |rows| (process * workers, rows)));
        let mut produce = |outbox: &mut Outbox<'_>| {
            let block = blocks.next();
            Ok(block.map(|(to, rows)| outbox.push(to, Block::of(rows))).is_some())
        };
        self.carry(name, &mut produce, &mut |from, block| {
            let rows = block.rows();
            all[next[from]..][..rows.len()].copy_from_slice(rows);
            next[from] += rows.len();
            Ok(())
        })?;
        self.once(|| all)
    }

    /// Lets one worker of each process make a value, which all its workers then hold together.
    ///
    /// It is the first worker of the process that calls `make`; the others wait for it.
    ///
    /// # Errors
    /// Only when the run has ended.
    pub fn once<T: Send + Sync + 'static>(&mut self, make: impl FnOnce() -> T) -> Result<Arc<T>> {
        self.once_by(0, make)
    }

    /// Lets each worker of a process see what every worker of it brings, in the order of their indices; nothing is copied.
    ///
    /// # Errors
    /// Only when the run has ended.
    pub fn pool<T: Send + Sync + 'static>(&mut self, mine: T) -> Result<Vec<Arc<T>>> {
        let (workers, mut mine) = (self.workers_per_process(), Some(mine));
        let of = |number| self.once_by(number, || mine.take().expect("a worker is asked once"));
        (0..workers).map(of).collect()
    }

    /// As [`Net::once`], where the worker of this number in its process makes the value.
    fn once_by<T: Send + Sync + 'static>(&mut self, number: usize, make: impl FnOnce() -> T) -> Result<Arc<T>> {
        let call = self.next_call();
        let workers = self.workers_per_process();
        if self.index() % workers == number {
            let made = Arc::new(make());
            self.shared.board.leave(call, made.clone(), workers - 1);
            return Ok(made);
        }
        loop {
            if let Some(made) = self.shared.board.find(call) {
                return made.downcast().map_err(|_| {
                    Error::Invariant("the workers of this process are in different collective calls".into())
                });
            }
            self.check()?;
            self.worker.step_or_park(Some(Duration::from_millis(1)));
        }
    }

    /// Ends the run with the error of a collective call, so that it is everybody's.
    pub(super) fn or_stop<T>(&self, result: Result<T>) -> Result<T> {
        if let Err(error) = &result {
            self.shared.stop.stop(error.clone());
        }
        result
    }

    /// Makes the last collective call: fails when some other worker still has one to make.
    pub(super) fn end(&mut self) -> Result<()> {
        self.carry("end of the program", &mut |_| Ok(false), &mut |_, _| Ok(()))
    }

    /// Sends what `produce` puts into the outbox while it returns true, and hands each block that arrives to `take`, with its
    /// sender.
    fn carry(
        &mut self,
        name: &str,
        produce: &mut dyn FnMut(&mut Outbox<'_>) -> Result<bool>,
        take: &mut dyn FnMut(usize, &Block) -> Result<()>,
    ) -> Result<()> {
        let carried = self.carry_blocks(name, produce, take);
        self.or_stop(carried)
    }

    fn carry_blocks(
        &mut self,
        name: &str,
        produce: &mut dyn FnMut(&mut Outbox<'_>) -> Result<bool>,
        take: &mut dyn FnMut(usize, &Block) -> Result<()>,
    ) -> Result<()> {
        let call = self.next_call();
        let (me, peers, hash) = (self.index(), self.peers(), xxh3_64(name.as_bytes()));
        let (shared, worker, mail) = (self.shared, &mut *self.worker, &mut self.mail);
        let mut outbox = Outbox { from: me as u32, name: hash, call, ready: VecDeque::new(), spare: &mut self.spare };
        mail.begin();
        // Each worker tells the next one where it is, so that no call out of order goes unnoticed for want of rows.
        outbox.push((me + 1) % peers, Block::default());
        let (mut more, mut is_closed) = (true, false);
        let mut taken: Vec<u64> = vec![0; peers];
        loop {
            shared.stop.check()?;
            if more && outbox.ready.is_empty() && self.on_their_way < WINDOW {
                more = produce(&mut outbox)?;
            }
            while self.on_their_way < WINDOW
                && let Some(parcel) = outbox.ready.pop_front()
            {
                mail.send(parcel);
                self.on_their_way += 1;
            }
            if !more && !is_closed && outbox.ready.is_empty() {
                mail.close(call);
                is_closed = true;
            }

            let is_idle = is_closed || self.on_their_way >= WINDOW;
            worker.step_or_park(Some(if is_idle { TICK } else { Duration::ZERO }));

            while let Some(Parcel { about, rows }) = mail.next(call) {
                if about.taken > 0 {
                    self.on_their_way -= about.taken as usize;
                    continue;
                }
                if (about.call, about.name) != (call, hash) {
                    // Left alone this would be a hang, or rows taken for others.
                    return Err(Error::Invariant(format!(
                        "worker {} is in another collective call than worker {me}, which is in \"{name}\", call {call}",
                        about.from
                    )));
                }
                taken[about.from as usize] += 1;
                if !rows.is_empty() {
                    take(about.from as usize, &rows)?;
                }
                if rows.is_worth_keeping() && outbox.spare.len() < WINDOW {
                    outbox.spare.push(rows);
                }
            }
            for (to, taken) in taken.iter_mut().enumerate().filter(|(_, taken)| **taken > 0) {
                let about = Address { to: to as u32, from: me as u32, name: hash, call, taken: std::mem::take(taken) };
                mail.send(Parcel { about, rows: Block::default() });
            }
            // Everything has come out, and was taken above.
            if mail.is_complete(call) {
                return Ok(());
            }
        }
    }
}
