//! Reads the tables that `pairs.from` names as rows of doc ids ([`super::given`]). Each worker
//! reads its share of the parts of the tables. A part is a row group of a Parquet file, or a whole
//! file of lines.
//!
//! A table contains pairs if it has the columns `A` and `B`, and otherwise labels, if it has `PAGE`
//! and `LABEL`. Pages are named by URL or by doc id, in any of these columns.

use xxhash_rust::xxh3::xxh3_64;

use super::given::{EQUAL_VALUE, GivenCounts, GivenLabel, GivenPair, of_rows};
use super::kinds::PairKind;
use crate::reading::captures::Crawl;
use crate::reading::foreign_rows::OwnParts;
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::{DocId, doc_id};
use webtwin_core::overlap::SimilarPair;
use webtwin_engine::Net;
use webtwin_job::Job;
use webtwin_pages::foreign_table::ForeignTable;
use webtwin_pages::url::CanonicalUrl;
use webtwin_results::foreign;
use webtwin_spill::SpillColumn;

/// Accepted names of the columns of a pair. A table has one column of each kind.
const A: &[&str] = &["a", "url_a", "doc_id_a"];
const B: &[&str] = &["b", "url_b", "doc_id_b"];
/// Name of the optional column with the similarity of the pages of a pair.
const VALUE: &[&str] = &["value"];
/// Name of the optional column with the measure of the value, which is one of the values of the
/// column `pairs.measure`.
const MEASURE: &[&str] = &["measure"];
/// Accepted names of the columns of a label.
const PAGE: &[&str] = &["doc_id", "url", "page"];
const LABEL: &[&str] = &["label", "cluster"];

/// Finds the similar pairs that the tables of a job specify, see [`super::given::similar_pairs`].
///
/// # Errors
/// Returns [`Error::Input`] for a table that is missing, is damaged, or has neither pairs nor
/// labels. Returns any error of the disk, and an error if the run has ended.
pub fn similar_pairs(net: &mut Net<'_>, crawl: &Crawl, job: &Job) -> Result<(SpillColumn<SimilarPair>, GivenCounts)> {
    let limits = &job.input.limits;
    let tables = net.once_per_process(|| foreign::tables(&job.pairs.from, "pairs", limits))?;
    let tables = tables.as_ref().as_ref().map_err(Error::clone)?;
    let (mut pair_tables, mut label_tables) = (Vec::new(), Vec::new());
    for table in tables {
        let tables = if has_pairs(table)? { &mut pair_tables } else { &mut label_tables };
        tables.push(table);
    }
    let [pairs, labels] = [pair_tables, label_tables].map(|tables| OwnParts::new(net, tables, limits));
    let expected_rows = pairs.expected_rows() + labels.expected_rows();
    let (pairs, labels) = (pairs.rows([A, B, VALUE, MEASURE], pair), labels.rows([PAGE, LABEL], label));
    of_rows(net, crawl, job.hamming.guard, expected_rows, pairs, labels)
}

/// True if a table has pairs, false if it has labels.
fn has_pairs(table: &ForeignTable) -> Result<bool> {
    let (has_pairs, has_labels) = (table.has(A) && table.has(B), table.has(PAGE) && table.has(LABEL));
    if !has_pairs && !has_labels {
        let reason = format!(
            "its columns are {}; a table of pairs needs one of {} and one of {}, and a table of labels one of {} \
            and one of {}",
            table.columns.join(", "),
            A.join(", "),
            B.join(", "),
            PAGE.join(", "),
            LABEL.join(", ")
        );
        return Err(Error::input(table.location.name(), reason));
    }
    Ok(has_pairs)
}

fn pair([a, b, value, measure]: [Option<String>; 4]) -> Option<GivenPair> {
    let value = value.map_or(Some(EQUAL_VALUE), |value| number(&value))?;
    let kind = PairKind::ALL.into_iter().find(|kind| measure.as_deref() == Some(kind.as_str()));
    let value = kind.map_or(value, |kind| kind.strength(value));
    Some(GivenPair { a: page(&a?)?, b: page(&b?)?, value })
}

fn label([page_name, label]: [Option<String>; 2]) -> Option<GivenLabel> {
    Some(GivenLabel { label: xxh3_64(label?.as_bytes()), page: page(&page_name?)? })
}

/// Returns the doc id in a field, or the doc id of the URL in it.
fn page(field: &str) -> Option<DocId> {
    field.parse().ok().or_else(|| Some(doc_id(CanonicalUrl::parse(field).ok()?.as_str())))
}

/// Parses an integer unchanged, or a fraction from 0 to 1 in millionths, rounded down.
fn number(field: &str) -> Option<u32> {
    field.parse().ok().or_else(|| {
        let fraction: f64 = field.parse().ok().filter(|fraction| (0.0..=1.0).contains(fraction))?;
        // A fraction of whole millionths is not always exact in binary.
        Some((fraction * 1e6 + 1e-6) as u32)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_whole_numbers_or_fractions_of_one() {
        assert_eq!(["7", "4294967295"].map(number), [Some(7), Some(u32::MAX)]);
        assert_eq!(
            ["0.0", "0.5", "1.0", "9e-1", "0.1234567"].map(number),
            [0, 500_000, 1_000_000, 900_000, 123_456].map(Some)
        );
        assert_eq!(["-1", "4294967296", "1.5", "-0.5", "NaN", "much", ""].map(number), [None; 7]);
        assert!((0..=1_000_000).all(|n| number(&format!("{:?}", f64::from(n) / 1e6)) == Some(n)));
    }

    #[test]
    fn a_field_is_a_doc_id_or_a_url() {
        let url = "http://a.example/x";
        assert_eq!(page("HTTP://a.example:80/x#top"), Some(doc_id(url)));
        assert_eq!(page(&doc_id(url).to_string()), Some(doc_id(url)));
        assert_eq!(["18446744073709551616", "-1", "a.example/x", "mailto:a@b"].map(page), [None; 4]);
    }

    #[test]
    fn value_of_a_runs_pair_grows_with_similarity() {
        let value_of = |measure: &str, value: &str| {
            let fields =
                ["1", "2", value, measure].map(|field| Some(field.to_string()).filter(|field| !field.is_empty()));
            pair(fields).map(|pair| pair.value)
        };
        assert_eq!(
            [value_of("overlap", "12"), value_of("hamming", "3"), value_of("hamming", "65")],
            [Some(12), Some(61), Some(0)]
        );
        assert_eq!(
            [value_of("exact", "0"), value_of("cosine", "12"), value_of("", "")],
            [Some(u32::MAX), Some(12), Some(EQUAL_VALUE)]
        );
    }
}
