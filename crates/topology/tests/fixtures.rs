//! Tests of the topology and of the placement of PEs: of machines in XML files, of synthetic
//! descriptions, and of this machine.
//!
//! Without libhwloc only the test of this machine runs; the others are ignored.

use std::path::PathBuf;

use rushmem_topology::{BindTo, CpuSet, Level, MapBy, PlacementPlan, Topology, plan};
use testkit::needs_library;

const HWLOC: &str = "libhwloc.so.15";

fn fixture(name: &str) -> Topology {
    needs_library(HWLOC);
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ci/fixtures/topology");
    Topology::of_xml(&PathBuf::from(dir).join(name)).expect("a description of a machine")
}

/// Returns a machine with two sockets, each with 24 cores and 4 InfiniBand NICs. It also has a NIC
/// for storage, one that is down, and one for Ethernet alone.
fn eight_cards() -> Topology {
    fixture("two-sockets-eight-nics.xml")
}

/// Returns a machine with four NUMA nodes, each with two groups of 8 cores and one Slingshot NIC.
/// The numbers of the NICs do not follow those of the nodes.
fn four_cards() -> Topology {
    fixture("four-numa-four-nics.xml")
}

fn nics_of_pes(topology: &Topology, plan: &PlacementPlan) -> Vec<String> {
    let candidates = topology.candidate_nics();
    let name = |nic: Option<usize>| candidates[nic.expect("there are NICs")].name.clone();
    plan.placements
        .iter()
        .map(|placement| name(placement.nic))
        .collect()
}

fn bindings(plan: &PlacementPlan) -> Vec<String> {
    plan.placements
        .iter()
        .filter_map(|placement| placement.binding.as_ref())
        .map(ToString::to_string)
        .collect()
}

fn two_sockets_are_found_with_what_belongs_to_them() {
    let machine = eight_cards();
    assert_eq!(
        (machine.packages.len(), machine.numa.len(), machine.l3.len()),
        (2, 2, 2)
    );
    assert_eq!((machine.cores.len(), machine.usable.len()), (48, 96));
    assert_eq!(machine.numa[1].nbytes, 768 << 30);

    let devices: Vec<String> = machine
        .candidate_nics()
        .iter()
        .filter_map(|nic| nic.ucx_device())
        .collect();
    let expected: Vec<String> = (0..8).map(|index| format!("mlx5_{index}:1")).collect();
    assert_eq!(devices, expected);
    assert_eq!(machine.notes, ["mlx5_9 has no port that is up"]);

    let first = &machine.candidate_nics()[0].clone();
    assert_eq!(
        (first.pci.as_str(), first.interface.as_deref()),
        ("0000:17:00.0", Some("ib0"))
    );
    assert_eq!(first.near, machine.packages[0]);
}

fn pes_of_a_socket_share_its_cards() {
    let machine = eight_cards();
    let nics_by =
        |n_pes, map_by| nics_of_pes(&machine, &plan(&machine, n_pes, map_by, BindTo::None));
    let named = |numbers: &[u32]| -> Vec<String> {
        numbers
            .iter()
            .map(|number| format!("mlx5_{number}"))
            .collect()
    };

    assert_eq!(nics_by(8, MapBy::Spread), named(&[0, 1, 2, 3, 4, 5, 6, 7]));
    assert_eq!(nics_by(8, MapBy::Socket), named(&[0, 4, 1, 5, 2, 6, 3, 7]));
    assert_eq!(nics_by(6, MapBy::Core), named(&[0, 1, 2, 3, 0, 1]));

    let all = nics_by(48, MapBy::Spread);
    assert!(
        machine
            .candidate_nics()
            .iter()
            .all(|nic| all.iter().filter(|n| **n == nic.name).count() == 6)
    );
}

fn pes_are_bound_where_they_were_dealt_to() {
    let machine = eight_cards();
    let bound = |map_by, bind_to| bindings(&plan(&machine, 4, map_by, bind_to));
    assert_eq!(
        bound(MapBy::Spread, BindTo::Core),
        ["0,48", "12,60", "24,72", "36,84"]
    );
    assert_eq!(
        bound(MapBy::Core, BindTo::Core),
        ["0,48", "1,49", "2,50", "3,51"]
    );
    assert_eq!(
        bound(MapBy::Slot, BindTo::Core),
        ["0,48", "0,48", "1,49", "1,49"]
    );
    let numa = ["0-23,48-71", "0-23,48-71", "24-47,72-95", "24-47,72-95"];
    assert_eq!(bound(MapBy::Spread, BindTo::Numa), numa);
    assert_eq!(BindTo::usual(&machine, 96, 96), BindTo::Numa);
}

fn each_of_four_nodes_uses_its_slingshot_card() {
    let machine = four_cards();
    assert_eq!(
        (machine.numa.len(), machine.l3.len(), machine.cores.len()),
        (4, 8, 64)
    );

    // hwloc 2.9 shows only the network interfaces, from which the names of the fabric's devices
    // are derived.
    let names: Vec<_> = machine
        .candidate_nics()
        .iter()
        .map(|nic| nic.name.as_str())
        .collect();
    assert_eq!(names, ["cxi1", "cxi0", "cxi2", "cxi3"]);
    assert_eq!(
        machine.candidate_nics()[0].interface.as_deref(),
        Some("hsn1")
    );
    assert_eq!(machine.candidate_nics()[0].ucx_device(), None);

    let in_blocks = [
        "cxi2", "cxi2", "cxi1", "cxi1", "cxi3", "cxi3", "cxi0", "cxi0",
    ];
    let in_turn = [
        "cxi2", "cxi1", "cxi3", "cxi0", "cxi2", "cxi1", "cxi3", "cxi0",
    ];
    for (map_by, expected) in [
        (MapBy::Spread, in_blocks),
        (MapBy::L3, in_blocks),
        (MapBy::Numa, in_turn),
    ] {
        let plan = plan(&machine, 8, map_by, BindTo::L3);
        assert_eq!(nics_of_pes(&machine, &plan), expected, "{map_by:?}");
    }

    let plan = plan(&machine, 8, MapBy::L3, BindTo::L3);
    assert_eq!(bindings(&plan)[..2], ["0-7,64-71", "8-15,72-79"]);
    assert_eq!(
        machine
            .numa_of(&plan.placements[7].home)
            .map(|numa| numa.index),
        Some(3)
    );
}

fn machines_made_of_words() {
    needs_library(HWLOC);
    let words = "package:2 numa:2 l3:2 core:2 pu:2";
    let machine = Topology::of_synthetic(words).expect("a description of a machine");
    let levels = [Level::Package, Level::Numa, Level::L3, Level::Core];
    let counts = levels.map(|level| machine.cpu_sets(level).len());
    assert_eq!(counts, [2, 4, 8, 16]);
    assert_eq!(machine.usable.to_string(), "0-31");

    let plan = plan(&machine, 3, MapBy::Numa, BindTo::Numa);
    assert_eq!(bindings(&plan), ["0-7", "8-15", "16-23"]);
    let mut nics = plan.placements.iter().map(|placement| placement.nic);
    assert!(nics.all(|nic| nic.is_none()));
}

fn what_describes_no_machine_is_named() {
    needs_library(HWLOC);
    let refused = Topology::of_synthetic("many cores").expect_err("no description");
    assert!(
        refused.starts_with("\"many cores\" is not a description of a machine"),
        "{refused}"
    );

    let refused = Topology::of_xml("/no/such.xml".as_ref()).expect_err("no file");
    assert!(
        refused.starts_with("/no/such.xml cannot be read"),
        "{refused}"
    );

    let refused = Topology::of_xml("/etc/os-release".as_ref()).expect_err("no description");
    assert!(refused.contains("/etc/os-release"), "{refused}");
}

fn this_machine_has_what_this_process_may_use() {
    let machine = Topology::of_this_machine();
    let at_once = rushmem_topology::cpus_at_once();
    assert!(machine.usable.len() >= at_once, "{machine:?}");
    let cores = machine.cpu_sets(Level::Core);
    let in_cores: usize = cores.iter().map(CpuSet::len).sum();
    assert_eq!(in_cores, machine.usable.len());

    let plan = plan(&machine, 2, MapBy::default(), BindTo::Core);
    let mut homes = plan.placements.iter().map(|placement| &placement.home);
    assert!(homes.all(|home| home.is_within(&machine.usable)));
}

testkit::tests! {
    two_sockets_are_found_with_what_belongs_to_them,
    pes_of_a_socket_share_its_cards,
    pes_are_bound_where_they_were_dealt_to,
    each_of_four_nodes_uses_its_slingshot_card,
    machines_made_of_words,
    what_describes_no_machine_is_named,
    this_machine_has_what_this_process_may_use,
}
