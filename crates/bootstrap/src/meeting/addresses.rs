//! The addresses of this machine at which the members of a meeting may reach it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

use crate::error::Error;

/// The setting that names the interfaces of sockets.
const INTERFACES: &str = "SHMEM_TCP_INTERFACE";

/// Returns the addresses of this machine in the order in which members try them: those that other
/// machines reach, of the interfaces that the setting names, and loopback where there are no
/// others.
pub(super) fn own() -> Result<Vec<IpAddr>, Error> {
    let all = if_addrs::get_if_addrs().map_err(Error::Serving)?;
    let chosen = std::env::var(INTERFACES).ok().filter(|names| !names.trim().is_empty());
    let is_chosen = |name: &str| {
        chosen.as_ref().is_none_or(|names| names.split(',').any(|chosen| chosen.trim() == name))
    };
    let mut usable: Vec<_> =
        all.iter().filter(|i| is_chosen(&i.name) && !i.is_link_local()).collect();
    if usable.iter().any(|interface| !interface.is_loopback()) && chosen.is_none() {
        usable.retain(|interface| !interface.is_loopback());
    }
    usable.sort_by_key(|interface| (is_bridge(&interface.name), interface.ip().is_ipv6()));
    Ok(usable.into_iter().map(if_addrs::Interface::ip).collect())
}

/// Bridges join this machine's containers and virtual machines more often than other machines.
fn is_bridge(name: &str) -> bool {
    std::path::Path::new("/sys/class/net").join(name).join("bridge").exists()
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
