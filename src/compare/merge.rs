//! Merge of two ascending lists of keys.

use std::cmp::Ordering;

/// Indices of a key in the two lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MergeSide {
    /// The key is in the old list only.
    Old(usize),
    /// The key is in the new list only.
    New(usize),
    /// The key is in both lists.
    Both(usize, usize),
}

/// Merges two strictly ascending lists: yields each key's indices, in the order of the keys.
pub(super) fn merge<'k, K: Ord>(old: &'k [K], new: &'k [K]) -> impl Iterator<Item = MergeSide> + 'k {
    let (mut i, mut j) = (0, 0);
    std::iter::from_fn(move || {
        let order = match (old.get(i), new.get(j)) {
            (None, None) => return None,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(x), Some(y)) => x.cmp(y),
        };
        let side = match order {
            Ordering::Less => MergeSide::Old(i),
            Ordering::Greater => MergeSide::New(j),
            Ordering::Equal => MergeSide::Both(i, j),
        };
        i += usize::from(order != Ordering::Greater);
        j += usize::from(order != Ordering::Less);
        Some(side)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_key_is_returned_once_in_order_with_its_positions(
            old in prop::collection::btree_set(0u8..40, 0..30), new in prop::collection::btree_set(0u8..40, 0..30)
        ) {
            let (a, b): (Vec<u8>, Vec<u8>) = (old.iter().copied().collect(), new.iter().copied().collect());
            let mut keys = Vec::new();
            for side in merge(&a, &b) {
                let (key, in_old, in_new) = match side {
                    MergeSide::Old(i) => (a[i], true, false),
                    MergeSide::New(j) => (b[j], false, true),
                    MergeSide::Both(i, j) => { prop_assert_eq!(a[i], b[j]); (a[i], true, true) }
                };
                prop_assert_eq!((in_old, in_new), (old.contains(&key), new.contains(&key)));
                keys.push(key);
            }
            let all: BTreeSet<u8> = old.union(&new).copied().collect();
            prop_assert_eq!(keys, all.into_iter().collect::<Vec<_>>());
        }
    }
}
