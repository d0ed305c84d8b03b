//! Finds the roots of a forest by pointer jumping. The edges of the forest are held by the owners
//! of their children.
//!
//! Each worker asks the owners of its parents for the grandparents, and so on, so that every
//! question reaches twice as many levels up as the previous one. Trees of one level take two
//! exchanges, and each doubling of their height takes two more. A worker asks for the parent of a
//! page only once, even if several of its children have that page as parent.
//!
//! # Memory
//! Takes 8 bytes for each edge of a worker's children, and 32 for each distinct parent of these
//! children or for each question that is asked in the same round.

use webtwin_base::error::Result;
use webtwin_base::ids::{Number, Page};
use webtwin_engine::Net;

/// Returns the root of every child as `(child, root)`, in ascending order. A root that has children
/// is its own root.
///
/// `edges` are (child, parent) on the worker `owner(child)`; each child has one edge.
///
/// # Errors
/// Returns an error only if the run has ended.
pub fn roots(
    net: &mut Net<'_>,
    name: &str,
    mut edges: Vec<[Page; 2]>,
    owner: impl Fn(Page) -> usize,
) -> Result<Vec<[Page; 2]>> {
    let own_page = Page::from_index(net.index());
    edges.sort_unstable();
    let mut parents = distinct(edges.iter().map(|edge| edge[1]));
    loop {
        let questions = parents.iter().map(|&parent| [parent, own_page]);
        let mut questions: Vec<[Page; 2]> = net.exchange(name, questions, |row| owner(row[0]))?;
        add_roots(&mut edges, questions.iter().map(|question| question[0]));
        // A root has itself as parent; such an answer would bring no progress.
        let parent_above = |page: Page| parent(&edges, page).filter(|&above| above != page);
        questions.retain(|question| parent_above(question[0]).is_some());
        let count = questions.len() as u64;
        let answers = questions.into_iter().filter_map(|[page, worker]| Some([page, parent_above(page)?, worker]));
        let mut answers_here: Vec<[Page; 2]> = Vec::new();
        let take = |rows: &[[Page; 3]]| {
            answers_here.extend(rows.iter().map(|row| [row[0], row[1]]));
            Ok(())
        };
        let counts = net.exchange_with_reports(name, count, answers, |row| row[2].index(), take)?;
        if counts.iter().all(|&count| count == 0) {
            return Ok(edges);
        }
        answers_here.sort_unstable();
        for edge in &mut edges {
            if let Some(grandparent) = parent(&answers_here, edge[1]) {
                edge[1] = grandparent;
            }
        }
        parents = distinct(answers_here.iter().map(|answer| answer[1]));
    }
}

/// Returns the roots of a forest that is held completely by this worker, in the form of [`roots`],
/// by following parents.
pub fn roots_here(mut edges: Vec<[Page; 2]>) -> Vec<[Page; 2]> {
    edges.sort_unstable();
    let mut roots = edges.clone();
    for edge in &mut roots {
        while let Some(grandparent) = parent(&edges, edge[1]) {
            edge[1] = grandparent;
        }
    }
    let parents = distinct(roots.iter().map(|edge| edge[1]));
    add_roots(&mut roots, parents.into_iter());
    roots
}

/// Adds those parents that are not children as their own roots.
fn add_roots(edges: &mut Vec<[Page; 2]>, parents: impl Iterator<Item = Page>) {
    let mut roots = distinct(parents);
    roots.retain(|&page| parent(edges, page).is_none());
    if !roots.is_empty() {
        edges.extend(roots.into_iter().map(|root| [root, root]));
        edges.sort_unstable();
    }
}

/// Returns the parent of a page. `edges` must be ascending.
pub fn parent(edges: &[[Page; 2]], page: Page) -> Option<Page> {
    edges.binary_search_by_key(&page, |edge| edge[0]).ok().map(|at| edges[at][1])
}

/// Returns the distinct pages in ascending order.
fn distinct(pages: impl Iterator<Item = Page>) -> Vec<Page> {
    let mut pages: Vec<Page> = pages.collect();
    pages.sort_unstable();
    pages.dedup();
    pages
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use webtwin_engine::{ClusterLayout, run};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn roots_over_all_workers_equal_walks_from_parent_to_parent(
            // Some pages have a parent among the pages before them: from chains to stars.
            parents in prop::collection::vec(prop::option::weighted(0.8, any::<prop::sample::Index>()), 1..60),
            nearest: bool, workers in 1usize..4,
        ) {
            let parent_of = |page: usize| {
                let page_below = parents[page].as_ref().filter(|_| page > 0)?;
                Some(if nearest { page - 1 } else { page_below.index(page) })
            };
            let all_edges: Vec<[Page; 2]> = (0..parents.len())
                .filter_map(|page| Some([Page::from_index(page), Page::from_index(parent_of(page)?)]))
                .collect();
            let expected = roots_here(all_edges.clone());
            let results = run(&ClusterLayout::local(workers), 0, [0; 32], move |net| {
                let owner = |page: Page| page.index() * 7 % workers;
                let own_edges = all_edges.iter().filter(|edge| owner(edge[0]) == net.index()).copied().collect();
                roots(net, "roots", own_edges, owner)
            });
            let mut actual = results.unwrap().concat();
            actual.sort_unstable();
            prop_assert_eq!(actual, expected);
        }
    }
}
