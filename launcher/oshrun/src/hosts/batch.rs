//! The hosts of an allocation of PBS, LSF or Grid Engine in which oshrun runs, as these systems
//! name them in variables and files.

use super::slots::HostSlots;
use crate::report::failure::{StartFailure, cannot};

/// The way in which a batch system lists hosts.
#[derive(Clone, Copy)]
enum HostList {
    /// A file with a line for each slot: the host.
    LinePerSlot,
    /// A file with a line for each host: the host, its slots, and more.
    LinePerHost,
    /// Words: a host and its slots, in turn.
    Pairs,
    /// Words: a host for each slot.
    WordPerSlot,
}

/// The variables with such lists, in the order in which they count, and those that a job of the
/// same system has besides.
const LISTS: [(&str, HostList); 5] = [
    ("PBS_NODEFILE", HostList::LinePerSlot),
    ("LSB_DJOB_HOSTFILE", HostList::LinePerSlot),
    ("LSB_MCPU_HOSTS", HostList::Pairs),
    ("LSB_HOSTS", HostList::WordPerSlot),
    ("PE_HOSTFILE", HostList::LinePerHost),
];

/// Returns the hosts of the allocation with the slots of each; `None` outside of one. A host may be
/// listed several times.
pub fn allocation() -> Result<Option<Vec<HostSlots>>, StartFailure> {
    for (name, list) in LISTS {
        let Some(value) = std::env::var(name).ok().filter(|value| !value.trim().is_empty()) else {
            continue;
        };
        let text = match list {
            HostList::LinePerSlot | HostList::LinePerHost => {
                let what = format!("read the list of hosts {value}, which {name} names");
                std::fs::read_to_string(&value).map_err(|error| cannot(&what, &error))?
            }
            HostList::Pairs | HostList::WordPerSlot => value,
        };
        return match hosts(list, &text) {
            Some(hosts) if !hosts.is_empty() => Ok(Some(hosts)),
            // Cause: the variable is left from another job, or of another program.
            _ => Err(StartFailure::general(format!(
                "the list of hosts that {name} gives is not understood; name the hosts with -H or --hostfile, or unset it"
            ))),
        };
    }
    Ok(None)
}

/// Returns the hosts of a list; `None` if it has another form.
fn hosts(list: HostList, text: &str) -> Option<Vec<HostSlots>> {
    let host = |name: &str, slots| HostSlots { name: name.to_owned(), slots: Some(slots) };
    let number = |text: &str| text.parse().ok().filter(|&slots: &u32| slots > 0);
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    match list {
        HostList::LinePerSlot => Some(lines().map(|line| host(line, 1)).collect()),
        HostList::WordPerSlot => Some(text.split_whitespace().map(|name| host(name, 1)).collect()),
        HostList::LinePerHost => lines()
            .map(|line| {
                let mut words = line.split_whitespace();
                Some(host(words.next()?, number(words.next()?)?))
            })
            .collect(),
        HostList::Pairs => {
            let words: Vec<&str> = text.split_whitespace().collect();
            let (pairs, rest) = words.as_chunks::<2>();
            let pairs = pairs.iter().map(|[name, slots]| Some(host(name, number(slots)?)));
            if rest.is_empty() { pairs.collect() } else { None }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(list: HostList, text: &str) -> Option<Vec<(String, Option<u32>)>> {
        let hosts = super::super::slots::distinct(hosts(list, text)?);
        Some(hosts.into_iter().map(|host| (host.name, host.slots)).collect())
    }

    #[test]
    fn every_form_gives_hosts_and_slots() {
        let two = Some(vec![("node-a".to_owned(), Some(2)), ("node-b".to_owned(), Some(1))]);
        for (list, text) in [
            (HostList::LinePerSlot, "node-a\nnode-b\nnode-a\n\n"),
            (HostList::WordPerSlot, "node-a node-a node-b"),
            (HostList::LinePerHost, "node-a 2 all.q@node-a UNDEFINED\nnode-b 1 all.q@node-b 0,0\n"),
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
