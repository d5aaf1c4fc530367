//! The diagnosis for users: which interfaces of this machine a job's sockets use, and why not the
//! others.

use crate::transport::own_addresses;
use rushmem_interfaces::{Interface, get_if_addrs};
use rushmem_transport::{Diagnosis, Open, Verdict};

/// Returns the addresses of each interface that is up, in the order in which peers try them.
pub(crate) fn diagnose(with: &Open) -> Vec<Diagnosis> {
    let (selection, used) = match own_addresses(with) {
        Ok(own) => own,
        Err(why) => return vec![Diagnosis::new("tcp", Verdict::Refused, why.to_string())],
    };
    let rank = |ip| used.iter().position(|used| *used == ip).unwrap_or(used.len());
    let mut all = get_if_addrs().unwrap_or_default();
    all.sort_by_key(|interface| rank(interface.ip()));
    let diagnose = |interface: &Interface| {
        let ip = interface.ip();
        let (verdict, why) = if used.contains(&ip) {
            (Verdict::Usable, "connects each pair of PEs")
        } else if with.one_machine && selection.is_none() {
            (Verdict::Unused, "the job is on one machine, and uses loopback")
        } else if interface.is_link_local() {
            (Verdict::Unused, "a link-local address, to which there is no route")
        } else if selection.as_ref().is_some_and(|selection| !selection.admits(interface)) {
            (Verdict::Unused, "SHMEM_TCP_INTERFACE leaves it out")
        } else if interface.is_loopback() {
            (Verdict::Unused, "no other machine reaches it")
        } else {
            (Verdict::Unused, "others go first")
        };
        Diagnosis::new(interface.name.clone(), verdict, format!("{ip}, {why}"))
    };
    all.iter().map(diagnose).collect()
}
