//! Unit tests of `choice`.

use super::*;
use crate::info::FabricNic;

/// Returns the request of a job on several machines whose user has set nothing.
pub(super) fn request() -> Request {
    Request {
        provider: String::new(),
        domain: String::new(),
        fabric: String::new(),
        amos: Amos::Software,
        one_machine: false,
        interfaces: None,
        near: None,
        pairs_of_node: 0,
    }
}

fn info(provider: &str, domain: &str) -> FiInfo {
    let connects = quirks::has(provider, Quirk::Connects);
    FiInfo {
        provider: provider.to_owned(),
        domain: domain.to_owned(),
        connects,
        ..FiInfo::default()
    }
}

fn sorted(offers: &[(&str, &str)], request: &Request) -> Vec<String> {
    let mut fitting: Vec<((), FiInfo)> = Vec::new();
    for &(provider, domain) in offers {
        let info = FiInfo {
            loopback: domain == "lo",
            ..info(provider, domain)
        };
        fitting.push(((), info));
    }

    request.sort(&mut fitting);
    fitting.into_iter().map(|(_, info)| info.domain).collect()
}

#[test]
fn the_near_card_goes_first_among_those_of_its_provider() {
    let offers = [
        ("cxi", "cxi0"),
        ("cxi", "cxi1"),
        ("tcp", "lo"),
        ("tcp", "hsn1"),
    ];
    let request = request();
    assert_eq!(sorted(&offers, &request), ["cxi0", "cxi1", "lo", "hsn1"]);

    let request = Request {
        near: NicName::parse("cxi1,hsn1"),
        ..request
    };
    assert_eq!(sorted(&offers, &request), ["cxi1", "cxi0", "hsn1", "lo"]);

    let request = Request {
        one_machine: true,
        ..request
    };
    assert_eq!(sorted(&offers, &request), ["cxi1", "cxi0", "lo", "hsn1"]);
}

#[test]
fn cards_without_connections_go_first_in_jobs_of_many() {
    let offers = [
        ("verbs;ofi_rxm", "mlx5_0"),
        ("psm3", "irdma0"),
        ("udp;ofi_rxd", "eth0"),
        ("tcp", "eth1"),
    ];

    let request = |pairs_of_node| Request {
        pairs_of_node,
        ..request()
    };

    assert_eq!(
        sorted(&offers, &request(MANY_PAIRS)),
        ["mlx5_0", "irdma0", "eth0", "eth1"]
    );
    assert_eq!(
        sorted(&offers, &request(MANY_PAIRS + 1)),
        ["irdma0", "mlx5_0", "eth0", "eth1"]
    );
}

/// Returns an entry with a NIC, for which libfabric reports a PCI device if `on_pci`.
fn with_nic(provider: &str, domain: &str, on_pci: bool) -> FiInfo {
    let nic = Some(FabricNic {
        on_pci,
        name: domain.to_owned(),
    });
    FiInfo {
        nic,
        ..info(provider, domain)
    }
}

fn device(infos: &[FiInfo], devices: &[&str]) -> (bool, String) {
    let devices: Vec<String> = devices.iter().map(|&device| device.to_owned()).collect();
    let Found {
        rdma, description, ..
    } = device_of("libfabric 1.17", infos, &devices);
    (rdma, description)
}

#[test]
fn cards_are_rdma() {
    let tcp = info("tcp;ofi_rxm", "eth0");
    let rdma = |what: &str| (true, format!("libfabric 1.17: {what}"));

    let cxi = with_nic("cxi", "cxi0", true);
    assert_eq!(device(&[cxi, tcp.clone()], &["cxi0"]), rdma("cxi on cxi0"));

    let verbs = with_nic("verbs;ofi_rxm", "mlx5_0", false);
    assert_eq!(
        device(&[verbs, tcp], &["mlx5_0"]),
        rdma("verbs;ofi_rxm on mlx5_0")
    );
}

#[test]
fn atomic_operations_are_in_hardware_where_the_provider_leaves_them_to_its_card() {
    let in_hardware = |provider, domain| {
        let devices = ["cxi0".to_owned(), "mlx5_0".to_owned()];
        device_of("libfabric 1.17", &[info(provider, domain)], &devices).hardware_amos
    };
    assert!(in_hardware("cxi", "cxi0"));
    assert!(!in_hardware("cxi", "cxi1"), "its port is down");
    assert!(
        !in_hardware("verbs;ofi_rxm", "mlx5_0"),
        "libfabric's CPU does"
    );
}

#[test]
fn sockets_and_software_are_not() {
    let tcp = info("tcp;ofi_rxm", "eth0");
    let soft = with_nic("verbs;ofi_rxm", "rxe0", false);
    let other = "libfabric 1.17: no RDMA device for it; verbs;ofi_rxm, tcp;ofi_rxm";
    assert_eq!(
        device(&[soft, tcp.clone()], &["mlx5_0"]),
        (false, other.to_owned())
    );

    assert!(!device(&[tcp], &["mlx5_0"]).0);
    assert_eq!(
        device(&[], &[]),
        (false, "libfabric 1.17: no RDMA device".to_owned())
    );
}

#[test]
fn an_upgrade_is_for_users_of_tcp_below_rxm_alone() {
    let is_advised = |major: u32, provider| upgrade(major << 16 | 17, provider).is_some();
    assert!(is_advised(1, "tcp;ofi_rxm"));
    assert!(
        !is_advised(2, "tcp;ofi_rxm") && !is_advised(1, "tcp") && !is_advised(1, "verbs;ofi_rxm")
    );
}
