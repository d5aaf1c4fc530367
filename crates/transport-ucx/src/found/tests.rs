//! Unit tests of `found`.

use super::*;

/// Returns resources from pairs of a transport and a device.
fn resources(pairs: &[(&str, &str)]) -> Vec<UcpResource> {
    let resource = |&(transport, device): &(&str, &str)| UcpResource {
        transport: transport.to_owned(),
        device: device.to_owned(),
    };
    pairs.iter().map(resource).collect()
}

fn decided(pairs: &[(&str, &str)], devices: &[&str]) -> (bool, String) {
    let devices: Vec<String> = devices.iter().map(|&device| device.to_owned()).collect();
    let Found {
        rdma, description, ..
    } = decide("UCX 1.13.1", &resources(pairs), &[], &devices);
    (rdma, description)
}

#[test]
fn atomic_operations_are_in_hardware_where_all_that_carries_them_out_is() {
    let in_hardware = |atomics: &[(&str, &str)]| {
        let atomics = resources(atomics);
        decide("UCX 1.13.1", &atomics, &atomics, &["mlx5_0".to_owned()]).hardware_amos
    };
    assert!(in_hardware(&[
        ("rc_mlx5", "mlx5_0:1"),
        ("dc_mlx5", "mlx5_0:1")
    ]));
    assert!(
        !in_hardware(&[("rc_mlx5", "mlx5_0:1"), ("sysv", "memory")]),
        "UCX's CPU mode"
    );
    assert!(!in_hardware(&[("rc_verbs", "rxe0:1")]), "a NIC in software");
    assert!(!in_hardware(&[]), "UCX asks the target's CPU by messages");
}

#[test]
fn connections_over_hardware_are_rdma() {
    let resources = [("self", "memory"), ("tcp", "ib0"), ("rc_mlx5", "mlx5_0:1")];
    let rdma = (true, "UCX 1.13.1: rc_mlx5 on mlx5_0:1".to_owned());
    assert_eq!(decided(&resources, &["mlx5_0"]), rdma);

    // Its port is down, or it is Soft-RoCE.
    let other = (
        false,
        "UCX 1.13.1: no RDMA device for it; self, tcp, rc_mlx5".to_owned(),
    );
    assert_eq!(decided(&resources, &["mlx5_1"]), other);
}

struct Variables(&'static [(&'static str, &'static str)]);

impl Host for Variables {
    fn variable(&self, name: &str) -> Option<String> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    }
}

#[test]
fn sockets_stay_on_the_interfaces_of_the_job() {
    let devices = |variables, one_machine| {
        let changes = changes(&Variables(variables), one_machine).expect("they are right");
        changes
            .into_iter()
            .find(|change| change.name == "NET_DEVICES")
            .map(|change| change.value)
    };
    let last = |devices: Option<String>| devices?.rsplit(',').next().map(str::to_owned);
    assert_eq!(last(devices(&[], true)).as_deref(), Some("lo"));
    assert_eq!(devices(&[], false), None, "other machines need them");

    const CHOSEN: (&str, &str) = ("SHMEM_TCP_INTERFACE", "eth7");
    assert_eq!(last(devices(&[CHOSEN], true)).as_deref(), Some("eth7"));
    assert_eq!(last(devices(&[CHOSEN], false)).as_deref(), Some("eth7"));
    let several = devices(&[("SHMEM_TCP_INTERFACE", " eth7, eth8")], true);
    assert!(several.is_some_and(|devices| devices.ends_with("eth7,eth8")));
    let subnet = devices(&[("SHMEM_TCP_INTERFACE", "127.0.0.0/8")], false);
    assert_eq!(last(subnet).as_deref(), Some("lo"));

    let none = changes(
        &Variables(&[("SHMEM_TCP_INTERFACE", "198.51.100.0/24")]),
        false,
    );
    assert!(none.is_err_and(|why| why.contains("no address here is in 198.51.100.0/24")));
    assert_eq!(
        devices(&[CHOSEN, ("UCX_NET_DEVICES", "eth8")], true),
        None,
        "UCX's goes first"
    );
}

#[test]
fn shared_memory_is_used_where_it_is_requested() {
    let transports = |variables| {
        let changes = changes(&Variables(variables), true).expect("they are right");
        changes
            .into_iter()
            .find(|change| change.name == "TLS")
            .map(|change| change.value)
    };

    assert_eq!(
        transports(&[(TLS, "posix,self")]).as_deref(),
        Some("posix,self")
    );
    assert_eq!(
        transports(&[("UCX_TLS", "posix,self")]),
        None,
        "UCX's goes first"
    );

    // The version is known only if there is a UCX.
    let excludes = library().is_ok_and(|ucp| ucx_sys::version(ucp) >= (1, 12, 0));
    assert_eq!(transports(&[]).as_deref(), excludes.then_some("^sm"));
}

#[test]
fn datagrams_and_imitations_are_not() {
    assert!(!decided(&[("ud_verbs", "rdmap0s6:1")], &["rdmap0s6"]).0);
    assert!(!decided(&[("rc_verbs", "hfi1_0:1")], &["hfi1_0"]).0);
    assert_eq!(
        decided(&[], &[]),
        (false, "UCX 1.13.1: no RDMA device".to_owned())
    );
}
