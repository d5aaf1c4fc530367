//! The session of a PE in its job, whichever launcher has started the job.
//!
//! This file transfers records without interpreting them. It never ends the process: a caller that
//! has aborted the job waits for the launcher to kill it, and exits after some time.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::env;
use crate::error::Error;
use crate::inherited::{self, Inherited};
use crate::launchers::{self, JoinRoute, Protocol};
use crate::link::{Link, Sender};
use crate::managed::{self, Ender, Managed, Manager};
use crate::meeting::{self, Attendance, MeetingLimits};
use crate::nodes::NodeMap;
use crate::proto::{FromLauncher, FromPe, MAX_MESSAGE, Receivers, UnmatchedInits};
use crate::records::{MAX_RECORD, Records};
use rushmem_system::stderr::print_line;

/// The membership of this PE in its job.
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
    /// No launcher: a job of one PE.
    Alone,
    /// `oshrun`.
    Oshrun(Link),
    /// A process manager, or the meeting of the job.
    Managed(Managed),
}

/// How a process joins its job.
#[derive(Debug)]
pub struct Joining<'a> {
    /// The protocol of the process manager: see [`Protocol`].
    pub protocol: Protocol,
    /// True if the program can open shared libraries, as PMIx requires. A statically linked one
    /// cannot.
    pub opens_libraries: bool,
    /// A file that the other PEs of the node get under a process manager and in a meeting, by
    /// [`take_node_files`](JobSession::take_node_files).
    pub file: Option<BorrowedFd<'a>>,
    /// The meeting that the program has named. It is used unless `oshrun` has started the process.
    pub meeting: Option<Attendance>,
    /// The time limits of a meeting.
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

/// True once this process has begun to open its session, or has aborted without one. Relaxed, since
/// the swaps only decide which call may take the descriptors, and publish no data.
static OPENED: AtomicBool = AtomicBool::new(false);

impl JobSession {
    /// Joins the job that the environment shows or the program has named: that of `oshrun`, of a
    /// meeting, or of a process manager that speaks PMI-1, PMI-2 or PMIx. Without any of these, the
    /// job consists of this PE.
    ///
    /// Removes the variables of `oshrun`, so that programs started later are jobs of their own.
    ///
    /// Calls `identified` with the number of this PE and a handle that ends the job, as soon as the
    /// number is known. Under a process manager and in a meeting, that is before the PEs of the
    /// node are connected, so that an error from then on can end the whole job.
    ///
    /// # Errors
    /// If a launcher has started several processes but provides no way to reach them, since this
    /// one must not run as a job of its own. If a descriptor of the launcher is missing, if the
    /// launcher or a PE of this node does not answer, or at the second call.
    pub fn open(
        joining: &Joining<'_>,
        identified: impl FnOnce(u32, Aborter),
    ) -> Result<JobSession, Error> {
        if OPENED.swap(true, Ordering::Relaxed) {
            return Err(Error::AlreadyOpen);
        }

        // The variables of oshrun count first: it may itself run inside a job of another launcher.
        if let Some(Inherited { socket, memory }) = Inherited::take()? {
            let session = JobSession::join(Link::new(socket), Some(memory))?;
            identified(session.pe, session.aborter());
            session.log_joined("oshrun's protocol");
            return Ok(session);
        }

        let Some(manager) = find_manager(joining)? else {
            let session = JobSession::alone();
            identified(session.pe, session.aborter());
            session.log_joined("no launcher: it is a job of one PE");
            return Ok(session);
        };

        let launcher = Launcher::Managed(manager.ender());
        identified(manager.pe(), Aborter { launcher });
        let n_pes = manager.n_pes();
        rushmem_system::log::debug!(n_pes, "the process manager answers");

        let session = JobSession::managed(Managed::join(manager, joining.file)?);
        rushmem_system::log::debug!(
            n_nodes = session.nodes.n_nodes(),
            "the PEs of the node have met"
        );
        Ok(session)
    }

    fn log_joined(&self, protocol: &str) {
        let n_pes = self.n_pes();
        let n_nodes = self.nodes.n_nodes();
        rushmem_system::log::debug!(n_pes, n_nodes, "joins by {protocol}");
    }

    /// Returns the session of a job of one PE, which no launcher has started.
    pub fn alone() -> JobSession {
        let nodes = NodeMap::one_node(1).expect("one PE is a job");
        JobSession {
            pe: 0,
            nodes,
            memory: None,
            job: Membership::Alone,
            round: 0,
        }
    }

    fn managed(mut managed: Managed) -> JobSession {
        JobSession {
            pe: managed.pe(),
            nodes: managed.nodes().clone(),
            memory: managed.take_memory(),
            job: Membership::Managed(managed),
            round: 0,
        }
    }

    fn join(mut link: Link, memory: Option<OwnedFd>) -> Result<JobSession, Error> {
        link.send(&FromPe::Hello {
            pid: std::process::id(),
        })?;

        match link.receive()? {
            FromLauncher::Welcome { pe, nodes } if pe < nodes.n_pes() => Ok(JobSession {
                pe,
                nodes,
                memory,
                job: Membership::Oshrun(link),
                round: 0,
            }),
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

    /// Returns the index of this PE among those of its node.
    pub fn local_id(&self) -> u32 {
        self.nodes.local_index(self.pe)
    }

    /// Returns the nodes of the job and their PEs.
    pub fn nodes(&self) -> &NodeMap {
        &self.nodes
    }

    /// Sends `record` to every PE and waits for the records of all PEs, including this one.
    /// Collective over the whole job.
    ///
    /// # Errors
    /// If the record exceeds [`MAX_RECORD`] bytes, or the connection to the launcher is lost.
    pub fn exchange(&mut self, record: &[u8]) -> Result<Records, Error> {
        let records = self.exchange_to(Receivers::All, record)?;
        records.ok_or(Error::Unexpected("the records of another exchange"))
    }

    /// Sends `record` to the first PE of each node, which waits for the records of all PEs. The
    /// other PEs get `None` without waiting. Collective over the whole job.
    ///
    /// Before its next exchange, a PE that got `None` must know that the first PE of its node has the
    /// records, for example because it has read what that PE has published.
    ///
    /// # Errors
    /// As [`JobSession::exchange`].
    pub fn exchange_to_first(&mut self, record: &[u8]) -> Result<Option<Records>, Error> {
        self.exchange_to(Receivers::FirstOfNode, record)
    }

    fn exchange_to(&mut self, to: Receivers, record: &[u8]) -> Result<Option<Records>, Error> {
        if record.len() > MAX_RECORD {
            return Err(Error::RecordTooLarge {
                nbytes: record.len(),
            });
        }
        rushmem_system::log::debug!(nbytes = record.len(), ?to, "exchanges records with all PEs");

        let receives = to == Receivers::All || self.local_id() == 0;
        let link = match &mut self.job {
            Membership::Alone => return Ok(Some(std::iter::once(record.to_vec()).collect())),
            Membership::Managed(managed) => return managed.exchange(to, record),
            Membership::Oshrun(link) => link,
        };

        let round = self.round;
        link.send(&FromPe::Exchange {
            round,
            to,
            record: record.to_vec(),
        })?;
        self.round = round.wrapping_add(1);
        if !receives {
            return Ok(None);
        }

        match link.receive()? {
            FromLauncher::Gathered { round: of, records }
                if of == round && records.n_pes() == self.nodes.n_pes() =>
            {
                let received = link.received();
                rushmem_system::log::trace!(round, received, "has the records of all PEs");
                Ok(Some(records))
            }
            FromLauncher::Gathered { .. } => {
                Err(Error::Unexpected("the records of another exchange"))
            }
            FromLauncher::Welcome { .. } => Err(Error::Unexpected("a second welcome")),
            _ => Err(Error::Unexpected("a message of a meeting")),
        }
    }

    /// Waits until every PE of the job has called this function.
    ///
    /// # Errors
    /// If the connection to the launcher is lost.
    pub fn barrier(&mut self) -> Result<(), Error> {
        match &mut self.job {
            Membership::Managed(managed) => managed.barrier(),
            _ => self.exchange(&[]).map(drop),
        }
    }

    /// Takes the memfd that all PEs of this node share, which `oshrun` or the node's first PE has
    /// created. It is empty and unsealed at first. Returns `None` at the second call, in a job of
    /// one PE without a launcher, and for a PE that is alone on its node under a process manager or
    /// in a meeting.
    pub fn take_node_memory(&mut self) -> Option<OwnedFd> {
        self.memory.take()
    }

    /// Takes the files that the PEs of this node have passed to [`JobSession::open`], in the order
    /// of the PEs; `None` for a PE without one. The list is empty at the second call, under
    /// `oshrun`, and in a job of one PE without a launcher.
    pub fn take_node_files(&mut self) -> Vec<Option<OwnedFd>> {
        match &mut self.job {
            Membership::Managed(managed) => managed.take_files(),
            _ => Vec::new(),
        }
    }

    /// Reports to the launcher that the last finalize is done, so that this PE may exit. In a
    /// meeting, waits until all PEs have called this function.
    ///
    /// # Errors
    /// If the connection to `oshrun` is lost, or the meeting is silent.
    pub fn report_finalize(&self) -> Result<(), Error> {
        match &self.job {
            Membership::Alone => {}
            Membership::Oshrun(link) => link.send(&FromPe::Finalized)?,
            Membership::Managed(managed) => managed.report_finalize()?,
        }
        Ok(())
    }

    /// Reports to the launcher that this PE has entered initialization again after its last
    /// finalize.
    ///
    /// # Errors
    /// If the connection to `oshrun` is lost.
    pub fn report_resumption(&mut self) -> Result<(), Error> {
        match &self.job {
            Membership::Alone => {}
            Membership::Oshrun(link) => link.send(&FromPe::Resumed)?,
            Membership::Managed(managed) => managed.report_resumption(),
        }
        Ok(())
    }

    /// Reports to the launcher that all PEs are at their exit without the last finalize, so that
    /// this PE, with these `inits`, may exit. Under a process manager or in a meeting, does what
    /// [`JobSession::report_finalize`] and [`JobSession::leave`] do.
    ///
    /// # Errors
    /// Those of [`JobSession::report_finalize`].
    pub fn report_unfinalized(&mut self, inits: UnmatchedInits) -> Result<(), Error> {
        match &mut self.job {
            Membership::Alone => {}
            Membership::Oshrun(link) => link.send(&FromPe::Unfinalized(inits))?,
            Membership::Managed(managed) => {
                managed.report_finalize()?;
                managed.leave();
            }
        }
        Ok(())
    }

    /// Reports the position of the statuses of PEs to `oshrun`, if this is PE 0: see
    /// [`FromPe::Statuses`].
    ///
    /// # Errors
    /// If the connection to `oshrun` is lost.
    pub fn report_statuses(&self, stride: u64, offset: u64) -> Result<(), Error> {
        match &self.job {
            Membership::Oshrun(link) if self.pe == 0 => {
                link.send(&FromPe::Statuses { stride, offset })
            }
            _ => Ok(()),
        }
    }

    /// Reports to `oshrun` that an allocation of this PE has failed, so that the message can name
    /// it if the PE fails later. Returns false if `oshrun` has not started the job or is gone.
    pub fn report_refusal(&self, what: &str) -> bool {
        let Membership::Oshrun(link) = &self.job else {
            return false;
        };
        link.send(&FromPe::Refused { what: cut(what) }).is_ok()
    }

    /// Reports to `oshrun` that this PE opens the transport `what`, whose libraries may crash, or
    /// with `None` that this is over.
    pub fn report_opening(&self, what: Option<&str>) {
        if let Membership::Oshrun(link) = &self.job {
            // If the connection is lost, the next exchange fails.
            let _ = link.send(&FromPe::Opening {
                what: cut(what.unwrap_or_default()),
            });
        }
    }

    /// Returns true unless this is a job of one PE without a launcher.
    pub fn is_launched(&self) -> bool {
        !matches!(self.job, Membership::Alone)
    }

    /// Reports to a process manager that this process is about to exit, after its last finalize.
    /// Managers treat any other exit as a failure. Finalize cannot report it, since a process that
    /// has left cannot join again.
    pub fn leave(&mut self) {
        if let Membership::Managed(managed) = &mut self.job {
            managed.leave();
        }
    }

    /// Returns a handle that ends the job. Any thread may use it at any time, also while another
    /// thread waits in [`JobSession::exchange`], and after the session has been dropped.
    pub fn aborter(&self) -> Aborter {
        let launcher = match &self.job {
            Membership::Alone => Launcher::None,
            Membership::Oshrun(link) => Launcher::Oshrun(link.sender().clone()),
            Membership::Managed(managed) => Launcher::Managed(managed.ender()),
        };
        Aborter { launcher }
    }
}

/// Connects to the process manager that has started this process, or to the meeting of its job;
/// `None` if there is neither.
fn find_manager(joining: &Joining<'_>) -> Result<Option<Box<dyn Manager>>, Error> {
    let protocol = joining.protocol;
    let route = match &joining.meeting {
        Some(attendance) => JoinRoute::Meeting(attendance.clone()),
        None => launchers::route(protocol, &lookup, inherited::is_socket)?,
    };
    rushmem_system::log::debug!(?protocol, "the program or the environment shows {route}");

    if let JoinRoute::Meeting(attendance) = &route {
        let member = meeting::attend(attendance, joining.limits)?;
        return Ok(Some(Box::new(member)));
    }

    match managed::manager(route, protocol, joining.opens_libraries) {
        // A job of one process does not need libpmix.
        Err(Error::PmixMissing { .. } | Error::PmixStatic)
            if launchers::refuse_single(protocol, &lookup).is_none() =>
        {
            Ok(None)
        }
        found => found,
    }
}

/// Returns true if the environment shows a process manager or a meeting, or this process has begun
/// to join a meeting. Returns false if the variables are invalid. Takes nothing from the
/// environment.
pub fn is_managed() -> bool {
    let route = launchers::route(Protocol::Any, &lookup, inherited::is_socket);
    route.is_ok_and(|route| route != JoinRoute::Alone) || meeting::is_attended()
}

/// Returns true if the environment shows `oshrun`, another launcher or a meeting, also one that
/// this process cannot join. Takes nothing from the environment.
pub fn has_launcher() -> bool {
    let route = launchers::route(Protocol::Any, &lookup, inherited::is_socket);
    lookup(env::SOCKET).is_some() || !matches!(route, Ok(JoinRoute::Alone))
}

fn lookup(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

/// Returns the handle that ends a job of `oshrun`, for a PE that fails before it has opened its
/// session: `oshrun` prints an error of all PEs as one message. No session can be opened
/// afterwards. Returns `None` without `oshrun`, if it cannot be reached, and after a session has
/// been opened.
pub fn aborter_without_session() -> Option<Aborter> {
    if OPENED.swap(true, Ordering::Relaxed) {
        return None;
    }

    let link = Link::new(Inherited::take().ok()??.socket);
    let hello = FromPe::Hello {
        pid: std::process::id(),
    };
    link.send(&hello).ok()?;
    Some(Aborter {
        launcher: Launcher::Oshrun(link.sender().clone()),
    })
}

/// A handle that ends the whole job.
#[derive(Clone, Debug)]
pub struct Aborter {
    launcher: Launcher,
}

/// The process that ends the job on request.
#[derive(Clone, Debug)]
enum Launcher {
    None,
    Oshrun(Arc<Sender>),
    Managed(Arc<dyn Ender>),
}

impl Aborter {
    /// Requests that the launcher end the job with `status` (0 counts as 1). `oshrun` prints
    /// `message`, unless another PE was first; without `oshrun`, it is printed on stderr here.
    ///
    /// Returns true if a launcher will end this process. Otherwise the caller exits.
    pub fn abort(&self, status: i32, message: &str) -> bool {
        if let Launcher::Oshrun(sender) = &self.launcher {
            let abort = FromPe::Abort {
                status,
                message: cut(message),
            };
            if sender.send(&abort).is_ok() {
                return true;
            }
        }

        // No oshrun has taken the message.
        print_line(message);
        match &self.launcher {
            Launcher::Managed(ender) => ender.end(if status == 0 { 1 } else { status }),
            // If oshrun cannot be reached, it has ended, and this process ends by itself.
            Launcher::None | Launcher::Oshrun(_) => false,
        }
    }

    /// Sends a warning to `oshrun`, which prints equal ones of several PEs together. Returns false
    /// without `oshrun`.
    pub fn warn(&self, message: &str) -> bool {
        let Launcher::Oshrun(sender) = &self.launcher else {
            return false;
        };
        let warning = FromPe::Warning {
            message: cut(message),
        };
        sender.send(&warning).is_ok()
    }

    /// Returns true if the launcher is `oshrun`, which also gets the exit status of each PE.
    pub fn is_oshrun(&self) -> bool {
        matches!(self.launcher, Launcher::Oshrun(_))
    }

    /// Requests that the launcher end the job with `status` and without a message (OpenSHMEM 1.6,
    /// shmem_global_exit).
    ///
    /// Returns true if a launcher will end this process. Otherwise the caller exits.
    pub fn global_exit(&self, status: i32) -> bool {
        match &self.launcher {
            Launcher::None => false,
            Launcher::Oshrun(sender) => sender.send(&FromPe::GlobalExit { status }).is_ok(),
            Launcher::Managed(ender) => ender.end(status),
        }
    }
}

/// Shortens a message to [`MAX_MESSAGE`] bytes.
fn cut(message: &str) -> String {
    let mut end = message.len().min(MAX_MESSAGE);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    message[..end].to_string()
}

#[cfg(test)]
mod tests;
