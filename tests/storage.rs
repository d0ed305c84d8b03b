//! The files of the list of bad inputs, on disk, through the same functions as a run: `expand`,
//! `plan` and `read`.
//!
//! Ids are those of that list. Each case has the number of pages that survive, the rejected
//! records, and the exit code if the input as a whole is refused.

use std::collections::BTreeMap;
use std::io::Write;

use webtwin::error::Result;
use webtwin::job::{InputSettings, Job};
use webtwin::pages::record::ReadResult;
use webtwin::pages::work_items::WorkList;
use webtwin::storage::location::Location;

/// Outcome of reading: the number of pages kept, and the rejected records by reason.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    pages: usize,
    refused: BTreeMap<&'static str, usize>,
}

fn input(urls: &[String]) -> InputSettings {
    InputSettings { urls: urls.to_vec(), ..Job::default().input }
}

fn read(inputs: &[String], piece_bytes: u64) -> Result<Outcome> {
    let input = input(inputs);
    let work = WorkList::plan(&input, piece_bytes)?;
    let mut outcome = Outcome { pages: 0, refused: BTreeMap::new() };
    for item in &work.items {
        work.read(item, &input, &mut |found| {
            match found {
                ReadResult::Page(_) => outcome.pages += 1,
                ReadResult::Refused(refused) => *outcome.refused.entry(refused.reason.as_str()).or_default() += 1,
            }
            Ok(())
        })?;
    }
    Ok(outcome)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn good(number: usize) -> String {
    format!("{{\"url\":\"http://h.example/{number}\",\"text\":\"page {number}\"}}")
}

fn good_lines(separator: &str) -> String {
    (0..3).map(good).collect::<Vec<_>>().join(separator)
}

/// Returns four good lines with an unusual one in the middle.
fn with(odd: &[u8]) -> Vec<u8> {
    [
        good(0).as_bytes(),
        b"\n",
        good(1).as_bytes(),
        b"\n",
        odd,
        b"\n",
        good(2).as_bytes(),
        b"\n",
        good(3).as_bytes(),
        b"\n",
    ]
    .concat()
}

#[test]
fn bad_jsonl_120_to_134_loses_at_most_its_own_lines() {
    let deep = format!("{{\"url\":\"http://h/\",\"text\":\"t\",\"z\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let many: String = (0..2000).map(|number| good(number) + "\n").collect();
    let cut = gzip(many.as_bytes());
    let kept = 1900;
    type Case = (&'static str, &'static str, Vec<u8>, usize, Option<(&'static str, usize)>);
    let cases: Vec<Case> = vec![
        ("120", "x.jsonl", with(b"{\"url\":\"http://h/\",\"text\":\"\xff\xfe\"}"), 4, Some(("not_utf8", 1))),
        ("121", "x.jsonl", with(&good(5).as_bytes()[..40]), 4, Some(("bad_json", 1))),
        ("122", "x.jsonl", with(b""), 4, None),
        ("123", "x.jsonl", with(b"[1,2]"), 4, Some(("bad_json", 1))),
        ("124", "x.jsonl", with(b"{\"url\":\"http://h/\"}"), 4, Some(("bad_field", 1))),
        ("125", "x.jsonl", with(b"{\"url\":\"http://h/\",\"text\":7}"), 4, Some(("bad_field", 1))),
        ("126", "x.jsonl", with(b"{\"url\":\"a\",\"url\":\"http://h/\",\"text\":\"t\"}"), 5, None),
        ("127", "x.jsonl", with(deep.as_bytes()), 4, Some(("bad_json", 1))),
        ("128", "x.jsonl", with(b"{\"url\":\"http://h/\",\"text\":\"\\ud800\"}"), 4, Some(("bad_json", 1))),
        ("129", "x.jsonl", with(format!("\u{feff}{}", good(5)).as_bytes()), 5, None),
        ("130", "x.jsonl", (good_lines("\r\n") + "\r\n").into_bytes(), 3, None),
        ("131", "x.jsonl", good_lines("\n").into_bytes(), 3, None),
        ("132", "x.jsonl", b"no json here\n".repeat(50), 0, Some(("bad_json", 50))),
        ("134", "x.jsonl.gz", cut[..cut.len() - 20].to_vec(), kept, Some(("truncated", 1))),
        ("empty", "x.jsonl", Vec::new(), 0, None),
    ];
    for (id, name, bytes, pages, refused) in cases {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(name);
        std::fs::write(&file, bytes).unwrap();
        let inputs = [file.to_str().unwrap().to_string()];
        let whole = read(&inputs, 8 << 20).unwrap();
        assert_eq!(read(&inputs, 50).unwrap(), whole, "{id}: pieces change nothing");
        let refused: BTreeMap<&str, usize> = refused.into_iter().collect();
        assert_eq!(whole.refused, refused, "{id}");
        match id {
            "134" => assert!((pages..=2000).contains(&whole.pages), "{id}: {}", whole.pages),
            _ => assert_eq!(whole.pages, pages, "{id}"),
        }
    }
}

#[test]
fn unreadable_inputs_are_rejected_completely_and_by_name() {
    let utf16: Vec<u8> =
        [0xfeff].into_iter().chain(good_lines("\n").encode_utf16()).flat_map(u16::to_le_bytes).collect();
    let footer =
        |body: Vec<u8>, length: u32| [b"PAR1".to_vec(), body, length.to_le_bytes().to_vec(), b"PAR1".to_vec()].concat();
    let cases: Vec<(&str, &str, Vec<u8>, &str)> = vec![
        ("10", "x.warc.gz", gzip(&gzip(b"WARC/1.0\r\n")), "compressed twice"),
        ("13", "x.warc.gz", b"<!doctype html><title>404</title>".to_vec(), "not_warc"),
        ("14", "x.warc.gz", b"version https://git-lfs.github.com/spec/v1\n".to_vec(), "git lfs pull"),
        ("133", "x.jsonl", utf16, "not_utf8"),
        ("140", "x.parquet", [b"PAR1".to_vec(), vec![0; 500]].concat(), "bad_parquet"),
        ("141", "x.parquet", footer(vec![0; 100], 0xffff_fff0), "bad_parquet"),
        ("142", "x.parquet", Vec::new(), "bad_parquet"),
        ("143", "x.parquet", b"PAR1".to_vec(), "bad_parquet"),
        ("144", "x.parquet", footer(vec![0x7f; 300], 200), "bad_parquet"),
    ];
    for (id, name, bytes, words) in cases {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(name);
        std::fs::write(&file, bytes).unwrap();
        let error = read(&[file.to_str().unwrap().to_string()], 8 << 20).unwrap_err();
        assert_eq!(error.exit_code(), 3, "{id}: {error}");
        let message = error.to_string();
        assert!(message.contains(words) && message.contains(name), "{id}: {message}");
    }
}

#[test]
fn inputs_161_to_166_are_read_correctly_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    for (id, input) in [
        ("161 vanished", path("gone.jsonl")),
        ("163 empty glob", path("*.jsonl")),
        ("163 empty list", {
            std::fs::write(path("list"), "# nothing\n\n").unwrap();
            format!("@{}", path("list"))
        }),
    ] {
        let error = read(std::slice::from_ref(&input), 8 << 20).unwrap_err();
        assert_eq!(error.exit_code(), 3, "{id}");
        assert!(error.to_string().contains(&input), "{id}: {error}");
    }

    // 165: characters with a meaning in URLs, globs or shells have no special meaning in file
    // names.
    for (at, name) in ["a b", "a%2Fb", "a#b", "a\nb", "a?b", "[a]", "*"].iter().enumerate() {
        std::fs::create_dir_all(path("odd")).unwrap();
        std::fs::write(path(&format!("odd/{name}.jsonl")), good(at) + "\n").unwrap();
        assert_eq!(read(&[path(&format!("odd/{name}.jsonl"))], 8 << 20).unwrap().pages, 1, "165 {name:?}");
    }
    assert_eq!(read(&[path("odd")], 8 << 20).unwrap().pages, 7);

    // 166: links that form a loop.
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(path("odd"), path("odd/loop")).unwrap();
        assert_eq!(read(&[path("odd")], 8 << 20).unwrap().pages, 7, "166");
    }
}

/// Bad-input id 162: a file that is shorter than when it was planned, such as one that is being
/// uploaded or was cut off.
#[test]
fn a_file_that_shrinks_after_it_was_planned_is_named_162() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.jsonl");
    std::fs::write(&file, good_lines("\n")).unwrap();
    let input = input(&[file.to_str().unwrap().to_string()]);
    let work = WorkList::plan(&input, 8 << 20).unwrap();
    std::fs::write(&file, good(0)).unwrap();
    let error = work.read(&work.items[0], &input, &mut |_| Ok(())).unwrap_err();
    assert_eq!(error.exit_code(), 3);
    assert!(error.to_string().contains("x.jsonl"), "{error}");
}

/// Bad-input id 164: a hundred thousand files.
#[test]
fn a_hundred_thousand_files_are_found_in_order_164() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..100_000u32 {
        let path = folder.path().join(format!("{:03}", number / 1000));
        if number % 1000 == 0 {
            std::fs::create_dir(&path).unwrap();
        }
        std::fs::write(path.join(format!("{number:06}.html")), "").unwrap();
    }
    let locations = Location::parse(folder.path().to_str().unwrap()).unwrap().list(None).unwrap();
    assert_eq!(locations.len(), 100_000);
    assert!(locations.windows(2).all(|pair| pair[0].location < pair[1].location));
}
