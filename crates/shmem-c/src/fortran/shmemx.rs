//! Extensions of vendors: Cray's teams, whose handles are 8-byte integers, its all-to-all of blocks
//! of different sizes, Sandia's clock, the initialization by a unique id, the use of the heap,
//! registered buffers, and waits with a limit.

use core::ffi::{c_int, c_void};

use rushmem_providers::ALL;
use rushmem_runtime::alltoallv::{SourceBlocks, TargetBlocks, alltoallv, alltoallv_packed};
use rushmem_runtime::collectives::TeamOrActiveSet;
use rushmem_runtime::constants::SHMEM_THREAD_SINGLE;
use rushmem_runtime::limits::of_seconds;
use rushmem_runtime::start::{self, UNIQUE_ID_BYTES};
use rushmem_runtime::wait::wait_until_within;
use rushmem_runtime::{
    Call, DefaultContext, TeamHandle, also_flush, heap, register_buffer, team, time,
    unregister_buffer,
};

use super::export::In;
use super::setup::flush_units;
use crate::shmemx::timed;

fortran! {
    [shmemx_team_split_strided](
        parent_team: In<TeamHandle>, start: In<c_int>, stride: In<c_int>, size: In<c_int>,
        new_team: *mut TeamHandle,
    ) = |call| {
        let made = team::split_strided_by_members(call, parent_team, start, stride, size);
        new_team.write_unaligned(made.unwrap_or_else(|error| error.fail(call)));
    };
    [shmemx_team_split]
        (parent_team: In<TeamHandle>, color: In<c_int>, key: In<c_int>, new_team: *mut TeamHandle)
        = |call| {
            let made = team::split_color(call, parent_team, color, key);
            new_team.write_unaligned(made.unwrap_or_else(|error| error.fail(call)));
        };
    [shmemx_team_destroy](team: *mut TeamHandle) = |call| {
        team::destroy_as_member(call, team.read_unaligned());
        team.write_unaligned(TeamHandle::INVALID)
    };

    [shmemx_team_my_pe](team: In<TeamHandle>) -> c_int = |call| team::my_pe(call, team);
    [shmemx_team_n_pes](team: In<TeamHandle>) -> c_int = |call| team::n_pes(call, team);
    [shmemx_team_translate_pe]
        (team1: In<TeamHandle>, team1_pe: In<c_int>, team2: In<TeamHandle>) -> c_int
        = |call| team::translate_pe(call, team1, team1_pe, team2);

    [shmemx_alltoallv](
        target: *mut u8, t_offsets: *const usize, t_sizes: *mut usize,
        source: *const u8, s_offsets: *const usize, s_sizes: *const usize,
        start: In<c_int>, log_stride: In<c_int>, size: In<c_int>, psync: *mut c_int,
    ) = |call| {
        let members = TeamOrActiveSet::ActiveSet { start, log_stride, size, psync: psync.cast() };
        let blocks = SourceBlocks { source, offsets: s_offsets, sizes: s_sizes };
        let target = TargetBlocks { target, nbytes: usize::MAX };
        alltoallv(call, members, target, t_offsets, t_sizes, blocks);
    };
    [shmemx_alltoallv_packed](
        target: *mut u8, target_len: In<usize>, t_size: *mut usize,
        source: *const u8, s_offsets: *const usize, s_sizes: *const usize,
        start: In<c_int>, log_stride: In<c_int>, size: In<c_int>, psync: *mut c_int,
    ) = |call| {
        let members = TeamOrActiveSet::ActiveSet { start, log_stride, size, psync: psync.cast() };
        let blocks = SourceBlocks { source, offsets: s_offsets, sizes: s_sizes };
        let target = TargetBlocks { target, nbytes: usize::MAX };
        t_size.write_unaligned(alltoallv_packed(call, members, target, target_len, blocks))
    };

    [shmemx_get_uniqueid](uniqueid: *mut [u8; UNIQUE_ID_BYTES], length: usize) = |call| {
        require_room(call, length);
        let made = start::unique_id(call);
        let id = made.unwrap_or_else(|error| call.fail(format_args!("{error}")));
        let id = id.map(|byte| if byte == 0 { b' ' } else { byte });
        uniqueid.write(id);
    };
    [shmemx_init_uniqueid](
        rank: In<c_int>, nranks: In<c_int>, uniqueid: *const [u8; UNIQUE_ID_BYTES], length: usize,
    ) = |call| {
        require_room(call, length);
        also_flush(flush_units);
        start::init_by_id(call, ALL, SHMEM_THREAD_SINGLE, rank, nranks, &uniqueid.read());
    };

    [shmemx_heap_info](total: *mut usize, used: *mut usize, largest_free: *mut usize) = |call| {
        let info = heap::info(call);
        total.write_unaligned(info.total);
        used.write_unaligned(info.used);
        largest_free.write_unaligned(info.largest_free);
    };

    [shmemx_buffer_register](array: *mut c_void, nbytes: In<usize>) -> c_int
        = |call| c_int::from(register_buffer(call, array, nbytes, 0).is_null());
    [shmemx_buffer_unregister](array: *mut c_void) -> c_int
        = |call| unregister_buffer(call, array);

    [shmemx_release](addr: *mut *mut c_void) = |call| heap::release(call, addr.read_unaligned());
    [shmemx_reclaim]() -> usize = |call| heap::reclaim(call);

    [shmemx_quiet_timed](seconds: In<f64>) -> c_int
        = |call| timed::quiet(call, DefaultContext, seconds);

    [shmemx_wtime]() -> f64 = |_call| time::wtime();
}

macro_rules! waits {
    ($([$name:ident] $t:ty;)+) => {
        fortran! {$(
            [$name](ivar: *mut $t, cmp: In<c_int>, cmp_value: In<$t>, seconds: In<f64>) -> c_int
                = |call| {
                    let limit = of_seconds(call, seconds);
                    timed::done(wait_until_within(call, ivar, cmp, cmp_value, limit))
                };
        )+}
    };
}
waits! {
    [shmemx_int4_wait_until_timed] i32;
    [shmemx_int8_wait_until_timed] i64;
}

/// Ends the job unless a CHARACTER of this length has room for a unique id.
fn require_room(call: Call, length: usize) {
    if length < UNIQUE_ID_BYTES {
        call.fail(format_args!(
            "argument uniqueid has {length} characters; declare it as CHARACTER(128)"
        ));
    }
}
