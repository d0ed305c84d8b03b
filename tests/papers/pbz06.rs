//! Pereira, Baeza-Yates, Ziviani: *Where and how duplicates occur in the web*.
//!
//! `webtwin-lab reproduce pbz06-...` measures the tables and figures. Figure 1 is an example, which
//! is a test here.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use webtwin::chunks::ChunkRecipe;
use webtwin::ids::{Page, splitmix64};
use webtwin::job::{Study, resolve};
use webtwin::overlap::prune::PageSet;
use webtwin::study::bow_tie::WebGraph;
use webtwin::study::clusters::{GrowthStep, clusters};
use webtwin::study::estimate::{PERCENTS, estimate};
use webtwin::study::matches::matches;
use webtwin::study::paragraphs::{Paragraphs, mark};
use webtwin::study::report::{ClusterTotals, Findings, NEAR_PERCENTAGES, near, nearness, percent, tables};
use webtwin::study::steps::by_steps;

fn paragraphs(change: impl Fn(&mut Study)) -> Paragraphs {
    let mut job = resolve("", "preset = \"study\"", &[]).unwrap();
    change(&mut job.study);
    Paragraphs::new(&job.chunks, &job.study)
}

/// Returns the marks of the shingle paragraphs of a text of any length.
fn marks(text: &str) -> Vec<u64> {
    let mut marks = Vec::new();
    paragraphs(|study| study.min_characters = 0).marks(text, &mut marks);
    marks
}

/// Returns a text with one sentence per letter.
fn sentences(letters: &str) -> String {
    letters.chars().map(|letter| format!("{letter} is said. ")).collect()
}

/// Returns the shingle paragraphs of a text in order.
fn shingle_paragraphs(text: &str) -> Vec<String> {
    let chunks = resolve("", "preset = \"study\"", &[]).unwrap().chunks;
    ChunkRecipe::new(&chunks).chunks(text).into_iter().map(|(_, paragraph)| paragraph.replace('\n', " ")).collect()
}

// Section 2: definitions.

#[test]
fn definition_1_six_sentences_are_two_shingle_paragraphs_without_overlap() {
    assert_eq!(shingle_paragraphs("s1. s2. s3. s4. s5. s6."), ["s1. s2. s3.", "s4. s5. s6."]);
}

#[test]
fn definition_1_a_sentence_without_a_period_ends_at_the_150th_character() {
    let text = "x".repeat(150 + 150) + "y. z.";
    assert_eq!(shingle_paragraphs(&text), [format!("{} {} y.", "x".repeat(150), "x".repeat(150)), "z.".to_string()]);
    // A full stop inside a word does not end a sentence: see "Deviations" in
    // `src/core/study/paragraphs.rs`.
    assert_eq!(shingle_paragraphs("Version 3.11 is out. b. c."), ["Version 3.11 is out. b. c."]);
}

#[test]
fn definition_1_one_or_two_last_sentences_are_a_paragraph_by_default() {
    // The paper does not mention them: see "Deviations" in `src/core/study/paragraphs.rs`.
    assert_eq!(marks(&sentences("abcdefgh")).len(), 3);
    let by_the_letter = |text: &str| {
        let mut marks = Vec::new();
        let mut paragraphs = paragraphs(|study| (study.min_characters, study.rest) = (0, false));
        (paragraphs.marks(text, &mut marks), marks)
    };
    assert_eq!(by_the_letter(&sentences("abcdefgh")), by_the_letter(&sentences("abcdef")));
}

/// Clusters documents in `steps` iterations. Each letter of a document is a shingle paragraph.
fn found(documents: &[&str], steps: u32) -> webtwin::study::clusters::StudyClusters {
    let documents: Vec<Vec<u64>> = documents.iter().map(|text| text.bytes().map(u64::from).collect()).collect();
    by_steps(&documents, steps)
}

#[test]
fn definitions_2_to_4_clusters_originals_duplicates_and_unique_documents() {
    // "Exactly the same shingle paragraphs" may be in any order.
    let found = found(&["abc", "xyz", "cab", "abd", "bca", "ab", "xyz"], 1);
    assert_eq!(found.labels, [0, 1, 0, 3, 0, 5, 1].map(Page));
    // Each of the two clusters has one original duplicated document, and its other documents are
    // duplicates. Documents 3 and 5 are unique.
    assert_eq!(found.growth, [GrowthStep { documents: 7, clusters: 2, duplicates: 3 }]);
}

#[test]
fn definition_5_near_duplicates_share_a_percentage_of_the_paragraphs_of_both() {
    // The shared paragraphs are compared with the longer document: see "Deviations" in
    // `src/core/study/report.rs`. Table 3 has 90, 70 and 50 per cent.
    assert_eq!(NEAR_PERCENTAGES, [90, 70, 50]);
    let at_least = |shared, of| nearness(shared, of).map(|at| NEAR_PERCENTAGES[at]);
    assert_eq!((at_least(9, 10), at_least(10, 10)), (Some(90), Some(90)));
    assert_eq!(
        (at_least(8, 10), at_least(7, 10), at_least(5, 10), at_least(4, 10)),
        (Some(70), Some(70), Some(50), None)
    );
}

// Section 3: the algorithm.

#[test]
fn section_3_figure_1_document_19_is_a_duplicate_of_2_and_document_3_a_false_match() {
    // Our copy of the paper has lost Figure 1: 20 documents in 10 subcollections, each document
    // with four shingle paragraphs. Document 1 is "abcd", 2 contains d and e, 19 is a duplicate of
    // 2, and 3, with "e. e. e. d. d. d. e. e. e. d. d. d.", is "eded".
    let mut texts: Vec<String> = (0..20).map(|n| format!("{}", (b'A' + n) as char).repeat(4)).collect();
    for (number, text) in [(1, "abcd"), (2, "bedf"), (3, "eded"), (19, "bedf")] {
        texts[number - 1] = text.into();
    }
    let documents: Vec<&str> = texts.iter().map(String::as_str).collect();
    let all = found(&documents, 10);
    let cluster: Vec<usize> = (1..=20).filter(|number| all.labels[number - 1] == Page(1)).collect();
    assert_eq!(cluster, [2, 3, 19]);
    // The first iteration finds the whole cluster.
    assert_eq!(all.growth[0], GrowthStep { documents: 2, clusters: 1, duplicates: 2 });
    assert_eq!(all.growth[9], GrowthStep { documents: 20, clusters: 1, duplicates: 2 });
    // By the multiset rule, which is computed in addition to the paper's rule, document 3 is
    // unique: see "The rule for duplicates" in `src/core/study/mod.rs`.
    assert_ne!(mark_of("eded"), mark_of("bedf"));
    assert_eq!(mark_of("fdeb"), mark_of("bedf"));
}

fn mark_of(text: &str) -> Vec<u64> {
    let mut marks: Vec<u64> = text.bytes().map(|letter| splitmix64(u64::from(letter))).collect();
    mark(&mut marks);
    marks
}

#[test]
fn section_3_a_subcollection_leaves_the_collection_after_its_iteration() {
    // "bedf" contains the paragraphs of "eded", but not the reverse. So "eded" is a duplicate only
    // if it comes later or is in the same subcollection.
    assert_eq!(found(&["bedf", "eded"], 2).labels, [0, 0].map(Page));
    assert_eq!(found(&["eded", "bedf"], 2).labels, [0, 1].map(Page));
    assert_eq!(found(&["eded", "bedf"], 1).labels, [0, 0].map(Page));
}

proptest! {
    #[test]
    fn section_3_results_of_the_program_equal_those_of_the_steps(
        texts in prop::collection::vec("[a-d]{1,4}", 1..30), steps in 1u32..9
    ) {
        let documents: Vec<&str> = texts.iter().map(String::as_str).collect();
        let mut first: BTreeMap<Vec<u64>, Page> = BTreeMap::new();
        let same: Vec<Page> =
            Page::first(texts.len()).map(|at| *first.entry(mark_of(&texts[at])).or_insert(at)).collect();
        let mut kinds: Vec<(Page, Vec<u64>)> = first.into_iter().map(|(marks, at)| (at, marks)).collect();
        kinds.sort_unstable();
        prop_assert_eq!(clusters(&same, &matches(&kinds), |_| true, steps), found(&documents, steps));
    }
}

// Section 4: experimental results.

#[test]
fn section_4_documents_have_more_than_450_characters() {
    let chunks = |length: usize| paragraphs(|_| ()).marks(&"ü".repeat(length), &mut Vec::new()).chunks;
    // "To guarantee that at least one complete shingle paragraph would represent the document."
    assert_eq!((chunks(450), chunks(451)), (0, 2));
}

// Section 4.1: study of duplicates. The percentages in the tables of the paper must follow from its
// printed numbers by the formulas that `study` uses.

/// Returns a percentage as the paper prints it.
fn printed(part: u64, whole: u64) -> String {
    format!("{:.1}", percent(part, whole))
}

const DOCUMENTS: [u64; 3] = [2_067_278, 2_033_113, 2_174_520];
const CLUSTERS: [u64; 3] = [251_588, 266_408, 255_601];
const DUPLICATES: [u64; 3] = [804_338, 876_047, 778_290];
const UNIQUE: [u64; 3] = [1_011_352, 890_658, 1_140_629];

#[test]
fn section_4_1_table_2_percentages_of_duplicates() {
    let rows: Vec<String> = (0..3).map(|at| printed(DUPLICATES[at], DOCUMENTS[at])).collect();
    assert_eq!(rows, ["38.9", "43.1", "35.8"]);
    // The documents are clusters, duplicates and unique documents. The paper prints 48.9 % of
    // unique documents for 2004, which is the percentage of 2003; that of 2004 is 43.8 %.
    assert!((0..3).all(|at| DOCUMENTS[at] == CLUSTERS[at] + DUPLICATES[at] + UNIQUE[at]));
    assert_eq!([0, 1].map(|at| printed(UNIQUE[at], DOCUMENTS[at])), ["48.9", "43.8"]);
}

#[test]
fn section_4_1_tables_5_and_6_and_the_useful_documents_of_the_connected_subcollections() {
    let clusters = [180_563, 202_562, 208_648];
    let unique = [609_501, 613_362, 819_578];
    assert_eq!([0, 1, 2].map(|at| printed(clusters[at], CLUSTERS[at])), ["71.8", "76.0", "81.6"]);
    assert_eq!([0, 1, 2].map(|at| printed(unique[at], UNIQUE[at])), ["60.3", "68.9", "71.9"]);
    // Useful documents are the unique documents and one original per cluster.
    let useful = |at: usize| printed(clusters[at] + unique[at], DOCUMENTS[at] - DUPLICATES[at]);
    assert_eq!([0, 1, 2].map(useful), ["62.6", "70.5", "73.6"]);
}

/// Returns the tables of a collection given by the cluster label of each document. `connected` are
/// the documents that a crawl reaches by links.
fn study(labels: &[u32], connected: &[u32]) -> webtwin::study::report::Tables {
    let documents = PageSet::new(labels.len(), |_| true);
    let reached = PageSet::new(labels.len(), |page| connected.contains(&page.0));
    let same: Vec<Page> = labels.iter().copied().map(Page).collect();
    tables(&Findings { same_text: &same, matches: &[], documents: &documents, reachable: &reached, steps: 3 }).0
}

#[test]
fn section_4_1_only_clusters_with_two_documents_can_disappear() {
    // "Other clusters, when divided, become two smaller clusters or one cluster with one less
    // documents." The collection has a cluster of two documents, one in each part; a cluster of
    // four, two in each part; two clusters of three, of which one is connected and the other has
    // two connected documents; and two unique documents.
    let labels = [0, 0, 2, 2, 2, 2, 6, 6, 6, 9, 9, 9, 12, 13];
    let tables = study(&labels, &[0, 2, 3, 6, 7, 8, 9, 10, 12]);
    let sizes = |part: &ClusterTotals| {
        part.documents_per_cluster.iter().flat_map(|(&size, &n)| vec![size; n as usize]).collect::<Vec<_>>()
    };
    assert_eq!(sizes(&tables.complete), [2, 3, 3, 4]);
    assert_eq!(sizes(&tables.connected), [2, 2, 3]);
    assert_eq!(sizes(&tables.disconnected), [2]);
    let row = |part: &ClusterTotals| (part.documents, part.clusters, part.duplicates, part.unique, part.useful);
    assert_eq!(row(&tables.complete), (14, 4, 8, 2, 6));
    assert_eq!(row(&tables.connected), (9, 3, 4, 2, 5));
    assert_eq!(row(&tables.disconnected), (5, 1, 1, 3, 4));
    // Tables 5 and 6 count the clusters with at least one document in the connected part, and the
    // unique documents there.
    assert_eq!((tables.clusters_in_connected.all, tables.clusters_in_connected.connected), (4, 4));
    assert_eq!((tables.unique_in_connected.all, tables.unique_in_connected.connected), (2, 1));
}

#[test]
fn section_4_1_table_3_near_duplicates_are_counted_like_duplicates() {
    // The sets of near documents have 3, 2, 1 and 1 documents. All documents of a set but one are
    // near-duplicates: see "Deviations" in `src/core/study/report.rs`.
    let labels = [0, 0, 0, 3, 3, 5, 6].map(Page);
    let (row, _) = near(&labels, &PageSet::new(7, |_| true), 70);
    assert_eq!((row.near_duplicates, row.with_another), (3, 5));
    // Definition 5, taken literally, counts every document that has a near one: that is
    // `with_another`.
}

#[test]
fn section_4_1_documents_that_a_crawl_following_links_reaches_are_connected() {
    // 0 and 1 are the core, 2 is "out", 3 is "in" and 4 is isolated. Core and "out" are connected.
    let links = [[0, 1], [1, 0], [1, 2], [3, 0]].map(|link| link.map(Page));
    let graph = WebGraph::new(5, &links, false);
    let reached = graph.reachable_from(graph.core().into_iter().take(1));
    assert_eq!(Page::first(5).filter(|&page| reached.contains(page)).collect::<Vec<_>>(), [0, 1, 2].map(Page));
}

proptest! {
    #[test]
    fn section_4_1_a_part_never_has_a_larger_cluster_and_the_whole_has_no_fewer_duplicates_than_its_parts(
        names in prop::collection::vec(0usize..8, 1..40), connected in prop::collection::btree_set(0u32..40, 0..40)
    ) {
        let labels: Vec<u32> = names.iter().map(|name| names.iter().position(|other| other == name).unwrap() as u32).collect();
        let connected: Vec<u32> = connected.into_iter().filter(|&page| (page as usize) < labels.len()).collect();
        let tables = study(&labels, &connected);
        let largest = |part: &ClusterTotals| part.documents_per_cluster.keys().next_back().copied().unwrap_or(0);
        prop_assert!(largest(&tables.connected).max(largest(&tables.disconnected)) <= largest(&tables.complete));
        prop_assert!(tables.connected.duplicates + tables.disconnected.duplicates <= tables.complete.duplicates);
    }
}

// Section 4.2: growth of clusters and duplicates.

proptest! {
    #[test]
    fn section_4_2_all_documents_of_a_cluster_are_found_when_its_first_one_is_in_the_subcollection(
        names in prop::collection::vec(0usize..10, 1..50), steps in 1u32..12
    ) {
        let texts: Vec<String> = names.iter().map(|&name| ((b'a' + name as u8) as char).to_string()).collect();
        let documents: Vec<&str> = texts.iter().map(String::as_str).collect();
        let all = found(&documents, steps);
        let mut before = 0;
        for step in &all.growth {
            let known: BTreeSet<usize> = names[..step.documents as usize].iter().copied().collect();
            let sizes = known.iter().map(|known| names.iter().filter(|name| *name == known).count() as u64);
            let sizes: Vec<u64> = sizes.filter(|&size| size > 1).collect();
            prop_assert_eq!(step.clusters, sizes.len() as u64);
            prop_assert_eq!(step.duplicates, sizes.iter().map(|size| size - 1).sum::<u64>());
            prop_assert!(step.duplicates >= before, "the number of duplicates never decreases");
            before = step.duplicates;
        }
    }
}

#[test]
fn section_4_2_10_iterations_of_50_are_compared_with_8_of_40() {
    // "Only 20% of the iterations (10 iterations) for the collection 2005 .. represent the same
    // percentage that iteration 8 (20% of the iterations) for the collection 2004." In this test,
    // iteration 10 has 60 clusters, and iteration 8 has 30 of 40.
    let growth = |steps: u64, of: &dyn Fn(u64) -> u64| -> Vec<GrowthStep> {
        (1..=steps).map(|n| GrowthStep { documents: 10 * n, clusters: of(n), duplicates: 2 * of(n) }).collect()
    };
    let growth_2005 = growth(50, &|n| if n <= 10 { 60 } else { 100 });
    let growth_2004 = growth(40, &|n| if n <= 8 { 30 } else { 40 });
    assert_eq!(PERCENTS, [20, 50]);
    let estimate = estimate(&growth_2005, &growth_2004, 20).unwrap();
    assert_eq!((estimate.clusters, estimate.duplicates), (80, 160));
    assert_eq!((estimate.expected(), estimate.real()), (32.0, 40.0));
}
