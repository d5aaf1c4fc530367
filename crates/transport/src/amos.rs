//! The choice of who carries out atomic operations: made once for a job, before its transport is
//! opened.

use std::fmt;

/// The party that carries out atomic operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amos {
    /// The target's CPU, on request by messages. They are atomic with respect to the operations of
    /// PEs that share the target's memory.
    Software,
    /// The network.
    Network,
}

impl Amos {
    /// Returns the way of a name, which is a value of `SHMEM_AMOS`.
    pub fn named(name: &str) -> Option<Amos> {
        [Amos::Software, Amos::Network].into_iter().find(|amos| amos.name() == name)
    }

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Amos::Software => "software",
            Amos::Network => "network",
        }
    }
}

impl fmt::Display for Amos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
