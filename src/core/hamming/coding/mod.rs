//! Sorted fingerprints in few bytes: blocks that are decoded one by one.
//!
//! Successive fingerprints of a sorted set of 2^d share their top d bits in expectation, so about f - d bits of each have
//! to be kept. All coders here cut the sequence in blocks, keep the first fingerprint of a block whole, and give each
//! block a *key*, its last fingerprint, by which a search finds the block to decode.
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
//! The paper has a Huffman code of the first differing bit instead, which takes 34.8 bits and three times as long to
//! decode; `webtwin reproduce mjs07-compression` compares the two. The input may hold a fingerprint many times.

pub mod elias_fano;

/// How the fingerprints of a file are written: by [`Coder::EliasFano`] unless an earlier build was asked for another coder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Coder {
    /// Low bits in place, high bits in unary ([`elias_fano`]).
    EliasFano,
    /// Eight bytes each. Written by earlier builds on demand, and still read.
    Raw,
}

impl Coder {
    /// Every coder.
    pub const ALL: [Coder; 2] = [Coder::EliasFano, Coder::Raw];

    /// Name in files.
    pub fn name(self) -> &'static str {
        ["elias-fano", "raw"][self as usize]
    }
}

/// Where a block ends and what it ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Last fingerprint of the block, its key.
    pub key: u64,
    /// Fingerprints up to the end of this block, counted from the first block.
    pub rows: usize,
    /// Bytes up to the end of this block, counted from the first block.
    pub bytes: usize,
}

/// A sorted sequence of fingerprints as blocks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Encoded {
    /// The blocks, in order.
    pub blocks: Vec<Block>,
    /// Their bytes, one after the other.
    pub bytes: Vec<u8>,
}

impl Encoded {
    /// Ends a block whose bytes were appended: its key, and the fingerprints up to its end.
    pub fn end_block(&mut self, key: u64, rows: usize) {
        self.blocks.push(Block { key, rows, bytes: self.bytes.len() });
    }

    /// Decodes all blocks into `rows`, each with `decode_block`; `rows` has as many as were encoded.
    ///
    /// # Errors
    /// [`Damaged`] as `decode_block`, or if `rows` has another length.
    pub fn decode(
        &self,
        rows: &mut [u64],
        decode_block: impl Fn(&[u8], &mut [u64]) -> Result<(), Damaged>,
    ) -> Result<(), Damaged> {
        let (mut rest, mut start) = (rows, Block { key: 0, rows: 0, bytes: 0 });
        for &block in &self.blocks {
            let split = std::mem::take(&mut rest).split_at_mut_checked(block.rows - start.rows);
            let (into, after) = split.ok_or(Damaged("more rows than asked for"))?;
            decode_block(&self.bytes[start.bytes..block.bytes], into)?;
            (rest, start) = (after, block);
        }
        if rest.is_empty() { Ok(()) } else { Err(Damaged("fewer rows than asked for")) }
    }

    /// Bits a fingerprint with 64 bits of key for each block, as in the paper's tables.
    pub fn bits_a_row(&self) -> f64 {
        let bytes = self.bytes.len() + 8 * self.blocks.len();
        8.0 * bytes as f64 / self.blocks.last().map_or(1, |block| block.rows) as f64
    }
}

/// Bytes that no encoder wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("damaged: {0}")]
pub struct Damaged(pub &'static str);

/// Encodes fingerprints, sorted ascending, each below 2^f; one may occur many times.
///
/// # Panics
/// When they are not sorted, in debug builds only; what is decoded is then another sequence.
pub fn encode(coder: Coder, f: u32, sorted: &[u64]) -> Encoded {
    let mut encoded = Encoded::default();
    encode_into(coder, f, sorted, &mut encoded);
    encoded
}

/// As [`encode`], in place of what `encoded` holds and in its memory.
///
/// # Panics
/// As [`encode`].
pub fn encode_into(coder: Coder, f: u32, sorted: &[u64], encoded: &mut Encoded) {
    debug_assert!(sorted.is_sorted() && sorted.last().is_none_or(|&last| f == 64 || last >> f == 0));
    encoded.blocks.clear();
    encoded.bytes.clear();
    match coder {
        Coder::EliasFano => elias_fano::encode_into(sorted, elias_fano::ROWS, encoded),
        Coder::Raw => raw(sorted, encoded),
    }
}

fn raw(sorted: &[u64], encoded: &mut Encoded) {
    for (at, rows) in sorted.chunks(elias_fano::ROWS).enumerate() {
        encoded.bytes.extend(rows.iter().flat_map(|fingerprint| fingerprint.to_le_bytes()));
        encoded.end_block(rows[rows.len() - 1], at * elias_fano::ROWS + rows.len());
    }
}

/// Decodes a whole block into `rows`, which has the length the block was written with.
///
/// # Errors
/// [`Damaged`] when the bytes cannot be such a block. Not all damage shows: `rows` may hold anything, in any order.
pub fn decode_block(coder: Coder, block: &[u8], rows: &mut [u64]) -> Result<(), Damaged> {
    match coder {
        Coder::EliasFano => elias_fano::decode(block, rows),
        Coder::Raw if block.len() != 8 * rows.len() => Err(Damaged("a block of another length")),
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
