//! Explanation of why two records of a corpus are, or are not, duplicates of each other.

use std::fmt::Write;

use serde::Serialize;

use super::diff::DiffPiece;
use super::{difference, printable};
use crate::minhash::bands::BandLayout;
use crate::minhash::resemblance::Threshold;
use crate::minhash::shingles::{Shingles, Shingling};
use crate::minhash::signature::Permutations;

/// Explanation of the relation of two records of a corpus in a result.
#[derive(Debug, Serialize)]
pub struct Duplicates<'t> {
    /// The two records, in the order of the request.
    pub records: [RecordSide; 2],
    /// True if one record stays for both.
    pub together: bool,
    /// Reasons why they are together or apart; the first reason decides.
    pub reasons: Vec<String>,
    /// True if the texts are equal, byte for byte.
    pub same_text: bool,
    /// Comparison of their shingles; `None` if the run removed exact copies only.
    pub minhash: Option<ShingleComparison>,
    /// Difference of the texts, line by line.
    pub diff: Vec<DiffPiece<'t>>,
}

/// Name and place of a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecordName {
    /// Id of the record.
    pub id: String,
    /// File that contains the record.
    pub file: String,
    /// Row in the file, from 0.
    pub row: u64,
}

impl std::fmt::Display for RecordName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let RecordName { id, file, row } = self;
        f.write_str(id)?;
        match *id == format!("{file}:{row}") {
            true => Ok(()),
            false => write!(f, " ({file}:{row})"),
        }
    }
}

/// One of the two records.
#[derive(Debug, Clone, Serialize)]
pub struct RecordSide {
    /// Name of the record.
    #[serde(flatten)]
    pub name: RecordName,
    /// True if it is a record of `--against`, which is never removed.
    pub is_against: bool,
    /// Length of the text, in bytes.
    pub text_bytes: u64,
    /// Removal of the record; `None` if it is kept.
    pub removed: Option<RemovedRow>,
    /// Number of records in its cluster: the kept one and those that are removed in its favour.
    pub cluster: u64,
}

impl RecordSide {
    /// Returns the name of the record that stays for this one.
    fn kept(&self) -> &RecordName {
        self.removed.as_ref().map_or(&self.name, |removed| &removed.kept)
    }
}

/// A row of the table `removed`.
#[derive(Debug, Clone, Serialize)]
pub struct RemovedRow {
    /// Record that stays in its place.
    pub kept: RecordName,
    /// Reason: `exact`, `near` or `against`.
    pub why: String,
    /// Resemblance of the two records.
    pub similarity: f64,
}

/// Settings by which near-duplicates were found.
#[derive(Debug, Clone, Copy)]
pub struct DuplicateMethod {
    /// Shingles by which texts are compared.
    pub shingling: Shingling,
    /// Minimum resemblance of near-duplicates.
    pub threshold: f64,
    /// Bands that propose candidates.
    pub bands: BandLayout,
}

/// Comparison of two texts by their shingles.
#[derive(Debug, Serialize)]
pub struct ShingleComparison {
    /// Unit and length of the shingles.
    pub shingle: String,
    /// Number of distinct shingles of each text.
    pub shingles: [u64; 2],
    /// Number of distinct shingles that both texts have.
    pub shared: u64,
    /// Number of shared shingles divided by the number of shingles of either text.
    pub resemblance: f64,
    /// Minimum resemblance of near-duplicates.
    pub threshold: f64,
    /// True if the resemblance reaches the threshold.
    pub suffices: bool,
    /// Number of bands of a signature.
    pub bands: u32,
    /// Number of minima in a band.
    pub rows: u32,
    /// Number of bands in which the signatures agree. Two records are compared if it is at least 1.
    pub agreeing: u64,
    /// Probability that two texts with this resemblance agree in a band.
    pub found: f64,
}

impl DuplicateMethod {
    /// Compares two texts.
    ///
    /// # Examples
    /// ```
    /// use webtwin_core::explain::duplicates::DuplicateMethod;
    /// use webtwin_core::minhash::bands::BandLayout;
    /// use webtwin_core::minhash::shingles::Shingling;
    ///
    /// let bands = BandLayout { bands: 16, rows: 4 };
    /// let method = DuplicateMethod { shingling: Shingling::Words(2), threshold: 0.5, bands };
    /// let comparison = method.compare("one two three four", "zero two three four");
    /// // The shingles "two three" and "three four" are in both texts, which have four in total.
    /// assert_eq!((comparison.shared, comparison.resemblance), (2, 0.5));
    /// assert!(comparison.suffices);
    /// ```
    pub fn compare(&self, left: &str, right: &str) -> ShingleComparison {
        let DuplicateMethod { shingling, threshold, bands } = *self;
        let mut shingles = Shingles::new(shingling);
        let sets = [left, right].map(|text| shingles.hashes(text).to_vec());
        let permutations = Permutations::new(bands.permutations());
        let keys = [0, 1].map(|side| {
            let mut signature = Vec::new();
            permutations.signature(&sets[side], &mut signature);
            bands.keys(&signature).collect::<Vec<u64>>()
        });
        let shared = sets[0].iter().filter(|shingle| sets[1].binary_search(shingle).is_ok()).count();
        let union = sets[0].len() + sets[1].len() - shared;
        let resemblance = shared as f64 / union.max(1) as f64;
        let is_compared = !sets[0].is_empty() && !sets[1].is_empty();
        let agreeing = keys[0].iter().zip(&keys[1]).filter(|(x, y)| x == y && is_compared).count();
        ShingleComparison {
            shingle: shingling.to_string(),
            shingles: [0, 1].map(|side| sets[side].len() as u64),
            shared: shared as u64,
            resemblance,
            threshold,
            suffices: Threshold::new(threshold).reached(&sets[0], &sets[1]).is_some(),
            bands: bands.bands,
            rows: bands.rows,
            agreeing: agreeing as u64,
            found: bands.probability(resemblance),
        }
    }
}

/// Draws conclusions from the rows and the texts of two records. `kept_resemblances` has, for each
/// of them that is removed, the resemblance of the other record to the record that stays for it.
pub fn conclude<'t>(
    records: [RecordSide; 2],
    texts: [&str; 2],
    method: Option<&DuplicateMethod>,
    kept_resemblances: [Option<f64>; 2],
    diff: Vec<DiffPiece<'t>>,
) -> Duplicates<'t> {
    let minhash = method.map(|method| method.compare(texts[0], texts[1]));
    let (same_text, is_same_group) = (texts[0] == texts[1], records[0].kept() == records[1].kept());
    let reasons = match is_same_group {
        true => why_together(&records),
        false => why_apart(&records, texts, minhash.as_ref(), kept_resemblances),
    };
    Duplicates { records, together: is_same_group, reasons, same_text, minhash, diff }
}

/// Describes the resemblance of a removed record to the record that stays.
fn likeness(removed: &RemovedRow) -> String {
    match (&*removed.why, removed.similarity) {
        ("exact", _) => "which has the same text, byte for byte".into(),
        ("against", similarity) => format!("a record of --against that it resembles by {similarity:.3}"),
        (_, similarity) => format!("which it resembles by {similarity:.3}"),
    }
}

fn why_together(records: &[RecordSide; 2]) -> Vec<String> {
    let removed = ["A", "B"].into_iter().zip(records);
    let line = |(letter, side): (&str, &RecordSide)| {
        let removed = side.removed.as_ref()?;
        Some(format!("{letter} is removed in favour of {}, {}", removed.kept, likeness(removed)))
    };
    removed.filter_map(line).collect()
}

fn why_apart(
    records: &[RecordSide; 2],
    texts: [&str; 2],
    minhash: Option<&ShingleComparison>,
    kept_resemblances: [Option<f64>; 2],
) -> Vec<String> {
    // The tests run from the most general reason to the most specific one, because the first reason
    // decides.
    if records.iter().all(|side| side.is_against) {
        return vec!["both are records of --against, which are never removed".into()];
    }
    if texts.iter().any(|text| text.trim().is_empty()) {
        return vec!["a text of white space only is not a duplicate of another text".into()];
    }
    const CHANGED: &str = "they would be duplicates now: the corpus has changed since the run; run again";
    if texts[0] == texts[1] {
        return vec![CHANGED.into()];
    }
    let Some(explanation) = minhash else {
        return vec!["their texts differ, and the run removed exact copies only (--by exact)".into()];
    };
    let ShingleComparison { resemblance, threshold, found: probability, .. } = explanation;
    if !explanation.suffices {
        return vec![format!("their resemblance is {resemblance:.3}, below --threshold {threshold}")];
    }
    if explanation.agreeing == 0 {
        return vec![format!(
            "their resemblance, {resemblance:.3}, suffices, but no band of their signatures agrees, so they were not \
             compared; {:.2} % of such pairs are compared, and more with more --bands of fewer --rows",
            probability * 100.0
        )];
    }
    // The pair was a candidate, so unless the corpus has changed, at least one of the records was
    // removed in favour of a third one.
    let mut reasons = Vec::new();
    for (at, letters) in [["A", "B"], ["B", "A"]].into_iter().enumerate() {
        if let (Some(removed), Some(other)) = (&records[at].removed, kept_resemblances[at]) {
            let [letter, other_letter] = letters;
            reasons.push(format!(
                "{letter} is removed in favour of {}, {}; {other_letter} resembles that record by {other:.3}, \
                 and is not compared with removed records",
                removed.kept,
                likeness(removed)
            ));
        }
    }
    if reasons.is_empty() {
        reasons.push(CHANGED.into());
    }
    reasons
}

/// Formats the explanation for people, with at most `limit` lines of difference.
pub fn describe(explanation: &Duplicates<'_>, limit: usize) -> String {
    let mut out = String::new();
    let mut line = |text: &str| printable(&mut out, text);
    // The reasons and the difference refer to the records by these letters.
    for (letter, side) in ["A", "B"].into_iter().zip(&explanation.records) {
        line(&format!("{letter}  {}", side.name));
        let mut description = format!("   {} bytes of text", side.text_bytes);
        if side.is_against {
            description += "; a record of --against";
        }
        let _ = match &side.removed {
            Some(removed) => write!(description, "; removed ({}) in favour of {}", removed.why, removed.kept),
            None => write!(description, "; kept"),
        };
        if side.cluster > 1 {
            let _ = write!(description, "; in a cluster of {} records", side.cluster);
        }
        line(&description);
    }
    line(if explanation.together { "TOGETHER in one cluster of duplicates:" } else { "APART:" });
    explanation.reasons.iter().for_each(|reason| line(&format!("  {reason}")));
    line("BY MEASURE:");
    line(&format!("  exact: {}", if explanation.same_text { "the same text" } else { "not the same text" }));
    // The measured values are printed with their thresholds, so that near misses are visible.
    match &explanation.minhash {
        None => line("  minhash: not used by the run"),
        Some(comparison) => {
            let [a, b] = comparison.shingles;
            line(&format!(
                "  minhash: {} of {a} and {b} shingles ({}) shared: resemblance {:.3}, threshold {}",
                comparison.shared, comparison.shingle, comparison.resemblance, comparison.threshold
            ));
            line(&format!(
                "  bands: {} of {} bands of {} minima agree, 1 is needed; {:.2} % of pairs with this resemblance \
                 have one",
                comparison.agreeing,
                comparison.bands,
                comparison.rows,
                comparison.found * 100.0
            ));
        }
    }
    line("DIFFERENCE, A - and B +:");
    difference(&explanation.diff, limit, line);
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn name(row: u64) -> RecordName {
        RecordName { id: format!("r{row}"), file: "f.jsonl".into(), row }
    }

    fn side(row: u64, removed: Option<(u64, &str, f64)>) -> RecordSide {
        let removed =
            removed.map(|(kept, why, similarity)| RemovedRow { kept: name(kept), why: why.into(), similarity });
        RecordSide { name: name(row), is_against: false, text_bytes: 9, removed, cluster: 2 }
    }

    const METHOD: DuplicateMethod =
        DuplicateMethod { shingling: Shingling::Words(1), threshold: 0.5, bands: BandLayout { bands: 64, rows: 1 } };

    fn reason(
        records: [RecordSide; 2],
        texts: [&str; 2],
        method: Option<&DuplicateMethod>,
        kept_resemblances: [Option<f64>; 2],
    ) -> String {
        conclude(records, texts, method, kept_resemblances, Vec::new()).reasons.remove(0)
    }

    #[test]
    fn each_reason_is_reported_where_it_decides() {
        let (keeper, other) = (side(0, None), side(1, None));
        let reason_for = |texts: [&str; 2], method: Option<&DuplicateMethod>| {
            reason([keeper.clone(), other.clone()], texts, method, [None, None])
        };
        assert!(
            reason_for(["a b c", "x y z"], Some(&METHOD))
                .starts_with("their resemblance is 0.000, below --threshold 0.5")
        );
        assert!(reason_for(["a b", " "], Some(&METHOD)).starts_with("a text of white space only"));
        assert!(reason_for(["a b", "a c"], None).contains("--by exact"));
        assert!(reason_for(["a b c d", "a b c e"], Some(&METHOD)).starts_with("they would be duplicates now"));
        let single_band = DuplicateMethod { bands: BandLayout { bands: 1, rows: 60 }, ..METHOD };
        assert!(reason_for(["a b c d", "a b c e"], Some(&single_band)).contains("no band of their signatures agrees"));

        let near = side(2, Some((0, "near", 0.75)));
        let conclusion =
            conclude([near.clone(), keeper], ["a b c d", "a b c e"], Some(&METHOD), [None, None], Vec::new());
        assert!(conclusion.together);
        assert_eq!(conclusion.reasons, ["A is removed in favour of r0 (f.jsonl:0), which it resembles by 0.750"]);
        // A chain: the record that A resembles is not one that B resembles.
        let chain = reason([near, other], ["a b c d", "a b c e"], Some(&METHOD), [Some(0.4), None]);
        assert!(chain.contains("B resembles that record by 0.400, and is not compared with"), "{chain}");
        let mut old = [side(0, None), side(1, None)];
        old.iter_mut().for_each(|side| side.is_against = true);
        assert!(reason(old, ["a", "a"], Some(&METHOD), [None, None]).contains("never removed"));
    }

    #[test]
    fn text_output_has_locations_likeness_and_difference() {
        let records = [side(0, None), side(2, Some((0, "exact", 1.0)))];
        let diff = super::super::diff::pieces("a\u{1b}", "b", 2);
        let message = describe(&conclude(records, ["a b", "a b"], Some(&METHOD), [None, None], diff), 1);
        assert!(
            message.starts_with("A  r0 (f.jsonl:0)\n   9 bytes of text; kept; in a cluster of 2 records\nB  r2"),
            "{message}"
        );
        assert!(
            message.contains(
                "TOGETHER in one cluster of duplicates:\n  B is removed in favour of r0 (f.jsonl:0), which has"
            )
        );
        assert!(
            message.contains("minhash: 2 of 2 and 2 shingles (words:1) shared: resemblance 1.000, threshold 0.5\n")
        );
        assert!(message.ends_with("- a\u{fffd}\n  ... and 1 more (--limit)\n"), "{message}");
    }

    proptest! {
        #[test]
        fn comparison_equals_that_of_the_sets(left in "([a-e] ){0,9}", right in "([a-e] ){0,9}") {
            let explanation = METHOD.compare(&left, &right);
            let (x, y): (BTreeSet<&str>, BTreeSet<&str>) = (left.split_whitespace().collect(), right.split_whitespace().collect());
            let (shared, union) = (x.intersection(&y).count(), x.union(&y).count());
            prop_assert_eq!((explanation.shared, explanation.shingles), (shared as u64, [x.len() as u64, y.len() as u64]));
            prop_assert_eq!(explanation.suffices, shared > 0 && 2 * shared >= union);
            // With one row a band, signatures agree wherever the smallest element is shared.
            prop_assert!(explanation.agreeing <= 64 && (shared > 0 || explanation.agreeing == 0));
            prop_assert!(explanation.resemblance < 1.0 || explanation.agreeing == 64);
        }
    }
}
