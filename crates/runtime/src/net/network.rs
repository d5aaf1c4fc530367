//! The connection to PEs whose memory is not mapped here: a transport, an endpoint per context, and one for the
//! library's own flags.
//!
//! It is open between init and finalize if the job has such PEs; all other jobs pay one load for it. Every wait in
//! the library makes it progress. If peers change memory here by software, it rings this PE's bell. The loss of a
//! PE ends the job.

use crate::base::call::{Call, fail};
use crate::base::handle::ContextHandle;
use crate::base::job;
use crate::base::process;
use crate::net::contexts;
use rushmem_transport::setting::environment;
use rushmem_transport::{Endpoint, Error, Host, Nic, Pe, Transport};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

type Shared = Arc<Mutex<Box<dyn Endpoint>>>;

fn share(endpoint: Box<dyn Endpoint>) -> Shared {
    Arc::new(Mutex::new(endpoint))
}

/// The open network.
pub(crate) struct Network {
    /// The contexts' endpoints, made at first use. Dropped before the transport.
    contexts: Mutex<HashMap<ContextHandle, Shared>>,
    /// For the library's own flags and the data that they announce.
    library: Shared,
    transport: Box<dyn Transport>,
}

/// How long a launcher has to report why a PE is gone before this PE reports its loss: a fourth of the time for which a
/// host may be silent. Usually it ends the job at once when a process has died; this time is for a busy machine.
fn first_word() -> Duration {
    job::known().map_or(Duration::ZERO, |job| job.settings.host_limit / 4)
}

/// Whether there is a network. An on-node job reads nothing else of this file.
static OPEN: AtomicBool = AtomicBool::new(false);
static NETWORK: RwLock<Option<Network>> = RwLock::new(None);

/// Whether any PE is reached by a network.
#[inline(always)]
pub(crate) fn is_open() -> bool {
    OPEN.load(Ordering::Relaxed)
}

/// Open the network over a transport that is connected to its peers, with the library's endpoint of it.
pub(crate) fn open(transport: Box<dyn Transport>, library: Box<dyn Endpoint>) {
    let network = Network { contexts: Mutex::default(), library: share(library), transport };
    *NETWORK.write().unwrap_or_else(PoisonError::into_inner) = Some(network);
    OPEN.store(true, Ordering::Release);
}

/// Complete what was issued on any endpoint, the library's own flags included: afterwards no peer
/// still has to answer this PE, and it may leave.
pub(crate) fn complete(call: Call) {
    with(call, |network| {
        let contexts: Vec<Shared> = process::lock(&network.contexts).values().cloned().collect();
        for endpoint in contexts {
            process::lock(&endpoint).quiet()?;
        }
        process::lock(&network.library).quiet()
    });
}

/// Close it, once all PEs have completed what they issued.
pub(crate) fn close() {
    OPEN.store(false, Ordering::Release);
    *NETWORK.write().unwrap_or_else(PoisonError::into_inner) = None;
}

/// Leave the network to the parent process, which has the connections and the threads.
pub(crate) fn leave_to_parent() {
    OPEN.store(false, Ordering::Release);
}

/// Forget the endpoint of a context that was completed.
pub(crate) fn forget(ctx: ContextHandle) {
    if let Some(network) = &*NETWORK.read().unwrap_or_else(PoisonError::into_inner) {
        let forgotten = process::lock(&network.contexts).remove(&ctx);
        // It completes its operations, which must not happen under the lock that other contexts need.
        drop(forgotten);
    }
}

/// Whether the process's first thread must not end for now.
pub(crate) fn needs_first_thread() -> bool {
    let network = NETWORK.read().unwrap_or_else(PoisonError::into_inner);
    network.as_ref().is_some_and(|network| network.transport.caps().needs_first_thread)
}

/// Do something with the endpoint of a context; ends the job with an error when it fails.
pub(crate) fn on<R>(
    call: Call,
    ctx: ContextHandle,
    verb: impl FnOnce(&mut dyn Endpoint) -> Result<R, Error>,
) -> R {
    with(call, |network| {
        let shared = network.endpoint(call, ctx);
        let mut endpoint = process::lock(&shared);
        verb(&mut **endpoint)
    })
}

/// As [`on`], unless nothing was ever issued on the context.
pub(crate) fn on_used(
    call: Call,
    ctx: ContextHandle,
    verb: impl FnOnce(&mut dyn Endpoint) -> Result<(), Error>,
) {
    with(call, |network| {
        let used = process::lock(&network.contexts).get(&ctx).cloned();
        used.map_or(Ok(()), |shared| verb(&mut **process::lock(&shared)))
    });
}

/// Do something with the library's own endpoint; ends the job with an error when it fails.
pub(crate) fn on_library<R>(verb: impl FnOnce(&mut dyn Endpoint) -> Result<R, Error>) -> R {
    with(LIBRARY, |network| verb(&mut **process::lock(&network.library)))
}

/// Make the network progress, without blocking. Whether there was work for peers.
pub(crate) fn progress() -> bool {
    with(LIBRARY, |network| network.transport.progress())
}

/// As [`progress`], but sleep for at most this time if there was nothing to do.
pub(crate) fn wait(at_most: Duration) -> bool {
    with(LIBRARY, |network| network.transport.wait(at_most))
}

/// Report that this thread no longer makes the network progress, but sleeps until the bell rings.
pub(crate) fn hand_over() {
    with(LIBRARY, |network| {
        network.transport.hand_over();
        Ok(())
    });
}

/// The call for operations of the library itself.
pub(crate) const LIBRARY: Call = Call("transport");

fn with<R>(call: Call, act: impl FnOnce(&Network) -> Result<R, Error>) -> R {
    let network = NETWORK.read().unwrap_or_else(PoisonError::into_inner);
    let Some(network) = &*network else { fail!(call, "called without a transport") };
    act(network).unwrap_or_else(|error| lose(call, &error))
}

/// End the job because the network has failed. If a PE died, its launcher knows the reason better, so it goes first.
fn lose(call: Call, error: &Error) -> ! {
    if matches!(error, Error::Lost(..)) {
        std::thread::sleep(first_word());
    }
    fail!(call, "{error}")
}

impl Network {
    /// The endpoint of a context: its own or, if the network has no more, that of the default context, and at
    /// worst that of the library. A context that shares one completes more than it must.
    fn endpoint(&self, call: Call, ctx: ContextHandle) -> Shared {
        if let Some(endpoint) = process::lock(&self.contexts).get(&ctx) {
            return endpoint.clone();
        }
        contexts::require_for_network(call, ctx);
        let made = self.transport.endpoint();
        let mut contexts = process::lock(&self.contexts);
        let endpoint = match (made, contexts.get(&ContextHandle::DEFAULT)) {
            (Ok(endpoint), _) => share(endpoint),
            (Err(_), Some(default)) => default.clone(),
            (Err(_), None) => self.library.clone(),
        };
        // Another thread may have been faster on the same context.
        contexts.entry(ctx).or_insert(endpoint).clone()
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
    /// Whether the transport has been chosen: then the job ends when it loses a PE. During a test, the caller of the
    /// test gets the error.
    settled: AtomicBool,
    /// The value of the setting; unused if nothing is opened.
    host_limit: Duration,
    /// Wakes those who wait for this PE's memory to change.
    arrived: fn(),
}

impl Default for Process {
    fn default() -> Process {
        Process::with(Duration::ZERO, || ())
    }
}

impl Process {
    /// One that opens a transport.
    pub(crate) fn with(host_limit: Duration, arrived: fn()) -> Process {
        Process { settled: AtomicBool::new(false), host_limit, arrived }
    }

    /// The transport was chosen.
    pub(crate) fn settle(&self) {
        self.settled.store(true, Ordering::Release);
    }
}

impl Host for Process {
    fn variable(&self, name: &str) -> Option<String> {
        environment(name)
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
        if !self.settled.load(Ordering::Acquire) {
            return;
        }
        let error = error.clone();
        // This must not block the transport's own thread, which serves the other peers. If no thread can be
        // started, the next call that needs the network reports the error.
        let _ = std::thread::Builder::new().spawn(move || lose(LIBRARY, &error));
    }

    fn cannot_go_on(&self, why: &str) -> ! {
        fail!(LIBRARY, "{why}")
    }
}

/// The number of a world PE in the form of the transport.
pub(crate) fn pe(pe: core::ffi::c_int) -> Pe {
    Pe(pe as u32)
}

#[cfg(test)]
mod tests;
