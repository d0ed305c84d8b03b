use crate::support::program::{files, succeed};
use crate::support::streams::assert_unread_and_unwritable_output;
use crate::{lab, measure, refuse};

#[test]
fn closed_pipe_is_success_and_unwritable_output_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let [out, truth] = ["out", "truth.tsv"].map(|name| folder.path().join(name).to_str().unwrap().to_string());
    succeed(&["run", "--input", "synth://?pages=200&seed=3", "--output", &out]);
    measure(&["synth", "--pages", "200", "--seed", "3", "--truth", &truth]);
    for arguments in [&["reproduce", "--list"][..], &["evaluate", &out, "--truth", &truth], &["--help"]] {
        assert_unread_and_unwritable_output(lab, arguments);
    }
}

#[test]
fn folder_with_files_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out");
    std::fs::create_dir_all(output.join("pages")).unwrap();
    std::fs::write(output.join("pages/mine.parquet"), "mine").unwrap();
    let line = refuse(&["synth", "--pages", "100", "--output", output.to_str().unwrap()], 2);
    assert!(line.contains("pages/mine.parquet") && line.contains("not overwritten"), "{line}");
    assert_eq!(files(&output).len(), 1);
}

#[test]
fn errors_have_the_documented_exit_codes() {
    let folder = tempfile::tempdir().unwrap();
    let [out, truth] = ["out", "t"].map(|name| folder.path().join(name).to_str().unwrap().to_string());
    let cases: [(&[&str], i32, &str); 5] = [
        (&["evaluate", &out, "--truth", &truth], 3, "No such file"),
        (&["reproduce", "csg00-tabel2"], 2, "csg00-table2"),
        (&["reproduce", "csg00-table2", "--scale", "many"], 2, "--scale many"),
        (
            &["reproduce", "mjs07-compression", "--cluster", "slurm"],
            2,
            "reproduce one of bench-hamming-selfjoin-files, mjs07-batch",
        ),
        (&["synth", "--output", &out, "--pages", "0"], 2, "pages"),
    ];
    for (arguments, code, word) in cases {
        let message = refuse(arguments, code);
        assert!(message.contains(word) && message.starts_with("error: "), "{arguments:?}: {message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
}
