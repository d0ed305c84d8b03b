//! Predicted cost of a batch: F on disk, tables in memory, time of the scan.
//!
//! ns a fingerprint = tables x ns of a probe + survivors x ns of a comparison with a whole query,
//! for each set of tables. A probe reads one line, so its cost depends on the cache that a table
//! fits in. Survivors are the queries whose bucket and sibling agree by chance.
//!
//! | one core, evenly spread fingerprints, ns each | k = 1 | 2 | 3 | 4 | 5 | 6 |
//! |---|---|---|---|---|---|---|
//! | 100,000 queries: measured | 2.8 | 4.4 | 5.5 | 12.4 | 19.1 | 53.8 |
//! | predicted, without decoding | 2.7 | 4.1 | 5.5 | 11.9 | 18.3 | 54.5 |
//! | 1,000,000 queries: measured | 3.9 | 6.4 | 8.1 | 27.8 | 45.2 | 208 |
//! | predicted, without decoding | 3.7 | 6.0 | 8.3 | 25.8 | 43.3 | 187 |
//!
//! Each reported pair costs 14 ns in addition. In clusters these are most of the work, and they are
//! not predicted.

use super::super::conditions::{MAX_K, conditions};
use super::super::kernels::SIBLING_BITS;
use super::super::query_tables::{MAX_QUERIES, QueryTables, lanes};
use super::paper::binomial;

/// Nanoseconds of a probe by lanes of a line, for tables of 1, 2 and 4 MB.
const PROBE_NS: [(usize, f64); 3] = [(8, 1.35), (16, 1.6), (32, 1.85)];

/// Additional nanoseconds of a probe if the sibling does not consist of two whole bytes.
const SCATTERED_PROBE_NS: f64 = 1.0;

/// Nanoseconds to process a survivor.
const SURVIVOR_NS: f64 = 55.0;

/// Nanoseconds to decode a fingerprint of F.
const DECODE_NS: f64 = 1.5;

/// Predicted cost of the batch join of F with some queries.
///
/// # Examples
/// ```
/// use webtwin_core::hamming::design::batch::BatchCost;
///
/// // A million queries at k = 3 need a table for each of four conditions, in one set.
/// let batch = BatchCost::predict(1_000_000, 3).unwrap();
/// assert_eq!((batch.conditions, batch.sets), (4, 1));
/// assert!(batch.table_bytes < 100_000_000);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct BatchCost {
    /// Number of conditions, each of which has a table.
    pub conditions: usize,
    /// Number of sets of tables into which the queries are divided.
    pub sets: usize,
    /// Bytes of all tables. A process holds them once.
    pub table_bytes: u64,
    /// Nanoseconds per fingerprint of F, on one core.
    pub ns_a_fingerprint: f64,
}

impl BatchCost {
    /// Predicts the cost with `queries` distinct queries. Returns `None` if there are no conditions
    /// for k, so that queries are partitioned instead.
    pub fn predict(queries: usize, k: u32) -> Option<BatchCost> {
        let conditions = (k <= MAX_K).then(|| conditions(k))?;
        let mut batch =
            BatchCost { conditions: conditions.len(), sets: 0, table_bytes: 0, ns_a_fingerprint: DECODE_NS };
        let mut left = queries;
        while left > 0 {
            let set_queries = left.min(MAX_QUERIES);
            left -= set_queries;
            batch.sets += 1;
            batch.table_bytes += QueryTables::bytes(set_queries, k);
            let lanes = lanes(set_queries).count();
            let probe = PROBE_NS.iter().find(|(most, _)| lanes <= *most).map_or(0.0, |(_, ns)| *ns);
            let buckets = f64::from(1 << SIBLING_BITS);
            for condition in &conditions {
                let agree: u64 = (0..=condition.errors).map(|errors| binomial(SIBLING_BITS, errors)).sum();
                let survivors = set_queries as f64 / buckets * agree as f64 / buckets;
                let whole = condition.sibling.to_le_bytes().iter().all(|byte| [0, u8::MAX].contains(byte));
                batch.ns_a_fingerprint +=
                    probe + if whole { 0.0 } else { SCATTERED_PROBE_NS } + survivors * SURVIVOR_NS;
            }
        }
        Some(batch)
    }

    /// Returns the seconds that one core takes to scan F.
    pub fn seconds(&self, documents: u64) -> f64 {
        documents as f64 * self.ns_a_fingerprint / 1e9
    }
}

/// Returns the bits of a fingerprint in F with the default coder: 33.1 of 64 at 2^33.
///
/// Elias-Fano: f - log2 n for the low part, about two for the high part, a tenth for the directory.
pub fn bits_on_disk(documents: u64, f: u32) -> f64 {
    (f64::from(f) - (documents.max(1) as f64).log2()).max(0.0) + 2.1
}

/// Returns the bytes of F on disk, with 8 bytes for each doc id.
pub fn bytes_on_disk(documents: u64, f: u32) -> u64 {
    (documents as f64 * (bits_on_disk(documents, f) / 8.0 + 8.0)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_beyond_the_capacity_of_a_set_go_into_further_sets() {
        let (single, two) =
            (BatchCost::predict(MAX_QUERIES, 3).unwrap(), BatchCost::predict(2 * MAX_QUERIES, 3).unwrap());
        assert_eq!((single.sets, two.sets, two.table_bytes), (1, 2, 2 * single.table_bytes));
        assert!((two.ns_a_fingerprint - DECODE_NS - 2.0 * (single.ns_a_fingerprint - DECODE_NS)).abs() < 1e-9);
        assert!(BatchCost::predict(1000, MAX_K + 1).is_none());
    }

    #[test]
    fn fingerprint_takes_about_half_on_disk() {
        assert!((bits_on_disk(1 << 33, 64) - 33.1).abs() < 1e-9);
        assert_eq!(bits_on_disk(1 << 20, 8), 2.1);
        assert_eq!(bytes_on_disk(0, 64), 0);
    }
}
