//! Table on which the self-joins of other programs were measured: `gen_tuples`, rewritten from its
//! definition.
//!
//! With 5 million documents it has 58,750,324 rows, 11.75 per document. Of the 32-bit fingerprints
//! 70 % are fresh, and 30 % are drawn from 0.8 ranks per document with Zipf frequencies (s = 1/2).
//! 2 % of the documents are copies of earlier documents with at least 20 rows, and each row is kept
//! with probability 0.95.
//!
//! One sequence of random numbers generates the whole table, so it cannot be made in parts. Lengths
//! use the logarithm of the platform. The digest in the test shows whether it yields the original
//! table.

use webtwin_base::ids::{Page, splitmix64};
use webtwin_synth::random::Stream;

/// Calls `row(fprint, doc)` for every row, by document and then by fingerprint.
///
/// # Cost
/// About a second for ten million rows on one core, and 4 bytes of memory per row.
pub fn rows(docs: u32, mut row: impl FnMut(u32, Page)) {
    let ranks = f64::from(docs) * 0.8;
    let mut numbers = Stream::new(7);
    let (mut fprints, mut ends) = (Vec::<u32>::new(), vec![0u32]);
    let mut doc_rows = Vec::new();
    for doc in 0..docs {
        doc_rows.clear();
        let original = if doc > 0 && uniform(numbers.draw()) < 0.02 {
            (0..8).find_map(|_| {
                let earlier = (numbers.draw() % u64::from(doc)) as usize;
                (ends[earlier + 1] - ends[earlier] >= 20).then_some(earlier)
            })
        } else {
            None
        };
        if let Some(earlier) = original {
            for &fprint in &fprints[ends[earlier] as usize..ends[earlier + 1] as usize] {
                let is_kept = uniform(numbers.draw()) < 0.95;
                doc_rows.push(if is_kept { fprint } else { numbers.draw() as u32 });
            }
        } else {
            let length = (4 + (-8.0 * uniform(numbers.draw()).ln()) as usize).min(200);
            for _ in 0..length {
                doc_rows.push(if uniform(numbers.draw()) < 0.7 {
                    numbers.draw() as u32
                } else {
                    let u = uniform(numbers.draw());
                    splitmix64((ranks * u * u) as u64 ^ 0x00ab_cdef) as u32
                });
            }
        }
        doc_rows.sort_unstable();
        doc_rows.dedup();
        doc_rows.iter().for_each(|&fprint| row(fprint, Page(doc)));
        fprints.extend_from_slice(&doc_rows);
        ends.push(fprints.len() as u32);
    }
}

/// Returns a number in (0, 1), made of 53 bits.
fn uniform(number: u64) -> f64 {
    ((number >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use xxhash_rust::xxh3::Xxh3;

    use super::*;

    /// Compares rows in the format of the other programs: fingerprint and document, 4 bytes each.
    /// The whole file of 5 million documents was compared with the original once, by its SHA-256
    /// (c5fc3b5e...).
    #[test]
    fn the_rows_are_those_of_the_original_generator() {
        let mut digest = Xxh3::new();
        let mut count = 0;
        rows(20_000, |fprint, doc| {
            count += 1;
            digest.update(&fprint.to_le_bytes());
            digest.update(&doc.0.to_le_bytes());
        });
        assert_eq!((count, digest.digest()), (231_996, 12_013_963_716_070_970_796));
    }
}
