//! The last writes of this PE to memory of others, beside its status, so that those who explain why
//! a PE waits for a word can say who wrote it last.
//!
//! They are recorded with `SHMEM_CHECK`, `SHMEM_WATCHDOG`, or `oshrun --explain-after`.

use super::event::{Action, Effect, Event, Observer, ObserverState};
use crate::memory::symmetric_location;
use crate::process::time::coarse_nanoseconds;
use crate::settings::Settings;
use rushmem_bootstrap::env;
use rushmem_explain::writes::{self, BUSY, ENTRIES, ENTRY_WORDS};
use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};

/// The number of writes.
static COUNT: AtomicU64 = AtomicU64::new(0);

/// The ring of `rushmem_explain::writes`.
static RING: OnceLock<&[AtomicU64]> = OnceLock::new();

/// Returns true if long waits are to be explained, and so who wrote a word.
pub(crate) fn are_wanted(settings: &Settings) -> bool {
    settings.checks() || settings.watchdog.is_some() || std::env::var_os(env::EXPLAINED).is_some()
}

/// Records writes into `ring` from now on.
pub(crate) fn start(ring: &'static [AtomicU64]) {
    // A later init of the process has the same one.
    RING.get_or_init(|| ring)[0].store(1, Release);
}

/// The observer that records writes.
pub(crate) struct RecordingWrites;

impl Observer for RecordingWrites {
    fn begin(&self, event: &Event) -> ObserverState {
        if let Action::Access(access) = event.action
            && access.effect == Effect::Writes
        {
            record(event, event.remote.addr, event.remote.span());
            if access.signal != 0 {
                record(event, access.signal, size_of::<u64>());
            }
        }
        ObserverState::default()
    }

    fn end(&self, event: &Event, _: ObserverState) {
        if let Action::Access(access) = event.action
            && access.effect == Effect::HasWritten
        {
            record(event, event.remote.addr, event.remote.span());
        }
    }
}

/// Writes the entry of a write, unless another thread writes it, or has done so, a round of the
/// ring later.
fn record(event: &Event, address: usize, nbytes: usize) {
    let location = symmetric_location::of_bytes(address, nbytes);
    let words = writes::encode(
        coarse_nanoseconds(),
        event.pe as u32,
        &location,
        nbytes as u64,
        event.call.name(),
    );
    let (Some(words), Some(ring)) = (words, RING.get()) else { return };
    let number = COUNT.fetch_add(1, Relaxed) + 1;
    let at = 1 + (number - 1) as usize % ENTRIES * ENTRY_WORDS;
    let older = ring[at].load(Relaxed);
    let claim = || ring[at].compare_exchange(older, BUSY, Acquire, Relaxed).is_ok();
    if older < number && claim() {
        fence(Release);
        for (word, value) in ring[at + 1..].iter().zip(words) {
            word.store(value, Relaxed);
        }
        ring[at].store(number, Release);
    }
}
