//! Places of connections: their number is limited, and a waiting connection is displaced when all
//! are taken.
//!
//! Only a request in progress keeps its place. A connection that waits for its client (for a head,
//! a body, or another request) is displaced by a new connection:
//!
//! 1. first come connections whose clients have not been admitted yet, by a key or, where keys are
//!    not needed, by a request that was answered. They keep a quarter of the places, so that new
//!    clients can be admitted at all;
//! 2. among these, connections of the network with the most connections, so that each network has
//!    its fraction of the places regardless of the others;
//! 3. among these, the connection that has waited longest.
//!
//! A network is an IPv4 address, or the first 64 bits of an IPv6 address.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::ServiceLimits;

/// Clients that have not been admitted keep one place in this number of places.
const STRANGER_DIVISOR: usize = 4;

/// State of a connection: the event for which it waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionPhase {
    /// The rest of the head of a request.
    Head,
    /// The rest of the body of a request.
    Body,
    /// The response: the request is in progress.
    Answer,
    /// Another request, of which no byte has arrived.
    Idle,
    /// Events that the server sends as they occur.
    Events,
}

struct Connection {
    network: u64,
    phase: ConnectionPhase,
    phase_start: Instant,
    is_let_in: bool,
    changed: Arc<Notify>,
}

#[derive(Default)]
struct Table {
    next: u64,
    connections: HashMap<u64, Connection>,
    network_counts: HashMap<u64, usize>,
    /// Number of connections whose requests are in progress.
    n_answering: usize,
    /// Number of connections that have been displaced.
    n_displaced: u64,
}

impl Table {
    fn remove(&mut self, number: u64) -> Option<Connection> {
        let connection = self.connections.remove(&number)?;
        let count = self.network_counts.get_mut(&connection.network).expect("a connection is counted");
        *count -= 1;
        if *count == 0 {
            self.network_counts.remove(&connection.network);
        }
        self.n_answering -= usize::from(connection.phase == ConnectionPhase::Answer);
        Some(connection)
    }

    /// Displaces a waiting connection for which `is_candidate` is true. Returns false if there is
    /// none.
    fn displace(&mut self, is_candidate: impl Fn(&Connection) -> bool, strangers_first: bool) -> bool {
        let rank = |connection: &Connection| {
            let is_first = connection.is_let_in != strangers_first;
            (is_first, self.network_counts[&connection.network], Reverse(connection.phase_start))
        };
        let waiting_connections =
            self.connections.iter().filter(|(_, one)| one.phase != ConnectionPhase::Answer && is_candidate(one));
        let Some(number) = waiting_connections.max_by_key(|(_, one)| rank(one)).map(|(number, _)| *number) else {
            return false;
        };
        if let Some(connection) = self.remove(number) {
            connection.changed.notify_one();
        }
        self.n_displaced += 1;
        true
    }
}

/// All places of a server.
pub(crate) struct ConnectionSlots {
    limits: ServiceLimits,
    table: Mutex<Table>,
    freed: Notify,
}

impl ConnectionSlots {
    /// Makes the places of a server without connections.
    pub(crate) fn new(limits: ServiceLimits) -> ConnectionSlots {
        ConnectionSlots { limits, table: Mutex::default(), freed: Notify::new() }
    }

    /// Locks the table. A poisoned lock is ignored, because no code panics while it holds the lock.
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a place for a connection from an address, or `None` if all places are held by
    /// requests in progress.
    pub(crate) fn take(self: &Arc<Self>, address: IpAddr) -> Option<Arc<ConnectionSlot>> {
        let mut table = self.lock();
        if table.connections.len() >= self.limits.connections {
            let n_strangers = table.connections.values().filter(|one| !one.is_let_in).count();
            let strangers_first = n_strangers * STRANGER_DIVISOR >= self.limits.connections;
            if !table.displace(|_| true, strangers_first) {
                return None;
            }
        }
        let (network, change) = (network_of(address), Arc::new(Notify::new()));
        let number = table.next;
        table.next += 1;
        *table.network_counts.entry(network).or_default() += 1;
        let (phase, start) = (ConnectionPhase::Head, Instant::now());
        let connection =
            Connection { network, phase, phase_start: start, is_let_in: false, changed: Arc::clone(&change) };
        table.connections.insert(number, connection);
        Some(Arc::new(ConnectionSlot { places: Arc::clone(self), number, changed: change }))
    }

    /// Waits until a place may be free or may be taken from a waiting connection.
    pub(crate) async fn freed(&self) {
        self.freed.notified().await;
    }

    /// Waits until no connection has a place.
    pub(crate) async fn all_free(&self) {
        while !self.lock().connections.is_empty() {
            self.freed.notified().await;
        }
    }

    /// Returns the number of requests in progress.
    pub(crate) fn answering(&self) -> usize {
        self.lock().n_answering
    }

    /// Returns the number of connections, and the number that have been displaced since the server
    /// started.
    pub(crate) fn counts(&self) -> (usize, u64) {
        let table = self.lock();
        (table.connections.len(), table.n_displaced)
    }
}

/// Returns the number of the network of an address.
fn network_of(address: IpAddr) -> u64 {
    match address.to_canonical() {
        IpAddr::V4(address) => u64::from(u32::from(address)),
        // Numbers of IPv4 networks begin with 32 zero bits. No assigned IPv6 network does, so they
        // do not collide.
        IpAddr::V6(address) => (u128::from(address) >> 64) as u64,
    }
}

/// Place of a connection, which is released when this value is dropped.
pub struct ConnectionSlot {
    places: Arc<ConnectionSlots>,
    number: u64,
    changed: Arc<Notify>,
}

impl ConnectionSlot {
    /// Sets the event for which the connection waits.
    pub fn waits_for(&self, phase: ConnectionPhase) {
        let mut table = self.places.lock();
        let Some(connection) = table.connections.get_mut(&self.number) else { return };
        let previous = std::mem::replace(&mut connection.phase, phase);
        if previous == phase {
            return;
        }
        connection.phase_start = Instant::now();
        table.n_answering += usize::from(phase == ConnectionPhase::Answer);
        table.n_answering -= usize::from(previous == ConnectionPhase::Answer);
        match phase {
            ConnectionPhase::Body => {
                // Each body takes memory, so their number is limited like that of requests.
                let bodies = table.connections.values().filter(|one| one.phase == ConnectionPhase::Body).count();
                if bodies > self.places.limits.in_flight {
                    table.displace(|one| one.phase == ConnectionPhase::Body, true);
                }
            }
            // The deadline of these states may be earlier, so `is_over` must compute it again.
            ConnectionPhase::Head | ConnectionPhase::Idle | ConnectionPhase::Events => self.changed.notify_one(),
            ConnectionPhase::Answer => {}
        }
        drop(table);
        if previous == ConnectionPhase::Answer {
            self.places.freed.notify_one();
        }
    }

    /// Records that the first bytes of another request have arrived.
    pub(crate) fn hears(&self) {
        let has_been_idle =
            self.places.lock().connections.get(&self.number).is_some_and(|one| one.phase == ConnectionPhase::Idle);
        if has_been_idle {
            self.waits_for(ConnectionPhase::Head);
        }
    }

    /// Records that the client has been admitted.
    pub(crate) fn let_in(&self) {
        if let Some(connection) = self.places.lock().connections.get_mut(&self.number) {
            connection.is_let_in = true;
        }
    }

    /// Returns the time at which the connection is closed unless it makes progress, or `None` if it
    /// has been displaced.
    fn deadline(&self) -> Option<Instant> {
        let (table, limits) = (self.places.lock(), &self.places.limits);
        let connection = table.connections.get(&self.number)?;
        Some(
            connection.phase_start
                + match connection.phase {
                    ConnectionPhase::Head => limits.head_time,
                    ConnectionPhase::Idle => limits.idle,
                    // The request has a time limit of its own.
                    ConnectionPhase::Body | ConnectionPhase::Answer | ConnectionPhase::Events => limits.connection,
                },
        )
    }

    /// Waits until the connection must be closed because it was displaced or its client is late.
    pub(crate) async fn is_over(&self) {
        loop {
            match self.deadline() {
                Some(deadline) if deadline > Instant::now() => tokio::select! {
                    () = sleep_until(deadline) => {}
                    () = self.changed.notified() => {}
                },
                _ => return,
            }
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.places.lock().remove(self.number);
        self.places.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};
    use std::time::Duration;

    use super::*;

    fn places(connections: usize) -> Arc<ConnectionSlots> {
        Arc::new(ConnectionSlots::new(ServiceLimits { connections, ..ServiceLimits::default() }))
    }

    fn address(last: u8) -> IpAddr {
        Ipv4Addr::new(192, 0, 2, last).into()
    }

    fn has_place(place: &ConnectionSlot) -> bool {
        place.deadline().is_some()
    }

    #[test]
    fn oldest_waiting_connection_of_the_largest_network_is_displaced() {
        let places = places(4);
        let take = |last| places.take(address(last)).unwrap();
        let [single_place, first, second, third_place] = [1, 2, 2, 2].map(take);
        let next = take(2);
        assert!(has_place(&single_place) && !has_place(&first));
        let newcomer = take(3);
        assert!(
            has_place(&single_place)
                && !has_place(&second)
                && has_place(&third_place)
                && has_place(&next)
                && has_place(&newcomer)
        );
        assert_eq!(places.counts(), (4, 2));
        drop([third_place, next]);
        assert_eq!(places.counts().0, 2);
        // Displaced connections release nothing a second time when they end.
        drop([first, second]);
        assert_eq!(places.counts().0, 2);
    }

    #[test]
    fn admitted_client_is_displaced_only_while_new_clients_are_below_their_quota() {
        let places = places(8);
        let trusted: Vec<_> = (0..8).map(|_| places.take(address(1)).unwrap()).collect();
        for place in &trusted {
            place.waits_for(ConnectionPhase::Answer);
            place.let_in();
            place.waits_for(ConnectionPhase::Idle);
        }
        let stranger_places: Vec<_> = (0..100).map(|n| places.take(address(2 + n)).unwrap()).collect();
        assert_eq!(trusted.iter().filter(|place| has_place(place)).count(), 6);
        assert!(!has_place(&trusted[0]) && !has_place(&trusted[1]), "the oldest have given way");
        assert_eq!(stranger_places.iter().filter(|place| has_place(place)).count(), 2);
        assert!(stranger_places[98..].iter().all(|place| has_place(place)));
    }

    #[test]
    fn requests_in_progress_are_not_displaced_and_new_clients_wait() {
        let places = places(2);
        let [place_a, place_b] = [1, 2].map(|last| places.take(address(last)).unwrap());
        place_a.waits_for(ConnectionPhase::Answer);
        place_b.waits_for(ConnectionPhase::Answer);
        assert!(places.take(address(3)).is_none());
        assert_eq!(places.answering(), 2);
        place_a.waits_for(ConnectionPhase::Body);
        assert!(places.take(address(3)).is_some());
        assert!(!has_place(&place_a) && has_place(&place_b));
    }

    #[test]
    fn slow_bodies_are_limited_to_the_number_of_requests() {
        let limits = ServiceLimits { in_flight: 2, ..ServiceLimits::default() };
        let places = Arc::new(ConnectionSlots::new(limits));
        let places_taken: Vec<_> = (0..5).map(|_| places.take(address(1)).unwrap()).collect();
        for place in &places_taken {
            place.waits_for(ConnectionPhase::Answer);
            place.waits_for(ConnectionPhase::Body);
        }
        assert_eq!(
            places_taken.iter().map(|place| has_place(place)).collect::<Vec<_>>(),
            [false, false, false, true, true]
        );
    }

    #[test]
    fn a_client_has_its_time_for_a_head_from_the_first_byte_on() {
        let second = Duration::from_secs(1);
        let limits = ServiceLimits { head_time: 2 * second, idle: 60 * second, ..ServiceLimits::default() };
        let places = Arc::new(ConnectionSlots::new(limits));
        let place = places.take(address(1)).unwrap();
        let left = || place.deadline().unwrap().saturating_duration_since(Instant::now()).as_secs_f64().round();
        assert_eq!(left(), 2.0);
        place.hears();
        place.waits_for(ConnectionPhase::Answer);
        assert_eq!(left(), limits.connection.as_secs_f64());
        place.waits_for(ConnectionPhase::Idle);
        assert_eq!(left(), 60.0);
        place.hears();
        assert_eq!(left(), 2.0);
    }

    #[test]
    fn networks_are_addresses_of_ipv4_and_halves_of_ipv6() {
        let v6 = |text: &str| network_of(text.parse::<Ipv6Addr>().unwrap().into());
        assert_eq!(v6("2001:db8::1"), v6("2001:db8::2:0:0:1"));
        assert_ne!(v6("2001:db8::1"), v6("2001:db8:0:1::1"));
        assert_eq!(v6("::ffff:192.0.2.1"), network_of(address(1)));
        assert_ne!(network_of(address(1)), network_of(address(2)));
    }
}
