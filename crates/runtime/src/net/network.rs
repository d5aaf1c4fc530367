//! The connection to PEs whose memory is not mapped here: a transport, and its `endpoints`.
//!
//! It is open between init and finalize if the job has such PEs; all other jobs pay one load for it. Every wait in
//! the library makes it progress. If peers change memory here by software, it rings this PE's bell. The loss of a
//! PE ends the job.

use crate::base::call::{Call, fail};
use crate::base::job;
use rushmem_transport::setting::{environment, is_blank};
use rushmem_transport::{Endpoint, Error, Fault, Host, LocalAccess, LocalBuf, Nic, Pe, Transport};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

/// How long a launcher has to report why a PE is gone before this PE reports its loss: a fourth of the time for which a
/// host may be silent. Usually it ends the job at once when a process has died; this time is for a busy machine.
fn first_word(host_limit: Duration) -> Duration {
    host_limit / 4
}

/// How long a call that waits has to report memory that another thread could not access.
const BY_ITS_CALL: Duration = Duration::from_millis(200);

/// Whether there is a network. An on-node job reads nothing else of this file.
static OPEN: AtomicBool = AtomicBool::new(false);
/// For what threads do that wait, and for new endpoints: operations do not read it.
static TRANSPORT: RwLock<Option<Box<dyn Transport>>> = RwLock::new(None);

/// Whether any PE is reached by a network.
#[inline(always)]
pub(crate) fn is_open() -> bool {
    OPEN.load(Ordering::Relaxed)
}

/// Opens the network over a transport that is connected to its peers and whose library endpoint is
/// set.
pub(crate) fn open(transport: Box<dyn Transport>) {
    *TRANSPORT.write().unwrap_or_else(PoisonError::into_inner) = Some(transport);
    OPEN.store(true, Ordering::Release);
}

/// From now on calls find no network: it is being closed, or the parent process has its connections
/// and threads.
pub(crate) fn refuse_calls() {
    OPEN.store(false, Ordering::Release);
}

/// Drops the transport, after all endpoints.
pub(crate) fn close() {
    *TRANSPORT.write().unwrap_or_else(PoisonError::into_inner) = None;
}

/// Whether the process's first thread must not end for now.
pub(crate) fn needs_first_thread() -> bool {
    let transport = TRANSPORT.read().unwrap_or_else(PoisonError::into_inner);
    transport.as_ref().is_some_and(|transport| transport.caps().needs_first_thread)
}

/// A new endpoint, if the transport has one more.
pub(crate) fn endpoint(call: Call) -> Result<Box<dyn Endpoint>, Error> {
    with(call, |transport| Ok(transport.endpoint()))
}

/// Make the network progress, without blocking. Whether there was work for peers.
pub(crate) fn progress() -> bool {
    with(LIBRARY, |transport| transport.progress())
}

/// As [`progress`], but sleep for at most this time if there was nothing to do.
pub(crate) fn wait(at_most: Duration) -> bool {
    with(LIBRARY, |transport| transport.wait(at_most))
}

/// Report that this thread no longer makes the network progress, but sleeps until the bell rings.
pub(crate) fn hand_over() {
    with(LIBRARY, |transport| {
        transport.hand_over();
        Ok(())
    });
}

/// The call for operations of the library itself.
pub(crate) const LIBRARY: Call = Call(&"transport");

fn with<R>(call: Call, act: impl FnOnce(&dyn Transport) -> Result<R, Error>) -> R {
    let transport = TRANSPORT.read().unwrap_or_else(PoisonError::into_inner);
    let Some(transport) = &*transport else { refuse(call) };
    or_fail(call, act(&**transport))
}

/// What an operation yields; ends the job with an error when it failed.
#[inline(always)]
pub(crate) fn or_fail<R>(call: Call, done: Result<R, Error>) -> R {
    match done {
        Ok(done) => done,
        Err(error) => lose(call, &error),
    }
}

#[cold]
#[inline(never)]
pub(crate) fn refuse(call: Call) -> ! {
    call.require_no_exit();
    fail!(call, "called without a transport")
}

/// End the job because the network has failed. If another PE died, its launcher knows the reason
/// better, so it goes first.
#[cold]
#[inline(never)]
fn lose(call: Call, error: &Error) -> ! {
    if is_of_another(error, job::known().map(|job| job.me())) {
        let host_limit = job::known().map_or(Duration::ZERO, |job| job.settings.host_limit);
        std::thread::sleep(first_word(host_limit));
    }
    fail!(call, "{error}")
}

/// Whether the error is the loss of another PE than this one.
fn is_of_another(error: &Error, me: Option<Pe>) -> bool {
    matches!(error, Error::Lost(pe, _) if Some(*pe) != me)
}

/// As [`lose`], after a failed operation on local memory: if this process cannot access it, that is
/// the cause. After the loss of another PE only the ends are examined: all of a large array would
/// delay the message.
#[cold]
#[inline(never)]
pub(crate) fn fail_over(call: Call, error: &Error, access: LocalAccess, memory: LocalBuf) -> ! {
    if !is_of_another(error, job::known().map(|job| job.me())) {
        check_memory(call, access, memory);
    } else if let Some(fault) = Fault::at_ends(access, memory) {
        fail!(call, "{fault}")
    }
    lose(call, error)
}

/// After a failed operation on local memory: end the job if this process cannot access it.
pub(crate) fn check_memory(call: Call, access: LocalAccess, memory: LocalBuf) {
    if let Some(fault) = Fault::within(access, memory) {
        fail!(call, "{fault}")
    }
}

/// The NIC that this PE should prefer, once it is known that there is one.
static NIC: OnceLock<Nic> = OnceLock::new();

/// Prefer a NIC from now on; before a transport is opened.
pub(crate) fn prefer(nic: Nic) {
    // A later init would choose the same one.
    let _ = NIC.set(nic);
}

/// The interface of this process to a transport.
pub(crate) struct Process {
    me: Pe,
    /// Whether the transport has been chosen: then the job ends when it loses a PE. During a test, the caller of the
    /// test gets the error.
    settled: AtomicBool,
    /// Dropped with the transport: from then on no loss ends the job.
    open: Arc<()>,
    /// The value of the setting; unused if nothing is opened.
    host_limit: Duration,
    /// Wakes those who wait for this PE's memory to change.
    arrived: fn(),
}

impl Default for Process {
    fn default() -> Process {
        Process::with(Pe(0), Duration::ZERO, || ())
    }
}

impl Process {
    /// One that opens a transport.
    pub(crate) fn with(me: Pe, host_limit: Duration, arrived: fn()) -> Process {
        let (settled, open) = (AtomicBool::new(false), Arc::default());
        Process { me, settled, open, host_limit, arrived }
    }

    /// The transport was chosen.
    pub(crate) fn settle(&self) {
        self.settled.store(true, Ordering::Release);
    }
}

impl Host for Process {
    fn variable(&self, name: &str) -> Option<String> {
        // A setting that a script has left empty is as if it were not set. What other libraries
        // read is theirs.
        environment(name).filter(|value| !name.starts_with("SHMEM_") || !is_blank(value))
    }

    fn nic(&self) -> Option<Nic> {
        NIC.get().cloned()
    }

    fn host_limit(&self) -> Duration {
        self.host_limit
    }

    fn arrived(&self) {
        (self.arrived)();
    }

    fn lost(&self, error: &Error) {
        // A PE that cannot use its network any more can keep others in a test for ever: it ends the job then, too.
        if is_of_another(error, Some(self.me)) && !self.settled.load(Ordering::Acquire) {
            return;
        }
        let (error, open) = (error.clone(), Arc::downgrade(&self.open));
        // The call to which memory was passed names itself if it has not returned yet. A launcher
        // may know more of a loss.
        let is_of_another = is_of_another(&error, Some(self.me));
        let wait = if is_of_another { first_word(self.host_limit) } else { BY_ITS_CALL };
        let end = move || {
            std::thread::sleep(wait);
            if open.upgrade().is_some() {
                fail!(LIBRARY, "{error}")
            }
        };
        // This must not block the transport's own thread, which serves the other peers. If no thread can be
        // started, the next call that needs the network reports the error.
        let _ = std::thread::Builder::new().spawn(end);
    }

    fn cannot_go_on(&self, why: &str) -> ! {
        fail!(LIBRARY, "{why}")
    }
}

/// The number of a world PE in the form of the transport.
pub(crate) fn pe(pe: core::ffi::c_int) -> Pe {
    Pe(pe as u32)
}
