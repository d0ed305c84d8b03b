//! Comparison of collections with copies of targets.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::parts::Parts;
use super::truth::CommonPages;
use super::{Ratio, TruthMemberRow};
use webtwin_base::ids::DocId;

/// Minimum number of pages of a counted collection.
const COUNTED_PAGES: usize = 10;

/// Counts of collections of at least 10 pages in similar clusters of at least 2 collections, and of
/// the targets that they correspond to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CollectionCounts {
    /// Number of counted collections.
    pub collections: u64,
    /// Number of counted collections that correspond to a target.
    pub corresponding: u64,
    /// Number of targets with a corresponding collection.
    pub targets_found: u64,
    /// Number of targets in the truth.
    pub targets: u64,
    /// Number of target pages in some corresponding collection.
    pub pages_covered: u64,
    /// Total number of target pages.
    pub pages: u64,
    /// Number of copies with at least 80 % of their pages in one counted collection.
    pub copies_whole: u64,
    /// Number of copies with a corresponding collection.
    pub copies_found: u64,
    /// Number of copies of targets in the truth.
    pub copies: u64,
    /// Number of target pages that have a copy.
    pub pages_with_copy: u64,
    /// Number of target pages that have a copy and are in some corresponding collection.
    pub pages_with_copy_covered: u64,
    /// Number of connected parts of copies.
    pub parts: u64,
    /// Number of connected parts with at least 80 % of their pages that have a copy in one counted
    /// collection.
    pub parts_whole: u64,
    /// Number of connected parts of copies with a corresponding collection.
    pub parts_of_copies_found: u64,
    /// Number of corresponding collections of copies that have connected parts.
    pub corresponding_in_parts: u64,
    /// Number of similar clusters whose counted collections hold more than one target: mixed
    /// clusters.
    pub mixed: u64,
    /// Number of similar clusters with a counted collection.
    pub clusters: u64,
}

impl CollectionCounts {
    /// Returns the fraction of counted collections that do not correspond to a target.
    pub fn problem_share(&self) -> Ratio {
        Ratio { part: self.collections - self.corresponding, whole: self.collections }
    }

    /// Returns the fraction of target pages in corresponding collections.
    pub fn coverage(&self) -> Ratio {
        Ratio { part: self.pages_covered, whole: self.pages }
    }

    /// Returns the fraction of target pages with a copy that are in corresponding collections.
    pub fn coverage_of_copied(&self) -> Ratio {
        Ratio { part: self.pages_with_copy_covered, whole: self.pages_with_copy }
    }

    /// Returns the number of corresponding collections per connected part of the copies found; 1 if
    /// no part is split.
    pub fn collections_a_part(&self) -> Ratio {
        Ratio { part: self.corresponding_in_parts, whole: self.parts_of_copies_found }
    }

    /// Returns the number of corresponding collections per copy found; 1 if no copy is split.
    pub fn collections_a_copy(&self) -> Ratio {
        Ratio { part: self.corresponding, whole: self.copies_found }
    }
}

/// A collection of the run, in terms of the truth.
struct Collection<'a> {
    members: &'a [TruthMemberRow],
    /// Copy to which at least 90 % of the pages belong.
    copy: Option<u32>,
    /// Number of known target pages, by copy.
    pages_by_copy: BTreeMap<u32, u64>,
}

impl<'a> Collection<'a> {
    fn new(common_pages: &CommonPages, members: &'a [TruthMemberRow]) -> Collection<'a> {
        let mut page_counts = BTreeMap::new();
        for page in members.iter().filter_map(|member| common_pages.target_page(member.doc_id)) {
            *page_counts.entry(page.copy).or_insert(0) += 1;
        }
        let copy =
            page_counts.iter().find(|&(_, &pages)| 10 * pages >= 9 * members.len() as u64).map(|(&copy, _)| copy);
        Collection { members, copy, pages_by_copy: page_counts }
    }

    fn is_counted(&self) -> bool {
        self.members.len() >= COUNTED_PAGES
    }

    /// Returns the targets that the collection holds: the target of at least 90 % of its target
    /// pages, or otherwise all targets of its pages.
    fn targets(&self, common_pages: &CommonPages) -> BTreeSet<u32> {
        let mut targets = BTreeMap::new();
        for (&copy, &pages) in &self.pages_by_copy {
            *targets.entry(common_pages.copies[copy as usize].target).or_insert(0) += pages;
        }
        let total: u64 = targets.values().sum();
        match targets.iter().find(|&(_, &pages)| 10 * pages >= 9 * total) {
            Some((&target, _)) => BTreeSet::from([target]),
            None => targets.into_keys().collect(),
        }
    }
}

/// Counts collections. Also returns for each copy of the truth whether it is found.
pub(super) fn count(
    common_pages: &CommonPages,
    members: &[TruthMemberRow],
    parts: &Parts,
) -> (CollectionCounts, Vec<bool>) {
    let mut members = members.to_vec();
    members.sort_unstable_by_key(|row| (row.similar_cluster, row.collection, row.doc_id));
    members.dedup();

    let copies = &common_pages.copies;
    let target = |copy: u32| copies[copy as usize].target;
    let mut counts = CollectionCounts::default();
    let mut is_found = vec![false; copies.len()];
    let mut most_in_one = vec![0; copies.len()];
    let mut covered_pages: HashSet<DocId> = HashSet::new();
    let has_parts: HashSet<u32> = parts.parts.iter().map(|part| part.0).collect();
    let mut most_of_part = vec![0; parts.parts.len()];
    for cluster in members.chunk_by(|a, b| a.similar_cluster == b.similar_cluster) {
        let collections: Vec<Collection> = cluster
            .chunk_by(|a, b| a.collection == b.collection)
            .map(|rows| Collection::new(common_pages, rows))
            .collect();
        if collections.len() < 2 {
            continue;
        }
        let mut copies_by_target: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for copy in collections.iter().filter_map(|collection| collection.copy) {
            copies_by_target.entry(target(copy)).or_default().insert(copy);
        }
        let mut targets = BTreeSet::new();
        for collection in collections.iter().filter(|collection| collection.is_counted()) {
            counts.collections += 1;
            targets.append(&mut collection.targets(common_pages));
            for (&copy, &pages) in &collection.pages_by_copy {
                most_in_one[copy as usize] = pages.max(most_in_one[copy as usize]);
            }
            for (part, pages) in pages_of_parts(common_pages, parts, collection.members) {
                most_of_part[part as usize] = pages.max(most_of_part[part as usize]);
            }
            // A corresponding collection needs another copy of its target in the similar cluster.
            if let Some(copy) = collection.copy.filter(|&copy| copies_by_target[&target(copy)].len() > 1) {
                counts.corresponding += 1;
                counts.corresponding_in_parts += u64::from(has_parts.contains(&copy));
                is_found[copy as usize] = true;
                let pages = collection.members.iter().map(|member| member.doc_id);
                covered_pages.extend(pages.filter(|&doc_id| common_pages.target_page(doc_id).is_some()));
            }
        }
        counts.clusters += u64::from(collections.iter().any(Collection::is_counted));
        counts.mixed += u64::from(targets.len() > 1);
    }

    // Single texts (variant `near`) are targets, too, but not collections.
    let in_collections = || copies.iter().zip(&is_found).filter(|(copy, _)| copy.is_collection());
    let count_targets = |found_only: bool| {
        let found_copies = in_collections().filter(|&(_, &found)| found || !found_only);
        found_copies.map(|(copy, _)| copy.target).collect::<HashSet<_>>().len() as u64
    };
    counts.targets = count_targets(false);
    counts.targets_found = count_targets(true);
    counts.copies = in_collections().count() as u64;
    counts.copies_found = in_collections().filter(|&(_, &found)| found).count() as u64;
    counts.copies_whole = copies
        .iter()
        .zip(most_in_one)
        .filter(|(copy, most)| copy.is_collection() && 10 * most >= 8 * copy.pages)
        .count() as u64;
    counts.pages = in_collections().map(|(copy, _)| copy.pages).sum();
    let is_page = |doc_id: &&DocId| {
        common_pages.target_page(**doc_id).is_some_and(|page| copies[page.copy as usize].is_collection())
    };
    counts.pages_covered = covered_pages.iter().filter(is_page).count() as u64;
    let copied_pages =
        common_pages.pages.iter().zip(&parts.has_copy).filter(|(page, has_copy)| **has_copy && is_page(&&page.doc_id));
    for (page, _) in copied_pages {
        counts.pages_with_copy += 1;
        counts.pages_with_copy_covered += u64::from(covered_pages.contains(&page.doc_id));
    }
    counts.parts = parts.parts.len() as u64;
    let is_whole = |((_, pages), most): &(&(u32, u64), &u64)| 10 * **most >= 8 * pages;
    counts.parts_whole = parts.parts.iter().zip(&most_of_part).filter(is_whole).count() as u64;
    counts.parts_of_copies_found = parts.parts.iter().filter(|part| is_found[part.0 as usize]).count() as u64;
    (counts, is_found)
}

/// Returns for each connected part the number of its pages that have a copy and are members.
fn pages_of_parts(common_pages: &CommonPages, parts: &Parts, members: &[TruthMemberRow]) -> BTreeMap<u32, u64> {
    let mut pages = BTreeMap::new();
    let places = members.iter().filter_map(|member| common_pages.place.get(&member.doc_id));
    for part in places.filter(|&&at| parts.has_copy[at]).filter_map(|&at| parts.part[at]) {
        *pages.entry(part).or_insert(0) += 1;
    }
    pages
}
