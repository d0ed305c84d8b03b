//! Fields of a JSON object that are extracted, by purpose.

use super::annotate;
use super::settings::Settings;
use webtwin_pages::json_fields::{PURPOSES, Wanted};

/// Purpose of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Field with the text.
    Text,
    /// Field with the id.
    Id,
    /// Field that the keep rule compares.
    Key,
    /// Field that must not exist.
    Taken,
    /// Field that records are counted by, with its number.
    Counted(usize),
}

/// Maximum number of fields that records are counted by.
pub const MOST_COUNTED: usize = PURPOSES - 4;

impl Purpose {
    /// Returns the number of the purpose.
    pub(crate) fn number(self) -> usize {
        match self {
            Purpose::Text => 0,
            Purpose::Id => 1,
            Purpose::Key => 2,
            Purpose::Taken => 3,
            Purpose::Counted(number) => 4 + number,
        }
    }
}

/// Returns the fields that the settings require.
pub(crate) fn wanted(settings: &Settings) -> Wanted {
    let text = settings.text_fields.iter().map(|name| (Purpose::Text, name.clone()));
    let id = settings.id_field.iter().map(|name| (Purpose::Id, name.clone()));
    let key = settings.keep.fields().iter().map(|name| (Purpose::Key, name.clone()));
    let counted = settings.count_by.iter().enumerate().map(|(at, name)| (Purpose::Counted(at), name.clone()));
    let taken = annotate::names(settings).into_iter().flatten().map(|name| (Purpose::Taken, name));
    let all: Vec<(Purpose, String)> = text.chain(id).chain(key).chain(counted).chain(taken).collect();
    Wanted::new(all.iter().map(|(purpose, name)| (purpose.number(), name.as_str())))
}
