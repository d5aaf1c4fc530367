//! A host before the distribution of PEs.

/// A host that may get PEs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSlots {
    /// Its name, as the user wrote it.
    pub name: String,
    /// The maximum number of its PEs.
    pub slots: Option<u32>,
}
