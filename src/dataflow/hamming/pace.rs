//! Back-pressure between workers that send rows when all they need has come.

use std::time::Duration;

use timely::ExchangeData;
use timely::dataflow::operators::probe::Handle;
use timely::dataflow::operators::{Capability, Exchange, Probe};

use webtwin_engine::Rows;

/// Batches that a worker sends ahead of the slowest.
const AHEAD: u64 = 4;

/// Lets a worker send batches of rows no faster than they arrive. The time of a row is the number of its batch.
#[derive(Debug, Clone, Default)]
pub(super) struct Pace {
    arrived: Handle<u64>,
    batch: u64,
}

impl Pace {
    /// How long a worker that is too far ahead waits before it looks again.
    pub(super) const PATIENCE: Duration = Duration::from_millis(1);

    /// True if the next batch may be sent, at the time of `capability`.
    pub(super) fn begin_batch(&mut self, capability: &mut Capability<u64>) -> bool {
        capability.downgrade(&self.batch);
        let may_send = self.batch < AHEAD || !self.arrived.less_than(&(self.batch - AHEAD + 1));
        self.batch += u64::from(may_send);
        may_send
    }

    /// Sends rows to the workers that `to` names.
    pub(super) fn send<'s, R: ExchangeData>(&self, rows: Rows<'s, R>, to: impl Fn(&R) -> u64 + 'static) -> Rows<'s, R> {
        rows.exchange(to).probe_with(&self.arrived)
    }
}
