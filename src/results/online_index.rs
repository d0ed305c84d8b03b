//! Folders of online indexes of fingerprints ([`webtwin_core::hamming::online`]). The list of files
//! is written last, so that an incomplete index is never opened.

use webtwin_base::error::{Error, Result};
use webtwin_core::hamming::online::{self, Builder, IndexFile, OnlineIndex};
use webtwin_storage::location::Location;
use webtwin_storage::mapped::{FileBytes, Residence, file_bytes};

/// Writes an index into a folder. `doc_ids` is the file of doc ids that `Builder::new` returned
/// with `builder`.
///
/// # Errors
/// Returns any error of the store.
///
/// # Cost
/// Memory of the builder, and of one table in addition.
pub fn write_index(
    folder: &Location,
    mut builder: Builder,
    doc_ids: Option<IndexFile>,
) -> Result<online::OnlineManifest> {
    let mut next = doc_ids;
    while let Some(table) = next.take().or_else(|| builder.next_table()) {
        folder.join(&table.name)?.put(&table.parts.concat())?;
    }
    let manifest = builder.finish();
    folder.join(online::NAME)?.put(&manifest.to_json())?;
    Ok(manifest)
}

/// Removes the index in a folder, beginning with its list of files.
///
/// # Errors
/// Returns [`Error::Input`] if the list of files is damaged, and [`Error::Storage`] if the store
/// fails.
pub fn remove_index(folder: &Location) -> Result<()> {
    let location = folder.join(online::NAME)?;
    let Some(bytes) = location.get()? else { return Ok(()) };
    let manifest = online::OnlineManifest::from_json(location.name(), &bytes)?;
    location.remove()?;
    manifest.tables.iter().chain(&manifest.doc_ids).try_for_each(|file| folder.join(&file.name)?.remove())
}

/// Opens the index in a folder. Loaded files are checked against their checksums immediately,
/// mapped files block by block when they are accessed.
///
/// # Errors
/// Returns [`Error::Input`] if a file is missing or damaged, and [`Error::Storage`] if the store
/// fails.
pub fn open_index(folder: &Location, residence: Residence) -> Result<OnlineIndex<FileBytes>> {
    let location = folder.join(online::NAME)?;
    let missing = || Error::input(location.name(), "there is no such file; name the folder of a complete online index");
    let bytes = location.get()?.ok_or_else(missing)?;
    let manifest = online::OnlineManifest::from_json(location.name(), &bytes)?;
    let index = OnlineIndex::open(manifest, |file| file_bytes(&folder.join(&file.name)?, residence))?;
    if residence == Residence::Loaded {
        index.verify()?;
    }
    Ok(index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use webtwin_base::ids::{DocId, splitmix64};
    use webtwin_core::hamming::design::TableDesign;

    fn rows() -> Vec<(u64, DocId)> {
        let mut rows: Vec<(u64, DocId)> = (0..3000).map(|at| (splitmix64(at / 2), splitmix64(at + 7))).collect();
        rows.sort_unstable();
        rows
    }

    fn folder() -> (tempfile::TempDir, Location) {
        let folder = tempfile::tempdir().unwrap();
        let location = Location::parse(folder.path().to_str().unwrap()).unwrap();
        (folder, location)
    }

    #[test]
    fn file_names_come_from_the_manifest_and_not_from_the_build() {
        let (folder, location) = folder();
        let (fingerprints, doc_ids): (Vec<u64>, Vec<DocId>) = rows().into_iter().unzip();
        let design = TableDesign { f: 64, k: 3, keys: (0..4).map(|block| 0xffff << (16 * block)).collect() };
        let (builder, doc_ids) = Builder::new(&design, "recipe-1", fingerprints, Some(doc_ids)).unwrap();
        let manifest = write_index(&location, builder, doc_ids).unwrap();
        // Names of the files before the first release.
        let older_name = |name: &str| name.replace(".fptable", ".wtt").replace(".docids", ".wtd");
        for file in manifest.tables.iter().chain(&manifest.doc_ids) {
            assert_ne!(older_name(&file.name), file.name);
            std::fs::rename(folder.path().join(&file.name), folder.path().join(older_name(&file.name))).unwrap();
        }
        let list = folder.path().join(online::NAME);
        std::fs::write(&list, older_name(&std::fs::read_to_string(&list).unwrap())).unwrap();
        let index = open_index(&location, Residence::Loaded).unwrap();
        assert_eq!(
            index.near(splitmix64(5), 0).unwrap(),
            [online::StoredMatch { fingerprint: splitmix64(5), distance: 0 }]
        );
        remove_index(&location).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn an_index_answers_mapped_and_loaded_and_never_from_damaged_bytes() {
        let (folder, location) = folder();
        let (fingerprints, doc_ids): (Vec<u64>, Vec<DocId>) = rows().into_iter().unzip();
        let design = TableDesign { f: 64, k: 3, keys: (0..4).map(|block| 0xffff << (16 * block)).collect() };
        let (builder, doc_ids) = Builder::new(&design, "recipe-1", fingerprints, Some(doc_ids)).unwrap();
        write_index(&location, builder, doc_ids).unwrap();
        for residence in [Residence::Mapped, Residence::Loaded] {
            let index = open_index(&location, residence).unwrap();
            let matches = index.near(splitmix64(5) ^ 0x8001, 3).unwrap();
            assert_eq!(matches, [online::StoredMatch { fingerprint: splitmix64(5), distance: 2 }]);
            let mut expected = [splitmix64(17), splitmix64(18)];
            expected.sort_unstable();
            assert!(index.doc_ids(splitmix64(5)).unwrap().eq(expected));
        }
        let table = folder.path().join("table-02.fptable");
        let mut bytes = std::fs::read(&table).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&table, bytes).unwrap();
        assert_eq!(open_index(&location, Residence::Loaded).unwrap_err().exit_code(), 3);
        let mapped = open_index(&location, Residence::Mapped).unwrap();
        let refused = |query: u64| mapped.near(query, 3).err().map(|error| (error.exit_code(), error.to_string()));
        assert!(
            (0..)
                .map(|at| refused(splitmix64(at)))
                .take(1500)
                .flatten()
                .all(|(code, message)| code == 3 && message.contains("table-02.fptable"))
        );
        assert!((0..1500).any(|at| refused(splitmix64(at)).is_some()));
        assert_eq!(mapped.verify().unwrap_err().exit_code(), 3);
        std::fs::remove_file(table).unwrap();
        assert_eq!(open_index(&location, Residence::Mapped).unwrap_err().exit_code(), 3);
    }
}
