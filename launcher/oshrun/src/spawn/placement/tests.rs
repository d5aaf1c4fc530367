//! Unit tests of `placement`.

use super::*;

/// Returns two NUMA nodes of two CPUs, each with a NIC.
fn machine() -> Topology {
    let set = |list| CpuSet::parse(list).expect("a list");
    let numa = |(index, list)| topology::Numa { index, nbytes: 0, cpus: set(list) };
    let nic = |(name, list): (&str, _)| Nic {
        name: name.to_owned(),
        kind: topology::NicKind::Fabric,
        port: Some(1),
        interface: None,
        pci: String::new(),
        is_infiniband: true,
        near: set(list),
    };
    Topology {
        source: "a test".to_owned(),
        numa: [(0, "0-1"), (1, "2-3")].map(numa).to_vec(),
        cores: ["0", "1", "2", "3"].map(set).to_vec(),
        nics: [("mlx5_0", "0-1"), ("mlx5_1", "2-3")].map(nic).to_vec(),
        usable: set("0-3"),
        ..Topology::default()
    }
}

fn placed(n_pes: u32, at_once: usize, request: PlacementRequest, set: &[&str]) -> Placements {
    on(&machine(), 0..n_pes, at_once, request, |name| set.contains(&name)).expect("placements")
}

#[test]
fn a_pe_gets_its_nic_unless_the_user_has_selected_one() {
    let names = |placements: &Placements, pe| -> Vec<String> {
        let shown =
            |(name, value): (OsString, OsString)| format!("{}={}", name.display(), value.display());
        placements.of(pe).variables.into_iter().map(shown).collect()
    };
    let two = placed(2, 4, PlacementRequest::default(), &[]);
    assert_eq!(names(&two, 0), ["SHMEM_NIC=mlx5_0:1", "UCX_NET_DEVICES=mlx5_0:1"]);
    assert_eq!(names(&two, 1), ["SHMEM_NIC=mlx5_1:1", "UCX_NET_DEVICES=mlx5_1:1"]);
    let users = placed(2, 4, PlacementRequest::default(), &["UCX_NET_DEVICES"]);
    assert_eq!(names(&users, 1), ["SHMEM_NIC=mlx5_1:1"]);
    assert!(names(&placed(2, 4, PlacementRequest::default(), &["SHMEM_NIC"]), 1).is_empty());
    assert!(names(&placed(1, 4, PlacementRequest::default(), &[]), 0).is_empty());
}

#[test]
fn by_default_pes_are_bound_unless_they_outnumber_cpus() {
    let bound =
        |n_pes, at_once| placed(n_pes, at_once, PlacementRequest::default(), &[]).of(1).cpus;
    let second = bound(2, 4).expect("bound");
    assert!((0..4).map(|cpu| second.is_set(cpu)).eq([false, false, true, true]));
    assert!(bound(8, 4).is_none() && bound(4, 2).is_none());
}

#[test]
fn the_report_names_cpus_and_nics() {
    let request = PlacementRequest {
        bind_to: Some(BindTo::Core),
        report: true,
        ..PlacementRequest::default()
    };
    let notices = placed(2, 4, request, &[]).notices;
    assert_eq!(
        notices,
        [
            "places of a test",
            "PE 0: bound to CPUs 0, NUMA node 0, NIC mlx5_0:1",
            "PE 1: bound to CPUs 2, NUMA node 1, NIC mlx5_1:1",
        ]
    );
    let request = PlacementRequest { report: true, ..PlacementRequest::default() };
    assert_eq!(placed(5, 4, request, &[]).notices[1], "PE 0: not bound, NIC mlx5_0:1");
    let request = PlacementRequest { bind_to: Some(BindTo::Core), ..PlacementRequest::default() };
    assert_eq!(
        placed(5, 4, request, &[]).notices,
        ["the PEs outnumber the CPUs that they are bound to: 5 on 4"]
    );
}
