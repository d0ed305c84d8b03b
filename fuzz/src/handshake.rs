//! The handshake: no process without the key joins, and none whose messages were altered in
//! transit. A process joins on both sides or on neither.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::OnceLock;

use super::{connection, first, identity, key};
use webtwin_engine::handshake::{Arrival, ConnectionPurpose, accept, dial};
use webtwin_engine::key::ClusterKey;

/// Checks one input of the fuzzer.
pub fn check(data: &[u8]) {
    static KEY: OnceLock<ClusterKey> = OnceLock::new();
    let Some((how, rest)) = first(data) else { return };
    let key = if how & 4 == 0 { &ClusterKey::none() } else { KEY.get_or_init(key) };
    match how % 3 {
        0 => {
            let [here, mut there] = connection();
            there
                .write_all(&rest[..rest.len().min(4096)])
                .and_then(|()| there.shutdown(Shutdown::Write))
                .expect("the disk has space");
            let arrival = accept(&here, &identity(0), key, |_, _| true);
            assert!(matches!(arrival, Arrival::Stranger { .. }), "{arrival:?}");
        }
        1 => {
            let [here, mut there] = connection();
            there
                .write_all(&rest[..rest.len().min(4096)])
                .and_then(|()| there.shutdown(Shutdown::Write))
                .expect("the disk has space");
            assert!(dial(&here, &identity(1), key, ConnectionPurpose::Data, 0, "there").is_err());
        }
        _ => relayed(key, rest),
    }
}

/// Runs the handshake of two processes through a relay that alters messages: each three bytes of
/// `how` alter a byte of one of the three messages.
fn relayed(key: &ClusterKey, how: &[u8]) {
    let ([acceptor, at_acceptor], [dialer, at_dialer]) = (connection(), connection());
    let (arrival, dialed, altered) = std::thread::scope(|scope| {
        let accepting = scope.spawn(move || {
            let arrival = accept(&acceptor, &identity(0), key, |_, _| true);
            acceptor.shutdown(Shutdown::Both).ok();
            arrival
        });
        let dialing = scope.spawn(move || {
            let dialed = dial(&dialer, &identity(1), key, ConnectionPurpose::Heartbeat, 0, "there");
            dialer.shutdown(Shutdown::Both).ok();
            dialed
        });
        let ways = [(&at_acceptor, &at_dialer), (&at_dialer, &at_acceptor), (&at_acceptor, &at_dialer)];
        let altered = (0..).zip(ways).map(|(number, (from, to))| pass(from, to, number, how));
        let altered: Vec<bool> = altered.collect();
        for end in [&at_acceptor, &at_dialer] {
            end.shutdown(Shutdown::Both).ok();
        }
        let arrival = accepting.join().expect("the thread does not panic");
        (arrival, dialing.join().expect("the thread does not panic"), altered)
    });
    let joined = matches!(arrival, Arrival::Joined(..));
    assert_eq!(joined, !altered[0] && !altered[1], "{arrival:?}");
    assert_eq!(dialed.is_ok(), joined && !altered[2], "{dialed:?}");
    if let Arrival::Joined(who, purpose, _) = arrival {
        assert_eq!((who, purpose), (identity(1), ConnectionPurpose::Heartbeat));
    }
}

/// Forwards a message; true if it was altered.
fn pass(mut from: &TcpStream, mut to: &TcpStream, number: u8, how: &[u8]) -> bool {
    let mut message = [0; 4096];
    let length = loop {
        match from.read(&mut message) {
            // The fuzzer's timer interrupts the call.
            Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
            read => break read.unwrap_or(0),
        }
    };
    if length == 0 {
        // This side has given up, so the other one must not wait for it.
        to.shutdown(Shutdown::Both).ok();
        return false;
    }
    let message = &mut message[..length];
    let before = message.to_vec();
    for &[which, at, value] in how.as_chunks::<3>().0 {
        if which % 3 == number {
            message[usize::from(at) % length] ^= value;
        }
    }
    // The other side may have closed the connection.
    to.write_all(message).ok();
    message != before
}
