//! The addresses at which this PE listens, as it publishes them and as its diagnosis shows them,
//! and the order in which it tries those of a peer.

use rushmem_system::codec::{Damaged, decode, encode};
use rushmem_system::descriptors::ran_out;
use rushmem_system::interfaces::{INTERFACES, IfAddr, Interface, Need, Selection, get_if_addrs};
use rushmem_transport::{Diagnosis, Error, Open, Verdict};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// The maximum number of addresses of a PE: more than hosts have networks that all can reach. Each
/// is published to all PEs, and may cost a peer an attempt.
pub(crate) const MAX_ADDRESSES: usize = 16;

/// The socket addresses of a PE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Address {
    /// The addresses at which the PE listens, the preferred one first.
    pub(crate) sockets: Vec<SocketAddr>,
}

impl Address {
    pub(crate) fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Address, Damaged> {
        let address: Address = decode(bytes)?;
        if address.sockets.len() > MAX_ADDRESSES {
            return Err(Damaged);
        }
        Ok(address)
    }
}

/// The addresses at which this PE listens.
pub(crate) struct OwnAddresses {
    /// The user's selection of interfaces, if there is one.
    selection: Option<Selection>,
    /// At most [`MAX_ADDRESSES`], in the order in which peers try them.
    pub(crate) ips: Vec<IpAddr>,
}

impl OwnAddresses {
    pub(crate) fn of(open: &Open) -> Result<OwnAddresses, Error> {
        let list = open.host.variable(INTERFACES).unwrap_or_default();
        let selection = Selection::parse(&list).map_err(Error::Unavailable)?;

        let near = open.host.nic().and_then(|nic| nic.interface);
        let need = if open.one_machine {
            Need::ThisMachine
        } else {
            Need::Others
        };

        let mut ips =
            rushmem_system::interfaces::addresses(need, selection.as_ref(), near.as_deref())
                .map_err(Error::Unavailable)?;
        ips.truncate(MAX_ADDRESSES);
        Ok(OwnAddresses { selection, ips })
    }
}

/// Returns a diagnosis of each address of this machine, those at which this PE listens first, in
/// the order in which peers try them; or one diagnosis alone if this PE can listen at none.
pub(crate) fn diagnose(args: &Open) -> Vec<Diagnosis> {
    let OwnAddresses { selection, ips } = match OwnAddresses::of(args) {
        Ok(own) => own,
        Err(why) => return vec![Diagnosis::new("tcp", Verdict::Refused, why.to_string())],
    };

    // Without a list of addresses there is nothing to diagnose.
    let mut all = get_if_addrs().unwrap_or_default();
    all.sort_by_key(|interface| {
        let ip = interface.ip();
        ips.iter().position(|own| *own == ip).unwrap_or(ips.len())
    });

    let mut diagnoses = Vec::new();
    for interface in all {
        let ip = interface.ip();
        let (verdict, why) = if ips.contains(&ip) {
            (Verdict::Usable, "connects each pair of PEs")
        } else {
            let why = why_unused(&interface, args.one_machine, selection.as_ref());
            (Verdict::Unused, why)
        };
        diagnoses.push(Diagnosis::new(
            interface.name,
            verdict,
            format!("{ip}, {why}"),
        ));
    }
    diagnoses
}

/// Returns the reason why this PE does not listen at an address.
fn why_unused(
    interface: &Interface,
    one_machine: bool,
    selection: Option<&Selection>,
) -> &'static str {
    if one_machine && selection.is_none() {
        "the job is on one machine, and uses loopback"
    } else if interface.is_link_local() {
        "a link-local address, to which there is no route"
    } else if selection.is_some_and(|selection| !selection.admits(interface)) {
        "SHMEM_TCP_INTERFACE leaves it out"
    } else if interface.is_loopback() {
        "no other machine reaches it"
    } else {
        "others go first"
    }
}

/// Returns a peer's addresses in the order to try them: first those on a network of this machine,
/// then others with a route. Those that this machine itself has are tried only if the peer has no
/// others: then it is on this machine. Of several addresses, leaves out those without a route; does
/// not check an only one.
pub(crate) fn by_route(peer: &[SocketAddr]) -> Vec<SocketAddr> {
    if let [only] = peer {
        return vec![*only];
    }

    // Without a list of addresses, those of the peer are tried in its order.
    let own = get_if_addrs().unwrap_or_default();
    let reachable = peer.iter().copied().filter(|address| routed(*address));
    in_order(&own, reachable.collect())
}

/// Returns these addresses of a peer in the order to try them, given the interfaces of this
/// machine.
fn in_order(own: &[Interface], mut peer: Vec<SocketAddr>) -> Vec<SocketAddr> {
    peer.sort_by_key(|address| rank(own, address.ip()));

    // Many machines give the same address to a bridge for containers. There a process of another
    // user of this machine may listen, and the proof of a PE is about this address on both
    // machines.
    let is_elsewhere = peer
        .first()
        .is_some_and(|near| rank(own, near.ip()) != Rank::Own);
    if is_elsewhere {
        peer.retain(|address| rank(own, address.ip()) != Rank::Own);
    }
    peer
}

/// The rank of an address of a peer. Those with lower ranks are tried first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// It is on a network of this machine.
    Near,
    Far,
    /// This machine itself has it.
    Own,
}

fn rank(own: &[Interface], peer: IpAddr) -> Rank {
    if own.iter().any(|interface| interface.ip() == peer) {
        Rank::Own
    } else if own.iter().any(|interface| on_link(interface, peer)) {
        Rank::Near
    } else {
        Rank::Far
    }
}

/// Returns true if the kernel knows a route to an address, or if no descriptor is left to find out.
/// Connecting a datagram socket queries the route, and sends nothing.
fn routed(address: SocketAddr) -> bool {
    let any: IpAddr = if address.is_ipv4() {
        Ipv4Addr::UNSPECIFIED.into()
    } else {
        Ipv6Addr::UNSPECIFIED.into()
    };
    match UdpSocket::bind((any, 0)) {
        Ok(socket) => socket.connect(address).is_ok(),
        Err(error) => ran_out(&error),
    }
}

/// Returns true if an address of a peer is on the network of an interface.
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
mod tests {
    use super::*;

    fn interface(ip: [u8; 4], netmask: [u8; 4]) -> Interface {
        let addr = rushmem_system::interfaces::Ifv4Addr {
            ip: ip.into(),
            netmask: netmask.into(),
            prefixlen: 0,
            broadcast: None,
        };
        Interface {
            name: "some0".to_owned(),
            addr: IfAddr::V4(addr),
            index: None,
            oper_status: rushmem_system::interfaces::IfOperStatus::Up,
            is_p2p: false,
        }
    }

    #[test]
    fn a_bridge_that_every_machine_has_is_no_way_to_another_one() {
        let own = [
            interface([172, 17, 0, 1], [255, 255, 0, 0]),
            interface([10, 1, 2, 3], [255, 255, 255, 0]),
        ];
        let socket = |ip: [u8; 4]| SocketAddr::from((ip, 5000));
        let bridge = socket([172, 17, 0, 1]);
        let far = socket([192, 0, 2, 9]);
        let near = socket([10, 1, 2, 4]);
        let this_host = socket([10, 1, 2, 3]);

        assert_eq!(in_order(&own, vec![bridge, far, near]), [near, far]);
        assert_eq!(
            in_order(&own, vec![bridge, this_host]),
            [bridge, this_host],
            "a peer on this machine has these alone"
        );
    }

    #[test]
    fn addresses_without_a_route_are_left_out_and_near_ones_come_first() {
        let near = SocketAddr::from(([127, 0, 0, 1], 9));
        let nowhere = SocketAddr::from(([255, 255, 255, 255], 9));

        let order = by_route(&[nowhere, near]);
        assert_eq!(order.first(), Some(&near), "{order:?}");
    }
}
