//! A connection for timely's workers whose every byte is checked.
//!
//! timely trusts its sockets: a flipped bit in a payload arrives as data, one in a length is a panic, and a socket that
//! closes is a panic too. A link cuts the bytes into numbered frames with a tag on each, so that what arrives is exactly
//! what was sent, in order and once; anything else ends the run with [`Error::PeerLost`](crate::error::Error::PeerLost).
//!
//! ```text
//! frame: length u32 | check of the header u32 | tag, 16 bytes | payload
//!        length 0 ends the stream, length 2^32 - 1 is a sign of life without a payload
//! ```
//!
//! A sign of life goes out every beat, however busy or idle the workers are, so each connection proves by itself, in each
//! direction, that it passes bytes on. One that brings nothing for one and a half deadlines ends the run: the heartbeat has a
//! connection of its own, and says nothing of what a firewall, NAT or proxy has done to this one. Half a deadline more, so
//! that a process that is silent on both is reported as such. A slow connection is not a dead one, for any byte counts; nor is
//! a slow reader, for timely's threads take what arrives, whatever the workers do.
//!
//! With a key the tag is HMAC-SHA256, cut to 128 bits: nobody without it can alter, repeat or inject a frame. Without
//! one (loopback) it is XXH3: damage is found, malice is not.

use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use timely::communication::allocator::zero_copy::stream::Stream;
use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128_with_seed};

use super::handshake::Session;
use super::heartbeat::{beat, lost};
use super::stop::{Phase, Stop};
use crate::error::Error;

/// Most bytes of a payload; nothing larger is believed or allocated.
const LONGEST: usize = 1 << 20;

const HEADER: usize = 24;

/// Stands in place of a length in the header of a sign of life.
const ALIVE: u32 = u32::MAX;

/// Length that ends the stream.
const END: u32 = 0;

/// The tags of one direction of a connection.
#[derive(Clone)]
struct Seal {
    mac: Option<Hmac<Sha256>>,
    seed: u64,
}

impl Seal {
    fn new(session: &Session, keyed: bool, receiver: usize) -> Seal {
        let mut mac = Hmac::<Sha256>::new_from_slice(&session.0).expect("HMAC takes keys of any length");
        mac.update(&(receiver as u64).to_le_bytes());
        let secret: [u8; 32] = mac.finalize().into_bytes().into();
        let seed = u64::from_le_bytes(secret[..8].try_into().expect("a range of 8 bytes"));
        let mac = keyed.then(|| Hmac::new_from_slice(&secret).expect("HMAC takes keys of any length"));
        Seal { mac, seed }
    }

    /// Returns the header of frame number `number`; `length` is that of the payload, [`END`] or [`ALIVE`].
    fn header(&self, number: u64, length: u32, payload: &[u8]) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[..4].copy_from_slice(&length.to_le_bytes());
        let check = self.check(number, &header[..4]);
        header[4..8].copy_from_slice(&check);
        let tag = match &self.mac {
            Some(mac) => {
                let mut mac = mac.clone();
                mac.update(&number.to_le_bytes());
                mac.update(&length.to_le_bytes());
                mac.update(payload);
                let tag: [u8; 32] = mac.finalize().into_bytes().into();
                tag[..16].try_into().expect("a range of 16 bytes")
            }
            None => xxh3_128_with_seed(payload, self.seed.wrapping_add(number)).to_le_bytes(),
        };
        header[8..].copy_from_slice(&tag);
        header
    }

    /// Checks the length before it is used: waiting for bytes that nobody sent would hang the run.
    fn check(&self, number: u64, length: &[u8]) -> [u8; 4] {
        (xxh3_64_with_seed(length, self.seed ^ !number) as u32).to_le_bytes()
    }
}

/// The half that sends; timely's thread and the one that gives signs of life take turns.
struct Outgoing {
    socket: TcpStream,
    seal: Seal,
    sent: u64,
    packet: Vec<u8>,
    ended: bool,
}

impl Outgoing {
    fn send(&mut self, length: u32, payload: &[u8]) -> io::Result<()> {
        self.packet.clear();
        self.packet.extend_from_slice(&self.seal.header(self.sent, length, payload));
        self.packet.extend_from_slice(payload);
        self.sent += 1;
        self.socket.write_all(&self.packet)
    }

    /// Nothing may follow the end of the stream.
    fn end(&mut self, how: Shutdown) -> io::Result<()> {
        self.ended = true;
        self.send(END, &[])?;
        self.socket.shutdown(how)
    }
}

/// One end of a checked connection to a peer.
///
/// timely clones it once for the thread that sends and once for the one that receives, before either begins; the numbers of
/// the frames that arrive therefore live in one clone only.
pub(super) struct Link {
    socket: BufReader<TcpStream>,
    peer: Arc<str>,
    stop: Arc<Stop>,
    outgoing: Arc<Mutex<Outgoing>>,
    incoming: Seal,
    received: u64,
    frame: Vec<u8>,
    taken: usize,
    ended: bool,
}

impl Link {
    /// Makes a link of process `here` to process `there` (named `peer` in messages) of an authenticated connection.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn new(
        socket: TcpStream,
        session: &Session,
        keyed: bool,
        (here, there): (usize, usize),
        peer: &str,
        stop: Arc<Stop>,
    ) -> io::Result<Link> {
        let outgoing = Outgoing {
            socket: socket.try_clone()?,
            seal: Seal::new(session, keyed, there),
            sent: 0,
            packet: Vec::new(),
            ended: false,
        };
        Ok(Link {
            socket: BufReader::with_capacity(1 << 18, socket),
            peer: peer.into(),
            stop,
            outgoing: Arc::new(Mutex::new(outgoing)),
            incoming: Seal::new(session, keyed, here),
            received: 0,
            frame: Vec::new(),
            taken: 0,
            ended: false,
        })
    }

    /// Begins to send signs of life, and to expect bytes.
    ///
    /// # Errors
    /// Those of the socket, or of starting a thread.
    pub fn watch(&self, deadline: Duration) -> io::Result<()> {
        self.socket.get_ref().set_read_timeout(Some(deadline + deadline / 2))?;
        let (outgoing, stop, peer) = (Arc::downgrade(&self.outgoing), Arc::clone(&self.stop), Arc::clone(&self.peer));
        let give_signs = move || {
            if let Err(cause) = give_signs_of_life(&outgoing, &stop, beat(deadline)) {
                stop.stop_unless_explained(lost(&peer, &cause));
            }
        };
        std::thread::Builder::new().name("signs of life".into()).spawn(give_signs).map(drop)
    }

    fn next_frame(&mut self) -> io::Result<()> {
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "bytes were damaged on the way");
        let mut header = [0; HEADER];
        self.socket.read_exact(&mut header)?;
        let length = u32::from_le_bytes(header[..4].try_into().expect("a range of 4 bytes"));
        let bytes = if length == ALIVE { 0 } else { length as usize };
        if header[4..8] != self.incoming.check(self.received, &header[..4]) || bytes > LONGEST {
            return Err(damaged());
        }
        self.frame.resize(bytes, 0);
        self.taken = 0;
        self.socket.read_exact(&mut self.frame)?;
        if !equal(&header, &self.incoming.header(self.received, length, &self.frame)) {
            return Err(damaged());
        }
        self.received += 1;
        self.ended = length == END;
        Ok(())
    }

    fn outgoing(&self) -> MutexGuard<'_, Outgoing> {
        self.outgoing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops the run because of this connection. timely would answer any result with a panic in this thread and then in
    /// all workers; so the thread stays here, with the workers free to end in order, until the process goes.
    fn give_up(&self, cause: &io::Error) -> ! {
        let error = match cause.kind() {
            // The system's answer when nothing has arrived for the time that `watch` allows.
            io::ErrorKind::WouldBlock => silent(&self.peer, self.socket.get_ref()),
            _ => lost(&self.peer, cause),
        };
        self.stop.stop_unless_explained(error);
        loop {
            std::thread::park();
        }
    }
}

fn silent(peer: &str, socket: &TcpStream) -> Error {
    let seconds = socket.read_timeout().ok().flatten().unwrap_or_default().as_secs_f32();
    Error::PeerLost(format!(
        "{peer}: nothing has arrived for {seconds} s, not even a sign of life; a firewall, NAT or proxy between the two \
         processes may have forgotten the connection"
    ))
}

/// Sends a sign of life every beat until the run, the stream or the link ends.
fn give_signs_of_life(outgoing: &Weak<Mutex<Outgoing>>, stop: &Stop, beat: Duration) -> io::Result<()> {
    while let Phase::Running = stop.wait(beat) {
        let Some(outgoing) = outgoing.upgrade() else { return Ok(()) };
        match outgoing.try_lock() {
            Ok(outgoing) if outgoing.ended => return Ok(()),
            Ok(mut outgoing) => outgoing.send(ALIVE, &[])?,
            // Whoever has it is sending: more than a sign.
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Poisoned(_)) => return Ok(()),
        }
    }
    Ok(())
}

/// Compares without telling by the time taken where two tags differ.
fn equal(a: &[u8; HEADER], b: &[u8; HEADER]) -> bool {
    a.iter().zip(b).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

impl Read for Link {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.frame.len() && !self.ended {
            if let Err(cause) = self.next_frame() {
                self.give_up(&cause);
            }
        }
        let length = buffer.len().min(self.frame.len() - self.taken);
        buffer[..length].copy_from_slice(&self.frame[self.taken..][..length]);
        self.taken += length;
        Ok(length)
    }
}

impl Write for Link {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let payload = &buffer[..buffer.len().min(LONGEST)];
        let sent = if payload.is_empty() { Ok(()) } else { self.outgoing().send(payload.len() as u32, payload) };
        match sent {
            Ok(()) => Ok(payload.len()),
            Err(cause) => self.give_up(&cause),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream for Link {
    fn try_clone(&self) -> io::Result<Self> {
        Ok(Link {
            socket: BufReader::with_capacity(self.socket.capacity(), self.socket.get_ref().try_clone()?),
            peer: Arc::clone(&self.peer),
            stop: Arc::clone(&self.stop),
            outgoing: Arc::clone(&self.outgoing),
            incoming: self.incoming.clone(),
            received: 0,
            frame: Vec::new(),
            taken: 0,
            ended: false,
        })
    }

    fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.socket.get_ref().set_nonblocking(nonblocking)
    }

    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        let ended = self.outgoing().end(how);
        match ended {
            Ok(()) => Ok(()),
            Err(cause) => self.give_up(&cause),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::time::Duration;

    use super::*;
    use crate::engine::stop::Phase;

    fn sockets() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let dialer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (listener.accept().unwrap().0, dialer)
    }

    fn link(socket: TcpStream, keyed: bool, ends: (usize, usize)) -> (Link, Arc<Stop>) {
        let stop = Arc::new(Stop::new());
        (Link::new(socket, &Session([7; 32]), keyed, ends, "process 9", Arc::clone(&stop)).unwrap(), stop)
    }

    /// The bytes on the wire after three writes, a sign of life after each, and the end.
    fn wire(keyed: bool) -> Vec<u8> {
        let (here, mut there) = sockets();
        let mut link = link(here, keyed, (0, 1)).0;
        for payload in [&b"some"[..], &[b'x'; 300], b"rows"] {
            link.write_all(payload).unwrap();
            link.outgoing().send(ALIVE, &[]).unwrap();
        }
        link.shutdown(Shutdown::Write).unwrap();
        let mut bytes = Vec::new();
        there.read_to_end(&mut bytes).unwrap();
        bytes
    }

    /// What arrives of `wire`: the bytes, or the reason the run stopped.
    fn arrives(wire: &[u8], keyed: bool, ends: (usize, usize)) -> Result<Vec<u8>, String> {
        let (here, mut there) = sockets();
        let (mut link, stop) = link(here, keyed, ends);
        there.write_all(wire).unwrap();
        drop(there);
        let (send, receive) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            link.read_to_end(&mut bytes).unwrap();
            send.send(bytes).unwrap();
        });
        loop {
            if let Ok(bytes) = receive.recv_timeout(Duration::from_millis(5)) {
                return Ok(bytes);
            }
            if let Phase::Stopped(error) = stop.wait(Duration::ZERO) {
                assert_eq!(error.exit_code(), 7);
                return Err(error.to_string());
            }
        }
    }

    #[test]
    fn what_was_sent_arrives_in_order() {
        let sent = [&b"some"[..], &[b'x'; 300], b"rows"].concat();
        for keyed in [false, true] {
            assert_eq!(arrives(&wire(keyed), keyed, (1, 0)), Ok(sent.clone()));
        }
    }

    #[test]
    fn a_flipped_bit_anywhere_ends_the_run_and_never_arrives() {
        std::thread::scope(|scope| {
            for keyed in [false, true] {
                let wire = wire(keyed);
                for at in (0..wire.len()).step_by(3) {
                    let mut wire = wire.clone();
                    scope.spawn(move || {
                        wire[at] ^= 1 << (at % 8);
                        let line = arrives(&wire, keyed, (1, 0)).unwrap_err();
                        assert!(line.contains("process 9: bytes were damaged"), "bit {at}: {line}");
                    });
                }
            }
        });
    }

    #[test]
    fn frames_repeated_left_out_reflected_or_cut_off_end_the_run() {
        let wire = wire(true);
        let first = HEADER + 4;
        let twice = [&wire[..first], &wire[..]].concat();
        for (what, bytes, ends) in [
            ("repeated", &twice[..], (1, 0)),
            ("left out", &wire[first..], (1, 0)),
            ("reflected", &wire[..], (0, 1)),
            ("cut off", &wire[..wire.len() - HEADER], (1, 0)),
            ("cut in a frame", &wire[..first + HEADER + 9], (1, 0)),
        ] {
            assert!(arrives(bytes, true, ends).is_err(), "{what}");
        }
    }
}
