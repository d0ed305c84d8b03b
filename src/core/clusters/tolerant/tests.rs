use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use webtwin_job::AttachmentRule;

const SETTINGS: ClusterSettings = ClusterSettings {
    merge: MergeCondition::Tolerant,
    single_site: true,
    min_size: 2,
    min_hosts: 2,
    attach: AttachmentRule::None,
};

/// A crawl of hosts, each given as the trivial clusters of its pages and the links between them by
/// index.
#[derive(Default)]
struct DrawnCrawl {
    names: Vec<char>,
    hosts: Vec<HostId>,
    links: Vec<(Page, Page)>,
}

impl DrawnCrawl {
    /// Adds a host; upper-case pages have no copy. A link is written "ab", by the first pages of
    /// these names.
    fn host(mut self, pages: &str, links: &str) -> DrawnCrawl {
        let (first, host) = (self.names.len(), self.hosts.last().map_or(HostId(0), |host| HostId(host.0 + 1)));
        self.names.extend(pages.chars());
        self.hosts.resize(self.names.len(), host);
        let place = |name: char| Page::from_index(first + pages.chars().position(|page| page == name).unwrap());
        self.links.extend(links.split(' ').map(|link| {
            let mut ends = link.chars();
            (place(ends.next().unwrap()), place(ends.next().unwrap()))
        }));
        self
    }

    /// Returns collections as the names of their pages, followed by a plus and the attached pages.
    fn grown(&self, settings: &ClusterSettings) -> Vec<Vec<String>> {
        let label = |at: usize| {
            let is_same_text = |other: &char| other.is_lowercase() && *other == self.names[at];
            ClusterId(self.names.iter().position(is_same_text).unwrap_or(at) as u32)
        };
        let labels: Vec<ClusterId> = (0..self.names.len()).map(label).collect();
        let name = |page: &Page| self.names[*page];
        let text = |collection: &PageCollection| {
            let mut members: Vec<char> = collection.members.iter().map(|member| name(&member.1)).collect();
            members.sort_unstable();
            let mut text: String = members.into_iter().collect();
            if !collection.nearby.is_empty() {
                text.push('+');
                text.extend(collection.nearby.iter().map(name));
            }
            text
        };
        let similar = similar_clusters(&labels, &self.hosts, &self.links, settings);
        let message = similar.iter().filter(|cluster| !cluster.double);
        message.map(|cluster| cluster.collections.iter().map(text).collect()).collect()
    }
}

fn attaching(attach: AttachmentRule) -> ClusterSettings {
    ClusterSettings { attach, ..SETTINGS }
}

const TREE: &str = "ab ac bd ce";

#[test]
fn a_page_missing_in_one_mirror_is_missing_there_only() {
    let crawl = DrawnCrawl::default().host("abcde", TREE).host("abcde", TREE).host("abce", "ab ac ce");
    assert_eq!(crawl.grown(&SETTINGS), [["abcde", "abcde", "abce"]]);
}

#[test]
fn closer_linked_of_two_copies_in_one_mirror_is_in_the_collection() {
    // The second host has d twice: x is the name of the double, which only b links to.
    let mut crawl = DrawnCrawl::default().host("abcde", TREE).host("axbcde", "ab ac bd ce cd bx");
    crawl.names[6] = 'd';
    assert_eq!(crawl.grown(&SETTINGS), [["abcde", "abcde"]]);
    assert_eq!(crawl.grown(&attaching(AttachmentRule::Nearby)), [["abcde", "abcde+d"]]);
}

#[test]
fn two_versions_on_one_host_are_two_collections_each_in_one_piece() {
    let mut crawl = DrawnCrawl::default().host("abcde", TREE).host("abcdevwxyz", "ab ac bd ce vw vx wy xz av");
    for (at, name) in (10..).zip("abcde".chars()) {
        crawl.names[at] = name;
    }
    assert_eq!(crawl.grown(&SETTINGS), [["abcde", "abcde", "abcde"]]);
}

#[test]
fn home_pages_of_two_hosts_do_not_join_separately_mirrored_manuals() {
    // h links to two manuals, each of which is on five more hosts.
    let links = "ab ac cb vw vx xw ha hv";
    let mut crawl = DrawnCrawl::default().host("habcvwx", links).host("habcvwx", links);
    for _ in 0..5 {
        crawl = crawl.host("abc", "ab ac cb").host("vwx", "vw vx xw");
    }
    assert_eq!(crawl.grown(&SETTINGS), [vec!["abc"; 7], vec!["vwx"; 7]]);
}

#[test]
fn two_manuals_that_two_hosts_carry_are_two_similar_clusters() {
    // A similar crawl with so few copies that the home pages join the manuals; all manuals have the
    // licence l.
    let links = "ab ac cb vw vx xw ha hv bl wl al vl";
    let mut crawl = DrawnCrawl::default().host("habcvwxl", links).host("habcvwxl", links);
    for _ in 0..2 {
        crawl = crawl.host("abcl", "ab ac cb bl al").host("vwxl", "vw vx xw wl vl");
    }
    assert_eq!(crawl.grown(&SETTINGS), [["abchl", "abchl", "abcl", "abcl"], ["vwx", "vwx", "vwx", "vwx"]]);
}

#[test]
fn versions_that_drift_are_one_similar_cluster_though_the_first_and_last_share_little() {
    // Each version has six of the pages in a row, all linked from the contents t.
    let mut crawl = DrawnCrawl::default();
    for first in 0..5 {
        let pages: String = "abcdefghijklmno".chars().skip(2 * first).take(6).collect();
        let links: Vec<String> = pages.chars().map(|page| format!("t{page}")).collect();
        crawl = crawl.host(&format!("t{pages}"), &links.join(" "));
    }
    assert_eq!(crawl.grown(&SETTINGS).len(), 1);
}

#[test]
fn repetition_on_one_host_is_a_mirror_only_with_the_setting() {
    let mut crawl = DrawnCrawl::default().host("abcdevwxyz", "ab ac bd ce vw vx wy xz");
    for (at, name) in (5..).zip("abcde".chars()) {
        crawl.names[at] = name;
    }
    assert!(crawl.grown(&SETTINGS).is_empty());
    assert_eq!(crawl.grown(&ClusterSettings { min_hosts: 1, ..SETTINGS }), [["abcde", "abcde"]]);
}

/// Tests the definition of the module documentation, point by point.
fn meets_the_definition(
    cluster: &SimilarCluster,
    links: &BTreeSet<(Page, Page)>,
    hosts: &[HostId],
    min_hosts: usize,
) -> Result<(), String> {
    let collections = &cluster.collections;
    let mut pages = BTreeSet::new();
    for collection in collections {
        for member in &collection.members {
            let one_host = hosts[member.1] == collection.host;
            let copies = collection.members.iter().filter(|other| other.0 == member.0).count();
            if !pages.insert(member.1) || !one_host || copies > 1 {
                return Err(format!("1: {member:?} of {collection:?}"));
            }
            let linked = collection.members.iter().any(|other| {
                collections.iter().filter(|copy| *copy != collection).any(|copy| {
                    let (Some(p), Some(q)) = (copy.page_of(member.0), copy.page_of(other.0)) else { return false };
                    let are_links = |x: (Page, Page), y: (Page, Page)| links.contains(&x) && links.contains(&y);
                    are_links((member.1, other.1), (p, q)) || are_links((other.1, member.1), (q, p))
                })
            });
            if !linked {
                return Err(format!("3: {member:?} of {collection:?}"));
            }
        }
        let larger = |copy: &&PageCollection| {
            by_size(copy.members.len(), PieceId::from_smallest(copy.first_page()))
                > by_size(collection.members.len(), PieceId::from_smallest(collection.first_page()))
        };
        let shared =
            |copy: &PageCollection| collection.members.iter().filter(|member| copy.page_of(member.0).is_some()).count();
        let copy = |copy: &PageCollection| shared(copy) >= 3 && 10 * shared(copy) >= 3 * collection.members.len();
        if collections.iter().filter(larger).count() > 0 && !collections.iter().filter(larger).any(copy) {
            return Err(format!("2: {collection:?}"));
        }
    }
    let hosts_covered: BTreeSet<HostId> = collections.iter().map(|collection| collection.host).collect();
    if hosts_covered.len() < min_hosts || collections.len() < 2 { Err("4".into()) } else { Ok(()) }
}

/// Returns the links of a tree whose root is page `first`, to each later page from an earlier one.
fn links_of(tree: &[prop::sample::Index], first: usize) -> impl Iterator<Item = (Page, Page)> + '_ {
    let link = move |parent: usize, page: usize| (Page::from_index(first + parent), Page::from_index(first + page));
    tree.iter().zip(1..).map(move |(parent, page)| link(parent.index(page), page))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn every_cluster_grown_on_any_graph_meets_the_definition(
        labels in prop::collection::vec(0u32..7, 24),
        hosts in prop::collection::vec((0u32..3).prop_map(HostId), 24),
        links in prop::collection::btree_set(((0u32..24).prop_map(Page), (0u32..24).prop_map(Page)), 0..160),
        min_hosts in 1u32..3,
    ) {
        let label = |l: &u32| ClusterId(labels.iter().position(|m| m == l).unwrap() as u32);
        let labels: Vec<ClusterId> = labels.iter().map(label).collect();
        let link_list: Vec<_> = links.iter().copied().collect();
        let similar = similar_clusters(&labels, &hosts, &link_list, &ClusterSettings { min_hosts, ..SETTINGS });
        let mut pages_seen = BTreeSet::new();
        for cluster in &similar {
            let members = cluster.collections.iter().flat_map(|collection| &collection.members);
            prop_assert!(members.into_iter().all(|member| pages_seen.insert(member.1)), "a page in two collections");
            let min_hosts = if cluster.double { 1 } else { min_hosts as usize };
            prop_assert_eq!(meets_the_definition(cluster, &links, &hosts, min_hosts), Ok(()));
        }
    }

    /// Two random trees, together below a home page on some hosts, and each alone on others.
    #[test]
    fn manuals_that_also_occur_alone_are_separated(
        trees in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 5..9), 2),
        (both, alone) in (1u32..5).prop_flat_map(|alone| (1..2 * alone + 1, Just(alone))),
    ) {
        let (mut labels, mut hosts, mut links) = (vec![], vec![], vec![]);
        let carried = (0..both).map(|_| &[0, 1][..]).chain((0..2 * alone).map(|n| if n < alone { &[0][..] } else { &[1] }));
        for (host, carried) in (0..).zip(carried) {
            let home = Page::from_index(labels.len());
            labels.push(if carried.len() > 1 { 99 } else { 1000 + host });
            for &tree in carried {
                let first = labels.len();
                labels.extend((0..=trees[tree].len() as u32).map(|page| 100 * (tree as u32 + 1) + page));
                links.push((home, Page::from_index(first)));
                links.extend(links_of(&trees[tree], first));
            }
            hosts.resize(labels.len(), HostId(host));
        }
        let label = |l: &u32| ClusterId(labels.iter().position(|m| m == l).unwrap() as u32);
        let names: Vec<ClusterId> = labels.iter().map(label).collect();
        let similar = similar_clusters(&names, &hosts, &links, &SETTINGS);
        prop_assert_eq!(similar.len(), 2);
        for cluster in &similar {
            prop_assert_eq!(cluster.collections.len() as u32, both + alone);
            let members = cluster.collections.iter().flat_map(|collection| &collection.members);
            let trees: BTreeSet<u32> = members.map(|member| labels[member.1] / 100).filter(|tree| *tree > 0).collect();
            prop_assert_eq!(trees.len(), 1);
        }
    }

    /// Copies of one random graph, each without some pages: growth returns the parts that are
    /// connected in two of them.
    #[test]
    fn planted_versions_are_found(
        tree in prop::collection::vec(any::<prop::sample::Index>(), 12),
        lost in prop::collection::vec(prop::collection::btree_set(1u32..13, 0..2), 2..5),
    ) {
        let (mut labels, mut hosts, mut links) = (vec![], vec![], vec![]);
        for (host, lost_pages) in (0..).zip(&lost) {
            let first = labels.len();
            let first_changed = 100 + first as u32;
            labels.extend((0..13u32).map(|page| if lost_pages.contains(&page) { first_changed + page } else { page }));
            hosts.extend([HostId(host); 13]);
            links.extend(links_of(&tree, first));
        }
        let label = |l: &u32| ClusterId(labels.iter().position(|m| m == l).unwrap() as u32);
        let labels: Vec<ClusterId> = labels.iter().map(label).collect();
        let similar = similar_clusters(&labels, &hosts, &links, &ClusterSettings { attach: AttachmentRule::Nearby, ..SETTINGS });
        for collection in similar.iter().flat_map(|cluster| &cluster.collections) {
            prop_assert!(collection.members.iter().all(|member| hosts[member.1] == collection.host));
        }
        let whole = lost.iter().filter(|lost| lost.is_empty()).count();
        if whole > 1 {
            let full = similar.iter().flat_map(|cluster| &cluster.collections).filter(|c| c.members.len() == 13).count();
            prop_assert!(full >= whole, "{full} of {whole}");
        }
    }
}
