//! The reasons why symmetric memory cannot be provided.

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::fmt;

/// Why symmetric memory could not be had.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The sizes exceed what an address or a file offset can express.
    TooLarge,
    /// The static data of the node's PE with this number cannot be where it says that they are.
    Misplaced(u32),
    /// The node's memory is larger than this process may make a file; both in bytes.
    FileSize {
        /// What the node needs.
        needed: u64,
        /// The limit.
        limit: u64,
    },
    /// The kernel refused; with the operation that it refused.
    Refused(&'static str, Errno),
}

impl Error {
    /// What the user can do, as the end of a sentence.
    pub fn remedy(&self) -> String {
        match self {
            Error::Misplaced(_) => "start all PEs with the same installation".to_owned(),
            Error::FileSize { needed, .. } => format!(
                "raise the limit with `ulimit -f {}` or `ulimit -f unlimited`, or reduce SHMEM_SYMMETRIC_SIZE",
                needed.div_ceil(1024)
            ),
            Error::Refused(_, Errno::NOMEM) if getrlimit(Resource::As).current.is_some() => {
                "raise the limit of addresses with `ulimit -v`, or reduce SHMEM_SYMMETRIC_SIZE".to_owned()
            }
            Error::TooLarge | Error::Refused(_, Errno::NOMEM | Errno::NOSPC | Errno::FBIG) => {
                "reduce SHMEM_SYMMETRIC_SIZE".to_owned()
            }
            Error::Refused(_, Errno::MFILE | Errno::NFILE) => "raise `ulimit -n`".to_owned(),
            Error::Refused(..) => {
                "the size is not the reason: the kernel lacks the call, or a container or sandbox refuses it".to_owned()
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::TooLarge => f.write_str("it is larger than any address space"),
            Error::Misplaced(local) => write!(
                f,
                "PE {local} of this node says that its static data are where they cannot be in shared memory"
            ),
            Error::FileSize { needed, limit } => write!(
                f,
                "the node's memory is a file of {needed} bytes, but the limit of file sizes (ulimit -f) is {limit} bytes"
            ),
            Error::Refused(what, errno) => write!(f, "{what} was refused: {errno}"),
        }
    }
}

impl std::error::Error for Error {}
