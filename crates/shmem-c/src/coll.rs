//! Collectives over teams (OpenSHMEM 1.6, 9.10).

use core::ffi::c_int;

use rushmem_runtime::TeamHandle;
use rushmem_runtime::collectives::{self, ElementCount};
use rushmem_runtime::reductions;

forward! {
    [shmem_barrier_all]() => collectives::barrier_all;
    [shmem_sync_all]() => collectives::sync_all;
}

/// Exports a collective whose arguments are only vectors: `long_collect`, `collectmem`.
macro_rules! gathering {
    ([$($before:tt)*] $collective:ident [$($after:tt)*] $t:ty) => {
        export! {
            [shmem_ $($before)* $collective $($after)*](
                team: TeamHandle, dest: *mut $t, source: *const $t, nelems: usize,
            ) -> c_int = |call| collectives::$collective(
                call, team.into(), dest.cast(), source.cast(), ElementCount::of::<$t>(nelems)
            );
        }
    };
}

/// Exports the collectives that copy elements without combining them.
macro_rules! movers {
    ([$($before:tt)*] [$($after:tt)*] $t:ty) => {
        gathering!([$($before)*] collect [$($after)*] $t);
        gathering!([$($before)*] fcollect [$($after)*] $t);
        gathering!([$($before)*] alltoall [$($after)*] $t);
        export! {
            [shmem_ $($before)* alltoalls $($after)*](
                team: TeamHandle, dest: *mut $t, source: *const $t,
                dst: isize, sst: isize, nelems: usize,
            ) -> c_int = |call| collectives::alltoalls(
                call, team.into(), dest.cast(), source.cast(), dst, sst, nelems, size_of::<$t>()
            );
            [shmem_ $($before)* broadcast $($after)*](
                team: TeamHandle, dest: *mut $t, source: *const $t, nelems: usize, root: c_int,
            ) -> c_int = |call| collectives::broadcast(
                call, team.into(), dest.cast(), source.cast(), ElementCount::of::<$t>(nelems), root
            );
        }
    };
}

macro_rules! typed {
    ($name:ident, $t:ty) => {
        movers!([$name _] [] $t);
    };
}
for_each_rma_type!(typed);

movers!([] [mem] u8);

/// The operator of a reduction over `TYPE`, by its name in the type table.
macro_rules! combine {
    (longdouble, $type:ty, $op:ident) => {
        const { &$crate::longdouble::$op() }
    };
    ($name:ident, $type:ty, $op:ident) => {
        const { &rushmem_runtime::combine::Combine::$op::<$type>() }
    };
}
pub(crate) use combine;

macro_rules! reductions {
    ($name:ident, $t:ty, $($op:ident)+) => {
        export! {$(
            [shmem_ $name _ $op _reduce](
                team: TeamHandle, dest: *mut $t, source: *const $t, nreduce: usize,
            ) -> c_int = |call| reductions::reduce(
                call, team.into(), dest.cast(), source.cast(), nreduce, combine!($name, $t, $op)
            );
        )+}
    };
}

macro_rules! bitwise {
    ($name:ident, $t:ty) => {
        reductions!($name, $t, and or xor);
    };
}
for_each_bitwise_reduce_type!(bitwise);

macro_rules! ordered {
    ($name:ident, $t:ty) => {
        reductions!($name, $t, max min);
    };
}
for_each_rma_type!(ordered);

macro_rules! scans {
    ($name:ident, $t:ty, $($scan:ident)+) => {
        export! {$(
            [shmem_ $name _sum_ $scan](
                team: TeamHandle, dest: *mut $t, source: *const $t, nelems: usize,
            ) -> c_int = |call| reductions::$scan(
                call, team.into(), dest.cast(), source.cast(), nelems, combine!($name, $t, sum)
            );
        )+}
    };
}

macro_rules! arithmetic {
    ($name:ident, $t:ty) => {
        reductions!($name, $t, sum prod);
        scans!($name, $t, inscan exscan);
    };
}
for_each_arithmetic_reduce_type!(arithmetic);
