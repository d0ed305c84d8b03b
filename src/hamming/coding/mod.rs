//! Sorted fingerprints in few bytes: blocks that are decoded one by one.
//!
//! Successive fingerprints of a sorted set of 2^d share their top d bits in expectation, so about f - d bits of each have
//! to be kept. All coders here cut the sequence in blocks, keep the first fingerprint of a block whole, and give each
//! block a *key*, its last fingerprint, by which a search finds the block to decode.
//!
//! | coder | bits a fingerprint, 2^23 of a set of 2^33 | decoding |
//! |---|---|---|
//! | [`Coder::EliasFano`], the default | 33.2 | fastest |
//! | [`Coder::Huffman`], the paper's | 34.9 | a third to a fifth of that |
//! | [`Coder::Raw`] | 64 | a copy |
//!
//! # Source
//! \[MJS07\] section 3.2.
//!
//! # Deviations
//! The paper has the Huffman code alone; Elias-Fano is ours. The input may hold a fingerprint many times.

pub mod elias_fano;
pub mod huffman;

/// How the fingerprints of a file or table are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Coder {
    /// Low bits in place, high bits in unary ([`elias_fano`]).
    EliasFano,
    /// Position of the first differing bit in a Huffman code, then the bits below it ([`huffman`]).
    Huffman,
    /// Eight bytes each.
    Raw,
}

impl Coder {
    /// Every coder; the place of one in this list is its number in files.
    pub const ALL: [Coder; 3] = [Coder::EliasFano, Coder::Huffman, Coder::Raw];

    /// Number in files.
    pub fn number(self) -> u32 {
        self as u32
    }

    /// Name in settings and manifests.
    pub fn name(self) -> &'static str {
        ["elias-fano", "huffman", "raw"][self as usize]
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
#[derive(Debug, Clone, PartialEq, Eq)]
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

/// Bytes that no encoder wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("damaged: {0}")]
pub struct Damaged(pub &'static str);

/// Encodes fingerprints, sorted ascending, each below 2^f; one may occur many times.
///
/// # Panics
/// When they are not sorted, in debug builds only; what is decoded is then another sequence.
pub fn encode(coder: Coder, f: u32, sorted: &[u64]) -> Encoded {
    debug_assert!(sorted.is_sorted() && sorted.last().is_none_or(|&last| f == 64 || last >> f == 0));
    match coder {
        Coder::EliasFano => elias_fano::encode(sorted, elias_fano::ROWS),
        Coder::Huffman => huffman::encode(f, sorted, huffman::BLOCK_BYTES),
        Coder::Raw => raw(sorted),
    }
}

fn raw(sorted: &[u64]) -> Encoded {
    let mut encoded = Encoded { code: Vec::new(), blocks: Vec::new(), bytes: Vec::with_capacity(8 * sorted.len()) };
    for (at, rows) in sorted.chunks(elias_fano::ROWS).enumerate() {
        encoded.bytes.extend(rows.iter().flat_map(|fingerprint| fingerprint.to_le_bytes()));
        encoded.end_block(rows[rows.len() - 1], at * elias_fano::ROWS + rows.len());
    }
    encoded
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
