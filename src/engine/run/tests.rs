//! Runs of two processes with a faulty connection between them, made by a proxy on loopback.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::*;
use ports::reserved_address;

#[path = "../../../tests/support/ports.rs"]
mod ports;

/// Time limit of a run. No run takes a tenth of it; a run that hangs fails instead.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Connection {
    Data,
    Heartbeat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    /// From process 1, which dials, to process 0.
    Up,
    Down,
}

impl Direction {
    /// Returns the number of bytes of a connection's handshake in this direction.
    fn handshake(self) -> usize {
        match self {
            Direction::Up => 228,
            Direction::Down => 256,
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Fault {
    /// Accepts all bytes and passes the given number of them on. Neither side sees its socket
    /// closed.
    Swallow(usize),
    /// Accepts the given number of bytes and no more, so that the sender's writes block at last.
    Hold(usize),
    /// Passes on every piece after the given delay.
    Delay(Duration),
    /// Passes on the given number of bytes per second.
    Throttle(u32),
}

type Treated = (Connection, Direction, Fault);

/// Forwards connections to `to`. Returns the address where it listens. Its threads end with the
/// connections.
fn proxy(to: String, treated: Vec<Treated>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        // The data connection is the first that a process opens.
        for connection in [Connection::Data, Connection::Heartbeat] {
            let dialer = listener.accept().unwrap().0;
            let acceptor = (0..).find_map(|_| {
                std::thread::sleep(Duration::from_millis(5));
                TcpStream::connect(&to).ok()
            });
            let acceptor = acceptor.unwrap();
            for (direction, from, to) in [(Direction::Up, &dialer, &acceptor), (Direction::Down, &acceptor, &dialer)] {
                let fault = treated.iter().find(|fault| (fault.0, fault.1) == (connection, direction)).map(|it| it.2);
                let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                std::thread::spawn(move || pass_on(from, to, fault));
            }
        }
    });
    address
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, fault: Option<Fault>) {
    let mut passed = 0;
    let mut buffer = [0; 1 << 13];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        let mut passing = length;
        match fault {
            Some(Fault::Swallow(bytes) | Fault::Hold(bytes)) => passing = length.min(bytes - passed),
            Some(Fault::Delay(time)) => std::thread::sleep(time),
            Some(Fault::Throttle(rate)) => std::thread::sleep(Duration::from_secs(1) * length as u32 / rate),
            None => {}
        }
        if to.write_all(&buffer[..passing]).is_err() {
            break;
        }
        passed += passing;
        if matches!(fault, Some(Fault::Hold(bytes)) if bytes == passed) {
            std::thread::sleep(PATIENCE);
        }
    }
    // The end of the stream is a byte, too, so it does not pass either where nothing passes.
    if !matches!(fault, Some(Fault::Swallow(_) | Fault::Hold(_))) {
        let _ = to.shutdown(Shutdown::Write);
    }
}

/// Sends 1.5 MB from each worker to the other, in rounds. Returns what has arrived.
fn rounds(net: &mut Net<'_>) -> Result<Vec<u64>> {
    let mut received_rows = Vec::new();
    for round in 0..5u64 {
        let own_index = net.index();
        let rows = (0..30_000u64).map(|row| Ok((1 - own_index, u64::MAX - row * round - own_index as u64)));
        received_rows.append(&mut net.exchange_values("rows", rows)?);
    }
    Ok(received_rows)
}

/// Runs both processes and returns their results.
fn ends(deadline: &str, treated: &[Treated]) -> [Result<Vec<u64>>; 2] {
    let text = format!(
        "workers = 1\ndeadline = {deadline:?}\n[[process]]\naddress = \"{}\"\n[[process]]\naddress = \"{}\"\n",
        reserved_address(),
        reserved_address()
    );
    let direct = ClusterLayout::parse(&text, "test.toml", Path::new("")).unwrap();
    let mut detour = direct.clone();
    detour.addresses[0] = proxy(direct.addresses[0].clone(), treated.to_vec());
    let (send, ended) = channel();
    // Both identities are equal except for the number. They are made beforehand, because reading
    // the executable may take longer than the deadline.
    let first = Identity::new(&direct, 0, [7; 32]);
    for (process, cluster) in [direct, detour].into_iter().enumerate() {
        let (identity, send) = (Identity { process: process as u32, ..first }, send.clone());
        std::thread::spawn(move || send.send((process, run_as(&cluster, &identity, rounds))));
    }
    let mut results = [None, None];
    let deadline = Instant::now() + PATIENCE;
    while results.iter().any(Option::is_none) {
        match ended.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok((process, end)) => {
                results[process] = Some(end.map(|of_workers| of_workers.into_iter().flatten().collect()))
            }
            Err(RecvTimeoutError::Timeout) => panic!("{treated:?}: hangs"),
            Err(RecvTimeoutError::Disconnected) => panic!("{treated:?}: a process panicked"),
        }
    }
    results.map(|end| end.expect("both have ended"))
}

#[test]
fn stalled_connection_ends_the_run_whichever_and_whenever() {
    let mut cases = vec![
        (Connection::Heartbeat, Direction::Up, Fault::Swallow(Direction::Up.handshake())),
        (Connection::Heartbeat, Direction::Down, Fault::Swallow(Direction::Down.handshake() + 1)),
    ];
    for direction in [Direction::Up, Direction::Down] {
        let handshake = direction.handshake();
        for bytes in [handshake, handshake + 3, 10_000, 300_001, 1_000_000] {
            cases.push((Connection::Data, direction, Fault::Swallow(bytes)));
        }
        cases.push((Connection::Data, direction, Fault::Hold(handshake + 100)));
        cases.push((Connection::Data, direction, Fault::Hold(500_000)));
    }
    std::thread::scope(|scope| {
        for case in cases {
            scope.spawn(move || {
                // Without a heartbeat, a run that is shorter than the deadline would end
                // successfully.
                let slow = match case.0 {
                    Connection::Heartbeat => vec![(Connection::Data, Direction::Up, Fault::Throttle(100_000))],
                    Connection::Data => Vec::new(),
                };
                let lines = ends("3s", &[&[case], &slow[..]].concat()).map(|end| {
                    let error = end.map(|_| "a result").expect_err("a dead connection");
                    assert_eq!(error.exit_code(), 7, "{case:?}: {error}");
                    error.to_string()
                });
                assert_eq!(lines[0], lines[1], "{case:?}");
                let name = if case.0 == Connection::Data { "data connection" } else { "heartbeat connection" };
                assert!(lines[0].contains(name), "{case:?}: {}", lines[0]);
                // The process whose writes block may be the first to notice.
                if let Fault::Swallow(_) = case.2 {
                    let sender = if case.1 == Direction::Up { "process 1 at 127" } else { "process 0 at 127" };
                    assert!(lines[0].contains(sender), "{case:?}: {}", lines[0]);
                }
            });
        }
    });
}

#[test]
fn slow_connections_are_not_dead_ones() {
    let undisturbed = ends("20s", &[]).map(|end| end.unwrap());
    assert_eq!(undisturbed[0].len(), 150_000);
    let both_ways = |fault| [(Connection::Data, Direction::Up, fault), (Connection::Data, Direction::Down, fault)];
    std::thread::scope(|scope| {
        for fault in [Fault::Throttle(200_000), Fault::Delay(Duration::from_millis(30))] {
            let undisturbed = &undisturbed;
            scope.spawn(move || {
                // Each of them takes longer than the deadline.
                let ends =
                    ends("4s", &both_ways(fault)).map(|end| end.unwrap_or_else(|error| panic!("{fault:?}: {error}")));
                assert!(ends == *undisturbed, "{fault:?}");
            });
        }
    });
}
