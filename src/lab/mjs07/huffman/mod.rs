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
    sorted: Vec<u8>,
}

/// Returns the symbol of two successive fingerprints of f bits: the most significant bit in which
/// they differ, or f if they are equal.
fn symbol(f: u32, before: u64, fingerprint: u64) -> u32 {
    (before ^ fingerprint).checked_ilog2().unwrap_or(f)
}

/// Encodes sorted fingerprints of f bits in blocks of at most `block_bytes` bytes (at least 8).
/// Returns their code, too.
pub fn encode(f: u32, sorted: &[u64], block_bytes: usize) -> (Code, EncodedFingerprints) {
    let mut counts = vec![0u64; f as usize + 1];
    for pair in sorted.windows(2) {
        counts[symbol(f, pair[0], pair[1]) as usize] += 1;
    }
    let code = Code::of_counts(f, &counts);
    let mut encoded = EncodedFingerprints::default();
    let mut left = sorted;
    while let Some((&first, others)) = left.split_first() {
        let mut bits = Bits { bytes: Vec::with_capacity(block_bytes), pending: 0, held: 0 };
        bits.push(first >> 32, 32);
        bits.push(first & 0xffff_ffff, 32);
        let (mut before, mut rows) = (first, 1);
        for &fingerprint in others {
            let symbol = symbol(f, before, fingerprint);
            let below = if symbol == f { 0 } else { symbol };
            let length = u32::from(code.lengths[symbol as usize]);
            if bits.len() + (length + below) as usize > 8 * block_bytes {
                break;
            }
            bits.push(u64::from(code.words[symbol as usize]), length);
            bits.push(fingerprint >> 32 & ones(below.saturating_sub(32)), below.saturating_sub(32));
            bits.push(fingerprint & ones(below.min(32)), below.min(32));
            (before, rows) = (fingerprint, rows + 1);
        }
        encoded.bytes.extend(bits.finish());
        encoded.end_block(before, sorted.len() - left.len() + rows);
        left = &left[rows..];
    }
    (code, encoded)
}

fn ones(bits: u32) -> u64 {
    (1 << bits) - 1
}

/// Writer of bits, most significant bit first.
struct Bits {
    bytes: Vec<u8>,
    pending: u64,
    held: u32,
}

impl Bits {
    fn len(&self) -> usize {
        8 * self.bytes.len() + self.held as usize
    }

    /// Appends the low `count` bits of `value`, at most 32. Its other bits must be 0.
    fn push(&mut self, value: u64, count: u32) {
        self.pending = self.pending << count | value;
        self.held += count;
        while self.held >= 8 {
            self.held -= 8;
            self.bytes.push((self.pending >> self.held) as u8);
        }
    }

    fn finish(mut self) -> Vec<u8> {
        if self.held > 0 {
            self.bytes.push((self.pending << (8 - self.held)) as u8);
        }
        self.bytes
    }
}

impl Code {
    /// Returns the Huffman code of symbols with these numbers of occurrences. Symbols that do not
    /// occur have no code.
    fn of_counts(f: u32, counts: &[u64]) -> Code {
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
        let mut sorted: Vec<u8> = (0..=f as u8).filter(|&symbol| lengths[symbol as usize] > 0).collect();
        sorted.sort_by_key(|&symbol| lengths[symbol as usize]);
        let mut words = vec![0; lengths.len()];
        let mut lookup = vec![(0, 0); 1 << LOOKUP_BITS];
        // The next code, in the leading bits of 32.
        let mut next = 0u64;
        for &symbol in &sorted {
            let length = u32::from(lengths[symbol as usize]);
            let step = 1u64 << (32 - length);
            if next + step > 1 << 32 {
                return Err(DamagedBytes("lengths of a Huffman code that no code has"));
            }
            words[symbol as usize] = (next >> (32 - length)) as u32;
            if length <= LOOKUP_BITS {
                let from = (next >> (32 - LOOKUP_BITS)) as usize;
                lookup[from..from + (1 << (LOOKUP_BITS - length))].fill((symbol, length as u8));
            }
            next += step;
        }
        Ok(Code { f, lengths: lengths.to_vec(), words, lookup, sorted })
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
        let begins = |&&symbol: &&u8| {
            let length = self.lengths[symbol as usize];
            bits >> (64 - length) == u64::from(self.words[symbol as usize])
        };
        let symbol = self.sorted.iter().find(begins).ok_or(DamagedBytes("bits that are not a Huffman code"))?;
        Ok((u32::from(*symbol), u32::from(self.lengths[*symbol as usize])))
    }

    /// Decodes one block into `rows`, which must have the number of encoded rows.
    ///
    /// # Errors
    /// Returns [`DamagedBytes`] if the bytes end before or after the rows, or are not a code.
    pub fn decode(&self, block: &[u8], rows: &mut [u64]) -> Result<(), DamagedBytes> {
        let (Some((first, others)), Some(head)) = (rows.split_first_mut(), block.first_chunk()) else {
            return Err(DamagedBytes("a block without rows"));
        };
        let mut before = u64::from_be_bytes(*head);
        *first = before;
        let mut at = 64;
        for row in others {
            let bits = peek(block, at);
            let (symbol, length) = self.next(bits)?;
            at += length as usize;
            if symbol < self.f {
                // One `peek` has at least 57 valid bits, so longer rows need a second one.
                let below = if length + symbol <= 57 { bits << length } else { peek(block, at) };
                let below = if symbol <= 57 { below } else { below & !0x7f | peek(block, at + 57) >> 57 };
                // The shift by 64 - symbol is done in two steps, because symbol may be 0.
                before = (before >> symbol | 1) << symbol | below >> 1 >> (63 - symbol);
                at += symbol as usize;
            }
            *row = before;
        }
        if at.div_ceil(8) == block.len() { Ok(()) } else { Err(DamagedBytes("a block of another length")) }
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
        let joined = parents.len();
        parents.push(0);
        let mut count = 0u64;
        for Reverse((of_node, node)) in [nodes.pop(), nodes.pop()].into_iter().flatten() {
            parents[node] = joined;
            count = count.saturating_add(of_node);
        }
        nodes.push(Reverse((count, joined)));
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
