//! Rows to their workers: plain ones in blocks of up to 255 KiB, others serialised.

use std::cell::RefCell;

use bincode::Options;
use bytemuck::Pod;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::block::{Address, Block};
use super::carry::Outbox;
use super::net::Net;
use super::row::IntoRow;
use webtwin_base::error::{Error, Result};

/// Rows that are sent before what has arrived is looked at.
const BATCH: usize = 1 << 15;

/// Rows of variable length that are sent before what has arrived is looked at.
const SMALL_BATCH: usize = 1024;

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
        let full = std::mem::replace(&mut self.0[to], Block::new::<T>(outbox.block_bytes, outbox.spare.pop()));
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
    rows: &mut impl Iterator<Item: IntoRow<T>>,
    to: impl Fn(&T) -> usize,
    open: &mut OpenBlocks,
    outbox: &mut Outbox<'_>,
) -> Result<bool> {
    let mut sent = 0;
    rows.take(BATCH).try_for_each(|row| {
        let row = row.into_row()?;
        open.push(to(&row), &row, outbox);
        sent += 1;
        Ok(())
    })?;
    Ok(sent == BATCH)
}

/// How rows of variable length are serialised: each as one that there is, and at the end of a block that there is none.
fn codec() -> impl Options {
    bincode::DefaultOptions::new()
}

/// Serialises a row for a worker, whose rows are sent when they fill a block.
fn put<T: Serialize>(name: &str, row: &T, to: usize, open: &mut [Vec<u8>], outbox: &mut Outbox<'_>) -> Result<()> {
    codec()
        .serialize_into(&mut open[to], &Some(row))
        .map_err(|cause| Error::Invariant(format!("a row of \"{name}\" cannot be serialised: {cause}")))?;
    // There is room in a block for a last one of up to an eighth.
    if open[to].len() >= outbox.block_bytes / 8 * 7 {
        send(to, &mut open[to], outbox);
    }
    Ok(())
}

/// Sends serialised rows as a block.
fn send(to: usize, rows: &mut Vec<u8>, outbox: &mut Outbox<'_>) {
    codec().serialize_into(&mut *rows, &None::<()>).expect("memory takes it");
    outbox.push_all(to, rows);
    rows.clear();
}

/// Sends all rows that are left.
fn send_all(open: &mut [Vec<u8>], outbox: &mut Outbox<'_>) {
    let left = open.iter_mut().enumerate().filter(|(_, rows)| !rows.is_empty());
    left.for_each(|(to, rows)| send(to, rows, outbox));
}

/// Calls `each` with the rows that a block has in serialised form.
fn each_value<T: DeserializeOwned>(
    name: &str,
    about: &Address,
    block: &Block,
    mut each: impl FnMut(T) -> Result<()>,
) -> Result<()> {
    let mut rows = bincode::Deserializer::from_slice(block.rows(), codec());
    let unread =
        |cause| Error::Invariant(format!("a row of \"{name}\" from worker {} cannot be read: {cause}", about.from));
    while let Some(row) = <Option<T> as Deserialize>::deserialize(&mut rows).map_err(unread)? {
        each(row)?;
    }
    Ok(())
}

impl Net<'_> {
    /// Sends every row to worker `to(&row)`; returns the rows that arrive here, in no particular order.
    ///
    /// # Errors
    /// The first error of `rows`, which ends the run; or when the run has ended.
    ///
    /// # Panics
    /// When `to` names no worker.
    ///
    /// # Cost
    /// As [`Net::exchange_into`], and the rows that arrive.
    pub fn exchange<T: Pod>(
        &mut self,
        name: &str,
        rows: impl IntoIterator<Item: IntoRow<T>>,
        to: impl Fn(&T) -> usize,
    ) -> Result<Vec<T>> {
        let mut arrived = Vec::new();
        self.exchange_into(name, rows, to, |rows| {
            arrived.extend_from_slice(rows);
            Ok(())
        })?;
        Ok(arrived)
    }

    /// Sends every row to worker `to(&row)`, and hands what arrives here to `take`.
    ///
    /// Rows of one sender arrive in the order sent, in blocks of up to 255 KiB; the blocks of different senders come in
    /// no particular order.
    ///
    /// # Errors
    /// The first error of `rows` or `take`, which ends the run; or when the run has ended.
    ///
    /// # Panics
    /// When `to` names no worker.
    ///
    /// # Cost
    /// One copy of each row into its block, one more where it goes to a socket; it is read where it has come. Memory:
    /// one open block for each receiver, 4 MiB together unless there are more than 240, and at most 16 MiB, and two
    /// blocks for each receiver, on the way from each worker.
    pub fn exchange_into<T: Pod>(
        &mut self,
        name: &str,
        rows: impl IntoIterator<Item: IntoRow<T>>,
        to: impl Fn(&T) -> usize,
        take: impl FnMut(&[T]) -> Result<()>,
    ) -> Result<()> {
        self.exchange_telling(name, 0, rows, to, take).map(drop)
    }

    /// As [`Net::exchange_into`]; every worker is told a number by each, too: returns them by worker index.
    ///
    /// # Errors
    /// As [`Net::exchange_into`].
    pub fn exchange_telling<T: Pod>(
        &mut self,
        name: &str,
        mine: u64,
        rows: impl IntoIterator<Item: IntoRow<T>>,
        to: impl Fn(&T) -> usize,
        take: impl FnMut(&[T]) -> Result<()>,
    ) -> Result<Vec<u64>> {
        let mut rows = rows.into_iter();
        self.exchange_blocks(name, mine, take, |open, outbox| push_some(&mut rows, &to, open, outbox))
    }

    /// Two exchanges in one round: rows of two kinds, each with where they go and who takes them.
    ///
    /// # Errors
    /// As [`Net::exchange_into`].
    pub fn exchange_two<T: Pod, U: Pod>(
        &mut self,
        name: &str,
        (first, first_to, mut take_first): (
            impl IntoIterator<Item: IntoRow<T>>,
            impl Fn(&T) -> usize,
            impl FnMut(&[T]) -> Result<()>,
        ),
        (second, second_to, mut take_second): (
            impl IntoIterator<Item: IntoRow<U>>,
            impl Fn(&U) -> usize,
            impl FnMut(&[U]) -> Result<()>,
        ),
    ) -> Result<()> {
        let (mut first, mut second) = (first.into_iter(), second.into_iter());
        let mut open = OpenBlocks(vec![Block::default(); self.peers()]);
        let mut produce = |outbox: &mut Outbox<'_>| {
            let more = match outbox.kind {
                0 => push_some(&mut first, &first_to, &mut open, outbox)?,
                _ => push_some(&mut second, &second_to, &mut open, outbox)?,
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

    /// As [`Net::exchange_into`], for rows that are made on the way: `source` is called again while it returns true,
    /// and gives a bounded number of rows each time (some ten thousand), so that receiving is not kept waiting.
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

    /// As [`Net::exchange_values`], for values that `take` gets one by one; where memory has a bound, as they come.
    ///
    /// # Errors
    /// The first error of `values` or `take`; or when the run has ended.
    ///
    /// # Panics
    /// When a value is for no worker.
    pub fn exchange_values_into<T: Serialize + DeserializeOwned + Send + 'static>(
        &mut self,
        name: &str,
        values: impl IntoIterator<Item = Result<(usize, T)>>,
        take: impl FnMut(T) -> Result<()>,
    ) -> Result<()> {
        if self.memory.is_bounded() {
            return self.stream_values(name, values, take);
        }
        self.exchange_values(name, values)?.into_iter().try_for_each(take)
    }

    /// Sends each value to the worker beside it, serialised unless it stays with this one; `take` gets those that arrive here as they
    /// come, those of one sender in the order sent.
    ///
    /// # Errors
    /// The first error of `values` or `take`; or when the run has ended.
    ///
    /// # Panics
    /// When a value is for no worker.
    ///
    /// # Cost
    /// One round. Memory: an open block for each receiver, and what is on the way.
    pub fn stream_values<T: Serialize + DeserializeOwned>(
        &mut self,
        name: &str,
        values: impl IntoIterator<Item = Result<(usize, T)>>,
        take: impl FnMut(T) -> Result<()>,
    ) -> Result<()> {
        let (me, take) = (self.index(), RefCell::new(take));
        let mut values = values.into_iter();
        let mut open: Vec<Vec<u8>> = vec![Vec::new(); self.peers()];
        let mut produce = |outbox: &mut Outbox<'_>| {
            // What has arrived is looked at whenever a block is full.
            for _ in 0..SMALL_BATCH {
                let Some((to, value)) = values.next().transpose()? else {
                    send_all(&mut open, outbox);
                    return Ok(false);
                };
                if to == me {
                    take.borrow_mut()(value)?;
                    continue;
                }
                put(name, &value, to, &mut open, outbox)?;
                if !outbox.is_empty() {
                    break;
                }
            }
            Ok(true)
        };
        self.carry(name, 0, &mut produce, &mut |about, block| {
            each_value(name, about, block, |value| take.borrow_mut()(value))
        })?;
        Ok(())
    }

    /// Sends each row to the worker beside it, serialised unless it stays in this process; returns the rows that arrive
    /// here, by sender and then in the order sent.
    ///
    /// # Errors
    /// The first error of `rows`; or when the run has ended.
    ///
    /// # Panics
    /// When a row is for no worker.
    pub fn exchange_values<T: Serialize + DeserializeOwned + Send + 'static>(
        &mut self,
        name: &str,
        rows: impl IntoIterator<Item = Result<(usize, T)>>,
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
            for row in rows.by_ref().take(SMALL_BATCH) {
                let (to, row) = row?;
                seen += 1;
                if beside.contains(&to) {
                    stay[to - beside.start].push(row);
                    continue;
                }
                put(name, &row, to, &mut open, outbox)?;
            }
            let more = seen == SMALL_BATCH;
            if !more {
                send_all(&mut open, outbox);
                // Before the last parcel is sent, so they are there when it arrives.
                for (to, rows) in beside.clone().zip(&mut stay) {
                    shared.board.hand_over((call, me, to), std::mem::take(rows));
                }
            }
            Ok(more)
        };
        let mut arrived: Vec<Vec<T>> = (0..peers).map(|_| Vec::new()).collect();
        self.carry(name, 0, &mut produce, &mut |about, block| {
            each_value(name, about, block, |row| {
                arrived[about.from as usize].push(row);
                Ok(())
            })
        })?;
        for from in beside {
            arrived[from] = shared.board.taken_over((call, from, me))?;
        }
        if peers == 1 {
            return Ok(arrived.remove(me));
        }
        Ok(arrived.into_iter().flatten().collect())
    }
}
