//! Where a run takes place: hosts, CPUs, settings, and what makes figures doubtful.

use std::collections::BTreeMap;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::record::{Host, Job, PeInfo, Setting};

/// Beginnings of variables that choose or tune a library and what is below it.
const SETTINGS: &[&str] =
    &["SHMEM_", "SMA_", "UCX_", "FI_", "OMPI_MCA_", "OSHMEM_", "GLIBC_TUNABLES"];
/// Beginnings of those by which launchers tell a PE its place.
const OF_LAUNCHERS: &[&str] = &[
    "SHMEM_LOCAL_ID",
    "OMPI_MCA_orte_",
    "OMPI_MCA_ess",
    "OMPI_MCA_pmix",
    "OMPI_MCA_initial_wdir",
    "OMPI_MCA_mpi_oversubscribe",
    "OMPI_MCA_shmem_RUNTIME",
];

/// What a PE knows of itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Own {
    host: Host,
    cpus: String,
}

/// This PE.
pub fn own() -> Own {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let cpus = field("/proc/self/status", "Cpus_allowed_list").unwrap_or_default();
    let model = field("/proc/cpuinfo", "model name").or_else(|| field("/proc/cpuinfo", "CPU part"));
    Own {
        host: Host {
            name: read("/proc/sys/kernel/hostname"),
            cpu: model.unwrap_or_else(|| std::env::consts::ARCH.into()),
            n_cpus: count(&read("/sys/devices/system/cpu/online")).max(count(&cpus)),
            kernel: read("/proc/sys/kernel/osrelease"),
        },
        cpus,
    }
}

/// The job, of what each PE knows.
pub fn job(all: Vec<Own>) -> Job {
    let mut job = Job { hosts: Vec::new(), pes: Vec::new() };
    let mut places: BTreeMap<String, u32> = BTreeMap::new();
    for own in all {
        let host = *places.entry(own.host.name.clone()).or_insert_with(|| {
            job.hosts.push(own.host.clone());
            job.hosts.len() as u32 - 1
        });
        job.pes.push(PeInfo { host, cpus: own.cpus });
    }
    job
}

/// The environment, as far as it chooses something.
pub fn settings() -> Vec<Setting> {
    let is_one = |name: &String| {
        SETTINGS.iter().any(|start| name.starts_with(start))
            && !OF_LAUNCHERS.iter().any(|start| name.starts_with(start))
    };
    let mut settings: Vec<Setting> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .filter(|(name, _)| is_one(name))
        .map(|(name, value)| Setting {
            name,
            value: value.to_string_lossy().into_owned(),
            origin: "environment".into(),
        })
        .collect();
    settings.sort_by(|a, b| a.name.cmp(&b.name));
    settings
}

/// The transport, where a setting names it.
pub fn transport() -> Option<String> {
    std::env::var("SHMEM_TRANSPORT").ok().filter(|value| !value.is_empty())
}

/// What makes the figures doubtful.
pub fn warnings(job: &Job) -> Vec<String> {
    let mut warnings = Vec::new();
    let check = std::env::var("SHMEM_CHECK").unwrap_or_default();
    if !check.is_empty() && check != "0" {
        warnings.push(format!("SHMEM_CHECK={check}: the library makes checks that cost time."));
    }
    for (index, host) in job.hosts.iter().enumerate() {
        let n_pes = job.pes.iter().filter(|pe| pe.host as usize == index).count();
        if n_pes > host.n_cpus as usize {
            warnings.push(format!(
                "{}: {n_pes} PEs share {} CPUs, so that figures are about the scheduler, too.",
                host.name, host.n_cpus
            ));
        }
    }
    if let Some(host) = job.hosts.first() {
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load = load.split(' ').next().and_then(|load| load.parse::<f64>().ok()).unwrap_or(0.0);
        if load > f64::from(host.n_cpus) {
            warnings.push(format!(
                "{}: other programs run: the load was {load} on {} CPUs when this began.",
                host.name, host.n_cpus
            ));
        }
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

/// The time in UTC as RFC 3339 has it.
pub fn date() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    date_of(since.as_secs())
}

fn date_of(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (mut year, mut day) = (1970, days);
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", day + 1)
}

/// The value of the first line `name: value` of a file.
fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let mut fields = text.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned())
}

/// How many CPUs a list such as `0-3,8` has.
fn count(list: &str) -> u32 {
    let part = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(last.trim().parse::<u32>().ok()? + 1 - first.trim().parse::<u32>().ok()?)
    };
    list.split(',').filter_map(part).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right() {
        assert_eq!(date_of(0), "1970-01-01T00:00:00Z");
        assert_eq!(date_of(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(date_of(1_798_761_599), "2026-12-31T23:59:59Z");
    }

    #[test]
    fn lists_of_cpus_are_counted() {
        assert_eq!((count("0-3,8"), count("5"), count("")), (5, 1, 0));
    }

    #[test]
    fn more_pes_than_cpus_are_warned_of() {
        let host = Host { name: "a".into(), cpu: String::new(), n_cpus: 1, kernel: String::new() };
        let own = Own { host, cpus: "0".into() };
        let job = job(vec![own.clone(), own]);
        assert_eq!(job.hosts.len(), 1);
        assert!(warnings(&job).iter().any(|warning| warning.contains("2 PEs share 1 CPUs")));
    }
}
