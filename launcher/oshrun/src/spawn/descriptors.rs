//! The limit of descriptors: raises the soft limit to the hard one, and checks that a job fits it.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::report::failure::StartFailure;

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

/// The limit that this process inherited, if it has raised its own.
static INHERITED: OnceLock<Rlimit> = OnceLock::new();

/// Raises the soft limit to the hard one, and checks that it suffices for any job.
pub fn raise() -> Result<(), StartFailure> {
    let now = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: now.maximum, ..now };
    if raised != now && setrlimit(Resource::Nofile, raised).is_ok() {
        // It is set once, before anything is started.
        let _ = INHERITED.set(now);
    }
    check(0, 0, false)
}

/// Returns the limit that processes which this one starts must get back.
pub fn inherited() -> Option<Rlimit> {
    INHERITED.get().copied()
}

/// Checks that the limit permits `n_pes` PEs, with or without output files, and `n_daemons`
/// daemons.
pub fn check(n_pes: u32, n_daemons: u32, has_files: bool) -> Result<(), StartFailure> {
    let limit = getrlimit(Resource::Nofile).current;
    match limit.and_then(|limit| refusal(limit, n_pes, n_daemons, has_files)) {
        Some(sentence) => Err(StartFailure::general(sentence)),
        None => Ok(()),
    }
}

/// Returns the message if a limit is too low.
fn refusal(limit: u64, n_pes: u32, n_daemons: u32, has_files: bool) -> Option<String> {
    let per_pe = if has_files { PER_PE + FILES } else { PER_PE };
    let of_daemons = u64::from(n_daemons) * PER_DAEMON;
    let held = u64::from(n_pes) * per_pe + of_daemons;
    let needed = held.max(INHERITED_FROM as u64) + OWN;
    if limit >= needed {
        return None;
    }
    let left = limit.saturating_sub(OWN + of_daemons);
    let (who, enough) = match (n_pes, n_daemons) {
        _ if limit < INHERITED_FROM as u64 + OWN => ("any job".to_string(), String::new()),
        (0, n) => {
            let enough = format!(", which suffices for {} hosts", (limit - OWN) / PER_DAEMON);
            (format!("a job on {n} other hosts"), enough)
        }
        (n, _) => (format!("a job of {n} PEs"), format!(", which suffices for {}", left / per_pe)),
    };
    // Cause: each PE takes some descriptors of oshrun, and the hard limit is lower.
    Some(format!(
        "{who} needs {needed} descriptors and the limit is {limit}{enough}; raise it with ulimit -n {needed}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_hundred_pes_fit_the_usual_limit() {
        assert_eq!(refusal(1024, 330, 0, false), None);
        assert_eq!(refusal(1024, 300, 30, false), None);
        assert_eq!(refusal(1024, 190, 10, true), None);
        assert_eq!(refusal(132, 1, 0, false), None);
    }

    #[test]
    fn what_fits_is_said_and_true() {
        for (n_pes, n_daemons, has_files) in [(4000, 0, false), (4000, 7, true), (4000, 7, false)] {
            let text = refusal(4096, n_pes, n_daemons, has_files).expect("too many");
            let fits = text.split_once("suffices for ").expect("what fits").1;
            let fits = fits.split(';').next().and_then(|n| n.parse().ok()).expect("a number");
            assert_eq!(refusal(4096, fits, n_daemons, has_files), None, "{text}");
            assert!(refusal(4096, fits + 1, n_daemons, has_files).is_some(), "{text}");
        }
        let sentence = "a job on 60 other hosts needs 212 descriptors and the limit is 150, which \
                        suffices for 39 hosts; raise it with ulimit -n 212";
        assert_eq!(refusal(150, 0, 60, false).as_deref(), Some(sentence));
        assert!(refusal(u64::MAX, u32::MAX, u32::MAX, true).is_none());
    }
}
