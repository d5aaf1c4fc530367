//! The description of a machine that placement needs, as plain data from any source.

use crate::cpus::CpuSet;

/// The kinds of hardware that group CPUs, from wide to narrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// A socket.
    Package,
    /// CPUs with memory of their own.
    Numa,
    /// CPUs that share an L3 cache.
    L3,
    /// A core with its hardware threads.
    Core,
}

/// A NUMA node with CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numa {
    /// The number that the operating system gives it.
    pub index: u32,
    /// The size of its memory in bytes; 0 if it is not known.
    pub nbytes: u64,
    /// The CPUs near its memory.
    pub cpus: CpuSet,
}

/// The kind of network that a NIC belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NicKind {
    /// A network that reads and writes memory by itself: InfiniBand, RoCE, Omni-Path, Slingshot.
    Fabric,
    /// A network that only sockets use.
    Ethernet,
}

/// A NIC, or one of its devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nic {
    /// The name that the kernel or its library uses, for most NICs also libfabric's domain:
    /// `mlx5_0`, `hfi1_0`, `cxi0`, `eth0`.
    pub name: String,
    /// The kind of its network, by which PEs [choose](Topology::candidate_nics).
    pub kind: NicKind,
    /// The first port that is up; `None` for a NIC without ports.
    pub port: Option<u32>,
    /// The network interface on the same NIC, which sockets use: `ib0`, `hsn0`.
    pub interface: Option<String>,
    /// The address on the PCI bus, such as `0000:17:00.0`; empty if it is not known.
    pub pci: String,
    /// True if its PCI class is InfiniBand.
    pub is_infiniband: bool,
    /// The CPUs that are near it; empty if they are not known.
    pub near: CpuSet,
}

impl Nic {
    /// Returns the value of `SHMEM_NIC` that selects this NIC, such as `mlx5_0:1,ib0`.
    pub fn hint(&self) -> String {
        let mut hint = self.name.clone();
        if let Some(port) = self.port {
            hint += &format!(":{port}");
        }
        if let Some(interface) = &self.interface {
            hint += &format!(",{interface}");
        }
        hint
    }

    /// Returns the value of `UCX_NET_DEVICES` that selects this NIC, such as `mlx5_0:1`. `None` for
    /// NICs that UCX finds by their interface.
    pub fn ucx_device(&self) -> Option<String> {
        Some(format!("{}:{}", self.name, self.port?))
    }
}

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// The source of the facts, for people: `this machine (hwloc interface 2.8)`.
    pub source: String,
    /// Remarks for people: facts that could not be found out, and NICs that are down.
    pub notes: Vec<String>,
    /// The CPUs of each socket.
    pub packages: Vec<CpuSet>,
    /// The NUMA nodes that have CPUs.
    pub numa: Vec<Numa>,
    /// The groups of CPUs that share an L3 cache; none if they are not known.
    pub l3: Vec<CpuSet>,
    /// The CPUs of each core. Cores that are close to each other follow each other.
    pub cores: Vec<CpuSet>,
    /// The NICs, in the order of their addresses on the bus; without hwloc only those of fabrics,
    /// in the order of their names.
    pub nics: Vec<Nic>,
    /// The CPUs that processes may use: on this machine those that both the control group and the
    /// affinity of this process allow.
    pub usable: CpuSet,
}

impl Topology {
    /// Returns the usable CPUs of each package, NUMA node, L3 cache or core, in order, without
    /// empty sets. If there is no information about a level, returns the sets of the next wider
    /// level, and finally all usable CPUs; for cores returns each usable CPU alone.
    pub fn cpu_sets(&self, level: Level) -> Vec<CpuSet> {
        let all: Vec<&CpuSet> = match level {
            Level::Package => self.packages.iter().collect(),
            Level::Numa => self.numa.iter().map(|numa| &numa.cpus).collect(),
            Level::L3 => self.l3.iter().collect(),
            Level::Core => self.cores.iter().collect(),
        };
        let mut usable: Vec<CpuSet> = all.iter().map(|cpus| cpus.and(&self.usable)).collect();
        usable.retain(|cpus| !cpus.is_empty());
        if !usable.is_empty() {
            return usable;
        }

        match level {
            Level::Package => vec![self.usable.clone()],
            Level::Numa => self.cpu_sets(Level::Package),
            Level::L3 => self.cpu_sets(Level::Numa),
            Level::Core => self
                .usable
                .iter()
                .map(|cpu| CpuSet::from_iter([cpu]))
                .collect(),
        }
    }

    /// Returns the union of the sets of [`cpu_sets`](Topology::cpu_sets) that have a CPU in common
    /// with `home`; if there are none, all usable CPUs.
    pub fn cpu_set_of(&self, level: Level, home: &CpuSet) -> CpuSet {
        let mut union = CpuSet::default();
        for set in self.cpu_sets(level) {
            if set.meets(home) {
                union.extend(&set);
            }
        }
        if union.is_empty() {
            return self.usable.clone();
        }
        union
    }

    /// Returns the NUMA node to which all of `cpus` belong; `None` if they belong to several or are
    /// none.
    pub fn numa_of(&self, cpus: &CpuSet) -> Option<&Numa> {
        self.numa
            .iter()
            .find(|numa| !cpus.is_empty() && cpus.is_within(&numa.cpus))
    }

    /// Returns the NICs among which PEs choose: the InfiniBand NICs if there are any, otherwise
    /// those of other fabrics, and without any fabric all NICs.
    pub fn candidate_nics(&self) -> Vec<&Nic> {
        let all: Vec<&Nic> = self.nics.iter().collect();
        let mut fabric = all.clone();
        fabric.retain(|nic| nic.kind == NicKind::Fabric);
        let mut infiniband = fabric.clone();
        infiniband.retain(|nic| nic.is_infiniband);

        if !infiniband.is_empty() {
            infiniband
        } else if !fabric.is_empty() {
            fabric
        } else {
            all
        }
    }
}
