//! Items of work, dealt out to processes in turn and pulled within a process.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::engine::Net;

/// The next turn of a process; its workers share it.
#[derive(Debug, Default)]
pub struct Turns(AtomicUsize);

impl Turns {
    /// Takes the number of the next item of this process; there may be fewer items.
    pub fn next(&self, net: &Net<'_>) -> usize {
        self.0.fetch_add(1, Ordering::Relaxed) * net.processes() + net.process()
    }
}
