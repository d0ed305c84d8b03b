//! Heartbeat: signs of life between processes, and the reason when a process gives up.
//!
//! Every process sends a frame each second to each peer, on a connection used for nothing else, and
//! expects one within the deadline. So a peer that is frozen or cut off is noticed although its
//! sockets stay open. (A data connection that alone is cut off is noticed by its own signs of life,
//! see `link`.) An orderly failure is announced on the same connection, so that all processes end
//! with the same message and the same exit code. The heartbeat runs in two threads of its own, so
//! busy workers do not delay it.

use std::io::{self, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::frames::{Frame, FrameReader, FrameWriter, MAX_PAYLOAD_BYTES, Session};
use super::listener::{Listener, PeerListener};
use super::stop::{RunPhase, Stop};
use webtwin_base::console::notify;
use webtwin_base::error::{Error, Result};
use webtwin_base::leftovers::exit;
use webtwin_base::threads;

/// Maximum time between two signs of life.
const BEAT: Duration = Duration::from_secs(1);

/// Returns the time between two signs of life on any connection.
pub(super) fn beat(deadline: Duration) -> Duration {
    BEAT.min(deadline / 4)
}

/// Time that the workers have to return after the run was stopped.
const PATIENCE: Duration = Duration::from_secs(5);

/// Heartbeat of one process in one run. Dropping it announces the orderly end to the peers, or the
/// reason why the run was stopped.
#[derive(Debug)]
pub struct Heartbeat {
    stop: Arc<Stop>,
    peers: Arc<Mutex<Vec<Peer>>>,
    /// Channel for peers to listen to, and the socket that wakes the listening thread.
    newcomers: Sender<PeerListener>,
    wake: UnixStream,
    /// Dropped as soon as the run has returned.
    running: Option<Sender<()>>,
    beater: Option<JoinHandle<()>>,
}

impl Heartbeat {
    /// Starts the heartbeat of a run, without peers at first. A peer may be silent for `deadline`.
    ///
    /// # Errors
    /// Returns [`Error::NoThread`] if a thread cannot be started, and [`Error::Storage`] if no more
    /// files may be open.
    pub fn start(deadline: Duration) -> Result<Heartbeat> {
        let (wake, awake) = UnixStream::pair().map_err(|cause| Error::storage("a socket of this process", cause))?;
        let (newcomers, new) = channel();
        let stop = Arc::new(Stop::new());
        let peers = Arc::new(Mutex::new(Vec::new()));
        let (running, returned) = channel();
        let beater = Beater { stop: Arc::clone(&stop), peers: Arc::clone(&peers), deadline, returned };
        let beater = threads::start(move || beater.beat())?;
        let listener = Listener::new(Arc::clone(&stop), deadline, new, awake);
        threads::start(move || listener.listen())?;
        Ok(Heartbeat { stop, peers, newcomers, wake, running: Some(running), beater: Some(beater) })
    }

    /// Begins to send signs of life from process `own_process` to process `peer_process` on a
    /// connection, and to expect them. Messages call the peer `peer`.
    ///
    /// # Errors
    /// Returns [`Error::PeerLost`] if the socket is already broken.
    pub fn watch(
        &self,
        peer: &str,
        socket: TcpStream,
        session: &Session,
        (own_process, peer_process): (usize, usize),
    ) -> Result<()> {
        let peer_lost = |cause: io::Error| Error::PeerLost(format!("{peer}: {cause}"));
        socket.set_write_timeout(Some(BEAT)).map_err(peer_lost)?;
        let listen = socket.try_clone().map_err(peer_lost)?;
        let heard = PeerListener::new(peer, listen, FrameReader::new(session, own_process));
        // The send cannot fail: the listener lives as long as this heartbeat.
        let _ = self.newcomers.send(heard);
        (&self.wake).write_all(&[0]).map_err(peer_lost)?;
        let peer = Peer { socket, frames: FrameWriter::new(session, peer_process) };
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).push(peer);
        Ok(())
    }

    /// Ends the run on all processes with `error`, unless it has already ended.
    pub fn stop(&self, error: Error) {
        self.stop.stop(error);
    }

    /// Returns the error that has ended the run, on this process or on a peer.
    pub fn check(&self) -> Result<()> {
        self.stop.check()
    }

    /// Returns the state of the run, for the other threads of this process.
    pub(super) fn state(&self) -> Arc<Stop> {
        Arc::clone(&self.stop)
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.stop.finish();
        drop(self.running.take());
        if let Some(beater) = self.beater.take() {
            // The panic hook has printed a panic of this thread, and no caller is left to report it
            // to.
            let _ = beater.join();
        }
    }
}

/// Connection on which signs of life are sent to a peer.
struct Peer {
    socket: TcpStream,
    frames: FrameWriter,
}

impl std::fmt::Debug for Peer {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.socket.fmt(out)
    }
}

/// Sending half of the heartbeat, which runs in its own thread.
struct Beater {
    stop: Arc<Stop>,
    peers: Arc<Mutex<Vec<Peer>>>,
    deadline: Duration,
    returned: Receiver<()>,
}

impl Beater {
    fn beat(self) {
        let interval = beat(self.deadline);
        let mut last = Instant::now();
        loop {
            match self.stop.wait(interval) {
                RunPhase::Running => self.send_to_all(Frame::Alive, &[]),
                RunPhase::Over => {
                    self.send_to_all(Frame::End, &[]);
                    return;
                }
                RunPhase::Stopped(error) => {
                    self.send_to_all(Frame::Payload, &farewell(&error));
                    if let Err(RecvTimeoutError::Timeout) = self.returned.recv_timeout(PATIENCE) {
                        end_process(&error);
                    }
                    return;
                }
            }
            // A process that was frozen for longer than the deadline has been given up by its
            // peers, so it must not commit a result.
            let asleep = last.elapsed();
            if asleep > self.deadline && !self.peers().is_empty() {
                let seconds = asleep.as_secs_f32();
                self.stop.stop_unless_explained(Error::PeerLost(format!(
                    "this process was suspended for {seconds:.1} s, so the other processes have ended; restart all \
                     of them"
                )));
            }
            last = Instant::now();
        }
    }

    /// Sends a frame to every peer. A peer that does not accept it is noticed by the listening
    /// thread.
    fn send_to_all(&self, kind: Frame, payload: &[u8]) {
        for Peer { socket, frames } in self.peers().iter_mut() {
            let notice = frames.send(socket, kind, payload);
            if kind != Frame::Alive || notice.is_err() {
                let _ = socket.shutdown(Shutdown::Write);
            }
        }
    }

    fn peers(&self) -> std::sync::MutexGuard<'_, Vec<Peer>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the process, because the run was stopped and a worker has not returned within [`PATIENCE`].
fn end_process(error: &Error) -> ! {
    notify(format_args!("error: {error}"));
    exit(error.exit_code())
}

/// Encodes the reason why this process gives up, in one frame. A reason that is too long for a
/// frame is replaced by a general one.
fn farewell(error: &Error) -> Vec<u8> {
    let notice = |error: &Error| serde_json::to_vec(error).expect("an error is plain strings and numbers");
    let reason = notice(error);
    match reason.len() <= MAX_PAYLOAD_BYTES {
        true => reason,
        false => notice(&Error::PeerLost("a peer ended; see its last message".into())),
    }
}

/// Returns the error for a peer whose connection broke.
pub(super) fn lost_error(peer: &str, cause: &io::Error) -> Error {
    let reason = match cause.kind() {
        io::ErrorKind::UnexpectedEof => "it closed its connection".to_string(),
        _ => cause.to_string(),
    };
    Error::PeerLost(format!("{peer}: {reason}; see its last message"))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::handshake::sessions;

    const DEADLINE: Duration = Duration::from_secs(1);

    /// Returns two heartbeats that watch each other.
    fn pair() -> (Heartbeat, Heartbeat) {
        let (first, second) = (Heartbeat::start(DEADLINE).unwrap(), Heartbeat::start(DEADLINE).unwrap());
        let (first_socket, other) = sockets();
        let [first_session, second_session] = sessions(true);
        first.watch("process 1", first_socket, &first_session, (0, 1)).unwrap();
        second.watch("process 0", other, &second_session, (1, 0)).unwrap();
        (first, second)
    }

    fn sockets() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let dialer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (listener.accept().unwrap().0, dialer)
    }

    fn end(heartbeat: &Heartbeat) -> String {
        match heartbeat.stop.wait(DEADLINE * 5 / 2) {
            RunPhase::Stopped(error) => format!("{} {error}", error.exit_code()),
            phase => format!("{phase:?}"),
        }
    }

    #[test]
    fn live_peers_are_not_given_up() {
        let (first, second) = pair();
        assert_eq!((end(&first), end(&second)), ("Running".to_string(), "Running".to_string()));
    }

    #[test]
    fn a_peer_that_said_goodbye_may_be_silent() {
        let (first, second) = pair();
        drop(second);
        assert_eq!(end(&first), "Running");
    }

    #[test]
    fn a_silent_peer_is_given_up_after_the_deadline() {
        let heartbeat = Heartbeat::start(DEADLINE).unwrap();
        let (socket, silent) = sockets();
        heartbeat.watch("process 1 at there:1", socket, &sessions(false)[0], (0, 1)).unwrap();
        assert!(heartbeat.check().is_ok());
        let line = end(&heartbeat);
        assert!(line.starts_with("7 ") && line.contains("process 1 at there:1 has been silent for 1 s"), "{line}");
        drop(silent);
    }

    #[test]
    fn failing_peer_reports_its_reason_and_both_end_alike() {
        let (first, second) = pair();
        second.stop(Error::input("a.warc", "missing"));
        drop(second);
        assert_eq!(end(&first), "3 input a.warc: missing");
    }

    #[test]
    fn vanished_or_invalid_peer_is_lost() {
        type Last = fn(&mut FrameWriter, &mut Vec<u8>);
        let lasts: [Last; 4] = [
            |frames, to| frames.send(to, Frame::Alive, &[]).unwrap(),
            |_, _| {},
            |_, to| to.extend([0x55; 40]),
            |frames, to| frames.send(to, Frame::Payload, b"{}").unwrap(),
        ];
        for (last, keyed) in lasts.into_iter().flat_map(|last| [(last, false), (last, true)]) {
            let heartbeat = Heartbeat::start(10 * DEADLINE).unwrap();
            let (socket, mut other) = sockets();
            let [own_session, peer_session] = sessions(keyed);
            heartbeat.watch("process 1", socket, &own_session, (0, 1)).unwrap();
            let (mut frames, mut bytes) = (FrameWriter::new(&peer_session, 0), Vec::new());
            last(&mut frames, &mut bytes);
            other.write_all(&bytes).unwrap();
            drop(other);
            let line = end(&heartbeat);
            assert!(line.starts_with("7 peer lost: process 1"), "{bytes:?}: {line}");
        }
    }
}
