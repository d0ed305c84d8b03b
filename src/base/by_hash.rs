//! Maps and sets whose keys are hashes already, so that nothing is hashed twice.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// Takes a key for its own hash, but for a multiplication that brings its low bits up: fingerprints of few bits have no others.
#[derive(Debug, Default)]
pub struct AsItIs(u64);

impl Hasher for AsItIs {
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

/// A map from hashes.
pub type ByHash<T> = HashMap<u64, T, BuildHasherDefault<AsItIs>>;

/// A set of hashes.
pub type Hashes = HashSet<u64, BuildHasherDefault<AsItIs>>;
