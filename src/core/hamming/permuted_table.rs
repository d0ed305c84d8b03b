//! A permuted table: the existing fingerprints, permuted and sorted, so that the fingerprints that
//! agree with a query on the table's key are found with a few memory accesses.
//!
//! The table is sorted, so the leading bits of its rows need not be stored. A directory has the
//! first row of each prefix of b bits, and a row keeps the other f - b bits, in whole bytes. b
//! equals p, the number of bits of the key, except in tables with so few rows that the directory
//! would cost more than a byte for each of them.
//!
//! | 100 million rows of f = 64 bits | b | bytes a row | with directory |
//! |---|---|---|---|
//! | p = 16 | 16 | 6 | 6.00 |
//! | p = 21 | 21 | 6 | 6.08 |
//! | p = 24 or more | 24 | 5 | 5.67 |
//!
//! ```text
//! head (see sections)   f, key, recipe, rows, b
//! 0  checks             of directory and rows (see checked)
//! 1  directory          2^b + 1 numbers (4 bytes): the first row with each prefix; the number of rows
//! 2  rows               f - b bits each, little-endian, in whole bytes, without gaps
//! ```
//!
//! # Source
//! \[MJS07\] section 3.1, Steps 1 and 2.
//!
//! # Deviations
//! The paper searches the table by interpolation. Here the directory is read once, and if the key
//! is longer than the prefix, the rows of the prefix are searched: by interpolation for a few
//! steps, then by bisection, so that clusters cost a logarithm. The paper compresses tables by
//! blocks (section 3.2). The directory saves less, 25 to 30 %, but needs no decoding.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::checked::{CheckedSection, checks, checks_bytes};
use super::permutation::Permutation;
use super::scan::{packed, prefetch, scan};
use super::sections::{self, FileKind, SectionHead};
use webtwin_base::error::{Error, Result};
use webtwin_base::read_at::Bytes;

/// Format of tables that this build writes and reads.
pub const FORMAT: u32 = 2;

const KIND: FileKind =
    FileKind { magic: b"wt-table", format: FORMAT, description: "a permuted table", remedy: "build the index again" };

const CHECKS: usize = 0;
const DIRECTORY: usize = 1;
const ROWS: usize = 2;
const SECTIONS: usize = 3;

/// Maximum number of rows of one prefix that are all compared. If there are more, the rows with the
/// key are searched.
const LINEAR_ROWS: usize = 64;

/// Number of interpolation steps before a search continues by bisection.
const INTERPOLATIONS: u32 = 4;

/// Description of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableHeader {
    /// Width of the fingerprints, in bits.
    pub f: u32,
    /// Bits that must be equal for two fingerprints to agree.
    pub key: u64,
    /// Name of the recipe that made the fingerprints.
    pub recipe: String,
    /// Number of rows, all different.
    pub rows: u64,
    /// b, the number of leading bits that the directory stores instead of the rows.
    pub prefix_bits: u32,
}

/// Builds the file of the table with the given key. Returns its parts, to be written one after the
/// other.
///
/// `fingerprints` are distinct fingerprints of f bits in any order.
///
/// # Panics
/// Panics if there are 2^32 fingerprints or more, and in debug builds if a fingerprint occurs
/// twice.
///
/// # Cost
/// A sort of the rows in place, and memory for the file in addition to them: 14 bytes a row at f =
/// 64 and p = 16.
pub fn build(f: u32, key: u64, recipe: &str, mut fingerprints: Vec<u64>) -> Vec<Vec<u8>> {
    let permutation = Permutation::new(f, key);
    permutation.apply_all(&mut fingerprints);
    fingerprints.sort_unstable();
    debug_assert!(fingerprints.is_sorted_by(|a, b| a < b));
    let rows = u32::try_from(fingerprints.len()).expect("the caller splits larger sets");
    let Shape { prefix_bits, width } = Shape::new(f, permutation.top_bits(), fingerprints.len());
    let mut directory = Vec::with_capacity(4 * ((1 << prefix_bits) + 1));
    let mut packed = Vec::with_capacity(width * fingerprints.len());
    let low_mask = u64::MAX >> (64 - (f - prefix_bits));
    let mut prefix = 0u64;
    for (row, permuted) in (0u32..).zip(&fingerprints) {
        while prefix <= permuted.unbounded_shr(f - prefix_bits) {
            directory.extend(row.to_le_bytes());
            prefix += 1;
        }
        packed.extend_from_slice(&(permuted & low_mask).to_le_bytes()[..width]);
    }
    for _ in prefix..=1 << prefix_bits {
        directory.extend(rows.to_le_bytes());
    }
    drop(fingerprints);
    let header = TableHeader { f, key, recipe: recipe.into(), rows: u64::from(rows), prefix_bits };
    let checks = checks(&[&directory, &packed]);
    let head = sections::head(KIND, &header, &[&checks, &directory, &packed]);
    vec![head, checks, directory, packed]
}

/// Layout of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// b: number of leading bits that the directory stores instead of the rows.
    pub prefix_bits: u32,
    /// Bytes of a row.
    pub width: usize,
}

impl Shape {
    /// Returns the shape of a table with a key of `top_bits` of f bits: the longest prefix within
    /// the key whose directory costs at most a byte a row.
    pub fn new(f: u32, top_bits: u32, rows: usize) -> Shape {
        let prefix_bits = top_bits.min((rows / 4).checked_ilog2().unwrap_or(0)).min(f - 1);
        Shape { prefix_bits, width: (f - prefix_bits).div_ceil(8) as usize }
    }

    /// Returns the bytes of directory and rows, and of their checksums.
    pub fn bytes(self, rows: usize) -> u64 {
        let (directory, rows) = (4 * ((1 << self.prefix_bits) + 1), (self.width * rows) as u64);
        directory + rows + checks_bytes(directory) + checks_bytes(rows)
    }
}

/// A block of a section that does not match its checksum. Only [`PermutedTable::error`] converts it
/// to an error of the program: passing that larger type through every step would cost a query a
/// third of its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DamagedBlock(usize);

/// Result of a step that read no damaged block.
pub(super) type IntactResult<T> = std::result::Result<T, DamagedBlock>;

/// A table over bytes that are in memory or mapped there.
///
/// # Examples
/// ```
/// use webtwin_core::hamming::permuted_table::{PermutedTable, build};
///
/// // Fingerprints of 16 bits; the table is sorted by their low byte.
/// let file = build(16, 0x00ff, "mine-v1", vec![0x1203, 0x3401, 0x5602]).concat();
/// let table = PermutedTable::open("table", file)?;
/// assert_eq!((table.header().f, table.header().rows), (16, 3));
/// assert_eq!(table.permutation().apply(0x3401), 0x0134);
/// assert!(table.verify().is_ok());
/// # Ok::<(), webtwin_base::error::Error>(())
/// ```
#[derive(Debug)]
pub struct PermutedTable<B> {
    bytes: B,
    head: SectionHead<TableHeader>,
    permutation: Permutation,
    directory: CheckedSection,
    rows: CheckedSection,
    width: usize,
}

impl<B: AsRef<[u8]> + Send + Sync> PermutedTable<B> {
    /// Opens a table with the given name for messages. Verifies its head. Every other block is
    /// verified when it is first read, or all of them by [`PermutedTable::verify`].
    ///
    /// # Errors
    /// Returns [`webtwin_base::error::Error::Input`] if the bytes are not a table, have another
    /// format, or are truncated.
    pub fn open(name: &str, bytes: B) -> Result<PermutedTable<B>> {
        let head: SectionHead<TableHeader> = SectionHead::open(KIND, name, &Bytes(bytes.as_ref()), SECTIONS)?;
        let TableHeader { f, key, rows, prefix_bits, .. } = head.header;
        let span = |section| head.span(section).start as usize..head.span(section).end as usize;
        let (directory, rows_span) = (span(DIRECTORY), span(ROWS));
        let good = (1..=64).contains(&f)
            && (f == 64 || key >> f == 0)
            && prefix_bits <= key.count_ones().min(31)
            && prefix_bits < f
            && directory.len() == 4 * ((1 << prefix_bits) + 1)
            && rows.checked_mul(u64::from((f - prefix_bits).div_ceil(8))) == Some(rows_span.len() as u64);
        let sections = CheckedSection::sections([directory, rows_span], span(CHECKS));
        let Some([directory, rows]) = sections.filter(|_| good) else {
            return Err(head.damaged("its description contradicts itself"));
        };
        head.check(CHECKS, &bytes.as_ref()[span(CHECKS)])?;
        let permutation = Permutation::new(f, key);
        Ok(PermutedTable { permutation, directory, rows, width: (f - prefix_bits).div_ceil(8) as usize, bytes, head })
    }

    /// Returns the description of the table.
    pub fn header(&self) -> &TableHeader {
        &self.head.header
    }

    /// Returns the permutation of the table.
    pub fn permutation(&self) -> &Permutation {
        &self.permutation
    }

    /// Returns the length of the table in bytes.
    pub fn len_bytes(&self) -> usize {
        self.bytes.as_ref().len()
    }

    /// Verifies every byte of the table against its checksum.
    ///
    /// # Errors
    /// Returns [`webtwin_base::error::Error::Input`] if the table is damaged.
    pub fn verify(&self) -> Result<()> {
        self.head.check(DIRECTORY, self.directory())?;
        self.head.check(ROWS, self.packed())?;
        self.directory.set_good();
        self.rows.set_good();
        Ok(())
    }

    /// Returns the error of the program for a damaged block.
    #[cold]
    pub(super) fn error(&self, DamagedBlock(section): DamagedBlock) -> Error {
        self.head.damaged_block(section)
    }

    pub(super) fn has_head(&self, checksum: &str) -> bool {
        self.head.is(checksum)
    }

    fn directory(&self) -> &[u8] {
        self.directory.bytes(self.bytes.as_ref())
    }

    fn packed(&self) -> &[u8] {
        self.rows.bytes(self.bytes.as_ref())
    }

    /// Verifies the blocks that contain the rows.
    #[inline]
    fn check_rows(&self, rows: Range<usize>) -> IntactResult<()> {
        let bytes = rows.start * self.width..rows.end * self.width;
        if self.rows.is_good(self.bytes.as_ref(), bytes) { Ok(()) } else { Err(DamagedBlock(ROWS)) }
    }

    /// Returns the number of bits of a row that are stored.
    fn low_bits(&self) -> u32 {
        self.header().f - self.header().prefix_bits
    }

    fn low(&self, permuted: u64) -> u64 {
        permuted & (u64::MAX >> (64 - self.low_bits()))
    }

    fn prefix(&self, permuted: u64) -> usize {
        permuted.unbounded_shr(self.low_bits()) as usize
    }

    /// Prefetches the directory entry of a permuted fingerprint, which `PermutedTable::with_prefix`
    /// will read.
    pub fn prefetch_directory(&self, permuted: u64) {
        prefetch(self.directory(), 4 * self.prefix(permuted));
    }

    /// Returns the rows with the prefix of a permuted fingerprint, and prefetches the first of
    /// them.
    ///
    /// # Errors
    /// Returns [`DamagedBlock`] if the directory entry is in a damaged block.
    #[inline]
    pub(super) fn with_prefix(&self, permuted: u64) -> IntactResult<Range<usize>> {
        let at = 4 * self.prefix(permuted);
        if !self.directory.is_good(self.bytes.as_ref(), at..at + 8) {
            return Err(DamagedBlock(DIRECTORY));
        }
        let number = |bytes: &[u8]| bytes.first_chunk().map_or(0, |&bytes| u32::from_le_bytes(bytes)) as usize;
        let entry = self.directory().get(at..at + 8).unwrap_or_default();
        let rows = self.packed().len() / self.width;
        let from = number(entry).min(rows);
        let end = entry.get(4..).map_or(0, number).min(rows);
        for line in 0..4 {
            prefetch(self.packed(), from * self.width + 64 * line);
        }
        Ok(from..end.max(from))
    }

    /// Returns, as step 1, those of `rows`, all with the prefix of a permuted fingerprint, that
    /// agree with it on the whole key. Returns all `rows` if there are few.
    ///
    /// # Errors
    /// Returns [`DamagedBlock`] if a row that is read is in a damaged block.
    #[inline]
    pub(super) fn with_key(&self, permuted: u64, rows: Range<usize>) -> IntactResult<Range<usize>> {
        let low_bits = self.header().f - self.permutation.top_bits();
        if rows.len() <= LINEAR_ROWS || low_bits == self.low_bits() {
            return Ok(rows);
        }
        let free_mask = 1u64.unbounded_shl(low_bits).wrapping_sub(1);
        let (lowest, highest) = (self.low(permuted) & !free_mask, self.low(permuted) | free_mask);
        let from = self.first_not_below(lowest, rows.clone())?;
        let end = match highest.checked_add(1) {
            Some(above) => self.first_not_below(above, from..rows.end)?,
            None => rows.end,
        };
        Ok(from..end)
    }

    /// Appends, as step 2, the fingerprints of those of `rows`, all with the prefix of a permuted
    /// fingerprint, that differ from it in at most `k` bits.
    ///
    /// # Errors
    /// Returns [`DamagedBlock`] if the rows are damaged; `fingerprints` is then unchanged.
    pub(super) fn near(
        &self,
        permuted: u64,
        rows: Range<usize>,
        k: u32,
        fingerprints: &mut Vec<u64>,
    ) -> IntactResult<()> {
        self.check_rows(rows.clone())?;
        let mut near = Vec::new();
        scan(self.packed(), self.width, rows, self.low(permuted), k, &mut near);
        let prefix = permuted & !self.low(permuted);
        fingerprints.extend(near.iter().map(|&row| self.permutation.invert(prefix | self.row(row))));
        Ok(())
    }

    /// Returns the row of a fingerprint in the table, or `None` if the table does not have it.
    ///
    /// # Errors
    /// Returns [`DamagedBlock`] if the table is damaged where the fingerprint is searched.
    #[inline]
    pub(super) fn place(&self, fingerprint: u64) -> IntactResult<Option<usize>> {
        let permuted = self.permutation.apply(fingerprint);
        let rows = self.with_prefix(permuted)?;
        let row = self.first_not_below(self.low(permuted), rows.clone())?;
        if !rows.contains(&row) {
            return Ok(None);
        }
        self.check_rows(row..row + 1)?;
        Ok((self.row(row) == self.low(permuted)).then_some(row))
    }

    /// Returns the stored bits of a row, whose block must have been verified.
    fn row(&self, row: usize) -> u64 {
        packed(self.packed(), self.width, row)
    }

    /// Returns the first of `rows`, which ascend, whose stored bits are not below `bound`.
    ///
    /// # Cost
    /// A few steps if values are spread evenly, otherwise the logarithm of the number of rows.
    fn first_not_below(&self, bound: u64, rows: Range<usize>) -> IntactResult<usize> {
        // Rows before `from` are below the bound, rows from `end` are not; the values between are
        // within `lowest..=highest`.
        let (mut from, mut end) = (rows.start, rows.end);
        let (mut lowest, mut highest) = (0, u64::MAX >> (64 - self.low_bits()));
        let mut steps = 0;
        while from < end {
            let count = end - from;
            let middle = if steps < INTERPOLATIONS && bound >= lowest && highest > lowest {
                let share = u128::from(bound - lowest) * count as u128 / (u128::from(highest - lowest) + 1);
                from + (share as usize).min(count - 1)
            } else {
                from + count / 2
            };
            steps += 1;
            self.check_rows(middle..middle + 1)?;
            let value = self.row(middle);
            if value < bound {
                (from, lowest) = (middle + 1, value);
            } else {
                (end, highest) = (middle, value);
            }
        }
        Ok(from)
    }
}
