//! Order of keeping: among duplicates, the record that comes first in this order is kept.
//!
//! Records of `against` come first, because they are already part of an existing corpus. The others
//! are ordered by the first glob of `prefer` that their file matches, then by the keep rule, and
//! then by their position in the input. Records without a value for the rule come last within the
//! same glob.

use std::cmp::Ordering;

use glob::Pattern;

use super::corpus::Corpus;
use super::inputs::CorpusFile;
use super::settings::{DedupSettings, KeepRule};
use webtwin_base::error::{Error, Result};

/// Value of a record that the keep rule compares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum OrderKey {
    /// No value that the rule can compare.
    None,
    /// Time in seconds since 1970.
    Time(i64),
    /// Number. Whole numbers beyond 2⁵³ are rounded.
    Number(f64),
}

/// Sort key of a record without a value for the rule.
pub(crate) const MISSING: u64 = u64::MAX;

/// Returns the sort key of a record. Smaller keys come first.
pub(crate) fn key(keep: &KeepRule, text: &str, id: Option<&str>, key: OrderKey) -> u64 {
    match (keep, key) {
        (KeepRule::First, _) => 0,
        (KeepRule::Longest, _) => u64::MAX - text.len() as u64,
        (KeepRule::Newest(_), OrderKey::Time(seconds)) => !ascending(seconds),
        (KeepRule::Max(_), OrderKey::Number(number)) => !number_key(number),
        (KeepRule::Min(_), OrderKey::Number(number)) => number_key(number),
        (KeepRule::SmallestId, _) => id.map_or(MISSING, id_key),
        _ => MISSING,
    }
}

fn ascending(number: i64) -> u64 {
    number as u64 ^ 1 << 63
}

/// Maps numbers to integers in the same order. Both zeros have the same value.
fn number_key(number: f64) -> u64 {
    let bits = (number + 0.0).to_bits() as i64;
    ascending(if bits < 0 { bits ^ i64::MAX } else { bits })
}

/// Bit that marks ids that are not whole numbers.
const NO_NUMBER: u64 = 1 << 63;

/// Returns the sort key of an id: the value of a whole number below 2⁶³ in canonical notation, or
/// the first seven bytes of any other id.
fn id_key(id: &str) -> u64 {
    match id.parse::<u64>() {
        Ok(number) if number < NO_NUMBER && number.to_string() == id => number,
        _ => {
            let mut bytes = [0; 8];
            let n_bytes = id.len().min(7);
            bytes[1..=n_bytes].copy_from_slice(&id.as_bytes()[..n_bytes]);
            NO_NUMBER | u64::from_be_bytes(bytes)
        }
    }
}

/// Order of keeping.
#[derive(Debug)]
pub struct Order {
    /// Number of records.
    pub records: u32,
    /// Records in order, and the place of each record; `None` if the order is that of the input.
    orders: Option<(Vec<u32>, Vec<u32>)>,
}

impl Order {
    /// Determines the order of the records of a corpus.
    ///
    /// # Errors
    /// Returns [`Error::Usage`] for an invalid glob, and any error of the disk with the ids.
    ///
    /// # Cost
    /// A sort, and 8 bytes for each record, unless the order is that of the input.
    pub fn determine(settings: &DedupSettings, corpus: &Corpus) -> Result<Order> {
        let records = corpus.count();
        if settings.keep == KeepRule::First && settings.prefer.is_empty() {
            return Ok(Order { records, orders: None });
        }
        let classes = classes(&settings.prefer, &corpus.files)?;
        let class_of = |number: u32| classes[corpus.batch_of(number).file as usize];
        let mut order: Vec<u32> = (0..records).collect();
        let mut failed = None;
        let first_own = corpus.against();
        order[first_own as usize..].sort_by(|&x, &y| {
            // The key of an id covers only its first bytes, so ties are decided by the whole ids.
            let ordering = class_of(x).cmp(&class_of(y)).then(corpus.record(x).key.cmp(&corpus.record(y).key));
            match settings.keep {
                KeepRule::SmallestId if ordering.is_eq() => match (corpus.id(x), corpus.id(y)) {
                    (Ok(x), Ok(y)) => x.cmp(&y),
                    (Err(error), _) | (_, Err(error)) => {
                        failed = Some(error);
                        Ordering::Equal
                    }
                },
                _ => ordering,
            }
        });
        if let Some(error) = failed {
            return Err(error);
        }
        let mut places = vec![0; order.len()];
        order.iter().zip(0..).for_each(|(&record, place)| places[record as usize] = place);
        Ok(Order { records, orders: Some((order, places)) })
    }

    /// Returns the record at a place.
    pub fn record(&self, place: u32) -> u32 {
        self.orders.as_ref().map_or(place, |(order, _)| order[place as usize])
    }

    /// Returns the place of a record.
    pub fn place(&self, record: u32) -> u32 {
        self.orders.as_ref().map_or(record, |(_, places)| places[record as usize])
    }
}

/// Returns, for each file, the number of the first glob that its name or path matches, or the
/// number of globs if none matches.
fn classes(wildcards: &[String], files: &[CorpusFile]) -> Result<Vec<usize>> {
    let pattern = |text: &String| {
        Pattern::new(text).map_err(|cause| Error::Usage(format!("--prefer {text}: not a valid glob: {cause}")))
    };
    let patterns = wildcards.iter().map(pattern).collect::<Result<Vec<Pattern>>>()?;
    let class = |file: &CorpusFile| {
        let names = [Some(file.name()), file.path.as_deref(), Some(file.location.file_name())];
        let matches = |pattern: &Pattern| names.iter().flatten().any(|name| pattern.matches(name));
        patterns.iter().position(matches).unwrap_or(patterns.len())
    };
    Ok(files.iter().map(class).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_order() {
        let numbers = [f64::MIN, -1.5, -1.0, -0.0, 1e-300, 0.5, 1.0, 1e300];
        assert!(numbers.windows(2).all(|pair| number_key(pair[0]) < number_key(pair[1])));
        assert_eq!(number_key(0.0), number_key(-0.0));
        assert!([i64::MIN, -1, 0, 1, i64::MAX].windows(2).all(|pair| ascending(pair[0]) < ascending(pair[1])));
    }

    #[test]
    fn ids_that_are_numbers_come_first_and_by_value() {
        let ids = ["0", "9", "10", "9223372036854775807", "007", "18446744073709551615", "a", "abcdefg"];
        assert!(ids.windows(2).all(|pair| id_key(pair[0]) < id_key(pair[1])), "{:?}", ids.map(id_key));
        assert_eq!(id_key("abcdefgh"), id_key("abcdefgi"));
    }

    #[test]
    fn each_rule_orders_best_first_and_unknown_last() {
        let field = || "n".to_string();
        assert!(
            key(&KeepRule::Longest, "long", None, OrderKey::None) < key(&KeepRule::Longest, "x", None, OrderKey::None)
        );
        let newest = KeepRule::Newest(vec![field()]);
        assert!(key(&newest, "", None, OrderKey::Time(7)) < key(&newest, "", None, OrderKey::Time(-7)));
        assert!(key(&newest, "", None, OrderKey::Time(i64::MIN + 1)) < key(&newest, "", None, OrderKey::None));
        assert!(
            key(&KeepRule::Max(field()), "", None, OrderKey::Number(2.0))
                < key(&KeepRule::Max(field()), "", None, OrderKey::Number(1.0))
        );
        assert!(
            key(&KeepRule::Min(field()), "", None, OrderKey::Number(1.0))
                < key(&KeepRule::Min(field()), "", None, OrderKey::Number(2.0))
        );
        assert!(
            key(&KeepRule::Min(field()), "", None, OrderKey::Number(f64::MAX))
                < key(&KeepRule::Min(field()), "", None, OrderKey::None)
        );
    }
}
