//! The limit of a resource on a host.

/// A limited resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Processes and threads.
    Tasks,
    /// Bytes of memory.
    Memory,
}

/// The limit of a resource on this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceLimit {
    /// The resource.
    pub resource: Resource,
    /// The source of the limit, as the subject of "leaves room for".
    pub source: String,
    /// The limit.
    pub limit: u64,
    /// The amount in use.
    pub used: u64,
    /// The way to raise it.
    pub remedy: &'static str,
}

impl ResourceLimit {
    /// Returns how much is left.
    pub fn room(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }
}
