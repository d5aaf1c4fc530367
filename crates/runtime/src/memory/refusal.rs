//! Symmetric memory that this PE was refused.
//!
//! A call that finds no room returns null. A program that does not check for null soon fails by a
//! signal or by an invalid argument, which does not show the cause. Therefore the first refusal is
//! kept for messages. `oshrun` gets it and reports it if the PE fails. Without `oshrun`
//! nobody could report it after a signal, so PE 0 prints a warning at once.

use crate::call::Call;
use crate::call::warning::warning;
use crate::job::Job;
use rushmem_transport::Pe;
use std::sync::OnceLock;

static FIRST: OnceLock<String> = OnceLock::new();

/// Records that `call` finds no room for `nbytes` bytes aligned to `alignment`; `in_use` counts the
/// allocated bytes of the heap.
#[cold]
pub(crate) fn record(
    call: Call,
    job: &Job,
    (nbytes, alignment): (usize, usize),
    in_use: impl FnOnce() -> usize,
) {
    if FIRST.get().is_some() {
        return;
    }
    let layout = job.memory.layout();
    let what = if alignment > layout.stride() {
        format!(
            "the memory of {call} ({nbytes} bytes aligned to {alignment}): the alignment may be {} at most",
            layout.stride()
        )
    } else {
        let in_use = in_use();
        format!(
            "the memory of {call} ({nbytes} bytes): {in_use} of the {} bytes of SHMEM_SYMMETRIC_SIZE are in use; make it \
             larger, and check the result for null",
            job.settings.symmetric_size
        )
    };
    if !job.session().refused(&what) && job.me() == Pe(0) {
        // Cause: an allocation found no room in the symmetric heap and returned null. Remedy: the
        // message ends with it.
        warning!("PE 0 was refused {what}");
    }
    // Only the first refusal counts.
    let _ = FIRST.set(what);
}

/// Nothing is below this address, unless the administrator allows it (vm.mmap_min_addr).
const LOWEST: usize = 1 << 16;

/// Returns an addition to the message about an address that is null, or about an element of an
/// array there: its possible cause.
pub(crate) fn of_null(address: usize) -> String {
    match FIRST.get() {
        Some(what) if address < LOWEST => format!("; before that the PE was refused {what}"),
        _ => String::new(),
    }
}
