//! What observes the calls and accesses of this PE: the checks of `SHMEM_CHECK`, counters, a trace,
//! and the requests of non-blocking collectives while some are unfinished.
//!
//! One word says whether anything does: a call that may wait loads it and branches to a cold path.
//! Accesses take their cold path anyway, since the segments of the fast path are empty while
//! something observes (`memory::address`).

use crate::base::call::Call;
use crate::base::counters::{self, AccessKind, CallKind};
use crate::base::handle::ContextHandle;
use crate::base::races::{self, ObservedCollective};
use crate::base::trace::{self, Described, Ring};
use core::ffi::c_int;
use rushmem_race_interface::{ByteBlocks, CheckedAccess, Text};
use rushmem_trace::layout::Kind;
use std::cell::Cell;
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use std::time::Instant;

/// Who observes.
#[derive(Clone, Copy)]
pub(crate) enum Observer {
    /// `SHMEM_CHECK`
    Check = 1,
    /// `SHMEM_STATS`
    Counters = 2,
    /// `SHMEM_TRACE`
    Trace = 4,
    /// Unfinished requests of non-blocking collectives: a blocking one waits for those of its team.
    Requests = 8,
}

/// The observers of this process, as a sum. Written at init and finalize, and by requests.
static OBSERVERS: AtomicU32 = AtomicU32::new(0);

/// Adds an observer.
pub(crate) fn add(observer: Observer) {
    OBSERVERS.fetch_or(observer as u32, Relaxed);
}

/// Removes an observer. What this thread did before is visible to a thread that finds it removed by
/// [`has`].
pub(crate) fn remove(observer: Observer) {
    OBSERVERS.fetch_and(!(observer as u32), Release);
}

/// Whether anything observes.
#[inline(always)]
pub(crate) fn any() -> bool {
    OBSERVERS.load(Relaxed) != 0
}

/// Whether this one does.
pub(crate) fn has(observer: Observer) -> bool {
    OBSERVERS.load(Acquire) & observer as u32 != 0
}

/// The ring, if there is a trace.
fn ring() -> Option<&'static Ring> {
    trace::get().filter(|_| has(Observer::Trace))
}

/// An access: as what it counts, and its arguments. `pe` is as the program gave it.
#[derive(Clone, Copy)]
pub(crate) struct ObservedAccess {
    pub(crate) call: Call,
    pub(crate) kind: AccessKind,
    pub(crate) ctx: ContextHandle,
    pub(crate) pe: c_int,
    pub(crate) nbytes: usize,
    /// The place of the word that the target may wait for.
    pub(crate) place: u64,
    /// The bytes of the PE, by this PE's addresses, and those of this PE.
    pub(crate) remote: ByteBlocks,
    pub(crate) local: ByteBlocks,
    /// The signal that follows the data; 0 for none.
    pub(crate) signal: usize,
    /// It is an atomic operation that changes nothing.
    pub(crate) reads_only: bool,
    /// Its context is one of `SHMEM_TEAM_SHARED` or of a team split from it.
    pub(crate) of_shared: bool,
}

impl ObservedAccess {
    /// With these bytes of this PE.
    pub(crate) fn with_local(self, local: ByteBlocks) -> ObservedAccess {
        ObservedAccess { local, ..self }
    }

    /// With contiguous bytes of this PE, as many as it moves.
    pub(crate) fn with_buffer<T>(self, buffer: *const T) -> ObservedAccess {
        self.with_local(ByteBlocks::one(buffer.addr(), self.nbytes))
    }

    /// As the race detector has it.
    fn checked(&self) -> Option<CheckedAccess> {
        let ObservedAccess { remote, local, signal, reads_only, of_shared, .. } = *self;
        let (call, operation) = (Text::new(self.call.0), self.kind.checked()?);
        let (ctx, pe) = (self.ctx.place() as u64, u32::try_from(self.pe).ok()?);
        Some(CheckedAccess {
            call,
            operation,
            reads_only,
            of_shared,
            ctx,
            pe,
            remote,
            local,
            signal,
        })
    }

    /// As an atomic operation that only reads, if it is one.
    pub(crate) fn reading(self, reads_only: bool) -> ObservedAccess {
        ObservedAccess { reads_only, ..self }
    }
}

/// Describes an access to those that observe, and then makes it by calling `again`; `None` if it is
/// called again. Callers first ask whether anything observes: what is passed here would otherwise
/// be prepared on the path to a network, which also gets longer where it is compiled twice.
#[cold]
#[inline(never)]
pub(crate) fn access<R>(
    describe: impl FnOnce() -> ObservedAccess,
    again: impl FnOnce() -> R,
) -> Option<R> {
    thread_local! {
        static CALLED_AGAIN: Cell<bool> = const { Cell::new(false) };
    }
    if CALLED_AGAIN.replace(true) {
        return None;
    }
    let observed = describe();
    let number = begin_access(&observed);
    let checked = races::detector().and_then(|_| observed.checked());
    checked.iter().for_each(races::begin);
    let result = again();
    checked.iter().for_each(races::end);
    CALLED_AGAIN.set(false);
    if let (Some(ring), Some(number)) = (ring(), number) {
        ring.end(number);
    }
    Some(result)
}

/// Counts an access, and returns the number of its record.
fn begin_access(observed: &ObservedAccess) -> Option<u64> {
    let ObservedAccess { call, kind, ctx, pe, nbytes, place, .. } = *observed;
    if let Some(counters) = counters::get() {
        counters.access(kind, ctx, pe as u32 as usize, nbytes);
    }
    let (kind, in_flight) = kind.traced();
    let (peer, subject) = (u32::try_from(pe).ok(), [place, 0]);
    let described = Described { call, kind, in_flight, ctx, peer, nbytes, subject };
    ring().map(|ring| ring.begin(&described))
}

/// Bytes that a collective moves between this PE and `pe`.
#[inline]
pub(crate) fn moved(pe: usize, nbytes: usize) {
    if any() && nbytes > 0 {
        observed_move(pe, nbytes);
    }
}

#[cold]
#[inline(never)]
fn observed_move(pe: usize, nbytes: usize) {
    let ctx = ContextHandle::DEFAULT;
    if let Some(counters) = counters::get() {
        counters.access(AccessKind::Collective, ctx, pe, nbytes);
    }
    if let Some(ring) = ring() {
        let (call, (kind, in_flight)) = (Call(&"move"), AccessKind::Collective.traced());
        let (peer, subject) = (Some(pe as u32), [0; 2]);
        ring.end(ring.begin(&Described { call, kind, in_flight, ctx, peer, nbytes, subject }));
    }
}

/// A call that may wait, until it ends. Without observers it is a word that is empty.
#[derive(Default)]
pub(crate) struct ObservedCall(Option<Box<BegunCall>>);

/// As what it counts and since when, and its record.
struct BegunCall {
    counted: Option<(CallKind, Instant)>,
    recorded: Option<u64>,
    /// The race detector's, until the call ends.
    collective: Option<ObservedCollective>,
}

/// Begins a call that may wait. `describe` says on what: two words, as its kind has them in a
/// trace.
#[inline(always)]
pub(crate) fn call(
    call: Call,
    kind: CallKind,
    describe: impl FnOnce() -> [u64; 2],
) -> ObservedCall {
    if any() { begin(call, kind, describe()) } else { ObservedCall::default() }
}

#[cold]
#[inline(never)]
fn begin(call: Call, kind: CallKind, subject: [u64; 2]) -> ObservedCall {
    let counted = counters::get().map(|_| (kind, Instant::now()));
    let recorded = record(call, kind.traced(), ContextHandle::DEFAULT, subject);
    ObservedCall(Some(Box::new(BegunCall { counted, recorded, collective: None })))
}

/// Begins a quiet, which counts as a call unless it is a part of another one.
pub(crate) fn quiet(call: Call, ctx: ContextHandle, is_part: bool) -> ObservedCall {
    let counted = counters::get().filter(|_| !is_part).map(|_| (CallKind::Quiet, Instant::now()));
    let recorded = record(call, Kind::Quiet, ctx, [0; 2]);
    ObservedCall(Some(Box::new(BegunCall { counted, recorded, collective: None })))
}

fn record(call: Call, kind: Kind, ctx: ContextHandle, subject: [u64; 2]) -> Option<u64> {
    let (in_flight, peer, nbytes) = (false, None, 0);
    let described = Described { call, kind, in_flight, ctx, peer, nbytes, subject };
    ring().map(|ring| ring.begin(&described))
}

impl ObservedCall {
    /// It is this collective for the race detector.
    pub(crate) fn is_collective(&mut self, collective: Option<ObservedCollective>) {
        if let Some(begun) = &mut self.0 {
            begun.collective = collective;
        }
    }

    /// The race detector's collective, if it is one and there is a detector.
    #[inline]
    pub(crate) fn collective(&mut self) -> Option<&mut ObservedCollective> {
        self.0.as_mut()?.collective.as_mut()
    }
}

impl Drop for ObservedCall {
    #[inline(always)]
    fn drop(&mut self) {
        if self.0.is_some() {
            end(self);
        }
    }
}

#[cold]
#[inline(never)]
fn end(call: &mut ObservedCall) {
    let Some(begun) = call.0.take() else { return };
    if let (Some(counters), Some((kind, since))) = (counters::get(), begun.counted) {
        counters.stayed(kind, since.elapsed());
    }
    if let (Some(ring), Some(number)) = (ring(), begun.recorded) {
        ring.end(number);
    }
}
