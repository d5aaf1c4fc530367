//! The hosts on which a job can be started: those of the list that are not lost, and spare ones.

use std::collections::{BTreeSet, VecDeque};

use rushmem_bootstrap::NodeMap;

use super::distribute::distribute;
use super::host::HostSlots;
use super::own;
use crate::failure::StartFailure;
use crate::tree::agent::Agent;
use crate::tree::orders::HostPes;

/// The hosts of one try of a job.
#[derive(Debug)]
pub struct Hosts {
    /// The PEs of each host, without gaps.
    pub parts: Vec<HostPes>,
    /// The index of this machine.
    pub own: Option<usize>,
    /// The launch agent for the other hosts.
    pub agent: Agent,
}

impl Hosts {
    /// The nodes of the job.
    pub fn nodes(&self) -> Result<NodeMap, StartFailure> {
        let runs = (0..).zip(&self.parts).map(|(node, part)| (node, part.pes.len() as u32));
        NodeMap::from_runs(runs).map_err(|error| StartFailure::usage(error.to_string()))
    }

    /// The names of the hosts.
    pub fn names(&self) -> Vec<String> {
        self.parts.iter().map(|part| part.host.clone()).collect()
    }
}

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

    /// Removes lost hosts and puts a spare one in the place of each, so that other hosts keep their
    /// PEs. A spare host without slots gets those of the lost one. More spare ones follow if the
    /// slots do not suffice. Returns the names of the spare hosts.
    pub fn replace(&mut self, lost: &BTreeSet<String>) -> Vec<String> {
        let mut used = Vec::new();
        self.spares.retain(|spare| !lost.contains(&spare.name));
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
mod tests;
