//! RP signatures: the bag of words of a page in K random directions (\[DDGMP03\] section 2.1).
//!
//! Text is converted to a bag of terms as for simhashes ([`crate::text`]), the bag to `ΠD` of K
//! whole numbers, and that to an [`RpSignature`] once the smallest and largest value of each
//! component in the crawl are known.

use serde::{Deserialize, Serialize};

use super::{ONE, RpSignature};
use crate::text::{Feature, Features, weigh};
use webtwin_base::ids::splitmix64;
use webtwin_job::VectorRecipe;

/// Number of entries per hash.
const ENTRIES_PER_HASH: usize = 4;

/// Factor applied to a bag before it is scaled to unit length, so that fractions survive.
const UNIT: i128 = 1 << 24;

/// Π: a row of K entries for every possible term, computed on demand and not stored.
///
/// Recipe `splitmix64-v1`: four entries of 16 bits each from
/// `splitmix64(term ^ splitmix64(seed + 2^32 block))`; dimension d is in block d / 4. An entry is
/// uniform among the odd numbers from -65,535 to 65,535, which represent \[-1,1\] in 65,535ths.
///
/// # Examples
/// The projection of a bag is the sum of the projections of its terms.
/// ```
/// use webtwin_core::signatures::random_projection::Projection;
/// use webtwin_core::text::Feature;
///
/// let (one, other) = (Feature { hash: 11, weight: 16 }, Feature { hash: 22, weight: 32 });
/// let projection = Projection::new(2, 1);
/// let [x, y] = [one, other].map(|term| projection.project(&[term]));
/// assert_eq!(projection.project(&[one, other]), [x[0] + y[0], x[1] + y[1]]);
/// ```
#[derive(Debug)]
pub struct Projection {
    /// One key per block of dimensions.
    keys: Vec<u64>,
    dims: usize,
}

impl Projection {
    /// Creates Π of `dims` dimensions; another seed is another Π.
    pub fn new(dims: usize, seed: u32) -> Projection {
        let keys = (0..dims.div_ceil(ENTRIES_PER_HASH) as u64)
            .map(|block| splitmix64(u64::from(seed) + (block << 32)))
            .collect();
        Projection { keys, dims }
    }

    /// Returns `ΠD` of a bag of terms whose weights are in sixteenths. The result is in 65,535ths
    /// of sixteenths.
    ///
    /// # Cost
    /// One hash per four dimensions of a term.
    pub fn project(&self, bag: &[Feature]) -> Vec<i64> {
        let mut sums = vec![0; self.dims];
        for (sums, key) in sums.chunks_mut(ENTRIES_PER_HASH).zip(&self.keys) {
            for &Feature { hash, weight } in bag {
                let mut entries = splitmix64(hash ^ key);
                for sum in &mut *sums {
                    *sum += i64::from(weight) * entry(entries as u16);
                    entries >>= 16;
                }
            }
        }
        sums
    }
}

fn entry(bits: u16) -> i64 {
    2 * i64::from(bits) - 65_535
}

/// Procedure that converts text to `ΠD`, identified by
/// [`Signatures::recipe`](webtwin_job::Signatures::recipe).
///
/// # Examples
/// The projection depends on the words of a text and their counts, but not on their order.
/// ```
/// use webtwin_core::signatures::random_projection::ProjectionRecipe;
/// use webtwin_job::VectorRecipe;
///
/// let mut recipe = ProjectionRecipe::new(&VectorRecipe { least: 1, ..VectorRecipe::default() });
/// let by_date = recipe.project("Re: mirrors, Anna. Copies, Bert. Re: mirrors, Bert.");
/// let by_author = recipe.project("Re: mirrors, Anna. Re: mirrors, Bert. Copies, Bert.");
/// assert_eq!(by_date, by_author);
/// assert_ne!(by_date, recipe.project("Re: mirrors, Anna."));
/// ```
#[derive(Debug)]
pub struct ProjectionRecipe {
    settings: VectorRecipe,
    projection: Projection,
    features: Features,
    bag: Vec<Feature>,
}

impl ProjectionRecipe {
    /// Creates the recipe of a job's `[signatures]`.
    pub fn new(settings: &VectorRecipe) -> ProjectionRecipe {
        ProjectionRecipe {
            settings: settings.clone(),
            projection: Projection::new(settings.dims as usize, settings.seed),
            features: Features::new(1, &settings.stop_words, &settings.stemming),
            bag: Vec::new(),
        }
    }

    /// Returns `ΠD` of `text`. Returns `None` for the empty text, and for a text of fewer than
    /// `min_terms` terms, where every occurrence of a term counts.
    ///
    /// # Cost
    /// One pass over the text, a sort of its terms, and [`Projection::project`].
    pub fn project(&mut self, text: &str) -> Option<Vec<i64>> {
        let terms = self.features.extract(text);
        if terms.is_empty() || terms.len() < self.settings.least as usize {
            return None;
        }
        weigh(terms, self.settings.weights, &mut self.bag);
        let mut projected = self.projection.project(&self.bag);
        if self.settings.unit_length {
            let squares: u128 = self.bag.iter().map(|term| u128::from(term.weight).pow(2)).sum();
            let length = squares.isqrt() as i128;
            projected.iter_mut().for_each(|sum| *sum = (i128::from(*sum) * UNIT / length) as i64);
        }
        Some(projected)
    }
}

/// Smallest and largest value of each component, over all pages that have a signature.
///
/// # Examples
/// ```
/// use webtwin_core::signatures::ONE;
/// use webtwin_core::signatures::random_projection::ComponentBounds;
///
/// let pages = [[-4, 10], [0, 10], [4, 30]];
/// let mut bounds = ComponentBounds::default();
/// pages.iter().for_each(|page| bounds.extend(page));
/// let signatures = pages.map(|page| bounds.signature(&page));
/// assert_eq!(signatures, [[0, 0], [ONE / 2, 0], [ONE, ONE]]);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComponentBounds(Vec<(i64, i64)>);

impl ComponentBounds {
    /// Extends the bounds by a page.
    pub fn extend(&mut self, projected: &[i64]) {
        self.join(ComponentBounds(projected.iter().map(|&sum| (sum, sum)).collect()));
    }

    /// Extends the bounds by the bounds of other pages. The bounds of no page are empty.
    pub fn join(&mut self, other: ComponentBounds) {
        if self.0.is_empty() {
            *self = other;
            return;
        }
        for (bound, other) in self.0.iter_mut().zip(other.0) {
            *bound = (bound.0.min(other.0), bound.1.max(other.1));
        }
    }

    /// Returns the RP signature of a page within these bounds. Components that are equal for all
    /// pages are 0.
    pub fn signature(&self, projected: &[i64]) -> RpSignature {
        let part = |(&sum, &(low, high)): (&i64, &(i64, i64))| {
            let offset = sum.abs_diff(low) as u128 * u128::from(ONE);
            (offset / u128::from(high.abs_diff(low).max(1))) as u64
        };
        projected.iter().zip(&self.0).map(part).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn recipe(change: impl Fn(&mut VectorRecipe)) -> ProjectionRecipe {
        let mut settings = VectorRecipe { dims: 5, seed: 0, least: 1, ..VectorRecipe::default() };
        change(&mut settings);
        ProjectionRecipe::new(&settings)
    }

    #[test]
    fn the_order_of_words_does_not_matter_but_their_number_does() {
        let mut recipe = recipe(|_| ());
        assert_eq!(recipe.project("a b c a"), recipe.project("c a, A b"));
        assert_ne!(recipe.project("a b c a"), recipe.project("a b c"));
        assert_eq!(recipe.project(" - "), None);
        assert_eq!(self::recipe(|settings| settings.least = 5).project("a b c a"), None);
    }

    #[test]
    fn recipe_v1_yields_stable_projections() {
        let text = "Near-duplicate web documents are abundant. Don't count 3.14 twice, ÄRGER 日本語.";
        assert_eq!(recipe(|_| ()).project(text).unwrap(), [-1345552, 2910704, -850448, 864688, 33072]);
        assert_eq!(
            recipe(|settings| (settings.seed, settings.unit_length) = (1, true)).project(text).unwrap(),
            [340908319726, -166858537570, -110336391203, 150799504150, 585363541656]
        );
    }

    #[test]
    fn entries_are_uniform_in_each_dimension() {
        let projection = Projection::new(9, 0);
        let mut sums = vec![(0.0, 0.0); 9];
        for term in 0..20_000 {
            let entries = projection.project(&[Feature { hash: splitmix64(term), weight: 1 }]);
            for (sum, entry) in sums.iter_mut().zip(entries) {
                let entry = entry as f64 / 65_535.0;
                assert!((-1.0..=1.0).contains(&entry));
                *sum = (sum.0 + entry / 20_000.0, sum.1 + entry * entry / 20_000.0);
            }
        }
        // Mean 0 and variance 1/3, each within about five standard deviations.
        assert!(sums.iter().all(|sum| sum.0.abs() < 0.02 && (sum.1 - 1.0 / 3.0).abs() < 0.011), "{sums:?}");
    }

    proptest! {
        #[test]
        fn signatures_span_zero_to_one_and_keep_the_order_of_pages(
            pages in prop::collection::vec(prop::collection::vec(any::<i32>(), 3), 1..20)
        ) {
            let pages: Vec<Vec<i64>> = pages.iter().map(|page| page.iter().map(|&sum| i64::from(sum) << 30).collect()).collect();
            let mut bounds = ComponentBounds::default();
            pages.iter().for_each(|page| bounds.extend(page));
            let signatures: Vec<_> = pages.iter().map(|page| bounds.signature(page)).collect();
            for dim in 0..3 {
                let spread = pages.iter().any(|page| page[dim] != pages[0][dim]);
                prop_assert_eq!(signatures.iter().map(|of| of[dim]).min(), Some(0));
                prop_assert_eq!(signatures.iter().map(|of| of[dim]).max(), Some(if spread { ONE } else { 0 }));
                for (x, signature_of_x) in pages.iter().zip(&signatures) {
                    prop_assert!(pages.iter().zip(&signatures).all(|(y, of_y)| x[dim] > y[dim] || signature_of_x[dim] <= of_y[dim]));
                }
            }
        }
    }
}
