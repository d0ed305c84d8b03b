//! Compressed sorted fingerprints: blocks that are decoded one by one.
//!
//! Successive fingerprints of a sorted set of 2^d share their top d bits in expectation, so about
//! `f - d` bits of each have to be stored. All coders here divide the sequence into blocks, store
//! the first fingerprint of a block whole, and give each block a *key*, its last fingerprint, by
//! which a search finds the block to decode.
//!
//! | coder | bits a fingerprint, 2^23 of a set of 2^33 | decoding |
//! |---|---|---|
//! | [`Coder::EliasFano`], the default | 33.1 | fastest |
//! | [`Coder::Raw`] | 64 | a copy |
//!
//! # Source
//! \[MJS07\] section 3.2.
//!
//! # Deviations
//! The paper uses a Huffman code of the first differing bit, which takes 34.8 bits and three times
//! as long to decode; `webtwin reproduce mjs07-compression` compares the two. The input may contain
//! a fingerprint many times.

pub mod elias_fano;

/// Encoding of the fingerprints of a file. It is [`Coder::EliasFano`] unless an earlier build was
/// asked for another coder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Coder {
    /// Low bits in place, high bits in unary ([`elias_fano`]).
    EliasFano,
    /// Eight bytes for each fingerprint. Written by earlier builds on demand, and still read.
    Raw,
}

impl Coder {
    /// Every coder.
    pub const ALL: [Coder; 2] = [Coder::EliasFano, Coder::Raw];

    /// Returns the name of the coder in files.
    pub fn name(self) -> &'static str {
        ["elias-fano", "raw"][self as usize]
    }
}

/// End of a block, and its last fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodedBlock {
    /// Last fingerprint of the block, its key.
    pub key: u64,
    /// Number of fingerprints up to the end of this block, counted from the first block.
    pub rows: usize,
    /// Number of bytes up to the end of this block, counted from the first block.
    pub bytes: usize,
}

/// A sorted sequence of fingerprints as blocks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EncodedFingerprints {
    /// The blocks, in order.
    pub blocks: Vec<CodedBlock>,
    /// Bytes of the blocks, one block after the other.
    pub bytes: Vec<u8>,
}

impl EncodedFingerprints {
    /// Ends a block whose bytes were appended. `key` is its last fingerprint, `rows` the number of
    /// fingerprints up to its end.
    pub fn end_block(&mut self, key: u64, rows: usize) {
        self.blocks.push(CodedBlock { key, rows, bytes: self.bytes.len() });
    }

    /// Decodes all blocks into `rows`, each with `decode_block`. The length of `rows` must be the
    /// number of encoded fingerprints.
    ///
    /// # Errors
    /// Returns [`DamagedBytes`] if `decode_block` does, or if `rows` has another length.
    pub fn decode(
        &self,
        rows: &mut [u64],
        decode_block: impl Fn(&[u8], &mut [u64]) -> Result<(), DamagedBytes>,
    ) -> Result<(), DamagedBytes> {
        let (mut remaining, mut start) = (rows, CodedBlock { key: 0, rows: 0, bytes: 0 });
        for &block in &self.blocks {
            let split = std::mem::take(&mut remaining).split_at_mut_checked(block.rows - start.rows);
            let (into, tail) = split.ok_or(DamagedBytes("more rows than requested"))?;
            decode_block(&self.bytes[start.bytes..block.bytes], into)?;
            (remaining, start) = (tail, block);
        }
        if remaining.is_empty() { Ok(()) } else { Err(DamagedBytes("fewer rows than requested")) }
    }

    /// Returns the bits per fingerprint, including 64 bits of key for each block, as in the paper's
    /// tables.
    pub fn bits_a_row(&self) -> f64 {
        let bytes = self.bytes.len() + 8 * self.blocks.len();
        8.0 * bytes as f64 / self.blocks.last().map_or(1, |block| block.rows) as f64
    }
}

/// Error for bytes that no encoder can have written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("damaged: {0}")]
pub struct DamagedBytes(pub &'static str);

/// Encodes fingerprints, sorted ascending, each below 2^f. A fingerprint may occur many times.
///
/// # Panics
/// Panics in debug builds if the fingerprints are not sorted. In other builds the decoded sequence
/// then differs.
///
/// # Examples
/// ```
/// use webtwin_core::hamming::coding::{Coder, decode_block, encode};
///
/// // 100,000 fingerprints that are evenly spread over 64 bits.
/// let sorted: Vec<u64> = (0..100_000).map(|n| n * (u64::MAX / 100_000)).collect();
/// let encoded = encode(Coder::EliasFano, 64, &sorted);
/// assert!(encoded.bits_a_row() < 50.0);
///
/// let decode = |block: &[u8], rows: &mut [u64]| decode_block(Coder::EliasFano, block, rows);
/// let mut decoded = vec![0; sorted.len()];
/// encoded.decode(&mut decoded, decode)?;
/// assert_eq!(decoded, sorted);
/// # Ok::<(), webtwin_core::hamming::coding::DamagedBytes>(())
/// ```
pub fn encode(coder: Coder, f: u32, sorted: &[u64]) -> EncodedFingerprints {
    let mut encoded = EncodedFingerprints::default();
    encode_into(coder, f, sorted, &mut encoded);
    encoded
}

/// Encodes fingerprints as [`encode`] does, and replaces the content of `encoded`, whose memory is
/// reused.
///
/// # Panics
/// Panics under the conditions of [`encode`].
pub fn encode_into(coder: Coder, f: u32, sorted: &[u64], encoded: &mut EncodedFingerprints) {
    debug_assert!(sorted.is_sorted() && sorted.last().is_none_or(|&last| f == 64 || last >> f == 0));
    encoded.blocks.clear();
    encoded.bytes.clear();
    match coder {
        Coder::EliasFano => elias_fano::encode_into(sorted, elias_fano::ROWS, encoded),
        Coder::Raw => raw(sorted, encoded),
    }
}

fn raw(sorted: &[u64], encoded: &mut EncodedFingerprints) {
    for (at, rows) in sorted.chunks(elias_fano::ROWS).enumerate() {
        encoded.bytes.extend(rows.iter().flat_map(|fingerprint| fingerprint.to_le_bytes()));
        encoded.end_block(rows[rows.len() - 1], at * elias_fano::ROWS + rows.len());
    }
}

/// Decodes a whole block into `rows`, whose length must be that of the encoded block.
///
/// # Errors
/// Returns [`DamagedBytes`] if the bytes cannot be such a block. Not all damage is detected: `rows`
/// may then contain any values, in any order.
pub fn decode_block(coder: Coder, block: &[u8], rows: &mut [u64]) -> Result<(), DamagedBytes> {
    match coder {
        Coder::EliasFano => elias_fano::decode(block, rows),
        Coder::Raw if block.len() != 8 * rows.len() => Err(DamagedBytes("a block of another length")),
        Coder::Raw => {
            for (row, bytes) in rows.iter_mut().zip(block.as_chunks::<8>().0) {
                *row = u64::from_le_bytes(*bytes);
            }
            Ok(())
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
