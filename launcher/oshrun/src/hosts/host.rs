//! A host, before PEs are dealt to it.

/// A host that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its name, as the user wrote it.
    pub name: String,
    /// The maximum number of its PEs.
    pub slots: Option<u32>,
}
