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
    let read = |path: &str| {
        fs::read_to_string(path)
            .unwrap_or_default()
            .trim()
            .to_owned()
    };

    let cpus = field("/proc/self/status", "Cpus_allowed_list").unwrap_or_default();
    let model = field("/proc/cpuinfo", "model name").or_else(|| field("/proc/cpuinfo", "CPU part"));

    PeFacts {
        host: HostInfo {
            name: read("/proc/sys/kernel/hostname"),
            cpu: model.unwrap_or_else(|| std::env::consts::ARCH.into()),
            n_cpus: count(&read("/sys/devices/system/cpu/online")).max(count(&cpus)),
            load: read("/proc/loadavg")
                .split(' ')
                .next()
                .map_or(0.0, |load| load.parse().unwrap_or(0.0)),
            kernel: read("/proc/sys/kernel/osrelease"),
            numa_nodes: listed("/sys/devices/system/node")
                .iter()
                .filter(|path| is_numbered(path, "node"))
                .map(|path| read(&format!("{path}/cpulist")))
                .collect(),
            nics: listed("/sys/class/infiniband")
                .iter()
                .map(|path| nic(path))
                .collect(),
        },
        node,
        cpus,
    }
}

/// Returns the paths of the entries of a directory, shorter ones first, so that `node2` precedes
/// `node10`.
fn listed(dir: &str) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut paths: Vec<String> = entries
        .map(|entry| entry.path().to_string_lossy().into_owned())
        .collect();
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
    let node = fs::read_to_string(format!("{path}/device/numa_node")).unwrap_or_default();
    match node.trim().parse::<u32>() {
        Ok(node) => format!("{name} (NUMA node {node})"),
        Err(_) => name.to_owned(),
    }
}

/// Returns the job, from the facts of all PEs in order. A host is described by its first PE.
pub fn job(all: Vec<PeFacts>) -> JobInfo {
    let mut job = JobInfo {
        hosts: Vec::new(),
        pes: Vec::new(),
    };
    let mut places: BTreeMap<String, u32> = BTreeMap::new();
    for own in all {
        let host = *places.entry(own.host.name.clone()).or_insert_with(|| {
            job.hosts.push(own.host.clone());
            job.hosts.len() as u32 - 1
        });
        job.pes.push(PeInfo {
            host,
            node: Some(own.node),
            cpus: own.cpus,
        });
    }
    job
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
    let mut taken: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); job.hosts.len()];
    let mut full = vec![false; job.hosts.len()];
    let mut places = Vec::new();
    for pe in &job.pes {
        let taken = &mut taken[pe.host as usize];
        let place = cpus(&pe.cpus).find(|cpu| taken.insert(*cpu));
        full[pe.host as usize] |= place.is_none();
        places.push(place);
    }
    for (place, pe) in places.iter_mut().zip(&job.pes) {
        place.take_if(|_| full[pe.host as usize]);
    }
    places
}

/// Returns the environment variables that configure an OpenSHMEM library or the libraries that it
/// uses, sorted by name. Call it before the library is initialized, which may set some itself.
pub fn variables() -> Vec<SettingInfo> {
    let mut variables: Vec<SettingInfo> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .filter(|(name, _)| configures(name))
        .map(|(name, value)| SettingInfo {
            name,
            value: value.to_string_lossy().into_owned(),
            origin: "environment".into(),
        })
        .collect();
    variables.sort_by(|a, b| a.name.cmp(&b.name));
    variables
}

fn configures(name: &str) -> bool {
    let begins = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
    begins(SETTINGS) && !begins(OF_LAUNCHERS)
}

/// Returns the settings that the library reports, and the variables that it does not report.
pub fn settings(reported: Vec<SettingInfo>, variables: &[SettingInfo]) -> Vec<SettingInfo> {
    let is_other =
        |variable: &&SettingInfo| !reported.iter().any(|setting| setting.name == variable.name);
    let others: Vec<_> = variables.iter().filter(is_other).cloned().collect();
    [reported, others].concat()
}

/// Returns the transport that the library has opened, or else `shared memory` if the job is one
/// node, or else the transport that a setting names. For ofi, appends the provider that a setting
/// names.
pub fn transport(open: Option<String>, settings: &[SettingInfo], job: &JobInfo) -> Option<String> {
    // The PEs of a single node need no transport.
    if open.is_none() && job.pes.iter().all(|pe| pe.node == Some(0)) {
        return Some("shared memory".into());
    }
    let value = |name: &str| {
        let setting = settings.iter().find(|setting| setting.name == name)?;
        Some(setting.value.clone()).filter(|value| !value.is_empty() && value != "auto")
    };

    let transport = open.or_else(|| value("SHMEM_TRANSPORT"))?;
    let is_ofi = transport.split(' ').any(|word| word == "ofi");
    match value("SHMEM_OFI_PROVIDER") {
        Some(provider) if is_ofi => Some(format!("{transport} ({provider})")),
        _ => Some(transport),
    }
}

/// Returns the command of the launcher without the program's own: the command of the parent
/// process, if it ends with `command`; otherwise nothing.
pub fn launcher(command: &[String]) -> Vec<String> {
    let words = |file: &str| -> Vec<String> {
        let bytes = fs::read(file).unwrap_or_default();
        let words = bytes
            .split(|&byte| byte == 0)
            .filter(|word| !word.is_empty());
        words
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect()
    };
    let parent = field("/proc/self/status", "PPid").unwrap_or_default();
    before(words(&format!("/proc/{parent}/cmdline")), command)
}

fn before(mut words: Vec<String>, command: &[String]) -> Vec<String> {
    let at = words.len().saturating_sub(command.len());
    // The launcher may have replaced the name of the program by its path.
    let is_program = |word: &String| word.rsplit('/').next() == command[0].rsplit('/').next();
    match words.get(at) {
        Some(program) if at > 0 && is_program(program) && words[at + 1..] == command[1..] => {
            words.truncate(at);
            words
        }
        _ => Vec::new(),
    }
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

    if let Some(host) = job.hosts.first() {
        let governor = fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
        if let Ok(governor) = governor
            && governor.trim() != "performance"
        {
            warnings.push(format!(
                "{}: the CPU's frequency may vary: its governor is {}, not performance.",
                host.name,
                governor.trim()
            ));
        }
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
    let mut fields = text.lines().filter_map(|line| line.split_once(':'));
    fields
        .find(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim().to_owned())
}

/// Returns the CPUs of a list such as `0-3,8`.
fn cpus(list: &str) -> impl Iterator<Item = u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse::<u32>().ok()?..=last.trim().parse().ok()?)
    };
    list.split(',').filter_map(range).flatten()
}

/// Returns the number of CPUs in a list.
fn count(list: &str) -> u32 {
    cpus(list).count() as u32
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
        let pe = |&(host, cpus): &(u32, &str)| PeInfo {
            host,
            node: None,
            cpus: cpus.into(),
        };
        places(&JobInfo {
            hosts: vec![host("a"), host("b")],
            pes: pes.iter().map(pe).collect(),
        })
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
        let job = JobInfo {
            hosts: vec![host("a")],
            pes: vec![pe(0), pe(1)],
        };
        assert_eq!(
            transport(Some("ofi".into()), &ofi, &job).as_deref(),
            Some("ofi (cxi)")
        );
        assert_eq!(
            transport(Some("tcp".into()), &ofi, &job).as_deref(),
            Some("tcp")
        );
        assert_eq!(transport(None, &ofi, &job), None);
        let one_node = JobInfo {
            pes: job.pes[..1].to_vec(),
            ..job.clone()
        };
        assert_eq!(
            transport(None, &ofi, &one_node).as_deref(),
            Some("shared memory")
        );
        let named = [setting("SHMEM_TRANSPORT", "ucx")];
        assert_eq!(transport(None, &named, &job).as_deref(), Some("ucx"));
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
        let launched = |text: &str| before(words(text), &command).join(" ");
        assert_eq!(launched("oshrun -n 2 shmem-perf --time 3"), "oshrun -n 2");
        assert_eq!(launched("oshrun -n 2 shmem-perf --time 4"), "");
        assert_eq!(launched("bash -l"), "");
        assert_eq!(launched("shmem-perf --time 3"), "");
    }

    #[test]
    fn lists_of_cpus_are_counted() {
        assert_eq!((count("0-3,8"), count("5"), count("")), (5, 1, 0));
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
        let host = HostInfo {
            n_cpus: 1,
            ..host("a")
        };
        let own = PeFacts {
            host,
            node: 0,
            cpus: "0".into(),
        };
        let job = job(vec![own.clone(), own]);
        assert_eq!(job.hosts.len(), 1);
        assert!(
            warnings(&job)
                .iter()
                .any(|warning| warning.contains("2 PEs share 1 CPUs"))
        );
    }
}
