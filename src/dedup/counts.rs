//! Counts of records by the values of fields, such as a language or a source.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::corpus::Corpus;
use super::verdicts::Verdicts;
use webtwin_base::error::{Error, Result};

/// Maximum number of values of a field, because counts are meant for fields with few values.
const MAX_VALUES: usize = 10_000;

/// Maximum length of a value in bytes. Longer values are truncated.
const VALUE_BYTES: usize = 256;

/// Number that represents the value of a record whose field is missing, null, a list or an object.
pub(crate) const NO_VALUE: u32 = u32::MAX;

/// Values of one field, numbered in the order of their first occurrence in a thread.
#[derive(Debug, Default)]
pub struct Values {
    names: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Values {
    /// Returns the number of a value, and assigns one to a new value.
    ///
    /// # Errors
    /// Returns [`Error::Usage`] if the field has too many values.
    pub fn number(&mut self, field: &str, value: Option<&str>) -> Result<u32> {
        let Some(value) = value else { return Ok(NO_VALUE) };
        let end = (0..=value.len().min(VALUE_BYTES)).rev().find(|&end| value.is_char_boundary(end));
        let value = &value[..end.unwrap_or(0)];
        if let Some(&number) = self.numbers.get(value) {
            return Ok(number);
        }
        let number = self.names.len();
        refuse_many(field, number + 1)?;
        self.names.push(value.to_string());
        self.numbers.insert(value.to_string(), number as u32);
        Ok(number as u32)
    }
}

fn refuse_many(field: &str, values: usize) -> Result<()> {
    match values > MAX_VALUES {
        true => Err(Error::Usage(format!(
            "--count-by {field}: the field has more than {MAX_VALUES} values; choose a field with fewer values"
        ))),
        false => Ok(()),
    }
}

/// Outcome of the records of the input with one value of a field.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ValueCounts {
    /// Value of the field; `None` for records without the field.
    pub value: Option<String>,
    /// Number of records kept.
    pub kept: u64,
    /// Number of records removed (or annotated as duplicates).
    pub removed: u64,
    /// Number of records removed by reason.
    pub removed_by: BTreeMap<&'static str, u64>,
    /// Total length of the texts of kept records, in bytes.
    pub kept_bytes: u64,
    /// Total length of the texts of removed records, in bytes.
    pub removed_bytes: u64,
}

/// Counts the records of the input by the values of each of `fields`. The values are in descending
/// order of frequency.
///
/// # Errors
/// Returns [`Error::Usage`] if a field has too many values.
///
/// # Cost
/// One pass over the records.
pub(crate) fn count(
    fields: &[String],
    corpus: &Corpus,
    verdicts: &Verdicts,
) -> Result<BTreeMap<String, Vec<ValueCounts>>> {
    let mut by_field = BTreeMap::new();
    for (field_number, field) in fields.iter().enumerate() {
        let mut counts_by_value: BTreeMap<Option<&str>, ValueCounts> = BTreeMap::new();
        let input_batches = corpus.batches.iter().filter(|batch| batch.file as usize >= corpus.n_against_files);
        for batch in input_batches {
            let names = &corpus.workers[batch.worker as usize].values[field_number].names;
            for (row, record) in batch.records.iter().enumerate() {
                let number = batch.values[row * fields.len() + field_number];
                let value = (number != NO_VALUE).then(|| names[number as usize].as_str());
                let counts = counts_by_value.entry(value).or_default();
                match verdicts.removal(batch.first + row as u32) {
                    None => {
                        counts.kept += 1;
                        counts.kept_bytes += u64::from(record.text_bytes);
                    }
                    Some(removal) => {
                        counts.removed += 1;
                        *counts.removed_by.entry(removal.why.as_str()).or_default() += 1;
                        counts.removed_bytes += u64::from(record.text_bytes);
                    }
                }
            }
            refuse_many(field, counts_by_value.len().saturating_sub(1))?;
        }
        let with_name =
            |(value, counts): (Option<&str>, ValueCounts)| ValueCounts { value: value.map(Into::into), ..counts };
        let mut counts: Vec<ValueCounts> = counts_by_value.into_iter().map(with_name).collect();
        counts.sort_by_key(|counts| std::cmp::Reverse(counts.kept + counts.removed));
        by_field.insert(field.clone(), counts);
    }
    Ok(by_field)
}
