//! `fingerprints.json`: the list of the chunks of F.

use serde::{Deserialize, Serialize};

use super::super::sections::{checksum, checksum_of_parts, read_list};
use super::known_coder;
use crate::hamming::coding::Coder;
use webtwin_base::error::{Error, Result};

/// Format of the manifest that this build writes and reads.
pub(super) const FORMAT: u32 = 1;

/// Name of the manifest in the folder of its chunks. It is written last.
pub const NAME: &str = "fingerprints.json";

/// A chunk of the set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkEntry {
    /// Name of the file.
    pub name: String,
    /// Number of fingerprints in the chunk, at least one.
    pub count: u64,
    /// Smallest fingerprint.
    pub first: u64,
    /// Largest fingerprint; the next chunk starts with this value or a larger one.
    pub last: u64,
    /// Length of the file in bytes.
    pub bytes: u64,
    /// XXH3 of the file (64 bits), in hexadecimal.
    pub checksum: String,
}

impl ChunkEntry {
    /// Creates the entry of a file with the given name, fingerprints and bytes. `fingerprints` must
    /// be ascending and not empty; `parts` are the consecutive parts of the file.
    pub fn new(name: String, fingerprints: &[u64], parts: &[&[u8]]) -> ChunkEntry {
        ChunkEntry {
            name,
            count: fingerprints.len() as u64,
            first: fingerprints.first().copied().unwrap_or(0),
            last: fingerprints.last().copied().unwrap_or(0),
            bytes: parts.iter().map(|part| part.len() as u64).sum(),
            checksum: checksum_of_parts(parts),
        }
    }

    /// True if `bytes` are the bytes of the file.
    pub fn is(&self, bytes: &[u8]) -> bool {
        bytes.len() as u64 == self.bytes && checksum(bytes) == self.checksum
    }
}

/// A set of fingerprints, sorted, as a list of chunks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FingerprintManifest {
    /// Version of this format.
    pub format: u32,
    /// Width of the fingerprints, in bits.
    pub f: u32,
    /// Name of the recipe that made the fingerprints.
    pub recipe: String,
    /// Encoding of the fingerprints.
    #[serde(deserialize_with = "known_coder")]
    pub coder: Coder,
    /// Number of fingerprints in all chunks.
    pub count: u64,
    /// Chunks in ascending order.
    pub chunks: Vec<ChunkEntry>,
}

impl FingerprintManifest {
    /// Returns the bytes of the manifest file.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).expect("a manifest is plain values")
    }

    /// Reads a manifest with the given name for messages.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the bytes are not a manifest, have another format, or contradict
    /// themselves.
    pub fn from_json(name: &str, bytes: &[u8]) -> Result<FingerprintManifest> {
        let manifest: FingerprintManifest = read_list(name, bytes, FORMAT, "list of fingerprint files")?;
        match manifest.contradiction() {
            None => Ok(manifest),
            Some(what) => Err(Error::input(name, format!("{what}; make the fingerprint file again"))),
        }
    }

    fn contradiction(&self) -> Option<String> {
        let sum = self.chunks.iter().map(|chunk| u128::from(chunk.count)).sum::<u128>();
        let mut ends = self.chunks.iter().flat_map(|chunk| [chunk.first, chunk.last]);
        let widest = if self.f >= 64 { u64::MAX } else { (1 << self.f) - 1 };
        // Names are joined to the path of the folder, so they must not lead out of it.
        let plain = |name: &str| !name.is_empty() && !name.contains(['/', '\\']) && name != ".." && name != ".";
        if !(1..=64).contains(&self.f) {
            Some(format!("its fingerprints have {} bits, but must have 1 to 64", self.f))
        } else if sum != u128::from(self.count) {
            Some(format!("its chunks have {sum} fingerprints, but its count is {}", self.count))
        } else if !ends.clone().is_sorted() || ends.any(|end| end > widest) {
            Some("its chunks are not in ascending order, or wider than the bits of a fingerprint".into())
        } else {
            let chunk = self.chunks.iter().find(|chunk| chunk.count == 0 || !plain(&chunk.name))?;
            Some(format!("chunk {:?} is empty or not in its folder", chunk.name))
        }
    }
}
