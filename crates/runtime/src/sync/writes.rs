//! The last writes of this PE to memory of others, beside its status, so that those who explain why
//! a PE waits for a word can say who wrote it last.
//!
//! Writes are recorded on the cold path, which all of them take while something observes them
//! (`memory::address`): with `SHMEM_CHECK`, `SHMEM_STATS`, `SHMEM_TRACE`, `SHMEM_WATCHDOG`, or
//! `oshrun --explain-after`.

use crate::base::call::Call;
use crate::base::settings::Settings;
use crate::base::time::nanoseconds;
use crate::memory::place;
use crate::net::remote;
use crate::sync::flags;
use core::ffi::c_int;
use rushmem_bootstrap::env;
use rushmem_explain::writes;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How many writes there were.
static COUNT: AtomicU64 = AtomicU64::new(0);

/// Whether long waits are to be explained, and so who wrote a word.
pub(crate) fn are_wanted(settings: &Settings) -> bool {
    settings.watchdog.is_some() || std::env::var_os(env::EXPLAINED).is_some()
}

/// Records writes from now on.
pub(crate) fn begin() {
    flags::area().records_writes();
    remote::record_writes(record);
}

fn record(call: Call, address: usize, nbytes: usize, pe: c_int) {
    let place = place::of_bytes(address, nbytes);
    let words = writes::encode(nanoseconds(), pe as u32, &place, nbytes as u64, call.0);
    if let Some(words) = words {
        flags::area().record_write(COUNT.fetch_add(1, Relaxed) + 1, &words);
    }
}
