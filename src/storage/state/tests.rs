use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::records::RecordStore;

const KEYS: [u128; 4] = [7, 1 << 100, 3, 4];

fn state(folder: &Path) -> JobState {
    JobState::at(Location::parse(folder.to_str().unwrap()).unwrap())
}

fn text(number: usize) -> Vec<u8> {
    format!("record {number} ").repeat(number * 8 + 1).into_bytes()
}

/// Writes the records of the given items as one file.
fn write(records: &StateRecords, numbers: &[usize]) {
    let mut encode = |number, record: &mut Vec<u8>| {
        record.extend(text(number));
        Ok(())
    };
    records.write(numbers, &mut encode).unwrap();
}

/// Commits the next generation with the given records.
fn next(state: &JobState, records: &StateRecords) -> Generation {
    let number = state.generations().unwrap().last().map_or(1, |last| last + 1);
    let generation = Generation {
        number,
        id: format!("run {number}"),
        files: records.next(records.written(), |_| true),
        ..Generation::default()
    };
    state.commit(&generation).unwrap();
    state.newest().unwrap().unwrap()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = Vec::new();
    for run in fs::read_dir(folder.join("runs")).unwrap() {
        files.extend(fs::read_dir(run.unwrap().path()).unwrap().map(|file| file.unwrap().path()));
    }
    files.sort();
    files
}

#[test]
fn records_are_passed_between_generations_until_their_items_are_removed() {
    let temporary = tempfile::tempdir().unwrap();
    let state = state(temporary.path());
    assert!(state.newest().unwrap().is_none());
    let records = StateRecords::new(&state, None, Vec::new(), &KEYS[..3]);
    assert!((0..3).all(|number| records.read(number).is_none()));
    write(&records, &[2, 0]);
    write(&records, &[1]);
    let first = next(&state, &records);

    // One item is gone, and another is new.
    let mut records = StateRecords::new(&state, Some(&first), Vec::new(), &KEYS[1..]);
    assert_eq!((records.found(), records.stale()), (2, 1));
    assert_eq!(records.read(0).unwrap(), text(1));
    assert_eq!(records.read(1).unwrap(), text(2));
    assert_eq!(records.read(2), None);
    records.forget(|number| number == 0);
    assert_eq!(records.read(0), None);
    write(&records, &[2]);
    let second = next(&state, &records);
    assert_eq!((second.number, second.records()), (2, 2));
    let records = StateRecords::new(&state, Some(&second), Vec::new(), &KEYS);
    let is_found: Vec<bool> = (0..4).map(|number| records.read(number).is_some()).collect();
    assert_eq!(is_found, [false, false, true, true], "the record that was forgotten is not handed on");
    assert_eq!(records.damaged.into_inner(), 0);
}

#[test]
fn unused_records_are_returned_if_they_are_intact() {
    let temporary = tempfile::tempdir().unwrap();
    let state = state(temporary.path());
    let records = StateRecords::new(&state, None, Vec::new(), &KEYS);
    write(&records, &[0, 1]);
    write(&records, &[2, 3]);
    let generation = next(&state, &records);
    // The first item is gone. The last one exists but is not used.
    let records = StateRecords::new(&state, Some(&generation), Vec::new(), &KEYS[1..]);
    let left = |memory_is_bounded| {
        let files = records.left_over(&|item| item != 2, memory_is_bounded);
        let texts =
            files.iter().flat_map(|left| left.records.iter().map(|place| left.file.as_ref()[place.clone()].to_vec()));
        let mut texts: Vec<Vec<u8>> = texts.collect();
        texts.sort();
        texts
    };
    assert_eq!(left(false), [text(0), text(3)]);
    // Files on a local disk are mapped, so a bound on memory makes no difference.
    assert_eq!(left(true), left(false));
    for file in files(temporary.path()) {
        let mut bytes = fs::read(&file).unwrap();
        if bytes.starts_with(&text(0)) {
            bytes[3] ^= 1;
            fs::write(&file, bytes).unwrap();
        }
    }
    assert_eq!(left(false), [text(3)]);
}

#[test]
fn file_with_few_live_records_is_compacted() {
    let temporary = tempfile::tempdir().unwrap();
    let state = state(temporary.path());
    let records = StateRecords::new(&state, None, Vec::new(), &KEYS);
    write(&records, &[0, 1, 2, 3]);
    let first = next(&state, &records);
    for (keys, moves) in [(&KEYS[..], false), (&KEYS[2..], false), (&KEYS[3..], true)] {
        let records = StateRecords::new(&state, Some(&first), Vec::new(), keys);
        assert!((0..keys.len()).all(|number| records.moves(number) == moves), "{keys:?}");
    }
}

#[test]
fn exactly_one_of_two_runs_with_the_same_generation_wins() {
    let temporary = tempfile::tempdir().unwrap();
    let state = state(temporary.path());
    let run = |id: &str| Generation { number: 1, id: id.into(), ..Generation::default() };
    state.commit(&run("a")).unwrap();
    state.commit(&run("a")).unwrap();
    assert_eq!(state.commit(&run("b")).unwrap_err().exit_code(), 4);
    assert_eq!(state.newest().unwrap().unwrap().id, "a");
}

#[test]
fn flipped_bit_or_truncation_loses_a_record_or_names_its_file() {
    let temporary = tempfile::tempdir().unwrap();
    let state = state(temporary.path());
    let records = StateRecords::new(&state, None, Vec::new(), &KEYS);
    write(&records, &[1, 2]);
    let first = next(&state, &records);
    let good =
        StateCheck { generations: 1, records: 2, bytes: first.bytes(), damaged: Vec::new(), damaged_generations: 0 };
    assert_eq!(state.check().unwrap(), good);
    for file in [files(temporary.path()).remove(0), temporary.path().join("gen-000001.json")] {
        let whole = fs::read(&file).unwrap();
        for at in 0..whole.len() {
            for cut in [false, true] {
                let mut bytes = whole.clone();
                if cut {
                    bytes.truncate(at)
                } else {
                    bytes[at] ^= 16
                }
                fs::write(&file, bytes).unwrap();
                assert_eq!(state.check().unwrap().damaged.len(), 1, "{at} {cut}");
                match file.ends_with("gen-000001.json") {
                    // The copy is read.
                    true => assert_eq!(state.newest().unwrap().unwrap(), first, "{at} {cut}"),
                    false => {
                        let newest = state.newest().unwrap();
                        let records = StateRecords::new(&state, newest.as_ref(), Vec::new(), &KEYS);
                        let readable: Vec<_> = [1, 2].into_iter().filter_map(|n| Some((n, records.read(n)?))).collect();
                        assert!(readable.iter().all(|(n, record)| *record == text(*n)), "{at} {cut}");
                        assert!(readable.len() < 2 && records.damaged.into_inner() > 0, "{at} {cut}");
                    }
                }
            }
        }
        fs::write(&file, whole).unwrap();
    }
    fs::remove_file(files(temporary.path()).remove(0)).unwrap();
    assert_eq!(StateRecords::new(&state, Some(&first), Vec::new(), &KEYS).read(1), None);
}

#[test]
fn generation_without_an_intact_copy_is_named_with_the_command_that_continues() {
    let temporary = tempfile::tempdir().unwrap();
    let state = state(temporary.path());
    let first = next(&state, &StateRecords::new(&state, None, Vec::new(), &KEYS));
    let second = next(&state, &StateRecords::new(&state, Some(&first), Vec::new(), &KEYS));
    let [file, copy] = ["gen-000002.json", "copies/gen-000002.json"].map(|name| temporary.path().join(name));
    let whole = fs::read(&file).unwrap();
    assert_eq!(fs::read(&copy).unwrap(), whole);
    // The file under its name may be damaged, of another state, or missing.
    let other = fs::read(temporary.path().join("gen-000001.json")).unwrap();
    for damage in [Some(&whole[1..]), Some(&b""[..]), Some(&other), None] {
        let damage_file = |at: &Path| match damage {
            Some(bytes) => fs::write(at, bytes).unwrap(),
            None => fs::remove_file(at).unwrap(),
        };
        damage_file(&file);
        assert_eq!(state.newest().unwrap().unwrap(), second);
        assert!(state.fault(2).unwrap().unwrap().contains("gen-000002.json"));
        assert_eq!(state.check().unwrap().damaged.len(), 1);
        fs::write(&file, &whole).unwrap();
        damage_file(&copy);
        assert_eq!((state.newest().unwrap().unwrap(), state.fault(2).unwrap()), (second.clone(), None));
        damage_file(&file);
        if damage.is_some() {
            let error = state.newest().unwrap_err();
            assert_eq!(error.exit_code(), 3);
            let message = error.to_string();
            assert!(message.contains("gen-000002.json") && message.contains("--damaged"), "{message}");
            assert_eq!(state.prune(1).unwrap_err().exit_code(), 3);
            assert_eq!(state.check().unwrap().damaged_generations, 1);
            assert_eq!(state.drop_damaged().unwrap(), 1);
        }
        assert_eq!(state.newest().unwrap().unwrap(), first);
        fs::write(&file, &whole).unwrap();
        fs::write(&copy, &whole).unwrap();
    }
    assert_eq!(state.drop_damaged().unwrap(), 0);
}

#[test]
fn a_generation_that_names_files_outside_of_its_state_is_damaged() {
    for name in ["../../x", "/etc/passwd", "aa/../../../x", ""] {
        let file = RecordFile { name: name.into(), bytes: 1, records: Vec::new() };
        let generation = Generation { number: 1, files: vec![file], ..Generation::default() };
        assert!(Generation::decode(&generation.encode()).unwrap_err().contains("not a file of a state"), "{name}");
    }
}

#[test]
fn old_generations_are_removed_with_their_own_files_unless_these_are_young() {
    let temporary = tempfile::tempdir().unwrap();
    let state = state(temporary.path());
    let mut newest = None;
    for number in 0..3 {
        let records = StateRecords::new(&state, newest.as_ref(), Vec::new(), &KEYS[number..=number]);
        write(&records, &[0]);
        // Every generation has a file of its own, because the texts differ.
        let mut encode = |_, record: &mut Vec<u8>| {
            record.extend(text(number + 1));
            Ok(())
        };
        records.write(&[0], &mut encode).unwrap();
        newest = Some(next(&state, &records));
    }
    let file_count = files(temporary.path()).len();
    let pruned = state.prune(2).unwrap();
    assert_eq!((pruned.generations, pruned.files), (1, 0), "the files are young");
    assert_eq!((files(temporary.path()).len(), state.generations().unwrap()), (file_count, vec![2, 3]));
    let old = SystemTime::now() - 2 * MIN_REMOVAL_AGE;
    for file in files(temporary.path()) {
        fs::File::options().write(true).open(file).unwrap().set_modified(old).unwrap();
    }
    let pruned = state.prune(1).unwrap();
    assert_eq!((pruned.generations, pruned.files), (1, 2));
    assert_eq!(state.check().unwrap().damaged, Vec::<String>::new());
    assert_eq!(state.prune(0).unwrap(), PruneReport::default(), "one always stays");
}

#[test]
fn records_read_ahead_are_restored_by_the_next_run_and_belong_to_its_generation() {
    let temporary = tempfile::tempdir().unwrap();
    let state = state(temporary.path());
    assert_eq!(state.ahead().unwrap(), []);
    // Two lists, of which the second repeats an item of the first with another text.
    for numbers in [&[0, 1][..], &[1, 2]] {
        let records = StateRecords::new(&state, None, Vec::new(), &KEYS);
        write(&records, numbers);
        state.add_ahead("as ever", None, &records).unwrap();
    }
    let lists = state.ahead().unwrap();
    assert_eq!((lists.len(), lists[0].reading.as_str()), (2, "as ever"));
    assert_eq!(state.check().unwrap().damaged, Vec::<String>::new());

    let records = StateRecords::new(&state, None, lists.clone(), &KEYS);
    assert_eq!((records.found(), records.found_ahead(), records.stale()), (3, 3, 0));
    assert!((0..3).all(|number| records.read(number).unwrap() == text(number)));
    // One item is read ahead for a later run.
    let first = next(&state, &StateRecords::new(&state, None, lists.clone(), &KEYS[1..]));
    assert_eq!(first.records(), 2);
    state.prune(1).unwrap();
    let left = state.ahead().unwrap();
    assert_eq!(left.len(), 1, "the list with the item that is no input stays");
    let records = StateRecords::new(&state, Some(&first), left.clone(), &KEYS);
    assert_eq!((records.found(), records.found_ahead(), records.stale()), (3, 1, 0));

    // Its files of records stay, however old; a damaged list costs time only.
    let old = SystemTime::now() - 2 * MIN_REMOVAL_AGE;
    for file in files(temporary.path()) {
        fs::File::options().write(true).open(file).unwrap().set_modified(old).unwrap();
    }
    assert_eq!(state.prune(1).unwrap().files, 0);
    let list = fs::read_dir(temporary.path().join("ahead")).unwrap().next().unwrap().unwrap().path();
    let whole = fs::read(&list).unwrap();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(&list, bytes).unwrap();
        assert_eq!(state.ahead().unwrap(), [], "byte {at}");
    }
    fs::write(&list, whole).unwrap();
    assert_eq!(state.ahead().unwrap(), left);
}
