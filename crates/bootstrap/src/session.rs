//! A PE's membership in its job, however the job was started.
//!
//! It carries records without looking into them and never ends the process itself: a caller that has aborted sleeps
//! until the launcher kills it, and exits when nobody does.
#![forbid(unsafe_code)]

use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Error;
use crate::foreign;
use crate::inherited::Inherited;
use crate::link::{Link, Sender};
use crate::nodes::NodeMap;
use crate::proto::{FromLauncher, FromPe, MAX_MESSAGE, MAX_RECORD};

/// One PE's membership in its job.
#[derive(Debug)]
pub struct Session {
    pe: u32,
    nodes: NodeMap,
    memory: Option<OwnedFd>,
    /// The way to `oshrun`; none in a job that nobody started.
    link: Option<Link>,
    round: u32,
}

/// Set once by the first open of this process.
static OPENED: AtomicBool = AtomicBool::new(false);

impl Session {
    /// Joins the job that the environment shows: `oshrun`'s, or a job of this one PE when no launcher is there.
    ///
    /// Removes the variables that led here, so that programs started later are jobs of their own.
    ///
    /// # Errors
    /// When another launcher shows several processes, since this one must not take itself for a job of its own; when a
    /// descriptor that `oshrun` should have left is missing; when `oshrun` does not answer; at the second call.
    pub fn open() -> Result<Session, Error> {
        if OPENED.swap(true, Ordering::SeqCst) {
            return Err(Error::AlreadyOpen);
        }
        match Inherited::take()? {
            Some(Inherited { socket, memory }) => Session::join(Link::new(socket), Some(memory)),
            None => match foreign::several(|name| {
                std::env::var_os(name).map(|value| value.to_string_lossy().into())
            }) {
                Some(error) => Err(error),
                None => Ok(Session::alone()),
            },
        }
    }

    fn alone() -> Session {
        let nodes = NodeMap::one_node(1).expect("one PE is a job");
        Session { pe: 0, nodes, memory: None, link: None, round: 0 }
    }

    fn join(mut link: Link, memory: Option<OwnedFd>) -> Result<Session, Error> {
        link.send(&FromPe::Hello { pid: std::process::id() })?;
        match link.receive()? {
            FromLauncher::Welcome { pe, nodes } if pe < nodes.n_pes() => {
                Ok(Session { pe, nodes, memory, link: Some(link), round: 0 })
            }
            FromLauncher::Welcome { .. } => Err(Error::Unexpected("a PE number beyond the job")),
            FromLauncher::Gathered { .. } => Err(Error::Unexpected("records")),
        }
    }

    /// This PE's number in the job.
    pub fn pe(&self) -> u32 {
        self.pe
    }

    /// Number of PEs in the job.
    pub fn n_pes(&self) -> u32 {
        self.nodes.n_pes()
    }

    /// This PE's number among the PEs of its node.
    pub fn local_id(&self) -> u32 {
        self.nodes.local_index(self.pe)
    }

    /// Who shares a node with whom.
    pub fn nodes(&self) -> &NodeMap {
        &self.nodes
    }

    /// Gives `record` to every PE and waits for theirs; collective over the whole job. The result is indexed by PE and
    /// holds this PE's own record too.
    ///
    /// # Errors
    /// When the record exceeds [`MAX_RECORD`] bytes or `oshrun` is gone.
    pub fn exchange(&mut self, record: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        if record.len() > MAX_RECORD {
            return Err(Error::RecordTooLarge { nbytes: record.len() });
        }
        let Some(link) = &mut self.link else {
            return Ok(vec![record.to_vec()]);
        };
        link.send(&FromPe::Exchange { round: self.round, record: record.to_vec() })?;
        match link.receive()? {
            FromLauncher::Gathered { round, records }
                if round == self.round && records.len() == self.nodes.n_pes() as usize =>
            {
                self.round = self.round.wrapping_add(1);
                Ok(records)
            }
            FromLauncher::Gathered { .. } => {
                Err(Error::Unexpected("the records of another exchange"))
            }
            FromLauncher::Welcome { .. } => Err(Error::Unexpected("a second welcome")),
        }
    }

    /// Waits until every PE of the job has called it.
    ///
    /// # Errors
    /// When `oshrun` is gone.
    pub fn barrier(&mut self) -> Result<(), Error> {
        self.exchange(&[]).map(drop)
    }

    /// The memfd that all PEs of this node inherited, empty and unsealed when the first of them looks at it. `None` at
    /// the second call, and in a job without a launcher, where nobody else needs it.
    pub fn take_node_memory(&mut self) -> Option<OwnedFd> {
        self.memory.take()
    }

    /// Tells the launcher that the last finalize is done, so that this PE may exit.
    ///
    /// # Errors
    /// When `oshrun` is gone.
    pub fn finalized(&mut self) -> Result<(), Error> {
        self.tell(&FromPe::Finalized)
    }

    /// Tells the launcher that this PE has entered initialisation again after its last finalize.
    ///
    /// # Errors
    /// When `oshrun` is gone.
    pub fn resumed(&mut self) -> Result<(), Error> {
        self.tell(&FromPe::Resumed)
    }

    /// Whether a launcher started this PE.
    pub fn is_launched(&self) -> bool {
        self.link.is_some()
    }

    /// A handle that ends the job from any thread at any time, also while another thread waits in
    /// [`Session::exchange`], and after the session is gone.
    pub fn aborter(&self) -> Aborter {
        Aborter { sender: self.link.as_ref().map(|link| link.sender().clone()) }
    }

    fn tell(&self, message: &FromPe) -> Result<(), Error> {
        self.link.as_ref().map_or(Ok(()), |link| link.send(message))
    }
}

/// Ends the whole job.
#[derive(Clone, Debug)]
pub struct Aborter {
    sender: Option<Arc<Sender>>,
}

impl Aborter {
    /// Asks the launcher to print `message`, unless another PE was first, and to end the job with `status` (0 counts as
    /// 1). Where there is no launcher to ask, prints the message on stderr itself.
    ///
    /// Returns whether a launcher will end this process; if not, the caller exits by itself.
    pub fn abort(&self, status: i32, message: &str) -> bool {
        let cut = (0..=message.len().min(MAX_MESSAGE))
            .rev()
            .find(|&at| message.is_char_boundary(at))
            .unwrap_or(0);
        let asked = self.ask(&FromPe::Abort { status, message: message[..cut].to_string() });
        if !asked {
            // A PE without a stderr has nobody to tell.
            let _ = writeln!(std::io::stderr(), "{message}");
        }
        asked
    }

    /// Asks the launcher to end the job with `status`, silently (OpenSHMEM 1.6, shmem_global_exit).
    ///
    /// Returns whether a launcher will end this process; if not, the caller exits by itself.
    pub fn global_exit(&self, status: i32) -> bool {
        self.ask(&FromPe::GlobalExit { status })
    }

    fn ask(&self, message: &FromPe) -> bool {
        self.sender.as_ref().is_some_and(|sender| sender.send(message).is_ok())
    }
}

#[cfg(test)]
mod tests;
