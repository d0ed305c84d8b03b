//! Writers of chunks, and of sets of chunks.

use super::super::coding::{EncodedFingerprints, encode_into};
use super::super::sections;
use super::manifest::{self, ChunkEntry, FingerprintManifest};
use super::{CHUNK_ROWS, ChunkHeader, DOC_IDS, KIND, SECTIONS, short_checksum};
use crate::hamming::coding::Coder;
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::DocId;

/// Returns the bytes of a chunk with the given sorted fingerprints, and their doc ids, if any.
///
/// Equal rows result in equal bytes.
///
/// # Errors
/// Returns [`Error::Invariant`] if rows are out of order or too wide, if they need more than 4 GiB,
/// or if the number of doc ids differs from that of the fingerprints.
pub fn chunk(f: u32, coder: Coder, recipe: &str, fingerprints: &[u64], doc_ids: Option<&[DocId]>) -> Result<Vec<u8>> {
    Ok(ChunkEncoder::default().encode(f, coder, recipe, fingerprints, doc_ids)?.all_parts().concat())
}

/// Encoder that makes one chunk after another in the same memory.
#[derive(Debug, Default)]
pub struct ChunkEncoder {
    encoded: EncodedFingerprints,
    directory: Vec<u8>,
    checks: Vec<u8>,
}

/// Parts of a chunk, borrowed from the buffers that hold them, so that doc ids are not copied.
#[derive(Debug)]
pub struct ChunkParts<'a> {
    head: Vec<u8>,
    sections: [&'a [u8]; SECTIONS],
}

impl ChunkParts<'_> {
    /// Returns the parts, in the order of the file.
    pub fn all_parts(&self) -> [&[u8]; 1 + SECTIONS] {
        let [code, directory, checks, fingerprints, doc_ids] = self.sections;
        [&self.head, code, directory, checks, fingerprints, doc_ids]
    }
}

impl ChunkEncoder {
    /// Encodes a chunk as [`chunk`] does.
    ///
    /// # Errors
    /// Returns the errors of [`chunk`].
    pub fn encode<'a>(
        &'a mut self,
        f: u32,
        coder: Coder,
        recipe: &str,
        fingerprints: &[u64],
        doc_ids: Option<&'a [DocId]>,
    ) -> Result<ChunkParts<'a>> {
        let last = fingerprints.last().copied().unwrap_or(0);
        let fits = (1..=64).contains(&f) && (f == 64 || last >> f == 0) && u32::try_from(fingerprints.len()).is_ok();
        if !fits || !fingerprints.is_sorted() || doc_ids.is_some_and(|doc_ids| doc_ids.len() != fingerprints.len()) {
            let fault =
                format!("a chunk of {} {f}-bit fingerprints up to {last:#x}, perhaps unsorted", fingerprints.len());
            return Err(Error::Invariant(fault));
        }
        encode_into(coder, f, fingerprints, &mut self.encoded);
        let encoded = &self.encoded;
        if u32::try_from(encoded.bytes.len()).is_err() {
            return Err(Error::Invariant(format!(
                "a chunk has {} bytes, more than the maximum of 4 GiB",
                encoded.bytes.len()
            )));
        }
        self.directory.clear();
        let mut start = 0;
        for block in &encoded.blocks {
            self.directory.extend(block.key.to_le_bytes());
            for number in [block.rows as u32, block.bytes as u32, short_checksum(&encoded.bytes[start..block.bytes])] {
                self.directory.extend(number.to_le_bytes());
            }
            start = block.bytes;
        }
        // The bytes are written as they are in memory, because this program supports little-endian
        // machines only.
        let doc_id_bytes: &[u8] = bytemuck::cast_slice(doc_ids.unwrap_or_default());
        self.checks.clear();
        self.checks.extend(doc_id_bytes.chunks(8 * DOC_IDS).flat_map(|bytes| short_checksum(bytes).to_le_bytes()));
        let header = ChunkHeader {
            f,
            coder,
            recipe: recipe.into(),
            count: fingerprints.len() as u64,
            first: fingerprints.first().copied().unwrap_or(0),
            last,
            doc_ids: doc_ids.is_some(),
        };
        let sections = [&[][..], &self.directory, &self.checks, &encoded.bytes, doc_id_bytes];
        Ok(ChunkParts { head: sections::head(KIND, &header, &sections), sections })
    }
}

/// A chunk that must be written to the folder of its set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedChunk {
    /// Name of the file.
    pub name: String,
    /// Content of the file.
    pub bytes: Vec<u8>,
}

/// Writer that divides a sorted stream of fingerprints into chunks. Holds one chunk in memory.
///
/// # Examples
/// ```
/// use webtwin_core::hamming::coding::Coder;
/// use webtwin_core::hamming::fingerprint_file::ChunkWriter;
///
/// // Three fingerprints, two in a chunk.
/// let mut writer = ChunkWriter::new(64, Coder::EliasFano, "mine-v1", false).with_chunk_rows(2);
/// let mut chunks = Vec::new();
/// for fingerprint in [7, 8, 9] {
///     chunks.extend(writer.push(fingerprint, 0)?);
/// }
/// let (last, manifest) = writer.finish()?;
/// chunks.extend(last);
/// assert_eq!((chunks.len(), manifest.count), (2, 3));
/// assert!(manifest.chunks[0].is(&chunks[0].bytes));
/// # Ok::<(), webtwin_base::error::Error>(())
/// ```
#[derive(Debug)]
pub struct ChunkWriter {
    manifest: FingerprintManifest,
    keep_doc_ids: bool,
    rows: usize,
    fingerprints: Vec<u64>,
    doc_ids: Vec<DocId>,
}

impl ChunkWriter {
    /// Creates a writer of f-bit fingerprints made by `recipe`, in chunks of [`CHUNK_ROWS`].
    pub fn new(f: u32, coder: Coder, recipe: &str, keep_doc_ids: bool) -> ChunkWriter {
        let manifest = FingerprintManifest {
            format: manifest::FORMAT,
            f,
            recipe: recipe.into(),
            coder,
            count: 0,
            chunks: Vec::new(),
        };
        ChunkWriter { manifest, keep_doc_ids, rows: CHUNK_ROWS, fingerprints: Vec::new(), doc_ids: Vec::new() }
    }

    /// Sets the number of fingerprints of a chunk, at least one.
    pub fn with_chunk_rows(self, rows: usize) -> ChunkWriter {
        ChunkWriter { rows: rows.max(1), ..self }
    }

    /// Adds the next row, in ascending order of (fingerprint, doc id). Returns a chunk when one is
    /// full.
    ///
    /// # Errors
    /// Returns [`Error::Invariant`] if the row is out of order or too wide.
    pub fn push(&mut self, fingerprint: u64, doc_id: DocId) -> Result<Option<EncodedChunk>> {
        let last = self.manifest.chunks.last().map_or(0, |chunk| chunk.last);
        if self.fingerprints.last().is_some_and(|&before| before > fingerprint) || fingerprint < last {
            return Err(Error::Invariant(format!("fingerprint {fingerprint:#x} came after a larger one")));
        }
        self.fingerprints.push(fingerprint);
        if self.keep_doc_ids {
            self.doc_ids.push(doc_id);
        }
        if self.fingerprints.len() == self.rows { self.write().map(Some) } else { Ok(None) }
    }

    /// Returns the last chunk, if rows are left, and the manifest, which must be written after all
    /// chunks.
    ///
    /// # Errors
    /// Returns the errors of [`ChunkWriter::push`].
    pub fn finish(mut self) -> Result<(Option<EncodedChunk>, FingerprintManifest)> {
        let last = if self.fingerprints.is_empty() { None } else { Some(self.write()?) };
        Ok((last, self.manifest))
    }

    fn write(&mut self) -> Result<EncodedChunk> {
        let manifest = &mut self.manifest;
        let doc_ids = self.keep_doc_ids.then_some(&self.doc_ids[..]);
        let bytes = chunk(manifest.f, manifest.coder, &manifest.recipe, &self.fingerprints, doc_ids)?;
        let name = format!("part-{:05}.fp", manifest.chunks.len());
        let chunk = ChunkEntry::new(name.clone(), &self.fingerprints, &[&bytes]);
        manifest.count += chunk.count;
        manifest.chunks.push(chunk);
        self.fingerprints.clear();
        self.doc_ids.clear();
        Ok(EncodedChunk { name, bytes })
    }
}
