//! Measured cost of a probe on the current machine.

use std::hint::black_box;
use std::time::Instant;

use super::super::scan::scan;
use webtwin_base::ids::splitmix64;

/// Number of values that are read at random: 64 MB, more than caches hold.
const NUMBERS: usize = 1 << 23;

/// Number of measurements of each figure. The smallest counts, because disturbances only make a
/// measurement larger.
const ROUNDS: u64 = 4;

/// Bytes of a row in the measurement, the same as in most designs for 10^7 to 10^9 documents.
const WIDTH: usize = 6;

/// Costs of probing a table.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct ProbeCosts {
    /// Nanoseconds of a random read of memory.
    pub read_ns: f64,
    /// Nanoseconds to compare a row with the query.
    pub check_ns: f64,
}

impl ProbeCosts {
    /// Costs of one core of the machine that produced the figures in docs/hamming.md.
    pub const TYPICAL: ProbeCosts = ProbeCosts { read_ns: 120.0, check_ns: 0.7 };

    /// Measures the costs on one core.
    ///
    /// # Cost
    /// 64 MB, and about 100 ms.
    pub fn measure() -> ProbeCosts {
        let numbers: Vec<u64> = (0..NUMBERS as u64).map(splitmix64).collect();
        let smallest = |measure: &dyn Fn(u64) -> f64| (0..ROUNDS).map(measure).fold(f64::MAX, f64::min);
        let read_ns = smallest(&|round| {
            // Each read determines the address of the next, so that reads cannot overlap.
            let number_at = |at: u64, step: u64| numbers[(at ^ step) as usize % NUMBERS];
            timed(1 << 16, || (0..1 << 16).fold(round, number_at))
        });
        let bytes: &[u8] = bytemuck::cast_slice(&numbers);
        let check_ns = smallest(&|round| {
            const RUN: usize = 2048;
            let mut near = Vec::new();
            timed(RUN << 10, || {
                for at in 0..1 << 10 {
                    let row = splitmix64(round << 10 | at) as usize % (bytes.len() / WIDTH - RUN);
                    scan(bytes, WIDTH, row..row + RUN, at, 3, &mut near);
                }
                near.len() as u64
            })
        });
        ProbeCosts { read_ns, check_ns }
    }
}

/// Returns the nanoseconds per operation if `work` runs `times` operations.
fn timed(times: usize, work: impl FnOnce() -> u64) -> f64 {
    let start = Instant::now();
    black_box(work());
    start.elapsed().as_nanos() as f64 / times as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_costs_more_than_a_comparison() {
        let ProbeCosts { read_ns, check_ns } = ProbeCosts::measure();
        assert!(check_ns > 0.0 && read_ns > check_ns && read_ns < 1e5, "{read_ns} {check_ns}");
    }
}
