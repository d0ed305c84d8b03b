//! Addresses of servers, in `WARC-IP-Address` and in the heads of ARC records.

use std::net::{IpAddr, SocketAddr};

use xxhash_rust::xxh3::xxh3_64;

/// Returns the hash of an IPv4 or IPv6 address, with or without a port; 0 for any other text.
///
/// An IPv4 address that is written as IPv6 has the same hash. Addresses that identify no server
/// have hash 0: `0.0.0.0`, which crawlers write if they do not know the address, and loopback
/// addresses, such as that of a proxy on the machine of the crawler.
pub(super) fn name(text: &[u8]) -> u64 {
    let Ok(text) = std::str::from_utf8(text) else { return 0 };
    let as_address = || text.trim_start_matches('[').trim_end_matches(']').parse();
    let with_port = |_| text.parse().map(|address: SocketAddr| address.ip());
    match as_address().or_else(with_port).map(|address: IpAddr| address.to_canonical()) {
        Ok(address) if address.is_unspecified() || address.is_loopback() => 0,
        Ok(IpAddr::V4(address)) => xxh3_64(&address.octets()),
        Ok(IpAddr::V6(address)) => xxh3_64(&address.octets()),
        Err(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_the_same_in_any_notation() {
        let assert_equal = |forms: &[&str]| {
            let names: Vec<u64> = forms.iter().map(|form| name(form.as_bytes())).collect();
            assert!(names[0] != 0 && names.iter().all(|name| *name == names[0]), "{forms:?}");
            names[0]
        };
        let four = assert_equal(&["192.0.2.7", "::ffff:192.0.2.7", "192.0.2.7:80", "[::ffff:c000:207]:443"]);
        let six = assert_equal(&["2001:db8::1", "2001:DB8:0:0::0001", "[2001:db8::1]", "[2001:db8::1]:8080"]);
        assert!(four != six && four != name(b"192.0.2.8"));
    }

    #[test]
    fn addresses_that_identify_no_server_are_ignored() {
        let forms =
            ["", "-", "0", "0.0.0.0", "::", "127.0.0.1", "::1", "::ffff:127.0.0.1", "a.example", "1.2.3", "1.2.3.256"];
        assert!(forms.iter().all(|form| name(form.as_bytes()) == 0));
        assert_eq!(name(b"192.0.2.\xff"), 0);
    }
}
