//! The buffers in which bytes lie between timely's workers and its connections: as long as what is in them.
//!
//! timely asks for 1 MiB for each process that a worker sends to, for each that this one hears from, and again whenever
//! one is full: a message must lie in one buffer, and timely does not say how long it is. Who writes or reads the
//! message knows, and says so before ([`need`]). So a connection takes as much memory as its last messages are long,
//! and one with few rows next to nothing.
//!
//! Free ones are kept for those who come next, a few MiB in all, whatever the number of connections.

use std::cell::Cell;
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use timely::communication::allocator::zero_copy::bytes_slab::BytesRefill;

const PAGE: usize = 4 << 10;

/// Least bytes of a buffer: many messages of calls with few rows.
const LEAST: usize = 2 * PAGE;

/// Least bytes of a buffer that is kept: to find it must cost less than to ask for another.
const WORTH_KEEPING: usize = 8 * PAGE;

/// Most bytes of the buffers that are kept.
const MOST_KEPT: usize = 4 << 20;

/// Need of whoever does not know how long its messages are.
pub(super) const ANY: usize = usize::MAX;

thread_local! {
    /// Bytes of the message for which this thread may ask for a buffer next; 0 before its first.
    static NEEDED: Cell<usize> = const { Cell::new(0) };
}

/// Says how many bytes the next message of this thread takes.
pub(super) fn need(bytes: usize) {
    NEEDED.set(bytes);
}

/// Returns how timely comes to buffers.
pub(super) fn refill() -> BytesRefill {
    let kept = Arc::new(Kept::default());
    let logic = move |asked: usize| {
        let needed = NEEDED.get().max(LEAST);
        let bytes = needed.checked_next_multiple_of(PAGE).unwrap_or(needed).min(asked);
        let memory = kept.take(bytes).unwrap_or_else(|| vec![0; bytes]);
        Box::new(Buffer { memory, kept: Arc::clone(&kept) }) as Box<dyn DerefMut<Target = [u8]> + Send>
    };
    BytesRefill { logic: Arc::new(logic), limit: Some(0) }
}

/// Buffers that are free, the longest free first.
#[derive(Default)]
struct Kept(Mutex<VecDeque<Vec<u8>>>);

impl Kept {
    /// Takes out one of so many bytes, or up to twice as many.
    fn take(&self, bytes: usize) -> Option<Vec<u8>> {
        let mut free = self.free();
        let at = free.iter().position(|memory| (bytes..=bytes.saturating_mul(2)).contains(&memory.len()))?;
        free.remove(at)
    }

    fn keep(&self, memory: Vec<u8>) {
        if memory.len() < WORTH_KEEPING {
            return;
        }
        let mut free = self.free();
        free.push_back(memory);
        while free.iter().map(Vec::len).sum::<usize>() > MOST_KEPT {
            free.pop_front();
        }
    }

    fn free(&self) -> MutexGuard<'_, VecDeque<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Buffer {
    memory: Vec<u8>,
    kept: Arc<Kept>,
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.kept.keep(std::mem::take(&mut self.memory));
    }
}

/// Where a reader stands in the messages of a connection.
#[derive(Default)]
pub(super) struct Place {
    /// Bytes of the next header that have passed, and the length as far as it was among them.
    of_header: usize,
    length: usize,
    /// Bytes of the message that are yet to come after its header.
    to_come: usize,
}

/// Bytes of the header of a message of timely's, and where its length stands in it.
const HEADER: usize = 48;
const LENGTH: std::ops::Range<usize> = 32..40;

impl Place {
    /// Goes on by these bytes.
    pub(super) fn pass(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.to_come > 0 {
                let passed = self.to_come.min(bytes.len());
                self.to_come -= passed;
                bytes = &bytes[passed..];
                continue;
            }
            let (header, rest) = bytes.split_at((HEADER - self.of_header).min(bytes.len()));
            for &byte in header {
                if LENGTH.contains(&self.of_header) {
                    self.length = self.length << 8 | usize::from(byte);
                }
                self.of_header += 1;
            }
            bytes = rest;
            if self.of_header == HEADER {
                (self.of_header, self.to_come) = (0, self.length);
            }
        }
    }

    /// Bytes of the message in which the reader stands; 0 between two, and in a header.
    pub(super) fn message(&self) -> usize {
        if self.to_come > 0 { self.length.saturating_add(HEADER) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use timely::communication::networking::MessageHeader;

    use super::*;

    /// What a thread gets that says it needs so many bytes.
    fn gets(needed: usize, asked: usize) -> usize {
        let refill = refill();
        need(needed);
        let got = (refill.logic)(asked).len();
        need(0);
        got
    }

    #[test]
    fn a_buffer_is_as_long_as_its_message_and_never_longer_than_asked_for() {
        const MIB: usize = 1 << 20;
        let cases = [
            (0, MIB, LEAST),
            (100, MIB, LEAST),
            (9000, MIB, 3 * PAGE),
            (3 * MIB, 4 * MIB, 3 * MIB),
            (3 * MIB, MIB, MIB),
            (ANY, MIB, MIB),
            (ANY, 2 * MIB, 2 * MIB),
        ];
        for (needed, asked, got) in cases {
            assert_eq!(gets(needed, asked), got, "{needed} of {asked}");
        }
    }

    #[test]
    fn free_buffers_are_used_again_for_what_is_about_as_long_and_not_all_kept() {
        let refill = refill();
        let of = |bytes| {
            need(bytes);
            (refill.logic)(1 << 20)
        };
        let all: Vec<_> = (0..3 * MOST_KEPT / (256 << 10)).map(|_| of(256 << 10)).collect();
        let places: Vec<*const u8> = all.iter().map(|buffer| buffer.as_ptr()).collect();
        drop(all);
        // For one that is much shorter they are too long.
        let short = of(100 << 10);
        assert_eq!(short.len(), 100 << 10);
        let again: Vec<_> = (0..MOST_KEPT / (256 << 10)).map(|_| of(200 << 10)).collect();
        assert!(again.iter().all(|buffer| buffer.len() == 256 << 10 && places.contains(&buffer.as_ptr())));
        assert_eq!(of(200 << 10).len(), 200 << 10);
        need(0);
    }

    proptest! {
        #[test]
        fn a_reader_knows_the_message_in_which_it_stands(
            lengths in proptest::collection::vec(1usize..500, 1..20),
            pieces in proptest::collection::vec(1usize..200, 1..20),
        ) {
            let (mut bytes, mut expected) = (Vec::new(), Vec::new());
            for length in lengths {
                let (target_lower, target_upper) = (3, 4);
                let header = MessageHeader { channel: 1, source: 2, target_lower, target_upper, length, seqno: 5 };
                header.write_to(&mut bytes).unwrap();
                bytes.resize(bytes.len() + length, 0xff);
                expected.resize(bytes.len() - length, 0);
                expected.resize(bytes.len(), header.required_bytes());
            }
            // By the byte that comes next.
            expected.push(0);
            let (mut place, mut at) = (Place::default(), 0);
            for piece in pieces.into_iter().cycle() {
                prop_assert_eq!(place.message(), expected[at]);
                if at == bytes.len() {
                    break;
                }
                let piece = piece.min(bytes.len() - at);
                place.pass(&bytes[at..at + piece]);
                at += piece;
            }
        }
    }
}
