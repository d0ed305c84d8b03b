//! Shivakumar, Garcia-Molina: *Finding near-replicas of documents on the web*.
//!
//! Other tests cover PostScript (section 2; `tests/printed.rs`), search results without repetitions
//! (section 1; `tests/search.rs`) and near-copies in an archive (section 1; `tests/archive.rs`).
//! `webtwin-lab reproduce sgm98-...` measures Tables 1 and 2, Figure 1 and the savings of section
//! 3, which depend on the crawl and are not tested.

use std::collections::BTreeMap;

use proptest::prelude::*;
use webtwin::chunks::{ChunkRecipe, whole};
use webtwin::ids::{ClusterId, HostId, Page};
use webtwin::job::{ChunkSettings, OverlapSettings, Servers, Unit, resolve};
use webtwin::overlap::coarse_count::{CoarseCounter, HeavyBuckets, Layout};
use webtwin::overlap::count_pairs::pair_key;
use webtwin::overlap::servers::{Server, ServerPage, ServerPair, ServerPairKind, kind, pairs_of_cluster};
use webtwin::overlap::{FPrintDocId, SimilarPair, sort_based};

/// Returns settings with the paper's definition of similar pages, which is F >= T only.
fn paper(min_shared: u32) -> OverlapSettings {
    resolve("", "preset = \"four-line\"", &[format!("overlap.min_shared={min_shared}")]).unwrap().overlap
}

/// Returns the table FPrint-DocID of documents given by their fingerprints.
fn fprint_docid(documents: &[Vec<u64>]) -> Vec<FPrintDocId> {
    let rows = |(doc, fprints): (Page, &Vec<u64>)| -> Vec<FPrintDocId> {
        fprints.iter().map(|&fprint| FPrintDocId::new(fprint, doc)).collect()
    };
    Page::first(documents.len()).zip(documents).flat_map(rows).collect()
}

fn overlap(documents: &[Vec<u64>], copies: &[u32], min_shared: u32) -> Vec<(u32, u32, u32)> {
    let hosts: Vec<HostId> = (0..documents.len() as u32).map(HostId).collect();
    let copies: Vec<Page> = copies.iter().copied().map(Page).collect();
    let pairs = sort_based::similar_pairs(&fprint_docid(documents), &hosts, &copies, &paper(min_shared));
    pairs.iter().map(|&SimilarPair { a, b, value }| (a.0, b.0, value)).collect()
}

/// Generates documents as ascending sets of fingerprints.
fn documents() -> impl Strategy<Value = Vec<Vec<u64>>> {
    prop::collection::vec(prop::collection::btree_set(0u64..12, 0..9), 1..12)
        .prop_map(|documents| documents.into_iter().map(|set| set.into_iter().collect()).collect())
}

// Section 1.

#[test]
fn section_1_a_server_is_the_union_of_its_documents() {
    // Server 0 has the pages of one manual and no other pages, server 1 has the same manual among
    // others, and server 2 has one page of it.
    let page = |cluster: u32, host: u32| {
        ServerPage::new(ClusterId(cluster), HostId(host), u64::from(cluster + 100 * host), u64::from(cluster))
    };
    let clusters: Vec<Vec<ServerPage>> = (0..10)
        .map(|at| (0..3).filter(|&host| host < 2 || at == 0).map(|host| page(at, host)).collect())
        .chain((10..40).map(|at| vec![page(at, 1)]))
        .collect();
    let mut shared = BTreeMap::new();
    for cluster in &clusters {
        pairs_of_cluster(cluster, 500, |pair| {
            let sum = shared.entry((pair.a.0, pair.b.0)).or_insert((0, 0));
            *sum = (sum.0 + pair.shared, sum.1 + pair.same_path);
        });
    }
    assert_eq!(shared, BTreeMap::from([((0, 1), (10, 0)), ((0, 2), (1, 0)), ((1, 2), (1, 0))]));
    let settings = Servers { min_shared: 5, nearly_all: 0.9, max_hosts: 500 };
    let pair =
        |a, b, shared| ServerPair { a: HostId(a), b: HostId(b), shared, similar_path: 0, same_path: 0, front: 0 };
    let server = |pages| Server { pages, ..Server::default() };
    assert_eq!(kind(&pair(0, 1, 10), [&server(10), &server(40)], &settings), Some(ServerPairKind::Mirror));
    assert_eq!(kind(&pair(0, 2, 1), [&server(10), &server(1)], &settings), None, "F >= T also applies to servers");
}

// Section 2: computing all-pairs document overlap.

#[test]
fn section_2_documents_are_chunked_in_words_sequences_of_words_sentences_paragraphs_or_not_at_all() {
    let text = "One two. Three four\nfive six\n\nseven eight";
    let chunks = |unit: Unit, count: u32| {
        let recipe = ChunkRecipe::new(&ChunkSettings { unit, count, sliding: false, wrap: 0, bits: 32, min_text: 0 });
        recipe.chunks(text).into_iter().map(|(_, chunk)| chunk.replace('\n', "|")).collect::<Vec<_>>()
    };
    assert_eq!(chunks(Unit::Words, 1), ["One", "two.", "Three", "four", "five", "six", "seven", "eight"]);
    assert_eq!(chunks(Unit::Words, 3), ["One|two.|Three", "four|five|six", "seven|eight"]);
    assert_eq!(chunks(Unit::Sentences, 1), ["One two.", "Three four|five six||seven eight"]);
    assert_eq!(chunks(Unit::Paragraphs, 1), ["One two. Three four|five six", "seven eight"]);
    assert_eq!(chunks(Unit::Document, 1), ["One two. Three four|five six||seven eight"]);
    // Section 3 uses chunks of two lines of text.
    assert_eq!(chunks(Unit::Lines, 2), ["One two. Three four|five six", "seven eight"]);
}

#[test]
fn section_2_each_chunk_is_hashed_down_to_32_bits() {
    let mut chunks = ChunkSettings { unit: Unit::Words, count: 1, sliding: false, wrap: 0, bits: 32, min_text: 0 };
    let fprints = |chunks: &ChunkSettings| {
        let mut fprints = Vec::new();
        ChunkRecipe::new(chunks).in_order("a b c d e f g h", &mut fprints);
        fprints
    };
    let narrow = fprints(&chunks);
    assert!(narrow.iter().all(|&fprint| fprint <= u64::from(u32::MAX)));
    // Fingerprints have 64 bits by default, and the paper's are their low 32 bits: see "Deviations"
    // in `src/core/chunks/mod.rs`.
    chunks.bits = 64;
    assert_eq!(fprints(&chunks).iter().map(|fprint| fprint & 0xffff_ffff).collect::<Vec<_>>(), narrow);
    // A row of FPrint-DocID has the fingerprint and the document. Rows are ordered by fingerprint.
    let row = FPrintDocId::new(7, Page(3));
    assert_eq!((row.fprint(), row.doc), (7, Page(3)));
    assert!(FPrintDocId::new(7, Page(9)).key() < FPrintDocId::new(8, Page(0)).key());
}

#[test]
fn section_2_overlap_has_the_triplets_of_documents_that_share_at_least_t_fingerprints() {
    let documents = [vec![1, 2, 3], vec![2, 3, 4], vec![3, 4, 5], vec![9]];
    assert_eq!(overlap(&documents, &[], 1), [(0, 1, 2), (0, 2, 1), (1, 2, 2)]);
    // The condition is F >= T. Section 2.1 has "more than T times": see "Deviations" in
    // `src/core/overlap/mod.rs`.
    assert_eq!(overlap(&documents, &[], 2), [(0, 1, 2), (1, 2, 2)]);
    assert_eq!(overlap(&documents, &[], 3), []);
}

// Section 2.1: the sort-based approach.

/// Computes Overlap by steps 1 to 4, one file after the other.
fn sort_based_steps(fprint_docid: &[FPrintDocId], least: u32) -> Vec<(u32, u32, u32)> {
    let mut sorted: Vec<(u64, u32)> = fprint_docid.iter().map(|row| (row.fprint(), row.doc.0)).collect();
    sorted.sort_unstable();
    let mut docid_docid = Vec::new();
    for run in sorted.chunk_by(|x, y| x.0 == y.0) {
        for (at, &(_, di)) in run.iter().enumerate() {
            docid_docid.extend(run[at + 1..].iter().map(|&(_, dj)| (di, dj)));
        }
    }
    docid_docid.sort_unstable();
    let pairs = docid_docid.chunk_by(|x, y| x == y).map(|run| (run[0].0, run[0].1, run.len() as u32));
    pairs.filter(|pair| pair.2 >= least).collect()
}

proptest! {
    #[test]
    fn section_2_1_overlap_equals_the_result_of_the_four_steps(documents in documents(), least in 1u32..5) {
        prop_assert_eq!(overlap(&documents, &[], least), sort_based_steps(&fprint_docid(&documents), least));
    }
}

// Section 2.2: the approach based on probabilistic counting. (Our copy has lost its number.)

#[test]
fn section_2_2_step_2_exact_copies_have_one_fingerprint_and_only_their_centre_participates() {
    // FPrint-DocID-Exact has one fingerprint of the entire document.
    assert_eq!(whole("The same.\nText"), whole("The same.\nText"));
    assert_ne!(whole("The same.\nText"), whole("The same.\nText."));
    // Documents 1 and 3 are copies of 0, "the document with smallest docID", and are left out of
    // FPrint-DocID-Chunk'.
    let documents = [vec![1, 2, 3], vec![1, 2, 3], vec![2, 3, 4], vec![1, 2, 3]];
    assert_eq!(overlap(&documents, &[1, 3], 2), [(0, 2, 2)]);
}

/// Computes Overlap by step 3: a hashing scan, BITMAP, a candidate-selection scan, and an exact
/// count of the candidates. Returns the number of candidates and the table.
fn coarse_counting(documents: &[Vec<u64>], least: u32, layout: Layout) -> (usize, Vec<(u32, u32, u32)>) {
    let mut sorted = fprint_docid(documents);
    sorted.sort_unstable_by_key(FPrintDocId::key);
    let scan = |each: &mut dyn FnMut(Page, Page)| {
        for run in sorted.chunk_by(|x, y| x.fprint() == y.fprint()) {
            for (at, di) in run.iter().enumerate() {
                run[at + 1..].iter().for_each(|dj| each(di.doc, dj.doc));
            }
        }
    };
    let (mut counter, mut bitmap) = (CoarseCounter::new(layout), HeavyBuckets::new(layout));
    for part in 0..layout.parts {
        counter.begin(part);
        scan(&mut |di, dj| counter.add(pair_key(di, dj)));
        bitmap.judge(counter.finish(), least);
    }
    drop(counter);
    let mut candidates = BTreeMap::new();
    scan(&mut |di, dj| {
        if bitmap.may_hold(pair_key(di, dj)) {
            *candidates.entry((di, dj)).or_insert(0) += 1;
        }
    });
    let count = candidates.len();
    let pairs = candidates.into_iter().filter(|&(_, f)| f >= least).map(|((di, dj), f)| (di.0, dj.0, f)).collect();
    (count, pairs)
}

proptest! {
    #[test]
    fn section_2_2_step_3_coarse_counting_yields_the_same_table(
        documents in documents(), least in 1u32..5, lines in 1u32..4, hashes in 1u32..4, parts in 1u32..3
    ) {
        let (candidates, pairs) = coarse_counting(&documents, least, Layout { lines, hashes, parts });
        prop_assert_eq!(&pairs, &overlap(&documents, &[], least));
        prop_assert!(candidates >= pairs.len());
    }
}

#[test]
fn section_2_2_step_3_a_bucket_is_heavy_at_t_so_that_no_pair_is_lost() {
    // The paper has "If A[i] > T", which would lose a pair with F = T that is alone in its bucket:
    // see "Deviations" in `src/core/overlap/coarse_count.rs`.
    let layout = Layout { lines: 64, hashes: 1, parts: 1 };
    assert_eq!(coarse_counting(&[vec![1, 2, 3], vec![1, 2, 3]], 3, layout), (1, vec![(0, 1, 3)]));
    assert_eq!(coarse_counting(&[vec![1, 2, 3], vec![1, 2, 3]], 4, layout), (0, vec![]));
}

#[test]
fn section_2_2_step_3_more_hash_functions_leave_fewer_false_positives() {
    // All pairs of the 300 documents share one fingerprint, and one pair shares twelve.
    let mut documents: Vec<Vec<u64>> = vec![vec![0]; 300];
    documents[7].extend(1..12);
    documents[9].extend(1..12);
    let candidates = |hashes| {
        let (candidates, pairs) = coarse_counting(&documents, 12, Layout { lines: 256, hashes, parts: 1 });
        assert_eq!(pairs, [(7, 9, 12)]);
        candidates
    };
    // There are 44,850 pairs and 16,384 counters.
    assert!(candidates(2) < candidates(1) && candidates(1) < 100, "{} and {}", candidates(2), candidates(1));
}

// Section 3: experiments.

#[test]
fn section_3_four_lines_with_t_15_and_two_lines_with_t_25() {
    let lines = |from: usize, count: usize| (from..from + count).map(|n| format!("line {n}\n")).collect::<String>();
    let similar = |preset: &str, left: &str, right: &str| {
        let job = resolve("", &format!("preset = {preset:?}"), &[]).unwrap();
        let mut recipe = ChunkRecipe::new(&job.chunks);
        let documents = [left, right].map(|text| {
            let mut fprints = Vec::new();
            recipe.fingerprint(text, &mut fprints);
            fprints
        });
        sort_based::similar_pairs(&fprint_docid(&documents), &[0, 1].map(HostId), &[], &job.overlap).len() == 1
    };
    // 60 common lines are 15 chunks of four lines or 30 of two; 56 are 14 or 28; 48 are 12 or 24.
    for (common, four, two) in [(60, true, true), (56, false, true), (48, false, false)] {
        let (left, right) = (lines(0, common) + &lines(1000, 8), lines(0, common) + &lines(2000, 8));
        assert_eq!(similar("four-line", &left, &right), four, "{common} lines");
        assert_eq!(similar("two-line", &left, &right), two, "{common} lines");
    }
}
