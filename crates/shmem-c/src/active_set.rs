//! Collectives over active sets (OpenSHMEM 1.6, 9.10, deprecated).
//!
//! The runtime keeps the state of an active set itself: pWrk goes unused, and of pSync only its address
//! counts.

use core::ffi::{c_int, c_long};

use rushmem_runtime::coll::{self, Members};

use crate::coll::nbytes;
use crate::longdouble::combine;

/// Exports functions whose last arguments are an active set:
/// `[parts of the C name](arguments) = |call, members| body;`
macro_rules! on_active_set {
    ($(
        [$($part:tt)+] ($($arg:ident: $type:ty,)*) = |$call:ident, $members:ident| $body:expr;
    )+) => {
        on_active_set! {$( [$($part)+] ($($arg: $type,)*) () = |$call, $members| $body; )+}
    };
    // The second list is what stands between PE_size and pSync.
    ($(
        [$($part:tt)+] ($($arg:ident: $type:ty,)*) ($($work:ident: $work_type:ty)?)
            = |$call:ident, $members:ident| $body:expr;
    )+) => {
        export! {$(
            [$($part)+] (
                $($arg: $type,)* start: c_int, log_stride: c_int, size: c_int,
                $($work: $work_type,)? psync: *mut c_long,
            ) = |$call| {
                let $members = Members::ActiveSet { start, log_stride, size, psync };
                $body;
            };
        )+}
    };
}

on_active_set! {
    [shmem_barrier]() = |call, set| coll::barrier(call, set);
    [shmem_sync]() = |call, set| coll::sync(call, set);
}

macro_rules! movers {
    ($size:tt $type:ty) => {
        on_active_set! {
            [shmem_broadcast $size](dest: *mut $type, source: *const $type, nelems: usize, root: c_int,)
                = |call, set| coll::broadcast(
                    call, set, dest.cast(), source.cast(), nbytes::<$type>(nelems), root
                );
            [shmem_collect $size](dest: *mut $type, source: *const $type, nelems: usize,)
                = |call, set| coll::collect(call, set, dest.cast(), source.cast(), nbytes::<$type>(nelems));
            [shmem_fcollect $size](dest: *mut $type, source: *const $type, nelems: usize,)
                = |call, set| coll::fcollect(call, set, dest.cast(), source.cast(), nbytes::<$type>(nelems));
            [shmem_alltoall $size](dest: *mut $type, source: *const $type, nelems: usize,)
                = |call, set| coll::alltoall(call, set, dest.cast(), source.cast(), nbytes::<$type>(nelems));
            [shmem_alltoalls $size](
                dest: *mut $type, source: *const $type, dst: isize, sst: isize, nelems: usize,
            ) = |call, set| coll::alltoalls(
                    call, set, dest.cast(), source.cast(), dst, sst, nelems, size_of::<$type>()
                );
        }
    };
}
movers!(32 u32);
movers!(64 u64);

macro_rules! reductions {
    ($name:ident, $type:ty, $($op:ident)+) => {
        on_active_set! {$(
            [shmem_ $name _ $op _to_all]
                (dest: *mut $type, source: *const $type, nreduce: c_int,) (_pwrk: *mut $type)
                = |call, set| coll::reduce(
                    call, set, dest.cast(), source.cast(), count(nreduce), combine!($name, $type, $op)
                );
        )+}
    };
}

macro_rules! bitwise {
    ($name:ident, $type:ty) => {
        reductions!($name, $type, and or xor);
    };
}
for_each_old_wait_type!(bitwise);

macro_rules! ordered {
    ($name:ident, $type:ty) => {
        reductions!($name, $type, max min);
    };
}
for_each_ordered_to_all_type!(ordered);

macro_rules! arithmetic {
    ($name:ident, $type:ty) => {
        reductions!($name, $type, sum prod);
    };
}
for_each_arithmetic_to_all_type!(arithmetic);

/// Number of elements; one that no memory holds where it is negative, so that the runtime refuses it.
fn count(nreduce: c_int) -> usize {
    usize::try_from(nreduce).unwrap_or(usize::MAX)
}
