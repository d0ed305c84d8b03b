//! Near-duplicates: applies [`webtwin_core::minhash`] to rows that may be on disk.

use std::sync::atomic::{AtomicU32, Ordering};

use super::buckets::each_bucket;
use super::budget::Budget;
use super::corpus::{BandRow, Corpus};
use super::exact::NONE;
use super::order::Order;
use super::settings::DedupSettings;
use webtwin_base::error::{Error, Result};
use webtwin_core::minhash::candidates::{CandidateText, MAX_TEXTS, candidates};
use webtwin_core::minhash::resemblance::Threshold;
use webtwin_core::minhash::star_cover::{DroppedText, StarCover};
use webtwin_spill::Partitions;

/// Outcome of the search.
#[derive(Debug, Default)]
pub(crate) struct NearDuplicates {
    /// Near-duplicates by their place in the order of keeping, ascending.
    pub dropped_texts: Vec<DroppedText>,
    /// Number of comparisons of two sets.
    pub n_comparisons: u64,
}

/// Finds the near-duplicates among the records that are not exact copies.
///
/// # Errors
/// Returns any error of the disk with rows and sets, and [`Error::MemoryLimit`] if groups of
/// candidates take too much memory.
///
/// # Cost
/// A parallel sort of the keys. The decisions are made on one thread, with one comparison for each
/// candidate that is kept.
pub(crate) fn left_out(
    settings: &DedupSettings,
    corpus: &mut Corpus,
    order: &Order,
    copies: &[u32],
    budget: &Budget,
) -> Result<NearDuplicates> {
    let Some(near_settings) = settings.near else { return Ok(NearDuplicates::default()) };
    let first_own = corpus.against();
    let (first_records, groups) = (&corpus.first_records, AtomicU32::new(0));
    let records = u64::from(order.records.max(1));
    // Candidates are partitioned by ranges of places, so that processing the buckets in turn
    // decides texts in the order of keeping.
    let bucket = |text: u32| (u64::from(text) * budget.buckets as u64 / records) as usize;
    let keys = corpus.workers.iter_mut().map(|worker| &mut worker.bands).collect();
    let new = || (Partitions::new(budget.buckets, &budget.pool.limited(budget.candidates)), Vec::new());
    let candidates = each_bucket(
        keys,
        settings.workers,
        &budget.bounds,
        new,
        |(local_candidates, texts), rows: &mut Vec<BandRow>| {
            texts.clear();
            let place = |row: &BandRow| order.place(first_records[row.record[0] as usize] + row.record[1]);
            // An exact copy has the outcome of its original, so it is not compared again.
            texts.extend(rows.iter().map(|row| (row.key, place(row))).filter(|text| copies[text.1 as usize] == NONE));
            let next_group = || groups.fetch_add(1, Ordering::Relaxed) % MAX_TEXTS;
            candidates(texts, first_own, next_group, |one| local_candidates.push(bucket(one.text), one))
        },
    )?;
    let mut candidates: Vec<Partitions<CandidateText>> = candidates.into_iter().map(|(found, _)| found).collect();

    let threshold = Threshold::new(near_settings.threshold);
    let mut star_cover = StarCover::new(order.records as usize, first_own, groups.into_inner() as usize);
    let (mut candidates_of_bucket, mut batch) = (Vec::new(), Vec::new());
    let (mut scratch, mut other_scratch) = (Vec::new(), Vec::new());
    for bucket in 0..budget.buckets {
        candidates_of_bucket.clear();
        for part in &mut candidates {
            part.take(bucket, &mut batch)?;
            candidates_of_bucket.extend_from_slice(&batch);
        }
        candidates_of_bucket.sort_unstable();
        // Two texts that agree in several bands are candidates several times.
        candidates_of_bucket.dedup();
        for group in candidates_of_bucket.chunk_by(|x, y| x.text == y.text) {
            let text = group[0].text;
            let set = corpus.set(order.record(text), &mut scratch)?;
            star_cover.decide(text, group, |other_text| {
                Ok(threshold.reached(set, corpus.set(order.record(other_text), &mut other_scratch)?))
            })?;
        }
        if star_cover.bytes() > settings.memory_bytes / 2 {
            return Err(Error::MemoryLimit {
                what: "candidates for near-duplicates in large groups".into(),
                needed_bytes: settings.memory_bytes * 2,
                allowed_bytes: settings.memory_bytes,
                setting: "--memory".into(),
            });
        }
    }
    Ok(NearDuplicates { n_comparisons: star_cover.compared, dropped_texts: star_cover.into_dropped() })
}
