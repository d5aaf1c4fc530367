//! A machine with its PEs as nested boxes, and these as lines of text.

use rushmem_topology::{BindTo, CpuSet, Level, MapBy, Nic, NicKind, Numa, PlacementPlan, Topology};

/// A machine and its PEs.
pub struct MachineMap {
    /// Lines above the map.
    pub head: Vec<String>,
    /// Lines below the map.
    pub notes: Vec<String>,
    /// The sockets, each with its CPUs, NICs and PEs.
    pub sockets: Vec<SocketMap>,
    /// NICs that are near no single socket.
    pub nics: Vec<NicBox>,
}

/// A socket.
pub struct SocketMap {
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
    /// The NIC of its first PE, as an index into [`Topology::candidate_nics`].
    pub nic: Option<usize>,
}

/// A NIC with the PEs that use it.
pub struct NicBox {
    pub name: String,
    pub about: String,
    pub pes: Vec<u32>,
    /// The index of the NIC in [`Topology::candidate_nics`]; `None` for one that no PE may use.
    pub index: Option<usize>,
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
        let placed = PlacedPes { machine, plan };
        let mut nics: Vec<NicBox> = machine.nics.iter().map(|nic| placed.nic(nic)).collect();

        // Each socket takes the NICs that are near it, and those of no socket are left.
        let mut sockets = Vec::new();
        for (number, cpus) in machine.cpu_sets(Level::Package).iter().enumerate() {
            sockets.push(placed.socket(number, cpus, &mut nics));
        }

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

/// Returns a count with its noun, to which an `s` is added unless the count is 1.
pub fn counted(count: usize, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        n => format!("{n} {noun}s"),
    }
}

/// A machine, and the PEs that a plan places on it.
struct PlacedPes<'a> {
    machine: &'a Topology,
    plan: &'a PlacementPlan,
}

impl PlacedPes<'_> {
    fn nic(&self, nic: &Nic) -> NicBox {
        let candidates = self.machine.candidate_nics();
        let index = candidates.iter().position(|other| *other == nic);

        let mut pes = Vec::new();
        for (pe, place) in (0..).zip(&self.plan.placements) {
            if index.is_some() && place.nic == index {
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
            index,
            near: nic.near.and(&self.machine.usable),
        }
    }

    /// Returns a socket with the NICs near it, which it takes from `nics`.
    fn socket(&self, number: usize, cpus: &CpuSet, nics: &mut Vec<NicBox>) -> SocketMap {
        let mut nodes: Vec<Node> = Vec::new();
        for numa in &self.machine.numa {
            if numa.cpus.meets(cpus) {
                nodes.push(self.node(numa, &numa.cpus.and(cpus), nics));
            }
        }
        if nodes.is_empty() {
            nodes.push(Node {
                title: "memory of the machine".to_owned(),
                groups: self.groups(cpus),
                nics: Vec::new(),
            });
        }

        SocketMap {
            title: format!("socket {number}"),
            nodes,
            // Taken after the nodes, each of which takes the NICs that are near it alone.
            nics: take_near(nics, cpus),
        }
    }

    fn node(&self, numa: &Numa, cpus: &CpuSet, nics: &mut Vec<NicBox>) -> Node {
        let memory = match numa.nbytes {
            0 => String::new(),
            nbytes => format!(", {} GiB", nbytes.div_ceil(1 << 30)),
        };
        let usable = cpus.and(&self.machine.usable);
        // Several sockets may share a node, which each of them then has a part of.
        let part = if numa.cpus.is_within(cpus) {
            ""
        } else {
            "part of "
        };

        Node {
            title: format!("{part}NUMA node {}{memory}, CPUs {usable}", numa.index),
            groups: self.groups(&usable),
            nics: take_near(nics, cpus),
        }
    }

    fn groups(&self, cpus: &CpuSet) -> Vec<CacheGroup> {
        if self.machine.l3.is_empty() {
            return vec![CacheGroup {
                title: None,
                cores: self.cores(cpus, cpus),
            }];
        }

        let mut groups = Vec::new();
        for group in self.machine.cpu_sets(Level::L3) {
            if group.meets(cpus) {
                groups.push(CacheGroup {
                    title: Some(format!("L3, CPUs {}", group.and(cpus))),
                    cores: self.cores(&group, cpus),
                });
            }
        }
        groups
    }

    /// Returns the cores that have CPUs in both sets.
    fn cores(&self, group: &CpuSet, cpus: &CpuSet) -> Vec<CoreMap> {
        let mut cores = Vec::new();
        for core in self.machine.cpu_sets(Level::Core) {
            if core.meets(group) && core.meets(cpus) {
                cores.push(self.core(&core));
            }
        }
        cores
    }

    fn core(&self, cpus: &CpuSet) -> CoreMap {
        let mut pes = Vec::new();
        let mut nic = None;
        for (pe, place) in (0..).zip(&self.plan.placements) {
            if place.home == *cpus {
                if pes.is_empty() {
                    nic = place.nic;
                }
                pes.push(pe);
            }
        }
        CoreMap {
            cpus: cpus.clone(),
            pes,
            nic,
        }
    }
}

/// Removes and returns the NICs that are near CPUs in `cpus` and near no others.
fn take_near(nics: &mut Vec<NicBox>, cpus: &CpuSet) -> Vec<NicBox> {
    nics.extract_if(.., |nic| !nic.near.is_empty() && nic.near.is_within(cpus))
        .collect()
}

/// Returns numbers of PEs as ranges, such as `0-3,8`.
pub fn pe_ranges(pes: &[u32]) -> String {
    pes.iter().copied().collect::<CpuSet>().to_string()
}

/// Returns PEs in words: `PE 3`, `PEs 0-3`, or nothing.
pub fn pe_names(pes: &[u32]) -> String {
    match pes {
        [] => String::new(),
        [pe] => format!("PE {pe}"),
        _ => format!("PEs {}", pe_ranges(pes)),
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

    // NICs that are near no socket, and what applies to the whole machine.
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
            let pes = pe_names(&core.pes);
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
    let users = if nic.index.is_none() {
        "not used by PEs".to_owned()
    } else if nic.pes.is_empty() {
        "no PE".to_owned()
    } else {
        pe_names(&nic.pes)
    };
    format!("NIC {} ({}): {users}", nic.name, nic.about)
}
