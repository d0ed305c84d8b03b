//! Figure 1: precision and recall of pairs within k bits.
//!
//! The authors of the paper tagged an equal number of pairs at each distance from 1 to 10. Here the
//! truth is known for every pair. Both quantities are therefore reported in two ways: among all
//! pairs of the crawl, and as if an equal number of pairs had been drawn at each distance, by the
//! fraction of true ones there.

use std::collections::HashMap;
use std::fmt::Write;

use super::super::source::{job_and_truth, put, run_job};
use super::super::{FigureRow, Options, draw, figure, row_against_published};
use webtwin_base::error::Result;
use webtwin_base::ids::{DocId, SimHash};
use webtwin_core::hamming::close_pairs::within_k;
use webtwin_evaluate::TruthComparison;
use webtwin_results::pages::PageTable;
use webtwin_results::{FinishedRun, compared};

/// Largest k: "We varied k from 1 to 10."
const LARGEST_K: usize = 10;

/// Published value at k = 3: "Choosing k = 3 is reasonable because both precision and recall are
/// near 0.75."
const PUBLISHED_AT_3: f64 = 0.75;

/// Counts of pairs by their distance in bits.
#[derive(Debug, Default)]
struct Distances {
    all_pairs: [u64; LARGEST_K + 1],
    copies: [u64; LARGEST_K + 1],
    /// Number of true pairs at any distance, including those without simhashes.
    actual: u64,
}

impl Distances {
    /// Counts the pairs of pages with these simhashes. `groups` are the pages that are copies of
    /// each other.
    fn count(simhash_of: &HashMap<DocId, SimHash>, groups: impl Iterator<Item = Vec<DocId>>) -> Distances {
        let mut counts = Distances::default();
        let mut sizes: HashMap<SimHash, u64> = HashMap::new();
        simhash_of.values().for_each(|&simhash| *sizes.entry(simhash).or_default() += 1);
        let mut distinct: Vec<SimHash> = sizes.keys().copied().collect();
        distinct.sort_unstable();
        let size = |place: u32| sizes[&distinct[place as usize]];
        counts.all_pairs[0] = sizes.values().map(|size| size * (size - 1) / 2).sum();
        for (x, y, distance) in within_k(&distinct, LARGEST_K as u32) {
            counts.all_pairs[distance as usize] += size(x) * size(y);
        }
        for group in groups {
            for (position, x) in group.iter().enumerate() {
                for y in &group[position + 1..] {
                    counts.actual += 1;
                    if let (Some(x), Some(y)) = (simhash_of.get(x), simhash_of.get(y))
                        && let Some(count) = counts.copies.get_mut((x ^ y).count_ones() as usize)
                    {
                        *count += 1;
                    }
                }
            }
        }
        counts
    }

    /// Returns precision and recall among all pairs that are at most `k` bits apart.
    fn among_all(&self, k: usize) -> (f64, f64) {
        let sum = |of: &[u64]| of[..=k].iter().sum::<u64>() as f64;
        (sum(&self.copies) / sum(&self.all_pairs).max(1.0), sum(&self.copies) / self.actual.max(1) as f64)
    }

    /// Returns precision and recall as if an equal number of pairs were drawn at each distance from
    /// 1 on.
    fn among_equally_many(&self, k: usize) -> (f64, f64) {
        let share = |distance: usize| self.copies[distance] as f64 / self.all_pairs[distance].max(1) as f64;
        let sum = |k: usize| (1..=k).map(share).sum::<f64>();
        (sum(k) / k as f64, sum(k) / sum(LARGEST_K).max(f64::MIN_POSITIVE))
    }
}

/// Reproduces Figure 1.
pub(super) fn figure_1(options: &Options) -> Result<Vec<FigureRow>> {
    let name = "jobs/repro/mjs07-figure1.toml";
    let (mut job, truth) = job_and_truth(options, name, include_str!("../../../jobs/repro/mjs07-figure1.toml"))?;
    let run = match &options.input {
        Some(run) => FinishedRun::open(run)?,
        None => {
            job.output.url = options.work.join("run").display().to_string();
            run_job(options, job)?
        }
    };
    let pages = PageTable::from_run(&run)?;
    let rows = compared::rows(&run, &pages, truth)?;
    let comparison = TruthComparison::new(&rows.pages, &rows.clusters, &rows.truth);
    let simhashes = pages.doc_ids()?.iter().zip(pages.0.u64_where("simhash", "has_simhash")?);
    // A pair with a page that is not in the truth is neither true nor false.
    let known_pages = simhashes.filter(|(page, _)| comparison.are_copies(**page, **page).is_some());
    let simhash_of: HashMap<DocId, SimHash> =
        known_pages.filter_map(|(&page, simhash)| Some((page, simhash?))).collect();
    let counts = Distances::count(&simhash_of, comparison.groups_by_target().into_iter().flatten());

    let mut tsv = String::from(
        "k\tpairs at k\ttrue pairs at k\tprecision\trecall\tprecision, equally many\trecall, equally many\n",
    );
    let ks = 1..=LARGEST_K;
    for k in 0..=LARGEST_K {
        let (precision, recall) = counts.among_all(k);
        let _ = write!(tsv, "{k}\t{}\t{}\t{precision:.4}\t{recall:.4}\t", counts.all_pairs[k], counts.copies[k]);
        // The mean over the distances 1 to k is undefined for k = 0.
        let equally_many = (k > 0).then(|| counts.among_equally_many(k));
        let _ = writeln!(tsv, "{}", equally_many.map_or("\t".into(), |(p, r)| format!("{p:.4}\t{r:.4}")));
    }
    let curve = |of: &dyn Fn(usize) -> f64| ks.clone().map(|k| (k as f64, of(k))).collect();
    let series = [
        ("precision, all pairs".to_string(), curve(&|k| counts.among_all(k).0)),
        ("recall, all pairs".to_string(), curve(&|k| counts.among_all(k).1)),
        ("precision, equally many at each distance".to_string(), curve(&|k| counts.among_equally_many(k).0)),
        ("recall, equally many at each distance".to_string(), curve(&|k| counts.among_equally_many(k).1)),
        ("the paper's \"near 0.75\" at k = 3".to_string(), vec![(3.0, PUBLISHED_AT_3)]),
    ];
    let title = "Pairs within k bits (MJS07 Figure 1)";
    put(
        options,
        "mjs07-figure1",
        draw::curves(title, ("k, bits", LARGEST_K as f64), ("precision, recall", 1.0), &series),
        tsv,
    )?;

    let mut rows = vec![
        figure("pages with a simhash, known to the truth", simhash_of.len() as f64, "pages"),
        figure("true pairs", counts.actual as f64, "pairs"),
    ];
    type Scores = fn(&Distances, usize) -> (f64, f64);
    let scorings: [(&str, Scores); 2] =
        [("all pairs", Distances::among_all), ("equally many at each distance", Distances::among_equally_many)];
    for (scoring_name, scores) in scorings {
        for k in ks.clone() {
            let (precision, recall) = scores(&counts, k);
            for (label, score) in [("precision", precision), ("recall", recall)] {
                let label = format!("{scoring_name}, k = {k}: {label}");
                rows.push(if k == 3 {
                    row_against_published(&label, score, PUBLISHED_AT_3, "share")
                } else {
                    figure(&label, score, "share")
                });
            }
        }
    }
    let f1 = |k: &usize| {
        let (precision, recall) = counts.among_all(*k);
        2.0 * precision * recall / (precision + recall).max(f64::MIN_POSITIVE)
    };
    let best = ks.max_by(|x, y| f1(x).total_cmp(&f1(y))).expect("k goes from 1");
    rows.push(figure("all pairs: k of the best F1", best as f64, "bits"));
    rows.push(figure("all pairs: best F1", f1(&best), "share"));
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_counted_at_their_distance_and_equal_simhashes_at_0() {
        let simhash_of = HashMap::from([(1, 0b0000), (2, 0b0000), (3, 0b0111), (4, u64::MAX)]);
        let counts = Distances::count(&simhash_of, [vec![1, 3], vec![2, 4, 5]].into_iter());
        assert_eq!((counts.all_pairs[0], counts.all_pairs[3], counts.copies[3], counts.actual), (1, 2, 1, 4));
        assert_eq!(counts.among_all(3), (1.0 / 3.0, 0.25));
        // There are no pairs at distances 1 and 2, so no true pairs are found there.
        assert_eq!(counts.among_equally_many(3), (0.5 / 3.0, 1.0));
    }
}
