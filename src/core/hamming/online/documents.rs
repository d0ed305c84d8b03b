//! File of the doc ids of an index: the documents that have each fingerprint.
//!
//! ```text
//! head (see sections)   recipe, fingerprints, documents
//! 0  checks             of starts and doc ids (see checked)
//! 1  starts             4 bytes for each fingerprint: its first document; then the number of documents. Nothing if every
//!                       fingerprint has one document
//! 2  doc ids            8 bytes each, fingerprint by fingerprint, ascending within one
//! ```
//!
//! Fingerprints are in the order of the index's home table, which is that of their permuted forms.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::super::checked::{CheckedSection, checks, checks_bytes};
use super::super::permutation::Permutation;
use super::super::sections::{self, FileKind, SectionHead};
use webtwin_base::error::Result;
use webtwin_base::ids::DocId;
use webtwin_base::read_at::Bytes;

/// Format of the file that this build writes and reads.
pub(super) const FORMAT: u32 = 2;

const KIND: FileKind =
    FileKind { magic: b"wt-docid", format: FORMAT, description: "a file of doc ids", remedy: "build the index again" };

const CHECKS: usize = 0;
const STARTS: usize = 1;
const DOC_IDS: usize = 2;
const SECTIONS: usize = 3;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct DocumentsHeader {
    recipe: String,
    fingerprints: u64,
    documents: u64,
}

/// Returns the bytes of a file of doc ids without its head, for `documents` documents with
/// `fingerprints` distinct fingerprints.
pub fn document_bytes(fingerprints: u64, documents: u64) -> u64 {
    let starts = if fingerprints < documents { 4 * (fingerprints + 1) } else { 0 };
    starts + 8 * documents + checks_bytes(starts) + checks_bytes(8 * documents)
}

/// Builds the parts of the file for documents with the given fingerprints, which must be sorted and
/// fewer than 2^32.
pub(super) fn build(recipe: &str, home: &Permutation, fingerprints: &[u64], doc_ids: Vec<DocId>) -> Vec<Vec<u8>> {
    let mut rows: Vec<(u64, DocId)> = fingerprints.iter().copied().zip(doc_ids).collect();
    if !home.is_identity() {
        rows.iter_mut().for_each(|row| row.0 = home.apply(row.0));
    }
    rows.sort_unstable();
    let mut starts = Vec::new();
    let (mut start, mut different) = (0u32, 0);
    for group in rows.chunk_by(|a, b| a.0 == b.0) {
        starts.extend(start.to_le_bytes());
        start += group.len() as u32;
        different += 1;
    }
    if different == rows.len() {
        starts.clear();
    } else {
        starts.extend((rows.len() as u32).to_le_bytes());
    }
    let documents = rows.len() as u64;
    let doc_ids: Vec<u8> = rows.iter().flat_map(|row| row.1.to_le_bytes()).collect();
    let header = DocumentsHeader { recipe: recipe.into(), fingerprints: different as u64, documents };
    let checks = checks(&[&starts, &doc_ids]);
    vec![sections::head(KIND, &header, &[&checks, &starts, &doc_ids]), checks, starts, doc_ids]
}

/// An open file of doc ids.
#[derive(Debug)]
pub(super) struct Documents<B> {
    bytes: B,
    head: SectionHead<DocumentsHeader>,
    starts: CheckedSection,
    doc_ids: CheckedSection,
}

impl<B: AsRef<[u8]> + Send + Sync> Documents<B> {
    /// Opens a file with the given name for messages. Verifies its head. Every other block is
    /// verified when it is first read, or all of them by [`Documents::verify`].
    ///
    /// # Errors
    /// Returns [`webtwin_base::error::Error::Input`] if the file is of another kind or format, or
    /// truncated.
    pub(super) fn open(name: &str, bytes: B) -> Result<Documents<B>> {
        let head: SectionHead<DocumentsHeader> = SectionHead::open(KIND, name, &Bytes(bytes.as_ref()), SECTIONS)?;
        let span = |section| head.span(section).start as usize..head.span(section).end as usize;
        let (starts, doc_ids): (Range<usize>, Range<usize>) = (span(STARTS), span(DOC_IDS));
        let DocumentsHeader { fingerprints, documents, .. } = head.header;
        let one_each = starts.is_empty() && fingerprints == documents;
        let is_starts_length =
            fingerprints.checked_add(1).and_then(|starts| starts.checked_mul(4)) == Some(starts.len() as u64);
        let good = documents.checked_mul(8) == Some(doc_ids.len() as u64) && (one_each || is_starts_length);
        let sections = CheckedSection::sections([starts, doc_ids], span(CHECKS));
        let Some([starts, doc_ids]) = sections.filter(|_| good) else {
            return Err(head.damaged("its description contradicts itself"));
        };
        head.check(CHECKS, &bytes.as_ref()[span(CHECKS)])?;
        Ok(Documents { bytes, head, starts, doc_ids })
    }

    /// Verifies every byte against its checksum.
    ///
    /// # Errors
    /// Returns [`webtwin_base::error::Error::Input`] if the file is damaged.
    pub(super) fn verify(&self) -> Result<()> {
        let bytes = self.bytes.as_ref();
        self.head.check(STARTS, self.starts.bytes(bytes))?;
        self.head.check(DOC_IDS, self.doc_ids.bytes(bytes))?;
        self.starts.set_good();
        self.doc_ids.set_good();
        Ok(())
    }

    /// Returns the number of distinct fingerprints.
    pub(super) fn fingerprints(&self) -> u64 {
        self.head.header.fingerprints
    }

    /// Returns the number of documents.
    pub(super) fn documents(&self) -> u64 {
        self.head.header.documents
    }

    /// Returns the length of the file in bytes.
    pub(super) fn len_bytes(&self) -> usize {
        self.bytes.as_ref().len()
    }

    pub(super) fn has_head(&self, checksum: &str) -> bool {
        self.head.is(checksum)
    }

    /// Returns the doc ids of the fingerprint with the given index, little-endian, or none if there
    /// is no such index.
    ///
    /// # Errors
    /// Returns [`webtwin_base::error::Error::Input`] if the file is damaged in a block that is
    /// read.
    pub(super) fn doc_ids(&self, place: usize) -> Result<&[[u8; 8]]> {
        let bytes = self.bytes.as_ref();
        let starts = self.starts.bytes(bytes).as_chunks().0;
        let range = if starts.is_empty() {
            place..place + 1
        } else {
            if !self.starts.is_good(bytes, 4 * place..4 * (place + 2)) {
                return Err(self.head.damaged_block(STARTS));
            }
            let start = |at: usize| starts.get(at).map_or(0, |&bytes| u32::from_le_bytes(bytes)) as usize;
            start(place)..start(place + 1)
        };
        if !self.doc_ids.is_good(bytes, 8 * range.start..8 * range.end) {
            return Err(self.head.damaged_block(DOC_IDS));
        }
        Ok(self.doc_ids.bytes(bytes).as_chunks().0.get(range).unwrap_or_default())
    }
}
