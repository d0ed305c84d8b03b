//! Self-join of a set of fingerprints.

use super::super::measure::{core_seconds, median};
use super::super::{FigureRow, Options, figure};
use super::K;
use webtwin_base::error::{Error, Result};
use webtwin_base::huge::HugeArray;
use webtwin_base::ids::splitmix64;
use webtwin_core::hamming::close_pairs::Joiner;
use webtwin_core::hamming::kernels::{Level, within};

/// Returns fingerprint number `at`. One in a hundred is an earlier one with 0 to 5 flips.
pub(super) fn fingerprint(at: u64) -> u64 {
    match at % 100 {
        99 => {
            (0..at / 100 % 6).fold(splitmix64(at - 50), |value, flip| value ^ 1 << (splitmix64(at ^ flip << 40) & 63))
        }
        _ => splitmix64(at),
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
    let mut sorted: Vec<u64> = (0..count as u64).map(fingerprint).collect();
    sorted.sort_unstable();
    sorted.dedup();
    let planted: Vec<(u64, u64)> = planted(count as u64)
        .map(|(x, y)| (fingerprint(x), fingerprint(y)))
        .filter(|(x, y)| x != y)
        .map(|(x, y)| (x.min(y), x.max(y)))
        .collect();

    let (mut items, mut scratch) = (HugeArray::zeroed(sorted.len())?, HugeArray::zeroed(sorted.len())?);
    let mut joiner = Joiner::new(K, Level::best());
    let (mut times, mut pairs) = (Vec::new(), Vec::new());
    for _ in 0..if count > 20_000_000 { 1 } else { 3 } {
        items.copy_from_slice(&sorted);
        pairs.clear();
        let (took, ()) = core_seconds(|| {
            joiner.within(&mut items, &mut scratch, &mut |x: &u64, y: &u64, _| pairs.push((*x.min(y), *x.max(y))));
            pairs.sort_unstable();
        });
        times.push(took);
    }
    let missed = planted.iter().filter(|pair| pairs.binary_search(pair).is_err()).count();
    let twice = pairs.windows(2).filter(|two| two[0] == two[1]).count();
    if missed + twice > 0 {
        return Err(Error::Invariant(format!(
            "{missed} planted pairs were missed, and {twice} pairs were found twice"
        )));
    }
    let took = median(times);
    let some = &sorted[..sorted.len().min(1 << 16)];
    let mut found = Vec::new();
    let (brute, ()) = core_seconds(|| within(Level::best(), some, K, &mut found));
    // Brute force on all fingerprints would take too long, so its time is extrapolated from the
    // sample.
    let a_pair = brute / (some.len() as f64 * some.len() as f64 / 2.0);
    let all = a_pair * sorted.len() as f64 * sorted.len() as f64 / 2.0;
    let reach = 10.0 * count as f64 / 1e8;
    Ok(vec![
        figure("one core", took, "s").at_most(reach),
        figure("a fingerprint", took * 1e9 / sorted.len() as f64, "ns"),
        figure("pairs", pairs.len() as f64, "pairs"),
        figure("planted pairs missed, or found twice", (missed + twice) as f64, "pairs").at_most(0.0),
        figure("against brute force, reckoned from 65,536 fingerprints", all / took, "times"),
    ])
}
