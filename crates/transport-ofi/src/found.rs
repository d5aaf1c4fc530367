//! What this machine has of libfabric: whether a device is behind it that reads and writes memory by itself.

use crate::atomics::Amos;
use crate::choice::{self, Wish};
use crate::fabric;
use crate::facts::Facts;
use rushmem_transport::{Found, Host, device};

/// What libfabric is here and what it would use. It is asked for its devices only where the kernel shows
/// some.
///
/// # Errors
/// What is missing.
pub(crate) fn found(host: &dyn Host) -> Result<Found, String> {
    let library = fabric::library()?;
    let amos = Amos::asked_of(host)?;
    let number = library.version();
    let version = format!("libfabric {}.{}", number >> 16, number & 0xFFFF);
    let devices = device::active();
    let facts: Vec<Facts> = match devices.is_empty() {
        true => Vec::new(),
        false => {
            let candidates = choice::candidates(library, &Wish::of(host, amos, false))?;
            candidates.into_iter().map(|(_, facts)| facts).collect()
        }
    };
    let facts: Vec<Entry<'_>> = facts.iter().map(Entry::of).collect();
    Ok(decide(&version, &facts, &devices))
}

/// What matters here of a reliable datagram endpoint with remote memory access.
struct Entry<'a> {
    provider: &'a str,
    domain: &'a str,
    /// The NIC's name, where libfabric tells it, and whether it says that it is on a bus.
    nic: Option<(&'a str, bool)>,
}

impl Entry<'_> {
    fn of(facts: &Facts) -> Entry<'_> {
        let nic = facts.nic.as_ref().map(|nic| (nic.name.as_str(), nic.on_pci));
        Entry { provider: &facts.provider, domain: &facts.domain, nic }
    }

    /// A NIC that libfabric says is on a bus, or one of `devices`.
    fn is_rdma(&self, devices: &[String]) -> bool {
        let is_one = |name: &str| devices.iter().any(|device| device == name);
        is_one(self.domain) || self.nic.is_some_and(|(name, on_pci)| on_pci || is_one(name))
    }
}

fn decide(version: &str, entries: &[Entry<'_>], devices: &[String]) -> Found {
    // Libfabric's first is the one that is opened.
    let rdma = entries.first().is_some_and(|entry| entry.is_rdma(devices));
    let description = match entries.first() {
        None => format!("{version}: no RDMA device"),
        Some(Entry { provider, domain, .. }) if rdma => {
            format!("{version}: {provider} on {domain}")
        }
        Some(_) => {
            let mut others: Vec<&str> = entries.iter().map(|entry| entry.provider).collect();
            others.dedup();
            format!("{version}: no RDMA device for it; {}", others.join(", "))
        }
    };
    Found { rdma, description }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Provider, domain, and the NIC with whether it is on a bus.
    type Told = (&'static str, &'static str, Option<(&'static str, bool)>);

    fn decided(entries: &[Told], devices: &[&str]) -> (bool, String) {
        let entries: Vec<Entry<'_>> = entries
            .iter()
            .map(|&(provider, domain, nic)| Entry { provider, domain, nic })
            .collect();
        let devices: Vec<String> = devices.iter().map(|&device| device.to_owned()).collect();
        let Found { rdma, description } = decide("libfabric 1.17", &entries, &devices);
        (rdma, description)
    }

    const TCP: Told = ("tcp;ofi_rxm", "eth0", None);

    #[test]
    fn cards_are_rdma() {
        let cxi = ("cxi", "cxi0", Some(("cxi0", true)));
        let rdma = |what: &str| (true, format!("libfabric 1.17: {what}"));
        assert_eq!(decided(&[cxi, TCP], &["cxi0"]), rdma("cxi on cxi0"));
        // A provider that names its NIC, but not the bus.
        let verbs = ("verbs;ofi_rxm", "mlx5_0", Some(("mlx5_0", false)));
        assert_eq!(decided(&[verbs, TCP], &["mlx5_0"]), rdma("verbs;ofi_rxm on mlx5_0"));
    }

    #[test]
    fn sockets_and_software_are_not() {
        let soft = ("verbs;ofi_rxm", "rxe0", Some(("rxe0", false)));
        let other = "libfabric 1.17: no RDMA device for it; verbs;ofi_rxm, tcp;ofi_rxm";
        assert_eq!(decided(&[soft, TCP], &["mlx5_0"]), (false, other.to_owned()));
        assert!(!decided(&[TCP], &["mlx5_0"]).0);
        assert_eq!(decided(&[], &[]), (false, "libfabric 1.17: no RDMA device".to_owned()));
    }
}
