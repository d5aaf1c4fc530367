//! A host before the distribution of PEs.

use super::own;

/// A host that may get PEs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSlots {
    /// Its name, as the user wrote it.
    pub name: String,
    /// The maximum number of its PEs.
    pub slots: Option<u32>,
}

impl HostSlots {
    /// Returns true if a name denotes this host. This machine has several names.
    pub fn is(&self, name: &str) -> bool {
        self.name == name || (own::is_own(&self.name) && own::is_own(name))
    }
}

/// Returns each host once. A host that is listed twice is one node with the slots of both entries.
pub fn distinct(listed: Vec<HostSlots>) -> Vec<HostSlots> {
    let mut hosts: Vec<HostSlots> = Vec::new();
    for entry in listed {
        match hosts.iter_mut().find(|host| host.is(&entry.name)) {
            Some(host) => {
                let (one, other) = (host.slots.unwrap_or(1), entry.slots.unwrap_or(1));
                host.slots = Some(one.saturating_add(other));
            }
            None => hosts.push(entry),
        }
    }
    hosts
}
