use proptest::prelude::*;

use super::*;

/// Sorted fingerprints: evenly spread, or in clusters a few bits wide, some of them many times.
pub(crate) fn fingerprints(f: u32) -> impl Strategy<Value = Vec<u64>> {
    let width = move |value: u64| value >> (64 - f);
    let even = proptest::collection::vec(any::<u64>().prop_map(width), 0..3000);
    let cluster = (any::<u64>(), proptest::collection::vec((0..f, 0..f, 1usize..4), 0..300));
    let clustered = proptest::collection::vec(cluster, 0..6).prop_map(move |clusters| {
        let near = |(centre, flips): (u64, Vec<(u32, u32, usize)>)| {
            let near = move |(a, b, copies)| vec![width(centre) ^ (1u64 << a) ^ (1u64 << b); copies];
            flips.into_iter().flat_map(near)
        };
        clusters.into_iter().flat_map(near).collect()
    });
    prop_oneof![even, clustered].prop_map(|mut fingerprints: Vec<u64>| {
        fingerprints.sort_unstable();
        fingerprints
    })
}

fn decoded(coder: Coder, encoded: &EncodedFingerprints) -> Result<Vec<u64>, DamagedBytes> {
    let mut rows = vec![0; encoded.blocks.last().map_or(0, |block| block.rows)];
    encoded.decode(&mut rows, |block, rows| decode_block(coder, block, rows)).map(|()| rows)
}

fn holds(coder: Coder, sorted: &[u64], encoded: &EncodedFingerprints) {
    assert_eq!(decoded(coder, encoded).unwrap(), sorted, "{coder:?}");
    assert_eq!(encoded.blocks.last().map_or(0, |block| block.bytes), encoded.bytes.len());
    assert!(encoded.blocks.iter().all(|block| block.key == sorted[block.rows - 1]));
}

fn elias_fano(sorted: &[u64], block_rows: usize) -> EncodedFingerprints {
    let mut encoded = EncodedFingerprints::default();
    elias_fano::encode_into(sorted, block_rows, &mut encoded);
    encoded
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn encoded_rows_are_decoded(wide in fingerprints(64), narrow in fingerprints(32), rows in 1usize..400) {
        for (f, sorted) in [(64, &wide), (32, &narrow)] {
            for coder in Coder::ALL {
                holds(coder, sorted, &encode(coder, f, sorted));
            }
            holds(Coder::EliasFano, sorted, &elias_fano(sorted, rows));
        }
    }

    #[test]
    fn elias_fano_block_exceeds_raw_by_at_most_its_header(sorted in fingerprints(64), rows in 1usize..400) {
        let encoded = elias_fano(&sorted, rows);
        prop_assert!(encoded.bytes.len() <= 8 * sorted.len() + encoded.blocks.len());
    }

    #[test]
    fn any_bytes_are_decoded_or_rejected(
        block in proptest::collection::vec(any::<u8>(), 0..300),
        width in 0u8..70,
        rows in 0usize..2000,
    ) {
        let mut into = vec![0; rows];
        let _ = decode_block(Coder::Raw, &block, &mut into);
        let _ = decode_block(Coder::EliasFano, &block, &mut into);
        let mut block = block;
        if block.len() > 8 {
            block[8] = width;
        }
        let _ = decode_block(Coder::EliasFano, &block, &mut into);
    }
}

#[test]
fn few_equal_and_extreme_fingerprints_are_decoded() {
    let longest_gaps: Vec<u64> = (0..64).map(|bit| u64::MAX << bit).rev().collect();
    let shortest_gaps: Vec<u64> = (0..5000).map(|at| u64::MAX - 5000 + at).collect();
    let cases = [vec![], vec![7], vec![0, u64::MAX], vec![u64::MAX; 3000], vec![0; 3000], longest_gaps, shortest_gaps];
    for sorted in cases {
        for coder in Coder::ALL {
            holds(coder, &sorted, &encode(coder, 64, &sorted));
        }
    }
}

#[test]
fn every_low_width_is_read_to_the_last_row() {
    for width in 0..64 {
        for rows in [2u64, 8, 9, 17, 64, 65] {
            let sorted: Vec<u64> = (0..rows).map(|at| at * ((1 << width.min(56)) + 1)).collect();
            holds(Coder::EliasFano, &sorted, &elias_fano(&sorted, 100));
        }
    }
}

#[test]
fn at_the_papers_density_a_fingerprint_takes_about_half() {
    // 2^17 of 2^48 values: gaps as in a set of 2^33.
    let mut sorted: Vec<u64> = (0..1u64 << 17).map(|at| webtwin_base::ids::splitmix64(at) >> 16).collect();
    sorted.sort_unstable();
    let bits = encode(Coder::EliasFano, 64, &sorted).bits_a_row();
    assert!((33.0..33.2).contains(&bits), "{bits}");
}
