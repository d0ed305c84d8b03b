//! Choice of a design for a number of documents, by predicted cost.
//!
//! More tables have longer keys and therefore fewer matches a probe, but each costs a memory access
//! and its rows. Considered are the designs that fit in memory and are at most a fifth slower than
//! the fastest of these. The one with the smallest tables is chosen.
//!
//! | 100 million evenly spread fingerprints, k = 3 | tables | bytes a fingerprint | measured | predicted |
//! |---|---|---|---|---|
//! | p = 16 | 4 | 24.0 | 4.7 us | 4.8 us |
//! | p = 18 to 19 | 5 | 30.1 | 2.1 us | 1.8 us |
//! | p = 20 to 22 | 6 | 36.7 | 1.2 us | 0.9 us |
//! | p = 24 | 8 | 45.4 | 1.0 us | 1.0 us |
//!
//! # Source
//! \[MJS07\] section 3.1.1: few tables for space, many for time.
//!
//! # Deviations
//! The paper leaves the choice to the reader of its examples. Clustered fingerprints have more
//! matches than evenly spread ones; the prediction is for evenly spread ones.

use std::cmp::Reverse;

use super::super::permuted_table::Shape;
use super::machine::ProbeCosts;
use super::paper::{example_3_1, recursive};
use super::{TableDesign, covering};
use webtwin_base::error::{Error, Result};

/// Maximum number of tables of a design that is considered.
const MAX_TABLES: usize = 64;

/// Maximum number of fingerprints of one index. Larger sets are divided into several indexes, all
/// of which are queried.
const MAX_ROWS: u64 = u32::MAX as u64;

/// Maximum time of a chosen design, relative to the fastest design that fits.
const MAX_SLOWDOWN: f64 = 1.2;

/// A design and its predicted cost.
#[derive(Debug, Clone)]
pub struct PricedDesign {
    /// Origin of the design.
    pub source: String,
    /// Design whose cost is predicted.
    pub design: TableDesign,
    /// Number of fingerprints that a probe of one table finds, averaged over the tables.
    pub matches: f64,
    /// Bytes of all tables, without doc ids.
    pub table_bytes: u64,
    /// Bytes of the largest table of one index.
    pub largest_table: u64,
    /// Predicted nanoseconds of a query on one core.
    pub query_ns: f64,
}

impl PricedDesign {
    /// Predicts the cost of a design for `documents` evenly spread fingerprints.
    pub fn new(source: String, design: TableDesign, documents: u64, costs: &ProbeCosts) -> PricedDesign {
        let indexes = indexes(documents);
        let rows = documents.div_ceil(indexes) as usize;
        let (mut table_bytes, mut largest_table, mut query_ns) = (0, 0, 0.0);
        for key in &design.keys {
            let shape = Shape::new(design.f, key.count_ones(), rows);
            table_bytes += indexes * shape.bytes(rows);
            largest_table = shape.bytes(rows).max(largest_table);
            // All rows of a prefix are compared. If the key is longer than the prefix, the rows of
            // a prefix are too few to be searched.
            let compared = rows as f64 / 2f64.powi(shape.prefix_bits as i32);
            query_ns += indexes as f64 * (costs.read_ns + compared * costs.check_ns);
        }
        let matches = design.matches_a_probe(documents as f64);
        PricedDesign { source, design, matches, table_bytes, largest_table, query_ns }
    }

    /// Returns the number of tables of the design.
    pub fn tables(&self) -> usize {
        self.design.keys.len()
    }

    /// Returns the smallest and largest p, in bits.
    pub fn top_bits(&self) -> (u32, u32) {
        let bits = || self.design.keys.iter().map(|key| key.count_ones());
        (bits().min().unwrap_or(0), bits().max().unwrap_or(0))
    }
}

/// Returns the number of indexes that a set of `documents` needs, each with up to 2^32 - 1
/// documents.
pub fn indexes(documents: u64) -> u64 {
    documents.div_ceil(MAX_ROWS).max(1)
}

/// Returns the designs for `documents` fingerprints of f bits and distance k, by number of tables:
/// the paper's designs, and coverings.
///
/// # Cost
/// Tens of milliseconds at k = 6.
pub fn candidates(documents: u64, f: u32, k: u32, costs: &ProbeCosts) -> Vec<PricedDesign> {
    let mut designs: Vec<(String, TableDesign)> = Vec::new();
    if (f, k) == (64, 3) {
        designs.extend(example_3_1().map(|design| ("MJS07 Example 3.1".into(), design)));
    }
    for blocks in covering::block_designs(k).iter().filter(|design| design.blocks <= f) {
        designs.push((format!("covering of {} blocks", blocks.blocks), TableDesign::new(f, k, blocks)));
    }
    let d = (documents.max(2) as f64).log2();
    let recursive = (1..=f).rev().filter_map(|p| recursive(f, k, d, p.into()));
    designs.extend(recursive.map(|design| ("MJS07 recurrence".into(), design)));
    designs.retain(|(_, design)| (1..=MAX_TABLES).contains(&design.keys.len()) && design.top_bits() > 0);
    // The sort is stable: of designs with keys of the same lengths, the first one stays.
    designs.sort_by_cached_key(|(_, design)| (design.keys.len(), Reverse(lengths(design))));
    designs.dedup_by_key(|(_, design)| lengths(design));
    designs.into_iter().map(|(source, design)| PricedDesign::new(source, design, documents, costs)).collect()
}

/// Returns the number of bits of each key, ascending.
fn lengths(design: &TableDesign) -> Vec<u32> {
    let mut lengths: Vec<u32> = design.keys.iter().map(|key| key.count_ones()).collect();
    lengths.sort_unstable();
    lengths
}

/// Returns the index of the chosen design: the one with the smallest tables of those that fit in
/// `memory` bytes and are at most a fifth slower than the fastest that fits.
///
/// # Errors
/// Returns [`Error::MemoryLimit`] with the bytes of the smallest tables if no design fits, and
/// [`Error::Usage`] if there is no design.
pub fn choose(candidates: &[PricedDesign], memory: Option<u64>) -> Result<usize> {
    let allowed = memory.unwrap_or(u64::MAX);
    let Some(smallest) = candidates.iter().map(|one| one.table_bytes).min() else {
        return Err(Error::Usage(format!("no design has at most {MAX_TABLES} tables; use a smaller k")));
    };
    let fits = || candidates.iter().enumerate().filter(|(_, one)| one.table_bytes <= allowed);
    let fastest = fits().map(|(_, one)| one.query_ns).fold(f64::MAX, f64::min);
    let fast = fits().filter(|(_, one)| one.query_ns <= MAX_SLOWDOWN * fastest);
    fast.min_by_key(|(_, one)| one.table_bytes).map(|(at, _)| at).ok_or_else(|| Error::MemoryLimit {
        what: "the tables of an online index".into(),
        needed_bytes: smallest,
        allowed_bytes: allowed,
        setting: "--memory".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn priced_designs(documents: u64, k: u32) -> Vec<PricedDesign> {
        candidates(documents, 64, k, &ProbeCosts::TYPICAL)
    }

    #[test]
    fn predictions_are_near_measurements() {
        let designs = priced_designs(100_000_000, 3);
        for (tables, top_bits, bytes, us) in
            [(4, 16, 24.0, 4.7), (5, 18, 30.1, 2.1), (6, 20, 36.7, 1.2), (8, 24, 45.4, 1.0)]
        {
            let design = designs.iter().find(|one| one.tables() == tables).unwrap();
            assert_eq!(design.top_bits().0, top_bits);
            assert!((design.table_bytes as f64 / 1e8 - bytes).abs() < 0.1, "{tables}: {}", design.table_bytes);
            let ratio = design.query_ns / 1000.0 / us;
            assert!((0.7..1.4).contains(&ratio), "{tables} tables: {ratio:.2}");
        }
    }

    #[test]
    fn more_tables_have_fewer_matches_as_in_the_papers_example() {
        let designs = priced_designs(1 << 34, 3);
        let example: Vec<_> = designs.iter().filter(|one| one.source.contains("Example")).collect();
        assert_eq!(example.iter().map(|one| one.tables()).collect::<Vec<_>>(), [4, 10, 16, 20]);
        assert!(example.windows(2).all(|pair| pair[0].matches > pair[1].matches));
        assert!(example.windows(2).all(|pair| pair[0].table_bytes < pair[1].table_bytes));
    }

    #[test]
    fn no_candidate_misses_a_pair() {
        for (f, k) in [(64, 0), (64, 1), (64, 2), (64, 3), (32, 3), (24, 4), (5, 2), (1, 0)] {
            let designs = candidates(1_000_000, f, k, &ProbeCosts::TYPICAL);
            assert!(!designs.is_empty(), "f {f}, k {k}");
            for priced in designs {
                assert!(priced.design.survives_exhaustively(), "f {f}, k {k}: {priced:?}");
            }
        }
    }

    #[test]
    fn chosen_design_fits_and_is_the_smallest_fast_one() {
        for documents in [1000, 1_000_000, 100_000_000, 10_000_000_000] {
            let designs = priced_designs(documents, 3);
            for part in 1..20 {
                let memory = documents * 5 * part;
                let Ok(pick) = choose(&designs, Some(memory)) else {
                    assert!(designs.iter().all(|one| one.table_bytes > memory));
                    continue;
                };
                assert!(designs[pick].table_bytes <= memory);
                for other in designs.iter().filter(|other| other.table_bytes <= memory) {
                    assert!(designs[pick].query_ns <= MAX_SLOWDOWN * other.query_ns);
                    let fast = designs
                        .iter()
                        .filter(|one| one.table_bytes <= memory)
                        .all(|one| other.query_ns <= one.query_ns);
                    assert!(!fast || designs[pick].table_bytes <= other.table_bytes);
                }
            }
        }
    }

    #[test]
    fn less_memory_is_never_faster() {
        let designs = priced_designs(1_000_000_000, 3);
        let smallest = designs.iter().map(|one| one.table_bytes).min().unwrap();
        let mut previous_ns = f64::MAX;
        for memory in (0..40).map(|step| smallest + step * 2_000_000_000) {
            let fits = designs.iter().filter(|one| one.table_bytes <= memory);
            let fastest = fits.map(|one| one.query_ns).fold(f64::MAX, f64::min);
            let pick = &designs[choose(&designs, Some(memory)).unwrap()];
            assert!(fastest <= previous_ns && pick.query_ns <= MAX_SLOWDOWN * fastest);
            previous_ns = fastest;
        }
    }

    #[test]
    fn rejection_names_the_bytes_that_suffice() {
        let designs = priced_designs(100_000_000, 3);
        let Err(Error::MemoryLimit { needed_bytes, allowed_bytes, .. }) = choose(&designs, Some(1_000_000)) else {
            panic!()
        };
        assert_eq!(allowed_bytes, 1_000_000);
        assert!((2_400_000_000..2_410_000_000).contains(&needed_bytes));
        assert!(choose(&designs, Some(needed_bytes)).is_ok());
        assert!(choose(&designs, Some(needed_bytes - 1)).is_err());
        assert_eq!(choose(&[], None).unwrap_err().exit_code(), 2);
    }

    #[test]
    fn more_documents_cost_more_bytes_and_are_not_answered_faster() {
        let mut previous = (0, 0.0);
        for documents in (0..50).map(|step| (1000.0 * 1.35f64.powi(step)) as u64) {
            let priced = PricedDesign::new(String::new(), example_3_1()[3].clone(), documents, &ProbeCosts::TYPICAL);
            assert!(priced.table_bytes > previous.0, "{documents}");
            assert!(priced.query_ns >= previous.1 || documents < 1 << 19, "{documents}");
            previous = (priced.table_bytes, priced.query_ns);
        }
    }

    #[test]
    fn sizes_are_those_of_an_index_that_is_built() {
        use crate::hamming::online::Builder;
        let mut fingerprints: Vec<u64> = (0..30_000).map(webtwin_base::ids::splitmix64).collect();
        fingerprints.sort_unstable();
        for priced in priced_designs(30_000, 3) {
            let (mut builder, _) = Builder::new(&priced.design, "recipe-1", fingerprints.clone(), None).unwrap();
            let table_files = std::iter::from_fn(|| builder.next_table());
            let sizes: Vec<u64> =
                table_files.map(|file| file.parts[1..].iter().map(|part| part.len() as u64).sum()).collect();
            assert_eq!((sizes.iter().sum(), *sizes.iter().max().unwrap()), (priced.table_bytes, priced.largest_table));
        }
    }
}
