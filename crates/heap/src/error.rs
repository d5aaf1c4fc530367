//! The reasons why symmetric memory cannot be provided.

use rustix::io::Errno;
use std::fmt;

/// The reason why symmetric memory cannot be provided.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The sizes exceed what an address or a file offset can express.
    /// Remedy: reduce SHMEM_SYMMETRIC_SIZE.
    #[error("it is larger than any address space")]
    TooLarge,
    /// The node's PE with this number reports a location of its static data that cannot be right.
    /// Remedy: start all PEs with the same installation.
    #[error(
        "PE {0} of this node says that its static data are where they cannot be in shared memory"
    )]
    Misplaced(u32),
    /// The node's memory is larger than this process may make a file; both in bytes.
    /// Remedy: raise `ulimit -f`, or reduce SHMEM_SYMMETRIC_SIZE.
    #[error(
        "the node's memory is a file of {needed} bytes, but the limit of file sizes (ulimit -f) is {limit} bytes"
    )]
    FileSize {
        /// The memory that the node needs, in bytes.
        needed: u64,
        /// The limit, in bytes.
        limit: u64,
    },
    /// The node's memory takes more addresses than this process may still map; all in bytes.
    /// Remedy: raise `ulimit -v`, or reduce SHMEM_SYMMETRIC_SIZE.
    #[error(
        "the memory of the node takes {needed} bytes of addresses, but the limit of addresses (ulimit -v) leaves {left}"
    )]
    Addresses {
        /// The addresses that are needed.
        needed: u64,
        /// The addresses that the limit leaves.
        left: u64,
        /// The largest SHMEM_SYMMETRIC_SIZE that fits, if there is one.
        largest: Option<u64>,
    },
    /// The kernel refused this operation. Remedy: [`Error::remedy`] has it for each error of the
    /// kernel.
    #[error("{0} was refused: {1}")]
    Refused(Operation, Errno),
}

impl Error {
    /// Returns the remedy, as the end of a sentence.
    pub fn remedy(&self) -> String {
        match self {
            Error::Misplaced(_) => "start all PEs with the same installation".to_owned(),
            Error::FileSize { needed, .. } => {
                // The shell counts in KiB.
                let limit = needed.div_ceil(1024);
                format!(
                    "raise the limit with `ulimit -f {limit}` or `ulimit -f unlimited`, or reduce \
                     SHMEM_SYMMETRIC_SIZE"
                )
            }
            Error::Addresses { largest, .. } => {
                let raise = "raise it with `ulimit -v unlimited`";
                match largest {
                    Some(size) => {
                        format!("{raise}, or set SHMEM_SYMMETRIC_SIZE to {}m at most", size >> 20)
                    }
                    None => format!("{raise}, or start fewer PEs on this host"),
                }
            }
            Error::Refused(_, Errno::AGAIN) => "the program locks all memory that it maps \
                 (mlockall with MCL_FUTURE): raise the limit of locked memory with `ulimit -l unlimited`, or reduce \
                 SHMEM_SYMMETRIC_SIZE"
                .to_owned(),
            Error::TooLarge | Error::Refused(_, Errno::NOMEM | Errno::NOSPC | Errno::FBIG) => {
                "reduce SHMEM_SYMMETRIC_SIZE".to_owned()
            }
            Error::Refused(_, Errno::MFILE | Errno::NFILE) => "raise `ulimit -n`".to_owned(),
            Error::Refused(operation, _) => format!(
                "the size is not the reason: the kernel lacks the call, or a container or sandbox \
                 refuses it; permit {} in its filter of system calls, or update its runtime",
                operation.call()
            ),
        }
    }
}

/// What the kernel may refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// To make the shared memory of a node.
    Making,
    /// To tell its size.
    Looking,
    /// To set its size.
    Sizing,
    /// To keep its size.
    Sealing,
    /// To map the slices of a node.
    MappingSlices,
    /// To map the bytes that the PEs of a node publish.
    MappingPublished,
    /// To map the static data of peers.
    MappingStatics,
}

impl Operation {
    /// Returns the system call of the operation.
    fn call(self) -> &'static str {
        match self {
            Operation::Making => "memfd_create",
            Operation::Looking => "fstat",
            Operation::Sizing => "ftruncate",
            Operation::Sealing => "fcntl",
            Operation::MappingSlices | Operation::MappingPublished | Operation::MappingStatics => {
                "mmap"
            }
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operation::Making => "making shared memory",
            Operation::Looking => "looking at shared memory",
            Operation::Sizing => "sizing shared memory",
            Operation::Sealing => "sealing shared memory",
            Operation::MappingSlices => "mapping shared memory",
            Operation::MappingPublished => "mapping what PEs of a node share",
            Operation::MappingStatics => "mapping peers' static data",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remedy_is_for_what_was_refused() {
        let remedy = |operation, error| Error::Refused(operation, error).remedy();
        assert!(remedy(Operation::Sealing, Errno::PERM).contains("permit fcntl in its filter"));
        assert!(remedy(Operation::Making, Errno::NOSYS).contains("permit memfd_create in"));
        let locked = remedy(Operation::MappingSlices, Errno::AGAIN);
        assert!(locked.contains("`ulimit -l unlimited`") && !locked.contains("filter"));
    }
}
