//! The transport to PEs whose memory is not mapped here, and how its errors end the job.
//!
//! It is open between init and finalize if the job has such PEs; other jobs pay one load for it.
//! Every wait in the library makes it progress. When the software of peers changes memory here, it
//! rings this PE's doorbell. The loss of a PE ends the job. Operations use it through `endpoints`.

use crate::call::{Call, call, fail};
use crate::job;
use crate::net::proxies;
use rushmem_transport::kit::segments::Segments;
use rushmem_transport::setting::{environment, is_blank};
use rushmem_transport::{
    Endpoint, Error, Fault, Host, LocalAccess, LocalBuf, NetworkActivity, NicName, Pe, Proxy,
    Transport,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

/// Returns how long the launcher has to report why a PE is gone before this PE reports its loss.
/// Usually it ends the job at once when a process has died; this time is for a busy machine.
fn launcher_grace(host_limit: Duration) -> Duration {
    host_limit / 4
}

/// The time for which a waiting call has to report memory that another thread could not access.
const CALL_GRACE: Duration = Duration::from_millis(200);

/// True if there is a network. An on-node job reads nothing else of this file.
static OPEN: AtomicBool = AtomicBool::new(false);
/// Read by waiting threads and for new endpoints, not by operations.
static TRANSPORT: RwLock<Option<Box<dyn Transport>>> = RwLock::new(None);

/// Returns true if any PE is reached by a network.
#[inline(always)]
pub(crate) fn is_open() -> bool {
    OPEN.load(Ordering::Relaxed)
}

/// Opens the network over a transport that is connected to its peers with the library's endpoint.
pub(crate) fn open(transport: Box<dyn Transport>) {
    *TRANSPORT.write().unwrap_or_else(PoisonError::into_inner) = Some(transport);
    OPEN.store(true, Ordering::Release);
}

/// Makes further calls find no network: it is being closed, or is the parent process's.
pub(crate) fn refuse_calls() {
    OPEN.store(false, Ordering::Release);
}

/// Drops the transport, after all endpoints.
pub(crate) fn close() {
    *TRANSPORT.write().unwrap_or_else(PoisonError::into_inner) = None;
}

/// Returns true if the process's first thread must not end for now.
pub(crate) fn needs_first_thread() -> bool {
    let transport = TRANSPORT.read().unwrap_or_else(PoisonError::into_inner);
    transport.as_ref().is_some_and(|transport| transport.caps().needs_first_thread)
}

/// Returns a new endpoint for a context, if the transport has one more.
pub(crate) fn endpoint(call: Call) -> Result<Box<dyn Endpoint>, Error> {
    let mut endpoint = with(call, |transport| Ok(transport.endpoint()))?;
    if job::require(call).settings.aggregate {
        endpoint.session(true)?;
    }
    Ok(endpoint)
}

/// Makes the network progress, without blocking; whether there was work for peers.
pub(crate) fn progress() -> bool {
    with(LIBRARY, |transport| transport.progress())
}

/// Works as [`progress`], but sleeps for at most this time if there was nothing to do.
pub(crate) fn wait(at_most: Duration) -> bool {
    with(LIBRARY, |transport| transport.wait(at_most))
}

/// Makes the first `nbytes` bytes of the heap reachable by peers, if any is reached by a network.
/// `prepare` gets how many bytes will be registered, and whether that locks them.
pub(crate) fn extend_heap(
    call: Call,
    nbytes: usize,
    prepare: impl Fn(usize, bool) -> Result<(), Error>,
) {
    if is_open() {
        with(call, |transport| {
            let locks = transport.caps().locks_memory;
            transport.extend_heap(nbytes, &mut |reach| prepare(reach, locks))
        });
    }
}

/// Returns what threads have done on the network, if there is one.
pub(crate) fn activity() -> Option<NetworkActivity> {
    let transport = TRANSPORT.read().unwrap_or_else(PoisonError::into_inner);
    transport.as_ref().map(|transport| transport.activity())
}

/// Reports that this thread no longer makes the network progress, but sleeps on the doorbell.
pub(crate) fn stop_polling() {
    with(LIBRARY, |transport| {
        transport.stop_polling();
        Ok(())
    });
}

/// The call for operations of the library itself.
pub(crate) const LIBRARY: Call = call!("transport");

fn with<R>(call: Call, act: impl FnOnce(&dyn Transport) -> Result<R, Error>) -> R {
    let transport = TRANSPORT.read().unwrap_or_else(PoisonError::into_inner);
    let Some(transport) = &*transport else { refuse(call) };
    or_fail(call, act(&**transport))
}

/// Returns the result of an operation; ends the job with an error if it failed.
#[inline(always)]
pub(crate) fn or_fail<R>(call: Call, done: Result<R, Error>) -> R {
    match done {
        Ok(done) => done,
        Err(error) => fail_on(call, &error),
    }
}

#[cold]
#[inline(never)]
pub(crate) fn refuse(call: Call) -> ! {
    call.require_no_exit();
    // Cause: a thread calls while another one finalizes. Remedy: join threads before
    // `shmem_finalize`.
    fail!(call, "called without a transport")
}

/// Ends the job because the network has failed. If another PE died, the launcher knows the reason
/// better, so it reports first.
#[cold]
#[inline(never)]
fn fail_on(call: Call, error: &Error) -> ! {
    if is_of_another(error, job::known().map(|job| job.me())) {
        let host_limit = job::known().map_or(Duration::ZERO, |job| job.settings.host_limit);
        std::thread::sleep(launcher_grace(host_limit));
    }
    call.fail(format_args!("{error}"))
}

/// Returns true if the error is the loss of another PE than this one.
fn is_of_another(error: &Error, me: Option<Pe>) -> bool {
    matches!(error, Error::Lost(pe, _) if Some(*pe) != me)
}

/// Ends the job after a failed operation on local memory. If this process cannot access the memory,
/// that is the cause. After the loss of another PE only its ends are examined, since all of a large
/// array would delay the message.
#[cold]
#[inline(never)]
pub(crate) fn fail_on_memory(
    call: Call,
    error: &Error,
    access: LocalAccess,
    memory: LocalBuf,
) -> ! {
    if !is_of_another(error, job::known().map(|job| job.me())) {
        check_memory(call, access, memory);
    } else if let Some(fault) = Fault::at_ends(access, memory) {
        fail!(call, "{fault}")
    }
    fail_on(call, error)
}

/// Ends the job if this process cannot access local memory, after an operation on it failed.
pub(crate) fn check_memory(call: Call, access: LocalAccess, memory: LocalBuf) {
    if let Some(fault) = Fault::within(access, memory) {
        fail!(call, "{fault}")
    }
}

/// The NIC that this PE prefers, if there is a choice.
static NIC: OnceLock<NicName> = OnceLock::new();

/// Sets the preferred NIC, before a transport is opened.
pub(crate) fn prefer(nic: NicName) {
    // A later init would choose the same one.
    let _ = NIC.set(nic);
}

/// The interface of this process to a transport.
pub(crate) struct ProcessHost {
    me: Pe,
    /// The transport has been chosen, so that a loss ends the job. Before, while it is tested, the
    /// caller of the test gets the error.
    chosen: AtomicBool,
    /// Dropped with the transport: afterwards no loss ends the job.
    open: Arc<()>,
    /// The value of the setting; unused if nothing is opened.
    host_limit: Duration,
    callbacks: Callbacks,
}

/// The functions by which a transport reports to layers above.
pub(crate) struct Callbacks {
    /// Wakes threads that wait for this PE's memory to change.
    pub(crate) arrived: fn(),
    /// Wakes threads of a PE of this node that wait for its memory to change.
    pub(crate) arrived_at: fn(Pe),
    /// The calling thread waits long for operations on these PEs, and how many are in flight.
    pub(crate) waits: fn(&[Pe], u64),
    /// That wait has ended.
    pub(crate) ends_wait: fn(),
}

impl Default for ProcessHost {
    fn default() -> ProcessHost {
        let callbacks =
            Callbacks { arrived: || (), arrived_at: |_| (), waits: |_, _| (), ends_wait: || () };
        ProcessHost::with(Pe(0), Duration::ZERO, callbacks)
    }
}

impl ProcessHost {
    /// Creates the interface for opening a transport.
    pub(crate) fn with(me: Pe, host_limit: Duration, callbacks: Callbacks) -> ProcessHost {
        let (chosen, open) = (AtomicBool::new(false), Arc::default());
        ProcessHost { me, chosen, open, host_limit, callbacks }
    }

    /// Records that the transport was chosen.
    pub(crate) fn set_chosen(&self) {
        self.chosen.store(true, Ordering::Release);
    }
}

impl Host for ProcessHost {
    fn variable(&self, name: &str) -> Option<String> {
        // A script may leave a setting empty, which counts as not set. Variables of other
        // libraries are passed on as they are.
        environment(name).filter(|value| !name.starts_with("SHMEM_") || !is_blank(value))
    }

    fn nic(&self) -> Option<NicName> {
        NIC.get().cloned()
    }

    fn pairs_of_node(&self) -> u64 {
        let Some(job) = job::known() else { return 0 };
        let sizes = (0..job.nodes.n_nodes()).map(|node| job.nodes.size(node));
        let pairs = sizes.map(|size| u64::from(size) * u64::from(job.n_pes - size));
        pairs.max().unwrap_or(0)
    }

    fn host_limit(&self) -> Duration {
        self.host_limit
    }

    fn arrived(&self) {
        (self.callbacks.arrived)();
    }

    fn arrived_at(&self, place: u8) {
        if let Some(pe) = proxies::pe_at(place) {
            (self.callbacks.arrived_at)(pe);
        }
    }

    fn has_proxies(&self) -> bool {
        proxies::exist()
    }

    fn proxy(&self, pe: Pe) -> Proxy {
        proxies::of(pe)
    }

    fn node_heap(&self, place: u8) -> Option<&Segments> {
        proxies::heap(place)
    }

    fn waits(&self, peers: &[Pe], in_flight: u64) {
        (self.callbacks.waits)(peers, in_flight);
    }

    fn ends_wait(&self) {
        (self.callbacks.ends_wait)();
    }

    fn lost(&self, error: &Error) {
        // During a test, a PE that can no longer use its network ends the job too: otherwise the
        // others would wait for it.
        let lost_peer = is_of_another(error, Some(self.me));
        if lost_peer && !self.chosen.load(Ordering::Acquire) {
            return;
        }
        let (error, open) = (error.clone(), Arc::downgrade(&self.open));
        // The launcher may know more about a loss, and a call that has not returned names itself.
        let wait = if lost_peer { launcher_grace(self.host_limit) } else { CALL_GRACE };
        let end = move || {
            std::thread::sleep(wait);
            if open.upgrade().is_some() {
                LIBRARY.fail(format_args!("{error}"))
            }
        };
        // Another thread, since that of the transport serves the other peers. If none can be
        // started, the next call that needs the network reports the error.
        let _ = std::thread::Builder::new().spawn(end);
    }

    fn cannot_go_on(&self, error: &Error, why: &str) -> ! {
        LIBRARY.fail(format_args!("{error}; {why}"))
    }
}

/// Returns the number of a world PE in the form of the transport.
pub(crate) fn pe(pe: core::ffi::c_int) -> Pe {
    Pe(pe as u32)
}
