//! Finds the addresses of this machine on which a PE listens, and the order in which a peer tries
//! them.

use crate::no_address;
use crate::proto::MAX_ADDRESSES;
use if_addrs::Interface;
use rushmem_transport::Error;
use rushmem_transport::machine::descriptors::ran_out;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

/// Returns the addresses to listen on, in the order in which peers try them: loopback alone for a
/// job on one machine; otherwise those of the interfaces in `chosen`, a list with commas; otherwise
/// all that other machines may reach, those of the interface `near` first.
pub(crate) fn own(
    one_machine: bool,
    chosen: Option<&str>,
    near: Option<&str>,
) -> Result<Vec<IpAddr>, Error> {
    let unavailable = |why: String| Err(Error::Unavailable(why));
    if chosen.is_none() && one_machine {
        return Ok(vec![Ipv4Addr::LOCALHOST.into()]);
    }
    let all = match if_addrs::get_if_addrs() {
        Ok(all) => all,
        Err(e) => return unavailable(format!("the network interfaces cannot be listed: {e}")),
    };
    let addresses = pick(&all, chosen, near);
    match (addresses.is_empty(), chosen) {
        (false, _) => Ok(addresses),
        (true, Some(names)) => {
            let whys = names.split(',').map(|name| no_address::why(&all, name.trim()));
            unavailable(format!(
                "SHMEM_TCP_INTERFACE is {names}, but {}; there are {}",
                whys.collect::<Vec<_>>().join(", "),
                no_address::names(&all).join(", ")
            ))
        }
        (true, None) => {
            let others = no_address::names(&all).into_iter().filter(|name| name != "lo");
            let whys: Vec<String> = others.map(|name| no_address::why(&all, &name)).collect();
            let whys =
                if whys.is_empty() { "there is only lo".to_owned() } else { whys.join(", ") };
            unavailable(format!(
                "no network interface has an address that another machine could reach: {whys}"
            ))
        }
    }
}

/// Bridges join this machine's containers and virtual machines more often than other machines.
fn is_bridge(name: &str) -> bool {
    std::path::Path::new("/sys/class/net").join(name).join("bridge").exists()
}

fn pick(all: &[Interface], chosen: Option<&str>, near: Option<&str>) -> Vec<IpAddr> {
    let wanted = |interface: &&Interface| match chosen {
        Some(names) => names.split(',').any(|name| name.trim() == interface.name),
        None => !interface.is_loopback(),
    };
    let mut usable: Vec<&Interface> =
        all.iter().filter(wanted).filter(|i| !i.is_link_local()).collect();
    let is_far = |i: &Interface| near.is_some_and(|near| near != i.name);
    usable.sort_by_key(|i| (is_bridge(&i.name), is_far(i), i.ip().is_ipv6()));
    let mut addresses: Vec<IpAddr> = usable.into_iter().map(Interface::ip).collect();
    addresses.dedup();
    addresses.truncate(MAX_ADDRESSES);
    addresses
}

/// Returns a peer's addresses in the order to try them: first those on a network of this machine,
/// then others with a route, and last those that this machine itself has, since many machines give
/// the same address to a bridge for containers. Leaves out addresses without a route.
pub(crate) fn by_route(peer: &[SocketAddr]) -> Vec<SocketAddr> {
    if let [only] = peer {
        return vec![*only];
    }
    let own = if_addrs::get_if_addrs().unwrap_or_default();
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
        (if_addrs::IfAddr::V4(own), IpAddr::V4(peer)) => {
            let mask = u32::from(own.netmask);
            u32::from(own.ip) & mask == u32::from(peer) & mask
        }
        (if_addrs::IfAddr::V6(own), IpAddr::V6(peer)) => {
            let mask = u128::from(own.netmask);
            u128::from(own.ip) & mask == u128::from(peer) & mask
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
