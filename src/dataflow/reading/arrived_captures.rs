//! Captures with the owners of their doc ids, before they are settled: in stretches of doc ids.
//!
//! Captures come in any order and are wanted by doc id. On disk those of a stretch are near each other, so what is read here and there is in
//! the system's cache; and a stretch leaves the disk when it has been passed.

use crate::dataflow::reading::capture_rows::{CaptureRow, CaptureRows};
use crate::dataflow::shuffle::directory::Partitions;
use crate::error::Result;
use crate::ids::DocId;

/// Bytes of a stretch, about, as long as there are not too many.
const STRETCH_BYTES: u64 = 256 << 20;

/// Most stretches of a worker: the blocks that are being filled take 16 MiB.
const MOST_STRETCHES: u64 = 16;

/// Captures that have come to this worker.
#[derive(Debug)]
pub(super) struct ArrivedCaptures {
    partitions: Partitions,
    stretches: Vec<CaptureRows>,
    /// Stretches that are not read again.
    passed: usize,
}

impl ArrivedCaptures {
    /// None yet, held as `sent` are, of which about as many are to come; in one stretch if these are in memory.
    pub(super) fn like(sent: &CaptureRows, partitions: Partitions) -> ArrivedCaptures {
        let stretches = (sent.spilled_bytes() / STRETCH_BYTES + 1).min(MOST_STRETCHES);
        ArrivedCaptures::in_stretches(sent, partitions, stretches)
    }

    fn in_stretches(sent: &CaptureRows, partitions: Partitions, count: u64) -> ArrivedCaptures {
        ArrivedCaptures { partitions, stretches: (0..count).map(|_| sent.like_part(count)).collect(), passed: 0 }
    }

    fn stretch(&self, doc_id: DocId) -> usize {
        self.partitions.stretch(doc_id, self.stretches.len())
    }

    /// Adds a capture with this doc id that is written already.
    ///
    /// # Errors
    /// As [`CaptureRows::push_words`].
    pub(super) fn push(&mut self, words: &[u64]) -> Result<()> {
        let stretch = self.stretch(CaptureRow::of(words).doc_id);
        self.stretches[stretch].push_words(words)
    }

    /// Number of captures.
    pub(super) fn len(&self) -> usize {
        self.stretches.iter().map(CaptureRows::len).sum()
    }

    /// Calls `each` for each, with its number in its stretch.
    ///
    /// # Errors
    /// Those of the disk.
    pub(super) fn each(&self, mut each: impl FnMut(u32, CaptureRow<'_>)) -> Result<()> {
        self.stretches.iter().try_for_each(|stretch| {
            let mut number = 0..;
            stretch.each(|capture| each(number.next().expect("without an end"), capture))
        })
    }

    /// The capture with a doc id that has this number in its stretch; `room` is scratch.
    ///
    /// # Errors
    /// As [`CaptureRows::get`].
    pub(super) fn get<'a>(&'a self, doc_id: DocId, number: u32, room: &'a mut Vec<u64>) -> Result<CaptureRow<'a>> {
        self.stretches[self.stretch(doc_id)].get(number as usize, room)
    }

    /// Frees the memory and the disk of stretches before that of a doc id.
    pub(super) fn forget_before(&mut self, doc_id: DocId) {
        while self.passed < self.stretch(doc_id) {
            self.stretches[self.passed] = CaptureRows::default();
            self.passed += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dataflow::reading::worker_pages::Capture;
    use crate::engine::Owners;
    use crate::storage::spill_file::Disk;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn captures_are_found_by_doc_id_in_any_stretches_which_leave_the_disk(
            doc_ids in prop::collection::vec(prop::sample::select(vec![0u64, 1 << 62, 3 << 61, 1 << 63, u64::MAX]), 0..40),
            count in 1u64..17, workers in 1usize..6, partitions in 0u32..5, on_disk: bool
        ) {
            let partitions = Partitions::new(1 << partitions, workers);
            let mine: Vec<DocId> = doc_ids.into_iter().filter(|&doc_id| partitions.owner(doc_id) == 0).collect();
            // Each fills a sixth of a block.
            let url = format!("http://a.example/{}", "x".repeat(1 << 18));
            let capture = |at: usize| Capture { doc_id: mine[at], offset: at as u64, url: url.clone(), ..Capture::default() };
            let mut sent = CaptureRows::beside(&Disk::new(&std::env::temp_dir(), 0));
            sent.hold_at_most(if on_disk { 0 } else { u64::MAX }).unwrap();
            (0..mine.len()).for_each(|at| sent.push(&capture(at)).unwrap());
            let mut arrived = ArrivedCaptures::in_stretches(&sent, partitions, count);
            sent.pass(0, 1 << 40, |_, words| arrived.push(words)).unwrap();
            prop_assert_eq!(arrived.len(), mine.len());

            let mut found = Vec::new();
            arrived.each(|number, row| found.push((row.doc_id, number, row.offset))).unwrap();
            found.sort_unstable();
            let (mut all, mut room) = (Vec::new(), Vec::new());
            for (doc_id, number, offset) in found {
                arrived.forget_before(doc_id);
                let here = arrived.stretch(doc_id);
                prop_assert!(arrived.stretches[..here].iter().all(CaptureRows::is_empty));
                let row = arrived.get(doc_id, number, &mut room).unwrap();
                prop_assert_eq!((row.doc_id, row.offset), (doc_id, offset));
                all.push(offset);
            }
            all.sort_unstable();
            prop_assert!(all.into_iter().eq(0..mine.len() as u64));
        }
    }
}
