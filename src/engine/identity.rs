//! Identity of a process: its number, and what must be equal among the processes of a run.

use std::fs::File;
use std::io::{self, Read};
use std::sync::OnceLock;

use bytemuck::{Pod, Zeroable};
use sha2::{Digest, Sha256};
use xxhash_rust::xxh3::Xxh3Default;

use super::cluster_file::ClusterLayout;

/// Identity of a process. All fields except `process` and `incarnation` must be equal among the
/// processes of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Identity {
    /// Number of the process, from 0.
    pub process: u32,
    /// Number of processes in the cluster file.
    pub processes: u32,
    /// Number of worker threads of each process.
    pub workers: u32,
    /// Deadline of the cluster file, in milliseconds.
    pub deadline: u32,
    /// Digest of the settings of the job that change the result.
    pub job: [u8; 32],
    /// SHA-256 of the addresses of all processes.
    pub addresses: [u8; 32],
    /// Version and hash of the executable, padded with zeros.
    pub build: [u8; 64],
    /// Random bytes that identify this start of the process.
    pub incarnation: [u8; 16],
}

impl Identity {
    /// Returns the identity of this start of process `process`.
    pub fn new(cluster: &ClusterLayout, process: usize, job_digest: [u8; 32]) -> Identity {
        Identity {
            process: process as u32,
            processes: cluster.processes() as u32,
            workers: cluster.workers as u32,
            // The cluster file limits the deadline to one day, so it always fits.
            deadline: u32::try_from(cluster.deadline.as_millis()).unwrap_or(u32::MAX),
            job: job_digest,
            addresses: Sha256::digest(cluster.addresses.join("\n")).into(),
            // A single process has no peer to compare with, so its executable need not be read.
            build: if cluster.processes() > 1 { text(build()) } else { [0; 64] },
            incarnation: random(),
        }
    }

    /// Describes the first difference that prevents this process and `other` from running together,
    /// with both values. Returns `None` if they can run together.
    pub fn conflict(&self, other: &Identity) -> Option<String> {
        let differs = |property: &str, own_value: String, peer_value: String| {
            Some(format!(
                "process {} has {property} {peer_value}, but process {} has {own_value}; start all with the same build, job and \
                 cluster file",
                other.process, self.process
            ))
        };
        if self.build != other.build {
            differs("build", printable(&self.build), printable(&other.build))
        } else if self.job != other.job {
            differs("job digest", short(&self.job), short(&other.job))
        } else if self.processes != other.processes {
            differs("number of processes", self.processes.to_string(), other.processes.to_string())
        } else if self.workers != other.workers {
            differs("workers", self.workers.to_string(), other.workers.to_string())
        } else if self.deadline != other.deadline {
            differs("deadline", format!("{} ms", self.deadline), format!("{} ms", other.deadline))
        } else if self.addresses != other.addresses {
            differs("list of addresses (SHA-256)", short(&self.addresses), short(&other.addresses))
        } else {
            None
        }
    }
}

/// Returns the version and the hash of the running executable. Two builds of the same sources may
/// differ.
///
/// # Cost
/// The first call reads the executable, 64 KiB at a time. Later calls return the stored text,
/// because the running program does not change when its file does.
fn build() -> &'static str {
    static BUILD: OnceLock<String> = OnceLock::new();
    BUILD.get_or_init(|| {
        let version = env!("CARGO_PKG_VERSION");
        match std::env::current_exe().and_then(File::open).and_then(hash) {
            Ok(hash) => format!("{version} {hash:016x}"),
            Err(_) => format!("{version} (executable cannot be read)"),
        }
    })
}

fn hash(mut file: File) -> io::Result<u64> {
    let (mut hash, mut piece) = (Xxh3Default::new(), vec![0; 64 << 10]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hash.digest()),
            bytes => hash.update(&piece[..bytes]),
        }
    }
}

pub(super) fn text<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [0; N];
    let length = text.len().min(N);
    bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
    bytes
}

/// Returns a text field of a peer without the bytes that are not printable ASCII.
fn printable(bytes: &[u8]) -> String {
    bytes.iter().filter(|byte| (b' '..=b'~').contains(byte)).map(|&byte| byte as char).collect()
}

fn short(digest: &[u8]) -> String {
    digest[..6].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns random bytes of the system.
pub(super) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the system gives random bytes");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_difference_is_described_with_both_values() {
        let (first, second) = (Identity::zeroed(), Identity { process: 1, incarnation: [1; 16], ..Identity::zeroed() });
        assert_eq!(first.conflict(&second), None);
        for (other, part) in [
            (Identity { processes: 3, ..second }, ["number of processes", "3", "0"]),
            (Identity { workers: 7, ..second }, ["workers", "7", "0"]),
            (Identity { deadline: 5000, ..second }, ["deadline", "5000 ms", "0 ms"]),
            (Identity { job: [0xab; 32], ..second }, ["job digest", "abababababab", "000000000000"]),
            (Identity { addresses: [0xcd; 32], ..second }, ["list of addresses", "cdcdcdcdcdcd", "000000000000"]),
            (Identity { build: text("1.2.3 beef"), ..second }, ["build", "1.2.3 beef", ""]),
        ] {
            for line in [first.conflict(&other).unwrap(), other.conflict(&first).unwrap()] {
                assert!(part.iter().all(|part| line.contains(part)), "{line}");
            }
        }
    }
}
