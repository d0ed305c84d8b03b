//! Self-join of a set of fingerprints.

use super::super::measure::{core_seconds, median};
use super::super::{FigureRow, Options, figure};
use super::K;
use webtwin_base::error::{Error, Result};
use webtwin_base::huge::HugeArray;
use webtwin_base::ids::splitmix64;
use webtwin_core::hamming::close_pairs::Joiner;
use webtwin_core::hamming::kernels::{Level, within};

/// Returns fingerprint number `number`. One in a hundred is an earlier one with 0 to 5 flips.
pub(super) fn fingerprint(number: u64) -> u64 {
    match number % 100 {
        99 => (0..number / 100 % 6)
            .fold(splitmix64(number - 50), |value, flip| value ^ 1 << (splitmix64(number ^ flip << 40) & 63)),
        _ => splitmix64(number),
    }
}

/// Returns the planted pairs among the first `count` fingerprints: those that are near because one
/// was made of the other. The earlier one comes first.
pub(super) fn planted(count: u64) -> impl Iterator<Item = (u64, u64)> {
    let pairs = (99..count).step_by(100).map(|at| (at - 50, at));
    pairs.filter(|&(x, y)| (fingerprint(x) ^ fingerprint(y)).count_ones() <= K)
}

/// Measures the self-join in memory on one core, and checks the planted pairs.
pub(super) fn run(options: &Options) -> Result<Vec<FigureRow>> {
    let count = options.scale as usize;
    let mut fingerprints: Vec<u64> = (0..count as u64).map(fingerprint).collect();
    fingerprints.sort_unstable();
    fingerprints.dedup();
    let planted_pairs: Vec<(u64, u64)> = planted(count as u64)
        .map(|(x, y)| (fingerprint(x), fingerprint(y)))
        .filter(|(x, y)| x != y)
        .map(|(x, y)| (x.min(y), x.max(y)))
        .collect();

    let (mut items, mut scratch) = (HugeArray::zeroed(fingerprints.len())?, HugeArray::zeroed(fingerprints.len())?);
    let mut joiner = Joiner::new(K, Level::best());
    let (mut times, mut pairs) = (Vec::new(), Vec::new());
    for _ in 0..if count > 20_000_000 { 1 } else { 3 } {
        items.copy_from_slice(&fingerprints);
        pairs.clear();
        let (duration, ()) = core_seconds(|| {
            joiner.within(&mut items, &mut scratch, &mut |x: &u64, y: &u64, _| pairs.push((*x.min(y), *x.max(y))));
            pairs.sort_unstable();
        });
        times.push(duration);
    }
    let n_missed = planted_pairs.iter().filter(|pair| pairs.binary_search(pair).is_err()).count();
    let n_repeated = pairs.windows(2).filter(|two| two[0] == two[1]).count();
    if n_missed + n_repeated > 0 {
        return Err(Error::Invariant(format!(
            "{n_missed} planted pairs were missed, and {n_repeated} pairs were found twice"
        )));
    }
    let median_time = median(times);
    let brute_sample = &fingerprints[..fingerprints.len().min(1 << 16)];
    let mut pairs_found = Vec::new();
    let (brute, ()) = core_seconds(|| within(Level::best(), brute_sample, K, &mut pairs_found));
    // Brute force on all fingerprints would take too long, so its time is extrapolated from the
    // sample.
    let a_pair = brute / (brute_sample.len() as f64 * brute_sample.len() as f64 / 2.0);
    let all_seconds = a_pair * fingerprints.len() as f64 * fingerprints.len() as f64 / 2.0;
    let reach = 10.0 * count as f64 / 1e8;
    Ok(vec![
        figure("one core", median_time, "s").at_most(reach),
        figure("a fingerprint", median_time * 1e9 / fingerprints.len() as f64, "ns"),
        figure("pairs", pairs.len() as f64, "pairs"),
        figure("planted pairs missed, or found twice", (n_missed + n_repeated) as f64, "pairs").at_most(0.0),
        figure("against brute force, reckoned from 65,536 fingerprints", all_seconds / median_time, "times"),
    ])
}
