//! Listener for the signs of life of all peers, in one thread. It reports why a peer is lost.

use std::io::{self, Read};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::frames::{Frame, FrameReader};
use super::heartbeat::lost_error;
use super::stop::{GRACE, Stop};
use webtwin_base::error::Error;

/// Receiving half of a heartbeat.
pub(super) struct Listener {
    stop: Arc<Stop>,
    deadline: Duration,
    /// Peers that have not announced their end.
    peers: Vec<PeerListener>,
    /// Error of the first broken connection, and the time until which a better reason is awaited.
    first_loss: Option<(Error, Instant)>,
    new: Receiver<PeerListener>,
    /// Socket that wakes this thread; `None` once no other peer can join.
    awake: Option<UnixStream>,
}

impl Listener {
    /// Returns a listener to the peers that arrive through `new`. `awake` receives a byte for each
    /// of them. The listener runs until both are closed and no peer is left.
    pub(super) fn new(stop: Arc<Stop>, deadline: Duration, new: Receiver<PeerListener>, awake: UnixStream) -> Listener {
        Listener { stop, deadline, peers: Vec::new(), first_loss: None, new, awake: Some(awake) }
    }

    /// Listens until there is no peer left.
    pub(super) fn listen(mut self) {
        while self.awake.is_some() || !self.peers.is_empty() || self.first_loss.is_some() {
            let mut heard = self.wait().into_iter();
            let peers = std::mem::take(&mut self.peers);
            let peers = peers.into_iter().zip(heard.by_ref());
            self.peers = peers.filter_map(|(peer, heard)| self.goes_on(peer, heard)).collect();
            if heard.next() == Some(true) {
                self.welcome();
            }
            if let Some((error, _)) = self.first_loss.take_if(|(_, until)| *until <= Instant::now()) {
                self.stop.stop(error);
            }
        }
    }

    /// Waits until a socket has data or a peer has been silent for too long. Returns a flag for
    /// each peer, true if it has data. The last flag belongs to `awake`, if that is open.
    fn wait(&self) -> Vec<bool> {
        let silent = self.peers.iter().map(|peer| peer.last + self.deadline);
        let deadline = silent.chain(self.first_loss.as_ref().map(|lost| lost.1)).min();
        let left = deadline.map(|until| until.saturating_duration_since(Instant::now()) + Duration::from_millis(1));
        let left = left.map_or(PollTimeout::NONE, |left| PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX));
        let sockets = self.peers.iter().map(|peer| peer.socket.as_fd()).chain(self.awake.as_ref().map(AsFd::as_fd));
        let mut sockets: Vec<_> = sockets.map(|socket| PollFd::new(socket, PollFlags::POLLIN)).collect();
        // If polling fails, because of a signal or lack of memory, no socket counts as ready.
        let is_any_ready = poll(&mut sockets, left).is_ok_and(|ready| ready > 0);
        sockets.iter().map(|socket| is_any_ready && socket.any() == Some(true)).collect()
    }

    fn welcome(&mut self) {
        match self.awake.as_mut().map(|awake| awake.read(&mut [0; 64])) {
            Some(Ok(1..)) | None => {}
            Some(_) => self.awake = None,
        }
        self.peers.extend(self.new.try_iter());
    }

    /// Processes the data of a peer if `heard` is true. Returns the peer while more is expected of
    /// it.
    fn goes_on(&mut self, mut peer: PeerListener, heard: bool) -> Option<PeerListener> {
        let (name, deadline) = (&peer.name, self.deadline);
        if !heard && peer.last.elapsed() < deadline {
            return Some(peer);
        }
        if !heard {
            self.stop.stop(Error::PeerLost(format!(
                "{name} has been silent for {} s on the heartbeat connection; check whether it still runs there",
                deadline.as_secs_f32()
            )));
            return None;
        }
        match peer.hear() {
            Ok(PeerMessage::Nothing) => return Some(peer),
            Ok(PeerMessage::Goodbye) => {}
            Ok(PeerMessage::Farewell(error)) => {
                self.stop.stop(error);
            }
            Err(cause) => {
                self.first_loss.get_or_insert_with(|| (lost_error(&peer.name, &cause), Instant::now() + GRACE));
            }
        }
        None
    }
}

/// Effect of the data that a peer has sent.
enum PeerMessage {
    Nothing,
    Goodbye,
    Farewell(Error),
}

/// Connection on which signs of life arrive from a peer.
pub(super) struct PeerListener {
    name: String,
    socket: TcpStream,
    frames: FrameReader,
    /// Received bytes of an incomplete frame.
    bytes: Vec<u8>,
    last: Instant,
}

impl PeerListener {
    /// Returns the connection to the peer `name`, before any data has arrived.
    pub(super) fn new(name: &str, socket: TcpStream, frames: FrameReader) -> PeerListener {
        PeerListener { name: name.to_string(), socket, frames, bytes: Vec::new(), last: Instant::now() }
    }

    /// Reads the available data and processes the complete frames in it.
    fn hear(&mut self) -> io::Result<PeerMessage> {
        let mut piece = [0; 1 << 10];
        match self.socket.read(&mut piece) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(more) => self.bytes.extend_from_slice(&piece[..more]),
            Err(cause) if matches!(cause.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {
                return Ok(PeerMessage::Nothing);
            }
            Err(cause) => return Err(cause),
        }
        self.last = Instant::now();
        let (mut at, mut reason) = (0, Vec::new());
        loop {
            let mut unread = &self.bytes[at..];
            match self.frames.next(&mut unread, &mut [], &mut reason) {
                Ok((Frame::Alive, _)) => at = self.bytes.len() - unread.len(),
                Ok((Frame::End, _)) => return Ok(PeerMessage::Goodbye),
                Ok((Frame::Payload, _)) => {
                    let damaged =
                        |cause: serde_json::Error| io::Error::new(io::ErrorKind::InvalidData, cause.to_string());
                    return serde_json::from_slice(&reason).map(PeerMessage::Farewell).map_err(damaged);
                }
                Err(cause) if cause.kind() == io::ErrorKind::UnexpectedEof => break,
                Err(cause) => return Err(cause),
            }
        }
        self.bytes.drain(..at);
        Ok(PeerMessage::Nothing)
    }
}
