//! Lines on standard error: warnings, and messages where no launcher prints them.

use crate::digest::Digest;
use crate::process;
use rushmem_bootstrap::{PeerProcess, env};
pub use rushmem_system::stderr::print_line;
use rustix::process::geteuid;
use std::fmt;
use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::OnceLock;

/// The function that claims a text for the first PE of the node that prints it; set once the PEs
/// share memory.
static CLAIM: OnceLock<fn(&str) -> bool> = OnceLock::new();

/// Sets the function that returns true if this PE is the first of its node to print a text.
pub fn set_claim(claim: fn(&str) -> bool) {
    // This cannot fail: only the first init joins the job.
    let _ = CLAIM.set(claim);
}

/// Claims a message for this PE. Returns false if another PE of this node has claimed it and prints
/// it.
pub fn claim(message: &str) -> bool {
    process::is_child() || CLAIM.get().is_none_or(|claim| claim(message))
}

/// The variables that identify the job: the daemon of a launcher may start PEs of several jobs.
const JOB: [&str; 4] = [
    env::PMIX_NAMESPACE,
    env::PMI_JOBID,
    "SLURM_JOB_ID",
    "SLURM_STEP_ID",
];

/// Claims a message for this PE, for PEs that share no memory yet. Returns false if another PE that
/// the process `launcher` has started on this node has claimed it. The claim is the name of a
/// socket, which exists until the PE exits. A claim by a process of another user does not count, so
/// that it cannot silence this one.
pub fn claim_by_socket(launcher: u32, message: &str) -> bool {
    let mut digest = Digest::EMPTY;
    digest.add(message.bytes());

    // The number of the parent is unique only in its PID namespace. Without `/proc`, all processes
    // count as in one namespace.
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    digest.add(namespace.into_os_string().into_encoded_bytes());

    for name in JOB {
        // A variable that is not set counts as an empty one: other launchers do not set it.
        let value = std::env::var_os(name).unwrap_or_default();
        digest.add(*b"\n");
        digest.add(value.into_encoded_bytes());
    }

    // If no socket can be made, the message is printed: twice is better than never.
    let name = format!("rushmem-{launcher}-{:x}", digest.value());
    let Ok(address) = SocketAddr::from_abstract_name(name) else {
        return true;
    };
    match UnixListener::bind_addr(&address) {
        Ok(claim) => {
            // The kernel closes the socket when this process ends.
            std::mem::forget(claim);
            true
        }
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            // A holder that cannot be reached may have ended before it printed.
            let holder = UnixStream::connect_addr(&address).and_then(PeerProcess::of);
            holder.map_or(true, |holder| holder.user != geteuid())
        }
        Err(_) => true,
    }
}

/// Prints a warning that other PEs may print, too. `oshrun` prints it once and names the PEs. Under
/// another launcher the first PE of each node prints it.
pub fn print_for_pe(what: fmt::Arguments<'_>) {
    let what = what.to_string();
    if process::aborter().is_some_and(|aborter| aborter.warn(&what)) {
        return;
    }
    if claim(&what) {
        print_line(format_args!(
            "warning: {}{what}",
            process::pe_for_messages()
        ));
    }
}

/// Prints a warning: `warning!("{name} is empty")`. With `each:` before the text, it is one that
/// other PEs may print, too ([`print_for_pe`]).
#[macro_export]
macro_rules! warning {
    (each: $($what:tt)*) => {
        $crate::call::warning::print_for_pe(format_args!($($what)*))
    };
    ($($what:tt)*) => {
        $crate::call::warning::print_line(format_args!("warning: {}", format_args!($($what)*)))
    };
}
pub use warning;
