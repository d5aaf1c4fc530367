//! What this PE says to the race detector of `SHMEM_CHECK=races`, a library of its own.
//!
//! Where there is none, nothing calls these functions but cold paths, and they do nothing.

use crate::base::call::Call;
use crate::base::handle::ContextHandle;
use rushmem_race_interface::{
    ByteBlocks, CheckedAccess, CollectiveEvent, Detector, FollowedMembers, Order, Text,
};
use std::sync::OnceLock;

static DETECTOR: OnceLock<&'static Detector> = OnceLock::new();

/// The detector, if there is one.
pub(crate) fn detector() -> Option<&'static Detector> {
    DETECTOR.get().copied()
}

/// Uses this detector from now on.
pub(crate) fn use_detector(detector: &'static Detector) {
    // A later init of the process has the same one.
    let _ = DETECTOR.set(detector);
}

/// An access begins.
pub(crate) fn begin(access: &CheckedAccess) {
    if let Some(detector) = detector() {
        (detector.begin)(access);
    }
}

/// A blocking access is done.
pub(crate) fn end(access: &CheckedAccess) {
    if let Some(detector) = detector() {
        (detector.end)(access);
    }
}

/// A context is fenced, or quiet, towards one PE or all.
pub(crate) fn order(order: Order, ctx: ContextHandle, pe: u32) {
    if let Some(detector) = detector() {
        (detector.order)(order, ctx.place() as u64, pe);
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
pub(crate) struct ObservedCollective(Box<CollectiveEvent>);

impl ObservedCollective {
    /// Number `nth` on a team, of `n` members of which this PE is number `me`.
    pub(crate) fn enter(
        call: Call,
        team: u64,
        nth: u64,
        n: u32,
        me: u32,
    ) -> Option<ObservedCollective> {
        let (call, source, dest) = (Text::new(call.0), ByteBlocks::NONE, ByteBlocks::NONE);
        let follows = FollowedMembers::All;
        let entered = CollectiveEvent { call, team, nth, n, me, follows, member: 0, source, dest };
        (detector()?.enter)(&entered);
        Some(ObservedCollective(Box::new(entered)))
    }

    /// It reads and writes these arrays.
    pub(crate) fn moves(&mut self, source: ByteBlocks, dest: ByteBlocks) {
        self.0.source = source;
        self.0.dest = dest;
    }

    /// Its result comes from one member.
    pub(crate) fn follows(&mut self, follows: FollowedMembers, member: u32) {
        self.0.follows = follows;
        self.0.member = member;
    }
}

impl Drop for ObservedCollective {
    fn drop(&mut self) {
        if let Some(detector) = detector() {
            (detector.leave)(&self.0);
        }
    }
}
