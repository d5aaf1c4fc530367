//! The endpoints of contexts, found by the places of the contexts, and the one of the library.
//!
//! An endpoint serves one thread at a time. What ensures that depends on the context, and is
//! decided when the context gets its endpoint:
//!
//! - A context that several threads may use at once takes the lock of its place. Only threads that
//!   use the same context at once wait for it, or a context that shares its endpoint. The library's
//!   own endpoint always has a lock.
//! - A private or serialized context has one user at a time, and below `SHMEM_THREAD_MULTIPLE`
//!   every context has. The user takes no lock. Other threads of the PE may complete what was
//!   issued on the context (`shmemx_local_complete`, the drop of an array in Rust) or end it
//!   (`shmem_finalize`, `shmem_team_destroy`, the exit of the process) while the user goes on. They
//!   take the lock of the place and claim the endpoint from its user, who finds it claimed and
//!   waits for the lock ([`Alone`]). Below `SHMEM_THREAD_MULTIPLE` no two threads are in the
//!   library at once, so nothing is claimed. Where the system call that a claim needs is missing,
//!   such a context takes the lock. A private context that shares the endpoint of another place
//!   takes the lock of that place.
//!
//! A place and its lock exist for the life of the process, so the user of a context that was
//! destroyed, or of a network that was closed, finds no endpoint there and gets a message. This
//! file must never know what an endpoint does.
#![allow(unsafe_code)]

use crate::base::handle::ContextHandle;
use crate::base::process;
use crate::net::contexts::{self, MOST};
use rushmem_transport::kit::alone::Alone;
use rushmem_transport::{Endpoint, Error};
use std::cell::UnsafeCell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Where the endpoint of a context is: a cache line, since its user writes `alone` in each
/// operation.
#[repr(align(64))]
struct ContextEndpoint {
    /// The handle of the context if it has an endpoint to itself and no two threads are in the
    /// library at once, or else 0.
    sole: AtomicUsize,
    /// Knows the context by its handle if it has an endpoint to itself and one user at a time,
    /// while other threads may be in the library.
    alone: Alone,
    /// The handle of the context if it has an endpoint, or else 0, which is the handle of none.
    context: AtomicUsize,
    /// The place of that endpoint.
    uses: AtomicPtr<ContextEndpoint>,
    lock: Mutex<()>,
    /// Used by the only thread, by the user that has entered `alone`, or by a thread that has the
    /// lock and has claimed it.
    endpoint: UnsafeCell<Option<Box<dyn Endpoint>>>,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<ContextEndpoint>() == 64, "more than a cache line");

// SAFETY: the endpoint can be sent, and the head of this file says who uses it: one thread at a
// time.
unsafe impl Sync for ContextEndpoint {}

/// The place of the library's own endpoint, behind those of contexts.
const LIBRARY: usize = MOST + 1;

/// The first is that of the default context. Unused pages are never touched.
static PLACES: [ContextEndpoint; MOST + 2] = [const {
    ContextEndpoint {
        sole: AtomicUsize::new(0),
        alone: Alone::of(AtomicUsize::new(0), AtomicBool::new(false)),
        context: AtomicUsize::new(0),
        uses: AtomicPtr::new(null_mut()),
        lock: Mutex::new(()),
        endpoint: UnsafeCell::new(None),
    }
}; MOST + 2];

/// The use of an endpoint by a thread that has its lock.
struct Use<'a> {
    _guard: MutexGuard<'a, ()>,
    endpoint: &'a mut Option<Box<dyn Endpoint>>,
}

/// The use of an endpoint by a thread that need not be its user, to whom it goes back in the end.
struct Claimed<'a> {
    alone: &'a Alone,
    user: usize,
    /// Dropped last.
    used: Use<'a>,
}

impl Drop for Claimed<'_> {
    fn drop(&mut self) {
        self.alone.give(self.user);
    }
}

/// The stay of a user inside, which a panic ends too.
struct EndpointUser<'a>(&'a Alone);

impl Drop for EndpointUser<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl ContextEndpoint {
    /// The use of the endpoint of this place by one of those that take its lock, or by its user
    /// that found it claimed.
    #[inline(always)]
    fn locked(&self) -> Use<'_> {
        let guard = process::lock(&self.lock);
        // SAFETY: if a place has a user who takes no lock, that is the calling thread.
        Use { _guard: guard, endpoint: unsafe { &mut *self.endpoint.get() } }
    }

    /// The use of the endpoint of this place by any thread.
    fn claimed(&self) -> Claimed<'_> {
        let guard = process::lock(&self.lock);
        let user = self.alone.claim(std::thread::yield_now);
        // SAFETY: the lock keeps out all threads but the user, and the claim keeps out the user.
        let endpoint = unsafe { &mut *self.endpoint.get() };
        Claimed { alone: &self.alone, user, used: Use { _guard: guard, endpoint } }
    }
}

/// Do something with the endpoint of a context, after `missing` if it has none; `None` if it still
/// has none.
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
    if place.sole.load(Ordering::Acquire) == ctx.0 {
        // SAFETY: no other thread is in the library.
        return unsafe { &mut *place.endpoint.get() }.as_deref_mut().map(verb);
    }
    if place.alone.enter(ctx.0) {
        return place.as_its_user(verb);
    }
    if !place.is_used_by(ctx) {
        return None;
    }
    // SAFETY: one of the places, since `context` was set after it.
    let uses = unsafe { place.uses.load(Ordering::Relaxed).as_ref() }?;
    uses.locked().endpoint.as_deref_mut().map(verb)
}

/// As [`on`], if the context has its endpoint to itself and nobody has claimed that; `None`
/// otherwise.
#[inline(always)]
pub(crate) fn alone<R>(ctx: ContextHandle, verb: impl FnOnce(&mut dyn Endpoint) -> R) -> Option<R> {
    debug_assert_ne!(ctx, ContextHandle::INVALID, "callers refuse it");
    let place = PLACES.get(ctx.place())?;
    // Paired with the store of the thread that made the endpoint.
    if place.sole.load(Ordering::Acquire) == ctx.0 {
        // SAFETY: no other thread is in the library.
        return unsafe { &mut *place.endpoint.get() }.as_deref_mut().map(verb);
    }
    if place.alone.enter(ctx.0) { place.as_its_user(verb) } else { None }
}

/// Do something with the library's own endpoint; `None` if the network is closed.
pub(crate) fn on_library<R>(verb: impl FnOnce(&mut dyn Endpoint) -> R) -> Option<R> {
    PLACES[LIBRARY].locked().endpoint.as_deref_mut().map(verb)
}

/// The library's own endpoint from now on.
pub(crate) fn set_library(endpoint: Box<dyn Endpoint>) {
    *PLACES[LIBRARY].locked().endpoint = Some(endpoint);
}

/// Make the endpoint of a context that exists, unless another thread was faster. If the network has
/// no more, the context uses that of the default context, and at worst that of the library; then it
/// completes more than it must.
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
    let mut has_own = false;
    let uses = match endpoint() {
        Ok(made) => {
            *own.endpoint = Some(made);
            has_own = true;
            address(place)
        }
        Err(_) if default.is_used_by(ContextHandle::DEFAULT) => {
            default.uses.load(Ordering::Relaxed)
        }
        Err(_) => address(&PLACES[LIBRARY]),
    };
    place.uses.store(uses, Ordering::Relaxed);
    place.context.store(ctx.0, Ordering::Release);
    if has_own && !contexts::are_threads_at_once() {
        place.sole.store(ctx.0, Ordering::Release);
    } else if has_own && contexts::has_one_user(ctx) && Alone::can_be_claimed() {
        place.alone.give(ctx.0);
    }
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
        // Paired with the store of the thread that made the endpoint.
        self.context.load(Ordering::Acquire) == ctx.0
    }

    /// Do something with the endpoint of this place, whose user has entered, and leave.
    #[inline(always)]
    fn as_its_user<R>(&self, verb: impl FnOnce(&mut dyn Endpoint) -> R) -> Option<R> {
        let _entered = EndpointUser(&self.alone);
        // SAFETY: a thread that claims it waits until the user has left.
        unsafe { &mut *self.endpoint.get() }.as_deref_mut().map(verb)
    }

    fn clear(&self) {
        let mut claimed = self.claimed();
        claimed.user = 0;
        self.sole.store(0, Ordering::Release);
        self.context.store(0, Ordering::Release);
        let forgotten = claimed.used.endpoint.take();
        drop(claimed);
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
        if let Some(endpoint) = place.claimed().used.endpoint.as_deref_mut() {
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
