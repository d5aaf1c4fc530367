//! The reasons why symmetric memory cannot be provided.

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

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
    /// The kernel refused this operation. Remedy: [`Error::remedy`] has it for each error of the
    /// kernel.
    #[error("{0} was refused: {1}")]
    Refused(&'static str, Errno),
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
            Error::Refused(_, Errno::NOMEM) if getrlimit(Resource::As).current.is_some() => {
                "raise the limit of addresses with `ulimit -v`, or reduce SHMEM_SYMMETRIC_SIZE"
                    .to_owned()
            }
            Error::TooLarge | Error::Refused(_, Errno::NOMEM | Errno::NOSPC | Errno::FBIG) => {
                "reduce SHMEM_SYMMETRIC_SIZE".to_owned()
            }
            Error::Refused(_, Errno::MFILE | Errno::NFILE) => "raise `ulimit -n`".to_owned(),
            Error::Refused(..) => {
                "the size is not the reason: the kernel lacks the call, or a container or sandbox \
                 refuses it; permit memfd_create in its filter of system calls, or update its \
                 runtime"
                    .to_owned()
            }
        }
    }
}
