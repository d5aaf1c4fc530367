//! The libfabric of this machine, and whether a device is behind it that reads and writes memory by
//! itself.

use crate::fabric;
use crate::facts::InfoFacts;
use crate::native;
use crate::refusals;
use crate::wish::Wish;
use rushmem_transport::{Amos, Found, Host, device};

/// Returns what libfabric is here and what it would use. It is queried for its devices only where
/// the kernel shows some.
///
/// # Errors
/// What is missing.
pub(crate) fn found(host: &dyn Host) -> Result<Found, String> {
    let library = fabric::library()?;
    let number = library.version();
    let version = format!("libfabric {}.{}", number >> 16, number & 0xFFFF);
    let devices = device::active();
    let facts: Vec<InfoFacts> = match devices.is_empty() {
        true => Vec::new(),
        false => {
            let candidates = refusals::candidates(library, &Wish::of(host, Amos::Software, false))?;
            candidates.into_iter().map(|(_, facts)| facts).collect()
        }
    };
    let facts: Vec<RdmEntry<'_>> = facts.iter().map(RdmEntry::of).collect();
    Ok(decide(&version, &facts, &devices))
}

/// The facts that matter here of a reliable datagram endpoint with remote memory access.
struct RdmEntry<'a> {
    provider: &'a str,
    domain: &'a str,
    /// The NIC's name, where libfabric reports it, and whether it says that it is on a bus.
    nic: Option<(&'a str, bool)>,
}

impl RdmEntry<'_> {
    fn of(facts: &InfoFacts) -> RdmEntry<'_> {
        let nic = facts.nic.as_ref().map(|nic| (nic.name.as_str(), nic.on_pci));
        RdmEntry { provider: &facts.provider, domain: &facts.domain, nic }
    }

    /// A NIC that libfabric says is on a bus, or one of `devices`.
    fn is_rdma(&self, devices: &[String]) -> bool {
        let is_one = |name: &str| devices.iter().any(|device| device == name);
        is_one(self.domain) || self.nic.is_some_and(|(name, on_pci)| on_pci || is_one(name))
    }
}

fn decide(version: &str, entries: &[RdmEntry<'_>], devices: &[String]) -> Found {
    // Libfabric's first is the one that is opened.
    let rdma = entries.first().is_some_and(|entry| entry.is_rdma(devices));
    let description = match entries.first() {
        None => format!("{version}: no RDMA device"),
        Some(RdmEntry { provider, domain, .. }) if rdma => {
            format!("{version}: {provider} on {domain}")
        }
        Some(_) => {
            let mut others: Vec<&str> = entries.iter().map(|entry| entry.provider).collect();
            others.dedup();
            format!("{version}: no RDMA device for it; {}", others.join(", "))
        }
    };
    let hardware_amos =
        rdma && entries.first().is_some_and(|entry| native::in_hardware(entry.provider));
    Found { rdma, hardware_amos, description }
}

#[cfg(test)]
mod tests;
