//! Names by which a revisit refers to a record, and the detection of ambiguous ones.
//!
//! Some programs write the same record id into all records, and a page may be fetched twice within
//! a second. A tool that resolves such a name may find another payload, so ambiguous names are not
//! written.

use std::sync::{Mutex, PoisonError};

use bytemuck::{Pod, Zeroable};

use super::ArchiveEffort;
use webtwin_base::error::Result;
use webtwin_spill::Partitions;

/// Number of partitions of the names, which are sorted one at a time.
const PARTS: usize = 64;

/// Hash of a name, and an identifier of the payload that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Named {
    name: u64,
    payload: u64,
}

/// Names of records of several threads, 16 bytes each.
pub(super) struct RecordNames(Mutex<Partitions<Named>>);

impl RecordNames {
    pub(crate) fn new(effort: &ArchiveEffort) -> RecordNames {
        RecordNames(Mutex::new(Partitions::new(PARTS, &effort.part(2))))
    }

    pub(crate) fn push(&self, name: u64, payload: u64) -> Result<()> {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.push((name >> 58) as usize, Named { name, payload })
    }

    /// Returns the names of more than one payload, ascending.
    pub(crate) fn ambiguous(self) -> Result<Vec<u64>> {
        let mut names = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (mut part, mut ambiguous) = (Vec::new(), Vec::new());
        for bucket in 0..names.count() {
            names.take(bucket, &mut part)?;
            part.sort_unstable();
            part.dedup();
            let repeated = part.chunk_by(|x, y| x.name == y.name).filter(|same| same.len() > 1);
            ambiguous.extend(repeated.map(|same| same[0].name));
        }
        Ok(ambiguous)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn name_of_several_payloads_is_ambiguous_with_any_memory(
            names in prop::collection::vec((0u64..40, 0u64..3), 0..200), memory_bytes in prop::sample::select(vec![0u64, 1 << 30])
        ) {
            let pushed = RecordNames::new(&ArchiveEffort { workers: 1, memory_bytes, spill: std::env::temp_dir() });
            let mut payloads: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
            for (name, payload) in names {
                let name = name.wrapping_mul(0x0123_4567_89ab_cdef);
                pushed.push(name, payload).unwrap();
                payloads.entry(name).or_default().insert(payload);
            }
            let plain: Vec<u64> = payloads.into_iter().filter(|(_, of)| of.len() > 1).map(|(name, _)| name).collect();
            prop_assert_eq!(pushed.ambiguous().unwrap(), plain);
        }
    }
}
