//! The PEs of this host: starts them, and transfers their frames and the input of PE 0.
//!
//! Frames are not interpreted. All that a PE has sent is reported before its exit.

pub mod socket;

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::sync::Arc;

use rushmem_bootstrap::Exit;
use rushmem_bootstrap::launcher::Statuses;
use rushmem_bootstrap::proto::Receivers;
use rushmem_topology::GroupLimit;
use tokio::sync::mpsc;

use self::socket::PeSocket;
use crate::daemons::connection::HostEvent;
use crate::ends::processes::{Child, Processes};
use crate::errors::{StartFailure, reason};
use crate::hang_report::snapshots::{NodeCollector, NodeMemfd};
use crate::input::{self, InputPipe};
use crate::output::Output;
use crate::spawn::PreparedStart;

/// Maximum number of reads from the socket of a PE that has exited. These suffice to empty a full
/// socket. Without a limit, a child of the PE that goes on writing would keep oshrun busy.
const MAX_LAST_READS: usize = 16;

/// The PEs of this host.
#[derive(Debug)]
pub struct LocalPes {
    first: u32,
    /// The socket of each PE, until the PE exits.
    sockets: Vec<Option<PeSocket>>,
    readable: mpsc::UnboundedSender<u32>,
    /// The stdin of PE 0, if PE 0 is on this host and [`LocalPes::send_input`] provides it.
    input: Option<InputPipe>,
    /// The shared memory of the node.
    memory: Option<Arc<OwnedFd>>,
    kills: MemoryKills,
}

impl LocalPes {
    /// Creates a list without PEs. `readable` receives the number of a PE that has sent something,
    /// or to which sending has failed.
    pub fn new(readable: mpsc::UnboundedSender<u32>) -> LocalPes {
        LocalPes {
            first: 0,
            sockets: Vec::new(),
            readable,
            input: None,
            memory: None,
            kills: MemoryKills::new(),
        }
    }

    /// Starts PEs, up to the first one that cannot be started. With `consumed`,
    /// [`LocalPes::send_input`] provides the input of PE 0, and each piece that was passed on to
    /// PE 0 is reported to this sender.
    pub fn start(
        &mut self,
        launch: &PreparedStart,
        consumed: Option<&mpsc::UnboundedSender<()>>,
        processes: &mut Processes,
        output: &mut Output,
        events: &mut VecDeque<HostEvent>,
    ) -> Result<(), StartFailure> {
        self.first = launch.pes.start;
        // If this fails, hang reports lack the statuses of PEs.
        let memory = rustix::io::fcntl_dupfd_cloexec(&launch.memory, 0).ok();
        self.memory = memory.map(Arc::new);

        for pe in launch.pes.clone() {
            let started = self.start_one(launch, pe, consumed, processes, output);
            let pid = started.map_err(|error| failure(launch, pe, &error))?;
            events.push_back(HostEvent::Started { pe, pid });
        }
        Ok(())
    }

    fn start_one(
        &mut self,
        launch: &PreparedStart,
        pe: u32,
        consumed: Option<&mpsc::UnboundedSender<()>>,
        processes: &mut Processes,
        output: &mut Output,
    ) -> io::Result<u32> {
        let stdin = match (pe, consumed) {
            (0, None) => match input::terminal_input()? {
                Some(pipe) => Stdio::from(pipe),
                None => Stdio::inherit(),
            },
            (0, Some(consumed)) => {
                let (input, stdin) = InputPipe::new(consumed.clone())?;
                self.input = Some(input);
                stdin
            }
            _ => Stdio::null(),
        };

        let started = launch.start(pe, stdin, processes.end_mechanisms())?;
        processes.add(Child::Pe(pe), started.pid);
        // The PE runs, so it has an entry even if one of the next steps fails.
        self.sockets.push(None);

        output.forward(pe, started.streams, launch.files.as_ref())?;
        let socket = PeSocket::new(pe, started.socket, self.readable.clone())?;
        *self.sockets.last_mut().expect("pushed just now") = Some(socket);
        Ok(started.pid.as_raw_nonzero().get().unsigned_abs())
    }

    fn socket(&self, pe: u32) -> Option<&PeSocket> {
        let index = pe.checked_sub(self.first)?;
        self.sockets.get(index as usize)?.as_ref()
    }

    /// Returns true if this PE was started on this host.
    pub fn has(&self, pe: u32) -> bool {
        pe.checked_sub(self.first)
            .is_some_and(|index| (index as usize) < self.sockets.len())
    }

    /// Returns the index on its node of a PE of this host.
    pub fn local_number(&self, pe: u32) -> u32 {
        pe - self.first
    }

    /// Returns the collector that makes snapshots of these PEs. `statuses` is the position of their
    /// statuses, if known.
    pub fn collector(&self, statuses: Option<Statuses>) -> NodeCollector {
        match statuses {
            Some(Statuses { offset, stride }) => NodeCollector {
                memory: NodeMemfd(self.memory.clone()),
                offset,
                stride,
            },
            None => NodeCollector {
                memory: NodeMemfd(None),
                offset: 0,
                stride: 0,
            },
        }
    }

    /// Sends a frame to a PE of this host.
    pub fn send(&self, pe: u32, frame: Arc<[u8]>) {
        if let Some(socket) = self.socket(pe) {
            socket.send(frame);
        }
    }

    /// Sends a frame to all PEs of this host, or to the first one.
    pub fn send_all(&self, to: Receivers, frame: &Arc<[u8]>) {
        let n_pes = match to {
            Receivers::All => self.sockets.len(),
            Receivers::FirstOfNode => 1,
        };
        for socket in self.sockets.iter().take(n_pes).flatten() {
            socket.send(frame.clone());
        }
    }

    /// Sends a piece of input to PE 0, if it is on this host. An empty piece ends the input.
    pub fn send_input(&mut self, bytes: Vec<u8>) {
        if bytes.is_empty() {
            self.input = None;
        } else if let Some(input) = &self.input {
            input.send(bytes);
        }
    }

    /// Reads a part of what a PE has sent, and queues the PE again, since there may be more.
    /// Returns the bytes or a failure as an event, if there is one.
    pub fn read(&self, pe: u32) -> Option<HostEvent> {
        let socket = self.socket(pe)?;
        if let Some(error) = socket.send_error() {
            return Some(unreachable(pe, "send to", error));
        }
        match read_piece(socket) {
            Ok(bytes) if bytes.is_empty() => None,
            Ok(bytes) => {
                // The receiver lives as long as this process.
                let _ = self.readable.send(pe);
                Some(HostEvent::Frames { pe, bytes })
            }
            Err(error) => Some(unreachable(pe, "receive from", &error)),
        }
    }

    /// Adds the events of a PE whose process has ended: the last bytes that it has sent or a
    /// failure to receive them, a notice if it was killed for lack of memory, and its exit.
    pub fn add_exit(&mut self, pe: u32, exit: Exit, events: &mut VecDeque<HostEvent>) {
        for _ in 0..MAX_LAST_READS {
            match self.socket(pe).map(read_piece) {
                Some(Ok(bytes)) if !bytes.is_empty() => {
                    events.push_back(HostEvent::Frames { pe, bytes })
                }
                Some(Err(error)) => {
                    events.push_back(unreachable(pe, "receive from", &error));
                    break;
                }
                _ => break,
            }
        }
        if let Some(socket) = self.sockets.get_mut((pe - self.first) as usize) {
            *socket = None;
        }

        if exit == Exit::Signal(libc::SIGKILL)
            && let Some(notice) = self.kills.notice(pe)
        {
            events.push_back(HostEvent::Notice(notice));
        }
        events.push_back(HostEvent::Exited { pe, exit });
    }
}

/// Reads the bytes that have arrived, 16 KiB at most. Returns an empty vector if there are none.
fn read_piece(socket: &PeSocket) -> io::Result<Vec<u8>> {
    let mut bytes = [0; 16 * 1024];
    let nbytes = socket.read(&mut bytes)?;
    Ok(bytes[..nbytes].to_vec())
}

/// Returns the failure of communication with a PE, which ends the job: otherwise the PE would wait
/// forever.
fn unreachable(pe: u32, what: &str, error: &io::Error) -> HostEvent {
    HostEvent::failed(format!("cannot {what} PE {pe}: {}", reason(error)))
}

/// Returns the failure to start a PE. If the program cannot be executed, the status is 127 or 126,
/// as in a shell, otherwise 1.
fn failure(launch: &PreparedStart, pe: u32, error: &io::Error) -> StartFailure {
    let status = match error.kind() {
        io::ErrorKind::NotFound => 127,
        io::ErrorKind::PermissionDenied => 126,
        _ if error.raw_os_error() == Some(libc::ENOEXEC) => 126,
        _ => 1,
    };
    // `prepare` has found the file itself, so another one is missing.
    let what = match error.kind() {
        io::ErrorKind::NotFound => " (of its interpreter or loader)",
        _ => "",
    };
    let file = launch.file.display();
    let reason = reason(error);
    StartFailure {
        status,
        sentence: format!("cannot start {file} as PE {pe}: {reason}{what}"),
    }
}

/// Detects that the kernel has killed a PE for lack of memory. The SIGKILL alone may have another
/// sender, but the kernel counts such kills, in each control group and on the whole host.
#[derive(Debug)]
pub struct MemoryKills {
    /// The groups of this process with a limit of memory.
    groups: Vec<KillCount>,
    /// The number of kills that are known, whichever limit was reached; `None` if the kernel does
    /// not count them.
    known: Option<u64>,
}

/// A control group of this process with a limit of memory.
#[derive(Debug)]
struct KillCount {
    group: GroupLimit,
    /// The number of kills that are known.
    known: u64,
}

impl MemoryKills {
    /// Counts the kills before the job.
    pub fn new() -> MemoryKills {
        let mut groups = Vec::new();
        for group in GroupLimit::of_memory() {
            let known = group.n_killed();
            groups.push(KillCount { group, known });
        }
        MemoryKills {
            groups,
            known: rushmem_topology::memory_kills(),
        }
    }

    /// Returns a notice about a PE that SIGKILL has ended, if the kernel has counted a new kill,
    /// and counts that kill as known: further ones are those of PEs whose ends are handled later.
    fn notice(&mut self, pe: u32) -> Option<String> {
        // The counts of outer groups include kills in groups beside this one.
        if !self.count(rushmem_topology::memory_kills()) {
            return None;
        }

        Some(match self.next_limit() {
            Some(limit) => format!(
                "the kernel has killed PE {pe} for lack of memory, with a limit of {limit}: request more memory for \
                 this job, or start fewer PEs"
            ),
            None => format!(
                "the kernel has killed a process of this host for lack of memory since the job began, probably \
                 PE {pe}: let the program use less memory, or start fewer PEs on this host"
            ),
        })
    }

    /// Returns true if `now`, the number of kills, has a kill that is not known yet, and counts one
    /// as known.
    fn count(&mut self, now: Option<u64>) -> bool {
        let (Some(known), Some(now)) = (&mut self.known, now) else {
            return false;
        };
        let is_new = now > *known;
        *known += u64::from(is_new);
        is_new
    }

    /// Returns the limit that has led to a new kill, if there is one, and counts one kill as known.
    fn next_limit(&mut self) -> Option<String> {
        let grown = self
            .groups
            .iter_mut()
            .find(|count| count.group.n_killed() > count.known)?;
        grown.known += 1;
        let limit = grown.group.limit >> 20;
        Some(format!("{limit} MiB ({})", grown.group.file.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kill_for_lack_of_memory_explains_one_end() {
        let mut kills = MemoryKills {
            groups: Vec::new(),
            known: Some(4),
        };
        assert!(!kills.count(Some(4)));
        assert!(kills.count(Some(6)));
        assert!(kills.count(Some(6)));
        assert!(!kills.count(Some(6)));
        assert!(!kills.count(None));
    }
}
