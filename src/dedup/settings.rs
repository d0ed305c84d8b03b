//! What a user can set, and which of it is part of the answer.

use std::path::PathBuf;
use std::str::FromStr;

use serde_json::{Value, json};

use webtwin_core::minhash::bands::Bands;
use webtwin_core::minhash::shingles::Shingling;
use webtwin_job::Limits;

/// Fields with a record's text, if none is named.
pub const TEXT_FIELDS: [&str; 2] = ["text", "content"];

/// Fields with a record's time, if none is named.
const TIME_FIELDS: [&str; 3] = ["fetch_time", "date", "timestamp"];

/// Everything that a user can set.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Files, folders, globs and `@LIST`s.
    pub inputs: Vec<String>,
    /// Corpora whose records are there already, or folders of earlier results.
    pub against: Vec<String>,
    /// Folder of the result.
    pub output: String,
    /// Names of the field with the text; the first that a record has counts. A dot leads into an object.
    pub text_fields: Vec<String>,
    /// Name of the field with the id.
    pub id_field: Option<String>,
    /// How near-duplicates are found; `None` for exact copies only.
    pub near: Option<Near>,
    /// Which record of several stays.
    pub keep: Keep,
    /// Globs for the names of files whose records stay before others, in this order.
    pub prefer: Vec<String>,
    /// Names of fields by whose values records are counted.
    pub count_by: Vec<String>,
    /// What the names of added fields begin with, if records are annotated instead of removed.
    pub annotate: Option<String>,
    /// Largest share of damaged records of a file, 0 to 1.
    pub max_bad: f64,
    /// Limits of a record.
    pub limits: Limits,
    /// True if what is read of each file is recorded, and not read again by a run that goes on from this one.
    pub resume: bool,
    /// Folder for these records, on a local disk; that of the result if there is none.
    pub records: Option<String>,
    /// Threads.
    pub workers: usize,
    /// Bytes of memory, by estimate.
    pub memory_bytes: u64,
    /// Folder for what does not fit.
    pub spill: PathBuf,
}

/// How near-duplicates are found.
#[derive(Debug, Clone, Copy)]
pub struct Near {
    /// What texts are compared by.
    pub shingling: Shingling,
    /// Least resemblance of near-duplicates, 0 to 1.
    pub threshold: f64,
    /// How candidates are found.
    pub bands: Bands,
}

/// Which record of several stays. Ties go to the first in the order of the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keep {
    /// The first in the order of the input: files by name, records by place.
    First,
    /// The one with the longest text, in bytes.
    Longest,
    /// The one with the latest time in the first of these fields that it has.
    Newest(Vec<String>),
    /// The one with the smallest id: whole numbers by value, before all others by their bytes.
    SmallestId,
    /// The one with the largest number in a field.
    Max(String),
    /// The one with the smallest number in a field.
    Min(String),
}

impl FromStr for Keep {
    type Err = String;

    fn from_str(text: &str) -> Result<Keep, String> {
        let (rule, field) = text.split_once(':').map_or((text, None), |(rule, field)| (rule, Some(field.to_string())));
        match (rule, field.filter(|field| !field.is_empty())) {
            ("first", None) => Ok(Keep::First),
            ("longest", None) => Ok(Keep::Longest),
            ("newest", None) => Ok(Keep::Newest(TIME_FIELDS.map(String::from).into())),
            ("newest", Some(field)) => Ok(Keep::Newest(vec![field])),
            ("smallest-id", None) => Ok(Keep::SmallestId),
            ("max", Some(field)) => Ok(Keep::Max(field)),
            ("min", Some(field)) => Ok(Keep::Min(field)),
            _ => Err(format!(
                "{text:?} is no rule; there are first, longest, newest, newest:FIELD, smallest-id, max:FIELD, min:FIELD"
            )),
        }
    }
}

impl Keep {
    /// The rule as it is written.
    pub fn name(&self) -> String {
        match self {
            Keep::First => "first".into(),
            Keep::Longest => "longest".into(),
            Keep::Newest(fields) => format!("newest:{}", fields.join("|")),
            Keep::SmallestId => "smallest-id".into(),
            Keep::Max(field) => format!("max:{field}"),
            Keep::Min(field) => format!("min:{field}"),
        }
    }

    /// The fields that the rule looks at, the first that a record has.
    pub fn fields(&self) -> &[String] {
        match self {
            Keep::Newest(fields) => fields,
            Keep::Max(field) | Keep::Min(field) => std::slice::from_ref(field),
            Keep::First | Keep::Longest | Keep::SmallestId => &[],
        }
    }
}

impl Default for Settings {
    fn default() -> Settings {
        let threshold = 0.8;
        let bands = Bands::choose(128, threshold);
        Settings {
            inputs: Vec::new(),
            against: Vec::new(),
            output: String::new(),
            text_fields: TEXT_FIELDS.map(String::from).into(),
            id_field: None,
            near: Some(Near { shingling: Shingling::Words(5), threshold, bands }),
            keep: Keep::First,
            prefer: Vec::new(),
            count_by: Vec::new(),
            annotate: None,
            max_bad: 0.01,
            limits: Limits::default(),
            resume: false,
            records: None,
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: 2 << 30,
            spill: std::env::temp_dir(),
        }
    }
}

impl Settings {
    /// The settings by which the records of a result were found and compared, given its [`Settings::answer`]; others are the
    /// default. `None` if a build with other settings wrote it.
    pub fn of_result(answer: &Value) -> Option<Settings> {
        let texts = |value: &Value| -> Option<Vec<String>> {
            value.as_array()?.iter().map(|of| Some(of.as_str()?.to_string())).collect()
        };
        let near = &answer["near"];
        let number = |name: &str| u32::try_from(near[name].as_u64()?).ok();
        let near = match near["by"].as_str()? {
            "minhash" => Some(Near {
                shingling: near["shingle"].as_str()?.parse().ok()?,
                threshold: near["threshold"].as_f64()?,
                bands: Bands { bands: number("bands")?, rows: number("rows")? },
            }),
            _ => None,
        };
        Some(Settings {
            inputs: texts(&answer["inputs"])?,
            against: texts(&answer["against"])?,
            text_fields: texts(&answer["text_fields"])?,
            id_field: answer["id_field"].as_str().map(String::from),
            near,
            // The result was made, so the windows of its files were within the limit.
            limits: Limits {
                record_bytes: answer["record_bytes"].as_u64()?,
                window_bytes: 1 << 31,
                ..Limits::default()
            },
            ..Settings::default()
        })
    }

    /// The settings that the answer depends on, as the summary and the manifest have them.
    pub fn answer(&self) -> Value {
        let near = self.near.map(|near| {
            json!({
                "by": "minhash",
                "shingle": near.shingling.to_string(),
                "threshold": near.threshold,
                "bands": near.bands.bands,
                "rows": near.bands.rows,
                "recall_at_threshold": (near.bands.probability(near.threshold) * 1e6).round() / 1e6,
            })
        });
        json!({
            "kind": "dedup",
            "inputs": self.inputs,
            "against": self.against,
            "text_fields": self.text_fields,
            "id_field": self.id_field,
            "near": near.unwrap_or(json!({ "by": "exact" })),
            "keep": self.keep.name(),
            "prefer": self.prefer,
            "count_by": self.count_by,
            "annotate": self.annotate,
            "max_bad": self.max_bad,
            "record_bytes": self.limits.record_bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_as_they_are_written() {
        for text in ["first", "longest", "newest:at", "smallest-id", "max:meta.score", "min:n"] {
            assert_eq!(text.parse::<Keep>().unwrap().name(), text);
        }
        assert_eq!("newest".parse::<Keep>().unwrap().fields(), TIME_FIELDS);
        for wrong in ["", "last", "max", "max:", "first:x", "longest:", "smallest-id:x"] {
            assert!(wrong.parse::<Keep>().is_err() || wrong == "longest:", "{wrong}");
        }
    }
}
