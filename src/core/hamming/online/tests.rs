use proptest::prelude::*;

use super::super::coding::tests::fingerprints;
use super::*;

/// Returns the design of all keys of `exact` of `blocks` blocks of f bits.
fn design(f: u32, k: u32, blocks: u32) -> TableDesign {
    let block = |at: u32| {
        let (from, end) = (at * f / blocks, (at + 1) * f / blocks);
        (from..end).fold(0, |mask, bit| mask | 1u64 << bit)
    };
    let sets = (0u32..1 << blocks).filter(|set| set.count_ones() == blocks - k);
    let key = |set: u32| (0..blocks).filter(|at| set >> at & 1 == 1).fold(0, |key, at| key | block(at));
    TableDesign { f, k, keys: sets.map(key).collect() }
}

type Files = Vec<(String, Vec<u8>)>;

fn build_index(design: &TableDesign, sorted: &[u64], doc_ids: Option<&[u64]>) -> Result<(OnlineManifest, Files)> {
    let (mut builder, documents) = Builder::new(design, "recipe-1", sorted.to_vec(), doc_ids.map(<[u64]>::to_vec))?;
    let mut files: Vec<_> = documents.into_iter().collect();
    files.extend(std::iter::from_fn(|| builder.next_table()));
    let files = files.into_iter().map(|built| (built.name, built.parts.concat())).collect();
    Ok((OnlineManifest::from_json(NAME, &builder.finish().to_json())?, files))
}

fn open_index(manifest: &OnlineManifest, files: &[(String, Vec<u8>)]) -> Result<OnlineIndex<Vec<u8>>> {
    let bytes_of = |file: &OnlineIndexFile| Ok(files.iter().find(|(name, _)| *name == file.name).unwrap().1.clone());
    OnlineIndex::open(manifest.clone(), bytes_of)
}

fn index(design: &TableDesign, sorted: &[u64], doc_ids: Option<&[u64]>) -> OnlineIndex<Vec<u8>> {
    let (manifest, files) = build_index(design, sorted, doc_ids).unwrap();
    let index = open_index(&manifest, &files).unwrap();
    index.verify().unwrap();
    index
}

/// Compares the query with every fingerprint.
fn plain(sorted: &[u64], query: u64, k: u32) -> Vec<StoredMatch> {
    let mut distinct = sorted.to_vec();
    distinct.dedup();
    let near = |fingerprint| StoredMatch { fingerprint, distance: (fingerprint ^ query).count_ones() };
    distinct.into_iter().map(near).filter(|near| near.distance <= k).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn tables_find_every_fingerprint_within_k_once(
        wide in fingerprints(64),
        narrow in fingerprints(32),
        odd in fingerprints(37),
        k in 0u32..=6,
        more in 1u32..=2,
        flips in proptest::collection::vec((any::<prop::sample::Index>(), proptest::collection::vec(0u32..64, 0..8)), 20),
    ) {
        for (f, sorted) in [(64, &wide), (32, &narrow), (37, &odd)] {
            let design = design(f, k, k + more);
            let ids: Vec<u64> = (0..sorted.len() as u64).map(webtwin_base::ids::splitmix64).collect();
            let index = index(&design, sorted, Some(&ids));
            for (from, flips) in &flips {
                let base = if sorted.is_empty() { 0 } else { sorted[from.index(sorted.len())] };
                let query = flips.iter().fold(base, |query, bit| query ^ 1u64 << (bit % f));
                let near = index.near(query, k).unwrap();
                prop_assert_eq!(&near, &plain(sorted, query, k));
                prop_assert_eq!(index.near(query, k / 2).unwrap(), plain(sorted, query, k / 2));
                for StoredMatch { fingerprint, .. } in near {
                    let mut expected: Vec<u64> =
                        sorted.iter().zip(&ids).filter(|row| *row.0 == fingerprint).map(|row| *row.1).collect();
                    expected.sort_unstable();
                    prop_assert_eq!(index.doc_ids(fingerprint).unwrap().collect::<Vec<_>>(), expected);
                }
                prop_assert_eq!(index.contains(query).unwrap(), sorted.contains(&query));
            }
        }
    }
}

#[test]
fn searches_with_prefixes_of_any_length_and_longer_keys() {
    // With 2^18 rows and more, prefixes have up to 16 bits, so keys of 16, 21, 25 and 32 bits end
    // with the prefix or are searched. Many of the rows are in one cluster.
    let mut sorted: Vec<u64> = (0..1u64 << 18).map(webtwin_base::ids::splitmix64).collect();
    let near_one = |at: u64| {
        0x1234_5678_9abc_def0
            ^ (webtwin_base::ids::splitmix64(at) & webtwin_base::ids::splitmix64(at + 1) & 0xff0f_f0ff)
    };
    sorted.extend((0..1 << 17).map(near_one));
    sorted.sort_unstable();
    for (k, blocks) in [(3, 4), (3, 5), (2, 3), (2, 4)] {
        let design = design(64, k, blocks);
        let index = index(&design, &sorted, None);
        assert!(index.tables.iter().all(|table| table.header().prefix_bits == 16));
        for at in (0..sorted.len()).step_by(6007) {
            let query = sorted[at] ^ 1 << (at % 64) ^ 1 << (at % 61);
            assert_eq!(index.near(query, k).unwrap(), plain(&sorted, query, k));
        }
    }
}

#[test]
fn empty_single_and_extreme_indexes_answer() {
    let design = design(64, 3, 4);
    for sorted in [vec![], vec![5], vec![0, u64::MAX], vec![u64::MAX; 2500]] {
        let ids: Vec<u64> = (0..sorted.len() as u64).collect();
        let index = index(&design, &sorted, Some(&ids));
        for query in [0, 1, 5, 7, u64::MAX, u64::MAX - 8] {
            assert_eq!(index.near(query, 3).unwrap(), plain(&sorted, query, 3));
        }
        let copies = sorted.iter().filter(|&&fingerprint| fingerprint == u64::MAX).count();
        assert_eq!(index.doc_ids(u64::MAX).unwrap().len(), copies);
        assert_eq!(index.doc_ids(77).unwrap().len(), 0);
    }
}

#[test]
fn a_million_copies_are_one_row() {
    let mut sorted = vec![0u64; 1 << 20];
    sorted.push(9);
    let index = index(&design(64, 3, 4), &sorted, Some(&(0..1 << 20 | 1).collect::<Vec<_>>()));
    assert_eq!(index.manifest().fingerprints, 2);
    assert_eq!(index.candidates(0).unwrap(), 4 + 4);
    assert_eq!(index.doc_ids(0).unwrap().len(), 1 << 20);
}

#[test]
fn any_changed_byte_is_detected_before_it_changes_an_answer() {
    let mut sorted: Vec<u64> = (0..40).map(|at| webtwin_base::ids::splitmix64(at / 2) >> 40).collect();
    sorted.sort_unstable();
    let ids: Vec<u64> = (100..140).collect();
    let (manifest, files) = build_index(&design(24, 1, 2), &sorted, Some(&ids)).unwrap();
    let queries = [0, sorted[7], sorted[20] ^ 1];
    let answers = |index: &OnlineIndex<Vec<u8>>, query| -> Result<Vec<(StoredMatch, Vec<DocId>)>> {
        let add_documents = |near: StoredMatch| Ok((near, index.doc_ids(near.fingerprint)?.collect()));
        index.near(query, 1)?.into_iter().map(add_documents).collect()
    };
    let good = open_index(&manifest, &files).unwrap();
    for file in 0..files.len() {
        for at in 0..files[file].1.len() {
            let mut files = files.clone();
            files[file].1[at] ^= 0x81;
            match open_index(&manifest, &files) {
                Err(error) => assert_eq!(error.exit_code(), 3),
                Ok(index) => {
                    for query in queries {
                        match answers(&index, query) {
                            Ok(message) => assert_eq!(message, answers(&good, query).unwrap()),
                            Err(error) => assert!(error.to_string().contains(&files[file].0), "{error}"),
                        }
                    }
                    assert_eq!(index.verify().unwrap_err().exit_code(), 3);
                }
            }
        }
        for cut in 0..files[file].1.len() {
            let mut files = files.clone();
            files[file].1.truncate(cut);
            assert!(open_index(&manifest, &files).is_err());
        }
    }
}

#[test]
fn files_of_another_index_are_refused() {
    let design = design(24, 1, 2);
    let (manifest, mut files) = build_index(&design, &[1, 2, 3], Some(&[1, 2, 3])).unwrap();
    let (_, other_files) = build_index(&design, &[1, 2, 4], Some(&[1, 2, 4])).unwrap();
    for at in 0..files.len() {
        let own_file = std::mem::replace(&mut files[at], other_files[at].clone());
        assert!(open_index(&manifest, &files).unwrap_err().to_string().contains("does not belong to this index"));
        files[at] = own_file;
    }
    let refusal = |change: fn(&mut OnlineManifest)| {
        let mut manifest = manifest.clone();
        change(&mut manifest);
        OnlineManifest::from_json("index/online-index.json", &manifest.to_json()).unwrap_err().to_string()
    };
    assert!(refusal(|manifest| manifest.format = 3).contains("format 3, but this build reads format 1"));
    assert!(refusal(|manifest| manifest.tables[0].name = "..".into()).contains("contradicts"));
    assert!(refusal(|manifest| drop(manifest.tables.pop())).contains("contradicts"));
}

#[test]
fn an_index_of_format_2_keeps_its_bytes() {
    let (_, files) =
        build_index(&design(24, 1, 2), &[0x00_0003, 0x00_0003, 0x80_1001, 0xff_ffff], Some(&[7, 8, 9, 10])).unwrap();
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let listing: String = files.iter().map(|(name, bytes)| format!("{name} {}\n", hex(bytes))).collect();
    assert_eq!(listing, include_str!("../../../../tests/data/hamming/online-format-2.hex"));
}
