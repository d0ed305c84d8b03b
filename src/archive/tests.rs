use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::ops::Range;
use std::path::Path;

use proptest::prelude::*;
use sha1::{Digest as _, Sha1};

use super::pack::Packer;
use super::*;
use webtwin_base::read_at::Bytes;
use webtwin_job::RecordLimits;
use webtwin_pages::warc::RecordCompression;
use webtwin_pages::warc::stored::{ByteReceiver, StoredRecord, StoredRecords, TRAILER, Visitor, values};

/// Content of a file: decompressed records, and other bytes unchanged.
#[derive(Default)]
struct Content {
    file: Vec<u8>,
    record: Vec<u8>,
    /// True for a record, and the bytes.
    parts: Vec<(bool, Vec<u8>)>,
}

impl Content {
    fn of(file: &[u8]) -> Vec<(bool, Vec<u8>)> {
        let mut content = Content { file: file.to_vec(), ..Content::default() };
        let bytes = Bytes(file.to_vec());
        StoredRecords::open(&bytes, &RecordLimits::default()).unwrap().unwrap().visit(&mut content).unwrap();
        content.parts
    }
}

impl ByteReceiver for Content {
    fn heads(&mut self, head: &[u8], http: &[u8]) {
        self.record = [head, http].concat();
    }

    fn payload(&mut self, bytes: &[u8]) {
        self.record.extend_from_slice(bytes);
    }
}

impl Visitor for Content {
    fn record(&mut self, _: StoredRecord) -> Result<()> {
        self.parts.push((true, self.record.clone()));
        Ok(())
    }

    fn receive_other(&mut self, range: Range<u64>) -> Result<()> {
        self.parts.push((false, self.file[range.start as usize..range.end as usize].to_vec()));
        Ok(())
    }
}

fn settings(input: &Path, output: &Path, workers: usize, memory_bytes: u64) -> ArchiveSettings {
    let text = |path: &Path| path.to_str().unwrap().to_string();
    let effort = ArchiveEffort { workers, memory_bytes, spill: std::env::temp_dir() };
    ArchiveSettings {
        inputs: vec![text(input)],
        against: Vec::new(),
        output: text(output),
        near: None,
        cdxj: false,
        effort,
    }
}

fn archived(input: &Path, output: &Path) -> ArchiveSummary {
    archive(&settings(input, output, 2, 1 << 30), &|_| ()).unwrap()
}

fn restore_into(archive: &Path, output: &Path) -> Result<RestoreReport> {
    restored_with(archive, &[], output)
}

fn restored_with(archive: &Path, older_archives: &[&Path], output: &Path) -> Result<RestoreReport> {
    let older_archives: Vec<String> = older_archives.iter().map(|path| path.to_str().unwrap().to_string()).collect();
    let effort = ArchiveEffort { workers: 2, memory_bytes: 1 << 30, spill: std::env::temp_dir() };
    restore(archive.to_str().unwrap(), &older_archives, output.to_str().unwrap(), &effort, &|_| ())
}

/// Returns the WARC files below a folder, by name.
fn warcs(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let name_and_bytes = |path: std::path::PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap().to_string();
        (name.contains(".warc"), name, path)
    };
    entries
        .map(name_and_bytes)
        .filter(|entry| entry.0)
        .map(|(_, name, path)| (name, std::fs::read(path).unwrap()))
        .collect()
}

fn sha1(bytes: &[u8]) -> String {
    format!("sha1:{}", data_encoding::BASE32.encode(&Sha1::digest(bytes)))
}

/// Returns a record in the form that crawlers write. `fields` are further lines of its head.
fn record(kind: &str, (number, uri, second): (usize, &str, u32), fields: &str, block: &[u8]) -> Vec<u8> {
    let media = if kind == "resource" { "text/html" } else { "application/http; msgtype=response" };
    let head = format!(
        "WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:{number:08x}>\r\nWARC-Target-URI: {uri}\r\n\
         WARC-Date: 2026-01-01T00:00:{second:02}Z\r\n{fields}Content-Type: {media}\r\nContent-Length: {}\r\n\r\n",
        block.len()
    );
    [head.as_bytes(), block, TRAILER].concat()
}

fn response(payload: &[u8]) -> Vec<u8> {
    [b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", payload].concat()
}

/// Returns incompressible bytes.
fn noise(seed: usize, length: usize) -> Vec<u8> {
    let mut state = seed as u64 + 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..length).map(|_| next()).collect()
}

fn write_warc(folder: &Path, name: &str, records: &[Vec<u8>]) {
    let compression = match name {
        name if name.ends_with(".gz") => RecordCompression::Gzip,
        name if name.ends_with(".zst") => RecordCompression::Zstd,
        _ => RecordCompression::Plain,
    };
    let mut packer = Packer::new(compression, None).unwrap();
    let members: Vec<Vec<u8>> = records.iter().map(|record| packer.pack(&[record]).unwrap()).collect();
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join(name), members.concat()).unwrap();
}

#[test]
fn copy_becomes_a_revisit_of_the_earliest_record_and_is_restored() {
    let folder = tempfile::tempdir().unwrap();
    let [input, archive, restored_folder] = ["in", "out", "back"].map(|name| folder.path().join(name));
    let payload = noise(1, 2000);
    let digest = format!("WARC-Payload-Digest: {}\r\n", sha1(&payload));
    let late_record = record("response", (1, "http://a/late", 30), "X-odd:  kept \r\n", &response(&payload));
    let early_record = record("response", (2, "http://a/early", 10), &digest, &response(&payload));
    write_warc(&input, "x.warc.gz", std::slice::from_ref(&late_record));
    write_warc(&input, "y.warc.gz", std::slice::from_ref(&early_record));
    let summary = archived(&input, &archive);
    assert_eq!(summary.records, ArchiveCounts { read: 2, copied: 1, revisits: 1, near: 0 });
    assert!(summary.bytes_out + 1500 < summary.bytes_in);

    let files = warcs(&archive);
    assert_eq!(files["y.warc.gz"], warcs(&input)["y.warc.gz"]);
    let [(true, revisit)] = &Content::of(&files["x.warc.gz"])[..] else { panic!("one record") };
    let field = |name: &str| values(revisit, name).concat();
    assert_eq!(field("WARC-Type"), "revisit");
    assert_eq!(field("WARC-Profile"), "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest");
    assert_eq!(field("WARC-Refers-To"), "<urn:uuid:00000002>");
    assert_eq!(field("WARC-Refers-To-Target-URI"), "http://a/early");
    assert_eq!(field("WARC-Refers-To-Date"), "2026-01-01T00:00:10Z");
    assert_eq!(field("WARC-Payload-Digest"), sha1(&payload));
    assert_eq!(field("WARC-Block-Digest"), sha1(&response(b"")));
    assert_eq!(field("WARC-Truncated"), "length");
    assert_eq!(field("WARC-Record-ID"), "<urn:uuid:00000001>");
    assert!(revisit.ends_with(&response(b"")));

    let message = restore_into(&archive, &restored_folder).unwrap();
    assert_eq!((message.records, message.restored, message.same_files), (2, 1, 1));
    assert_eq!(
        Content::of(&warcs(&restored_folder)["x.warc.gz"]),
        [(true, late_record[..late_record.len() - 4].to_vec())]
    );
    assert_eq!(warcs(&restored_folder)["y.warc.gz"], warcs(&input)["y.warc.gz"]);
}

#[test]
fn payloads_that_may_differ_are_kept() {
    let payload = noise(2, 3000);
    let chunked_response = [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", &payload[..]].concat();
    let base = (1, "http://a/1", 1);
    let first = record("response", base, "", &response(&payload));
    for (case, other_record) in [
        ("another transfer encoding", record("response", (2, "http://a/2", 2), "", &chunked_response)),
        ("a resource", record("resource", (2, "http://a/2", 2), "", &payload)),
        ("a part", record("response", (2, "http://a/2", 2), "WARC-Truncated: time\r\n", &response(&payload))),
        ("a segment", record("response", (2, "http://a/2", 2), "WARC-Segment-Number: 1\r\n", &response(&payload))),
        (
            "two targets",
            record("response", (2, "http://a/2", 2), "WARC-Target-URI: http://b/\r\n", &response(&payload)),
        ),
        ("a folded line", record("response", (2, "http://a/2", 2), "A: b\r\n c\r\n", &response(&payload))),
        ("no HTTP head", record("response", (2, "http://a/2", 2), "", &payload)),
        ("another kind", record("request", (2, "http://a/2", 2), "", &response(&payload))),
        ("other bytes", record("response", (2, "http://a/2", 2), "", &response(&noise(3, 3000)))),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let [input, archive] = ["in", "out"].map(|name| folder.path().join(name));
        write_warc(&input, "x.warc", &[first.clone(), other_record]);
        let summary = archived(&input, &archive);
        assert_eq!(summary.records, ArchiveCounts { read: 2, copied: 2, revisits: 0, near: 0 }, "{case}");
        assert_eq!(warcs(&archive), warcs(&input), "{case}");
    }
}

#[test]
fn originals_of_revisits_in_the_input_are_kept() {
    let payload = noise(4, 3000);
    let copy =
        |number, uri: &str, second, more: &str| record("response", (number, uri, second), more, &response(&payload));
    let digest = format!("WARC-Payload-Digest: {}\r\n", sha1(&payload));
    for (case, lines) in [
        ("by id", "WARC-Refers-To: <urn:uuid:00000002>\r\n".to_string()),
        (
            "by target and date",
            "WARC-Refers-To-Target-URI: http://a/2\r\nWARC-Refers-To-Date: 2026-01-01T00:00:02Z\r\n".to_string(),
        ),
        ("by digest", digest.clone()),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let [input, archive] = ["in", "out"].map(|name| folder.path().join(name));
        let revisit = record("revisit", (9, "http://a/2", 9), &lines, b"HTTP/1.1 200 OK\r\n\r\n");
        let copies =
            [copy(1, "http://a/1", 1, &digest), copy(2, "http://a/2", 2, &digest), copy(3, "http://a/3", 3, "")];
        write_warc(&input, "x.warc.zst", &[&copies[..], &[revisit]].concat());
        let summary = archived(&input, &archive);
        assert_eq!((summary.records.revisits, summary.kept_referred), (1, 1), "{case}");
        let (content_before, content_after) =
            (Content::of(&warcs(&input)["x.warc.zst"]), Content::of(&warcs(&archive)["x.warc.zst"]));
        assert_eq!((&content_before[..2], &content_before[3]), (&content_after[..2], &content_after[3]), "{case}");
    }
}

#[test]
fn an_archive_is_not_archived_again_and_a_damaged_one_is_not_restored() {
    let folder = tempfile::tempdir().unwrap();
    let [input, archive_folder, second_archive] = ["in", "out", "again"].map(|name| folder.path().join(name));
    let block = response(&noise(5, 3000));
    let records = [1, 2].map(|n| record("response", (n, "http://a/", n as u32), "", &block));
    write_warc(&input, "x.warc.gz", &records[..1]);
    write_warc(&input, "y.warc.gz", &records[1..]);
    archived(&input, &archive_folder);
    let refused = archive(&settings(&archive_folder, &second_archive, 1, 0), &|_| ()).unwrap_err();
    assert_eq!(
        (refused.exit_code(), refused.to_string().contains("restore that archive first")),
        (3, true),
        "{refused}"
    );
    assert_eq!(archive(&settings(&input, &archive_folder, 1, 0), &|_| ()).unwrap_err().exit_code(), 4);
    assert_eq!(restore_into(&input, &second_archive).unwrap_err().exit_code(), 3);

    // The payload is removed, but the length of its file stays the same.
    let mut other_bytes = noise(6, std::fs::metadata(archive_folder.join("x.warc.gz")).unwrap().len() as usize);
    other_bytes[..3].copy_from_slice(b"\x1f\x8b\x08");
    let archive_bytes = std::fs::read(archive_folder.join("x.warc.gz")).unwrap();
    std::fs::write(archive_folder.join("x.warc.gz"), other_bytes).unwrap();
    let refused = restore_into(&archive_folder, &second_archive).unwrap_err();
    assert_eq!(refused.exit_code(), 3, "{refused}");
    std::fs::write(archive_folder.join("x.warc.gz"), archive_bytes).unwrap();
    restore_into(&archive_folder, &second_archive).unwrap();
}

/// Part of a generated file: its type, its payload, and the second of its capture.
type Part = (usize, usize, u32);

/// Returns a strategy for generated files: the compression of each, and its parts.
fn files() -> impl Strategy<Value = Vec<(usize, Vec<Part>)>> {
    let part = (0usize..12, 0usize..4, 0u32..4);
    prop::collection::vec((0usize..3, prop::collection::vec(part, 0..8)), 1..5)
}

/// Writes generated files and returns the names of those with damage. Returns `None` if a file
/// begins with damage that is followed by nothing but records, and so is not a WARC file.
fn write_input(input: &Path, files: &[(usize, Vec<Part>)]) -> Option<BTreeSet<String>> {
    let mut number = 0;
    let mut damaged_files = BTreeSet::new();
    for (file_number, (compression, parts)) in files.iter().enumerate() {
        let name = format!("{file_number}.warc{}", ["", ".gz", ".zst"][*compression]);
        let mut bytes = Vec::new();
        for &(part_kind, seed, second) in parts {
            number += 1;
            let payload = noise(seed, [0, 40, 900, 5000][seed]);
            let uri = format!("http://a/{}", number % 7);
            let place = (number % 20, &uri[..], second);
            let digest = format!("WARC-Payload-Digest: {}\r\n", sha1(&payload));
            let record_bytes = match part_kind {
                0..5 => record("response", place, "", &response(&payload)),
                5 => record("response", place, &digest, &response(&payload)),
                6 => record("resource", place, "", &payload),
                7 => record("request", place, "", b"GET / HTTP/1.1\r\n\r\n"),
                8 => record("revisit", place, &digest, b"HTTP/1.1 200 OK\r\n\r\n"),
                9 => record("metadata", place, "", b"a: b"),
                10 => record("response", place, "", &response(&payload)).replace_first(b"Length: ", b"Length: 1"),
                _ => [record("response", place, "", &response(&payload)), b"junk".to_vec()].concat(),
            };
            if part_kind >= 10 {
                damaged_files.insert(name.clone());
            }
            write_warc(input, &format!("part.{name}"), &[record_bytes]);
            bytes.extend(std::fs::read(input.join(format!("part.{name}"))).unwrap());
            std::fs::remove_file(input.join(format!("part.{name}"))).unwrap();
        }
        std::fs::create_dir_all(input).unwrap();
        std::fs::write(input.join(&name), bytes).unwrap();
    }
    let is_warc =
        |bytes: &Vec<u8>| StoredRecords::open(&Bytes(bytes.clone()), &RecordLimits::default()).unwrap().is_some();
    warcs(input).values().all(is_warc).then_some(damaged_files)
}

fn sum(counts: &ArchiveCounts) -> u64 {
    counts.copied + counts.revisits + counts.near
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn every_record_is_restored_with_any_threads_and_memory(files in files()) {
        let folder = tempfile::tempdir().unwrap();
        let [input, out, back] = ["in", "out", "back"].map(|name| folder.path().join(name));
        let damaged = write_input(&input, &files);
        prop_assume!(damaged.is_some());
        let damaged = damaged.unwrap_or_default();

        let summary = archived(&input, &out);
        prop_assert_eq!(summary.records.read, sum(&summary.records));
        prop_assert_eq!((summary.bytes_in, summary.bytes_in), (summary.bytes.read, sum(&summary.bytes)));
        for (workers, memory) in [(1, 1 << 30), (3, 0)] {
            let other = folder.path().join(format!("out-{workers}"));
            let same = archive(&settings(&input, &other, workers, memory), &|_| ()).unwrap();
            prop_assert!(warcs(&other) == warcs(&out) && same == summary);
        }
        let message = restore_into(&out, &back).unwrap();
        prop_assert_eq!((message.records, message.restored), (summary.records.read, summary.records.revisits));
        let (before, now, after) = (warcs(&input), warcs(&out), warcs(&back));
        prop_assert_eq!(before.len(), after.len());
        for (name, bytes) in &before {
            prop_assert!(Content::of(bytes) == Content::of(&after[name]), "{}", name);
            let file = summary.files.iter().find(|file| file.path == *name).unwrap();
            if file.records.revisits == 0 {
                prop_assert!(bytes == &after[name] && bytes == &now[name]);
            }
            if name.ends_with(".gz") && !damaged.contains(name) && !bytes.is_empty() {
                let mut whole = Vec::new();
                flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_end(&mut whole).unwrap();
                let digest = data_encoding::HEXLOWER.encode(&sha2::Sha256::digest(&whole));
                prop_assert_eq!(&digest, &file.sha256);
            }
        }
        references_lead_to_payloads(&now, &BTreeMap::new());
    }

    #[test]
    fn incremental_archive_is_restored_together_with_the_older_one(older in files(), newer in files(), is_archive: bool) {
        let folder = tempfile::tempdir().unwrap();
        let [older_in, older_out, input, out, back] =
            ["older-in", "older-out", "in", "out", "back"].map(|name| folder.path().join(name));
        prop_assume!(write_input(&older_in, &older).is_some() && write_input(&input, &newer).is_some());
        archived(&older_in, &older_out);
        let older = if is_archive { &older_out } else { &older_in };
        let against = vec![older.to_str().unwrap().to_string()];
        let settings = |output: &Path, workers, memory| {
            ArchiveSettings { against: against.clone(), ..settings(&input, output, workers, memory) }
        };
        let summary = archive(&settings(&out, 2, 1 << 30), &|_| ()).unwrap();
        prop_assert_eq!(summary.records.read, sum(&summary.records));
        prop_assert_eq!((summary.bytes_in, summary.bytes_in), (summary.bytes.read, sum(&summary.bytes)));
        prop_assert!(summary.against <= summary.records.revisits);
        let other = folder.path().join("other");
        let same = archive(&settings(&other, 1, 0), &|_| ()).unwrap();
        prop_assert!(warcs(&other) == warcs(&out) && same == summary);

        // In either form of the older archive.
        for (number, older) in [&older_in, &older_out].into_iter().enumerate() {
            let back = back.join(number.to_string());
            let message = restored_with(&out, &[older], &back).unwrap();
            prop_assert_eq!((message.records, message.restored), (summary.records.read, summary.records.revisits));
            for (name, bytes) in warcs(&input) {
                prop_assert!(Content::of(&bytes) == Content::of(&warcs(&back)[&name]), "{}", name);
            }
        }
        references_lead_to_payloads(&warcs(&out), &warcs(older));
    }
}

#[test]
fn payloads_of_an_older_archive_are_not_stored_again_at_any_date() {
    let folder = tempfile::tempdir().unwrap();
    let [first_in, first, second_in, second, third_in, third_archive, restored_folder] =
        ["1-in", "1", "2-in", "2", "3-in", "3", "back"].map(|name| folder.path().join(name));
    let (payload_a, payload_b) = (response(&noise(1, 2000)), response(&noise(2, 2000)));
    let record_at = |number: usize, second, block: &[u8]| record("response", (number, "http://a/", second), "", block);
    write_warc(&first_in, "x.warc.gz", &[record_at(1, 50, &payload_a)]);
    write_warc(&second_in, "x.warc.gz", &[record_at(2, 10, &payload_a), record_at(3, 11, &payload_b)]);
    write_warc(
        &third_in,
        "x.warc.gz",
        &[record_at(4, 20, &payload_a), record_at(5, 21, &payload_b), record_at(6, 22, &payload_b)],
    );
    archived(&first_in, &first);
    // A file cannot refer to itself, under any name.
    let same_file = first_in.join("../1-in/x.warc.gz");
    let against_itself = ArchiveSettings {
        against: vec![same_file.to_str().unwrap().to_string()],
        ..settings(&first_in, &restored_folder, 2, 1 << 30)
    };
    let refused = archive(&against_itself, &|_| ()).unwrap_err();
    assert_eq!((refused.exit_code(), refused.to_string().contains("--against")), (2, true), "{refused}");
    let archive_against = |input: &Path, output: &Path, older_archives: &[&Path]| {
        let older_names = older_archives.iter().map(|path| path.to_str().unwrap().to_string()).collect();
        let summary =
            archive(&ArchiveSettings { against: older_names, ..settings(input, output, 2, 1 << 30) }, &|_| ()).unwrap();
        (summary.records.revisits, summary.against)
    };
    assert_eq!(archive_against(&second_in, &second, &[&first]), (1, 1));
    let [(_, revisit), _] = &Content::of(&warcs(&second)["x.warc.gz"])[..] else { panic!("two records") };
    assert_eq!(values(revisit, "WARC-Refers-To-Date"), ["2026-01-01T00:00:50Z"]);
    assert_eq!(values(revisit, "WARC-Refers-To"), ["<urn:uuid:00000001>"]);
    let refused = restore_into(&second, &restored_folder).unwrap_err();
    assert_eq!((refused.exit_code(), refused.to_string().contains("--against")), (3, true), "{refused}");
    assert!(refused.to_string().contains(first.to_str().unwrap()), "{refused}");
    assert_eq!(restored_with(&second, &[&second], &restored_folder).unwrap_err().exit_code(), 3);
    assert_eq!(restored_with(&second, &[&folder.path().join("none")], &restored_folder).unwrap_err().exit_code(), 3);
    assert_eq!(restored_with(&second, &[&first], &restored_folder).unwrap().restored, 1);

    // A revisit in an older archive holds no payload itself.
    assert_eq!(archive_against(&third_in, &third_archive, &[&second]), (2, 2));
    std::fs::remove_dir_all(&third_archive).unwrap();
    assert_eq!(archive_against(&third_in, &third_archive, &[&second, &first]), (3, 3));
    std::fs::remove_dir_all(&restored_folder).unwrap();
    restored_with(&third_archive, &[&first, &second], &restored_folder).unwrap();
    assert_eq!(Content::of(&warcs(&restored_folder)["x.warc.gz"]), Content::of(&warcs(&third_in)["x.warc.gz"]));
    std::fs::remove_dir_all(&restored_folder).unwrap();
    std::fs::remove_file(first.join("x.warc.gz")).unwrap();
    assert!(
        restored_with(&third_archive, &[&first, &second], &restored_folder)
            .unwrap_err()
            .to_string()
            .contains("missing")
    );
}

trait ReplaceFirst {
    fn replace_first(self, pattern: &[u8], replacement: &[u8]) -> Vec<u8>;
}

impl ReplaceFirst for Vec<u8> {
    fn replace_first(self, pattern: &[u8], replacement: &[u8]) -> Vec<u8> {
        let position = self.windows(pattern.len()).position(|window| window == pattern).unwrap();
        [&self[..position], replacement, &self[position + pattern.len()..]].concat()
    }
}

/// Asserts that every written revisit names, by target and date, records that are not revisits and
/// have the same payload; without older files, records that were not captured later. If it names an
/// id, exactly one record has it.
fn references_lead_to_payloads(files: &BTreeMap<String, Vec<u8>>, older_archives: &BTreeMap<String, Vec<u8>>) {
    let payloads_of = |files: &BTreeMap<String, Vec<u8>>| -> Vec<Vec<u8>> {
        files.values().flat_map(|file| Content::of(file)).filter(|part| part.0).map(|part| part.1).collect()
    };
    let news = payloads_of(files);
    let records = [&news[..], &payloads_of(older_archives)].concat();
    let field = |record: &[u8], name: &str| values(record, name).concat();
    let payload = |record: &[u8]| {
        let heads = if field(record, "WARC-Type") == "response" { 2 } else { 1 };
        (0..heads).fold(record.to_vec(), |rest, _| {
            let end = rest.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
            rest[end + 4..].to_vec()
        })
    };
    for revisit in news.iter().filter(|record| !field(record, "Webtwin-Payload").is_empty()) {
        let date = field(revisit, "WARC-Refers-To-Date");
        assert!(date <= field(revisit, "WARC-Date") || !older_archives.is_empty());
        let is_referred = |record: &&Vec<u8>| {
            ["response", "resource"].contains(&&field(record, "WARC-Type")[..])
                && field(record, "WARC-Target-URI") == field(revisit, "WARC-Refers-To-Target-URI")
                && field(record, "WARC-Date") == date
        };
        let payloads: BTreeSet<Vec<u8>> = records.iter().filter(is_referred).map(|record| payload(record)).collect();
        let digest = |payload: &Vec<u8>| data_encoding::HEXLOWER.encode(&sha2::Sha256::digest(payload));
        let digests: Vec<String> = payloads.iter().map(|payload| format!("sha256:{}", digest(payload))).collect();
        assert_eq!(digests, [field(revisit, "Webtwin-Payload")]);
        let id = field(revisit, "WARC-Refers-To");
        let with_id: Vec<&Vec<u8>> =
            records.iter().filter(|record| field(record, "WARC-Record-ID") == id && !id.is_empty()).collect();
        assert!(id.is_empty() || with_id.len() == 1 && is_referred(&with_id[0]), "{id}");
    }
}

#[test]
fn names_of_several_records_are_not_written_into_a_reference() {
    let (payload_a, payload_b) = (noise(7, 3000), noise(8, 3000));
    let record_at =
        |number, uri: &str, second, payload: &[u8]| record("response", (number, uri, second), "", &response(payload));
    // Targets, seconds and payloads of records with one id, with the number of revisits and of
    // copies that stay for lack of a name.
    let copies = [("1", 1, &payload_a), ("2", 2, &payload_b), ("3", 3, &payload_a), ("4", 4, &payload_b)];
    let twice_named =
        [("1", 1, &payload_a), ("1", 1, &payload_b), ("2", 2, &payload_a), ("3", 3, &payload_a), ("4", 4, &payload_b)];
    let same_named = [("1", 1, &payload_a), ("1", 1, &payload_b), ("1", 1, &payload_a)];
    for (records, revisits, n_kept) in [(&copies[..], 2, 0), (&twice_named, 1, 2), (&same_named, 0, 1)] {
        let folder = tempfile::tempdir().unwrap();
        let [input, archive, restored_folder] = ["in", "out", "back"].map(|name| folder.path().join(name));
        let copy_of =
            |&(uri, second, payload): &(&str, u32, &Vec<u8>)| record_at(5, &format!("http://a/{uri}"), second, payload);
        write_warc(&input, "x.warc.gz", &records.iter().map(copy_of).collect::<Vec<_>>());
        let summary = archived(&input, &archive);
        assert_eq!((summary.records.revisits, summary.kept_ambiguous), (revisits, n_kept), "{records:?}");
        let files = warcs(&archive);
        assert!(Content::of(&files["x.warc.gz"]).iter().all(|(_, bytes)| values(bytes, "WARC-Refers-To").is_empty()));
        references_lead_to_payloads(&files, &BTreeMap::new());
        restore_into(&archive, &restored_folder).unwrap();
        assert_eq!(Content::of(&warcs(&restored_folder)["x.warc.gz"]), Content::of(&warcs(&input)["x.warc.gz"]));
    }
}
