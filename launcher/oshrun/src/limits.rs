//! How many descriptors a job needs, and getting them.
#![forbid(unsafe_code)]

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::failure::Failure;
use crate::spawn::INHERITED_FROM;

/// oshrun holds a socket, an output and an error stream for each PE.
const PER_PE: u64 = 3;

/// And as many for each daemon.
const PER_DAEMON: u64 = 3;

/// Its own streams, the event loop, the guard, the node's memory and what is open for a moment while a PE starts.
const OWN: u64 = 32;

/// Makes room for the descriptors of `n_pes` PEs and `n_daemons` children. Returns the limit that PEs have to be given back, if it was changed.
///
/// # Errors
/// When even the hard limit is too low.
pub fn make_room(n_pes: u32, n_daemons: u32) -> Result<Option<Rlimit>, Failure> {
    let before = getrlimit(Resource::Nofile);
    let needed = needed(n_pes, n_daemons);
    if before.current.is_none_or(|limit| limit >= needed) {
        return Ok(None);
    }
    let raised = Rlimit {
        current: before.maximum.map_or(Some(needed), |hard| Some(hard.min(needed))),
        ..before
    };
    let enough = before.maximum.is_none_or(|hard| hard >= needed);
    if enough && setrlimit(Resource::Nofile, raised).is_ok() {
        return Ok(Some(before));
    }
    let hard = before.maximum.map_or("unlimited".to_string(), |hard| hard.to_string());
    Err(Failure::general(format!(
        "a job of {n_pes} PEs needs {needed} descriptors and the limit is {hard}; raise it with ulimit -n {needed}, or \
         start fewer PEs"
    )))
}

fn needed(n_pes: u32, n_daemons: u32) -> u64 {
    (u64::from(n_pes) * PER_PE + u64::from(n_daemons) * PER_DAEMON).max(INHERITED_FROM as u64) + OWN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_hundred_pes_fit_the_usual_limit() {
        assert!(needed(320, 0) <= 1024);
        assert!(needed(256, 34) <= 1024);
        assert!(needed(1, 0) <= 256);
        assert_eq!(needed(u32::MAX, 0), 3 * u64::from(u32::MAX) + 32);
    }
}
