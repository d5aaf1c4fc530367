//! The network: the open transport, and how errors of the network end the job.
//!
//! The transport is open between init and finalize if the job has PEs whose memory is not mapped
//! here; in other jobs it costs one load. A thread that waits either makes it progress itself or
//! sleeps on this PE's doorbell; then the transport's own thread makes it progress. When the CPU of
//! this PE changes its memory for a peer, the transport rings this PE's doorbell. The loss of a PE
//! ends the job.

use rushmem_pe::call::{Call, call, fail};
use rushmem_pe::job;
use rushmem_pe::memory::accessible::{LocalAccess, require_accessible};
use rushmem_system::lock::{read, write};
use rushmem_transport::progress::events::AwaitedWord;
use rushmem_transport::{Endpoint, EndpointUser, Error, LocalBuf, NetworkActivity, Pe, Transport};
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The network of a PE.
pub struct Network {
    /// True while operations may use the transport: from [`open`](Network::open) to
    /// [`refuse_calls`](Network::refuse_calls). Relaxed: a thread that sees it reaches the
    /// transport by the lock below, or by the entry of an endpoint, and these publish what it uses.
    is_open: AtomicBool,
    /// The open transport; `None` if there is none. Threads that wait and calls that create
    /// endpoints or extend the heap lock it; operations do not.
    transport: RwLock<Option<Box<dyn Transport>>>,
    /// True if every change that a peer makes to this PE's memory ends a [`wait`](Network::wait).
    /// Relaxed: a thread that reads an old value sleeps for shorter or longer times once.
    wakes_waits: AtomicBool,
}

/// The network of the PE of this process. It is static, since each access to a PE of another node
/// reads it.
static NETWORK: Network = Network::new();

/// Returns the network of the PE of this process.
#[inline(always)]
pub fn of_process() -> &'static Network {
    &NETWORK
}

/// Returns true if a transport is open: some memory of the job is reached only over a network.
#[inline(always)]
pub fn is_open() -> bool {
    NETWORK.is_open()
}

impl Network {
    /// Returns a network whose transport is not open yet.
    #[expect(clippy::new_without_default, reason = "it is a constant")]
    pub const fn new() -> Network {
        Network {
            is_open: AtomicBool::new(false),
            transport: RwLock::new(None),
            wakes_waits: AtomicBool::new(false),
        }
    }

    /// Returns true if a transport is open: some memory of the job is reached only over a network.
    #[inline(always)]
    pub fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }

    /// Lets operations use `transport`, whose endpoint of the library is set already.
    pub fn open(&self, transport: Box<dyn Transport>) {
        self.wakes_waits
            .store(transport.caps().wakes_waits, Ordering::Relaxed);
        *write(&self.transport) = Some(transport);
        // Last: a thread that sees it takes the lock, and must find the transport.
        self.is_open.store(true, Ordering::Relaxed);
    }

    /// Makes later accesses to memory that is not mapped here fail: the network is being closed, or
    /// belongs to the parent of this process.
    pub fn refuse_calls(&self) {
        self.is_open.store(false, Ordering::Relaxed);
    }

    /// Drops the transport, once its endpoints are dropped.
    pub(crate) fn drop_transport(&self) {
        *write(&self.transport) = None;
    }

    /// Returns an endpoint for a context. Ends the job with an error if there is no transport.
    ///
    /// # Errors
    /// If the transport has no more endpoints.
    pub(crate) fn new_endpoint(&self, call: Call) -> Result<Box<dyn Endpoint>, Error> {
        // `Ok` around the result: a lack of endpoints is left to the caller, and does not end the
        // job here.
        self.with(call, |transport| {
            Ok(transport.endpoint(EndpointUser::Context))
        })
    }

    /// Returns true if the transport needs the first thread of the process, which must not end.
    pub fn needs_first_thread(&self) -> bool {
        let transport = read(&self.transport);
        transport
            .as_ref()
            .is_some_and(|transport| transport.caps().needs_first_thread)
    }

    /// Makes the network progress, without blocking. Returns true if it has done work for peers.
    pub fn progress(&self) -> bool {
        self.with(LIBRARY_CALL, |transport| transport.progress())
    }

    /// Makes the network progress, without blocking, if a transport is open: for a thread that may
    /// outlive it. Returns true if it has done work for peers.
    pub(crate) fn progress_if_open(&self) -> bool {
        self.if_open(|transport| transport.progress())
            .unwrap_or(false)
    }

    /// Returns true if every change that a peer makes to this PE's memory ends a
    /// [`wait`](Network::wait).
    pub(crate) fn wakes_waits(&self) -> bool {
        self.wakes_waits.load(Ordering::Relaxed)
    }

    /// Sleeps until the network may have work or this PE's memory may have changed, for at most
    /// `at_most`, and then makes [`progress`](Network::progress). If the caller names the `awaited`
    /// words, it may sleep on while other words change. Does not sleep if `is_over` returns true.
    /// The caller calls `end_wait` when its wait is over.
    pub fn wait(
        &self,
        at_most: Duration,
        awaited: &[AwaitedWord],
        is_over: &mut dyn FnMut() -> bool,
    ) -> bool {
        self.with(LIBRARY_CALL, |transport| {
            transport.wait(at_most, awaited, is_over)
        })
    }

    /// Ends a wait in which this thread has called [`wait`](Network::wait).
    pub(crate) fn end_wait(&self) {
        self.with(LIBRARY_CALL, |transport| {
            transport.end_wait();
            Ok(())
        });
    }

    /// Makes the first `nbytes` bytes of the heap reachable by peers, if a network is open. Before
    /// it registers more of the heap, calls `prepare` with the number of bytes that will be
    /// registered, and whether registration locks them.
    pub fn extend_heap(
        &self,
        call: Call,
        nbytes: usize,
        prepare: impl Fn(usize, bool) -> Result<(), Error>,
    ) {
        if self.is_open() {
            self.with(call, |transport| {
                let locks = transport.caps().locks_memory;
                transport.extend_heap(nbytes, &mut |reach| prepare(reach, locks))
            });
        }
    }

    /// Returns the counters of what threads have done on the network; `None` without a network.
    pub fn activity(&self) -> Option<NetworkActivity> {
        let transport = read(&self.transport);
        transport.as_ref().map(|transport| transport.activity())
    }

    /// Tells the transport that this thread makes no more progress, but sleeps on the doorbell.
    pub(crate) fn stop_polling(&self) {
        self.with(LIBRARY_CALL, |transport| {
            transport.stop_polling();
            Ok(())
        });
    }

    /// Tells the transport, if one is open, that this thread makes no more progress: for a thread
    /// that may outlive it.
    pub(crate) fn stop_polling_if_open(&self) {
        self.if_open(|transport| {
            transport.stop_polling();
            Ok(())
        });
    }

    /// Calls `act` with the transport. Ends the job with an error if there is none, or if `act`
    /// fails.
    fn with<R>(&self, call: Call, act: impl FnOnce(&dyn Transport) -> Result<R, Error>) -> R {
        let transport = read(&self.transport);
        let Some(transport) = &*transport else {
            refuse(call)
        };
        or_fail(call, act(&**transport))
    }

    /// Calls `act` with the transport, if one is open. Ends the job with an error if `act` fails.
    fn if_open<R>(&self, act: impl FnOnce(&dyn Transport) -> Result<R, Error>) -> Option<R> {
        if !self.is_open() {
            return None;
        }
        let transport = read(&self.transport);
        let transport = transport.as_deref()?;
        Some(or_fail(LIBRARY_CALL, act(transport)))
    }
}

/// The call that messages name for operations of the library itself.
pub(crate) const LIBRARY_CALL: Call = call!("transport");

/// Returns the time that the launcher has to report why a PE is gone, before this PE reports its
/// loss. Usually the launcher ends the job at once when a process has died; a busy machine may take
/// longer. A larger part of the limit would delay the end of a job whose launcher does not notice.
pub(crate) fn launcher_grace(host_limit: Duration) -> Duration {
    host_limit / 4
}

/// Returns the result of an operation; ends the job with an error if it failed.
#[inline(always)]
pub fn or_fail<R>(call: Call, done: Result<R, Error>) -> R {
    match done {
        Ok(done) => done,
        Err(error) => fail_on(call, &error),
    }
}

#[cold]
#[inline(never)]
pub(crate) fn refuse(call: Call) -> ! {
    call.require_no_exit();
    fail!(
        call,
        "called without a transport; join all threads that call the library before {}",
        call.words("shmem_finalize", "Shmem::finalize")
    )
}

/// Ends the job because the network has failed. If another PE was lost, first gives the launcher
/// time to end the job, since it knows why the PE has died.
#[cold]
#[inline(never)]
fn fail_on(call: Call, error: &Error) -> ! {
    if is_loss_of_peer(error, job::known().map(|job| job.me)) {
        let host_limit = job::known().map_or(Duration::ZERO, |job| job.settings.host_limit);
        std::thread::sleep(launcher_grace(host_limit));
    }

    call.fail(format_args!("{error}"))
}

/// Returns true if the error is the loss of another PE than this one.
pub(crate) fn is_loss_of_peer(error: &Error, me: Option<Pe>) -> bool {
    matches!(error, Error::Lost(pe, _) if Some(*pe) != me)
}

/// Ends the job after an operation with a local buffer has failed. If this process cannot access
/// the buffer, the message names the argument instead of the error, which may blame a peer.
#[cold]
#[inline(never)]
pub(crate) fn fail_on_memory(
    call: Call,
    error: &Error,
    access: LocalAccess,
    memory: LocalBuf,
) -> ! {
    require_accessible(call, access, memory);
    fail_on(call, error)
}

/// Returns a world PE as the transport numbers it.
pub fn pe(pe: core::ffi::c_int) -> Pe {
    Pe(pe as u32)
}
