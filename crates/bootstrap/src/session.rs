//! A PE's membership in its job, however the job was started.
//!
//! It transfers records without interpreting them and never ends the process itself: a caller that
//! has aborted sleeps until the launcher kills it, and exits if nobody does.

use std::io::Write;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::detect::{self, JoinRoute, Protocol};
use crate::error::Error;
use crate::inherited::{self, Inherited};
use crate::link::{Link, Sender};
use crate::managed::{self, Ender, Managed, Manager};
use crate::meeting::{self, Attendance, MeetingLimits};
use crate::nodes::NodeMap;
use crate::proto::{FromLauncher, FromPe, MAX_MESSAGE, Receivers};
use crate::records::{MAX_RECORD, Records};

/// One PE's membership in its job.
#[derive(Debug)]
pub struct JobSession {
    pe: u32,
    nodes: NodeMap,
    memory: Option<OwnedFd>,
    job: Membership,
    round: u32,
}

/// The launcher of the job, and the connection to it.
#[derive(Debug)]
enum Membership {
    /// Nobody.
    Alone,
    /// `oshrun`.
    Oshrun(Link),
    /// A process manager.
    Managed(Managed),
}

/// The way by which a process joins its job.
#[derive(Debug)]
pub struct Joining<'a> {
    /// Chooses among process managers.
    pub protocol: Protocol,
    /// The program can open shared libraries, as PMIx needs: a statically linked one cannot.
    pub opens_libraries: bool,
    /// Under a process manager the other PEs of the node get this file
    /// ([`take_node_files`](JobSession::take_node_files)).
    pub file: Option<BorrowedFd<'a>>,
    /// The meeting that the program has named, which counts where `oshrun` has not started the
    /// process.
    pub meeting: Option<Attendance>,
    /// Limits of time of a meeting.
    pub limits: MeetingLimits,
}

impl Default for Joining<'_> {
    fn default() -> Self {
        Joining {
            protocol: Protocol::Any,
            opens_libraries: true,
            file: None,
            meeting: None,
            limits: MeetingLimits::default(),
        }
    }
}

/// Set once by the first open of this process.
static OPENED: AtomicBool = AtomicBool::new(false);

impl JobSession {
    /// Joins the job that the environment shows or the program has named: that of `oshrun`, of a
    /// meeting, or of a process manager that speaks PMI-1, PMI-2 or PMIx, or a job of this one PE
    /// when there is nothing of the kind.
    ///
    /// Removes `oshrun`'s variables, so that programs started later are jobs of their own.
    ///
    /// `identified` gets this PE's number and a handle that ends the job as soon as the launcher
    /// has named it, which is before the other PEs are met: what goes wrong from then on has to
    /// end the whole job.
    ///
    /// # Errors
    /// When a launcher shows several processes but no way to reach them, since this one must not
    /// take itself for a job of its own; when a descriptor that a launcher should have left is
    /// missing; when the launcher or a PE of this node does not answer; at the second call.
    pub fn open(
        joining: &Joining<'_>,
        identified: impl FnOnce(u32, Aborter),
    ) -> Result<JobSession, Error> {
        if OPENED.swap(true, Ordering::SeqCst) {
            return Err(Error::AlreadyOpen);
        }
        let (session, by) = if let Some(Inherited { socket, memory }) = Inherited::take()? {
            (JobSession::join(Link::new(socket), Some(memory))?, "oshrun's protocol")
        } else if let Some(manager) = find_manager(joining)? {
            identified(manager.pe(), Aborter { by: EndedBy::Managed(manager.ender()) });
            let n_pes = manager.n_pes();
            rushmem_log::debug!(n_pes, "the process manager answers");
            let session = JobSession::managed(Managed::join(manager, joining.file)?);
            rushmem_log::debug!(n_nodes = session.nodes.n_nodes(), "the PEs of the node have met");
            return Ok(session);
        } else {
            (JobSession::alone(), "no launcher: it is a job of one PE")
        };
        identified(session.pe, session.aborter());
        let (n_pes, n_nodes) = (session.n_pes(), session.nodes.n_nodes());
        rushmem_log::debug!(n_pes, n_nodes, "joins by {by}");
        Ok(session)
    }

    fn alone() -> JobSession {
        let nodes = NodeMap::one_node(1).expect("one PE is a job");
        JobSession { pe: 0, nodes, memory: None, job: Membership::Alone, round: 0 }
    }

    fn managed(mut managed: Managed) -> JobSession {
        let (pe, nodes, memory) = (managed.pe(), managed.nodes().clone(), managed.take_memory());
        JobSession { pe, nodes, memory, job: Membership::Managed(managed), round: 0 }
    }

    fn join(mut link: Link, memory: Option<OwnedFd>) -> Result<JobSession, Error> {
        link.send(&FromPe::Hello { pid: std::process::id() })?;
        match link.receive()? {
            FromLauncher::Welcome { pe, nodes } if pe < nodes.n_pes() => {
                Ok(JobSession { pe, nodes, memory, job: Membership::Oshrun(link), round: 0 })
            }
            FromLauncher::Welcome { .. } => Err(Error::Unexpected("a PE number beyond the job")),
            FromLauncher::Gathered { .. } => Err(Error::Unexpected("records")),
            _ => Err(Error::Unexpected("a message of a meeting")),
        }
    }

    /// Returns the number of this PE in the job.
    pub fn pe(&self) -> u32 {
        self.pe
    }

    /// Returns the number of PEs in the job.
    pub fn n_pes(&self) -> u32 {
        self.nodes.n_pes()
    }

    /// Returns the number of this PE among those of its node.
    pub fn local_id(&self) -> u32 {
        self.nodes.local_index(self.pe)
    }

    /// Returns who shares a node with whom.
    pub fn nodes(&self) -> &NodeMap {
        &self.nodes
    }

    /// Gives `record` to every PE and waits for theirs; collective over the whole job. The result
    /// holds this PE's own record too.
    ///
    /// # Errors
    /// When the record exceeds [`MAX_RECORD`] bytes or the launcher is gone.
    pub fn exchange(&mut self, record: &[u8]) -> Result<Records, Error> {
        let records = self.exchange_to(Receivers::All, record)?;
        records.ok_or(Error::Unexpected("the records of another exchange"))
    }

    /// Works as [`JobSession::exchange`], but only the first PE of each node gets the records, and
    /// waits for them. The others get `None`; their next exchange must come after that of the first
    /// PE.
    ///
    /// # Errors
    /// As [`JobSession::exchange`].
    pub fn exchange_to_first(&mut self, record: &[u8]) -> Result<Option<Records>, Error> {
        self.exchange_to(Receivers::FirstOfNode, record)
    }

    fn exchange_to(&mut self, to: Receivers, record: &[u8]) -> Result<Option<Records>, Error> {
        if record.len() > MAX_RECORD {
            return Err(Error::RecordTooLarge { nbytes: record.len() });
        }
        rushmem_log::debug!(nbytes = record.len(), ?to, "exchanges records with all PEs");
        let receives = to == Receivers::All || self.local_id() == 0;
        let link = match &mut self.job {
            Membership::Alone => return Ok(Some(std::iter::once(record.to_vec()).collect())),
            Membership::Managed(managed) => return managed.exchange(to, record),
            Membership::Oshrun(link) => link,
        };
        let round = self.round;
        link.send(&FromPe::Exchange { round, to, record: record.to_vec() })?;
        self.round = round.wrapping_add(1);
        if !receives {
            return Ok(None);
        }
        match link.receive()? {
            FromLauncher::Gathered { round: of, records }
                if of == round && records.n_pes() == self.nodes.n_pes() =>
            {
                let received = link.received();
                rushmem_log::trace!(round, received, "has the records of all PEs");
                Ok(Some(records))
            }
            FromLauncher::Gathered { .. } => {
                Err(Error::Unexpected("the records of another exchange"))
            }
            FromLauncher::Welcome { .. } => Err(Error::Unexpected("a second welcome")),
            _ => Err(Error::Unexpected("a message of a meeting")),
        }
    }

    /// Waits until every PE of the job has called it.
    ///
    /// # Errors
    /// When the launcher is gone.
    pub fn barrier(&mut self) -> Result<(), Error> {
        match &mut self.job {
            Membership::Managed(managed) => managed.barrier(),
            _ => self.exchange(&[]).map(drop),
        }
    }

    /// Returns the memfd that all PEs of this node have, from `oshrun` or from the node's first PE;
    /// empty and unsealed when the first of them looks at it. `None` at the second call, and where
    /// nobody else needs it: in a job of one PE, and for a PE that is alone on its node under a
    /// process manager.
    pub fn take_node_memory(&mut self) -> Option<OwnedFd> {
        self.memory.take()
    }

    /// Returns the files that the PEs of this node gave to [`JobSession::open`], in the order of
    /// the PEs; empty at the second call, and if no process manager started the job.
    pub fn take_node_files(&mut self) -> Vec<Option<OwnedFd>> {
        match &mut self.job {
            Membership::Managed(managed) => managed.take_files(),
            _ => Vec::new(),
        }
    }

    /// Reports to the launcher that the last finalize is done, so that this PE may exit.
    ///
    /// # Errors
    /// When `oshrun` is gone.
    pub fn finalized(&mut self) -> Result<(), Error> {
        match &self.job {
            Membership::Alone => {}
            Membership::Oshrun(link) => link.send(&FromPe::Finalized)?,
            Membership::Managed(managed) => managed.finalized(),
        }
        Ok(())
    }

    /// Reports to the launcher that this PE has entered initialization again after its last
    /// finalize.
    ///
    /// # Errors
    /// When `oshrun` is gone.
    pub fn resumed(&mut self) -> Result<(), Error> {
        match &self.job {
            Membership::Alone => {}
            Membership::Oshrun(link) => link.send(&FromPe::Resumed)?,
            Membership::Managed(managed) => managed.resumed(),
        }
        Ok(())
    }

    /// Works as [`JobSession::finalized`] for a PE at its exit that has not called it; every PE is
    /// at its exit.
    ///
    /// # Errors
    /// When `oshrun` is gone.
    pub fn unfinalized(&mut self) -> Result<(), Error> {
        match &mut self.job {
            Membership::Alone => {}
            Membership::Oshrun(link) => link.send(&FromPe::Unfinalized)?,
            Membership::Managed(managed) => {
                managed.finalized();
                managed.leave();
            }
        }
        Ok(())
    }

    /// Reports to `oshrun`, if this is PE 0, where the statuses of PEs are: see
    /// [`FromPe::Statuses`].
    ///
    /// # Errors
    /// When `oshrun` is gone.
    pub fn statuses_are(&self, stride: u64, at: u64) -> Result<(), Error> {
        match &self.job {
            Membership::Oshrun(link) if self.pe == 0 => link.send(&FromPe::Statuses { stride, at }),
            _ => Ok(()),
        }
    }

    /// Reports to `oshrun` that this PE was refused memory, which may be why it fails. Returns
    /// whether there is an `oshrun`.
    pub fn refused(&self, what: &str) -> bool {
        let Membership::Oshrun(link) = &self.job else { return false };
        link.send(&FromPe::Refused { what: cut(what) }).is_ok()
    }

    /// Reports to `oshrun` that this PE opens a transport, whose libraries may crash; `None` when
    /// that is over.
    pub fn opens(&self, what: Option<&str>) {
        if let Membership::Oshrun(link) = &self.job {
            // An oshrun that is gone is found by the next exchange.
            let _ = link.send(&FromPe::Opening { what: cut(what.unwrap_or_default()) });
        }
    }

    /// Returns true if a launcher started this PE.
    pub fn is_launched(&self) -> bool {
        !matches!(self.job, Membership::Alone)
    }

    /// Reports that the process is about to exit, after its last finalize: a process manager takes
    /// any other exit for a failure. It cannot be reported at the last finalize, since no process
    /// manager lets a process in again.
    pub fn leave(&mut self) {
        if let Membership::Managed(managed) = &mut self.job {
            managed.leave();
        }
    }

    /// Returns a handle that ends the job from any thread at any time, also while another thread
    /// waits in [`JobSession::exchange`], and after the session is gone.
    pub fn aborter(&self) -> Aborter {
        Aborter {
            by: match &self.job {
                Membership::Alone => EndedBy::Nobody,
                Membership::Oshrun(link) => EndedBy::Oshrun(link.sender().clone()),
                Membership::Managed(managed) => EndedBy::Managed(managed.ender()),
            },
        }
    }
}

/// Returns the process manager that has started this process, or the meeting of its job; `None`
/// where there is neither.
fn find_manager(joining: &Joining<'_>) -> Result<Option<Box<dyn Manager>>, Error> {
    let &Joining { protocol, opens_libraries, limits, .. } = joining;
    let route = match &joining.meeting {
        Some(attendance) => JoinRoute::Meeting(attendance.clone()),
        None => detect::route(protocol, &lookup, inherited::is_socket)?,
    };
    rushmem_log::debug!(?protocol, "the program or the environment shows {route}");
    if let JoinRoute::Meeting(attendance) = &route {
        return Ok(Some(Box::new(meeting::attend(attendance, limits)?)));
    }
    match managed::manager(route, protocol, opens_libraries) {
        // One process needs nobody's library.
        Err(Error::PmixMissing { .. } | Error::PmixStatic)
            if detect::several(protocol, &lookup).is_none() =>
        {
            Ok(None)
        }
        found => found,
    }
}

/// Returns whether the environment leads to a process manager or to a meeting, or the program has
/// named one. Nothing is taken from the environment.
pub fn is_managed() -> bool {
    let route = detect::route(Protocol::Any, &lookup, inherited::is_socket);
    route.is_ok_and(|route| route != JoinRoute::Alone) || meeting::is_attended()
}

fn lookup(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

/// Returns the handle that ends a job of `oshrun` before its session is open, for a PE that fails
/// there: so a mistake of all PEs is one message. No session can be opened afterwards. `None`
/// without `oshrun`, and once a session was opened.
pub fn aborter_without_session() -> Option<Aborter> {
    if OPENED.swap(true, Ordering::SeqCst) {
        return None;
    }
    let link = Link::new(Inherited::take().ok()??.socket);
    link.send(&FromPe::Hello { pid: std::process::id() }).ok()?;
    Some(Aborter { by: EndedBy::Oshrun(link.sender().clone()) })
}

/// Ends the whole job.
#[derive(Clone, Debug)]
pub struct Aborter {
    by: EndedBy,
}

/// The process that ends the job on request.
#[derive(Clone, Debug)]
enum EndedBy {
    Nobody,
    Oshrun(Arc<Sender>),
    Managed(Arc<dyn Ender>),
}

impl Aborter {
    /// Requests the launcher to end the job with `status` (0 counts as 1). `oshrun` prints
    /// `message`, unless another PE was first; where there is no `oshrun`, it is printed on stderr
    /// here.
    ///
    /// Returns whether a launcher will end this process; if not, the caller exits by itself.
    pub fn abort(&self, status: i32, message: &str) -> bool {
        if let EndedBy::Oshrun(sender) = &self.by {
            let abort = FromPe::Abort { status, message: cut(message) };
            if sender.send(&abort).is_ok() {
                return true;
            }
        }
        // A PE may have no stderr.
        let _ = writeln!(std::io::stderr(), "{message}");
        match &self.by {
            EndedBy::Managed(ender) => ender.end(if status == 0 { 1 } else { status }),
            _ => false,
        }
    }

    /// Sends a warning to `oshrun`, which prints it once for all PEs that send it. Returns false if
    /// there is no `oshrun`.
    pub fn warn(&self, message: &str) -> bool {
        let warning = FromPe::Warning { message: cut(message) };
        matches!(&self.by, EndedBy::Oshrun(sender) if sender.send(&warning).is_ok())
    }

    /// Returns true if it is `oshrun` that ends it, who sees by itself how a PE exits.
    pub fn is_oshrun(&self) -> bool {
        matches!(self.by, EndedBy::Oshrun(_))
    }

    /// Requests the launcher to end the job with `status`, silently (OpenSHMEM 1.6,
    /// shmem_global_exit).
    ///
    /// Returns whether a launcher will end this process; if not, the caller exits by itself.
    pub fn global_exit(&self, status: i32) -> bool {
        match &self.by {
            EndedBy::Nobody => false,
            EndedBy::Oshrun(sender) => sender.send(&FromPe::GlobalExit { status }).is_ok(),
            EndedBy::Managed(ender) => ender.end(status),
        }
    }
}

/// Shortens a message to the length that `oshrun` accepts.
fn cut(message: &str) -> String {
    let ends = 0..=message.len().min(MAX_MESSAGE);
    let end = ends.rev().find(|&at| message.is_char_boundary(at)).unwrap_or(0);
    message[..end].to_string()
}

#[cfg(test)]
mod tests;
