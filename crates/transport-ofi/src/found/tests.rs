//! Unit tests of `found`.

use super::*;

/// Provider, domain, and the NIC with whether it is on a bus.
type Seen = (&'static str, &'static str, Option<(&'static str, bool)>);

fn decided(entries: &[Seen], devices: &[&str]) -> (bool, String) {
    let entries: Vec<RdmEntry<'_>> =
        entries.iter().map(|&(provider, domain, nic)| RdmEntry { provider, domain, nic }).collect();
    let devices: Vec<String> = devices.iter().map(|&device| device.to_owned()).collect();
    let Found { rdma, description, .. } = decide("libfabric 1.17", &entries, &devices);
    (rdma, description)
}

const TCP: Seen = ("tcp;ofi_rxm", "eth0", None);

#[test]
fn cards_are_rdma() {
    let cxi = ("cxi", "cxi0", Some(("cxi0", true)));
    let rdma = |what: &str| (true, format!("libfabric 1.17: {what}"));
    assert_eq!(decided(&[cxi, TCP], &["cxi0"]), rdma("cxi on cxi0"));
    // A provider that names its NIC, but not the bus.
    let verbs = ("verbs;ofi_rxm", "mlx5_0", Some(("mlx5_0", false)));
    assert_eq!(decided(&[verbs, TCP], &["mlx5_0"]), rdma("verbs;ofi_rxm on mlx5_0"));
}

#[test]
fn atomic_operations_are_in_hardware_where_the_provider_leaves_them_to_its_card() {
    let in_hardware = |provider, domain| {
        let entry = RdmEntry { provider, domain, nic: None };
        decide("libfabric 1.17", &[entry], &["cxi0".to_owned(), "mlx5_0".to_owned()]).hardware_amos
    };
    assert!(in_hardware("cxi", "cxi0"));
    assert!(!in_hardware("cxi", "cxi1"), "its port is down");
    assert!(!in_hardware("verbs;ofi_rxm", "mlx5_0"), "libfabric's CPU does");
}

#[test]
fn sockets_and_software_are_not() {
    let soft = ("verbs;ofi_rxm", "rxe0", Some(("rxe0", false)));
    let other = "libfabric 1.17: no RDMA device for it; verbs;ofi_rxm, tcp;ofi_rxm";
    assert_eq!(decided(&[soft, TCP], &["mlx5_0"]), (false, other.to_owned()));
    assert!(!decided(&[TCP], &["mlx5_0"]).0);
    assert_eq!(decided(&[], &[]), (false, "libfabric 1.17: no RDMA device".to_owned()));
}
