//! What makes a line, or a row of a table, a record of a corpus.

use std::borrow::Cow;

use super::batches::Row;
use super::fields::Purpose;
use super::order::Key;
use super::settings::{Keep, Settings};
use webtwin_job::Limits;
use webtwin_pages::fetch_time;
use webtwin_pages::json_fields::{Scalar, Wanted, text_of_line, without_nan};
use webtwin_pages::record::{Reason, Refusal};

/// A record, as a line has it.
#[derive(Debug)]
pub(crate) struct LineRecord<'t> {
    /// The text.
    pub text: Cow<'t, str>,
    /// The id.
    pub id: Option<String>,
    /// What the rule for keeping compares.
    pub key: Key,
    /// Values of the fields that records are counted by.
    pub values: Vec<Option<String>>,
}

/// Why a line is no record.
#[derive(Debug)]
pub(crate) enum NoRecord {
    /// There is nothing on it.
    Blank,
    /// It is rejected, with the reason for people.
    Rejected(Reason, String),
    /// It already has a field that annotations would add.
    Annotated,
}

/// Reads a record from a line of JSON; `repaired` holds the line if it had to be repaired.
///
/// # Errors
/// Why the line is no record.
pub(crate) fn of_line<'t>(
    line: &'t [u8],
    settings: &Settings,
    wanted: &Wanted,
    repaired: &'t mut Option<String>,
) -> Result<LineRecord<'t>, NoRecord> {
    let Some(text) = text_of_line(line) else { return Err(NoRecord::Blank) };
    if line.len() as u64 > settings.limits.record_bytes.saturating_add(1) {
        return Err(NoRecord::Rejected(Reason::RecordTooLarge, too_long(line.len() as u64, &settings.limits)));
    }
    let rejected = |(reason, detail): Refusal| NoRecord::Rejected(reason, detail);
    let text = text.map_err(rejected)?;
    let mut found = match wanted.find(text) {
        Ok(found) => found,
        Err(detail) => {
            *repaired = without_nan(text);
            match repaired.as_deref().map(|text| wanted.find(text)) {
                Some(Ok(found)) => found,
                _ => return Err(NoRecord::Rejected(Reason::BadJson, detail)),
            }
        }
    };
    if found.take(Purpose::Taken.number()).is_some() {
        return Err(NoRecord::Annotated);
    }
    let text = match found.take(Purpose::Text.number()) {
        Some(text) => text.string(&settings.text_fields).map_err(rejected)?,
        None => return Err(rejected((Reason::BadField, format!("no field {}", settings.text_fields.join("|"))))),
    };
    let id = match found.take(Purpose::Id.number()) {
        Some(Scalar::Text(id)) => Some(id.into_owned()),
        Some(Scalar::Whole(id)) => Some(id.to_string()),
        _ => None,
    };
    let is_time = matches!(settings.keep, Keep::Newest(_));
    let key = match found.take(Purpose::Key.number()) {
        Some(Scalar::Text(time)) if is_time => fetch_time::parse(&time).map_or(Key::None, Key::Time),
        Some(Scalar::Whole(number)) if is_time => {
            i64::try_from(number).map_or(Key::None, |number| Key::Time(fetch_time::of_number(number)))
        }
        Some(Scalar::Real(number)) if is_time => Key::Time(fetch_time::of_number(number as i64)),
        Some(Scalar::Whole(number)) => Key::Number(number as f64),
        Some(Scalar::Real(number)) => Key::Number(number),
        _ => Key::None,
    };
    let value = |at: usize| found.take(Purpose::Counted(at).number()).and_then(Scalar::into_text);
    let values = (0..settings.count_by.len()).map(value).collect();
    Ok(LineRecord { text, id, key, values })
}

/// Returns the text of a row.
///
/// # Errors
/// Why the row is rejected, with the reason for people.
pub(crate) fn text_of_row<'r>(row: &'r Row, limits: &Limits) -> Result<&'r str, Refusal> {
    let Some(text) = &row.text else { return Err((Reason::BadField, "the text is null".into())) };
    if text.len() as u64 > limits.record_bytes {
        return Err((Reason::RecordTooLarge, too_long(text.len() as u64, limits)));
    }
    std::str::from_utf8(text.data()).map_err(|_| (Reason::NotUtf8, "the text is no UTF-8".into()))
}

/// Describes a record that is over the limit.
pub(crate) fn too_long(bytes: u64, limits: &Limits) -> String {
    format!("a record of {bytes} bytes; --max-record is {}", limits.record_bytes)
}
