//! Collectives: the all-to-all of blocks of different sizes, Cray's old reductions over teams,
//! Sandia's names of the scans, scans of other operators, bitwise reductions of the signed types of
//! C, reductions whose result goes to one member or is divided among them, and gather and scatter.

use core::ffi::{c_int, c_long, c_longlong, c_short, c_void};

use rushmem_runtime::TeamHandle;
use rushmem_runtime::alltoallv::{SourceBlocks, TargetBlocks, alltoallv, alltoallv_packed};
use rushmem_runtime::collectives::{ElementCount, TeamOrActiveSet};
use rushmem_runtime::combine::{BFloat16, Combine, Float16};
use rushmem_runtime::{gather, reductions};

use crate::active_set::count;
use crate::coll::combine;

export! {
    [shmemx_alltoallv](
        target: *mut c_void, t_offsets: *const usize, t_sizes: *mut usize,
        source: *const c_void, s_offsets: *const usize, s_sizes: *const usize,
        start: c_int, log_stride: c_int, size: c_int, psync: *mut c_long,
    ) = |call| {
        let members = TeamOrActiveSet::ActiveSet { start, log_stride, size, psync };
        let blocks = SourceBlocks { source: source.cast(), offsets: s_offsets, sizes: s_sizes };
        let target = TargetBlocks { target: target.cast(), nbytes: usize::MAX };
        alltoallv(call, members, target, t_offsets, t_sizes, blocks);
    };

    [shmemx_alltoallv_packed](
        target: *mut c_void, target_len: usize, t_size: *mut usize,
        source: *const c_void, s_offsets: *const usize, s_sizes: *const usize,
        start: c_int, log_stride: c_int, size: c_int, psync: *mut c_long,
    ) = |call| {
        let members = TeamOrActiveSet::ActiveSet { start, log_stride, size, psync };
        let blocks = SourceBlocks { source: source.cast(), offsets: s_offsets, sizes: s_sizes };
        let target = TargetBlocks { target: target.cast(), nbytes: usize::MAX };
        t_size.write(alltoallv_packed(call, members, target, target_len, blocks));
    };
}

export! {
    [shmemx_team_alltoallvmem](
        team: TeamHandle, dest: *mut c_void, d_offsets: *const usize, d_sizes: *mut usize,
        source: *const c_void, s_offsets: *const usize, s_sizes: *const usize,
    ) -> c_int = |call| {
        let blocks = SourceBlocks { source: source.cast(), offsets: s_offsets, sizes: s_sizes };
        let target = TargetBlocks { target: dest.cast(), nbytes: usize::MAX };
        alltoallv(call, team.into(), target, d_offsets, d_sizes, blocks)
    };
}

macro_rules! scans {
    ($name:ident, $t:ty, $($op:ident)+) => {
        export! {$(
            [shmemx_ $name _ $op _inscan](
                team: TeamHandle, dest: *mut $t, source: *const $t, nelems: usize,
            ) -> c_int = |call| reductions::inscan(
                call, team.into(), dest.cast(), source.cast(), nelems, combine!($name, $t, $op)
            );

            [shmemx_ $name _ $op _exscan](
                team: TeamHandle, dest: *mut $t, source: *const $t, nelems: usize,
            ) -> c_int = |call| reductions::exscan(
                call, team.into(), dest.cast(), source.cast(), nelems, combine!($name, $t, $op)
            );
        )+}
    };
}

macro_rules! arithmetic_scans {
    ($name:ident, $t:ty) => {
        scans!($name, $t, sum prod);
    };
}
for_each_arithmetic_reduce_type!(arithmetic_scans);

macro_rules! ordered_scans {
    ($name:ident, $t:ty) => {
        scans!($name, $t, max min);
    };
}
for_each_rma_type!(ordered_scans);

macro_rules! bitwise {
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
bitwise!(short, c_short, and or xor);
bitwise!(int, c_int, and or xor);
bitwise!(long, c_long, and or xor);
bitwise!(longlong, c_longlong, and or xor);

// The two work arrays are not used: only active sets need them.
macro_rules! to_all {
    ($name:ident, $t:ty, $($op:ident)+) => {
        export! {$(
            [shmemx_team_ $name _ $op _to_all](
                team: TeamHandle, dest: *mut $t, source: *const $t, nreduce: c_int,
                _pwrk: *mut $t, _psync: *mut c_long,
            ) = |call| {
                let nreduce = count(call, "nreduce", nreduce);
                let op = combine!($name, $t, $op);
                let failed =
                    reductions::reduce(call, team.into(), dest.cast(), source.cast(), nreduce, op);
                if failed != 0 {
                    call.fail(format_args!(
                        "argument team is SHMEM_TEAM_NULL: only members of a team take part in its reductions"
                    ));
                }
            };
        )+}
    };
}

macro_rules! bitwise_to_all {
    ($name:ident, $t:ty) => {
        to_all!($name, $t, and or xor);
    };
}
for_each_old_wait_type!(bitwise_to_all);

macro_rules! arithmetic_to_all {
    ($name:ident, $t:ty) => {
        to_all!($name, $t, max min sum prod);
    };
}
for_each_ordered_to_all_type!(arithmetic_to_all);

/// Exports reductions to a root, and reduce-scatters.
macro_rules! partial_reductions {
    ($name:ident, $t:ty, $($op:ident)+) => {
        export! {$(
            [shmemx_ $name _ $op _reduce_to](
                team: TeamHandle, dest: *mut $t, source: *const $t, nreduce: usize, root: c_int,
            ) -> c_int = |call| {
                let op = combine!($name, $t, $op);
                reductions::reduce_to(
                    call, team.into(), dest.cast(), source.cast(), nreduce, op, root,
                )
            };

            [shmemx_ $name _ $op _reduce_scatter](
                team: TeamHandle, dest: *mut $t, source: *const $t, nreduce: usize,
            ) -> c_int = |call| reductions::reduce_scatter(
                call, team.into(), dest.cast(), source.cast(), nreduce, combine!($name, $t, $op)
            );
        )+}
    };
}

macro_rules! bitwise_partial {
    ($name:ident, $t:ty) => {
        partial_reductions!($name, $t, and or xor);
    };
}
for_each_bitwise_reduce_type!(bitwise_partial);

macro_rules! ordered_partial {
    ($name:ident, $t:ty) => {
        partial_reductions!($name, $t, max min);
    };
}
for_each_rma_type!(ordered_partial);

macro_rules! arithmetic_partial {
    ($name:ident, $t:ty) => {
        partial_reductions!($name, $t, sum prod);
    };
}
for_each_arithmetic_reduce_type!(arithmetic_partial);

macro_rules! rooted {
    ([$($before:tt)*] $collective:ident [$($after:tt)*] $t:ty) => {
        export! {
            [shmemx_ $($before)* $collective $($after)*](
                team: TeamHandle, dest: *mut $t, source: *const $t, nelems: usize, root: c_int,
            ) -> c_int = |call| gather::$collective(
                call, team.into(), dest.cast(), source.cast(), ElementCount::of::<$t>(nelems), root
            );
        }
    };
}

macro_rules! rooted_typed {
    ($name:ident, $t:ty) => {
        rooted!([$name _] gather [] $t);
        rooted!([$name _] scatter [] $t);
    };
}
for_each_rma_type!(rooted_typed);

rooted!([] gather [mem] u8);
rooted!([] scatter [mem] u8);

// Numbers of 16 bits have no type in all compilers of C, so their bits are passed.
macro_rules! sum_of_16_bits {
    ($name:ident, $float:ident) => {
        export! {
            [shmemx_ $name _sum_reduce](
                team: TeamHandle, dest: *mut u16, source: *const u16, nreduce: usize,
            ) -> c_int = |call| {
                let op = const { &Combine::sum::<$float>() };
                reductions::reduce(call, team.into(), dest.cast(), source.cast(), nreduce, op)
            };
        }
    };
}
sum_of_16_bits!(float16, Float16);
sum_of_16_bits!(bfloat16, BFloat16);
