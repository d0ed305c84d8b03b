#![cfg(not(all(feature = "aws", feature = "pdf", feature = "search", feature = "serve")))]

use crate::support::program::fail;

#[cfg(not(feature = "aws"))]
#[test]
fn store_of_another_cloud_is_rejected_before_any_reading() {
    let message = fail(&["run", "--input", "synth://?pages=9", "--output", "s3://bucket/out"], 3);
    assert!(message.contains("this build cannot read s3://") && message.contains("--features aws`"), "{message}");
}

#[cfg(not(all(feature = "search", feature = "serve")))]
#[test]
fn missing_command_names_its_feature() {
    let absent: &[&[&str]] = &[
        #[cfg(not(feature = "search"))]
        &["search", "idx", "words"],
        #[cfg(not(feature = "serve"))]
        &["serve", "idx", "--listen", "127.0.0.1:0"],
    ];
    for command in absent {
        let message = fail(command, 2);
        assert!(message.contains(&format!("cannot {}; ", command[0])), "{message}");
        assert!(message.contains(&format!("--features {}`", command[0])), "{message}");
    }
}

#[cfg(not(feature = "pdf"))]
#[test]
fn pdf_is_rejected_with_the_name_of_the_feature() {
    use crate::support::program::{rows, stderr_text, webtwin};

    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    std::fs::create_dir(at("site")).unwrap();
    std::fs::write(at("site/page.html"), "<title>A page</title><p>It has few words.").unwrap();
    std::fs::write(at("site/paper.pdf"), "%PDF-1.4\n").unwrap();
    let run = webtwin(&["run", "--input", &at("site"), "--output", &at("out")]).output().unwrap();
    assert!(run.status.success(), "{}", stderr_text(&run));
    assert!(
        stderr_text(&run).contains("1 PDF or PostScript documents were not read: this build cannot read PDF"),
        "{}",
        stderr_text(&run)
    );
    assert!(stderr_text(&run).contains("--features pdf`"), "{}", stderr_text(&run));
    let rejected = &rows(&at("out"), "rejected")[0];
    assert_eq!(rejected["reason"], "no_converter");
    assert!(rejected["detail"].as_str().unwrap().contains("--features pdf`"), "{rejected}");
}
