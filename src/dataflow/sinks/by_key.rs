//! Rows with texts, key by key, in bounded memory: with the owners of the keys, in parts that are put in order one at a time.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use itertools::Itertools;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::shuffle::memory::too_little;
use webtwin_base::error::Result;
use webtwin_engine::Net;
use webtwin_spill::{Rows, TAPE_BLOCK_BYTES};

/// Most bytes of a part that need not be free, as long as they were when the run was let go on.
const FORESEEN: u64 = 32 << 20;

/// A row with a key. Orders by its key first.
pub(super) trait Keyed: Ord + Serialize + DeserializeOwned + Send + 'static {
    /// The key.
    type Key: Ord + Copy;

    fn key(&self) -> Self::Key;
}

/// Brings rows to the workers beside them, and calls `each` with those of one key after the other, each once and in their order.
///
/// `bytes` adds up those of this worker's rows, where they matter; a row takes `a_row` bytes while those of its key are looked at, and
/// `a_byte` for each of it when it is serialised; `part` says in which of so many parts a row is, all rows of a key in one.
///
/// # Errors
/// The first of `rows` and `each`; [`webtwin_base::error::Error::MemoryLimit`] where a part has no room within the bound; those of the disk; or
/// when the run has ended.
///
/// # Memory
/// All rows; or within a bound 4 bytes a row, one part or the largest of its keys, and as much again for the ends of all parts: about the square root of the bytes
/// of a worker's rows in MiB.
pub(super) fn each_key<T: Keyed>(
    net: &mut Net<'_>,
    name: &str,
    bytes: impl FnOnce() -> Result<u64>,
    rows: impl Iterator<Item = Result<(usize, T)>>,
    part: impl Fn(&T, usize) -> usize,
    [a_row, a_byte]: [u64; 2],
    mut each: impl FnMut(Vec<T>) -> Result<()>,
) -> Result<()> {
    if !net.memory.is_bounded() {
        return in_order(net.exchange_values(name, rows)?, each);
    }
    let [bytes] = net.all_sum("bytes of rows by key", [bytes()?])?;
    let count = (bytes / net.peers() as u64 / TAPE_BLOCK_BYTES as u64).isqrt() as usize + 1;
    let mut parts: Vec<Rows<T>> = (0..count).map(|_| Rows::new(&net.memory)).collect();
    net.exchange_values_into(name, rows, |row| parts[part(&row, count)].push(&row))?;
    let room = net.memory.clone();
    // A small part was foreseen when the run was let go on, for tables take as much later.
    let most = room.memory_bytes.max(room.foreseen_bytes.min(FORESEEN));
    for part in parts {
        let a_row = a_row + a_byte * (part.bytes() / part.len().max(1) as u64);
        for (keys, rows) in runs(&part, most / 2 / a_row)? {
            net.check()?;
            let needed = a_row * rows;
            if needed > most {
                let held = room.bounds.memory_bytes.saturating_sub(room.memory_bytes);
                let what = format!("{name}, of which {rows} belong together");
                // What is held differs a little from run to run.
                return Err(too_little(what, held + needed + needed / 16, room.bounds.memory_bytes));
            }
            let of_run = part.rows().filter_ok(|row| keys.as_ref().is_none_or(|keys| keys.contains(&row.key())));
            in_order(of_run.collect::<Result<Vec<T>>>()?, &mut each)?;
        }
    }
    Ok(())
}

/// Keys of rows that are looked at together, all of a part if none are named, and the number of these rows.
type Run<Key> = (Option<RangeInclusive<Key>>, u64);

/// Runs of the keys of a part, ascending, that have as many rows as are looked at together, or are one key; all keys where they have no more.
fn runs<T: Keyed>(part: &Rows<T>, most: u64) -> Result<Vec<Run<T::Key>>> {
    if part.len() as u64 <= most {
        return Ok(vec![(None, part.len() as u64)]);
    }
    let mut counts: BTreeMap<T::Key, u64> = BTreeMap::new();
    for row in part.rows() {
        *counts.entry(row?.key()).or_default() += 1;
    }
    let mut runs: Vec<(RangeInclusive<T::Key>, u64)> = Vec::new();
    for (key, rows) in counts {
        match runs.last_mut() {
            Some((keys, before)) if *before + rows <= most => (*keys, *before) = (*keys.start()..=key, *before + rows),
            _ => runs.push((key..=key, rows)),
        }
    }
    Ok(runs.into_iter().map(|(keys, rows)| (Some(keys), rows)).collect())
}

fn in_order<T: Keyed>(mut rows: Vec<T>, mut each: impl FnMut(Vec<T>) -> Result<()>) -> Result<()> {
    rows.sort_unstable();
    rows.dedup();
    rows.into_iter().chunk_by(T::key).into_iter().try_for_each(|(_, rows)| each(rows.collect()))
}
