//! The bytes of a connection as numbered frames. Each frame proves that it arrived unaltered, in
//! order and exactly once.
//!
//! ```text
//! frame: length u32 | check of the length u32 | payload | tag, 16 bytes
//!        length 0 ends the stream, length 2^32 - 1 is a sign of life; neither has a payload
//! ```
//!
//! With a key, payload and tag are a transport message of the Noise protocol
//! ([`super::handshake`]): without the key a frame cannot be read, altered, repeated, omitted or
//! injected. The nonce of a payload is four times the number of the frame. It is one more for a
//! sign of life and two more for the end, so that none of the three can be mistaken for another.
//! Without a key (loopback) the payload is in the clear and the tag is an XXH3 hash, which detects
//! damage but not malice.

use std::io::{self, IoSlice, Read, Write};
use std::sync::Arc;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use snow::StatelessTransportState;
use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128_with_seed};

/// Maximum length of a payload in bytes, so that a Noise message holds it and its tag. A header
/// with a larger length is rejected before anything is allocated.
pub const MAX_PAYLOAD_BYTES: usize = 65_535 - TAG;

const HEADER: usize = 8;
pub(super) const TAG: usize = 16;

/// Length field of the frame that ends the stream.
const END: u32 = 0;

/// Length field of a sign of life.
const ALIVE: u32 = u32::MAX;

/// State that both ends of a connection share after the handshake.
#[derive(Clone)]
pub struct Session {
    /// Hash of all messages of the handshake. It is secret to everyone without the key.
    pub(super) hash: [u8; 32],
    /// Ciphers of both directions; `None` without a key.
    pub(super) ciphers: Option<Arc<StatelessTransportState>>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(if self.ciphers.is_some() { "Session(encrypted)" } else { "Session(in the clear)" })
    }
}

/// Type of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// Data, at least one byte.
    Payload,
    /// Sign of life.
    Alive,
    /// End of the stream.
    End,
}

impl Frame {
    fn from_length(length: u32) -> Frame {
        match length {
            END => Frame::End,
            ALIVE => Frame::Alive,
            _ => Frame::Payload,
        }
    }

    fn nonce(self, number: u64) -> u64 {
        number * 4
            + match self {
                Frame::Payload => 0,
                Frame::Alive => 1,
                Frame::End => 2,
            }
    }
}

/// State of one direction of a connection.
struct Direction {
    session: Session,
    seed: u64,
    /// Number of the next frame.
    next: u64,
}

impl Direction {
    fn new(session: &Session, receiver: usize) -> Direction {
        let mut mac = Hmac::<Sha256>::new_from_slice(&session.hash).expect("HMAC takes keys of any length");
        mac.update(&(receiver as u64).to_le_bytes());
        let secret: [u8; 32] = mac.finalize().into_bytes().into();
        let seed = u64::from_le_bytes(secret[..8].try_into().expect("a range of 8 bytes"));
        Direction { session: session.clone(), seed, next: 0 }
    }

    /// Returns the header of the next frame. Its check guards the length, because a damaged length
    /// would make the receiver wait for bytes that were never sent.
    fn header(&self, length: u32) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[..4].copy_from_slice(&length.to_le_bytes());
        let check = xxh3_64_with_seed(&header[..4], self.seed ^ !self.next) as u32;
        header[4..].copy_from_slice(&check.to_le_bytes());
        header
    }

    fn clear_tag(&self, payload: &[u8]) -> [u8; TAG] {
        xxh3_128_with_seed(payload, self.seed.wrapping_add(self.next)).to_le_bytes()
    }
}

/// Sending end of a connection.
pub struct FrameWriter {
    direction: Direction,
    /// Scratch for an encrypted message.
    message: Vec<u8>,
}

impl FrameWriter {
    /// Returns a writer of frames to process number `receiver`.
    pub fn new(session: &Session, receiver: usize) -> FrameWriter {
        FrameWriter { direction: Direction::new(session, receiver), message: Vec::new() }
    }

    /// Sends a frame. A payload has 1 to [`MAX_PAYLOAD_BYTES`] bytes; other frames have no payload.
    ///
    /// # Errors
    /// Returns any error of the socket.
    pub fn send(&mut self, to: &mut impl Write, kind: Frame, payload: &[u8]) -> io::Result<()> {
        debug_assert_eq!(kind == Frame::Payload, (1..=MAX_PAYLOAD_BYTES).contains(&payload.len()));
        let length = match kind {
            Frame::Payload => payload.len() as u32,
            Frame::Alive => ALIVE,
            Frame::End => END,
        };
        let direction = &mut self.direction;
        let (header, tag);
        let mut parts = match &direction.session.ciphers {
            Some(ciphers) => {
                self.message.resize(payload.len() + TAG, 0);
                let nonce = kind.nonce(direction.next);
                ciphers.write_message(nonce, payload, &mut self.message).map_err(io::Error::other)?;
                header = direction.header(length);
                [&header[..], &self.message, &[]]
            }
            None => {
                (header, tag) = (direction.header(length), direction.clear_tag(payload));
                [&header[..], payload, &tag]
            }
        }
        .map(IoSlice::new);
        direction.next += 1;
        write_all(to, &mut parts)
    }
}

/// Writes all parts, in as few calls as the socket allows.
fn write_all(to: &mut impl Write, mut parts: &mut [IoSlice<'_>]) -> io::Result<()> {
    IoSlice::advance_slices(&mut parts, 0);
    while !parts.is_empty() {
        match to.write_vectored(parts) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut parts, written),
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            Err(cause) => return Err(cause),
        }
    }
    Ok(())
}

/// Receiving end of a connection.
pub struct FrameReader {
    direction: Direction,
    /// Scratch for an encrypted message.
    message: Vec<u8>,
}

impl FrameReader {
    /// Returns a reader of the frames to process number `receiver`, which is this one.
    pub fn new(session: &Session, receiver: usize) -> FrameReader {
        FrameReader { direction: Direction::new(session, receiver), message: Vec::new() }
    }

    /// Returns another reader for the same connection, at its beginning. Only one of the two may be
    /// used.
    pub fn fresh(&self) -> FrameReader {
        let Direction { session, seed, .. } = &self.direction;
        FrameReader { direction: Direction { session: session.clone(), seed: *seed, next: 0 }, message: Vec::new() }
    }

    /// Reads the next frame. Its payload is written to the beginning of `into` if payload and tag
    /// fit there, and to `overflow` otherwise. Returns the number of bytes written to `into`. After
    /// an error the content of `into` is unspecified.
    ///
    /// # Errors
    /// Returns any error of the socket, and [`io::ErrorKind::InvalidData`] if the bytes are not the
    /// frame that was sent.
    pub fn next(
        &mut self,
        from: &mut impl Read,
        into: &mut [u8],
        overflow: &mut Vec<u8>,
    ) -> io::Result<(Frame, usize)> {
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "bytes were damaged in transit");
        let direction = &mut self.direction;
        let mut header = [0; HEADER];
        from.read_exact(&mut header)?;
        let length = u32::from_le_bytes(header[..4].try_into().expect("a range of 4 bytes"));
        let kind = Frame::from_length(length);
        let bytes = if kind == Frame::Payload { length as usize } else { 0 };
        // Checked before it is used: the length decides how many bytes are allocated and awaited.
        if header != direction.header(length) || bytes > MAX_PAYLOAD_BYTES {
            return Err(damaged());
        }
        overflow.clear();
        let needs_overflow = into.len() < bytes + TAG;
        let payload = if needs_overflow {
            overflow.resize(bytes + TAG, 0);
            &mut overflow[..]
        } else {
            &mut into[..bytes + TAG]
        };
        match &direction.session.ciphers {
            Some(ciphers) => {
                self.message.resize(bytes + TAG, 0);
                from.read_exact(&mut self.message)?;
                // The output has space for the tag, so the message is decrypted without another
                // copy.
                ciphers.read_message(kind.nonce(direction.next), &self.message, payload).map_err(|_| damaged())?;
            }
            None => {
                from.read_exact(payload)?;
                let (clear, tag) = payload.split_at(bytes);
                if tag != direction.clear_tag(clear) {
                    return Err(damaged());
                }
            }
        }
        overflow.truncate(if needs_overflow { bytes } else { 0 });
        direction.next += 1;
        Ok((kind, if needs_overflow { 0 } else { bytes }))
    }
}
