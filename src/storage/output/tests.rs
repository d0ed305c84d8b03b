use std::collections::BTreeMap;
use std::sync::Arc;

use object_store::memory::InMemory;

use super::*;

/// Returns an empty folder on the local disk, and one in a store.
fn folders() -> (tempfile::TempDir, [Location; 2]) {
    let disk = tempfile::tempdir().unwrap();
    let local = Location::parse(disk.path().join("out").to_str().unwrap()).unwrap();
    (disk, [local, Location::of_store(Arc::new(InMemory::new()), "memory://bucket", "some/out").unwrap()])
}

/// Returns the files of result `n`. Some names are shared with other results, with different bytes,
/// and some are not.
fn result(n: usize) -> BTreeMap<String, String> {
    let parts = (0..6 + n).map(|part| (format!("pages/part-{part:05}.parquet"), format!("page {part} of {n}")));
    parts.chain([("summary.json".to_string(), format!("{n}"))]).collect()
}

fn manifest(n: usize) -> String {
    format!("manifest of {n}")
}

fn stage(folder: &Location, n: usize) -> Attempt {
    let attempt = Attempt::new(folder, &format!("{n}{}", random_id().unwrap())).unwrap();
    result(n).iter().for_each(|(path, text)| attempt.put(path, text.as_bytes()).unwrap());
    attempt
}

fn lengths(n: usize) -> Vec<StagedFile> {
    result(n).into_iter().map(|(path, text)| (path, text.len() as u64)).collect()
}

fn run(folder: &Location, n: usize) -> Result<()> {
    let attempt = Attempt::new(folder, &random_id()?)?;
    result(n).iter().try_for_each(|(path, text)| attempt.put(path, text.as_bytes()))?;
    attempt.commit(manifest::NAME, manifest(n).as_bytes(), lengths(n))
}

fn code(result: Result<()>) -> u8 {
    result.map_or_else(|error| error.exit_code(), |()| 0)
}

/// Returns the path and text of every file below a folder.
fn all_files(folder: &Location) -> BTreeMap<String, String> {
    let prefix_length = folder.name().len() + 1;
    let locations = folder.list(None).unwrap().into_iter().map(|file| file.location);
    let text = |file: &Location| String::from_utf8(file.get().unwrap().unwrap()).unwrap();
    locations.map(|file| (file.name()[prefix_length..].to_string(), text(&file))).collect()
}

/// Asserts that the folder holds the complete result `n` and nothing else.
fn assert_is(folder: &Location, n: usize, case: &str) {
    let mut expected = result(n);
    expected.insert(manifest::NAME.into(), manifest(n));
    assert_eq!(all_files(folder), expected, "{folder}: {case}");
    let entries = folder.entries().unwrap();
    assert!(!entries.iter().any(|name| name.starts_with(['_', '.'])), "{folder}: {case}: {entries:?}");
}

#[test]
fn exactly_one_racing_run_wins_and_the_others_leave_nothing() {
    for round in 0..20 {
        let (_disk, folders) = folders();
        for folder in &folders {
            let ends: Vec<Result<()>> = std::thread::scope(|scope| {
                let runs: Vec<_> = (0..8)
                    .map(|n| {
                        scope.spawn(move || {
                            std::thread::sleep(std::time::Duration::from_micros((n * round * 50) as u64));
                            prepare(folder).and_then(|()| run(folder, n))
                        })
                    })
                    .collect();
                runs.into_iter().map(|run| run.join().unwrap()).collect()
            });
            let winners: Vec<usize> = (0..8).filter(|&n| ends[n].is_ok()).collect();
            assert_eq!(winners.len(), 1, "{folder}: {ends:?}");
            let is_lost = |end: &Result<()>| matches!(end, Err(Error::LostCommit(_)));
            assert!(ends.iter().all(|end| end.is_ok() || is_lost(end)), "{folder}: {ends:?}");
            assert_is(folder, winners[0], "race");
        }
    }
}

/// Simulates a run that stages result `n`, decides, moves `moved_files` and is killed; after
/// writing its manifest if `message`.
fn killed(folder: &Location, n: usize, moved_files: usize, message: bool) {
    let attempt = stage(folder, n);
    let decision = Decision {
        format: FORMAT,
        attempt: attempt.id().into(),
        name: manifest::NAME.into(),
        manifest: manifest(n),
        files: lengths(n),
    };
    folder.join(DECISION).unwrap().put(&decision.to_json()).unwrap();
    for (path, bytes) in &decision.files[..moved_files] {
        attempt.staged.join(path).unwrap().move_to(&folder.join(path).unwrap(), *bytes).unwrap();
    }
    if message {
        folder.join(manifest::NAME).unwrap().put(manifest(n).as_bytes()).unwrap();
    }
}

#[test]
fn decision_of_a_killed_run_is_completed_by_the_next_run_or_a_late_one() {
    let files = result(1).len();
    for (moved_files, message) in (0..=files).map(|moved| (moved, false)).chain([(files, true)]) {
        for has_latecomer in [false, true] {
            let (_disk, folders) = folders();
            for folder in &folders {
                let other = has_latecomer.then(|| stage(folder, 2));
                killed(folder, 1, moved_files, message);
                let end = match other {
                    Some(attempt) => attempt.commit(manifest::NAME, manifest(2).as_bytes(), lengths(2)),
                    None => prepare(folder),
                };
                assert_eq!(code(end), 4, "{moved_files} {message} {has_latecomer}");
                assert_is(
                    folder,
                    1,
                    &format!("killed after {moved_files} files, manifest {message}, late {has_latecomer}"),
                );
                assert_eq!(code(prepare(folder)), 4);
            }
        }
    }
}

#[test]
fn staged_files_of_a_killed_run_are_removed_by_the_next_commit() {
    let (_disk, folders) = folders();
    for folder in &folders {
        stage(folder, 1);
        folder.join("._commit.json.0123456789abcdef.tmp").unwrap().put(b"half").unwrap();
        prepare(folder).unwrap();
        run(folder, 2).unwrap();
        assert_is(folder, 2, "after a killed run");
    }
}

#[test]
fn decision_after_the_winners_cleanup_is_rejected() {
    let (_disk, folders) = folders();
    for folder in &folders {
        let latecomer = stage(folder, 2);
        run(folder, 1).unwrap();
        // The winner has removed the staged files; on a slow machine it may have done so later.
        result(2).iter().for_each(|(path, text)| latecomer.staged.join(path).unwrap().put(text.as_bytes()).unwrap());
        assert_eq!(code(latecomer.commit(manifest::NAME, manifest(2).as_bytes(), lengths(2))), 4);
        assert_is(folder, 1, "late");
    }
}

#[test]
fn run_whose_staged_files_were_removed_by_the_winner_has_lost() {
    let (_disk, folders) = folders();
    for folder in &folders {
        let latecomer = stage(folder, 2);
        run(folder, 1).unwrap();
        assert_eq!(code(latecomer.commit(manifest::NAME, manifest(2).as_bytes(), lengths(2))), 4);
        assert_is(folder, 1, "lost");
    }
}

#[test]
fn missing_or_changed_staged_files_fail_the_commit() {
    let (_disk, folders) = folders();
    for folder in &folders {
        let attempt = stage(folder, 1);
        attempt.staged.join("summary.json").unwrap().put(b"longer than it was").unwrap();
        let error = attempt.commit(manifest::NAME, manifest(1).as_bytes(), lengths(1)).unwrap_err();
        assert!(error.exit_code() == 8 && error.to_string().contains("summary.json"), "{error}");
        assert_eq!(all_files(folder), BTreeMap::new());
    }
}

#[test]
fn foreign_files_are_rejected_by_name_and_retained() {
    for path in ["notes.txt", "pages/part-00099.parquet", "exports/x", "views.sql", "_attempt-of-mine/x", "_records-/x"]
    {
        let (_disk, folders) = folders();
        for folder in &folders {
            folder.join(path).unwrap().put(b"mine").unwrap();
            let error = prepare(folder).unwrap_err();
            let name = if folder.path().is_some() { path } else { path.split('/').next().unwrap() };
            assert_eq!(error.exit_code(), 2);
            assert!(error.to_string().contains(folder.join(name).unwrap().name()), "{error}");
            assert_eq!(all_files(folder).len(), 1);
        }
    }
    let (disk, [local, _]) = folders();
    std::fs::create_dir_all(disk.path().join("out/pages")).unwrap();
    local.join("_records-0123/a.records").unwrap().put(b"records").unwrap();
    prepare(&local).unwrap();
}

#[test]
fn unwritable_output_is_named_before_any_work_and_nothing_is_created() {
    let (disk, [local, remote]) = folders();
    prepare(&local).unwrap();
    prepare(&remote).unwrap();
    assert!(!disk.path().join("out").exists() && all_files(&remote).is_empty());
    std::fs::write(disk.path().join("file"), "").unwrap();
    for subfolder in ["file", "file/out"] {
        let folder = Location::parse(disk.path().join(subfolder).to_str().unwrap()).unwrap();
        let error = prepare(&folder).unwrap_err();
        assert!(error.exit_code() == 2 && error.to_string().contains("file is a file"), "{error}");
    }
    let link = disk.path().join("link");
    for (to, subfolder) in [("not-there", ""), ("not-there", "/"), ("not-there", "/a/b"), ("link", "")] {
        std::os::unix::fs::symlink(disk.path().join(to), &link).unwrap();
        let folder = Location::parse(&format!("{}{subfolder}", link.display())).unwrap();
        let error = prepare(&folder).unwrap_err();
        let message = error.to_string();
        assert!(
            error.exit_code() == 2 && message.contains("link is a symbolic link to") && message.contains(to),
            "{error}"
        );
        std::fs::remove_file(&link).unwrap();
    }
    // The superuser may write there regardless of permissions.
    if std::path::Path::new("/proc/self").exists() {
        let error = prepare(&Location::parse("/proc/out").unwrap()).unwrap_err();
        assert!(error.exit_code() == 2 && error.to_string().contains("choose another --output"), "{error}");
    }
    assert_eq!(std::fs::read_dir(disk.path()).unwrap().count(), 1, "only the file");
}

#[test]
fn incomplete_decision_is_rejected() {
    let (_disk, folders) = folders();
    for folder in &folders {
        folder.join(DECISION).unwrap().put(b"{\"format\":1,\"att").unwrap();
        let error = prepare(folder).unwrap_err();
        assert!(error.exit_code() == 3 && error.to_string().contains("remove this file"), "{error}");
    }
}

/// Returns the decision of an attempt with one staged file for each entry, after a change.
fn planted(folder: &Location, change: impl FnOnce(&mut Decision)) {
    let mut decision = Decision {
        format: FORMAT,
        attempt: "aa".into(),
        name: manifest::NAME.into(),
        manifest: "{}".into(),
        files: vec![("pages/part-00000.parquet".into(), 4)],
    };
    folder.join("_attempt-aa/pages/part-00000.parquet").unwrap().put(b"rows").unwrap();
    change(&mut decision);
    folder.join(DECISION).unwrap().put(&decision.to_json()).unwrap();
}

#[test]
fn decision_with_invalid_names_is_rejected_and_nothing_is_moved() {
    let names = ["../x", "../../x", "/x", "pages/../../x", "./x", "", "pages//x", "manifest.json", "_commit.json"];
    let names = names.into_iter().chain(["_attempt-aa/x", "_records-aa/x", "fingerprints.json", "."]);
    for name in names {
        for (disk, folder) in folders_of_one() {
            planted(&folder, |decision| decision.files[0].0 = name.into());
            refused_and_as_it_was(&disk, &folder, name);
        }
    }
    for attempt in ["", "x", "../..", "aa/../../outside", "aa/pages"] {
        for (disk, folder) in folders_of_one() {
            planted(&folder, |decision| decision.attempt = attempt.into());
            refused_and_as_it_was(&disk, &folder, attempt);
        }
    }
    for name in ["../manifest.json", "/tmp/manifest.json", "views.sql", ""] {
        for (disk, folder) in folders_of_one() {
            planted(&folder, |decision| decision.name = name.into());
            refused_and_as_it_was(&disk, &folder, name);
        }
    }
}

/// Returns each of the two folders, with the disk that both tests need.
fn folders_of_one() -> [(std::rc::Rc<tempfile::TempDir>, Location); 2] {
    let (disk, folders) = folders();
    let disk = std::rc::Rc::new(disk);
    folders.map(|folder| (std::rc::Rc::clone(&disk), folder))
}

fn refused_and_as_it_was(disk: &tempfile::TempDir, folder: &Location, case: &str) {
    let files_before = all_files(folder);
    let error = prepare(folder).unwrap_err();
    assert!(error.exit_code() == 3 && error.to_string().contains("no file was moved"), "{case}: {error}");
    assert_eq!(all_files(folder), files_before, "{case}");
    assert!(std::fs::read_dir(disk.path()).unwrap().count() <= 1, "{case}: moved out of the folder");
}

#[test]
fn decision_with_files_behind_links_is_rejected_and_nothing_is_moved() {
    let link = |to: &Path, at: &Path| std::os::unix::fs::symlink(to, at).unwrap();
    type Plant<'a> = &'a dyn Fn(&Path, &Path);
    let cases: [(&str, Plant); 4] = [
        ("a folder of the result", &|outside, out| link(outside, &out.join("pages"))),
        ("the folder of the attempt", &|outside, out| {
            std::fs::rename(out.join("_attempt-aa"), outside.join("attempt")).unwrap();
            link(&outside.join("attempt"), &out.join("_attempt-aa"));
        }),
        ("a folder of the attempt", &|outside, out| {
            std::fs::rename(out.join("_attempt-aa/pages"), outside.join("pages")).unwrap();
            link(&outside.join("pages"), &out.join("_attempt-aa/pages"));
        }),
        ("a staged file", &|outside, out| {
            let staged = out.join("_attempt-aa/pages/part-00000.parquet");
            std::fs::rename(&staged, outside.join("theirs")).unwrap();
            link(&outside.join("theirs"), &staged);
        }),
    ];
    for (case, plant) in cases {
        let (disk, [folder, _]) = folders();
        let outside = disk.path().join("outside");
        std::fs::create_dir(&outside).unwrap();
        planted(&folder, |_| ());
        plant(&outside, folder.path().unwrap());
        let outside_folder = Location::parse(outside.to_str().unwrap()).unwrap();
        let files_before = all_files(&outside_folder);
        let error = prepare(&folder).unwrap_err();
        assert!(error.exit_code() == 3 && error.to_string().contains("is a symbolic link"), "{case}: {error}");
        assert_eq!(all_files(&outside_folder), files_before, "{case}");
    }
    // A user who names a folder by a link means its target.
    let (disk, [_, _]) = folders();
    std::fs::create_dir(disk.path().join("real")).unwrap();
    link(&disk.path().join("real"), &disk.path().join("named"));
    let folder = Location::parse(disk.path().join("named").to_str().unwrap()).unwrap();
    prepare(&folder).unwrap();
    run(&folder, 1).unwrap();
    assert_is(&folder, 1, "named by a link");
}
