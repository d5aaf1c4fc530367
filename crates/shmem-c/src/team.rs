//! Teams (OpenSHMEM 1.6, 9.4).

use core::ffi::{c_int, c_long};

use rushmem_runtime::coll;
use rushmem_runtime::team::{self, Config, Handle};

forward! {
    [shmem_team_my_pe](team: Handle) -> c_int => team::my_pe;
    [shmem_team_n_pes](team: Handle) -> c_int => team::n_pes;
    [shmem_team_get_config](team: Handle, config_mask: c_long, config: *mut Config) -> c_int
        => team::config;
    [shmem_team_translate_pe](src_team: Handle, src_pe: c_int, dest_team: Handle) -> c_int
        => team::translate_pe;
    [shmem_team_split_strided](
        parent_team: Handle, start: c_int, stride: c_int, size: c_int,
        config: *const Config, config_mask: c_long, new_team: *mut Handle,
    ) -> c_int => team::split_strided;
    [shmem_team_split_2d](
        parent_team: Handle, xrange: c_int,
        xaxis_config: *const Config, xaxis_mask: c_long, xaxis_team: *mut Handle,
        yaxis_config: *const Config, yaxis_mask: c_long, yaxis_team: *mut Handle,
    ) -> c_int => team::split_2d;
    [shmem_team_destroy](team: Handle) => team::destroy;
}

export! {
    [shmem_team_sync](team: Handle) -> c_int = |call| coll::sync(call, team.into());
}
