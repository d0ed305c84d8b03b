//! Online queries: one fingerprint compared with all existing ones, in memory.
//!
//! An index has one permuted table for each key of a design ([`super::permuted_table`]). Each
//! fingerprint within k bits of a query agrees with it on some key, so it is among the rows of that
//! table with the query's key, which are compared. If several tables find a fingerprint, the first
//! of them reports it.
//!
//! Mapped files are verified block by block when they are read, so a damaged file results in an
//! error and never in a wrong answer.
//!
//! Tables have each fingerprint once, however many documents have it. The doc ids are in a separate
//! file.
//!
//! # Source
//! \[MJS07\] section 3.1.
//!
//! # Deviations
//! The paper probes the tables in parallel, on several machines. Here they are probed in turn. All
//! directories, and then all rows, are prefetched before the first is needed, so that their memory
//! accesses overlap.

mod build;
mod documents;
mod manifest;

pub use build::{Builder, IndexFile};
pub use documents::document_bytes;
pub use manifest::{NAME, OnlineIndexFile, OnlineManifest};

use self::documents::Documents;
use super::design::TableDesign;
use super::permutation::Permutation;
use super::permuted_table::PermutedTable;
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::DocId;

/// An existing fingerprint near a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoredMatch {
    /// Existing fingerprint.
    pub fingerprint: u64,
    /// Number of bits in which it differs from the query.
    pub distance: u32,
}

/// Returns the index of the home table, whose order the doc ids have: the table sorted by the
/// fingerprints themselves, if there is one.
fn home(f: u32, keys: &[u64]) -> usize {
    keys.iter().position(|&key| Permutation::new(f, key).is_identity()).unwrap_or(0)
}

/// An index over bytes that are in memory or mapped there. Threads may share it.
///
/// # Examples
/// ```
/// use webtwin_core::hamming::design::paper::example_3_1;
/// use webtwin_core::hamming::online::{Builder, StoredMatch, OnlineIndex};
///
/// // Four tables, for fingerprints of 64 bits that differ in up to 3. Documents 10 and 11 have the same fingerprint.
/// let [.., design] = example_3_1();
/// let (mut builder, doc_ids) = Builder::new(&design, "mine-v1", vec![0xfe, 0xff, 0xff], Some(vec![12, 10, 11]))?;
/// let files: Vec<_> = doc_ids.into_iter().chain(std::iter::from_fn(|| builder.next_table())).collect();
/// let bytes = |name: &str| files.iter().find(|file| file.name == name).unwrap().parts.concat();
/// let index = OnlineIndex::open(builder.finish(), |file| Ok(bytes(&file.name)))?;
///
/// let near = index.near(0xfd, 1)?;
/// assert_eq!(near, [StoredMatch { fingerprint: 0xff, distance: 1 }]);
/// assert_eq!(index.doc_ids(0xff)?.collect::<Vec<_>>(), [10, 11]);
/// # Ok::<(), webtwin_base::error::Error>(())
/// ```
#[derive(Debug)]
pub struct OnlineIndex<B> {
    manifest: OnlineManifest,
    tables: Vec<PermutedTable<B>>,
    documents: Option<Documents<B>>,
    home: usize,
}

impl<B: AsRef<[u8]> + Send + Sync> OnlineIndex<B> {
    /// Opens the index of a manifest. `bytes_of` returns the bytes of a file of the index.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if a file is damaged or belongs to another index, and any error of
    /// `bytes_of`.
    pub fn open(
        manifest: OnlineManifest,
        mut bytes_of: impl FnMut(&OnlineIndexFile) -> Result<B>,
    ) -> Result<OnlineIndex<B>> {
        let TableDesign { f, keys, .. } = &manifest.design;
        let mut tables = Vec::new();
        for (file, &key) in manifest.tables.iter().zip(keys) {
            let table = PermutedTable::open(&file.name, bytes_of(file)?)?;
            let header = table.header();
            let is_same = (header.f, header.key, header.rows) == (*f, key, manifest.fingerprints);
            if !is_same || header.recipe != manifest.recipe || !table.has_head(&file.head) {
                return Err(not_of_this_index(&file.name));
            }
            tables.push(table);
        }
        let mut documents = None;
        if let Some(file) = &manifest.doc_ids {
            let document_file = Documents::open(&file.name, bytes_of(file)?)?;
            let is_same = (document_file.documents(), document_file.fingerprints())
                == (manifest.documents, manifest.fingerprints);
            if !is_same || !document_file.has_head(&file.head) {
                return Err(not_of_this_index(&file.name));
            }
            documents = Some(document_file);
        }
        Ok(OnlineIndex { home: home(*f, keys), manifest, tables, documents })
    }

    /// Verifies every byte of every file against its checksum.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if a file is damaged.
    pub fn verify(&self) -> Result<()> {
        self.tables.iter().try_for_each(PermutedTable::verify)?;
        self.documents.as_ref().map_or(Ok(()), Documents::verify)
    }

    /// Returns the manifest of the index.
    pub fn manifest(&self) -> &OnlineManifest {
        &self.manifest
    }

    /// Returns the bytes of the tables, which every query needs.
    pub fn table_bytes(&self) -> usize {
        self.tables.iter().map(PermutedTable::len_bytes).sum()
    }

    /// Returns the bytes of the doc ids, which are read for answers only.
    pub fn document_bytes(&self) -> usize {
        self.documents.as_ref().map_or(0, Documents::len_bytes)
    }

    /// Returns the existing fingerprints that differ from `fingerprint` in at most `k` bits, each
    /// once, ascending.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if a file is damaged in a block that the query reads.
    ///
    /// # Panics
    /// Panics if `k` is larger than the design's, or if the fingerprint is wider.
    ///
    /// # Cost
    /// For each table two memory accesses and a pass over the rows that share the query's key, and
    /// a sort of the result.
    pub fn near(&self, fingerprint: u64, k: u32) -> Result<Vec<StoredMatch>> {
        let design = &self.manifest.design;
        assert!(k <= design.k && (design.f == 64 || fingerprint >> design.f == 0), "no such query: {fingerprint:#x}");
        let permuted: Vec<u64> = self.tables.iter().map(|table| table.permutation().apply(fingerprint)).collect();
        for (table, &permuted) in self.tables.iter().zip(&permuted) {
            table.prefetch_directory(permuted);
        }
        let mut rows = Vec::with_capacity(self.tables.len());
        for (table, &permuted) in self.tables.iter().zip(&permuted) {
            rows.push(table.with_prefix(permuted).map_err(|damaged| table.error(damaged))?);
        }
        let (mut near, mut matches) = (Vec::new(), Vec::new());
        for (at, ((table, &permuted), rows)) in self.tables.iter().zip(&permuted).zip(rows).enumerate() {
            let looked = table.with_key(permuted, rows).and_then(|rows| table.near(permuted, rows, k, &mut matches));
            looked.map_err(|damaged| table.error(damaged))?;
            for stored in matches.drain(..) {
                let differing = stored ^ fingerprint;
                // Rows that share the prefix but not the whole key are found, too; another table
                // reports them.
                if design.keys.iter().position(|key| differing & key == 0) == Some(at) {
                    near.push(StoredMatch { fingerprint: stored, distance: differing.count_ones() });
                }
            }
        }
        near.sort_unstable();
        Ok(near)
    }

    /// Returns the number of rows that a query is compared with, over all tables.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if a table is damaged in a block that the query reads.
    pub fn candidates(&self, fingerprint: u64) -> Result<usize> {
        let rows = |table: &PermutedTable<B>| {
            let permuted = table.permutation().apply(fingerprint);
            let rows = table.with_prefix(permuted).and_then(|rows| table.with_key(permuted, rows));
            rows.map(|rows| rows.len()).map_err(|damaged| table.error(damaged))
        };
        self.tables.iter().map(rows).sum()
    }

    /// True if a fingerprint exists.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if a table is damaged in a block that the search reads.
    pub fn contains(&self, fingerprint: u64) -> Result<bool> {
        Ok(self.place(fingerprint)?.is_some())
    }

    /// Returns the row of a fingerprint in the home table.
    fn place(&self, fingerprint: u64) -> Result<Option<usize>> {
        let home = &self.tables[self.home];
        home.place(fingerprint).map_err(|damaged| home.error(damaged))
    }

    /// Returns the doc ids of an existing fingerprint, ascending, or none if it does not exist or
    /// no doc ids are kept.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if a file is damaged in a block that the search reads.
    pub fn doc_ids(&self, fingerprint: u64) -> Result<impl ExactSizeIterator<Item = DocId>> {
        let bytes = match &self.documents {
            Some(documents) => match self.place(fingerprint)? {
                Some(place) => documents.doc_ids(place)?,
                None => &[],
            },
            None => &[],
        };
        Ok(bytes.iter().map(|&bytes| u64::from_le_bytes(bytes)))
    }
}

fn not_of_this_index(name: &str) -> Error {
    Error::input(
        name,
        "the file does not belong to this index; replace it with the right file or build the index again",
    )
}

#[cfg(test)]
mod tests;
