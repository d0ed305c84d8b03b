//! Joins the parts of a mirror that was fetched whole while other members of its family were only
//! probed.
//!
//! A collection consists of pages that have copies in the same places. A page whose copies on
//! another mirror were probed has one copy more than a page whose copies were not. So a mirror that
//! is new, or back, forms one collection of the probed pages and another collection of the
//! remaining pages.
//!
//! ```text
//!   kept     1 2 3 4 5 6      crawl: {1 2, of kept, probed and new}, {3 4 5 6, of kept and new}
//!   probed   1 2 . . . .      known: kept and probed, which are carried over as they were
//!   new      1 2 3 4 5 6      so the two parts of new are one collection of that family
//! ```

use std::collections::{BTreeMap, BTreeSet};

use super::collections::{Collection, CrawlCollections};
use webtwin_base::ids::DocId;

/// Maps similar clusters of `crawl` to the similar cluster of the previous crawl that each is part
/// of. `known_pages` maps the pages of the previous crawl to their similar clusters. A cluster with
/// pages of several previous clusters is not in the map.
pub(super) fn families(crawl: &CrawlCollections, known_pages: &BTreeMap<DocId, DocId>) -> BTreeMap<DocId, DocId> {
    let mut known_clusters: BTreeMap<DocId, BTreeSet<DocId>> = BTreeMap::new();
    for page in &crawl.members {
        if let Some(family) = known_pages.get(&page.doc_id) {
            known_clusters
                .entry(crawl.collections[page.collection as usize].similar_cluster)
                .or_default()
                .insert(*family);
        }
    }
    known_clusters
        .into_iter()
        .filter(|(_, families)| families.len() == 1)
        .map(|(part, families)| (part, families.into_iter().next().expect("it has one")))
        .collect()
}

/// Joins the parts that are on one host and in one family, and moves the joined collection to that
/// family. `families` was computed before the carried-over collections were removed.
///
/// Parts stay separate in two cases: if their similar cluster still has pages in `known_pages`, or
/// if one similar cluster has two parts on the host, because these are two mirrors.
pub(super) fn join(
    crawl: &mut CrawlCollections,
    families: &BTreeMap<DocId, DocId>,
    known_pages: &BTreeMap<DocId, DocId>,
) {
    let cluster_of_page = |page: u32| crawl.collections[page as usize].similar_cluster;
    let complete_clusters: BTreeSet<DocId> = crawl
        .members
        .iter()
        .filter(|page| known_pages.contains_key(&page.doc_id))
        .map(|page| cluster_of_page(page.collection))
        .collect();
    let mut parts: BTreeMap<(&str, DocId), Vec<u32>> = BTreeMap::new();
    for (number, collection) in (0..).zip(&crawl.collections) {
        if let Some(&family) = families
            .get(&collection.similar_cluster)
            .filter(|_| !complete_clusters.contains(&collection.similar_cluster))
        {
            parts.entry((&collection.host, family)).or_default().push(number);
        }
    }
    let mut targets: Vec<u32> = (0..crawl.collections.len() as u32).collect();
    let mut merged_parts: Vec<(u32, Collection)> = Vec::new();
    for ((_, family), parts) in &parts {
        let clusters: BTreeSet<DocId> = parts.iter().map(|&at| cluster_of_page(at)).collect();
        if clusters.len() == parts.len() {
            let sum = parts.iter().map(|&at| crawl.collections[at as usize].clone()).reduce(join_parts);
            let sum = sum.expect("there is a part");
            parts.iter().for_each(|&at| targets[at as usize] = parts[0]);
            merged_parts.push((parts[0], Collection { similar_cluster: *family, ..sum }));
        }
    }
    for (number, sum) in merged_parts {
        crawl.collections[number as usize] = sum;
    }
    // Renumbers the remaining collections.
    let mut next = 0;
    let numbers: Vec<u32> = (0..)
        .zip(&targets)
        .map(|(number, &first)| {
            next += u32::from(number == first);
            next - u32::from(number == first)
        })
        .collect();
    crawl.members.iter_mut().for_each(|page| page.collection = numbers[targets[page.collection as usize] as usize]);
    let mut number = 0..;
    crawl.collections.retain(|_| number.next().is_some_and(|at: u32| targets[at as usize] == at));
    crawl.sort();
}

/// Joins two parts. The places of pages stay relative to the prefix of the part that they were in.
fn join_parts(x: Collection, y: Collection) -> Collection {
    let (larger, smaller) = if x.size >= y.size { (x, y) } else { (y, x) };
    let prefix_length = larger.prefix.bytes().zip(smaller.prefix.bytes()).take_while(|(x, y)| x == y).count();
    let folder =
        larger.prefix.as_bytes()[..prefix_length].iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
    let sum = |of: &Collection| of.resemblance.map(|mean| u64::from(mean) * u64::from(of.size));
    let size = larger.size + smaller.size;
    let resemblance = sum(&larger).zip(sum(&smaller)).map(|(x, y)| ((x + y) / u64::from(size.max(1))) as u32);
    Collection {
        id: larger.id.min(smaller.id),
        keep: larger.keep && smaller.keep,
        prefix: larger.prefix[..folder].to_string(),
        size,
        looked_at: larger.looked_at + smaller.looked_at,
        fetched: larger.fetched.max(smaller.fetched),
        skipped: larger.skipped + smaller.skipped,
        resemblance,
        ..larger
    }
}

#[cfg(test)]
mod tests {
    use super::super::collections::CollectionMember;
    use super::*;

    /// Builds a crawl of collections with id, similar cluster, host, prefix and pages.
    fn crawl(parts: &[(u64, u64, &str, &str, &[u64])]) -> CrawlCollections {
        let mut crawl = CrawlCollections::default();
        for &(id, similar_cluster, host, prefix, pages) in parts {
            let collection = crawl.collections.len() as u32;
            let (host, prefix, size) = (host.to_string(), prefix.to_string(), pages.len() as u32);
            let resemblance = Some(100 * size);
            crawl.collections.push(Collection {
                id,
                similar_cluster,
                host,
                prefix,
                size,
                resemblance,
                ..Collection::default()
            });
            crawl.members.extend(pages.iter().map(|&doc_id| CollectionMember {
                collection,
                doc_id,
                text: 0,
                place: 0,
            }));
        }
        crawl.sort();
        crawl
    }

    fn known_pages(pages: std::ops::Range<u64>) -> BTreeMap<DocId, DocId> {
        pages.map(|page| (page, 7)).collect()
    }

    #[test]
    fn parts_of_a_host_that_copy_parts_of_one_family_are_one_collection() {
        let kept_mirrors: [(u64, u64, &str, &str, &[u64]); 2] =
            [(1, 1, "kept", "http://kept/m/", &[1, 2]), (3, 3, "kept", "http://kept/m/", &[3, 4, 5])];
        let new: [(u64, u64, &str, &str, &[u64]); 3] = [
            (11, 1, "new", "http://new/m/a/", &[11, 12]),
            (13, 3, "new", "http://new/m/ab/", &[13, 14, 15]),
            (21, 3, "other", "http://other/", &[23, 24, 25]),
        ];
        let known_pages = known_pages(1..6);
        let families = families(&crawl(&[&kept_mirrors[..], &new[..]].concat()), &known_pages);
        assert_eq!(families, [(1, 7), (3, 7)].into());
        let mut crawl_read = crawl(&new);
        join(&mut crawl_read, &families, &known_pages);
        let message: Vec<_> =
            crawl_read.collections.iter().map(|one| (one.id, one.similar_cluster, one.size, &*one.prefix)).collect();
        assert_eq!(message, [(11, 7, 5, "http://new/m/"), (21, 7, 3, "http://other/")]);
        assert_eq!(crawl_read.collections[0].resemblance, Some((2 * 200 + 3 * 300) / 5));
        let first_pages: Vec<u64> = crawl_read.members_of(0).iter().map(|page| page.doc_id).collect();
        assert_eq!((first_pages, crawl_read.members_of(1).len()), (vec![11, 12, 13, 14, 15], 3));
    }

    #[test]
    fn two_mirrors_on_a_host_and_parts_of_known_collections_are_unchanged() {
        let new: [(u64, u64, &str, &str, &[u64]); 5] = [
            (11, 1, "new", "http://new/a/", &[11, 12]),
            (13, 1, "new", "http://new/b/", &[13, 14]),
            (15, 3, "new", "http://new/a/", &[15]),
            (31, 5, "kept", "http://kept/m/", &[5, 6]),
            (33, 5, "more", "http://more/m/", &[35, 36]),
        ];
        let families = [(1, 7), (3, 7), (5, 7)].into();
        let mut crawl_read = crawl(&new);
        join(&mut crawl_read, &families, &known_pages(1..7));
        assert_eq!(crawl_read, crawl(&new));
    }
}
