//! Handshake of two processes over one connection. It establishes the identity of both and checks
//! that they compute the same job.
//!
//! ```text
//! acceptor                                  dialer
//!    Greeting: magic, version, nonce    ->
//!                                       <-     Hello: magic, version, process
//!                                              Noise message 1: purpose, who
//!    Noise message 2: verdict, who      ->
//! ```
//!
//! The two messages are those of the Noise protocol, pattern `NNpsk0`
//! (<https://noiseprotocol.org/noise.html>, section 9.4). Fresh keys of both sides are mixed with
//! the cluster's key. So reading or forging either message requires the cluster's key, and an
//! attacker who learns the key later cannot decrypt earlier traffic. All data in the clear,
//! including the acceptor's nonce, is bound into the messages as their prologue, so a message
//! cannot be replayed. If the cluster has a key, everything after the handshake is encrypted with
//! the derived keys (`frames`). All messages have fixed lengths, so a stranger cannot influence how
//! much is read or allocated.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use bytemuck::{Pod, Zeroable};
use snow::HandshakeState;

pub use super::frames::Session;
use super::frames::TAG;
use super::identity::{Identity, random};
use super::key::ClusterKey;
use super::timed_stream::TimedStream;
use webtwin_base::error::Error;

const MAGIC: [u8; 8] = *b"webtwin\n";
const VERSION: u32 = 4;

/// Name of the Noise protocol of the handshake.
const NOISE: &str = "Noise_NNpsk0_25519_AESGCM_SHA256";

/// Length in bytes of the fresh public key at the beginning of each message.
const PUBLIC_KEY: usize = 32;

/// Time limit of the whole handshake of a connection, independent of how its bytes are spread.
const PATIENCE: Duration = Duration::from_secs(5);

/// Purpose of a connection. Each pair of processes has one connection of each purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConnectionPurpose {
    /// Traffic of timely's workers.
    Data = 1,
    /// Signs of life, and the reason when a process gives up.
    Heartbeat = 2,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Greeting {
    magic: [u8; 8],
    version: u32,
    nonce: [u8; 32],
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Hello {
    magic: [u8; 8],
    version: u32,
    process: u32,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Request {
    purpose: u32,
    identity: Identity,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Answer {
    verdict: u32,
    identity: Identity,
}

const WELCOME: u32 = 0;
const CONFLICT: u32 = 1;
const PLACE_TAKEN: u32 = 2;

/// Returns the length in bytes of a Noise message that carries a `T`.
const fn message<T>() -> usize {
    PUBLIC_KEY + size_of::<T>() + TAG
}

/// Returns one side of the Noise handshake, bound to the messages that were exchanged in the clear.
fn noise(psk: &[u8; 32], greeting: &Greeting, hello: &Hello, dials: bool) -> HandshakeState {
    let reply = [bytemuck::bytes_of(greeting), bytemuck::bytes_of(hello)].concat();
    let builder = snow::Builder::new(NOISE.parse().expect("the name of a protocol"));
    let state = builder.psk(0, psk).and_then(|builder| builder.prologue(&reply)).and_then(|builder| match dials {
        true => builder.build_initiator(),
        false => builder.build_responder(),
    });
    state.expect("the pattern needs a key of 32 bytes and nothing else")
}

fn write<T: Pod>(noise: &mut HandshakeState, value: &T) -> Vec<u8> {
    let mut message = vec![0; message::<T>()];
    let written = noise.write_message(bytemuck::bytes_of(value), &mut message);
    assert_eq!(written.ok(), Some(message.len()), "a message of this length, in its turn");
    message
}

/// Reads a message. Returns `None` if it was made with another key, or altered.
fn read<T: Pod>(noise: &mut HandshakeState, message: &[u8]) -> Option<T> {
    let mut value = T::zeroed();
    let length = noise.read_message(message, bytemuck::bytes_of_mut(&mut value)).ok()?;
    (length == size_of::<T>()).then_some(value)
}

/// Returns the shared state of a connection after both messages have passed.
fn session(noise: HandshakeState, keyed: bool) -> Session {
    let hash = noise.get_handshake_hash().try_into().expect("SHA-256 has 32 bytes");
    let ciphers = keyed.then(|| noise.into_stateless_transport_mode().expect("both messages have passed"));
    Session { hash, ciphers: ciphers.map(Arc::new) }
}

/// Returns the two sessions of a completed handshake.
#[cfg(test)]
pub(super) fn sessions(keyed: bool) -> [Session; 2] {
    let (greeting, hello) = (Greeting::zeroed(), Hello::zeroed());
    let [mut dialer, mut acceptor] = [true, false].map(|dials| noise(&[9; 32], &greeting, &hello, dials));
    let first = write(&mut dialer, &Request::zeroed());
    read::<Request>(&mut acceptor, &first).unwrap();
    let second = write(&mut acceptor, &Answer::zeroed());
    read::<Answer>(&mut dialer, &second).unwrap();
    [dialer, acceptor].map(|noise| session(noise, keyed))
}

/// Outcome of a connection that was opened to this process.
#[derive(Debug)]
pub enum Arrival {
    /// A peer. The connection is ready for its purpose.
    Joined(Identity, ConnectionPurpose, Session),
    /// A process that holds the key but differs in something that must be equal. It ends the run.
    Conflict(Error),
    /// A second start of a process whose number, given here, has already joined. It does not end
    /// the run.
    Duplicate(u32),
    /// A connection without the key or with another protocol. It does not end the run.
    Stranger {
        /// Process number that it claimed, if any.
        claims: Option<u32>,
        /// Reason why the handshake failed.
        reason: String,
    },
}

/// Performs the acceptor's side of the handshake. `admit` decides if a matching peer may take the
/// place of its process.
pub fn accept(
    stream: &TcpStream,
    identity: &Identity,
    key: &ClusterKey,
    admit: impl FnOnce(&Identity, ConnectionPurpose) -> bool,
) -> Arrival {
    accept_within(PATIENCE, stream, identity, key, admit)
        .unwrap_or_else(|cause| Arrival::Stranger { claims: None, reason: cause.to_string() })
}

fn accept_within(
    patience: Duration,
    stream: &TcpStream,
    identity: &Identity,
    key: &ClusterKey,
    admit: impl FnOnce(&Identity, ConnectionPurpose) -> bool,
) -> io::Result<Arrival> {
    let mut stream = TimedStream::new(stream, patience);
    let greeting = Greeting { magic: MAGIC, version: VERSION, nonce: random() };
    stream.write_all(bytemuck::bytes_of(&greeting))?;

    // Magic and version are read first, because the rest of the message may differ in another
    // version.
    let mut hello = Hello::zeroed();
    let bytes = bytemuck::bytes_of_mut(&mut hello);
    stream.read_exact(&mut bytes[..12])?;
    let stranger = |claims, reason: String| Ok(Arrival::Stranger { claims, reason });
    if bytes[..8] != MAGIC {
        return stranger(None, "it does not use the protocol of webtwin".into());
    }
    if bytes[8..12] != VERSION.to_le_bytes() {
        let peer_version = u32::from_le_bytes(bytes[8..12].try_into().expect("a range of 4 bytes"));
        return stranger(
            None,
            format!("it uses version {peer_version} of the protocol, but this process uses version {VERSION}"),
        );
    }
    stream.read_exact(&mut bytes[12..])?;
    let mut first = [0; message::<Request>()];
    stream.read_exact(&mut first)?;

    // While keys are replaced there are two, and the dialer does not say which of them it uses.
    let opened_request = key.psks().find_map(|psk| {
        let mut noise = noise(&psk, &greeting, &hello, false);
        read::<Request>(&mut noise, &first).map(|request| (noise, request))
    });
    let Some((mut noise, Request { purpose, identity: peer })) = opened_request else {
        // The answer only informs the dialer that its message was received and refused.
        stream.write_all(&[0; message::<Answer>()])?;
        return stranger(Some(hello.process), "its key is not the key of this process".into());
    };

    let purpose = match purpose {
        1 => ConnectionPurpose::Data,
        2 => ConnectionPurpose::Heartbeat,
        other => return stranger(Some(peer.process), format!("it requested the unknown purpose {other}")),
    };
    let conflict = identity.conflict(&peer);
    let verdict = match &conflict {
        Some(_) => CONFLICT,
        None if admit(&peer, purpose) => WELCOME,
        None => PLACE_TAKEN,
    };
    stream.write_all(&write(&mut noise, &Answer { verdict, identity: *identity }))?;
    Ok(match (conflict, verdict) {
        (Some(conflict), _) => Arrival::Conflict(Error::Handshake(conflict)),
        (None, WELCOME) => Arrival::Joined(peer, purpose, session(noise, !key.is_none())),
        (None, _) => Arrival::Duplicate(peer.process),
    })
}

/// Reason why a dialed connection was not established.
#[derive(Debug)]
pub enum Miss {
    /// The peer may not be ready yet; dialing again may succeed.
    Transient(String),
    /// Another process has joined under this process's number. Dialing again succeeds only if that
    /// process is dead.
    PlaceTaken(Error),
    /// Dialing again can never succeed.
    Final(Error),
}

/// Performs the dialer's side of the handshake with process `to`, over a connection opened to
/// `address`.
pub fn dial(
    stream: &TcpStream,
    identity: &Identity,
    key: &ClusterKey,
    purpose: ConnectionPurpose,
    to: u32,
    address: &str,
) -> Result<Session, Miss> {
    let transient = |cause: io::Error| Miss::Transient(cause.to_string());
    let refuse = |reason: String| Err(Miss::Final(Error::Handshake(reason)));
    let mut stream = TimedStream::new(stream, PATIENCE);
    let mut greeting = Greeting::zeroed();
    stream.read_exact(bytemuck::bytes_of_mut(&mut greeting)).map_err(transient)?;
    if greeting.magic != MAGIC {
        return refuse(format!("the program at {address} is not a webtwin process; check the address of process {to}"));
    }
    if greeting.version != VERSION {
        return refuse(format!(
            "process {to} at {address} uses version {} of the protocol, but process {} uses version {VERSION}; use one \
             build",
            greeting.version, identity.process
        ));
    }

    let hello = Hello { magic: MAGIC, version: VERSION, process: identity.process };
    let mut noise = noise(&key.psk(), &greeting, &hello, true);
    let mut message = bytemuck::bytes_of(&hello).to_vec();
    message.extend(write(&mut noise, &Request { purpose: purpose as u32, identity: *identity }));
    stream.write_all(&message).map_err(transient)?;

    let mut second = [0; self::message::<Answer>()];
    stream.read_exact(&mut second).map_err(transient)?;
    let Some(answer) = read::<Answer>(&mut noise, &second) else {
        return refuse(format!(
            "process {to} at {address} has another key than process {}; give all processes the same key_file",
            identity.process
        ));
    };
    if let Some(conflict) = identity.conflict(&answer.identity) {
        return refuse(conflict);
    }
    match answer.verdict {
        WELCOME if answer.identity.process == to => Ok(session(noise, !key.is_none())),
        WELCOME => refuse(format!(
            "process {to} was expected at {address}, but process {} answered; check the cluster file",
            answer.identity.process
        )),
        _ => Err(Miss::PlaceTaken(Error::Handshake(format!(
            "process {to} at {address} refused process {}: another process with that number has joined; start each number once",
            identity.process
        )))),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::identity::text;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let dialer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (listener.accept().unwrap().0, dialer)
    }

    fn identity(process: u32) -> Identity {
        Identity { process, processes: 2, incarnation: [process as u8; 16], ..Identity::zeroed() }
    }

    fn meet(dialer: Identity, admit: bool) -> (Arrival, Result<Session, Miss>) {
        let (acceptor, dialing_end) = pair();
        let dialed = std::thread::spawn(move || {
            dial(&dialing_end, &dialer, &ClusterKey::none(), ConnectionPurpose::Data, 0, "there")
        });
        (accept(&acceptor, &identity(0), &ClusterKey::none(), |_, _| admit), dialed.join().unwrap())
    }

    #[test]
    fn both_sides_have_the_same_session() {
        let (Arrival::Joined(peer, ConnectionPurpose::Data, acceptor), Ok(dialer)) = meet(identity(1), true) else {
            panic!()
        };
        assert_eq!((peer, acceptor.hash), (identity(1), dialer.hash));
    }

    #[test]
    fn both_sides_report_a_difference() {
        let dialer = Identity { workers: 7, ..identity(1) };
        let (Arrival::Conflict(acceptor_error), Err(Miss::Final(dialer_error))) = meet(dialer, true) else { panic!() };
        for error in [acceptor_error, dialer_error] {
            let line = error.to_string();
            assert!(["workers", "7", "0"].iter().all(|part| line.contains(part)) && error.exit_code() == 2, "{line}");
        }
    }

    #[test]
    fn while_a_key_is_replaced_old_and_new_processes_meet() {
        let (old, new) = ("the old key, of 32 bytes and more", "the new key, of 32 bytes and more");
        let key_files = [format!("{old}\n{new}"), format!("{new}\n{old}")];
        let key = |text: &str| ClusterKey::parse(text.as_bytes()).unwrap();
        let meet = |dials: &str, answers: &str| {
            let ((acceptor, dialer), dials) = (pair(), key(dials));
            let dialed = std::thread::spawn(move || {
                dial(&dialer, &identity(1), &dials, ConnectionPurpose::Heartbeat, 0, "there")
            });
            let arrival = accept(&acceptor, &identity(0), &key(answers), |_, _| true);
            (arrival, dialed.join().unwrap())
        };
        for (dials, answers) in [
            (old, &*key_files[0]),
            (&key_files[0], old),
            (&key_files[0], &key_files[1]),
            (&key_files[1], &key_files[0]),
            (new, &key_files[1]),
        ] {
            let (Arrival::Joined(_, ConnectionPurpose::Heartbeat, acceptor), Ok(dialer)) = meet(dials, answers) else {
                panic!()
            };
            assert!(acceptor.hash == dialer.hash && acceptor.ciphers.is_some() && dialer.ciphers.is_some());
        }
        for (dials, answers) in [(old, new), (&*key_files[1], old)] {
            let (Arrival::Stranger { claims: Some(1), .. }, Err(Miss::Final(error))) = meet(dials, answers) else {
                panic!()
            };
            assert!(error.to_string().contains("has another key"), "{error}");
        }
    }

    #[test]
    fn nothing_but_the_hello_is_in_the_clear() {
        let (mut acceptor, dialer) = pair();
        let own_identity =
            Identity { build: text("0.1.0 a build of ours"), job: *b"the digest of a job, in 32 bytes", ..identity(1) };
        let dialed = std::thread::spawn(move || {
            dial(&dialer, &own_identity, &ClusterKey::none(), ConnectionPurpose::Data, 0, "there").map(drop)
        });
        acceptor.write_all(bytemuck::bytes_of(&Greeting { magic: MAGIC, version: VERSION, nonce: [3; 32] })).unwrap();
        let mut wire = vec![0; size_of::<Hello>() + message::<Request>()];
        acceptor.read_exact(&mut wire).unwrap();
        drop(acceptor);
        assert!(matches!(dialed.join().unwrap(), Err(Miss::Transient(_))));
        let reply = |what: &[u8]| wire.windows(what.len()).any(|bytes| bytes == what);
        assert!(reply(&MAGIC) && !reply(b"build of ours") && !reply(b"digest"));
    }

    #[test]
    fn rejected_process_receives_the_reason() {
        let (Arrival::Duplicate(1), Err(Miss::PlaceTaken(error))) = meet(identity(1), false) else { panic!() };
        assert!(error.to_string().contains("another process with that number"), "{error}");
    }

    #[test]
    fn another_version_of_the_protocol_is_named() {
        let (acceptor, mut dialer) = pair();
        dialer.write_all(&[&MAGIC[..], &9u32.to_le_bytes()].concat()).unwrap();
        let Arrival::Stranger { reason, .. } = accept(&acceptor, &identity(0), &ClusterKey::none(), |_, _| true) else {
            panic!()
        };
        assert!(reason.contains("version 9"), "{reason}");

        let (mut acceptor, dialer) = pair();
        let greeting = Greeting { magic: MAGIC, version: 9, nonce: [0; 32] };
        acceptor.write_all(bytemuck::bytes_of(&greeting)).unwrap();
        let miss = dial(&dialer, &identity(1), &ClusterKey::none(), ConnectionPurpose::Data, 0, "there").unwrap_err();
        assert!(matches!(miss, Miss::Final(error) if error.to_string().contains("version 9")));
    }

    #[test]
    fn slow_unauthenticated_connection_is_dropped_in_time() {
        let (acceptor, dialer) = pair();
        // A whole hello without a tag, sent byte by byte while the other side reads. No pause is as
        // long as the time limit, but the whole takes fifty times as long.
        let drip = std::thread::spawn(move || {
            let hello = [&MAGIC[..], &VERSION.to_le_bytes()].concat();
            let mut dialer = &dialer;
            for byte in hello.into_iter().chain(std::iter::repeat(0)) {
                if dialer.write_all(&[byte]).is_err() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let patience = Duration::from_millis(100);
        let outcome = accept_within(patience, &acceptor, &identity(0), &ClusterKey::none(), |_, _| true);
        // The error is that of the system for a read that timed out, or that of `TimedStream`
        // before the next read.
        let kind = outcome.unwrap_err().kind();
        assert!(matches!(kind, io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut), "{kind}");
        drop(acceptor);
        drip.join().unwrap();
    }
}
