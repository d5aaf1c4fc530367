//! Collectives, which Fortran has only on active sets.
//!
//! pWrk is not used, and pSync, a default INTEGER array, only for its address.

use core::ffi::c_int;

use rushmem_runtime::collectives::{self, ElementCount, TeamOrActiveSet};
use rushmem_runtime::combine::{Combine, Complex};
use rushmem_runtime::reductions;

use super::export::{Elements, In};
use super::quad::{self, Quad};

/// Exports routines whose last arguments are an active set, perhaps a pWrk, and a pSync:
/// `[parts of the name](arguments; pwrk: type) = |call, members| body;`
macro_rules! on_active_set {
    ($(
        [$($part:tt)+] ($($arg:ident: $type:ty),*; $($pwrk:ident: $pwrk_type:ty)?)
            = |$call:ident, $members:ident| $body:expr;
    )+) => {
        fortran! {$(
            [$($part)+] (
                $($arg: $type,)* start: In<c_int>, log_stride: In<c_int>, size: In<c_int>,
                $($pwrk: $pwrk_type,)? psync: *mut c_int,
            ) = |$call| {
                let $members =
                    TeamOrActiveSet::ActiveSet { start, log_stride, size, psync: psync.cast() };
                $body;
            };
        )+}
    };
}

fortran! {
    [shmem_barrier_all]() = |call| collectives::barrier_all(call);
}

on_active_set! {
    [shmem_barrier](;) = |call, set| collectives::barrier(call, set);
}

macro_rules! gathering {
    ($size:tt, $t:ty, $($collective:ident)+) => {
        on_active_set! {$(
            [shmem_ $collective $size](dest: *mut $t, source: *const $t, nelems: Elements;)
                = |call, set| collectives::$collective(
                    call, set, dest.cast(), source.cast(), ElementCount::of::<$t>(nelems)
                );
        )+}
    };
}

macro_rules! movers {
    ($size:tt, $t:ty) => {
        gathering!($size, $t, collect fcollect);
        on_active_set! {
            [shmem_broadcast $size]
                (dest: *mut $t, source: *const $t, nelems: Elements, root: In<c_int>;)
                = |call, set| collectives::broadcast(
                    call, set, dest.cast(), source.cast(), ElementCount::of::<$t>(nelems), root
                );
        }
    };
}
movers!(4, u32);
movers!(8, u64);
movers!(32, u32);
movers!(64, u64);

macro_rules! exchanges {
    ($size:tt, $t:ty) => {
        gathering!($size, $t, alltoall);
        on_active_set! {
            [shmem_alltoalls $size]
                (
                    dest: *mut $t, source: *const $t, dst: In<c_int>, sst: In<c_int>,
                    nelems: Elements;
                )
                = |call, set| collectives::alltoalls(
                    call, set, dest.cast(), source.cast(), dst as isize, sst as isize, nelems,
                    size_of::<$t>()
                );
        }
    };
}
exchanges!(32, u32);
exchanges!(64, u64);

/// The operator of a reduction over a type.
macro_rules! operator {
    (Quad, $op:ident) => {
        const { &quad::$op() }
    };
    ($t:ty, $op:ident) => {
        const { &Combine::$op::<$t>() }
    };
}

macro_rules! reductions {
    ($($name:ident $t:tt: $($op:ident)+;)+) => {
        $($(reductions!(@ $name $t $op);)+)+
    };
    (@ $name:ident [$($t:tt)+] $op:ident) => {
        on_active_set! {
            [shmem_ $name _ $op _to_all]
                (dest: *mut $($t)+, source: *const $($t)+, nreduce: Elements; _pwrk: *mut $($t)+)
                = |call, set| reductions::reduce(
                    call, set, dest.cast(), source.cast(), nreduce, operator!($($t)+, $op)
                );
        }
    };
}
reductions! {
    int2 [i16]: and or xor max min sum prod;
    int4 [i32]: and or xor max min sum prod;
    int8 [i64]: and or xor max min sum prod;
    real4 [f32]: max min sum prod;
    real8 [f64]: max min sum prod;
    real16 [Quad]: max min sum prod;
    comp4 [Complex<f32>]: sum prod;
    // COMP8_MAX is only in manuals. `Ordered` for complex numbers defines the order that it uses.
    comp8 [Complex<f64>]: max sum prod;
}
