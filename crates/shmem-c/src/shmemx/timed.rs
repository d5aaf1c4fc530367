//! Waits with a limit in seconds. They return `SHMEMX_SUCCESS` or `SHMEMX_TIMED_OUT`, and store
//! what they have found unless the pointer is null.
#![allow(unsafe_code)]

use core::ffi::c_int;

use rushmem_runtime::extension_constants::{SHMEMX_SUCCESS, SHMEMX_TIMED_OUT};
use rushmem_runtime::limits::{TimedOut, of_seconds};
use rushmem_runtime::requests::wait_within;
use rushmem_runtime::wait::{self, Values};
use rushmem_runtime::{Call, Context, RequestHandle, order};

macro_rules! scalar {
    ($name:ident, $t:ty) => {
        export! {
            [shmemx_ $name _wait_until_timed](
                ivar: *mut $t, cmp: c_int, cmp_value: $t, seconds: f64,
            ) -> c_int = |call| {
                let limit = of_seconds(call, seconds);
                done(wait::wait_until_within(call, ivar, cmp, cmp_value, limit))
            };
        }
    };
}
for_each_wait_type!(scalar);

/// Exports the routines on several variables whose names have `$form` before the last word.
macro_rules! on_set {
    ($name:ident, $t:ty, [$($form:tt)*] $value:ident: $value_type:ty => $values:expr) => {
        export! {
            [shmemx_ $name _wait_until_all $($form)* _timed](
                ivars: *mut $t, nelems: usize, status: *const c_int, cmp: c_int,
                $value: $value_type, seconds: f64,
            ) -> c_int = |call| {
                let limit = of_seconds(call, seconds);
                done(wait::wait_until_all_within(
                    call, ivars, nelems, status, cmp, $values, limit
                ))
            };
            [shmemx_ $name _wait_until_any $($form)* _timed](
                ivars: *mut $t, nelems: usize, status: *const c_int, cmp: c_int,
                $value: $value_type, index: *mut usize, seconds: f64,
            ) -> c_int = |call| {
                let limit = of_seconds(call, seconds);
                let found = wait::wait_until_any_within(
                    call, ivars, nelems, status, cmp, $values, limit
                );
                stored(found, index)
            };
            [shmemx_ $name _wait_until_some $($form)* _timed](
                ivars: *mut $t, nelems: usize, indices: *mut usize, status: *const c_int,
                cmp: c_int, $value: $value_type, n_indices: *mut usize, seconds: f64,
            ) -> c_int = |call| {
                let limit = of_seconds(call, seconds);
                let found = wait::wait_until_some_within(
                    call, ivars, nelems, indices, status, cmp, $values, limit
                );
                stored(found, n_indices)
            };
        }
    };
}

macro_rules! sets {
    ($name:ident, $t:ty) => {
        on_set!($name, $t, [] cmp_value: $t => Values::Same(cmp_value));
        on_set!($name, $t, [_vector] cmp_values: *const $t => Values::Each(cmp_values));
    };
}
for_each_standard_amo_type!(sets);

export! {
    [shmemx_signal_wait_until_timed](
        sig_addr: *mut u64, cmp: c_int, cmp_value: u64, value: *mut u64, seconds: f64,
    ) -> c_int = |call| {
        let limit = of_seconds(call, seconds);
        stored(wait::wait_until_within(call, sig_addr, cmp, cmp_value, limit), value)
    };

    [shmemx_req_wait_timed](req: *mut RequestHandle, seconds: f64) -> c_int = |call| {
        let waited = wait_within(call, req.read(), of_seconds(call, seconds));
        if waited.is_ok() {
            req.write(RequestHandle::NULL);
        }
        done(waited)
    };
}

on_contexts_as! { shmemx_ shmemx_ctx_:
    [quiet_timed](seconds: f64) -> c_int => quiet;
}

/// Performs a quiet with a limit.
pub(crate) fn quiet<C: Context>(call: Call, ctx: C, seconds: f64) -> c_int {
    let is_quiet = order::quiet_within(call, ctx, of_seconds(call, seconds));
    done(is_quiet.then_some(()).ok_or(TimedOut))
}

/// Returns the result of a wait as C has it.
pub(crate) fn done<T>(waited: Result<T, TimedOut>) -> c_int {
    match waited {
        Ok(_) => SHMEMX_SUCCESS,
        Err(TimedOut) => SHMEMX_TIMED_OUT,
    }
}

/// Returns the result of a wait as C has it, and stores what the wait has found.
///
/// # Safety
/// `place` is null or valid for a write.
unsafe fn stored<T: Copy>(waited: Result<T, TimedOut>, place: *mut T) -> c_int {
    if let Ok(found) = waited
        && !place.is_null()
    {
        // SAFETY: the pointer is not null, so it is valid, as the caller promises.
        unsafe { place.write(found) };
    }
    done(waited)
}
