//! Compression code of the paper: the position at which two successive fingerprints first differ,
//! in a Huffman code, and then the bits below.
//!
//! Let h be the position of the most significant 1-bit of the XOR of a fingerprint with the
//! previous one. The fingerprint has a 1 at h (because it is the larger one), the bits of its
//! predecessor above h, and its own bits below h. The code of h and h plain bits therefore
//! determine it. The code is computed for each table from the frequencies of its own h.
//! ```text
//! block: first (8 bytes, most significant bit first) | code of h, h bits | code of h, h bits | ...
//!        | zeros to a byte
//! code:  f + 1 bytes, the length in bits of the code of each h;
//!        canonical: shorter codes first, then by h
//! ```
//!
//! # Source
//! \[MJS07\] section 3.2.
//!
//! # Deviations
//! A fingerprint equal to the previous one has no h. It has a symbol of its own, f. The paper
//! states that the first fingerprint of a block takes 8f bits; it means f bits, and 64 bits are
//! used here. As in the paper, a block ends before the fingerprint that would make it longer than B
//! bytes, but it is not padded to B. Codes have at most 32 bits: the counts are halved until they
//! do. That takes millions of fingerprints whose frequencies of h resemble Fibonacci numbers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use webtwin_core::hamming::coding::{DamagedBytes, EncodedFingerprints};

/// B in the paper: the maximum size of a block, in bytes.
pub const BLOCK_BYTES: usize = 1024;

/// Maximum length of a code, in bits.
const MAX_CODE_BITS: u32 = 32;

/// Maximum length of codes that are decoded by one look-up, in bits.
const LOOKUP_BITS: u32 = 11;

/// A Huffman code over h in 0..f, with f for "equal".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    f: u32,
    /// Length in bits of the code of each symbol; 0 for a symbol without a code.
    pub lengths: Vec<u8>,
    words: Vec<u32>,
    /// Symbol and length by the next `LOOKUP_BITS` bits, or length 0 if the code is longer.
    lookup: Vec<(u8, u8)>,
    /// Symbols by length, then by number.
    symbols: Vec<u8>,
}

/// Returns the symbol of two successive fingerprints of f bits: the most significant bit in which
/// they differ, or f if they are equal.
fn symbol(f: u32, previous: u64, fingerprint: u64) -> u32 {
    (previous ^ fingerprint).checked_ilog2().unwrap_or(f)
}

/// Encodes sorted fingerprints of f bits in blocks of at most `block_bytes` bytes (at least 8).
/// Returns their code, too.
pub fn encode(f: u32, fingerprints: &[u64], block_bytes: usize) -> (Code, EncodedFingerprints) {
    let mut counts = vec![0u64; f as usize + 1];
    for pair in fingerprints.windows(2) {
        counts[symbol(f, pair[0], pair[1]) as usize] += 1;
    }
    let code = Code::from_counts(f, &counts);
    let mut output = EncodedFingerprints::default();
    let mut left = fingerprints;
    while let Some((&first, remaining)) = left.split_first() {
        let mut bits = Bits { bytes: Vec::with_capacity(block_bytes), pending: 0, n_pending_bits: 0 };
        bits.push(first >> 32, 32);
        bits.push(first & 0xffff_ffff, 32);
        let (mut previous, mut rows) = (first, 1);
        for &fingerprint in remaining {
            let symbol = symbol(f, previous, fingerprint);
            let low_bits = if symbol == f { 0 } else { symbol };
            let length = u32::from(code.lengths[symbol as usize]);
            if bits.len() + (length + low_bits) as usize > 8 * block_bytes {
                break;
            }
            bits.push(u64::from(code.words[symbol as usize]), length);
            bits.push(fingerprint >> 32 & ones(low_bits.saturating_sub(32)), low_bits.saturating_sub(32));
            bits.push(fingerprint & ones(low_bits.min(32)), low_bits.min(32));
            (previous, rows) = (fingerprint, rows + 1);
        }
        output.bytes.extend(bits.finish());
        output.end_block(previous, fingerprints.len() - left.len() + rows);
        left = &left[rows..];
    }
    (code, output)
}

fn ones(bits: u32) -> u64 {
    (1 << bits) - 1
}

/// Writer of bits, most significant bit first.
struct Bits {
    bytes: Vec<u8>,
    pending: u64,
    n_pending_bits: u32,
}

impl Bits {
    fn len(&self) -> usize {
        8 * self.bytes.len() + self.n_pending_bits as usize
    }

    /// Appends the low `count` bits of `value`, at most 32. Its other bits must be 0.
    fn push(&mut self, value: u64, count: u32) {
        self.pending = self.pending << count | value;
        self.n_pending_bits += count;
        while self.n_pending_bits >= 8 {
            self.n_pending_bits -= 8;
            self.bytes.push((self.pending >> self.n_pending_bits) as u8);
        }
    }

    fn finish(mut self) -> Vec<u8> {
        if self.n_pending_bits > 0 {
            self.bytes.push((self.pending << (8 - self.n_pending_bits)) as u8);
        }
        self.bytes
    }
}

impl Code {
    /// Returns the Huffman code of symbols with these numbers of occurrences. Symbols that do not
    /// occur have no code.
    fn from_counts(f: u32, counts: &[u64]) -> Code {
        let mut counts = counts.to_vec();
        loop {
            let lengths = lengths(&counts);
            if lengths.iter().all(|&length| u32::from(length) <= MAX_CODE_BITS) {
                return Code::from_lengths(f, &lengths).expect("Huffman's lengths make a code");
            }
            counts.iter_mut().filter(|count| **count > 0).for_each(|count| *count = count.div_ceil(2));
        }
    }

    /// Returns the canonical code with these lengths, in bits, of the symbols 0 to f; 0 for a
    /// symbol without a code.
    ///
    /// # Errors
    /// Returns [`DamagedBytes`] if no code has these lengths.
    fn from_lengths(f: u32, lengths: &[u8]) -> Result<Code, DamagedBytes> {
        if lengths.len() != f as usize + 1 || lengths.iter().any(|&length| u32::from(length) > MAX_CODE_BITS) {
            return Err(DamagedBytes("a Huffman code of another width"));
        }
        let mut symbols: Vec<u8> = (0..=f as u8).filter(|&symbol| lengths[symbol as usize] > 0).collect();
        symbols.sort_by_key(|&symbol| lengths[symbol as usize]);
        let mut words = vec![0; lengths.len()];
        let mut lookup = vec![(0, 0); 1 << LOOKUP_BITS];
        // The next code, in the leading bits of 32.
        let mut next = 0u64;
        for &symbol in &symbols {
            let length = u32::from(lengths[symbol as usize]);
            let step = 1u64 << (32 - length);
            if next + step > 1 << 32 {
                return Err(DamagedBytes("lengths of a Huffman code that no code has"));
            }
            words[symbol as usize] = (next >> (32 - length)) as u32;
            if length <= LOOKUP_BITS {
                let slot = (next >> (32 - LOOKUP_BITS)) as usize;
                lookup[slot..slot + (1 << (LOOKUP_BITS - length))].fill((symbol, length as u8));
            }
            next += step;
        }
        Ok(Code { f, lengths: lengths.to_vec(), words, lookup, symbols })
    }

    /// Returns symbol and length of the code with which `bits`, most significant bit first, begins.
    #[inline(always)]
    fn next(&self, bits: u64) -> Result<(u32, u32), DamagedBytes> {
        match self.lookup[(bits >> (64 - LOOKUP_BITS)) as usize] {
            (_, 0) => self.next_long(bits),
            (symbol, length) => Ok((u32::from(symbol), u32::from(length))),
        }
    }

    #[cold]
    fn next_long(&self, bits: u64) -> Result<(u32, u32), DamagedBytes> {
        let is_prefix = |&&symbol: &&u8| {
            let length = self.lengths[symbol as usize];
            bits >> (64 - length) == u64::from(self.words[symbol as usize])
        };
        let symbol = self.symbols.iter().find(is_prefix).ok_or(DamagedBytes("bits that are not a Huffman code"))?;
        Ok((u32::from(*symbol), u32::from(self.lengths[*symbol as usize])))
    }

    /// Decodes one block into `rows`, which must have the number of encoded rows.
    ///
    /// # Errors
    /// Returns [`DamagedBytes`] if the bytes end before or after the rows, or are not a code.
    pub fn decode(&self, block: &[u8], rows: &mut [u64]) -> Result<(), DamagedBytes> {
        let (Some((first, later_rows)), Some(head)) = (rows.split_first_mut(), block.first_chunk()) else {
            return Err(DamagedBytes("a block without rows"));
        };
        let mut previous = u64::from_be_bytes(*head);
        *first = previous;
        let mut bit_position = 64;
        for row in later_rows {
            let bits = peek(block, bit_position);
            let (symbol, length) = self.next(bits)?;
            bit_position += length as usize;
            if symbol < self.f {
                // One `peek` has at least 57 valid bits, so longer rows need a second one.
                let low_bits = if length + symbol <= 57 { bits << length } else { peek(block, bit_position) };
                let low_bits =
                    if symbol <= 57 { low_bits } else { low_bits & !0x7f | peek(block, bit_position + 57) >> 57 };
                // The shift by 64 - symbol is done in two steps, because symbol may be 0.
                previous = (previous >> symbol | 1) << symbol | low_bits >> 1 >> (63 - symbol);
                bit_position += symbol as usize;
            }
            *row = previous;
        }
        if bit_position.div_ceil(8) == block.len() { Ok(()) } else { Err(DamagedBytes("a block of another length")) }
    }
}

/// Returns the bits from a position on, of which at least 57 are valid. Bits after the end are
/// zeros.
#[inline(always)]
fn peek(block: &[u8], bit: usize) -> u64 {
    match block.get(bit / 8..).and_then(|rest| rest.first_chunk()) {
        Some(bytes) => u64::from_be_bytes(*bytes) << (bit % 8),
        None => peek_at_the_end(block, bit),
    }
}

#[cold]
fn peek_at_the_end(block: &[u8], bit: usize) -> u64 {
    let rest = block.get(bit / 8..).unwrap_or_default();
    let mut bytes = [0; 8];
    bytes[..rest.len()].copy_from_slice(rest);
    u64::from_be_bytes(bytes) << (bit % 8)
}

/// Returns the code lengths of Huffman's algorithm: the two rarest nodes are joined until one is
/// left. Of equally rare nodes, the one made earlier comes first.
fn lengths(counts: &[u64]) -> Vec<u8> {
    let mut parents: Vec<usize> = vec![0; counts.len()];
    let occurring = counts.iter().enumerate().filter(|&(_, &count)| count > 0);
    let mut nodes: BinaryHeap<_> = occurring.map(|(symbol, &count)| Reverse((count, symbol))).collect();
    if let (1, Some(&Reverse((_, symbol)))) = (nodes.len(), nodes.peek()) {
        let mut lengths = vec![0; counts.len()];
        lengths[symbol] = 1;
        return lengths;
    }
    while nodes.len() > 1 {
        let joined_node = parents.len();
        parents.push(0);
        let mut count = 0u64;
        for Reverse((node_length, node)) in [nodes.pop(), nodes.pop()].into_iter().flatten() {
            parents[node] = joined_node;
            count = count.saturating_add(node_length);
        }
        nodes.push(Reverse((count, joined_node)));
    }
    // Parents are made after their children, so lengths are computed from the last node backward.
    let mut depths = vec![0u8; parents.len()];
    for node in (0..parents.len().saturating_sub(1)).rev() {
        depths[node] = if parents[node] == 0 { 0 } else { depths[parents[node]] + 1 };
    }
    depths.truncate(counts.len());
    depths
}

#[cfg(test)]
mod tests;
