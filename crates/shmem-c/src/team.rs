//! Teams (OpenSHMEM 1.6, 9.4). Functions with a result argument write to it, and return 0 on
//! success.
#![allow(unsafe_code)]

use core::ffi::{c_int, c_long};

use rushmem_runtime::constants::SHMEM_TEAM_NUM_CONTEXTS;
use rushmem_runtime::team::{self, TeamConfig};
use rushmem_runtime::{Call, TeamHandle, collectives};

forward! {
    [shmem_team_my_pe](team: TeamHandle) -> c_int => team::my_pe;
    [shmem_team_n_pes](team: TeamHandle) -> c_int => team::n_pes;
    [shmem_team_translate_pe](src_team: TeamHandle, src_pe: c_int, dest_team: TeamHandle) -> c_int
        => team::translate_pe;
    [shmem_team_destroy](team: TeamHandle) => team::destroy;
}

export! {
    [shmem_team_sync](team: TeamHandle) -> c_int = |call| collectives::sync(call, team.into());

    [shmem_team_get_config](team: TeamHandle, config_mask: c_long, config: *mut TeamConfig) -> c_int
        = |call| match team::config(call, team) {
            Some(found) => {
                if config_mask & SHMEM_TEAM_NUM_CONTEXTS != 0 {
                    require_present(call, "config", config);
                    config.write(found);
                }
                0
            }
            None => 1,
        };

    [shmem_team_split_strided](
        parent_team: TeamHandle, start: c_int, stride: c_int, size: c_int,
        config: *const TeamConfig, config_mask: c_long, new_team: *mut TeamHandle,
    ) -> c_int = |call| {
        let config = selected(call, "config", config, config_mask);
        let made = team::split_strided(call, parent_team, start, stride, size, config);
        new_team.write(made.unwrap_or(TeamHandle::INVALID));
        c_int::from(made.is_none())
    };

    [shmem_team_split_2d](
        parent_team: TeamHandle, xrange: c_int,
        xaxis_config: *const TeamConfig, xaxis_mask: c_long, xaxis_team: *mut TeamHandle,
        yaxis_config: *const TeamConfig, yaxis_mask: c_long, yaxis_team: *mut TeamHandle,
    ) -> c_int = |call| {
        let xaxis = selected(call, "xaxis_config", xaxis_config, xaxis_mask);
        let yaxis = selected(call, "yaxis_config", yaxis_config, yaxis_mask);
        let made = team::split_2d(call, parent_team, xrange, xaxis, yaxis);
        let (row, column) = made.unwrap_or((TeamHandle::INVALID, TeamHandle::INVALID));
        xaxis_team.write(row);
        yaxis_team.write(column);
        c_int::from(made.is_none())
    };
}

/// Returns the fields of `*config` that `mask` names, the others with their defaults (9.4.3). Ends
/// the job if `config` is null although `mask` names a field.
///
/// # Safety
/// `config` is null or valid for a read, or `mask` names no field.
unsafe fn selected(
    call: Call,
    argument: &str,
    config: *const TeamConfig,
    mask: c_long,
) -> TeamConfig {
    if mask & SHMEM_TEAM_NUM_CONTEXTS == 0 {
        return TeamConfig::default();
    }
    require_present(call, argument, config);
    // SAFETY: `mask` names a field and `config` is not null, so it is valid for a read, as this
    // function requires.
    unsafe { config.read() }
}

/// Ends the job if a configuration is null.
fn require_present(call: Call, argument: &str, config: *const TeamConfig) {
    if config.is_null() {
        call.fail(format_args!(
            "argument {argument} is null, but its mask names num_contexts"
        ));
    }
}
