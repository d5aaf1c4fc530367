//! The transport to PEs whose memory is not mapped here, and how its errors end the job.
//!
//! The transport is open between init and finalize if the job has such PEs; in other jobs it costs
//! one load. A thread that waits either makes it progress itself or sleeps on this PE's doorbell;
//! then the transport's own thread makes it progress. When the CPU of this PE changes its memory
//! for a peer, the transport rings this PE's doorbell. The loss of a PE ends the job. Operations
//! use the transport through `endpoints`.
//!
//! A program may also wait without a routine that waits: it tests a word or a lock again and again,
//! reads a word by a get or an atomic operation, or calls a quiet between loads of a variable. When
//! PEs outnumber the usable CPUs, such a loop keeps the CPU from the PE that would end it. So a
//! thread counts these calls, whether they poll or not, and after some microseconds of them makes
//! the network progress and yields the CPU.

use crate::call::{Call, call, fail};
use crate::job;
use crate::memory::accessible::{LocalAccess, require_accessible};
use crate::memory::address;
use rushmem_transport::progress::events::AwaitedWord;
use rushmem_transport::{Endpoint, Error, LocalBuf, NetworkActivity, Pe, Transport};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

/// Returns the time that the launcher has to report why a PE is gone, before this PE reports its
/// loss. Usually the launcher ends the job at once when a process has died; a busy machine may take
/// longer.
pub(super) fn launcher_grace(host_limit: Duration) -> Duration {
    host_limit / 4
}

/// True while operations may use the transport: from [`open`] to [`refuse_calls`].
static OPEN: AtomicBool = AtomicBool::new(false);
/// The open transport. Threads that wait and calls that create endpoints or extend the heap lock
/// it; operations do not.
static TRANSPORT: RwLock<Option<Box<dyn Transport>>> = RwLock::new(None);

/// True if every change that a peer makes to this PE's memory ends a [`wait`].
static WAKES_WAITS: AtomicBool = AtomicBool::new(false);

/// Returns true if a transport is open: some memory of the job is reached only over a network.
#[inline(always)]
pub(crate) fn is_open() -> bool {
    OPEN.load(Ordering::Relaxed)
}

/// Lets operations use `transport`, whose endpoint of the library is set already.
pub(crate) fn open(transport: Box<dyn Transport>) {
    WAKES_WAITS.store(transport.caps().wakes_waits, Ordering::Relaxed);
    *TRANSPORT.write().unwrap_or_else(PoisonError::into_inner) = Some(transport);
    OPEN.store(true, Ordering::Release);
}

/// Makes later accesses to memory that is not mapped here fail: the network is being closed, or
/// belongs to the parent of this process.
pub(crate) fn refuse_calls() {
    OPEN.store(false, Ordering::Release);
}

/// Drops the transport, after all endpoints were dropped.
pub(crate) fn close() {
    *TRANSPORT.write().unwrap_or_else(PoisonError::into_inner) = None;
}

/// Returns true if the transport needs the first thread of the process, which must not end.
pub(crate) fn needs_first_thread() -> bool {
    let transport = TRANSPORT.read().unwrap_or_else(PoisonError::into_inner);
    transport
        .as_ref()
        .is_some_and(|transport| transport.caps().needs_first_thread)
}

/// Creates an endpoint for a context; with `SHMEM_AGGREGATE` also begins a session on it. Ends the
/// job with an error if there is no transport.
///
/// # Errors
/// If the transport has no more endpoints.
pub(crate) fn endpoint(call: Call) -> Result<Box<dyn Endpoint>, Error> {
    let mut endpoint = with(call, |transport| Ok(transport.endpoint()))?;
    if job::require(call).settings.aggregate {
        endpoint.session(true)?;
    }
    Ok(endpoint)
}

/// Makes the network progress, without blocking. Returns true if it has done work for peers.
pub(crate) fn progress() -> bool {
    with(LIBRARY_CALL, |transport| transport.progress())
}

/// Returns true if every change that a peer makes to this PE's memory ends a [`wait`].
pub(crate) fn wakes_waits() -> bool {
    WAKES_WAITS.load(Ordering::Relaxed)
}

/// Sleeps until the network may have work or this PE's memory may have changed, for at most
/// `at_most`, and then works as [`progress`]. If the caller names the `awaited` words, it may sleep
/// on while other words change. Does not sleep if `is_over` returns true. The caller calls
/// [`end_wait`] when its wait is over.
pub(crate) fn wait(
    at_most: Duration,
    awaited: &[AwaitedWord],
    is_over: &mut dyn FnMut() -> bool,
) -> bool {
    with(LIBRARY_CALL, |transport| {
        transport.wait(at_most, awaited, is_over)
    })
}

/// Ends a wait in which this thread has called [`wait`].
pub(crate) fn end_wait() {
    with(LIBRARY_CALL, |transport| {
        transport.end_wait();
        Ok(())
    });
}

/// Makes the first `nbytes` bytes of the heap reachable by peers, if a network is open. Before it
/// registers more of the heap, calls `prepare` with the number of bytes that will be registered,
/// and whether registration locks them.
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

/// Returns the counters of what threads have done on the network; `None` without a network.
pub(crate) fn activity() -> Option<NetworkActivity> {
    let transport = TRANSPORT.read().unwrap_or_else(PoisonError::into_inner);
    transport.as_ref().map(|transport| transport.activity())
}

/// Tells the transport that this thread makes no more progress, but sleeps on the doorbell.
pub(crate) fn stop_polling() {
    with(LIBRARY_CALL, |transport| {
        transport.stop_polling();
        Ok(())
    });
}

/// The call that messages name for operations of the library itself.
pub(crate) const LIBRARY_CALL: Call = call!("transport");

fn with<R>(call: Call, act: impl FnOnce(&dyn Transport) -> Result<R, Error>) -> R {
    let transport = TRANSPORT.read().unwrap_or_else(PoisonError::into_inner);
    let Some(transport) = &*transport else {
        refuse(call)
    };
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
    fail!(
        call,
        "called without a transport; join all threads that call the library before shmem_finalize"
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
pub(super) fn is_loss_of_peer(error: &Error, me: Option<Pe>) -> bool {
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
pub(crate) fn pe(pe: core::ffi::c_int) -> Pe {
    Pe(pe as u32)
}

/// The number of reads after which a thread yields. They take about 10 us.
const READS_PER_YIELD: u32 = 1024;
/// The number of reads that take as long as a call which completes or orders operations.
const READS_PER_CALL: u32 = 4;
/// The number of reads that take as long as a test which makes the network progress.
const READS_PER_PROGRESS: u32 = 128;

thread_local! {
    /// The calls of this thread since it last yielded, as a number of reads.
    static READS: Cell<u32> = const { Cell::new(0) };
}

/// Counts a get or an atomic operation that returns a value, in a job that counts polls.
#[inline(always)]
pub(crate) fn count_read() {
    if address::are_polls_counted() {
        count(1);
    }
}

/// Counts a call that completes or orders operations, in a job that counts polls.
#[inline(always)]
pub(crate) fn count_call() {
    if address::are_polls_counted() {
        count(READS_PER_CALL);
    }
}

/// Counts a test of a word or a lock, unless it was successful, in a job that counts polls.
#[inline(always)]
pub(crate) fn count_test(is_successful: bool) {
    if address::are_polls_counted() && !is_successful {
        count(if is_open() {
            READS_PER_PROGRESS
        } else {
            READS_PER_CALL
        });
    }
}

#[inline(never)]
fn count(reads: u32) {
    let all = READS.get() + reads;
    READS.set(if all < READS_PER_YIELD { all } else { 0 });
    if all >= READS_PER_YIELD {
        if is_open() {
            progress();
        }
        std::thread::yield_now();
    }
}
