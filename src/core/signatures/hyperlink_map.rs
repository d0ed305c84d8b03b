//! HM signatures: equation (1) of \[DDGMP03\] section 2.2.
//!
//! ```text
//! x^p(t+1) = r^p + γ Σ x^q(t) r^q   over the children q of p, component by component; x(0) = r
//! ```
//!
//! Afterwards all values are divided by the largest component of any page.
//!
//! # Deviation
//! With `children:mean` in `signatures.recipe` the sum is divided by the number of children in the
//! crawl. Then no component exceeds t + 1 after t iterations, and pages many links away count as
//! much for pages with many children as for those with few.
//!
//! # Growth
//! The paper's sum grows. With children of r on average, a page with c children has about r (1 +
//! γcr + (γcr)² + ...). If γcr exceeds 1, each iteration multiplies by it, and the division by the
//! largest value moves all pages with fewer children towards 0. The numbers stay finite: 2^20
//! children and 8 iterations result in at most 2^160, and the maximum of a double is 2^1023. The
//! loss is one of resolution, not of precision, so γ is small by default, and C should be chosen
//! for γ and the number of iterations.
//!
//! Sums are doubles. They do not depend on the number of workers, because a page's children are
//! added in one order, by page.

use super::ONE;
use webtwin_base::ids::Page;
use webtwin_job::{Children, VectorRecipe};

/// Computes one iteration for one component of one page. `r` is that of the page, `children` has
/// `x r` of its children in ascending order of page.
pub fn step(r: f64, settings: &VectorRecipe, children: impl ExactSizeIterator<Item = f64>) -> f64 {
    let damping = match settings.children {
        Children::Sum => settings.damping,
        Children::Mean => settings.damping / children.len().max(1) as f64,
    };
    r + damping * children.fold(0.0, |sum, child| sum + child)
}

/// Returns `x` divided by `largest`, the largest component of all pages, in parts of [`ONE`].
pub fn part(x: f64, largest: f64) -> u64 {
    if largest > 0.0 { (x / largest * ONE as f64) as u64 } else { 0 }
}

/// Computes the HM signatures of all pages: the reference for the dataflow, and for callers that
/// have all pages.
///
/// `rp[p]` is the RP signature of page p, empty for a page without one. `links` are (parent,
/// child), ascending, each once.
///
/// # Cost
/// K additions per link and iteration.
///
/// # Examples
/// Equation (1) by hand: page 0 links to page 1, r is 1 and 1/2, γ is 1/2. After one iteration page
/// 0 has 1 + 1/2 (1/2 · 1/2) = 9/8, the largest component, and 1/2 divided by 9/8 is 4/9.
/// ```
/// use webtwin_base::ids::Page;
/// use webtwin_core::signatures::ONE;
/// use webtwin_core::signatures::hyperlink_map::hyperlink_map;
/// use webtwin_job::VectorRecipe;
///
/// let settings = VectorRecipe { damping: 0.5, depth: 1, ..VectorRecipe::default() };
/// let rp = [vec![ONE], vec![ONE / 2]];
/// let hm = hyperlink_map(&rp, &[(Page(0), Page(1))], &settings);
/// assert_eq!(hm, [[ONE], [ONE * 4 / 9]]);
/// ```
pub fn hyperlink_map(rp: &[Vec<u64>], links: &[(Page, Page)], settings: &VectorRecipe) -> Vec<Vec<u64>> {
    let r: Vec<Vec<f64>> = rp.iter().map(|rp| rp.iter().map(|&part| super::number(part)).collect()).collect();
    let mut x = r.clone();
    for _ in 0..settings.depth {
        let mut next = r.clone();
        for links in links.chunk_by(|x, y| x.0 == y.0) {
            let parent = links[0].0;
            for dim in 0..r[parent].len() {
                let child = |&(_, child): &(Page, Page)| match r[child].get(dim) {
                    Some(r) => x[child][dim] * r,
                    None => 0.0,
                };
                next[parent][dim] = step(r[parent][dim], settings, links.iter().map(child));
            }
        }
        x = next;
    }
    let largest = x.iter().flatten().copied().fold(0.0, f64::max);
    x.iter().map(|x| x.iter().map(|&x| part(x, largest)).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(children: Children, damping: f64, depth: u32) -> VectorRecipe {
        VectorRecipe { children, damping, depth, ..VectorRecipe::default() }
    }

    #[test]
    fn page_without_a_signature_adds_zero_and_counts_as_a_child() {
        // 0 links to 1 and 3, 1 to 2; r = 1, 1/2, 1/4 of [`ONE`].
        let rp = [vec![ONE], vec![ONE / 2], vec![ONE / 4], vec![]];
        let links = [(0, 1), (0, 3), (1, 2)].map(|(parent, child)| (Page(parent), Page(child)));
        let over = |x: f64, largest: f64| [(x / largest * ONE as f64) as u64];
        let sum = hyperlink_map(&rp, &links, &settings(Children::Sum, 0.5, 1));
        assert_eq!(sum[1..3], [over(0.53125, 1.125), over(0.25, 1.125)]);
        assert!(sum[3].is_empty());
        // x^0 = 1 + 1/4 (1/2 1/2).
        let mean = hyperlink_map(&rp, &links, &settings(Children::Mean, 0.5, 1));
        assert_eq!(mean[1..3], [over(0.53125, 1.0625), over(0.25, 1.0625)]);
    }

    #[test]
    fn thousands_of_children_of_each_other_stay_finite() {
        let pages = Page::first(2000);
        let rp = vec![vec![ONE]; pages.len()];
        let links_of = |p: Page| pages.clone().filter(move |&q| q != p).map(move |q| (p, q));
        let links: Vec<_> = pages.clone().flat_map(links_of).collect();
        assert!(hyperlink_map(&rp, &links, &settings(Children::Sum, 1.0, 5)).iter().all(|x| x == &[ONE]));
    }
}
