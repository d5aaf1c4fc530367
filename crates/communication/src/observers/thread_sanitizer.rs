//! Tells ThreadSanitizer how threads of this PE synchronize through the library, which it does not
//! see, so that it takes no such order for a race.
//!
//! A word of this PE orders a thread that waits for it, tests or fetches it after the threads of
//! this PE that have changed it by the library. Other processes are unknown to ThreadSanitizer, so
//! all that a PE does with others counts as one object: a thread that has received something from
//! another PE is ordered after all that other threads did before they sent something to any. That
//! hides some races. An order that another PE creates by fetching a word which a thread has changed
//! on its own PE is not known.

use super::event::{AccessEvent, AccessKind, Action, ByteBlocks, Effect, Event};
use core::ffi::c_int;
use rushmem_pe::job;
use rushmem_pe::memory::address;
use rushmem_system::thread_sanitizer::ThreadSanitizer;

/// The object by which threads of this PE are ordered through other PEs. Only its address is used.
static OTHER_PES: u8 = 0;

/// Releases what the calling thread has done to those who will see the event.
pub(super) fn begin(event: &Event) {
    let Some(tool) = ThreadSanitizer::find() else {
        return;
    };
    match event.action {
        Action::Access(access) if access.effect != Effect::Reads => {
            if is_own(event.pe) {
                for_words(event.remote, access, |word| tool.release(word));
            } else {
                tool.release(&raw const OTHER_PES);
            }
        }
        Action::Collective(_) | Action::Request(_) => tool.release(&raw const OTHER_PES),
        Action::LockHeld(false) => tool.release(pointer(event.remote.addr)),
        _ => {}
    }
}

/// Orders the calling thread after those whose actions it has seen by the event.
pub(super) fn end(event: &Event) {
    use AccessKind::*;
    let Some(tool) = ThreadSanitizer::find() else {
        return;
    };
    match event.action {
        Action::Access(access) => {
            let has_result = matches!(
                access.kind,
                Get | GetNbi | G | GetStrided | AmoFetch | AmoFetchNbi
            );
            if has_result && is_own(event.pe) {
                for_words(event.remote, access, |word| tool.acquire(word));
            } else if has_result {
                tool.acquire(&raw const OTHER_PES);
            }
        }
        Action::Seen { .. } => {
            tool.acquire(pointer(event.remote.addr));
            // Another PE may have changed the word.
            tool.acquire(&raw const OTHER_PES);
        }
        Action::LockHeld(true) => tool.acquire(pointer(event.remote.addr)),
        // A quiet completes what was fetched from other PEs.
        Action::Collective(_)
        | Action::Request(_)
        | Action::Quiet { .. }
        | Action::QuietTest
        | Action::QuietOfAll
        | Action::QuietOfPes => tool.acquire(&raw const OTHER_PES),
        _ => {}
    }
}

fn is_own(pe: c_int) -> bool {
    job::known().is_some_and(|job| pe == job.me.0 as c_int)
}

/// Calls `tell` for each word by which an access may synchronize: the signal, or else the words of
/// at most 8 bytes in all. Leaves out addresses that are not symmetric, which the access refuses.
fn for_words(remote: ByteBlocks, access: AccessEvent, tell: impl Fn(*const u8)) {
    let words = if access.signal != 0 {
        ByteBlocks::one(access.signal, size_of::<u64>())
    } else {
        remote
    };
    if words.total() > size_of::<u64>() {
        return;
    }
    for i in 0..words.n {
        let addr = words.addr + i * words.stride;
        if address::locate(addr, words.nbytes).is_some() {
            tell(pointer(addr));
        }
    }
}

/// Returns the address of an object, which is not accessed.
fn pointer(addr: usize) -> *const u8 {
    std::ptr::without_provenance(addr)
}
