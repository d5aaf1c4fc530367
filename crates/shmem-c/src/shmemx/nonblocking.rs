//! Non-blocking collectives, and their requests.

use core::ffi::{c_int, c_void};

use rushmem_runtime::collectives::ElementCount;
use rushmem_runtime::combine::{BFloat16, Combine, Float16};
use rushmem_runtime::nonblocking::{NonblockingCollective as Collective, start};
use rushmem_runtime::requests::{test, wait};
use rushmem_runtime::{RequestHandle, TeamHandle};

use crate::coll::combine;

export! {
    [shmemx_team_sync_nb](team: TeamHandle, req: *mut RequestHandle) -> c_int = |call| {
        let no_dest = core::ptr::null_mut();
        let no_source = core::ptr::null();
        let nothing = ElementCount::of::<u8>(0);
        req.write(start(call, team, Collective::Sync, no_dest, no_source, nothing));
        0
    };

    [shmemx_team_alltoallvmem_nb](
        team: TeamHandle, dest: *mut c_void, d_offsets: *const usize, d_sizes: *mut usize,
        source: *const c_void, s_offsets: *const usize, s_sizes: *const usize,
        req: *mut RequestHandle,
    ) -> c_int = |call| {
        let collective = Collective::Alltoallv { d_offsets, d_sizes, s_offsets, s_sizes };
        let unknown = ElementCount::of::<u8>(0);
        req.write(start(call, team, collective, dest.cast(), source.cast(), unknown));
        0
    };

    [shmemx_req_test](req: *mut RequestHandle, flag: *mut c_int) -> c_int = |call| {
        let is_done = test(call, req.read()).is_some();
        flag.write(is_done.into());
        if is_done {
            req.write(RequestHandle::NULL);
        }
        0
    };

    [shmemx_req_wait](req: *mut RequestHandle) -> c_int = |call| {
        wait(call, req.read());
        req.write(RequestHandle::NULL);
        0
    };
}

/// Exports the start of a collective whose arguments are only vectors: `[parts of the C name]
/// (element type) = collective`.
macro_rules! started {
    ([$($part:tt)+] ($t:ty) = $collective:expr) => {
        export! {
            [$($part)+](
                team: TeamHandle, dest: *mut $t, source: *const $t, nelems: usize,
                req: *mut RequestHandle,
            ) -> c_int = |call| {
                let elements = ElementCount::of::<$t>(nelems);
                req.write(start(call, team, $collective, dest.cast(), source.cast(), elements));
                0
            };
        }
    };
}

/// Exports the start of a collective that also has a root: `[parts of the C name] (element type)
/// |root| collective`.
macro_rules! started_with_root {
    ([$($part:tt)+] ($t:ty) |$root:ident| $collective:expr) => {
        export! {
            [$($part)+](
                team: TeamHandle, dest: *mut $t, source: *const $t, nelems: usize, $root: c_int,
                req: *mut RequestHandle,
            ) -> c_int = |call| {
                let elements = ElementCount::of::<$t>(nelems);
                req.write(start(call, team, $collective, dest.cast(), source.cast(), elements));
                0
            };
        }
    };
}

/// Exports the collectives that copy elements without combining them.
macro_rules! movers {
    ([$($before:tt)*] [$($after:tt)*] $t:ty) => {
        started!([shmemx_ $($before)* collect $($after)* _nb] ($t)
            = Collective::Collect { max_bytes: usize::MAX });
        started!([shmemx_ $($before)* fcollect $($after)* _nb] ($t)
            = Collective::Fcollect);
        started!([shmemx_ $($before)* alltoall $($after)* _nb] ($t)
            = Collective::Alltoall);
        started_with_root!([shmemx_ $($before)* broadcast $($after)* _nb] ($t)
            |root| Collective::Broadcast { root });
        started_with_root!([shmemx_ $($before)* gather $($after)* _nb] ($t)
            |root| Collective::Gather { root });
        started_with_root!([shmemx_ $($before)* scatter $($after)* _nb] ($t)
            |root| Collective::Scatter { root });
    };
}

macro_rules! typed {
    ($name:ident, $t:ty) => {
        movers!([$name _] [] $t);
    };
}
for_each_rma_type!(typed);

movers!([] [mem] u8);

macro_rules! reductions {
    ($name:ident, $t:ty, $($op:ident)+) => {$(
        started!([shmemx_ $name _ $op _reduce_nb] ($t)
            = Collective::Reduce(combine!($name, $t, $op)));
        started!([shmemx_ $name _ $op _reduce_scatter_nb] ($t)
            = Collective::ReduceScatter(combine!($name, $t, $op)));
        started_with_root!([shmemx_ $name _ $op _reduce_to_nb] ($t)
            |root| Collective::ReduceTo { op: combine!($name, $t, $op), root });
    )+};
}

macro_rules! bitwise {
    ($name:ident, $t:ty) => {
        reductions!($name, $t, and or xor);
    };
}
for_each_bitwise_reduce_type!(bitwise);

macro_rules! scans {
    ($name:ident, $t:ty, $($op:ident)+) => {$(
        started!([shmemx_ $name _ $op _inscan_nb] ($t)
            = Collective::Inscan(combine!($name, $t, $op)));
        started!([shmemx_ $name _ $op _exscan_nb] ($t)
            = Collective::Exscan(combine!($name, $t, $op)));
    )+};
}

macro_rules! ordered {
    ($name:ident, $t:ty) => {
        reductions!($name, $t, max min);
        scans!($name, $t, max min);
    };
}
for_each_rma_type!(ordered);

macro_rules! arithmetic {
    ($name:ident, $t:ty) => {
        reductions!($name, $t, sum prod);
        scans!($name, $t, sum prod);
    };
}
for_each_arithmetic_reduce_type!(arithmetic);

macro_rules! sum_of_16_bits {
    ($name:ident, $float:ident) => {
        started!([shmemx_ $name _sum_reduce_nb] (u16)
            = Collective::Reduce(const { &Combine::sum::<$float>() }));
    };
}
sum_of_16_bits!(float16, Float16);
sum_of_16_bits!(bfloat16, BFloat16);
