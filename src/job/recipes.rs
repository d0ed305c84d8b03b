//! Names of recipes: how text is hashed, with a version. Equal names, equal fingerprints, simhashes and projections.
//!
//! They enter the digest of a job and every manifest. Who changes what a recipe gives changes its version here.

use super::languages::NONE;
use super::settings::{Chunks, Input, Minhash, Printed, Signatures, Simhash, Unit, Weights};
use super::shingling::Shingling;

/// True if this build has the cargo feature `pdf`.
pub const READS_PDF: bool = cfg!(feature = "pdf");

impl Input {
    /// Name and version of how a PDF becomes text, as written into every manifest; `None` where none does, because of
    /// the job or of the build.
    pub fn pdf_recipe(&self) -> Option<String> {
        (READS_PDF && self.pdf == Printed::Text).then(|| "pdf-extract-0.12-pages-v1".to_owned())
    }
}

impl Chunks {
    /// Name and version, as written into every manifest.
    pub fn recipe(&self) -> String {
        let Chunks { unit, count, sliding, wrap, bits, min_text } = *self;
        let named = match unit {
            Unit::Document => "document",
            Unit::Lines => "lines",
            Unit::Sentences => "sentences",
            Unit::Paragraphs => "paragraphs",
            Unit::Words => "words",
            Unit::ShingleParagraphs => "shingle-paragraphs",
        };
        let sliding = if sliding { "-sliding" } else { "" };
        // Version 2 wraps by columns, and text without spaces.
        let (wrap, version) = match wrap > 0 && unit == Unit::Lines {
            true => (format!("-wrap{wrap}"), 2),
            false => (String::new(), 1),
        };
        let min_text = if min_text > 0 { format!("-min{min_text}-or-bytes") } else { String::new() };
        format!("{named}-{count}{sliding}{wrap}{min_text}-xxh3-{bits}-v{version}")
    }
}

impl Simhash {
    /// Name and version, as written into every manifest.
    pub fn recipe(&self) -> String {
        let Simhash { bits, phrase, stop_words, stemming, weights, idf, min_features } = self;
        if *bits == 0 {
            return "none".into();
        }
        let weighed = weighed(stop_words, stemming, *weights);
        let idf = if *idf { "-idf" } else { "" };
        format!("terms-{phrase}-{FOLDED}{weighed}{idf}-min{min_features}-xxh3-{bits}-v2")
    }
}

impl Signatures {
    /// Name and version, as written into every manifest.
    pub fn recipe(&self) -> String {
        let Signatures { dims, seed, stop_words, stemming, weights, unit_length, min_terms, .. } = self;
        let weighed = weighed(stop_words, stemming, *weights);
        let unit = if *unit_length { "-unit" } else { "" };
        format!("rp-terms-{FOLDED}{weighed}{unit}-min{min_terms}-xxh3-{dims}-seed{seed}-splitmix64-v2")
    }
}

impl Minhash {
    /// Name and version of the shingles and of their permutations, as written into every manifest.
    pub fn recipe(&self) -> String {
        self.shingle.recipe()
    }
}

impl Shingling {
    /// Name and version of the shingles and of their permutations.
    pub fn recipe(&self) -> String {
        let (unit, count, text) = match self {
            Shingling::Words(count) => ("words", count, FOLDED),
            Shingling::Tokens(count) => ("tokens", count, "nfkc"),
            Shingling::Chars(count) => ("chars", count, FOLDED),
        };
        format!("shingles-{unit}-{count}-{text}-xxh3-32-minima-xor-multiply-v2")
    }
}

/// Name of the form that words and characters are compared in (`text::fold`).
const FOLDED: &str = "nfkc.fold";

/// How words become weighted features: `[-stop.LANG][-stem.LANG]-WEIGHTS`.
fn weighed(stop_words: &str, stemming: &str, weights: Weights) -> String {
    let stop = if stop_words == NONE { String::new() } else { format!("-stop.{stop_words}") };
    let stem = if stemming == NONE { String::new() } else { format!("-stem.{stemming}") };
    let weights = match weights {
        Weights::Count => "count",
        Weights::Log => "log",
        Weights::Once => "once",
    };
    format!("{stop}{stem}-{weights}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Job;

    #[test]
    fn names_of_chunks_tell_every_setting_that_changes_a_fingerprint() {
        let chunks = Chunks { unit: Unit::Lines, count: 4, sliding: true, wrap: 80, bits: 32, min_text: 64 };
        assert_eq!(chunks.recipe(), "lines-4-sliding-wrap80-min64-or-bytes-xxh3-32-v2");
        assert_eq!(Chunks { wrap: 0, ..chunks }.recipe(), "lines-4-sliding-min64-or-bytes-xxh3-32-v1");
    }

    #[test]
    fn names_of_simhashes_tell_every_setting_that_changes_one() {
        let plain = Simhash { phrase: 2, min_features: 4, weights: Weights::Count, ..Job::default().simhash };
        assert_eq!(plain.recipe(), "terms-2-nfkc.fold-count-min4-xxh3-64-v2");
        let (stop_words, stemming) = ("en".into(), "de".into());
        let all = Simhash { bits: 32, phrase: 3, idf: true, weights: Weights::Log, stop_words, stemming, ..plain };
        assert_eq!(all.recipe(), "terms-3-nfkc.fold-stop.en-stem.de-log-idf-min4-xxh3-32-v2");
        assert_eq!(Simhash { bits: 0, ..all }.recipe(), "none");
    }

    #[test]
    fn names_of_signatures_tell_every_setting_that_changes_a_projection() {
        let paper = Signatures { dims: 5, seed: 0, weights: Weights::Count, min_terms: 1, ..Job::default().signatures };
        let plain = Signatures { unit_length: false, ..paper };
        assert_eq!(plain.recipe(), "rp-terms-nfkc.fold-count-min1-xxh3-5-seed0-splitmix64-v2");
        let (stop_words, stemming) = ("en".into(), "de".into());
        let of_terms = Signatures { stop_words, stemming, weights: Weights::Log, unit_length: true, ..plain };
        let all = Signatures { dims: 8, seed: 3, ..of_terms };
        assert_eq!(all.recipe(), "rp-terms-nfkc.fold-stop.en-stem.de-log-unit-min1-xxh3-8-seed3-splitmix64-v2");
    }

    #[test]
    fn names_of_shingles_tell_every_setting_that_changes_one() {
        assert_eq!(Shingling::Tokens(5).recipe(), "shingles-tokens-5-nfkc-xxh3-32-minima-xor-multiply-v2");
        let shingles = Minhash { shingle: Shingling::Chars(20), ..Job::default().minhash };
        assert_eq!(shingles.recipe(), "shingles-chars-20-nfkc.fold-xxh3-32-minima-xor-multiply-v2");
    }
}
