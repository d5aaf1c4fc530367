//! Checks whether the process of a PE that has been silent for long still exists.
//!
//! Providers that make connections try forever, without an error, to reach a process that has
//! ended. If the names of their endpoints are socket addresses, a TCP connection to the address
//! shows more: the kernel of the other host refuses it if the process has ended, but not if the
//! process is stopped.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// Maximum time to wait for the answer of a host, during which the calling thread makes no
/// progress. Without an answer in time, the PE counts as alive, and is checked again later.
const LIMIT: Duration = Duration::from_millis(500);

/// Returns the socket address in the name of an endpoint, if the name is a `sockaddr_in` or a
/// `sockaddr_in6`.
pub(crate) fn socket(name: &[u8]) -> Option<SocketAddr> {
    // The family is in the byte order of the host, the port in that of the network. An IPv4 address
    // follows the port directly; the flow information of IPv6 is between the port and the address.
    let family = u16::from_ne_bytes(name.get(..2)?.try_into().ok()?);
    let port = u16::from_be_bytes(name.get(2..4)?.try_into().ok()?);
    let ip = match i32::from(family) {
        libc::AF_INET => IpAddr::from(<[u8; 4]>::try_from(name.get(4..8)?).ok()?),
        libc::AF_INET6 => IpAddr::from(<[u8; 16]>::try_from(name.get(8..24)?).ok()?),
        _ => return None,
    };

    // An unspecified address is that of a listener on all interfaces, which its own host reaches by
    // the loopback address.
    let ip = match ip {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        other => other,
    };
    Some(SocketAddr::new(ip, port))
}

/// Returns whether a process listens on an address, by connecting to it; `None` if there is no
/// clear answer.
pub(crate) fn listens(address: SocketAddr) -> Option<bool> {
    match rushmem_connect::connect(&address, LIMIT) {
        Ok(_) => Some(true),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Some(false),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn names_of_sockets_are_understood() {
        let mut name = (libc::AF_INET as u16).to_ne_bytes().to_vec();
        name.extend([0x12, 0x34, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(
            socket(&name),
            Some("127.0.0.1:4660".parse().expect("an address"))
        );

        let mut name = (libc::AF_INET6 as u16).to_ne_bytes().to_vec();
        name.extend([0, 80, 0, 0, 0, 0]);
        name.extend(Ipv6Addr::LOCALHOST.octets());
        assert_eq!(socket(&name), Some("[::1]:80".parse().expect("an address")));

        assert_eq!(socket(b"fi_shm://1"), None);
        assert_eq!(socket(&[]), None);
    }

    #[test]
    fn a_listener_that_is_gone_differs_from_one_that_is_there() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        assert_eq!(listens(address), Some(true));

        drop(listener);
        assert_eq!(listens(address), Some(false));
    }
}
