//! Rows with texts, key by key, in bounded memory: rows are sent to the owners of their keys and
//! stored in parts, which are sorted one at a time.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use itertools::Itertools;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::shuffle::memory::too_little;
use webtwin_base::error::Result;
use webtwin_engine::Net;
use webtwin_spill::{RUN_LOG_BLOCK_BYTES, SpillRows};

/// Maximum bytes of a part that need not be free now if the estimate at the start allowed for them.
const MAX_PLANNED_BYTES: u64 = 32 << 20;

/// Row with a key. Ordered by key first.
pub(super) trait KeyedRow: Ord + Serialize + DeserializeOwned + Send + 'static {
    /// Type of the key.
    type Key: Ord + Copy;

    fn key(&self) -> Self::Key;
}

/// Sends rows to the workers that they are paired with, and calls `visit` with the rows of one key
/// after the other, in their order and without repetitions.
///
/// `bytes` adds up the bytes of this worker's rows; it is called only if memory is limited. A row
/// takes `a_row` bytes while the rows of its key are processed, plus `a_byte` for each serialized
/// byte. `part` returns the part of a row, given the number of parts; all rows of a key are in one
/// part.
///
/// # Errors
/// Returns the first error of `rows` and `visit`. Returns
/// [`webtwin_base::error::Error::MemoryLimit`] if a part does not fit within the memory limit.
/// Returns any error of the disk, and an error if the run has ended.
///
/// # Memory
/// Takes the memory of all rows. If memory is limited, takes 4 bytes for each row, one part or the
/// rows of its largest key, and as much again for the ends of all parts: about the square root of
/// the bytes of a worker's rows, both in MiB.
pub(super) fn each_key<T: KeyedRow>(
    net: &mut Net<'_>,
    name: &str,
    bytes: impl FnOnce() -> Result<u64>,
    rows: impl Iterator<Item = Result<(usize, T)>>,
    part: impl Fn(&T, usize) -> usize,
    [a_row, a_byte]: [u64; 2],
    mut visit: impl FnMut(Vec<T>) -> Result<()>,
) -> Result<()> {
    if !net.memory.is_bounded() {
        return in_order(net.exchange_values(name, rows)?, visit);
    }
    let [bytes] = net.all_sum("bytes of rows by key", [bytes()?])?;
    let count = (bytes / net.peers() as u64 / RUN_LOG_BLOCK_BYTES as u64).isqrt() as usize + 1;
    let mut parts: Vec<SpillRows<T>> = (0..count).map(|_| SpillRows::new(&net.memory)).collect();
    net.exchange_values_into(name, rows, |row| parts[part(&row, count)].push(&row))?;
    let budget = net.memory.clone();
    // The estimate at the start allowed for a small part, because tables take as much later.
    let max_bytes = budget.memory_bytes.max(budget.foreseen_bytes.min(MAX_PLANNED_BYTES));
    for part in parts {
        let a_row = a_row + a_byte * (part.bytes() / part.len().max(1) as u64);
        for (keys, rows) in runs(&part, max_bytes / 2 / a_row)? {
            net.check()?;
            let needed_bytes = a_row * rows;
            if needed_bytes > max_bytes {
                let held_bytes = budget.bounds.memory_bytes.saturating_sub(budget.memory_bytes);
                let purpose = format!("{name}, with {rows} rows of one key");
                // The memory that is held differs a little from run to run.
                return Err(too_little(
                    purpose,
                    held_bytes + needed_bytes + needed_bytes / 16,
                    budget.bounds.memory_bytes,
                ));
            }
            let run_rows = part.rows().filter_ok(|row| keys.as_ref().is_none_or(|keys| keys.contains(&row.key())));
            in_order(run_rows.collect::<Result<Vec<T>>>()?, &mut visit)?;
        }
    }
    Ok(())
}

/// Range of keys whose rows are processed together, or `None` for all keys of a part; and the
/// number of these rows.
type Run<Key> = (Option<RangeInclusive<Key>>, u64);

/// Divides the keys of a part into ascending ranges of at most `max_rows` rows, or of a single key
/// with more rows. Returns one run of all keys if the part has at most `max_rows` rows.
fn runs<T: KeyedRow>(part: &SpillRows<T>, max_rows: u64) -> Result<Vec<Run<T::Key>>> {
    if part.len() as u64 <= max_rows {
        return Ok(vec![(None, part.len() as u64)]);
    }
    let mut counts: BTreeMap<T::Key, u64> = BTreeMap::new();
    for row in part.rows() {
        *counts.entry(row?.key()).or_default() += 1;
    }
    let mut runs: Vec<(RangeInclusive<T::Key>, u64)> = Vec::new();
    for (key, rows) in counts {
        match runs.last_mut() {
            Some((keys, rows_so_far)) if *rows_so_far + rows <= max_rows => {
                (*keys, *rows_so_far) = (*keys.start()..=key, *rows_so_far + rows)
            }
            _ => runs.push((key..=key, rows)),
        }
    }
    Ok(runs.into_iter().map(|(keys, rows)| (Some(keys), rows)).collect())
}

fn in_order<T: KeyedRow>(mut rows: Vec<T>, mut visit: impl FnMut(Vec<T>) -> Result<()>) -> Result<()> {
    rows.sort_unstable();
    rows.dedup();
    // A large key has rows of its own, which need not be copied.
    if rows.first().map(T::key) == rows.last().map(T::key) {
        return if rows.is_empty() { Ok(()) } else { visit(rows) };
    }
    rows.into_iter().chunk_by(T::key).into_iter().try_for_each(|(_, rows)| visit(rows.collect()))
}
