//! Point-to-point synchronization (OpenSHMEM 1.6, §9.11): waits for words of this PE, and tests
//! them.
//!
//! A word is loaded with acquire order, so that all that its writer has ordered before it is
//! visible on return.
#![allow(unsafe_code)]

mod sets;

pub use sets::{
    Values, test_all, test_any, test_some, wait_until_all, wait_until_all_within, wait_until_any,
    wait_until_any_within, wait_until_some, wait_until_some_within,
};

use crate::api::limits::TimedOut;
use crate::own_pe::{Caller, OwnPe};
use core::ffi::c_int;
use rushmem_communication::observers::{self, Action, Event};
use rushmem_communication::status::WaitDescription;
use rushmem_communication::status::polled_calls;
use rushmem_communication::sync::waits;
pub use rushmem_communication::sync::waits::Pauses;
pub use rushmem_communication::sync::woken::Woken;
pub use rushmem_communication::sync::word_tasks::{WordWait, looking};
use rushmem_explain::status::{self, AwaitedObject, PolledObject, Words};
use rushmem_pe::call::{Call, fail};
use rushmem_pe::constants::{
    SHMEM_CMP_EQ, SHMEM_CMP_GE, SHMEM_CMP_GT, SHMEM_CMP_LE, SHMEM_CMP_LT, SHMEM_CMP_NE,
};
use rushmem_pe::job::{Job, permission};
use rushmem_pe::memory::address::own_in_heap;
use rushmem_pe::memory::checks::require_aligned;
use rushmem_pe::memory::range::symmetric;
use rushmem_pe::memory::symmetric_location;
pub use rushmem_transport::mem::WaitWord;
use std::task::Waker;
use std::time::Duration;

/// Returns true if the comparison `cmp` of `value` with `reference` holds.
#[inline(always)]
fn holds<T: WaitWord>(call: Call, cmp: c_int, value: T, reference: T) -> bool {
    match cmp {
        SHMEM_CMP_EQ => value == reference,
        SHMEM_CMP_NE => value != reference,
        SHMEM_CMP_GT => value > reference,
        SHMEM_CMP_GE => value >= reference,
        SHMEM_CMP_LT => value < reference,
        SHMEM_CMP_LE => value <= reference,
        _ => fail_unknown_comparison(call, cmp),
    }
}

#[cold]
#[inline(never)]
fn fail_unknown_comparison(call: Call, cmp: c_int) -> ! {
    fail!(
        call,
        "argument cmp is {cmp}, which is none of the SHMEM_CMP_ constants"
    )
}

/// Waits for one word and returns the value that satisfied the comparison.
///
/// # Safety
/// `ivar` is valid for reads.
#[inline]
pub unsafe fn wait_for<T: WaitWord>(
    caller: impl Caller,
    ivar: *const T,
    cmp: c_int,
    cmp_value: T,
) -> T {
    // SAFETY: the caller promises that `ivar` is valid for reads.
    match unsafe { wait_until_within(caller, ivar, cmp, cmp_value, None) } {
        Ok(value) => value,
        Err(TimedOut) => unreachable!("a wait without a limit"),
    }
}

/// `shmemx_wait_until_timed`: waits until a word satisfies a comparison, for `limit` at the
/// longest, if there is one. Returns the value that satisfied the comparison.
///
/// # Errors
/// When the limit has passed.
///
/// # Safety
/// `ivar` is valid for reads.
#[inline]
pub unsafe fn wait_until_within<T: WaitWord>(
    caller: impl Caller,
    ivar: *const T,
    cmp: c_int,
    cmp_value: T,
    limit: Option<Duration>,
) -> Result<T, TimedOut> {
    let (pe, call) = caller.enter();
    let job = pe.job();
    require_aligned(call, "ivar", ivar.addr(), size_of::<T>());
    let _observed =
        observers::call(|| Event::new(call, Action::Wait).with_bytes(ivar, size_of::<T>()));

    // SAFETY: the caller promises that `ivar` is valid for reads; it was checked to be aligned.
    let mut value = unsafe { T::load_acquire(ivar) };
    let is_over = holds(call, cmp, value, cmp_value);
    if !is_over || job.settings.checks() {
        // If the word is not symmetric, no other PE can write it, and the wait would not end.
        symmetric(job, call, "ivar", ivar.cast(), size_of::<T>());
    }
    if !is_over {
        // SAFETY: the caller promises that `ivar` is valid for reads; it was checked to be aligned.
        value = unsafe { wait_on(pe, call, ivar, cmp, cmp_value, limit) }?;
    }

    report_seen(call, ivar, || has_surplus(cmp, value, cmp_value));
    Ok(value)
}

/// Waits for one word that does not satisfy the comparison yet. Returns the value that does.
///
/// # Safety
/// `ivar` is valid for reads and aligned.
#[inline(never)]
unsafe fn wait_on<T: WaitWord>(
    pe: &OwnPe,
    call: Call,
    ivar: *const T,
    cmp: c_int,
    cmp_value: T,
    limit: Option<Duration>,
) -> Result<T, TimedOut> {
    let describe = || {
        let words = vec![status_word(pe.job(), ivar, cmp_value)];
        WaitDescription {
            call,
            subject: words_subject(words, 0, true, cmp),
        }
    };
    let mut value = cmp_value;
    let is_seen = waits::until_seen_within(pe.links, limit, &describe, &mut || {
        // SAFETY: the caller promises that `ivar` is valid for reads and aligned.
        value = unsafe { T::load_acquire(ivar) };
        holds(call, cmp, value, cmp_value)
    });

    if !is_seen {
        polled_calls::count(call, ivar.addr(), PolledObject::MemoryOf(pe.job().me.0));
        return Err(TimedOut);
    }
    Ok(value)
}

/// Shows observers that a word satisfies the comparison of a call.
#[inline]
fn report_seen<T>(call: Call, word: *const T, has_surplus: impl FnOnce() -> bool) {
    observers::report(|| {
        let has_surplus = has_surplus();
        Event::new(call, Action::Seen { has_surplus }).with_bytes(word, size_of::<T>())
    });
}

/// Returns true if the comparison `cmp` of `value` with `reference`, which holds, would also hold
/// for a value that is smaller by one.
fn has_surplus<T: WaitWord>(cmp: c_int, value: T, reference: T) -> bool {
    let surplus = value.word_bits().wrapping_sub(reference.word_bits());
    match cmp {
        SHMEM_CMP_GE => surplus > 0,
        SHMEM_CMP_GT => surplus > 1,
        _ => false,
    }
}

/// `shmem_wait_until` (§9.11.1): waits until a word satisfies a comparison.
///
/// # Safety
/// `ivar` is valid for reads.
pub unsafe fn wait_until<T: WaitWord>(
    caller: impl Caller,
    ivar: *const T,
    cmp: c_int,
    cmp_value: T,
) {
    // SAFETY: the caller promises that `ivar` is valid for reads.
    unsafe { wait_for(caller, ivar, cmp, cmp_value) };
}

/// `shmem_test` (§9.11.8): 1 if the comparison holds, else 0.
///
/// # Safety
/// `ivar` is valid for reads.
pub unsafe fn test<T: WaitWord>(
    caller: impl Caller,
    ivar: *const T,
    cmp: c_int,
    cmp_value: T,
) -> c_int {
    let (pe, call) = caller.enter();
    let job = pe.job();
    require_aligned(call, "ivar", ivar.addr(), size_of::<T>());

    let is_seen = waits::test(pe.links, || {
        // SAFETY: the caller promises that `ivar` is valid for reads; it was checked to be aligned.
        let value = unsafe { T::load_acquire(ivar) };
        holds(call, cmp, value, cmp_value)
    });
    if !is_seen || job.settings.checks() {
        // If the word is not symmetric, no other PE can write it, and the test would stay false.
        symmetric(job, call, "ivar", ivar.cast(), size_of::<T>());
    }

    polled_calls::count(call, ivar.addr(), PolledObject::MemoryOf(job.me.0));
    if is_seen {
        report_seen(call, ivar, || {
            // SAFETY: the caller promises that `ivar` is valid for reads; it was checked to be
            // aligned.
            let value = unsafe { T::load_acquire(ivar) };
            has_surplus(cmp, value, cmp_value)
        });
    }
    c_int::from(is_seen)
}

/// Wakes a task once when a word satisfies a comparison, until `task` is dropped (an extension).
/// The caller then tests the word once more.
///
/// # Safety
/// `ivar` is valid for reads until the library is finalized.
pub unsafe fn wake_when<T: WaitWord + Send>(
    caller: impl Caller,
    task: &mut WordWait,
    waker: &Waker,
    ivar: *const T,
    cmp: c_int,
    cmp_value: T,
) {
    let (pe, call) = caller.enter();
    let job = pe.job();
    require_aligned(call, "ivar", ivar.addr(), size_of::<T>());
    // If the word is not symmetric, no other PE can write it.
    symmetric(job, call, "ivar", ivar.cast(), size_of::<T>());
    permission::check(call, job);

    // As an address, since another thread may call the closure, and a pointer is not `Send`. Of a
    // word in a registered buffer that in the heap: the task may outlive the registration, after
    // which the program may unmap its memory.
    let address = own_in_heap(ivar.expose_provenance(), size_of::<T>());
    task.wake_when(pe.links, waker, move || {
        let ivar = std::ptr::with_exposed_provenance::<T>(address);
        // SAFETY: the caller promises that `ivar` is valid for reads until the library is
        // finalized; it was checked to be aligned.
        let value = unsafe { T::load_acquire(ivar) };
        holds(call, cmp, value, cmp_value)
    });
}

/// Returns an awaited word as a status shows it.
fn status_word<T: WaitWord>(job: &Job, ivar: *const T, wanted: T) -> status::Word {
    let address = ivar.cast();
    status::Word {
        location: symmetric_location::of_word(job, address, size_of::<T>()),
        in_memfd: symmetric_location::in_node_memory(job, address, size_of::<T>()),
        nbytes: size_of::<T>() as u8,
        signed: T::SIGNED,
        wanted: wanted.word_bits(),
    }
}

/// Returns the subject of a wait for these words and `more` others. `all` is true if all of them
/// must satisfy the comparison, not any one.
fn words_subject(words: Vec<status::Word>, more: u64, all: bool, cmp: c_int) -> AwaitedObject {
    let comparison = match cmp {
        SHMEM_CMP_EQ => "==",
        SHMEM_CMP_NE => "!=",
        SHMEM_CMP_GT => ">",
        SHMEM_CMP_GE => ">=",
        SHMEM_CMP_LT => "<",
        _ => "<=",
    };
    AwaitedObject::Words(Words {
        words,
        more,
        all,
        comparison: comparison.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_is_described_by_its_operator() {
        for (cmp, operator) in [
            (SHMEM_CMP_EQ, "=="),
            (SHMEM_CMP_NE, "!="),
            (SHMEM_CMP_GT, ">"),
            (SHMEM_CMP_GE, ">="),
            (SHMEM_CMP_LT, "<"),
            (SHMEM_CMP_LE, "<="),
        ] {
            let subject = words_subject(Vec::new(), 0, true, cmp);
            assert!(matches!(subject, AwaitedObject::Words(words) if words.comparison == operator));
        }
    }
}
