//! The observers of the calls and accesses of this PE: the counters of `SHMEM_STATS`, the trace of
//! `SHMEM_TRACE`, the race detector and the checks of `SHMEM_CHECK`, the record of the last writes,
//! and the order that ThreadSanitizer is told. Each observer has a function for the begin of an
//! event, and one for its end if it needs that.
//!
//! One word says which observers are active: a call loads it and branches to a cold path. Accesses
//! to mapped memory need no such branch: while an observer is active, the segments of the fast path
//! are empty (`memory::address`), so that they take the cold path.

pub mod checks;
pub mod counters;
mod event;
pub mod races;
pub mod results;
pub mod thread_sanitizer;
pub mod trace;
pub mod writes;

pub use event::{
    AccessEvent, AccessKind, Action, Argument, ByteBlocks, CallKind, Effect, Event,
    FollowedMembers, Membership, NO_PE, WordKind,
};

use self::results::CollectiveResult;
use core::ffi::c_int;
use rushmem_pe::call::{Call, call};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The observers; the value of each is a bit of the mask of those that are active.
#[derive(Clone, Copy)]
pub enum Observer {
    /// The counters of `SHMEM_STATS`.
    Counters = 1,
    /// The trace of `SHMEM_TRACE`.
    Trace = 2,
    /// The race detector of `SHMEM_CHECK=races`.
    Races = 4,
    /// The checks of `SHMEM_CHECK`, also of `SHMEM_CHECK=races`.
    Checks = 8,
    /// The record of the last writes.
    Writes = 16,
    /// The order between threads that ThreadSanitizer is told.
    ThreadSanitizer = 32,
}

/// The active observers, as a sum of their bits. Only init and finalize change it. Relaxed: what an
/// observer uses is set before in a `OnceLock` of its own, and a program that calls from several
/// threads has ordered their calls after init.
static ACTIVE: AtomicU32 = AtomicU32::new(0);

/// Activates an observer.
pub fn add(observer: Observer) {
    ACTIVE.fetch_or(observer as u32, Relaxed);
}

/// Deactivates an observer.
pub fn remove(observer: Observer) {
    ACTIVE.fetch_and(!(observer as u32), Relaxed);
}

/// Returns true if any observer is active.
#[inline(always)]
pub fn any() -> bool {
    ACTIVE.load(Relaxed) != 0
}

/// An event that has begun. It ends when this is dropped.
pub struct OngoingEvent {
    event: Event,
    /// The observers that were active at the begin, as a sum of their bits.
    active: u32,
    counters_begun: counters::Begun,
    trace_begun: trace::Begun,
    /// The result of a collective, for the checks; `None` for other events, and without checks.
    result: Option<Box<CollectiveResult>>,
    /// What a collective reads and writes, if not what the event says.
    blocks: Option<Box<CollectiveBlocks>>,
    /// True for an access so short that the trace records one time for its begin and its end.
    is_brief: bool,
}

/// The bytes that a collective reads and writes on this PE, as blocks whose sizes may differ.
pub struct CollectiveBlocks {
    /// The bytes that are read.
    pub source: Vec<ByteBlocks>,
    /// The bytes that are written.
    pub dest: Vec<ByteBlocks>,
}

/// An event that ends when this is dropped; `None` without observers. It is boxed, so that it is
/// one word on the stack of a call.
pub type ObservedCall = Option<Box<OngoingEvent>>;

/// Evaluates `$make` during `$event`, if an observer is active. Without observers it costs a load
/// and a branch: it is a macro, since the captures of a closure would be stored in memory on that
/// path, too.
#[macro_export]
macro_rules! during {
    ($event:expr, $make:expr) => {
        if $crate::observers::any() {
            $crate::observers::observe(
                move || $event,
                #[inline(always)]
                move || $make,
            )
        } else {
            $make
        }
    };
}
pub use during;

/// Calls `make` during an event.
#[cold]
#[inline(never)]
pub fn observe<R>(describe: impl FnOnce() -> Event, make: impl FnOnce() -> R) -> R {
    let mut ongoing = OngoingEvent::new(describe());
    ongoing.begin();
    make()
}

/// An access that observers see, if there are any. It ends when this is dropped.
pub struct ObservedAccess(ManuallyDrop<Option<OngoingEvent>>);

impl ObservedAccess {
    /// Returns an access that no observer has seen yet.
    #[inline(always)]
    pub fn none() -> ObservedAccess {
        ObservedAccess(ManuallyDrop::new(None))
    }

    /// Shows observers the begin of the access, if there are any. `is_mapped` says whether its
    /// memory is mapped here.
    ///
    /// The event begins in a variable of the caller: a function that returned it would move almost
    /// 200 bytes in each access, most of them without a value.
    #[inline(always)]
    pub fn begin(&mut self, describe: impl FnOnce() -> Event, is_mapped: bool) {
        if any() {
            self.begin_event(describe, is_mapped);
        }
    }

    #[cold]
    #[inline(never)]
    fn begin_event(&mut self, describe: impl FnOnce() -> Event, is_mapped: bool) {
        let ongoing = self.0.insert(OngoingEvent::new(describe()));
        ongoing.is_brief = is_mapped && ongoing.event.remote.total() <= trace::BRIEF;
        ongoing.begin();
    }

    /// Records that a compare-and-swap has found the expected value, and so has written.
    #[inline(always)]
    pub(crate) fn set_written(&self) {
        if let Some(ongoing) = &*self.0
            && ongoing.has(Observer::Writes)
        {
            let Event {
                call, pe, remote, ..
            } = ongoing.event;
            writes::record(call, pe, remote);
        }
    }

    /// Drops the event, and so ends it. Not inlined, since each access would contain the destructor
    /// of the event.
    #[cold]
    #[inline(never)]
    fn end(&mut self) {
        *self.0 = None;
    }
}

impl Drop for ObservedAccess {
    #[inline(always)]
    fn drop(&mut self) {
        if self.0.is_some() {
            self.end();
        }
    }
}

/// Begins an event, if an observer is active, for a call with several exits.
#[inline(always)]
pub fn call(describe: impl FnOnce() -> Event) -> ObservedCall {
    #[cold]
    #[inline(never)]
    fn boxed(describe: impl FnOnce() -> Event) -> ObservedCall {
        // Begins the event before the allocation: the checks at the begin end the process if a
        // signal handler makes the call, which may have interrupted `malloc`.
        let mut ongoing = OngoingEvent::new(describe());
        ongoing.begin();
        Some(Box::new(ongoing))
    }

    if any() { boxed(describe) } else { None }
}

/// Shows observers an event without a duration.
#[inline(always)]
pub fn report(describe: impl FnOnce() -> Event) {
    if any() {
        // The temporary is dropped here, which is the end of the event.
        OngoingEvent::new(describe()).begin();
    }
}

/// Shows observers that the library, usually in a collective, copies bytes to `pe`.
#[inline]
pub(crate) fn report_copy_to(pe: usize, nbytes: usize) {
    report_copy(pe, nbytes, false);
}

/// Shows observers that the library, usually in a collective, copies bytes from `pe`.
#[inline]
pub(crate) fn report_copy_from(pe: usize, nbytes: usize) {
    report_copy(pe, nbytes, true);
}

#[inline]
fn report_copy(pe: usize, nbytes: usize, is_from: bool) {
    if nbytes > 0 {
        report(|| Event {
            pe: pe as c_int,
            // Only the number of bytes is known.
            remote: ByteBlocks::one(0, nbytes),
            ..Event::new(call!("move"), Action::Move { is_from })
        });
    }
}

impl OngoingEvent {
    #[inline(always)]
    fn new(event: Event) -> OngoingEvent {
        OngoingEvent {
            event,
            active: ACTIVE.load(Relaxed),
            counters_begun: counters::Begun::default(),
            trace_begun: trace::Begun::default(),
            result: None,
            blocks: None,
            is_brief: false,
        }
    }

    fn has(&self, observer: Observer) -> bool {
        self.active & observer as u32 != 0
    }

    /// Calls the observers at the begin of the event: first those that only record it, so that they
    /// also have an event which ends the job, then the race detector and the checks, which may end
    /// it. The record of writes is last, since it names a write that was made.
    #[inline(never)]
    fn begin(&mut self) {
        if self.has(Observer::Counters) {
            self.counters_begun = counters::begin(&self.event);
        }
        if self.has(Observer::Trace) {
            self.trace_begun = trace::begin(&self.event, self.is_brief);
        }
        if self.has(Observer::Races) {
            races::begin(&self.event);
        }
        if self.has(Observer::Checks) {
            checks::begin(&self.event);
        }
        if self.has(Observer::Writes) {
            writes::begin(&self.event);
        }
        if self.has(Observer::ThreadSanitizer) {
            thread_sanitizer::begin(&self.event);
        }
    }

    #[inline(never)]
    fn end(&self) {
        if self.has(Observer::Counters) {
            counters::end(&self.event, self.counters_begun);
        }
        if self.has(Observer::Trace) && !self.is_brief {
            trace::end(&self.event, self.trace_begun);
        }
        if self.has(Observer::Races) {
            races::end(&self.event, self.blocks.as_deref());
        }
        if self.has(Observer::Checks) {
            checks::end(&self.event, self.result.as_deref());
        }
        if self.has(Observer::ThreadSanitizer) {
            thread_sanitizer::end(&self.event);
        }
    }

    /// Drops the event without an end.
    pub(crate) fn cancel(mut self) {
        self.active = 0;
    }

    /// Sets the bytes that a collective reads and writes on this PE.
    pub fn set_arrays(&mut self, source: ByteBlocks, dest: ByteBlocks) {
        self.event.local = source;
        self.event.remote = dest;
    }

    /// Sets the bytes that a collective reads and writes on this PE as blocks.
    pub fn set_blocks(&mut self, blocks: CollectiveBlocks) {
        self.blocks = Some(Box::new(blocks));
    }

    /// With `SHMEM_CHECK`, checks the result of a collective against those of earlier ones, and
    /// keeps it until the end.
    pub fn check_result(&mut self, describe: impl FnOnce(Call) -> CollectiveResult) {
        if self.has(Observer::Checks) {
            let result = self.result.insert(Box::new(describe(self.event.call)));
            result.check();
        }
    }

    /// Sets the members on whose arrays the result of a collective depends. `member` is the root of
    /// [`FollowedMembers::Member`], or the number of first members of [`FollowedMembers::Below`].
    pub fn set_followed(&mut self, members: FollowedMembers, member: u32) {
        if let Action::Collective(membership) | Action::Request(membership) = &mut self.event.action
        {
            membership.follows = members;
            membership.followed_member = member;
        }
    }
}

impl Drop for OngoingEvent {
    /// Calls the observers that record ends, if one of them records the end of this kind of event.
    #[inline]
    fn drop(&mut self) {
        const TRACE: u32 = Observer::Trace as u32;
        const RACES: u32 = Observer::Races as u32;
        const COUNTERS: u32 = Observer::Counters as u32;
        const CHECKS: u32 = Observer::Checks as u32;
        const THREAD_SANITIZER: u32 = Observer::ThreadSanitizer as u32;

        let recording_ends = match self.event.action {
            Action::Access(_) if self.is_brief => RACES,
            Action::Access(_) => TRACE | RACES,
            Action::Collective(_) | Action::Request(_) => TRACE | RACES | COUNTERS | CHECKS,
            _ => TRACE | RACES | COUNTERS,
        };
        if self.active & (recording_ends | THREAD_SANITIZER) != 0 {
            self.end();
        }
    }
}
