//! Where each PE goes: the CPUs to which it is bound, and the NIC that it should prefer.
//!
//! `rushmem_topology` has the rules; this file applies them, reports the result and prepares it for the start of PEs. The
//! topology of a machine that leaves nothing to choose is read only if an option asks for it.

use std::ffi::{OsStr, OsString};
use std::ops::Range;

use rushmem_topology::{
    self as topology, BindTo, CpuSet, MapBy, NIC_VARIABLE, Nic, Place, Topology,
};

use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// The variable by which UCX learns which NICs it may use.
const UCX_VARIABLE: &str = "UCX_NET_DEVICES";

/// The placement that the command line requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wish {
    /// How PEs are dealt to cores.
    pub map_by: Option<MapBy>,
    /// What they are bound to.
    pub bind_to: Option<BindTo>,
    /// Whether to print the result.
    pub report: bool,
}

impl Wish {
    /// Whether it binds PEs.
    fn binds(self) -> bool {
        self.bind_to.is_some_and(|bind_to| bind_to != BindTo::None)
    }
}

/// The placement of one PE.
#[derive(Clone, Debug, Default)]
pub struct Placement {
    /// The CPUs that it is bound to.
    pub cpus: Option<rustix::thread::CpuSet>,
    /// Whether the user requested that, so that a refusal is an error.
    pub is_asked: bool,
    /// Variables that name its NIC.
    pub variables: Vec<(OsString, OsString)>,
}

/// The placements of a machine's PEs, and messages about them.
#[derive(Debug, Default)]
pub struct Placements {
    by_pe: Vec<Placement>,
    /// Messages for the user.
    pub words: Vec<String>,
}

impl Placements {
    /// The placement of a PE, by its number on its node.
    pub fn of(&self, pe: u32) -> Placement {
        self.by_pe.get(pe as usize).cloned().unwrap_or_default()
    }
}

/// Places the PEs `node` of this machine. Variables that are already set in their environment (`is_set`) stay.
///
/// # Errors
/// When PEs cannot be bound to their CPUs.
pub fn place(
    node: Range<u32>,
    wish: Wish,
    is_set: impl Fn(&str) -> bool,
) -> Result<Placements, Failure> {
    let decides = wish.binds() || topology::has_choice();
    if !decides && !wish.report {
        return Ok(Placements::default());
    }
    let placements =
        on(&Topology::of_this_machine(), node, topology::cpus_at_once(), wish, is_set)?;
    // A report changes nothing: without it, a machine that leaves nothing to choose is not looked
    // at.
    let by_pe = if decides { placements.by_pe } else { Vec::new() };
    Ok(Placements { by_pe, ..placements })
}

fn on(
    machine: &Topology,
    node: Range<u32>,
    at_once: usize,
    wish: Wish,
    is_set: impl Fn(&str) -> bool,
) -> Result<Placements, Failure> {
    let n_pes = node.len() as u32;
    let map_by = wish.map_by.unwrap_or_default();
    let bind_to = wish.bind_to.unwrap_or_else(|| BindTo::usual(machine, n_pes, at_once));
    let plan = topology::plan(machine, n_pes, map_by, bind_to);
    let choice = machine.choice();
    let mut words = plan.notes;
    if wish.report {
        words.extend(machine.notes.iter().cloned());
        words.push(format!("places of {}", machine.source));
    }
    let mut by_pe = Vec::new();
    for (pe, place) in node.zip(&plan.places) {
        let nic = place.nic.map(|at| choice[at]);
        if wish.report {
            words.push(reported(machine, pe, place, nic));
        }
        by_pe.push(Placement {
            cpus: place.binding.as_ref().map(kernels).transpose()?,
            is_asked: wish.bind_to.is_some(),
            variables: nic.map(|nic| variables(nic, n_pes, &is_set)).unwrap_or_default(),
        });
    }
    Ok(Placements { by_pe, words })
}

/// One line of the report.
fn reported(machine: &Topology, pe: u32, place: &Place, nic: Option<&Nic>) -> String {
    let binding = match &place.binding {
        Some(cpus) => format!("bound to CPUs {cpus}"),
        None => "not bound".to_owned(),
    };
    let numa = machine.numa_of(place.binding.as_ref().unwrap_or(&machine.usable));
    let numa = numa.map(|numa| format!(", NUMA node {}", numa.index)).unwrap_or_default();
    let told_nic = nic.map(|nic| format!(", NIC {}", nic.hint())).unwrap_or_default();
    format!("PE {pe}: {binding}{numa}{told_nic}")
}

/// The variables that name the NIC of a PE; none if the user chose one. A single PE on a machine gets none, so that the
/// library of its network may use several NICs at once.
fn variables(nic: &Nic, n_pes: u32, is_set: &impl Fn(&str) -> bool) -> Vec<(OsString, OsString)> {
    if is_set(NIC_VARIABLE) || n_pes == 1 {
        return Vec::new();
    }
    let ucx = nic.ucx_device().filter(|_| !is_set(UCX_VARIABLE));
    [Some((NIC_VARIABLE, nic.hint())), ucx.map(|device| (UCX_VARIABLE, device))]
        .into_iter()
        .flatten()
        .map(|(name, value)| (OsStr::new(name).to_owned(), value.into()))
        .collect()
}

/// The set in the form of the kernel.
fn kernels(cpus: &CpuSet) -> Result<rustix::thread::CpuSet, Failure> {
    let mut set = rustix::thread::CpuSet::new();
    for cpu in cpus.iter() {
        if cpu as usize >= rustix::thread::CpuSet::MAX_CPU {
            return Err(Failure::general(format!(
                "processes cannot be bound to CPU {cpu} on this system; use --bind-to none"
            )));
        }
        set.set(cpu as usize);
    }
    Ok(set)
}

#[cfg(test)]
mod tests;
