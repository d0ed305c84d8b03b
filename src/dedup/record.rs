//! Records of a corpus: conversion of a line, or of a row of a table, into a record.

use std::borrow::Cow;

use parquet::data_type::ByteArray;

use super::batches::{CorpusRow, RecordBatch, lines};
use super::fields::FieldPurpose;
use super::order::OrderKey;
use super::settings::{DedupSettings, KeepRule};
use webtwin_job::RecordLimits;
use webtwin_pages::fetch_time;
use webtwin_pages::json_fields::{FieldQuery, Scalar, text_of_line, without_nan};
use webtwin_pages::record::{Reason, Refusal};

/// Required fields of a record.
#[derive(Debug)]
pub(crate) struct InputRecord<'t> {
    /// Text of the record.
    pub text: Cow<'t, str>,
    /// Id of the record, if there is one.
    pub id: Option<String>,
    /// Value that the keep rule compares.
    pub key: OrderKey,
    /// Values of the fields that records are counted by.
    pub values: Vec<Option<String>>,
}

/// Reason why a row is not a record.
#[derive(Debug)]
pub(crate) enum NoRecord {
    /// The line is blank.
    Blank,
    /// The row is rejected.
    Rejected(Refusal),
    /// The row already has a field that annotations would add.
    Annotated,
    /// The rest of the file from this row on cannot be decoded. Contains the reason and the number
    /// of lost bytes of the stored file.
    Lost(Refusal, u64),
}

/// Visitor of the rows of a batch, which receives the position of each row and the record or the
/// reason why it is none. It returns false to end the visit.
pub(crate) type RowVisitor<'v> =
    dyn FnMut(u64, Result<InputRecord<'_>, NoRecord>) -> webtwin_base::error::Result<bool> + 'v;

/// Passes the rows of a batch to `visit` until that returns false. The position of a row is the
/// offset of its line, or its number in a batch of a table. Returns the last value of `visit`.
///
/// # Errors
/// Returns any error of `visit`.
pub(crate) fn each(
    batch: RecordBatch,
    settings: &DedupSettings,
    query: &FieldQuery,
    visit: &mut RowVisitor<'_>,
) -> webtwin_base::error::Result<bool> {
    match batch {
        RecordBatch::Lines { mut offset, bytes } => {
            for line in lines(&bytes) {
                if !visit(offset, parse_line(line, settings, query, &mut None))? {
                    return Ok(false);
                }
                offset += line.len() as u64;
            }
            Ok(true)
        }
        RecordBatch::TooLong { offset, length } => {
            let refusal = (Reason::RecordTooLarge, too_long(length, &settings.limits));
            visit(offset, Err(NoRecord::Rejected(refusal)))
        }
        RecordBatch::Damaged { offset, reason, detail, lost_bytes } => {
            visit(offset, Err(NoRecord::Lost((reason, detail), lost_bytes)))
        }
        RecordBatch::Rows(rows) => {
            for (number, CorpusRow { text, id, key, values }) in (0..).zip(rows) {
                let text = text_of_row(text.as_ref(), &settings.limits).map_err(NoRecord::Rejected);
                if !visit(number, text.map(|text| InputRecord { text: text.into(), id, key, values }))? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }
}

/// Parses a record from a line of JSON. `repair` holds the line if it had to be repaired.
///
/// # Errors
/// Returns the reason why the line is not a record.
fn parse_line<'t>(
    line: &'t [u8],
    settings: &DedupSettings,
    query: &FieldQuery,
    repair: &'t mut Option<String>,
) -> Result<InputRecord<'t>, NoRecord> {
    let Some(text) = text_of_line(line) else { return Err(NoRecord::Blank) };
    // The line includes its end, so one more byte is allowed.
    if line.len() as u64 > settings.limits.record_bytes.saturating_add(1) {
        return Err(NoRecord::Rejected((Reason::RecordTooLarge, too_long(line.len() as u64, &settings.limits))));
    }
    let text = text.map_err(NoRecord::Rejected)?;
    let mut values = match query.find(text) {
        Ok(values) => values,
        Err(detail) => {
            // Python writes NaN, which is not JSON. The repair is tried only after a failure,
            // because it costs a copy of the line.
            *repair = without_nan(text);
            match repair.as_deref().map(|text| query.find(text)) {
                Some(Ok(values)) => values,
                _ => return Err(NoRecord::Rejected((Reason::BadJson, detail))),
            }
        }
    };
    if values.take(FieldPurpose::Reserved.number()).is_some() {
        return Err(NoRecord::Annotated);
    }
    let text = match values.take(FieldPurpose::Text.number()) {
        Some(text) => text.string(&settings.text_fields).map_err(NoRecord::Rejected)?,
        None => {
            return Err(NoRecord::Rejected((
                Reason::BadField,
                format!("no field {}; name the field of the text with --text-field", settings.text_fields.join(" or ")),
            )));
        }
    };
    let id = match values.take(FieldPurpose::Id.number()) {
        Some(Scalar::Text(id)) => Some(id.into_owned()),
        Some(Scalar::Whole(id)) => Some(id.to_string()),
        _ => None,
    };
    let is_time = matches!(settings.keep, KeepRule::Newest(_));
    let key = match values.take(FieldPurpose::Key.number()) {
        Some(Scalar::Text(time)) if is_time => fetch_time::parse(&time).map_or(OrderKey::None, OrderKey::Time),
        Some(Scalar::Whole(number)) if is_time => {
            i64::try_from(number).map_or(OrderKey::None, |number| OrderKey::Time(fetch_time::of_number(number)))
        }
        Some(Scalar::Real(number)) if is_time => OrderKey::Time(fetch_time::of_number(number as i64)),
        Some(Scalar::Whole(number)) => OrderKey::Number(number as f64),
        Some(Scalar::Real(number)) => OrderKey::Number(number),
        _ => OrderKey::None,
    };
    let value = |at: usize| values.take(FieldPurpose::Counted(at).number()).and_then(Scalar::into_text);
    let values = (0..settings.count_by.len()).map(value).collect();
    Ok(InputRecord { text, id, key, values })
}

fn text_of_row<'r>(text: Option<&'r ByteArray>, limits: &RecordLimits) -> Result<&'r str, Refusal> {
    let Some(text) = text else { return Err((Reason::BadField, "the text is null".into())) };
    if text.len() as u64 > limits.record_bytes {
        return Err((Reason::RecordTooLarge, too_long(text.len() as u64, limits)));
    }
    std::str::from_utf8(text.data()).map_err(|_| (Reason::NotUtf8, "the text is not valid UTF-8".into()))
}

/// Describes a record that exceeds the limit.
fn too_long(bytes: u64, limits: &RecordLimits) -> String {
    format!("the record has {bytes} bytes, but --max-record allows {} bytes", limits.record_bytes)
}
