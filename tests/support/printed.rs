use std::path::Path;

use super::program::{rows, stderr_text, webtwin};
use crate::bad_warc::build::{Record, gzip, http_with};

/// Returns lines of a made-up text. The lines in `other` differ from those of the same seed.
pub(crate) fn text(seed: usize, count: usize, other: &[usize]) -> Vec<String> {
    let line = |number: usize| {
        let seed = if other.contains(&number) { seed + 1000 } else { seed };
        (0..7).map(|k| format!("word{} ", (seed * 31 + number * 57 + k * k * 13) % 4999)).collect()
    };
    (0..count).map(line).collect()
}

pub(crate) fn response(host: &str, name: &str, media: &str, body: &[u8]) -> Vec<u8> {
    let payload = http_with("HTTP/1.1 200 OK", &format!("Content-Type: {media}\r\n"), body);
    let record = Record { uri: Some(format!("http://{host}.example/{name}")), ..Record::with("", payload) };
    gzip(&record.bytes())
}

/// Runs over documents of host `h`. Returns the URLs of pages, the reasons of rejections, and the
/// messages.
pub(crate) fn run(
    folder: &Path,
    documents: &[(&str, &str, Vec<u8>)],
    settings: &[&str],
) -> (String, Vec<String>, String) {
    let records: Vec<u8> = documents.iter().flat_map(|(name, media, body)| response("h", name, media, body)).collect();
    let input = folder.join("in.warc.gz");
    std::fs::write(&input, records).unwrap();
    let output = folder.join("out").to_str().unwrap().to_string();
    let sets: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    let arguments = [&["run", "--input", input.to_str().unwrap(), "--output", &output], &sets[..]].concat();
    let ended = webtwin(&arguments).output().unwrap();
    assert!(ended.status.success(), "{}", stderr_text(&ended));
    let mut rejected = rows(&output, "rejected");
    rejected.sort_by_key(|row| row["offset"].as_u64());
    let reasons = rejected.iter().map(|row| row["reason"].as_str().unwrap().to_string()).collect();
    (output, reasons, stderr_text(&ended))
}
