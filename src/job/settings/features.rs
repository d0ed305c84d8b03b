//! What simhashes are made of.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::recipe_text::{parse, text, with_stemmer, with_stop_words};
use crate::as_text;
use crate::languages::NONE;

/// How the weight of a feature grows with its count n on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weights {
    /// The weight is n.
    Count,
    /// The weight is 1 + log2 n.
    Log,
    /// The weight is 1.
    Once,
}

impl Weights {
    /// Name in settings and in names of recipes.
    pub(crate) fn name(self) -> &'static str {
        ["count", "log", "once"][self as usize]
    }

    /// The weights of that name.
    pub(super) fn parse(name: &str) -> Option<Weights> {
        [Weights::Count, Weights::Log, Weights::Once].into_iter().find(|weights| weights.name() == name)
    }
}

/// What a page's simhash is made of; together a recipe with a name ([`Simhash::recipe`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Simhash {
    /// f: width of a simhash in bits, 1 to 64; 0 makes no simhashes.
    pub bits: u32,
    /// What the features of a page are and what they weigh.
    #[serde(rename = "recipe", with = "as_text")]
    pub features: FeatureRecipe,
}

impl Default for Simhash {
    fn default() -> Self {
        Simhash { bits: 64, features: FeatureRecipe::default() }
    }
}

/// The features of a page (\[MJS07\] section 2), as a user writes them: `plain`, `weighted`, or parts such as
/// `phrases:2 weights:log idf stop-words:en stemming:en`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeatureRecipe {
    /// Terms per feature: 1 for single terms, up to 16 for phrases.
    pub phrase: u32,
    /// Language (ISO 639-1) whose stop words are left out, or `none`.
    pub stop_words: String,
    /// Language (ISO 639-1) by which words are stemmed, or `none`.
    pub stemming: String,
    /// How the weight of a feature grows with its count.
    pub weights: Weights,
    /// True if features weigh less the more pages of the crawl they are on.
    pub idf: bool,
    /// A page with fewer features has no simhash: too few of them make too many pages near.
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
    /// The best within one crawl.
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
