//! The hosts of the allocation in which oshrun runs, as Slurm, PBS, LSF and Grid Engine name them
//! in variables and files, and srun as the launch agent for an allocation of Slurm.

use std::ffi::OsString;
use std::process::Command;

use super::list::HostSlots;
use crate::daemons::agent::Agent;
use crate::errors::{StartFailure, cannot, reason};

/// The variable that shows an allocation of Slurm.
const SLURM: &str = "SLURM_JOB_ID";

/// The hosts of an allocation.
#[derive(Debug)]
pub struct Allocation {
    /// The hosts, with the slots of each. A host may be listed several times.
    pub hosts: Vec<HostSlots>,
    /// The variable that shows the allocation.
    pub variable: &'static str,
}

impl Allocation {
    /// Finds the allocation; returns `None` if oshrun does not run in one.
    pub fn find() -> Result<Option<Allocation>, StartFailure> {
        if let Some(hosts) = slurm()? {
            return Ok(Some(Allocation {
                hosts,
                variable: SLURM,
            }));
        }
        batch()
    }

    /// Returns srun as the launch agent, in an allocation of Slurm.
    pub fn agent(&self) -> Option<Agent> {
        if self.variable == SLURM {
            Some(srun())
        } else {
            None
        }
    }
}

/// Returns the nodes of the allocation of Slurm, with the number of tasks that Slurm assigns to
/// each; `None` if oshrun does not run in one.
fn slurm() -> Result<Option<Vec<HostSlots>>, StartFailure> {
    let variable = |name| std::env::var(name).ok();
    let nodes = variable("SLURM_JOB_NODELIST").or_else(|| variable("SLURM_NODELIST"));
    let (Some(_), Some(nodes)) = (variable(SLURM), nodes) else {
        return Ok(None);
    };

    // A node without a number of tasks has one slot, as a host of the user.
    let tasks = per_node(&variable("SLURM_TASKS_PER_NODE").unwrap_or_default());
    let mut hosts = Vec::new();
    for (index, name) in names(&nodes)?.into_iter().enumerate() {
        let slots = tasks.get(index).copied();
        hosts.push(HostSlots { name, slots });
    }
    Ok(Some(hosts))
}

/// Expands a node list of Slurm, such as `node[1-3]`.
fn names(nodes: &str) -> Result<Vec<String>, StartFailure> {
    let output = Command::new("scontrol")
        .args(["show", "hostnames", nodes])
        .output();
    let error = match output {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            return Ok(text.split_whitespace().map(str::to_string).collect());
        }
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_string(),
        Err(error) => reason(&error),
    };
    Err(StartFailure::general(format!(
        "scontrol does not list the nodes of this Slurm allocation ({error}); {}",
        remedy(SLURM)
    )))
}

/// Expands a list of numbers of Slurm: `2(x3),1` is 2, 2, 2, 1.
fn per_node(text: &str) -> Vec<u32> {
    let mut numbers = Vec::new();
    for part in text.split(',') {
        let repeated = part
            .strip_suffix(')')
            .and_then(|part| part.split_once("(x"));
        let (number, times) = repeated.unwrap_or((part, "1"));
        if let Ok(number) = number.parse::<u32>()
            && let Ok(times) = times.parse::<usize>()
        {
            numbers.extend(std::iter::repeat_n(number, times));
        }
    }
    numbers
}

/// Returns srun as the launch agent, with those options that this version of srun supports.
fn srun() -> Agent {
    let help = Command::new("srun")
        .arg("--help")
        .output()
        .map(|output| output.stdout)
        .unwrap_or_default();
    let help = String::from_utf8_lossy(&help);

    let mut options = vec!["--nodes=1", "--ntasks=1", "--mpi=none", "--quiet"];
    // Not every version of srun has these.
    for option in [
        "--overlap",
        "--cpu-bind=none",
        "--kill-on-bad-exit=0",
        "--mem=0",
    ] {
        let name = option.split('=').next().unwrap_or_default();
        if help.contains(name) {
            options.push(option);
        }
    }
    Agent::Slurm(options.into_iter().map(OsString::from).collect())
}

/// The form of a list of hosts.
#[derive(Clone, Copy)]
enum HostList {
    /// A file with a line for each slot: the host.
    LinePerSlot,
    /// A file with a line for each host: the host, its slots, and other fields.
    LinePerHost,
    /// Words in the variable itself: a host and its slots, in turn.
    Pairs,
    /// Words in the variable itself: a host for each slot.
    WordPerSlot,
}

/// The variables of batch systems that hold or name a list of hosts, in the order of precedence.
const LISTS: [(&str, HostList); 5] = [
    ("PBS_NODEFILE", HostList::LinePerSlot),
    ("LSB_DJOB_HOSTFILE", HostList::LinePerSlot),
    ("LSB_MCPU_HOSTS", HostList::Pairs),
    ("LSB_HOSTS", HostList::WordPerSlot),
    ("PE_HOSTFILE", HostList::LinePerHost),
];

/// Returns the hosts of the allocation of PBS, LSF or Grid Engine; `None` if oshrun does not run in
/// one.
fn batch() -> Result<Option<Allocation>, StartFailure> {
    for (variable, list) in LISTS {
        let value = std::env::var(variable).unwrap_or_default();
        if value.trim().is_empty() {
            continue;
        }

        let text = match list {
            HostList::LinePerSlot | HostList::LinePerHost => {
                let what = format!("read the list of hosts {value}, which {variable} names");
                std::fs::read_to_string(&value).map_err(|error| {
                    let mut failure = cannot(&what, &error);
                    failure.sentence += &format!("; {}", remedy(variable));
                    failure
                })?
            }
            HostList::Pairs | HostList::WordPerSlot => value,
        };

        return match hosts(list, &text) {
            Some(hosts) if !hosts.is_empty() => Ok(Some(Allocation { hosts, variable })),
            _ => Err(StartFailure::general(format!(
                "the list of hosts that {variable} gives is not understood; {}",
                remedy(variable)
            ))),
        };
    }
    Ok(None)
}

/// Returns the remedy for a variable that gives no list of hosts, or hosts that cannot be used: it
/// may be left over from an allocation that has ended.
pub fn remedy(variable: &str) -> String {
    format!("name the hosts with -H or --hostfile, or unset {variable} outside of an allocation")
}

/// Parses a list of hosts; `None` if it does not have this form.
fn hosts(list: HostList, text: &str) -> Option<Vec<HostSlots>> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());

    let mut hosts = Vec::new();
    match list {
        HostList::LinePerSlot => {
            for name in lines {
                hosts.push(host(name, "1")?);
            }
        }
        HostList::WordPerSlot => {
            for name in text.split_whitespace() {
                hosts.push(host(name, "1")?);
            }
        }
        HostList::LinePerHost => {
            for line in lines {
                let mut words = line.split_whitespace();
                hosts.push(host(words.next()?, words.next()?)?);
            }
        }
        HostList::Pairs => {
            let words: Vec<&str> = text.split_whitespace().collect();
            let (pairs, rest) = words.as_chunks::<2>();
            if !rest.is_empty() {
                return None;
            }
            for [name, slots] in pairs {
                hosts.push(host(name, slots)?);
            }
        }
    }
    Some(hosts)
}

/// Returns a host; `None` if `slots` is not a number above 0.
fn host(name: &str, slots: &str) -> Option<HostSlots> {
    let slots = slots.parse().ok().filter(|&slots| slots > 0)?;
    Some(HostSlots {
        name: name.to_owned(),
        slots: Some(slots),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_short_form() {
        assert_eq!(per_node("2(x3),1"), [2, 2, 2, 1]);
        assert_eq!(per_node("8"), [8]);
        assert_eq!(per_node(""), Vec::<u32>::new());
    }

    fn read(list: HostList, text: &str) -> Option<Vec<(String, Option<u32>)>> {
        let hosts = super::super::distinct(hosts(list, text)?).into_iter();
        Some(hosts.map(|host| (host.name, host.slots)).collect())
    }

    #[test]
    fn every_form_gives_hosts_and_slots() {
        let two = Some(vec![
            ("node-a".to_owned(), Some(2)),
            ("node-b".to_owned(), Some(1)),
        ]);
        for (list, text) in [
            (HostList::LinePerSlot, "node-a\nnode-b\nnode-a\n\n"),
            (HostList::WordPerSlot, "node-a node-a node-b"),
            (
                HostList::LinePerHost,
                "node-a 2 all.q@node-a UNDEFINED\nnode-b 1 all.q@node-b 0,0\n",
            ),
            (HostList::Pairs, "node-a 2 node-b 1"),
        ] {
            assert_eq!(read(list, text), two, "{text}");
        }

        for (list, text) in [
            (HostList::Pairs, "node-a 2 node-b"),
            (HostList::Pairs, "node-a many"),
            (HostList::LinePerHost, "node-a\n"),
            (HostList::LinePerHost, "node-a 0\n"),
        ] {
            assert_eq!(read(list, text), None, "{text}");
        }
    }
}
