//! Connection of timely's workers whose every byte is checked.
//!
//! timely trusts its sockets: a flipped bit in a payload arrives as data, a flipped bit in a length
//! causes a panic, and so does a socket that closes. A link divides the bytes into frames
//! ([`super::frames`]). So the received bytes are exactly those sent, in order and once, and
//! encrypted if there is a key. Anything else ends the run with
//! [`Error::PeerLost`](webtwin_base::error::Error::PeerLost).
//!
//! A link sends a sign of life at every beat, however busy or idle the workers are. So each
//! connection proves in both directions that it transports bytes. A connection that delivers
//! nothing for one and a half deadlines ends the run. The heartbeat cannot replace this check: it
//! has a connection of its own and does not notice what a firewall, NAT or proxy has done to this
//! one. The additional half deadline lets the heartbeat report a process that is silent on both. A
//! slow connection is not treated as dead, because any byte counts. Nor is a slow reader, because
//! timely's threads read what arrives whatever the workers do.

use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use timely::communication::allocator::zero_copy::stream::Stream;

use super::buffers::{ReadPosition, need};
use super::frames::{Frame, FrameReader, FrameWriter, MAX_PAYLOAD_BYTES, Session};
use super::heartbeat::{beat, lost_error};
use super::stop::{RunPhase, Stop};
use webtwin_base::error::{Error, Result};
use webtwin_base::threads;

/// Number of bytes that are read together with the header of a frame. Small frames are read as a
/// whole; the rest of a long frame is read directly into its destination.
const READ_AHEAD: usize = 8 << 10;

/// Sending half of a link, shared by timely's thread and the thread that sends signs of life.
struct Outgoing {
    socket: TcpStream,
    frames: FrameWriter,
    ended: bool,
}

impl Outgoing {
    fn send(&mut self, kind: Frame, payload: &[u8]) -> io::Result<()> {
        self.frames.send(&mut self.socket, kind, payload)
    }

    /// True if a sign of life would be sent without waiting. One that waits behind other data
    /// proves nothing more than that data does, and would delay the signs of other links.
    fn takes_a_sign(&self) -> io::Result<bool> {
        let mut socket = [PollFd::new(self.socket.as_fd(), PollFlags::POLLOUT)];
        match poll(&mut socket, PollTimeout::ZERO) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::EINTR) => Ok(false),
            Err(cause) => Err(cause.into()),
        }
    }

    /// Sends the end of the stream and shuts the socket down. No frame may follow.
    fn end(&mut self, shutdown: Shutdown) -> io::Result<()> {
        self.ended = true;
        self.send(Frame::End, &[])?;
        self.socket.shutdown(shutdown)
    }
}

/// One end of a checked connection to a peer.
///
/// timely clones a link once for the thread that sends and once for the one that receives, before
/// either begins. So the number of the next incoming frame need not be shared between clones.
pub(super) struct PeerLink {
    socket: BufReader<TcpStream>,
    peer: Arc<str>,
    stop: Arc<Stop>,
    outgoing: Arc<Mutex<Outgoing>>,
    incoming: FrameReader,
    /// Payload that did not fit into the reader's buffer, and the number of its bytes that have
    /// been read.
    frame: Vec<u8>,
    taken_bytes: usize,
    ended: bool,
    /// Position in the messages that timely has read.
    place: ReadPosition,
}

impl PeerLink {
    /// Returns a link of process `own_process` to process `peer_process` over an authenticated
    /// connection. Messages call the peer `peer`.
    ///
    /// # Errors
    /// Returns any error of the socket.
    pub(crate) fn new(
        socket: TcpStream,
        session: &Session,
        (own_process, peer_process): (usize, usize),
        peer: &str,
        stop: Arc<Stop>,
    ) -> io::Result<PeerLink> {
        let outgoing =
            Outgoing { socket: socket.try_clone()?, frames: FrameWriter::new(session, peer_process), ended: false };
        Ok(PeerLink {
            socket: BufReader::with_capacity(READ_AHEAD, socket),
            peer: peer.into(),
            stop,
            outgoing: Arc::new(Mutex::new(outgoing)),
            incoming: FrameReader::new(session, own_process),
            frame: Vec::new(),
            taken_bytes: 0,
            ended: false,
            place: ReadPosition::default(),
        })
    }

    /// Receives the next frame, into `buffer` if it fits there and into `frame` otherwise. Returns
    /// the number of bytes in `buffer`.
    fn next_frame(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.taken_bytes = 0;
        let (kind, bytes) = self.incoming.next(&mut self.socket, buffer, &mut self.frame)?;
        self.ended = kind == Frame::End;
        Ok(bytes)
    }

    /// Records that timely has read `bytes`, and announces the length of the message that they
    /// begin, because the next buffer has to hold it.
    fn has_read(&mut self, bytes: &[u8]) {
        self.place.pass(bytes);
        need(self.place.message());
    }

    fn outgoing(&self) -> MutexGuard<'_, Outgoing> {
        self.outgoing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops the run because of this connection, and never returns. timely would answer any result
    /// with a panic in this thread and then in all workers. So the thread parks until the process
    /// ends, while the workers end in order.
    fn give_up(&self, cause: &io::Error) -> ! {
        let error = match cause.kind() {
            // The operating system returns this error if nothing has arrived within the timeout
            // that `watch` sets.
            io::ErrorKind::WouldBlock => silent(&self.peer, self.socket.get_ref()),
            _ => lost_error(&self.peer, cause),
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
        "{peer}: no data or heartbeat has arrived for {seconds} s; check whether a firewall, NAT or proxy between the \
         two processes drops idle connections"
    ))
}

/// Begins to send signs of life on `links`, from one thread for all, and to expect bytes on them.
///
/// # Errors
/// Returns [`Error::PeerLost`] if a socket is already broken, and [`Error::NoThread`] if the thread
/// cannot be started.
pub(super) fn watch(links: &[Option<PeerLink>], deadline: Duration, stop: Arc<Stop>) -> Result<()> {
    let mut watched = Vec::new();
    for link in links.iter().flatten() {
        let patience = Some(deadline + deadline / 2);
        link.socket.get_ref().set_read_timeout(patience).map_err(|cause| lost_error(&link.peer, &cause))?;
        watched.push((Arc::downgrade(&link.outgoing), Arc::clone(&link.peer)));
    }
    let give_signs = move || {
        while let RunPhase::Running = stop.wait(beat(deadline)) {
            watched.retain(|(outgoing, peer)| {
                give_sign(outgoing).unwrap_or_else(|cause| {
                    stop.stop_unless_explained(lost_error(peer, &cause));
                    false
                })
            });
        }
    };
    threads::start(give_signs).map(drop)
}

/// Sends a sign of life unless other data is being sent. Returns true if the link still needs signs
/// of life.
fn give_sign(outgoing: &Weak<Mutex<Outgoing>>) -> io::Result<bool> {
    let Some(outgoing) = outgoing.upgrade() else { return Ok(false) };
    match outgoing.try_lock() {
        Ok(outgoing) if outgoing.ended => Ok(false),
        Ok(mut outgoing) => {
            if outgoing.takes_a_sign()? {
                outgoing.send(Frame::Alive, &[])?;
            }
            Ok(true)
        }
        // The holder of the lock is sending data, which proves more than a sign of life.
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Poisoned(_)) => Ok(false),
    }
}

impl Read for PeerLink {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.taken_bytes == self.frame.len() && !self.ended {
            match self.next_frame(buffer) {
                Ok(0) => {}
                Ok(bytes) => {
                    self.has_read(&buffer[..bytes]);
                    return Ok(bytes);
                }
                Err(cause) => self.give_up(&cause),
            }
        }
        let length = buffer.len().min(self.frame.len() - self.taken_bytes);
        buffer[..length].copy_from_slice(&self.frame[self.taken_bytes..][..length]);
        self.taken_bytes += length;
        if self.taken_bytes == self.frame.len() {
            // The memory is released, because frames are rarely held here and there are many links.
            (self.frame, self.taken_bytes) = (Vec::new(), 0);
        }
        self.has_read(&buffer[..length]);
        Ok(length)
    }
}

impl Write for PeerLink {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let payload = &buffer[..buffer.len().min(MAX_PAYLOAD_BYTES)];
        let outcome = if payload.is_empty() { Ok(()) } else { self.outgoing().send(Frame::Payload, payload) };
        match outcome {
            Ok(()) => Ok(payload.len()),
            Err(cause) => self.give_up(&cause),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream for PeerLink {
    fn try_clone(&self) -> io::Result<Self> {
        Ok(PeerLink {
            socket: BufReader::with_capacity(self.socket.capacity(), self.socket.get_ref().try_clone()?),
            peer: Arc::clone(&self.peer),
            stop: Arc::clone(&self.stop),
            outgoing: Arc::clone(&self.outgoing),
            incoming: self.incoming.fresh(),
            frame: Vec::new(),
            taken_bytes: 0,
            ended: false,
            place: ReadPosition::default(),
        })
    }

    fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.socket.get_ref().set_nonblocking(nonblocking)
    }

    fn shutdown(&self, shutdown: Shutdown) -> io::Result<()> {
        let ended = self.outgoing().end(shutdown);
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
    use crate::frames::TAG;
    use crate::handshake::sessions;
    use crate::stop::RunPhase;

    fn sockets() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let dialer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (listener.accept().unwrap().0, dialer)
    }

    fn link(socket: TcpStream, session: &Session, ends: (usize, usize)) -> (PeerLink, Arc<Stop>) {
        let stop = Arc::new(Stop::new());
        (PeerLink::new(socket, session, ends, "process 9", Arc::clone(&stop)).unwrap(), stop)
    }

    /// Returns the bytes that process 0 sends by three writes, a sign of life after each, and the
    /// end; and the session that process 1 shares with it.
    fn wire(keyed: bool) -> (Vec<u8>, [Session; 2]) {
        let sessions = sessions(keyed);
        let (local_end, mut remote_end) = sockets();
        let mut link = link(local_end, &sessions[0], (0, 1)).0;
        for payload in [&b"some"[..], &[b'x'; 300], b"rows"] {
            link.write_all(payload).unwrap();
            link.outgoing().send(Frame::Alive, &[]).unwrap();
        }
        link.shutdown(Shutdown::Write).unwrap();
        let mut bytes = Vec::new();
        remote_end.read_to_end(&mut bytes).unwrap();
        (bytes, sessions)
    }

    /// Returns the bytes that are received from `wire`, or the error that stopped the run.
    fn arrives(wire: &[u8], session: &Session, ends: (usize, usize)) -> std::result::Result<Vec<u8>, String> {
        let (local_end, mut remote_end) = sockets();
        let (mut link, stop) = link(local_end, session, ends);
        remote_end.write_all(wire).unwrap();
        drop(remote_end);
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
            if let RunPhase::Stopped(error) = stop.wait(Duration::ZERO) {
                assert_eq!(error.exit_code(), 7);
                return Err(error.to_string());
            }
        }
    }

    #[test]
    fn frames_arrive_in_order() {
        let bytes = [&b"some"[..], &[b'x'; 300], b"rows"].concat();
        for keyed in [false, true] {
            let (wire, [_, session]) = wire(keyed);
            assert_eq!(arrives(&wire, &session, (1, 0)), Ok(bytes.clone()));
        }
    }

    #[test]
    fn with_a_key_no_sent_byte_is_readable() {
        let reads =
            |keyed| wire(keyed).0.windows(4).any(|bytes| bytes == b"some" || bytes == b"xxxx" || bytes == b"rows");
        assert!(reads(false) && !reads(true));
    }

    #[test]
    fn bytes_of_many_frames_arrive() {
        let expected: Vec<u8> = (0..300_000u32).flat_map(u32::to_le_bytes).collect();
        for keyed in [false, true] {
            let [sender_session, receiver_session] = sessions(keyed);
            let (sender_socket, other) = sockets();
            let (mut from, mut to) =
                (link(sender_socket, &sender_session, (0, 1)).0, link(other, &receiver_session, (1, 0)).0);
            let receiver = std::thread::spawn(move || {
                // Reads with a buffer that fits a whole frame, and with a smaller one.
                let (mut bytes, mut space) = (Vec::new(), [0; 100_000]);
                for length in [space.len(), 1000].into_iter().cycle() {
                    match to.read(&mut space[..length]).unwrap() {
                        0 => return bytes,
                        read => bytes.extend_from_slice(&space[..read]),
                    }
                }
                unreachable!("the end comes")
            });
            from.write_all(&expected).unwrap();
            from.shutdown(Shutdown::Write).unwrap();
            assert!(receiver.join().unwrap() == expected);
        }
    }

    #[test]
    fn a_flipped_bit_anywhere_ends_the_run_and_never_arrives() {
        std::thread::scope(|scope| {
            for keyed in [false, true] {
                let (wire, [_, session]) = wire(keyed);
                for at in (0..wire.len()).step_by(3) {
                    let (mut wire, session) = (wire.clone(), session.clone());
                    scope.spawn(move || {
                        wire[at] ^= 1 << (at % 8);
                        let line = arrives(&wire, &session, (1, 0)).unwrap_err();
                        assert!(line.contains("process 9: bytes were damaged"), "bit {at}: {line}");
                    });
                }
            }
        });
    }

    #[test]
    fn repeated_missing_reflected_or_truncated_frames_end_the_run() {
        const EMPTY: usize = 8 + TAG;
        let (wire, [own_session, peer_session]) = wire(true);
        let first = EMPTY + 4;
        let repeated = [&wire[..first], &wire[..]].concat();
        for (attack, bytes, session, ends) in [
            ("repeated", &repeated[..], &peer_session, (1, 0)),
            ("left out", &wire[first..], &peer_session, (1, 0)),
            ("reflected", &wire[..], &own_session, (0, 1)),
            ("cut off", &wire[..wire.len() - EMPTY], &peer_session, (1, 0)),
            ("cut in a frame", &wire[..first + EMPTY + 9], &peer_session, (1, 0)),
        ] {
            assert!(arrives(bytes, session, ends).is_err(), "{attack}");
        }
    }
}
