//! A machine with its PEs as nested boxes, and these as lines of text.

use rushmem_topology::{BindTo, CpuSet, Level, MapBy, Nic, NicKind, Numa, PlacementPlan, Topology};

/// A machine and its PEs.
pub struct MachineMap {
    /// Lines above the map.
    pub head: Vec<String>,
    /// Lines below the map.
    pub notes: Vec<String>,
    /// The sockets, each with its CPUs, NICs and PEs.
    pub sockets: Vec<PackageMap>,
    /// NICs that are near no single socket.
    pub nics: Vec<NicBox>,
}

/// A socket.
pub struct PackageMap {
    pub title: String,
    pub nodes: Vec<Node>,
    /// NICs that are near the socket, but near no single node of it.
    pub nics: Vec<NicBox>,
}

/// A NUMA node, the part of one that lies in a socket, or a whole socket whose NUMA nodes are not
/// known.
pub struct Node {
    pub title: String,
    pub groups: Vec<CacheGroup>,
    pub nics: Vec<NicBox>,
}

/// Cores that share an L3 cache, or all cores of a node whose caches are not known.
pub struct CacheGroup {
    /// `None` where the caches are not known.
    pub title: Option<String>,
    pub cores: Vec<CoreMap>,
}

/// A core.
pub struct CoreMap {
    pub cpus: CpuSet,
    pub pes: Vec<u32>,
    /// The NIC of its first PE, as an index into [`Topology::choice`].
    pub nic: Option<usize>,
}

/// A NIC with the PEs that use it.
pub struct NicBox {
    pub name: String,
    pub about: String,
    pub pes: Vec<u32>,
    /// The index of the NIC in [`Topology::choice`]; `None` for one that no PE may use.
    pub choice: Option<usize>,
    near: CpuSet,
}

impl MachineMap {
    /// Returns the map of a machine, with the PEs where `plan` places them.
    pub fn new(
        machine: &Topology,
        plan: &PlacementPlan,
        map_by: MapBy,
        bind_to: BindTo,
    ) -> MachineMap {
        let mut nics: Vec<NicBox> = machine
            .nics
            .iter()
            .map(|nic| nic_box(machine, plan, nic))
            .collect();
        let counts = [
            counted(machine.cpu_sets(Level::Package).len(), "socket"),
            counted(machine.numa.len(), "NUMA node"),
            counted(machine.cpu_sets(Level::Core).len(), "core"),
            format!("{} to use", counted(machine.usable.len(), "CPU")),
            counted(machine.nics.len(), "NIC"),
        ];
        let pes = counted(plan.placements.len(), "PE");
        let map_by = word(&MapBy::WORDS, map_by);
        let bind_to = word(&BindTo::WORDS, bind_to);

        // Each socket takes the NICs that are near it, and those of no socket are left.
        let mut sockets = Vec::new();
        for (number, cpus) in machine.cpu_sets(Level::Package).iter().enumerate() {
            sockets.push(socket(machine, plan, number, cpus, &mut nics));
        }
        MachineMap {
            head: vec![
                format!("{}: {}", machine.source, counts.join(", ")),
                format!("{pes}, --map-by {map_by} --bind-to {bind_to}"),
            ],
            notes: machine.notes.iter().chain(&plan.notes).cloned().collect(),
            sockets,
            nics,
        }
    }
}

/// Returns the word of the command line for a value.
fn word<T: Copy + PartialEq>(words: &[(&'static str, T)], value: T) -> &'static str {
    words
        .iter()
        .find(|(_, own)| *own == value)
        .map_or("", |(word, _)| word)
}

/// Returns a number with its noun.
pub fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn nic_box(machine: &Topology, plan: &PlacementPlan, nic: &Nic) -> NicBox {
    let choice = machine.choice().iter().position(|other| *other == nic);
    let mut pes = Vec::new();
    for (pe, place) in (0..).zip(&plan.placements) {
        if choice.is_some() && place.nic == choice {
            pes.push(pe);
        }
    }

    let kind = match nic.kind {
        NicKind::Fabric if nic.is_infiniband => "InfiniBand",
        NicKind::Fabric => "fabric",
        NicKind::Ethernet => "Ethernet",
    };
    let interface = match &nic.interface {
        Some(name) if *name != nic.name => format!(", {name}"),
        _ => String::new(),
    };
    NicBox {
        name: nic.ucx_device().unwrap_or_else(|| nic.name.clone()),
        about: format!("{kind}{interface}, {}", nic.pci),
        pes,
        choice,
        near: nic.near.and(&machine.usable),
    }
}

fn socket(
    machine: &Topology,
    plan: &PlacementPlan,
    number: usize,
    cpus: &CpuSet,
    nics: &mut Vec<NicBox>,
) -> PackageMap {
    let mut nodes: Vec<Node> = Vec::new();
    for numa in machine.numa.iter().filter(|numa| numa.cpus.meets(cpus)) {
        nodes.push(node(machine, plan, numa, &numa.cpus.and(cpus), nics));
    }
    if nodes.is_empty() {
        nodes.push(Node {
            title: "memory of the machine".to_owned(),
            groups: groups(machine, plan, cpus),
            nics: Vec::new(),
        });
    }
    PackageMap {
        title: format!("socket {number}"),
        nodes,
        nics: take_near(nics, cpus),
    }
}

/// Removes and returns the NICs that are near CPUs in `cpus` and near no others.
fn take_near(nics: &mut Vec<NicBox>, cpus: &CpuSet) -> Vec<NicBox> {
    nics.extract_if(.., |nic| !nic.near.is_empty() && nic.near.is_within(cpus))
        .collect()
}

fn node(
    machine: &Topology,
    plan: &PlacementPlan,
    numa: &Numa,
    cpus: &CpuSet,
    nics: &mut Vec<NicBox>,
) -> Node {
    let memory = match numa.nbytes {
        0 => String::new(),
        nbytes => format!(", {} GiB", nbytes.div_ceil(1 << 30)),
    };
    let usable = cpus.and(&machine.usable);
    Node {
        title: format!("NUMA node {}{memory}, CPUs {usable}", numa.index),
        groups: groups(machine, plan, &usable),
        nics: take_near(nics, cpus),
    }
}

fn groups(machine: &Topology, plan: &PlacementPlan, cpus: &CpuSet) -> Vec<CacheGroup> {
    let all = machine.cpu_sets(Level::Core);
    let cores = |within: &CpuSet| -> Vec<CoreMap> {
        all.iter()
            .filter(|core| core.meets(within) && core.meets(cpus))
            .map(|core| self::core(plan, core))
            .collect()
    };

    if machine.l3.is_empty() {
        return vec![CacheGroup {
            title: None,
            cores: cores(cpus),
        }];
    }
    machine
        .cpu_sets(Level::L3)
        .iter()
        .filter(|group| group.meets(cpus))
        .map(|group| CacheGroup {
            title: Some(format!("L3, CPUs {}", group.and(cpus))),
            cores: cores(group),
        })
        .collect()
}

fn core(plan: &PlacementPlan, cpus: &CpuSet) -> CoreMap {
    let mut pes = Vec::new();
    for (pe, place) in (0..).zip(&plan.placements) {
        if place.home == *cpus {
            pes.push(pe);
        }
    }
    let nic = pes.first().and_then(|pe| plan.placements[*pe as usize].nic);
    CoreMap {
        cpus: cpus.clone(),
        pes,
        nic,
    }
}

/// Returns numbers of PEs as ranges, such as `0-3,8`.
pub fn short(pes: &[u32]) -> String {
    pes.iter().copied().collect::<CpuSet>().to_string()
}

/// Returns PEs in words: `PE 3`, `PEs 0-3`, or nothing.
pub fn named(pes: &[u32]) -> String {
    match pes {
        [] => String::new(),
        [pe] => format!("PE {pe}"),
        _ => format!("PEs {}", short(pes)),
    }
}

/// Returns the whole map as lines of text.
pub fn text(map: &MachineMap) -> String {
    let mut lines = map.head.clone();
    for socket in &map.sockets {
        lines.push(socket.title.clone());
        for node in &socket.nodes {
            lines.push(format!("  {}", node.title));
            for group in &node.groups {
                lines.extend(group_lines(group));
            }
            for nic in &node.nics {
                lines.push(format!("    {}", nic_line(nic)));
            }
        }
        for nic in &socket.nics {
            lines.push(format!("  {}", nic_line(nic)));
        }
    }
    for nic in &map.nics {
        lines.push(nic_line(nic));
    }
    for note in &map.notes {
        lines.push(format!("note: {note}"));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn group_lines(group: &CacheGroup) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(title) = &group.title {
        lines.push(format!("    {title}"));
    }

    let mut idle = 0;
    for core in &group.cores {
        if core.pes.is_empty() {
            idle += 1;
        } else {
            let pes = named(&core.pes);
            lines.push(format!("      core of CPUs {}: {pes}", core.cpus));
        }
    }
    match idle {
        0 => {}
        1 => lines.push("      1 core without a PE".to_owned()),
        _ => lines.push(format!("      {idle} cores without a PE")),
    }
    lines
}

fn nic_line(nic: &NicBox) -> String {
    let users = if nic.choice.is_none() {
        "not used by PEs".to_owned()
    } else if nic.pes.is_empty() {
        "no PE".to_owned()
    } else {
        named(&nic.pes)
    };
    format!("NIC {} ({}): {users}", nic.name, nic.about)
}
