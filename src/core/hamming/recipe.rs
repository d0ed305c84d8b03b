//! Simhash of a page from its text.
//!
//! Evaluation of features for near-duplicates, on the real crawl of `scripts/real-crawl` (105,623
//! pages, 229,328 true pairs): `webtwin run` with `similar.by=hamming`, then
//! `webtwin-lab evaluate`, pair precision / recall of the trivial clusters:
//!
//! | features | k | guard | precision | recall |
//! |---|---|---|---|---|
//! | single terms by count | 3 | mutual best | .005 | .679 |
//! | phrases of three by count, the default | 3 | none | .291 | .359 |
//! | phrases of three by count, the default | 3 | mutual best | .825 | .347 |
//! | phrases of three by count, the default | 4 | mutual best | .434 | .414 |
//! | phrases of two by log and inverse document frequency | 3 | none | .904 | .394 |
//! | phrases of two by log and inverse document frequency | 3 | mutual best | .936 | .383 |
//! | phrases of two by log and inverse document frequency, the preset `simhash` | 8 | mutual best | .878 | .681 |
//! | phrases of two by log and inverse document frequency | 10 | mutual best | .815 | .755 |
//! | phrases of two by log and inverse document frequency | 10 | none | .104 | .801 |
//!
//! The text that pages of one site share outweighs the text in which they differ. Inverse document
//! frequency removes this effect. It is not the default because it costs memory, and because its
//! simhashes can only be compared within one crawl.

use crate::text::{Feature, Features, weigh};
use webtwin_base::ids::SimHash;
use webtwin_job::{FeatureRecipe, Simhash, Weights};

use super::simhash::Sums;

/// Procedure that turns text into a simhash, identified by [`Simhash::recipe`]. Recipes of equal
/// names yield equal simhashes; if the job asks for `idf`, only within equal crawls.
///
/// # Examples
/// ```
/// use webtwin_core::hamming::recipe::SimhashRecipe;
/// use webtwin_job::Job;
///
/// let mut recipe = SimhashRecipe::new(&Job::default().simhash);
/// let page = "A crawler should not visit a page again that it has seen elsewhere under another name. ".repeat(9);
/// let changed = page.replacen("seen", "met", 1);
/// let [before, after] = [&page, &changed].map(|text| recipe.simhash(text).unwrap());
/// assert!((before ^ after).count_ones() <= 8);
/// assert_eq!(recipe.simhash("too short"), None);
/// ```
#[derive(Debug)]
pub struct SimhashRecipe {
    settings: Simhash,
    features: Features,
    weighted: Vec<Feature>,
}

impl SimhashRecipe {
    /// Creates the recipe of a job's `[simhash]`.
    pub fn new(settings: &Simhash) -> SimhashRecipe {
        let FeatureRecipe { phrase, stop_words, stemming, .. } = &settings.features;
        let features = Features::new(*phrase, stop_words, stemming);
        SimhashRecipe { settings: settings.clone(), features, weighted: Vec::new() }
    }

    /// Returns the simhash of `text`, with feature weights from the page alone. Returns `None` for
    /// the empty text, and for a text with fewer than `min_features` features, where every
    /// occurrence of a feature counts.
    ///
    /// # Cost
    /// One pass over the text. A sort of the features, unless they are weighted by their plain
    /// count.
    pub fn simhash(&mut self, text: &str) -> Option<SimHash> {
        let hashes = self.features.extract(text);
        if hashes.is_empty() || hashes.len() < self.settings.features.least as usize {
            return None;
        }
        let mut sums = Sums::default();
        if self.settings.features.weights == Weights::Count {
            sums.add_all(hashes, 0);
        } else {
            weigh(hashes, self.settings.features.weights, &mut self.weighted);
            sums.add_weighted(&self.weighted);
        }
        Some(sums.simhash(self.settings.bits))
    }

    /// Returns the features of `text`, ascending, for a simhash that needs the weights of a crawl.
    /// Returns no features if [`SimhashRecipe::simhash`] would return `None`.
    pub fn features(&mut self, text: &str) -> &[Feature] {
        let hashes = self.features.extract(text);
        let enough = hashes.len() >= self.settings.features.least as usize;
        weigh(if enough { hashes } else { &mut [] }, self.settings.features.weights, &mut self.weighted);
        &self.weighted
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn recipe(change: impl Fn(&mut Simhash)) -> SimhashRecipe {
        let features = FeatureRecipe { phrase: 2, least: 4, ..FeatureRecipe::default() };
        let mut settings = Simhash { bits: 64, features };
        change(&mut settings);
        SimhashRecipe::new(&settings)
    }

    #[test]
    fn empty_and_tiny_pages_have_no_simhash_and_so_are_near_nothing() {
        let mut recipe = recipe(|_| ());
        assert_eq!(recipe.simhash(""), None);
        assert_eq!(recipe.simhash("File not found"), None);
        assert!(recipe.simhash("The file was not found").is_some());
        assert_eq!(self::recipe(|settings| settings.features.least = 0).simhash(" - "), None);
    }

    #[test]
    fn recipe_v1_yields_stable_simhashes() {
        let text = "Near-duplicate web documents are abundant. Don't count 3.14 twice, ÄRGER 日本語.";
        let simhash = |change: fn(&mut Simhash)| recipe(change).simhash(text).unwrap();
        let expected =
            [simhash(|_| ()), simhash(|settings| settings.features.phrase = 1), simhash(|settings| settings.bits = 32)];
        assert_eq!(expected, [2819408648056341843, 9519496313529714842, 1074791763]);
    }

    proptest! {
        #[test]
        fn counting_features_equals_weighing_them_by_their_count(
            text in "([ab] ){4,80}", phrase in 1u32..4, bits in 1u32..=64
        ) {
            let mut recipe = recipe(|settings| (settings.features.phrase, settings.bits) = (phrase, bits));
            let mut sums = Sums::default();
            sums.add_weighted(recipe.features(&text));
            prop_assert_eq!(recipe.simhash(&text), (!recipe.weighted.is_empty()).then(|| sums.simhash(bits)));
        }
    }
}
