//! Unit tests of `found`.

use super::*;

#[test]
fn one_machine_listens_on_loopback_alone() {
    assert_eq!(own(true, None, None), Ok(vec![Ipv4Addr::LOCALHOST.into()]));
}

#[test]
fn an_interface_is_picked_by_name() {
    let lo = own(false, Some("nowhere0, lo"), None).expect("every machine has lo");
    assert!(lo.contains(&Ipv4Addr::LOCALHOST.into()), "{lo:?}");
    let refused = own(true, Some("nowhere0"), None).expect_err("no such interface");
    assert!(refused.to_string().contains("SHMEM_TCP_INTERFACE is nowhere0"), "{refused}");
}

fn interface(ip: [u8; 4], netmask: [u8; 4]) -> Interface {
    let addr = if_addrs::Ifv4Addr {
        ip: ip.into(),
        netmask: netmask.into(),
        prefixlen: 0,
        broadcast: None,
    };
    Interface {
        name: "some0".to_owned(),
        addr: if_addrs::IfAddr::V4(addr),
        index: None,
        oper_status: if_addrs::IfOperStatus::Up,
        is_p2p: false,
    }
}

#[test]
fn the_near_interface_comes_first() {
    let named =
        |name: &str, ip| Interface { name: name.to_owned(), ..interface(ip, [255, 255, 255, 0]) };
    let all = [named("some0", [10, 1, 2, 3]), named("some1", [10, 1, 3, 3])];
    let [first, second] = [[10, 1, 2, 3], [10, 1, 3, 3]].map(IpAddr::from);
    assert_eq!(pick(&all, None, Some("some1")), [second, first]);
    assert_eq!(pick(&all, None, Some("other0")), [first, second]);
    assert_eq!(pick(&all, Some("some0"), Some("some1")), [first]);
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
