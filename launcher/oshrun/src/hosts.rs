//! The hosts of a job, and the number of PEs on each.
//!
//! Without a list of hosts, a job runs on the nodes of the allocation of Slurm, PBS, LSF or Grid
//! Engine, or else on this machine.

mod batch;
mod distribute;
mod list;
mod own;
mod slots;
mod slurm;

use rushmem_bootstrap::NodeMap;

use self::distribute::distribute;
use self::slots::HostSlots;
use crate::daemons::agent::Agent;
use crate::daemons::orders::HostPes;
use crate::options::Options;
use crate::report::failure::{StartFailure, cannot};

/// The hosts of a job.
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
    /// Returns the nodes of the job.
    pub fn nodes(&self) -> Result<NodeMap, StartFailure> {
        let runs = (0..).zip(&self.parts).map(|(node, part)| (node, part.pes.len() as u32));
        NodeMap::from_runs(runs).map_err(|error| StartFailure::usage(error.to_string()))
    }

    /// Returns the names of the hosts.
    pub fn names(&self) -> Vec<String> {
        self.parts.iter().map(|part| part.host.clone()).collect()
    }
}

/// Finds the hosts and distributes the PEs to them; without a number, one PE per slot.
pub fn find(options: &Options) -> Result<Hosts, StartFailure> {
    let mut agent = options.launch_agent.clone().map(|words| Agent::Remote(words.0));
    let listed = match (&options.hosts, &options.hostfile) {
        (Some(_), Some(_)) => {
            // Cause: both options are given. Remedy: leave one out.
            return Err(StartFailure::usage("use either -H or --hostfile, not both".to_string()));
        }
        (Some(text), None) => Some(list::of_option("-H", text).map_err(StartFailure::usage)?),
        (None, Some(file)) => {
            let what = format!("read the list of hosts {}", file.display());
            let text = std::fs::read_to_string(file).map_err(|error| cannot(&what, &error))?;
            let shown = file.display().to_string();
            Some(list::of_file(&shown, &text).map_err(StartFailure::usage)?)
        }
        (None, None) => None,
    };
    let mut is_strict = true;
    let hosts = match listed {
        Some(hosts) => hosts,
        None => match (slurm::allocation()?, batch::allocation()?) {
            (Some(hosts), _) => {
                agent = agent.or_else(|| Some(slurm::agent()));
                is_strict = false;
                hosts
            }
            (None, Some(hosts)) => {
                is_strict = false;
                hosts
            }
            (None, None) => vec![HostSlots { name: own::name(), slots: None }],
        },
    };
    let parts = distribute(slots::distinct(hosts), options.n_pes, options.ppn, is_strict)
        .map_err(StartFailure::usage)?;
    let own = parts.iter().position(|part| own::is_own(&part.host));
    Ok(Hosts { parts, own, agent: agent.unwrap_or_else(Agent::ssh) })
}
