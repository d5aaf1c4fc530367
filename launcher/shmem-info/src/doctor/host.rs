//! Examines this machine: its limits, its memory, its CPUs and NICs, and what the kernel permits.
//!
//! A property that cannot be read is left out; an unknown size of the memory is shown as 0.

use std::fs;
use std::net::Ipv6Addr;
use std::path::Path;

use rushmem_runtime::constants::SHMEM_VENDOR_STRING;
use rushmem_runtime::setup::make_huge_page;
use rushmem_system::devices;
use rushmem_system::host::{host_name, kernel_release};
use rushmem_system::limits::getrlimit;
use rushmem_topology::{GroupLimit, Level, NicKind, Topology, cpus_at_once};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create, statvfs};
use rustix::process::Resource;

use super::finding::{Finding, Grade, Section};
use crate::map::counted;

/// The number of descriptors that `oshrun` needs for any job.
const MIN_DESCRIPTORS: u64 = 132;
/// A limit of descriptors that jobs of some hundred PEs over sockets exceed.
const FEW_DESCRIPTORS: u64 = 4096;
/// The shared memory that a small job needs on this node.
const SMALL_JOB: u64 = 1 << 30;

pub fn section() -> Section {
    let title = format!(
        "host {}: {SHMEM_VENDOR_STRING}, Linux {} on {}",
        host_name(),
        kernel_release(),
        std::env::consts::ARCH
    );

    let topology = Topology::of_this_machine();
    let mut findings = vec![cpus(&topology)];
    findings.extend(load());
    findings.extend(nics(&topology));
    findings.extend(drivers(Path::new("/sys")));
    findings.extend(gid_findings(Path::new("/sys/class/infiniband")));
    findings.extend([memory(), node_memory(), locked(), descriptors()]);
    findings.extend(overcommit());
    findings.extend(huge_pages());
    findings.extend(shm());
    findings.extend(filter());
    findings.extend(other_limits());
    findings.extend(groups());
    Section { title, findings }
}

fn read(path: impl AsRef<Path>) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

fn number(path: impl AsRef<Path>) -> Option<u64> {
    read(path)?.parse().ok()
}

/// Returns the number in a field of a file with lines `NAME: VALUE`, without its unit.
fn field(path: &str, name: &str) -> Option<u64> {
    let text = read(path)?;
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    value.split_whitespace().next()?.parse().ok()
}

/// Returns the size in the largest unit in which it is a whole number, or at least 10.
fn size(nbytes: u64) -> String {
    let fits = |shift: u32| nbytes >= 10 << shift || (nbytes >> shift << shift == nbytes);
    // 0 is a whole number of every unit.
    if nbytes == 0 {
        "0 KiB".to_owned()
    } else if fits(30) {
        format!("{} GiB", nbytes >> 30)
    } else if fits(20) {
        format!("{} MiB", nbytes >> 20)
    } else {
        format!("{} KiB", nbytes >> 10)
    }
}

fn cpus(topology: &Topology) -> Finding {
    let usable = topology.usable.len();
    let at_once = cpus_at_once();
    let text = format!(
        "{usable} usable ({}), {}, {}; {}",
        topology.usable,
        counted(topology.numa.len().max(1), "NUMA node"),
        counted(topology.cpu_sets(Level::Core).len(), "core"),
        topology.source
    );

    if at_once < usable {
        let text = format!("{text}; the control group permits {at_once} at once");
        return Finding::new("CPUs", Grade::Warning, text)
            .remedy("request more CPUs, or start no more PEs than that");
    }

    match topology.notes.first() {
        Some(note) => Finding::new("CPUs", Grade::Note, format!("{text}; {note}")),
        None => Finding::ok("CPUs", text),
    }
}

/// The name of the finding that other programs use the CPUs.
pub const LOAD: &str = "load";

/// Reports a load above the number of CPUs, which distorts measurements.
fn load() -> Option<Finding> {
    let load: f64 = read("/proc/loadavg")?.split(' ').next()?.parse().ok()?;
    let cpus = cpus_at_once();
    if load <= cpus as f64 {
        return None;
    }

    let text = format!("the CPUs are shared (load {load:.0} on {cpus})");
    Some(Finding::new(LOAD, Grade::Warning, text).remedy("times measure the scheduler"))
}

/// Reports the NICs of a fabric, with the CPUs near them.
fn nics(topology: &Topology) -> Vec<Finding> {
    let active = devices::active();
    let mut findings = Vec::new();
    for nic in &topology.nics {
        if nic.kind != NicKind::Fabric {
            continue;
        }

        let near = match topology.numa_of(&nic.near) {
            Some(numa) => format!("NUMA node {}", numa.index),
            None if nic.near.is_empty() => "an unknown NUMA node".to_owned(),
            None => format!("CPUs {}", nic.near),
        };

        let text = format!("near {near}, {}", nic.pci);
        findings.push(if active.contains(&nic.name) {
            Finding::ok(format!("NIC {}", nic.hint()), text)
        } else {
            Finding::new(
                format!("NIC {}", nic.name),
                Grade::Warning,
                format!("{text}; no port is active, so no transport uses it"),
            )
        });
    }
    findings
}

/// Reports the drivers of NICs below `sys`, with the versions of driver and firmware. A driver that
/// is part of the kernel has no version of its own.
fn drivers(sys: &Path) -> Option<Finding> {
    let mut found = Vec::new();
    for class in ["infiniband", "cxi", "net"] {
        for nic in entries(&sys.join("class").join(class)) {
            found.extend(driver(sys, &nic));
        }
    }
    if found.is_empty() {
        return None;
    }

    found.sort();
    Some(Finding::ok("drivers", found.join(", ")))
}

/// Returns the entries of a directory; none if the machine lacks it.
fn entries(dir: &Path) -> impl Iterator<Item = fs::DirEntry> {
    fs::read_dir(dir).into_iter().flatten().flatten()
}

/// Returns the driver of a NIC; `None` for an interface without a device, such as `lo`.
fn driver(sys: &Path, nic: &fs::DirEntry) -> Option<String> {
    let link = fs::read_link(nic.path().join("device/driver")).ok()?;
    let driver = link.file_name()?.to_str()?;

    let mut text = format!("{}: {driver}", nic.file_name().to_str()?);
    if let Some(version) = read(sys.join("module").join(driver).join("version")) {
        text += &format!(" {version}");
    }
    if let Some(firmware) = read(nic.path().join("fw_ver")) {
        text += &format!(" with firmware {firmware}");
    }
    Some(text)
}

fn memory() -> Finding {
    let bytes = |name| field("/proc/meminfo", name).map_or(0, |kib| kib << 10);
    let available = size(bytes("MemAvailable"));
    let all = size(bytes("MemTotal"));
    Finding::ok("memory", format!("{available} of {all} are available"))
}

/// Checks the memory of a node, a memfd, whose size RLIMIT_FSIZE limits.
fn node_memory() -> Finding {
    let name = "shared memory";
    if let Some(limit) = getrlimit(Resource::Fsize).current
        && limit < SMALL_JOB
    {
        let text = format!(
            "files may have {} (RLIMIT_FSIZE), and the memory of a node is one",
            size(limit)
        );
        return Finding::new(name, Grade::Bad, text).remedy("raise it with `ulimit -f unlimited`");
    }

    let made = memfd_create("shmem-info", MemfdFlags::CLOEXEC)
        .and_then(|file| ftruncate(&file, SMALL_JOB));
    match made {
        Ok(()) => Finding::ok(name, "a memfd, which needs no room in /dev/shm"),
        Err(error) => Finding::new(
            name,
            Grade::Bad,
            format!("the kernel refuses a memfd: {error}"),
        )
        .remedy("permit memfd_create and ftruncate in the filter of the container"),
    }
}

fn locked() -> Finding {
    let name = "locked memory (RLIMIT_MEMLOCK)";
    match getrlimit(Resource::Memlock).current {
        None => Finding::ok(name, "unlimited"),
        Some(limit) if devices::any() => {
            let text = format!(
                "{}, and NICs lock the symmetric memory of a PE",
                size(limit)
            );
            Finding::new(name, Grade::Warning, text)
                .remedy("raise it with `ulimit -l unlimited` or the limits of the resource manager")
        }
        Some(limit) => Finding::ok(name, format!("{}; no NIC locks memory here", size(limit))),
    }
}

fn descriptors() -> Finding {
    let name = "open files (RLIMIT_NOFILE)";
    let Some(limit) = getrlimit(Resource::Nofile).maximum else {
        return Finding::ok(name, "unlimited");
    };

    let grade = if limit < MIN_DESCRIPTORS {
        Grade::Bad
    } else if limit < FEW_DESCRIPTORS {
        Grade::Warning
    } else {
        return Finding::ok(name, format!("up to {limit}"));
    };
    let text = format!("up to {limit}, and a PE needs up to 6 for each peer over sockets");
    Finding::new(name, grade, text).remedy("raise the hard limit of `ulimit -n`")
}

fn overcommit() -> Option<Finding> {
    let name = "overcommit (vm.overcommit_memory)";
    match number("/proc/sys/vm/overcommit_memory")? {
        2 => {
            let text = "2: the kernel refuses mappings beyond its limit, also those of heaps that are not touched";
            let remedy = "ask for smaller heaps with SHMEM_SYMMETRIC_SIZE, or set it to 0";
            Some(Finding::new(name, Grade::Warning, text).remedy(remedy))
        }
        other => Some(Finding::ok(name, other.to_string())),
    }
}

/// Returns the mode in brackets, as in `always [madvise] never`.
fn mode(path: &str) -> Option<String> {
    let text = read(path)?;
    Some(text.split_once('[')?.1.split_once(']')?.0.to_owned())
}

fn huge_pages() -> Option<Finding> {
    let dir = "/sys/kernel/mm/transparent_hugepage";
    let of_shared_memory = mode(&format!("{dir}/shmem_enabled"))?;
    let of_other_memory = mode(&format!("{dir}/enabled"))?;

    let mut reserved = Vec::new();
    for pages in entries(Path::new("/sys/kernel/mm/hugepages")) {
        reserved.extend(reserved_pages(&pages));
    }
    if reserved.is_empty() {
        reserved.push("none reserved".to_owned());
    }

    let reserved = reserved.join(", ");
    let text = format!(
        "{reserved}; transparent ones of shared memory: {of_shared_memory}, of other memory: {of_other_memory}"
    );
    Some(match make_huge_page() {
        Ok(()) => Finding::ok("huge pages", format!("{text}; others are made on request")),
        Err(why) => Finding::new("huge pages", Grade::Note, format!("{text}; on request: {why}"))
            .remedy("blocks of gigabytes are faster where SHMEM_HUGE_PAGES obtains some: reserve pages of 2 MiB (vm.nr_hugepages)"),
    })
}

/// Returns how many pages of the size of this directory are reserved and free, if any are reserved.
fn reserved_pages(dir: &fs::DirEntry) -> Option<String> {
    let name = dir.file_name().into_string().ok()?;
    let kib = name.strip_prefix("hugepages-")?.strip_suffix("kB")?;
    let nbytes = kib.parse::<u64>().ok()? << 10;
    let free = number(dir.path().join("free_hugepages"))?;
    let all = number(dir.path().join("nr_hugepages"))?;
    if all == 0 {
        return None;
    }

    Some(format!("{free} of {all} pages of {} free", size(nbytes)))
}

/// Examines /dev/shm, where only libraries of networks use files.
fn shm() -> Option<Finding> {
    let status = statvfs("/dev/shm").ok()?;
    let free = size(status.f_bavail.saturating_mul(status.f_frsize));
    let all = size(status.f_blocks.saturating_mul(status.f_frsize));
    let text = format!("{free} of {all} free; jobs need none");
    Some(Finding::ok("/dev/shm", text))
}

fn filter() -> Option<Finding> {
    let name = "system calls (seccomp)";
    if field("/proc/self/status", "Seccomp")? == 0 {
        return Some(Finding::ok(name, "no filter"));
    }

    let text = "a filter, as in containers: what it refuses, huge pages perhaps, is done without";
    Some(Finding::new(name, Grade::Note, text))
}

fn other_limits() -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(limit) = getrlimit(Resource::As).current {
        let text = format!(
            "{}, and each PE maps the symmetric memory of its node",
            size(limit)
        );
        let finding = Finding::new("address space (RLIMIT_AS)", Grade::Warning, text);
        findings.push(finding.remedy("raise it with `ulimit -v unlimited`"));
    }
    if let Some(limit) = getrlimit(Resource::Nproc).current {
        let text = format!("up to {limit} of this user");
        findings.push(Finding::ok("processes (RLIMIT_NPROC)", text));
    }

    findings
}

/// Returns the limits of this process's control groups: of processes and threads, then of memory.
fn groups() -> Vec<Finding> {
    let mut findings = Vec::new();
    for GroupLimit { limit, file, .. } in GroupLimit::of_tasks() {
        let text = format!("up to {limit} processes and threads ({})", file.display());
        findings.push(Finding::ok("control group", text));
    }
    for GroupLimit { limit, file, .. } in GroupLimit::of_memory() {
        let text = format!("up to {} of memory ({})", size(limit), file.display());
        findings.push(Finding::ok("control group", text));
    }
    findings
}

/// Returns a finding for each active RoCE port below `class` (/sys/class/infiniband) whose first
/// address (GID) is link-local. libfabric's provider verbs uses the first address, and a link-local
/// one has no route to other networks. UCX chooses a better one.
fn gid_findings(class: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    for device in entries(class) {
        for port in entries(&device.path().join("ports")) {
            let read = |file: &str| fs::read_to_string(port.path().join(file)).unwrap_or_default();
            let is_roce = read("link_layer").trim() == "Ethernet";
            if is_roce && read("state").contains("ACTIVE") {
                let name = format!(
                    "GIDs of {}:{}",
                    device.file_name().to_string_lossy(),
                    port.file_name().to_string_lossy()
                );
                findings.extend(gid_finding(name, &gids(&port.path().join("gids"))));
            }
        }
    }
    findings
}

/// An address of a port.
struct Gid {
    index: u32,
    address: Ipv6Addr,
}

/// Returns the addresses that are set, in the order of their indices.
fn gids(dir: &Path) -> Vec<Gid> {
    let mut gids: Vec<Gid> = entries(dir).filter_map(|file| gid(&file)).collect();
    gids.sort_unstable_by_key(|gid| gid.index);
    gids
}

/// Returns the address in a file, whose name is its index; `None` if it is not set.
fn gid(file: &fs::DirEntry) -> Option<Gid> {
    let index = file.file_name().to_str()?.parse().ok()?;
    // The kernel refuses to read an index that is not set, or gives the unspecified address.
    let address: Ipv6Addr = read(file.path())?.parse().ok()?;
    if address.is_unspecified() {
        return None;
    }
    Some(Gid { index, address })
}

fn gid_finding(name: String, gids: &[Gid]) -> Option<Finding> {
    let first = gids.first()?;
    if !first.address.is_unicast_link_local() {
        return None;
    }

    let routable = gids.iter().find(|gid| !gid.address.is_unicast_link_local());
    let remedy = match routable {
        Some(Gid { index, address }) => {
            format!("FI_VERBS_GID_IDX={index} makes libfabric use {address}, which is routable")
        }
        None => "give the interface of the port an address that other hosts reach".to_owned(),
    };

    let Gid { index, address } = first;
    let text = format!("the first one, {address} at index {index}, is link-local and has no route");
    Some(Finding::new(name, Grade::Warning, text).remedy(remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_are_named_with_their_versions() {
        let sys = std::env::temp_dir().join(format!("shmem-info-drivers-{}", std::process::id()));
        let nic = sys.join("class/infiniband/mlx5_0");
        fs::create_dir_all(nic.join("device")).expect("a directory");
        fs::create_dir_all(sys.join("module/mlx5_core")).expect("a directory");
        let driver = Path::new("../../bus/pci/drivers/mlx5_core");
        std::os::unix::fs::symlink(driver, nic.join("device/driver")).expect("a link");
        fs::write(nic.join("fw_ver"), "20.31.1014\n").expect("a file");
        fs::write(sys.join("module/mlx5_core/version"), "5.8-1\n").expect("a file");
        // An interface without a device, such as `lo`.
        fs::create_dir_all(sys.join("class/net/lo")).expect("a directory");

        let found = drivers(&sys).expect("a driver");
        fs::remove_dir_all(&sys).expect("own directory");
        assert_eq!(
            found.text,
            "mlx5_0: mlx5_core 5.8-1 with firmware 20.31.1014"
        );
    }

    #[test]
    fn a_routable_address_is_proposed_instead_of_a_link_local_one() {
        let class = std::env::temp_dir().join(format!("shmem-info-gids-{}", std::process::id()));
        let port = class.join("irdma0/ports/1");
        fs::create_dir_all(port.join("gids")).expect("a directory");
        let write = |file: &str, text: &str| fs::write(port.join(file), text).expect("a file");
        write("link_layer", "Ethernet\n");
        write("state", "4: ACTIVE\n");
        write("gids/0", "fe80:0000:0000:0000:0a00:27ff:fe00:0001\n");
        write("gids/1", "0000:0000:0000:0000:0000:ffff:0a00:0002\n");
        write("gids/2", "0000:0000:0000:0000:0000:0000:0000:0000\n");

        let with_route = gid_findings(&class);
        fs::remove_file(port.join("gids/1")).expect("own file");
        let without = gid_findings(&class);
        write("link_layer", "InfiniBand\n");
        let infiniband = gid_findings(&class);
        fs::remove_dir_all(&class).expect("own directory");

        let said = with_route[0].to_string();
        assert!(
            said.starts_with("GIDs of irdma0:1: the first one, fe80::"),
            "{said}"
        );
        assert!(
            said.contains("FI_VERBS_GID_IDX=1 makes libfabric use ::ffff:10.0.0.2"),
            "{said}"
        );
        assert!(
            without[0]
                .to_string()
                .contains("give the interface of the port an address")
        );
        assert!(infiniband.is_empty());
    }
}
