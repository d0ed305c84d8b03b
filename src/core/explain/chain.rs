//! Search for the pairs that joined two pages.

use std::collections::{HashMap, HashSet, VecDeque};

use webtwin_base::ids::DocId;

/// Returns the indexes of the edges of a shortest path between two pages, in path order, or `None`
/// if there is no path. Among equally short paths, returns the one that a search in the order of
/// the edges finds first.
///
/// # Examples
/// ```
/// use webtwin_core::explain::chain::shortest;
///
/// let edges = [(1, 2), (2, 3), (3, 4), (1, 3), (8, 9)];
/// // By the pair (1, 3), then by (3, 4).
/// assert_eq!(shortest(&edges, 1, 4), Some(vec![3, 2]));
/// assert_eq!(shortest(&edges, 1, 9), None);
/// ```
pub fn shortest(edges: &[(DocId, DocId)], from: DocId, to: DocId) -> Option<Vec<usize>> {
    let mut neighbours: HashMap<DocId, Vec<(usize, DocId)>> = HashMap::new();
    for (at, &(a, b)) in edges.iter().enumerate() {
        neighbours.entry(a).or_default().push((at, b));
        neighbours.entry(b).or_default().push((at, a));
    }
    let mut came_by: HashMap<DocId, (usize, DocId)> = HashMap::new();
    let (mut visited_ids, mut queue) = (HashSet::from([from]), VecDeque::from([from]));
    while let Some(page) = queue.pop_front() {
        if page == to {
            let mut path = Vec::new();
            let mut at = to;
            while let Some(&(edge, previous)) = came_by.get(&at) {
                path.push(edge);
                at = previous;
            }
            path.reverse();
            return Some(path);
        }
        for &(edge, next) in neighbours.get(&page).into_iter().flatten() {
            if visited_ids.insert(next) {
                came_by.insert(next, (edge, page));
                queue.push_back(next);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortest_edit_script_is_taken() {
        let edges = [(1, 2), (2, 3), (3, 4), (1, 3), (8, 9)];
        assert_eq!(shortest(&edges, 1, 4), Some(vec![3, 2]));
        assert_eq!(shortest(&edges, 4, 1), Some(vec![2, 3]));
        assert_eq!(shortest(&edges, 1, 9), None);
        assert_eq!(shortest(&edges, 5, 5), Some(vec![]));
    }
}
