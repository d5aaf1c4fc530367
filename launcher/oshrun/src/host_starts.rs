//! How far the start of the job is on each host, for `--timings` and for the progress line.

use rushmem_bootstrap::NodeMap;

/// The start of each host.
#[derive(Debug)]
pub struct HostStarts {
    nodes: NodeMap,
    hosts: Vec<HostStart>,
    /// Which PEs have entered initialization.
    entered: Vec<bool>,
}

/// The start of one host.
#[derive(Debug)]
struct HostStart {
    name: String,
    n_pes: u32,
    /// A daemon of oshrun has started there.
    greeted: bool,
    started: u32,
    entered: u32,
}

impl HostStarts {
    /// Nothing has started. `names` are those of the hosts, which are the nodes of the job.
    pub fn new(nodes: NodeMap, names: &[String]) -> HostStarts {
        let host = |(node, name): (u32, &String)| HostStart {
            name: name.clone(),
            n_pes: nodes.size(node),
            greeted: false,
            started: 0,
            entered: 0,
        };
        let hosts = (0..).zip(names).map(host).collect();
        let entered = vec![false; nodes.n_pes() as usize];
        HostStarts { nodes, hosts, entered }
    }

    fn of(&mut self, pe: u32) -> &mut HostStart {
        &mut self.hosts[self.nodes.node_of(pe) as usize]
    }

    /// Records that the daemon that starts a PE has started. Returns the phase that is complete, if
    /// one is; a job on one host has no phases of its own.
    pub fn greeted(&mut self, pe: u32) -> Option<String> {
        let host = self.of(pe);
        let is_first = !std::mem::replace(&mut host.greeted, true);
        let phase = format!("host {}: daemon started", host.name);
        is_first.then_some(phase).filter(|_| self.hosts.len() > 1)
    }

    /// Records the start of a PE; the rest as [`greeted`](HostStarts::greeted).
    pub fn started(&mut self, pe: u32) -> Option<String> {
        let host = self.of(pe);
        host.started += 1;
        let phase = format!("host {}: last of {} PEs started", host.name, host.n_pes);
        (host.started == host.n_pes).then_some(phase).filter(|_| self.hosts.len() > 1)
    }

    /// Records that a PE has sent something, which it does first when it enters initialization; the
    /// rest as [`greeted`](HostStarts::greeted).
    pub fn entered(&mut self, pe: u32) -> Option<String> {
        if std::mem::replace(&mut self.entered[pe as usize], true) {
            return None;
        }
        let host = self.of(pe);
        host.entered += 1;
        let phase = format!("host {}: last of {} PEs in shmem_init", host.name, host.n_pes);
        (host.entered == host.n_pes).then_some(phase).filter(|_| self.hosts.len() > 1)
    }

    /// What the job waits for, while not all PEs have started: the first host that is farthest
    /// behind, and its phase.
    pub fn waits_for(&self) -> Option<String> {
        let behind = self.hosts.iter().filter(|host| host.started < host.n_pes);
        let HostStart { name, n_pes, greeted, started, .. } =
            behind.min_by_key(|host| (host.started, host.greeted))?;
        Some(match (greeted, started) {
            (false, 0) => format!("host {name} has not answered yet"),
            _ => format!("host {name} has started {started} of {n_pes} PEs"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(sizes: &[u32]) -> HostStarts {
        let names: Vec<String> = ["a", "b", "c"].iter().map(ToString::to_string).collect();
        let nodes = NodeMap::from_runs((0..).zip(sizes.iter().copied())).expect("no empty node");
        HostStarts::new(nodes, &names[..sizes.len()])
    }

    #[test]
    fn the_host_that_is_farthest_behind_is_named() {
        let mut starts = starts(&[1, 2]);
        assert_eq!(starts.started(0), Some("host a: last of 1 PEs started".into()));
        assert_eq!(starts.waits_for(), Some("host b has not answered yet".into()));
        assert_eq!(starts.greeted(1), Some("host b: daemon started".into()));
        assert_eq!(starts.greeted(1), None);
        assert_eq!(starts.waits_for(), Some("host b has started 0 of 2 PEs".into()));
        assert_eq!(starts.started(2), None);
        assert_eq!(starts.waits_for(), Some("host b has started 1 of 2 PEs".into()));
        assert_eq!(starts.started(1), Some("host b: last of 2 PEs started".into()));
        assert_eq!(starts.waits_for(), None);
    }

    #[test]
    fn the_first_word_of_a_pe_counts() {
        let mut starts = starts(&[2, 1]);
        assert_eq!([1, 1, 1].map(|pe| starts.entered(pe)), [None, None, None]);
        assert_eq!(starts.entered(0), Some("host a: last of 2 PEs in shmem_init".into()));
    }

    #[test]
    fn one_host_has_no_phases_of_its_own() {
        let mut starts = starts(&[1]);
        assert_eq!((starts.greeted(0), starts.started(0), starts.entered(0)), (None, None, None));
    }
}
