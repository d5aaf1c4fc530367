//! The endpoints of contexts, found by the index of the context, and the endpoint of the library.
//!
//! One thread at a time uses an endpoint. Every use takes the lock of its entry, with one
//! exception: below `SHMEM_THREAD_MULTIPLE` no two threads of the program are in the library at
//! once, and threads of the library use only the library's endpoint, except for a quiet at an exit
//! while the thread that exits waits for it. So a context that has an endpoint of its own uses it
//! without the lock ([`use_existing`]).
//!
//! An entry and its lock exist for the life of the process. So a thread that issues an operation on
//! a destroyed context or a closed network finds no endpoint, and ends the job with a message.
#![allow(unsafe_code)]

use crate::call::thread;
use crate::call::{Call, CallName, call};
use crate::job::handle::ContextHandle;
use crate::net::contexts::{self, MAX_CONTEXTS};
use crate::net::network;
use crate::process;
use rushmem_transport::{Endpoint, Error, Pe};
use std::cell::UnsafeCell;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::ptr::{from_ref, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, Once};

/// The entry of a context: its endpoint, or a pointer to the entry whose endpoint it shares.
#[repr(align(64))]
struct ContextEndpoint {
    /// The handle of the context if it has an endpoint of its own and no two threads of the program
    /// are in the library at once, or else 0.
    sole: AtomicUsize,
    /// The handle of the context if it has an endpoint, or else 0, the handle of no context.
    context: AtomicUsize,
    /// The entry that has that endpoint: this one, or the one whose endpoint the context shares.
    uses: AtomicPtr<ContextEndpoint>,
    lock: Mutex<()>,
    /// Used by the only thread of the program in the library, or by a thread that has the lock.
    endpoint: UnsafeCell<Option<Box<dyn Endpoint>>>,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<ContextEndpoint>() == 64, "more than a cache line");

// SAFETY: the endpoint is `Send`, and one thread at a time uses it: see the head of this file.
unsafe impl Sync for ContextEndpoint {}

/// The index of the endpoint of the library, behind those of contexts.
const LIBRARY_INDEX: usize = MAX_CONTEXTS + 1;

/// The entries by index; the first is that of the default context. Unused pages are never touched.
static ENDPOINTS: [ContextEndpoint; MAX_CONTEXTS + 2] = [const {
    ContextEndpoint {
        sole: AtomicUsize::new(0),
        context: AtomicUsize::new(0),
        uses: AtomicPtr::new(null_mut()),
        lock: Mutex::new(()),
        endpoint: UnsafeCell::new(None),
    }
}; MAX_CONTEXTS + 2];

/// The use of an endpoint by one thread, until it is dropped.
struct EndpointUse {
    endpoint: &'static mut dyn Endpoint,
    /// `None` if no other thread can use the endpoint. Dropped last.
    _guard: Option<MutexGuard<'static, ()>>,
}

impl Deref for EndpointUse {
    type Target = dyn Endpoint;

    #[inline(always)]
    fn deref(&self) -> &(dyn Endpoint + 'static) {
        self.endpoint
    }
}

impl DerefMut for EndpointUse {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut (dyn Endpoint + 'static) {
        self.endpoint
    }
}

/// Calls `verb` with the endpoint of a context, which it creates at the first use. Ends the job
/// with an error if there is no such context, or no network.
#[inline(always)]
pub(crate) fn on<R>(
    call: Call,
    ctx: ContextHandle,
    verb: impl FnOnce(&mut dyn Endpoint) -> R,
) -> R {
    match use_existing(call, ctx) {
        Some(mut endpoint) => verb(&mut *endpoint),
        None => verb(&mut *use_new(call, ctx)),
    }
}

/// Creates the endpoint of a context and returns it. Ends the job with an error if there is no such
/// context, or no network.
#[cold]
#[inline(never)]
fn use_new(call: Call, ctx: ContextHandle) -> EndpointUse {
    contexts::require_for_network(call, ctx);
    make(ctx, || network::endpoint(call));
    use_existing(call, ctx).unwrap_or_else(|| network::refuse(call))
}

/// Returns the endpoint of a context; `None` if it has none: nothing was issued on it yet, or the
/// context or the network does not exist any more.
#[inline(always)]
fn use_existing(call: Call, ctx: ContextHandle) -> Option<EndpointUse> {
    debug_assert_ne!(ctx, ContextHandle::INVALID, "callers refuse it");
    let entry = ENDPOINTS.get(ctx.index())?;
    // Acquire pairs with the release store in `make`.
    if entry.sole.load(Ordering::Acquire) == ctx.0 {
        set_call(call);
        // SAFETY: `make` has found that no two threads of the program are in the library at once,
        // and threads of the library do not use the endpoint of a context.
        return unsafe { entry.endpoint(None) };
    }
    let used = entry.use_with_lock(ctx);
    if used.is_some() && !contexts::are_threads_at_once() {
        set_call(call);
    }
    used
}

/// Calls `verb` with the endpoint of a context, unless it has none. Ends the job with an error if
/// `verb` fails.
pub(crate) fn on_used(
    call: Call,
    ctx: ContextHandle,
    verb: impl FnOnce(&mut dyn Endpoint) -> Result<(), Error>,
) {
    if let Some(mut endpoint) = use_existing(call, ctx) {
        network::or_fail(call, verb(&mut *endpoint));
    }
}

/// Calls `verb` with the endpoint of the library. Ends the job with an error if `verb` fails, or if
/// the network is closed.
pub(crate) fn on_library<R>(verb: impl FnOnce(&mut dyn Endpoint) -> Result<R, Error>) -> R {
    let endpoint = ENDPOINTS[LIBRARY_INDEX].locked();
    let mut endpoint = endpoint.unwrap_or_else(|| network::refuse(network::LIBRARY_CALL));
    network::or_fail(network::LIBRARY_CALL, verb(&mut *endpoint))
}

/// Sets the endpoint of the library.
pub(crate) fn set_library(endpoint: Box<dyn Endpoint>) {
    ENDPOINTS[LIBRARY_INDEX].with_endpoint(|own| *own = Some(endpoint));
}

/// Creates the endpoint of a context, unless another thread was faster. If the network has no more
/// endpoints, the context shares that of the default context if it has one, or else that of the
/// library; a quiet then completes more operations than it must.
fn make(ctx: ContextHandle, endpoint: impl FnOnce() -> Result<Box<dyn Endpoint>, Error>) {
    let entry = &ENDPOINTS[ctx.index()];
    entry.with_endpoint(|own| {
        if entry.is_used_by(ctx) {
            return;
        }
        let default = &ENDPOINTS[0];
        let endpoint = endpoint().inspect_err(|why| {
            static REPORTED: Once = Once::new();
            REPORTED.call_once(|| rushmem_log::info!("contexts share an endpoint: {why}"));
            rushmem_log::debug!(
                context = ctx.index(),
                "it shares the endpoint of another one"
            );
        });
        *own = endpoint.ok();
        let uses = match own {
            Some(_) => address(entry),
            None if default.is_used_by(ContextHandle::DEFAULT) => {
                default.uses.load(Ordering::Relaxed)
            }
            None => address(&ENDPOINTS[LIBRARY_INDEX]),
        };
        entry.uses.store(uses, Ordering::Relaxed);
        entry.context.store(ctx.0, Ordering::Release);
        if own.is_some() && !contexts::are_threads_at_once() {
            entry.sole.store(ctx.0, Ordering::Release);
        }
    });
}

fn address(entry: &'static ContextEndpoint) -> *mut ContextEndpoint {
    std::ptr::from_ref(entry).cast_mut()
}

/// Removes the endpoint of a context whose operations are complete, and drops it unless it is that
/// of another entry.
pub(crate) fn drop_endpoint(ctx: ContextHandle) {
    let Some(entry) = ENDPOINTS.get(ctx.index()) else {
        return;
    };
    if entry.is_used_by(ctx) {
        entry.clear();
    }
}

impl ContextEndpoint {
    /// Returns true if the context has an endpoint, its own or a shared one.
    #[inline(always)]
    fn is_used_by(&self, ctx: ContextHandle) -> bool {
        // Acquire pairs with the release store in `make`.
        self.context.load(Ordering::Acquire) == ctx.0
    }

    /// Returns the endpoint of this entry.
    ///
    /// # Safety
    /// `guard` is the guard of this entry's lock, or no other thread uses the endpoint meanwhile.
    #[inline(always)]
    unsafe fn endpoint(
        &'static self,
        guard: Option<MutexGuard<'static, ()>>,
    ) -> Option<EndpointUse> {
        // SAFETY: the caller has the lock or is the only user, so no other thread has a reference.
        let endpoint = unsafe { &mut *self.endpoint.get() }.as_deref_mut()?;
        Some(EndpointUse {
            endpoint,
            _guard: guard,
        })
    }

    /// Takes the lock of this entry and returns its endpoint.
    fn locked(&'static self) -> Option<EndpointUse> {
        let guard = process::lock(&self.lock);
        // SAFETY: the guard is that of this entry.
        unsafe { self.endpoint(Some(guard)) }
    }

    /// Returns the endpoint that a context uses, perhaps that of another entry, under its lock;
    /// `None` if the context has none.
    #[inline(never)]
    fn use_with_lock(&self, ctx: ContextHandle) -> Option<EndpointUse> {
        if !self.is_used_by(ctx) {
            return None;
        }
        // SAFETY: the pointer is to an entry, since `make` stores it before `context`.
        unsafe { self.uses.load(Ordering::Relaxed).as_ref() }?.locked()
    }

    /// Calls `f` with the endpoint of this entry, which it may set, while it holds the lock.
    fn with_endpoint<R>(&self, f: impl FnOnce(&mut Option<Box<dyn Endpoint>>) -> R) -> R {
        let _guard = process::lock(&self.lock);
        // SAFETY: the lock excludes threads that take it. Where a thread of the program uses the
        // endpoint without the lock, it is the only one in the library, so it is this thread.
        f(unsafe { &mut *self.endpoint.get() })
    }

    fn clear(&self) {
        let forgotten = self.with_endpoint(|own| {
            self.sole.store(0, Ordering::Release);
            self.context.store(0, Ordering::Release);
            own.take()
        });
        // Without the lock: dropping an endpoint completes its operations, which may take long.
        drop(forgotten);
    }
}

/// Completes all operations on all endpoints, those on the library's own flags included. Afterwards
/// this PE waits for no reply of a peer, so the peers may exit.
pub(crate) fn complete(call: Call) {
    set_call(call);
    // An error is reported after all locks are released, so that other threads can report theirs.
    network::or_fail(call, on_all(|endpoint| endpoint.quiet()));
}

/// Returns, for each PE with operations that are not known to be complete, their number on the
/// endpoint that has most of them. Begins to complete them, but waits for no PE. Returns `None` if
/// the provider does not know the numbers, if an endpoint has failed, or if other threads may issue
/// operations meanwhile.
pub(crate) fn in_flight() -> Option<BTreeMap<Pe, u64>> {
    if contexts::are_threads_at_once() || thread::request_call().is_some() {
        return None;
    }
    let mut all = Some(BTreeMap::new());
    let looked = on_all(|endpoint| {
        let of_endpoint = endpoint.in_flight()?;
        all = all.take().zip(of_endpoint).map(|(mut all, of_endpoint)| {
            for (pe, n) in of_endpoint {
                // Endpoints may share a counter of the provider, so the numbers are not added.
                let most = all.entry(pe).or_insert(0);
                *most = n.max(*most);
            }
            all
        });
        Ok(())
    });
    // An error is left to the next verb, which reports it.
    looked.ok().and(all)
}

/// Calls `verb` with every endpoint, the library's last, until it fails.
fn on_all(mut verb: impl FnMut(&mut dyn Endpoint) -> Result<(), Error>) -> Result<(), Error> {
    for entry in all() {
        if let Some(mut endpoint) = entry.locked() {
            verb(&mut *endpoint)?;
        }
    }
    Ok(())
}

/// Closes the network, after all PEs have completed their operations.
pub(crate) fn close() {
    network::refuse_calls();
    all().for_each(ContextEndpoint::clear);
    network::close();
}

/// Returns the entries that may have an endpoint, the library's last.
fn all() -> impl Iterator<Item = &'static ContextEndpoint> {
    ENDPOINTS[..=contexts::max_index()]
        .iter()
        .chain([&ENDPOINTS[LIBRARY_INDEX]])
}

/// The last call that used the endpoint of a context or completed all operations, for the status of
/// a PE that waits in an operation. It is valid only where no two threads are in the library at
/// once: otherwise the calls of threads could not be distinguished, and all would write to one
/// cache line.
static CALL: AtomicPtr<CallName> = AtomicPtr::new(null_mut());

/// Records the call that is about to use the network: one store.
#[inline(always)]
pub(crate) fn set_call(call: Call) {
    CALL.store(from_ref(call.0).cast_mut(), Relaxed);
}

/// Returns the call that uses the network, for a thread that waits in it.
pub(crate) fn current_call() -> Call {
    if let Some(call) = thread::request_call() {
        return call;
    }
    // SAFETY: the pointer is null or made of a `&'static CallName` in `set_call`.
    let call = unsafe { CALL.load(Relaxed).cast_const().as_ref() };
    let call = call.filter(|_| !contexts::are_threads_at_once());
    call.map_or(call!("an operation over the network"), Call)
}

#[cfg(test)]
mod tests;
