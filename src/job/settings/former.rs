//! Settings of earlier builds that no longer exist.

use serde_json::Value;

/// Former settings, with the value in JSON that this build uses instead. A job with another value
/// cannot be run.
pub const FORMER_SETTINGS: [(&str, &str); 43] = [
    ("input.pdf", r#""text""#),
    ("input.postscript", r#""text""#),
    ("input.limits.head_bytes", "65536"),
    ("input.limits.ratio", "1000"),
    ("input.limits.encodings", "3"),
    ("links.redirects", "true"),
    ("links.refresh", "true"),
    ("links.canonical", "false"),
    ("overlap.doubt", "2"),
    ("overlap.guard", r#""neighbours""#),
    ("hamming.guard", r#""mutual-best""#),
    ("fingerprints.coder", r#""elias-fano""#),
    ("simhash.phrase", "3"),
    ("simhash.stop_words", r#""none""#),
    ("simhash.stemming", r#""none""#),
    ("simhash.weights", r#""count""#),
    ("simhash.idf", "false"),
    ("simhash.min_features", "8"),
    ("signatures.dims", "5"),
    ("signatures.seed", "1"),
    ("signatures.stop_words", r#""none""#),
    ("signatures.stemming", r#""none""#),
    ("signatures.weights", r#""count""#),
    ("signatures.unit_length", "false"),
    ("signatures.min_terms", "8"),
    ("signatures.children", r#""sum""#),
    ("signatures.damping", "0.001"),
    ("signatures.iterations", "3"),
    ("signatures.guard", r#""mutual-best""#),
    ("signatures.max_pairs", "50000000"),
    ("minhash.permutations", "128"),
    ("minhash.bands", "0"),
    ("minhash.rows", "0"),
    ("minhash.max_documents", "200"),
    ("minhash.guard", r#""neighbours""#),
    ("servers.min_shared", "10"),
    ("servers.nearly_all", "0.9"),
    ("servers.max_hosts", "500"),
    ("keep.prefix_scope", r#""collection""#),
    ("url_rules.min_support", "5"),
    ("url_rules.min_bound", "0.95"),
    ("study.min_characters", "450"),
    ("study.rest", "true"),
];

/// Returns the first former setting of a finished run whose value differs from that of this build.
pub(super) fn unknown_value(settings: &Value) -> Option<(&'static str, &Value)> {
    FORMER_SETTINGS.iter().find_map(|&(name, value)| {
        let value_in_job = settings.pointer(&format!("/{}", name.replace('.', "/")))?;
        let value: Value = serde_json::from_str(value).expect("the table has JSON");
        (*value_in_job != value).then_some((name, value_in_job))
    })
}
