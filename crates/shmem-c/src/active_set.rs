//! Collectives over active sets (OpenSHMEM 1.6, 9.10, deprecated).
//!
//! The runtime keeps the state of an active set itself. pWrk is not used, and pSync only for its
//! address.

use core::ffi::{c_int, c_long};

use rushmem_runtime::Call;
use rushmem_runtime::collectives::{self, ElementCount, TeamOrActiveSet};
use rushmem_runtime::reductions;

use crate::coll::combine;

/// Exports functions whose last arguments are an active set, perhaps a pWrk, and a pSync:
/// `[parts of the C name](arguments; pwrk: type) = |call, members| body;`
macro_rules! on_active_set {
    ($(
        [$($part:tt)+] ($($arg:ident: $type:ty),*; $($pwrk:ident: $pwrk_type:ty)?)
            = |$call:ident, $members:ident| $body:expr;
    )+) => {
        export! {$(
            [$($part)+] (
                $($arg: $type,)* start: c_int, log_stride: c_int, size: c_int,
                $($pwrk: $pwrk_type,)? psync: *mut c_long,
            ) = |$call| {
                let $members = TeamOrActiveSet::ActiveSet { start, log_stride, size, psync };
                $body;
            };
        )+}
    };
}

on_active_set! {
    [shmem_barrier](;) = |call, set| collectives::barrier(call, set);
    [shmem_sync](;) = |call, set| collectives::sync(call, set);
}

macro_rules! gathering {
    ($size:tt, $t:ty, $($collective:ident)+) => {
        on_active_set! {$(
            [shmem_ $collective $size](dest: *mut $t, source: *const $t, nelems: usize;)
                = |call, set| collectives::$collective(
                    call, set, dest.cast(), source.cast(), ElementCount::of::<$t>(nelems)
                );
        )+}
    };
}

macro_rules! movers {
    ($size:tt, $t:ty) => {
        gathering!($size, $t, collect fcollect alltoall);
        on_active_set! {
            [shmem_alltoalls $size]
                (dest: *mut $t, source: *const $t, dst: isize, sst: isize, nelems: usize;)
                = |call, set| collectives::alltoalls(
                    call, set, dest.cast(), source.cast(), dst, sst, nelems, size_of::<$t>()
                );
            [shmem_broadcast $size](dest: *mut $t, source: *const $t, nelems: usize, root: c_int;)
                = |call, set| collectives::broadcast(
                    call, set, dest.cast(), source.cast(), ElementCount::of::<$t>(nelems), root
                );
        }
    };
}
movers!(32, u32);
movers!(64, u64);

macro_rules! reductions {
    ($name:ident, $t:ty, $($op:ident)+) => {
        on_active_set! {$(
            [shmem_ $name _ $op _to_all]
                (dest: *mut $t, source: *const $t, nreduce: c_int; _pwrk: *mut $t)
                = |call, set| reductions::reduce(
                    call, set, dest.cast(), source.cast(), count(call, "nreduce", nreduce),
                    combine!($name, $t, $op)
                );
        )+}
    };
}

macro_rules! bitwise {
    ($name:ident, $t:ty) => {
        reductions!($name, $t, and or xor);
    };
}
for_each_old_wait_type!(bitwise);

macro_rules! ordered {
    ($name:ident, $t:ty) => {
        reductions!($name, $t, max min);
    };
}
for_each_ordered_to_all_type!(ordered);

macro_rules! arithmetic {
    ($name:ident, $t:ty) => {
        reductions!($name, $t, sum prod);
    };
}
for_each_arithmetic_to_all_type!(arithmetic);

/// Converts a number of elements that is passed as an int. Ends the job if it is negative.
pub(crate) fn count(call: Call, argument: &str, given: c_int) -> usize {
    usize::try_from(given).unwrap_or_else(|_| {
        call.fail(format_args!(
            "argument {argument} is {given}, but a number of elements is at least 0"
        ))
    })
}
