//! The reasons why symmetric memory cannot be provided.

use rustix::io::Errno;
use std::fmt;

/// Why symmetric memory could not be had.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The sizes exceed what an address or a file offset can express.
    TooLarge,
    /// The static data of the node's PE with this number cannot be where it says that they are.
    Misplaced(u32),
    /// The kernel refused; with the operation that it refused.
    Refused(&'static str, Errno),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::TooLarge => f.write_str("it is larger than any address space"),
            Error::Misplaced(local) => write!(
                f,
                "PE {local} of this node says that its static data are where they cannot be in shared memory"
            ),
            Error::Refused(what, errno) => write!(f, "{what} was refused: {errno}"),
        }
    }
}

impl std::error::Error for Error {}
