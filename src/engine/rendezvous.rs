//! Rendezvous of the processes of a run.
//!
//! Of two processes the one with the lower number listens and the other one dials, once for data
//! and once for the heartbeat. Each connection is answered by a thread of its own and has a few
//! seconds to authenticate, so that strangers delay no peer. If too many connections wait, the
//! oldest is closed, because a peer needs only milliseconds. The listening socket is closed as soon
//! as all processes have met.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use socket2::{SockRef, TcpKeepalive};

use super::cluster_file::{ClusterLayout, is_loopback};
use super::handshake::{Arrival, ConnectionPurpose, Miss, Session, accept, dial};
use super::heartbeat::Heartbeat;
use super::identity::Identity;
use super::key::ClusterKey;
use webtwin_base::error::{Error, Result};
use webtwin_base::threads;

/// Maximum number of connections in their handshake at a time.
const MAX_GUESTS: usize = 64;

/// Polling interval of the listening socket.
const TICK: Duration = Duration::from_millis(5);

/// Connections of one process after all processes have met.
#[derive(Debug)]
pub struct Meeting {
    /// Data connection to each process, with its session; `None` at the place of this process.
    pub sockets: Vec<Option<(TcpStream, Session)>>,
    /// Number of refused connections: strangers, wrong keys, and numbers that were started twice.
    pub strangers: usize,
}

/// Connects this process with all others of `cluster`. Heartbeats begin as soon as the peers join.
///
/// # Errors
/// Returns [`Error::Handshake`] if an address cannot be used or a peer differs in key, build, job
/// or cluster file; [`Error::PeerLost`] with the names of the processes that are absent at the
/// deadline; [`Error::NoThread`] if a thread cannot be started; and the error that has ended the
/// run on a peer in the meantime.
pub fn meet(cluster: &ClusterLayout, identity: &Identity, heartbeat: &Heartbeat) -> Result<Meeting> {
    let deadline = Instant::now() + cluster.deadline;
    let process = identity.process as usize;
    let listener = match process + 1 < cluster.processes() {
        true => Some(listen(&cluster.addresses[process], &cluster.key, deadline)?),
        false => None,
    };

    let (send, news) = channel();
    for (to, address) in cluster.addresses.iter().enumerate().take(process) {
        let dialer = Dialer {
            identity: *identity,
            key: cluster.key.clone(),
            to: to as u32,
            address: address.clone(),
            deadline,
            news: send.clone(),
        };
        threads::start(move || dialer.dial_all())?;
    }
    let lobby = Lobby { cluster, identity, heartbeat, listener, send, guests: BTreeMap::new(), places: Arc::default() };
    lobby.wait(deadline, &news)
}

/// Resolves `host:port` to its current socket addresses. Names of pods and nodes may become
/// resolvable only after this process has started.
fn resolve(address: &str, key: &ClusterKey) -> std::result::Result<Vec<SocketAddr>, Miss> {
    let socket_addresses: Vec<SocketAddr> = address
        .to_socket_addrs()
        .map_err(|cause| Miss::Transient(format!("{cause}; check the name, and that DNS resolves it")))?
        .collect();
    match socket_addresses.iter().find(|resolved| key.is_none() && !resolved.ip().is_loopback()) {
        Some(open) => Err(Miss::Final(Error::Handshake(format!(
            "address {address} is {open}, which is not loopback; set key_file in the cluster file"
        )))),
        None => Ok(socket_addresses),
    }
}

/// Listens on this process's own address, and waits until its name can be resolved.
fn listen(address: &str, key: &ClusterKey, deadline: Instant) -> Result<TcpListener> {
    let socket_addresses = loop {
        match resolve(address, key) {
            Ok(resolved) => break resolved,
            Err(Miss::PlaceTaken(error) | Miss::Final(error)) => return Err(error),
            Err(Miss::Transient(_)) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(250)),
            Err(Miss::Transient(reason)) => {
                return Err(Error::Handshake(format!("cannot listen on {address}: {reason}")));
            }
        }
    };
    let socket_addresses = if key.is_none() { socket_addresses } else { open_to_others(address, socket_addresses) };
    let bind = || {
        let listener = TcpListener::bind(&socket_addresses[..])?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    bind().map_err(|cause: io::Error| {
        let what_to_do = match cause.kind() {
            io::ErrorKind::AddrInUse => {
                "another process with this number may be running, so give each its own --process, end the program that \
                 uses the port, or choose another port in the cluster file"
            }
            io::ErrorKind::AddrNotAvailable => {
                "it is not an address of this machine; check --process and the cluster file"
            }
            _ => "choose an address on which this process may listen",
        };
        Error::Handshake(format!("cannot listen on {address}: {cause}; {what_to_do}"))
    })
}

/// Returns the socket addresses to listen on. If the name of this machine resolves only to
/// loopback, as on some systems, they are all addresses of the machine, because other processes
/// could not connect otherwise.
fn open_to_others(address: &str, mut socket_addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    if !is_loopback(address) && socket_addresses.iter().all(|one| one.ip().is_loopback()) {
        for socket_address in &mut socket_addresses {
            match socket_address {
                SocketAddr::V4(one) => one.set_ip(Ipv4Addr::UNSPECIFIED),
                SocketAddr::V6(one) => one.set_ip(Ipv6Addr::UNSPECIFIED),
            }
        }
    }
    socket_addresses
}

/// Messages from the threads of a rendezvous.
enum News {
    /// A connection is ready.
    Joined { process: u32, purpose: ConnectionPurpose, stream: TcpStream, session: Session },
    /// This process cannot take part in the run.
    Failed(Error),
    /// A process could not be reached so far.
    Unreachable { process: u32, reason: String },
    /// Guest number `guest` has left its handshake.
    Left { guest: u64 },
    /// A process arrived whose number has already joined.
    Duplicate(u32),
    /// A connection was refused.
    Refused { claims: Option<u32>, reason: String },
}

/// Listening side of the rendezvous, which collects the messages of all threads.
struct Lobby<'a> {
    cluster: &'a ClusterLayout,
    identity: &'a Identity,
    heartbeat: &'a Heartbeat,
    listener: Option<TcpListener>,
    send: Sender<News>,
    /// Connections in their handshake, oldest first.
    guests: BTreeMap<u64, TcpStream>,
    /// Incarnation that has taken the place of each process.
    places: Arc<Mutex<HashMap<u32, [u8; 16]>>>,
}

impl Lobby<'_> {
    fn wait(mut self, deadline: Instant, news: &Receiver<News>) -> Result<Meeting> {
        let processes = self.cluster.processes();
        let mut sockets: Vec<Option<(TcpStream, Session)>> = (0..processes).map(|_| None).collect();
        let mut watched = vec![false; processes];
        let mut reasons: BTreeMap<u32, String> = BTreeMap::new();
        let mut duplicates = BTreeSet::new();
        let mut strangers = 0;
        let mut guests_so_far = 0;
        loop {
            self.heartbeat.check()?;
            let own_process = self.identity.process as usize;
            let absent = |&process: &usize| process != own_process && (sockets[process].is_none() || !watched[process]);
            let missing: Vec<usize> = (0..processes).filter(absent).collect();
            if missing.is_empty() {
                return Ok(Meeting { sockets, strangers });
            }
            // Checked after `missing`, so that a peer that joins at the deadline still counts.
            if Instant::now() >= deadline {
                return Err(self.absent(&missing, &reasons, &duplicates));
            }
            self.welcome(&mut guests_so_far);

            let first = news.recv_timeout(TICK).ok();
            for item in first.into_iter().chain(news.try_iter()) {
                match item {
                    News::Joined { process, purpose, stream, session } => {
                        let place = process as usize;
                        let peer = self.name(place);
                        // The handshake has set timeouts that must not apply to the run.
                        prepare(&stream, self.cluster.deadline)
                            .map_err(|cause| Error::PeerLost(format!("{peer}: {cause}")))?;
                        match purpose {
                            ConnectionPurpose::Data => sockets[place] = Some((stream, session)),
                            ConnectionPurpose::Heartbeat => {
                                self.heartbeat.watch(
                                    &peer,
                                    stream,
                                    &session,
                                    (self.identity.process as usize, place),
                                )?;
                                watched[place] = true;
                            }
                        }
                    }
                    News::Failed(error) => return Err(error),
                    News::Unreachable { process, reason } => {
                        reasons.insert(process, reason);
                    }
                    News::Left { guest } => {
                        self.guests.remove(&guest);
                    }
                    News::Duplicate(process) => {
                        strangers += 1;
                        duplicates.insert(process);
                    }
                    News::Refused { claims, reason } => {
                        strangers += 1;
                        if let Some(process) = claims {
                            reasons.insert(process, format!("{WRONG_KEY}{reason}"));
                        }
                    }
                }
            }
        }
    }

    fn name(&self, process: usize) -> String {
        format!("process {process} at {}", self.cluster.addresses[process])
    }

    /// Starts a thread for every connection that has arrived.
    fn welcome(&mut self, guests_so_far: &mut u64) {
        // Limited to as many as may wait, so that a flood of connections does not keep the loop
        // from authenticated peers.
        for _ in 0..MAX_GUESTS {
            // An error concerns only one connection, or a temporary lack of file descriptors. Peers
            // dial again.
            let Some(Ok((stream, _))) = self.listener.as_ref().map(TcpListener::accept) else { return };
            let guest = *guests_so_far;
            *guests_so_far += 1;
            let Ok(handle) = stream.set_nonblocking(false).and_then(|()| stream.try_clone()) else { continue };
            self.guests.insert(guest, handle);
            if self.guests.len() > MAX_GUESTS
                && let Some((_, oldest)) = self.guests.pop_first()
            {
                let _ = oldest.shutdown(Shutdown::Both);
            }
            let (identity, key, send, places) =
                (*self.identity, self.cluster.key.clone(), self.send.clone(), Arc::clone(&self.places));
            let started = threads::start(move || {
                let arrival = accept(&stream, &identity, &key, |who, _| admit(&identity, who, &places));
                let item = match arrival {
                    Arrival::Joined(peer, purpose, session) => {
                        News::Joined { process: peer.process, purpose, stream, session }
                    }
                    Arrival::Conflict(error) => News::Failed(error),
                    Arrival::Duplicate(process) => News::Duplicate(process),
                    Arrival::Stranger { claims, reason } => News::Refused { claims, reason },
                };
                // The send fails if the processes have already met or given up. Then the message is
                // not needed.
                let _ = send.send(News::Left { guest }).and_then(|()| send.send(item));
            });
            if started.is_err() {
                self.guests.remove(&guest);
            }
        }
    }

    /// Returns the error that names the processes that did not join, with the known reasons. A
    /// wrong key is reported as an error of configuration.
    fn absent(&self, missing: &[usize], reasons: &BTreeMap<u32, String>, duplicates: &BTreeSet<u32>) -> Error {
        let mut wrong_key = false;
        let process_lines: Vec<String> = missing
            .iter()
            .map(|&process| match reasons.get(&(process as u32)) {
                Some(reason) => {
                    wrong_key |= reason.starts_with(WRONG_KEY);
                    format!("{} ({reason})", self.name(process))
                }
                None => self.name(process),
            })
            .collect();
        let seconds = self.cluster.deadline.as_secs_f32();
        let mut line = format!("{} did not join within {seconds} s", process_lines.join(", "));
        for process in duplicates {
            line += &format!("; process {process} was started twice");
        }
        match wrong_key {
            true => Error::Handshake(format!("{line}; give all processes the same key_file")),
            false => {
                Error::PeerLost(format!("{line}; start every process of the cluster file, each with its own number"))
            }
        }
    }
}

/// Prefix of reasons from a connection that claimed a process number but did not hold the key.
const WRONG_KEY: &str = "a program claimed to be it, but ";

/// Assigns a process to its place unless another start of it has taken that. Data and heartbeat
/// must come from the same start.
fn admit(identity: &Identity, peer: &Identity, places: &Mutex<HashMap<u32, [u8; 16]>>) -> bool {
    if peer.process <= identity.process || peer.process >= identity.processes {
        return false;
    }
    let mut places = places.lock().unwrap_or_else(PoisonError::into_inner);
    *places.entry(peer.process).or_insert(peer.incarnation) == peer.incarnation
}

/// Configures a socket so that the kernel reports a peer that is gone, and sends small messages
/// without delay.
fn prepare(stream: &TcpStream, deadline: Duration) -> io::Result<()> {
    stream.set_read_timeout(None)?;
    stream.set_write_timeout(None)?;
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    let keepalive = TcpKeepalive::new().with_time(Duration::from_secs(10)).with_interval(Duration::from_secs(5));
    socket.set_tcp_keepalive(&keepalive)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(deadline))?;
    Ok(())
}

/// Time within which the peers notice that a process was killed during the rendezvous. A process
/// that is restarted under the same number keeps dialing for this time, and joins when its peers
/// restart, too.
const NOTICE_TIME: Duration = Duration::from_secs(2);

/// Dialing side of the rendezvous, towards one process.
struct Dialer {
    identity: Identity,
    key: ClusterKey,
    to: u32,
    address: String,
    deadline: Instant,
    news: Sender<News>,
}

impl Dialer {
    /// Opens the data connection and then the heartbeat connection, with retries until the
    /// deadline.
    fn dial_all(self) {
        // A place that is taken may belong to a process that was just killed, so it is final only
        // after `NOTICE_TIME`.
        let mut taken_since: Option<Instant> = None;
        for purpose in [ConnectionPurpose::Data, ConnectionPurpose::Heartbeat] {
            let mut pause = Duration::from_millis(5);
            while Instant::now() < self.deadline {
                let item = match self.dial_once(purpose) {
                    Ok((stream, session)) => News::Joined { process: self.to, purpose, stream, session },
                    Err(Miss::PlaceTaken(error))
                        if taken_since.get_or_insert_with(Instant::now).elapsed() < NOTICE_TIME =>
                    {
                        News::Unreachable { process: self.to, reason: error.to_string() }
                    }
                    Err(Miss::PlaceTaken(error) | Miss::Final(error)) => News::Failed(error),
                    Err(Miss::Transient(reason)) => News::Unreachable { process: self.to, reason },
                };
                let is_retry = matches!(item, News::Unreachable { .. });
                if matches!(item, News::Failed(_)) | self.news.send(item).is_err() {
                    return;
                }
                if !is_retry {
                    break;
                }
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(500));
            }
        }
    }

    fn dial_once(&self, purpose: ConnectionPurpose) -> std::result::Result<(TcpStream, Session), Miss> {
        let patience = self.deadline.saturating_duration_since(Instant::now()).clamp(TICK, Duration::from_secs(5));
        let mut last = Miss::Transient("its name has no address in DNS".to_string());
        for address in resolve(&self.address, &self.key)? {
            match TcpStream::connect_timeout(&address, patience) {
                Ok(stream) => {
                    let session = dial(&stream, &self.identity, &self.key, purpose, self.to, &self.address)?;
                    return Ok((stream, session));
                }
                Err(cause) => last = Miss::Transient(cause.to_string()),
            }
        }
        Err(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn unresolved_name_is_resolved_again_later() {
        let Err(Miss::Transient(reason)) = resolve("nobody.invalid:2101", &ClusterKey::none()) else {
            panic!("it has an address")
        };
        assert!(reason.contains("check the name"), "{reason}");
        assert!(matches!(resolve("10.0.0.1:2101", &ClusterKey::none()), Err(Miss::Final(_))));
    }

    #[test]
    fn host_name_that_resolves_to_its_own_loopback_listens_on_all_interfaces() {
        let listen_addresses = open_to_others("node-1:2101", addresses(&["127.0.1.1:2101", "[::1]:2101"]));
        assert_eq!(listen_addresses, addresses(&["0.0.0.0:2101", "[::]:2101"]));
        for (address, resolved_address) in [("localhost:2101", "127.0.0.1:2101"), ("node-1:2101", "10.0.0.1:2101")] {
            assert_eq!(open_to_others(address, addresses(&[resolved_address])), addresses(&[resolved_address]));
        }
    }
}
