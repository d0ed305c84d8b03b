use std::io::{Cursor, Read, Write};

use zip::CompressionMethod;
use zip::write::{SimpleFileOptions, ZipWriter};

use crate::bad_warc::build::gzip;
use crate::crawl_folders::{records, wget_crawl};
use crate::support::program::{assert_same_on_any_workers, fail, rows, stderr_text, succeed, webtwin};

/// Returns a zip archive of the given files, stored without compression.
pub(crate) fn zipped(files: &[(&str, &[u8])]) -> Vec<u8> {
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        zip.start_file(*name, stored).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// Returns one xz stream.
pub(crate) fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    liblzma::read::XzEncoder::new(bytes, 6).read_to_end(&mut packed).unwrap();
    packed
}

/// Returns one bzip2 stream.
pub(crate) fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    bzip2::read::BzEncoder::new(bytes, bzip2::Compression::default()).read_to_end(&mut packed).unwrap();
    packed
}

/// Packs a crawl into a WACZ file as Browsertrix does.
fn wacz(archives: &[(&str, &[u8])]) -> Vec<u8> {
    let mut entries = archives.to_vec();
    entries.push(("indexes/index.cdx.gz", b"\x1f\x8b"));
    entries.push(("pages/pages.jsonl", b"{\"format\":\"json-pages-1.0\"}\n{\"url\":\"http://h.example/a\"}\n"));
    entries.push(("datapackage.json", b"{\"profile\":\"data-package\"}"));
    zipped(&entries)
}

#[test]
fn wacz_yields_the_pages_of_its_warc_files_in_ranges_of_any_size_and_explains_them() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let names = |letter: &str, count: usize| (0..count).map(|page| format!("{letter}{page}")).collect::<Vec<_>>();
    let crawl = |names: &[String]| wget_crawl(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let (first, second) = (crawl(&names("a", 300)), crawl(&names("b", 200)));
    // Both files consist of more than one range.
    assert!(first.len().min(second.len()) > 64 << 10);
    let packed = wacz(&[("archive/1.warc.gz", &first), ("archive/2.warc.gz", &second)]);
    std::fs::write(at("crawl.wacz"), packed).unwrap();
    let run = ["run", "--input", &at("crawl.wacz"), "--set", "effort.shard_bytes=65536"];
    let (out, _) = assert_same_on_any_workers(folder.path(), "out", &run);
    assert_eq!(records(&out), (500, serde_json::json!({ "not_a_page_record": 2 + 500 + 6 })));
    for row in rows(&out, "pages") {
        let (url, offset) = (row["url"].as_str().unwrap(), row["offset"].as_u64().unwrap() as usize);
        let (name, archive) = if url < "http://h.example/b" { ("1", &first) } else { ("2", &second) };
        assert_eq!(row["source"], format!("{}!/archive/{name}.warc.gz", at("crawl.wacz")));
        assert_eq!(archive[offset..][..2], [0x1f, 0x8b]);
    }
    let explained = succeed(&["explain", &out, "http://h.example/a7", "http://h.example/b9"]);
    assert!(explained.contains("http://h.example/b9"), "{explained}");
}

#[test]
fn wacz_next_to_its_own_files_is_skipped_and_another_one_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let (first, second) = (wget_crawl(&["a", "b"]), wget_crawl(&["c"]));
    std::fs::create_dir_all(at("crawl/archive")).unwrap();
    std::fs::write(at("crawl/archive/1.warc.gz"), &first).unwrap();
    std::fs::write(at("crawl/1.wacz"), wacz(&[("archive/1.warc.gz", &first)])).unwrap();
    std::fs::write(at("crawl/2.wacz"), wacz(&[("archive/2.warc.gz", &second)])).unwrap();
    let output = webtwin(&["run", "--input", &at("crawl/"), "--output", &at("out")]).output().unwrap();
    assert!(
        stderr_text(&output).contains("1.wacz: a zip archive of WARC files that are also read"),
        "{}",
        stderr_text(&output)
    );
    assert_eq!(records(&at("out")).0, 3);
    // A WACZ file that is named explicitly is read.
    let named = ["--input", &at("crawl/archive/1.warc.gz"), "--input", &at("crawl/1.wacz")];
    succeed(&[&["run", "--output", &at("named")], &named[..]].concat());
    assert_eq!(records(&at("named")).1["older_capture"], 2);
}

#[test]
fn entry_that_is_not_warc_and_zip_archive_without_warc_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    for (name, bytes, words) in [
        ("lost.wacz", wacz(&[("archive/1.warc.gz", b"<html>404</html>")]), "lost.wacz!/archive/1.warc.gz: not_warc"),
        ("lines.wacz", wacz(&[("archive/1.warc", b"{\"url\":\"http://a/\"}\n")]), "archive/1.warc: not_warc"),
        ("none.wacz", wacz(&[]), "no WARC or ARC file"),
    ] {
        std::fs::write(at(name), bytes).unwrap();
        let stderr_text = fail(&["run", "--input", &at(name), "--output", &at("out")], 3);
        assert!(stderr_text.contains(words), "{stderr_text}");
    }
}

#[test]
fn a_file_of_members_frames_blocks_and_plain_records_is_one_crawl_to_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let crawl = |letter: &str, count: usize| {
        let names: Vec<String> = (0..count).map(|page| format!("{letter}{page}")).collect();
        let members = wget_crawl(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let mut plain = Vec::new();
        flate2::read::MultiGzDecoder::new(&members[..]).read_to_end(&mut plain).unwrap();
        (members, plain)
    };
    let (members, _) = crawl("a", 120);
    let blocks: Vec<u8> = crawl("b", 120).1.chunks(1000).flat_map(gzip).collect();
    let frames: Vec<u8> = crawl("d", 120).1.chunks(3000).flat_map(|part| zstd::encode_all(part, 3).unwrap()).collect();
    let mixed = [members, blocks, crawl("c", 120).1, frames, crawl("e", 1).1].concat();
    std::fs::write(at("mixed.warc.gz"), mixed).unwrap();
    let run = ["run", "--input", &at("mixed.warc.gz"), "--set", "effort.shard_bytes=65536"];
    let (out, _) = assert_same_on_any_workers(folder.path(), "out", &run);
    assert_eq!(records(&out).0, 481);
    let explained = succeed(&["explain", &out, "http://h.example/b7", "http://h.example/d99"]);
    assert!(explained.contains("http://h.example/d99"), "{explained}");
    succeed(&["archive", &at("mixed.warc.gz"), "--output", &at("archive")]);
    succeed(&["run", "--input", &at("archive/"), "--output", &at("again")]);
    let urls = |output: &str| rows(output, "pages").iter().map(|row| row["url"].to_string()).collect::<Vec<_>>();
    assert_eq!(urls(&at("again")), urls(&out));
}

type Pack = fn(&[u8]) -> Vec<u8>;

#[test]
fn xz_and_bzip2_equal_the_plain_file_in_several_streams_and_zip_archives() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let mut warc = Vec::new();
    flate2::read::MultiGzDecoder::new(&wget_crawl(&["a", "b", "c"])[..]).read_to_end(&mut warc).unwrap();
    let lines = (0..9).map(|page| format!("{{\"url\":\"http://h.example/{page}\",\"text\":\"page {page}\"}}\n"));
    let lines = lines.collect::<String>().into_bytes();
    for (ending, pack) in [("xz", xz as Pack), ("bz2", bzip2 as Pack)] {
        for (kind, bytes, pages) in [("warc", &warc, 3), ("jsonl", &lines, 9)] {
            let name = format!("{kind}.{ending}");
            // The second stream begins within a record.
            let (first, second) = bytes.split_at(bytes.len() / 2);
            std::fs::write(at(&name), [pack(first), pack(second)].concat()).unwrap();
            let (out, _) =
                assert_same_on_any_workers(folder.path(), &format!("{name}-out"), &["run", "--input", &at(&name)]);
            assert_eq!(records(&out).0, pages, "{name}");
            for row in rows(&out, "pages") {
                let (offset, length) =
                    (row["offset"].as_u64().unwrap() as usize, row["length"].as_u64().unwrap() as usize);
                let url = row["url"].as_str().unwrap();
                assert!(String::from_utf8_lossy(&bytes[offset..][..length]).contains(url), "{name} {url}");
            }
            let ends =
                if kind == "warc" { ["a", "c"] } else { ["0", "8"] }.map(|page| format!("http://h.example/{page}"));
            assert!(succeed(&["explain", &out, &ends[0], &ends[1]]).contains(&ends[1]));

            let cut = [pack(first), pack(second)].concat();
            std::fs::write(at(&name), &cut[..cut.len() - 20]).unwrap();
            let torn = at(&format!("{name}-torn"));
            succeed(&["run", "--input", &at(&name), "--output", &torn, "--max-bad", "1"]);
            assert_eq!(records(&torn).1["truncated"], 1, "{name}");
        }
        let packed = zipped(&[(&format!("archive/a.warc.{ending}"), &pack(&warc))]);
        std::fs::write(at("a.wacz"), packed).unwrap();
        succeed(&["run", "--input", &at("a.wacz"), "--output", &at(&format!("{ending}-wacz"))]);
        assert_eq!(records(&at(&format!("{ending}-wacz"))).0, 3);
    }
}
