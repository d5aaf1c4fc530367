//! The placement of PEs: the CPUs to which each PE is bound, and the NIC that it prefers.
//!
//! Applies the rules of `rushmem_topology` and reports the result. If the machine offers no choice,
//! as with one NUMA node and one NIC, the topology is read only if an option requires it.

use std::ffi::OsString;
use std::ops::Range;

use rushmem_topology::{
    self as topology, BindTo, CpuSet, MapBy, NIC_VARIABLE, Nic, PePlacement, Topology,
};
use serde::{Deserialize, Serialize};

use crate::errors::StartFailure;

/// The variable that selects the NICs of UCX.
const UCX_VARIABLE: &str = "UCX_NET_DEVICES";

/// The placement options of the command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacementRequest {
    pub map_by: Option<MapBy>,
    pub bind_to: Option<BindTo>,
    /// True if the placement is printed.
    pub report: bool,
}

/// The placement of one PE.
#[derive(Clone, Debug, Default)]
pub struct Placement {
    /// The CPUs to which the PE is bound.
    pub cpus: Option<rustix::thread::CpuSet>,
    /// True if the user requested the binding, so that a failure is an error.
    pub is_required: bool,
    /// Environment variables that select the NIC.
    pub variables: Vec<(OsString, OsString)>,
}

/// The placements of a node's PEs, and messages about them.
#[derive(Debug, Default)]
pub struct Placements {
    by_pe: Vec<Placement>,
    /// Lines to print: notes of the topology, and with `--report-bindings` the placement of each
    /// PE.
    pub notices: Vec<String>,
}

impl Placements {
    /// Returns the placement of a PE, by its index on the node.
    pub fn placement(&self, pe: u32) -> Placement {
        self.by_pe.get(pe as usize).cloned().unwrap_or_default()
    }
}

/// Places the PEs of this machine. `is_set` returns true for a variable that their environment has
/// already: it is kept.
pub fn place(
    node: Range<u32>,
    request: PlacementRequest,
    is_set: &dyn Fn(&str) -> bool,
) -> Result<Placements, StartFailure> {
    let is_bound = request
        .bind_to
        .is_some_and(|bind_to| bind_to != BindTo::None);
    let has_effect = is_bound || topology::has_choice();
    if !has_effect && !request.report {
        return Ok(Placements::default());
    }

    let mut placements = place_on(
        &Topology::of_this_machine(),
        node,
        topology::cpus_at_once(),
        request,
        is_set,
    )?;
    // A report alone must not change the placement.
    if !has_effect {
        placements.by_pe.clear();
    }
    Ok(placements)
}

/// Places PEs on a machine on which this process may use `at_once` CPUs at the same time.
fn place_on(
    machine: &Topology,
    node: Range<u32>,
    at_once: usize,
    request: PlacementRequest,
    is_set: &dyn Fn(&str) -> bool,
) -> Result<Placements, StartFailure> {
    let n_pes = node.len() as u32;
    let map_by = request.map_by.unwrap_or_default();
    let bind_to = match request.bind_to {
        Some(bind_to) => bind_to,
        None => BindTo::usual(machine, n_pes, at_once),
    };
    let plan = topology::plan(machine, n_pes, map_by, bind_to);

    let mut notices = plan.notes;
    if request.report {
        notices.extend(machine.notes.iter().cloned());
        notices.push(format!("CPUs and NICs of {}", machine.source));
    }

    let candidates = machine.candidate_nics();
    let mut by_pe = Vec::new();
    for (pe, place) in node.zip(&plan.placements) {
        let nic = place.nic.map(|index| candidates[index]);
        if request.report {
            notices.push(reported(machine, pe, place, nic));
        }

        let cpus = match &place.binding {
            Some(cpus) => Some(kernel_set(cpus)?),
            None => None,
        };
        let variables = match nic {
            Some(nic) => nic_variables(nic, n_pes, is_set),
            None => Vec::new(),
        };
        by_pe.push(Placement {
            cpus,
            is_required: request.bind_to.is_some(),
            variables,
        });
    }
    Ok(Placements { by_pe, notices })
}

/// Formats the line of `--report-bindings` for a PE.
fn reported(machine: &Topology, pe: u32, place: &PePlacement, nic: Option<&Nic>) -> String {
    let mut line = match &place.binding {
        Some(cpus) => format!("PE {pe}: bound to CPUs {cpus}"),
        None => format!("PE {pe}: not bound"),
    };
    let cpus = place.binding.as_ref().unwrap_or(&machine.usable);
    if let Some(numa) = machine.numa_of(cpus) {
        line += &format!(", NUMA node {}", numa.index);
    }
    if let Some(nic) = nic {
        line += &format!(", NIC {}", nic.hint());
    }
    line
}

/// Returns the variables that select a PE's NIC; none if the user has selected one. A single PE on
/// a machine gets none, so that its network library may use several NICs.
fn nic_variables(
    nic: &Nic,
    n_pes: u32,
    is_set: &dyn Fn(&str) -> bool,
) -> Vec<(OsString, OsString)> {
    if is_set(NIC_VARIABLE) || n_pes == 1 {
        return Vec::new();
    }

    let mut variables = vec![(NIC_VARIABLE.into(), nic.hint().into())];
    if let Some(device) = nic.ucx_device()
        && !is_set(UCX_VARIABLE)
    {
        variables.push((UCX_VARIABLE.into(), device.into()));
    }
    variables
}

/// Converts a set of CPUs for sched_setaffinity.
fn kernel_set(cpus: &CpuSet) -> Result<rustix::thread::CpuSet, StartFailure> {
    let mut set = rustix::thread::CpuSet::new();
    for cpu in cpus.iter() {
        if cpu as usize >= rustix::thread::CpuSet::MAX_CPU {
            return Err(StartFailure::general(format!(
                "processes cannot be bound to CPU {cpu} on this system; use --bind-to none"
            )));
        }
        set.set(cpu as usize);
    }
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns two NUMA nodes of two CPUs, each with a NIC.
    fn machine() -> Topology {
        let set = |list| CpuSet::parse(list).expect("a list");
        let numa = |(index, list)| topology::Numa {
            index,
            nbytes: 0,
            cpus: set(list),
        };
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
        place_on(&machine(), 0..n_pes, at_once, request, &|name| {
            set.contains(&name)
        })
        .expect("placements")
    }

    #[test]
    fn a_pe_gets_its_nic_unless_the_user_has_selected_one() {
        let names = |placements: &Placements, pe| -> Vec<String> {
            let variables = placements.placement(pe).variables.into_iter();
            variables
                .map(|(name, value)| format!("{}={}", name.display(), value.display()))
                .collect()
        };

        let two = placed(2, 4, PlacementRequest::default(), &[]);
        assert_eq!(
            names(&two, 0),
            ["SHMEM_NIC=mlx5_0:1", "UCX_NET_DEVICES=mlx5_0:1"]
        );
        assert_eq!(
            names(&two, 1),
            ["SHMEM_NIC=mlx5_1:1", "UCX_NET_DEVICES=mlx5_1:1"]
        );

        let users = placed(2, 4, PlacementRequest::default(), &["UCX_NET_DEVICES"]);
        assert_eq!(names(&users, 1), ["SHMEM_NIC=mlx5_1:1"]);
        let users = placed(2, 4, PlacementRequest::default(), &["SHMEM_NIC"]);
        assert!(names(&users, 1).is_empty());

        let alone = placed(1, 4, PlacementRequest::default(), &[]);
        assert!(names(&alone, 0).is_empty());
    }

    #[test]
    fn by_default_pes_are_bound_unless_they_outnumber_cpus() {
        let bound = |n_pes, at_once| {
            placed(n_pes, at_once, PlacementRequest::default(), &[])
                .placement(1)
                .cpus
        };
        let second = bound(2, 4).expect("bound");
        assert!(
            (0..4)
                .map(|cpu| second.is_set(cpu))
                .eq([false, false, true, true])
        );
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
                "CPUs and NICs of a test",
                "PE 0: bound to CPUs 0, NUMA node 0, NIC mlx5_0:1",
                "PE 1: bound to CPUs 2, NUMA node 1, NIC mlx5_1:1",
            ]
        );

        let request = PlacementRequest {
            report: true,
            ..PlacementRequest::default()
        };
        assert_eq!(
            placed(5, 4, request, &[]).notices[1],
            "PE 0: not bound, NIC mlx5_0:1"
        );

        let request = PlacementRequest {
            bind_to: Some(BindTo::Core),
            ..PlacementRequest::default()
        };
        assert_eq!(
            placed(5, 4, request, &[]).notices,
            ["the PEs outnumber the CPUs that they are bound to: 5 on 4"]
        );
    }
}
