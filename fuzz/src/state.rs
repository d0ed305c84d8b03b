//! The state of a scheduled job: a generation is read back as it was written, and a damaged one is
//! never read as another generation. Checkpoints of a state and of a run that is to be resumed are
//! read back unchanged or not at all.

use std::path::PathBuf;
use std::sync::OnceLock;

use super::{damaged, files, first};
use webtwin_dataflow::reading::item_record::SavedPage;
use webtwin_storage::location::Location;
use webtwin_storage::records::{RecordStore, SavedRecords};
use webtwin_storage::state::{Generation, JobState, StateRecords};

const KEYS: [u128; 3] = [7, 1 << 100, 5];
const RECORDS: [&[u8]; 3] = [b"what was read of one item", b"", b"what was read of another, which is longer"];

/// Returns a folder for checkpoints.
fn folder() -> &'static PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| super::folder("state"))
}

/// Checks one input of the fuzzer.
pub fn check(data: &[u8]) {
    let Some((how, rest)) = first(data) else { return };
    match how % 5 {
        0 => {
            if let Ok(generation) = Generation::decode(rest) {
                assert_eq!(generation.encode(), rest);
            }
        }
        1 => generation(rest),
        2 => drop(SavedPage::decode(rest)),
        3 => of_a_run(rest),
        _ => of_a_state(rest),
    }
}

/// Checks a generation with any fields, intact and damaged.
fn generation(rest: &[u8]) {
    let (fields, changes) = rest.split_at(rest.len() / 2);
    let Ok(generation) = serde_json::from_slice::<Generation>(fields) else { return };
    let bytes = generation.encode();
    // File names are joined to the path of the state, so only names of its own files are read back.
    let is_name = |name: &str| name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    match Generation::decode(&bytes) {
        Ok(other) => assert_eq!(other, generation),
        Err(cause) => assert!(
            generation.files.iter().chain(&generation.found).any(|file| !is_name(&file.name)),
            "an intact generation is not read back: {cause}"
        ),
    }
    if let Ok(other) = Generation::decode(&damaged(&bytes, changes)) {
        assert_eq!(other, generation);
    }
}

/// Checks checkpoints of a run that is to be resumed, with damage to their file.
fn of_a_run(changes: &[u8]) {
    let folder = folder().join("run");
    let open = || SavedRecords::open(&folder, [3; 32], "build", KEYS.to_vec()).expect("the folder can be read");
    open().remove();
    let records = open();
    let encode = |number: usize, record: &mut Vec<u8>| {
        record.extend_from_slice(RECORDS[number]);
        Ok(())
    };
    records.write(&[2, 0], encode).expect("the disk has space");
    damage(&folder, changes);
    held(&open());
}

/// Checks checkpoints of a state, with damage to one of its files.
fn of_a_state(changes: &[u8]) {
    let folder = folder().join("state");
    drop(std::fs::remove_dir_all(&folder));
    let at = Location::parse(folder.to_str().expect("the path is UTF-8")).expect("a path").into_folder();
    let state = JobState::at(at);
    let records = StateRecords::new(&state, None, Vec::new(), &KEYS);
    let mut encode = |number: usize, record: &mut Vec<u8>| {
        record.extend_from_slice(RECORDS[number]);
        Ok(())
    };
    RecordStore::write(&records, &[0, 1, 2], &mut encode).expect("the disk has space");
    let generation = Generation { number: 1, files: records.written(), ..Generation::default() };
    state.commit(&generation).expect("the disk has space");
    damage(&folder, changes);
    drop(state.check());
    if let Ok(Some(generation)) = state.newest() {
        held(&StateRecords::new(&state, Some(&generation), Vec::new(), &KEYS));
    }
}

/// Damages one file of a folder.
fn damage(folder: &std::path::Path, changes: &[u8]) {
    let Some((which, changes)) = first(changes) else { return };
    let files = files(folder);
    let (name, bytes) = &files[which % files.len()];
    std::fs::write(folder.join(name), damaged(bytes, changes)).expect("the disk has space");
}

fn held(records: &dyn RecordStore) {
    for (number, record) in RECORDS.iter().enumerate() {
        assert!(records.read(number).is_none_or(|found| found == *record));
    }
}
