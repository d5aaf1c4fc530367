//! Describes the environment of a run: hosts, CPUs, settings, the launcher, and warnings about
//! conditions that make figures doubtful.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::record::{HostInfo, JobInfo, PeInfo, SettingInfo};

/// The maximum number of hosts of a kind that are listed by name; the others are counted.
const MOST_HOSTS: usize = 8;
/// Prefixes of variables that configure a library and the libraries below it.
const SETTINGS: &[&str] = &[
    "SHMEM_",
    "SMA_",
    "UCX_",
    "FI_",
    "OMPI_MCA_",
    "OSHMEM_",
    "GLIBC_TUNABLES",
];
/// Prefixes of variables that begin like settings, but by which launchers tell a PE about its job.
const OF_LAUNCHERS: &[&str] = &[
    "SHMEM_LOCAL_ID",
    "SHMEM_TRY",
    "OMPI_MCA_orte_",
    "OMPI_MCA_ess",
    "OMPI_MCA_pmix",
    "OMPI_MCA_initial_wdir",
    "OMPI_MCA_mpi_oversubscribe",
    "OMPI_MCA_shmem_RUNTIME",
];

/// The facts that a PE finds about itself and its host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PeFacts {
    host: HostInfo,
    node: u32,
    cpus: String,
}

/// Returns the facts about this PE, whose node has `node` as its lowest PE.
pub fn pe_facts(node: u32) -> PeFacts {
    let cpus = field("/proc/self/status", "Cpus_allowed_list").unwrap_or_default();

    // The kernel for AArch64 names no model, only the number of the CPU part.
    let model = field("/proc/cpuinfo", "model name")
        .or_else(|| field("/proc/cpuinfo", "CPU part"))
        .unwrap_or_else(|| std::env::consts::ARCH.into());

    // Without /sys, as in some containers, the first number is 0.
    let n_cpus = count(&contents("/sys/devices/system/cpu/online")).max(count(&cpus));

    // The first word is the mean of the last minute.
    let load_averages = contents("/proc/loadavg");
    let load = load_averages.split(' ').next().unwrap_or_default();

    let mut numa_nodes = Vec::new();
    for path in listed("/sys/devices/system/node") {
        if is_numbered(&path, "node") {
            numa_nodes.push(contents(&format!("{path}/cpulist")));
        }
    }

    let nics = listed("/sys/class/infiniband");
    PeFacts {
        host: HostInfo {
            name: contents("/proc/sys/kernel/hostname"),
            cpu: model,
            n_cpus,
            load: load.parse().unwrap_or(0.0),
            kernel: contents("/proc/sys/kernel/osrelease"),
            numa_nodes,
            nics: nics.iter().map(|path| nic(path)).collect(),
        },
        node,
        cpus,
    }
}

/// Returns the text of a file of the kernel without its last newline; an empty text if the machine
/// lacks the file.
fn contents(path: &str) -> String {
    fs::read_to_string(path)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// Returns the paths of the entries of a directory, shorter ones first, so that `node2` precedes
/// `node10`.
fn listed(dir: &str) -> Vec<String> {
    // A machine without such devices has no such directory.
    let Ok(entries) = fs::read_dir(dir) else {
        return Vec::new();
    };

    let mut paths = Vec::new();
    for entry in entries.flatten() {
        paths.push(entry.path().to_string_lossy().into_owned());
    }
    paths.sort_by_key(|path| (path.len(), path.clone()));
    paths
}

/// Returns true if the last part of a path is a name and a number, as in `node0`.
fn is_numbered(path: &str, name: &str) -> bool {
    let last = path.rsplit('/').next().unwrap_or_default();
    last.strip_prefix(name)
        .is_some_and(|number| number.parse::<u32>().is_ok())
}

fn nic(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    match contents(&format!("{path}/device/numa_node")).parse::<u32>() {
        Ok(node) => format!("{name} (NUMA node {node})"),
        // The kernel writes -1 where it does not know the node.
        Err(_) => name.to_owned(),
    }
}

/// Returns the job, from the facts of all PEs in order. A host is described by its first PE.
pub fn job(all: Vec<PeFacts>) -> JobInfo {
    let mut hosts = Vec::new();
    let mut pes = Vec::new();
    let mut index_by_name: BTreeMap<String, u32> = BTreeMap::new();
    for facts in all {
        let next = hosts.len() as u32;
        let host = *index_by_name.entry(facts.host.name.clone()).or_insert(next);
        if host == next {
            hosts.push(facts.host);
        }
        pes.push(PeInfo {
            host,
            node: Some(facts.node),
            cpus: facts.cpus,
        });
    }
    JobInfo { hosts, pes }
}

/// Describes the hosts of a job in words. Hosts with the same hardware and kernel are listed
/// together.
pub fn hosts(job: &JobInfo) -> String {
    let mut kinds: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for host in &job.hosts {
        let parts = match host.numa_nodes.len() {
            0 | 1 => String::new(),
            n => format!(" in {n} NUMA nodes"),
        };
        let nics = match host.nics.as_slice() {
            [] => String::new(),
            nics => format!(", NICs {}", nics.join(", ")),
        };
        let kind = format!(
            "{}, {} CPUs{parts}{nics}, Linux {}",
            host.cpu, host.n_cpus, host.kernel
        );
        kinds.entry(kind).or_default().push(&host.name);
    }

    let mut texts = Vec::new();
    for (kind, names) in kinds {
        let listed = names.len().min(MOST_HOSTS);
        let more = match names.len() - listed {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        texts.push(format!("{}{more} ({kind})", names[..listed].join(", ")));
    }
    texts.join("; ")
}

/// Returns for each PE a CPU of its own among those that its launcher lets it use; `None` for the
/// PEs of a host on which not every PE gets one.
pub fn places(job: &JobInfo) -> Vec<Option<u32>> {
    let mut taken_by_host: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); job.hosts.len()];
    let mut full_hosts = BTreeSet::new();
    let mut places = Vec::new();
    for pe in &job.pes {
        let taken = &mut taken_by_host[pe.host as usize];
        let free = cpus(&pe.cpus).into_iter().find(|cpu| !taken.contains(cpu));
        match free {
            Some(cpu) => taken.insert(cpu),
            None => full_hosts.insert(pe.host),
        };
        places.push(free);
    }

    // A PE without a place would run on the CPU of one that has a place and cannot leave it.
    for (place, pe) in places.iter_mut().zip(&job.pes) {
        if full_hosts.contains(&pe.host) {
            *place = None;
        }
    }
    places
}

/// Returns the environment variables that configure an OpenSHMEM library or the libraries that it
/// uses, sorted by name. Call it before the library is initialized, which may set some itself.
pub fn variables() -> Vec<SettingInfo> {
    let mut variables = Vec::new();
    for (name, value) in std::env::vars_os() {
        // The name of a setting is ASCII.
        if let Ok(name) = name.into_string()
            && configures(&name)
        {
            variables.push(SettingInfo {
                name,
                value: value.to_string_lossy().into_owned(),
                origin: "environment".into(),
            });
        }
    }
    variables.sort_by(|a, b| a.name.cmp(&b.name));
    variables
}

fn configures(name: &str) -> bool {
    has_prefix(name, SETTINGS) && !has_prefix(name, OF_LAUNCHERS)
}

fn has_prefix(name: &str, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}

/// Returns the settings that the library reports, and the variables that it does not report.
pub fn settings(reported: Vec<SettingInfo>, variables: &[SettingInfo]) -> Vec<SettingInfo> {
    let mut settings = reported;
    let n_reported = settings.len();
    for variable in variables {
        let reported = &settings[..n_reported];
        if !reported.iter().any(|setting| setting.name == variable.name) {
            settings.push(variable.clone());
        }
    }
    settings
}

/// Returns the transport that the library has opened, or else `shared memory` if the job is one
/// node, or else the transport that a setting names. For ofi, appends the provider that a setting
/// names.
pub fn transport(open: Option<String>, settings: &[SettingInfo], job: &JobInfo) -> Option<String> {
    // The PEs of a single node need no transport.
    if open.is_none() && job.pes.iter().all(|pe| pe.node == Some(0)) {
        return Some("shared memory".into());
    }
    let transport = open.or_else(|| choice(settings, "SHMEM_TRANSPORT"))?;
    let is_ofi = transport.split(' ').any(|word| word == "ofi");
    match choice(settings, "SHMEM_OFI_PROVIDER") {
        Some(provider) if is_ofi => Some(format!("{transport} ({provider})")),
        _ => Some(transport),
    }
}

/// Returns the value of a setting; `None` if it is unset or leaves the choice to the library.
fn choice(settings: &[SettingInfo], name: &str) -> Option<String> {
    let setting = settings.iter().find(|setting| setting.name == name)?;
    match setting.value.as_str() {
        "" | "auto" => None,
        value => Some(value.to_owned()),
    }
}

/// Returns the command of the launcher without the program's own: the command of the parent
/// process, if it ends with `command`; otherwise nothing.
pub fn launcher(command: &[String]) -> Vec<String> {
    let parent = field("/proc/self/status", "PPid").unwrap_or_default();
    // If the kernel hides the processes of other users, their launcher remains unknown.
    let bytes = fs::read(format!("/proc/{parent}/cmdline")).unwrap_or_default();

    // Each word ends with a 0.
    let mut words = Vec::new();
    for word in bytes.split(|&byte| byte == 0) {
        if !word.is_empty() {
            words.push(String::from_utf8_lossy(word).into_owned());
        }
    }
    words_before(words, command)
}

/// Returns the words without `command` at their end; nothing if they do not end with it, or are
/// nothing else.
fn words_before(mut words: Vec<String>, command: &[String]) -> Vec<String> {
    let n_before = words.len().saturating_sub(command.len());
    let end = &words[n_before..];
    let ends_with_command = n_before > 0
        // The launcher may have replaced the name of the program by its path.
        && end[0].rsplit('/').next() == command[0].rsplit('/').next()
        && end[1..] == command[1..];
    if !ends_with_command {
        return Vec::new();
    }

    words.truncate(n_before);
    words
}

/// Returns the conditions that make figures doubtful, one sentence each. Those of variables and of
/// the frequency governor are read on the PE that calls it.
pub fn warnings(job: &JobInfo) -> Vec<String> {
    let mut warnings = Vec::new();
    for (name, what) in [
        ("SHMEM_CHECK", "makes checks that cost time"),
        ("SHMEM_STATS", "counts each operation, which costs time"),
        ("SHMEM_TRACE", "records each operation, which costs time"),
    ] {
        let value = std::env::var(name).unwrap_or_default();
        if !value.is_empty() && value != "0" {
            warnings.push(format!("{name}={value}: the library {what}."));
        }
    }

    for (host, n_pes) in job.hosts.iter().zip(job.pes_by_host()) {
        let n_cpus = host.n_cpus;
        let shared = if n_pes > n_cpus {
            format!("{n_pes} PEs share {n_cpus} CPUs")
        } else if host.is_loaded() {
            format!("the CPUs were shared (load {:.0} on {n_cpus})", host.load)
        } else {
            continue;
        };
        let name = &host.name;
        warnings.push(format!("{name}: {shared}: times measure the scheduler."));
    }

    // A virtual machine often has no governor.
    let governor = contents("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    if let Some(host) = job.hosts.first()
        && !governor.is_empty()
        && governor != "performance"
    {
        warnings.push(format!(
            "{}: the CPU's frequency may vary: its governor is {governor}, not performance.",
            host.name
        ));
    }
    warnings
}

/// Returns the current time in UTC, formatted as in RFC 3339.
pub fn date() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

/// Returns the value of the first line `name: value` of a file.
fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    for line in text.lines() {
        if let Some((key, value)) = line.split_once(':')
            && key.trim() == name
        {
            return Some(value.trim().to_owned());
        }
    }
    None
}

/// Returns the CPUs of a list such as `0-3,8`. Parts that are no numbers are skipped.
fn cpus(list: &str) -> Vec<u32> {
    let mut cpus = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.trim().parse::<u32>(), last.trim().parse()) {
            cpus.extend(first..=last);
        }
    }
    cpus
}

/// Returns the number of CPUs in a list.
fn count(list: &str) -> u32 {
    cpus(list).len() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str) -> HostInfo {
        HostInfo {
            name: name.into(),
            cpu: String::new(),
            n_cpus: 2,
            load: 0.0,
            kernel: String::new(),
            numa_nodes: Vec::new(),
            nics: Vec::new(),
        }
    }

    /// Returns the places of PEs on these hosts, which may use these CPUs.
    fn places_of(pes: &[(u32, &str)]) -> Vec<Option<u32>> {
        let mut job = JobInfo {
            hosts: vec![host("a"), host("b")],
            pes: Vec::new(),
        };
        for &(host, cpus) in pes {
            job.pes.push(PeInfo {
                host,
                node: None,
                cpus: cpus.into(),
            });
        }
        places(&job)
    }

    #[test]
    fn pes_get_cpus_where_there_are_enough() {
        let two = "0-1";
        assert_eq!(
            places_of(&[(0, two), (1, two), (0, two), (1, two), (1, two)]),
            [Some(0), None, Some(1), None, None]
        );
        assert_eq!(places_of(&[(0, ""), (1, two)]), [None, Some(0)]);
    }

    #[test]
    fn pes_stay_on_the_cpus_that_their_launcher_gives_them() {
        assert_eq!(
            places_of(&[(0, "4-5"), (0, "4-5"), (0, "8"), (0, "6,10")]),
            [Some(4), Some(5), Some(8), Some(6)]
        );
        assert_eq!(
            places_of(&[(0, "3"), (0, "3"), (1, "3")]),
            [None, None, Some(3)]
        );
    }

    fn setting(name: &str, value: &str) -> SettingInfo {
        SettingInfo {
            name: name.into(),
            value: value.into(),
            origin: "default".into(),
        }
    }

    #[test]
    fn the_open_transport_counts_before_the_setting() {
        let ofi = [
            setting("SHMEM_TRANSPORT", "auto"),
            setting("SHMEM_OFI_PROVIDER", "cxi"),
        ];
        let pe = |node| PeInfo {
            host: 0,
            node: Some(node),
            cpus: String::new(),
        };
        let two_nodes = JobInfo {
            hosts: vec![host("a")],
            pes: vec![pe(0), pe(1)],
        };
        let one_node = JobInfo {
            hosts: vec![host("a")],
            pes: vec![pe(0)],
        };

        let over_ofi = transport(Some("ofi".into()), &ofi, &two_nodes);
        assert_eq!(over_ofi.as_deref(), Some("ofi (cxi)"));
        let over_tcp = transport(Some("tcp".into()), &ofi, &two_nodes);
        assert_eq!(over_tcp.as_deref(), Some("tcp"));
        assert_eq!(transport(None, &ofi, &two_nodes), None);
        let on_node = transport(None, &ofi, &one_node);
        assert_eq!(on_node.as_deref(), Some("shared memory"));

        let ucx = [setting("SHMEM_TRANSPORT", "ucx")];
        let named = transport(None, &ucx, &two_nodes);
        assert_eq!(named.as_deref(), Some("ucx"));
    }

    #[test]
    fn what_a_launcher_sets_is_no_setting() {
        let names = [
            "SHMEM_TRANSPORT",
            "UCX_TLS",
            "SHMEM_TRY",
            "SHMEM_LOCAL_ID",
            "HOME",
        ];
        assert_eq!(names.map(configures), [true, true, false, false, false]);
    }

    #[test]
    fn what_the_library_reports_is_not_repeated() {
        let [reported, other] = [setting("SHMEM_X", "1"), setting("UCX_TLS", "tcp")];
        let variables = [setting("SHMEM_X", "2"), other.clone()];
        assert_eq!(
            settings(vec![reported.clone()], &variables),
            [reported, other]
        );
    }

    #[test]
    fn the_launcher_is_what_stands_before_the_command() {
        let words = |text: &str| text.split(' ').map(String::from).collect::<Vec<_>>();
        let command = words("/opt/bin/shmem-perf --time 3");
        let launched = |text: &str| words_before(words(text), &command).join(" ");
        assert_eq!(launched("oshrun -n 2 shmem-perf --time 3"), "oshrun -n 2");
        assert_eq!(launched("oshrun -n 2 shmem-perf --time 4"), "");
        assert_eq!(launched("bash -l"), "");
        assert_eq!(launched("shmem-perf --time 3"), "");
    }

    #[test]
    fn lists_of_cpus_are_counted() {
        assert_eq!(["0-3,8", "5", ""].map(count), [5, 1, 0]);
    }

    #[test]
    fn more_pes_than_cpus_are_warned_of() {
        let busy = HostInfo {
            load: 17.2,
            ..host("b")
        };
        let loaded = JobInfo {
            hosts: vec![busy],
            pes: Vec::new(),
        };
        let expected = "b: the CPUs were shared (load 17 on 2): times measure the scheduler.";
        assert!(warnings(&loaded).iter().any(|warning| warning == expected));

        let facts = PeFacts {
            host: HostInfo {
                n_cpus: 1,
                ..host("a")
            },
            node: 0,
            cpus: "0".into(),
        };
        let job = job(vec![facts.clone(), facts]);
        assert_eq!(job.hosts.len(), 1);
        let text = warnings(&job).join("\n");
        assert!(text.contains("2 PEs share 1 CPUs"), "{text}");
    }
}
