//! Maps and sets whose keys are already hashes, so that no key is hashed twice.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// Hasher for keys that are hashes. A multiplication moves their low bits up, because short
/// fingerprints have only low bits.
#[derive(Debug, Default)]
pub struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are hashes of 64 bits");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// Map whose keys are hashes.
pub type HashKeyMap<T> = HashMap<u64, T, BuildHasherDefault<IdentityHasher>>;

/// Set of hashes.
pub type Hashes = HashSet<u64, BuildHasherDefault<IdentityHasher>>;
