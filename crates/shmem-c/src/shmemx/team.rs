//! Cray's teams. The functions that make and destroy teams return no status, because errors end the
//! job. `destroy` also sets the caller's handle to invalid.

use core::ffi::c_int;

use rushmem_runtime::{TeamHandle, team};

forward! {
    [shmemx_team_my_pe](team: TeamHandle) -> c_int => team::my_pe;
    [shmemx_team_mype](team: TeamHandle) -> c_int => team::my_pe;
    [shmemx_team_n_pes](team: TeamHandle) -> c_int => team::n_pes;
    [shmemx_team_npes](team: TeamHandle) -> c_int => team::n_pes;
    [shmemx_team_translate_pe](src_team: TeamHandle, src_pe: c_int, dest_team: TeamHandle) -> c_int
        => team::translate_pe;
}

export! {
    [shmemx_team_split_strided](
        parent_team: TeamHandle, start: c_int, stride: c_int, size: c_int,
        new_team: *mut TeamHandle,
    ) = |call| {
        let made = team::split_strided_by_members(call, parent_team, start, stride, size);
        new_team.write(made.unwrap_or_else(|error| error.fail(call)));
    };

    [shmemx_team_split_2d](
        parent_team: TeamHandle, xrange: c_int, yrange: c_int,
        xaxis_team: *mut TeamHandle, yaxis_team: *mut TeamHandle,
    ) = |call| {
        let ranges = [("xrange", xrange), ("yrange", yrange)];
        let made = team::split_grid(call, parent_team, ranges);
        let [xaxis, yaxis] = made.unwrap_or_else(|error| error.fail(call));
        xaxis_team.write(xaxis);
        yaxis_team.write(yaxis);
    };

    [shmemx_team_split_3d](
        parent_team: TeamHandle, xrange: c_int, yrange: c_int, zrange: c_int,
        xaxis_team: *mut TeamHandle, yaxis_team: *mut TeamHandle, zaxis_team: *mut TeamHandle,
    ) = |call| {
        let ranges = [("xrange", xrange), ("yrange", yrange), ("zrange", zrange)];
        let made = team::split_grid(call, parent_team, ranges);
        let [xaxis, yaxis, zaxis] = made.unwrap_or_else(|error| error.fail(call));
        xaxis_team.write(xaxis);
        yaxis_team.write(yaxis);
        zaxis_team.write(zaxis);
    };

    [shmemx_team_split](
        parent_team: TeamHandle, color: c_int, key: c_int, new_team: *mut TeamHandle,
    ) = |call| {
        let made = team::split_color(call, parent_team, color, key);
        new_team.write(made.unwrap_or_else(|error| error.fail(call)));
    };
    [shmemx_team_split_color](
        parent_team: TeamHandle, color: c_int, key: c_int, new_team: *mut TeamHandle,
    ) = |call| {
        let made = team::split_color(call, parent_team, color, key);
        new_team.write(made.unwrap_or_else(|error| error.fail(call)));
    };

    [shmemx_team_destroy](team: *mut TeamHandle) = |call| {
        team::destroy_as_member(call, team.read());
        team.write(TeamHandle::INVALID);
    };
}
