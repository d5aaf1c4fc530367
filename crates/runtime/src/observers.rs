//! The hook of the observers what this PE does: the counters of `SHMEM_STATS`, the trace of
//! `SHMEM_TRACE`, the race detector and the checks of `SHMEM_CHECK`, and the record of the last
//! writes. Each implements [`Observer`], and is fed with events.
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
    FollowedMembers, Membership, Observer, WordKind,
};

use crate::call::call;
use core::ffi::c_int;
use event::ObserverState;
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

/// In the order of the bits. What is recorded comes before what may end the job.
const OBSERVERS: [&dyn Observer; 5] = [
    &counters::Counting,
    &trace::Tracing,
    &races::RaceDetection,
    &checks::Checking,
    &writes::RecordingWrites,
];

/// The observers that listen, as a sum of their bits. StatusContent at init and finalize.
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
    states: [ObserverState; OBSERVERS.len()],
}

/// An event that ends with a function or a value. Without listeners it is a word that is empty.
pub(crate) type ObservedCall = Option<Box<OngoingEvent>>;

/// Makes `$make` during `$event`, which begins if somebody listens: `$observed` is then what has
/// begun, and otherwise `None`. What the event needs is moved on the cold path alone; the other one
/// pays a load and a branch, and a closure would be in memory there.
macro_rules! during {
    ($event:expr, |$observed:pat_param| $make:expr) => {
        if $crate::observers::any() {
            $crate::observers::observed(
                move || $event,
                #[inline(always)]
                move |$observed: Option<&mut $crate::observers::OngoingEvent>| $make,
            )
        } else {
            let $observed: Option<&mut $crate::observers::OngoingEvent> = None;
            $make
        }
    };
}
pub(crate) use during;

/// Begins an event, and makes what it describes.
#[cold]
#[inline(never)]
pub(crate) fn observed<R>(
    describe: impl FnOnce() -> Event,
    make: impl FnOnce(Option<&mut OngoingEvent>) -> R,
) -> R {
    make(Some(&mut begun(describe)))
}

/// Begins an event if somebody listens, for a call that has several exits.
#[inline(always)]
pub(crate) fn call(describe: impl FnOnce() -> Event) -> ObservedCall {
    #[cold]
    #[inline(never)]
    fn boxed(describe: impl FnOnce() -> Event) -> ObservedCall {
        Some(Box::new(begun(describe)))
    }
    if any() { boxed(describe) } else { None }
}

/// Returns an event that ends at once.
#[inline(always)]
pub(crate) fn report(describe: impl FnOnce() -> Event) {
    if any() {
        drop(begun(describe));
    }
}

/// Bytes that a collective moves between this PE and `pe`.
#[inline]
pub(crate) fn moved(pe: usize, nbytes: usize) {
    if nbytes > 0 {
        report(|| {
            let remote = ByteBlocks::one(0, nbytes);
            Event { pe: pe as c_int, remote, ..Event::new(call!("move"), Action::Move) }
        });
    }
}

#[cold]
#[inline(never)]
fn begun(describe: impl FnOnce() -> Event) -> OngoingEvent {
    let (event, listeners) = (describe(), LISTENERS.load(Relaxed));
    let mut begun = OngoingEvent { event, listeners, states: [[0; 3]; OBSERVERS.len()] };
    for (i, observer) in OBSERVERS.iter().enumerate() {
        if listeners & 1 << i != 0 {
            begun.states[i] = observer.begin(&begun.event);
        }
    }
    begun
}

impl OngoingEvent {
    /// Records that the access has found the expected value and has written.
    pub(crate) fn has_written(&mut self) {
        if let Action::Access(access) = &mut self.event.action {
            access.effect = Effect::HasWritten;
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
    #[cold]
    #[inline(never)]
    fn drop(&mut self) {
        for (i, observer) in OBSERVERS.iter().enumerate() {
            if self.listeners & 1 << i != 0 {
                observer.end(&self.event, self.states[i]);
            }
        }
    }
}
