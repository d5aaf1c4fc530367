//! The endpoints of contexts, found by the places of the contexts, and the one of the library.
//!
//! An endpoint serves one thread at a time. Who ensures that depends on the context, and is decided when it gets its endpoint:
//!
//! - A context that several threads may use at once has a lock: the one of its place. Nobody waits for it but threads that use
//!   the same context at once, or a context that shares its endpoint. The library's own endpoint always has one.
//! - A private or serialized context has none, and below `SHMEM_THREAD_MULTIPLE` no context has. The standard leaves it to the
//!   program that no two threads use such a context at once, and that whoever uses it next has synchronized with whoever used it
//!   before. The calls that use contexts which their caller does not name are `shmem_finalize`, `shmem_team_destroy`, the exit of
//!   the process and `shmemx_local_complete`; for these the program ensures the same, since they end the context or are said to use
//!   it. A private context that shares the endpoint of another place takes the lock of that place.
//!
//! A place and its lock exist for the life of the process, so whoever uses a context that was destroyed, or a network that was
//! closed, finds nothing there and gets a message. This file must never know what an endpoint does.
#![allow(unsafe_code)]

use crate::base::handle::ContextHandle;
use crate::base::process;
use crate::net::contexts::{self, MOST};
use rushmem_transport::{Endpoint, Error};
use std::cell::UnsafeCell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Where the endpoint of a context is.
struct ContextEndpoint {
    /// The handle of the context if it has an endpoint that no other thread uses, so that it needs no lock; otherwise 0, which is the
    /// handle of none.
    alone: AtomicUsize,
    /// The handle of the context if it uses an endpoint by its lock; otherwise 0, which is the handle of none.
    sharing: AtomicUsize,
    /// The place of that endpoint.
    uses: AtomicPtr<ContextEndpoint>,
    lock: Mutex<()>,
    /// Changed by whoever has the lock, and used by whoever has it or is alone.
    endpoint: UnsafeCell<Option<Box<dyn Endpoint>>>,
}

// SAFETY: the endpoint can be sent, and the head of this file says who uses it: one thread at a time.
unsafe impl Sync for ContextEndpoint {}

/// The place of the library's own endpoint, behind those of contexts.
const LIBRARY: usize = MOST + 1;

/// The first is that of the default context. Unused pages are never touched.
static PLACES: [ContextEndpoint; MOST + 2] = [const {
    ContextEndpoint {
        alone: AtomicUsize::new(0),
        sharing: AtomicUsize::new(0),
        uses: AtomicPtr::new(null_mut()),
        lock: Mutex::new(()),
        endpoint: UnsafeCell::new(None),
    }
}; MOST + 2];

/// The use of an endpoint by whoever has its lock.
struct Use<'a> {
    _guard: MutexGuard<'a, ()>,
    endpoint: &'a mut Option<Box<dyn Endpoint>>,
}

impl ContextEndpoint {
    /// The use of the endpoint of this place, when nobody else has it.
    #[inline(always)]
    fn locked(&self) -> Use<'_> {
        let guard = process::lock(&self.lock);
        // SAFETY: whoever does not take the lock is the only one who uses this place.
        Use { _guard: guard, endpoint: unsafe { &mut *self.endpoint.get() } }
    }
}

/// Do something with the endpoint of a context, after `missing` if it has none; `None` if it still has none.
#[inline(always)]
pub(crate) fn on<R>(
    ctx: ContextHandle,
    missing: impl FnOnce(),
    verb: impl FnOnce(&mut dyn Endpoint) -> R,
) -> Option<R> {
    debug_assert_ne!(ctx, ContextHandle::INVALID, "callers refuse it");
    let place = PLACES.get(ctx.place())?;
    if !place.is_used_by(ctx) {
        missing();
    }
    if place.alone.load(Ordering::Acquire) == ctx.0 {
        // SAFETY: a context that no other thread uses.
        return unsafe { &mut *place.endpoint.get() }.as_deref_mut().map(verb);
    }
    if place.sharing.load(Ordering::Acquire) != ctx.0 {
        return None;
    }
    // SAFETY: one of the places, since `sharing` was set after it.
    let uses = unsafe { place.uses.load(Ordering::Relaxed).as_ref() }?;
    uses.locked().endpoint.as_deref_mut().map(verb)
}

/// As [`on`], if the context has its endpoint to itself; `None` if it has none, or shares one.
#[inline(always)]
pub(crate) fn alone<R>(ctx: ContextHandle, verb: impl FnOnce(&mut dyn Endpoint) -> R) -> Option<R> {
    debug_assert_ne!(ctx, ContextHandle::INVALID, "callers refuse it");
    let place = PLACES.get(ctx.place())?;
    // Paired with the store of whoever made the endpoint.
    if place.alone.load(Ordering::Acquire) != ctx.0 {
        return None;
    }
    // SAFETY: a context that no other thread uses.
    unsafe { &mut *place.endpoint.get() }.as_deref_mut().map(verb)
}

/// Do something with the library's own endpoint; `None` if the network is closed.
pub(crate) fn on_library<R>(verb: impl FnOnce(&mut dyn Endpoint) -> R) -> Option<R> {
    PLACES[LIBRARY].locked().endpoint.as_deref_mut().map(verb)
}

/// The library's own endpoint from now on.
pub(crate) fn set_library(endpoint: Box<dyn Endpoint>) {
    *PLACES[LIBRARY].locked().endpoint = Some(endpoint);
}

/// Make the endpoint of a context that exists, unless another thread was faster. If the network has no more, the context uses that
/// of the default context, and at worst that of the library; then it completes more than it must.
pub(crate) fn make(
    ctx: ContextHandle,
    endpoint: impl FnOnce() -> Result<Box<dyn Endpoint>, Error>,
) {
    let place = &PLACES[ctx.place()];
    let own = place.locked();
    if place.is_used_by(ctx) {
        return;
    }
    let default = &PLACES[0];
    let uses = match endpoint() {
        Ok(made) => {
            *own.endpoint = Some(made);
            if contexts::has_one_user(ctx) {
                return place.alone.store(ctx.0, Ordering::Release);
            }
            address(place)
        }
        // Threads are not in the library at once.
        Err(_) if default.alone.load(Ordering::Acquire) == ContextHandle::DEFAULT.0 => {
            address(default)
        }
        Err(_) if default.sharing.load(Ordering::Acquire) == ContextHandle::DEFAULT.0 => {
            default.uses.load(Ordering::Relaxed)
        }
        Err(_) => address(&PLACES[LIBRARY]),
    };
    place.uses.store(uses, Ordering::Relaxed);
    place.sharing.store(ctx.0, Ordering::Release);
}

fn address(place: &'static ContextEndpoint) -> *mut ContextEndpoint {
    std::ptr::from_ref(place).cast_mut()
}

/// Forget the endpoint of a context that was completed.
pub(crate) fn forget(ctx: ContextHandle) {
    let Some(place) = PLACES.get(ctx.place()) else { return };
    if place.is_used_by(ctx) {
        place.clear();
    }
}

impl ContextEndpoint {
    /// Whether the context has an endpoint.
    #[inline(always)]
    fn is_used_by(&self, ctx: ContextHandle) -> bool {
        // Paired with the stores of whoever made the endpoint.
        [&self.alone, &self.sharing].iter().any(|handle| handle.load(Ordering::Acquire) == ctx.0)
    }

    fn clear(&self) {
        self.alone.store(0, Ordering::Release);
        self.sharing.store(0, Ordering::Release);
        let forgotten = self.locked().endpoint.take();
        // It completes its operations, which may take long.
        drop(forgotten);
    }
}

/// Do something with every endpoint, the library's last.
///
/// # Errors
/// The first error.
pub(crate) fn on_all(
    mut verb: impl FnMut(&mut dyn Endpoint) -> Result<(), Error>,
) -> Result<(), Error> {
    for place in all() {
        if let Some(endpoint) = place.locked().endpoint.as_deref_mut() {
            verb(endpoint)?;
        }
    }
    Ok(())
}

/// Forget all endpoints.
pub(crate) fn clear() {
    all().for_each(ContextEndpoint::clear);
}

/// The places that may have an endpoint, the library's last.
fn all() -> impl Iterator<Item = &'static ContextEndpoint> {
    PLACES[..=contexts::n_places()].iter().chain([&PLACES[LIBRARY]])
}

#[cfg(test)]
mod tests;
