//! The limit of a resource on a host.

/// What there is only so much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Processes and threads.
    Tasks,
    /// Bytes of memory.
    Memory,
}

/// What this host allows of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Of what.
    pub resource: Resource,
    /// Who sets it, in a sentence that goes on with "leaves room for".
    pub source: String,
    /// How much.
    pub limit: u64,
    /// How much of that is in use.
    pub used: u64,
    /// What raises it.
    pub cure: &'static str,
}

impl Bound {
    /// How much is left.
    pub fn room(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }
}
