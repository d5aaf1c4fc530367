//! Collectives over teams (OpenSHMEM 1.6, 9.10).

use core::ffi::c_int;

use rushmem_runtime::coll;
use rushmem_runtime::team::Handle;

use crate::longdouble::combine;

forward! {
    [shmem_barrier_all]() => coll::barrier_all;
    [shmem_sync_all]() => coll::sync_all;
}

/// Collectives that move elements: `long_collect`, `collectmem`.
macro_rules! movers {
    ([$($before:tt)*] [$($after:tt)*] $type:ty) => {
        export! {
            [shmem_ $($before)* broadcast $($after)*](
                team: Handle, dest: *mut $type, source: *const $type, nelems: usize, root: c_int,
            ) -> c_int = |call| coll::broadcast(
                call, team.into(), dest.cast(), source.cast(), nbytes::<$type>(nelems), root
            );
            [shmem_ $($before)* collect $($after)*](
                team: Handle, dest: *mut $type, source: *const $type, nelems: usize,
            ) -> c_int = |call| coll::collect(
                call, team.into(), dest.cast(), source.cast(), nbytes::<$type>(nelems)
            );
            [shmem_ $($before)* fcollect $($after)*](
                team: Handle, dest: *mut $type, source: *const $type, nelems: usize,
            ) -> c_int = |call| coll::fcollect(
                call, team.into(), dest.cast(), source.cast(), nbytes::<$type>(nelems)
            );
            [shmem_ $($before)* alltoall $($after)*](
                team: Handle, dest: *mut $type, source: *const $type, nelems: usize,
            ) -> c_int = |call| coll::alltoall(
                call, team.into(), dest.cast(), source.cast(), nbytes::<$type>(nelems)
            );
            [shmem_ $($before)* alltoalls $($after)*](
                team: Handle, dest: *mut $type, source: *const $type, dst: isize, sst: isize, nelems: usize,
            ) -> c_int = |call| coll::alltoalls(
                call, team.into(), dest.cast(), source.cast(), dst, sst, nelems, size_of::<$type>()
            );
        }
    };
}

macro_rules! typed {
    ($name:ident, $type:ty) => {
        movers!([$name _] [] $type);
    };
}
for_each_rma_type!(typed);

movers!([] [mem] u8);

macro_rules! reductions {
    ($name:ident, $type:ty, $($op:ident)+) => {
        export! {$(
            [shmem_ $name _ $op _reduce](
                team: Handle, dest: *mut $type, source: *const $type, nreduce: usize,
            ) -> c_int = |call| coll::reduce(
                call, team.into(), dest.cast(), source.cast(), nreduce, combine!($name, $type, $op)
            );
        )+}
    };
}

macro_rules! bitwise {
    ($name:ident, $type:ty) => {
        reductions!($name, $type, and or xor);
    };
}
for_each_bitwise_reduce_type!(bitwise);

macro_rules! ordered {
    ($name:ident, $type:ty) => {
        reductions!($name, $type, max min);
    };
}
for_each_rma_type!(ordered);

macro_rules! arithmetic {
    ($name:ident, $type:ty) => {
        reductions!($name, $type, sum prod);
        export! {
            [shmem_ $name _sum_inscan](
                team: Handle, dest: *mut $type, source: *const $type, nelems: usize,
            ) -> c_int = |call| coll::inscan(
                call, team.into(), dest.cast(), source.cast(), nelems, combine!($name, $type, sum)
            );
            [shmem_ $name _sum_exscan](
                team: Handle, dest: *mut $type, source: *const $type, nelems: usize,
            ) -> c_int = |call| coll::exscan(
                call, team.into(), dest.cast(), source.cast(), nelems, combine!($name, $type, sum)
            );
        }
    };
}
for_each_arithmetic_reduce_type!(arithmetic);

/// Length in bytes; one that no memory has where the true one overflows, so that the runtime refuses it.
pub(crate) const fn nbytes<T>(nelems: usize) -> usize {
    nelems.saturating_mul(size_of::<T>())
}
