use crate::measure;
use crate::support::program::files;

#[test]
fn the_same_seed_makes_the_same_crawl_and_the_same_truth() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    for name in ["one", "two"] {
        measure(&["synth", "--pages", "300", "--seed", "5", "--output", &at(name)]);
    }
    let one = files(&at("one"));
    assert_eq!(one.keys().collect::<Vec<_>>(), ["crawl-00000.warc.gz", "truth.tsv"]);
    assert!(files(&at("two")) == one);
    measure(&["synth", "--pages", "300", "--seed", "5", "--truth", &at("truth.tsv")]);
    assert!(std::fs::read(at("truth.tsv")).unwrap() == one["truth.tsv"]);
}
