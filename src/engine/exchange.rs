//! Exchange of rows between workers: rows of fixed size in blocks of up to 255 KiB, all others
//! serialised.

use std::cell::RefCell;

use bincode::Options;
use bytemuck::Pod;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::block::{Block, ParcelAddress};
use super::carry::Outbox;
use super::net::Net;
use super::row::TryIntoRow;
use webtwin_base::error::{Error, Result};

/// Maximum number of rows that are sent before the worker receives.
const BATCH: usize = 1 << 15;

/// Maximum number of rows of variable length that are sent before the worker receives.
const SMALL_BATCH: usize = 1024;

/// Blocks that are being filled, one for each receiver.
struct OpenBlocks(Vec<Block>);

impl OpenBlocks {
    #[inline]
    fn push<T: Pod>(&mut self, to: usize, row: &T, outbox: &mut Outbox<'_>) {
        // A receiver begins with a block without memory, which counts as full, so one test covers
        // both cases.
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

    /// Moves all blocks that have rows to the outbox.
    fn empty(&mut self, outbox: &mut Outbox<'_>) {
        self.0.iter_mut().enumerate().for_each(|(to, block)| outbox.push_rows(to, std::mem::take(block)));
    }
}

/// Moves up to [`BATCH`] rows into the blocks of their receivers. Returns true if there may be
/// more.
#[inline]
fn push_some<T: Pod>(
    rows: &mut impl Iterator<Item: TryIntoRow<T>>,
    to: impl Fn(&T) -> usize,
    open: &mut OpenBlocks,
    outbox: &mut Outbox<'_>,
) -> Result<bool> {
    let mut row_count = 0;
    rows.take(BATCH).try_for_each(|row| {
        let row = row.into_row()?;
        open.push(to(&row), &row, outbox);
        row_count += 1;
        Ok(())
    })?;
    Ok(row_count == BATCH)
}

/// Returns the encoding of rows of variable length. Each row is serialised as `Some(row)`, and
/// `None` ends a block.
fn codec() -> impl Options {
    bincode::DefaultOptions::new()
}

/// Serialises a row for a worker, and sends the worker's rows if they fill a block.
fn put<T: Serialize>(name: &str, row: &T, to: usize, open: &mut [Vec<u8>], outbox: &mut Outbox<'_>) -> Result<()> {
    codec()
        .serialize_into(&mut open[to], &Some(row))
        .map_err(|cause| Error::Invariant(format!("a row of \"{name}\" cannot be serialised: {cause}")))?;
    // Sending at seven eighths leaves space for a last row of up to an eighth of a block.
    if open[to].len() >= outbox.block_bytes / 8 * 7 {
        send(to, &mut open[to], outbox);
    }
    Ok(())
}

/// Ends the serialised rows for worker `to` and sends them as a block.
fn send(to: usize, rows: &mut Vec<u8>, outbox: &mut Outbox<'_>) {
    codec().serialize_into(&mut *rows, &None::<()>).expect("writing to memory cannot fail");
    outbox.push_all(to, rows);
    rows.clear();
}

/// Sends all remaining serialised rows.
fn send_all(open: &mut [Vec<u8>], outbox: &mut Outbox<'_>) {
    let left = open.iter_mut().enumerate().filter(|(_, rows)| !rows.is_empty());
    left.for_each(|(to, rows)| send(to, rows, outbox));
}

/// Calls `visit` with every row of a block of serialised rows.
fn each_value<T: DeserializeOwned>(
    name: &str,
    address: &ParcelAddress,
    block: &Block,
    mut visit: impl FnMut(T) -> Result<()>,
) -> Result<()> {
    let mut rows = bincode::Deserializer::from_slice(block.rows(), codec());
    let unread =
        |cause| Error::Invariant(format!("a row of \"{name}\" from worker {} cannot be read: {cause}", address.from));
    while let Some(row) = <Option<T> as Deserialize>::deserialize(&mut rows).map_err(unread)? {
        visit(row)?;
    }
    Ok(())
}

impl Net<'_> {
    /// Sends every row to worker `to(&row)`. Returns the rows that arrive at this worker, in no
    /// particular order.
    ///
    /// # Errors
    /// Returns the first error of `rows`, which ends the run, or the error that has ended the run
    /// elsewhere.
    ///
    /// # Panics
    /// Panics if `to` returns no index of a worker.
    ///
    /// # Cost
    /// Equals [`Net::exchange_into`], plus the memory of the rows that arrive.
    pub fn exchange<T: Pod>(
        &mut self,
        name: &str,
        rows: impl IntoIterator<Item: TryIntoRow<T>>,
        to: impl Fn(&T) -> usize,
    ) -> Result<Vec<T>> {
        let mut received_rows = Vec::new();
        self.exchange_into(name, rows, to, |rows| {
            received_rows.extend_from_slice(rows);
            Ok(())
        })?;
        Ok(received_rows)
    }

    /// Sends every row to worker `to(&row)`, and passes the rows that arrive at this worker to
    /// `take`.
    ///
    /// Rows of one sender arrive in the order sent, in blocks of up to 255 KiB. Blocks of different
    /// senders arrive in no particular order.
    ///
    /// # Errors
    /// Returns the first error of `rows` or `take`, which ends the run, or the error that has ended
    /// the run elsewhere.
    ///
    /// # Panics
    /// Panics if `to` returns no index of a worker.
    ///
    /// # Cost
    /// Each row is copied once into its block, and once more if it is sent to a socket. Received
    /// rows are read in place. Memory: one open block for each receiver, 4 MiB in total for up to
    /// 240 workers; and in flight from each worker at most 16 MiB plus two blocks for each
    /// receiver.
    pub fn exchange_into<T: Pod>(
        &mut self,
        name: &str,
        rows: impl IntoIterator<Item: TryIntoRow<T>>,
        to: impl Fn(&T) -> usize,
        take: impl FnMut(&[T]) -> Result<()>,
    ) -> Result<()> {
        self.exchange_with_reports(name, 0, rows, to, take).map(drop)
    }

    /// Exchanges rows like [`Net::exchange_into`], and also sends the number `report` to every
    /// worker. Returns the numbers of all workers by worker index.
    ///
    /// # Errors
    /// Returns the errors of [`Net::exchange_into`].
    pub fn exchange_with_reports<T: Pod>(
        &mut self,
        name: &str,
        report: u64,
        rows: impl IntoIterator<Item: TryIntoRow<T>>,
        to: impl Fn(&T) -> usize,
        take: impl FnMut(&[T]) -> Result<()>,
    ) -> Result<Vec<u64>> {
        let mut rows = rows.into_iter();
        self.exchange_blocks(name, report, take, |open, outbox| push_some(&mut rows, &to, open, outbox))
    }

    /// Makes two exchanges in one round: rows of two types, each with the mapping to their workers
    /// and their receiving function.
    ///
    /// # Errors
    /// Returns the errors of [`Net::exchange_into`].
    pub fn exchange_two<T: Pod, U: Pod>(
        &mut self,
        name: &str,
        (first, first_to, mut take_first): (
            impl IntoIterator<Item: TryIntoRow<T>>,
            impl Fn(&T) -> usize,
            impl FnMut(&[T]) -> Result<()>,
        ),
        (second, second_to, mut take_second): (
            impl IntoIterator<Item: TryIntoRow<U>>,
            impl Fn(&U) -> usize,
            impl FnMut(&[U]) -> Result<()>,
        ),
    ) -> Result<()> {
        let (mut first, mut second) = (first.into_iter(), second.into_iter());
        let mut open = OpenBlocks(vec![Block::default(); self.peers()]);
        let mut produce = |outbox: &mut Outbox<'_>| {
            let has_more = match outbox.kind {
                0 => push_some(&mut first, &first_to, &mut open, outbox)?,
                _ => push_some(&mut second, &second_to, &mut open, outbox)?,
            };
            if !has_more {
                open.empty(outbox);
            }
            let is_unfinished = has_more || outbox.kind == 0;
            outbox.kind |= u16::from(!has_more);
            Ok(is_unfinished)
        };
        self.carry(name, 0, &mut produce, &mut |about, block| match about.kind {
            0 => take_first(block.rows()),
            _ => take_second(block.rows()),
        })?;
        Ok(())
    }

    /// Exchanges rows that are produced during the call, like [`Net::exchange_into`]. `source` is
    /// called again while it returns true. It should emit a bounded number of rows each time (about
    /// ten thousand), so that receiving is not delayed.
    ///
    /// # Errors
    /// Returns the first error of `source` or `take`, which ends the run, or the error that has
    /// ended the run elsewhere.
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

    /// Exchanges the rows that `fill` puts into the open blocks. `fill` is called again while it
    /// returns true.
    fn exchange_blocks<T: Pod>(
        &mut self,
        name: &str,
        notice: u64,
        mut take: impl FnMut(&[T]) -> Result<()>,
        mut fill: impl FnMut(&mut OpenBlocks, &mut Outbox<'_>) -> Result<bool>,
    ) -> Result<Vec<u64>> {
        let mut open = OpenBlocks(vec![Block::default(); self.peers()]);
        let mut produce = |outbox: &mut Outbox<'_>| {
            let has_more = fill(&mut open, outbox)?;
            if !has_more {
                open.empty(outbox);
            }
            Ok(has_more)
        };
        self.carry(name, notice, &mut produce, &mut |_, block| take(block.rows()))
    }

    /// Exchanges values like [`Net::exchange_values`], and passes those that arrive to `take` one
    /// by one. If memory is bounded, they are passed on arrival and not collected first.
    ///
    /// # Errors
    /// Returns the first error of `values` or `take`, or the error that has ended the run.
    ///
    /// # Panics
    /// Panics if the index of a value is not that of a worker.
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

    /// Sends each value to the worker whose index is paired with it, serialised unless that is this
    /// worker. Passes the values that arrive to `take` on arrival; those of one sender arrive in
    /// the order sent.
    ///
    /// # Errors
    /// Returns the first error of `values` or `take`, or the error that has ended the run.
    ///
    /// # Panics
    /// Panics if the index of a value is not that of a worker.
    ///
    /// # Cost
    /// One round. Memory: one open block for each receiver, and the parcels in flight.
    pub fn stream_values<T: Serialize + DeserializeOwned>(
        &mut self,
        name: &str,
        values: impl IntoIterator<Item = Result<(usize, T)>>,
        take: impl FnMut(T) -> Result<()>,
    ) -> Result<()> {
        let (own_index, take) = (self.index(), RefCell::new(take));
        let mut values = values.into_iter();
        let mut open: Vec<Vec<u8>> = vec![Vec::new(); self.peers()];
        let mut produce = |outbox: &mut Outbox<'_>| {
            // The worker receives whenever a block is full, and after `SMALL_BATCH` values.
            for _ in 0..SMALL_BATCH {
                let Some((to, value)) = values.next().transpose()? else {
                    send_all(&mut open, outbox);
                    return Ok(false);
                };
                if to == own_index {
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

    /// Sends each row to the worker whose index is paired with it, serialised unless that worker is
    /// in this process. Returns the rows that arrive at this worker, ordered by sender and then as
    /// sent.
    ///
    /// # Errors
    /// Returns the first error of `rows`, or the error that has ended the run.
    ///
    /// # Panics
    /// Panics if the index of a row is not that of a worker.
    pub fn exchange_values<T: Serialize + DeserializeOwned + Send + 'static>(
        &mut self,
        name: &str,
        rows: impl IntoIterator<Item = Result<(usize, T)>>,
    ) -> Result<Vec<T>> {
        let (own_index, peers, shared) = (self.index(), self.peers(), self.shared);
        let process_peers =
            self.process() * self.workers_per_process()..(self.process() + 1) * self.workers_per_process();
        let mut rows = rows.into_iter();
        let mut open: Vec<Vec<u8>> = vec![Vec::new(); peers];
        let mut stay: Vec<Vec<T>> = process_peers.clone().map(|_| Vec::new()).collect();
        let mut call = 0;
        let mut produce = |outbox: &mut Outbox<'_>| {
            call = outbox.call;
            let mut row_count = 0;
            for row in rows.by_ref().take(SMALL_BATCH) {
                let (to, row) = row?;
                row_count += 1;
                // Workers of one process share memory, so rows between them are moved and not
                // serialised.
                if process_peers.contains(&to) {
                    stay[to - process_peers.start].push(row);
                    continue;
                }
                put(name, &row, to, &mut open, outbox)?;
            }
            let has_more = row_count == SMALL_BATCH;
            if !has_more {
                send_all(&mut open, outbox);
                // Must precede the last parcel, because the receiver fetches the rows when that
                // arrives.
                for (to, rows) in process_peers.clone().zip(&mut stay) {
                    shared.board.pass_on((call, own_index, to), std::mem::take(rows));
                }
            }
            Ok(has_more)
        };
        let mut received_rows: Vec<Vec<T>> = (0..peers).map(|_| Vec::new()).collect();
        self.carry(name, 0, &mut produce, &mut |about, block| {
            each_value(name, about, block, |row| {
                received_rows[about.from as usize].push(row);
                Ok(())
            })
        })?;
        for from in process_peers {
            received_rows[from] = shared.board.taken_over((call, from, own_index))?;
        }
        if peers == 1 {
            return Ok(received_rows.remove(own_index));
        }
        Ok(received_rows.into_iter().flatten().collect())
    }
}
