//! Contexts and sessions (OpenSHMEM 1.6, 9.5 and 9.9).

use core::ffi::{c_int, c_long};

use rushmem_runtime::ctx::{self, Handle, SessionConfig};
use rushmem_runtime::team;

forward! {
    [shmem_ctx_create](options: c_long, ctx: *mut Handle) -> c_int => ctx::create;
    [shmem_team_create_ctx](team: team::Handle, options: c_long, ctx: *mut Handle) -> c_int
        => ctx::team_create;
    [shmem_ctx_destroy](ctx: Handle) => ctx::destroy;
    [shmem_ctx_get_team](ctx: Handle, team: *mut team::Handle) -> c_int => ctx::team_of;
    [shmem_ctx_session_start](
        ctx: Handle, options: c_long, config: *const SessionConfig, config_mask: c_long,
    ) => ctx::session_start;
    [shmem_ctx_session_stop](ctx: Handle) => ctx::session_stop;
}
