//! The errors between a PE and its launcher, each as one sentence, which names the remedy if there
//! is one.

use std::io;
use std::time::Duration;

use rushmem_connect::sealed::Forged;
use rushmem_system::refused_calls;

use crate::env;
use crate::proto::FrameError;
use crate::records::MAX_RECORD;

/// Why a PE could not join its job, or reach its launcher later.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A variable of oshrun does not name the descriptor that it should.
    #[error(
        "{name}={value} does not name {wanted}: a program between oshrun and this one has changed the variable or closed \
         its descriptors, as Python's subprocess does without close_fds=False"
    )]
    Descriptor {
        /// The name of the variable.
        name: &'static str,
        /// The value of the variable.
        value: String,
        /// The expected kind of descriptor, for example "a connected unix socket".
        wanted: &'static str,
    },
    /// Another launcher has started several processes, and there is no way to join them.
    #[error(
        "{launcher} started this program as {} ({name}={value}), {remedy}",
        process(pe)
    )]
    Foreign {
        /// The launcher's common name.
        launcher: &'static str,
        /// The rank of this process, if the launcher's variables show it.
        pe: Option<u32>,
        /// The variable that shows several processes: their number, or, for PMIx, a rank.
        name: &'static str,
        /// The value of the variable.
        value: String,
        /// The missing part, and the remedy.
        remedy: String,
    },
    /// The process manager that the variables of a launcher name does not answer, or does not speak
    /// their protocol.
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
        /// The variables and their values.
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
        /// The message of the dynamic loader.
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
    #[error("{call} failed: {cause}")]
    Pmix {
        /// The function of libpmix.
        call: &'static str,
        /// The text of libpmix for the status.
        cause: String,
    },
    /// The process manager refused a request, or sent an unexpected answer.
    #[error("the process manager answered the PMI request {request} with: {reply}")]
    Refused {
        /// The request.
        request: String,
        /// The answer.
        reply: String,
    },
    /// The connection to the process manager, or to the meeting of the job, cannot be made or is
    /// lost.
    #[error(
        "the connection to the process manager is lost ({0}): it has ended, or MPI_Finalize has closed it; call \
         shmem_finalize first"
    )]
    ManagerLost(#[source] io::Error),
    /// The process manager does not answer a request that depends on no other process.
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
        /// The time for which the PE has waited.
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
    /// This PE cannot open or use the socket by which the other PEs of its node find it.
    #[error(
        "PE {pe} cannot listen for the other PEs of its node ({cause}){}",
        after_local_failure(cause)
    )]
    Listening {
        /// This PE.
        pe: u32,
        /// The error of the socket.
        #[source]
        cause: io::Error,
    },
    /// The kernel provides no random bytes, as in a sandbox that forbids `getrandom`.
    #[error("the kernel gives no random bytes for the job's secret: {0}")]
    Random(#[source] io::Error),
    /// The memory that the PEs of the node share cannot be created.
    #[error(
        "PE {pe} cannot make the memory that its node shares ({cause}){}",
        after_local_failure(cause)
    )]
    Memory {
        /// This PE.
        pe: u32,
        /// The error of the operating system.
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
        /// The PE for which it has waited.
        other: u32,
        /// The missing step of that PE, such as "to connect".
        what: &'static str,
    },
    /// The connection to another PE of the node failed.
    #[error(
        "the connection to PE {pe} on this node failed ({cause}){}",
        after_connection(cause)
    )]
    NodePeer {
        /// The number of the other PE.
        pe: u32,
        /// The error of the operating system, or a text about what that PE has sent.
        #[source]
        cause: io::Error,
    },
    /// The variables by which processes form a job without a launcher are missing or invalid.
    #[error("{0}")]
    JobVariables(String),
    /// This process cannot serve the meeting of a job: it lacks an address, a descriptor or a
    /// thread, or a setting for addresses or ports is invalid.
    #[error(
        "this process cannot serve the meeting of its job ({cause}){}",
        after_local_failure(.0),
        cause = .0
    )]
    Serving(#[source] io::Error),
    /// PE 0 cannot listen at the address that the user has named for the meeting.
    #[error(
        "PE 0 cannot listen at SHMEM_JOB={address} ({cause}): name its own host and a free port there"
    )]
    MeetingAddress {
        /// Host and port.
        address: String,
        /// The error of the operating system.
        #[source]
        cause: io::Error,
    },
    /// Another process has one of the addresses that the user has named for the meeting.
    #[error(
        "PE 0 cannot listen at SHMEM_JOB={name}: {taken}, and has for {:.1} s; name a port that is free at all addresses \
         of its host, end that process, or raise SHMEM_JOIN_LIMIT if it is of another job with this SHMEM_JOB",
        waited.as_secs_f64()
    )]
    MeetingTaken {
        /// Host and port.
        name: String,
        /// The address, and the process that has it.
        taken: String,
        /// The time for which PE 0 has tried.
        waited: Duration,
    },
    /// No process serves the meeting at the addresses of the unique id.
    #[error(
        "nobody serves the job of this unique id ({tried}): the id is of another job or of one that has ended, or its \
         process has ended, or a firewall is between; make an id for each job, in a process that lives as long as the job"
    )]
    NoMeeting {
        /// Each address and the result of the attempt.
        tried: String,
    },
    /// No process serves the meeting at the address in `SHMEM_JOB`.
    #[error(
        "PE 0 does not serve the job at SHMEM_JOB ({tried}), for which this process has waited {:.1} s: start it there, give \
         all processes the same SHMEM_JOB and SHMEM_JOB_SECRET, or raise SHMEM_JOIN_LIMIT if another job with this \
         SHMEM_JOB may still run",
        waited.as_secs_f64()
    )]
    NobodyServes {
        /// Each address and the result of the attempt.
        tried: String,
        /// The time for which this PE has tried.
        waited: Duration,
    },
    /// The meeting refuses this process, with this message.
    #[error("{0}")]
    NotWelcome(String),
    /// The process that serves the meeting has ended, or the connection to it.
    #[error(
        "the connection to the process that serves the meeting of this job has ended: look at the output of that process"
    )]
    MeetingGone,
    /// The meeting gives no sign of life within the time limit.
    #[error(
        "the process that serves the meeting of this job has sent nothing for {} s: it is stopped or gets no processor, or \
         a process in between holds back what it sends ({IN_BETWEEN})",
        limit.as_secs_f64()
    )]
    SilentMeeting {
        /// The time for which this PE has waited.
        limit: Duration,
    },
    /// What has arrived on a sealed connection to the meeting is not what was sent.
    #[error(
        "{0} between this process and the one that serves the meeting of its job ({IN_BETWEEN})"
    )]
    Forged(#[from] Forged),
    /// This process has already joined its job, or has aborted it without that.
    #[error("this process has joined its job already")]
    AlreadyJoined,
    /// A record is larger than the limit of an exchange.
    #[error(
        "a record of {nbytes} bytes is larger than the {MAX_RECORD} bytes that an exchange carries"
    )]
    RecordTooLarge {
        /// The record's size in bytes.
        nbytes: usize,
    },
    /// `oshrun` has ended, or the program has closed the socket to it.
    #[error(
        "the connection to oshrun is lost ({0}): oshrun has ended, or the program has closed the descriptor that {socket} \
         named",
        socket = env::SOCKET
    )]
    Lost(#[source] io::Error),
    /// `oshrun` has sent bytes that are not a frame of this protocol version.
    #[error("oshrun sent a frame that cannot be read: {0}")]
    Frame(#[from] FrameError),
    /// The launcher has sent a message that does not belong here, as one of another version would.
    #[error("the launcher sent {0} out of turn")]
    Unexpected(&'static str),
}

/// The remedy where a process in between interferes with a meeting.
pub(crate) const IN_BETWEEN: &str = "see which process listens at the address of the meeting, and give the job one that no \
    other user can take";

/// Returns the words for a process whose rank may be unknown.
fn process(pe: &Option<u32>) -> String {
    match pe {
        Some(pe) => format!("PE {pe} of several"),
        None => "one process of several".to_owned(),
    }
}

/// Returns the remedy or the reason for a failed system call, as the end of a sentence; empty if
/// neither is known.
fn after_local_failure(cause: &io::Error) -> String {
    match cause.kind() {
        _ if is_short_of_descriptors(cause) => DESCRIPTORS.to_owned(),
        io::ErrorKind::AddrInUse => ": another process has the same number".to_owned(),
        io::ErrorKind::PermissionDenied => format!(": {}", refused_calls::remedy("the call")),
        _ => String::new(),
    }
}

/// Returns the remedy or the reason for a connection that failed, as the end of a sentence; empty
/// if neither is known.
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
        assert!(
            short.contains("ulimit -n") && !short.contains("it has ended"),
            "{short}"
        );
        let over = text(io::ErrorKind::UnexpectedEof.into());
        assert!(
            over.contains("PE 3") && over.contains("it has ended"),
            "{over}"
        );
    }
}
