//! The hosts of a job, and the number of PEs on each.
//!
//! Without a list of hosts, a job runs on the nodes of the allocation of Slurm, PBS, LSF or Grid
//! Engine, or else on this machine.

pub mod allocation;
mod list;

use std::net::{IpAddr, UdpSocket};

use self::allocation::Allocation;
use self::list::HostSlots;
use crate::daemons::agent::Agent;
use crate::daemons::connection::HostPes;
use crate::errors::{StartFailure, cannot};
use crate::options::Options;
use rushmem_system::host::host_name;

/// The hosts of a job.
#[derive(Debug)]
pub struct Hosts {
    /// Each host and its PEs, in ascending order and without gaps.
    pub parts: Vec<HostPes>,
    /// The index of this machine, if it has PEs.
    pub local: Option<usize>,
    /// The launch agent for the other hosts.
    pub agent: Agent,
    /// The variable of the allocation that has the hosts; `None` if the user has named them.
    pub allocated_by: Option<&'static str>,
}

/// Finds the hosts, and distributes the PEs to them. Without `-n`, there is one PE per slot.
pub fn find(options: &Options) -> Result<Hosts, StartFailure> {
    let named_agent = options.launch_agent.clone();
    let mut agent = named_agent.map(|command| Agent::Remote(command.words));
    let mut allocated_by = None;
    let hosts = if let Some(hosts) = named(options)? {
        hosts
    } else if let Some(allocation) = Allocation::find()? {
        // `Allocation::agent` runs srun, so it is called only if the user has named no agent.
        agent = agent.or_else(|| allocation.agent());
        allocated_by = Some(allocation.variable);
        allocation.hosts
    } else {
        vec![HostSlots {
            name: host_name(),
            slots: None,
        }]
    };

    let is_strict = allocated_by.is_none();
    let parts = distribute(distinct(hosts), options.n_pes, options.ppn, is_strict)
        .map_err(StartFailure::usage)?;
    let local = parts.iter().position(|part| is_own(&part.host));
    Ok(Hosts {
        parts,
        local,
        agent: agent.unwrap_or_else(Agent::ssh),
        allocated_by,
    })
}

/// Returns the hosts that the user has named, if any.
fn named(options: &Options) -> Result<Option<Vec<HostSlots>>, StartFailure> {
    let hosts = match (&options.hosts, &options.hostfile) {
        (Some(_), Some(_)) => Err("use either -H or --hostfile, not both".to_string()),
        (Some(text), None) => list::parse_option("-H", text),
        (None, Some(file)) => {
            let shown = file.display().to_string();
            let text = std::fs::read_to_string(file)
                .map_err(|error| cannot(&format!("read the list of hosts {shown}"), &error))?;
            list::parse_file(&shown, &text)
        }
        (None, None) => return Ok(None),
    };
    hosts.map(Some).map_err(StartFailure::usage)
}

/// Returns each host once. A host that is listed twice is one node with the slots of both entries.
fn distinct(listed: Vec<HostSlots>) -> Vec<HostSlots> {
    let mut hosts: Vec<HostSlots> = Vec::new();
    for entry in listed {
        // This machine has several names.
        let known = hosts
            .iter_mut()
            .find(|host| host.name == entry.name || is_own(&host.name) && is_own(&entry.name));
        match known {
            Some(host) => {
                let before = host.slots.unwrap_or(1);
                host.slots = Some(before.saturating_add(entry.slots.unwrap_or(1)));
            }
            None => hosts.push(entry),
        }
    }
    hosts
}

/// Returns true if a host is this machine.
fn is_own(host: &str) -> bool {
    if host == "localhost" || is_same_name(host, &host_name()) {
        return true;
    }

    // Slurm may know the machine by another name than the machine itself.
    if std::env::var("SLURMD_NODENAME").is_ok_and(|name| name == host) {
        return true;
    }

    // A socket can be bound only to an address of this machine.
    match host.parse::<IpAddr>() {
        Ok(address) => UdpSocket::bind((address, 0)).is_ok(),
        Err(_) => false,
    }
}

/// Returns true if two names are equal, or equal without the domain that one of them lacks.
fn is_same_name(one: &str, other: &str) -> bool {
    let both_have_domains = one.contains('.') && other.contains('.');
    one == other || (!both_have_domains && one.split('.').next() == other.split('.').next())
}

/// Distributes PEs to hosts, in blocks and in order. Returns the hosts that have PEs.
///
/// A host without a number of slots has one; `per_host` replaces all these numbers. Without
/// `n_pes`, there is one PE per slot. Otherwise one host after the other is filled up to its slots.
/// If no host has a number of slots, or if there are more PEs than slots, the PEs are distributed
/// evenly, and the first hosts may get one more than the others.
///
/// # Errors
/// If there are more PEs than slots, and the slots are a limit: with `is_strict`, because the user
/// has specified them, or with `per_host`. The slots of an allocation are not a limit. Also if a PE
/// number would exceed a `u32`.
fn distribute(
    mut nodes: Vec<HostSlots>,
    n_pes: Option<u32>,
    per_host: Option<u32>,
    is_strict: bool,
) -> Result<Vec<HostPes>, String> {
    if per_host.is_some() {
        for node in &mut nodes {
            node.slots = per_host;
        }
    }

    let has_slots = nodes.iter().any(|node| node.slots.is_some());
    let slots: Vec<u32> = nodes.iter().map(|node| node.slots.unwrap_or(1)).collect();
    let total: u64 = slots.iter().map(|slots| u64::from(*slots)).sum();
    let counts = match n_pes {
        None => slots,
        Some(n_pes) if has_slots && u64::from(n_pes) <= total => filled(n_pes, &slots),
        Some(n_pes) if has_slots && (is_strict || per_host.is_some()) => {
            return Err(format!(
                "{n_pes} PEs do not fit the {total} slots of the hosts; give the hosts more slots, or start fewer PEs"
            ));
        }
        Some(n_pes) => spread(n_pes, nodes.len() as u32),
    };

    let mut first = 0_u32;
    let mut parts = Vec::new();
    for (node, count) in nodes.into_iter().zip(counts) {
        if count == 0 {
            continue;
        }

        let end = first
            .checked_add(count)
            .ok_or("a job has fewer than 2^32 PEs")?;
        parts.push(HostPes {
            host: node.name,
            pes: first..end,
        });
        first = end;
    }
    Ok(parts)
}

/// Fills one host after the other up to its slots.
fn filled(n_pes: u32, slots: &[u32]) -> Vec<u32> {
    let mut left = n_pes;
    let mut counts = Vec::new();
    for slots in slots {
        let count = left.min(*slots);
        left -= count;
        counts.push(count);
    }
    counts
}

/// Returns the same number for every host, and one more for the first hosts.
fn spread(n_pes: u32, n_hosts: u32) -> Vec<u32> {
    let mut counts = vec![n_pes / n_hosts; n_hosts as usize];
    for count in counts.iter_mut().take((n_pes % n_hosts) as usize) {
        *count += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_several_names() {
        assert!(
            is_own("localhost") && is_own("127.0.0.1") && is_own("::1") && is_own(&host_name())
        );
        assert!(!is_own("192.0.2.1") && !is_own("no-such-host"));
        assert!(is_same_name("a", "a.example.org") && is_same_name("a.example.org", "a"));
        assert!(!is_same_name("a.example.org", "a.example.net") && !is_same_name("a", "b"));
    }

    fn distributed(
        hosts: &str,
        n_pes: Option<u32>,
        per_host: Option<u32>,
        is_strict: bool,
    ) -> Result<String, String> {
        let hosts = super::list::parse_option("-H", hosts).expect("hosts");
        let parts = distribute(distinct(hosts), n_pes, per_host, is_strict)?;
        let shown = |part: &HostPes| format!("{}:{}-{}", part.host, part.pes.start, part.pes.end);
        Ok(parts.iter().map(shown).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn pes_go_to_hosts_in_blocks() {
        for (hosts, n_pes, per_host, expected) in [
            ("a:4,b:4", None, None, "a:0-4 b:4-8"),
            ("a:4,b:4", Some(6), None, "a:0-4 b:4-6"),
            ("a:4,b:4", Some(3), None, "a:0-3"),
            ("a,b", None, None, "a:0-1 b:1-2"),
            ("a,b,c", Some(5), None, "a:0-2 b:2-4 c:4-5"),
            ("a,b,c", Some(2), None, "a:0-1 b:1-2"),
            ("a:2,b", Some(3), None, "a:0-2 b:2-3"),
            ("a:2,b,a:2", None, None, "a:0-4 b:4-5"),
            ("a,b,a", Some(3), None, "a:0-2 b:2-3"),
            ("a:9,b", None, Some(2), "a:0-2 b:2-4"),
            ("a,b", Some(3), Some(2), "a:0-2 b:2-3"),
        ] {
            let parts = distributed(hosts, n_pes, per_host, true);
            assert_eq!(parts.as_deref(), Ok(expected), "{hosts}");
        }
    }

    #[test]
    fn slots_of_the_user_are_a_limit_and_others_are_not() {
        let error = distributed("a:2,b:1", Some(4), None, true).expect_err("too many");
        assert!(error.starts_with("4 PEs do not fit the 3 slots"), "{error}");
        assert!(distributed("a,b", Some(5), Some(2), true).is_err());
        assert!(distributed("a:1,b:1", Some(5), Some(2), false).is_err());
        assert_eq!(
            distributed("a:1,b:1", Some(5), None, false).as_deref(),
            Ok("a:0-3 b:3-5")
        );
        assert!(distributed("a:4294967295,b:1", None, None, true).is_err());
    }
}
