//! Interpolation search among sorted keys. Keys are hashes, so a key's value predicts its position.

use webtwin_base::error::Result;

/// Number of remaining rows from which a linear scan takes over.
const LINEAR_ROWS: usize = 8;

/// Number of interpolation probes before binary search takes over. Hashes need a handful; other
/// keys could need a probe for each row.
const PROBES: usize = 12;

/// Returns the first row whose key is at least `key`, among `rows` rows in ascending order.
/// `key_at` returns the key of a row.
///
/// # Errors
/// Returns any error of `key_at`.
///
/// # Cost
/// About log log n probes for evenly distributed keys, at most 12 + log n for others.
#[inline]
pub(super) fn lower_bound(rows: usize, key: u64, key_at: impl Fn(usize) -> Result<u64>) -> Result<usize> {
    // Invariant: rows before `first` have smaller keys; rows from `last` on have not.
    let (mut first, mut last) = (0, rows);
    // Bounds of the keys between.
    let (mut low_key, mut high_key) = (0u64, u64::MAX);
    let mut probes = 0;
    while last - first > LINEAR_ROWS {
        let position = match probes < PROBES && low_key <= key && key <= high_key {
            true => {
                let share = u128::from(key - low_key) * (last - first) as u128 / (u128::from(high_key - low_key) + 1);
                // Shifts the probe toward the middle, so that the next one is likely to be on the
                // other side.
                let share = share as usize;
                let lean =
                    if probes % 2 == 0 { share.saturating_sub(LINEAR_ROWS / 2) } else { share + LINEAR_ROWS / 2 };
                first + lean.min(last - first - 1)
            }
            false => first + (last - first) / 2,
        };
        probes += 1;
        let probed_key = key_at(position)?;
        if probed_key < key {
            (first, low_key) = (position + 1, probed_key);
        } else {
            (last, high_key) = (position, probed_key);
        }
    }
    while first < last && key_at(first)? < key {
        first += 1;
    }
    Ok(first)
}

/// Returns the row of a key, if there is one.
///
/// # Errors
/// Returns any error of [`lower_bound`].
#[inline]
pub(super) fn find(rows: usize, key: u64, key_at: impl Fn(usize) -> Result<u64>) -> Result<Option<usize>> {
    let position = lower_bound(rows, key, &key_at)?;
    Ok((position < rows && key_at(position)? == key).then_some(position))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use webtwin_base::ids::splitmix64;

    proptest! {
        #[test]
        fn interpolation_search_equals_binary_search(
            mut keys in prop::collection::vec(prop_oneof![any::<u64>(), 0u64..50, Just(u64::MAX), (u64::MAX - 9)..=u64::MAX], 0..400),
            asked in prop::collection::vec(prop_oneof![any::<u64>(), 0u64..60, Just(u64::MAX)], 20)
        ) {
            keys.sort_unstable();
            for key in asked.iter().chain(&keys) {
                let got = lower_bound(keys.len(), *key, |at| Ok(keys[at])).unwrap();
                prop_assert_eq!(got, keys.partition_point(|one| one < key));
                let found = find(keys.len(), *key, |at| Ok(keys[at])).unwrap();
                prop_assert_eq!(found.is_some(), keys.binary_search(key).is_ok());
            }
        }
    }

    #[test]
    fn hashes_need_few_probes_and_the_worst_keys_not_many() {
        let looks = |keys: &[u64], sought_keys: &[u64]| {
            let count = std::cell::Cell::new(0usize);
            for &key in sought_keys {
                let key_at = |row: usize| {
                    count.set(count.get() + 1);
                    Ok(keys[row])
                };
                assert_eq!(lower_bound(keys.len(), key, key_at).unwrap(), keys.partition_point(|one| *one < key));
            }
            count.get() / sought_keys.len()
        };
        let mut hashes: Vec<u64> = (0..1 << 17).map(splitmix64).collect();
        hashes.sort_unstable();
        let absent_keys: Vec<u64> = (0..1000).map(|n| splitmix64(n + (1 << 40))).collect();
        assert!(looks(&hashes, &absent_keys) <= 14, "{}", looks(&hashes, &absent_keys));
        // Worst case: each key is twice the previous one, at both ends.
        let worst: Vec<u64> = (0..1 << 17).map(|n| if n < 40 { 1 << n } else { u64::MAX - (1 << 17) + n }).collect();
        assert!(looks(&worst, &worst[..1000]) <= 12 + 17 + LINEAR_ROWS, "{}", looks(&worst, &worst[..1000]));
    }
}
