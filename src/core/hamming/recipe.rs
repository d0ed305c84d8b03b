//! From the text of a page to its simhash.
//!
//! Which features tell near-duplicates, on the real crawl of `scripts/real-crawl` (105,623 pages, 229,328 true pairs):
//! `webtwin run` with `similar.by=hamming`, then `webtwin-lab evaluate`, pair precision / recall of the trivial clusters:
//!
//! | features | k | guard | precision | recall |
//! |---|---|---|---|---|
//! | single terms by count | 3 | mutual best | .005 | .679 |
//! | phrases of three by count, the default | 3 | none | .291 | .359 |
//! | the same | 3 | mutual best | .825 | .347 |
//! | the same | 4 | mutual best | .434 | .414 |
//! | phrases of two by log and inverse document frequency | 3 | none | .904 | .394 |
//! | the same | 3 | mutual best | .936 | .383 |
//! | the same, the preset `simhash` | 8 | mutual best | .878 | .681 |
//! | the same | 10 | mutual best | .815 | .755 |
//! | the same | 10 | none | .104 | .801 |
//!
//! What pages of one site share drowns what tells them apart, and inverse document frequency takes that away. It is not the
//! default all the same: it costs memory, and its simhashes can only be compared within one crawl.

use crate::text::{Feature, Features, weigh};
use webtwin_base::ids::SimHash;
use webtwin_job::{FeatureRecipe, Simhash, Weights};

use super::simhash::Sums;

/// How text becomes a simhash, as [`Simhash::recipe`] names it. Equal names, equal simhashes; but where the job asks for `idf`, in equal crawls only.
///
/// # Examples
/// ```
/// use webtwin_core::hamming::recipe::Recipe;
/// use webtwin_job::Job;
///
/// let mut recipe = Recipe::new(&Job::default().simhash);
/// let page = "A crawler should not visit a page again that it has seen elsewhere under another name. ".repeat(9);
/// let changed = page.replacen("seen", "met", 1);
/// let [before, after] = [&page, &changed].map(|text| recipe.simhash(text).unwrap());
/// assert!((before ^ after).count_ones() <= 8);
/// assert_eq!(recipe.simhash("too short"), None);
/// ```
#[derive(Debug)]
pub struct Recipe {
    settings: Simhash,
    features: Features,
    weighted: Vec<Feature>,
}

impl Recipe {
    /// The recipe of a job's `[simhash]`.
    pub fn new(settings: &Simhash) -> Recipe {
        let FeatureRecipe { phrase, stop_words, stemming, .. } = &settings.features;
        let features = Features::new(*phrase, stop_words, stemming);
        Recipe { settings: settings.clone(), features, weighted: Vec::new() }
    }

    /// The simhash of `text`, all features weighing what they weigh on the page; `None` for a text with fewer features than
    /// `min_features`, each counted as often as it stands there, and for the empty text.
    ///
    /// # Cost
    /// One pass over the text; where features are not weighted by their plain count, a sort of them.
    pub fn simhash(&mut self, text: &str) -> Option<SimHash> {
        let hashes = self.features.of(text);
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

    /// The features of `text`, ascending, for a simhash that waits for the weights of a crawl; none where
    /// [`Recipe::simhash`] is `None`.
    pub fn features(&mut self, text: &str) -> &[Feature] {
        let hashes = self.features.of(text);
        let enough = hashes.len() >= self.settings.features.least as usize;
        weigh(if enough { hashes } else { &mut [] }, self.settings.features.weights, &mut self.weighted);
        &self.weighted
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn recipe(change: impl Fn(&mut Simhash)) -> Recipe {
        let features = FeatureRecipe { phrase: 2, least: 4, ..FeatureRecipe::default() };
        let mut settings = Simhash { bits: 64, features };
        change(&mut settings);
        Recipe::new(&settings)
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
    fn recipe_v1_gives_the_simhashes_it_always_gave() {
        let text = "Near-duplicate web documents are abundant. Don't count 3.14 twice, ÄRGER 日本語.";
        let simhash = |change: fn(&mut Simhash)| recipe(change).simhash(text).unwrap();
        let all =
            [simhash(|_| ()), simhash(|settings| settings.features.phrase = 1), simhash(|settings| settings.bits = 32)];
        assert_eq!(all, [2819408648056341843, 9519496313529714842, 1074791763]);
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
