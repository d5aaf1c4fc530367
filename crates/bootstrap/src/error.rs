//! The errors between a PE and its launcher, each as one sentence with its remedy.

use std::io;
use std::time::Duration;

use crate::env;
use crate::proto::FrameError;
use crate::records::MAX_RECORD;

/// Why a session could not be opened or used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An inherited variable does not name the descriptor it should.
    /// Remedy: let descriptors and variables of oshrun be.
    #[error(
        "{name}={value} does not name {wanted}: a program between oshrun and this one has closed its descriptors or \
         changed the variable"
    )]
    Descriptor {
        /// The variable.
        name: &'static str,
        /// The content of the variable.
        value: String,
        /// The expected kind of descriptor, for example "a connected unix socket".
        wanted: &'static str,
    },
    /// Another launcher started several processes, and there is no way to join them.
    /// Remedy: the message ends with it.
    #[error("{launcher} started this program as {} ({name}={value}), {remedy}", process(pe))]
    Foreign {
        /// The launcher's common name.
        launcher: &'static str,
        /// This process's number, where the launcher's variables say it.
        pe: Option<u32>,
        /// The variable that shows it.
        name: &'static str,
        /// The content of the variable.
        value: String,
        /// The missing part, and the remedy.
        remedy: String,
    },
    /// No process manager answers where the variables of a launcher lead.
    #[error(
        "{who}: the variables of a {protocol} launcher are set ({variables}), but no process manager answers where they \
         lead ({cause}): start the program with that launcher itself or with oshrun; unset these variables to run it \
         alone, or name the protocol of another launcher that has started it in {}",
        env::BOOTSTRAP
    )]
    NoManager {
        /// This process, as the variables name it.
        who: String,
        /// The launcher's protocol.
        protocol: &'static str,
        /// The variables and what they hold.
        variables: String,
        /// The outcome of the first request.
        cause: String,
    },
    /// The library libpmix cannot be opened.
    #[error(
        "a PMIx launcher started this program as one process of several, but {} cannot be opened ({cause}); name its \
         directory in LD_LIBRARY_PATH, or start the program with oshrun",
        pmix_sys::LIBRARY
    )]
    PmixMissing {
        /// Why.
        cause: String,
    },
    /// The program is statically linked, so that it cannot open libpmix.
    #[error(
        "a PMIx launcher started this program as one process of several, but the program is statically linked and \
         cannot open {}; link it dynamically, or start it with oshrun or mpiexec.hydra",
        pmix_sys::LIBRARY
    )]
    PmixStatic,
    /// A call of libpmix failed.
    /// Remedy: correct what the cause names.
    #[error("{call} failed: {cause}")]
    Pmix {
        /// The call.
        call: &'static str,
        /// The text of the answer.
        cause: String,
    },
    /// The process manager refused a request, or answered something else.
    /// Remedy: look at the launcher's own output.
    #[error("the process manager answered the PMI request {request} with: {reply}")]
    Refused {
        /// The request.
        request: String,
        /// The answer.
        reply: String,
    },
    /// The process manager is gone, or cannot be reached.
    #[error(
        "the connection to the process manager is lost ({0}): it has ended, or MPI_Finalize has closed it; call \
         shmem_finalize first"
    )]
    ManagerLost(#[source] io::Error),
    /// The process manager does not answer a request that it can answer at once.
    #[error(
        "PE {pe} has waited {} s for the answer of the process manager to the PMI request {request}: the launcher is \
         stopped or hangs; end it and start the job again",
        limit.as_secs()
    )]
    ManagerSilent {
        /// This PE.
        pe: u32,
        /// The request.
        request: String,
        /// The time for which it has had.
        limit: Duration,
    },
    /// The process manager cannot serve an MPI that starts after Rushmem.
    #[error(
        "this process manager opens PMI once per process, and MPI, which this program has, would wait forever; call \
         MPI_Init before shmem_init, or use srun --mpi=pmix"
    )]
    MpiLater,
    /// The process manager cannot serve Rushmem after MPI has started.
    #[error(
        "this process manager (PMI_PORT) keeps one connection per process, and MPI has it; call shmem_init before \
         MPI_Init, or start the program without -pmi-port"
    )]
    MpiBefore,
    /// This PE cannot listen for the other PEs of its node.
    /// Remedy: raise `ulimit -n` if it says so, or start the job again.
    #[error(
        "PE {pe} cannot listen for the other PEs of its node ({cause}){}",
        after_local_failure(cause)
    )]
    Listening {
        /// This PE.
        pe: u32,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// The kernel gives no random bytes.
    /// Remedy: allow `getrandom` in the container.
    #[error("the kernel gives no random bytes for the job's secret: {0}")]
    Random(#[source] io::Error),
    /// The memory that the PEs of the node share cannot be made.
    /// Remedy: free memory, raise the limit named as the cause, or permit the call.
    #[error(
        "PE {pe} cannot make the memory that its node shares ({cause}){}",
        after_local_failure(cause)
    )]
    Memory {
        /// This PE.
        pe: u32,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// Another PE of the node has not done its part within the time limit.
    #[error(
        "PE {pe} has waited {} s for PE {other} on this node {what}: it is stopped or gets no processor; let it run, or \
         start the job again",
        limit.as_secs()
    )]
    SilentNodePeer {
        /// This PE.
        pe: u32,
        /// The time for which it has waited.
        limit: Duration,
        /// For which PE.
        other: u32,
        /// To do what.
        what: &'static str,
    },
    /// The connection to another PE of the node failed.
    /// Remedy: raise `ulimit -n` if it says so; otherwise look for the message of that PE.
    #[error("the connection to PE {pe} on this node failed ({cause}){}", after_connection(cause))]
    NodePeer {
        /// That PE.
        pe: u32,
        /// The error of the operating system.
        #[source]
        cause: io::Error,
    },
    /// The variables of a job that processes form by them are wrong.
    /// Remedy: set what the message names.
    #[error("{0}")]
    JobVariables(String),
    /// This process cannot serve the meeting of a job.
    /// Remedy: correct what the cause names: addresses, descriptors, or threads.
    #[error(
        "this process cannot serve the meeting of its job ({cause}){}",
        after_local_failure(.0),
        cause = .0
    )]
    Serving(#[source] io::Error),
    /// PE 0 cannot serve the meeting at the place that the user has named.
    #[error(
        "PE 0 cannot listen at SHMEM_JOB={at} ({cause}): name its own host and a free port there"
    )]
    MeetingPlace {
        /// Host and port.
        at: String,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// No meeting is where the unique id leads.
    #[error(
        "nobody serves the job of this unique id ({tried}): the id is of another job or of one that has ended, or its \
         process has ended, or a firewall is between; make an id for each job, in a process that lives as long as the job"
    )]
    NoMeeting {
        /// Each address and what came of it.
        tried: String,
    },
    /// Nobody serves the meeting where the variable leads.
    #[error(
        "PE 0 does not serve the job at SHMEM_JOB ({tried}) within {} s: start it there, give all processes the same \
         SHMEM_JOB and SHMEM_JOB_SECRET, or raise SHMEM_JOIN_LIMIT",
        limit.as_secs_f64()
    )]
    NobodyServes {
        /// Each address and what came of it.
        tried: String,
        /// The time for which this PE has tried.
        limit: Duration,
    },
    /// The meeting refuses this process.
    /// Remedy: the message ends with it.
    #[error("{0}")]
    NotWelcome(String),
    /// The process that serves the meeting has ended.
    #[error(
        "the process that serves the meeting of this job ended before all PEs had come: look at its output"
    )]
    MeetingGone,
    /// The meeting does not begin within the time limit, and does not say why.
    #[error(
        "the process that serves the meeting of this job has not answered for {} s: it is stopped, or gets no processor",
        limit.as_secs_f64()
    )]
    SilentMeeting {
        /// The time for which this PE has waited.
        limit: Duration,
    },
    /// This process has opened its session already.
    /// Remedy: initialize one copy of the library in a process.
    #[error("this process has joined its job already")]
    AlreadyOpen,
    /// A record is larger than an exchange carries.
    /// Remedy: use fewer NICs by SHMEM_NIC, and report it.
    #[error(
        "a record of {nbytes} bytes is larger than the {MAX_RECORD} bytes that an exchange carries"
    )]
    RecordTooLarge {
        /// The record's size in bytes.
        nbytes: usize,
    },
    /// `oshrun` is gone, or the socket to it was closed by the program.
    /// Remedy: look for a message of oshrun, and close no descriptors of others.
    #[error(
        "the connection to oshrun is lost ({0}): oshrun has ended, or the program has closed the descriptor that {socket} \
         named",
        socket = env::SOCKET
    )]
    Lost(#[source] io::Error),
    /// `oshrun` sent bytes that are no frame of this protocol version.
    /// Remedy: use oshrun and librushmem of one installation.
    #[error("oshrun sent a frame that cannot be read: {0}")]
    Frame(#[from] FrameError),
    /// The launcher sent a message out of its place.
    /// Remedy: use oshrun and librushmem of one installation.
    #[error("the launcher sent {0} out of turn")]
    Unexpected(&'static str),
}

/// Returns how a process is named whose number may be unknown.
fn process(pe: &Option<u32>) -> String {
    pe.map_or("one process of several".to_owned(), |pe| format!("PE {pe} of several"))
}

/// Returns what can be done about a failure of this PE itself, as the end of a sentence.
fn after_local_failure(cause: &io::Error) -> &'static str {
    match cause.kind() {
        _ if is_short_of_descriptors(cause) => DESCRIPTORS,
        io::ErrorKind::AddrInUse => ": another process has the same number",
        io::ErrorKind::PermissionDenied => {
            ": a sandbox or container refuses it; permit memfd_create in its filter of system calls, or update its runtime"
        }
        _ => "",
    }
}

/// Returns the remedy for a connection that failed.
fn after_connection(cause: &io::Error) -> &'static str {
    match cause.kind() {
        _ if is_short_of_descriptors(cause) => DESCRIPTORS,
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::ConnectionRefused
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::BrokenPipe => ": it has ended",
        _ => "",
    }
}

const DESCRIPTORS: &str = ": raise the limit that ulimit -n shows";

fn is_short_of_descriptors(cause: &io::Error) -> bool {
    cause.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error())
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
