//! A value to all workers, and one copy of it in a process.

use std::sync::Arc;
use std::time::Duration;

use bytemuck::Pod;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::block::{BLOCK_BYTES, Block};
use super::carry::{Outbox, WINDOW};
use super::net::Net;
use crate::error::{Error, Result};

/// Bytes of the rows of all workers that travel with their numbers in [`Net::share`], in equal parts.
pub const AT_ONCE_BYTES: usize = WINDOW * BLOCK_BYTES;

impl Net<'_> {
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
}
