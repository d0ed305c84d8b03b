//! Exact counts of the overlap between two crawls.

use serde::Serialize;

use super::gather::{BODIES, FirstPass, TEXTS};
use super::matrix::{self, CrawlPair};
use super::merge::{MergeSide, merge};
use super::sites::host_of;
use super::two_crawls::ComparableResults;
use webtwin_base::error::Result;
use webtwin_base::threads;
use webtwin_results::FinishedRun;
use webtwin_results::ranges::{RangedTable, Ranges};
use webtwin_storage::table::{Table, TableColumn};

/// Approximate number of rows of `fprint_docid` that are read at a time.
const CHUNK_ROWS: u64 = 1 << 20;

/// Numbers of distinct values of one kind in each crawl and in both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CrawlOverlap {
    /// Number of values in the old crawl.
    pub old: u64,
    /// Number of values in the new crawl.
    pub new: u64,
    /// Number of values in both crawls.
    pub both: u64,
}

impl CrawlOverlap {
    /// Counts the distinct values of two lists.
    fn of(old: Vec<u64>, new: Vec<u64>) -> CrawlOverlap {
        CrawlOverlap::between(&distinct(old), &distinct(new))
    }

    /// Counts the values of two lists, which strictly ascend.
    pub fn between(old: &[u64], new: &[u64]) -> CrawlOverlap {
        let n_common = merge(old, new).filter(|side| matches!(side, MergeSide::Both(..))).count() as u64;
        CrawlOverlap { old: old.len() as u64, new: new.len() as u64, both: n_common }
    }

    /// Adds the counts of disjoint parts of the crawls.
    pub fn add(&mut self, other: CrawlOverlap) {
        (self.old, self.new, self.both) = (self.old + other.old, self.new + other.new, self.both + other.both);
    }
}

/// Returns the distinct values of a list, ascending.
pub fn distinct(mut values: Vec<u64>) -> Vec<u64> {
    values.sort_unstable();
    values.dedup();
    values
}

/// Computes the overlap by `url`, `text`, `body` and `host`, and by `chunk` if both results have a
/// table of their chunks.
///
/// # Errors
/// Returns any error of the tables and of the disk.
pub fn overlaps(results: &ComparableResults, first_pass: &FirstPass) -> Result<Vec<(&'static str, CrawlOverlap)>> {
    let url = CrawlOverlap { old: results.pages[0].rows(), new: results.pages[1].rows(), both: first_pass.n_common };
    let mut hosts: [Vec<u64>; 2] = Default::default();
    for site in first_pass.sites.0.values() {
        let id = xxhash_rust::xxh3::xxh3_64(host_of(&site.name).as_bytes());
        (0..2).filter(|&side| site.pages[side] > 0).for_each(|side| hosts[side].push(id));
    }
    let [old, new] = hosts;
    let mut overlaps = vec![("url", url), ("host", CrawlOverlap::of(old, new))];
    for (unit, offset) in [("text", TEXTS), ("body", BODIES)] {
        let [old, new] = [&first_pass.hashes[offset], &first_pass.hashes[offset + 1]];
        let sums = threads::for_each(results.workers, first_pass.buckets, CrawlOverlap::default, |sum, bucket| {
            sum.add(CrawlOverlap::of(old.take(bucket)?, new.take(bucket)?));
            Ok(())
        })?;
        overlaps.push((unit, total(sums)));
    }
    if results.comparable.settings {
        overlaps.extend(chunks(&results.old, &results.new, results.workers)?.map(|overlap| ("chunk", overlap)));
    }
    overlaps.sort_unstable_by_key(|one| one.0);
    Ok(overlaps)
}

fn total(sums: Vec<CrawlOverlap>) -> CrawlOverlap {
    sums.into_iter().fold(CrawlOverlap::default(), |mut sum, overlap| {
        sum.add(overlap);
        sum
    })
}

/// Computes the overlap of the chunks of two results with equal settings. Returns `None` unless
/// both have the table `fprint_docid`, which is written on request only.
///
/// # Errors
/// Returns any error of the tables.
pub fn chunks(old: &FinishedRun, new: &FinishedRun, workers: usize) -> Result<Option<CrawlOverlap>> {
    let name = "fprint_docid";
    let ranges = Ranges::new(old.rows(name).max(new.rows(name)), CHUNK_ROWS, 1 << 12);
    let bits = new.job().map_or(64, |job| job.chunks.bits);
    let [old, new] = [old, new].map(|run| RangedTable::find(run, name, ("fprint", bits), ranges, workers));
    let (Some(old), Some(new)) = (old?, new?) else { return Ok(None) };
    let sums = threads::for_each(workers, ranges.count(), CrawlOverlap::default, |sum, range| {
        let [old, new] = [&old, &new].map(|table| table.read(range, &["fprint"]));
        sum.add(CrawlOverlap::of(old?.u64("fprint")?.to_vec(), new?.u64("fprint")?.to_vec()));
        Ok(())
    })?;
    Ok(Some(total(sums)))
}

/// Returns `part / whole`, rounded to six decimal places.
fn share(part: u64, whole_part: u64) -> f64 {
    if whole_part == 0 { 0.0 } else { (part as f64 * 1e6 / whole_part as f64).round() / 1e6 }
}

/// Builds the table `crawl_overlap`.
pub fn table(rows: &[CrawlPair]) -> Table {
    let names = |of: usize| TableColumn::Text(rows.iter().map(|row| matrix::name(row.0[of])).collect());
    let counts = |value: fn(&CrawlOverlap) -> u64| TableColumn::Count(rows.iter().map(|row| value(&row.2)).collect());
    let shares = |total_of: fn(&CrawlOverlap) -> u64| {
        TableColumn::F64(rows.iter().map(|row| share(row.2.both, total_of(&row.2))).collect())
    };
    Table::new([
        ("a", names(0)),
        ("b", names(1)),
        ("unit", TableColumn::Text(rows.iter().map(|row| row.1.to_string()).collect())),
        ("size_a", counts(|row| row.old)),
        ("size_b", counts(|row| row.new)),
        ("both", counts(|row| row.both)),
        ("jaccard", shares(|row| row.old + row.new - row.both)),
        ("simpson", shares(|row| row.old.min(row.new))),
        ("of_newer", shares(|row| row.new)),
    ])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn overlap_counts_distinct_values(
            old in prop::collection::vec(0u64..20, 0..40), new in prop::collection::vec(0u64..20, 0..40)
        ) {
            let (a, b): (BTreeSet<u64>, BTreeSet<u64>) = (old.iter().copied().collect(), new.iter().copied().collect());
            let both = a.intersection(&b).count() as u64;
            let plain = CrawlOverlap { old: a.len() as u64, new: b.len() as u64, both };
            prop_assert_eq!(CrawlOverlap::of(old, new), plain);
        }
    }

    #[test]
    fn ratios_with_an_empty_crawl_are_zero() {
        let table = table(&[
            ([1, 0], "url", CrawlOverlap { old: 4, new: 0, both: 0 }),
            ([1, 0], "x", CrawlOverlap { old: 4, new: 2, both: 1 }),
        ]);
        assert_eq!(table.f64("jaccard").unwrap(), [0.0, 0.2]);
        assert_eq!(table.f64("simpson").unwrap(), [0.0, 0.5]);
    }
}
