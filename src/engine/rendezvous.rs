//! How the processes of a run find each other.
//!
//! Of two processes the lower number listens and the higher one dials, once for data and once for the heartbeat. A
//! connection is answered by a thread of its own and has a few seconds to prove itself, so that strangers delay nobody;
//! when too many wait, the one that has waited longest goes, since a peer needs only milliseconds. Nothing listens any
//! more once all have met.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use socket2::{SockRef, TcpKeepalive};

use super::cluster_file::{Cluster, is_loopback};
use super::handshake::{Arrival, Identity, Miss, Purpose, Session, accept, dial};
use super::heartbeat::Heartbeat;
use super::key::Key;
use webtwin_base::error::{Error, Result};
use webtwin_base::threads;

/// Most connections that may be in their handshake.
const MOST_GUESTS: usize = 64;

/// Time between two looks at the listening socket.
const TICK: Duration = Duration::from_millis(5);

/// The connections of one process after all have met.
#[derive(Debug)]
pub struct Meeting {
    /// The data connection to each process, with its secret; `None` at this process's own place.
    pub sockets: Vec<Option<(TcpStream, Session)>>,
    /// Connections that were refused: strangers, wrong keys, numbers started twice.
    pub strangers: usize,
}

/// Connects this process with all others of `cluster`; heartbeats begin as peers appear.
///
/// # Errors
/// [`Error::Handshake`] when an address cannot be used or a peer differs in key, build, job or cluster file;
/// [`Error::PeerLost`] naming those who are absent at the deadline; [`Error::NoThread`]; or whatever ended the run on a peer
/// meanwhile.
pub fn meet(cluster: &Cluster, me: &Identity, heartbeat: &Heartbeat) -> Result<Meeting> {
    let until = Instant::now() + cluster.deadline;
    let process = me.process as usize;
    let listener = match process + 1 < cluster.processes() {
        true => Some(listen(&cluster.addresses[process], &cluster.key, until)?),
        false => None,
    };

    let (send, news) = channel();
    for (to, address) in cluster.addresses.iter().enumerate().take(process) {
        let dialer = Dialer {
            me: *me,
            key: cluster.key.clone(),
            to: to as u32,
            address: address.clone(),
            until,
            news: send.clone(),
        };
        threads::start(move || dialer.dial_all())?;
    }
    let lobby = Lobby { cluster, me, heartbeat, listener, send, guests: BTreeMap::new(), places: Arc::default() };
    lobby.wait(until, &news)
}

/// Returns the socket addresses behind `host:port`, at this moment: names of pods and nodes come with them.
fn resolve(address: &str, key: &Key) -> std::result::Result<Vec<SocketAddr>, Miss> {
    let resolved: Vec<SocketAddr> = address
        .to_socket_addrs()
        .map_err(|cause| Miss::Again(format!("{cause}; is the name right, and does the DNS know it?")))?
        .collect();
    match resolved.iter().find(|resolved| key.is_none() && !resolved.ip().is_loopback()) {
        Some(open) => Err(Miss::Final(Error::Handshake(format!(
            "address {address} is {open}, which is not loopback; set key_file in the cluster file"
        )))),
        None => Ok(resolved),
    }
}

/// Listens on this process's own address, once its name is known.
fn listen(address: &str, key: &Key, until: Instant) -> Result<TcpListener> {
    let resolved = loop {
        match resolve(address, key) {
            Ok(resolved) => break resolved,
            Err(Miss::Taken(error) | Miss::Final(error)) => return Err(error),
            Err(Miss::Again(_)) if Instant::now() < until => std::thread::sleep(Duration::from_millis(250)),
            Err(Miss::Again(reason)) => return Err(Error::Handshake(format!("cannot listen on {address}: {reason}"))),
        }
    };
    let resolved = if key.is_none() { resolved } else { open_to_others(address, resolved) };
    let bind = || {
        let listener = TcpListener::bind(&resolved[..])?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    bind().map_err(|cause: io::Error| {
        let what_to_do = match cause.kind() {
            io::ErrorKind::AddrInUse => {
                "a process with this number may have been started before, and each needs a --process of its own; or end \
                 what uses the port, or choose another in the cluster file"
            }
            io::ErrorKind::AddrNotAvailable => "it is no address of this machine; check --process and the cluster file",
            _ => "choose an address this process may listen on",
        };
        Error::Handshake(format!("cannot listen on {address}: {cause}; {what_to_do}"))
    })
}

/// Where a process of this address listens: on all addresses of the machine when its own name is one of loopback, as some
/// systems have it, where the others could not find it.
fn open_to_others(address: &str, mut resolved: Vec<SocketAddr>) -> Vec<SocketAddr> {
    if !is_loopback(address) && resolved.iter().all(|one| one.ip().is_loopback()) {
        for one in &mut resolved {
            match one {
                SocketAddr::V4(one) => one.set_ip(Ipv4Addr::UNSPECIFIED),
                SocketAddr::V6(one) => one.set_ip(Ipv6Addr::UNSPECIFIED),
            }
        }
    }
    resolved
}

/// What the threads of a rendezvous report.
enum News {
    /// A connection is ready.
    Joined { process: u32, purpose: Purpose, stream: TcpStream, session: Session },
    /// This process cannot take part.
    Failed(Error),
    /// A process could not be reached, so far.
    Unreachable { process: u32, reason: String },
    /// Guest number `guest` is no longer in its handshake.
    Left { guest: u64 },
    /// A process came although one with its number has joined.
    Twice(u32),
    /// A connection was refused.
    Refused { claims: Option<u32>, reason: String },
}

/// The listening side, and the place where everything comes together.
struct Lobby<'a> {
    cluster: &'a Cluster,
    me: &'a Identity,
    heartbeat: &'a Heartbeat,
    listener: Option<TcpListener>,
    send: Sender<News>,
    /// Connections in their handshake, oldest first.
    guests: BTreeMap<u64, TcpStream>,
    /// The incarnation that has taken the place of each process.
    places: Arc<Mutex<HashMap<u32, [u8; 16]>>>,
}

impl Lobby<'_> {
    fn wait(mut self, until: Instant, news: &Receiver<News>) -> Result<Meeting> {
        let processes = self.cluster.processes();
        let mut sockets: Vec<Option<(TcpStream, Session)>> = (0..processes).map(|_| None).collect();
        let mut watched = vec![false; processes];
        let mut reasons: BTreeMap<u32, String> = BTreeMap::new();
        let mut twice = BTreeSet::new();
        let mut strangers = 0;
        let mut guests_so_far = 0;
        loop {
            self.heartbeat.check()?;
            let here = self.me.process as usize;
            let absent = |&process: &usize| process != here && (sockets[process].is_none() || !watched[process]);
            let missing: Vec<usize> = (0..processes).filter(absent).collect();
            if missing.is_empty() {
                return Ok(Meeting { sockets, strangers });
            }
            // Checked after `missing`, so a peer that arrives with the deadline still counts.
            if Instant::now() >= until {
                return Err(self.absent(&missing, &reasons, &twice));
            }
            self.welcome(&mut guests_so_far);

            let first = news.recv_timeout(TICK).ok();
            for item in first.into_iter().chain(news.try_iter()) {
                match item {
                    News::Joined { process, purpose, stream, session } => {
                        let place = process as usize;
                        let peer = self.name(place);
                        prepare(&stream, self.cluster.deadline)
                            .map_err(|cause| Error::PeerLost(format!("{peer}: {cause}")))?;
                        match purpose {
                            Purpose::Data => sockets[place] = Some((stream, session)),
                            Purpose::Heartbeat => {
                                self.heartbeat.watch(&peer, stream, &session, (self.me.process as usize, place))?;
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
                    News::Twice(process) => {
                        strangers += 1;
                        twice.insert(process);
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

    /// Gives every connection that has arrived a thread of its own.
    fn welcome(&mut self, guests_so_far: &mut u64) {
        // No more at a time than may wait, so that a flood does not keep the loop from those who have proved themselves.
        for _ in 0..MOST_GUESTS {
            // An error here concerns one connection or a passing lack of file descriptors; peers dial again.
            let Some(Ok((stream, _))) = self.listener.as_ref().map(TcpListener::accept) else { return };
            let guest = *guests_so_far;
            *guests_so_far += 1;
            let Ok(handle) = stream.set_nonblocking(false).and_then(|()| stream.try_clone()) else { continue };
            self.guests.insert(guest, handle);
            if self.guests.len() > MOST_GUESTS
                && let Some((_, oldest)) = self.guests.pop_first()
            {
                let _ = oldest.shutdown(Shutdown::Both);
            }
            let (me, key, send, places) =
                (*self.me, self.cluster.key.clone(), self.send.clone(), Arc::clone(&self.places));
            let started = threads::start(move || {
                let arrival = accept(&stream, &me, &key, |who, _| admit(&me, who, &places));
                let item = match arrival {
                    Arrival::Joined(who, purpose, session) => {
                        News::Joined { process: who.process, purpose, stream, session }
                    }
                    Arrival::Conflict(error) => News::Failed(error),
                    Arrival::Twice(process) => News::Twice(process),
                    Arrival::Stranger { claims, reason } => News::Refused { claims, reason },
                };
                // Nobody listens any more once the processes have met or given up.
                let _ = send.send(News::Left { guest }).and_then(|()| send.send(item));
            });
            if started.is_err() {
                self.guests.remove(&guest);
            }
        }
    }

    /// Says who did not come, and why as far as known. A key that is not ours is a matter of configuration.
    fn absent(&self, missing: &[usize], reasons: &BTreeMap<u32, String>, twice: &BTreeSet<u32>) -> Error {
        let mut wrong_key = false;
        let each: Vec<String> = missing
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
        let mut line = format!("{} did not join within {seconds} s", each.join(", "));
        for process in twice {
            line += &format!("; process {process} was started twice");
        }
        match wrong_key {
            true => Error::Handshake(format!("{line}; give all processes the same key_file")),
            false => Error::PeerLost(format!(
                "{line}; start every process of the cluster file, each with a number of its own"
            )),
        }
    }
}

/// Marks reasons that come from a process which said its number and did not hold the key.
const WRONG_KEY: &str = "somebody said to be it, but ";

/// Gives a process its place unless another start of it has it; data and heartbeat must come from one start.
fn admit(me: &Identity, who: &Identity, places: &Mutex<HashMap<u32, [u8; 16]>>) -> bool {
    if who.process <= me.process || who.process >= me.processes {
        return false;
    }
    let mut places = places.lock().unwrap_or_else(PoisonError::into_inner);
    *places.entry(who.process).or_insert(who.incarnation) == who.incarnation
}

/// Makes the kernel report a peer that is gone for good, and send small messages at once.
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

/// Time after which the others have noticed that a process was killed while they met: one that takes its number again may then meet
/// them when they start anew.
const IS_NOTICED: Duration = Duration::from_secs(2);

/// The dialing side towards one process.
struct Dialer {
    me: Identity,
    key: Key,
    to: u32,
    address: String,
    until: Instant,
    news: Sender<News>,
}

impl Dialer {
    /// Opens both connections, one after the other, trying again until the deadline.
    fn dial_all(self) {
        let mut taken_since: Option<Instant> = None;
        for purpose in [Purpose::Data, Purpose::Heartbeat] {
            let mut pause = Duration::from_millis(5);
            while Instant::now() < self.until {
                let item = match self.dial_once(purpose) {
                    Ok((stream, session)) => News::Joined { process: self.to, purpose, stream, session },
                    Err(Miss::Taken(error)) if taken_since.get_or_insert_with(Instant::now).elapsed() < IS_NOTICED => {
                        News::Unreachable { process: self.to, reason: error.to_string() }
                    }
                    Err(Miss::Taken(error) | Miss::Final(error)) => News::Failed(error),
                    Err(Miss::Again(reason)) => News::Unreachable { process: self.to, reason },
                };
                let again = matches!(item, News::Unreachable { .. });
                if matches!(item, News::Failed(_)) | self.news.send(item).is_err() {
                    return;
                }
                if !again {
                    break;
                }
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(500));
            }
        }
    }

    fn dial_once(&self, purpose: Purpose) -> std::result::Result<(TcpStream, Session), Miss> {
        let patience = self.until.saturating_duration_since(Instant::now()).clamp(TICK, Duration::from_secs(5));
        let mut last = Miss::Again("its name has no address".to_string());
        for address in resolve(&self.address, &self.key)? {
            match TcpStream::connect_timeout(&address, patience) {
                Ok(stream) => {
                    let session = dial(&stream, &self.me, &self.key, purpose, self.to, &self.address)?;
                    return Ok((stream, session));
                }
                Err(cause) => last = Miss::Again(cause.to_string()),
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
    fn a_name_that_nobody_knows_yet_is_asked_for_again() {
        let Err(Miss::Again(reason)) = resolve("nobody.invalid:2101", &Key::none()) else {
            panic!("it has an address")
        };
        assert!(reason.contains("is the name right"), "{reason}");
        assert!(matches!(resolve("10.0.0.1:2101", &Key::none()), Err(Miss::Final(_))));
    }

    #[test]
    fn who_is_known_by_an_address_of_loopback_to_itself_alone_listens_everywhere() {
        let own = open_to_others("node-1:2101", addresses(&["127.0.1.1:2101", "[::1]:2101"]));
        assert_eq!(own, addresses(&["0.0.0.0:2101", "[::]:2101"]));
        for (address, known) in [("localhost:2101", "127.0.0.1:2101"), ("node-1:2101", "10.0.0.1:2101")] {
            assert_eq!(open_to_others(address, addresses(&[known])), addresses(&[known]));
        }
    }
}
