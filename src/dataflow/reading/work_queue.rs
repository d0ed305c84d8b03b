//! Items of work, dealt out to processes in turn and pulled within a process.

use std::sync::atomic::{AtomicUsize, Ordering};

use webtwin_engine::Net;

/// The next turn of a process; its workers share it.
#[derive(Debug, Default)]
pub struct WorkQueue(AtomicUsize);

impl WorkQueue {
    /// Takes the number of the next item of this process; there may be fewer items.
    pub fn next(&self, net: &Net<'_>) -> usize {
        self.next_of(net.process(), net.processes())
    }

    /// The same where there is no `Net` at hand: for a process of so many.
    pub fn next_of(&self, process: usize, processes: usize) -> usize {
        self.0.fetch_add(1, Ordering::Relaxed) * processes + process
    }
}
