//! The addresses of this machine at which the members of a meeting may reach it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

use rushmem_interfaces::{INTERFACES, Need, PORTS, PortRange, Selection, addresses};

use crate::error::Error;

/// Listens at each address of this machine that members may reach, as the settings say. The
/// addresses are in the order in which members try them; one at which this process can listen is
/// enough.
pub(super) fn listen() -> Result<Vec<TcpListener>, Error> {
    let refuse = |why: String| Error::Serving(io::Error::other(why));
    let variable = |name| std::env::var(name).ok();
    let selection = Selection::parse(&variable(INTERFACES).unwrap_or_default()).map_err(refuse)?;
    let ports = PortRange::parse(variable(PORTS).as_deref()).map_err(refuse)?;
    let own = addresses(Need::Any, selection.as_ref(), None).map_err(refuse)?;
    let (mut listeners, mut refused) = (Vec::new(), io::ErrorKind::AddrNotAvailable.into());
    for ip in own {
        match ports.listen(ip) {
            Ok(listener) => listeners.push(listener),
            Err(error) => refused = error,
        }
    }
    if listeners.is_empty() { Err(Error::Serving(refused)) } else { Ok(listeners) }
}

/// Listens at a port of every address.
pub(super) fn listen_at(port: u16) -> io::Result<Vec<TcpListener>> {
    let any = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port));
    Ok(vec![any.or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)))?])
}

/// Returns the address at which this process reaches its own listener.
pub(super) fn reachable(listener: SocketAddr) -> SocketAddr {
    let ip = match listener.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    SocketAddr::new(ip, listener.port())
}
