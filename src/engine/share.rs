//! Broadcasts: one value for all workers, with one copy of it in each process.

use std::sync::Arc;
use std::time::Duration;

use bytemuck::Pod;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::block::{BLOCK_BYTES, Block};
use super::carry::{Outbox, WINDOW_BYTES};
use super::net::Net;
use webtwin_base::error::{Error, Result};

/// Maximum bytes of the rows of all workers, in equal parts, that [`Net::broadcast`] sends in its
/// first round.
pub const IMMEDIATE_BYTES: usize = WINDOW_BYTES;

impl Net<'_> {
    /// Sends `value` to every worker. Returns the values of all workers by worker index.
    ///
    /// # Errors
    /// Returns only the error that has ended the run.
    pub fn all_gather<T: Serialize + DeserializeOwned + Clone + Send + 'static>(
        &mut self,
        name: &str,
        value: T,
    ) -> Result<Vec<T>> {
        let peers = self.peers();
        self.exchange_values(name, (0..peers).map(|to| Ok((to, value.clone()))))
    }

    /// Combines the values of all workers with `combine`, in the order of their indices. The result
    /// is the same on each worker.
    ///
    /// # Errors
    /// Returns only the error that has ended the run.
    pub fn all_reduce<T: Serialize + DeserializeOwned + Clone + Send + 'static>(
        &mut self,
        name: &str,
        value: T,
        combine: impl Fn(T, T) -> T,
    ) -> Result<T> {
        let values = self.all_gather(name, value)?;
        Ok(values.into_iter().reduce(combine).expect("there is at least one worker"))
    }

    /// Adds up counts over all workers.
    ///
    /// # Errors
    /// Returns only the error that has ended the run.
    pub fn all_sum<const N: usize>(&mut self, name: &str, counts: [u64; N]) -> Result<[u64; N]> {
        let worker_counts = self.all_gather(name, counts.to_vec())?;
        Ok(std::array::from_fn(|at| worker_counts.iter().map(|of_worker| of_worker[at]).sum()))
    }

    /// Sends the rows of every worker to all workers. Returns them in the order of the workers'
    /// indices; the workers of a process share one copy.
    ///
    /// # Errors
    /// Returns only the error that has ended the run.
    ///
    /// # Cost
    /// Each row is sent once to each process. One round, and a second one for the rows of workers
    /// that exceed their part of [`IMMEDIATE_BYTES`]. Memory: all rows once in each process, and a
    /// second copy of the rows of the first round for a moment.
    pub fn broadcast<T: Pod + Send + Sync>(&mut self, name: &str, own_rows: Vec<T>) -> Result<Arc<Vec<T>>> {
        let immediate_bytes = (IMMEDIATE_BYTES / self.peers()).max(BLOCK_BYTES);
        let is_few = |rows: usize| rows * size_of::<T>() <= immediate_bytes;
        let (small_share, large_share) = own_rows.split_at(if is_few(own_rows.len()) { own_rows.len() } else { 0 });

        let mut immediate_rows: Vec<Vec<T>> = vec![Vec::new(); self.peers()];
        let numbers =
            self.report_to_keepers(name, small_share.iter().copied(), own_rows.len() as u64, |from, rows| {
                immediate_rows[from].extend_from_slice(rows)
            })?;
        // Positions of the next rows of each worker in the result.
        let (mut next, mut total) = (Vec::with_capacity(numbers.len()), 0);
        for &rows in &numbers {
            next.push(total);
            total += rows as usize;
        }
        let mut gathered_rows: Vec<T> = bytemuck::zeroed_vec(if self.is_keeper() { total } else { 0 });
        for (rows, &at) in immediate_rows.iter().zip(&next).filter(|(rows, _)| !rows.is_empty()) {
            gathered_rows[at..][..rows.len()].copy_from_slice(rows);
        }
        drop(immediate_rows);
        // The numbers of the first round are the same on all workers, so all agree if there is a
        // second one.
        if !numbers.iter().all(|&rows| is_few(rows as usize)) {
            self.report_to_keepers(name, large_share.iter().copied(), 0, |from, rows| {
                let next = &mut next[from];
                gathered_rows[*next..][..rows.len()].copy_from_slice(rows);
                *next += rows.len();
            })?;
        }
        self.once_per_process(|| gathered_rows)
    }

    /// Builds one value in each process from the rows of all workers. `merge` adds a row with the
    /// index of its sender on arrival, so the rows need not be held in memory. Rows of one sender
    /// arrive in the order sent, interleaved with those of others.
    ///
    /// # Errors
    /// Returns only the error that has ended the run.
    ///
    /// # Cost
    /// Each row is sent once to each process. One round. Memory: the value, and the parcels in
    /// flight.
    pub fn broadcast_into<T: Pod, V: Send + Sync + 'static>(
        &mut self,
        name: &str,
        rows: impl IntoIterator<Item = T>,
        begin: impl FnOnce() -> V,
        mut merge: impl FnMut(&mut V, usize, &T),
    ) -> Result<Arc<V>> {
        let mut value = self.is_keeper().then(begin);
        self.report_to_keepers(name, rows.into_iter(), 0, |from, rows| {
            let value = value.as_mut().expect("only keepers receive rows");
            rows.iter().for_each(|row| merge(value, from, row));
        })?;
        self.once_per_process(|| value.expect("the keeper has begun it"))
    }

    /// True if this worker is the one of its process that makes the values of
    /// [`Net::once_per_process`].
    pub fn is_keeper(&self) -> bool {
        self.index().is_multiple_of(self.workers_per_process())
    }

    /// Sends rows to the keepers, one worker of each process, and the number `notice` to all
    /// workers. Returns the numbers of all workers.
    fn report_to_keepers<T: Pod>(
        &mut self,
        name: &str,
        mut own_rows: impl Iterator<Item = T>,
        notice: u64,
        mut take: impl FnMut(usize, &[T]),
    ) -> Result<Vec<u64>> {
        let workers = self.workers_per_process();
        let keepers = (0..self.processes()).map(|process| process * workers);
        let capacity = Block::capacity::<T>(self.block_bytes);
        let mut rows = Vec::with_capacity(capacity);
        let mut produce = |outbox: &mut Outbox<'_>| {
            rows.clear();
            rows.extend(own_rows.by_ref().take(capacity));
            if !rows.is_empty() {
                keepers.clone().for_each(|to| outbox.push_all(to, &rows));
            }
            Ok(rows.len() == capacity)
        };
        self.carry(name, notice, &mut produce, &mut |about, block| {
            take(about.from as usize, block.rows());
            Ok(())
        })
    }

    /// Makes a value once in each process, and returns it to all workers of the process.
    ///
    /// The first worker of the process calls `make`; the others wait for it.
    ///
    /// # Errors
    /// Returns only the error that has ended the run.
    pub fn once_per_process<T: Send + Sync + 'static>(&mut self, make: impl FnOnce() -> T) -> Result<Arc<T>> {
        self.once_by(0, make)
    }

    /// Returns the values of all workers of this process, in the order of their indices. The values
    /// are shared and not copied.
    ///
    /// # Errors
    /// Returns only the error that has ended the run.
    pub fn gather_in_process<T: Send + Sync + 'static>(&mut self, value: T) -> Result<Vec<Arc<T>>> {
        let (workers, mut value) = (self.workers_per_process(), Some(value));
        let value_of = |number| self.once_by(number, || value.take().expect("a worker is asked once"));
        (0..workers).map(value_of).collect()
    }

    /// Moves the shared value out on the first worker of each process. Returns `None` on all
    /// others.
    ///
    /// # Errors
    /// Returns [`Error::Invariant`] if another reference to the value is left, or the error that
    /// has ended the run.
    pub fn take_back<T>(&mut self, shared: Arc<T>) -> Result<Option<T>> {
        let kept_value = self.is_keeper().then_some(shared);
        // After this call all other workers have dropped their references.
        self.gather_in_process(())?;
        let whole =
            |kept| Arc::into_inner(kept).ok_or_else(|| Error::Invariant("a shared value is still referenced".into()));
        kept_value.map(whole).transpose()
    }

    /// Makes a value once in each process, like [`Net::once_per_process`], on the worker with the
    /// given number in its process.
    fn once_by<T: Send + Sync + 'static>(&mut self, number: usize, make: impl FnOnce() -> T) -> Result<Arc<T>> {
        let call = self.next_call();
        let workers = self.workers_per_process();
        if self.index() % workers == number {
            let value = Arc::new(make());
            self.shared.board.leave(call, value.clone(), workers - 1);
            return Ok(value);
        }
        loop {
            if let Some(value) = self.shared.board.find(call) {
                return value.downcast().map_err(|_| {
                    Error::Invariant("the workers of this process are in different collective calls".into())
                });
            }
            self.check()?;
            self.worker.step_or_park(Some(Duration::from_millis(1)));
        }
    }
}
