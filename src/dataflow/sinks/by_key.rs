//! Rows with texts, key by key, in bounded memory: with the owners of the keys, in parts that are put in order one at a time.

use itertools::Itertools;
use serde::Serialize;
use serde::de::DeserializeOwned;

use webtwin_base::error::Result;
use webtwin_engine::Net;
use webtwin_spill::{Rows, TAPE_BLOCK_BYTES};

/// A row with a key. Orders by its key first.
pub(super) trait Keyed: Ord + Serialize + DeserializeOwned + Send + 'static {
    /// The key.
    type Key: PartialEq;

    fn key(&self) -> Self::Key;

    /// Bytes that it takes in memory.
    fn bytes(&self) -> u64;
}

/// Brings rows to the workers beside them, and calls `each` with those of one key after the other, each once and in their order.
///
/// `bytes` adds up those of this worker's rows, where they matter; `part` says in which of so many parts a row is, all rows of a key in one.
///
/// # Errors
/// The first of `rows` and `each`; those of the disk; or when the run has ended.
///
/// # Memory
/// All rows; or within a bound 4 bytes a row, one part, and as much again for the ends of all parts: about the square root of the bytes
/// of a worker's rows in MiB.
pub(super) fn each_key<T: Keyed>(
    net: &mut Net<'_>,
    name: &str,
    bytes: impl FnOnce() -> Result<u64>,
    rows: impl Iterator<Item = Result<(usize, T)>>,
    part: impl Fn(&T, usize) -> usize,
    mut each: impl FnMut(Vec<T>) -> Result<()>,
) -> Result<()> {
    if !net.memory.is_bounded() {
        return in_order(net.exchange_values(name, rows)?, each);
    }
    let [bytes] = net.all_sum("bytes of rows by key", [bytes()?])?;
    let count = (bytes / net.peers() as u64 / TAPE_BLOCK_BYTES as u64).isqrt() as usize + 1;
    let mut parts: Vec<Rows<T>> = (0..count).map(|_| Rows::new(&net.memory)).collect();
    net.exchange_values_into(name, rows, T::bytes, |row| parts[part(&row, count)].push(&row))?;
    for part in parts {
        net.check()?;
        in_order(part.rows().collect::<Result<Vec<T>>>()?, &mut each)?;
    }
    Ok(())
}

fn in_order<T: Keyed>(mut rows: Vec<T>, mut each: impl FnMut(Vec<T>) -> Result<()>) -> Result<()> {
    rows.sort_unstable();
    rows.dedup();
    rows.into_iter().chunk_by(T::key).into_iter().try_for_each(|(_, rows)| each(rows.collect()))
}
