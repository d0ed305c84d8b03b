//! The bytes of a connection in numbered frames, each of which proves that it arrived as it was sent, in order and once.
//!
//! ```text
//! frame: length u32 | check of the length u32 | payload | tag, 16 bytes
//!        length 0 ends the stream, length 2^32 - 1 is a sign of life; neither has a payload
//! ```
//!
//! With a key, payload and tag are a transport message of the Noise protocol ([`super::handshake`]): nobody without the key
//! can read it, and nobody can alter, repeat, leave out or inject one. Its nonce is four times the number of the frame, and
//! one or two more for a sign of life or the end, so that none of the three passes for another. Without a key (loopback)
//! the payload is as it is and the tag XXH3: damage is found, malice is not.

use std::io::{self, IoSlice, Read, Write};
use std::sync::Arc;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use snow::StatelessTransportState;
use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128_with_seed};

/// Most bytes of a payload, so that a Noise message holds it with its tag; nothing larger is believed or allocated.
pub const LONGEST: usize = 65_535 - TAG;

const HEADER: usize = 8;
pub(super) const TAG: usize = 16;

/// Length that ends the stream.
const END: u32 = 0;

/// Stands in place of a length in the header of a sign of life.
const ALIVE: u32 = u32::MAX;

/// What the two ends of one connection share after the handshake.
#[derive(Clone)]
pub struct Session {
    /// Hash of all that was said in the handshake; without the key nobody knows it.
    pub(super) hash: [u8; 32],
    /// The ciphers of both directions; none without a key.
    pub(super) ciphers: Option<Arc<StatelessTransportState>>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(if self.ciphers.is_some() { "Session(encrypted)" } else { "Session(in the clear)" })
    }
}

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// Bytes, one at least.
    Payload,
    /// A sign of life.
    Alive,
    /// The last one.
    End,
}

impl Frame {
    fn of(length: u32) -> Frame {
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

/// The frames of one direction of a connection.
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

    /// The length is checked before it is used: waiting for bytes that nobody sent would hang the run.
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

/// The end of a connection that sends.
pub struct FrameWriter {
    direction: Direction,
    /// Room for an encrypted message.
    message: Vec<u8>,
}

impl FrameWriter {
    /// Frames to process number `receiver`.
    pub fn new(session: &Session, receiver: usize) -> FrameWriter {
        FrameWriter { direction: Direction::new(session, receiver), message: Vec::new() }
    }

    /// Sends a frame. A payload has 1 to [`LONGEST`] bytes; other frames have none.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn send(&mut self, to: &mut impl Write, what: Frame, payload: &[u8]) -> io::Result<()> {
        debug_assert_eq!(what == Frame::Payload, (1..=LONGEST).contains(&payload.len()));
        let length = match what {
            Frame::Payload => payload.len() as u32,
            Frame::Alive => ALIVE,
            Frame::End => END,
        };
        let direction = &mut self.direction;
        let (header, tag);
        let mut parts = match &direction.session.ciphers {
            Some(ciphers) => {
                self.message.resize(payload.len() + TAG, 0);
                let nonce = what.nonce(direction.next);
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

/// Writes all parts, in as few calls as the socket takes them.
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

/// The end of a connection that receives.
pub struct FrameReader {
    direction: Direction,
    /// Room for an encrypted message.
    message: Vec<u8>,
}

impl FrameReader {
    /// Frames to this process, which is number `receiver`.
    pub fn new(session: &Session, receiver: usize) -> FrameReader {
        FrameReader { direction: Direction::new(session, receiver), message: Vec::new() }
    }

    /// Another reader of the same connection, of which only one may be used.
    pub fn fresh(&self) -> FrameReader {
        let Direction { session, seed, .. } = &self.direction;
        FrameReader { direction: Direction { session: session.clone(), seed: *seed, next: 0 }, message: Vec::new() }
    }

    /// Reads the next frame. Its payload goes to the beginning of `into` if there is room for it and a tag, and otherwise becomes
    /// `aside`; returns how many bytes went into `into`, of which nothing holds if there is an error.
    ///
    /// # Errors
    /// Those of the socket; [`io::ErrorKind::InvalidData`] if it is not the frame that was sent.
    pub fn next(&mut self, from: &mut impl Read, into: &mut [u8], aside: &mut Vec<u8>) -> io::Result<(Frame, usize)> {
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "bytes were damaged on the way");
        let direction = &mut self.direction;
        let mut header = [0; HEADER];
        from.read_exact(&mut header)?;
        let length = u32::from_le_bytes(header[..4].try_into().expect("a range of 4 bytes"));
        let what = Frame::of(length);
        let bytes = if what == Frame::Payload { length as usize } else { 0 };
        if header != direction.header(length) || bytes > LONGEST {
            return Err(damaged());
        }
        aside.clear();
        let goes_aside = into.len() < bytes + TAG;
        let payload = if goes_aside {
            aside.resize(bytes + TAG, 0);
            &mut aside[..]
        } else {
            &mut into[..bytes + TAG]
        };
        match &direction.session.ciphers {
            Some(ciphers) => {
                self.message.resize(bytes + TAG, 0);
                from.read_exact(&mut self.message)?;
                // With room for the tag, it is opened where it goes.
                ciphers.read_message(what.nonce(direction.next), &self.message, payload).map_err(|_| damaged())?;
            }
            None => {
                from.read_exact(payload)?;
                let (clear, tag) = payload.split_at(bytes);
                if tag != direction.clear_tag(clear) {
                    return Err(damaged());
                }
            }
        }
        aside.truncate(if goes_aside { bytes } else { 0 });
        direction.next += 1;
        Ok((what, if goes_aside { 0 } else { bytes }))
    }
}
