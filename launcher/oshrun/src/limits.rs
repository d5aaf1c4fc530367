//! Raises the limit of descriptors to what a job needs.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::failure::StartFailure;

/// The lowest number of an inherited descriptor, above those that scripts use explicitly.
pub const INHERITED_FROM: i32 = 100;

/// Descriptors per PE: a socket and two output streams.
const PER_PE: u64 = 3;

/// Additional descriptors per PE with output files.
const FILES: u64 = 2;

/// Descriptors per daemon: its three standard streams.
const PER_DAEMON: u64 = 3;

/// Own streams, event loop, guard, the node's memory, and what is open while a PE starts.
const OWN: u64 = 32;

/// The limit that this process inherited.
static INHERITED: OnceLock<Rlimit> = OnceLock::new();

/// Ensures that the limit permits `n_pes` PEs, with or without output files, and `n_daemons`
/// daemons. Returns the inherited limit, which PEs must get, if it was changed.
pub fn make_room(
    n_pes: u32,
    n_daemons: u32,
    has_files: bool,
) -> Result<Option<Rlimit>, StartFailure> {
    let now = getrlimit(Resource::Nofile);
    let inherited = *INHERITED.get_or_init(|| now);
    let needed = needed(n_pes, n_daemons, has_files);
    if now.current.is_none_or(|limit| limit >= needed) {
        return Ok((now != inherited).then_some(inherited));
    }
    let enough = now.maximum.is_none_or(|hard| hard >= needed);
    let raised = Rlimit { current: Some(needed), ..now };
    if enough && setrlimit(Resource::Nofile, raised).is_ok() {
        return Ok(Some(inherited));
    }
    let hard = now.maximum.map_or("unlimited".to_string(), |hard| hard.to_string());
    let (who, remedy) = match (n_pes, n_daemons) {
        (0, 0) => ("any job".to_string(), ""),
        (0, n_daemons) => {
            (format!("a job that starts {n_daemons} daemons"), ", or lower --fan-out")
        }
        (n_pes, _) => (format!("a job of {n_pes} PEs"), ", or start fewer PEs"),
    };
    // Cause: each PE takes some descriptors of oshrun.
    Err(StartFailure::general(format!(
        "{who} needs {needed} descriptors and the limit is {hard}; raise it with ulimit -n {needed}{remedy}"
    )))
}

fn needed(n_pes: u32, n_daemons: u32, has_files: bool) -> u64 {
    let per_pe = if has_files { PER_PE + FILES } else { PER_PE };
    let held = u64::from(n_pes) * per_pe + u64::from(n_daemons) * PER_DAEMON;
    held.max(INHERITED_FROM as u64) + OWN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_hundred_pes_fit_the_usual_limit() {
        assert!(needed(320, 0, false) <= 1024);
        assert!(needed(256, 34, false) <= 1024);
        assert!(needed(128, 34, true) <= 1024);
        assert!(needed(1, 0, false) <= 256);
        assert_eq!(needed(u32::MAX, 0, false), 3 * u64::from(u32::MAX) + 32);
    }
}
