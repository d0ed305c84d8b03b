//! The primitives everything distributed is built on: rows to their workers, a value to all, one copy a process.
//!
//! Each call is a timely dataflow of its own, from parcels handed in to parcels handed out; it contains no code of the
//! caller, which runs in the calling function between the dataflow's steps. So callers may borrow what they like, and a
//! worker reads, sends and receives in turn.
//!
//! timely's queues are unbounded, so senders hold back: a worker has at most [`WINDOW`] parcels on their way, and the
//! receiver acknowledges each one it has taken over a second stream. A slow receiver slows down those who send to it and
//! nobody else; in particular nobody waits for a slow *sender*, as it would be with epochs.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytemuck::Pod;
use timely::container::NoopBuilder;
use timely::dataflow::channels::ContainerBytes;
use timely::dataflow::channels::pact::DistributorPact;
use timely::dataflow::operators::generic::Operator;
use timely::{Accountable, ExchangeData};
use xxhash_rust::xxh3::xxh3_64;

use super::block::{Block, ByAddress, Parcel};
use super::net::Net;
use crate::error::{Error, Result};

/// Most parcels of one worker that were sent and not yet taken: 16 MiB when they are full blocks.
const WINDOW: usize = 64;

/// Rows that are sent before what has arrived is looked at.
const BATCH: usize = 1 << 15;

/// Most rows of variable length in one parcel.
const ROWS: usize = 1024;

/// Longest time a waiting worker is deaf to the end of the run.
const TICK: Duration = Duration::from_millis(20);

/// What can be the content of a parcel.
trait Body: Accountable + Clone + Default + ContainerBytes + Send + 'static {}
impl<B: Accountable + Clone + Default + ContainerBytes + Send + 'static> Body for B {}

/// A stream of parcels: where they are handed in (until closed) and where those for this worker come out.
struct Mail<B: Body> {
    input: Option<Input<B>>,
    arrived: Rc<RefCell<VecDeque<Parcel<B>>>>,
    /// Whether all workers have closed their inputs and everything has come out.
    complete: Rc<Cell<bool>>,
}

type Input<B> = timely::dataflow::operators::core::input::Handle<u64, NoopBuilder<Parcel<B>>>;

impl<B: Body> Mail<B> {
    fn new(scope: timely::dataflow::Scope<'_, u64>) -> Mail<B> {
        let mut input = Input::new_with_builder();
        let arrived = Rc::new(RefCell::new(VecDeque::new()));
        let complete = Rc::new(Cell::new(false));
        let (out, done) = (Rc::clone(&arrived), Rc::clone(&complete));
        input.to_stream(scope).sink(DistributorPact(|_| ByAddress), "mail", move |(input, frontier)| {
            input.for_each(|_, parcel| out.borrow_mut().push_back(std::mem::take(parcel)));
            done.set(frontier.is_empty());
        });
        Mail { input: Some(input), arrived, complete }
    }

    fn send(&mut self, mut parcel: Parcel<B>) {
        self.input.as_mut().expect("nothing is sent after closing").send_batch(&mut parcel);
    }

    fn next(&self) -> Option<Parcel<B>> {
        self.arrived.borrow_mut().pop_front()
    }
}

/// Parcels ready to be sent, and emptied ones to fill again.
struct Outbox<B> {
    from: u32,
    call: u64,
    ready: VecDeque<Parcel<B>>,
    spare: Vec<B>,
}

impl<B: Accountable> Outbox<B> {
    fn push(&mut self, to: usize, rows: B) {
        if !rows.is_empty() {
            self.ready.push_back(Parcel { to: to as u32, from: self.from, call: self.call, rows });
        }
    }
}

impl Net<'_> {
    /// Sends every row that `source` gives to worker `to(&row)`, and hands what arrives here to `take`.
    ///
    /// `source` is called again and again while it returns true, and gives a bounded number of rows each time (some ten
    /// thousand), so that receiving is not kept waiting. Rows of one sender arrive in the order sent, in blocks of up
    /// to 256 KiB; the blocks of different senders come in no particular order.
    ///
    /// # Errors
    /// Only when the run has ended.
    ///
    /// # Panics
    /// When `to` names no worker.
    ///
    /// # Cost
    /// One copy of each row into its block, one more on either side of a socket. Memory: one open block for each
    /// receiver, and at most 16 MiB on the way from each worker.
    pub fn exchange<T: Pod + Send>(
        &mut self,
        name: &str,
        mut source: impl FnMut(&mut dyn FnMut(T)) -> bool,
        to: impl Fn(&T) -> usize,
        mut take: impl FnMut(&[T]),
    ) -> Result<()> {
        let mut open: Vec<Vec<T>> = (0..self.peers()).map(|_| Vec::new()).collect();
        let produce = |outbox: &mut Outbox<Block<T>>| {
            let more = source(&mut |row| {
                let to = to(&row);
                let block = &mut open[to];
                // True for a full block, and for one without memory, which every receiver begins with.
                if block.len() == block.capacity() {
                    let empty =
                        outbox.spare.pop().map_or_else(|| Vec::with_capacity(Block::<T>::ROWS), |block| block.0);
                    let full = std::mem::replace(block, empty);
                    outbox.push(to, Block(full));
                }
                block.push(row);
            });
            if !more {
                for (to, block) in open.iter_mut().enumerate() {
                    outbox.push(to, Block(std::mem::take(block)));
                }
            }
            more
        };
        self.carry(name, produce, |_, mut block: Block<T>, spare| {
            take(&block.0);
            block.0.clear();
            // Blocks that came over a socket have the capacity of their rows; a small one would be full at once.
            if block.0.capacity() == Block::<T>::ROWS && spare.len() < WINDOW {
                spare.push(block);
            }
        })
    }

    /// Sends every row to worker `to(&row)`; returns the rows that arrive here, in no particular order.
    ///
    /// # Errors
    /// Only when the run has ended.
    ///
    /// # Cost
    /// As [`Net::exchange`], and the rows that arrive.
    pub fn exchange_all<T: Pod + Send>(
        &mut self,
        name: &str,
        rows: impl IntoIterator<Item = T>,
        to: impl Fn(&T) -> usize,
    ) -> Result<Vec<T>> {
        let mut rows = rows.into_iter();
        let mut arrived = Vec::new();
        let source = |send: &mut dyn FnMut(T)| rows.by_ref().take(BATCH).map(send).count() > 0;
        self.exchange(name, source, to, |rows| arrived.extend_from_slice(rows))?;
        Ok(arrived)
    }

    /// Sends each row to the worker beside it; returns the rows that arrive here, by sender and then in the order sent.
    ///
    /// # Errors
    /// Only when the run has ended.
    ///
    /// # Panics
    /// When a row is for no worker.
    pub fn exchange_rows<T: ExchangeData + Clone>(
        &mut self,
        name: &str,
        mut rows: impl Iterator<Item = (usize, T)>,
    ) -> Result<Vec<T>> {
        let peers = self.peers();
        let mut open: Vec<Vec<T>> = vec![Vec::new(); peers];
        let produce = |outbox: &mut Outbox<Vec<T>>| {
            let mut seen = 0;
            for (to, row) in rows.by_ref().take(ROWS) {
                seen += 1;
                open[to].push(row);
                if open[to].len() == ROWS {
                    outbox.push(to, std::mem::take(&mut open[to]));
                }
            }
            let more = seen == ROWS;
            if !more {
                for (to, rows) in open.iter_mut().enumerate() {
                    outbox.push(to, std::mem::take(rows));
                }
            }
            more
        };
        let mut arrived: Vec<Vec<T>> = vec![Vec::new(); peers];
        self.carry(name, produce, |from, mut rows, _| arrived[from].append(&mut rows))?;
        Ok(arrived.into_iter().flatten().collect())
    }

    /// Gives every worker the value of each, by worker index.
    ///
    /// # Errors
    /// Only when the run has ended.
    pub fn all_gather<T: ExchangeData + Clone>(&mut self, name: &str, mine: T) -> Result<Vec<T>> {
        let peers = self.peers();
        self.exchange_rows(name, (0..peers).map(|to| (to, mine.clone())))
    }

    /// Agrees whether local work succeeded everywhere: every worker brings its result.
    ///
    /// # Errors
    /// On all workers the error of the lowest worker that brought one; or when the run has ended.
    pub fn agree<T>(&mut self, name: &str, mine: Result<T>) -> Result<T> {
        let errors = self.all_gather(name, mine.as_ref().err().cloned())?;
        match errors.into_iter().flatten().next() {
            Some(error) => Err(error),
            None => mine,
        }
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
        let mut parcels =
            (0..processes).flat_map(|process| mine.chunks(Block::<T>::ROWS).map(move |rows| (process * workers, rows)));
        let produce = |outbox: &mut Outbox<Block<T>>| match parcels.next() {
            Some((to, rows)) => {
                outbox.push(to, Block(rows.to_vec()));
                true
            }
            None => false,
        };
        self.carry(name, produce, |from, block: Block<T>, _| {
            all[next[from]..][..block.0.len()].copy_from_slice(&block.0);
            next[from] += block.0.len();
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
        self.calls += 1;
        let call = self.calls;
        let workers = self.workers_per_process();
        if self.index().is_multiple_of(workers) {
            let made = Arc::new(make());
            self.shared.board.leave(call, made.clone(), workers - 1);
            return Ok(made);
        }
        loop {
            if let Some(made) = self.shared.board.find(call) {
                return Ok(made.downcast().expect("all workers make the same calls in the same order"));
            }
            self.check()?;
            self.worker.step_or_park(Some(Duration::from_millis(1)));
        }
    }

    /// Sends what `produce` puts into the outbox while it returns true, and hands each parcel that arrives to `take`, with
    /// its sender and the emptied ones.
    fn carry<B: Body>(
        &mut self,
        name: &str,
        mut produce: impl FnMut(&mut Outbox<B>) -> bool,
        mut take: impl FnMut(usize, B, &mut Vec<B>),
    ) -> Result<()> {
        self.calls += 1;
        let (mut mail, mut receipts) = self
            .worker
            .dataflow_named::<u64, _, _>(name, |scope| (Mail::<B>::new(scope), Mail::<Block<u8>>::new(scope)));
        let (from, call) = (self.index() as u32, xxh3_64(name.as_bytes()));
        let mut outbox = Outbox { from, call, ready: VecDeque::new(), spare: Vec::new() };
        let mut more = true;
        let mut on_their_way = 0;
        let mut taken: Vec<usize> = vec![0; self.peers()];
        loop {
            self.check()?;
            if more && outbox.ready.is_empty() && on_their_way < WINDOW {
                more = produce(&mut outbox);
            }
            while on_their_way < WINDOW
                && let Some(parcel) = outbox.ready.pop_front()
            {
                mail.send(parcel);
                on_their_way += 1;
            }
            if !more && outbox.ready.is_empty() {
                mail.input = None;
            }

            let idle = mail.input.is_none() || on_their_way >= WINDOW;
            self.worker.step_or_park(Some(if idle { TICK } else { Duration::ZERO }));

            while let Some(parcel) = mail.next() {
                if parcel.call != call {
                    // Left alone this would be a hang, or rows taken for others.
                    return Err(Error::Invariant(format!(
                        "worker {} is in another call than worker {}, which is in \"{name}\" (call {})",
                        parcel.from, from, self.calls
                    )));
                }
                taken[parcel.from as usize] += 1;
                take(parcel.from as usize, parcel.rows, &mut outbox.spare);
            }
            for (to, taken) in taken.iter_mut().enumerate().filter(|(_, taken)| **taken > 0) {
                receipts.send(Parcel { to: to as u32, from, call, rows: Block(vec![0; *taken]) });
                *taken = 0;
            }
            while let Some(receipt) = receipts.next() {
                on_their_way -= receipt.rows.0.len();
            }
            // Everything has come out, and was taken above.
            if mail.complete.get() {
                return Ok(());
            }
        }
    }
}
