//! Manku, Jain, Das Sarma: *Detecting near-duplicates for web crawling*.
//!
//! Section 5 is a survey and section 6 an outlook. `webtwin-lab reproduce mjs07-...` measures
//! Figures 1 and 2 and the times of section 4.3, which depend on the data and are not tested.

use std::collections::BTreeSet;

use proptest::prelude::*;
use webtwin::evaluate::{ClusterRow, TruthPageRow, TruthRow, evaluate};
use webtwin::hamming::design::paper::{binomial, example_3_1, fewest_tables};
use webtwin::hamming::design::{TableDesign, subsets_of_64};
use webtwin::hamming::kernels::Level;
use webtwin::hamming::online::{Builder, OnlineIndex, OnlineIndexFile};
use webtwin::hamming::permutation::Permutation;
use webtwin::hamming::query_tables::{JoinBuffers, QueryTables};
use webtwin::hamming::recipe::SimhashRecipe;
use webtwin::hamming::simhash::Sums;
use webtwin::ids::splitmix64;
use webtwin::job::Job;
use webtwin::text::Feature;
use webtwin_lab::mjs07::huffman;

// Section 2: fingerprinting with simhash.

fn simhash(features: &[(u64, u32)], f: u32) -> u64 {
    let features: Vec<Feature> = features.iter().map(|&(hash, weight)| Feature { hash, weight }).collect();
    let mut sums = Sums::default();
    sums.add_weighted(&features);
    sums.simhash(f)
}

#[test]
fn section_2_weights_are_added_where_a_bit_is_1_and_subtracted_where_it_is_0() {
    // f = 4. 1010 with weight 3 adds +3 -3 +3 -3; 0110 with weight 2 adds -2 +2 +2 -2; 1001 with
    // weight 1 adds +1 -1 -1 +1. The sum is +2 -2 +4 -4, and its signs are 1010.
    assert_eq!(simhash(&[(0b1010, 3), (0b0110, 2), (0b1001, 1)], 4), 0b1010);
    // The paper does not define the bit of a component that is zero; here it is 0: see "Deviations"
    // in `src/core/hamming/simhash.rs`.
    assert_eq!(simhash(&[(0b01, 5), (0b10, 5)], 2), 0);
}

proptest! {
    #[test]
    fn section_2_the_signs_of_v_are_the_bits_of_the_fingerprint(
        features in prop::collection::vec((any::<u64>(), 1u32..99), 1..60), f in 1u32..=64
    ) {
        let fingerprint = simhash(&features, f);
        for i in 0..f {
            let signed = |&(hash, weight): &(u64, u32)| if hash >> i & 1 == 1 { i64::from(weight) } else { -i64::from(weight) };
            let v: i64 = features.iter().map(signed).sum();
            prop_assert_eq!(fingerprint >> i & 1 == 1, v > 0);
        }
        prop_assert!(f == 64 || fingerprint >> f == 0);
    }
}

#[test]
fn section_2_similar_documents_have_similar_fingerprints_and_others_do_not() {
    // Properties A and B of a simhash. A cryptographic hash would give entirely different values to
    // documents that differ in one byte.
    let text = |seed: u64| (0..400).map(|n| format!("w{} ", splitmix64(seed + n) % 5000)).collect::<String>();
    let mut recipe = SimhashRecipe::new(&Job::default().simhash);
    let mut fingerprint = |text: &str| recipe.simhash(text).unwrap();
    let (document, other) = (text(0), text(1 << 32));
    let changed = document.replacen("w1", "x1", 1);
    assert_ne!(document, changed);
    let distance = |x: u64, y: u64| (x ^ y).count_ones();
    let of_document = fingerprint(&document);
    assert!(distance(of_document, fingerprint(&changed)) <= 6);
    assert!(distance(of_document, fingerprint(&other)) >= 18);
}

#[test]
fn section_4_2_an_empty_page_has_no_simhash_and_so_is_a_duplicate_of_nothing() {
    // In the paper "several pages are empty; all of these have simhash value of 0", and "File not
    // Found" pages are a spike in the distribution: see "Deviations" in
    // `src/core/hamming/simhash.rs`.
    let mut recipe = SimhashRecipe::new(&Job::default().simhash);
    assert_eq!((recipe.simhash(""), recipe.simhash("File not Found")), (None, None));
}

// Section 3: the Hamming distance problem.

#[test]
fn section_3_64_choose_3_probes_have_distance_exactly_3() {
    assert_eq!(binomial(64, 3), 41_664);
    // The paper says "at most", which would be 43,745 probes.
    assert_eq!((0..=3).map(|k| binomial(64, k)).sum::<u64>(), 43_745);
    assert_eq!(subsets_of_64(64, 3).count(), 41_664);
}

/// Returns distinct fingerprints in ascending order, some of them near each other and some far
/// apart.
fn fingerprints(count: u64) -> Vec<u64> {
    let near = |at: u64| {
        splitmix64(at / 8) ^ (splitmix64(at) & splitmix64(at + 1000) & splitmix64(at + 2000) & splitmix64(at + 3000))
    };
    let mut all: Vec<u64> = (0..count).map(near).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Returns the existing fingerprints that differ from `fingerprint` in at most k bits, by
/// definition.
fn within(existing: &[u64], fingerprint: u64, k: u32) -> Vec<u64> {
    existing.iter().copied().filter(|other| (other ^ fingerprint).count_ones() <= k).collect()
}

/// Probes table by table, by steps 1 and 2 of section 3.1.
fn probed(existing: &[u64], fingerprint: u64, design: &TableDesign) -> Vec<u64> {
    let mut fingerprints = Vec::new();
    for &key in &design.keys {
        let permutation = Permutation::new(design.f, key);
        let mut table = existing.to_vec();
        permutation.apply_all(&mut table);
        table.sort_unstable();
        let (permuted, below) = (permutation.apply(fingerprint), design.f - permutation.top_bits());
        let first = table.partition_point(|row| row >> below < permuted >> below);
        let matching = table[first..].iter().take_while(|row| *row >> below == permuted >> below);
        let near = matching.filter(|row| (*row ^ permuted).count_ones() <= design.k);
        fingerprints.extend(near.map(|&row| permutation.invert(row)));
    }
    fingerprints.sort_unstable();
    fingerprints.dedup();
    fingerprints
}

fn index(existing: &[u64], design: &TableDesign) -> OnlineIndex<Vec<u8>> {
    let (mut builder, _) = Builder::new(design, "recipe", existing.to_vec(), None).unwrap();
    let tables: Vec<_> = std::iter::from_fn(|| builder.next_table()).collect();
    let bytes =
        |file: &OnlineIndexFile| Ok(tables.iter().find(|table| table.name == file.name).unwrap().parts.concat());
    OnlineIndex::open(builder.finish(), bytes).unwrap()
}

#[test]
fn section_3_1_probing_t_tables_finds_all_fingerprints_within_k() {
    let existing = fingerprints(3000);
    for design in example_3_1() {
        let index = index(&existing, &design);
        for at in (0..existing.len()).step_by(197) {
            let query = existing[at] ^ 1 << (at % 64) ^ 1 << (at % 61);
            let want = within(&existing, query, 3);
            assert_eq!(probed(&existing, query, &design), want);
            assert_eq!(index.near(query, 3).unwrap().iter().map(|near| near.fingerprint).collect::<Vec<_>>(), want);
        }
    }
}

#[test]
fn example_3_1_20_16_10_and_4_tables() {
    let [twenty, sixteen, ten, four] = example_3_1();
    let top_bits = |design: &TableDesign| {
        let mut bits: Vec<u32> = design.keys.iter().map(|key| key.count_ones()).collect();
        bits.sort_unstable();
        bits.dedup();
        (design.f, design.k, design.keys.len(), bits)
    };
    assert_eq!(top_bits(&twenty), (64, 3, 20, vec![31, 32, 33]));
    assert_eq!(top_bits(&sixteen), (64, 3, 16, vec![28]));
    assert_eq!(top_bits(&ten), (64, 3, 10, vec![25, 26]));
    assert_eq!(top_bits(&four), (64, 3, 4, vec![16]));
    // "On average, a probe retrieves at most" 8, 64, 512 and 256K fingerprints of 2^34.
    let max_retrieved = |design: &TableDesign| 2f64.powi(34) / 2f64.powi(design.top_bits() as i32);
    assert_eq!([&twenty, &sixteen, &ten, &four].map(max_retrieved), [8.0, 64.0, 512.0, 262_144.0]);
    // "11, 11, 11, 11, 10 and 10 bits" are the six blocks of 64 bits. A table has any three of them
    // as its top bits.
    let pairs = |of: &TableDesign, bits: u32| of.keys.iter().filter(|key| key.count_ones() == bits).count();
    assert_eq!([33, 32, 31].map(|bits| pairs(&twenty, bits)), [4, 12, 4]);
    // "13, 13, 13, 13 and 12 bits" are the five blocks. A table has any two of them as its top
    // bits.
    assert_eq!([26, 25].map(|bits| pairs(&ten, bits)), [6, 4]);
    // For any three bits that differ, at least one table has none of them among its top bits.
    for design in [twenty, sixteen, ten, four] {
        assert!(subsets_of_64(64, 3).all(|errors| design.keys.iter().any(|key| key & errors == 0)));
    }
}

/// Returns X(f, k, d) as printed in section 3.1.2, but with r > k, because r = k leaves no block
/// for the top bits. `or_equal` replaces d < tau by d <= tau.
fn printed(f: f64, k: u32, d: f64, tau: f64, or_equal: bool) -> u64 {
    if d < tau || (or_equal && d == tau) {
        return 1;
    }
    let more = |r: u32| {
        let exact = f64::from(r - k) * f / f64::from(r);
        binomial(r, k) * printed(f - exact, k, d - exact, tau, or_equal)
    };
    (k + 1..=8).map(more).min().unwrap()
}

#[test]
fn section_3_1_2_the_recurrence_yields_the_designs_of_the_example() {
    // The smallest p_i of each design.
    let least = [31.0, 28.0, 25.0, 16.0];
    assert_eq!(least.map(|p| fewest_tables(64, 3, 34.0, p).0), [20, 16, 10, 4]);
    assert_eq!(least.map(|p| printed(64.0, 3, 34.0, 34.0 - p, true)), [20, 16, 10, 4]);
    // With d < tau, as printed, the recurrence rejects a design that has exactly the allowed number
    // of bits: see "Deviations" in `src/core/hamming/design/paper.rs`.
    assert_eq!(least.map(|p| printed(64.0, 3, 34.0, 34.0 - p, false)), [20, 20, 10, 10]);
}

// Section 3.2: compression of fingerprints.

/// Returns `count` ascending fingerprints that are as dense as 2^34 fingerprints of 64 bits.
fn as_dense_as_2_34(count: u64) -> Vec<u64> {
    let bits = 64 - 34 + count.ilog2();
    let mut all: Vec<u64> = (0..count).map(|at| splitmix64(at) >> (64 - bits)).collect();
    all.sort_unstable();
    all
}

#[test]
fn section_3_2_tables_shrink_to_approximately_half() {
    let existing = as_dense_as_2_34(1 << 15);
    let (code, encoded) = huffman::encode(64, &existing, huffman::BLOCK_BYTES);
    let part = encoded.bits_a_row() / 64.0;
    assert!((0.49..0.56).contains(&part), "{part}");
    let mut rows = vec![0; existing.len()];
    encoded.decode(&mut rows, |block, rows| code.decode(block, rows)).unwrap();
    assert_eq!(rows, existing);
}

#[test]
fn section_3_2_a_block_has_b_bytes_and_its_last_fingerprint_for_a_key() {
    let existing = as_dense_as_2_34(1 << 13);
    let (_, encoded) = huffman::encode(64, &existing, huffman::BLOCK_BYTES);
    assert_eq!(huffman::BLOCK_BYTES, 1024, "\"a typical value for B\"");
    let (mut rows, mut bytes) = (0, 0);
    for block in &encoded.blocks {
        assert!(block.bytes - bytes <= 1024);
        assert_eq!(block.key, existing[block.rows - 1]);
        // Step 1 stores the first fingerprint in its entirety. The paper prints 8f bits and means f
        // bits.
        let first = &encoded.bytes[bytes..bytes + 8];
        assert_eq!(u64::from_be_bytes(first.try_into().unwrap()), existing[rows]);
        (rows, bytes) = (block.rows, block.bytes);
    }
    assert_eq!(rows, existing.len());
}

#[test]
fn section_3_2_step_2_a_code_of_the_first_differing_bit_and_then_the_bits_below_it() {
    // The XORs of successive fingerprints are 0001, 0110 and 1111, so h is 0, 2 and 3, with codes
    // of 1, 2 and 2 bits. 0, 2 and 3 bits follow these codes: ten bits in all, after the eight
    // bytes of the first fingerprint.
    let (code, encoded) = huffman::encode(8, &[0b0000, 0b0001, 0b0111, 0b1000], huffman::BLOCK_BYTES);
    assert_eq!(encoded.bytes.len(), 8 + 2);
    let mut lengths = [0, 2, 3].map(|h: usize| code.lengths[h]);
    lengths.sort_unstable();
    assert_eq!((lengths, code.lengths[1]), ([1, 2, 2], 0));
}

// Section 3.3: batch queries.

#[test]
fn section_3_3_each_chunk_of_f_is_joined_with_all_of_q_and_the_outputs_are_merged() {
    let (f, q) = (fingerprints(6000), fingerprints(900));
    let q: BTreeSet<u64> = q.iter().map(|query| query ^ 1 << (query % 64)).collect();
    let q: Vec<u64> = q.into_iter().collect();
    let tables = QueryTables::new(&q, 3, Level::best()).unwrap();
    let mut scratch = JoinBuffers::new(3, Level::best());
    let mut merged = Vec::new();
    for chunk in f.chunks(1700) {
        tables.join(chunk, &mut scratch, &mut |hit| {
            merged.push((chunk[hit.at as usize], q[hit.query as usize], hit.distance));
        });
    }
    let with_repetitions = merged.len();
    merged.sort_unstable();
    merged.dedup();
    assert_eq!(with_repetitions, merged.len(), "no pair is reported twice, although tables overlap");
    let pairs = f.iter().flat_map(|&x| q.iter().map(move |&y| (x, y, (x ^ y).count_ones())));
    assert_eq!(merged, pairs.filter(|pair| pair.2 <= 3).collect::<Vec<_>>());
}

// Section 4: experimental results.

#[test]
fn section_4_1_precision_refers_to_reported_pairs_and_recall_to_true_pairs() {
    // Pages 1 to 4 are true copies, which make 6 true pairs. Pages 1, 2 and 9 are reported as one
    // cluster, which makes 3 pairs, one of them true.
    let page = |n: u64| TruthPageRow { doc_id: n, url: format!("http://h{n}.example/"), body: n };
    let truth = |n: u64| TruthRow {
        url: format!("http://h{n}.example/"),
        target: if n < 9 { "manual".into() } else { format!("other-{n}") },
        version: format!("v{n}"),
        page: "index".into(),
        variant: if n < 9 { "exact".into() } else { "single".into() },
        ..Default::default()
    };
    let pages = [1, 2, 3, 4, 9];
    let clusters: Vec<ClusterRow> = [1, 2, 9].map(|doc_id| ClusterRow { cluster: 1, doc_id }).into();
    let report = evaluate(&pages.map(page), &clusters, &[], &[], &pages.map(truth));
    assert_eq!(report.pairs.precision().value(), Some(1.0 / 3.0));
    assert_eq!(report.pairs.recall().value(), Some(1.0 / 6.0));
}
