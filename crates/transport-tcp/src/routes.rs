//! Finds the order in which a PE tries the addresses of a peer.

use rushmem_interfaces::{IfAddr, Interface, get_if_addrs};
use rushmem_transport::machine::descriptors::ran_out;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

/// Returns a peer's addresses in the order to try them: first those on a network of this machine,
/// then others with a route, and last those that this machine itself has, since many machines give
/// the same address to a bridge for containers. Leaves out addresses without a route.
pub(crate) fn by_route(peer: &[SocketAddr]) -> Vec<SocketAddr> {
    if let [only] = peer {
        return vec![*only];
    }
    let own = get_if_addrs().unwrap_or_default();
    let mut reachable: Vec<SocketAddr> =
        peer.iter().copied().filter(|address| routed(*address)).collect();
    reachable.sort_by_key(|address| rank(&own, address.ip()));
    reachable
}

/// Returns the rank of an address; lower ranks are tried first.
fn rank(own: &[Interface], peer: IpAddr) -> u8 {
    match own.iter().find(|i| on_link(i, peer)) {
        _ if own.iter().any(|i| i.ip() == peer) => 2,
        Some(_) => 0,
        None => 1,
    }
}

/// Returns true if the kernel knows a route to an address. Connecting a datagram socket queries it,
/// and sends nothing.
fn routed(address: SocketAddr) -> bool {
    let any: IpAddr = match address.is_ipv4() {
        true => Ipv4Addr::UNSPECIFIED.into(),
        false => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    match UdpSocket::bind((any, 0)) {
        Ok(socket) => socket.connect(address).is_ok(),
        Err(error) => ran_out(&error),
    }
}

fn on_link(interface: &Interface, peer: IpAddr) -> bool {
    match (&interface.addr, peer) {
        (IfAddr::V4(own), IpAddr::V4(peer)) => {
            let mask = u32::from(own.netmask);
            u32::from(own.ip) & mask == u32::from(peer) & mask
        }
        (IfAddr::V6(own), IpAddr::V6(peer)) => {
            let mask = u128::from(own.netmask);
            u128::from(own.ip) & mask == u128::from(peer) & mask
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
