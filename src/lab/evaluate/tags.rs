//! Comparison of the judgements of a person about pairs with the truth.
//!
//! The truth is made from names, and names mislead in both directions: pages with equal names may
//! have nothing in common, and pages with different names may be the same. Pairs of each
//! [`Stratum`] are therefore judged, and the outcomes are weighted by the sizes of the strata:
//!
//! precision by tags = (found × fraction of true tags among the found + false × that among the
//! false) / (found + false),
//!
//! recall by tags = the same numerator divided by itself plus missed × that among the missed.
//!
//! The fractions count the tags true and false. They are valid for a stratum only if its pairs were
//! drawn from this run. Pairs drawn from another run are a sample of another population.

use std::collections::BTreeMap;

use super::sample::Stratum;
use webtwin_base::ids::DocId;
use webtwin_evaluate::tags::PairTag;
use webtwin_evaluate::{FigureRow, KnownPairCounts, Ratio, TruthComparison};

/// Returns the counts of tagged pairs by stratum, and the precision and recall that follow from
/// them. Pairs with a page unknown to truth or run are only counted. The caller must omit pages to
/// keep, which are not pairs.
pub(super) fn by_tags(
    comparison: &TruthComparison<'_>,
    tagged: &[(DocId, DocId, PairTag)],
    pairs: &KnownPairCounts,
) -> Vec<FigureRow> {
    let mut counts: BTreeMap<Stratum, BTreeMap<PairTag, u64>> = BTreeMap::new();
    let (mut unknown_pages, mut n_apart, mut undecided) = (0, 0, 0);
    for &(a, b, tag) in tagged {
        let stratum = match comparison.are_together(a, b).zip(comparison.are_copies(a, b)) {
            None => {
                unknown_pages += 1;
                continue;
            }
            Some((true, true)) => Stratum::Found,
            // Precision and recall exclude such pairs, so their tags must not count either.
            Some((true, false)) if comparison.are_undecided(a, b) == Some(true) => {
                undecided += 1;
                continue;
            }
            Some((true, false)) => Stratum::False,
            Some((false, true)) => Stratum::Missed,
            Some((false, false)) => {
                n_apart += 1;
                continue;
            }
        };
        *counts.entry(stratum).or_default().entry(tag).or_default() += 1;
    }
    let count_of = |stratum, tag| counts.get(&stratum).and_then(|tags| tags.get(&tag)).copied().unwrap_or(0);
    let share = |stratum| {
        let part = count_of(stratum, PairTag::True);
        Ratio { part, whole: part + count_of(stratum, PairTag::False) }
    };
    let mut rows = Vec::new();
    for stratum in [Stratum::Found, Stratum::False, Stratum::Missed] {
        for (tag, word) in [(PairTag::True, "true"), (PairTag::False, "false"), (PairTag::Unknown, "unknown")] {
            rows.push(FigureRow::new(
                &format!("{stratum} pairs tagged {word}"),
                Some(count_of(stratum, tag) as f64),
                "pairs",
            ));
        }
        rows.push(FigureRow::new(
            &format!("share of true among tagged {stratum} pairs"),
            share(stratum).value(),
            "share",
        ));
    }
    rows.push(FigureRow::new("tagged pairs neither predicted nor true", Some(f64::from(n_apart)), "pairs"));
    rows.push(FigureRow::new("tagged pairs that are accidental or open", Some(f64::from(undecided)), "pairs"));
    rows.push(FigureRow::new("tagged pairs with unknown pages", Some(f64::from(unknown_pages)), "pairs"));

    // A stratum without pairs contributes 0 and needs no tags.
    let true_of = |stratum, size: u64| match size {
        0 => Some(0.0),
        _ => share(stratum).value().map(|share| share * size as f64),
    };
    let (n_hits, n_missed) = (pairs.hits, pairs.actual - pairs.hits);
    let among_predicted = true_of(Stratum::Found, n_hits)
        .zip(true_of(Stratum::False, pairs.decided() - n_hits))
        .map(|(found, false_by_truth)| found + false_by_truth);
    let precision = among_predicted.filter(|_| pairs.decided() > 0).map(|hits| hits / pairs.decided() as f64);
    let recall = among_predicted.zip(true_of(Stratum::Missed, n_missed)).map(|(hits, missed)| hits / (hits + missed));
    rows.push(FigureRow::new("pair precision by tags", precision, "share"));
    rows.push(FigureRow::new("pair recall by tags", recall.filter(|recall| recall.is_finite()), "share"));
    rows
}
#[cfg(test)]
mod tests {
    use super::super::sample::draw;
    use super::*;
    use webtwin_evaluate::{ClusterRow, TruthPageRow, TruthRow};

    /// Two pages named p and one named q in one cluster, and a third p outside: 1 found, 2 false, 2
    /// missed.
    #[test]
    fn strata_are_weighted_by_their_sizes() {
        let truth: Vec<TruthRow> = ["p", "p", "q", "p"]
            .into_iter()
            .enumerate()
            .map(|(number, page)| TruthRow {
                url: format!("http://h{number}/"),
                target: "t".into(),
                version: number.to_string(),
                page: page.into(),
                variant: "real".into(),
                ..Default::default()
            })
            .collect();
        let pages: Vec<TruthPageRow> =
            (0..).zip(&truth).map(|(doc_id, row)| TruthPageRow { doc_id, url: row.url.clone(), body: 0 }).collect();
        let clusters = [0, 1, 2].map(|doc_id| ClusterRow { cluster: 0, doc_id });
        let comparison = TruthComparison::new(&pages, &clusters, &truth);
        let pairs = comparison.report(&[], &[]).pairs;
        assert_eq!(pairs, KnownPairCounts { predicted: 3, actual: 3, hits: 1, ..Default::default() });
        let pairs_drawn = draw(&comparison, 9).pairs();
        let count_of = |stratum| pairs_drawn.iter().filter(|row| row.0 == stratum).count();
        assert_eq!([Stratum::Found, Stratum::False, Stratum::Missed].map(count_of), [1, 2, 2]);

        let tagged = [
            (0, 1, PairTag::True),
            (0, 2, PairTag::True),
            (1, 2, PairTag::False),
            (3, 0, PairTag::True),
            (9, 0, PairTag::True),
        ];
        let rows = by_tags(&comparison, &tagged, &pairs);
        let value_of = |what: &str| rows.iter().find(|row| row.what == what).unwrap().ours;
        // The 1 found pair and half of the 2 false ones are true, of 3. Both missed pairs are true.
        assert_eq!(value_of("pair precision by tags"), Some(2.0 / 3.0));
        assert_eq!(value_of("pair recall by tags"), Some(2.0 / 4.0));
        assert_eq!(value_of("tagged pairs with unknown pages"), Some(1.0));
        assert_eq!(by_tags(&comparison, &[], &pairs).last().unwrap().ours, None);
    }
}
