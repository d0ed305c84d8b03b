//! Buffers between timely's workers and its connections, each as long as its content.
//!
//! timely requests 1 MiB for each process that a worker sends to, for each process that a worker
//! receives from, and again whenever a buffer is full. A message must lie in one buffer, and timely
//! does not pass the length of the message to the allocator. The code that writes or reads a
//! message announces its length with [`need`]. So the memory of a connection is proportional to its
//! last messages, and a connection with few rows takes almost none.
//!
//! Free buffers are kept for reuse, a few MiB in total for any number of connections.

use std::cell::Cell;
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use timely::communication::allocator::zero_copy::bytes_slab::BytesRefill;

const PAGE: usize = 4 << 10;

/// Minimum size of a buffer in bytes. It holds many messages of calls with few rows.
const MIN_BUFFER_BYTES: usize = 2 * PAGE;

/// Minimum size of a buffer that is kept, in bytes. A smaller buffer is cheaper to allocate than to
/// find.
const MIN_KEPT_BYTES: usize = 8 * PAGE;

/// Maximum total size of the buffers that are kept, in bytes.
const MAX_KEPT_BYTES: usize = 4 << 20;

/// Argument of [`need`] for callers that do not know the length of their messages.
pub(super) const ANY_LENGTH: usize = usize::MAX;

thread_local! {
    /// Length in bytes of the next message for which this thread may request a buffer; 0 before its
    /// first.
    static NEXT_MESSAGE_BYTES: Cell<usize> = const { Cell::new(0) };
}

/// Announces the length of this thread's next message, in bytes.
pub(super) fn need(bytes: usize) {
    NEXT_MESSAGE_BYTES.set(bytes);
}

/// Returns the allocator of buffers for timely.
pub(super) fn refill() -> BytesRefill {
    let spares = Arc::new(SpareBuffers::default());
    let logic = move |requested_bytes: usize| {
        // timely asks for its fixed 1 MiB; a shorter buffer is allowed if the next message fits
        // into it.
        let needed_bytes = NEXT_MESSAGE_BYTES.get().max(MIN_BUFFER_BYTES);
        let bytes = needed_bytes.checked_next_multiple_of(PAGE).unwrap_or(needed_bytes).min(requested_bytes);
        let memory = spares.take(bytes).unwrap_or_else(|| vec![0; bytes]);
        Box::new(Buffer { memory, spares: Arc::clone(&spares) }) as Box<dyn DerefMut<Target = [u8]> + Send>
    };
    BytesRefill { logic: Arc::new(logic), limit: Some(0) }
}

/// Free buffers, ordered by the time since their release, longest first.
#[derive(Default)]
struct SpareBuffers(Mutex<VecDeque<Vec<u8>>>);

impl SpareBuffers {
    /// Removes and returns a buffer of `bytes` to 2 · `bytes` bytes, if there is one.
    fn take(&self, bytes: usize) -> Option<Vec<u8>> {
        let mut free = self.free();
        let at = free.iter().position(|memory| (bytes..=bytes.saturating_mul(2)).contains(&memory.len()))?;
        free.remove(at)
    }

    fn keep(&self, memory: Vec<u8>) {
        if memory.len() < MIN_KEPT_BYTES {
            return;
        }
        let mut free = self.free();
        free.push_back(memory);
        while free.iter().map(Vec::len).sum::<usize>() > MAX_KEPT_BYTES {
            free.pop_front();
        }
    }

    fn free(&self) -> MutexGuard<'_, VecDeque<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Buffer {
    memory: Vec<u8>,
    spares: Arc<SpareBuffers>,
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
        self.spares.keep(std::mem::take(&mut self.memory));
    }
}

/// Position of a reader in the messages of a connection.
#[derive(Default)]
pub(super) struct ReadPosition {
    /// Number of bytes of the current header that have passed, and the part of the message length
    /// among them.
    of_header: usize,
    length: usize,
    /// Number of bytes of the message after its header that have not passed yet.
    remaining_bytes: usize,
}

/// Length of the header of a timely message in bytes, and the position of the message length in it.
const HEADER: usize = 48;
const LENGTH: std::ops::Range<usize> = 32..40;

impl ReadPosition {
    /// Advances the position by `bytes`.
    pub(super) fn pass(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.remaining_bytes > 0 {
                let passed = self.remaining_bytes.min(bytes.len());
                self.remaining_bytes -= passed;
                bytes = &bytes[passed..];
                continue;
            }
            let (header, payload) = bytes.split_at((HEADER - self.of_header).min(bytes.len()));
            for &byte in header {
                if LENGTH.contains(&self.of_header) {
                    self.length = self.length << 8 | usize::from(byte);
                }
                self.of_header += 1;
            }
            bytes = payload;
            if self.of_header == HEADER {
                (self.of_header, self.remaining_bytes) = (0, self.length);
            }
        }
    }

    /// Returns the length in bytes of the message that the position is in, header included; 0
    /// between messages and within a header.
    pub(super) fn message(&self) -> usize {
        if self.remaining_bytes > 0 { self.length.saturating_add(HEADER) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use timely::communication::networking::MessageHeader;

    use super::*;

    /// Returns the length of the buffer that a thread gets after it has announced `needed_bytes`
    /// bytes.
    fn gets(needed_bytes: usize, requested_bytes: usize) -> usize {
        let refill = refill();
        need(needed_bytes);
        let buffer_bytes = (refill.logic)(requested_bytes).len();
        need(0);
        buffer_bytes
    }

    #[test]
    fn buffer_has_the_length_of_its_message_up_to_the_requested_size() {
        const MIB: usize = 1 << 20;
        let cases = [
            (0, MIB, MIN_BUFFER_BYTES),
            (100, MIB, MIN_BUFFER_BYTES),
            (9000, MIB, 3 * PAGE),
            (3 * MIB, 4 * MIB, 3 * MIB),
            (3 * MIB, MIB, MIB),
            (ANY_LENGTH, MIB, MIB),
            (ANY_LENGTH, 2 * MIB, 2 * MIB),
        ];
        for (needed_bytes, requested_bytes, expected_bytes) in cases {
            assert_eq!(gets(needed_bytes, requested_bytes), expected_bytes, "{needed_bytes} of {requested_bytes}");
        }
    }

    #[test]
    fn free_buffers_of_similar_length_are_reused_and_bounded() {
        let refill = refill();
        let buffer_of = |bytes| {
            need(bytes);
            (refill.logic)(1 << 20)
        };
        let buffers: Vec<_> = (0..3 * MAX_KEPT_BYTES / (256 << 10)).map(|_| buffer_of(256 << 10)).collect();
        let places: Vec<*const u8> = buffers.iter().map(|buffer| buffer.as_ptr()).collect();
        drop(buffers);
        // A kept buffer is not reused for a message that is much shorter.
        let short = buffer_of(100 << 10);
        assert_eq!(short.len(), 100 << 10);
        let reused_buffers: Vec<_> = (0..MAX_KEPT_BYTES / (256 << 10)).map(|_| buffer_of(200 << 10)).collect();
        assert!(reused_buffers.iter().all(|buffer| buffer.len() == 256 << 10 && places.contains(&buffer.as_ptr())));
        assert_eq!(buffer_of(200 << 10).len(), 200 << 10);
        need(0);
    }

    proptest! {
        #[test]
        fn reader_returns_its_current_message(
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
            // The next byte decides.
            expected.push(0);
            let (mut place, mut at) = (ReadPosition::default(), 0);
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
