//! The errors between a PE and its launcher, each as one sentence with its remedy.

use std::fmt;
use std::io;
use std::time::Duration;

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
    /// Another launcher started several processes, and there is no way to join them.
    Foreign {
        /// The launcher's common name.
        launcher: &'static str,
        /// This process's number, where the launcher's variables say it.
        pe: Option<u32>,
        /// The variable that shows it.
        name: &'static str,
        /// What the variable holds.
        value: String,
        /// What is missing, and the remedy.
        remedy: String,
    },
    /// No process manager answers where the variables of a launcher lead.
    NoManager {
        /// This process, as the variables name it.
        who: String,
        /// The launcher's protocol.
        protocol: &'static str,
        /// The variables and what they hold.
        variables: String,
        /// What became of the first request.
        cause: String,
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
    /// The process manager does not answer a request that it can answer at once.
    ManagerSilent {
        /// This PE.
        pe: u32,
        /// The request.
        request: String,
        /// How long it has had.
        limit: Duration,
    },
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
    /// The kernel gives no random bytes.
    Random(io::Error),
    /// The memory that the PEs of the node share cannot be made.
    Memory {
        /// This PE.
        pe: u32,
        /// Why.
        cause: io::Error,
    },
    /// Another PE of the node has not done its part within the time limit.
    SilentNodePeer {
        /// This PE.
        pe: u32,
        /// How long it has waited.
        limit: Duration,
        /// For which PE.
        other: u32,
        /// To do what.
        what: &'static str,
    },
    /// The connection to another PE of the node failed.
    NodePeer {
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
            Error::Foreign { launcher, pe, name, value, remedy } => {
                write!(f, "{launcher} started this program as ")?;
                match pe {
                    Some(pe) => write!(f, "PE {pe} of several")?,
                    None => f.write_str("one process of several")?,
                }
                write!(f, " ({name}={value}), {remedy}")
            }
            Error::NoManager { who, protocol, variables, cause } => write!(
                f,
                "{who}: the variables of a {protocol} launcher are set ({variables}), but no process manager answers where \
                 they lead ({cause}): start the program with that launcher itself or with oshrun; unset these variables to \
                 run it alone, or name the protocol of another launcher that has started it in {}",
                env::BOOTSTRAP
            ),
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
            Error::ManagerSilent { pe, request, limit } => write!(
                f,
                "PE {pe} has waited {} s for the answer of the process manager to the PMI request {request}: the launcher \
                 is stopped or hangs; end it and start the job again",
                limit.as_secs()
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
                "PE {pe} cannot listen for the other PEs of its node ({cause}){}",
                match cause.kind() {
                    _ if is_short_of_descriptors(cause) => ": raise the limit that ulimit -n shows",
                    io::ErrorKind::AddrInUse => ": another process has the same number",
                    _ => "",
                }
            ),
            Error::Random(cause) => {
                write!(f, "the kernel gives no random bytes for the job's secret: {cause}")
            }
            Error::Memory { pe, cause } => {
                write!(f, "PE {pe} cannot make the memory that its node shares: {cause}")
            }
            Error::SilentNodePeer { pe, limit, other, what } => write!(
                f,
                "PE {pe} has waited {} s for PE {other} on this node {what}: it is stopped or gets no processor; let it \
                 run, or start the job again",
                limit.as_secs()
            ),
            Error::NodePeer { pe, cause } => write!(
                f,
                "the connection to PE {pe} on this node failed ({cause}){}",
                match cause.kind() {
                    _ if is_short_of_descriptors(cause) => ": raise the limit that ulimit -n shows",
                    io::ErrorKind::UnexpectedEof
                    | io::ErrorKind::ConnectionRefused
                    | io::ErrorKind::ConnectionReset
                    | io::ErrorKind::BrokenPipe => ": it has ended",
                    _ => "",
                }
            ),
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

fn is_short_of_descriptors(cause: &io::Error) -> bool {
    cause.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error())
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Lost(cause) | Error::ManagerLost(cause) => Some(cause),
            Error::Listening { cause, .. }
            | Error::Memory { cause, .. }
            | Error::Random(cause)
            | Error::NodePeer { cause, .. } => Some(cause),
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

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn a_failed_connection_is_blamed_on_its_cause() {
        let text = |cause: io::Error| Error::NodePeer { pe: 3, cause }.to_string();
        let short = text(Errno::MFILE.into());
        assert!(short.contains("ulimit -n") && !short.contains("it has ended"), "{short}");
        let over = text(io::ErrorKind::UnexpectedEof.into());
        assert!(over.contains("PE 3") && over.contains("it has ended"), "{over}");
    }
}
