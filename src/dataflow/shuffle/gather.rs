//! Sorts rows by key if rows with the same key are mostly adjacent: moves whole runs instead of
//! single rows. Rows whose keys are small numbers are sorted by counting.
//!
//! The sender of a page's rows sends them one after another. So they arrive in one run, or in a few
//! runs if blocks of other senders come between. There are as many runs as pages, while each page
//! has tens of links and hundreds of chunks.

/// Scratch for runs of rows and their keys; reused from call to call.
#[derive(Debug)]
pub struct Gather<K> {
    /// Key, index of the first row, and number of rows of each run.
    runs: Vec<(K, usize, usize)>,
}

impl<K> Default for Gather<K> {
    fn default() -> Self {
        Gather { runs: Vec::new() }
    }
}

impl<K: Ord + Copy> Gather<K> {
    /// Replaces the content of `into` by `rows` in ascending order of keys. Rows with equal keys
    /// stay in their order.
    ///
    /// # Cost
    /// Copies the rows, and sorts their runs. If no two adjacent rows have the same key, the sort
    /// is over all rows.
    pub fn by_key<T: Copy>(&mut self, rows: &[T], key: impl Fn(&T) -> K, into: &mut Vec<T>) {
        self.runs.clear();
        let mut start = 0;
        while start < rows.len() {
            let run_key = key(&rows[start]);
            let length = rows[start..].iter().take_while(|row| key(row) == run_key).count();
            self.runs.push((run_key, start, length));
            start += length;
        }
        self.runs.sort_unstable();
        into.clear();
        into.reserve(rows.len());
        self.runs.iter().for_each(|&(_, start, length)| into.extend_from_slice(&rows[start..start + length]));
    }
}

/// Replaces the content of `into` by the values that `value_of` returns for the rows, in ascending
/// order of `number`, which is below `count`. Replaces the content of `ends` by the end of the
/// values of each number. Rows with the same number stay in their order.
///
/// # Cost
/// Reads each row twice.
pub fn by_number<R, T: Copy + Default>(
    rows: &[R],
    number: impl Fn(&R) -> u32,
    value_of: impl Fn(&R) -> T,
    count: usize,
    ends: &mut Vec<u32>,
    into: &mut Vec<T>,
) {
    ends.clear();
    ends.resize(count, 0);
    into.clear();
    into.resize(rows.len(), T::default());
    rows.iter().for_each(|row| ends[number(row) as usize] += 1);
    let mut start = 0;
    for end in ends.iter_mut() {
        start += std::mem::replace(end, start);
    }
    for row in rows {
        let next = &mut ends[number(row) as usize];
        into[*next as usize] = value_of(row);
        *next += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rows_by_number_equal_a_stable_sort(rows in prop::collection::vec((0u32..9, 0u32..99), 0..40)) {
            let (mut ends, mut into) = (vec![7], vec![7]);
            by_number(&rows, |row: &(u32, u32)| row.0, |row: &(u32, u32)| row.1, 9, &mut ends, &mut into);
            let mut start = 0;
            for (number, &end) in (0..).zip(&ends) {
                let expected: Vec<u32> = rows.iter().filter(|row| row.0 == number).map(|row| row.1).collect();
                prop_assert_eq!(&into[start..end as usize], &expected[..]);
                start = end as usize;
            }
            prop_assert_eq!((ends.len(), start), (9, rows.len()));
        }

        #[test]
        fn rows_equal_a_stable_sort(runs in prop::collection::vec((0u32..9, 0u32..5), 0..40)) {
            let keys = runs.iter().flat_map(|&(key, length)| (0..length).map(move |_| key));
            let rows: Vec<(u32, usize)> = keys.zip(0..).collect();
            let mut sorted = rows.clone();
            sorted.sort_by_key(|row| row.0);
            let (mut gather, mut grouped) = (Gather::default(), vec![(7, 7)]);
            for _ in 0..2 {
                gather.by_key(&rows, |row| row.0, &mut grouped);
                prop_assert_eq!(&grouped, &sorted);
            }
        }
    }
}
