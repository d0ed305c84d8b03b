//! Signs of life between processes, and the reason when one gives up.
//!
//! Every process sends a frame each second on a connection of its own to each peer, and expects one within the
//! deadline: a peer that is frozen or cut off is noticed although its sockets stay open. (A data connection that is cut
//! off by itself is noticed by its own signs of life, in `link`.) An orderly failure travels the same way, so that all
//! processes end with the same line and the same exit code. It works from two threads of its own, however busy the
//! workers are.

use std::io::{self, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::frames::{Frame, FrameReader, FrameWriter, LONGEST, Session};
use super::listener::{Heard, Listener};
use super::stop::{Phase, Stop};
use webtwin_base::console::tell;
use webtwin_base::error::{Error, Result};
use webtwin_base::leftovers::exit;
use webtwin_base::threads;

/// Longest time between two signs of life.
const BEAT: Duration = Duration::from_secs(1);

/// Time between two signs of life, on whatever connection.
pub(super) fn beat(deadline: Duration) -> Duration {
    BEAT.min(deadline / 4)
}

/// Time the workers have to come to their end after the run was stopped.
const PATIENCE: Duration = Duration::from_secs(5);

/// The heartbeat of one process in one run; dropping it says goodbye, or passes on why the run was stopped.
#[derive(Debug)]
pub struct Heartbeat {
    stop: Arc<Stop>,
    peers: Arc<Mutex<Vec<Peer>>>,
    /// Peers to listen to from now on, and what wakes the thread that does.
    newcomers: Sender<Heard>,
    wake: UnixStream,
    /// Dropped when the run has returned.
    running: Option<Sender<()>>,
    beater: Option<JoinHandle<()>>,
}

impl Heartbeat {
    /// Starts the heartbeat of a run without peers yet; a peer may be silent for `deadline`.
    ///
    /// # Errors
    /// [`Error::NoThread`]; [`Error::Storage`] if no more files may be open.
    pub fn start(deadline: Duration) -> Result<Heartbeat> {
        let (wake, awake) = UnixStream::pair().map_err(|cause| Error::storage("files and connections", cause))?;
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

    /// Begins to send signs of life from process `here` to process `there` on a connection, and to expect them. `peer`
    /// names it in messages.
    ///
    /// # Errors
    /// [`Error::PeerLost`] when the socket is broken already.
    pub fn watch(&self, peer: &str, socket: TcpStream, session: &Session, (here, there): (usize, usize)) -> Result<()> {
        let lost = |cause: io::Error| Error::PeerLost(format!("{peer}: {cause}"));
        socket.set_write_timeout(Some(BEAT)).map_err(lost)?;
        let listen = socket.try_clone().map_err(lost)?;
        let heard = Heard::new(peer, listen, FrameReader::new(session, here));
        // It listens for as long as there is a heartbeat.
        let _ = self.newcomers.send(heard);
        (&self.wake).write_all(&[0]).map_err(lost)?;
        let peer = Peer { socket, frames: FrameWriter::new(session, there) };
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).push(peer);
        Ok(())
    }

    /// Ends the run on all processes with `error`, unless it has ended already.
    pub fn stop(&self, error: Error) {
        self.stop.stop(error);
    }

    /// Returns the error that has ended the run, here or on a peer.
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
            // A panic in it was printed by the hook; there is nobody left to tell.
            let _ = beater.join();
        }
    }
}

/// A connection on which signs of life go to a peer.
struct Peer {
    socket: TcpStream,
    frames: FrameWriter,
}

impl std::fmt::Debug for Peer {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.socket.fmt(out)
    }
}

/// The sending half, in its own thread.
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
                Phase::Running => self.tell_all(Frame::Alive, &[]),
                Phase::Over => {
                    self.tell_all(Frame::End, &[]);
                    return;
                }
                Phase::Stopped(error) => {
                    self.tell_all(Frame::Payload, &farewell(&error));
                    if let Err(RecvTimeoutError::Timeout) = self.returned.recv_timeout(PATIENCE) {
                        end_process(&error);
                    }
                    return;
                }
            }
            // Who was frozen for longer than the deadline has been given up by the others and must not commit.
            let asleep = last.elapsed();
            if asleep > self.deadline && !self.peers().is_empty() {
                let seconds = asleep.as_secs_f32();
                self.stop.stop_unless_explained(Error::PeerLost(format!(
                    "this process stood still for {seconds:.1} s, so the others have given it up; restart all of them"
                )));
            }
            last = Instant::now();
        }
    }

    /// Writes to every peer; who does not take it is noticed by the thread that listens.
    fn tell_all(&self, what: Frame, payload: &[u8]) {
        for Peer { socket, frames } in self.peers().iter_mut() {
            let told = frames.send(socket, what, payload);
            if what != Frame::Alive || told.is_err() {
                let _ = socket.shutdown(Shutdown::Write);
            }
        }
    }

    fn peers(&self) -> std::sync::MutexGuard<'_, Vec<Peer>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the process: the run was stopped, and some worker has been in work of its own for too long to notice.
fn end_process(error: &Error) -> ! {
    tell(format_args!("error: {error}"));
    exit(error.exit_code())
}

/// The reason why a process gives up, in one frame. One that is longer than a frame goes without its words.
fn farewell(error: &Error) -> Vec<u8> {
    let told = |error: &Error| serde_json::to_vec(error).expect("an error is plain strings and numbers");
    let reason = told(error);
    match reason.len() <= LONGEST {
        true => reason,
        false => told(&Error::PeerLost("a peer gave up; see its own last message".into())),
    }
}

/// Returns the error for a peer whose connection broke.
pub(super) fn lost(peer: &str, cause: &io::Error) -> Error {
    let reason = match cause.kind() {
        io::ErrorKind::UnexpectedEof => "it closed its connection".to_string(),
        _ => cause.to_string(),
    };
    Error::PeerLost(format!("{peer}: {reason}; see its own last message"))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::handshake::sessions;

    const DEADLINE: Duration = Duration::from_secs(1);

    /// Two processes that watch each other.
    fn pair() -> (Heartbeat, Heartbeat) {
        let (here, there) = (Heartbeat::start(DEADLINE).unwrap(), Heartbeat::start(DEADLINE).unwrap());
        let (one, other) = sockets();
        let [of_here, of_there] = sessions(true);
        here.watch("process 1", one, &of_here, (0, 1)).unwrap();
        there.watch("process 0", other, &of_there, (1, 0)).unwrap();
        (here, there)
    }

    fn sockets() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let dialer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (listener.accept().unwrap().0, dialer)
    }

    fn end(heartbeat: &Heartbeat) -> String {
        match heartbeat.stop.wait(DEADLINE * 5 / 2) {
            Phase::Stopped(error) => format!("{} {error}", error.exit_code()),
            phase => format!("{phase:?}"),
        }
    }

    #[test]
    fn peers_that_live_are_not_given_up() {
        let (here, there) = pair();
        assert_eq!((end(&here), end(&there)), ("Running".to_string(), "Running".to_string()));
    }

    #[test]
    fn a_peer_that_said_goodbye_may_be_silent() {
        let (here, there) = pair();
        drop(there);
        assert_eq!(end(&here), "Running");
    }

    #[test]
    fn a_silent_peer_is_given_up_after_the_deadline() {
        let here = Heartbeat::start(DEADLINE).unwrap();
        let (one, silent) = sockets();
        here.watch("process 1 at there:1", one, &sessions(false)[0], (0, 1)).unwrap();
        assert!(here.check().is_ok());
        let line = end(&here);
        assert!(line.starts_with("7 ") && line.contains("process 1 at there:1 has been silent for 1 s"), "{line}");
        drop(silent);
    }

    #[test]
    fn a_peer_that_fails_tells_why_and_both_end_alike() {
        let (here, there) = pair();
        there.stop(Error::input("a.warc", "missing"));
        drop(there);
        assert_eq!(end(&here), "3 input a.warc: missing");
    }

    #[test]
    fn a_peer_that_vanishes_or_talks_nonsense_is_lost() {
        type Last = fn(&mut FrameWriter, &mut Vec<u8>);
        let lasts: [Last; 4] = [
            |frames, to| frames.send(to, Frame::Alive, &[]).unwrap(),
            |_, _| {},
            |_, to| to.extend([0x55; 40]),
            |frames, to| frames.send(to, Frame::Payload, b"{}").unwrap(),
        ];
        for (last, keyed) in lasts.into_iter().flat_map(|last| [(last, false), (last, true)]) {
            let here = Heartbeat::start(10 * DEADLINE).unwrap();
            let (one, mut other) = sockets();
            let [of_here, of_there] = sessions(keyed);
            here.watch("process 1", one, &of_here, (0, 1)).unwrap();
            let (mut frames, mut bytes) = (FrameWriter::new(&of_there, 0), Vec::new());
            last(&mut frames, &mut bytes);
            other.write_all(&bytes).unwrap();
            drop(other);
            let line = end(&here);
            assert!(line.starts_with("7 peer lost: process 1"), "{bytes:?}: {line}");
        }
    }
}
