//! Ports that no other process is given between the moment they are chosen and the moment they are
//! listened on.

use std::net::{TcpListener, TcpStream};

/// Returns an address on loopback that is reserved for a listener that names it: a connection to it
/// has just been closed by its listener, and while the kernel waits for stragglers (a minute on
/// Linux) it does not give the port to a socket that asks for any port, but to a listener that
/// names it.
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
