//! Reports the events of this PE to the race detector of `SHMEM_CHECK=races`, a separate library.

pub(crate) mod detector;

use super::event::{AccessEvent, AccessKind, Action, Effect, Event, Membership};
use rushmem_race_interface::{
    AccessOperation, CheckedAccess, CollectiveEvent, Detector, Order, Text,
};
use std::sync::OnceLock;

static DETECTOR: OnceLock<&'static Detector> = OnceLock::new();

/// Returns the detector, if there is one.
pub(crate) fn detector() -> Option<&'static Detector> {
    DETECTOR.get().copied()
}

/// Uses this detector from now on.
pub(crate) fn use_detector(detector: &'static Detector) {
    // A later init of the process has the same one.
    let _ = DETECTOR.set(detector);
}

/// Closes the detector when the library is finalized.
pub(crate) fn close() {
    if let Some(detector) = detector() {
        (detector.close)();
    }
}

/// Records the start of an event.
pub(super) fn begin(event: &Event) {
    let Some(detector) = detector() else { return };
    match event.action {
        Action::Access(access) => {
            if let Some(checked) = checked(event, access) {
                (detector.begin)(&checked);
            }
        }
        Action::Collective(membership) | Action::Request(membership) => {
            (detector.enter)(&collective(event, membership));
        }
        Action::Quiet { .. } | Action::PeQuiet | Action::QuietTest => {
            order(detector, event, Order::Begin);
        }
        _ => {}
    }
}

/// Records the end of an event.
pub(super) fn end(event: &Event) {
    let Some(detector) = detector() else { return };
    let (addr, nbytes) = (event.remote.addr, event.remote.nbytes);
    match event.action {
        Action::Access(access) => {
            if let Some(checked) = checked(event, access) {
                (detector.end)(&checked);
            }
        }
        Action::Collective(membership) | Action::Request(membership) => {
            (detector.leave)(&collective(event, membership));
        }
        Action::Fence => order(detector, event, Order::Fence),
        Action::Quiet { .. } | Action::QuietTest => order(detector, event, Order::Quiet),
        Action::PeQuiet => order(detector, event, Order::PeQuiet),
        Action::Seen => (detector.seen)(addr),
        Action::LockHeld(is_taken) => (detector.lock)(addr, is_taken),
        Action::Block { is_allocated } => {
            (detector.block)(Text::new(event.call.name()), addr, nbytes, is_allocated);
        }
        _ => {}
    }
}

fn order(detector: &Detector, event: &Event, order: Order) {
    (detector.order)(order, event.ctx.index() as u64, event.pe as u32);
}

/// Converts an access for the detector. Returns `None` for a transfer of a plan.
fn checked(event: &Event, access: AccessEvent) -> Option<CheckedAccess> {
    use AccessKind::*;
    let operation = match access.kind {
        Put | P | PutStrided | PutSignal => AccessOperation::Put,
        PutNbi | PutSignalNbi => AccessOperation::PutNbi,
        Get | G | GetStrided => AccessOperation::Get,
        GetNbi => AccessOperation::GetNbi,
        Amo => AccessOperation::Update,
        AmoFetch => AccessOperation::Fetch,
        AmoFetchNbi => AccessOperation::FetchNbi,
        Collective => return None,
    };
    let Event { call, ctx, pe, remote, local, .. } = *event;
    Some(CheckedAccess {
        call: Text::new(call.name()),
        operation,
        reads_only: access.effect == Effect::Reads,
        of_shared: access.of_shared,
        word: access.word,
        ctx: ctx.index() as u64,
        pe: u32::try_from(pe).ok()?,
        remote,
        local,
        signal: access.signal,
    })
}

fn collective(event: &Event, membership: Membership) -> CollectiveEvent {
    let Membership { team, nth, n, me, follows: (follows, member) } = membership;
    let (call, source, dest) = (Text::new(event.call.name()), event.local, event.remote);
    CollectiveEvent { call, team, nth, n, me, follows, member, source, dest }
}
