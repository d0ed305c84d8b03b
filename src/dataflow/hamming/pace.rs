//! Back-pressure between workers that send rows after all of their input has arrived.

use std::time::Duration;

use timely::ExchangeData;
use timely::dataflow::operators::probe::Handle;
use timely::dataflow::operators::{Capability, Exchange, Probe};

use webtwin_engine::RowStream;

/// Number of batches that a worker may send ahead of the slowest receiver.
const MAX_BATCHES_AHEAD: u64 = 4;

/// Limit on the rate at which a worker sends batches of rows, so that they are sent no faster than
/// they arrive. The time of a row is the number of its batch.
#[derive(Debug, Clone, Default)]
pub(super) struct Pace {
    probe: Handle<u64>,
    batch: u64,
}

impl Pace {
    /// Interval at which a worker that is too far ahead checks again.
    pub(super) const PATIENCE: Duration = Duration::from_millis(1);

    /// Returns true if the next batch may be sent, at the time of `capability`.
    pub(super) fn begin_batch(&mut self, capability: &mut Capability<u64>) -> bool {
        capability.downgrade(&self.batch);
        let may_send = self.batch < MAX_BATCHES_AHEAD || !self.probe.less_than(&(self.batch - MAX_BATCHES_AHEAD + 1));
        self.batch += u64::from(may_send);
        may_send
    }

    /// Sends rows to the workers that `to` returns.
    pub(super) fn send<'s, R: ExchangeData>(
        &self,
        rows: RowStream<'s, R>,
        to: impl Fn(&R) -> u64 + 'static,
    ) -> RowStream<'s, R> {
        rows.exchange(to).probe_with(&self.probe)
    }
}
