//! The hosts of a job, and the number of PEs on each.
//!
//! Without a list of hosts, a job runs on the nodes of the Slurm allocation, or else on this
//! machine.

mod distribute;
mod host;
mod list;
mod own;
mod pool;
mod slurm;

use std::ffi::OsString;
use std::path::PathBuf;

use self::host::HostSlots;
use self::pool::HostPool;
pub use self::pool::Hosts;
use crate::failure::{StartFailure, cannot};
use crate::tree::agent::Agent;

/// The options of the command line about hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostOptions {
    /// A list of hosts.
    pub list: Option<String>,
    /// A file that lists hosts.
    pub file: Option<PathBuf>,
    /// The hosts that replace lost ones: a list, or the number of the last hosts.
    pub spare: Option<String>,
    /// The maximum number of PEs on each.
    pub per_host: Option<u32>,
    /// The launch agent.
    pub agent: Option<Vec<OsString>>,
}

/// Finds the hosts for `n_pes` PEs; without a number, for one PE per slot.
pub fn find(options: &HostOptions, n_pes: Option<u32>) -> Result<HostPool, StartFailure> {
    let mut agent = options.agent.clone().map(Agent::Remote);
    let listed = match (&options.list, &options.file) {
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
        None => match slurm::allocation()? {
            Some(hosts) => {
                agent = agent.or_else(|| Some(slurm::agent()));
                is_strict = false;
                hosts
            }
            None => vec![HostSlots { name: own::name(), slots: None }],
        },
    };
    let mut hosts = host::distinct(hosts);
    let spares = spares(&mut hosts, options.spare.as_deref())?;
    if let Some(both) = spares.iter().find(|spare| hosts.iter().any(|host| host.is(&spare.name))) {
        // Cause: a host is in both lists. Remedy: remove it from one.
        let sentence = format!("--spare: the job already starts on host {}", both.name);
        return Err(StartFailure::usage(sentence));
    }
    let per_host = options.per_host;
    // A job that fits the slots of Slurm keeps to them when a host is lost.
    is_strict |= distribute::distribute(hosts.clone(), n_pes, per_host, true).is_ok();
    let agent = agent.unwrap_or_else(Agent::ssh);
    Ok(HostPool { hosts, spares: spares.into(), agent, n_pes, per_host, is_strict })
}

/// The spare hosts, which are removed from the list if they are its last hosts.
fn spares(hosts: &mut Vec<HostSlots>, spare: Option<&str>) -> Result<Vec<HostSlots>, StartFailure> {
    let n_hosts = hosts.len();
    let Some(text) = spare else { return Ok(Vec::new()) };
    match text.parse::<usize>() {
        Ok(n_spares) if n_spares < n_hosts => Ok(hosts.split_off(n_hosts - n_spares)),
        Ok(n_spares) => {
            // Cause: the list has no more hosts than this. Remedy: list more hosts, or name the
            // spare ones.
            let sentence = format!("--spare {n_spares} leaves none of {n_hosts} hosts for the PEs");
            Err(StartFailure::usage(sentence))
        }
        Err(_) => {
            let listed = list::of_option("--spare", text).map_err(StartFailure::usage)?;
            Ok(host::distinct(listed))
        }
    }
}
