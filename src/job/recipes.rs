//! Names of recipes. A name identifies a way of hashing text and its version: equal names give
//! equal fingerprints, simhashes and projections.
//!
//! The names are part of the digest of a job and of every manifest. A change of the output of a
//! recipe requires a new version here.

use super::languages::NONE;
use super::settings::{
    ChunkSettings, FeatureRecipe, InputSettings, Minhash, PrintedFormats, Signatures, Simhash, Unit, VectorRecipe,
    Weights,
};
use super::shingling::Shingling;

/// True if this build has the cargo feature `pdf`.
pub const READS_PDF: bool = cfg!(feature = "pdf");

impl InputSettings {
    /// Returns the name and version of the conversion of PDF to text, as stored in manifests.
    /// Returns `None` if the job or the build does not convert PDF.
    pub fn pdf_recipe(&self) -> Option<String> {
        (READS_PDF && self.printed != PrintedFormats::Skip).then(|| "pdf-extract-0.12-pages-v1".to_owned())
    }
}

impl ChunkSettings {
    /// Returns the name and version of the recipe, as stored in manifests.
    pub fn recipe(&self) -> String {
        let ChunkSettings { unit, count, sliding, wrap, bits, min_text } = *self;
        let unit_name = match unit {
            Unit::Document => "document",
            Unit::Lines => "lines",
            Unit::Sentences => "sentences",
            Unit::Paragraphs => "paragraphs",
            Unit::Words => "words",
            Unit::ShingleParagraphs => "shingle-paragraphs",
        };
        let sliding = if sliding { "-sliding" } else { "" };
        // Version 2 wraps by display columns, and also wraps text without spaces.
        let (wrap, version) = match wrap > 0 && unit == Unit::Lines {
            true => (format!("-wrap{wrap}"), 2),
            false => (String::new(), 1),
        };
        let min_text = if min_text > 0 { format!("-min{min_text}-or-bytes") } else { String::new() };
        format!("{unit_name}-{count}{sliding}{wrap}{min_text}-xxh3-{bits}-v{version}")
    }
}

impl Simhash {
    /// Returns the name and version of the recipe, as stored in manifests.
    pub fn recipe(&self) -> String {
        let Simhash { bits, features: FeatureRecipe { phrase, stop_words, stemming, weights, idf, least } } = self;
        if *bits == 0 {
            return "none".into();
        }
        let weighed = weighed(stop_words, stemming, *weights);
        let idf = if *idf { "-idf" } else { "" };
        format!("terms-{phrase}-{NORMAL_FORM}{weighed}{idf}-min{least}-xxh3-{bits}-v2")
    }
}

impl Signatures {
    /// Returns the name and version of the recipe, as stored in manifests.
    pub fn recipe(&self) -> String {
        let VectorRecipe { dims, seed, stop_words, stemming, weights, unit_length, least, .. } = &self.vectors;
        let weighed = weighed(stop_words, stemming, *weights);
        let unit = if *unit_length { "-unit" } else { "" };
        format!("rp-terms-{NORMAL_FORM}{weighed}{unit}-min{least}-xxh3-{dims}-seed{seed}-splitmix64-v2")
    }
}

impl Minhash {
    /// Returns the name and version of the shingles and of their permutations, as stored in
    /// manifests.
    pub fn recipe(&self) -> String {
        self.shingle.recipe()
    }
}

impl Shingling {
    /// Returns the name and version of the shingles and of their permutations.
    pub fn recipe(&self) -> String {
        let (unit, count, text) = match self {
            Shingling::Words(count) => ("words", count, NORMAL_FORM),
            Shingling::Tokens(count) => ("tokens", count, "nfkc"),
            Shingling::Chars(count) => ("chars", count, NORMAL_FORM),
        };
        format!("shingles-{unit}-{count}-{text}-xxh3-32-minima-xor-multiply-v2")
    }
}

/// Name of the normal form in which words and characters are compared (`text::fold`).
const NORMAL_FORM: &str = "nfkc.fold";

/// Returns the part of a recipe name that describes the weighting of words:
/// `[-stop.LANG][-stem.LANG]-WEIGHTS`.
fn weighed(stop_words: &str, stemming: &str, weights: Weights) -> String {
    let stop = if stop_words == NONE { String::new() } else { format!("-stop.{stop_words}") };
    let stem = if stemming == NONE { String::new() } else { format!("-stem.{stemming}") };
    format!("{stop}{stem}-{}", weights.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Job;

    #[test]
    fn names_of_chunks_contain_every_setting_that_changes_a_fingerprint() {
        let chunks = ChunkSettings { unit: Unit::Lines, count: 4, sliding: true, wrap: 80, bits: 32, min_text: 64 };
        assert_eq!(chunks.recipe(), "lines-4-sliding-wrap80-min64-or-bytes-xxh3-32-v2");
        assert_eq!(ChunkSettings { wrap: 0, ..chunks }.recipe(), "lines-4-sliding-min64-or-bytes-xxh3-32-v1");
    }

    #[test]
    fn names_of_simhashes_contain_every_setting_that_changes_one() {
        let simhash = |bits, recipe: &str| Simhash { bits, features: recipe.parse().unwrap() }.recipe();
        assert_eq!(simhash(64, "phrases:2 least:4"), "terms-2-nfkc.fold-count-min4-xxh3-64-v2");
        let features = "phrases:3 idf weights:log stop-words:en stemming:de least:4";
        assert_eq!(simhash(32, features), "terms-3-nfkc.fold-stop.en-stem.de-log-idf-min4-xxh3-32-v2");
        assert_eq!(simhash(0, features), "none");
    }

    #[test]
    fn names_of_signatures_contain_every_setting_that_changes_a_projection() {
        let signatures =
            |recipe: &str| Signatures { vectors: recipe.parse().unwrap(), ..Signatures::default() }.recipe();
        assert_eq!(signatures("seed:0 least:1"), "rp-terms-nfkc.fold-count-min1-xxh3-5-seed0-splitmix64-v2");
        let vectors = "components:8 seed:3 weights:log unit-length stop-words:en stemming:de least:1";
        assert_eq!(signatures(vectors), "rp-terms-nfkc.fold-stop.en-stem.de-log-unit-min1-xxh3-8-seed3-splitmix64-v2");
    }

    #[test]
    fn names_of_shingles_contain_every_setting_that_changes_one() {
        assert_eq!(Shingling::Tokens(5).recipe(), "shingles-tokens-5-nfkc-xxh3-32-minima-xor-multiply-v2");
        let shingles = Minhash { shingle: Shingling::Chars(20), ..Job::default().minhash };
        assert_eq!(shingles.recipe(), "shingles-chars-20-nfkc.fold-xxh3-32-minima-xor-multiply-v2");
    }
}
