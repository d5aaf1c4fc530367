//! The orders for a daemon: the program and its environment, the PEs to start, and the hosts below.
//!
//! Plain data that passes down the tree. Each daemon keeps its own PEs and distributes the rest.

use std::ffi::OsString;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::agent::Agent;
use crate::debugger::Debugged;
use crate::placement::PlacementRequest;

/// What to start: the same for all PEs of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JobSpec {
    /// The program as the user named it.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Variables of the option -x.
    pub exported: Vec<(OsString, OsString)>,
    /// The environment of oshrun, for other hosts; empty if it is inherited.
    pub forwarded: Vec<(OsString, OsString)>,
    /// The working directory; `None` if it is inherited.
    pub folder: Option<PathBuf>,
    /// The requested placement.
    pub placement: PlacementRequest,
    /// Whether to start the program without ASLR.
    pub no_aslr: bool,
    /// The folder for the output files of PEs; `None` if oshrun prints the output.
    pub output_files: Option<PathBuf>,
    /// PEs that run under a debugger.
    pub debugged: Option<Debugged>,
    /// Whether PE 0 may prompt at oshrun's terminal.
    pub prompts: bool,
}

/// The parameters of the tree of daemons.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TreeConfig {
    /// The launch agent for other hosts.
    pub agent: Agent,
    /// The file of oshrun on other hosts.
    pub oshrun: PathBuf,
    /// Maximum number of hosts on which a process starts daemons.
    pub fan_out: u32,
    /// Maximum number of PEs that a process starts.
    pub pes_per_process: u32,
    /// Time within which the job ends everywhere when a host stops answering.
    pub limit: Duration,
}

/// PEs on one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPes {
    /// The host, as the user named it.
    pub host: String,
    /// All PEs of the host.
    pub node: Range<u32>,
    /// The PEs that one process starts.
    pub pes: Range<u32>,
}

/// The orders for one daemon.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Orders {
    /// The program and its environment.
    pub spec: JobSpec,
    /// The parameters of the tree of daemons.
    pub tree: TreeConfig,
    /// The daemon's own PEs.
    pub own: HostPes,
    /// Other hosts below it.
    pub others: Vec<HostPes>,
    /// The inherited descriptor of the node's memory, if the parent is on the same host.
    pub memory: Option<i32>,
}

impl HostPes {
    /// Splits the PEs into ranges of at most `most`; returns the first and the others.
    pub fn split(self, most: u32) -> (HostPes, Vec<HostPes>) {
        let starts = self.pes.clone().step_by(most as usize);
        let piece = |start| HostPes { pes: start..self.pes.end.min(start + most), ..self.clone() };
        let mut pieces = starts.map(piece);
        let first = pieces.next().unwrap_or_else(|| self.clone());
        (first, pieces.collect())
    }
}

/// The number of daemons that a process starts for these PEs of its host and these other hosts.
pub fn n_children(pieces: &[HostPes], others: &[HostPes], fan_out: u32) -> u32 {
    pieces.len() as u32 + (others.len() as u32).min(fan_out)
}

/// Distributes hosts to at most `fan_out` children in blocks of nearly equal size. A child runs on
/// the first host of its block.
pub fn distribute(hosts: Vec<HostPes>, fan_out: u32) -> Vec<(HostPes, Vec<HostPes>)> {
    let n_children = hosts.len().min(fan_out.max(1) as usize);
    let n_hosts = hosts.len();
    let mut hosts = hosts.into_iter();
    (0..n_children)
        .map(|child| n_hosts * (child + 1) / n_children - n_hosts * child / n_children)
        .filter_map(|len| {
            let own = hosts.next()?;
            Some((own, hosts.by_ref().take(len - 1).collect()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(n: u32) -> Vec<HostPes> {
        (0..n)
            .map(|host| HostPes {
                host: format!("h{host}"),
                node: 2 * host..2 * host + 2,
                pes: 2 * host..2 * host + 2,
            })
            .collect()
    }

    /// Returns the number of levels and appends the hosts.
    fn walk(
        own: Option<HostPes>,
        others: Vec<HostPes>,
        fan_out: u32,
        seen: &mut Vec<HostPes>,
    ) -> u32 {
        seen.extend(own);
        let children = distribute(others, fan_out);
        assert!(children.len() <= fan_out as usize);
        let below =
            children.into_iter().map(|(own, others)| 1 + walk(Some(own), others, fan_out, seen));
        below.max().unwrap_or(0)
    }

    #[test]
    fn a_thousand_hosts_are_two_levels_away() {
        for (n, fan_out, levels) in [(1000, 32, 2), (33, 32, 2), (32, 32, 1), (4, 1, 4), (0, 32, 0)]
        {
            let mut seen = Vec::new();
            assert_eq!(walk(None, hosts(n), fan_out, &mut seen), levels, "{n} by {fan_out}");
            assert_eq!(seen, hosts(n), "each once, in order");
        }
    }

    #[test]
    fn many_pes_are_split_among_several_processes() {
        let part = HostPes { host: "a".into(), node: 10..20, pes: 10..20 };
        let (first, rest) = part.clone().split(4);
        let pes = |parts: &[HostPes]| parts.iter().map(|part| part.pes.clone()).collect::<Vec<_>>();
        assert_eq!((first.pes, pes(&rest)), (10..14, vec![14..18, 18..20]));
        assert_eq!(part.clone().split(10), (part, vec![]));
    }
}
