//! Where the PEs of a job go: which hosts there are, and how many PEs each of them gets.
//!
//! Without a list of hosts a job is on this machine alone, or on the nodes of the Slurm allocation that oshrun runs in.
//! PEs go to hosts in blocks, in the order of the list.

mod deal;
mod host;
mod list;
mod own;
mod slurm;

use std::ffi::OsString;
use std::path::PathBuf;

use rushmem_bootstrap::NodeMap;

use self::host::Host;
use crate::failure::{Failure, cannot};
use crate::tree::agent::Agent;
use crate::tree::orders::Part;

/// What the command line says about hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// A list of them.
    pub list: Option<String>,
    /// A file that lists them.
    pub file: Option<PathBuf>,
    /// PEs on each of them.
    pub per_host: Option<u32>,
    /// What starts a daemon on them.
    pub agent: Option<Vec<OsString>>,
}

/// The hosts of a job.
#[derive(Debug)]
pub struct Hosts {
    /// The PEs of each, without gaps.
    pub parts: Vec<Part>,
    /// Which of them is this machine.
    pub own: Option<usize>,
    /// What starts a daemon on the others.
    pub agent: Agent,
}

impl Hosts {
    /// The nodes of the job.
    ///
    /// # Errors
    /// When there are too many PEs.
    pub fn nodes(&self) -> Result<NodeMap, Failure> {
        let runs = (0..).zip(&self.parts).map(|(node, part)| (node, part.pes.len() as u32));
        NodeMap::from_runs(runs).map_err(|error| Failure::usage(error.to_string()))
    }

    /// Their names.
    pub fn names(&self) -> Vec<String> {
        self.parts.iter().map(|part| part.host.clone()).collect()
    }
}

/// This machine has several names; it is one host however often it is listed, and by whichever of them.
fn one_name(mut hosts: Vec<Host>) -> Vec<Host> {
    let mut own = hosts.iter_mut().filter(|host| own::is_own(&host.name));
    if let Some(first) = own.next() {
        own.for_each(|host| host.name.clone_from(&first.name));
    }
    hosts
}

/// The hosts for `n_pes` PEs, or for as many as fit.
///
/// # Errors
/// When the options are invalid, or the hosts have too few slots.
pub fn find(asked: &Asked, n_pes: Option<u32>) -> Result<Hosts, Failure> {
    let mut agent = asked.agent.clone().map(Agent::Remote);
    let listed = match (&asked.list, &asked.file) {
        (Some(_), Some(_)) => {
            return Err(Failure::usage("use either -H or --hostfile, not both".to_string()));
        }
        (Some(text), None) => Some(list::of_option(text).map_err(Failure::usage)?),
        (None, Some(file)) => {
            let what = format!("read the list of hosts {}", file.display());
            let text = std::fs::read_to_string(file).map_err(|error| cannot(&what, &error))?;
            let shown = file.display().to_string();
            Some(list::of_file(&shown, &text).map_err(Failure::usage)?)
        }
        (None, None) => None,
    };
    let mut is_strict = true;
    let hosts = match listed {
        Some(hosts) => hosts,
        None => match slurm::allocation()? {
            Some(hosts) => {
                agent = agent.or_else(|| Some(slurm::agent()));
                is_strict = false;
                hosts
            }
            None => vec![Host { name: own::name(), slots: None }],
        },
    };
    let hosts = one_name(hosts);
    let parts = deal::deal(hosts, n_pes, asked.per_host, is_strict).map_err(Failure::usage)?;
    let own = parts.iter().position(|part| own::is_own(&part.host));
    Ok(Hosts { parts, own, agent: agent.unwrap_or_else(Agent::ssh) })
}
