//! Listens to the signs of life of all peers, in one thread, and says why when there are none.

use std::io::{self, Read};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::frames::{Frame, FrameReader};
use super::heartbeat::lost;
use super::stop::{GRACE, Stop};
use webtwin_base::error::Error;

/// The half of a heartbeat that listens.
pub(super) struct Listener {
    stop: Arc<Stop>,
    deadline: Duration,
    /// Those who have not said goodbye.
    peers: Vec<Heard>,
    /// The first whose connection broke, and until when there may be a better reason.
    lost: Option<(Error, Instant)>,
    new: Receiver<Heard>,
    /// None once nobody else will join.
    awake: Option<UnixStream>,
}

impl Listener {
    /// Returns a listener to peers that come through `new`, for each of which `awake` has a byte, until both end.
    pub(super) fn new(stop: Arc<Stop>, deadline: Duration, new: Receiver<Heard>, awake: UnixStream) -> Listener {
        Listener { stop, deadline, peers: Vec::new(), lost: None, new, awake: Some(awake) }
    }

    /// Listens until there is nobody left to listen to.
    pub(super) fn listen(mut self) {
        while self.awake.is_some() || !self.peers.is_empty() || self.lost.is_some() {
            let mut heard = self.wait().into_iter();
            let all = std::mem::take(&mut self.peers);
            let all = all.into_iter().zip(heard.by_ref());
            self.peers = all.filter_map(|(peer, heard)| self.goes_on(peer, heard)).collect();
            if heard.next() == Some(true) {
                self.welcome();
            }
            if let Some((error, _)) = self.lost.take_if(|(_, until)| *until <= Instant::now()) {
                self.stop.stop(error);
            }
        }
    }

    /// Waits until there is something to hear or somebody has been silent for too long; returns whether there is
    /// something of each peer, and at last whether of a new one.
    fn wait(&self) -> Vec<bool> {
        let silent = self.peers.iter().map(|peer| peer.last + self.deadline);
        let until = silent.chain(self.lost.as_ref().map(|lost| lost.1)).min();
        let left = until.map(|until| until.saturating_duration_since(Instant::now()) + Duration::from_millis(1));
        let left = left.map_or(PollTimeout::NONE, |left| PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX));
        let sockets = self.peers.iter().map(|peer| peer.socket.as_fd()).chain(self.awake.as_ref().map(AsFd::as_fd));
        let mut sockets: Vec<_> = sockets.map(|socket| PollFd::new(socket, PollFlags::POLLIN)).collect();
        // Where it fails, by a signal or for want of memory, nothing has been heard.
        let any = poll(&mut sockets, left).is_ok_and(|ready| ready > 0);
        sockets.iter().map(|socket| any && socket.any() == Some(true)).collect()
    }

    fn welcome(&mut self) {
        match self.awake.as_mut().map(|awake| awake.read(&mut [0; 64])) {
            Some(Ok(1..)) | None => {}
            Some(_) => self.awake = None,
        }
        self.peers.extend(self.new.try_iter());
    }

    /// Listens to a peer if it has said something; returns it unless there is nothing more to expect of it.
    fn goes_on(&mut self, mut peer: Heard, heard: bool) -> Option<Heard> {
        let (name, deadline) = (&peer.name, self.deadline);
        if !heard && peer.last.elapsed() < deadline {
            return Some(peer);
        }
        if !heard {
            self.stop.stop(Error::PeerLost(format!(
                "{name} has been silent for {} s on the heartbeat connection; see whether it still runs there",
                deadline.as_secs_f32()
            )));
            return None;
        }
        match peer.hear() {
            Ok(Said::Nothing) => return Some(peer),
            Ok(Said::Goodbye) => {}
            Ok(Said::Farewell(error)) => {
                self.stop.stop(error);
            }
            Err(cause) => {
                self.lost.get_or_insert_with(|| (lost(&peer.name, &cause), Instant::now() + GRACE));
            }
        }
        None
    }
}

/// What a peer has said that changes anything.
enum Said {
    Nothing,
    Goodbye,
    Farewell(Error),
}

/// A connection on which signs of life come from a peer.
pub(super) struct Heard {
    name: String,
    socket: TcpStream,
    frames: FrameReader,
    /// Of a frame that is not all here.
    bytes: Vec<u8>,
    last: Instant,
}

impl Heard {
    /// A connection to the peer of this name, of which nothing has been heard yet.
    pub(super) fn new(name: &str, socket: TcpStream, frames: FrameReader) -> Heard {
        Heard { name: name.to_string(), socket, frames, bytes: Vec::new(), last: Instant::now() }
    }

    /// Takes in what there is, something at least.
    fn hear(&mut self) -> io::Result<Said> {
        let mut piece = [0; 1 << 10];
        match self.socket.read(&mut piece) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(more) => self.bytes.extend_from_slice(&piece[..more]),
            Err(cause) if matches!(cause.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {
                return Ok(Said::Nothing);
            }
            Err(cause) => return Err(cause),
        }
        self.last = Instant::now();
        let (mut at, mut reason) = (0, Vec::new());
        loop {
            let mut rest = &self.bytes[at..];
            match self.frames.next(&mut rest, &mut [], &mut reason) {
                Ok((Frame::Alive, _)) => at = self.bytes.len() - rest.len(),
                Ok((Frame::End, _)) => return Ok(Said::Goodbye),
                Ok((Frame::Payload, _)) => {
                    let damaged =
                        |cause: serde_json::Error| io::Error::new(io::ErrorKind::InvalidData, cause.to_string());
                    return serde_json::from_slice(&reason).map(Said::Farewell).map_err(damaged);
                }
                Err(cause) if cause.kind() == io::ErrorKind::UnexpectedEof => break,
                Err(cause) => return Err(cause),
            }
        }
        self.bytes.drain(..at);
        Ok(Said::Nothing)
    }
}
