//! The requests of a job and its user to libfabric.

use crate::settings::{DOMAIN, FABRIC, PROVIDER};
use rushmem_transport::{Amos, Host, NicName};

/// The variables of the user, and what the job is.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    pub(crate) provider: Option<String>,
    pub(crate) domain: Option<String>,
    pub(crate) fabric: Option<String>,
    /// The party that carries out atomic operations.
    pub(crate) amos: Amos,
    /// All PEs run on this machine.
    pub(crate) one_machine: bool,
    /// The interfaces that sockets may use; none is any.
    pub(crate) interfaces: Vec<String>,
    /// The NIC that this PE should prefer.
    pub(crate) near: Option<NicName>,
    /// Pairs of PEs that the busiest node would connect.
    pub(crate) pairs_of_node: u64,
}

impl Wish {
    pub(crate) fn of(host: &dyn Host, amos: Amos, one_machine: bool) -> Wish {
        let variable = |name| host.variable(name).filter(|value| !value.is_empty());
        let interfaces = variable("SHMEM_TCP_INTERFACE").unwrap_or_default();
        let interfaces = interfaces.split(',').map(str::trim).filter(|name| !name.is_empty());
        Wish {
            provider: variable(PROVIDER),
            domain: variable(DOMAIN),
            fabric: variable(FABRIC),
            amos,
            one_machine,
            interfaces: interfaces.map(str::to_owned).collect(),
            near: host.nic(),
            pairs_of_node: host.pairs_of_node(),
        }
    }

    /// That of a job on several machines whose user has set nothing.
    #[cfg(test)]
    pub(crate) fn usual() -> Wish {
        Wish {
            provider: None,
            domain: None,
            fabric: None,
            amos: Amos::Software,
            one_machine: false,
            interfaces: Vec::new(),
            near: None,
            pairs_of_node: 0,
        }
    }

    /// Returns true if sockets may use an interface.
    pub(crate) fn may_use(&self, interface: &str) -> bool {
        self.interfaces.is_empty() || self.interfaces.iter().any(|name| name == interface)
    }
}
