//! Settings of signatures and of their collisions.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::recipe_text::{parse, text, with_stemmer, with_stop_words};
use super::{Guard, Weights};
use crate::as_text;
use crate::languages::NONE;

/// Combination of the signatures of the pages that a page links to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Children {
    /// Sum, as in \[DDGMP03\].
    Sum,
    /// Mean, an addition of this program.
    Mean,
}

impl Children {
    fn name(self) -> &'static str {
        ["sum", "mean"][self as usize]
    }
}

/// Definition of a page's RP and HM signatures, and condition for their collision (\[DDGMP03\]).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Signatures {
    /// Definition of the vectors of a page.
    #[serde(rename = "recipe", with = "as_text")]
    pub vectors: VectorRecipe,
    /// D: RP signatures collide if they differ by less than this in every component, 0 to 1.
    pub rp_tolerance: f64,
    /// C: tolerance of HM signatures, with the same meaning. With 1, only RP signatures decide.
    pub hm_tolerance: f64,
    /// Guard of similar pairs: [`Guard::None`] or [`Guard::MutualBest`], derived from
    /// `similar.guard`.
    #[serde(skip)]
    pub guard: Guard,
    /// Maximum number of pairs. More are rejected after counting, before any pair is produced;
    /// smaller tolerances give fewer.
    #[serde(skip)]
    pub max_pairs: u64,
}

impl Default for Signatures {
    fn default() -> Self {
        Signatures {
            vectors: VectorRecipe::default(),
            rp_tolerance: 0.0001,
            hm_tolerance: 0.0001,
            guard: Guard::MutualBest,
            max_pairs: 50_000_000,
        }
    }
}

/// Vectors of signatures (\[DDGMP03\] sections 2 and 3). In settings: `plain`, `weighted`, or parts
/// such as `components:16 weights:log unit-length children:mean damping:1 depth:5`.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorRecipe {
    /// K: number of components of each signature, 1 to 64.
    pub dims: u32,
    /// Seed of the random projection.
    pub seed: u32,
    /// Language (ISO 639-1) whose stop words are omitted, or `none`.
    pub stop_words: String,
    /// Language (ISO 639-1) whose stemmer is applied to words, or `none`.
    pub stemming: String,
    /// Growth of the weight of a term with its count on a page.
    pub weights: Weights,
    /// True if a page's vector of terms is scaled to unit length, so that long pages are not more
    /// dispersed than short ones.
    pub unit_length: bool,
    /// Minimum number of terms of a page with signatures. Fewer terms would make too many pages
    /// near.
    pub least: u32,
    /// Combination of the signatures of a page's children.
    pub children: Children,
    /// γ: fraction of the combined signatures that is propagated to the page, 0 to 1.
    pub damping: f64,
    /// Depth of links that an HM signature covers, up to 8. A greater depth would cover the whole
    /// crawl.
    pub depth: u32,
}

impl Default for VectorRecipe {
    fn default() -> Self {
        VectorRecipe {
            dims: 5,
            seed: 1,
            stop_words: NONE.into(),
            stemming: NONE.into(),
            weights: Weights::Count,
            unit_length: false,
            least: 8,
            children: Children::Sum,
            damping: 0.001,
            depth: 3,
        }
    }
}

impl VectorRecipe {
    /// Returns the recipe `weighted`, which is the most accurate within one crawl.
    fn weighted() -> VectorRecipe {
        VectorRecipe {
            dims: 16,
            weights: Weights::Log,
            unit_length: true,
            children: Children::Mean,
            damping: 1.0,
            depth: 5,
            ..VectorRecipe::default()
        }
    }

    fn set(&mut self, part: &str) -> Option<()> {
        let (key, value) = part.split_once(':').unwrap_or((part, ""));
        match key {
            "components" => self.dims = value.parse().ok().filter(|dims| (1..=64).contains(dims))?,
            "seed" => self.seed = value.parse().ok()?,
            "stop-words" => self.stop_words = with_stop_words(value)?,
            "stemming" => self.stemming = with_stemmer(value)?,
            "weights" => self.weights = Weights::parse(value)?,
            "unit-length" if value.is_empty() => self.unit_length = true,
            "least" => self.least = value.parse().ok()?,
            "children" => self.children = [Children::Sum, Children::Mean].into_iter().find(|c| c.name() == value)?,
            "damping" => self.damping = value.parse().ok().filter(|part| (0.0..=1.0).contains(part))?,
            "depth" => self.depth = value.parse().ok().filter(|depth| *depth <= 8)?,
            _ => return None,
        }
        Some(())
    }

    fn parts(&self) -> Vec<String> {
        let VectorRecipe { dims, seed, weights, unit_length, least, children, damping, depth, .. } = self;
        vec![
            format!("components:{dims}"),
            format!("seed:{seed}"),
            format!("weights:{}", weights.name()),
            if *unit_length { "unit-length".into() } else { String::new() },
            format!("stop-words:{}", self.stop_words),
            format!("stemming:{}", self.stemming),
            format!("least:{least}"),
            format!("children:{}", children.name()),
            format!("damping:{damping}"),
            format!("depth:{depth}"),
        ]
    }
}

impl FromStr for VectorRecipe {
    type Err = String;

    fn from_str(text: &str) -> Result<VectorRecipe, String> {
        let example = "components:16 seed:1 weights:log unit-length stop-words:en stemming:en least:8 children:mean \
                       damping:1 depth:5, with 1 to 64 components, damping of 0 to 1 and a depth of 0 to 8";
        parse(text, [VectorRecipe::default(), VectorRecipe::weighted()], VectorRecipe::set, example)
    }
}

impl fmt::Display for VectorRecipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text(self, &VectorRecipe::weighted(), VectorRecipe::parts))
    }
}
