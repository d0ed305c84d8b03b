//! Cho, Shivakumar, Garcia-Molina: *Finding replicated web collections*.
//!
//! Our copy of the paper has lost the figures; they are reconstructed here from the text. Search
//! results that are rolled up (section 5.2, Figures 13 and 14) are tested in `tests/search.rs`.
//! `webtwin-lab reproduce csg00-...` measures section 4, Tables 1 and 2, Figures 11 and 12 and the
//! second crawl of section 5.1, which depend on the crawl and are not tested.

use std::collections::BTreeSet;

use proptest::prelude::*;
use webtwin::applications::keep::{PageCopy, keeper};
use webtwin::clusters::collection::{PageCollection, SimilarCluster, is_similar_cluster};
use webtwin::clusters::link_summary::{LinkSummary, cluster_links, link_summary};
use webtwin::clusters::merge::may_merge;
use webtwin::clusters::nearby::nearby_pages;
use webtwin::clusters::union_find::{UnionFind, sizes};
use webtwin::clusters::{growth, tolerant};
use webtwin::ids::{ClusterId, HostId, Page};
use webtwin::job::RecordLimits;
use webtwin::job::{AttachmentRule, ClusterSettings, Guard, Job, MergeCondition, Unit, resolve};
use webtwin::overlap::{FPrintDocId, sort_based};
use webtwin::pages::html::Extractor;
use webtwin::pages::url::CanonicalUrl;

/// A web graph as in the figures of the paper. A letter names a page. Pages with the same
/// lower-case letter are similar; a page with an upper-case letter has no copy. Pages are numbered
/// in the order in which [`Web::site`] adds them.
#[derive(Default)]
struct Web {
    names: Vec<char>,
    sites: Vec<HostId>,
    links: BTreeSet<(u32, u32)>,
}

impl Web {
    /// Adds a web site. A link "pq" leads from the first page p of the site to its first page q.
    fn site(mut self, pages: &str, links: &str) -> Web {
        let (first, site) = (self.names.len(), self.sites.last().map_or(HostId(0), |site| HostId(site.0 + 1)));
        self.names.extend(pages.chars());
        self.sites.resize(self.names.len(), site);
        let page = |name: char| (first + pages.chars().position(|page| page == name).unwrap()) as u32;
        for link in links.split_whitespace() {
            let ends: Vec<u32> = link.chars().map(page).collect();
            self.links.insert((ends[0], ends[1]));
        }
        self
    }

    /// Adds a link between two pages, given by their numbers.
    fn link(mut self, src: u32, dst: u32) -> Web {
        self.links.insert((src, dst));
        self
    }

    /// Returns the trivial cluster of every page.
    fn labels(&self) -> Vec<ClusterId> {
        let label = |at: usize| {
            let similar = |other: &char| other.is_lowercase() && *other == self.names[at];
            ClusterId(self.names.iter().position(similar).unwrap_or(at) as u32)
        };
        (0..self.names.len()).map(label).collect()
    }

    fn all_links(&self) -> Vec<(Page, Page)> {
        page_pairs(self.links.iter().copied())
    }

    /// Returns `LinkSummary` as rows (Ri, Rj, [a, b, s, d]), with letters for the clusters.
    fn link_summary(&self, settings: &ClusterSettings) -> Vec<(char, char, [u32; 4])> {
        let name = |cluster: ClusterId| self.names[cluster];
        self.rows(settings).iter().map(|r| (name(r.src_cluster), name(r.dst_cluster), [r.a, r.b, r.s, r.d])).collect()
    }

    fn rows(&self, settings: &ClusterSettings) -> Vec<LinkSummary> {
        let labels = self.labels();
        let pages = sizes(&labels);
        let mut links = cluster_links(&labels, &self.sites, &self.all_links(), settings.single_site);
        link_summary(&mut links, |cluster| pages[cluster])
    }

    /// Returns the edges of the TCG, with letters for the clusters.
    fn tcg(&self, settings: &ClusterSettings) -> Vec<String> {
        let merging = |row: &LinkSummary| {
            let name = |cluster: ClusterId| self.names[cluster];
            may_merge(row, settings.merge).then(|| format!("{}{}", name(row.src_cluster), name(row.dst_cluster)))
        };
        self.rows(settings).iter().filter_map(merging).collect()
    }

    fn similar_clusters(&self, settings: &ClusterSettings) -> Vec<SimilarCluster> {
        let grow = match settings.merge {
            MergeCondition::Tolerant => tolerant::similar_clusters,
            MergeCondition::Exact | MergeCondition::Extended => growth::similar_clusters,
        };
        grow(&self.labels(), &self.sites, &self.all_links(), settings)
    }

    /// Returns the collections of each similar cluster as strings of the letters of their pages.
    /// Attached pages follow after a plus.
    fn grown(&self, settings: &ClusterSettings) -> Vec<Vec<String>> {
        let letters = |pages: &mut dyn Iterator<Item = Page>| {
            let mut letters: Vec<char> = pages.map(|page| self.names[page]).collect();
            letters.sort_unstable();
            letters.into_iter().collect::<String>()
        };
        let text = |collection: &PageCollection| {
            let members = letters(&mut collection.members.iter().map(|member| member.1));
            let nearby = letters(&mut collection.nearby.iter().copied());
            if nearby.is_empty() { members } else { format!("{members}+{nearby}") }
        };
        self.similar_clusters(settings).iter().map(|cluster| cluster.collections.iter().map(text).collect()).collect()
    }

    /// Returns the collections of the only similar cluster by the numbers of their pages.
    fn pages(&self, settings: &ClusterSettings) -> Vec<Vec<u32>> {
        let clusters = self.similar_clusters(settings);
        assert_eq!(clusters.len(), 1);
        let pages = |collection: &PageCollection| {
            let mut pages: Vec<u32> = collection.members.iter().map(|member| member.1.0).collect();
            pages.sort_unstable();
            pages
        };
        clusters[0].collections.iter().map(pages).collect()
    }

    /// True if two collections, given by the numbers of their pages, are similar by Definition 5.
    fn are_similar(&self, left: impl IntoIterator<Item = u32>, right: impl IntoIterator<Item = u32>) -> bool {
        let labels = self.labels();
        let mut collections = [PageCollection::default(), PageCollection::default()];
        collections[0].members = left.into_iter().map(|page| (labels[page as usize], Page(page))).collect();
        collections[1].members = right.into_iter().map(|page| (labels[page as usize], Page(page))).collect();
        collections.iter_mut().for_each(|collection| collection.members.sort_unstable());
        is_similar_cluster(&collections, &labels, &self.all_links(), MergeCondition::Exact)
    }
}

/// Returns pairs of pages by their numbers.
fn page_pairs(numbers: impl IntoIterator<Item = (u32, u32)>) -> Vec<(Page, Page)> {
    numbers.into_iter().map(|(x, y)| (Page(x), Page(y))).collect()
}

/// Definitions of section 2: a collection may span several web sites.
const FREE: ClusterSettings = ClusterSettings {
    merge: MergeCondition::Exact,
    single_site: false,
    min_size: 2,
    min_hosts: 1,
    attach: AttachmentRule::None,
};

/// Variant of section 5.1: all pages of a collection are at a single web site.
const SINGLE_SITE: ClusterSettings = ClusterSettings { single_site: true, ..FREE };

/// Returns the settings of the second phase, which sections 2.2 and 6 leave open and
/// `src/core/clusters/tolerant.rs` defines.
fn second_phase(attach: AttachmentRule) -> ClusterSettings {
    ClusterSettings { merge: MergeCondition::Tolerant, min_hosts: 2, attach, ..SINGLE_SITE }
}

fn none() -> Vec<Vec<String>> {
    Vec::new()
}

// Section 2: similarity of collections.

#[test]
fn definition_1_a_page_is_its_text_and_its_links_at_any_position() {
    // "Our model does not distinguish between two pages with identical text and identical
    // hyperlinks that are located in different places on the page."
    let mut extractor = Extractor::new(&RecordLimits::default());
    let url = CanonicalUrl::parse("http://a.example/p.html").unwrap();
    let mut extract = |html: &str| {
        let page = extractor.html(html.as_bytes(), None, &url);
        (page.text.to_string(), page.links.to_vec())
    };
    let first = extract("<p><a href=q.html>one</a> two <a href='http://b.example/r'>three</a>");
    let second = extract("<p><a href='//b.example/r'>one</a> two <a href='/q.html#top'>three</a>");
    assert_eq!(first, second);
    let mut links = ["http://a.example/q.html", "http://b.example/r"].map(webtwin::ids::doc_id);
    links.sort_unstable();
    assert_eq!(first, ("one two three".to_string(), links.to_vec()));
}

#[test]
fn definition_2_a_collection_is_an_induced_subgraph_whose_size_is_its_number_of_pages() {
    // Page X links into the collection from outside. Such a link is not a link of the collection,
    // so Definition 5 holds in spite of it.
    let web = Web::default().site("abX", "ab Xb").site("ab", "ab");
    assert!(web.are_similar([0, 1], [3, 4]));
    let clusters = web.similar_clusters(&FREE);
    assert_eq!(clusters[0].collections[0].members.len(), 2);
}

#[test]
fn definition_3_identical_collections_are_similar() {
    // This also covers Definition 7. `src/core/clusters/identical.rs` distinguishes identical
    // collections from similar ones.
    let links = "pq pr qs rs sp";
    let web = Web::default().site("pqrs", links).site("pqrs", links);
    assert!(web.are_similar(0..4, 4..8));
    assert_eq!(web.grown(&FREE), [["pqrs", "pqrs"]]);
}

/// Returns the table of chunks and pages.
fn fprint_docid(pages: &[&[u64]]) -> Vec<FPrintDocId> {
    let rows = |(page, chunks): (Page, &&[u64])| -> Vec<FPrintDocId> {
        chunks.iter().map(|&chunk| FPrintDocId::new(chunk, page)).collect()
    };
    Page::first(pages.len()).zip(pages).flat_map(rows).collect()
}

/// Returns the trivial clusters of pages that are similar when they share `min_shared` chunks.
fn trivial_clusters(pages: &[&[u64]], min_shared: u32) -> (Vec<(u32, u32)>, Vec<ClusterId>) {
    let job = resolve("", "preset = \"four-line\"", &[format!("overlap.min_shared={min_shared}")]).unwrap();
    let hosts: Vec<HostId> = (0..pages.len() as u32).map(HostId).collect();
    let pairs = sort_based::similar_pairs(&fprint_docid(pages), &hosts, &[], &job.overlap);
    let pairs: Vec<(u32, u32)> = pairs.iter().map(|pair| (pair.a.0, pair.b.0)).collect();
    let mut sets = UnionFind::new(pages.len());
    pairs.iter().for_each(|&(a, b)| _ = sets.union(a, b));
    (pairs, sets.labels().into_iter().map(ClusterId).collect())
}

#[test]
fn section_2_1_figure_2_p_is_similar_to_p2_through_p1_and_all_three_collections_are_similar() {
    // Three sites have p, p' and p'', each with links to q and r. p' shares two chunks with p and
    // two others with p''.
    let [p, p1, p2]: [&[u64]; 3] = [&[1, 2, 9], &[1, 2, 3, 4], &[3, 4, 8]];
    let (q, r): (&[u64], &[u64]) = (&[21, 22], &[31, 32]);
    let (pairs, labels) = trivial_clusters(&[p, q, r, p1, q, r, p2, q, r], 2);
    assert!(pairs.contains(&(0, 3)) && pairs.contains(&(3, 6)) && !pairs.contains(&(0, 6)));
    assert_eq!(labels, [0, 1, 2, 0, 1, 2, 0, 1, 2].map(ClusterId));
    let links = page_pairs([(0, 1), (0, 2), (3, 4), (3, 5), (6, 7), (6, 8)]);
    let clusters = growth::similar_clusters(&labels, &[0, 0, 0, 1, 1, 1, 2, 2, 2].map(HostId), &links, &FREE);
    assert_eq!(clusters.len(), 1);
    let members: Vec<_> = clusters[0].collections.iter().map(|collection| &collection.members[..]).collect();
    let copy = |pages: [u32; 3]| [0, 1, 2].map(|at| (ClusterId(at as u32), Page(pages[at])));
    assert_eq!(members, [copy([0, 1, 2]), copy([3, 4, 5]), copy([6, 7, 8])]);
}

proptest! {
    #[test]
    fn definition_4_pages_are_similar_when_a_sequence_of_similar_pairs_leads_from_one_to_the_other(
        pairs in prop::collection::vec((0usize..12, 0usize..12), 0..14)
    ) {
        let mut similar = [[false; 12]; 12];
        (0..12).for_each(|page| similar[page][page] = true);
        pairs.iter().for_each(|&(i, j)| (similar[i][j], similar[j][i]) = (true, true));
        for via in 0..12 {
            for i in 0..12 {
                for j in 0..12 {
                    similar[i][j] |= similar[i][via] && similar[via][j];
                }
            }
        }
        let mut sets = UnionFind::new(12);
        pairs.iter().for_each(|&(i, j)| _ = sets.union(i as u32, j as u32));
        let labels = sets.labels();
        for i in 0..12 {
            for j in 0..12 {
                prop_assert_eq!(labels[i] == labels[j], similar[i][j]);
            }
        }
    }
}

#[test]
fn section_2_2_figure_3a_the_core_is_found_and_the_second_phase_adds_the_additional_page() {
    let web = Web::default().site("pqr", "pq pr").site("pqrS", "pq pr pS");
    assert!(!web.are_similar(0..3, 3..7), "\"we will require similar collections to be equi-sized\"");
    assert!(web.are_similar(0..3, 3..6));
    // "We would first identify the core similar collections. Then the second phase would search for
    // pages (like s) that could be added to one or the other collection."
    assert_eq!(web.grown(&FREE), [["pqr", "pqr"]]);
    assert_eq!(web.grown(&second_phase(AttachmentRule::Nearby)), [["pqr", "pqr+S"]]);
    let (links, similar_page) = (page_pairs([(3, 4), (3, 5), (3, 6)]), |page| (page != Page(6)).then_some(Page(7)));
    assert_eq!(nearby_pages(&links, similar_page, AttachmentRule::Nearby), page_pairs([(6, 7)]));
    assert_eq!(nearby_pages(&links, similar_page, AttachmentRule::BreakPoints), []);
}

#[test]
fn section_2_2_figure_3b_collections_with_copies_inside_are_dissimilar() {
    // [ii].p points to two copies of q, and [i].r points to two copies of s.
    let web = Web::default().site("pqrss", "pq pr rs").link(2, 4).site("pqqrs", "pq pr rs").link(5, 7);
    assert!(!web.are_similar(0..5, 5..10));
    assert_eq!(web.grown(&FREE), [["pr", "pr"]], "only pages with a one-to-one mapping");
}

#[test]
fn section_2_2_figure_3c_pages_that_differ_break_a_collection() {
    // The links are p -> q -> r -> s, but [ii] has t in place of q.
    let web = Web::default().site("pQrs", "pQ Qr rs").site("pTrs", "pT Tr rs");
    assert!(!web.are_similar(0..4, 4..8));
    assert!(web.are_similar([0], [4]), "\"pages [i].p and [ii].p would be identified as similar collections\"");
    // The two pages p are a trivial cluster. They are also a similar cluster if `min_size` allows
    // collections of one page.
    assert_eq!(web.grown(&FREE), [["rs", "rs"]]);
    assert_eq!(web.grown(&ClusterSettings { min_size: 1, ..FREE }), [["p", "p"], ["rs", "rs"]]);
    let (links, similar_page) = (page_pairs([(0, 1), (1, 2), (2, 3)]), |page| (page != Page(1)).then_some(Page(7)));
    assert_eq!(nearby_pages(&links, similar_page, AttachmentRule::BreakPoints), page_pairs([(1, 7)]));
}

#[test]
fn section_2_2_figure_3d_one_matching_link_is_enough() {
    // [i].r has incoming links from p and q; [ii].r has one from q only.
    let web = Web::default().site("pqr", "pr qr").site("pqr", "qr");
    assert!(web.are_similar(0..3, 3..6));
    assert!(!web.are_similar([0, 2], [3, 5]), "[i].r has a parent in the collection, [ii].r has none");
    // Growth follows links, so p, which has no link to q or r that both sites share, is not part of
    // the collection (section 3).
    assert_eq!(web.grown(&FREE), [["qr", "qr"]]);
}

#[test]
fn definition_5_parents_must_be_similar_pages() {
    // Both pages r have a parent, but the parents are not similar.
    let web = Web::default().site("pqr", "pq pr").site("pqr", "pq qr");
    assert!(!web.are_similar(0..3, 3..6));
    assert_eq!(web.grown(&FREE), [["pq", "pq"]]);
}

proptest! {
    /// Section 2.2: "having at least one link ensures that if one collection is a tree, then any
    /// similar collection must have the same tree structure".
    #[test]
    fn section_2_2_collections_similar_to_a_tree_have_the_same_tree(
        tree in prop::collection::vec(any::<prop::sample::Index>(), 1..7),
        more in prop::collection::btree_set((0u32..8, 0u32..8), 0..4),
        lost in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let pages = tree.len() as u32 + 1;
        let edges: BTreeSet<(u32, u32)> = (1..pages).map(|page| (tree[page as usize - 1].index(page as usize) as u32, page)).collect();
        let mut other: BTreeSet<(u32, u32)> = edges.clone();
        if let Some(lost) = lost {
            other.remove(&(tree[lost.index(tree.len())].index(lost.index(tree.len()) + 1) as u32, lost.index(tree.len()) as u32 + 1));
        }
        other.extend(more.iter().filter(|(x, y)| x != y && *x < pages && *y < pages));
        let names: String = "abcdefgh".chars().take(pages as usize).collect();
        let mut web = Web::default().site(&names, "").site(&names, "");
        web.links = edges.iter().copied().chain(other.iter().map(|&(x, y)| (x + pages, y + pages))).collect();
        let same_tree = edges.is_subset(&other) && other.iter().all(|edge| edge.1 != 0);
        prop_assert_eq!(web.are_similar(0..pages, pages..2 * pages), same_tree);
    }
}

// Section 3: computing similar clusters.

#[test]
fn section_3_figures_4_and_5_growth_prefers_cardinality_to_collection_size() {
    // Figure 4 has cardinality 2 and collections of 5 pages. Figure 5, of the same graph, has
    // cardinality 3 and collections of 3 pages.
    let web = Web::default().site("pqrst", "pq qr rs st").site("pqrst", "pq qr rs st").site("pqr", "pq qr");
    assert!(web.are_similar(0..5, 5..10), "Figure 4 is possible");
    assert_eq!(web.grown(&FREE), [vec!["pqr", "pqr", "pqr"], vec!["st", "st"]]);
}

/// Figure 6(a): three copies of a, b, c and d; t on two of the sites; s and g, which have no
/// matching links.
fn figure_6() -> Web {
    Web::default()
        .site("abcdt", "ab bc bd at dc")
        .site("abcdtg", "ab bc bd at")
        .site("abcdsg", "ab bc bd")
        .site("s", "")
}

#[test]
fn section_3_figure_6_trivial_clusters_a_b_c_d_grow_into_one() {
    // (b) The TCG. It does not join t, which is on fewer sites than a, nor s and g, which have no
    // links.
    assert_eq!(figure_6().tcg(&FREE), ["ab", "bc", "bd"]);
    // (c) The similar cluster. By Definition 6 its cardinality is 3 and its size is 4.
    assert_eq!(figure_6().grown(&FREE), [["abcd", "abcd", "abcd"]]);
    assert_eq!(figure_6().pages(&FREE), [[0, 1, 2, 3], [5, 6, 7, 8], [11, 12, 13, 14]]);
    // The second phase allows collections of different sizes.
    assert_eq!(figure_6().grown(&second_phase(AttachmentRule::None)), [["abcdt", "abcdt", "abcd"]]);
}

#[test]
fn section_3_1_s_and_d_count_pages_not_links() {
    // Two of the three pages p link to a q, one of them to two; two of the three pages q are linked
    // to.
    let web = Web::default().site("pppqqq", "").link(0, 3).link(0, 4).link(1, 4);
    assert_eq!(web.link_summary(&FREE), [('p', 'q', [3, 3, 2, 2])]);
    assert!(web.tcg(&FREE).is_empty());
}

#[test]
fn section_3_1_the_merge_condition_is_that_all_four_counts_are_equal() {
    let row = |a, b, s, d| LinkSummary { src_cluster: ClusterId(0), dst_cluster: ClusterId(1), a, b, s, d };
    assert!(may_merge(&row(3, 3, 3, 3), MergeCondition::Exact));
    for other in [row(3, 3, 2, 2), row(3, 2, 2, 2), row(2, 3, 2, 2), row(3, 3, 3, 2), row(3, 3, 2, 3)] {
        assert!(!may_merge(&other, MergeCondition::Exact), "{other:?}");
    }
}

#[test]
fn section_3_1_the_merge_condition_does_not_imply_a_one_to_one_mapping() {
    // "This condition implies that each page in Ri has a hyperlink to a unique page in Rj." It does
    // not, and in this graph no one-to-one mapping M exists: see "Deviations" in
    // `src/core/clusters/mod.rs`.
    let web = Web::default().site("pppqqq", "").link(0, 3).link(0, 4).link(0, 5).link(1, 3).link(2, 3);
    assert_eq!(web.link_summary(&FREE), [('p', 'q', [3, 3, 3, 3])]);
    assert_eq!(web.tcg(&FREE), ["pq"]);
    assert_eq!(web.grown(&FREE), none());
}

#[test]
fn section_3_1_figure_7_growth_starts_at_the_target_of_other_sites() {
    // A cycle a -> b -> a -> b -> a of four pages on one site: pages 0 to 3.
    let cycle = || Web::default().site("abab", "").link(0, 1).link(1, 2).link(2, 3).link(3, 0).site("X", "");
    assert_eq!(cycle().tcg(&FREE), ["ab", "ba"]);
    // (c) Growth from a: each a takes the b that it links to. (d) Growth from b: each b takes the a
    // that it links to.
    let (from_a, from_b) = (cycle().link(4, 0), cycle().link(4, 1));
    assert_eq!(from_a.pages(&FREE), [[0, 1], [2, 3]]);
    assert_eq!(from_b.pages(&FREE), [[0, 3], [1, 2]]);
    // The page with the most links from other sites is also the root of its collection.
    let roots = |web: &Web| web.similar_clusters(&FREE)[0].collections.iter().map(|c| c.root.0).collect::<Vec<_>>();
    assert_eq!((roots(&from_a)[0], roots(&from_b)[1]), (0, 1));
}

#[test]
fn section_3_1_growth_may_start_anywhere_in_a_cycle() {
    let cycle = Web::default().site("ab", "ab ba").site("ab", "ab ba");
    assert_eq!(cycle.grown(&FREE), [["ab", "ab"]]);
    // Two pages are too little evidence for the second phase.
    assert_eq!(cycle.grown(&second_phase(AttachmentRule::None)), none());
    let longer = Web::default().site("abc", "ab bc ca").site("abc", "ab bc ca");
    assert_eq!(longer.grown(&second_phase(AttachmentRule::None)), [["abc", "abc"]]);
}

#[test]
fn section_3_1_results_of_the_algorithm_are_checked_against_definition_5() {
    // "It can be shown that our clustering algorithm yields similar clusters." In this graph,
    // however, a has a parent on the first site and none on the other sites: see "Deviations" in
    // `src/core/clusters/mod.rs`.
    let web = Web::default().site("acd", "ac cd ca").site("acd", "ac cd").site("acd", "ac cd");
    assert_eq!(web.tcg(&FREE), ["ac", "cd"]);
    let all = web.similar_clusters(&FREE);
    assert!(all.iter().all(|c| is_similar_cluster(&c.collections, &web.labels(), &web.all_links(), FREE.merge)));
    assert_eq!(web.grown(&FREE), [["cd", "cd", "cd"]]);
    assert_eq!(all[0].taken_out, 3);
}

#[test]
fn section_3_2_algorithm_3_1_on_its_two_tables() {
    // TRIVIAL(rid, pid) and LINK(src, dest) of Figure 6 yield LinkSummary <Ts.RID, Td.RID, a, b, s,
    // d>.
    let web = figure_6();
    let link_summary = web.link_summary(&FREE);
    let step_1 = [
        ('a', 'b', [3, 3, 3, 3]),
        ('a', 't', [3, 2, 2, 2]),
        ('b', 'c', [3, 3, 3, 3]),
        ('b', 'd', [3, 3, 3, 3]),
        ('d', 'c', [3, 3, 1, 1]),
    ];
    assert_eq!(link_summary, step_1);
    // Steps 2 to 4 select the rows with a = s = d = b. Step 5 is UNION-FIND.
    let equal = link_summary.iter().filter(|(_, _, [a, b, s, d])| a == s && s == d && d == b);
    let edges: Vec<String> = equal.map(|(ri, rj, _)| format!("{ri}{rj}")).collect();
    assert_eq!(edges, web.tcg(&FREE));
}

// Section 4: quality.

/// Figure 10(a): [i] has pages a to g, [ii] has a, b and c. Both pages b link to [i].d and [i].e,
/// and both pages c link to [i].f and [i].g.
fn figure_10() -> Web {
    let web = Web::default().site("abcDEFG", "ab ac bD bE cF cG").site("abc", "ab ac");
    web.link(8, 3).link(8, 4).link(9, 5).link(9, 6)
}

#[test]
fn section_4_figure_10_a_partial_mirror_under_the_merge_condition_and_the_extended_one() {
    // (a) The merge condition leaves pages d to g as "problem collections".
    assert_eq!(figure_10().grown(&FREE), [["abc", "abc"]]);
    // The extended condition is |Ri| = s >= d = |Rj|. A row with a copy of each target satisfies it
    // with equality.
    let extended = ClusterSettings { merge: MergeCondition::Extended, ..FREE };
    assert_eq!(figure_10().link_summary(&extended)[2], ('b', 'D', [2, 1, 2, 1]));
    assert_eq!(figure_10().tcg(&extended), ["ab", "ac", "bD", "bE", "cF", "cG"]);
    // (b) "pages d, e, f and g appear in both collections". Here a page is in one collection only,
    // that of its own site: see `src/core/clusters/collection.rs`.
    assert_eq!(figure_10().grown(&extended), [["DEFGabc", "abc"]]);
}

#[test]
fn section_4_figure_10_at_a_single_site_needs_the_second_phase() {
    // Links between sites do not count then, and a page without a copy does not join a collection:
    // see `src/core/clusters/mod.rs`.
    let extended = ClusterSettings { merge: MergeCondition::Extended, ..SINGLE_SITE };
    assert_eq!(figure_10().grown(&extended), [["abc", "abc"]]);
    assert_eq!(figure_10().grown(&second_phase(AttachmentRule::None)), [["abc", "abc"]]);
    assert_eq!(figure_10().grown(&second_phase(AttachmentRule::Nearby)), [["abc+DEFG", "abc"]]);
}

proptest! {
    #[test]
    fn section_4_the_extended_condition_is_weaker(a in 1u32..5, b in 1u32..5, s in 1u32..5, d in 1u32..5) {
        let row = LinkSummary { src_cluster: ClusterId(0), dst_cluster: ClusterId(1), a, b, s, d };
        prop_assert_eq!(may_merge(&row, MergeCondition::Extended), a == s && s >= d && d == b);
        prop_assert!(!may_merge(&row, MergeCondition::Exact) || may_merge(&row, MergeCondition::Extended));
    }
}

// Section 5: exploiting similar clusters.

#[test]
fn section_5_1_the_three_chunkings_with_their_thresholds_are_presets() {
    let chunking = |name: &str| {
        let job = resolve("", &format!("preset = {name:?}"), &[]).unwrap();
        (job.chunks.unit, job.chunks.count, job.chunks.bits, job.overlap.min_shared, job.overlap.guard)
    };
    assert_eq!(chunking("document"), (Unit::Document, 1, 32, 1, Guard::None));
    assert_eq!(chunking("four-line"), (Unit::Lines, 4, 32, 15, Guard::None));
    assert_eq!(chunking("two-line"), (Unit::Lines, 2, 32, 25, Guard::None));
}

#[test]
fn section_5_1_only_collections_at_a_single_web_site_are_considered() {
    // "The algorithm was modified to consider only collections at a single web site."
    let web = Web::default().site("a", "").site("b", "").site("a", "").site("b", "").link(0, 1).link(2, 3);
    assert_eq!(web.grown(&FREE), [["ab", "ab"]]);
    assert_eq!(web.grown(&SINGLE_SITE), none());
    assert!(Job::default().clusters.single_site);
}

#[test]
fn section_5_1_a_crawler_visits_one_page_of_a_trivial_cluster_and_avoids_the_others() {
    let copy = |page| PageCopy {
        title: Default::default(),
        exact: 1,
        cluster: ClusterId(0),
        page,
        merit: 0,
        preference: 0,
        links_from_elsewhere: 0,
        links_to_host: 0,
        depth: 0,
        url_length: 9,
        must_visit: 0,
        language: 0,
        kept_before: 0,
        is_original: 0,
        pinned: 0,
    };
    let copies: Vec<PageCopy> = Page::first(10).map(copy).collect();
    let stays = keeper(&copies, |_| None).unwrap().page;
    assert_eq!(copies.iter().filter(|copy| copy.page != stays).count(), 9);
    // Every page of a collection that is kept as a whole stays.
    assert!(Page::first(10).all(|kept| keeper(&copies, |page| Some(page == kept)).unwrap().page == kept));
}

// Section 6: what a second phase should do.

#[test]
fn section_6_clusters_that_are_separated_by_a_small_segment_are_joined() {
    // Q on the second site is the counterpart of q on the other sites, but is too different to be
    // similar.
    let links = |q: &str| "ab ac bc cq qd de df eg".replace('q', q);
    let site = |web: Web, q: &str| web.site(&"abcqdefg".replace('q', q), &links(q));
    let web = site(site(site(Web::default(), "q"), "Q"), "q");
    assert_eq!(web.grown(&second_phase(AttachmentRule::None)), [["abcdefgq", "abcdefg", "abcdefgq"]]);
    assert_eq!(web.grown(&second_phase(AttachmentRule::BreakPoints)), [["abcdefgq", "abcdefg+Q", "abcdefgq"]]);
}

#[test]
fn section_6_collections_are_extended_by_nearby_pages() {
    let web = Web::default().site("abcdeN", "ab ac bd ce aN").site("abcde", "ab ac bd ce");
    assert_eq!(web.grown(&second_phase(AttachmentRule::None)), [["abcde", "abcde"]]);
    assert_eq!(web.grown(&second_phase(AttachmentRule::Nearby)), [["abcde+N", "abcde"]]);
}
