//! Connections to a port at which another process may not listen yet.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt;

/// Connects to an address within the time `limit`.
///
/// # Errors
/// Those of connect. [`ConnectionRefused`](io::ErrorKind::ConnectionRefused) means that nobody
/// listens there, also if this process has connected to itself.
pub fn connect(address: &SocketAddr, limit: Duration) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(address, limit)?;
    if is_to_itself(&stream)? {
        // The close resets the connection. Otherwise it would keep the port for a minute from the
        // process that is to listen there.
        sockopt::set_socket_linger(&stream, Some(Duration::ZERO))?;
        return Err(Errno::CONNREFUSED.into());
    }
    Ok(stream)
}

/// Returns true if both ends of a connection are this socket. The kernel chooses the port of the
/// end that connects. If it chooses the one to which that end connects on the same host, TCP takes
/// the two for simultaneous opens of one connection.
fn is_to_itself(stream: &TcpStream) -> io::Result<bool> {
    let here = stream.local_addr()?;
    let there = stream.peer_addr()?;
    Ok((here.ip(), here.port()) == (there.ip(), there.port()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketType, bind, connect, getsockname, listen, socket};
    use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};
    use std::sync::mpsc;

    #[test]
    fn a_connection_to_itself_is_recognized() {
        for loopback in [
            SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            (Ipv6Addr::LOCALHOST, 0).into(),
        ] {
            let family = match loopback {
                SocketAddr::V4(_) => AddressFamily::INET,
                SocketAddr::V6(_) => AddressFamily::INET6,
            };
            let own = socket(family, SocketType::STREAM, None).expect("a descriptor");
            // A machine without IPv6 has no such address.
            if bind(&own, &loopback).is_err() && loopback.is_ipv6() {
                continue;
            }
            let address = getsockname(&own).expect("bound");
            connect(&own, &address).expect("it opens from both ends");
            assert!(is_to_itself(&own.into()).expect("connected"));
        }
    }

    #[test]
    fn a_connection_to_a_listener_is_used() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let stream = super::connect(&address, Duration::from_secs(60)).expect("it listens");
        assert!(!is_to_itself(&stream).expect("connected"));
    }

    #[test]
    fn a_listener_that_does_not_answer_is_given_up_after_the_limit() {
        let own = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a descriptor");
        bind(&own, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("a port");
        listen(&own, 0).expect("bound");
        let address = SocketAddr::try_from(getsockname(&own).expect("bound")).expect("of IPv4");

        // The kernel answers until the queue of the listener, which accepts none, is full.
        let (ended, end) = mpsc::channel();
        std::thread::spawn(move || {
            let mut connected = Vec::new();
            let error = loop {
                match super::connect(&address, Duration::from_millis(100)) {
                    Ok(stream) => connected.push(stream),
                    Err(error) => break error,
                }
            };
            ended.send(error.kind())
        });

        let kind = end.recv_timeout(Duration::from_secs(30));
        assert_eq!(kind, Ok(io::ErrorKind::TimedOut));
    }
}
