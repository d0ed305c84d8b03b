//! Queue of work items, which are dealt out to processes in turn and pulled within a process.

use std::sync::atomic::{AtomicUsize, Ordering};

use webtwin_engine::Net;

/// Next turn of a process, shared by its workers.
#[derive(Debug, Default)]
pub struct WorkQueue(AtomicUsize);

impl WorkQueue {
    /// Takes the number of the next item of this process. It may exceed the number of items, which
    /// means that there are no items left.
    pub fn next(&self, net: &Net<'_>) -> usize {
        self.next_of(net.process(), net.processes())
    }

    /// Takes the number of the next item for a caller without a `Net`, in the given process of
    /// `processes` processes.
    pub fn next_of(&self, process: usize, processes: usize) -> usize {
        self.0.fetch_add(1, Ordering::Relaxed) * processes + process
    }
}
