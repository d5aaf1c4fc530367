//! Cray's teams: nothing is returned, errors end the job, a handle is destroyed where it is kept.

use core::ffi::c_int;

use rushmem_runtime::team::{self, Handle};

forward! {
    [shmemx_team_my_pe](team: Handle) -> c_int => team::my_pe;
    [shmemx_team_mype](team: Handle) -> c_int => team::my_pe;
    [shmemx_team_n_pes](team: Handle) -> c_int => team::n_pes;
    [shmemx_team_npes](team: Handle) -> c_int => team::n_pes;
    [shmemx_team_translate_pe](src_team: Handle, src_pe: c_int, dest_team: Handle) -> c_int
        => team::translate_pe;
}

export! {
    [shmemx_team_split_strided](
        parent_team: Handle, start: c_int, stride: c_int, size: c_int, new_team: *mut Handle,
    ) = |call| {
        let made = team::split_strided_by_members(call, parent_team, start, stride, size);
        new_team.write(made);
    };

    [shmemx_team_destroy](team: *mut Handle) = |call| {
        team::destroy(call, team.read());
        team.write(Handle::INVALID);
    };
}
