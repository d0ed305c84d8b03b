//! Reader of a chunk: opens its head and directory, then reads any block alone.

use std::ops::Range;
use std::sync::Arc;

use super::super::coding::{CodedBlock, decode_block};
use super::super::sections::SectionHead;
use super::{
    ChunkHeader, DIRECTORY, DOC_ID_CHECKS, DOC_IDS, DOC_IDS_THEMSELVES, ENTRY, FINGERPRINTS, KIND, SECTIONS, UNUSED,
    short_checksum,
};
use webtwin_base::error::Result;
use webtwin_base::ids::DocId;
use webtwin_base::read_at::RandomAccess;

/// Maximum bytes of blocks that are read together if all blocks are read.
const WINDOW: usize = 1 << 20;

/// An open chunk of F.
///
/// All methods return [`webtwin_base::error::Error::Input`] if the file is damaged, and any error
/// of reading.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use webtwin_base::read_at::Bytes;
/// use webtwin_core::hamming::coding::Coder;
/// use webtwin_core::hamming::fingerprint_file::{FingerprintFile, chunk};
///
/// let bytes = chunk(64, Coder::EliasFano, "mine-v1", &[7, 8, 8], Some(&[30, 10, 20]))?;
/// let file = FingerprintFile::open("part-00000.fp", Arc::new(Bytes(bytes)))?;
/// assert_eq!((file.header().count, file.header().first, file.header().last), (3, 7, 8));
/// assert_eq!(file.doc_ids(1..3)?, [10, 20]);
/// # Ok::<(), webtwin_base::error::Error>(())
/// ```
pub struct FingerprintFile {
    file: Arc<dyn RandomAccess>,
    head: SectionHead<ChunkHeader>,
    blocks: Vec<(CodedBlock, u32)>,
}

impl std::fmt::Debug for FingerprintFile {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "FingerprintFile of {:?}", self.head.header)
    }
}

impl FingerprintFile {
    /// Opens a chunk with the given name for messages; reads head and directory.
    ///
    /// # Errors
    /// Returns [`webtwin_base::error::Error::Input`] if the file is not a chunk, has another
    /// format, or is damaged.
    pub fn open(name: &str, file: Arc<dyn RandomAccess>) -> Result<FingerprintFile> {
        let head: SectionHead<ChunkHeader> = SectionHead::open(KIND, name, &*file, SECTIONS)?;
        let header = &head.header;
        let doc_id_bytes = if header.doc_ids { header.count.checked_mul(8) } else { Some(0) };
        let span = head.span(DOC_IDS_THEMSELVES);
        let unused = head.read(&*file, UNUSED)?;
        if !(1..=64).contains(&header.f) || Some(span.end - span.start) != doc_id_bytes || !unused.is_empty() {
            return Err(head.damaged("its description contradicts itself"));
        }
        let blocks = directory(&head, &head.read(&*file, DIRECTORY)?)?;
        Ok(FingerprintFile { file, head, blocks })
    }

    /// Returns the description of the chunk.
    pub fn header(&self) -> &ChunkHeader {
        &self.head.header
    }

    /// Returns the number of blocks.
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Returns the range of rows of a block.
    ///
    /// # Panics
    /// Panics if there is no such block.
    pub fn rows_of(&self, block: usize) -> Range<usize> {
        block.checked_sub(1).map_or(0, |before| self.blocks[before].0.rows)..self.blocks[block].0.rows
    }

    /// Decodes a block, and replaces the content of `rows`.
    ///
    /// # Errors
    /// Returns an error if the block is damaged; the content of `rows` is then unspecified.
    ///
    /// # Panics
    /// Panics if there is no such block.
    pub fn decode_block(&self, block: usize, rows: &mut Vec<u64>) -> Result<()> {
        // Existing rows are overwritten: clearing them would cost as much as decoding.
        rows.resize(self.rows_of(block).len(), 0);
        self.decode_window(block..block + 1, rows)
    }

    /// Decodes all blocks, and replaces the content of `rows`.
    ///
    /// # Errors
    /// Returns an error if a block is damaged; the content of `rows` is then unspecified.
    ///
    /// # Cost
    /// Memory for the rows, and 1 MiB.
    pub fn decode_all(&self, rows: &mut Vec<u64>) -> Result<()> {
        self.decode_blocks(0..self.blocks.len(), rows)
    }

    /// Decodes one of `parts` parts of about equal size, and replaces the content of `rows`. The
    /// part has the fingerprints whose first row is in its blocks, with all rows of each of them.
    /// Returns the index of the first of these rows in the chunk.
    ///
    /// So each fingerprint of the chunk is in exactly one part, even if it occurs many times.
    ///
    /// # Errors
    /// Returns an error if a block is damaged; the content of `rows` is then unspecified.
    ///
    /// # Panics
    /// Panics if there is no such part.
    ///
    /// # Cost
    /// The cost of [`FingerprintFile::decode_all`] for the part and one or two more blocks.
    pub fn decode_part(&self, part: usize, parts: usize, rows: &mut Vec<u64>) -> Result<usize> {
        assert!(part < parts, "no part {part} of {parts}");
        let block = |part: usize| self.blocks.len() * part / parts;
        let (from, end_block) = (block(part), block(part + 1));
        if from == end_block {
            rows.clear();
            return Ok(0);
        }
        // The last fingerprint may continue in further blocks, up to one that ends with a larger
        // one.
        let last = self.blocks[end_block - 1].0.key;
        let end = self.blocks.len().min(self.blocks.partition_point(|(block, _)| block.key <= last) + 1);
        self.decode_blocks(from..end, rows)?;
        rows.truncate(rows.partition_point(|row| *row <= last));
        let previous_key = from.checked_sub(1).map(|block| self.blocks[block].0.key);
        let preceding_rows = previous_key.map_or(0, |before| rows.partition_point(|row| *row <= before));
        rows.drain(..preceding_rows);
        Ok(self.rows_of(from).start + preceding_rows)
    }

    fn decode_blocks(&self, blocks: Range<usize>, rows: &mut Vec<u64>) -> Result<()> {
        let first = if blocks.is_empty() { 0 } else { self.rows_of(blocks.start).start };
        rows.resize(blocks.end.checked_sub(1).map_or(0, |last| self.rows_of(last).end) - first, 0);
        let mut from = blocks.start;
        while from < blocks.end {
            let start = self.bytes_before(from);
            let within = |(block, _): &&(CodedBlock, u32)| block.bytes - start <= WINDOW;
            let end = from + self.blocks[from..blocks.end].iter().take_while(within).count().max(1);
            let window = self.rows_of(from).start - first..self.rows_of(end - 1).end - first;
            self.decode_window(from..end, &mut rows[window])?;
            from = end;
        }
        Ok(())
    }

    /// Returns the doc ids of a range of rows, in the order of the fingerprints, or none if the
    /// chunk has no doc ids.
    ///
    /// # Errors
    /// Returns an error if the doc ids are damaged.
    ///
    /// # Panics
    /// Panics if there are no such rows.
    ///
    /// # Cost
    /// Two reads: the range with up to 1023 rows on either side, and its checksums.
    pub fn doc_ids(&self, rows: Range<usize>) -> Result<Vec<DocId>> {
        assert!(rows.start <= rows.end && rows.end as u64 <= self.header().count, "no rows {rows:?}");
        if !self.header().doc_ids || rows.is_empty() {
            return Ok(Vec::new());
        }
        let from = rows.start / DOC_IDS;
        let section = self.head.span(DOC_IDS_THEMSELVES);
        let start = section.start + 8 * (from * DOC_IDS) as u64;
        let end = section.end.min(section.start + 8 * rows.end.next_multiple_of(DOC_IDS) as u64);
        let bytes = self.file.read_at(start, (end - start) as usize)?;
        let checks = self.head.span(DOC_ID_CHECKS);
        let parts = ((end - start) as usize).div_ceil(8 * DOC_IDS);
        let checks = self.file.read_at(checks.start + 4 * from as u64, 4 * parts)?;
        let checksums = bytes.chunks(8 * DOC_IDS).map(short_checksum);
        if bytes.len() as u64 != end - start
            || !checksums.eq(checks.as_chunks().0.iter().map(|&bytes| u32::from_le_bytes(bytes)))
        {
            return Err(self.head.damaged("the checksum of doc ids is wrong"));
        }
        let skipped = rows.start - from * DOC_IDS;
        let doc_ids = bytes.as_chunks().0[skipped..][..rows.len()].iter();
        Ok(doc_ids.map(|&bytes| u64::from_le_bytes(bytes)).collect())
    }

    /// Reads the whole file and verifies its checksums.
    ///
    /// # Errors
    /// Returns an error if any part of the file is damaged.
    pub fn verify(&self) -> Result<()> {
        for section in 0..SECTIONS {
            self.head.read(&*self.file, section)?;
        }
        self.decode_all(&mut Vec::new())
    }

    fn bytes_before(&self, block: usize) -> usize {
        block.checked_sub(1).map_or(0, |before| self.blocks[before].0.bytes)
    }

    /// Decodes a range of blocks into their rows. The blocks are read with one call.
    fn decode_window(&self, blocks: Range<usize>, mut rows: &mut [u64]) -> Result<()> {
        let start = self.bytes_before(blocks.start);
        let length = self.blocks[blocks.end - 1].0.bytes - start;
        let bytes = self.file.read_at(self.head.span(FINGERPRINTS).start + start as u64, length)?;
        for at in blocks {
            let (block, checksum) = &self.blocks[at];
            let encoded = bytes.get(self.bytes_before(at) - start..block.bytes - start).unwrap_or_default();
            let (into, later_rows) = rows.split_at_mut(self.rows_of(at).len());
            let decoded = decode_block(self.head.header.coder, encoded, into);
            if short_checksum(encoded) != *checksum || decoded.is_err() || into.last() != Some(&block.key) {
                return Err(self.head.damaged(&format!("block {at} cannot be read")));
            }
            rows = later_rows;
        }
        Ok(())
    }
}

/// Reads and verifies the directory. The offsets of the result are safe to use.
fn directory(head: &SectionHead<ChunkHeader>, bytes: &[u8]) -> Result<Vec<(CodedBlock, u32)>> {
    let entry = |entry: &[u8; ENTRY]| {
        let [k @ .., a, b, c, d, e, f, g, h, i, j, l, m] = *entry;
        let (rows, bytes) = (u32::from_le_bytes([a, b, c, d]) as usize, u32::from_le_bytes([e, f, g, h]) as usize);
        (CodedBlock { key: u64::from_le_bytes(k), rows, bytes }, u32::from_le_bytes([i, j, l, m]))
    };
    let (entries, tail) = bytes.as_chunks::<ENTRY>();
    let blocks: Vec<_> = entries.iter().map(entry).collect();
    let span = head.span(FINGERPRINTS);
    let mut previous = CodedBlock { key: 0, rows: 0, bytes: 0 };
    let mut good = tail.is_empty();
    for &(block, _) in &blocks {
        good &= block.key >= previous.key && block.rows > previous.rows && block.bytes > previous.bytes;
        // No coder needs less than a bit for a row.
        good = good && block.rows - previous.rows <= 8 * (block.bytes - previous.bytes);
        previous = block;
    }
    good &= previous.rows as u64 == head.header.count && previous.bytes as u64 == span.end - span.start;
    if good { Ok(blocks) } else { Err(head.damaged("its directory contradicts itself")) }
}
