//! The hook of the observers what this PE does: the counters of `SHMEM_STATS`, the trace of
//! `SHMEM_TRACE`, the race detector and the checks of `SHMEM_CHECK`, and the record of the last
//! writes. Each has functions for the begin and the end of an event.
//!
//! One word says whether anybody listens: a call loads it and branches to a cold path. Accesses to
//! mapped memory take their cold path anyway while somebody listens, since the segments of the fast
//! path are then empty (`memory::address`).

pub(crate) mod checks;
pub(crate) mod counters;
mod event;
pub(crate) mod races;
pub(crate) mod trace;
pub(crate) mod writes;

pub(crate) use event::{
    AccessEvent, AccessKind, Action, Argument, ByteBlocks, CallKind, Effect, Event,
    FollowedMembers, Membership, WordKind,
};

use crate::call::call;
use core::ffi::c_int;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The observers: each is a bit of the word.
#[derive(Clone, Copy)]
pub(crate) enum Subscriber {
    /// `SHMEM_STATS`
    Counters = 1,
    /// `SHMEM_TRACE`
    Trace = 2,
    /// `SHMEM_CHECK=races`
    Races = 4,
    /// `SHMEM_CHECK`
    Checks = 8,
    /// The record of the last writes.
    Writes = 16,
}

/// The observers that listen, as a sum of their bits. Written at init and finalize.
static LISTENERS: AtomicU32 = AtomicU32::new(0);

/// Adds a listener.
pub(crate) fn add(listener: Subscriber) {
    LISTENERS.fetch_or(listener as u32, Relaxed);
}

/// Removes a listener.
pub(crate) fn remove(listener: Subscriber) {
    LISTENERS.fetch_and(!(listener as u32), Relaxed);
}

/// Returns true if anybody listens.
#[inline(always)]
pub(crate) fn any() -> bool {
    LISTENERS.load(Relaxed) != 0
}

/// An event that has begun. It ends when this is dropped.
pub(crate) struct OngoingEvent {
    event: Event,
    /// As a sum, since others may come or go meanwhile.
    listeners: u32,
    counted: counters::ObserverState,
    record: trace::ObserverState,
    /// Its end is not recorded.
    is_brief: bool,
}

/// An event that ends with a function or a value. Without listeners it is a word that is empty.
pub(crate) type ObservedCall = Option<Box<OngoingEvent>>;

/// Makes `$make` during `$event`, which begins if somebody listens. What the event needs is moved
/// on the cold path alone; the other one pays a load and a branch, and a closure would be in memory
/// there.
macro_rules! during {
    ($event:expr, $make:expr) => {
        if $crate::observers::any() {
            $crate::observers::observed(
                move || $event,
                #[inline(always)]
                move || $make,
            )
        } else {
            $make
        }
    };
}
pub(crate) use during;

/// Begins an event, and makes what it describes.
#[cold]
#[inline(never)]
pub(crate) fn observed<R>(describe: impl FnOnce() -> Event, make: impl FnOnce() -> R) -> R {
    let mut begun = OngoingEvent::new(describe());
    begun.begin();
    make()
}

/// Makes an access, to mapped memory if `is_mapped`, and shows it to those who listen. `make` sets
/// its argument if the access has found the value that the program expects, and has written.
#[inline(always)]
pub(crate) fn access<R>(
    describe: impl FnOnce() -> Event,
    is_mapped: bool,
    make: impl FnOnce(&mut bool) -> R,
) -> R {
    if any() { observed_access(describe, is_mapped, make) } else { make(&mut false) }
}

/// Makes an access while somebody listens. It is a function of its own so that [`access`] need not
/// save the registers that this one uses.
#[cold]
#[inline(never)]
fn observed_access<R>(
    describe: impl FnOnce() -> Event,
    is_mapped: bool,
    make: impl FnOnce(&mut bool) -> R,
) -> R {
    let mut begun = OngoingEvent::new(describe());
    begun.is_brief = is_mapped && begun.event.remote.total() <= trace::BRIEF;
    begun.begin();
    let mut has_written = false;
    let result = make(&mut has_written);
    if has_written && begun.has(Subscriber::Writes) {
        let Event { call, pe, remote, .. } = begun.event;
        writes::record(call, pe, remote);
    }
    result
}

/// Begins an event if somebody listens, for a call that has several exits.
#[inline(always)]
pub(crate) fn call(describe: impl FnOnce() -> Event) -> ObservedCall {
    #[cold]
    #[inline(never)]
    fn boxed(describe: impl FnOnce() -> Event) -> ObservedCall {
        let mut begun = Box::new(OngoingEvent::new(describe()));
        begun.begin();
        Some(begun)
    }
    if any() { boxed(describe) } else { None }
}

/// Reports an event that has no duration.
#[inline(always)]
pub(crate) fn report(describe: impl FnOnce() -> Event) {
    if any() {
        OngoingEvent::new(describe()).begin();
    }
}

/// Records the bytes that a collective moves to `pe`.
#[inline]
pub(crate) fn moved_to(pe: usize, nbytes: usize) {
    moved(pe, nbytes, false);
}

/// Records the bytes that a collective moves from `pe`.
#[inline]
pub(crate) fn moved_from(pe: usize, nbytes: usize) {
    moved(pe, nbytes, true);
}

#[inline]
fn moved(pe: usize, nbytes: usize, is_from: bool) {
    if nbytes > 0 {
        report(|| {
            let remote = ByteBlocks::one(0, nbytes);
            let action = Action::Move { is_from };
            Event { pe: pe as c_int, remote, ..Event::new(call!("move"), action) }
        });
    }
}

impl OngoingEvent {
    #[inline(always)]
    fn new(event: Event) -> OngoingEvent {
        let listeners = LISTENERS.load(Relaxed);
        OngoingEvent { event, listeners, counted: [0; 3], record: (0, 0, 0), is_brief: false }
    }

    fn has(&self, listener: Subscriber) -> bool {
        self.listeners & listener as u32 != 0
    }

    /// Reports the begin. What is recorded comes before what may end the job.
    #[inline(never)]
    fn begin(&mut self) {
        if self.has(Subscriber::Counters) {
            self.counted = counters::begin(&self.event);
        }
        if self.has(Subscriber::Trace) {
            self.record = trace::begin(&self.event, self.is_brief);
        }
        if self.has(Subscriber::Races) {
            races::begin(&self.event);
        }
        if self.has(Subscriber::Checks) {
            checks::begin(&self.event);
        }
        if self.has(Subscriber::Writes) {
            writes::begin(&self.event);
        }
    }

    #[inline(never)]
    fn end(&self) {
        if self.has(Subscriber::Counters) {
            counters::end(&self.event, self.counted);
        }
        if self.has(Subscriber::Trace) && !self.is_brief {
            trace::end(&self.event, self.record);
        }
        if self.has(Subscriber::Races) {
            races::end(&self.event);
        }
    }

    /// Drops the event without an end.
    pub(crate) fn cancel(mut self) {
        self.listeners = 0;
    }

    /// Sets the bytes that the collective reads and writes here.
    pub(crate) fn moves(&mut self, source: ByteBlocks, dest: ByteBlocks) {
        (self.event.local, self.event.remote) = (source, dest);
    }

    /// Sets the members whose arrays the result of the collective comes from.
    pub(crate) fn follows(&mut self, members: FollowedMembers, member: u32) {
        if let Action::Collective(membership) = &mut self.event.action {
            membership.follows = (members, member);
        }
    }
}

impl Drop for OngoingEvent {
    /// Reports the end to the observers.
    #[inline]
    fn drop(&mut self) {
        let of_access = Subscriber::Trace as u32 | Subscriber::Races as u32;
        let look = match self.event.action {
            Action::Access(_) if self.is_brief => Subscriber::Races as u32,
            Action::Access(_) => of_access,
            _ => of_access | Subscriber::Counters as u32,
        };
        if self.listeners & look != 0 {
            self.end();
        }
    }
}
