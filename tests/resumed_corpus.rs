use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::program::{fail, files, stderr_text, succeed, webtwin};

/// A corpus of many files with copies and near-copies across files, rejected lines and counted
/// fields.
struct Corpus(tempfile::TempDir);

const FILES: usize = 24;

impl Corpus {
    fn new(records: usize) -> Corpus {
        let corpus = Corpus(tempfile::tempdir().unwrap());
        std::fs::create_dir(corpus.at("in")).unwrap();
        for file in 0..FILES {
            let mut lines = String::from("\n");
            for row in 0..records {
                // Every third text is a copy of a text of another file; every fifth of these has a
                // changed word.
                let number = if row % 3 == 0 { row } else { file * records + row };
                let word = |at: usize| match row % 5 == 0 && at == file {
                    true => "changed".to_string(),
                    false => format!("w{}", (number * 7919 + at * at * 31 + at) % 90_001),
                };
                let text: Vec<String> = (0..90).map(word).collect();
                let id = (row % 7 > 0).then(|| format!("{file}-{row}"));
                let lang = if row % 2 == 0 { "en" } else { "de" };
                lines += &json!({ "id": id, "text": text.join(" "), "lang": lang }).to_string();
                lines.push('\n');
            }
            lines += "no json\n{\"text\":\" \"}\n";
            let bytes = zstd::encode_all(lines.as_bytes(), 1).unwrap();
            std::fs::write(corpus.at(&format!("in/{file:02}.jsonl.zst")), bytes).unwrap();
        }
        succeed(&corpus.dedup("whole", &[]));
        corpus
    }

    fn at(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_string()
    }

    fn dedup<'a>(&self, out: &str, more: &[&'a str]) -> Vec<&'a str> {
        let leaked = |text: String| -> &'a str { Box::leak(text.into_boxed_str()) };
        let (input, output) = (leaked(self.at("in")), leaked(self.at(out)));
        let common =
            ["dedup", input, "--output", output, "--id-field", "id", "--count-by", "lang", "--keep", "longest"];
        [&common[..], more].concat()
    }

    /// Starts a run and kills it as soon as `is_time` is true for the folder of its result.
    fn kill(&self, out: &str, workers: &str, is_time: impl Fn(&Path) -> bool) {
        let folder = self.0.path().join(out);
        let mut child = webtwin(&self.dedup(out, &["--resume", "--workers", workers])).spawn().unwrap();
        let start = Instant::now();
        while !is_time(&folder) && start.elapsed() < Duration::from_secs(120) {
            assert!(child.try_wait().unwrap().is_none(), "the run ended before the kill");
            std::thread::sleep(Duration::from_micros(200));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!folder.join("_webtwin/manifest").exists());
    }

    /// Resumes a run and returns the number of files that it restored from checkpoints.
    fn resume(&self, out: &str, workers: &str) -> usize {
        let output = webtwin(&self.dedup(out, &["--resume", "--workers", workers])).output().unwrap();
        let message = stderr_text(&output);
        assert!(output.status.success(), "{message}");
        assert!(files(&self.at(out)) == files(&self.at("whole")), "{out}");
        assert!(entries(self.0.path().join(out), "_records-").is_empty());
        let after = message.split("resume: ").nth(1).unwrap();
        assert!(after.contains(&format!(" of {FILES} files restored from checkpoints")), "{message}");
        after.split(' ').next().unwrap().parse().unwrap()
    }
}

/// Returns the entries of a folder whose names begin with `begin`.
fn entries(folder: PathBuf, begin: &str) -> Vec<PathBuf> {
    let all = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    all.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(begin)).collect()
}

/// Returns the files of complete checkpoints.
fn checkpoints(out: &Path) -> Vec<PathBuf> {
    let folders = entries(out.to_path_buf(), "_records-").into_iter();
    folders.flat_map(|folder| entries(folder, "read-")).filter(|path| path.extension().unwrap() == "step").collect()
}

#[test]
fn killed_dedup_continues_from_its_read_files_and_writes_the_same_bytes() {
    let corpus = Corpus::new(300);
    for (at_least, before, after) in [(1, "1", "2"), (FILES / 2, "2", "1"), (FILES, "1", "3")] {
        let out = format!("killed-{at_least}");
        corpus.kill(&out, before, |folder| checkpoints(folder).len() >= at_least);
        let saved = checkpoints(Path::new(&corpus.at(&out))).len();
        assert_eq!(corpus.resume(&out, after), saved);
        assert!(saved >= at_least);
        fail(&corpus.dedup(&out, &["--resume"]), 4);
    }
    // The run is killed while it writes its result, twice in a row.
    let is_writing = |folder: &Path| !entries(folder.to_path_buf(), "_attempt-").is_empty();
    corpus.kill("writing", "2", is_writing);
    corpus.kill("writing", "1", |folder| entries(folder.to_path_buf(), "_attempt-").len() > 1);
    assert_eq!(corpus.resume("writing", "2"), FILES);
    assert!(entries(corpus.at("writing").into(), "_attempt-").is_empty());
}

#[test]
fn checkpoints_that_are_damaged_or_of_another_version_of_a_file_or_other_settings_are_not_used() {
    let corpus = Corpus::new(40);
    let all = |folder: &Path| checkpoints(folder).len() == FILES;
    corpus.kill("out", "1", all);
    let checkpoints_found = checkpoints(Path::new(&corpus.at("out")));
    let mut bytes = std::fs::read(&checkpoints_found[0]).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&checkpoints_found[0], &bytes).unwrap();
    bytes.truncate(middle);
    std::fs::write(&checkpoints_found[1], &bytes).unwrap();
    // The same bytes with another modification time are another version.
    let file = corpus.at("in/07.jsonl.zst");
    let same = std::fs::read(&file).unwrap();
    std::fs::write(&file, same).unwrap();
    let restored = corpus.resume("out", "2");
    // The rewritten file may be one whose checkpoint is damaged.
    assert!((FILES - 3..=FILES - 2).contains(&restored), "{restored}");

    corpus.kill("other", "1", all);
    let other = webtwin(&corpus.dedup("other", &["--resume", "--by", "exact"])).output().unwrap();
    assert!(stderr_text(&other).contains(&format!("resume: 0 of {FILES} files")), "{}", stderr_text(&other));

    // The checkpoints are in a folder of their own.
    let records = corpus.at("records");
    succeed(&corpus.dedup("elsewhere", &["--resume", "--records", &records]));
    assert!(files(&corpus.at("elsewhere")) == files(&corpus.at("whole")));
    assert!(entries(records.into(), "_records-").is_empty());
    assert!(fail(&corpus.dedup("x", &["--records", "y"]), 2).contains("--resume"));
}
