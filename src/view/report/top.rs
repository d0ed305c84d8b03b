//! Selection of the first rows of an order in bounded memory.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// The `most` smallest keys among those offered, with their values.
#[derive(Debug)]
pub(super) struct SmallestKeys<K, V> {
    limit: usize,
    heap: BinaryHeap<Entry<K, V>>,
}

/// Entry of the heap. Orders by key only.
#[derive(Debug)]
struct Entry<K, V>(K, V);

impl<K: Ord, V> PartialEq for Entry<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<K: Ord, V> Eq for Entry<K, V> {}

impl<K: Ord, V> PartialOrd for Entry<K, V> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: Ord, V> Ord for Entry<K, V> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

impl<K: Ord, V> SmallestKeys<K, V> {
    /// Creates an empty selection.
    pub(super) fn new(limit: usize) -> SmallestKeys<K, V> {
        SmallestKeys { limit, heap: BinaryHeap::new() }
    }

    /// True if a row with this key would be selected now.
    pub(super) fn takes(&self, key: &K) -> bool {
        self.heap.len() < self.limit || self.heap.peek().is_some_and(|last| *key < last.0)
    }

    /// Offers a row. Keys must differ.
    pub(super) fn offer(&mut self, key: K, value: V) {
        if self.takes(&key) {
            self.heap.push(Entry(key, value));
            if self.heap.len() > self.limit {
                self.heap.pop();
            }
        }
    }

    /// Returns the values, by ascending key.
    pub(super) fn finish(self) -> Vec<V> {
        self.heap.into_sorted_vec().into_iter().map(|entry| entry.1).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn top_results_equal_a_sort(keys in prop::collection::hash_set(any::<u16>(), 0..50), most in 0usize..12) {
            let mut top = SmallestKeys::new(most);
            keys.iter().for_each(|&key| top.offer(key, key));
            let mut sorted: Vec<u16> = keys.into_iter().collect();
            sorted.sort_unstable();
            sorted.truncate(most);
            prop_assert_eq!(top.finish(), sorted);
        }
    }
}
