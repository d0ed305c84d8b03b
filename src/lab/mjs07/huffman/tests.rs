use proptest::prelude::*;
use webtwin_base::ids::splitmix64;
use webtwin_core::hamming::coding::CodedBlock;

use super::*;

/// Generates sorted fingerprints: evenly distributed, or in clusters a few bits wide, some of them
/// many times.
fn fingerprints(f: u32) -> impl Strategy<Value = Vec<u64>> {
    let width = move |value: u64| value >> (64 - f);
    let uniform = proptest::collection::vec(any::<u64>().prop_map(width), 0..3000);
    let cluster = (any::<u64>(), proptest::collection::vec((0..f, 0..f, 1usize..4), 0..300));
    let clustered = proptest::collection::vec(cluster, 0..6).prop_map(move |clusters| {
        let cluster = |(centre, flips): (u64, Vec<(u32, u32, usize)>)| {
            let cluster = move |(a, b, copies)| vec![width(centre) ^ (1u64 << a) ^ (1u64 << b); copies];
            flips.into_iter().flat_map(cluster)
        };
        clusters.into_iter().flat_map(cluster).collect()
    });
    prop_oneof![uniform, clustered].prop_map(|mut fingerprints: Vec<u64>| {
        fingerprints.sort_unstable();
        fingerprints
    })
}

fn check_round_trip(f: u32, fingerprints: &[u64], block_bytes: usize) {
    let (code, encoded_rows) = encode(f, fingerprints, block_bytes);
    let mut rows = vec![0; encoded_rows.blocks.last().map_or(0, |block| block.rows)];
    encoded_rows.decode(&mut rows, |block, rows| code.decode(block, rows)).unwrap();
    assert_eq!(rows, fingerprints);
    assert_eq!(encoded_rows.blocks.last().map_or(0, |block| block.bytes), encoded_rows.bytes.len());
    assert!(encoded_rows.blocks.iter().all(|block| block.key == fingerprints[block.rows - 1]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn encoded_rows_are_decoded(wide in fingerprints(64), narrow in fingerprints(32), bytes in 8usize..600) {
        for (f, sorted) in [(64, &wide), (32, &narrow)] {
            check_round_trip(f, sorted, BLOCK_BYTES);
            check_round_trip(f, sorted, bytes);
        }
    }

    #[test]
    fn any_bytes_are_decoded_or_rejected(
        block in proptest::collection::vec(any::<u8>(), 0..300),
        lengths in proptest::collection::vec(0u8..34, 65),
        rows in 0usize..2000,
    ) {
        let lengths: Vec<u8> = lengths.into_iter().map(|length| if length < 7 { 0 } else { length }).collect();
        if let Ok(code) = Code::from_lengths(64, &lengths) {
            let _ = code.decode(&block, &mut vec![0; rows]);
        }
    }
}

#[test]
fn few_equal_and_extreme_fingerprints_are_decoded() {
    let longest_gaps: Vec<u64> = (0..64).map(|bit| u64::MAX << bit).rev().collect();
    let shortest_gaps: Vec<u64> = (0..5000).map(|at| u64::MAX - 5000 + at).collect();
    let cases = [vec![], vec![7], vec![0, u64::MAX], vec![u64::MAX; 3000], vec![0; 3000], longest_gaps, shortest_gaps];
    for fingerprints in cases {
        check_round_trip(64, &fingerprints, BLOCK_BYTES);
    }
    check_round_trip(1, &[0, 0, 1, 1], BLOCK_BYTES);
}

#[test]
fn codes_too_long_for_the_lookup_are_decoded() {
    // Of the successive values of a counter, half differ first in bit 0, a quarter in bit 1, and so
    // on.
    let counter: Vec<u64> = (0..1 << 18).collect();
    assert_eq!(encode(64, &counter, BLOCK_BYTES).0.lengths.iter().max(), Some(&17));
    check_round_trip(64, &counter, BLOCK_BYTES);
}

#[test]
fn code_of_the_papers_example_is_reproduced() {
    // XORs: 1, 3, 7, 0, so h = 0, 1, 2 and the symbol for equal; The four symbols occur once each,
    // so each takes two bits.
    let (code, encoded_rows) = encode(8, &[0, 1, 2, 5, 5], 1024);
    assert_eq!(code.lengths, [2, 2, 2, 0, 0, 0, 0, 0, 2]);
    // Codes in the order of h: 00, 01 and 0 below, 10 and 01 below, 11.
    assert_eq!(encoded_rows.bytes, [0, 0, 0, 0, 0, 0, 0, 0, 0b0001_0100, 0b1110_0000]);
    assert_eq!(encoded_rows.blocks, [CodedBlock { key: 5, rows: 5, bytes: 10 }]);
}

#[test]
fn at_the_papers_density_a_fingerprint_takes_about_half() {
    // 2^17 of 2^48 values: gaps as in a set of 2^33.
    let mut fingerprints: Vec<u64> = (0..1u64 << 17).map(|at| splitmix64(at) >> 16).collect();
    fingerprints.sort_unstable();
    let bits = encode(64, &fingerprints, BLOCK_BYTES).1.bits_a_row();
    assert!((34.7..35.0).contains(&bits), "{bits}");
}

#[test]
fn lengths_of_no_code_are_refused() {
    let mut lengths = vec![0u8; 65];
    lengths[..3].fill(1);
    assert!(Code::from_lengths(64, &lengths).is_err());
    assert!(Code::from_lengths(64, &[1, 1]).is_err());
    assert!(Code::from_lengths(1, &[33, 1]).is_err());
}
