//! The hosts on which a job can be started: those of the list that are not lost, and the spare ones.

use std::collections::{BTreeSet, VecDeque};

use super::distribute::distribute;
use super::host::HostSlots;
use super::{Hosts, own};
use crate::failure::StartFailure;
use crate::tree::agent::Agent;

/// The hosts for all tries of a job.
#[derive(Debug)]
pub struct HostPool {
    /// Those that get PEs, as far as there are PEs for them.
    pub(super) hosts: Vec<HostSlots>,
    /// Those that replace lost ones.
    pub(super) spares: VecDeque<HostSlots>,
    pub(super) agent: Agent,
    /// The number of PEs, unless the slots determine it.
    pub(super) n_pes: Option<u32>,
    /// The maximum number of PEs on each host.
    pub(super) per_host: Option<u32>,
    /// Whether there may not be more PEs than slots.
    pub(super) is_strict: bool,
}

impl HostPool {
    /// Distributes the PEs. Their number stays the same from the first time on.
    pub fn distribute(&mut self) -> Result<Hosts, StartFailure> {
        if self.hosts.is_empty() {
            // Cause: all hosts are lost. Remedy: name spare ones with `--spare`.
            return Err(StartFailure::general("no host is left".to_string()));
        }
        let parts = distribute(self.hosts.clone(), self.n_pes, self.per_host, self.is_strict)
            .map_err(StartFailure::usage)?;
        self.n_pes = parts.last().map(|part| part.pes.end);
        let own = parts.iter().position(|part| own::is_own(&part.host));
        Ok(Hosts { parts, own, agent: self.agent.clone() })
    }

    /// Removes lost hosts and puts a spare one in the place of each, so that the other hosts keep
    /// their PEs. A spare host without a number of slots gets those of the lost one. More spare ones
    /// follow if the slots do not suffice. Returns the names of the spare hosts.
    pub fn replace(&mut self, lost: &BTreeSet<String>) -> Vec<String> {
        let mut used = Vec::new();
        for host in std::mem::take(&mut self.hosts) {
            if !lost.contains(&host.name) {
                self.hosts.push(host);
            } else if let Some(HostSlots { name, slots }) = self.spares.pop_front() {
                used.push(name.clone());
                self.hosts.push(HostSlots { name, slots: slots.or(host.slots) });
            }
        }
        while self.distribute().is_err()
            && let Some(spare) = self.spares.pop_front()
        {
            used.push(spare.name.clone());
            self.hosts.push(spare);
        }
        used
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::{HostOptions, find};

    fn pool(list: &str, spare: &str, n_pes: Option<u32>) -> Result<HostPool, StartFailure> {
        let (list, spare) = (Some(list.to_string()), Some(spare.to_string()));
        find(&HostOptions { list, spare, ..HostOptions::default() }, n_pes)
    }

    fn shown(pool: &mut HostPool) -> String {
        match pool.distribute() {
            Ok(Hosts { parts, .. }) => {
                let shown = parts.iter().map(|part| format!("{}:{}", part.host, part.pes.end));
                shown.collect::<Vec<_>>().join(" ")
            }
            Err(failure) => failure.sentence,
        }
    }

    #[test]
    fn spare_hosts_replace_lost_ones_and_the_others_keep_their_pes() {
        for (list, spare, n_pes, lost, used, expected) in [
            ("a:2,b:2,c:2", "d", None, "b", "d", "a:2 d:4 c:6"),
            ("a:2,b:2,c:2", "1", None, "a", "c", "c:2 b:4"),
            ("a:2,b:2,c:2", "2", Some(2), "a", "b", "b:2"),
            ("a,b", "c,d", Some(5), "a b", "c d", "c:3 d:5"),
            ("a:4,b:4", "c:2,d:1,e:2", None, "b", "c d e", "a:4 c:6 d:7 e:8"),
            ("a,b,c", "0", None, "c", "", "a:2 b:3"),
            ("a:2,b:2,c:2", "0", Some(4), "a", "", "b:2 c:4"),
            ("a:2,b:2", "0", None, "b", "", "4 PEs do not fit the 2 slots of the hosts; give"),
            ("a,b", "0", None, "a b", "", "no host is left"),
        ] {
            let mut pool = pool(list, spare, n_pes).expect(list);
            shown(&mut pool);
            let lost = lost.split(' ').map(String::from).collect();
            assert_eq!(pool.replace(&lost).join(" "), used, "{list} {spare}");
            let shown = shown(&mut pool);
            assert!(shown.starts_with(expected), "{list} {spare}: {shown}");
        }
    }

    #[test]
    fn spare_hosts_are_others() {
        let refused = |list, spare| pool(list, spare, None).expect_err(spare).sentence;
        assert_eq!(refused("a,b", "2"), "--spare 2 leaves none of 2 hosts for the PEs");
        assert_eq!(refused("a,b", "c,b"), "--spare: the job already starts on host b");
        assert_eq!(refused("a,b", "c:x"), "--spare c:x: \"x\" is not a number of PEs");
    }
}
