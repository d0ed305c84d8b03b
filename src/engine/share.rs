//! A value to all workers, and one copy of it in a process.

use std::sync::Arc;
use std::time::Duration;

use bytemuck::Pod;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::block::{BLOCK_BYTES, Block};
use super::carry::{Outbox, WINDOW_BYTES};
use super::net::Net;
use webtwin_base::error::{Error, Result};

/// Bytes of the rows of all workers that travel with their numbers in [`Net::broadcast`], in equal parts.
pub const AT_ONCE_BYTES: usize = WINDOW_BYTES;

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
        self.exchange_values(name, (0..peers).map(|to| Ok((to, mine.clone()))))
    }

    /// Combines the values of all workers by `with`, in the order of their indices: the same result on each.
    ///
    /// # Errors
    /// Only when the run has ended.
    pub fn all_reduce<T: Serialize + DeserializeOwned + Clone + Send + 'static>(
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
    pub fn all_sum<const N: usize>(&mut self, name: &str, mine: [u64; N]) -> Result<[u64; N]> {
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
    pub fn broadcast<T: Pod + Send + Sync>(&mut self, name: &str, mine: Vec<T>) -> Result<Arc<Vec<T>>> {
        let at_once = (AT_ONCE_BYTES / self.peers()).max(BLOCK_BYTES);
        let is_few = |rows: usize| rows * size_of::<T>() <= at_once;
        let (few, many) = mine.split_at(if is_few(mine.len()) { mine.len() } else { 0 });

        let mut come: Vec<Vec<T>> = vec![Vec::new(); self.peers()];
        let numbers = self.tell_keepers(name, few.iter().copied(), mine.len() as u64, |from, rows| {
            come[from].extend_from_slice(rows)
        })?;
        // Where the next rows of each worker go.
        let (mut next, mut total) = (Vec::with_capacity(numbers.len()), 0);
        for &rows in &numbers {
            next.push(total);
            total += rows as usize;
        }
        let mut all: Vec<T> = bytemuck::zeroed_vec(if self.is_keeper() { total } else { 0 });
        for (rows, &at) in come.iter().zip(&next).filter(|(rows, _)| !rows.is_empty()) {
            all[at..][..rows.len()].copy_from_slice(rows);
        }
        drop(come);
        if !numbers.iter().all(|&rows| is_few(rows as usize)) {
            self.tell_keepers(name, many.iter().copied(), 0, |from, rows| {
                let next = &mut next[from];
                all[*next..][..rows.len()].copy_from_slice(rows);
                *next += rows.len();
            })?;
        }
        self.once_per_process(|| all)
    }

    /// Gives the workers of each process a value that the rows of all workers are put in as they come, with the number of their sender: for
    /// what need not be held as rows. Those of one sender come in the order sent, between those of others.
    ///
    /// # Errors
    /// Only when the run has ended.
    ///
    /// # Cost
    /// Each row is sent once to each process. One round. Memory: the value, and what is on the way.
    pub fn broadcast_into<T: Pod, V: Send + Sync + 'static>(
        &mut self,
        name: &str,
        rows: impl IntoIterator<Item = T>,
        begin: impl FnOnce() -> V,
        mut put: impl FnMut(&mut V, usize, &T),
    ) -> Result<Arc<V>> {
        let mut value = self.is_keeper().then(begin);
        self.tell_keepers(name, rows.into_iter(), 0, |from, rows| {
            let value = value.as_mut().expect("only keepers are told");
            rows.iter().for_each(|row| put(value, from, row));
        })?;
        self.once_per_process(|| value.expect("the keeper has begun it"))
    }

    /// Whether this worker is the one of its process which makes what is made [`Net::once_per_process`].
    pub fn is_keeper(&self) -> bool {
        self.index().is_multiple_of(self.workers_per_process())
    }

    /// Sends rows to the keepers, one worker of each process; tells all workers a number, and returns theirs.
    fn tell_keepers<T: Pod>(
        &mut self,
        name: &str,
        mut mine: impl Iterator<Item = T>,
        told: u64,
        mut take: impl FnMut(usize, &[T]),
    ) -> Result<Vec<u64>> {
        let workers = self.workers_per_process();
        let keepers = (0..self.processes()).map(|process| process * workers);
        let room = Block::room::<T>(self.block_bytes);
        let mut rows = Vec::with_capacity(room);
        let mut produce = |outbox: &mut Outbox<'_>| {
            rows.clear();
            rows.extend(mine.by_ref().take(room));
            if !rows.is_empty() {
                keepers.clone().for_each(|to| outbox.push_all(to, &rows));
            }
            Ok(rows.len() == room)
        };
        self.carry(name, told, &mut produce, &mut |about, block| {
            take(about.from as usize, block.rows());
            Ok(())
        })
    }

    /// Lets one worker of each process make a value, which all its workers then hold together.
    ///
    /// It is the first worker of the process that calls `make`; the others wait for it.
    ///
    /// # Errors
    /// Only when the run has ended.
    pub fn once_per_process<T: Send + Sync + 'static>(&mut self, make: impl FnOnce() -> T) -> Result<Arc<T>> {
        self.once_by(0, make)
    }

    /// Lets each worker of a process see what every worker of it brings, in the order of their indices; nothing is copied.
    ///
    /// # Errors
    /// Only when the run has ended.
    pub fn gather_in_process<T: Send + Sync + 'static>(&mut self, mine: T) -> Result<Vec<Arc<T>>> {
        let (workers, mut mine) = (self.workers_per_process(), Some(mine));
        let of = |number| self.once_by(number, || mine.take().expect("a worker is asked once"));
        (0..workers).map(of).collect()
    }

    /// Gives the first worker of each process what its workers have held together, and the others nothing.
    ///
    /// # Errors
    /// [`Error::Invariant`] when somebody else holds it; or when the run has ended.
    pub fn take_back<T>(&mut self, shared: Arc<T>) -> Result<Option<T>> {
        let kept = self.is_keeper().then_some(shared);
        // By then the others have let go of it.
        self.gather_in_process(())?;
        let whole =
            |kept| Arc::into_inner(kept).ok_or_else(|| Error::Invariant("what is taken back is still held".into()));
        kept.map(whole).transpose()
    }

    /// As [`Net::once_per_process`], where the worker of this number in its process makes the value.
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
