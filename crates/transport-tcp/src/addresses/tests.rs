//! Unit tests of `addresses`.

use super::*;

fn interface(ip: [u8; 4], netmask: [u8; 4]) -> Interface {
    let addr = rushmem_interfaces::Ifv4Addr {
        ip: ip.into(),
        netmask: netmask.into(),
        prefixlen: 0,
        broadcast: None,
    };
    Interface {
        name: "some0".to_owned(),
        addr: IfAddr::V4(addr),
        index: None,
        oper_status: rushmem_interfaces::IfOperStatus::Up,
        is_p2p: false,
    }
}

#[test]
fn a_bridge_that_every_machine_has_comes_last() {
    let own = [
        interface([172, 17, 0, 1], [255, 255, 0, 0]),
        interface([10, 1, 2, 3], [255, 255, 255, 0]),
    ];
    let mut peer: Vec<IpAddr> =
        [[172, 17, 0, 1], [192, 0, 2, 9], [10, 1, 2, 4]].map(IpAddr::from).to_vec();
    peer.sort_by_key(|ip| rank(&own, *ip));
    let expected = [[10, 1, 2, 4], [192, 0, 2, 9], [172, 17, 0, 1]].map(IpAddr::from);
    assert_eq!(peer, expected);
}

#[test]
fn addresses_without_a_route_are_left_out_and_near_ones_come_first() {
    let near = SocketAddr::from(([127, 0, 0, 1], 9));
    let nowhere = SocketAddr::from(([255, 255, 255, 255], 9));
    let order = by_route(&[nowhere, near]);
    assert_eq!(order.first(), Some(&near), "{order:?}");
}
