//! Describes in one line how the PEs of the job reach each other, and why, for `SHMEM_DEBUG` and
//! for tools. In a job without a transport the CPU carries out atomic operations.

use super::candidates::AmoExecutor;
use super::negotiation::Negotiation;
use rushmem_pe::call::Call;
use rushmem_pe::job::{self, Job};
use rushmem_system::lock::{read, write};
use rushmem_transport::Pe;
use std::ffi::{CStr, CString};
use std::sync::RwLock;

/// The path, from the first init on.
static PATH: RwLock<Option<&'static CStr>> = RwLock::new(None);

/// The transport of a job that needs one.
pub(super) struct Chosen<'a> {
    name: &'a str,
    /// The reason for the choice, as a clause.
    reason: String,
    /// The executor of atomic operations.
    executor: &'a AmoExecutor,
}

impl<'a> Chosen<'a> {
    /// Describes the outcome of a negotiation.
    pub(super) fn new(negotiation: &'a Negotiation<'_>, executor: &'a AmoExecutor) -> Chosen<'a> {
        let mut refused = Vec::new();
        for candidate in &negotiation.candidates {
            if let Some(why) = candidate.refusal() {
                refused.push(format!("{} is not chosen: {why}", candidate.provider.name));
            }
        }

        let reason = match negotiation.requested() {
            Some(requested) => format!("SHMEM_TRANSPORT is {requested}"),
            None if refused.is_empty() => "every PE has it".to_owned(),
            None => refused.join("; "),
        };
        Chosen {
            name: negotiation.winner().provider.name,
            reason,
            executor,
        }
    }
}

/// Stores the path for [`transport`], and logs it on PE 0. `chosen` is `None` in a job without a
/// transport.
pub(super) fn record(job: &Job, chosen: Option<Chosen<'_>>) {
    let n_pes = job.n_pes;
    let n_nodes = job.nodes.n_nodes();
    let path;
    let amos;
    match &chosen {
        None => {
            path = within_one_node(n_pes).to_owned();
            amos = "by the CPU".to_owned();
        }
        Some(chosen) => {
            let scope = scope(chosen.name, n_pes, n_nodes);
            path = format!("{scope}: {}", chosen.reason);
            amos = chosen.executor.describe();
        }
    }

    if job.me == Pe(0) {
        rushmem_system::log::info!(
            n_pes,
            n_nodes,
            "{path}; atomic operations are carried out {amos}"
        );
    }

    let mut kept = write(&PATH);
    if kept.is_none_or(|kept| kept.to_bytes() != path.as_bytes()) {
        // Only a text from another PE can contain a null byte: the texts of the library have none,
        // and texts from outside are read as strings of C. The path is then empty.
        let path = CString::new(path).unwrap_or_default();
        // Leaked, since a program may keep the pointer. A later init finds the same path unless a
        // network has failed.
        *kept = Some(Box::leak(path.into_boxed_c_str()));
    }
}

/// `shmemx_transport`: how the PEs of the job reach each other, a colon, and the reason. The text
/// stays valid for the life of the process.
pub fn transport(call: Call) -> &'static CStr {
    job::require(call);
    read(&PATH).unwrap_or_default()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_names_what_lies_between_which_pes() {
        assert_eq!(within_one_node(1), "shared memory: the job has one PE");
        assert_eq!(within_one_node(4), "shared memory: all PEs are on one node");
        assert_eq!(scope("tcp", 4, 4), "tcp");
        assert_eq!(
            scope("ucx", 4, 2),
            "shared memory on a node, ucx between nodes"
        );
        assert_eq!(
            scope("tcp", 4, 1),
            "shared memory, with tcp for static data"
        );
    }
}
