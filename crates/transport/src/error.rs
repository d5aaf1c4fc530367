//! What can go wrong in a provider.

use crate::Pe;
use std::fmt;

/// A provider's failure. Back-pressure is not among them: a provider makes progress and tries again.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The provider cannot be used on this machine; the text says what is missing.
    Unavailable(String),
    /// The provider has no way to this PE.
    Unreachable(Pe),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Unavailable(why) => f.write_str(why),
            Error::Unreachable(pe) => write!(f, "there is no way to PE {pe}"),
        }
    }
}

impl std::error::Error for Error {}
