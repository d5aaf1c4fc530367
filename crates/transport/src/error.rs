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
    /// The way to this PE broke; the text names both hosts and says how.
    Lost(Pe, String),
    /// An argument that the provider cannot pass on; the text says which and why.
    Invalid(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Unavailable(why) | Error::Invalid(why) => f.write_str(why),
            Error::Unreachable(pe) => write!(f, "there is no way to PE {pe}"),
            Error::Lost(pe, why) => write!(f, "PE {pe} was lost: {why}"),
        }
    }
}

impl std::error::Error for Error {}
