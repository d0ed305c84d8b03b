//! Fields of a JSON object that are extracted, by purpose.

use super::annotate;
use super::settings::DedupSettings;
use webtwin_pages::json_fields::{FieldQuery, PURPOSES};

/// Purpose of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldPurpose {
    /// Field with the text.
    Text,
    /// Field with the id.
    Id,
    /// Field that the keep rule compares.
    Key,
    /// Field that must not exist.
    Reserved,
    /// Field that records are counted by, with its number.
    Counted(usize),
}

/// Maximum number of fields that records are counted by.
pub const MAX_COUNTED_FIELDS: usize = PURPOSES - 4;

impl FieldPurpose {
    /// Returns the number of the purpose.
    pub(crate) fn number(self) -> usize {
        match self {
            FieldPurpose::Text => 0,
            FieldPurpose::Id => 1,
            FieldPurpose::Key => 2,
            FieldPurpose::Reserved => 3,
            FieldPurpose::Counted(number) => 4 + number,
        }
    }
}

/// Returns the fields that the settings require.
pub(crate) fn required_fields(settings: &DedupSettings) -> FieldQuery {
    let text = settings.text_fields.iter().map(|name| (FieldPurpose::Text, name.clone()));
    let id = settings.id_field.iter().map(|name| (FieldPurpose::Id, name.clone()));
    let key = settings.keep.fields().iter().map(|name| (FieldPurpose::Key, name.clone()));
    let counted_fields =
        settings.count_by.iter().enumerate().map(|(at, name)| (FieldPurpose::Counted(at), name.clone()));
    let taken_fields = annotate::names(settings).into_iter().flatten().map(|name| (FieldPurpose::Reserved, name));
    let fields: Vec<(FieldPurpose, String)> =
        text.chain(id).chain(key).chain(counted_fields).chain(taken_fields).collect();
    FieldQuery::new(fields.iter().map(|(purpose, name)| (purpose.number(), name.as_str())))
}
