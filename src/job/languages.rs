//! Languages that a job may name for stemming and stop words.

use rust_stemmers::Algorithm;

/// Languages with a stemmer, by ISO 639-1 code.
const STEMMERS: [(&str, Algorithm); 18] = [
    ("ar", Algorithm::Arabic),
    ("da", Algorithm::Danish),
    ("de", Algorithm::German),
    ("el", Algorithm::Greek),
    ("en", Algorithm::English),
    ("es", Algorithm::Spanish),
    ("fi", Algorithm::Finnish),
    ("fr", Algorithm::French),
    ("hu", Algorithm::Hungarian),
    ("it", Algorithm::Italian),
    ("nl", Algorithm::Dutch),
    ("no", Algorithm::Norwegian),
    ("pt", Algorithm::Portuguese),
    ("ro", Algorithm::Romanian),
    ("ru", Algorithm::Russian),
    ("sv", Algorithm::Swedish),
    ("ta", Algorithm::Tamil),
    ("tr", Algorithm::Turkish),
];

/// Value of the settings that disables stop words or stemming.
pub const NONE: &str = "none";

/// Returns the stemmer of a language, if there is one.
pub fn stemmer(language: &str) -> Option<Algorithm> {
    STEMMERS.iter().find(|(code, _)| *code == language).map(|&(_, algorithm)| algorithm)
}

/// Returns the stop words of a language by its ISO 639-1 code, if there is a list.
pub fn stop_words(language: &str) -> Option<&'static [&'static str]> {
    stop_words::lookup(language)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_known_by_their_codes() {
        assert!(stemmer("en").is_some() && stop_words("en").is_some() && stop_words("ja").is_some());
        assert!(stemmer(NONE).is_none() && stop_words(NONE).is_none() && stemmer("english").is_none());
    }
}
