//! Section 3.2: size of a compressed chunk of F, and speed of decoding.

use super::super::made::fingerprints;
use super::super::measure::{core_seconds, median};
use super::super::{FigureRow, Options, figure, row_against_published};
use super::huffman;
use webtwin_base::error::{Error, Result};
use webtwin_core::hamming::coding::Coder;
use webtwin_core::hamming::coding::{DamagedBytes, EncodedFingerprints, decode_block, encode};

/// Number of passes. The median counts.
const PASSES: usize = 7;

/// Measures all coders on one chunk.
pub(super) fn run(options: &Options) -> Result<Vec<FigureRow>> {
    let count = options.scale as usize;
    // In a set of 2^33 fingerprints, 2^23 share their ten leading bits.
    let bits = 54.min(31 + options.scale.max(2).ilog2());
    let fingerprints = fingerprints::even(count, bits, 1);
    let bound = f64::from(bits) - (count as f64).log2() + 1.443;
    let mut rows = vec![figure("information bound", bound / 64.0, "of raw")];
    let elias_fano = encode(Coder::EliasFano, 64, &fingerprints);
    let (size, rate) =
        size_and_rate(&fingerprints, &elias_fano, |block, rows| decode_block(Coder::EliasFano, block, rows))?;
    rows.push(figure("elias-fano: size", size, "of raw").at_most(0.53));
    rows.push(decoding("elias-fano", rate).at_least(500.0));
    let (code, encoded_rows) = huffman::encode(64, &fingerprints, huffman::BLOCK_BYTES);
    let (size, rate) = size_and_rate(&fingerprints, &encoded_rows, |block, rows| code.decode(block, rows))?;
    rows.push(row_against_published("huffman (the paper's): size", size, 0.5, "of raw"));
    rows.push(decoding("huffman", rate));
    let raw_rows = encode(Coder::Raw, 64, &fingerprints);
    let (size, rate) = size_and_rate(&fingerprints, &raw_rows, |block, rows| decode_block(Coder::Raw, block, rows))?;
    rows.push(figure("raw: size", size, "of raw"));
    rows.push(decoding("raw", rate));
    Ok(rows)
}

fn decoding(coder: &str, rate: f64) -> FigureRow {
    figure(&format!("{coder}: decoding on one core"), rate, "million a second")
}

/// Returns the size of the encoded fingerprints as a fraction of 8 bytes each, and the number of
/// million fingerprints that one core decodes per second.
fn size_and_rate(
    fingerprints: &[u64],
    encoded_rows: &EncodedFingerprints,
    decode_block: impl Fn(&[u8], &mut [u64]) -> std::result::Result<(), DamagedBytes>,
) -> Result<(f64, f64)> {
    let mut decoded_rows = vec![0; fingerprints.len()];
    let mut rates = Vec::new();
    for _ in 0..PASSES {
        let (duration, result) = core_seconds(|| encoded_rows.decode(&mut decoded_rows, &decode_block));
        result.map_err(|error| Error::Invariant(error.to_string()))?;
        rates.push(fingerprints.len() as f64 / duration / 1e6);
    }
    if decoded_rows != fingerprints {
        return Err(Error::Invariant("a coder does not decode what it encoded".into()));
    }
    Ok((encoded_rows.bits_a_row() / 64.0, median(rates)))
}
