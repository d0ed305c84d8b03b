//! Elias-Fano coding by blocks: the low bits of each fingerprint in place, the bits above them in
//! unary.
//!
//! Within a block, the difference of each fingerprint from the first is divided into `width` low
//! bits and the rest. The low bits are stored next to each other. The rests, which never decrease,
//! are a bit sequence with one 1 for each fingerprint, the i-th (from 0) at position rest + i. With
//! n fingerprints spread evenly over a range u this takes about 2 + log2(u/n) bits for each.
//!
//! The width is chosen for each block. So a block within a cluster is small, a block next to a
//! cluster is large, and no block is larger than raw by more than its head.
//!
//! ```text
//! block: first (8 bytes) | width (1) | low bits of the others, least significant first | unary, padded to a byte
//!        first (8 bytes) | 64        | the others, 8 bytes each
//! ```
//!
//! # Cost
//! Decoding reads each byte once, in two simple loops, one for each part.

use super::{DamagedBytes, EncodedFingerprints};

/// Number of fingerprints in a block (fewer in the last).
pub const ROWS: usize = 1024;

/// Largest width of the low part other than [`WHOLE_WIDTH`]. One unaligned load of eight bytes
/// always contains a low part of this width.
const MAX_WIDTH: u32 = 56;

/// Width of a block that has no unary part and eight bytes for each fingerprint.
const WHOLE_WIDTH: u32 = 64;

/// Bytes of the head: first fingerprint and width.
const HEAD: usize = 9;

/// Number of bytes from which the low parts of eight fingerprints are read.
const GROUP: usize = 64;

/// Encodes sorted fingerprints in blocks of `block_rows`, and appends them to `encoded`.
pub fn encode_into(sorted: &[u64], block_rows: usize, encoded: &mut EncodedFingerprints) {
    encoded.bytes.reserve(5 * sorted.len());
    for (at, rows) in sorted.chunks(block_rows).enumerate() {
        let (first, last) = (rows[0], rows[rows.len() - 1]);
        let width = narrowest(rows.len() - 1, last - first);
        encoded.bytes.extend(first.to_le_bytes());
        encoded.bytes.push(width as u8);
        push_rows(&mut encoded.bytes, first, &rows[1..], width);
        encoded.end_block(last, at * block_rows + rows.len());
    }
}

/// Returns the width with which a block is smallest. Ties go to the largest width, which has the
/// shortest unary part.
fn narrowest(count: usize, range: u64) -> u32 {
    let bytes = |&width: &u32| body_bytes(count, range, width);
    (0..=MAX_WIDTH).chain([WHOLE_WIDTH]).rev().min_by_key(bytes).unwrap_or(WHOLE_WIDTH)
}

fn body_bytes(count: usize, range: u64, width: u32) -> u128 {
    if width == WHOLE_WIDTH {
        return 8 * count as u128;
    }
    low_bytes(count, width) as u128 + (u128::from(range >> width) + count as u128).div_ceil(8)
}

fn low_bytes(count: usize, width: u32) -> usize {
    (count * width as usize).div_ceil(8)
}

fn push_rows(bytes: &mut Vec<u8>, first: u64, later: &[u64], width: u32) {
    if width == WHOLE_WIDTH {
        bytes.extend(later.iter().flat_map(|fingerprint| fingerprint.to_le_bytes()));
        return;
    }
    // Whole words are written, each over the incomplete last byte of the word before, so the buffer
    // needs eight extra bytes.
    let mut at = bytes.len();
    let unary = at + low_bytes(later.len(), width);
    bytes.resize(unary + 8, 0);
    let (mut pending, mut pending_bits) = (0u64, 0);
    for fingerprint in later {
        pending |= ((fingerprint - first) & low_mask(width)) << pending_bits;
        pending_bits += width;
        bytes[at..at + 8].copy_from_slice(&pending.to_le_bytes());
        at += (pending_bits / 8) as usize;
        (pending, pending_bits) = (pending >> (pending_bits & !7), pending_bits % 8);
    }
    bytes.truncate(unary);
    let ones = later.last().map_or(0, |last| ((last - first) >> width) as usize + later.len());
    bytes.resize(unary + 8 * ones.div_ceil(64), 0);
    // A word is written once it has all its ones. Setting each bit in memory would make every write
    // wait for the one before.
    let (words, _) = bytes[unary..].as_chunks_mut::<8>();
    let (mut at, mut word) = (0, 0u64);
    for (i, fingerprint) in later.iter().enumerate() {
        let place = ((fingerprint - first) >> width) as usize + i;
        if place / 64 != at {
            words[at] = word.to_le_bytes();
            (at, word) = (place / 64, 0);
        }
        word |= 1 << (place % 64);
    }
    if ones > 0 {
        words[at] = word.to_le_bytes();
    }
    bytes.truncate(unary + ones.div_ceil(8));
}

fn low_mask(width: u32) -> u64 {
    (1 << width) - 1
}

/// Decodes one block into `rows`, whose length must be the number of encoded fingerprints.
///
/// # Errors
/// Returns [`DamagedBytes`] if the length, the width or the number of ones cannot be right.
pub fn decode(block: &[u8], rows: &mut [u64]) -> Result<(), DamagedBytes> {
    let Some((head, body)) = block.split_at_checked(HEAD) else {
        return Err(DamagedBytes("a block shorter than its head"));
    };
    let Some((row, later)) = rows.split_first_mut() else {
        return Err(DamagedBytes("a block without rows"));
    };
    let first = load(head);
    let width = u32::from(head[8]);
    *row = first;
    if width == WHOLE_WIDTH && body.len() == 8 * later.len() {
        for (row, bytes) in later.iter_mut().zip(body.as_chunks::<8>().0) {
            *row = u64::from_le_bytes(*bytes);
        }
        return Ok(());
    }
    let low = low_bytes(later.len(), width);
    if width > MAX_WIDTH || low > body.len() {
        return Err(DamagedBytes("a width that does not fit the block"));
    }
    high_parts(&body[low..], first, width, later)?;
    low_parts(body, width, later);
    Ok(())
}

/// Sets each row to the first fingerprint plus its high part.
fn high_parts(unary: &[u8], first: u64, width: u32, rows: &mut [u64]) -> Result<(), DamagedBytes> {
    let (words, tail) = unary.as_chunks::<8>();
    let mut last = [0; 8];
    last[..tail.len()].copy_from_slice(tail);
    let mut left = rows.iter_mut();
    // Value of a one at bit 0 of the current word. The number of zeros below a one is its position
    // minus the number of ones below it.
    let mut base = first;
    for word in words.iter().chain([&last]) {
        let mut word = u64::from_le_bytes(*word);
        while word != 0 {
            let row = left.next().ok_or(DamagedBytes("more rows than in the directory"))?;
            *row = base.wrapping_add(u64::from(word.trailing_zeros()) << width);
            base = base.wrapping_sub(1 << width);
            word &= word - 1;
        }
        base = base.wrapping_add(64 << width);
    }
    if left.len() == 0 { Ok(()) } else { Err(DamagedBytes("fewer rows than in the directory")) }
}

/// Adds the low parts, which are at the start of `body`, to the rows.
fn low_parts(body: &[u8], width: u32, rows: &mut [u64]) {
    let width = width as usize;
    // Eight low parts take `width` whole bytes. They are read as 64 bytes if the body has as many.
    let mut groups = rows.chunks_mut(8).enumerate();
    for (at, group) in groups.by_ref() {
        match body[at * width..].first_chunk::<GROUP>() {
            Some(bytes) if group.len() == 8 => add_group(bytes, width, group),
            _ => {
                let from = &body[at * width..];
                let mut bytes = [0; GROUP];
                let length = from.len().min(GROUP);
                bytes[..length].copy_from_slice(&from[..length]);
                add_group(&bytes, width, group);
            }
        }
    }
}

#[inline(always)]
fn add_group(bytes: &[u8; GROUP], width: usize, group: &mut [u64]) {
    let width = width & 63;
    let mask = low_mask(width as u32);
    for (j, row) in group.iter_mut().enumerate().take(8) {
        let bit = j * width;
        let low = load(&bytes[bit / 8..]) >> (bit % 8);
        *row = row.wrapping_add(low & mask);
    }
}

fn load(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(*bytes.first_chunk().expect("eight bytes, by the length checked before"))
}
