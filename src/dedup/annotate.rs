//! Annotation of records with the outcome of the deduplication, instead of their removal.

use super::corpus::Corpus;
use super::settings::DedupSettings;
use super::verdicts::Verdicts;
use webtwin_base::error::{Error, Result};

/// Suffixes of the names of the added fields.
const FIELDS: [&str; 3] = ["duplicate_of", "similarity", "cluster"];

/// Values of the fields that are added to a record.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RecordNote {
    /// Id of the record in favour of which this one would be removed.
    pub duplicate_of: Option<String>,
    /// Resemblance of the two records.
    pub similarity: Option<f64>,
    /// Id of the record that would be kept among all its duplicates; `None` if it has no
    /// duplicates.
    pub cluster: Option<String>,
}

impl RecordNote {
    /// Returns the note on a record.
    ///
    /// # Errors
    /// Returns any error of the disk with the ids.
    pub(crate) fn on(record: u32, corpus: &Corpus, verdicts: &Verdicts) -> Result<RecordNote> {
        Ok(match verdicts.removal(record) {
            Some(removal) => {
                let kept_id = Some(corpus.id(removal.kept_record)?);
                RecordNote { duplicate_of: kept_id.clone(), similarity: Some(removal.similarity), cluster: kept_id }
            }
            None => {
                let cluster = verdicts.has_copies(record).then(|| corpus.id(record)).transpose()?;
                RecordNote { duplicate_of: None, similarity: None, cluster }
            }
        })
    }
}

/// Returns the names of the added fields, if records are annotated.
pub(crate) fn names(settings: &DedupSettings) -> Option<[String; 3]> {
    settings.annotate.as_ref().map(|prefix| FIELDS.map(|name| format!("{prefix}{name}")))
}

/// Returns the error for a file that already has one of the fields.
pub(crate) fn existing_field_error(file: &str, offset: Option<u64>) -> Error {
    let place = offset.map_or(String::new(), |offset| format!("the record at byte {offset} "));
    Error::input(
        file,
        format!(
            "{place}already has a field {}; add --annotate-prefix, or remove these fields from the corpus",
            FIELDS.join(", ").replace(", cluster", " or cluster")
        ),
    )
}

/// Appends a note to a line as the last fields of its object. All other bytes stay unchanged.
///
/// The line must be an object with at least one field.
pub(crate) fn line(line: &[u8], names: &[String; 3], note: &RecordNote, output: &mut Vec<u8>) {
    let Some(end) = memchr::memrchr(b'}', line) else { return output.extend_from_slice(line) };
    output.extend_from_slice(&line[..end]);
    let values =
        [serde_json::json!(note.duplicate_of), serde_json::json!(note.similarity), serde_json::json!(note.cluster)];
    for (name, value) in names.iter().zip(values) {
        output.extend_from_slice(format!(",{}:{value}", serde_json::json!(name)).as_bytes());
    }
    output.extend_from_slice(&line[end..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotation_adds_fields_and_changes_no_other_byte() {
        let names = FIELDS.map(String::from);
        let annotated = |text: &str, note: &RecordNote| {
            let mut output = Vec::new();
            line(text.as_bytes(), &names, note, &mut output);
            String::from_utf8(output).unwrap()
        };
        let note =
            RecordNote { duplicate_of: Some("a\"b".into()), similarity: Some(0.75), cluster: Some("a\"b".into()) };
        assert_eq!(
            annotated("{ \"text\" : \"}\" }\r\n", &note),
            "{ \"text\" : \"}\" ,\"duplicate_of\":\"a\\\"b\",\"similarity\":0.75,\"cluster\":\"a\\\"b\"}\r\n"
        );
        let no_note = RecordNote { duplicate_of: None, similarity: None, cluster: None };
        assert_eq!(
            annotated("{\"text\":\"x\"}", &no_note),
            "{\"text\":\"x\",\"duplicate_of\":null,\"similarity\":null,\"cluster\":null}"
        );
    }
}
