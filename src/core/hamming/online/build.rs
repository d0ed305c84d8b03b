//! Builder of an index: makes its files one at a time, so that two of them never need to be in
//! memory together.

use super::super::design::TableDesign;
use super::super::permutation::Permutation;
use super::super::permuted_table;
use super::super::sections::checksum;
use super::manifest::{FORMAT, OnlineIndexFile, OnlineManifest};
use super::{documents, home};
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::DocId;

/// Builder of the files of an index: doc ids first, then a table for each key.
#[derive(Debug)]
pub struct Builder {
    manifest: OnlineManifest,
    fingerprints: Vec<u64>,
}

/// A file that must be written: its name, and its consecutive parts.
#[derive(Debug)]
pub struct IndexFile {
    /// Name of the file.
    pub name: String,
    /// Consecutive parts of the file.
    pub parts: Vec<Vec<u8>>,
}

impl IndexFile {
    fn entry(&self) -> OnlineIndexFile {
        let bytes = self.parts.iter().map(|part| part.len() as u64).sum();
        OnlineIndexFile { name: self.name.clone(), bytes, head: checksum(&self.parts[0]) }
    }
}

impl Builder {
    /// Starts an index of sorted fingerprints, which may repeat. Returns the file of their doc ids,
    /// if these are given.
    ///
    /// # Errors
    /// Returns [`Error::Invariant`] if the fingerprints are not sorted or too wide, if their number
    /// differs from that of the doc ids, or if the design has no key. Returns [`Error::Input`],
    /// about `recipe`, if there are 2^32 or more fingerprints or documents.
    ///
    /// # Cost
    /// In addition to the arguments, temporarily 16 to 24 bytes a document.
    pub fn new(
        design: &TableDesign,
        recipe: &str,
        mut fingerprints: Vec<u64>,
        doc_ids: Option<Vec<DocId>>,
    ) -> Result<(Builder, Option<IndexFile>)> {
        let &TableDesign { f, ref keys, .. } = design;
        let last = fingerprints.last().copied().unwrap_or(0);
        let fits = (1..=64).contains(&f) && [last].iter().chain(keys).all(|&bits| f == 64 || bits >> f == 0);
        let has_all_ids = doc_ids.as_ref().is_none_or(|doc_ids| doc_ids.len() == fingerprints.len());
        if !fits || !has_all_ids || keys.is_empty() || !fingerprints.is_sorted() {
            let count = fingerprints.len();
            return Err(Error::Invariant(format!(
                "an index of {count} {f}-bit fingerprints up to {last:#x}, perhaps unsorted"
            )));
        }
        if u32::try_from(fingerprints.len()).is_err() {
            let reason =
                format!("{} documents, but an index holds at most 4294967295; split the set", fingerprints.len());
            return Err(Error::input(recipe, reason));
        }
        let mut manifest = OnlineManifest {
            format: FORMAT,
            recipe: recipe.into(),
            design: design.clone(),
            fingerprints: 0,
            documents: doc_ids.as_ref().map_or(0, |doc_ids| doc_ids.len() as u64),
            tables: Vec::new(),
            doc_ids: None,
        };
        let doc_ids = doc_ids.map(|doc_ids| {
            let home = Permutation::new(f, keys[home(f, keys)]);
            IndexFile { name: "doc-ids.docids".into(), parts: documents::build(recipe, &home, &fingerprints, doc_ids) }
        });
        manifest.doc_ids = doc_ids.as_ref().map(IndexFile::entry);
        fingerprints.dedup();
        manifest.fingerprints = fingerprints.len() as u64;
        Ok((Builder { manifest, fingerprints }, doc_ids))
    }

    /// Returns the maximum bytes that are held while an index of `documents` is made and written,
    /// including the fingerprints and doc ids that it is made of. `table` is the size of its
    /// largest table in bytes.
    pub fn bytes(documents: u64, doc_ids: bool, table: u64) -> u64 {
        // Either fingerprints, a copy and a table, or fingerprints and a table in parts and as a
        // whole.
        let tables = 8 * documents + table + table.max(8 * documents);
        // Fingerprints, rows with their doc ids, starts, doc ids.
        tables.max(if doc_ids { (8 + 16 + 8 + 8) * documents } else { 0 })
    }

    /// Returns the file of the next table, or `None` if all are made.
    ///
    /// # Cost
    /// For each fingerprint 8 bytes held, and 14 while a table is made; a sort.
    pub fn next_table(&mut self) -> Option<IndexFile> {
        let OnlineManifest { design, recipe, tables, .. } = &mut self.manifest;
        let &key = design.keys.get(tables.len())?;
        // The last table takes the fingerprints and needs no copy.
        let fingerprints = if tables.len() + 1 == design.keys.len() {
            std::mem::take(&mut self.fingerprints)
        } else {
            self.fingerprints.clone()
        };
        let parts = permuted_table::build(design.f, key, recipe, fingerprints);
        let table_file = IndexFile { name: format!("table-{:02}.fptable", tables.len()), parts };
        tables.push(table_file.entry());
        Some(table_file)
    }

    /// Returns the manifest, which must be written after all files.
    pub fn finish(self) -> OnlineManifest {
        self.manifest
    }
}
