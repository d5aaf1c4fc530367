//! A host, before PEs are dealt to it.

/// A host that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its name, as the user has it.
    pub name: String,
    /// How many PEs it shall have at most.
    pub slots: Option<u32>,
}
