//! Settings of simhashes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::recipe_text::{parse, text, with_stemmer, with_stop_words};
use crate::as_text;
use crate::languages::NONE;

/// Growth of the weight of a feature with its count n on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weights {
    /// Weight n.
    Count,
    /// Weight 1 + log2 n.
    Log,
    /// Weight 1.
    Once,
}

impl Weights {
    /// Returns the name in settings and in names of recipes.
    pub(crate) fn name(self) -> &'static str {
        ["count", "log", "once"][self as usize]
    }

    /// Returns the weights with the given name.
    pub(super) fn parse(name: &str) -> Option<Weights> {
        [Weights::Count, Weights::Log, Weights::Once].into_iter().find(|weights| weights.name() == name)
    }
}

/// Definition of a page's simhash. It has a recipe name ([`Simhash::recipe`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Simhash {
    /// f: width of a simhash in bits, 1 to 64. 0 for no simhashes.
    pub bits: u32,
    /// Features of a page and their weights.
    #[serde(rename = "recipe", with = "as_text")]
    pub features: FeatureRecipe,
}

impl Default for Simhash {
    fn default() -> Self {
        Simhash { bits: 64, features: FeatureRecipe::default() }
    }
}

/// Features of a page (\[MJS07\] section 2). In settings: `plain`, `weighted`, or parts such as
/// `phrases:2 weights:log idf stop-words:en stemming:en`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeatureRecipe {
    /// Number of terms of a feature: 1 for single terms, up to 16 for phrases.
    pub phrase: u32,
    /// Language (ISO 639-1) whose stop words are omitted, or `none`.
    pub stop_words: String,
    /// Language (ISO 639-1) whose stemmer is applied to words, or `none`.
    pub stemming: String,
    /// Growth of the weight of a feature with its count.
    pub weights: Weights,
    /// True if the weight of a feature decreases with the number of pages of the crawl that contain
    /// it.
    pub idf: bool,
    /// Minimum number of features of a page with a simhash. Fewer features would make too many
    /// pages near.
    pub least: u32,
}

impl Default for FeatureRecipe {
    fn default() -> Self {
        FeatureRecipe {
            phrase: 3,
            stop_words: NONE.into(),
            stemming: NONE.into(),
            weights: Weights::Count,
            idf: false,
            least: 8,
        }
    }
}

impl FeatureRecipe {
    /// Returns the recipe `weighted`, which is the most accurate within one crawl.
    fn weighted() -> FeatureRecipe {
        FeatureRecipe { phrase: 2, weights: Weights::Log, idf: true, ..FeatureRecipe::default() }
    }

    fn set(&mut self, part: &str) -> Option<()> {
        let (key, value) = part.split_once(':').unwrap_or((part, ""));
        match key {
            "phrases" => self.phrase = value.parse().ok().filter(|terms| (1..=16).contains(terms))?,
            "stop-words" => self.stop_words = with_stop_words(value)?,
            "stemming" => self.stemming = with_stemmer(value)?,
            "weights" => self.weights = Weights::parse(value)?,
            "idf" if value.is_empty() => self.idf = true,
            "least" => self.least = value.parse().ok()?,
            _ => return None,
        }
        Some(())
    }

    fn parts(&self) -> Vec<String> {
        let FeatureRecipe { phrase, stop_words, stemming, weights, idf, least } = self;
        vec![
            format!("phrases:{phrase}"),
            format!("weights:{}", weights.name()),
            if *idf { "idf".into() } else { String::new() },
            format!("stop-words:{stop_words}"),
            format!("stemming:{stemming}"),
            format!("least:{least}"),
        ]
    }
}

impl FromStr for FeatureRecipe {
    type Err = String;

    fn from_str(text: &str) -> Result<FeatureRecipe, String> {
        let presets = [FeatureRecipe::default(), FeatureRecipe::weighted()];
        let example = "phrases:2 weights:log idf stop-words:en stemming:en least:8, with phrases of 1 to 16 terms";
        parse(text, presets, FeatureRecipe::set, example)
    }
}

impl fmt::Display for FeatureRecipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text(self, &FeatureRecipe::weighted(), FeatureRecipe::parts))
    }
}
