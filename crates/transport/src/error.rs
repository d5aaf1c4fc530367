//! The errors of a provider.

use crate::{Pe, Segment};
use std::fmt;

/// A failure of a provider. A full queue is not a failure: the provider makes progress and tries
/// again.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The provider cannot be used on this machine, or has no more of what was requested, such as
    /// endpoints or registered memory. The text says what is missing.
    Unavailable(String),
    /// The provider has no path to this PE, or there is no such PE.
    Unreachable(Pe),
    /// This PE was lost, or, if it is the caller, cannot use its network. The text names the PE
    /// and, if it is known, its host, and says how.
    Lost(Pe, String),
    /// An argument, or an address or a key that a peer has published, is invalid. The text says
    /// which and why.
    Invalid(String),
}

impl Error {
    /// Returns the error for malformed data, such as a key, from PE `pe`.
    pub fn damaged(pe: Pe, what: &str) -> Error {
        Error::Invalid(format!("the {what} of PE {pe} is damaged"))
    }

    /// Returns the error for memory that a library or its network refused to register: the reason,
    /// the likely cause and the remedy. `limit` is the process's RLIMIT_MEMLOCK in bytes, `None` if
    /// it has none.
    pub fn refused_memory(
        library: &str,
        segment: Segment,
        nbytes: usize,
        why: &str,
        limit: Option<u64>,
    ) -> Error {
        let cause = if let Some(limit) = limit {
            format!(
                "it may lock {limit} bytes of memory (RLIMIT_MEMLOCK): raise that with `ulimit -l \
                 unlimited` or the limits of the resource manager, or ask for a smaller heap with \
                 SHMEM_SYMMETRIC_SIZE"
            )
        } else {
            "it may lock all memory (RLIMIT_MEMLOCK is unlimited), so perhaps the node has no more: \
             ask for a smaller heap with SHMEM_SYMMETRIC_SIZE"
                .to_owned()
        };

        Error::Unavailable(format!(
            "{library} refused to register the {nbytes} bytes of the segment {segment:?} of this \
             process: {why}; {cause}"
        ))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Unavailable(why) | Error::Invalid(why) | Error::Lost(_, why) => f.write_str(why),
            Error::Unreachable(pe) => write!(f, "there is no path to PE {pe}"),
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_memory_names_the_limit_the_size_and_the_remedy() {
        let refused = |limit| {
            let why = "Cannot allocate memory";
            Error::refused_memory("UCX", Segment::Heap, 536_870_912, why, limit).to_string()
        };

        let limited = refused(Some(65_536));
        for word in [
            "UCX",
            "536870912",
            "Heap",
            "Cannot",
            "RLIMIT_MEMLOCK",
            "65536",
            "ulimit -l",
            "SHMEM_SYMMETRIC_SIZE",
        ] {
            assert!(limited.contains(word), "{limited}");
        }

        let unlimited = refused(None);
        assert!(unlimited.contains("SHMEM_SYMMETRIC_SIZE"), "{unlimited}");
        assert!(!unlimited.contains("ulimit"), "{unlimited}");
    }
}
