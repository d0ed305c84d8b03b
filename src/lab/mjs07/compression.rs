//! Section 3.2: how small a chunk of F becomes, and how fast it is decoded.

use super::super::made::fingerprints;
use super::super::measure::{core_seconds, median};
use super::super::{Options, Row, beside, figure};
use webtwin_base::error::{Error, Result};
use webtwin_core::hamming::coding::{Decoder, encode};
use webtwin_job::Coder;

/// Number of passes; the median counts.
const PASSES: usize = 7;

pub(super) fn run(options: &Options) -> Result<Vec<Row>> {
    let count = options.scale as usize;
    // Of 2^33 fingerprints, 2^23 share their ten leading bits.
    let bits = 54.min(31 + options.scale.max(2).ilog2());
    let sorted = fingerprints::even(count, bits, 1);
    let bound = f64::from(bits) - (count as f64).log2() + 1.443;
    let mut rows = vec![figure("information bound", bound / 64.0, "of raw")];
    for coder in Coder::ALL {
        let encoded = encode(coder, 64, &sorted);
        let decoder = Decoder::new(coder, 64, &encoded.code).map_err(|error| Error::Invariant(error.to_string()))?;
        let mut decoded = vec![0; count];
        let mut rates = Vec::new();
        for _ in 0..PASSES {
            let (took, result) = core_seconds(|| encoded.decode(&decoder, &mut decoded));
            result.map_err(|error| Error::Invariant(error.to_string()))?;
            rates.push(count as f64 / took / 1e6);
        }
        if decoded != sorted {
            return Err(Error::Invariant(format!("{} does not give back what it was given", coder.name())));
        }
        let (size, rate) = (encoded.bits_a_row() / 64.0, median(rates));
        let name = coder.name();
        rows.push(match coder {
            Coder::EliasFano => figure(&format!("{name}: size"), size, "of raw").at_most(0.53),
            Coder::Huffman => beside(&format!("{name} (the paper's): size"), size, 0.5, "of raw"),
            Coder::Raw => figure(&format!("{name}: size"), size, "of raw"),
        });
        let speed = figure(&format!("{name}: decoding on one core"), rate, "million a second");
        rows.push(if coder == Coder::EliasFano { speed.at_least(500.0) } else { speed });
    }
    Ok(rows)
}
