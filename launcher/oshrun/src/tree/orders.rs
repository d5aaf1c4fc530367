//! The orders for a daemon: the program and its environment, the PEs of the daemon, and the hosts below it.
//!
//! This is plain data that oshrun passes down the tree; each daemon keeps its own part and divides the rest.

use std::ffi::OsString;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::agent::Agent;
use crate::debugger::Debugged;
use crate::placement::Wish;

/// What all PEs of a job have in common.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    /// The program as the user named it.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Variables that the user set for the PEs.
    pub exported: Vec<(OsString, OsString)>,
    /// oshrun's own variables, for other hosts; none if they are inherited.
    pub carried: Vec<(OsString, OsString)>,
    /// The working directory; `None` if it is inherited.
    pub folder: Option<PathBuf>,
    /// The requested placement.
    pub wish: Wish,
    /// Whether the program starts without ASLR.
    pub no_aslr: bool,
    /// The folder for the output files of PEs; `None` if oshrun prints the output.
    pub output_files: Option<PathBuf>,
    /// PEs that run under a debugger.
    pub debugged: Option<Debugged>,
    /// Whether oshrun has a terminal, at which PE 0 may prompt.
    pub prompts: bool,
}

/// How the tree grows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Growth {
    /// The launch agent for other hosts.
    pub agent: Agent,
    /// The file of oshrun on other hosts.
    pub oshrun: PathBuf,
    /// Maximum number of hosts on which a process starts daemons.
    pub fan_out: u32,
    /// Maximum number of PEs that a process starts.
    pub pes_per_process: u32,
    /// How long a host may be silent before the job has ended everywhere.
    pub limit: Duration,
}

/// PEs on one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The host, as the user named it.
    pub host: String,
    /// All PEs of that host.
    pub node: Range<u32>,
    /// The selected PEs among them.
    pub pes: Range<u32>,
}

/// The orders for one daemon.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Orders {
    /// The program and its environment.
    pub task: Task,
    /// How the tree grows.
    pub growth: Growth,
    /// The daemon's own PEs.
    pub own: Part,
    /// Other hosts below it.
    pub others: Vec<Part>,
    /// The inherited descriptor of the node's memory, if the parent is on the same host.
    pub memory: Option<i32>,
}

impl Part {
    /// Cuts off the PEs that exceed one process, in pieces that fit one each.
    pub fn split(self, most: u32) -> (Part, Vec<Part>) {
        let starts = self.pes.clone().step_by(most as usize);
        let piece = |start| Part { pes: start..self.pes.end.min(start + most), ..self.clone() };
        let mut pieces = starts.map(piece);
        let first = pieces.next().unwrap_or_else(|| self.clone());
        (first, pieces.collect())
    }
}

/// Number of children of a process that passes on these pieces of its host and these other hosts.
pub fn n_children(pieces: &[Part], others: &[Part], fan_out: u32) -> u32 {
    pieces.len() as u32 + (others.len() as u32).min(fan_out)
}

/// Deals hosts to at most `fan_out` children in blocks as equal as possible; a child runs on the first host of its block.
pub fn deal(hosts: Vec<Part>, fan_out: u32) -> Vec<(Part, Vec<Part>)> {
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

    fn hosts(n: u32) -> Vec<Part> {
        (0..n)
            .map(|host| Part {
                host: format!("h{host}"),
                node: 2 * host..2 * host + 2,
                pes: 2 * host..2 * host + 2,
            })
            .collect()
    }

    /// Number of levels, and of hosts.
    fn grow(own: Option<Part>, others: Vec<Part>, fan_out: u32, seen: &mut Vec<Part>) -> u32 {
        seen.extend(own);
        let children = deal(others, fan_out);
        assert!(children.len() <= fan_out as usize);
        let below =
            children.into_iter().map(|(own, others)| 1 + grow(Some(own), others, fan_out, seen));
        below.max().unwrap_or(0)
    }

    #[test]
    fn a_thousand_hosts_are_two_levels_away() {
        for (n, fan_out, levels) in [(1000, 32, 2), (33, 32, 2), (32, 32, 1), (4, 1, 4), (0, 32, 0)]
        {
            let mut seen = Vec::new();
            assert_eq!(grow(None, hosts(n), fan_out, &mut seen), levels, "{n} by {fan_out}");
            assert_eq!(seen, hosts(n), "each once, in order");
        }
    }

    #[test]
    fn a_large_part_is_cut_for_several_processes() {
        let part = Part { host: "a".into(), node: 10..20, pes: 10..20 };
        let (first, rest) = part.clone().split(4);
        let pes = |parts: &[Part]| parts.iter().map(|part| part.pes.clone()).collect::<Vec<_>>();
        assert_eq!((first.pes, pes(&rest)), (10..14, vec![14..18, 18..20]));
        assert_eq!(part.clone().split(10), (part, vec![]));
    }
}
