//! What this process knows of its job once the library was initialised.
//!
//! Made by the first init and kept for the life of the process, since a job can be finalized and
//! initialised again. Nothing here is on the path of an access: that is `address`.

use crate::agreement::Slots;
use crate::call::{Call, fail};
use crate::env::Settings;
use crate::internal::Internal;
use crate::mailbox::Mailboxes;
use crate::neighbour::Neighbour;
use crate::team::Teams;
use core::ffi::c_int;
use rushmem_bootstrap::{Aborter, NodeMap, Session};
use rushmem_heap::{Allocator, NodeMemory};
use rushmem_transport::Pe;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

/// The job as one PE sees it.
pub(crate) struct Job {
    pub(crate) me: Pe,
    pub(crate) n_pes: u32,
    /// Who shares memory with whom.
    pub(crate) nodes: NodeMap,
    /// No other PE shares this one's memory.
    pub(crate) alone: bool,
    pub(crate) memory: &'static NodeMemory,
    /// Those among the PEs, by PE.
    pub(crate) neighbours: Vec<Option<Neighbour>>,
    /// Some PE of the job is some other's neighbour: the same on all.
    pub(crate) has_neighbours: bool,
    pub(crate) internal: Internal,
    pub(crate) mailboxes: Mailboxes,
    pub(crate) slots: Slots,
    pub(crate) teams: Teams,
    /// The symmetric heap's allocator while the library is initialised.
    pub(crate) allocator: Mutex<Option<Allocator>>,
    /// PEs of this machine outnumber the CPUs that they may use.
    pub(crate) crowded: bool,
    /// They do on some machine of the job: the same on all PEs, so that algorithms can depend on it.
    pub(crate) crowded_somewhere: bool,
    pub(crate) thread_level: c_int,
    /// On some PE several threads may be in the library at once: the same on all PEs.
    pub(crate) threads_somewhere: bool,
    pub(crate) settings: Settings,
    /// Known to the PEs of this job alone.
    pub(crate) secret: [u8; 32],
    /// All PEs reach each other over loopback.
    pub(crate) one_stack: bool,
    pub(crate) session: Mutex<Session>,
}

impl Job {
    pub(crate) fn me(&self) -> Pe {
        self.me
    }

    pub(crate) fn internal(&self) -> &Internal {
        &self.internal
    }

    pub(crate) fn mailboxes(&self) -> &Mailboxes {
        &self.mailboxes
    }

    pub(crate) fn slots(&self) -> &Slots {
        &self.slots
    }

    pub(crate) fn crowded(&self) -> bool {
        self.crowded
    }

    /// The allocator; the library is initialised.
    pub(crate) fn allocator(&self) -> MutexGuard<'_, Option<Allocator>> {
        lock(&self.allocator)
    }

    pub(crate) fn session(&self) -> MutexGuard<'_, Session> {
        lock(&self.session)
    }
}

static JOB: OnceLock<Job> = OnceLock::new();
/// Who this PE is, how it ends the job, and its process: known before the job is.
static IDENTITY: OnceLock<(Pe, Aborter, u32)> = OnceLock::new();
/// How many inits have no finalize yet; none in a child process.
static DEPTH: AtomicU32 = AtomicU32::new(0);
/// This process is a child of the one that is the PE.
static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// The job, whose library is initialised; otherwise a message.
#[inline]
pub(crate) fn require(call: Call) -> &'static Job {
    match JOB.get() {
        Some(job) if depth() > 0 => job,
        _ => not_initialised(call),
    }
}

#[cold]
fn not_initialised(call: Call) -> ! {
    match JOB.get() {
        _ if is_child() => refuse_child(call),
        None => fail!(call, "called before shmem_init"),
        Some(_) => fail!(call, "called after the last shmem_finalize"),
    }
}

/// The job for a call that asks who this PE is, which child processes may do, too.
#[inline]
pub(crate) fn require_or_inherited(call: Call) -> &'static Job {
    match JOB.get() {
        Some(job) if depth() > 0 => job,
        _ => inherited(call),
    }
}

#[cold]
fn inherited(call: Call) -> &'static Job {
    match JOB.get() {
        Some(job) if is_child() => job,
        _ => not_initialised(call),
    }
}

/// This process is a child of the PE from now on, in which the library is not initialised.
pub(crate) fn become_child() {
    IS_CHILD.store(true, Ordering::Release);
    DEPTH.store(0, Ordering::Release);
}

/// Whether this process is a child of the PE that `fork` made after its first init.
pub(crate) fn is_child() -> bool {
    IS_CHILD.load(Ordering::Acquire)
}

/// End a child process that called the library; the job goes on.
#[cold]
pub(crate) fn refuse_child(call: Call) -> ! {
    fail!(
        call,
        "only the process that called shmem_init may call the library, not a process that it forked"
    )
}

/// The job, with a check that `pe` is one of its PEs.
pub(crate) fn require_pe(call: Call, argument: &str, pe: c_int) -> &'static Job {
    let job = require(call);
    if pe < 0 || pe as u32 >= job.n_pes {
        fail!(call, "argument {argument}: PE {pe}, but PEs are numbered 0 to {}", job.n_pes - 1);
    }
    job
}

/// The job if there ever was an init.
pub(crate) fn known() -> Option<&'static Job> {
    JOB.get()
}

/// Set by the first init.
pub(crate) fn set(job: Job) -> &'static Job {
    JOB.get_or_init(|| job)
}

/// How many inits have no finalize yet.
pub(crate) fn depth() -> u32 {
    DEPTH.load(Ordering::Acquire)
}

/// Count an init.
pub(crate) fn deepen() {
    DEPTH.fetch_add(1, Ordering::AcqRel);
}

/// Count a finalize.
pub(crate) fn rise() {
    DEPTH.fetch_sub(1, Ordering::AcqRel);
}

/// Who this PE is and how to end the job, known before the job is.
pub(crate) fn set_identity(me: Pe, aborter: Aborter) {
    // A second init of the process has the same one.
    let _ = IDENTITY.set((me, aborter, std::process::id()));
}

/// Whether this process is the PE, not a child of it, whose exit is nobody's business.
pub(crate) fn is_this_process() -> bool {
    IDENTITY.get().is_some_and(|&(_, _, process)| process == std::process::id())
}

/// Whom to tell that the job ends; nobody before the session is open, nor in a child process, whose errors
/// end itself alone.
pub(crate) fn aborter() -> Option<&'static Aborter> {
    IDENTITY.get().filter(|_| !is_child()).map(|(_, aborter, _)| aborter)
}

/// This PE for messages, as far as it is known.
pub(crate) fn pe_for_messages() -> String {
    match IDENTITY.get() {
        Some((me, ..)) if is_child() => format!("PE {me}'s child process {}: ", std::process::id()),
        Some((me, ..)) => format!("PE {me}: "),
        None => String::new(),
    }
}

/// Lock what no panic can leave half done.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
