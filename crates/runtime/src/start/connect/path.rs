//! Describes in one line how the PEs of the job reach each other, and why, for `SHMEM_DEBUG` and
//! for tools. Also decides whether CPUs or the network carry out atomic operations: a pure function
//! of the settings and of what all PEs have found, so that the result is the same on all PEs.
//!
//! Operations of a CPU and of a network on one word are not atomic with respect to each other, so
//! the decision is made once for a job. A job on one node has no transport, and there the CPU
//! carries them out.

use std::ffi::{CStr, CString};
use std::sync::{PoisonError, RwLock};

use crate::call::Call;
use crate::job::{self, Job};
use rushmem_transport::{Amos, Pe, Provider};

/// The path, from the first init on.
static PATH: RwLock<Option<&'static CStr>> = RwLock::new(None);

/// The transport of a job that needs one.
pub(crate) struct Chosen<'a> {
    pub(crate) name: &'a str,
    /// Why it was chosen.
    pub(crate) why: String,
    /// The executor of atomic operations.
    pub(super) way: &'a AmoPath,
}

/// Keeps the path for [`transport`]; PE 0 prints it with `SHMEM_DEBUG`.
pub(crate) fn record(job: &Job, chosen: Option<Chosen<'_>>) {
    let (n_pes, n_nodes) = (job.n_pes, job.nodes.n_nodes());
    let (path, amos) = match &chosen {
        None => (within_one_node(n_pes).to_owned(), "by the CPU".to_owned()),
        Some(Chosen { name, why, way }) => {
            (format!("{}: {why}", scope(name, n_pes, n_nodes)), way.describe())
        }
    };
    if job.me == Pe(0) {
        rushmem_log::info!(n_pes, n_nodes, "{path}; atomic operations are carried out {amos}");
    }
    let mut kept = PATH.write().unwrap_or_else(PoisonError::into_inner);
    if kept.is_none_or(|kept| kept.to_bytes() != path.as_bytes()) {
        // Leaked, since a program may keep the pointer. A later init finds the same path unless a
        // network has failed.
        let path = CString::new(path).unwrap_or_default();
        *kept = Some(Box::leak(path.into_boxed_c_str()));
    }
}

/// `shmemx_transport`: how the PEs of the job reach each other, a colon, and the reason. The text
/// stays valid for the life of the process.
pub fn transport(call: Call) -> &'static CStr {
    job::require(call);
    PATH.read().unwrap_or_else(PoisonError::into_inner).unwrap_or_default()
}

fn within_one_node(n_pes: u32) -> &'static str {
    match n_pes {
        1 => "shared memory: the job has one PE",
        _ => "shared memory: all PEs are on one node",
    }
}

/// Says between which PEs the transport `name` is used.
fn scope(name: &str, n_pes: u32, n_nodes: u32) -> String {
    match n_nodes {
        1 => format!("shared memory, with {name} for static data"),
        n if n == n_pes => name.to_owned(),
        _ => format!("shared memory on a node, {name} between nodes"),
    }
}

/// A candidate for carrying out atomic operations, and why it is tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AmoPath {
    pub(super) amos: Amos,
    pub(super) why: String,
}

/// Returns the ways to try over a provider, best first. `requested` is the setting; `in_hardware`
/// says whether the provider's network has them in hardware on every PE.
///
/// # Errors
/// When the provider cannot do what is requested; a sentence.
pub(super) fn ways(
    requested: Option<Amos>,
    provider: &Provider,
    in_hardware: bool,
) -> Result<Vec<AmoPath>, String> {
    let way = |amos, why: &str| AmoPath { amos, why: why.to_owned() };
    match requested {
        Some(Amos::Network) if !provider.network_amos => Err(format!(
            "SHMEM_AMOS is network, but {} has no atomic operations of its own: with software the CPUs of the targets carry them \
             out",
            provider.name
        )),
        Some(amos) => Ok(vec![way(amos, &format!("SHMEM_AMOS is {amos}"))]),
        None if in_hardware && provider.network_amos => Ok(vec![
            way(Amos::Network, "the hardware of every PE carries them out"),
            way(Amos::Software, "the network's own do not work"),
        ]),
        None => Ok(vec![way(Amos::Software, "not every PE has hardware that carries them out")]),
    }
}

impl AmoPath {
    /// Describes the choice and its reason.
    pub(super) fn describe(&self) -> String {
        let who = match self.amos {
            Amos::Software => "by the CPU of the target, on-node and off-node alike",
            Amos::Network => {
                "by the network, on-node too; on contexts of SHMEM_TEAM_SHARED and of teams split from it by the CPU, in a domain of their own"
            }
        };
        format!("{who} ({})", self.why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rushmem_transport::null;

    #[test]
    fn the_path_names_what_lies_between_which_pes() {
        assert_eq!(within_one_node(1), "shared memory: the job has one PE");
        assert_eq!(within_one_node(4), "shared memory: all PEs are on one node");
        assert_eq!(scope("tcp", 4, 4), "tcp");
        assert_eq!(scope("ucx", 4, 2), "shared memory on a node, ucx between nodes");
        assert_eq!(scope("tcp", 4, 1), "shared memory, with tcp for static data");
    }

    const NETWORK: Provider = Provider { name: "ofi", network_amos: true, ..null::PROVIDER };
    const SOCKETS: Provider = Provider { name: "tcp", ..null::PROVIDER };

    fn tried(requested: Option<Amos>, provider: &Provider, in_hardware: bool) -> Vec<Amos> {
        let ways = ways(requested, provider, in_hardware).expect("a way");
        ways.into_iter().map(|way| way.amos).collect()
    }

    #[test]
    fn the_network_is_chosen_where_its_hardware_does() {
        assert_eq!(tried(None, &NETWORK, true), [Amos::Network, Amos::Software]);
        assert_eq!(tried(None, &NETWORK, false), [Amos::Software]);
        assert_eq!(tried(None, &SOCKETS, true), [Amos::Software]);
    }

    #[test]
    fn what_is_requested_is_the_only_way() {
        for in_hardware in [false, true] {
            assert_eq!(tried(Some(Amos::Software), &NETWORK, in_hardware), [Amos::Software]);
            assert_eq!(tried(Some(Amos::Network), &NETWORK, in_hardware), [Amos::Network]);
            assert_eq!(tried(Some(Amos::Software), &SOCKETS, in_hardware), [Amos::Software]);
        }
        let refusal = ways(Some(Amos::Network), &SOCKETS, false).expect_err("it has none");
        assert!(refusal.contains("SHMEM_AMOS is network, but tcp has no"), "{refusal}");
    }
}
