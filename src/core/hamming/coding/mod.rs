//! Sorted fingerprints in few bytes: blocks that are decoded one by one.
//!
//! Successive fingerprints of a sorted set of 2^d share their top d bits in expectation, so about f - d bits of each have
//! to be kept. All coders here cut the sequence in blocks, keep the first fingerprint of a block whole, and give each
//! block a *key*, its last fingerprint, by which a search finds the block to decode.
//!
//! | coder | bits a fingerprint, 2^23 of a set of 2^33 | decoding |
//! |---|---|---|
//! | [`Coder::EliasFano`], the default | 33.1 | fastest |
//! | [`Coder::Huffman`], the paper's | 34.8 | a quarter of that |
//! | [`Coder::Raw`] | 64 | a copy |
//!
//! # Source
//! \[MJS07\] section 3.2.
//!
//! # Deviations
//! The paper has the Huffman code alone; Elias-Fano is ours. The input may hold a fingerprint many times.

pub mod elias_fano;
pub mod huffman;

use webtwin_job::Coder;

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
    /// What [`Decoder::new`] needs besides coder and width: the Huffman code, else nothing.
    pub code: Vec<u8>,
    /// The blocks, in order.
    pub blocks: Vec<Block>,
    /// Their bytes, one after the other.
    pub bytes: Vec<u8>,
}

impl Encoded {
    fn end_block(&mut self, key: u64, rows: usize) {
        self.blocks.push(Block { key, rows, bytes: self.bytes.len() });
    }
}

impl Encoded {
    /// Decodes all blocks; `rows` has as many as were encoded.
    ///
    /// # Errors
    /// [`Damaged`] as [`Decoder::decode`], or when there are not as many rows.
    pub fn decode(&self, decoder: &Decoder, rows: &mut [u64]) -> Result<(), Damaged> {
        let (mut rest, mut start) = (rows, Block { key: 0, rows: 0, bytes: 0 });
        for &block in &self.blocks {
            let split = std::mem::take(&mut rest).split_at_mut_checked(block.rows - start.rows);
            let (into, after) = split.ok_or(Damaged("more rows than asked for"))?;
            decoder.decode(&self.bytes[start.bytes..block.bytes], into)?;
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
    encoded.code.clear();
    encoded.blocks.clear();
    encoded.bytes.clear();
    match coder {
        Coder::EliasFano => elias_fano::encode_into(sorted, elias_fano::ROWS, encoded),
        Coder::Huffman => *encoded = huffman::encode(f, sorted, huffman::BLOCK_BYTES),
        Coder::Raw => raw(sorted, encoded),
    }
}

fn raw(sorted: &[u64], encoded: &mut Encoded) {
    for (at, rows) in sorted.chunks(elias_fano::ROWS).enumerate() {
        encoded.bytes.extend(rows.iter().flat_map(|fingerprint| fingerprint.to_le_bytes()));
        encoded.end_block(rows[rows.len() - 1], at * elias_fano::ROWS + rows.len());
    }
}

/// Decodes blocks, each by itself.
#[derive(Debug, Clone)]
pub struct Decoder(Method);

#[derive(Debug, Clone)]
enum Method {
    EliasFano,
    Huffman(Box<huffman::Code>),
    Raw,
}

impl Decoder {
    /// A decoder for blocks of f-bit fingerprints, with [`Encoded::code`].
    ///
    /// # Errors
    /// [`Damaged`] when `code` is not what the coder needs.
    pub fn new(coder: Coder, f: u32, code: &[u8]) -> Result<Decoder, Damaged> {
        match coder {
            Coder::Huffman => Ok(Decoder(Method::Huffman(Box::new(huffman::Code::from_lengths(f, code)?)))),
            _ if !code.is_empty() => Err(Damaged("a code where none belongs")),
            Coder::EliasFano => Ok(Decoder(Method::EliasFano)),
            Coder::Raw => Ok(Decoder(Method::Raw)),
        }
    }

    /// Decodes a whole block into `rows`, which has the length the block was written with.
    ///
    /// # Errors
    /// [`Damaged`] when the bytes cannot be such a block. Not all damage shows: `rows` may hold anything, in any order.
    pub fn decode(&self, block: &[u8], rows: &mut [u64]) -> Result<(), Damaged> {
        match &self.0 {
            Method::EliasFano => elias_fano::decode(block, rows),
            Method::Huffman(code) => code.decode(block, rows),
            Method::Raw if block.len() != 8 * rows.len() => Err(Damaged("a block of another length")),
            Method::Raw => {
                for (row, bytes) in rows.iter_mut().zip(block.as_chunks::<8>().0) {
                    *row = u64::from_le_bytes(*bytes);
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
