//! Checks of the fuzz targets, each a function of the bytes that the fuzzer makes. The programs in
//! `targets/` pass them these bytes. An integration test of webtwin, which includes this file,
//! passes them the initial corpus, so they are compiled and hold whenever the tests are run.

use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use webtwin_base::error::Result;
use webtwin_engine::identity::Identity;
use webtwin_engine::key::ClusterKey;
use webtwin_pages::record::{RawPage, ReadResult, RecordSink};

mod made;

pub mod fingerprint_file;
pub mod frames;
pub mod handshake;
pub mod html;
#[cfg(feature = "serve")]
pub mod http;
pub mod index;
pub mod jsonl;
pub mod parquet;
pub mod state;
pub mod warc;

/// Check of one input of a target.
pub type Check = fn(&[u8]);

/// Name and check of each target.
pub const TARGETS: &[(&str, Check)] = &[
    ("fingerprint_file", fingerprint_file::check),
    ("frames", frames::check),
    ("handshake", handshake::check),
    ("html", html::check),
    #[cfg(feature = "serve")]
    ("http", http::check),
    ("index", index::check),
    ("jsonl", jsonl::check),
    ("parquet", parquet::check),
    ("state", state::check),
    ("warc", warc::check),
];

/// Splits off the first byte, which decides how the rest is used.
pub fn first(data: &[u8]) -> Option<(usize, &[u8])> {
    data.split_first().map(|(first, rest)| (usize::from(*first), rest))
}

/// Returns a file with some of its bytes changed. Each four bytes of `how` are a change: what
/// happens, where (two bytes, little-endian, counted around the file), and a value.
pub fn damaged(whole: &[u8], how: &[u8]) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    for &[what, low, high, value] in how.as_chunks::<4>().0 {
        if bytes.is_empty() {
            break;
        }
        let at = usize::from(u16::from_le_bytes([low, high])) % bytes.len();
        match what % 5 {
            0 => bytes[at] ^= value.max(1),
            1 => bytes[at] = value,
            2 => bytes.truncate(at),
            3 => bytes.insert(at, value),
            _ => {
                let end = bytes.len().min(at + usize::from(value));
                bytes.drain(at..end);
            }
        }
    }
    bytes
}

/// Collects everything that a reader returns: its result, and the records in order.
pub fn found<T>(read: impl FnOnce(&mut RecordSink<'_>) -> Result<T>) -> (T, Vec<ReadResult>) {
    let mut results = Vec::new();
    let end = read(&mut |one| {
        results.push(one);
        Ok(())
    });
    (end.expect("any bytes in memory can be read"), results)
}

/// Returns the offset at which a record starts.
pub fn offset(found: &ReadResult) -> u64 {
    match found {
        ReadResult::Page(RawPage { offset, .. }) => *offset,
        ReadResult::Refused(refused) => refused.offset,
    }
}

/// Returns the bounds, from 0 on, of the ranges that a file of `length` bytes is cut into. `how`
/// selects the length of a range; at most about 24 ranges result.
pub fn cuts(length: u64, how: usize) -> Vec<u64> {
    let step = (1 + how as u64 * how as u64 / 16).max(length.div_ceil(24)).max(1);
    (0..length).step_by(step as usize).chain([length]).collect()
}

/// Folder of all files of the targets. By default it is a temporary one, which the system must
/// clean up, since a fuzzer ends without running destructors.
pub static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// Returns a new folder for the files of one target.
fn folder(name: &str) -> PathBuf {
    let folder = FOLDER.get_or_init(|| tempfile::tempdir().expect("the disk has space").keep()).join(name);
    std::fs::create_dir(&folder).expect("the disk has space");
    folder
}

/// Returns the files of a folder and of those below it, by name.
pub fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files_found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(inner) = folders.pop() {
        for entry in std::fs::read_dir(inner).expect("the folder can be read") {
            let path = entry.expect("the folder can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path
                    .strip_prefix(folder)
                    .expect("the path is below the folder")
                    .to_str()
                    .expect("the path is UTF-8")
                    .to_string();
                files_found.push((name, std::fs::read(path).expect("the file was written by this target")));
            }
        }
    }
    files_found.sort();
    files_found
}

/// Returns both ends of a connection within this process, usable as TCP streams of `std::net`.
pub fn connection() -> [TcpStream; 2] {
    let (here, there) = UnixStream::pair().expect("the process can open sockets");
    [here, there].map(|end| TcpStream::from(OwnedFd::from(end)))
}

/// Returns the identity of one of two processes.
pub fn identity(process: u32) -> Identity {
    let [job, addresses, build, incarnation] = [[1; 32], [2; 32], [3; 32], [4; 32]];
    Identity {
        process,
        processes: 2,
        workers: 1,
        deadline: 1000,
        job,
        addresses,
        build: [build, build].concat().try_into().expect("64 bytes"),
        incarnation: incarnation[..16].try_into().expect("16 bytes"),
    }
}

/// Returns the key of a cluster.
pub fn key() -> ClusterKey {
    let file = tempfile::NamedTempFile::new().expect("the disk has space");
    std::fs::write(file.path(), "a key that only the targets of the fuzzer have").expect("the disk has space");
    ClusterKey::read(file.path(), false).expect("a key of enough bytes")
}
