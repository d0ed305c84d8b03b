use std::process::Command;

#[allow(unreachable_pub)] // In `fuzz/` it is a crate.
#[path = "../fuzz/src/lib.rs"]
mod targets;

/// Runs every target of `fuzz/` on its initial corpus, without a fuzzer.
#[test]
fn fuzz_targets_hold_for_their_initial_corpus() {
    let temporary = tempfile::tempdir().unwrap();
    let corpus = temporary.path().join("corpus");
    match Command::new("python3").arg("scripts/fuzz/seeds.py").arg(&corpus).status() {
        Ok(status) => assert!(status.success()),
        Err(cause) => return eprintln!("skipped: python3 cannot be started: {cause}"),
    }
    targets::FOLDER.set(temporary.path().into()).expect("no other test runs a target");
    for (name, check) in targets::TARGETS {
        for (path, input) in targets::files(&corpus.join(name)) {
            eprintln!("fuzz target {name}: input {path}");
            check(&input);
        }
    }
}
