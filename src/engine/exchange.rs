//! The collective calls everything distributed is built on: rows to their workers, a value to all, one copy a process.
//!
//! All calls go through [`Net::carry`], compiled once: it moves blocks of rows whose type only the thin functions above it
//! know. A call contains no code of the dataflow's: it runs in the calling function, between the dataflow's steps. So
//! callers may borrow what they like, may fail, and a worker reads, sends and receives in turn.
//!
//! A call is complete for a worker when the last parcel of every worker is here, so it takes the time of one message, not
//! of a question and its answer ([`super::mail`]). Between machines that time counts more than the rows where these are
//! few, so [`Net::rounds`] counts the calls.
//!
//! timely's queues are unbounded, so senders hold back: a worker has at most [`WINDOW`] parcels on their way, and the
//! receiver acknowledges what it has taken. A slow receiver slows down those who send to it and nobody else; in particular
//! nobody waits for a slow *sender*, as it would be with one epoch a block.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytemuck::Pod;
use serde::Serialize;
use serde::de::DeserializeOwned;
use timely::dataflow::channels::ContainerBytes;
use xxhash_rust::xxh3::xxh3_64;

use super::block::{Address, BLOCK_BYTES, Block, Parcel};
use super::net::Net;
use crate::error::{Error, Result};

/// Most parcels of one worker that were sent and not yet taken: 16 MiB when they are full blocks.
const WINDOW: usize = 64;

/// Bytes of the rows of all workers that travel with their numbers in [`Net::share`], in equal parts.
pub const AT_ONCE_BYTES: usize = WINDOW * BLOCK_BYTES;

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
    /// Of the rows that are put in.
    kind: u16,
    ready: VecDeque<Parcel>,
    spare: &'a mut Vec<Block>,
}

impl Outbox<'_> {
    fn push(&mut self, to: usize, rows: Block) {
        let &mut Outbox { from, name, call, kind, .. } = self;
        let about = Address { to: to as u32, from, name, call, taken: 0, last: 0, kind, told: 0 };
        self.ready.push_back(Parcel { about, rows });
    }

    /// Marks the last parcel to each worker, with what is told; one that is sent nothing else is sent an empty one.
    fn close(&mut self, peers: usize, told: u64) {
        let mut without: Vec<bool> = vec![true; peers];
        self.ready.iter().for_each(|parcel| without[parcel.about.to as usize] = false);
        (0..peers).filter(|&to| without[to]).for_each(|to| self.push(to, Block::default()));
        let mut open: Vec<bool> = vec![true; peers];
        for Parcel { about, .. } in self.ready.iter_mut().rev() {
            if std::mem::take(&mut open[about.to as usize]) {
                (about.last, about.told) = (1, told);
            }
        }
    }

    fn push_rows(&mut self, to: usize, rows: Block) {
        if !rows.is_empty() {
            self.push(to, rows);
        }
    }
}

/// Blocks that are being filled, one for each worker.
struct OpenBlocks(Vec<Block>);

impl OpenBlocks {
    #[inline]
    fn push<T: Pod>(&mut self, to: usize, row: &T, outbox: &mut Outbox<'_>) {
        // True for a full block, and for one without memory, which every receiver begins with.
        if self.0[to].is_full::<T>() {
            self.renew::<T>(to, outbox);
        }
        self.0[to].push(row);
    }

    #[cold]
    fn renew<T: Pod>(&mut self, to: usize, outbox: &mut Outbox<'_>) {
        let full = std::mem::replace(&mut self.0[to], Block::new::<T>(outbox.spare.pop()));
        outbox.push_rows(to, full);
    }

    /// Hands on what is in them.
    fn empty(&mut self, outbox: &mut Outbox<'_>) {
        self.0.iter_mut().enumerate().for_each(|(to, block)| outbox.push_rows(to, std::mem::take(block)));
    }
}

/// Puts some rows into the blocks of their workers; returns whether there may be more.
#[inline]
fn push_some<T: Pod>(
    rows: &mut impl Iterator<Item = T>,
    to: impl Fn(&T) -> usize,
    open: &mut OpenBlocks,
    outbox: &mut Outbox<'_>,
) -> bool {
    let mut sent = 0;
    rows.take(BATCH).for_each(|row| {
        open.push(to(&row), &row, outbox);
        sent += 1;
    });
    sent == BATCH
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
        self.exchange_telling(name, 0, rows, to, take).map(drop)
    }

    /// As [`Net::exchange`]; every worker is told a number by each, too: returns them by worker index.
    ///
    /// # Errors
    /// As [`Net::exchange`].
    pub fn exchange_telling<T: Pod>(
        &mut self,
        name: &str,
        mine: u64,
        rows: impl IntoIterator<Item = T>,
        to: impl Fn(&T) -> usize,
        take: impl FnMut(&[T]) -> Result<()>,
    ) -> Result<Vec<u64>> {
        let mut rows = rows.into_iter();
        self.exchange_blocks(name, mine, take, |open, outbox| Ok(push_some(&mut rows, &to, open, outbox)))
    }

    /// Two exchanges in one round: rows of two kinds, each with where they go and who takes them.
    ///
    /// # Errors
    /// As [`Net::exchange`].
    pub fn exchange_two<T: Pod, U: Pod>(
        &mut self,
        name: &str,
        (first, first_to, mut take_first): (
            impl IntoIterator<Item = T>,
            impl Fn(&T) -> usize,
            impl FnMut(&[T]) -> Result<()>,
        ),
        (second, second_to, mut take_second): (
            impl IntoIterator<Item = U>,
            impl Fn(&U) -> usize,
            impl FnMut(&[U]) -> Result<()>,
        ),
    ) -> Result<()> {
        let (mut first, mut second) = (first.into_iter(), second.into_iter());
        let mut open = OpenBlocks(vec![Block::default(); self.peers()]);
        let mut produce = |outbox: &mut Outbox<'_>| {
            let more = match outbox.kind {
                0 => push_some(&mut first, &first_to, &mut open, outbox),
                _ => push_some(&mut second, &second_to, &mut open, outbox),
            };
            if !more {
                open.empty(outbox);
            }
            let goes_on = more || outbox.kind == 0;
            outbox.kind |= u16::from(!more);
            Ok(goes_on)
        };
        self.carry(name, 0, &mut produce, &mut |about, block| match about.kind {
            0 => take_first(block.rows()),
            _ => take_second(block.rows()),
        })?;
        Ok(())
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
        take: impl FnMut(&[T]) -> Result<()>,
    ) -> Result<()> {
        let fill =
            |open: &mut OpenBlocks, outbox: &mut Outbox<'_>| source(&mut |row| open.push(to(&row), &row, outbox));
        self.exchange_blocks(name, 0, take, fill).map(drop)
    }

    /// Carries the rows of blocks that `fill` fills, which is called again while it returns true.
    fn exchange_blocks<T: Pod>(
        &mut self,
        name: &str,
        told: u64,
        mut take: impl FnMut(&[T]) -> Result<()>,
        mut fill: impl FnMut(&mut OpenBlocks, &mut Outbox<'_>) -> Result<bool>,
    ) -> Result<Vec<u64>> {
        let mut open = OpenBlocks(vec![Block::default(); self.peers()]);
        let mut produce = |outbox: &mut Outbox<'_>| {
            let more = fill(&mut open, outbox)?;
            if !more {
                open.empty(outbox);
            }
            Ok(more)
        };
        self.carry(name, told, &mut produce, &mut |_, block| take(block.rows()))
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

    /// As [`Net::exchange_rows`], in rounds: a worker sends rows until their `weight` comes to `most`, and all go on until no one has
    /// more. Rows are taken as they come.
    ///
    /// # Errors
    /// Those of `take`; or when the run has ended.
    ///
    /// # Panics
    /// When a row is for no worker.
    pub fn exchange_in_rounds<T: Serialize + DeserializeOwned + Send + 'static>(
        &mut self,
        name: &str,
        rows: impl IntoIterator<Item = (usize, T)>,
        (most, weight): (u64, impl Fn(&T) -> u64),
        take: impl FnMut(T) -> Result<()>,
    ) -> Result<()> {
        let mut rows = rows.into_iter().peekable();
        let round = || {
            let mut sent = 0;
            let some = std::iter::from_fn(|| {
                let row = if sent < most { rows.next() } else { None };
                sent += row.as_ref().map_or(0, |row| weight(&row.1));
                row
            });
            Ok((some.collect(), rows.peek().is_some()))
        };
        self.exchange_rounds(name, round, take)
    }

    /// The same where `round` gives the rows of the next round, and says whether there are more.
    ///
    /// # Errors
    /// Those of `round` and `take`; or when the run has ended.
    ///
    /// # Panics
    /// When a row is for no worker.
    pub fn exchange_rounds<T: Serialize + DeserializeOwned + Send + 'static>(
        &mut self,
        name: &str,
        mut round: impl FnMut() -> Result<(Vec<(usize, T)>, bool)>,
        mut take: impl FnMut(T) -> Result<()>,
    ) -> Result<()> {
        loop {
            let (rows, more) = round()?;
            // No row says that there is another round.
            let marks = (0..if more { self.peers() } else { 0 }).map(|to| (to, None));
            let rows = rows.into_iter().map(|(to, row)| (to, Some(row))).chain(marks);
            let mut goes_on = false;
            for row in self.exchange_rows(name, rows)? {
                match row {
                    Some(row) => take(row)?,
                    None => goes_on = true,
                }
            }
            if !goes_on {
                return Ok(());
            }
        }
    }

    /// Sends each row to the worker beside it, serialised unless it stays in this process; returns the rows that arrive here, by
    /// sender and then in the order sent.
    ///
    /// # Errors
    /// Only when the run has ended.
    ///
    /// # Panics
    /// When a row is for no worker.
    pub fn exchange_rows<T: Serialize + DeserializeOwned + Send + 'static>(
        &mut self,
        name: &str,
        rows: impl IntoIterator<Item = (usize, T)>,
    ) -> Result<Vec<T>> {
        let (me, peers, shared) = (self.index(), self.peers(), self.shared);
        let beside = self.process() * self.workers_per_process()..(self.process() + 1) * self.workers_per_process();
        let mut rows = rows.into_iter();
        let mut open: Vec<Vec<u8>> = vec![Vec::new(); peers];
        let mut stay: Vec<Vec<T>> = beside.clone().map(|_| Vec::new()).collect();
        let mut call = 0;
        let mut produce = |outbox: &mut Outbox<'_>| {
            call = outbox.call;
            let mut seen = 0;
            for (to, row) in rows.by_ref().take(SMALL_BATCH) {
                seen += 1;
                if beside.contains(&to) {
                    stay[to - beside.start].push(row);
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
                // Before the last parcel is sent, so they are there when it arrives.
                for (to, rows) in beside.clone().zip(&mut stay) {
                    shared.board.hand_over((call, me, to), std::mem::take(rows));
                }
            }
            Ok(more)
        };
        let mut arrived: Vec<Vec<T>> = (0..peers).map(|_| Vec::new()).collect();
        self.carry(name, 0, &mut produce, &mut |about, block| {
            let mut bytes: &[u8] = block.rows();
            while !bytes.is_empty() {
                arrived[about.from as usize].push(bincode::deserialize_from(&mut bytes).map_err(|cause| {
                    let from = about.from;
                    Error::Invariant(format!("a row of \"{name}\" from worker {from} cannot be read: {cause}"))
                })?);
            }
            Ok(())
        })?;
        for from in beside {
            arrived[from] = shared.board.taken_over((call, from, me))?;
        }
        if peers == 1 {
            return Ok(arrived.remove(me));
        }
        Ok(arrived.into_iter().flatten().collect())
    }

    /// Gives every worker the value of each, by worker index.
    ///
    /// # Errors
    /// Only when the run has ended.
    pub fn all_gather<T: Serialize + DeserializeOwned + Clone + Send + 'static>(
        &mut self,
        name: &str,
        mine: T,
    ) -> Result<Vec<T>> {
        let peers = self.peers();
        self.exchange_rows(name, (0..peers).map(|to| (to, mine.clone())))
    }

    /// Combines the values of all workers by `with`, in the order of their indices: the same result on each.
    ///
    /// # Errors
    /// Only when the run has ended.
    pub fn reduce<T: Serialize + DeserializeOwned + Clone + Send + 'static>(
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
    /// Each row is sent once to each process. One round, and a second for the rows of workers that have more than their part of
    /// [`AT_ONCE_BYTES`]. Memory: all rows once in each process; for a moment twice, as far as they come at once.
    pub fn share<T: Pod + Send + Sync>(&mut self, name: &str, mine: Vec<T>) -> Result<Arc<Vec<T>>> {
        let (workers, processes) = (self.workers_per_process(), self.processes());
        let keeper = self.process() * workers == self.index();
        let at_once = (AT_ONCE_BYTES / self.peers()).max(BLOCK_BYTES);
        let is_few = |rows: usize| rows * size_of::<T>() <= at_once;

        // The number of rows to all workers; with it the rows, if they are few, to the keepers: one worker of each process.
        let number = (mine.len() as u64).to_le_bytes();
        let with_rows = match is_few(mine.len()) {
            true => [&number[..], bytemuck::cast_slice(&mine)].concat(),
            false => number.to_vec(),
        };
        let mut blocks = (0..self.peers()).flat_map(|to| {
            let letter = if to.is_multiple_of(workers) { &with_rows } else { &number[..] };
            letter.chunks(BLOCK_BYTES).map(move |bytes| (to, bytes))
        });
        let mut produce = |outbox: &mut Outbox<'_>| {
            let block = blocks.next();
            Ok(block.map(|(to, bytes)| outbox.push(to, Block::of(bytes))).is_some())
        };
        let mut letters: Vec<Vec<u8>> = vec![Vec::new(); self.peers()];
        self.carry(name, 0, &mut produce, &mut |about, block| {
            letters[about.from as usize].extend_from_slice(block.rows());
            Ok(())
        })?;
        let number =
            |letter: &Vec<u8>| u64::from_le_bytes(letter[..8].try_into().expect("a range of 8 bytes")) as usize;
        let numbers: Vec<usize> = letters.iter().map(number).collect();
        drop(with_rows);

        // Where the next rows of each worker go; the keeper of a process receives for all its workers.
        let mut next: Vec<usize> = Vec::with_capacity(numbers.len());
        let mut total = 0;
        for rows in &numbers {
            next.push(total);
            total += rows;
        }
        let mut all: Vec<T> = if keeper { bytemuck::zeroed_vec(total) } else { Vec::new() };
        if keeper {
            for (letter, &at) in letters.iter().zip(&next) {
                let rows = &letter[8..];
                bytemuck::cast_slice_mut(&mut all[at..][..rows.len() / size_of::<T>()]).copy_from_slice(rows);
            }
        }
        drop(letters);
        if !numbers.iter().all(|&rows| is_few(rows)) {
            let mine = if is_few(mine.len()) { &[][..] } else { &mine[..] };
            let mut blocks = (0..processes)
                .flat_map(|process| mine.chunks(Block::room::<T>()).map(move |rows| (process * workers, rows)));
            let mut produce = |outbox: &mut Outbox<'_>| {
                let block = blocks.next();
                Ok(block.map(|(to, rows)| outbox.push(to, Block::of(rows))).is_some())
            };
            self.carry(name, 0, &mut produce, &mut |about, block| {
                let (rows, next) = (block.rows(), &mut next[about.from as usize]);
                all[*next..][..rows.len()].copy_from_slice(rows);
                *next += rows.len();
                Ok(())
            })?;
        }
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
        self.carry("end of the program", 0, &mut |_| Ok(false), &mut |_, _| Ok(())).map(drop)
    }

    /// Sends what `produce` puts into the outbox while it returns true, and hands each block that arrives to `take`, with its
    /// address; tells all workers a number, and returns theirs.
    fn carry(
        &mut self,
        name: &str,
        told: u64,
        produce: &mut dyn FnMut(&mut Outbox<'_>) -> Result<bool>,
        take: &mut dyn FnMut(&Address, &Block) -> Result<()>,
    ) -> Result<Vec<u64>> {
        let carried = self.carry_blocks(name, told, produce, take);
        self.or_stop(carried)
    }

    fn carry_blocks(
        &mut self,
        name: &str,
        told: u64,
        produce: &mut dyn FnMut(&mut Outbox<'_>) -> Result<bool>,
        take: &mut dyn FnMut(&Address, &Block) -> Result<()>,
    ) -> Result<Vec<u64>> {
        let call = self.next_call();
        self.rounds += 1;
        let (me, peers, hash) = (self.index(), self.peers(), xxh3_64(name.as_bytes()));
        let (process, workers) = (self.process(), self.workers_per_process());
        if me == process * workers {
            self.shared.traffic.rounds.fetch_add(1, Ordering::Relaxed);
        }
        let (shared, worker, mail) = (self.shared, &mut *self.worker, &mut self.mail);
        let (ready, spare) = (VecDeque::new(), &mut self.spare);
        let mut outbox = Outbox { from: me as u32, name: hash, call, kind: 0, ready, spare };
        mail.begin();
        let mut more = true;
        let (mut ended, mut yet_to_end) = (vec![None; peers], peers);
        let mut taken: Vec<u32> = vec![0; peers];
        // What is sent leaves the process at the end of a step, but not of one that waits first.
        let mut has_sent = false;
        loop {
            shared.stop.check()?;
            if more && outbox.ready.is_empty() && self.on_their_way < WINDOW {
                more = produce(&mut outbox)?;
                if !more {
                    outbox.close(peers, told);
                }
            }
            while self.on_their_way < WINDOW
                && let Some(parcel) = outbox.ready.pop_front()
            {
                self.on_their_way += usize::from(!parcel.rows.is_empty());
                let (to, bytes) = (parcel.about.to as usize, parcel.length_in_bytes() as u64);
                if to != me {
                    shared.traffic.exchanged_bytes.fetch_add(bytes, Ordering::Relaxed);
                }
                if to / workers != process {
                    shared.traffic.sent_bytes.fetch_add(bytes, Ordering::Relaxed);
                }
                mail.send(parcel);
                has_sent = true;
            }
            let is_idle = !has_sent && (!more || self.on_their_way >= WINDOW);
            worker.step_or_park(Some(if is_idle { TICK } else { Duration::ZERO }));
            has_sent = false;

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
                if !rows.is_empty() {
                    taken[about.from as usize] += 1;
                    take(&about, &rows)?;
                }
                if about.last == 1 {
                    yet_to_end -= usize::from(ended[about.from as usize].replace(about.told).is_none());
                }
                if rows.is_worth_keeping() && outbox.spare.len() < WINDOW {
                    outbox.spare.push(rows);
                }
            }
            for (to, taken) in taken.iter_mut().enumerate().filter(|(_, taken)| **taken > 0) {
                let taken = std::mem::take(taken);
                let to = to as u32;
                let about = Address { to, from: me as u32, name: hash, call, taken, last: 0, kind: 0, told: 0 };
                mail.send(Parcel { about, rows: Block::default() });
                has_sent = true;
            }
            if yet_to_end == 0 && !more && outbox.ready.is_empty() {
                if has_sent {
                    worker.step();
                }
                return Ok(ended.into_iter().flatten().collect());
            }
        }
    }
}
