//! What this PE tells the race detector of `SHMEM_CHECK=races`, a library of its own.
//!
//! Where there is none, nothing calls these functions but cold paths, and they do nothing.

use crate::base::call::Call;
use crate::base::counters::AccessKind;
use crate::base::handle::ContextHandle;
use crate::base::observe::ObservedAccess;
use crate::memory::range::SymmetricRange;
use crate::net::contexts;
use rushmem_race_interface::{
    Access, Blocks, Collective, Detector, Follows, Operation, Order, Text,
};
use std::sync::OnceLock;

static DETECTOR: OnceLock<&'static Detector> = OnceLock::new();

/// The detector, if there is one.
pub(crate) fn detector() -> Option<&'static Detector> {
    DETECTOR.get().copied()
}

/// Tells this detector from now on.
pub(crate) fn tell(detector: &'static Detector) {
    // A later init of the process has the same one.
    let _ = DETECTOR.set(detector);
}

/// As what the detector has an access.
fn operation(kind: AccessKind) -> Option<Operation> {
    use AccessKind as A;
    Some(match kind {
        A::Put | A::P | A::PutStrided | A::PutSignal => Operation::Put,
        A::PutNbi | A::PutSignalNbi => Operation::PutNbi,
        A::Get | A::G | A::GetStrided => Operation::Get,
        A::GetNbi => Operation::GetNbi,
        A::Amo => Operation::Update,
        A::AmoFetch => Operation::Fetch,
        A::AmoFetchNbi => Operation::FetchNbi,
        A::Collective => return None,
    })
}

fn access(observed: &ObservedAccess) -> Option<Access> {
    let ObservedAccess { call, kind, ctx, pe, remote, local, signal, reads_only, .. } = *observed;
    let (call, operation, of_shared) =
        (Text::new(call.0), operation(kind)?, contexts::is_split_from_shared(ctx));
    let (ctx, pe) = (ctx.0 as u64, u32::try_from(pe).ok()?);
    Some(Access { call, operation, reads_only, of_shared, ctx, pe, remote, local, signal })
}

/// An access begins.
pub(crate) fn begin(observed: &ObservedAccess) {
    if let Some(detector) = detector()
        && let Some(access) = access(observed)
    {
        (detector.begin)(&access);
    }
}

/// A blocking access is done.
pub(crate) fn end(observed: &ObservedAccess) {
    if let Some(detector) = detector()
        && let Some(access) = access(observed)
    {
        (detector.end)(&access);
    }
}

/// A context is fenced, or quiet, towards one PE or all.
pub(crate) fn order(order: Order, ctx: ContextHandle, pe: u32) {
    if let Some(detector) = detector() {
        (detector.order)(order, ctx.0 as u64, pe);
    }
}

/// A wait or test has seen what it was to see of a word of this PE.
pub(crate) fn seen<T>(word: *const T) {
    if let Some(detector) = detector() {
        (detector.seen)(word.addr());
    }
}

/// A lock is taken, or given up.
pub(crate) fn lock<T>(lock: *const T, is_taken: bool) {
    if let Some(detector) = detector() {
        (detector.lock)(lock.addr(), is_taken);
    }
}

/// A block of the heap is allocated, or freed.
pub(crate) fn block<T>(call: Call, block: *const T, nbytes: usize, is_allocated: bool) {
    if let Some(detector) = detector() {
        (detector.block)(Text::new(call.0), block.addr(), nbytes, is_allocated);
    }
}

/// The library is finalized.
pub(crate) fn close() {
    if let Some(detector) = detector() {
        (detector.close)();
    }
}

/// A collective that this PE is in, as the detector sees it.
pub(crate) struct InCollective(Box<Collective>);

impl InCollective {
    /// Number `nth` on a team, of `n` members of which this PE is number `me`.
    pub(crate) fn enter(call: Call, team: u64, nth: u64, n: u32, me: u32) -> Option<InCollective> {
        let (call, source, dest) = (Text::new(call.0), Blocks::NONE, Blocks::NONE);
        let follows = Follows::All;
        let entered = Collective { call, team, nth, n, me, follows, member: 0, source, dest };
        (detector()?.enter)(&entered);
        Some(InCollective(Box::new(entered)))
    }

    /// It reads and writes these arrays.
    pub(crate) fn moves(&mut self, source: SymmetricRange, dest: SymmetricRange) {
        self.0.source = blocks(source);
        self.0.dest = blocks(dest);
    }

    /// Its result comes from one member.
    pub(crate) fn follows(&mut self, follows: Follows, member: u32) {
        self.0.follows = follows;
        self.0.member = member;
    }
}

fn blocks(range: SymmetricRange) -> Blocks {
    Blocks::one(range.start().addr(), range.nbytes())
}

impl Drop for InCollective {
    fn drop(&mut self) {
        if let Some(detector) = detector() {
            (detector.leave)(&self.0);
        }
    }
}
