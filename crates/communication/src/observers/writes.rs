//! The record of this PE's last writes to symmetric memory, in shared memory behind its status. A
//! hang report uses it to say which PE was the last to write a word for which another PE waits.
//!
//! Writes are recorded with `SHMEM_CHECK`, `SHMEM_WATCHDOG`, or `oshrun --explain-after`.

use super::event::{Action, ByteBlocks, Effect, Event};
use core::ffi::c_int;
use rushmem_bootstrap::env;
use rushmem_explain::writes::{self, BUSY, ENTRIES, ENTRY_WORDS};
use rushmem_pe::call::{Call, thread};
use rushmem_pe::memory::symmetric_location;
use rushmem_pe::process::time::coarse_nanoseconds;
use rushmem_pe::settings::Settings;
use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};

/// The number of writes so far, including those whose record was lost.
static COUNT: AtomicU64 = AtomicU64::new(0);

/// The ring, whose layout `rushmem_explain::writes` describes.
static RING: OnceLock<&[AtomicU64]> = OnceLock::new();

/// Returns true if the settings ask for explanations of long waits.
pub fn are_wanted(settings: &Settings) -> bool {
    settings.checks() || settings.watchdog.is_some() || std::env::var_os(env::EXPLAINED).is_some()
}

/// Records writes into `ring` from now on.
pub fn start(ring: &'static [AtomicU64]) {
    // A later init of the process has the same ring.
    RING.get_or_init(|| ring)[0].store(1, Release);
}

/// Records an access that writes, or the allocation or the release of a block of the heap.
#[inline(always)]
pub(super) fn begin(event: &Event) {
    match event.action {
        Action::Block { is_allocated: true } => symmetric_location::record_block(event.remote.addr),
        Action::Block {
            is_allocated: false,
        } => symmetric_location::forget_block(event.remote.addr),
        Action::Access(access) if access.effect == Effect::Writes => {
            record(event.call, event.pe, event.remote);
            if access.signal != 0 {
                let signal = ByteBlocks::one(access.signal, size_of::<u64>());
                record(event.call, event.pe, signal);
            }
        }
        _ => (),
    }
}

/// Records a write. The record is lost if another thread is storing to the same entry of the ring,
/// for a write that is whole rounds earlier or later, or has stored a later write there.
#[inline(always)]
pub(super) fn record(call: Call, pe: c_int, bytes: ByteBlocks) {
    record_bytes(call, pe, bytes.addr, bytes.span());
}

/// Records a write of `nbytes` bytes. Takes no [`ByteBlocks`], so that all arguments are in
/// registers.
#[inline(never)]
fn record_bytes(call: Call, pe: c_int, address: usize, nbytes: usize) {
    let Some(ring) = RING.get() else { return };
    let location = symmetric_location::of_bytes(address, nbytes);
    let now = coarse_nanoseconds();
    let Some(words) = writes::encode(now, pe as u32, &location, nbytes as u64, call.0.start) else {
        return;
    };

    let is_alone = thread::is_alone();
    let number = thread::add(&COUNT, 1, is_alone) + 1;
    let first = 1 + (number - 1) as usize % ENTRIES * ENTRY_WORDS;
    let entry = &ring[first..first + ENTRY_WORDS];

    // An entry whose thread is still storing has the number `BUSY`, above all others.
    let older = entry[0].load(Relaxed);
    if older >= number {
        return;
    }
    // Acquire, with the release store below of the thread that stored the older write: the words of
    // that write precede those of this one. A thread that is alone in the library has no rival.
    if is_alone {
        entry[0].store(BUSY, Relaxed);
    } else if entry[0]
        .compare_exchange(older, BUSY, Acquire, Relaxed)
        .is_err()
    {
        return;
    }

    // A reader that sees a word of this write also sees `BUSY`, or the number of a later write.
    fence(Release);
    for (word, value) in entry[1..].iter().zip(words) {
        word.store(value, Relaxed);
    }
    entry[0].store(number, Release);
}
