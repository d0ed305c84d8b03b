//! Folders of fingerprints: F as chunks ([`crate::hamming::fingerprint_file`]), and online indexes of it
//! ([`crate::hamming::online`]). In both, the list of files is written last.

use super::location::Location;
use super::mapped::{FileBytes, Residence, file_bytes};
use super::open;
use crate::error::{Error, Result};
use crate::hamming::fingerprint_file::{self as chunks, Chunk, ChunkWriter, FingerprintFile};
use crate::hamming::online::{self, Builder, Built, OnlineIndex};
use crate::ids::DocId;

/// Writes rows, ascending, as the chunks of a set into a folder, and returns the list of them.
///
/// # Errors
/// Those of `rows`, of the writer and of the store.
///
/// # Cost
/// One chunk in memory, raw and written.
pub fn write_set(
    folder: &Location,
    mut writer: ChunkWriter,
    rows: impl IntoIterator<Item = Result<(u64, DocId)>>,
) -> Result<chunks::Manifest> {
    for row in rows {
        let (fingerprint, doc_id) = row?;
        if let Some(chunk) = writer.push(fingerprint, doc_id)? {
            folder.join(&chunk.name)?.put(&chunk.bytes)?;
        }
    }
    let (last, manifest) = writer.finish()?;
    if let Some(chunk) = last {
        folder.join(&chunk.name)?.put(&chunk.bytes)?;
    }
    folder.join(chunks::NAME)?.put(&manifest.to_json())?;
    Ok(manifest)
}

/// Reads the list of chunks in a folder.
///
/// # Errors
/// [`Error::Input`] when there is none or it is damaged; [`Error::Storage`] when the store fails.
pub fn read_set(folder: &Location) -> Result<chunks::Manifest> {
    let (name, bytes) = list(folder, chunks::NAME)?;
    chunks::Manifest::from_json(&name, &bytes)
}

/// Opens a chunk of a set for reading by block.
///
/// # Errors
/// [`Error::Input`] when it is missing, damaged, or not the chunk that the list means.
pub fn open_chunk(folder: &Location, chunk: &Chunk) -> Result<FingerprintFile> {
    let location = folder.join(&chunk.name)?;
    let file = FingerprintFile::open(location.name(), open::open(&location)?)?;
    let about = file.about();
    if (about.count, about.first, about.last) != (chunk.count, chunk.first, chunk.last) {
        let reason = format!("it is not the chunk that {} lists; make the set anew", chunks::NAME);
        return Err(Error::input(location.name(), reason));
    }
    Ok(file)
}

/// Writes an index, of which `Builder::new` gave the doc ids' file, into a folder.
///
/// # Errors
/// Those of the store.
///
/// # Cost
/// That of the builder, and one table more in memory.
pub fn write_index(folder: &Location, mut builder: Builder, doc_ids: Option<Built>) -> Result<online::Manifest> {
    let mut next = doc_ids;
    while let Some(built) = next.take().or_else(|| builder.next_table()) {
        folder.join(&built.name)?.put(&built.parts.concat())?;
    }
    let manifest = builder.finish();
    folder.join(online::NAME)?.put(&manifest.to_json())?;
    Ok(manifest)
}

/// Opens the index in a folder. What is loaded is held against its checksums; for what is mapped there is
/// [`OnlineIndex::verify`], which reads it all.
///
/// # Errors
/// [`Error::Input`] when a file is missing or damaged; [`Error::Storage`] when the store fails.
pub fn open_index(folder: &Location, residence: Residence) -> Result<OnlineIndex<FileBytes>> {
    let (name, bytes) = list(folder, online::NAME)?;
    let manifest = online::Manifest::from_json(&name, &bytes)?;
    let index = OnlineIndex::open(manifest, |file| file_bytes(&folder.join(&file.name)?, residence))?;
    if residence == Residence::Loaded {
        index.verify()?;
    }
    Ok(index)
}

fn list(folder: &Location, name: &str) -> Result<(String, Vec<u8>)> {
    let location = folder.join(name)?;
    let missing = || Error::input(location.name(), "there is no such file; is it the right folder, and complete?");
    Ok((location.name().into(), location.get()?.ok_or_else(missing)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hamming::coding::Coder;
    use crate::hamming::design::TableDesign;
    use crate::ids::mix;

    fn rows() -> Vec<(u64, DocId)> {
        let mut rows: Vec<(u64, DocId)> = (0..3000).map(|at| (mix(at / 2), mix(at + 7))).collect();
        rows.sort_unstable();
        rows
    }

    fn folder() -> (tempfile::TempDir, Location) {
        let folder = tempfile::tempdir().unwrap();
        let location = Location::parse(folder.path().to_str().unwrap()).unwrap();
        (folder, location)
    }

    #[test]
    fn a_set_is_read_as_it_was_written() {
        let (_folder, location) = folder();
        assert!(read_set(&location).unwrap_err().to_string().contains("fingerprints.json"));
        let writer = ChunkWriter::new(64, Coder::EliasFano, "recipe-1", true).with_chunk_rows(1100);
        let written = write_set(&location, writer, rows().into_iter().map(Ok)).unwrap();
        let manifest = read_set(&location).unwrap();
        assert_eq!((&manifest, manifest.chunks.len()), (&written, 3));
        let (mut all, mut fingerprints) = (Vec::new(), Vec::new());
        for chunk in &manifest.chunks {
            let file = open_chunk(&location, chunk).unwrap();
            file.verify().unwrap();
            file.decode_all(&mut fingerprints).unwrap();
            all.extend(fingerprints.iter().copied().zip(file.doc_ids(0..fingerprints.len()).unwrap()));
        }
        assert_eq!(all, rows());
        let other = Chunk { count: 1, ..manifest.chunks[0].clone() };
        assert!(open_chunk(&location, &other).err().unwrap().to_string().contains("not the chunk"));
    }

    #[test]
    fn an_index_answers_mapped_and_loaded_and_is_checked_when_loaded() {
        let (folder, location) = folder();
        let (fingerprints, doc_ids): (Vec<u64>, Vec<DocId>) = rows().into_iter().unzip();
        let design = TableDesign { f: 64, k: 3, keys: (0..4).map(|block| 0xffff << (16 * block)).collect() };
        let (builder, doc_ids) = Builder::new(&design, "recipe-1", fingerprints, Some(doc_ids)).unwrap();
        write_index(&location, builder, doc_ids).unwrap();
        for residence in [Residence::Mapped, Residence::Loaded] {
            let index = open_index(&location, residence).unwrap();
            let near = index.near(mix(5) ^ 0x8001, 3);
            assert_eq!(near, [online::Near { fingerprint: mix(5), distance: 2 }]);
            let mut expected = [mix(17), mix(18)];
            expected.sort_unstable();
            assert!(index.doc_ids(mix(5)).eq(expected));
        }
        let table = folder.path().join("table-02.wtt");
        let mut bytes = std::fs::read(&table).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&table, bytes).unwrap();
        assert_eq!(open_index(&location, Residence::Loaded).unwrap_err().exit_code(), 3);
        assert_eq!(open_index(&location, Residence::Mapped).unwrap().verify().unwrap_err().exit_code(), 3);
        std::fs::remove_file(table).unwrap();
        assert_eq!(open_index(&location, Residence::Mapped).unwrap_err().exit_code(), 3);
    }
}
