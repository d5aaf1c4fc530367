//! The membership of a PE in its job, whichever launcher has started the job.
//!
//! This file transfers records without interpreting them. It never ends the process: a caller that
//! has aborted the job waits for the launcher to kill it, and exits after some time.

mod manager;
pub(crate) mod route;

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::connection::Sender;
use crate::env;
use crate::error::Error;
use crate::launched;
use crate::launched::inherited::{self, Inherited};
use crate::launched::oshrun::{self, OshrunMembership};
use crate::node::map::NodeMap;
use crate::process_manager::{Ender, ProcessManager};
use crate::proto::{FromPe, MAX_MESSAGE, Receivers, UnmatchedInits};
use crate::records::{MAX_RECORD, Records};
use crate::unlaunched;
use crate::unlaunched::route::{MeetingLimits, MeetingRoute};
use manager::ManagerMembership;
use route::{JoinRoute, Protocol};
use rushmem_system::stderr::print_line;

/// The membership of this PE in its job.
#[derive(Debug)]
pub struct Membership(MembershipKind);

/// What has started the job, and how this PE reaches it.
#[derive(Debug)]
enum MembershipKind {
    /// No launcher: a job of one PE.
    Alone(NodeMap),
    /// `oshrun`.
    Oshrun(OshrunMembership),
    /// A process manager, or the meeting of the job.
    Manager(ManagerMembership),
}

/// How a process joins its job.
#[derive(Debug)]
pub struct JoinOptions<'a> {
    /// The protocol of the process manager: see [`Protocol`].
    pub protocol: Protocol,
    /// True if the program can open shared libraries, as PMIx requires. A statically linked one
    /// cannot.
    pub opens_libraries: bool,
    /// A file that the other PEs of the node get under a process manager and in a meeting, by
    /// [`take_node_files`](Membership::take_node_files); `None` if this PE has none for them.
    pub file: Option<BorrowedFd<'a>>,
    /// The meeting that the program has named. It is used unless `oshrun` has started the process.
    pub meeting: Option<MeetingRoute>,
    /// The time limits of a meeting.
    pub limits: MeetingLimits,
}

impl Default for JoinOptions<'_> {
    fn default() -> Self {
        JoinOptions {
            protocol: Protocol::Any,
            opens_libraries: true,
            file: None,
            meeting: None,
            limits: MeetingLimits::default(),
        }
    }
}

/// True once this process has begun to join its job, or has aborted it without that. Relaxed, since
/// the swaps only decide which call may take the descriptors, and publish no data.
static HAS_BEGUN: AtomicBool = AtomicBool::new(false);

impl Membership {
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
    pub fn join(
        options: &JoinOptions<'_>,
        identified: impl FnOnce(u32, Aborter),
    ) -> Result<Membership, Error> {
        if HAS_BEGUN.swap(true, Ordering::Relaxed) {
            return Err(Error::AlreadyJoined);
        }

        // The variables of oshrun count first: it may itself run inside a job of another launcher.
        if let Some(Inherited { socket, memory }) = Inherited::take()? {
            let oshrun = OshrunMembership::join(socket, memory)?;
            let membership = Membership(MembershipKind::Oshrun(oshrun));
            identified(membership.pe(), membership.aborter());
            membership.log_joined("oshrun's protocol");
            return Ok(membership);
        }

        let Some(manager) = find_manager(options)? else {
            let membership = Membership::alone();
            identified(membership.pe(), membership.aborter());
            membership.log_joined("no launcher: it is a job of one PE");
            return Ok(membership);
        };

        let launcher = Launcher::Manager(manager.ender());
        identified(manager.pe(), Aborter { launcher });
        let n_pes = manager.n_pes();
        rushmem_system::log::debug!(n_pes, "the process manager answers");

        let manager = ManagerMembership::join(manager, options.file)?;
        let n_nodes = manager.nodes().n_nodes();
        rushmem_system::log::debug!(n_nodes, "the PEs of the node have met");
        Ok(Membership(MembershipKind::Manager(manager)))
    }

    fn log_joined(&self, protocol: &str) {
        let n_pes = self.n_pes();
        let n_nodes = self.nodes().n_nodes();
        rushmem_system::log::debug!(n_pes, n_nodes, "joins by {protocol}");
    }

    /// Returns the membership in a job of one PE, which no launcher has started.
    pub fn alone() -> Membership {
        let nodes = NodeMap::one_node(1).expect("one PE is a job");
        Membership(MembershipKind::Alone(nodes))
    }

    /// Returns the number of this PE in the job.
    pub fn pe(&self) -> u32 {
        match &self.0 {
            MembershipKind::Alone(_) => 0,
            MembershipKind::Oshrun(oshrun) => oshrun.pe(),
            MembershipKind::Manager(manager) => manager.pe(),
        }
    }

    /// Returns the number of PEs in the job.
    pub fn n_pes(&self) -> u32 {
        self.nodes().n_pes()
    }

    /// Returns the index of this PE among those of its node.
    pub fn local_id(&self) -> u32 {
        self.nodes().local_index(self.pe())
    }

    /// Returns the nodes of the job and their PEs.
    pub fn nodes(&self) -> &NodeMap {
        match &self.0 {
            MembershipKind::Alone(nodes) => nodes,
            MembershipKind::Oshrun(oshrun) => oshrun.nodes(),
            MembershipKind::Manager(manager) => manager.nodes(),
        }
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
    /// Before its next exchange, a PE that got `None` must know that the first PE of its node has
    /// the records, for example because it has read what that PE has published.
    ///
    /// # Errors
    /// As [`Membership::exchange`].
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

        match &mut self.0 {
            MembershipKind::Alone(_) => Ok(Some(std::iter::once(record.to_vec()).collect())),
            MembershipKind::Oshrun(oshrun) => oshrun.exchange(to, record),
            MembershipKind::Manager(manager) => manager.exchange(to, record),
        }
    }

    /// Waits until every PE of the job has called this function.
    ///
    /// # Errors
    /// If the connection to the launcher is lost.
    pub fn barrier(&mut self) -> Result<(), Error> {
        match &mut self.0 {
            MembershipKind::Manager(manager) => manager.barrier(),
            _ => self.exchange(&[]).map(drop),
        }
    }

    /// Takes the memfd that all PEs of this node share, which `oshrun` or the node's first PE has
    /// created. It is empty and unsealed at first. Returns `None` at the second call, in a job of
    /// one PE without a launcher, and for a PE that is alone on its node under a process manager or
    /// in a meeting.
    pub fn take_node_memory(&mut self) -> Option<OwnedFd> {
        match &mut self.0 {
            MembershipKind::Alone(_) => None,
            MembershipKind::Oshrun(oshrun) => oshrun.take_memory(),
            MembershipKind::Manager(manager) => manager.take_memory(),
        }
    }

    /// Takes the files that the PEs of this node have passed to [`Membership::join`], in the order
    /// of the PEs; `None` for a PE without one. The list is empty at the second call, under
    /// `oshrun`, and in a job of one PE without a launcher.
    pub fn take_node_files(&mut self) -> Vec<Option<OwnedFd>> {
        match &mut self.0 {
            MembershipKind::Manager(manager) => manager.take_files(),
            _ => Vec::new(),
        }
    }

    /// Reports to the launcher that the last finalize is done, so that this PE may exit. In a
    /// meeting, waits until all PEs have called this function.
    ///
    /// # Errors
    /// If the connection to `oshrun` is lost, or the meeting is silent.
    pub fn report_finalize(&self) -> Result<(), Error> {
        match &self.0 {
            MembershipKind::Alone(_) => {}
            MembershipKind::Oshrun(oshrun) => oshrun.send(&FromPe::Finalized)?,
            MembershipKind::Manager(manager) => manager.report_finalize()?,
        }
        Ok(())
    }

    /// Reports to the launcher that this PE has entered initialization again after its last
    /// finalize.
    ///
    /// # Errors
    /// If the connection to `oshrun` is lost.
    pub fn report_resumption(&mut self) -> Result<(), Error> {
        match &self.0 {
            MembershipKind::Alone(_) => {}
            MembershipKind::Oshrun(oshrun) => oshrun.send(&FromPe::Resumed)?,
            MembershipKind::Manager(manager) => manager.report_resumption(),
        }
        Ok(())
    }

    /// Reports to the launcher that all PEs are at their exit without the last finalize, so that
    /// this PE, with these `inits`, may exit. Under a process manager or in a meeting, does what
    /// [`Membership::report_finalize`] and [`Membership::leave`] do.
    ///
    /// # Errors
    /// Those of [`Membership::report_finalize`].
    pub fn report_unfinalized(&mut self, inits: UnmatchedInits) -> Result<(), Error> {
        match &mut self.0 {
            MembershipKind::Alone(_) => {}
            MembershipKind::Oshrun(oshrun) => oshrun.send(&FromPe::Unfinalized(inits))?,
            MembershipKind::Manager(manager) => {
                manager.report_finalize()?;
                manager.leave();
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
        match &self.0 {
            MembershipKind::Oshrun(oshrun) if self.pe() == 0 => {
                oshrun.send(&FromPe::Statuses { stride, offset })
            }
            _ => Ok(()),
        }
    }

    /// Reports to `oshrun` that an allocation of this PE has failed, so that the message can name
    /// it if the PE fails later. Returns false if `oshrun` has not started the job or is gone.
    pub fn report_refusal(&self, what: &str) -> bool {
        let MembershipKind::Oshrun(oshrun) = &self.0 else {
            return false;
        };
        oshrun.send(&FromPe::Refused { what: cut(what) }).is_ok()
    }

    /// Reports to `oshrun` that this PE opens the transport `what`, whose libraries may crash, or
    /// with `None` that this is over.
    pub fn report_opening(&self, what: Option<&str>) {
        if let MembershipKind::Oshrun(oshrun) = &self.0 {
            // If the connection is lost, the next exchange fails.
            let _ = oshrun.send(&FromPe::Opening {
                what: cut(what.unwrap_or_default()),
            });
        }
    }

    /// Returns true unless this is a job of one PE without a launcher.
    pub fn is_launched(&self) -> bool {
        !matches!(self.0, MembershipKind::Alone(_))
    }

    /// Reports to a process manager that this process is about to exit, after its last finalize.
    /// Managers treat any other exit as a failure. Finalize cannot report it, since a process that
    /// has left cannot join again.
    pub fn leave(&mut self) {
        if let MembershipKind::Manager(manager) = &mut self.0 {
            manager.leave();
        }
    }

    /// Returns a handle that ends the job. Any thread may use it at any time, also while another
    /// thread waits in [`Membership::exchange`], and after the membership has been dropped.
    pub fn aborter(&self) -> Aborter {
        let launcher = match &self.0 {
            MembershipKind::Alone(_) => Launcher::None,
            MembershipKind::Oshrun(oshrun) => Launcher::Oshrun(oshrun.sender().clone()),
            MembershipKind::Manager(manager) => Launcher::Manager(manager.ender()),
        };
        Aborter { launcher }
    }
}

/// Connects to the process manager that has started this process, or to the meeting of its job;
/// `None` if there is neither.
fn find_manager(options: &JoinOptions<'_>) -> Result<Option<Box<dyn ProcessManager>>, Error> {
    let protocol = options.protocol;
    let route = match &options.meeting {
        Some(meeting) => JoinRoute::Meeting(meeting.clone()),
        None => route::find(protocol, &lookup, inherited::is_socket)?,
    };
    rushmem_system::log::debug!(?protocol, "the program or the environment shows {route}");

    if let JoinRoute::Meeting(meeting) = &route {
        let client = unlaunched::join(meeting, options.limits)?;
        return Ok(Some(Box::new(client)));
    }

    match launched::manager(route, protocol, options.opens_libraries) {
        // A job of one process does not need libpmix.
        Err(Error::PmixMissing { .. } | Error::PmixStatic)
            if route::refuse_single(protocol, &lookup).is_none() =>
        {
            Ok(None)
        }
        found => found,
    }
}

/// Returns true if the environment shows a process manager or a meeting, or this process has begun
/// to join a meeting. Returns false if the variables are invalid. Takes nothing from the
/// environment.
pub fn has_process_manager() -> bool {
    let route = route::find(Protocol::Any, &lookup, inherited::is_socket);
    route.is_ok_and(|route| route != JoinRoute::Alone) || unlaunched::joins_meeting()
}

/// Returns true if the environment shows `oshrun`, another launcher or a meeting, also one that
/// this process cannot join. Takes nothing from the environment.
pub fn has_launcher() -> bool {
    let route = route::find(Protocol::Any, &lookup, inherited::is_socket);
    lookup(env::SOCKET).is_some() || !matches!(route, Ok(JoinRoute::Alone))
}

fn lookup(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

/// Returns the handle that ends a job of `oshrun`, for a PE that fails before it has joined the
/// job: `oshrun` prints an error of all PEs as one message. The PE cannot join afterwards. Returns
/// `None` without `oshrun`, if it cannot be reached, and for a PE that has joined.
pub fn aborter_without_joining() -> Option<Aborter> {
    if HAS_BEGUN.swap(true, Ordering::Relaxed) {
        return None;
    }

    let sender = oshrun::report_only(Inherited::take().ok()??.socket)?;
    Some(Aborter {
        launcher: Launcher::Oshrun(sender),
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
    Manager(Arc<dyn Ender>),
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
            Launcher::Manager(ender) => ender.end(if status == 0 { 1 } else { status }),
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
            Launcher::Manager(ender) => ender.end(status),
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
