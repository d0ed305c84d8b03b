//! Ports that nobody else is given between the moment they are chosen and the moment they are
//! listened on.

use std::net::{TcpListener, TcpStream};

/// An address on loopback, kept for who names it: a connection to it has just been closed by its
/// listener, and while the kernel waits for stragglers (a minute on Linux) it gives the port to
/// nobody who asks for any, but to a listener that asks for it.
pub(crate) fn reserved_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let dialer = TcpStream::connect(address).unwrap();
    let accepted = listener.accept().unwrap().0;
    // The side that closes first is the one that waits.
    drop(accepted);
    drop(dialer);
    address.to_string()
}
