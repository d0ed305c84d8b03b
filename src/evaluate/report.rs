//! Result of an evaluation, as numbers, as rows and as a table for users.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::pairs::{recall_with, recall_within};
use super::truth::CommonPages;
use super::{ClusterCounts, CollectionCounts, KnownPairCounts};
use webtwin_base::ids::DocId;

/// A part of a whole, both as exact counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ratio {
    /// Size of the part.
    pub part: u64,
    /// Size of the whole.
    pub whole: u64,
}

impl Ratio {
    /// Returns part / whole, or `None` if the whole is empty.
    pub fn value(self) -> Option<f64> {
        (self.whole > 0).then(|| self.part as f64 / self.whole as f64)
    }
}

/// Counts for the copies of one variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VariantCounts {
    /// Pages in the cluster of the same page of the primary copy, among those for which the primary
    /// copy has that page.
    pub recall: Ratio,
    /// Copies found, among all of the variant. The variant of a copy is that of its first page.
    pub copies: Ratio,
}

/// Result of the comparison of a run with the truth; see [the module](super) for the definitions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EvaluationReport {
    /// Number of pages of the run.
    pub pages: u64,
    /// Number of rows of the truth that are used.
    pub truth: u64,
    /// Number of pages in both run and truth.
    pub known: u64,
    /// Number of pages of the truth that the run does not have.
    pub missing: u64,
    /// Number of further truth rows for the same URL, which are not used.
    pub repeated: u64,
    /// Counts of pairs of known pages.
    pub pairs: KnownPairCounts,
    /// Counts of trivial clusters of known pages.
    pub clusters: ClusterCounts,
    /// Counts of collections and targets.
    pub collections: CollectionCounts,
    /// Counts by variant of target pages.
    pub variants: BTreeMap<String, VariantCounts>,
    /// Fraction of predicted pairs among true pairs, by kind of pair.
    pub recall_of: Vec<(String, Ratio)>,
    /// Copies found on hosts to which others link, and on hosts without such links, if the truth
    /// has this information.
    pub copies_by_link: Vec<(&'static str, Ratio)>,
}

/// One measured value, as `--json` prints it.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct FigureRow {
    /// Name of the measure.
    pub what: String,
    /// Measured value; `None` if there is nothing to measure.
    pub ours: Option<f64>,
    /// Value that the paper published, if any.
    pub published: Option<f64>,
    /// Target value, if any.
    pub reach: Option<f64>,
    /// Unit of the values.
    pub unit: String,
    /// True if the measured value meets `reach`.
    pub holds: Option<bool>,
}

impl EvaluationReport {
    /// Returns the number of pages of the run that are not in the truth. Pairs with them are
    /// ignored.
    pub fn unknown(&self) -> u64 {
        self.pages - self.known
    }

    /// Returns the report as rows, always in the same order. `reach` is the target for the default
    /// settings on the real crawl (`scripts/real-crawl/`).
    pub fn rows(&self) -> Vec<FigureRow> {
        let EvaluationReport { pairs, clusters, collections: c, .. } = self;
        let count = |what: &str, count: u64, unit: &str| FigureRow::new(what, Some(count as f64), unit);
        let share = |what: &str, ratio: Ratio| FigureRow::new(what, ratio.value(), "share");
        let scores = |label: &str, precision: Ratio, recall: Ratio| {
            // F1 is 0 if both are 0; the formula would divide by zero.
            let f1 = precision
                .value()
                .zip(recall.value())
                .map(|(p, r)| if p + r > 0.0 { 2.0 * p * r / (p + r) } else { 0.0 });
            [
                share(&format!("{label} precision"), precision),
                share(&format!("{label} recall"), recall),
                FigureRow::new(&format!("{label} F1"), f1, "share"),
            ]
        };

        let mut rows = vec![
            count("known pages", self.known, "pages"),
            count("pages not in the truth", self.unknown(), "pages"),
            count("truth pages not in the run", self.missing, "pages"),
            count("repeated truth rows", self.repeated, "rows"),
            count("true pairs", pairs.actual, "pairs"),
            count("predicted pairs", pairs.predicted, "pairs"),
            count("accidental ones among them", pairs.accidental, "pairs"),
            count("open ones among them", pairs.open, "pairs"),
        ];
        let [precision, recall, f1] = scores("pair", pairs.precision(), pairs.recall());
        rows.extend([precision.at_least(0.90), recall.at_least(0.92), f1]);
        // A lower bound of the precision, in which every undecided pair counts as an error.
        let pair_precision = Ratio { part: pairs.hits, whole: pairs.predicted };
        rows.push(share("pair precision, accidental and open pairs taken as false", pair_precision));
        rows.extend(self.recall_of.iter().map(|(what, ratio)| share(&format!("recall of {what}"), *ratio)));
        rows.push(count("trivial clusters of 2 and more", clusters.clusters, "clusters"));
        let purity = Ratio { part: clusters.pure, whole: clusters.clusters };
        rows.extend(scores("cluster", purity, Ratio { part: clusters.whole, whole: clusters.groups }));
        rows.extend([
            count("collections of 10 and more pages", c.collections, "collections"),
            count("corresponding collections", c.corresponding, "collections"),
            share("problem share", c.problem_share()).at_most(0.02),
            count("targets found", c.targets_found, "targets").at_least(c.targets as f64),
            count("targets", c.targets, "targets"),
            share("coverage", c.coverage()).at_least(0.93),
            count("whole copies", c.copies_whole, "copies").at_least((0.9 * c.copies as f64).ceil()),
            count("copies found", c.copies_found, "copies").at_least((230.0 / 238.0 * c.copies as f64).ceil()),
            count("copies", c.copies, "copies"),
            FigureRow::new("collections a copy", c.collections_a_copy().value(), "collections").at_most(1.15),
            share("coverage of pages that have a copy", c.coverage_of_copied()),
            count("connected parts of copies", c.parts, "parts"),
            count("whole ones among them", c.parts_whole, "parts"),
            FigureRow::new("collections a connected part", c.collections_a_part().value(), "collections"),
            count("mixed clusters", c.mixed, "clusters").at_most(2.0),
            count("similar clusters", c.clusters, "clusters"),
        ]);
        let correspondence = Ratio { part: c.corresponding, whole: c.collections };
        rows.extend(scores("collection", correspondence, Ratio { part: c.copies_found, whole: c.copies }));
        for (variant, counts) in &self.variants {
            rows.push(share(&format!("recall of {variant} pages"), counts.recall));
            rows.push(count(&format!("{variant} copies found"), counts.copies.part, "copies"));
            rows.push(count(&format!("{variant} copies"), counts.copies.whole, "copies"));
        }
        for (hosts, copies) in &self.copies_by_link {
            rows.push(count(&format!("copies found on {hosts} hosts"), copies.part, "copies"));
            rows.push(count(&format!("copies on {hosts} hosts"), copies.whole, "copies"));
        }
        rows
    }
}

impl FigureRow {
    /// Makes a row with a measured value only.
    pub fn new(label: &str, value: Option<f64>, unit: &str) -> FigureRow {
        FigureRow {
            what: label.to_owned(),
            ours: value,
            published: None,
            reach: None,
            unit: unit.to_owned(),
            holds: None,
        }
    }

    /// Sets a lower bound for the measured value.
    pub fn at_least(self, reach: f64) -> FigureRow {
        let holds = self.ours.map(|ours| ours >= reach);
        FigureRow { reach: Some(reach), holds, ..self }
    }

    /// Sets an upper bound for the measured value.
    pub fn at_most(self, reach: f64) -> FigureRow {
        let holds = self.ours.map(|ours| ours <= reach);
        FigureRow { reach: Some(reach), holds, ..self }
    }
}

/// Formats rows as a table for users: aligned columns, without columns that are empty in all rows,
/// and with `-` for missing values.
///
/// # Examples
/// ```
/// use webtwin_evaluate::{FigureRow, table};
///
/// let rows = [FigureRow::new("pages", Some(3.0), ""), FigureRow::new("precision", Some(0.25), "share")];
/// let text = table(&rows);
/// assert_eq!(text.lines().count(), 3);
/// assert!(text.lines().last().is_some_and(|line| line.starts_with("precision")));
/// ```
pub fn table(rows: &[FigureRow]) -> String {
    let number = |value: Option<f64>| match value {
        None => "-".to_owned(),
        Some(value) if value.fract() == 0.0 => format!("{value:.0}"),
        Some(value) => format!("{value:.4}"),
    };
    let holds = |holds: Option<bool>| holds.map_or("-", |holds| if holds { "yes" } else { "no" }).to_owned();
    let column = |head: &str, cell: &dyn Fn(&FigureRow) -> String| -> Vec<String> {
        std::iter::once(head.to_owned()).chain(rows.iter().map(cell)).collect()
    };
    let mut columns = vec![
        column("what", &|row| row.what.clone()),
        column("ours", &|row| number(row.ours)),
        column("published", &|row| number(row.published)),
        column("reach", &|row| number(row.reach)),
        column("unit", &|row| row.unit.clone()),
        column("holds", &|row| holds(row.holds)),
    ];
    columns
        .retain(|column| matches!(column[0].as_str(), "what" | "ours") || column[1..].iter().any(|cell| cell != "-"));

    let mut tsv = String::new();
    for line in 0..=rows.len() {
        let mut text = String::new();
        for column in &columns {
            let width = column.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
            let cell = &column[line];
            let _ = match column[0].as_str() {
                "ours" | "published" | "reach" => write!(text, "{cell:>width$}  "),
                _ => write!(text, "{cell:<width$}  "),
            };
        }
        tsv.push_str(text.trim_end());
        tsv.push('\n');
    }
    tsv
}

/// Counts by variant. `differs_from_primary` is indexed by known page, `copies_found` by copy.
pub(super) fn by_variant(
    common_pages: &CommonPages,
    differs_from_primary: &[Option<bool>],
    copies_found: &[bool],
) -> BTreeMap<String, VariantCounts> {
    let mut variants: BTreeMap<String, VariantCounts> = BTreeMap::new();
    for (page, is_different) in common_pages.pages.iter().zip(differs_from_primary) {
        if let Some(is_different) = is_different {
            let recall = &mut variants.entry(page.variant.to_owned()).or_default().recall;
            recall.whole += 1;
            recall.part += u64::from(*is_different);
        }
    }
    for (copy, &is_found) in common_pages.copies.iter().zip(copies_found).filter(|(copy, _)| copy.is_collection()) {
        let copies = &mut variants.entry(copy.variant.to_owned()).or_default().copies;
        copies.whole += 1;
        copies.part += u64::from(is_found);
    }
    variants
}

/// Returns the recall by variant, and by links to the hosts of the pages.
///
/// A pair has the variant of its page that is not a real version. A pair of two real versions
/// counts as real.
pub(super) fn recall_of(common_pages: &CommonPages, page_clusters: &[Option<DocId>]) -> Vec<(String, Ratio)> {
    let is_real = |variant: &str| matches!(variant, "real" | "primary" | "version");
    let pages = || common_pages.pages.iter().filter(|page| page.target_page.is_some());
    let variants: BTreeSet<&str> = pages().map(|page| page.variant).filter(|variant| !is_real(variant)).collect();
    let real_recall = recall_within(common_pages, page_clusters, |page| is_real(page.variant));
    let mut rows = vec![("pairs of real versions".to_owned(), real_recall)];
    for variant in variants {
        let recall = recall_with(common_pages, page_clusters, |page| page.variant == variant);
        rows.push((format!("pairs with {variant} pages"), recall));
    }
    if pages().any(|page| page.is_linked.is_some()) {
        let linked_recall = recall_within(common_pages, page_clusters, |page| page.is_linked == Some(true));
        rows.push(("pairs on linked hosts".to_owned(), linked_recall));
        let unlinked_recall = recall_with(common_pages, page_clusters, |page| page.is_linked == Some(false));
        rows.push(("pairs with pages of unlinked hosts".to_owned(), unlinked_recall));
    }
    rows
}

/// Returns the copies found, by links to their hosts; empty if the truth does not have this
/// information.
pub(super) fn copies_by_link(common_pages: &CommonPages, copies_found: &[bool]) -> Vec<(&'static str, Ratio)> {
    let ratio_of = |is_linked: bool| {
        let copies = common_pages.copies.iter().zip(copies_found);
        let linked_copies = copies.filter(|(copy, _)| copy.is_collection() && copy.is_linked == Some(is_linked));
        linked_copies.fold(Ratio::default(), |sum, (_, &is_found)| Ratio {
            part: sum.part + u64::from(is_found),
            whole: sum.whole + 1,
        })
    };
    let rows = [("linked", ratio_of(true)), ("unlinked", ratio_of(false))];
    if rows.iter().all(|(_, copies)| copies.whole == 0) { Vec::new() } else { rows.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_aligned_and_leaves_out_empty_columns() {
        let rows = [
            FigureRow::new("pair recall", Some(0.5), "share"),
            FigureRow::new("pairs", Some(120.0), "pairs"),
            FigureRow::new("F1", None, "share"),
        ];
        let expected = "what           ours  unit\npair recall  0.5000  share\n\
                        pairs           120  pairs\nF1                -  share\n";
        assert_eq!(table(&rows), expected);
        let rows = [FigureRow {
            published: Some(2.0),
            reach: Some(1.0),
            holds: Some(false),
            ..FigureRow::new("x", Some(0.25), "s")
        }];
        assert_eq!(
            table(&rows),
            "what    ours  published  reach  unit  holds\nx     0.2500          2      1  s     no\n"
        );
    }

    #[test]
    fn ratio_with_zero_denominator_has_no_value() {
        assert_eq!(Ratio { part: 0, whole: 0 }.value(), None);
        assert_eq!(Ratio { part: 1, whole: 4 }.value(), Some(0.25));
        let rows = EvaluationReport::default().rows();
        let f1 = rows.iter().find(|row| row.what == "pair F1").unwrap();
        assert_eq!(f1.ours, None);
    }

    #[test]
    fn a_row_in_json_has_the_fields_of_the_contract() {
        let json = serde_json::to_string(&FigureRow::new("pair recall", Some(0.5), "share")).unwrap();
        assert_eq!(
            json,
            r#"{"what":"pair recall","ours":0.5,"published":null,"reach":null,"unit":"share","holds":null}"#
        );
    }
}
