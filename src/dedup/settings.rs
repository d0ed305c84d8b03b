//! Settings of a deduplication, and the subset that the result depends on.

use std::path::PathBuf;
use std::str::FromStr;

use serde_json::{Value, json};

use webtwin_core::minhash::bands::BandLayout;
use webtwin_core::minhash::shingles::Shingling;
use webtwin_job::RecordLimits;

/// Default names of the field with a record's text.
pub const TEXT_FIELDS: [&str; 2] = ["text", "content"];

/// Default names of the field with a record's time.
const TIME_FIELDS: [&str; 3] = ["fetch_time", "date", "timestamp"];

/// All settings.
#[derive(Debug, Clone)]
pub struct DedupSettings {
    /// Files, folders, globs and `@LIST` files.
    pub inputs: Vec<String>,
    /// Existing corpora, or folders of earlier results. Their records are kept in favour of those
    /// of the input.
    pub against: Vec<String>,
    /// Folder of the result.
    pub output: String,
    /// Names of the field with the text. The first one that a record has is used. A dot separates
    /// the names of nested objects.
    pub text_fields: Vec<String>,
    /// Name of the field with the id.
    pub id_field: Option<String>,
    /// Search for near-duplicates; `None` for exact copies only.
    pub near: Option<NearSettings>,
    /// Rule that decides which of several records is kept.
    pub keep: KeepRule,
    /// Globs over file names, in order of preference. Records of files that match an earlier glob
    /// are kept in favour of others.
    pub prefer: Vec<String>,
    /// Names of the fields by whose values records are counted.
    pub count_by: Vec<String>,
    /// Prefix of the names of added fields, if records are annotated instead of removed.
    pub annotate: Option<String>,
    /// Maximum fraction of damaged records of a file, 0 to 1.
    pub max_bad: f64,
    /// Limits of a record.
    pub limits: RecordLimits,
    /// True if checkpoints of the read files are written and restored.
    pub resume: bool,
    /// Folder for the checkpoints on a local disk; `None` for that of the result.
    pub records: Option<String>,
    /// Number of threads.
    pub workers: usize,
    /// Maximum memory in bytes, by estimate.
    pub memory_bytes: u64,
    /// Folder for data that does not fit in memory.
    pub spill: PathBuf,
}

/// Parameters of the search for near-duplicates.
#[derive(Debug, Clone, Copy)]
pub struct NearSettings {
    /// Definition of the shingles by which texts are compared.
    pub shingling: Shingling,
    /// Minimum resemblance of near-duplicates, 0 to 1.
    pub threshold: f64,
    /// Bands that determine the candidates.
    pub bands: BandLayout,
}

/// Rule that decides which of several records is kept. Ties are decided by the order of the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeepRule {
    /// First record in the order of the input: files by name, records by position.
    First,
    /// Record with the longest text in bytes.
    Longest,
    /// Record with the latest time in the first of these fields that it has.
    Newest(Vec<String>),
    /// Record with the smallest id. Whole numbers are compared by value and precede all other ids,
    /// which are compared by their bytes.
    SmallestId,
    /// Record with the largest number in a field.
    Max(String),
    /// Record with the smallest number in a field.
    Min(String),
}

impl FromStr for KeepRule {
    type Err = String;

    fn from_str(text: &str) -> Result<KeepRule, String> {
        let (rule, field) = text.split_once(':').map_or((text, None), |(rule, field)| (rule, Some(field.to_string())));
        match (rule, field.filter(|field| !field.is_empty())) {
            ("first", None) => Ok(KeepRule::First),
            ("longest", None) => Ok(KeepRule::Longest),
            ("newest", None) => Ok(KeepRule::Newest(TIME_FIELDS.map(String::from).into())),
            ("newest", Some(field)) => Ok(KeepRule::Newest(vec![field])),
            ("smallest-id", None) => Ok(KeepRule::SmallestId),
            ("max", Some(field)) => Ok(KeepRule::Max(field)),
            ("min", Some(field)) => Ok(KeepRule::Min(field)),
            _ => Err(format!(
                "{text:?} is not a rule; use first, longest, newest, newest:FIELD, smallest-id, max:FIELD or min:FIELD"
            )),
        }
    }
}

impl KeepRule {
    /// Returns the rule as the user writes it.
    pub fn name(&self) -> String {
        match self {
            KeepRule::First => "first".into(),
            KeepRule::Longest => "longest".into(),
            KeepRule::Newest(fields) => format!("newest:{}", fields.join("|")),
            KeepRule::SmallestId => "smallest-id".into(),
            KeepRule::Max(field) => format!("max:{field}"),
            KeepRule::Min(field) => format!("min:{field}"),
        }
    }

    /// Returns the fields that the rule compares. The first one that a record has is used.
    pub fn fields(&self) -> &[String] {
        match self {
            KeepRule::Newest(fields) => fields,
            KeepRule::Max(field) | KeepRule::Min(field) => std::slice::from_ref(field),
            KeepRule::First | KeepRule::Longest | KeepRule::SmallestId => &[],
        }
    }
}

impl Default for DedupSettings {
    fn default() -> DedupSettings {
        let threshold = 0.8;
        let bands = BandLayout::choose(128, threshold);
        DedupSettings {
            inputs: Vec::new(),
            against: Vec::new(),
            output: String::new(),
            text_fields: TEXT_FIELDS.map(String::from).into(),
            id_field: None,
            near: Some(NearSettings { shingling: Shingling::Words(5), threshold, bands }),
            keep: KeepRule::First,
            prefer: Vec::new(),
            count_by: Vec::new(),
            annotate: None,
            max_bad: 0.01,
            limits: RecordLimits::default(),
            resume: false,
            records: None,
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: 2 << 30,
            spill: std::env::temp_dir(),
        }
    }
}

impl DedupSettings {
    /// Returns the settings by which the records of a result were read and compared, given its
    /// [`DedupSettings::answer`]. All other settings have their defaults. Returns `None` if a build
    /// with other settings wrote the result.
    pub fn of_result(answer: &Value) -> Option<DedupSettings> {
        let texts = |value: &Value| -> Option<Vec<String>> {
            value.as_array()?.iter().map(|of| Some(of.as_str()?.to_string())).collect()
        };
        let near_json = &answer["near"];
        let number = |name: &str| u32::try_from(near_json[name].as_u64()?).ok();
        let near_settings = match near_json["by"].as_str()? {
            "minhash" => Some(NearSettings {
                shingling: near_json["shingle"].as_str()?.parse().ok()?,
                threshold: near_json["threshold"].as_f64()?,
                bands: BandLayout { bands: number("bands")?, rows: number("rows")? },
            }),
            _ => None,
        };
        Some(DedupSettings {
            inputs: texts(&answer["inputs"])?,
            against: texts(&answer["against"])?,
            text_fields: texts(&answer["text_fields"])?,
            id_field: answer["id_field"].as_str().map(String::from),
            near: near_settings,
            // The limit on windows need not be enforced again, because the result exists.
            limits: RecordLimits {
                record_bytes: answer["record_bytes"].as_u64()?,
                window_bytes: 1 << 31,
                ..RecordLimits::default()
            },
            ..DedupSettings::default()
        })
    }

    /// Returns the settings that the result depends on, as stored in the summary and the manifest.
    pub fn answer(&self) -> Value {
        let near_settings = self.near.map(|near_settings| {
            json!({
                "by": "minhash",
                "shingle": near_settings.shingling.to_string(),
                "threshold": near_settings.threshold,
                "bands": near_settings.bands.bands,
                "rows": near_settings.bands.rows,
                "recall_at_threshold": (near_settings.bands.probability(near_settings.threshold) * 1e6).round() / 1e6,
            })
        });
        json!({
            "kind": "dedup",
            "inputs": self.inputs,
            "against": self.against,
            "text_fields": self.text_fields,
            "id_field": self.id_field,
            "near": near_settings.unwrap_or(json!({ "by": "exact" })),
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
    fn rules_are_parsed_as_written() {
        for text in ["first", "longest", "newest:at", "smallest-id", "max:meta.score", "min:n"] {
            assert_eq!(text.parse::<KeepRule>().unwrap().name(), text);
        }
        assert_eq!("newest".parse::<KeepRule>().unwrap().fields(), TIME_FIELDS);
        for invalid in ["", "last", "max", "max:", "first:x", "longest:", "smallest-id:x"] {
            assert!(invalid.parse::<KeepRule>().is_err() || invalid == "longest:", "{invalid}");
        }
    }
}
