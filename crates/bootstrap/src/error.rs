//! What can go wrong between a PE and its launcher, each as one sentence with its cure.
#![forbid(unsafe_code)]

use std::fmt;
use std::io;

use crate::env;
use crate::proto::{FrameError, MAX_RECORD};

/// Why a session could not be opened or used.
#[derive(Debug)]
pub enum Error {
    /// An inherited variable does not name the descriptor it should.
    Descriptor {
        /// The variable.
        name: &'static str,
        /// What it holds.
        value: String,
        /// What is expected of the descriptor, for example "a connected unix socket".
        wanted: &'static str,
    },
    /// Another launcher started several processes, and the way to join them is not there.
    Foreign {
        /// The launcher's common name.
        launcher: &'static str,
        /// The variable that shows it.
        name: &'static str,
        /// What the variable holds.
        value: String,
        /// What is missing, and the cure.
        cure: &'static str,
    },
    /// [`env::BOOTSTRAP`] names no protocol.
    Bootstrap {
        /// What it holds.
        value: String,
    },
    /// libpmix cannot be opened.
    PmixMissing {
        /// Why.
        cause: String,
    },
    /// A call of libpmix failed.
    Pmix {
        /// The call.
        call: &'static str,
        /// What it says.
        cause: String,
    },
    /// The process manager refused a request, or answered something else.
    Refused {
        /// The request.
        request: String,
        /// The answer.
        reply: String,
    },
    /// The process manager is gone, or cannot be reached.
    ManagerLost(io::Error),
    /// The process manager cannot serve an MPI that starts after Rushmem.
    MpiLater,
    /// The process manager cannot serve Rushmem after MPI has started.
    MpiBefore,
    /// This PE cannot listen for the other PEs of its node.
    Listening {
        /// This PE.
        pe: u32,
        /// Why.
        cause: io::Error,
    },
    /// The connection to another PE of the node failed.
    Neighbour {
        /// That PE.
        pe: u32,
        /// How.
        cause: io::Error,
    },
    /// This process has opened its session already.
    AlreadyOpen,
    /// A record is larger than an exchange carries.
    RecordTooLarge {
        /// The record's size in bytes.
        nbytes: usize,
    },
    /// `oshrun` is gone, or the socket to it was closed by the program.
    Lost(io::Error),
    /// `oshrun` sent bytes that are no frame of this protocol version.
    Frame(FrameError),
    /// The launcher sent a message out of its place.
    Unexpected(&'static str),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Descriptor { name, value, wanted } => write!(
                f,
                "{name}={value} does not name {wanted}: a program between oshrun and this one has closed its descriptors \
                 or changed the variable"
            ),
            Error::Foreign { launcher, name, value, cure } => {
                write!(f, "{launcher} started this program as one process of several ({name}={value}), {cure}")
            }
            Error::Bootstrap { value } => {
                write!(f, "{} is {value}, but must be auto, pmi1, pmi2 or pmix", env::BOOTSTRAP)
            }
            Error::PmixMissing { cause } => write!(
                f,
                "a PMIx launcher started this program as one process of several, but {} cannot be opened ({cause}): name \
                 its folder in LD_LIBRARY_PATH, or start the program with oshrun",
                pmix_sys::LIBRARY
            ),
            Error::Pmix { call, cause } => write!(f, "{call} failed: {cause}"),
            Error::Refused { request, reply } => {
                write!(f, "the process manager answered the PMI request {request} with: {reply}")
            }
            Error::ManagerLost(cause) => write!(
                f,
                "the connection to the process manager is lost ({cause}): it has ended, or MPI_Finalize has closed it; call \
                 shmem_finalize first"
            ),
            Error::MpiLater => f.write_str(
                "this process manager opens PMI once per process, and MPI, which this program has, would wait for ever: \
                 call MPI_Init before shmem_init, or use srun --mpi=pmix",
            ),
            Error::MpiBefore => f.write_str(
                "this process manager (PMI_PORT) keeps one connection per process, and MPI has it: call shmem_init before \
                 MPI_Init, or start the program without -pmi-port",
            ),
            Error::Listening { pe, cause } => write!(
                f,
                "PE {pe} cannot listen for the other PEs of its node ({cause}); where the address is in use, another \
                 process holds the name of this job"
            ),
            Error::Neighbour { pe, cause } => {
                write!(f, "the connection to PE {pe} on this node failed ({cause}): it has ended")
            }
            Error::AlreadyOpen => f.write_str("this process has joined its job already"),
            Error::RecordTooLarge { nbytes } => {
                write!(
                    f,
                    "a record of {nbytes} bytes is larger than the {MAX_RECORD} bytes that an exchange carries"
                )
            }
            Error::Lost(cause) => write!(
                f,
                "the connection to oshrun is lost ({cause}): oshrun has ended, or the program has closed the descriptor \
                 that {} named",
                env::SOCKET
            ),
            Error::Frame(cause) => write!(f, "oshrun sent a frame that cannot be read: {cause}"),
            Error::Unexpected(what) => write!(f, "the launcher sent {what} out of turn"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Lost(cause) | Error::ManagerLost(cause) => Some(cause),
            Error::Listening { cause, .. } | Error::Neighbour { cause, .. } => Some(cause),
            Error::Frame(cause) => Some(cause),
            _ => None,
        }
    }
}

impl From<FrameError> for Error {
    fn from(cause: FrameError) -> Error {
        Error::Frame(cause)
    }
}
