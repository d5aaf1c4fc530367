//! The PEs that this process has started itself: their start, their frames and their input.
//!
//! It knows nothing of messages. It reports what a PE has sent before it reports the exit of the PE.

use std::collections::VecDeque;
use std::io;
use std::process::Stdio;
use std::sync::Arc;

use rushmem_bootstrap::Exit;
use tokio::sync::mpsc;

use crate::failure::{Failure, reason};
use crate::input::{self, Fed};
use crate::link::Link;
use crate::output::Output;
use crate::processes::{Member, Processes};

use crate::spawn::Launch;
use crate::tree::wire::Up;

/// Maximum number of pieces that are read when a PE exits: what it sent last fits its socket, and a child of it that
/// continues to write is not waited for.
const LAST_PIECES: usize = 16;

/// The PEs of this process.
#[derive(Debug)]
pub struct LocalPes {
    first: u32,
    /// The connection to each PE, until it exits.
    links: Vec<Option<Link>>,
    readable: mpsc::UnboundedSender<u32>,
    /// The source of PE 0's input, if PE 0 is here.
    input: Option<Fed>,
}

impl LocalPes {
    /// Without any PE. PEs that have sent something are announced on `readable`.
    pub fn new(readable: mpsc::UnboundedSender<u32>) -> LocalPes {
        LocalPes { first: 0, links: Vec::new(), readable, input: None }
    }

    /// Starts PEs, up to the first that cannot be started. `fed`: the input of PE 0 comes from [`LocalPes::feed`], and each
    /// piece that it has taken is reported to this sender.
    ///
    /// # Errors
    /// When one cannot be started.
    pub fn start(
        &mut self,
        launch: &Launch,
        pes: std::ops::Range<u32>,
        fed: Option<&mpsc::UnboundedSender<()>>,
        processes: &mut Processes,
        output: &mut Output,
        news: &mut VecDeque<Up>,
    ) -> Result<(), Failure> {
        self.first = pes.start;
        for pe in pes {
            let started = self.start_one(launch, pe, fed, processes, output);
            let pid = started.map_err(|error| failure(launch, pe, &error))?;
            news.push_back(Up::Started { pe, pid });
        }
        Ok(())
    }

    fn start_one(
        &mut self,
        launch: &Launch,
        pe: u32,
        fed: Option<&mpsc::UnboundedSender<()>>,
        processes: &mut Processes,
        output: &mut Output,
    ) -> io::Result<u32> {
        let stdin = match (pe, fed) {
            (0, None) => input::of_first_pe()?,
            (0, Some(taken)) => {
                let (fed, stdin) = Fed::new(taken.clone())?;
                self.input = Some(fed);
                stdin
            }
            _ => Stdio::null(),
        };
        let started = launch.start(pe, stdin, processes.ties())?;
        processes.add(Member::Pe(pe), started.pid);
        self.links.push(None);
        output.forward(pe, started.streams, launch.files.as_ref())?;
        let link = Link::new(pe, started.socket, self.readable.clone())?;
        *self.links.last_mut().expect("pushed just now") = Some(link);
        Ok(started.pid.as_raw_nonzero().get().unsigned_abs())
    }

    fn link(&self, pe: u32) -> Option<&Link> {
        let index = pe.checked_sub(self.first)?;
        self.links.get(index as usize)?.as_ref()
    }

    /// Whether this PE was started here.
    pub fn has(&self, pe: u32) -> bool {
        pe.checked_sub(self.first).is_some_and(|index| (index as usize) < self.links.len())
    }

    /// Sends a frame to a PE that was started here.
    pub fn send(&self, pe: u32, frame: Arc<[u8]>) {
        if let Some(link) = self.link(pe) {
            link.send(frame);
        }
    }

    /// Sends a frame to all PEs that were started here.
    pub fn send_all(&self, frame: &Arc<[u8]>) {
        self.links.iter().flatten().for_each(|link| link.send(frame.clone()));
    }

    /// Passes a piece of input to PE 0, if it is here; none is the end.
    pub fn feed(&mut self, bytes: Vec<u8>) {
        if bytes.is_empty() {
            self.input = None;
        } else if let Some(input) = &self.input {
            input.pass(bytes);
        }
    }

    /// A part of what a PE has sent, or why messages cannot pass between it and this process; the
    /// PE is announced again, since there may be more.
    pub fn read(&self, pe: u32) -> Option<Up> {
        let link = self.link(pe)?;
        if let Some(error) = link.unsendable() {
            return Some(unreachable(pe, "send to", error));
        }
        match piece(link) {
            Ok(bytes) if bytes.is_empty() => None,
            Ok(bytes) => {
                // This process has the receiver.
                let _ = self.readable.send(pe);
                Some(Up::Frames { pe, bytes })
            }
            Err(error) => Some(unreachable(pe, "receive from", &error)),
        }
    }

    /// The process of a PE has ended: what it sent last, then its exit.
    pub fn exited(&mut self, pe: u32, exit: Exit, news: &mut VecDeque<Up>) {
        for _ in 0..LAST_PIECES {
            match self.link(pe).map(piece) {
                Some(Ok(bytes)) if !bytes.is_empty() => news.push_back(Up::Frames { pe, bytes }),
                Some(Err(error)) => {
                    news.push_back(unreachable(pe, "receive from", &error));
                    break;
                }
                _ => break,
            }
        }
        if let Some(link) = self.links.get_mut((pe - self.first) as usize) {
            *link = None;
        }
        news.push_back(Up::Exited { pe, exit });
    }
}

/// What has arrived, as far as it fits; empty if there is nothing.
fn piece(link: &Link) -> io::Result<Vec<u8>> {
    let mut bytes = [0; 16 * 1024];
    let nbytes = link.read(&mut bytes)?;
    Ok(bytes[..nbytes].to_vec())
}

/// Why messages cannot pass between a PE and this process, so that the PE would wait for ever.
fn unreachable(pe: u32, what: &str, error: &io::Error) -> Up {
    Up::Failed { status: 1, sentence: format!("cannot {what} PE {pe}: {}", reason(error)) }
}

/// The reason why a PE cannot be started, with the status that a shell would return.
fn failure(launch: &Launch, pe: u32, error: &io::Error) -> Failure {
    let status = match error.kind() {
        io::ErrorKind::NotFound => 127,
        io::ErrorKind::PermissionDenied => 126,
        _ if error.raw_os_error() == Some(libc::ENOEXEC) => 126,
        _ => 1,
    };
    let (file, reason) = (launch.file.display(), reason(error));
    let cure = match error.kind() {
        io::ErrorKind::NotFound => " (of its interpreter or loader)",
        io::ErrorKind::WouldBlock => {
            " (the limit of processes is reached: see ulimit -u, and pids.max of the control group)"
        }
        _ => "",
    };
    Failure { status, sentence: format!("cannot start {file} as PE {pe}: {reason}{cure}") }
}
