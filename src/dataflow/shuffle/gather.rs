//! Rows that come in runs of one key are put in the order of their keys by moving runs, not by sorting rows.
//!
//! Whoever sends the rows of a page sends them one after another, so they arrive in one run, or in a few where blocks of other
//! senders come between: there are as many runs as pages, and each page has tens of links and hundreds of chunks.

/// Runs of rows and their keys; kept from call to call for its memory.
#[derive(Debug)]
pub struct Gather<K> {
    /// Key, first row, number of rows.
    runs: Vec<(K, usize, usize)>,
}

impl<K> Default for Gather<K> {
    fn default() -> Self {
        Gather { runs: Vec::new() }
    }
}

impl<K: Ord + Copy> Gather<K> {
    /// Replaces the content of `into` by `rows`, ascending by key; rows of one key stay in the order in which they are.
    ///
    /// # Cost
    /// A copy of the rows, and a sort of their runs: of all rows, if no two neighbours have a key in common.
    pub fn by_key<T: Copy>(&mut self, rows: &[T], key: impl Fn(&T) -> K, into: &mut Vec<T>) {
        self.runs.clear();
        let mut start = 0;
        while start < rows.len() {
            let of = key(&rows[start]);
            let length = rows[start..].iter().take_while(|row| key(row) == of).count();
            self.runs.push((of, start, length));
            start += length;
        }
        self.runs.sort_unstable();
        into.clear();
        into.reserve(rows.len());
        self.runs.iter().for_each(|&(_, start, length)| into.extend_from_slice(&rows[start..start + length]));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rows_are_as_after_a_stable_sort(runs in prop::collection::vec((0u32..9, 0u32..5), 0..40)) {
            let keys = runs.iter().flat_map(|&(key, length)| (0..length).map(move |_| key));
            let rows: Vec<(u32, usize)> = keys.zip(0..).collect();
            let mut sorted = rows.clone();
            sorted.sort_by_key(|row| row.0);
            let (mut gather, mut gathered) = (Gather::default(), vec![(7, 7)]);
            for _ in 0..2 {
                gather.by_key(&rows, |row| row.0, &mut gathered);
                prop_assert_eq!(&gathered, &sorted);
            }
        }
    }
}
