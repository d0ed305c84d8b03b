//! Di Iorio, Diligenti, Gori, Maggini, Pucci: *Detecting near-replicas on the web by content and
//! hyperlink analysis*.
//!
//! `webtwin-lab reproduce ddgmp03-figure1` measures Figure 1, which depends on the crawl and is not
//! tested.

use proptest::prelude::*;
use webtwin::ids::{Page, splitmix64};
use webtwin::job::{Children, VectorRecipe, Weights};
use webtwin::signatures::collide::{Points, collisions};
use webtwin::signatures::hyperlink_map::hyperlink_map;
use webtwin::signatures::random_projection::{ComponentBounds, Projection, ProjectionRecipe};
use webtwin::signatures::{ONE, distance, parts};
use webtwin::text::Feature;

/// Returns the paper's settings: plain word counts, and a sum over the children of a page.
fn settings(damping: f64, depth: u32) -> VectorRecipe {
    let paper =
        VectorRecipe { dims: 5, weights: Weights::Count, unit_length: false, least: 1, ..VectorRecipe::default() };
    VectorRecipe { children: Children::Sum, damping, depth, ..paper }
}

// Section 2.1: the random projection signature.

fn bag(words: &[(u64, u32)]) -> Vec<Feature> {
    words.iter().map(|&(word, weight)| Feature { hash: splitmix64(word), weight }).collect()
}

proptest! {
    #[test]
    fn section_2_1_entries_of_the_matrix_are_in_minus_one_to_one_and_a_bag_is_projected_by_them(
        words in prop::collection::vec((0u64..1000, 1u32..50), 1..40), dims in 1usize..9
    ) {
        let projection = Projection::new(dims, 1);
        let mut want = vec![0i64; dims];
        for &(word, weight) in &words {
            // A column of the matrix is the projection of the bag of this one word, in units of
            // 1/65,535.
            let column = projection.project(&bag(&[(word, 1)]));
            prop_assert!(column.iter().all(|entry| (-65_535..=65_535).contains(entry)));
            want.iter_mut().zip(column).for_each(|(sum, entry)| *sum += i64::from(weight) * entry);
        }
        prop_assert_eq!(projection.project(&bag(&words)), want);
    }
}

#[test]
fn section_2_1_a_page_is_its_bag_of_words() {
    // Section 3: mailing-list messages "ordered by date, by subject, by thread or by author" have
    // the same informative content.
    let mut recipe = ProjectionRecipe::new(&settings(0.1, 3));
    let by_date = recipe.project("Re: mirrors, Anna. Copies, Bert. Re: mirrors, Bert.");
    let by_author = recipe.project("Re: mirrors, Anna. Re: mirrors, Bert. Copies, Bert.");
    assert_eq!(by_date, by_author);
    assert_ne!(by_date, recipe.project("Re: mirrors, Anna. Copies, Bert."));
}

#[test]
fn section_2_1_the_minimum_is_subtracted_and_each_component_is_scaled_to_zero_to_one() {
    let projected = [vec![-4, 10], vec![0, 10], vec![4, 30]];
    let mut bounds = ComponentBounds::default();
    projected.iter().for_each(|page| bounds.extend(page));
    let signatures = projected.map(|page| bounds.signature(&page));
    // Each component is divided by its range. The paper does not name the divisor: see "Deviations"
    // in `src/core/signatures/mod.rs`.
    assert_eq!(signatures, [vec![0, 0], vec![ONE / 2, 0], vec![ONE, ONE]]);
}

// Section 2.2: the hyperlink map signature.

#[test]
fn section_2_2_equation_1_worked_by_hand() {
    // Page 0 links to page 1, and page 1 to page 2. r is 1, 1/2 and 1/4; gamma is 1/2.
    let rp = [vec![ONE], vec![ONE / 2], vec![ONE / 4]];
    let links = [(Page(0), Page(1)), (Page(1), Page(2))];
    let x = |iterations| hyperlink_map(&rp, &links, &settings(0.5, iterations));
    // All values are multiplied by 1 / xM, where xM is the largest component.
    let over = |x: f64, largest: f64| vec![(x / largest * ONE as f64) as u64];
    // x(0) = r.
    assert_eq!(x(0), [vec![ONE], vec![ONE / 2], vec![ONE / 4]]);
    // x(1): 1 + 1/2 (1/2 1/2) = 1.125, and 1/2 + 1/2 (1/4 1/4) = 0.53125.
    assert_eq!(x(1), [vec![ONE], over(0.53125, 1.125), over(0.25, 1.125)]);
    // x(2): 1 + 1/2 (0.53125 1/2) = 1.1328125. It now includes the page two links away.
    assert_eq!(x(2), [vec![ONE], over(0.53125, 1.1328125), over(0.25, 1.1328125)]);
}

/// Returns x(t) by equation (1), before the division by xM.
fn equation_1(r: &[f64], links: &[(Page, Page)], gamma: f64, iterations: u32) -> Vec<f64> {
    let mut x = r.to_vec();
    for _ in 0..iterations {
        let children = |p: Page| links.iter().filter(move |link| link.0 == p).map(|link| link.1);
        let next = |p: Page| r[p] + gamma * children(p).map(|q| x[q] * r[q]).sum::<f64>();
        x = Page::first(r.len()).map(next).collect();
    }
    x
}

fn page() -> impl Strategy<Value = Page> {
    (0u32..6).prop_map(Page)
}

proptest! {
    #[test]
    fn section_2_2_signatures_come_from_the_equation_and_span_up_to_one(
        r in prop::collection::vec(0u64..=1000, 6),
        links in prop::collection::btree_set((page(), page()), 0..15),
        gamma in 0.0f64..1.0, iterations in 0u32..6,
    ) {
        let links: Vec<(Page, Page)> = links.into_iter().filter(|(p, q)| p != q).collect();
        let rp: Vec<Vec<u64>> = r.iter().map(|&r| vec![r * (ONE / 1000)]).collect();
        let signatures = hyperlink_map(&rp, &links, &settings(gamma, iterations));
        let r: Vec<f64> = r.iter().map(|&r| r as f64 / 1000.0).collect();
        let x = equation_1(&r, &links, gamma, iterations);
        let largest = x.iter().copied().fold(0.0, f64::max);
        for (signature, x) in signatures.iter().zip(x) {
            let want = if largest > 0.0 { x / largest * ONE as f64 } else { 0.0 };
            prop_assert!((signature[0] as f64 - want).abs() <= 2.0, "{} for {want}", signature[0]);
            prop_assert!(signature[0] <= ONE);
        }
    }

    #[test]
    fn section_2_2_s_iterations_include_the_descendants_that_are_s_links_away(steps in 1u32..6) {
        // A chain of pages. Only the signature of the last page is changed, between 1/2 and 1. A
        // page outside of the chain has the largest component, so the divisor xM stays constant.
        let last = 5usize;
        let links = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (6, 7)].map(|(page, next)| (Page(page), Page(next)));
        let first = |r_of_last: u64| {
            let mut rp = vec![vec![ONE / 2]; 8];
            rp[last] = vec![r_of_last];
            (rp[6], rp[7]) = (vec![ONE], vec![ONE]);
            hyperlink_map(&rp, &links, &settings(1.0, steps))
        };
        let (before, after) = (first(ONE / 2), first(ONE));
        for page in 0..last {
            let links_away = (last - page) as u32;
            prop_assert_eq!(before[page] != after[page], links_away <= steps, "page {}", page);
        }
    }
}

// Section 3: experimental results.

/// Returns the pairs of documents, given by (HM, RP), that collide with tolerance (C, D).
fn colliding(documents: &[[f64; 2]], c: f64, d: f64) -> Vec<(u32, u32)> {
    let mut points = Points::new(2);
    documents.iter().for_each(|document| points.push(&document.map(parts)));
    let mut pairs = Vec::new();
    collisions(&points, documents.len(), &[parts(c), parts(d)], |block| {
        block.for_each_pair(|x, y| pairs.push((x.min(y), x.max(y))));
    });
    pairs.sort_unstable();
    pairs
}

#[test]
fn section_3_documents_collide_when_both_signatures_are_nearer_than_their_tolerances() {
    let documents = [[0.50, 0.50], [0.55, 0.52], [0.60, 0.50], [0.50, 0.60]];
    assert_eq!(colliding(&documents, 0.1, 0.1), [(0, 1), (1, 2), (1, 3)], "strictly less than C and D");
    assert_eq!(colliding(&documents, 0.2, 0.1), [(0, 1), (0, 2), (1, 2), (1, 3)]);
    assert_eq!(colliding(&documents, 0.1, 0.2), [(0, 1), (0, 3), (1, 2), (1, 3)]);
    // "The fourth curve (C = 1) reports the behavior of the algorithm when using only the RP
    // signature."
    assert_eq!(colliding(&documents, 1.0, 0.1), colliding(&documents, 0.2, 0.1));
    // The distance is the maximum norm: the largest difference of any component.
    assert_eq!(distance(&[5, 9, 2], &[4, 1, 2]), 8);
}

proptest! {
    #[test]
    fn section_3_all_pairs_within_both_tolerances_and_no_others(
        documents in prop::collection::vec((0u32..20, 0u32..20), 0..60), c in 1u32..6, d in 1u32..6
    ) {
        let at = |n: u32| f64::from(n) / 20.0;
        let points: Vec<[f64; 2]> = documents.iter().map(|&(hm, rp)| [at(hm), at(rp)]).collect();
        let mut want = Vec::new();
        for (x, left) in (0u32..).zip(&documents) {
            for (y, right) in (0u32..).zip(&documents).skip(x as usize + 1) {
                if left.0.abs_diff(right.0) < c && left.1.abs_diff(right.1) < d {
                    want.push((x, y));
                }
            }
        }
        prop_assert_eq!(colliding(&points, at(c), at(d)), want);
    }
}
