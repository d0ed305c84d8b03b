//! Ports that no other process receives between their choice and the start of a listener.

use std::net::{TcpListener, TcpStream};

/// Returns an address on loopback that is reserved for a listener that binds to it explicitly. The
/// listener of this port has just closed a connection. While the kernel waits for late packets (a
/// minute on Linux), it assigns the port only to explicit requests, not to sockets that ask for any
/// port.
pub(crate) fn reserved_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let dialer = TcpStream::connect(address).unwrap();
    let accepted = listener.accept().unwrap().0;
    // The side that closes first is the one that stays in the waiting state.
    drop(accepted);
    drop(dialer);
    address.to_string()
}
