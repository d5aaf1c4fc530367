//! Reads the description of a machine from /sys, for systems without hwloc. Facts that cannot be
//! read are unknown, which is no error.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cpus::CpuSet;
use crate::model::{Nic, NicKind, Numa, Topology};

/// Returns the machine whose /sys is `root`.
pub(crate) fn read(root: &Path) -> Topology {
    let cpus = root.join("devices/system/cpu");
    let usable = list(&cpus.join("online")).unwrap_or_default();
    let mut topology = Topology {
        source: "this machine (/sys)".to_owned(),
        packages: groups(&cpus, &usable, "topology/core_siblings_list"),
        numa: numa(root),
        l3: groups(&cpus, &usable, "cache/index3/shared_cpu_list"),
        cores: groups(&cpus, &usable, "topology/thread_siblings_list"),
        nics: nics(root),
        usable,
        ..Topology::default()
    };

    // Sorts cores so that close ones follow each other, since CPUs of one package need not have
    // consecutive numbers.
    let mut cores = std::mem::take(&mut topology.cores);
    cores.sort_by_key(|core| {
        let package = topology.packages.iter().position(|set| set.meets(core));
        let numa = topology.numa.iter().position(|numa| numa.cpus.meets(core));
        let l3 = topology.l3.iter().position(|set| set.meets(core));
        (package, numa, l3, core.iter().next())
    });
    topology.cores = cores;
    topology
}

/// Returns the groups of the CPUs `usable`. In the directory `cpus`, each CPU has a `file` with its
/// group.
fn groups(cpus: &Path, usable: &CpuSet, file: &str) -> Vec<CpuSet> {
    let mut groups: Vec<CpuSet> = Vec::new();
    for cpu in usable.iter() {
        if !groups.iter().any(|group| group.contains(cpu)) {
            groups.extend(list(&cpus.join(format!("cpu{cpu}/{file}"))));
        }
    }
    groups
}

/// Returns the NUMA nodes with CPUs.
pub(crate) fn numa(root: &Path) -> Vec<Numa> {
    let nodes = root.join("devices/system/node");
    let indices = list(&nodes.join("online")).unwrap_or_default();

    let mut numa = Vec::new();
    for index in indices.iter() {
        let dir = nodes.join(format!("node{index}"));
        let cpus = list(&dir.join("cpulist")).unwrap_or_default();
        if cpus.is_empty() {
            continue;
        }

        let meminfo = fs::read_to_string(dir.join("meminfo")).unwrap_or_default();
        numa.push(Numa {
            index,
            nbytes: total_kib(&meminfo).unwrap_or(0) << 10,
            cpus,
        });
    }
    numa
}

/// Returns the size of the memory of a node, from its file meminfo.
fn total_kib(meminfo: &str) -> Option<u64> {
    let (_, total) = meminfo
        .lines()
        .find_map(|line| line.split_once("MemTotal:"))?;
    total.trim().split(' ').next()?.parse().ok()
}

/// Returns true if there is more than one NUMA node, or more than one NIC of a fabric.
pub(crate) fn has_choice(root: &Path) -> bool {
    let nodes = list(&root.join("devices/system/node/online")).unwrap_or_default();
    nodes.len() > 1 || fabric_devices(root).len() > 1
}

/// The directories under /sys that list the NICs of fabrics.
const FABRICS: [&str; 2] = ["class/infiniband", "class/cxi"];

/// A device of a fabric in /sys.
struct FabricDevice {
    name: String,
    dir: PathBuf,
}

/// Returns the devices of fabrics, in the order of their names.
fn fabric_devices(root: &Path) -> Vec<FabricDevice> {
    let mut devices = Vec::new();
    for class in FABRICS {
        let dir = root.join(class);
        for name in names(&dir) {
            let dir = dir.join(&name);
            devices.push(FabricDevice { name, dir });
        }
    }
    devices.sort_by(|one, other| one.name.cmp(&other.name));
    devices
}

fn nics(root: &Path) -> Vec<Nic> {
    fabric_devices(root).into_iter().filter_map(nic).collect()
}

/// The number of ports of a NIC that are looked at. A NIC with more, all of whose first ones are
/// down, counts as one without an active port.
const MAX_PORTS: u32 = 4;

/// Returns the NIC of a device; `None` if it has ports, none of which is active.
fn nic(FabricDevice { name, dir }: FabricDevice) -> Option<Nic> {
    let port = (1..=MAX_PORTS).find(|port| {
        let state = fs::read_to_string(dir.join(format!("ports/{port}/state")));
        // 4 is the kernel's number for the state of an active port.
        state.is_ok_and(|text| text.starts_with("4:"))
    });
    let has_ports = dir.join("ports").exists();
    if has_ports && port.is_none() {
        return None;
    }

    let device = dir.join("device");
    let pci = fs::canonicalize(&device).ok();
    let pci = pci.as_deref().and_then(Path::file_name).unwrap_or_default();
    let class = fs::read_to_string(device.join("class")).unwrap_or_default();

    Some(Nic {
        name,
        kind: NicKind::Fabric,
        port,
        interface: names(&device.join("net")).into_iter().min(),
        pci: pci.to_string_lossy().into_owned(),
        is_infiniband: class.starts_with("0x0207"),
        near: list(&device.join("local_cpulist")).unwrap_or_default(),
    })
}

/// Returns the names in a directory; none if there is no such directory.
fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

fn list(file: &Path) -> Option<CpuSet> {
    CpuSet::parse(&fs::read_to_string(file).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a /sys with these files.
    fn sys(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a directory");
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("inside")).expect("a directory");
            fs::write(path, text).expect("a file");
        }
        root
    }

    #[test]
    fn packages_nodes_cores_and_cards() {
        let mut files = vec![
            ("devices/system/cpu/online".to_owned(), "0-3\n"),
            ("devices/system/node/online".to_owned(), "0-1\n"),
            ("devices/system/node/node0/cpulist".to_owned(), "0,2\n"),
            (
                "devices/system/node/node0/meminfo".to_owned(),
                "Node 0 MemTotal:  1024 kB\n",
            ),
            ("devices/system/node/node1/cpulist".to_owned(), "1,3\n"),
            (
                "class/infiniband/mlx5_0/device/local_cpulist".to_owned(),
                "1,3\n",
            ),
            (
                "class/infiniband/mlx5_0/device/class".to_owned(),
                "0x020700\n",
            ),
            ("class/infiniband/mlx5_0/device/net/ib0/mtu".to_owned(), ""),
            (
                "class/infiniband/mlx5_0/ports/1/state".to_owned(),
                "1: DOWN\n",
            ),
            (
                "class/infiniband/mlx5_0/ports/2/state".to_owned(),
                "4: ACTIVE\n",
            ),
            (
                "class/infiniband/mlx5_1/ports/1/state".to_owned(),
                "1: DOWN\n",
            ),
            ("class/cxi/cxi0/device/local_cpulist".to_owned(), "0,2\n"),
        ];

        for (cpu, package) in [(0, "0,2\n"), (1, "1,3\n"), (2, "0,2\n"), (3, "1,3\n")] {
            let dir = format!("devices/system/cpu/cpu{cpu}");
            files.push((format!("{dir}/topology/core_siblings_list"), package));
            let own = ["0\n", "1\n", "2\n", "3\n"][cpu];
            files.push((format!("{dir}/topology/thread_siblings_list"), own));
        }
        let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (p.as_str(), *t)).collect();

        let root = sys(&files);
        let topology = read(root.path());
        let shown = |sets: &[CpuSet]| sets.iter().map(CpuSet::to_string).collect::<Vec<_>>();
        assert_eq!(shown(&topology.packages), ["0,2", "1,3"]);
        assert_eq!(shown(&topology.cores), ["0", "2", "1", "3"]);
        assert_eq!(topology.numa[0].nbytes, 1 << 20);
        assert_eq!(topology.numa[1].index, 1);
        assert!(topology.l3.is_empty());
        assert_eq!(topology.usable.to_string(), "0-3");
        assert!(has_choice(root.path()));

        let [cxi, mlx] = &topology.nics[..] else {
            panic!("{:?}", topology.nics)
        };
        assert_eq!((cxi.name.as_str(), cxi.ucx_device()), ("cxi0", None));
        assert_eq!(cxi.near.to_string(), "0,2");
        assert_eq!(mlx.ucx_device().as_deref(), Some("mlx5_0:2"));
        assert_eq!(mlx.interface.as_deref(), Some("ib0"));
        assert!(mlx.is_infiniband && !cxi.is_infiniband);
    }

    #[test]
    fn a_machine_that_shows_nothing_is_no_error() {
        let root = sys(&[]);
        assert_eq!(read(root.path()).cores, []);
        assert!(!has_choice(root.path()));
    }
}
